/* The remainder of two finite positive float64 whose ratio may be anything, exactly.
 *
 * With both mantissas as integers it is r * 2^n modulo the divisor's, n being the difference of the
 * exponents, up to 2098. A step of long division makes 64 bits of that; where n is large, 2^n
 * itself is made by squaring modulo the divisor, which takes as many divisions as n has digits: at
 * most 9, where long division would take 33. Every step is a whole number below 2^107 divided by
 * one below 2^53, with a quotient below 2^64: one division of the processor's.
 *
 * Included by kernels of all levels; `math.h` and `string.h` are there.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define MODULUS_STEP_BITS 64
#define MODULUS_MAX_STEPS 6 /* of long division */

struct modulus_parts {
    uint64_t mantissa; /* below 2^53 */
    int exponent;
};

static inline struct modulus_parts modulus_parts_of(double x)
{
    uint64_t bits, unit = UINT64_C(1) << 52;
    memcpy(&bits, &x, sizeof(bits));
    int exponent = (int)(bits >> 52);
    uint64_t fraction = bits & (unit - 1);
    return exponent ? (struct modulus_parts){fraction | unit, exponent}
                    : (struct modulus_parts){fraction, 1};
}

/* a modulo m, where the quotient has 64 bits at most: a compiler does not know that, and calls a
 * function that finds out. */
static inline uint64_t modulus_step(unsigned __int128 a, uint64_t m)
{
#if defined(__x86_64__)
    uint64_t quotient, rest;
    __asm__("divq %4"
            : "=a"(quotient), "=d"(rest)
            : "0"((uint64_t)a), "1"((uint64_t)(a >> 64)), "r"(m)
            : "cc");
    (void)quotient;
    return rest;
#else
    return (uint64_t)(a % m);
#endif
}

/* 2^n modulo m: n's highest digits at once, then digit by digit. */
static inline uint64_t modulus_of_power(int n, uint64_t m)
{
    int n_digits = 0;
    while (n >> n_digits >= MODULUS_STEP_BITS)
        n_digits++;
    uint64_t p = (UINT64_C(1) << (n >> n_digits)) % m;
    while (n_digits-- > 0)
        p = modulus_step((unsigned __int128)p * p << (n >> n_digits & 1), m);
    return p;
}

/* r * 2^(exponent - 1075), r below the mantissa of a number of that exponent: exact. */
static inline double modulus_scaled(uint64_t r, int exponent)
{
    uint64_t bits;
    double x;
    if (r == 0)
        return 0;
    int n_free = __builtin_clzll(r) - 11, n_up = n_free < exponent - 1 ? n_free : exponent - 1;
    r <<= n_up;
    bits = r + ((uint64_t)(exponent - n_up - 1) << 52);
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline double modulus_of(double x, double y)
{
    if (x < y)
        return x;
    struct modulus_parts a = modulus_parts_of(x), b = modulus_parts_of(y);
    uint64_t r = a.mantissa % b.mantissa;
    int n_left = a.exponent - b.exponent;
    if (n_left > MODULUS_MAX_STEPS * MODULUS_STEP_BITS) {
        uint64_t power = modulus_of_power(n_left, b.mantissa);
        r = modulus_step((unsigned __int128)r * power, b.mantissa);
        n_left = 0;
    }
    for (; n_left > 0 && r; n_left -= MODULUS_STEP_BITS) {
        int n_bits = n_left < MODULUS_STEP_BITS ? n_left : MODULUS_STEP_BITS;
        r = modulus_step((unsigned __int128)r << n_bits, b.mantissa);
    }
    return modulus_scaled(r, b.exponent);
}
