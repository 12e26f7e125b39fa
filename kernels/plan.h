/* The plan of a job: passes, grains, tiles, what of the pool it needs, what it moves. Pure code,
 * run by the broker at submission and again by the worker (same input, same plan). Its work is
 * O(passes x arguments x dimensions).
 *
 * A tile is an aligned run of 2^tile_log2 grains (the last one may be shorter): the unit of a turn.
 */
#pragma once

#include "kernels/geometry.h"
#include "kernels/program.h"

/* Measured when a worker starts. Bytes a second; 0: not known, a default is taken. */
struct plan_rates {
    double memory;      /* the host's copy, with the engine's threads: bytes read + written */
    double file;        /* page cache */
    double to_device;   /* the link, each way alone; 0 for an engine without one */
    double from_device;
    double device;      /* the device's memory: bytes read + written */
    double work;        /* elements x instructions a second, all threads */
    double job_seconds; /* the floor of a job: what one of nearly nothing takes in the worker */
};

struct plan_limits {
    uint64_t pool_bytes;
    uint64_t slot_bytes; /* one size class */
    uint64_t carry_limit_bytes; /* at most half the pool */
    unsigned n_threads;
    /* An engine with a device: all operands of all grains of a tile lie in one slot together
     * (kernels/cuda/tile.h), wherever they come from. Else they pass it grain by grain, and only
     * those that are staged. */
    bool is_device;
    struct plan_rates rates;
};

/* What bounds the time that was estimated. */
enum plan_bound { PLAN_BOUND_START, PLAN_BOUND_MEMORY, PLAN_BOUND_FILE, PLAN_BOUND_LINK,
                  PLAN_BOUND_WORK };
const char *plan_bound_name(enum plan_bound bound); /* "start" "memory" "file" "link" "work" */

struct plan_pass {
    struct geometry geometry;
    unsigned tile_log2;
    uint64_t n_tiles;
    bool needs_slot; /* some operand is a file, staged in a slot (providers bring their own); for a
                        device: always, but of an empty space */
    /* For a device: all boxes of one grain at most, each rounded up to CUDA_TILE_ALIGN. */
    uint64_t grain_input_bytes, grain_output_bytes;
    /* What the grains' boxes hold, summed over grains: a broadcast operand counts once a grain,
     * or once in all where it is in memory and small enough for one grain. */
    uint64_t read_bytes, write_bytes;
    /* Of the carry: where this pass's reduce_tree lies (64-byte aligned); 0 without reductions. */
    uint64_t carry_offset_bytes;
};

struct plan {
    unsigned n_passes;
    struct plan_pass passes[PROGRAM_MAX_PASSES];
    /* What the job holds of the pool for its life; 0 without reductions. The carry is: the trees of
     * the passes that reduce, one behind the other, each rounded up to 64 bytes; then, at
     * results_offset_bytes, one struct partial per program->reductions. */
    uint64_t carry_bytes, results_offset_bytes;
    uint64_t read_bytes, write_bytes, n_tiles;
    double seconds; /* estimate */
    enum plan_bound bound;
    bool is_restartable; /* no output overwrites an input */
    bool is_small; /* one tile, all inline or region, little work: may run at once */
    bool is_fortran_order; /* the order NumPy's 'K' would choose for new outputs */
};

/* Reads the request's locations for layouts (strides, chunk shapes, kinds). in_place: some output
 * covers exactly an input (see overlap.h). too-large-for-pool with the numbers; bad-shape where a
 * pass has more elements, limit-exceeded where it moves more bytes, than 63 bits count. */
int plan_make(const struct job_request *request, const struct program *program, bool in_place,
              const struct plan_limits *limits, struct plan *ret_plan, struct gad_error *error)
    GAD_MUST_CHECK;

/* The grains [first, first + n) of a tile. */
void plan_tile_grains(const struct plan_pass *pass, uint64_t tile, uint64_t *ret_first,
                      uint64_t *ret_n);
