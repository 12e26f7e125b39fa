/* What the planner asks of a kind of engine: what a tile needs, what is best, what things cost. The
 * planner knows no engine by name; kernels/cpu/plan_cpu.c and kernels/cuda/plan_cuda.c answer.
 *
 * Answers follow from what is asked alone, so that broker and worker, and a worker and its
 * successor, come to the same plan.
 */
#pragma once

#include "kernels/engine.h"
#include "kernels/op_costs.h"
#include "proto/error.h"

struct planner;
struct plan_product;
struct plan_slab;
struct plan_estimate;

/* Tiles of a pass, of so many grains each. */
struct plan_tile_size {
    const struct program *program;
    unsigned pass;
    const struct plan_limits *limits;
    const struct engine_room *room;
    uint64_t n_grains, n_tiles; /* n_tiles: that do not wait for each other */
    uint64_t bytes, worst_ns;   /* of one grain: read and written; its arithmetic on one core */
};

/* Rows, columns, depth of a block of a matrix product. */
struct plan_block {
    int64_t rows, columns, depth;
};

/* What the blocks of a product should be (kernels/products/product_sizes.c). */
struct plan_blocks {
    struct plan_block float32, float64, integer_8, integer; /* integer_8: of 8 bytes */
    int64_t enough_blocks;                                  /* for all that compute at a time */
    int64_t least_extent;                                   /* of what is cut for that */
    int64_t least_work;       /* multiplications that are worth a turn */
    int64_t max_triple_bytes; /* a block of C and one panel of each operand, once lengthened */
    int64_t max_whole_bytes;  /* the same, of what has no parts (product_parts.c) */
    int64_t max_batch_bytes;
    int64_t max_runs; /* of matrices that lie evenly, which one turn has; INT64_MAX: any number */
};

struct plan_engine {
    /* All operands of all grains of a tile lie in one slot together, wherever they come from. Else
     * they pass it grain by grain, and only those that are staged. */
    bool fills_slots;
    bool can_pause; /* a turn may be put aside in the middle of a tile */
    bool has_link;  /* it computes in a memory of its own, behind a link */
    bool has_qr;    /* it computes QR_Rs */
    /* It computes passes with loops that take no longer for an element on one core, at their worst.
     */
    uint64_t most_loop_ns;
    bool has_swaths;  /* files are mapped: to transpose (swaths.c), as X */
    bool walks_slabs; /* it has STAGE_SLAB */
    /* The order in which a multiplication adds does not follow from how lines are aligned. Which
     * extents a block may be parted to without a bit changed, may_join() says. */
    bool adds_alike;
    /* A tile may have several steps of a scan, where each is one grain: they go on from each other
     * without the host. */
    bool chains_steps;

    /* What a slot must hold at least for so many grains; UINT64_MAX: they fit nowhere. */
    uint64_t (*slot_need_bytes)(const struct program *program, unsigned pass, uint64_t n_grains,
                                const struct engine_room *room);
    /* Why it does not make this window, for people; NULL: it makes it, or, of the pointer, all. */
    const char *(*why_no_window)(const struct program *program,
                                 const struct program_window *window);
    /* Of one that fills slots: whether the window's operand is made before it, in the slot. */
    bool (*makes_operand)(const struct program *program, const struct program_window *window);
    /* As why_no_window, of the repeats of a pass. */
    const char *(*why_no_repeats)(const struct program *program, const struct pass *pass);
    bool (*suits_tile)(const struct plan_tile_size *size);
    /* Rows of a cell that one grain after the other may take into the same node; 0: none. */
    int64_t (*most_continued_rows)(const struct program *program, const struct pass *pass);
    unsigned (*n_computing)(const struct plan_limits *limits); /* tiles, at a time */
    unsigned (*n_busy)(const struct plan_limits *limits);      /* tiles that exist, at a time */

    /* Where nothing was measured. */
    void (*default_rates)(const struct plan_limits *limits, struct plan_rates *ret);
    /* Of an instruction, and of looking for so many places with KTHs: in cheap instructions. */
    double (*work)(const struct op_cost *cost);
    double (*n_looks)(unsigned n_places);
    /* Adds to what a job spends. Passes of more than no tiles. */
    void (*estimate_pass)(const struct plan_estimate *e, unsigned pass);
    void (*estimate_product)(const struct plan_estimate *e, const struct plan_product *product);
    void (*estimate_slab)(const struct plan_estimate *e, const struct plan_slab *slab);

    struct plan_blocks blocks;
    /* GAD_NO_ENGINE where it cannot multiply such matrices. */
    int (*check_product)(const struct plan_limits *limits, enum dtype dtype,
                         struct gad_error *error) GAD_MUST_CHECK;
    /* Whether blocks of these extents, all below each other, may be one multiplication, with the
     * same bits; and such as are beside each other. */
    bool (*may_join)(enum dtype dtype, int64_t n_rows, int64_t n_columns, int64_t depth);
    bool (*may_join_beside)(enum dtype dtype);
    /* Of n grains, how many one turn loads or stores at best; at least 1. */
    uint64_t (*turn_grains)(const struct plan_limits *limits, uint64_t n_grains);
    /* MULTIPLYs that are begun before the next panel is loaded. */
    uint64_t (*n_multiplies_ahead)(const struct plan_limits *limits);
    double (*enough_blocks)(const struct plan_limits *limits); /* of a tile: nobody waits */
};

extern const struct plan_engine plan_cpu, plan_cuda;
