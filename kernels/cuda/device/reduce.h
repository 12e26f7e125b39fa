/* Reductions in a block: every thread takes in its own elements in order, then the threads' states
 * are combined in a binary tree. So the bits depend on the program, the grain and nothing else.
 *
 * Values are widened to 64 bits, floats to float64, which is exact. A sum of floats is compensated:
 * what each addition loses is known exactly (Knuth, TwoSum) and added up beside it. Where the sum
 * is not finite, what it has lost is of no use and is not added. -0.0 is where nothing has been
 * added. MIN and MAX propagate NaN. Integer sums wrap. */
#pragma once

#include "kernels/cuda/device/lane.h"
#include "kernels/cuda/device/math_bits.h"

DEVICE bool is_signed_type(u32 type)
{
    return type >= CODE_TYPE_i8 && type <= CODE_TYPE_i64;
}

DEVICE bool is_float_type(u32 type)
{
    return type >= CODE_TYPE_f32;
}

DEVICE void state_init(struct code_state *state, u32 kind, u32 type)
{
    u64 least = 0, most = ~(u64)0;
    if (is_signed_type(type)) {
        least = (u64)1 << 63;
        most = least - 1;
    } else if (is_float_type(type)) {
        most = bits_of_f64((f64)INFINITY);
        least = most | (u64)1 << 63;
    }
    state->more.lost = 0;
    switch (kind) {
    case CODE_SUM_FLOAT: state->value.f64 = -0.0; break;
    case CODE_MIN: state->value.u64 = most; break;
    case CODE_MAX: state->value.u64 = least; break;
    default: state->value.u64 = 0; break;
    }
}

DEVICE void state_add(struct code_state *state, f64 b)
{
    f64 a = state->value.f64, sum = a + b, back = sum - a;
    state->more.lost += (a - (sum - back)) + (b - back);
    state->value.f64 = sum;
}

DEVICE void state_take_extremum(struct code_state *state, u64 item, u32 type, bool is_min)
{
    bool is_better;
    if (is_float_type(type)) {
        f64 a = from_bits_f64(item), best = state->value.f64;
        is_better = !((is_min ? best < a : best > a) | (best != best));
    } else if (is_signed_type(type)) {
        i64 a = (i64)item, best = state->value.i64;
        is_better = is_min ? a < best : a > best;
    } else {
        u64 best = state->value.u64;
        is_better = is_min ? item < best : item > best;
    }
    if (is_better)
        state->value.u64 = item;
}

DEVICE void state_take(struct code_state *state, u64 item, u32 kind, u32 type)
{
    switch (kind) {
    case CODE_SUM: state->value.u64 += item; break;
    case CODE_SUM_FLOAT: state_add(state, from_bits_f64(item)); break;
    case CODE_COUNT_NONZERO:
        state->value.u64 += is_float_type(type) ? from_bits_f64(item) != 0 : item != 0;
        break;
    case CODE_MIN: state_take_extremum(state, item, type, true); break;
    default: state_take_extremum(state, item, type, false); break;
    }
}

/* state = combine(state, other). */
DEVICE void state_combine(struct code_state *state, const struct code_state *other, u32 kind,
                          u32 type)
{
    f64 lost = other->more.lost;
    if (kind == CODE_COUNT_NONZERO)
        state->value.u64 += other->value.u64;
    else
        state_take(state, other->value.u64, kind, type);
    if (kind == CODE_SUM_FLOAT)
        state->more.lost += lost;
}

DEVICE u64 widened_item(struct value v, u32 k, u32 type)
{
    switch (type) {
    case CODE_TYPE_b8:
    case CODE_TYPE_u8: return *(const u8 *)item_at(v, 1, k);
    case CODE_TYPE_u16: return *(const u16 *)item_at(v, 2, k);
    case CODE_TYPE_u32: return *(const u32 *)item_at(v, 4, k);
    case CODE_TYPE_i8: return (u64)(i64) * (const i8 *)item_at(v, 1, k);
    case CODE_TYPE_i16: return (u64)(i64) * (const i16 *)item_at(v, 2, k);
    case CODE_TYPE_i32: return (u64)(i64) * (const i32 *)item_at(v, 4, k);
    case CODE_TYPE_f32: return bits_of_f64((f64) * (const f32 *)item_at(v, 4, k));
    default: return *(const u64 *)item_at(v, 8, k);
    }
}

/* One strip of the thread. Sums of floats, which are the most frequent, have their own way. */
DEVICE_CALL void reduce_strip(struct code_state *to, struct value from, u32 is_valid, u32 kind,
                              u32 type)
{
    struct code_state state = *to;
    if (kind == CODE_SUM_FLOAT) {
        f64 items[CODE_THREAD_ELEMENTS];
        if (type == CODE_TYPE_f64) {
            get_f64(from, items);
        } else {
            f32 narrow[CODE_THREAD_ELEMENTS];
            get_f32(from, narrow);
            UNROLLED for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++) items[k] = (f64)narrow[k];
        }
        UNROLLED for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++)
        {
            if (is_valid >> k & 1)
                state_add(&state, items[k]);
        }
    } else {
        ONE_BY_ONE for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++)
        {
            if (is_valid >> k & 1)
                state_take(&state, widened_item(from, k, type), kind, type);
        }
    }
    *to = state;
}
