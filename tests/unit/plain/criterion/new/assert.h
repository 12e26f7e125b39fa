/* See criterion/criterion.h beside this folder. As there, both values become the type that is
 * named.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#define plain_is(type, a, op, b) ((type)(a)op(type)(b))

#define plain_is_str(a, op, b)  (strcmp(a, b) op 0)
#define plain_is_chr(a, op, b)  plain_is(char, a, op, b)
#define plain_is_int(a, op, b)  plain_is(int, a, op, b)
#define plain_is_uint(a, op, b) plain_is(unsigned, a, op, b)
#define plain_is_long(a, op, b) plain_is(long, a, op, b)
#define plain_is_i8(a, op, b)   plain_is(int8_t, a, op, b)
#define plain_is_i16(a, op, b)  plain_is(int16_t, a, op, b)
#define plain_is_i32(a, op, b)  plain_is(int32_t, a, op, b)
#define plain_is_i64(a, op, b)  plain_is(int64_t, a, op, b)
#define plain_is_u8(a, op, b)   plain_is(uint8_t, a, op, b)
#define plain_is_u32(a, op, b)  plain_is(uint32_t, a, op, b)
#define plain_is_u64(a, op, b)  plain_is(uint64_t, a, op, b)
#define plain_is_sz(a, op, b)   plain_is(size_t, a, op, b)
#define plain_is_flt(a, op, b)  plain_is(float, a, op, b)
#define plain_is_dbl(a, op, b)  plain_is(double, a, op, b)
#define plain_is_ptr(a, op, b)  plain_is(const volatile void *, a, op, b)

#define eq(type, a, b) plain_is_##type(a, ==, b)
#define ne(type, a, b) plain_is_##type(a, !=, b)
#define lt(type, a, b) plain_is_##type(a, <, b)
#define le(type, a, b) plain_is_##type(a, <=, b)
#define ge(type, a, b) plain_is_##type(a, >=, b)
#define zero(type, a)  plain_is_##type(a, ==, 0)
#define not(condition) (!(condition))
#define all(a, b) ((a) && (b))

#define epsilon_eq(type, a, b, epsilon) (fabs((a) - (b)) <= (epsilon))
