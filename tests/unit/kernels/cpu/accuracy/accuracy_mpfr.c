/* Exact values by MPFR, with 300 bits: far slower than long double, and independent of it.
 *
 * What MPFR lacks is composed so that nothing cancels: logaddexp(x, y) is m + log1p(exp(-d)). Used
 * by measure_accuracy.c to confirm the worst arguments, and the reference itself.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy_mpfr.h"

#include <math.h>
#include <mpfr.h>

#define BITS 300

typedef int unary_function(mpfr_t, mpfr_srcptr, mpfr_rnd_t);
typedef int binary_function(mpfr_t, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

static int gammaln(mpfr_t r, mpfr_srcptr x, mpfr_rnd_t round)
{
    int sign;
    if (mpfr_inf_p(x))
        return mpfr_set(r, x, round);
    return mpfr_lgamma(r, &sign, x, round);
}

static int expit(mpfr_t r, mpfr_srcptr x, mpfr_rnd_t round)
{
    mpfr_neg(r, x, round);
    mpfr_exp(r, r, round);
    mpfr_add_ui(r, r, 1, round);
    return mpfr_ui_div(r, 1, r, round);
}

static int logit(mpfr_t r, mpfr_srcptr x, mpfr_rnd_t round)
{
    mpfr_ui_sub(r, 1, x, round);
    mpfr_div(r, x, r, round);
    return mpfr_log(r, r, round);
}

static int log_of_sum(mpfr_t r, mpfr_srcptr x, mpfr_srcptr y, unary_function *exp_of_base,
                      bool is_binary, mpfr_rnd_t round)
{
    if (mpfr_nan_p(x) || mpfr_nan_p(y) || mpfr_inf_p(x) || mpfr_inf_p(y))
        return mpfr_nan_p(x) || mpfr_nan_p(y) ? mpfr_add(r, x, y, round) : mpfr_max(r, x, y, round);
    mpfr_t ln2;
    mpfr_init2(ln2, BITS);
    mpfr_const_log2(ln2, round);
    mpfr_sub(r, x, y, round);
    mpfr_abs(r, r, round);
    mpfr_neg(r, r, round);
    exp_of_base(r, r, round);
    mpfr_log1p(r, r, round);
    if (is_binary)
        mpfr_div(r, r, ln2, round);
    mpfr_clear(ln2);
    return mpfr_add(r, r, mpfr_cmp(x, y) > 0 ? x : y, round);
}

static int logaddexp(mpfr_t r, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round)
{
    return log_of_sum(r, x, y, mpfr_exp, false, round);
}

static int logaddexp2(mpfr_t r, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round)
{
    return log_of_sum(r, x, y, mpfr_exp2, true, round);
}

static unary_function *const unary_functions[OP_COUNT] = {
    [OP_CBRT] = mpfr_cbrt,     [OP_EXP] = mpfr_exp,       [OP_EXP2] = mpfr_exp2,
    [OP_EXPM1] = mpfr_expm1,   [OP_LOG] = mpfr_log,       [OP_LOG2] = mpfr_log2,
    [OP_LOG10] = mpfr_log10,   [OP_LOG1P] = mpfr_log1p,   [OP_SIN] = mpfr_sin,
    [OP_COS] = mpfr_cos,       [OP_TAN] = mpfr_tan,       [OP_ARCSIN] = mpfr_asin,
    [OP_ARCCOS] = mpfr_acos,   [OP_ARCTAN] = mpfr_atan,   [OP_SINH] = mpfr_sinh,
    [OP_COSH] = mpfr_cosh,     [OP_TANH] = mpfr_tanh,     [OP_ARCSINH] = mpfr_asinh,
    [OP_ARCCOSH] = mpfr_acosh, [OP_ARCTANH] = mpfr_atanh, [OP_ERF] = mpfr_erf,
    [OP_ERFC] = mpfr_erfc,     [OP_GAMMA] = mpfr_gamma,   [OP_LGAMMA] = gammaln,
    [OP_EXPIT] = expit,        [OP_LOGIT] = logit,
};

static binary_function *const binary_functions[OP_COUNT] = {
    [OP_ARCTAN2] = mpfr_atan2,  [OP_HYPOT] = mpfr_hypot,      [OP_POWER] = mpfr_pow,
    [OP_LOGADDEXP] = logaddexp, [OP_LOGADDEXP2] = logaddexp2,
};

long double accuracy_mpfr(const struct accuracy_function *f, const double x[2])
{
    mpfr_t a, b, r;
    mpfr_inits2(BITS, a, b, r, (mpfr_ptr)NULL);
    mpfr_set_d(a, x[0], MPFR_RNDN);
    mpfr_set_d(b, x[1], MPFR_RNDN);
    if (f->n_args == 1)
        unary_functions[f->op](r, a, MPFR_RNDN);
    else
        binary_functions[f->op](r, a, b, MPFR_RNDN);
    long double result = mpfr_get_ld(r, MPFR_RNDN);
    mpfr_clears(a, b, r, (mpfr_ptr)NULL);
    return result;
}
