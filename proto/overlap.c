/* Do the bytes of two arrays meet? Plain arithmetic on offsets, shapes and strides.
 *
 * First by the range of bytes that each touches. Ranges that meet are still apart where the
 * elements interleave: even and odd columns, left and right halves of rows. That is decided by
 * remainders: modulo a stride M of either array every element of an array lies in one arc of the
 * circle of length M (axes whose stride is a multiple of M do not move along it); when the arcs of
 * two arrays are apart for some M, no byte is shared.
 *
 * An array meets itself where an axis steps over less than what the denser axes cover.
 *
 * Called by the daemon's check of outputs for regions and files, and by the client library for what
 * the daemon cannot see: the caller's memory, and files behind rings.
 */
#include "proto/overlap.h"
#include "proto/util.h"

#include <assert.h>

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

bool array_is_same_mapping(const struct array *a, int64_t a_offset, const struct array *b,
                           int64_t b_offset)
{
    if (a_offset != b_offset || a->ndim != b->ndim || dtype_size(a->dtype) != dtype_size(b->dtype))
        return false;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] != b->shape[i] || (a->shape[i] > 1 && a->strides[i] != b->strides[i]))
            return false;
    }
    return true;
}

/* The arc of the circle of `modulus` bytes that an array's elements lie in. False when it is the
 * whole circle. */
static bool get_arc(const struct array *array, int64_t offset, uint64_t modulus,
                    uint64_t *ret_start, uint64_t *ret_length)
{
    int64_t start = offset;
    uint64_t length = dtype_size(array->dtype);

    for (int i = 0; i < array->ndim; i++) {
        uint64_t stride = magnitude(array->strides[i]), span;
        if (array->shape[i] <= 1 || stride % modulus == 0)
            continue;
        if (__builtin_mul_overflow(stride, (uint64_t)array->shape[i] - 1, &span) ||
            __builtin_add_overflow(length, span, &length) || length > modulus)
            return false;
        if (array->strides[i] < 0)
            start -= (int64_t)span; /* stays within the array's range, which begins at 0 or later */
    }
    *ret_start = (uint64_t)start % modulus;
    *ret_length = length;
    return length <= modulus;
}

static bool is_apart_modulo(const struct array *a, int64_t a_offset, const struct array *b,
                            int64_t b_offset, uint64_t modulus)
{
    uint64_t a_start, a_length, b_start, b_length;

    if (modulus == 0 || !get_arc(a, a_offset, modulus, &a_start, &a_length) ||
        !get_arc(b, b_offset, modulus, &b_start, &b_length))
        return false;
    uint64_t a_to_b = b_start >= a_start ? b_start - a_start : b_start + (modulus - a_start);
    uint64_t b_to_a = a_to_b == 0 ? 0 : modulus - a_to_b;
    return a_length <= a_to_b && b_length <= b_to_a;
}

static uint64_t common_stride(const struct array *array, uint64_t divisor)
{
    for (int i = 0; i < array->ndim; i++) {
        uint64_t rest = array->shape[i] > 1 ? magnitude(array->strides[i]) : 0;
        while (rest != 0) {
            uint64_t next = divisor % rest;
            divisor = rest;
            rest = next;
        }
    }
    return divisor;
}

static bool have_ranges_apart(const struct array *a, int64_t a_offset, const struct array *b,
                              int64_t b_offset)
{
    int64_t a_low, a_high, b_low, b_high;

    array_extent(a, &a_low, &a_high);
    array_extent(b, &b_low, &b_high);
    return a_offset + a_high <= b_offset + b_low || b_offset + b_high <= a_offset + a_low;
}

/* By the strides of one of them. */
static bool is_apart_by_strides(const struct array *of, const struct array *a, int64_t a_offset,
                                const struct array *b, int64_t b_offset)
{
    for (int i = 0; i < of->ndim; i++) {
        if (of->shape[i] > 1 &&
            is_apart_modulo(a, a_offset, b, b_offset, magnitude(of->strides[i])))
            return true;
    }
    return false;
}

bool array_is_apart(const struct array *a, int64_t a_offset, const struct array *b,
                    int64_t b_offset)
{
    if (array_n_elements(a) == 0 || array_n_elements(b) == 0 ||
        have_ranges_apart(a, a_offset, b, b_offset))
        return true;
    if (is_apart_modulo(a, a_offset, b, b_offset, common_stride(a, common_stride(b, 0))))
        return true;
    return is_apart_by_strides(a, a, a_offset, b, b_offset) ||
           is_apart_by_strides(b, a, a_offset, b, b_offset);
}

bool array_covers_itself(const struct array *array, int *ret_axis, uint64_t *ret_covered)
{
    uint64_t covered = dtype_size(array->dtype);
    uint32_t left = 0;

    if (array_n_elements(array) == 0)
        return false;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] > 1)
            left |= UINT32_C(1) << i;
    }
    while (left != 0) {
        int least = __builtin_ctz(left);
        for (int i = least + 1; i < array->ndim; i++) {
            if ((left >> i & 1) && magnitude(array->strides[i]) < magnitude(array->strides[least]))
                least = i;
        }
        uint64_t stride = magnitude(array->strides[least]), span;
        if (stride < covered) {
            *ret_axis = least;
            *ret_covered = covered;
            return true;
        }
        bool overflows = __builtin_mul_overflow(stride, (uint64_t)array->shape[least] - 1, &span) ||
                         __builtin_add_overflow(covered, span, &covered);
        assert(!overflows); /* array_check() was there */
        (void)overflows;
        left &= ~(UINT32_C(1) << least);
    }
    return false;
}
