/* How the counters of a task are divided among blocks; for the kernel and for its launch. */
#pragma once

#include "kernels/cuda/code.h"
#include "kernels/cuda/device/device.h"

#define COUNT_COUNTERS (CODE_COUNT_BYTES / 4u) /* of a block */
#define COUNT_SUMS     (CODE_COUNT_BYTES / 8u)

/* Several cells a block, or several blocks a cell. */
struct count_division {
    u32 room; /* counters of a block */
    u32 blocks_of_cell, cells_of_block;
};

DEVICE struct count_division count_division_of(const struct code_task *task,
                                               const struct code_grain *grain)
{
    struct count_division d;
    d.room = task->other == CODE_NO_PLACE ? COUNT_COUNTERS : COUNT_SUMS;
    d.blocks_of_cell = (task->n_bins - 1) / d.room + 1;
    d.cells_of_block = 1;
    if (d.blocks_of_cell == 1) {
        u32 n_wanted = (CODE_COUNT_ELEMENTS - 1) / grain->n_reduced + 1;
        u32 n_most = d.room / task->n_bins;
        d.cells_of_block = n_most < n_wanted ? n_most : n_wanted;
    }
    return d;
}

DEVICE u32 count_blocks(const struct code_task *task, const struct code_grain *grain)
{
    struct count_division d = count_division_of(task, grain);
    return ((grain->n_cells - 1) / d.cells_of_block + 1) * d.blocks_of_cell;
}
