/* What the kernels behind the interpreter share: a block's grain, its cells, what is read.
 *
 * A cell is an element of the kept axes. Its n_reduced elements are numbered in visiting order.
 * Operands are read where they are: one that is dense and native at once, others by their axes.
 *
 * Kernels are written as interpret.inc: on the device a thread is a thread and phases end at
 * barriers, on the host a phase is a loop over the threads. Between two barriers a thread touches
 * what is its own, or adds to integers atomically; so any order of threads gives the same. The
 * host's is one in which neighbours are far apart, so that what leans on an order shows. */
#pragma once

#include "kernels/cuda/device/move.h"
#include "kernels/cuda/device/reduce.h"

#if defined(__CUDACC__)
#define FOR_EACH_TASK_THREAD for (u32 thread = threadIdx.x, once = 1; once; once = 0)
#define END_OF_TASK_PHASE()  __syncthreads()
#define FOUR_AT_A_TIME       _Pragma("unroll 4")
#else
#define FOR_EACH_TASK_THREAD                                                                       \
    for (u32 turn = 0, thread = 5; turn < CODE_TASK_THREADS;                                       \
         turn++, thread = (thread + 77) % CODE_TASK_THREADS)
#define END_OF_TASK_PHASE() ((void)0)
#define FOUR_AT_A_TIME
#endif

struct task_block {
    const struct code_header *header;
    const struct code_grain *grain;
    const struct code_run *kept, *reduced;
    char *slot, *node;
    u32 first_cell, n_cells; /* n_cells: that the block has threads for */
};

/* Where a thread is in its block. */
struct task_part {
    u32 cell, part, first; /* first: the cell's first element, in visiting order */
};

/* What is read, and from where. */
struct task_source {
    struct slow_move move;
    const char *first;
    bool is_plain; /* native, dense and no bools */
};

/* n_parts threads for each cell. */
DEVICE struct task_block task_block_of(const struct code_header *header, char *slot, u32 grain,
                                       u32 block)
{
    struct task_block b;
    b.header = header;
    b.slot = slot;
    b.grain = (const struct code_grain *)(slot + header->grains_offset +
                                          (u64)grain * header->grain_bytes);
    b.kept = (const struct code_run *)((const char *)(b.grain + 1) +
                                       header->n_places * header->place_bytes);
    b.reduced = b.kept + b.grain->n_kept_runs;
    b.node = slot + header->nodes_offset + (u64)grain * header->node_bytes;
    b.n_cells = CODE_TASK_THREADS / b.grain->n_parts;
    b.first_cell = block * b.n_cells;
    return b;
}

DEVICE const struct code_task *task_of(const struct task_block *b, u32 index)
{
    const struct code_header *h = b->header;
    return (const struct code_task *)(b->slot + h->insns_offset) + h->n_insns + index;
}

/* Element of the index-th of what the runs go through. */
DEVICE u32 run_element(const struct code_run *runs, u32 n_runs, u32 index)
{
    u32 element = 0;
    ONE_BY_ONE for (u32 i = 0; i < n_runs; i++)
    {
        u32 count = runs[i].count, outer = i + 1 < n_runs ? index / count : 0;
        element += (index - outer * count) * runs[i].stride;
        index = outer;
    }
    return element;
}

DEVICE i64 run_position(const struct task_block *b, u32 index)
{
    i64 position = b->grain->position;
    u32 n_runs = b->grain->n_reduced_runs;
    ONE_BY_ONE for (u32 i = 0; i < n_runs; i++)
    {
        u32 count = b->reduced[i].count, outer = i + 1 < n_runs ? index / count : 0;
        position += (i64)(index - outer * count) * b->reduced[i].position;
        index = outer;
    }
    return position;
}

DEVICE struct task_part part_of(const struct task_block *b, u32 thread)
{
    struct task_part p;
    u32 n_parts = b->grain->n_parts;
    bool is_kept_fast = b->grain->is_kept_fast;
    p.cell = b->first_cell + (is_kept_fast ? thread % b->n_cells : thread / n_parts);
    p.part = is_kept_fast ? thread / b->n_cells : thread % n_parts;
    p.first = run_element(b->kept, b->grain->n_kept_runs, p.cell);
    return p;
}

DEVICE const struct code_place *task_place(const struct task_block *b, u32 index)
{
    return (const struct code_place *)((const char *)(b->grain + 1) +
                                       (u64)index * b->header->place_bytes);
}

DEVICE struct task_source source_of(const struct task_block *b, u32 index)
{
    struct task_source s;
    const struct code_header *h = b->header;
    const struct code_operand *operand =
        (const struct code_operand *)(b->slot + h->operands_offset) + index;
    s.move.place = task_place(b, index);
    s.move.slot = b->slot;
    s.move.item_log2 = operand->item_log2;
    s.move.is_bool = operand->is_bool != 0;
    s.first = b->slot + s.move.place->offset;
    s.is_plain =
        s.move.place->kind == CODE_PLACE_LINEAR && !s.move.place->is_swapped && !s.move.is_bool;
    return s;
}

DEVICE u64 source_item(const struct task_source *s, u32 element, u32 type)
{
    if (s->is_plain)
        return widened_bits(
            read_item(s->first + ((u64)element << s->move.item_log2), s->move.item_log2), type);
    return widened_bits(place_read(&s->move, element), type);
}
