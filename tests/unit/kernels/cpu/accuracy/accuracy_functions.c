/* The functions whose results are not exactly rounded: exact values and errors.
 *
 * The exact value is that of glibc's long double functions, which on x86-64 have 11 bits more than
 * float64 and errors of a few of their own units: some thousandths of an ulp here. What they do not
 * have is composed of them. Special values are C's (Annex F), and SciPy's where C has none or
 * another (gammaln(-inf) is -inf). measure_accuracy.c confirms the worst arguments with MPFR.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy.h"

#include <float.h>
#include <math.h>

static long double exact_expit(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

/* 2x - 1 is exact from 1/4 on; below, log() is far from its zero. */
static long double exact_logit(long double x)
{
    return x < 0.25L ? logl(x) - log1pl(-x) : 2 * atanhl(2 * x - 1);
}

static long double exact_gammaln(long double x)
{
    int sign;
    return x == -INFINITY ? -INFINITY : lgammal_r(x, &sign);
}

/* What rounding of more - less to `distance` has lost (Knuth's TwoSum). */
static long double lost(long double more, long double less, long double distance)
{
    long double back = more - distance;
    return (more - (distance + back)) + (back - less);
}

static long double log_of_sum(long double x, long double y, long double (*exp_of_base)(long double),
                              long double ln)
{
    long double more = fmaxl(x, y), less = fminl(x, y), distance = more - less;
    if (isnan(x) || isnan(y))
        return x + y;
    if (x == y)
        return x + M_LN2l / ln;
    if (isinf(distance))
        return more;
    return more + log1pl(exp_of_base(-distance) * (1 - ln * lost(more, less, distance))) / ln;
}

static long double exact_logaddexp(long double x, long double y)
{
    return log_of_sum(x, y, expl, 1);
}

static long double exact_logaddexp2(long double x, long double y)
{
    return log_of_sum(x, y, exp2l, M_LN2l);
}

#define UNARY(op, exact, ...)                                                                      \
    {                                                                                              \
        OP_##op, 1, exact, NULL,                                                                   \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define BINARY(op, exact, ...)                                                                     \
    {                                                                                              \
        OP_##op, 2, NULL, exact,                                                                   \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* clang-format off */
const struct accuracy_function accuracy_functions[] = {
    UNARY(CBRT, cbrtl, {-8, 8}, {-1e6, 1e6}),
    UNARY(EXP, expl, {-1, 1}, {-104, 89}, {-746, 710}, {-750, -700}),
    UNARY(EXP2, exp2l, {-1, 1}, {-150, 129}, {-1076, 1025}, {-1080, -1000}),
    UNARY(EXPM1, expm1l, {-1, 1}, {-40, 89}, {-40, 710}, {-0.01, 0.01}),
    UNARY(LOG, logl, {0, 2}, {0.9, 1.1}, {0, 1e6}, {0.999, 1.001}),
    UNARY(LOG2, log2l, {0, 2}, {0.9, 1.1}, {0, 1e6}, {0.999, 1.001}),
    UNARY(LOG10, log10l, {0, 2}, {0.9, 1.1}, {0, 1e6}, {0.999, 1.001}),
    UNARY(LOG1P, log1pl, {-1, 1}, {-0.1, 0.1}, {-1, 1e6}, {-1, -0.99}),
    UNARY(SIN, sinl, {-3.2, 3.2}, {-100, 100}, {-1e5, 1e5}, {-1e9, 1e9}),
    UNARY(COS, cosl, {-3.2, 3.2}, {-100, 100}, {-1e5, 1e5}, {-1e9, 1e9}),
    UNARY(TAN, tanl, {-3.2, 3.2}, {-100, 100}, {-1e5, 1e5}, {-1e9, 1e9}),
    UNARY(ARCSIN, asinl, {-1, 1}, {0.9, 1}, {-1, -0.9}, {-0.51, 0.51}),
    UNARY(ARCCOS, acosl, {-1, 1}, {0.9, 1}, {-1, -0.9}, {-0.51, 0.51}),
    UNARY(ARCTAN, atanl, {-1, 1}, {-3, 3}, {-100, 100}),
    UNARY(SINH, sinhl, {-1, 1}, {-90, 90}, {-711, 711}, {-0.1, 0.1}),
    UNARY(COSH, coshl, {-1, 1}, {-90, 90}, {-711, 711}, {-0.1, 0.1}),
    UNARY(TANH, tanhl, {-1, 1}, {-10, 10}, {-25, 25}, {-0.1, 0.1}),
    UNARY(ARCSINH, asinhl, {-1, 1}, {-10, 10}, {-1e6, 1e6}, {-0.1, 0.1}),
    UNARY(ARCCOSH, acoshl, {1, 2}, {1, 1.01}, {1, 1e6}, {1, 20}),
    UNARY(ARCTANH, atanhl, {-1, 1}, {-0.1, 0.1}, {0.99, 1}, {-0.6, 0.6}),
    UNARY(ERF, erfl, {-1, 1}, {-6, 6}, {0.8, 3}, {-0.1, 0.1}),
    UNARY(ERFC, erfcl, {-6, 6}, {0, 11}, {0, 28}, {25, 27.5}),
    UNARY(GAMMA, tgammal, {0, 5}, {-10, 35}, {-180, 172}, {-40, 0}),
    UNARY(LGAMMA, exact_gammaln, {0, 5}, {0.9, 2.2}, {-20, 200}, {-40, 0}),
    UNARY(EXPIT, exact_expit, {-1, 1}, {-40, 40}, {-104, 17}, {-750, 40}),
    UNARY(LOGIT, exact_logit, {0, 1}, {0.45, 0.55}, {0.2, 0.3}, {0.99, 1}),
    BINARY(ARCTAN2, atan2l, {-1, 1}, {-1e6, 1e6}),
    BINARY(HYPOT, hypotl, {-1, 1}, {-1e6, 1e6}),
    BINARY(POWER, powl, {0, 2}, {-20, 20}, {0, 100}, {-1e3, 1e3}),
    BINARY(LOGADDEXP, exact_logaddexp, {-1.5, 0.1}, {-40, 40}, {-800, 800}, {-1, 1}),
    BINARY(LOGADDEXP2, exact_logaddexp2, {-1.5, 0.1}, {-40, 40}, {-1100, 1100}, {-1, 1}),
};
/* clang-format on */
const unsigned accuracy_n_functions = sizeof(accuracy_functions) / sizeof(accuracy_functions[0]);

long double accuracy_exact(const struct accuracy_function *f, const double x[2])
{
    return f->n_args == 1 ? f->exact1((long double)x[0])
                          : f->exact2((long double)x[0], (long double)x[1]);
}

static bool is_log_of_sum(const struct accuracy_function *f)
{
    return f->op == OP_LOGADDEXP || f->op == OP_LOGADDEXP2;
}

double accuracy_distance(const struct accuracy_function *f, enum dtype dtype, const double x[2],
                         long double exact, long double got)
{
    bool is_f32 = dtype == DTYPE_FLOAT32;
    int max_exponent = is_f32 ? FLT_MAX_EXP : DBL_MAX_EXP;
    int least = (is_f32 ? FLT_MIN_EXP : DBL_MIN_EXP) - 1;
    long double beyond = ldexpl(1, max_exponent);
    exact = copysignl(fminl(fabsl(exact), beyond), exact);
    got = copysignl(fminl(fabsl(got), beyond), got);
    long double scale = fabsl(exact);
    if (is_log_of_sum(f)) {
        long double larger = (long double)(x[0] > x[1] ? x[0] : x[1]);
        scale = fmaxl(scale, fmaxl(fabsl(larger), fabsl(exact - larger)));
    }
    int exponent = scale == 0 ? least : ilogbl(scale);
    exponent = exponent < least ? least : exponent;
    exponent = exponent >= max_exponent ? max_exponent - 1 : exponent;
    int n_digits = is_f32 ? FLT_MANT_DIG : DBL_MANT_DIG;
    return (double)ldexpl(fabsl(got - exact), n_digits - 1 - exponent);
}

double accuracy_error(const struct accuracy_function *f, enum dtype dtype, const double x[2],
                      long double exact, double got)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (isinf(exact))
        return (long double)got == exact ? 0 : INFINITY;
    bool is_same_sign = !signbit(exact) == !signbit(got);
    if (!is_same_sign && !is_log_of_sum(f))
        return INFINITY;
    if (exact == 0 && got != 0 && !is_log_of_sum(f))
        return INFINITY;
    return accuracy_distance(f, dtype, x, exact, (long double)got);
}
