/* What is known of the elements that a reduction has taken in, and how two of these are combined:
 * the same for threads of a block, for blocks of a grain and for parts of a cell.
 *
 * Values are widened to 64 bits, floats to float64, which is exact. A sum of floats is compensated:
 * what each addition loses is known exactly (Knuth, TwoSum) and added up beside it. Where the sum
 * is not finite, what it has lost is of no use and is not added. -0.0 is where nothing has been
 * added. MIN and MAX propagate NaN. ARGMIN and ARGMAX: of NaNs, else of the best, the smallest
 * index. Integer sums and products wrap. Squared deviations from the mean are updated with the sum
 * (Youngs and Cramer, Some results relevant to the choice of sum and sum-of-product algorithms,
 * 1971), and combined with those of others (Chan, Golub, LeVeque, Updating formulae and a pairwise
 * algorithm for computing sample variances, 1979); how many elements a state has taken in, its
 * owner knows. */
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

DEVICE u64 worst_of(u32 type, bool is_min)
{
    u64 least = 0, most = ~(u64)0;
    if (is_signed_type(type)) {
        least = (u64)1 << 63;
        most = least - 1;
    } else if (is_float_type(type)) {
        most = bits_of_f64((f64)INFINITY);
        least = most | (u64)1 << 63;
    }
    return is_min ? most : least;
}

DEVICE void state_init(struct code_state *state, u32 kind, u32 type)
{
    state->more.lost = 0;
    switch (kind) {
    case CODE_SUM_FLOAT: state->value.f64 = -0.0; break;
    case CODE_PROD_FLOAT: state->value.f64 = 1; break;
    case CODE_PROD: state->value.u64 = 1; break;
    case CODE_MIN: state->value.u64 = worst_of(type, true); break;
    case CODE_MAX: state->value.u64 = worst_of(type, false); break;
    case CODE_ARGMIN:
    case CODE_ARGMAX:
        state->value.u64 = worst_of(type, kind == CODE_ARGMIN);
        state->more.index = -1;
        break;
    default: state->value.u64 = 0; break;
    }
}

DEVICE void state_add(struct code_state *state, f64 b)
{
    f64 a = state->value.f64, sum = a + b, back = sum - a;
    state->more.lost += (a - (sum - back)) + (b - back);
    state->value.f64 = sum;
}

/* 1: a is better, -1: worse, 0: as good. NaN is better than any number, and as good as NaN. */
DEVICE i32 compare_items(u64 a, u64 b, u32 type, bool is_min)
{
    i32 order;
    if (is_float_type(type)) {
        f64 x = from_bits_f64(a), y = from_bits_f64(b);
        if ((x != x) | (y != y))
            return (i32)(x != x) - (i32)(y != y);
        order = (i32)(x > y) - (i32)(x < y);
    } else if (is_signed_type(type)) {
        order = (i32)((i64)a > (i64)b) - (i32)((i64)a < (i64)b);
    } else {
        order = (i32)(a > b) - (i32)(a < b);
    }
    return is_min ? -order : order;
}

DEVICE void take_extremum(struct code_state *state, u64 item, u32 type, bool is_min)
{
    if (compare_items(item, state->value.u64, type, is_min) > 0)
        state->value.u64 = item;
}

DEVICE void take_argument(struct code_state *state, u64 item, i64 index, u32 type, bool is_min)
{
    i32 order = compare_items(item, state->value.u64, type, is_min);
    bool is_first = state->more.index < 0 || index < state->more.index;
    if (order > 0 || (order == 0 && is_first)) {
        state->value.u64 = item;
        state->more.index = index;
    }
}

/* Of squared deviations: the second state, `stride` bytes behind the first, which has the pivot. */
DEVICE struct code_state *second_state(const struct code_state *state, u32 stride)
{
    return (struct code_state *)((char *)state + stride);
}

/* The n-th element, from 1. Sums are those of distances from the first, the pivot, so that nothing
 * is lost far from 0. Of what is not finite a single one has deviations that are NaN. */
DEVICE void take_deviation(struct code_state *state, f64 *pivot, f64 x, f64 n)
{
    if (n == 1) {
        *pivot = x;
        state->value.f64 = state->more.deviations = x - x;
        return;
    }
    f64 y = x - *pivot, sum = state->value.f64 + y, distance = n * y - sum;
    state->value.f64 = sum;
    state->more.deviations += distance * distance / (n * (n - 1));
}

/* Of n and n_other elements. */
DEVICE void combine_deviations(struct code_state *state, const struct code_state *other, u32 stride,
                               f64 n, f64 n_other)
{
    if (n_other == 0) /* there is no pivot either */
        return;
    f64 *pivot = &second_state(state, stride)->value.f64;
    f64 other_pivot = second_state(other, stride)->value.f64;
    if (n == 0) {
        *state = *other;
        *pivot = other_pivot;
        return;
    }
    f64 shift = other_pivot - *pivot;
    f64 distance = shift + other->value.f64 / n_other - state->value.f64 / n;
    f64 between = distance * distance * (n * n_other / (n + n_other));
    state->more.deviations = state->more.deviations + other->more.deviations + between;
    state->value.f64 += other->value.f64 + n_other * shift;
}

/* index: of the element, for those that look for one; n_before: how many came before it, for
 * squared deviations. */
DEVICE void state_take(struct code_state *state, u32 stride, u64 item, i64 index, u32 n_before,
                       u32 kind, u32 type)
{
    switch (kind) {
    case CODE_SUM: state->value.u64 += item; break;
    case CODE_SUM_FLOAT: state_add(state, from_bits_f64(item)); break;
    case CODE_PROD: state->value.u64 *= item; break;
    case CODE_PROD_FLOAT: state->value.f64 *= from_bits_f64(item); break;
    case CODE_COUNT_NONZERO:
        state->value.u64 += is_float_type(type) ? from_bits_f64(item) != 0 : item != 0;
        break;
    case CODE_MIN: take_extremum(state, item, type, true); break;
    case CODE_MAX: take_extremum(state, item, type, false); break;
    case CODE_ARGMIN: take_argument(state, item, index, type, true); break;
    case CODE_ARGMAX: take_argument(state, item, index, type, false); break;
    default:
        take_deviation(state, &second_state(state, stride)->value.f64, from_bits_f64(item),
                       (f64)n_before + 1);
        break;
    }
}

/* state = combine(state, other), which have taken in n and n_other elements. */
DEVICE void state_combine(struct code_state *state, const struct code_state *other, u32 stride,
                          u32 n, u32 n_other, u32 kind, u32 type)
{
    f64 lost = other->more.lost;
    switch (kind) {
    case CODE_SUM_FLOAT:
        state_add(state, other->value.f64);
        state->more.lost += lost;
        break;
    case CODE_COUNT_NONZERO: state->value.u64 += other->value.u64; break;
    case CODE_ARGMIN:
    case CODE_ARGMAX:
        if (other->more.index >= 0)
            state_take(state, stride, other->value.u64, other->more.index, 0, kind, type);
        break;
    case CODE_SQUARED_DEVIATIONS:
        combine_deviations(state, other, stride, (f64)n, (f64)n_other);
        break;
    default: state_take(state, stride, other->value.u64, 0, 0, kind, type); break;
    }
}

/* What a node has of it (kernels/reductions/reduce.h), the low bytes first; n: elements taken in.
 */
DEVICE u64 state_plane(const struct code_state *state, u32 stride, u32 n, u32 kind, u32 type,
                       u32 plane)
{
    if (plane == 1)
        return (u64)state->more.index; /* and deviations: any 64 bits */
    if (kind == CODE_SQUARED_DEVIATIONS)
        return bits_of_f64((f64)n * second_state(state, stride)->value.f64 + state->value.f64);
    if (kind == CODE_SUM_FLOAT && is_finite_f64(state->value.f64) && state->more.lost != 0)
        return bits_of_f64(state->value.f64 + state->more.lost);
    if (kind >= CODE_MIN && kind <= CODE_ARGMAX && type == CODE_TYPE_f32)
        return bits_of_f32((f32)state->value.f64);
    return state->value.u64;
}

DEVICE u64 widened_bits(u64 item, u32 type)
{
    switch (type) {
    case CODE_TYPE_i8: return (u64)(i64)(i8)item;
    case CODE_TYPE_i16: return (u64)(i64)(i16)item;
    case CODE_TYPE_i32: return (u64)(i64)(i32)item;
    case CODE_TYPE_f32: return bits_of_f64((f64)from_bits_f32((u32)item));
    default: return item;
    }
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

/* Few words, because they are registers: offsets of planes in shared memory, as value_at() takes
 * them. counters: 0 where nothing is counted. */
struct reduce_call {
    char *shared;
    u32 thread, plane, set, sources, state, counters;
    u8 is_valid, kind, type;
};

DEVICE struct value reduce_source(struct reduce_call call, u32 code)
{
    struct value v;
    u32 is_uniform = code & CODE_UNIFORM;
    v.at = call.shared + ((code & CODE_PLACE_MASK) << 4) + (is_uniform ? 0 : call.thread << 4) +
           (code & CODE_ROTATES ? call.set : 0);
    v.plane = is_uniform ? 0 : call.plane;
    return v;
}

DEVICE void reduce_sum(struct code_state *state, struct value from, u32 is_valid, u32 type)
{
    f64 items[CODE_THREAD_ELEMENTS];
    if (type == CODE_TYPE_f64) {
        get_f64(from, items);
    } else {
        f32 narrow[CODE_THREAD_ELEMENTS];
        get_f32(from, narrow);
        UNROLLED for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++) items[k] = (f64)narrow[k];
    }
    struct code_state sum = *state;
    UNROLLED for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++)
    {
        if (is_valid >> k & 1)
            state_add(&sum, items[k]);
    }
    *state = sum;
}

/* On its own, so that callers have their registers for themselves. */
DEVICE_CALL void take_item(struct code_state *state, u32 stride, u64 item, i64 index, u32 n_before,
                           u32 kind, u32 type)
{
    state_take(state, stride, item, index, n_before, kind, type);
}

/* One strip of the thread. Sums of floats, which are the most frequent, have their own way. */
DEVICE_CALL void reduce_strip(struct reduce_call call)
{
    struct code_state *state = (struct code_state *)(call.shared + call.state) + call.thread;
    struct value from = reduce_source(call, call.sources & 0xffff);
    if (call.kind == CODE_SUM_FLOAT) {
        reduce_sum(state, from, call.is_valid, call.type);
        return;
    }
    bool has_index = call.kind == CODE_ARGMIN || call.kind == CODE_ARGMAX;
    struct value indices = reduce_source(call, call.sources >> 16);
    u32 n = 0;
    if (call.counters != 0)
        n = ((struct code_state *)(call.shared + call.counters) + call.thread)->more.counters[1];
    ONE_BY_ONE for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++)
    {
        if (!(call.is_valid >> k & 1))
            continue;
        i64 index = has_index ? *(const i64 *)item_at(indices, 8, k) : 0;
        take_item(state, call.plane, widened_item(from, k, call.type), index, n++, call.kind,
                  call.type);
    }
}
