/* The words that the planner, the engines and the worker share: where operands lie, which box of
 * elements is computed, what arithmetic met, and what an engine has and how fast it is.
 *
 * Whoever only speaks of these includes nothing of an engine. What the planner asks of an engine is
 * in kernels/plan/plan_engine.h, what the worker calls in the engines' own headers.
 */
#pragma once

#include "kernels/program.h"
#include "proto/box.h"

struct plan_engine;

/* Where an operand's elements of the box are: base points at the box's first element. Any
 * alignment; strides (bytes, one per axis of the box, arrays' axis order) may be 0 or negative.
 *
 * Of an input that is read near, base is where the box's own first element would be, even if it is
 * not there: elements in other places are at so many strides from there. Along some axes the memory
 * may go on beyond the end with what is at the beginning: then the step to an element is the one
 * within that (neighbours_distance()). */
struct engine_view {
    void *base;
    int64_t strides[ARRAY_MAX_NDIM];
    bool is_swapped;
    uint32_t goes_on_axes; /* bits: along these axes of the box the memory goes on */
    int64_t
        goes_on_at[ARRAY_MAX_NDIM]; /* along these: where in it the box's own first element is */
    /* Where the pass moves more than the cache holds: */
    bool bypasses_cache;   /* outputs: they are written past it, see cpu_engine_fence() */
    bool is_fetched_ahead; /* inputs: what comes next is asked for while this is computed */
};

/* What arithmetic met: counted, never trapped. A run adds to it when it succeeds. */
struct engine_warnings {
    uint64_t n_divide_by_zero; /* integer // and % by zero: elements */
    uint64_t n_invalid_casts;  /* NaN, infinite or out-of-range float to integer: elements */
};

/* Asked now and then while a box is computed: after every ENGINE_PACE_NS of arithmetic, as long as
 * it takes at its worst (kernels/op_costs.h). It may take its time, and lock and wait: none of the
 * operands' memory is touched meanwhile. False: the rest need not be computed. */
struct engine_pace {
    bool (*may_go_on)(void *argument);
    void *argument;
};
#define ENGINE_PACE_NS 500000u

/* Of the keys of the elements of a box in a pass with KTHs. */
#define ENGINE_MAX_KEY_BYTES (256u * 1024u)

struct engine_box {
    int ndim;
    const int64_t *count;  /* arrays' axis order, all > 0 */
    const int *axis_order; /* slowest to fastest: elements are visited in this order */
    const int64_t *start;  /* of the box in the pass's space; NULL: all 0 */
    /* Of a pass that reduces: the node holds what a box before this one gave, which has the same
     * kept elements; this one's elements are taken in behind them. See cpu_engine_can_continue().
     */
    bool is_continued;
    const struct engine_pace *pace; /* NULL: nobody asks for anything in between */
    void *states; /* of a pass with repeats: memory for these (cpu_states_bytes()) */
    /* Of a pass that reads windows: memory of the thread, CPU_WINDOW_BYTES, 64-byte aligned. */
    void *window_memory;
    const struct engine_view *windows; /* of the engine itself: by their numbers, once made */
};

/* Of every operand's box in a slot. */
#define ENGINE_SLOT_ALIGN 256u

/* The box's axes in visiting order, as an operand of these strides sees them. */
static inline void engine_box_merge(const struct engine_box *box, const int64_t *strides,
                                    struct box *ret_merged)
{
    ret_merged->n = 0;
    for (int i = box->ndim - 1; i >= 0; i--)
        box_add(ret_merged, box->count[box->axis_order[i]], strides[box->axis_order[i]], 0);
}

/* What the largest grain of a pass needs of a slot. */
struct engine_room {
    /* Of all boxes, each rounded up to ENGINE_SLOT_ALIGN. What is copied to the slot: inputs, the
     * results of earlier passes that are not uniform, the states of the pass's own scans. */
    uint64_t input_bytes, output_bytes;
    uint64_t n_elements; /* of its box */
    uint64_t n_cells;    /* of its node; not read without reductions */
    uint64_t made_bytes; /* of what repeats and windows keep, rounded up in the same way */
};

/* Measured when a worker starts, `disk` later. Bytes a second; 0: not known, a default is taken. */
struct plan_rates {
    double memory;    /* the host's copy, with the engine's threads: bytes read + written */
    double file;      /* page cache */
    double disk;      /* what reads of files gave that had to wait, lately; 0: there were none */
    double to_device; /* the link, each way alone; 0 for an engine without one */
    double from_device;
    double device; /* the device's memory: bytes read + written */
    double work;   /* elements x instructions a second, all threads */
    /* Multiplications and additions of matrix products a second, all threads. */
    double product_float32, product_float64, product_integer;
    double product_tf32; /* of float32, where the request allows it; 0: there is none */
    double job_seconds;  /* the floor of a job: what one of nearly nothing takes in the worker */
};

struct plan_limits {
    uint64_t pool_bytes;
    uint64_t slot_bytes;        /* one size class */
    uint64_t carry_limit_bytes; /* less than half the pool */
    /* Of a matrix product: it may be more than half; a device's are not of the pool. 0: as
     * carry_limit_bytes. */
    uint64_t product_carry_bytes;
    uint64_t device_carry_bytes; /* a device's own memory, beside its slots, for those; else 0 */
    uint64_t memory_bytes;       /* the machine's, for what files leave in it; 0: not known */
    unsigned n_threads;
    const struct plan_engine
        *engine;             /* the kind: what the planner asks (kernels/plan/plan_engine.h) */
    bool has_blas;           /* of a device: it multiplies matrices of floats */
    const char *why_no_blas; /* NULL or "": not known */
    bool has_tf32;           /* of a device: those of float32 with TF32, if the request allows it */
    /* Of a product's C that the carry holds at a time: matrices, rows, columns. As a journal has
     * them; all 0: as the plan chooses. */
    int64_t product_tile[3];
    struct plan_rates rates;
};
