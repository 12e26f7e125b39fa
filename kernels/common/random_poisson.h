/* Poisson numbers, for both engines: the common subset of C11 and CUDA C++.
 *
 * Means below RANDOM_POISSON_LARGE by inversion: the smallest k whose cumulative probability,
 * summed from 0 on, is above u. Others by transformed rejection, PTRS of Hoermann: The transformed
 * rejection method for generating Poisson random variables, Insurance: Mathematics and Economics
 * 12, 1993; its test compares with the logarithm of the probability after Loader: Fast and accurate
 * computation of binomial probabilities, 2000, which loses no digits for large means. Each try
 * takes a block of its own of the element, with the try's number in the counter's last word.
 *
 * A try is accepted with a probability above 0.7. After RANDOM_POISSON_TRIES, one element in 10^30,
 * the number is the mean without its fraction. Above 2^53 not every integer is reached. The mean 0
 * gives 0; one that is NaN, negative or above 2^62 gives the least int64 (the callers count it as
 * an invalid cast).
 *
 * Bits: see kernels/common/random_math.h.
 */
#pragma once

#include "kernels/common/random_math.h"

#define RANDOM_POISSON_STREAM  6u /* RANDOM_STREAM_POISSON */
#define RANDOM_POISSON_LARGE   10.0
#define RANDOM_POISSON_LARGEST 0x1p62
#define RANDOM_POISSON_TRIES   64u
#define RANDOM_POISSON_STEPS   128 /* of an inversion: far beyond where probabilities vanish */

RANDOM_INLINE bool random_is_mean(f64 mean)
{
    return mean >= 0.0 && mean <= RANDOM_POISSON_LARGEST;
}

/* Between 0 and 1, neither of them. */
RANDOM_INLINE f64 random_between(u64 bits)
{
    return random_uniform_f64(bits) + 0x1p-54;
}

RANDOM_INLINE f64 random_log(f64 a)
{
    return random_log_f64(random_split_f64(a));
}

/* exp(-a), a from 0 to 700: n whole, r in [-ln(2) / 2, ln(2) / 2], by its Taylor series. */
RANDOM_INLINE f64 random_exp_down(f64 a)
{
    i64 n = (i64)(a * 1.44269504088896340736 + 0.5);
    f64 r = (f64)n * 0x1.62e42feep-1 - a + (f64)n * 0x1.a39ef35793c76p-33, sum = 1.0;
    for (i64 k = 15; k > 0; k--)
        sum = sum * r / (f64)k + 1.0;
    return sum * random_from_bits_f64((u64)(1023 - n) << 52);
}

/* zero: the probability of 0, exp(-mean). */
RANDOM_INLINE i64 random_poisson_small(f64 mean, f64 zero, f64 u)
{
    f64 probability = zero, sum = zero;
    i64 k = 0;
    while (u >= sum && k < RANDOM_POISSON_STEPS) {
        k++;
        probability *= mean / (f64)k;
        sum += probability;
    }
    return k;
}

/* x log(x / mean) + mean - x, x > 0. */
RANDOM_INLINE f64 random_deviance(f64 x, f64 mean)
{
    f64 difference = x - mean, v = difference / (x + mean);
    if (v > 0.1 || v < -0.1)
        return x * random_log(x / mean) - difference;
    f64 sum = difference * v, term = 2.0 * x * v;
    v *= v;
    for (i64 k = 3; k < 23; k += 2) { /* v^2 is below 0.01 */
        term *= v;
        sum += term / (f64)k;
    }
    return sum;
}

/* log(k!) less Stirling's formula, (k + 1/2) log(k) - k + log(2 pi) / 2, for k from 10 on. */
RANDOM_INLINE f64 random_stirling_rest(f64 k)
{
    f64 z = 1.0 / (k * k);
    return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188))))) /
           k;
}

RANDOM_INLINE f64 random_poisson_log_probability(f64 k, f64 mean, f64 log_mean)
{
    if (k < 10) {
        f64 factorial = 1.0;
        for (i64 i = 2; i <= (i64)k; i++)
            factorial *= (f64)i;
        return k * log_mean - mean - random_log(factorial);
    }
    return 0.0 - random_stirling_rest(k) - random_deviance(k, mean) -
           0.5 * random_log(6.28318530717958647693 * k);
}

/* What PTRS derives from the mean. */
struct random_ptrs {
    f64 mean, log_mean, a, b, inverse_alpha, v_r;
};

RANDOM_INLINE struct random_ptrs random_ptrs_of(f64 mean)
{
    struct random_ptrs s;
    s.mean = mean;
    s.log_mean = random_log(mean);
    s.b = 0.931 + 2.53 * RANDOM_SQRT_f64(mean);
    s.a = -0.059 + 0.02483 * s.b;
    s.inverse_alpha = 1.1239 + 1.1328 / (s.b - 3.4);
    s.v_r = 0.9277 - 3.6224 / (s.b - 2.0);
    return s;
}

/* One try: whether *ret_k is to be taken. */
RANDOM_INLINE bool random_ptrs_try(const struct random_ptrs *s, f64 u, f64 v, i64 *ret_k)
{
    u -= 0.5;
    f64 distance = 0.5 - (u < 0.0 ? -u : u);
    f64 place = (2.0 * s->a / distance + s->b) * u + s->mean + 0.43;
    if (!(place >= 0.0 && place < 0x1p63))
        return false;
    *ret_k = (i64)place;
    if (distance >= 0.07 && v <= s->v_r)
        return true;
    if (distance < 0.013 && v > distance)
        return false;
    f64 height = v * s->inverse_alpha / (s->a / (distance * distance) + s->b);
    return random_log(height) <= random_poisson_log_probability((f64)*ret_k, s->mean, s->log_mean);
}

/* The element's number from its first try's block on. Of a large mean. */
RANDOM_INLINE i64 random_poisson_large(const struct random_ptrs *s, struct philox_block block,
                                       u64 index, u64 seed)
{
    i64 k = 0;
    for (u32 attempt = 1;; attempt++) {
        f64 u = random_between(philox_u64(&block, 0)), v = random_between(philox_u64(&block, 1));
        if (random_ptrs_try(s, u, v, &k))
            return k;
        if (attempt == RANDOM_POISSON_TRIES)
            return (i64)s->mean;
        block = philox(seed, index, RANDOM_POISSON_STREAM, attempt);
    }
}

RANDOM_INLINE i64 random_poisson(u64 index, u64 seed, f64 mean)
{
    if (!random_is_mean(mean))
        return (i64)((u64)1 << 63);
    struct philox_block block = philox(seed, index, RANDOM_POISSON_STREAM, 0);
    if (mean < RANDOM_POISSON_LARGE)
        return random_poisson_small(mean, random_exp_down(mean),
                                    random_between(philox_u64(&block, 0)));
    struct random_ptrs s = random_ptrs_of(mean);
    return random_poisson_large(&s, block, index, seed);
}
