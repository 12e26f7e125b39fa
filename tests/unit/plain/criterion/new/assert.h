/* See criterion/criterion.h beside this folder. */
#pragma once

#include <math.h>

#define plain_is_str(a, op, b) (strcmp(a, b) op 0)
#define plain_is_int(a, op, b) ((a)op(b))
#define plain_is_u32           plain_is_int
#define plain_is_u64           plain_is_int
#define plain_is_i64           plain_is_int
#define plain_is_sz            plain_is_int
#define plain_is_flt           plain_is_int
#define plain_is_dbl           plain_is_int
#define plain_is_ptr           plain_is_int

#define eq(type, a, b) plain_is_##type(a, ==, b)
#define ne(type, a, b) plain_is_##type(a, !=, b)
#define lt(type, a, b) plain_is_##type(a, <, b)
#define le(type, a, b) plain_is_##type(a, <=, b)
#define ge(type, a, b) plain_is_##type(a, >=, b)
#define zero(type, a)  plain_is_##type(a, ==, 0)
#define not(condition) (!(condition))

#define epsilon_eq(type, a, b, epsilon) (fabs((a) - (b)) <= (epsilon))
