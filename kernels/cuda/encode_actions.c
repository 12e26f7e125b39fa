/* From operations and dtypes to the interpreter's actions.
 *
 * The tables are made from the interpreter's own lists, so that what is in one is in the other.
 * Where the sign of integers does not matter the lists have the unsigned type alone, for WHERE the
 * unsigned type of a float's size too: an instruction that has no action of its own type takes that
 * one. GREATER and GREATER_EQUAL are LESS and LESS_EQUAL with the sources exchanged; comparisons of
 * int64 with uint64 take the int64 first. Called by encode.c.
 */
#include "kernels/cuda/encode_actions.h"

#define ROW(op, T)                   [OP_##op][CODE_TYPE_##T] = ACTION_##op##_##T,
#define UNARY(op, T, R, expression)  ROW(op, T)
#define BINARY(op, T, R, expression) ROW(op, T)
#define CHOICE(op, T)                ROW(op, T)
#define MIXED(op, expression)
#define CAST(S, T, expression)
#define CALL1(op, T, R, function)                   ROW(op, T)
#define CALL2(op, T, S, R, function)                ROW(op, T)
#define CALL3(op, T, A, B, C, R, function, counted) ROW(op, T)
#define DRAW(op, R)                                 ROW(op, u64)
#define LOOK_UP(op, T, S, R, function)              ROW(op, T)
#define COUNTED(op, T, function, event, is_counted) ROW(op, T)
#define COUNTED_CAST(S, T)
static const uint16_t op_actions[OP_COUNT][CODE_TYPE_COUNT] = {
#include "kernels/cuda/device/actions_full.def"
#include "kernels/cuda/device/actions_light.def"
};
#undef ROW
#undef MIXED
#undef CAST
#undef COUNTED_CAST
#define ROW(op, T)
#define MIXED(op, expression) [OP_##op] = ACTION_MIXED_##op,
#define CAST(S, T, expression)
#define COUNTED_CAST(S, T)
static const uint16_t mixed_actions[OP_COUNT] = {
#include "kernels/cuda/device/actions_full.def"
#include "kernels/cuda/device/actions_light.def"
};
#undef MIXED
#undef CAST
#undef COUNTED_CAST
#define MIXED(op, expression)
#define CAST(S, T, expression) [CODE_TYPE_##S][CODE_TYPE_##T] = ACTION_CAST_##S##_##T,
#define COUNTED_CAST(S, T)     [CODE_TYPE_##S][CODE_TYPE_##T] = ACTION_CAST_##S##_##T,
static const uint16_t cast_actions[CODE_TYPE_COUNT][CODE_TYPE_COUNT] = {
#include "kernels/cuda/device/actions_full.def"
#include "kernels/cuda/device/actions_light.def"
};

enum code_type encode_type(enum dtype dtype)
{
    static const uint8_t types[DTYPE_COUNT] = {
        [DTYPE_BOOL] = CODE_TYPE_b8,     [DTYPE_INT8] = CODE_TYPE_i8,
        [DTYPE_INT16] = CODE_TYPE_i16,   [DTYPE_INT32] = CODE_TYPE_i32,
        [DTYPE_INT64] = CODE_TYPE_i64,   [DTYPE_UINT8] = CODE_TYPE_u8,
        [DTYPE_UINT16] = CODE_TYPE_u16,  [DTYPE_UINT32] = CODE_TYPE_u32,
        [DTYPE_UINT64] = CODE_TYPE_u64,  [DTYPE_FLOAT32] = CODE_TYPE_f32,
        [DTYPE_FLOAT64] = CODE_TYPE_f64,
    };
    return (enum code_type)types[dtype];
}

static enum code_type unsigned_of(enum dtype dtype)
{
    switch (dtype_size(dtype)) {
    case 1: return CODE_TYPE_u8;
    case 2: return CODE_TYPE_u16;
    case 4: return CODE_TYPE_u32;
    default: return CODE_TYPE_u64;
    }
}

static enum code_action cast_action(enum dtype from, enum dtype to)
{
    enum code_type sources[] = {encode_type(from), unsigned_of(from)};
    enum code_type targets[] = {encode_type(to), unsigned_of(to)};
    for (unsigned t = 0; t < 2; t++) {
        for (unsigned s = 0; s < 2; s++) {
            if (cast_actions[sources[s]][targets[t]])
                return (enum code_action)cast_actions[sources[s]][targets[t]];
        }
    }
    return ACTION_NONE;
}

enum code_action encode_action(const struct insn *insn, bool *ret_is_exchanged)
{
    unsigned op = insn->op;
    *ret_is_exchanged = false;
    if (op >= OP_COUNT || insn->compute >= DTYPE_COUNT || insn->dst.dtype >= DTYPE_COUNT)
        return ACTION_NONE;
    enum dtype compute = (enum dtype)insn->compute;
    if (op == OP_CAST)
        return cast_action(compute, (enum dtype)insn->dst.dtype);
    if (op_is_comparison((enum op)op) && insn->src[0].dtype != insn->src[1].dtype) {
        *ret_is_exchanged = insn->src[0].dtype == DTYPE_UINT64;
        return (enum code_action)mixed_actions[*ret_is_exchanged ? op_mirrored((enum op)op) : op];
    }
    if (op == OP_GREATER || op == OP_GREATER_EQUAL) {
        *ret_is_exchanged = true;
        op = op_mirrored((enum op)op);
    }
    if (op == OP_TAKE)
        return (enum code_action)op_actions[op][unsigned_of((enum dtype)insn->dst.dtype)];
    uint16_t action = op_actions[op][encode_type(compute)];
    if (!action && (!dtype_is_float(compute) || op == OP_WHERE))
        action = op_actions[op][unsigned_of(compute)];
    return (enum code_action)action;
}
