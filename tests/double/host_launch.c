/* What interpreter.cu does on a device, for the host compilation of the interpreter: the kernel is
 * put into a stream of the double of the CUDA runtime, which runs it in its turn. Programs of tests
 * only.
 */
#include "tests/double/host_launch.h"
#include "kernels/cuda/interpreter.h"
#include "kernels/cuda/tile.h"
#include "tests/double/timeline.h"

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

/* Instructions of a lane, about, for an element: of the compiled kernels. */
#define FAST_MOVE  3
#define SLOW_MOVE  115 /* element by element, by its coordinates */
#define LIGHT_INSN 6
#define FULL_INSN  40

static double insns_instructions(const struct code_header *h, const char *slot)
{
    const struct code_insn *insns = (const struct code_insn *)(slot + h->insns_offset);
    double n = 0;
    for (uint32_t i = 0; i < h->n_insns; i++)
        n += insns[i].action < ACTION_LIGHT_END ? LIGHT_INSN : FULL_INSN;
    return n;
}

static void add_places(const struct code_header *h, const char *slot,
                       const struct code_grain *grain, struct timeline_work *work)
{
    const struct code_operand *operands = (const struct code_operand *)(slot + h->operands_offset);
    for (uint32_t i = 0; i < h->n_places; i++) {
        const struct code_place *place =
            (const struct code_place *)((const char *)(grain + 1) + (uint64_t)i * h->place_bytes);
        const bool is_fast = place->kind == CODE_PLACE_LINEAR && !place->is_swapped;
        if (place->kind != CODE_PLACE_INDEX)
            work->n_bytes += (uint64_t)grain->n_elements << operands[i].item_log2;
        work->instructions += (double)grain->n_elements * (is_fast ? FAST_MOVE : SLOW_MOVE);
    }
}

/* Of the interpreter; what windows and tasks do is no part of it. */
static void add_work(const char *slot, const void *arguments, struct timeline_work *ret_work)
{
    struct interpreter_launch launch;
    memcpy(&launch, arguments, sizeof(launch));
    const struct code_header *h = &launch.header;
    const double each = insns_instructions(h, slot);
    *ret_work = (struct timeline_work){.n_bytes = 0};
    for (uint32_t i = 0; i < launch.n_grains; i++) {
        const struct code_grain *grain =
            (const struct code_grain *)(slot + h->grains_offset + (uint64_t)i * h->grain_bytes);
        ret_work->instructions += each * grain->n_elements;
        ret_work->n_blocks += grain->n_blocks;
        add_places(h, slot, grain, ret_work);
    }
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
        .work = add_work,
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
