/* What interpreter.cu does on a device, for the host compilation of the interpreter: the kernel is
 * put into a stream of the double of the CUDA runtime, which runs it in its turn. Programs of tests
 * only.
 */
#include "tests/double/host_launch.h"
#include "kernels/cuda/interpreter.h"
#include "kernels/cuda/tile.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct interpreter_launch) <= CUDA_HOST_MAX_ARGUMENTS,
               "the launch is the kernel's arguments");

static void run_kernel(char *slot, const void *arguments)
{
    struct interpreter_launch launch;
    memcpy(&launch, arguments, sizeof(launch));
    if (cuda_interpreter_run_on_host(&launch, slot) != 0)
        abort();
}

static struct cuda_host_range range_of(const struct interpreter_range *r, char *slot,
                                       bool is_written)
{
    return (struct cuda_host_range){slot + r->begin, (uint64_t)(r->end - r->begin), is_written};
}

int cuda_interpreter_launch(const struct interpreter_launch *launch, void *device_slot,
                            cuda_stream stream)
{
    struct cuda_host_launch call = {
        .kernel = run_kernel,
        .arguments = launch,
        .n_argument_bytes = sizeof(*launch),
        .device_slot = device_slot,
        .slot_bytes = launch->read_bytes > launch->write_offset + launch->write_bytes
                          ? launch->read_bytes
                          : launch->write_offset + launch->write_bytes,
        .read_bytes = launch->read_bytes,
        .write_offset = launch->write_offset,
        .write_bytes = launch->write_bytes,
        .ranges = {range_of(&launch->outside_read, device_slot, false),
                   range_of(&launch->outside_written, device_slot, true)},
    };
    return cuda_host_launch(&call, stream);
}

static void do_nothing(char *slot, const void *arguments)
{
    (void)slot;
    (void)arguments;
}

int cuda_interpreter_warm_up(void *scratch, cuda_stream stream)
{
    struct cuda_host_launch call = {
        .kernel = do_nothing,
        .device_slot = scratch,
        .slot_bytes = CUDA_SLOT_MIN_BYTES,
        .is_warm_up = true,
    };
    for (int kernel = 0; kernel < CODE_KERNEL_COUNT + 5; kernel++) { /* and those of tasks */
        int r = cuda_host_launch(&call, stream);
        if (r)
            return r;
    }
    return 0;
}

int cuda_interpreter_local_bytes(uint64_t *ret_n_bytes)
{
    *ret_n_bytes = 0;
    return 0;
}

const char *cuda_interpreter_architectures(void)
{
    return "host";
}
