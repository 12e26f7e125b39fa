/* Conversions between all dtypes.
 *
 * Integers wrap and are extended by their own sign. Anything to bool is `!= 0` (NaN is true).
 * Floats to integers truncate. One rule for what does not fit, whatever the processor does: the
 * value becomes an int64 (NaN, infinities and what is outside int64 become its least value) and
 * then wraps to the width; to uint64, values from 2^63 up to 2^64 are exact. Elements outside the
 * target's own range are counted. A strip without any such element takes the short loop.
 */
#include "kernels/cpu/levels/template.h"

#define CAST(S, T, expression)                                                                     \
    static void S##_to_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        T *d = dst;                                                                                \
        const S *as = pa;                                                                          \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            S a = as[i];                                                                           \
            d[i] = (T)(expression);                                                                \
        }                                                                                          \
    }
#define CAST_PLAIN(S, T) CAST(S, T, a)

/* Narrowing and equal widths: by width. */
CAST_PLAIN(u8, u8)
CAST_PLAIN(u16, u16)
CAST_PLAIN(u32, u32)
CAST_PLAIN(u64, u64)
CAST_PLAIN(u16, u8)
CAST_PLAIN(u32, u8)
CAST_PLAIN(u32, u16)
CAST_PLAIN(u64, u8)
CAST_PLAIN(u64, u16)
CAST_PLAIN(u64, u32)
/* Widening: by the source's sign. */
CAST_PLAIN(u8, u16)
CAST_PLAIN(u8, u32)
CAST_PLAIN(u8, u64)
CAST_PLAIN(u16, u32)
CAST_PLAIN(u16, u64)
CAST_PLAIN(u32, u64)
CAST_PLAIN(i8, u16)
CAST_PLAIN(i8, u32)
CAST_PLAIN(i8, u64)
CAST_PLAIN(i16, u32)
CAST_PLAIN(i16, u64)
CAST_PLAIN(i32, u64)

#define TO_FLOATS(S) CAST_PLAIN(S, f32) CAST_PLAIN(S, f64)
TO_FLOATS(u8)
TO_FLOATS(u16)
TO_FLOATS(u32)
TO_FLOATS(u64)
TO_FLOATS(i8)
TO_FLOATS(i16)
TO_FLOATS(i32)
TO_FLOATS(i64)
TO_FLOATS(f32)
TO_FLOATS(f64)

UNARY(nonzero, u8, u8, a != 0)
UNARY(nonzero, u16, u8, a != 0)
UNARY(nonzero, u32, u8, a != 0)
UNARY(nonzero, u64, u8, a != 0)
UNARY(nonzero, f32, u8, a != 0)
UNARY(nonzero, f64, u8, a != 0)

static inline i64 wrap_signed(f64 a)
{
    return a >= -0x1p63 && a < 0x1p63 ? (i64)a : INT64_MIN;
}

static inline u64 wrap_unsigned(f64 a)
{
    return a >= 0x1p63 && a < 0x1p64 ? (u64)a : (u64)wrap_signed(a);
}

/* is_valid: `a` truncates into T's range. The bounds are exact in S. */
#define FLOAT_TO_INTEGER(S, T, is_valid, wrap)                                                     \
    static void S##_to_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        T *d = dst;                                                                                \
        const S *as = pa;                                                                          \
        size_t n_invalid = 0;                                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            S a = as[i];                                                                           \
            n_invalid += !(is_valid);                                                              \
        }                                                                                          \
        events->n_invalid_casts += n_invalid;                                                      \
        n = KERNEL_ROUND(n);                                                                       \
        if (n_invalid == 0) {                                                                      \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < n; i++)                                                         \
                d[i] = (T)as[i];                                                                   \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = (T)wrap((f64)as[i]);                                                            \
    }
#define BETWEEN(low, high)  ((a > low) & (a < high))
#define AT_LEAST(low, high) ((a >= low) & (a < high))
#define FLOAT_TO_INTEGERS(S, valid_i32)                                                            \
    FLOAT_TO_INTEGER(S, i8, BETWEEN(-129, 128), wrap_signed)                                       \
    FLOAT_TO_INTEGER(S, i16, BETWEEN(-32769, 32768), wrap_signed)                                  \
    FLOAT_TO_INTEGER(S, i32, valid_i32, wrap_signed)                                               \
    FLOAT_TO_INTEGER(S, i64, AT_LEAST((S)-0x1p63, (S)0x1p63), wrap_signed)                         \
    FLOAT_TO_INTEGER(S, u8, BETWEEN(-1, 256), wrap_signed)                                         \
    FLOAT_TO_INTEGER(S, u16, BETWEEN(-1, 65536), wrap_signed)                                      \
    FLOAT_TO_INTEGER(S, u32, BETWEEN(-1, (S)0x1p32), wrap_signed)                                  \
    FLOAT_TO_INTEGER(S, u64, BETWEEN(-1, (S)0x1p64), wrap_unsigned)
FLOAT_TO_INTEGERS(f32, AT_LEAST(-0x1p31f, 0x1p31f))
FLOAT_TO_INTEGERS(f64, BETWEEN(-0x1.00000002p31, 0x1p31))

#define TO_INTEGERS(S8, S16, S32, S64)                                                             \
    [DTYPE_INT8] = S8, [DTYPE_UINT8] = S8, [DTYPE_INT16] = S16, [DTYPE_UINT16] = S16,              \
    [DTYPE_INT32] = S32, [DTYPE_UINT32] = S32, [DTYPE_INT64] = S64, [DTYPE_UINT64] = S64
#define FROM_FLOAT(S)                                                                              \
    [DTYPE_BOOL] = nonzero_##S, [DTYPE_INT8] = S##_to_i8, [DTYPE_INT16] = S##_to_i16,              \
    [DTYPE_INT32] = S##_to_i32, [DTYPE_INT64] = S##_to_i64, [DTYPE_UINT8] = S##_to_u8,             \
    [DTYPE_UINT16] = S##_to_u16, [DTYPE_UINT32] = S##_to_u32, [DTYPE_UINT64] = S##_to_u64,         \
    [DTYPE_FLOAT32] = S##_to_f32, [DTYPE_FLOAT64] = S##_to_f64
#define FLOATS(S) [DTYPE_FLOAT32] = S##_to_f32, [DTYPE_FLOAT64] = S##_to_f64

/* clang-format off */
const kernel_casts KERNEL_SYMBOL(casts) = {
    [DTYPE_BOOL] = {[DTYPE_BOOL] = u8_to_u8, FLOATS(u8),
                    TO_INTEGERS(u8_to_u8, u8_to_u16, u8_to_u32, u8_to_u64)},
    [DTYPE_INT8] = {[DTYPE_BOOL] = nonzero_u8, FLOATS(i8),
                    TO_INTEGERS(u8_to_u8, i8_to_u16, i8_to_u32, i8_to_u64)},
    [DTYPE_INT16] = {[DTYPE_BOOL] = nonzero_u16, FLOATS(i16),
                     TO_INTEGERS(u16_to_u8, u16_to_u16, i16_to_u32, i16_to_u64)},
    [DTYPE_INT32] = {[DTYPE_BOOL] = nonzero_u32, FLOATS(i32),
                     TO_INTEGERS(u32_to_u8, u32_to_u16, u32_to_u32, i32_to_u64)},
    [DTYPE_INT64] = {[DTYPE_BOOL] = nonzero_u64, FLOATS(i64),
                     TO_INTEGERS(u64_to_u8, u64_to_u16, u64_to_u32, u64_to_u64)},
    [DTYPE_UINT8] = {[DTYPE_BOOL] = nonzero_u8, FLOATS(u8),
                     TO_INTEGERS(u8_to_u8, u8_to_u16, u8_to_u32, u8_to_u64)},
    [DTYPE_UINT16] = {[DTYPE_BOOL] = nonzero_u16, FLOATS(u16),
                      TO_INTEGERS(u16_to_u8, u16_to_u16, u16_to_u32, u16_to_u64)},
    [DTYPE_UINT32] = {[DTYPE_BOOL] = nonzero_u32, FLOATS(u32),
                      TO_INTEGERS(u32_to_u8, u32_to_u16, u32_to_u32, u32_to_u64)},
    [DTYPE_UINT64] = {[DTYPE_BOOL] = nonzero_u64, FLOATS(u64),
                      TO_INTEGERS(u64_to_u8, u64_to_u16, u64_to_u32, u64_to_u64)},
    [DTYPE_FLOAT32] = {FROM_FLOAT(f32)},
    [DTYPE_FLOAT64] = {FROM_FLOAT(f64)},
};
/* clang-format on */
