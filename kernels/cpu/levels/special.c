/* expit, logit, logaddexp and logaddexp2: composed of vector exponentials and logarithms.
 *
 * expit(x) is 1 / (1 + e) above zero, e = exp(-|x|), and below zero e / (1 + e), written as
 * e - e e / (1 + e), whose roundings are small beside e's own error. Nothing overflows, and small
 * results keep their digits (SciPy's 1 / (1 + exp(-x)) gives 0 where exp overflows).
 *
 * logit(x) = sign(x - 1/2) log1p(|2x - 1| / min(x, 1 - x)), the inverse of that. 2x - 1 is exact
 * from 1/4 to 1 (Sterbenz), 1 - x from 1/2 on, so the quotient's only error near the zero at 1/2 is
 * its rounding. Arguments whose reciprocal overflows are log(x), by libm.
 *
 * logaddexp(x, y) = m + log1p(exp(-d)) with m the larger and d the distance. The rounding error of
 * d, which exp would magnify, is known exactly (Knuth's TwoSum) and put back to first order. Where
 * m and the logarithm nearly cancel, the error stays small beside m, not beside the result.
 * logaddexp2 is the same to base 2, with log2(1 + e) = log2(s) + c / s log2(e), where s is 1 + e
 * rounded and c what that lost.
 */
#include "kernels/cpu/levels/vector_math.h"

/* clang-format off */
#define DOWN_ROW(op, name, a32, b32, c32, a64, b64, c64)                                           \
    KERNEL_PASTE(BLOCK1, PICK(a32, b32, c32))(name##_down, name, f32)                              \
    KERNEL_PASTE(BLOCK1, PICK(a64, b64, c64))(name##_down, name, f64)
ROW_exp(BLOCK1_ROW)
ROW_exp_down(DOWN_ROW)
ROW_exp2_down(DOWN_ROW)
ROW_log1p(BLOCK1_ROW)
ROW_log2(BLOCK1_ROW)
/* clang-format on */

#define LN2     0.69314718055994530942
#define LOG2E   1.44269504088896340736
#define ABS_f32 __builtin_fabsf
#define ABS_f64 __builtin_fabs

#define EXPIT(T)                                                                                   \
    static inline void expit_block_##T(T *d, const T *as)                                          \
    {                                                                                              \
        T es[BLOCK];                                                                               \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            es[i] = -ABS_##T(as[i]);                                                               \
        exp_block_##T(es, es);                                                                     \
        KERNEL_LOOP                                                                                \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T e = es[i], r = 1 / (1 + e);                                                          \
            d[i] = as[i] < 0 ? e - e * (e * r) : r;                                                \
        }                                                                                          \
    }                                                                                              \
    KERNEL1(expit, T)

/* x + 0 below 1/2: log1p(-1 / -0) would be NaN. */
#define LOGIT(T, least)                                                                            \
    ALL_OF(logit_is_common, T, !(a > 0) | (a >= least))                                            \
    static inline void logit_common_##T(T *d, const T *as)                                         \
    {                                                                                              \
        T t[BLOCK];                                                                                \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T a = as[i], smaller = a < (T)0.5 ? a + 0 : 1 - a;                                     \
            t[i] = ABS_##T(2 * a - 1) / smaller;                                                   \
        }                                                                                          \
        log1p_block_##T(t, t);                                                                     \
        KERNEL_LOOP                                                                                \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            d[i] = as[i] < (T)0.5 ? -t[i] : t[i];                                                  \
    }                                                                                              \
    static inline void logit_block_##T(T *d, const T *as)                                          \
    {                                                                                              \
        if (logit_is_common_##T(as)) {                                                             \
            logit_common_##T(d, as);                                                               \
            return;                                                                                \
        }                                                                                          \
        T a[BLOCK];                                                                                \
        memcpy(a, as, sizeof(a));                                                                  \
        logit_common_##T(d, a);                                                                    \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            if (a[i] > 0 && a[i] < least)                                                          \
                d[i] = LIBM_##T(log)(a[i]);                                                        \
    }                                                                                              \
    KERNEL1(logit, T)

/* log2(1 + e) for e from 0 to 1; 1 - e + e^2 / 2 is near enough to 1 / s for what s lost. */
#define LOG2_OF_MORE(T)                                                                            \
    static inline void log2_of_more_##T(T *d, const T *es)                                         \
    {                                                                                              \
        T s[BLOCK];                                                                                \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            s[i] = 1 + es[i];                                                                      \
        log2_block_##T(s, s);                                                                      \
        KERNEL_LOOP                                                                                \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T e = es[i], lost = e - ((1 + e) - 1);                                                 \
            d[i] = s[i] + lost * (T)LOG2E * (1 - e * (1 - e * (T)0.5));                            \
        }                                                                                          \
    }

/* To the base whose natural logarithm is ln; `doubled` is the logarithm of 2. */
#define LOG_OF_SUM(name, T, exp_block, log_block, ln, doubled)                                     \
    static inline void name##_block_##T(T *d, const T *as, const T *bs)                            \
    {                                                                                              \
        T e[BLOCK], error[BLOCK];                                                                  \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T a = as[i], b = bs[i], more = a > b ? a : b, less = a > b ? b : a;                    \
            T distance = more - less, back = more - distance;                                      \
            T lost = (more - (distance + back)) + (back - less);                                   \
            e[i] = a == b ? 0 : -distance;                                                         \
            error[i] = distance < (T)1e4 ? lost * (T)(ln) : 0;                                     \
        }                                                                                          \
        exp_block##_##T(e, e);                                                                     \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            e[i] -= e[i] * error[i];                                                               \
        log_block##_##T(e, e);                                                                     \
        KERNEL_LOOP                                                                                \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T a = as[i], b = bs[i], more = a > b ? a : b;                                          \
            d[i] = a == b ? a + (T)(doubled) : more + e[i];                                        \
        }                                                                                          \
    }                                                                                              \
    KERNEL2(name, T)

    /* clang-format off */
EXPIT(f32)
EXPIT(f64)
LOGIT(f32, 0x1p-126f)
LOGIT(f64, 0x1p-1022)
LOG2_OF_MORE(f32)
LOG2_OF_MORE(f64)
LOG_OF_SUM(logaddexp, f32, exp_down, log1p_block, 1, LN2)
LOG_OF_SUM(logaddexp, f64, exp_down, log1p_block, 1, LN2)
LOG_OF_SUM(logaddexp2, f32, exp2_down, log2_of_more, LN2, 1)
LOG_OF_SUM(logaddexp2, f64, exp2_down, log2_of_more, LN2, 1)

const kernel_table KERNEL_SYMBOL(special) = {
    [OP_GAMMA] = {[DTYPE_FLOAT32] = KERNEL_SYMBOL(gamma_f32),
                  [DTYPE_FLOAT64] = KERNEL_SYMBOL(gamma_f64)},
    [OP_LGAMMA] = {[DTYPE_FLOAT32] = KERNEL_SYMBOL(lgamma_f32),
                   [DTYPE_FLOAT64] = KERNEL_SYMBOL(lgamma_f64)},
    [OP_EXPIT] = {ROW_FLOATS(expit)},
    [OP_LOGIT] = {ROW_FLOATS(logit)},
    [OP_LOGADDEXP] = {ROW_FLOATS(logaddexp)},
    [OP_LOGADDEXP2] = {ROW_FLOATS(logaddexp2)},
};
#define SOURCE_PAIR(op, name, a32, b32, c32, a64, b64, c64)                                        \
    {KERNEL_PASTE(SOURCE, PICK(a32, b32, c32)), KERNEL_PASTE(SOURCE, PICK(a64, b64, c64))}
#if defined(KERNEL_HAS_SLEEF)
#define SOURCE_GAMMA "SLEEF, long double"
#else
#define SOURCE_GAMMA "long double"
#endif
const math_sources KERNEL_SYMBOL(special_sources) = {
    [OP_GAMMA] = {"product", SOURCE_GAMMA},
    [OP_LGAMMA] = {"product, Stirling", "libm, long double"},
    [OP_EXPIT] = ROW_exp(SOURCE_PAIR), /* of the exponential or the logarithm */
    [OP_LOGIT] = ROW_log1p(SOURCE_PAIR),
    [OP_LOGADDEXP] = ROW_exp_down(SOURCE_PAIR),
    [OP_LOGADDEXP2] = ROW_exp2_down(SOURCE_PAIR),
};
/* clang-format on */
