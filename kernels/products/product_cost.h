/* What a tile of a matrix product's C costs, in seconds of this machine; see product_cost.c. */
#pragma once

#include "kernels/plan/planner.h"

struct product_tile {
    int64_t matrices, rows, columns, panel_depth;
    uint64_t n_panels, n_kept;
    bool has_two_buffers, is_padded;
    uint64_t n_bytes; /* of the carry; 0: there is no tile */
    double seconds;   /* of the whole product, with tiles like this */
    double moving;    /* of them: operands on their way into panels, C out of short lines */
};

/* Seconds of one pass through all of an operand. */
struct product_way {
    double host; /* threads that read it, and write it where it is multiplied or to a slot */
    double disk; /* I/O threads that wait; 0: all of it is in memory, or taken to be */
    double link, kernel; /* of a device: on its way there, into a panel there */
    double n_times;      /* for batch axes along which it is broadcast */
    bool has_matrices;   /* others for each place along the cut batch axis */
};

/* What is the same for all tiles of a job. */
struct product_costs {
    const struct plan_product *product;
    bool has_link, is_stored_by_columns;
    double n_threads;              /* that multiply; a device counts as one */
    double enough_blocks, n_outer; /* n_outer: of the other batch axes, all together */
    struct product_way ways[2];
    double store_seconds;                   /* of each line of a tile of C, beside its bytes */
    double result_host, result_link;        /* of a device's C, on its way back */
    double multiply_seconds, block_seconds; /* of all; of one block, by one thread */
    double packing_rate; /* bytes that a library rearranges a second; 0: there is none */
};

/* The sizes of blocks, the axes and is_depth_fastest of p->product are set. */
void product_costs_init(struct planner *p, struct product_costs *ret);
/* Sets seconds and moving. */
void product_cost(const struct product_costs *costs, struct product_tile *tile);
/* Whether the best tile with two buffers is to be had instead of the best one with one. */
bool product_cost_prefers_two(const struct product_costs *costs, const struct product_tile *one,
                              const struct product_tile *two);
