/* The interpreter's kernels as nvcc compiled them, in the place of those that the host's compiler
 * made: what tests/double/host_launch.c calls, for checkcuda on the test double.
 *
 * A launch may read the first bytes of the slot, and read and write what it says that it writes;
 * all else is out of bounds, or only read. A fault ends the program with the kernel's name and the
 * line of the C that was made of its PTX.
 */
#include "tests/unit/kernels/ptx/ptx_block.h"

#include "kernels/cuda/interpreter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUFFERS 32u

#define KERNEL(name)                                                                               \
    void compiled_cuda_##name(void *const *arguments);                                             \
    extern const uint32_t compiled_cuda_##name##_shared_bytes;
KERNEL(interpret_light)
KERNEL(interpret_full)
KERNEL(windows)
KERNEL(ranks)
KERNEL(reduce_axes)
KERNEL(count)
KERNEL(scan)
extern const struct ptx_buffer compiled_tables[];
extern const unsigned compiled_n_tables;

struct buffers {
    struct ptx_buffer list[MAX_BUFFERS];
    unsigned n;
};

static const char *const faults[] = {
    [PTX_MISALIGNED] = "misaligned",
    [PTX_OUT_OF_BOUNDS] = "out of bounds",
    [PTX_READ_ONLY] = "writes what is only read",
    [PTX_UNWRITTEN] = "reads what nothing has written",
    [PTX_RACE] = "races with another thread",
    [PTX_UNEQUAL_BARRIERS] = "does not come to the barrier of the others",
    [PTX_NOT_AWAITED] = "does not wait for its copies",
};

static void add(struct buffers *b, const char *begin, const char *end, bool *is_written)
{
    if (end > begin)
        b->list[b->n++] = (struct ptx_buffer){
            .start = (void *)(uintptr_t)begin,
            .n_bytes = (uint64_t)(end - begin),
            .is_written = is_written,
        };
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What is written comes first: what is read may lie around it. -ENOMEM. */
static int add_slot(struct buffers *b, const struct interpreter_launch *l, char *slot,
                    bool **ret_written)
{
    uint64_t begin = l->write_offset, end = begin + l->write_bytes;
    bool *is_written = calloc(l->write_bytes + 1, 1);
    if (!is_written)
        return -ENOMEM;
    if (l->read_bytes > begin)
        memset(is_written, true, smaller(l->read_bytes, end) - begin);
    add(b, slot + begin, slot + end, is_written);
    add(b, slot, slot + smaller(l->read_bytes, begin), NULL);
    if (l->read_bytes > end)
        add(b, slot + end, slot + l->read_bytes, NULL);
    *ret_written = is_written;
    return 0;
}

static int add_outside(struct buffers *b, const struct interpreter_launch *l, char *slot,
                       bool **ret_written)
{
    const struct interpreter_range *to = &l->outside_written, *from = &l->outside_read;
    uint64_t n_bytes = (uint64_t)(to->end - to->begin);
    bool *is_written = calloc(n_bytes + 1, 1);
    if (!is_written)
        return -ENOMEM;
    for (int64_t i = 0; i < (int64_t)n_bytes; i++)
        is_written[i] = to->begin + i >= from->begin && to->begin + i < from->end;
    add(b, slot + to->begin, slot + to->end, is_written);
    add(b, slot + from->begin, slot + from->end, NULL);
    *ret_written = is_written;
    return 0;
}

static int run_kernel(const char *name, const struct ptx_launch *launch)
{
    struct ptx_report report;
    int r = ptx_run(launch, &report);
    if (r == 0 && report.fault != PTX_FINE) {
        printf(
            "FAILED: the kernel %s as compiled: block (%u, %u), thread %u %s at %#llx, line %d\n",
            name, report.block[0], report.block[1], report.thread, faults[report.fault],
            (unsigned long long)report.address, report.line);
        exit(1);
    }
    return r;
}

static int run_all(const struct interpreter_launch *l, char *slot, const struct buffers *b)
{
    bool is_light = l->header.kernel == CODE_KERNEL_LIGHT;
    const struct {
        const char *name;
        void (*run)(void *const *arguments);
        uint32_t n_blocks, shared_bytes, n_threads;
    } kernels[] = {
#define TASK(name, n_blocks)                                                                       \
    {#name, compiled_cuda_##name, n_blocks, compiled_cuda_##name##_shared_bytes, CODE_TASK_THREADS}
        TASK(windows, l->n_window_blocks),
        TASK(ranks, l->n_rank_blocks),
        {is_light ? "interpret_light" : "interpret_full",
         is_light ? compiled_cuda_interpret_light : compiled_cuda_interpret_full, l->n_blocks,
         l->header.shared_bytes, l->header.n_threads},
        TASK(reduce_axes, l->n_axes_blocks),
        TASK(count, l->n_count_blocks),
        TASK(scan, l->n_scan_blocks),
    };
    uint32_t n_grains = l->n_grains;
    void *arguments[] = {(void *)(uintptr_t)&l->header, &slot, &n_grains};
    int r = 0;
    for (unsigned i = 0; r == 0 && i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        if (kernels[i].n_blocks == 0)
            continue;
        r = run_kernel(kernels[i].name, &(struct ptx_launch){
                                            .kernel = kernels[i].run,
                                            .shared_bytes = kernels[i].shared_bytes,
                                            .arguments = arguments,
                                            .n_blocks = {kernels[i].n_blocks, n_grains},
                                            .n_threads = kernels[i].n_threads,
                                            .buffers = b->list,
                                            .n_buffers = b->n,
                                        });
    }
    return r;
}

int cuda_interpreter_run_on_host(const struct interpreter_launch *launch, void *device_slot)
{
    const char *header = (const char *)&launch->header;
    struct buffers b = {.n = 0};
    bool *in_slot = NULL, *outside = NULL;
    int r = add_slot(&b, launch, device_slot, &in_slot);
    if (r == 0)
        r = add_outside(&b, launch, device_slot, &outside);
    add(&b, header, header + sizeof(launch->header), NULL);
    for (unsigned i = 0; i < compiled_n_tables && b.n < MAX_BUFFERS; i++)
        b.list[b.n++] = compiled_tables[i];
    if (r == 0)
        r = run_all(launch, device_slot, &b);
    free(in_slot);
    free(outside);
    return r;
}
