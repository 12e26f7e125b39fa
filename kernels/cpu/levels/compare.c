/* Comparisons and predicates: bool out, as bytes 0 and 1.
 *
 * NaN compares as IEEE says: only `not equal` is true. GREATER and GREATER_EQUAL are not here: the
 * engine exchanges the sources. int64 with uint64 compares by value, without a common type; those
 * kernels take the int64 first, and the engine mirrors the operator where it is second.
 */
#include "kernels/cpu/levels/template.h"

#define TO_BOOL(M, name, expression)                                                               \
    M(name, u8, u8, expression)                                                                    \
    M(name, u16, u8, expression) M(name, u32, u8, expression) M(name, u64, u8, expression)
#define TO_BOOL_SIGNED(M, name, expression)                                                        \
    M(name, i8, u8, expression)                                                                    \
    M(name, i16, u8, expression) M(name, i32, u8, expression) M(name, i64, u8, expression)
#define TO_BOOL_FLOATS(M, name, expression)                                                        \
    M(name, f32, u8, expression) M(name, f64, u8, expression)

TO_BOOL(BINARY, equal, a == b)
TO_BOOL_FLOATS(BINARY, equal, a == b)
TO_BOOL(BINARY, not_equal, a != b)
TO_BOOL_FLOATS(BINARY, not_equal, a != b)
TO_BOOL(BINARY, less, a < b)
TO_BOOL_SIGNED(BINARY, less, a < b)
TO_BOOL_FLOATS(BINARY, less, a < b)
TO_BOOL(BINARY, less_equal, a <= b)
TO_BOOL_SIGNED(BINARY, less_equal, a <= b)
TO_BOOL_FLOATS(BINARY, less_equal, a <= b)

TO_BOOL_FLOATS(UNARY, isnan, a != a)
UNARY(isfinite, f32, u8, __builtin_fabsf(a) <= __FLT_MAX__)
UNARY(isfinite, f64, u8, __builtin_fabs(a) <= __DBL_MAX__)
UNARY(isinf, f32, u8, __builtin_fabsf(a) > __FLT_MAX__)
UNARY(isinf, f64, u8, __builtin_fabs(a) > __DBL_MAX__)
UNARY(isposinf, f32, u8, a > __FLT_MAX__)
UNARY(isposinf, f64, u8, a > __DBL_MAX__)
UNARY(isneginf, f32, u8, a < -__FLT_MAX__)
UNARY(isneginf, f64, u8, a < -__DBL_MAX__)

#define MIXED(name, expression)                                                                    \
    static void mixed_##name(KERNEL_ARGS)                                                          \
    {                                                                                              \
        u8 *d = dst;                                                                               \
        const i64 *as = pa;                                                                        \
        const u64 *bs = pb;                                                                        \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            i64 a = as[i];                                                                         \
            u64 b = bs[i];                                                                         \
            d[i] = (u8)(expression);                                                               \
        }                                                                                          \
    }
MIXED(equal, (a >= 0) & ((u64)a == b))
MIXED(not_equal, (a < 0) | ((u64)a != b))
MIXED(less, (a < 0) | ((u64)a < b))
MIXED(less_equal, (a < 0) | ((u64)a <= b))
MIXED(greater, (a >= 0) & ((u64)a > b))
MIXED(greater_equal, (a >= 0) & ((u64)a >= b))

/* clang-format off */
const kernel_table KERNEL_SYMBOL(compare) = {
    [OP_EQUAL] = {[DTYPE_BOOL] = equal_u8, ROW_WIDTHS(equal), ROW_FLOATS(equal)},
    [OP_NOT_EQUAL] = {[DTYPE_BOOL] = not_equal_u8, ROW_WIDTHS(not_equal), ROW_FLOATS(not_equal)},
    [OP_LESS] = {[DTYPE_BOOL] = less_u8, ROW_SIGNED(less), ROW_UNSIGNED(less), ROW_FLOATS(less)},
    [OP_LESS_EQUAL] = {[DTYPE_BOOL] = less_equal_u8, ROW_SIGNED(less_equal),
                       ROW_UNSIGNED(less_equal), ROW_FLOATS(less_equal)},
    [OP_ISNAN] = {ROW_FLOATS(isnan)},
    [OP_ISFINITE] = {ROW_FLOATS(isfinite)},
    [OP_ISINF] = {ROW_FLOATS(isinf)},
    [OP_ISPOSINF] = {ROW_FLOATS(isposinf)},
    [OP_ISNEGINF] = {ROW_FLOATS(isneginf)},
};

const kernel_row KERNEL_SYMBOL(mixed) = {
    [OP_EQUAL] = mixed_equal, [OP_NOT_EQUAL] = mixed_not_equal,
    [OP_LESS] = mixed_less, [OP_LESS_EQUAL] = mixed_less_equal,
    [OP_GREATER] = mixed_greater, [OP_GREATER_EQUAL] = mixed_greater_equal,
};
/* clang-format on */
