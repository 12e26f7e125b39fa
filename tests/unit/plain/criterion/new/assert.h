/* See criterion/criterion.h beside this folder. As there, both values become the type that is
 * named, and a comparison that does not hold notes them for the message.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* All return false. */
bool plain_differ_integer(long long a, long long b);
bool plain_differ_unsigned(unsigned long long a, unsigned long long b);
bool plain_differ_real(double a, double b);
bool plain_differ_str(const char *a, const char *b);
bool plain_differ_ptr(const volatile void *a, const volatile void *b);

#define plain_is(type, kind, a, op, b)                                                             \
    ({                                                                                             \
        type plain_a = (type)(a);                                                                  \
        type plain_b = (type)(b);                                                                  \
        (plain_a op plain_b) || plain_differ_##kind(plain_a, plain_b);                             \
    })

#define plain_is_str(a, op, b)                                                                     \
    ({                                                                                             \
        const char *plain_a = (a), *plain_b = (b);                                                 \
        (strcmp(plain_a, plain_b) op 0) || plain_differ_str(plain_a, plain_b);                     \
    })
#define plain_is_chr(a, op, b)  plain_is(char, integer, a, op, b)
#define plain_is_int(a, op, b)  plain_is(int, integer, a, op, b)
#define plain_is_uint(a, op, b) plain_is(unsigned, unsigned, a, op, b)
#define plain_is_long(a, op, b) plain_is(long, integer, a, op, b)
#define plain_is_i8(a, op, b)   plain_is(int8_t, integer, a, op, b)
#define plain_is_i16(a, op, b)  plain_is(int16_t, integer, a, op, b)
#define plain_is_i32(a, op, b)  plain_is(int32_t, integer, a, op, b)
#define plain_is_i64(a, op, b)  plain_is(int64_t, integer, a, op, b)
#define plain_is_u8(a, op, b)   plain_is(uint8_t, unsigned, a, op, b)
#define plain_is_u16(a, op, b)  plain_is(uint16_t, unsigned, a, op, b)
#define plain_is_u32(a, op, b)  plain_is(uint32_t, unsigned, a, op, b)
#define plain_is_u64(a, op, b)  plain_is(uint64_t, unsigned, a, op, b)
#define plain_is_sz(a, op, b)   plain_is(size_t, unsigned, a, op, b)
#define plain_is_flt(a, op, b)  plain_is(float, real, a, op, b)
#define plain_is_dbl(a, op, b)  plain_is(double, real, a, op, b)
#define plain_is_ptr(a, op, b)  plain_is(const volatile void *, ptr, a, op, b)

#define eq(type, a, b) plain_is_##type(a, ==, b)
#define ne(type, a, b) plain_is_##type(a, !=, b)
#define lt(type, a, b) plain_is_##type(a, <, b)
#define le(type, a, b) plain_is_##type(a, <=, b)
#define ge(type, a, b) plain_is_##type(a, >=, b)
#define zero(type, a)  plain_is_##type(a, ==, 0)
#define not(condition) (!(condition))
#define all(a, b) ((a) && (b))

#define epsilon_eq(type, a, b, epsilon) le(dbl, fabs((a) - (b)), epsilon)
