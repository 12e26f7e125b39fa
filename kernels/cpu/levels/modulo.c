/* Division with remainder where the processor has no vector instruction for it: floats and 64-bit
 * integers. Only at the vectorised levels; the plain level has libm and plain division
 * (arith_plain.c).
 *
 * Remainders are exact, whatever the way. For a ratio a / b below a limit:
 *     q = a / b rounded to a whole number, r = a - q * b; then b is added to r, and 1 taken from q,
 *     where r has not the sign that is wanted.
 * float64, below 2^50: the rounded ratio is off by 1/8 at most, so that |r| <= 5/8 |b|. If
 * |a| >= |b|, then a, q * b and so r are multiples of b's last place, fewer than 2^53 of them: r is
 * a float64. If |a| < |b|, q is 0 (r is a) or of magnitude 1 (|a| > |b| / 2: a - q * b is exact, by
 * Sterbenz). So r comes out exact where a - q * b is rounded once, by a fused multiplication and
 * addition, or where q * b is split into p + e exactly (Dekker, "A floating-point technique for
 * extending the available precision", 1971; |a| below 2^990, so that nothing overflows; q is whole,
 * so that nothing underflows): a is between p / 2 and 2 p, a - p is exact, and (a - p) - e is r.
 * float32, computed in float64, below 2^28: q * b has 53 bits at most, only the ratio is rounded.
 * Larger ratios of floats take long division in integers (modulus.h), element by element, in blocks
 * of KERNEL_GRANULE that are redone where one is found. NaN, infinite a and b = 0 give NaN by the
 * same arithmetic. Blocks of integers whose operands are all below 2^51 are divided like float64;
 * others by the processor, which is given 1 in the place of what it would trap at: 0, and -1 where
 * a is the least.
 *
 * FLOOR_DIVIDE and REMAINDER are NumPy's npy_divmod. Its remainder is fmod's, plus b where the
 * signs differ: r, or r + b, rounded once here as there. Its quotient is (a - fmod) / b brought to
 * the nearest whole number, less 1 in that case. Below 2^50 (float32: 2^21) that is off by less
 * than a half before, and therefore q or q - 1; above, it is computed in those steps.
 */
#include "kernels/cpu/levels/template.h"

#if !defined(KERNEL_IS_VECTORISED)

const kernel_table KERNEL_SYMBOL(modulo) = {[0] = {NULL}};

#else

#include "kernels/cpu/levels/modulus.h"

#include <math.h>
#include <string.h>

#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
#define LARGEST_DIVIDEND __DBL_MAX__
static inline f64 residue_f64(f64 a, f64 b, f64 q)
{
    return __builtin_fma(-q, b, a);
}
#else
#define LARGEST_DIVIDEND 0x1p990
static inline f64 upper_half(f64 x)
{
    f64 c = x * (0x1p27 + 1);
    return c - (c - x);
}

static inline f64 residue_f64(f64 a, f64 b, f64 q)
{
    f64 p = q * b;
    f64 q_high = upper_half(q), q_low = q - q_high;
    f64 b_high = upper_half(b), b_low = b - b_high;
    f64 e = ((q_high * b_high - p) + q_high * b_low + q_low * b_high) + q_low * b_low;
    return (a - p) - e;
}
#endif

static inline f64 residue_f32(f64 a, f64 b, f64 q)
{
    return a - q * b;
}

/* Below 2^51: adding it leaves no room for a fraction, and has the integer in its lowest bits. */
#define TO_WHOLE 0x1.8p52

static inline f64 whole(f64 ratio)
{
    return (ratio + TO_WHOLE) - TO_WHOLE;
}

/* is_far: finite operands whose ratio is beyond the limit. */
#define FLOAT_DIVISION(F, f, I, largest, limit, floor_limit)                                       \
    static inline bool is_far_##F(F a, F b, f64 most)                                              \
    {                                                                                              \
        F x = __builtin_fabs##f(a), y = __builtin_fabs##f(b);                                      \
        bool is_large = ((f64)x / (f64)y >= most) | (x > LARGEST_DIVIDEND);                        \
        return is_large & (x <= largest) & (y > 0);                                                \
    }                                                                                              \
    static inline F residue_of_##F(F a, F b, f64 *ret_quotient)                                    \
    {                                                                                              \
        f64 q = whole((f64)a / (f64)b);                                                            \
        F r = (F)residue_##F((f64)a, (f64)b, q);                                                   \
        *ret_quotient = q;                                                                         \
        return q == 0 ? a : r;                                                                     \
    }                                                                                              \
    static inline F fmod_of_##F(F a, F b)                                                          \
    {                                                                                              \
        f64 q;                                                                                     \
        F r = residue_of_##F(a, b, &q), other = r + __builtin_copysign##f(b, a);                   \
        r = ((r != 0) & ((r < 0) != (a < 0))) ? other : r;                                         \
        return __builtin_copysign##f(r, a);                                                        \
    }                                                                                              \
    static inline F floored_##F(F modulus, F b)                                                    \
    {                                                                                              \
        F other = modulus + b, zero = __builtin_copysign##f(0, b);                                 \
        F r = ((b < 0) != (modulus < 0)) ? other : modulus;                                        \
        return modulus == 0 ? zero : r;                                                            \
    }                                                                                              \
    static inline F remainder_of_##F(F a, F b)                                                     \
    {                                                                                              \
        f64 q;                                                                                     \
        return floored_##F(residue_of_##F(a, b, &q), b);                                           \
    }                                                                                              \
    static inline F floor_divide_of_##F(F a, F b)                                                  \
    {                                                                                              \
        f64 q;                                                                                     \
        F r = residue_of_##F(a, b, &q), quotient = (F)q, below = quotient - 1;                     \
        quotient = ((r != 0) & ((b < 0) != (r < 0))) ? below : quotient;                           \
        quotient = __builtin_copysign##f(quotient, (F)((f64)a / (f64)b));                          \
        return ((r != r) & (b != 0)) ? r : quotient;                                               \
    }                                                                                              \
    static F far_fmod_of_##F(F a, F b)                                                             \
    {                                                                                              \
        F x = __builtin_fabs##f(a), y = __builtin_fabs##f(b);                                      \
        return __builtin_copysign##f((F)modulus_of((f64)x, (f64)y), a);                            \
    }                                                                                              \
    static F far_remainder_of_##F(F a, F b)                                                        \
    {                                                                                              \
        return floored_##F(far_fmod_of_##F(a, b), b);                                              \
    }                                                                                              \
    static F far_floor_divide_of_##F(F a, F b)                                                     \
    {                                                                                              \
        F modulus = far_fmod_of_##F(a, b), quotient = (a - modulus) / b;                           \
        if (modulus != 0 && (b < 0) != (modulus < 0))                                              \
            quotient -= 1;                                                                         \
        if (quotient == 0)                                                                         \
            return __builtin_copysign##f(0, a / b);                                                \
        F floored = __builtin_floor##f(quotient);                                                  \
        return quotient - floored > (F)0.5 ? floored + 1 : floored;                                \
    }                                                                                              \
    FLOAT_KERNEL(fmod, F, I, limit)                                                                \
    FLOAT_KERNEL(remainder, F, I, limit)                                                           \
    FLOAT_KERNEL(floor_divide, F, I, floor_limit)

/* What was checked is what is divided: the source may be memory that another process writes. */
#define PINNED_FLOAT(x) __asm__("" : "+m"(x))

#define FLOAT_KERNEL(name, F, I, most)                                                             \
    static void name##_##F(KERNEL_ARGS)                                                            \
    {                                                                                              \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t first = 0; first < n; first += KERNEL_GRANULE) {                               \
            const F *as = (const F *)pa + first, *bs = (const F *)pb + first;                      \
            F block[KERNEL_GRANULE];                                                               \
            I has_far = 0;                                                                         \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                          \
                F a = as[i], b = bs[i];                                                            \
                block[i] = name##_of_##F(a, b);                                                    \
                has_far |= is_far_##F(a, b, most) ? 1 : 0;                                         \
            }                                                                                      \
            for (size_t i = 0; has_far && i < KERNEL_GRANULE; i++) {                               \
                F a = as[i], b = bs[i];                                                            \
                PINNED_FLOAT(a);                                                                   \
                PINNED_FLOAT(b);                                                                   \
                if (is_far_##F(a, b, most))                                                        \
                    block[i] = far_##name##_of_##F(a, b);                                          \
            }                                                                                      \
            memcpy((F *)dst + first, block, sizeof(block));                                        \
        }                                                                                          \
    }
FLOAT_DIVISION(f32, f, u32, __FLT_MAX__, 0x1p28, 0x1p21)
FLOAT_DIVISION(f64, , u64, __DBL_MAX__, 0x1p50, 0x1p50)

/* Of magnitudes below 2^51. */
static inline f64 to_f64(i64 x)
{
    const f64 offset = TO_WHOLE;
    u64 bits;
    memcpy(&bits, &offset, sizeof(bits));
    bits += (u64)x;
    f64 sum;
    memcpy(&sum, &bits, sizeof(sum));
    return sum - TO_WHOLE;
}

static inline i64 from_f64(f64 x)
{
    const f64 offset = TO_WHOLE;
    u64 bits, base;
    x += TO_WHOLE;
    memcpy(&bits, &x, sizeof(bits));
    memcpy(&base, &offset, sizeof(base));
    return (i64)(bits - base);
}

struct division {
    f64 a, b, q, r; /* b is 1 for 0 */
};

static inline struct division near_division(i64 a, i64 b)
{
    struct division d = {.a = to_f64(a), .b = to_f64(b)};
    d.b += (f64)(b == 0);
    d.q = whole(d.a / d.b);
    d.r = residue_f32(d.a, d.b, d.q);
    return d;
}

static inline i64 near_floor_divide(i64 a, i64 b)
{
    struct division d = near_division(a, b);
    f64 below = d.q - 1, q = d.r * d.b < 0 ? below : d.q;
    return from_f64(q) & -(i64)(b != 0);
}

static inline i64 near_remainder(i64 a, i64 b)
{
    struct division d = near_division(a, b);
    f64 other = d.r + d.b;
    return from_f64(d.r * d.b < 0 ? other : d.r);
}

static inline i64 near_fmod(i64 a, i64 b)
{
    struct division d = near_division(a, b);
    f64 other = d.r + __builtin_copysign(d.b, d.a);
    return from_f64(d.r * d.a < 0 ? other : d.r);
}

/* The truncated quotient is above the floor. */
#define IS_ABOVE  ((r != 0) & ((r ^ b) < 0))

static inline u64 count_zeros(size_t n, const u64 *x)
{
    u64 n_zeros = 0;
    for (size_t i = 0; i < n; i++)
        n_zeros += x[i] == 0;
    return n_zeros;
}

/* The source may be memory that another process writes: what was checked is what is divided. */
#define PINNED(x) __asm__("" : "+r"(x))

/* bits(x): 0 from bit 51 upwards where |x| is below 2^51. far: from b and the truncated quotient q
 * and remainder r; is_overflow: these do not exist. */
#define INTEGER_KERNEL(name, T, bits, is_overflow, far)                                            \
    static void far_##name##_##T(T *d, const T *as, const T *bs)                                   \
    {                                                                                              \
        for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                              \
            T a = as[i], b = bs[i];                                                                \
            PINNED(a);                                                                             \
            PINNED(b);                                                                             \
            T safe = ((b == 0) | (is_overflow)) ? 1 : b;                                           \
            T q = a / safe, r = a - q * safe;                                                      \
            d[i] = far;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        events->n_divide_by_zero += count_zeros(n, pb);                                            \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t first = 0; first < n; first += KERNEL_GRANULE) {                               \
            const T *as = (const T *)pa + first, *bs = (const T *)pb + first;                      \
            T *d = (T *)dst + first;                                                               \
            u64 all = 0;                                                                           \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++)                                            \
                all |= bits(as[i]) | bits(bs[i]);                                                  \
            if (all >> 51) {                                                                       \
                far_##name##_##T(d, as, bs);                                                       \
                continue;                                                                          \
            }                                                                                      \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++)                                            \
                d[i] = (T)near_##name((i64)as[i], (i64)bs[i]);                                     \
        }                                                                                          \
    }

#define FLIPPED(x)       ((u64)(x) ^ (0 - ((u64)(x) >> 63)))
#define UNCHANGED(x)     (x)
#define LEAST_BY_MINUS_1 ((b == -1) & (a == INT64_MIN))
INTEGER_KERNEL(floor_divide, i64, FLIPPED, LEAST_BY_MINUS_1, b == 0 ? 0 : q - IS_ABOVE)
INTEGER_KERNEL(remainder, i64, FLIPPED, LEAST_BY_MINUS_1, IS_ABOVE ? r + b : r)
INTEGER_KERNEL(fmod, i64, FLIPPED, LEAST_BY_MINUS_1, r)
INTEGER_KERNEL(floor_divide, u64, UNCHANGED, false, b == 0 ? r : q)
INTEGER_KERNEL(remainder, u64, UNCHANGED, false, r)

/* clang-format off */
const kernel_table KERNEL_SYMBOL(modulo) = {
    [OP_FLOOR_DIVIDE] = {[DTYPE_INT64] = floor_divide_i64, [DTYPE_UINT64] = floor_divide_u64,
                         ROW_FLOATS(floor_divide)},
    [OP_REMAINDER] = {[DTYPE_INT64] = remainder_i64, [DTYPE_UINT64] = remainder_u64,
                      ROW_FLOATS(remainder)},
    [OP_FMOD] = {[DTYPE_INT64] = fmod_i64, [DTYPE_UINT64] = remainder_u64, ROW_FLOATS(fmod)},
};
/* clang-format on */

#endif
