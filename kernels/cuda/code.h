/* A pass, encoded for the device: what the host writes into a slot and the interpreter reads there.
 * Plain structs of fixed size, shared by C and CUDA C++; offsets count from the slot's base.
 *
 *     code:  cells | instructions, tasks | KTHs' places, operands, tables | grains' records |
 *            tables' values
 *
 * A block of n_threads threads computes a run of elements of one grain in strips. In a strip every
 * thread has CODE_THREAD_ELEMENTS elements, in groups of 2^group_log2 neighbours (4 neighbours, or
 * two pairs where some operand has items of 8 bytes, so that 16 bytes are moved at a time):
 *
 *     element = strip + (group x n_threads + thread) x 2^group_log2 + position
 *
 * Values lie in shared memory, where each thread has 16 bytes of its own in every plane of
 * n_threads x 16 bytes: a value of up to 4 bytes an element has one plane, one of 8 bytes two.
 * Nobody but the thread touches them, so the strips need no barrier. Uniform values are cells of 16
 * bytes, filled with the value over and over, read by all threads at the same address. Inputs are
 * on their way into further planes while earlier strips are computed: `depth` strips ahead, in
 * depth + 1 sets of planes taken in turn. Where there is no room for that, depth is 0 and the
 * program has instructions that load.
 *
 * Where all axes are reduced, every thread has a state for each reduction, and a block leaves one
 * of each. The rest is tasks for kernels that come after the first: reductions where some axes are
 * kept (device/axes.inc) and KTHs (kth.inc), counts (device/count.inc), scans (device/scan.inc).
 * They read from where a thing lies: an operand's own place, or one in the slot that the first
 * kernel has stored to.
 * What they find for a cell, an element of the kept axes, is in the grain's node.
 */
#pragma once

#include "kernels/common/kth_rank.h"
#include "kernels/common/near_place.h"

#include <stdbool.h>
#include <stdint.h>

#define CODE_THREAD_ELEMENTS 4u
#define CODE_MAX_THREADS     256u
#define CODE_MIN_THREADS     16u
#define CODE_BLOCK_ELEMENTS  8192u
/* Where much is computed and nothing reduced, so that no bits follow from blocks: tiles of few
 * megabytes have blocks for all processors of a device. */
#define CODE_HEAVY_INSNS          16u
#define CODE_HEAVY_BLOCK_ELEMENTS 2048u
#define CODE_MAX_BLOCKS           32u /* of a grain; more elements make longer blocks */
#define CODE_MAX_SHARED_BYTES     (48u * 1024u)
#define CODE_MAX_DEPTH            2u
#define CODE_TASK_THREADS         256u /* of a block of the later kernels */
#define CODE_NODE_HEADER_BYTES    64u
#define CODE_COUNT_BYTES          (32u * 1024u) /* of a block's counters, in shared memory */
#define CODE_COUNT_ELEMENTS       4096u         /* that a block counts, where the cells are many */
#define CODE_PART_ELEMENTS        16u /* of a cell, in a part: more only where all threads have one */

/* An operand: where its first plane begins, in units of 16 bytes, and two bits. */
#define CODE_PLACE_MASK 0x0fffu
#define CODE_UNIFORM    0x4000u
#define CODE_ROTATES    0x8000u /* the set of this strip is to be added */

/* The C types of values, in the interpreter's words. */
#define CODE_TYPES(X) X(b8) X(u8) X(u16) X(u32) X(u64) X(i8) X(i16) X(i32) X(i64) X(f32) X(f64)
enum code_type {
#define CODE_TYPE_OF(T) CODE_TYPE_##T,
    CODE_TYPES(CODE_TYPE_OF)
#undef CODE_TYPE_OF
        CODE_TYPE_COUNT
};

/* What an instruction does: an operation for one type. Those before ACTION_LIGHT_END are in all
 * kernels of the family. */
enum code_action {
    ACTION_NONE,
    /* A loop: REPEAT, the instructions of the condition, UNTIL, the rest of a step, AGAIN. Steps at
     * most: src[0], and 65536 times src[1]. UNTIL: src[0] is the condition; where it holds for all
     * elements of the thread, it goes on behind AGAIN, `index` instructions from there. AGAIN: back
     * to `index` instructions before it. */
    ACTION_REPEAT,
    ACTION_UNTIL,
    ACTION_AGAIN,
    ACTION_LOAD,   /* from place `index`, into dst */
    ACTION_STORE,  /* to place `index`, src[0] */
    ACTION_REDUCE, /* reduction `index` into state dst: kind, type, src[0]; src[1]: the position */
#define UNARY(op, T, R, expression)                   ACTION_##op##_##T,
#define BINARY(op, T, R, expression)                  ACTION_##op##_##T,
#define CHOICE(op, T)                                 ACTION_##op##_##T,
#define MIXED(op, expression)                         ACTION_MIXED_##op,
#define CAST(S, T, expression)                        ACTION_CAST_##S##_##T,
#define CALL1(op, T, R, function)                     ACTION_##op##_##T,
#define CALL2(op, T, S, R, function)                  ACTION_##op##_##T,
#define CALL3(op, T, A, B, C, R, function, counted)   ACTION_##op##_##T,
#define DRAW(op, R)                                   ACTION_##op##_u64,
#define LOOK_UP(op, T, S, R, function)                ACTION_##op##_##T,
#define COUNTED(op, T, function, counter, is_counted) ACTION_##op##_##T,
#define COUNTED_CAST(S, T)                            ACTION_CAST_##S##_##T,
#include "kernels/cuda/device/actions_light.def"
    ACTION_LIGHT_END,
#include "kernels/cuda/device/actions_full.def"
#undef UNARY
#undef BINARY
#undef CHOICE
#undef MIXED
#undef CAST
#undef CALL1
#undef CALL2
#undef CALL3
#undef DRAW
#undef LOOK_UP
#undef COUNTED
#undef COUNTED_CAST
    ACTION_COUNT
};

enum code_kernel { CODE_KERNEL_LIGHT, CODE_KERNEL_FULL, CODE_KERNEL_COUNT };

/* Of values that are widened to 64 bits: SUM of floats is compensated. */
enum code_reduction {
    CODE_SUM,
    CODE_SUM_FLOAT,
    CODE_PROD,
    CODE_PROD_FLOAT,
    CODE_COUNT_NONZERO,
    CODE_MIN,
    CODE_MAX,
    CODE_ARGMIN,
    CODE_ARGMAX,
    CODE_SQUARED_DEVIATIONS,
    CODE_BINCOUNT,
    CODE_KTH,
};

struct code_insn {
    uint16_t action;
    uint16_t dst;
    uint16_t src[3];
    uint16_t index;
    uint8_t kind; /* enum code_reduction */
    uint8_t type; /* enum code_type */
    uint16_t unused;
};

/* What the later kernels do: after the instructions, in an instruction's place. Reductions along
 * axes come first, then counts, then scans. Places that are not there: CODE_NO_PLACE. */
struct code_task {
    uint8_t place;       /* from which it is read */
    uint8_t other;       /* of counts: the weights; of scans: the states */
    uint8_t target;      /* of scans: where the running results go */
    uint8_t kind, type;  /* type: of what is read */
    uint8_t plane_log2;  /* of the first plane's items; those of a second have 8 bytes */
    uint8_t result_type; /* of scans */
    uint8_t target_type;
    uint32_t plane;  /* bytes from a node's beginning to the first of its planes */
    uint32_t n_bins; /* of counts */
};
#define CODE_NO_PLACE UINT8_MAX

/* The whole of an earlier pass's result, in which instructions look things up. */
struct code_table {
    uint64_t offset; /* of its first value */
    uint32_t n_values, unused;
};

/* Of each of a grain's places: first those that are loaded, then those that are reduced where they
 * are, then those that are stored. */
struct code_operand {
    uint16_t dst; /* of one that is loaded ahead: the thread's planes */
    uint8_t item_log2;
    uint8_t is_bool; /* an input: any byte other than 0 is read as 1 */
};

/* Given to the kernel as its argument. */
struct code_header {
    uint32_t cells_offset, insns_offset, operands_offset, grains_offset;
    uint32_t grain_bytes, place_bytes; /* of a record; of a place in it */
    uint32_t n_cells, n_insns, n_loads, n_places;
    uint32_t n_ends; /* the last of the instructions: reductions, stores and what they load */
    uint32_t n_axes_tasks, n_count_tasks, n_scan_tasks;
    uint32_t kths_offset;   /* struct kth_rank [], one for each of the axes' tasks, or none */
    uint32_t tables_offset; /* code_table [] */
    uint32_t n_threads;     /* a power of two */
    uint32_t n_states;      /* one for each reduction; then the counters, if anything is counted */
    uint32_t group_log2, depth;
    uint32_t set_bytes; /* from one set of inputs' planes to the next */
    uint32_t states;    /* where they begin in shared memory */
    uint32_t shared_bytes;
    uint32_t result_bytes;    /* of one block: n_states states */
    uint32_t blocks_of_grain; /* for which there is room in the results */
    uint64_t results_offset;
    uint64_t nodes_offset; /* of the first grain; reduce.h */
    uint32_t node_bytes;   /* from grain to grain */
    uint32_t plane_bytes;  /* of planes that are not of counts */
    /* Windows: the numbers of their kernels, 8 bytes each; records of a grain, from its own on. */
    uint32_t weights_offset, windows_at;
    uint32_t window_bytes, n_windows;
    uint32_t kernel; /* enum code_kernel */
    uint32_t has_counters;
    uint32_t adds_counters; /* to those that are in the results already */
};

struct code_grain {
    uint32_t n_elements;
    uint32_t n_blocks;
    uint32_t block_elements;
    /* Tasks need these. */
    uint32_t n_cells, n_reduced;
    uint32_t n_parts; /* a power of two, at most CODE_TASK_THREADS */
    uint8_t n_kept_runs, n_reduced_runs;
    bool is_kept_fast; /* neighbours in visiting order are of different cells */
    bool is_first;     /* of its chain: scans begin here */
    uint32_t unused;
    int64_t position; /* of the first element among the reduced axes */
    /* code_place [n_places], each of header.place_bytes; then code_run [], kept ones first */
};

/* Axes that follow each other in visiting order, fastest first. */
struct code_run {
    uint32_t count;
    uint32_t stride;  /* elements in visiting order */
    int64_t position; /* from one to the next, among the reduced axes */
};

enum code_place_kind {
    CODE_PLACE_LINEAR,  /* dense in visiting order and aligned to 16 bytes */
    CODE_PLACE_STRIDED, /* by axes, fastest first */
    CODE_PLACE_INDEX,   /* no memory: the offset is the value */
    CODE_PLACE_NEAR,    /* struct code_near: by axes beyond whose ends some elements lie */
};

struct code_axis {
    uint32_t count, unused;
    int64_t stride; /* bytes */
};

struct code_place {
    int64_t offset; /* of the grain's first element */
    uint8_t kind, n_axes, is_swapped, unused[5];
    /* code_axis [n_axes] */
};

/* As struct code_axis; where length is not 0, the element i lies where near_place(mode, first + i,
 * length) says. */
struct code_near_axis {
    uint32_t count, mode;
    int64_t stride;
    int64_t first, length;
};

/* A place that is near (kernels/neighbours.h): its offset is where the grain's first element would
 * be within the array. */
struct code_near {
    struct code_place place;
    uint64_t beyond; /* what is read of elements that are nowhere */
    /* code_near_axis [place.n_axes] */
};

/* What windows come to: of values that are widened to 64 bits. */
enum code_window_kind {
    CODE_WINDOW_SUM,
    CODE_WINDOW_MEAN,
    CODE_WINDOW_MIN,
    CODE_WINDOW_MAX,
    CODE_WINDOW_STD,
    CODE_WINDOW_CORRELATE,
    CODE_WINDOW_RANK, /* by a kernel of its own */
};
#define CODE_WINDOW_AXES       4u
#define CODE_WINDOW_ELEMENTS   4096u
#define CODE_RANKED_ELEMENTS   160u /* of which one is sought by its place */
#define CODE_RANK_SHARED_ITEMS 6144u

/* An axis along which a window has several elements, in the order of the array's axes. The i-th of
 * the grain's elements is at (i / divisor) % count along it, behind `start`. Where length is not 0,
 * rows of the window lie where near_place_again() says. */
struct code_window_axis {
    uint32_t count, divisor;
    uint32_t size, mode;
    int64_t before; /* rows of the window before the element's own place */
    int64_t start, length, stride;
};

/* What a pass reads of a window, made before it is run: an item for each of the grain's elements,
 * dense at `target`. */
struct code_window {
    int64_t target;
    uint64_t beyond;   /* what is read of elements that are nowhere */
    uint32_t weights;  /* the first of its own */
    uint16_t ranks[2]; /* of the ascending order; the result is in the middle of both */
    uint8_t kind;      /* enum code_window_kind */
    uint8_t from, as;  /* enum code_type: of the array; of the window */
    uint8_t from_log2, as_log2;
    uint8_t unused[3];
    struct code_window_axis axes[CODE_WINDOW_AXES]; /* size 1: there is none */
    struct code_place place;                        /* the elements' own */
    /* code_axis [place.n_axes] */
};

/* What a thread knows of a reduction, and a block leaves: 64 bits of value, and what a float sum
 * has lost, where the extremum is (-1: nothing was taken in), or, beside the sum, the squared
 * deviations; these have a second state, whose value is the pivot. Counters: four of 32 bits. */
struct code_state {
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        uint32_t counters[2];
    } value;
    union {
        double lost;
        double deviations;
        int64_t index;
        uint32_t counters[2];
    } more;
};
enum code_counter {
    CODE_COUNTER_DIVISIONS,
    CODE_COUNTER_CASTS,
    CODE_COUNTER_POWERS,
    CODE_COUNTER_ELEMENTS, /* taken in */
};
