/* Pairs of float64 whose sum is a number of about 106 bits, and what gamma, lgamma and erfc need.
 *
 * A pair is hi + lo with |lo| at most half a unit of hi's last place. Sums are Knuth's TwoSum and
 * Dekker's FastTwoSum (the first operand is the larger), products take their error from fma(). No
 * operation may be fused or reordered by the compiler. Numbers are finite and far from overflow and
 * underflow: callers see to that.
 */
#pragma once

#include "kernels/cuda/device/math_bits.h"

struct pair {
    f64 hi, lo;
};

DEVICE struct pair pair_of(f64 hi, f64 lo)
{
    struct pair r;
    r.hi = hi;
    r.lo = lo;
    return r;
}

DEVICE struct pair fast_sum(f64 a, f64 b)
{
    f64 sum = a + b;
    return pair_of(sum, b - (sum - a));
}

DEVICE struct pair exact_sum(f64 a, f64 b)
{
    f64 sum = a + b, back = sum - a;
    return pair_of(sum, (a - (sum - back)) + (b - back));
}

DEVICE struct pair exact_product(f64 a, f64 b)
{
    f64 product = a * b;
    return pair_of(product, fma(a, b, -product));
}

DEVICE struct pair pair_add(struct pair a, struct pair b)
{
    struct pair sum = exact_sum(a.hi, b.hi), rest = exact_sum(a.lo, b.lo);
    sum = fast_sum(sum.hi, sum.lo + rest.hi);
    return fast_sum(sum.hi, sum.lo + rest.lo);
}

DEVICE struct pair pair_scaled(struct pair a, f64 factor)
{
    struct pair product = exact_product(a.hi, factor);
    return fast_sum(product.hi, fma(a.lo, factor, product.lo));
}

DEVICE struct pair pair_multiply(struct pair a, struct pair b)
{
    struct pair product = exact_product(a.hi, b.hi);
    return fast_sum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

DEVICE struct pair pair_divide(struct pair a, struct pair b)
{
    f64 q = a.hi / b.hi;
    f64 rest = fma(-q, b.hi, a.hi) + (a.lo - q * b.lo);
    return fast_sum(q, rest / b.hi);
}

#define PAIR_LN2_HI 0x1.62e42fefa39efp-1
#define PAIR_LN2_LO 0x1.abc9e3b39803fp-56

/* log(1 + f) = 2 artanh(s), s = f / (2 + f), for 1 + f from sqrt(1/2) to sqrt(2); |s| < 0.172. The
 * series is s + s^3 (1/3 + s^2 / 5 + ..), of which all but 1/3 are float64. */
DEVICE struct pair pair_log_of_mantissa(f64 f)
{
    struct pair s = pair_divide(pair_of(f, 0), exact_sum(2, f)), square = pair_multiply(s, s);
    f64 z = square.hi, sum = 1.0 / 27;
    sum = sum * z + 1.0 / 25;
    sum = sum * z + 1.0 / 23;
    sum = sum * z + 1.0 / 21;
    sum = sum * z + 1.0 / 19;
    sum = sum * z + 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = (sum * z + 1.0 / 5) * z;
    struct pair series = fast_sum(0x1.5555555555555p-2, sum);
    series.lo += 0x1.5555555555555p-56;
    series = pair_multiply(series, pair_multiply(square, s));
    series = pair_add(s, series);
    return pair_of(2 * series.hi, 2 * series.lo);
}

/* Of a normal number above 0, within 2^-66 of its exponent's share. */
DEVICE struct pair pair_log(f64 x)
{
    i64 exponent;
    f64 mantissa = mantissa_of_f64(x, &exponent);
    if (mantissa < 0.70710678118654752440) {
        mantissa *= 2;
        exponent--;
    }
    struct pair ln2 = pair_of(PAIR_LN2_HI, PAIR_LN2_LO);
    return pair_add(pair_scaled(ln2, (f64)exponent), pair_log_of_mantissa(mantissa - 1));
}

/* exp(a) = result * 2^*ret_exponent, the result between 0.7 and 1.42, rounded once or nearly so. */
DEVICE f64 pair_exp(struct pair a, i64 *ret_exponent)
{
    f64 n = rint(a.hi * 1.44269504088896340736);
    struct pair whole = exact_product(n, PAIR_LN2_HI);
    struct pair r = exact_sum(a.hi - whole.hi, a.lo - (whole.lo + n * PAIR_LN2_LO));
    f64 x = r.hi, sum = 1.0 / 1307674368000;
    sum = sum * x + 1.0 / 87178291200;
    sum = sum * x + 1.0 / 6227020800;
    sum = sum * x + 1.0 / 479001600;
    sum = sum * x + 1.0 / 39916800;
    sum = sum * x + 1.0 / 3628800;
    sum = sum * x + 1.0 / 362880;
    sum = sum * x + 1.0 / 40320;
    sum = sum * x + 1.0 / 5040;
    sum = sum * x + 1.0 / 720;
    sum = sum * x + 1.0 / 120;
    sum = sum * x + 1.0 / 24;
    sum = sum * x + 1.0 / 6;
    sum = (sum * x + 0.5) * (x * x) + (r.lo + r.lo * x);
    struct pair result = fast_sum(1, x);
    *ret_exponent = (i64)n;
    return result.hi + (result.lo + sum);
}
