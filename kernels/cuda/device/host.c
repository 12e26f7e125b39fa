/* The interpreter compiled for the host: the device's own source, with threads as loops.
 *
 * For tests: programs that stand in for a device (the double of the CUDA runtime) and those that
 * compare the kernels with the CPU engine where there is no device. Blocks run one after the other,
 * each on shared memory of the size that a device would give it, filled with what means nothing, so
 * that a sanitizer sees what goes beyond it, and tests what reads before it writes.
 */
#include "kernels/cuda/interpreter.h"

#include "kernels/cuda/device/integer.h"
#include "kernels/cuda/device/math.h"
#include "kernels/cuda/device/move.h"
#include "kernels/cuda/device/random.h"
#include "kernels/cuda/device/reduce.h"

#include <errno.h>
#include <stdlib.h>

#define INTERPRET_NAME(x) light_##x
#include "kernels/cuda/device/interpret.inc"
#undef INTERPRET_NAME

#define INTERPRET_NAME(x) full_##x
#define INTERPRET_FULL
#include "kernels/cuda/device/interpret.inc"
#undef INTERPRET_FULL
#undef INTERPRET_NAME

#include "kernels/cuda/device/axes.inc"

#define SHARED_ALIGN      16u
#define AXES_SHARED_BYTES (AXES_STATES * sizeof(struct code_state))

static void interpret(const struct interpreter_launch *launch, char *device_slot, char *shared)
{
    const struct code_header *h = &launch->header;
    for (uint32_t grain = 0; grain < launch->n_grains; grain++) {
        for (uint32_t block = 0; block < launch->n_blocks; block++) {
            memset(shared, 0xa5, h->shared_bytes);
            if (h->kernel == CODE_KERNEL_LIGHT)
                light_run_block(h, device_slot, shared, grain, block);
            else
                full_run_block(h, device_slot, shared, grain, block);
            assert(late.n == 0); /* all that was asked for was waited for */
        }
    }
}

static void reduce_axes(const struct interpreter_launch *launch, char *device_slot, char *shared)
{
    for (uint32_t grain = 0; grain < launch->n_grains; grain++) {
        for (uint32_t block = 0; block < launch->n_axes_blocks; block++) {
            memset(shared, 0xa5, AXES_SHARED_BYTES);
            run_axes_block(&launch->header, device_slot, (struct code_state *)shared, grain, block);
        }
    }
}

static int with_shared(const struct interpreter_launch *launch, char *device_slot,
                       uint64_t shared_bytes,
                       void (*run)(const struct interpreter_launch *, char *, char *))
{
    char *shared = aligned_alloc(SHARED_ALIGN, shared_bytes + SHARED_ALIGN);
    if (!shared)
        return -ENOMEM;
    run(launch, device_slot, shared);
    free(shared);
    return 0;
}

int cuda_interpreter_run_on_host(const struct interpreter_launch *launch, void *device_slot)
{
    int r = with_shared(launch, device_slot, launch->header.shared_bytes, interpret);
    if (r == 0 && launch->n_axes_blocks > 0)
        r = with_shared(launch, device_slot, AXES_SHARED_BYTES, reduce_axes);
    return r;
}
