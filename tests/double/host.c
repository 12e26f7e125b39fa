/* The interpreter compiled for the host: the device's own source, with threads as loops.
 *
 * For tests: programs that stand in for a device (the double of the CUDA runtime) and those that
 * compare the kernels with the CPU engine where there is no device. Blocks run one after the other,
 * each on shared memory of the size that a device would give it, filled with what means nothing, so
 * that a sanitizer sees what goes beyond it, and tests what reads before it writes.
 */
#include "kernels/cuda/interpreter.h"

#include "tests/double/late_moves.h" /* what kernels/cuda/device/move.h leaves to the host */

#include "kernels/cuda/device/counters.h"
#include "kernels/cuda/device/integer.h"
#include "kernels/cuda/device/lookup.h"
#include "kernels/cuda/device/math.h"
#include "kernels/cuda/device/move.h"
#include "kernels/cuda/device/random.h"
#include "kernels/cuda/device/reduce.h"
#include "kernels/cuda/device/task.h"

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
#include "kernels/cuda/device/count.inc"
#include "kernels/cuda/device/scan.inc"
#include "kernels/cuda/device/window.inc"

#define SHARED_ALIGN 16u

/* A block of a kernel. */
typedef void block_function(const struct code_header *h, char *slot, void *shared, u32 grain,
                            u32 block);

static void interpret(const struct code_header *h, char *slot, void *shared, u32 grain, u32 block)
{
    if (h->kernel == CODE_KERNEL_LIGHT)
        light_run_block(h, slot, (char *)shared, grain, block);
    else
        full_run_block(h, slot, (char *)shared, grain, block);
    assert(late.n == 0); /* all that was asked for was waited for */
}

static void reduce_axes(const struct code_header *h, char *slot, void *shared, u32 grain, u32 block)
{
    run_axes_block(h, slot, (struct code_state *)shared, grain, block);
}

static void count(const struct code_header *h, char *slot, void *shared, u32 grain, u32 block)
{
    run_count_block(h, slot, (struct count_shared *)shared, grain, block);
}

static void scan(const struct code_header *h, char *slot, void *shared, u32 grain, u32 block)
{
    run_scan_block(h, slot, (u64 *)shared, grain, block);
}

static void make_windows(const struct code_header *h, char *slot, void *shared, u32 grain,
                         u32 block)
{
    (void)shared;
    run_window_block(h, slot, grain, block);
}

static void make_ranks(const struct code_header *h, char *slot, void *shared, u32 grain, u32 block)
{
    run_rank_block(h, slot, (u64 *)shared, grain, block);
}

static int run_kernel(const struct interpreter_launch *launch, char *slot, block_function *run,
                      u32 n_blocks, uint64_t shared_bytes)
{
    char *shared = aligned_alloc(SHARED_ALIGN, shared_bytes + SHARED_ALIGN);
    if (!shared)
        return -ENOMEM;
    for (u32 grain = 0; grain < launch->n_grains; grain++) {
        for (u32 block = 0; block < n_blocks; block++) {
            memset(shared, 0xa5, shared_bytes);
            run(&launch->header, slot, shared, grain, block);
        }
    }
    free(shared);
    return 0;
}

int cuda_interpreter_run_on_host(const struct interpreter_launch *launch, void *device_slot)
{
    const struct {
        block_function *run;
        u32 n_blocks;
        uint64_t shared_bytes;
    } kernels[] = {
        {make_windows, launch->n_window_blocks, 0},
        {make_ranks, launch->n_rank_blocks, CODE_RANK_SHARED_ITEMS * sizeof(u64)},
        {interpret, launch->n_blocks, launch->header.shared_bytes},
        {reduce_axes, launch->n_axes_blocks, AXES_STATES * sizeof(struct code_state)},
        {count, launch->n_count_blocks, sizeof(struct count_shared)},
        {scan, launch->n_scan_blocks, CODE_TASK_THREADS * sizeof(u64)},
    };
    int r = 0;
    for (u32 i = 0; r == 0 && i < sizeof(kernels) / sizeof(kernels[0]); i++)
        r = run_kernel(launch, device_slot, kernels[i].run, kernels[i].n_blocks,
                       kernels[i].shared_bytes);
    return r;
}
