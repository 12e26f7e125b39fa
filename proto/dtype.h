/* Element types: NumPy's, by NumPy's names and typestrs ("<f8" as in the array interface). */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_BOOL,
    DTYPE_INT8,
    DTYPE_INT16,
    DTYPE_INT32,
    DTYPE_INT64,
    DTYPE_UINT8,
    DTYPE_UINT16,
    DTYPE_UINT32,
    DTYPE_UINT64,
    DTYPE_FLOAT32,
    DTYPE_FLOAT64,
    DTYPE_COUNT
};

/* One value of any dtype; which member holds it is said by the dtype beside it. Integers narrower
 * than 64 bits are kept sign- or zero-extended in i64/u64; bool is 0 or 1 in u64; float32 in f32.
 */
union scalar {
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
};

size_t dtype_size(enum dtype dtype);      /* bytes */
const char *dtype_name(enum dtype dtype); /* "float32" */
bool dtype_is_float(enum dtype dtype);
bool dtype_is_signed(enum dtype dtype);   /* int8..int64 */
bool dtype_is_unsigned(enum dtype dtype); /* uint8..uint64 */
bool dtype_is_integer(enum dtype dtype);  /* signed or unsigned, not bool */

/* "<f8", ">i2", "|u1", "=f4", "f4". ret_is_swapped is true for big-endian data of more than one
 * byte. bad-dtype for anything else. */
int dtype_from_typestr(const char *text, size_t n_chars, enum dtype *ret_dtype,
                       bool *ret_is_swapped, struct gad_error *error) GAD_MUST_CHECK;

/* Static text: "<f8", or ">f8" when is_swapped; "|b1", "|i1", "|u1". */
const char *dtype_typestr(enum dtype dtype, bool is_swapped);

/* By NumPy's name ("float32", "bool", and NumPy's aliases "f4"); false when there is none. */
bool dtype_from_name(const char *name, size_t n_chars, enum dtype *ret_dtype);

/* numpy.result_type of two strong dtypes (int64 with uint64 is float64). */
enum dtype dtype_promote(enum dtype a, enum dtype b);

/* numpy.can_cast(from, to, "same_kind"). */
bool dtype_can_cast_same_kind(enum dtype from, enum dtype to);
