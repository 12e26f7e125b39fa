/* A pass, encoded for the device: what the host writes into a slot and the interpreter reads there.
 * Plain structs of fixed size, shared by C and CUDA C++; offsets count from the slot's base.
 *
 *     code:  cells | instructions | operands | grains' records
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
 */
#pragma once

#include <stdint.h>

#define CODE_THREAD_ELEMENTS  4u
#define CODE_MAX_THREADS      256u
#define CODE_MIN_THREADS      16u
#define CODE_BLOCK_ELEMENTS   8192u
#define CODE_MAX_BLOCKS       32u /* of a grain; more elements make longer blocks */
#define CODE_MAX_SHARED_BYTES (48u * 1024u)
#define CODE_MAX_DEPTH        2u

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
    ACTION_LOAD,   /* from place `index`, into dst */
    ACTION_STORE,  /* to place `index`, src[0] */
    ACTION_REDUCE, /* into state `index`: kind, type, src[0] */
#define UNARY(op, T, R, expression)                   ACTION_##op##_##T,
#define BINARY(op, T, R, expression)                  ACTION_##op##_##T,
#define CHOICE(op, T)                                 ACTION_##op##_##T,
#define MIXED(op, expression)                         ACTION_MIXED_##op,
#define CAST(S, T, expression)                        ACTION_CAST_##S##_##T,
#define CALL1(op, T, R, function)                     ACTION_##op##_##T,
#define CALL2(op, T, S, R, function)                  ACTION_##op##_##T,
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
#undef COUNTED
#undef COUNTED_CAST
    ACTION_COUNT
};

enum code_kernel { CODE_KERNEL_LIGHT, CODE_KERNEL_FULL, CODE_KERNEL_COUNT };

/* Of values that are widened to 64 bits: SUM of floats is compensated. */
enum code_reduction { CODE_SUM, CODE_SUM_FLOAT, CODE_COUNT_NONZERO, CODE_MIN, CODE_MAX };

struct code_insn {
    uint16_t action;
    uint16_t dst;
    uint16_t src[3];
    uint16_t index;
    uint8_t kind; /* enum code_reduction */
    uint8_t type; /* enum code_type */
    uint16_t unused;
};

/* Of each of a grain's places: first those that are loaded, then those that are stored. */
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
    uint32_t n_ends;    /* the last of the instructions: reductions, stores and what they load */
    uint32_t n_threads; /* a power of two */
    uint32_t n_states;  /* one for each reduction; then the events', if there are any */
    uint32_t group_log2, depth;
    uint32_t set_bytes; /* from one set of inputs' planes to the next */
    uint32_t states;    /* where they begin in shared memory */
    uint32_t shared_bytes;
    uint32_t result_bytes;    /* of one block: n_states states */
    uint32_t blocks_of_grain; /* for which there is room in the results */
    uint64_t results_offset;
    uint32_t kernel; /* enum code_kernel */
    uint32_t has_events;
};

struct code_grain {
    uint32_t n_elements;
    uint32_t n_blocks;
    uint32_t block_elements;
    uint32_t unused;
    /* code_place [n_places], each of header.place_bytes */
};

enum code_place_kind {
    CODE_PLACE_LINEAR,  /* dense in visiting order and aligned to 16 bytes */
    CODE_PLACE_STRIDED, /* by axes, fastest first */
    CODE_PLACE_INDEX,   /* a coordinate: offset + element / axes[0].stride % axes[0].count */
};

struct code_axis {
    uint32_t count, unused;
    int64_t stride; /* bytes */
};

struct code_place {
    int64_t offset; /* of the box's first element */
    uint8_t kind, n_axes, is_swapped, unused[5];
    /* code_axis [n_axes] */
};

/* What a thread knows of a reduction, and a block leaves: 64 bits of value, and what a float sum
 * has lost. Events: three counters of 32 bits. */
struct code_state {
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        uint32_t events[2];
    } value;
    union {
        double lost;
        uint32_t events[2];
    } more;
};
#define CODE_EVENT_DIVISIONS 0
#define CODE_EVENT_CASTS     1
#define CODE_EVENT_POWERS    2
