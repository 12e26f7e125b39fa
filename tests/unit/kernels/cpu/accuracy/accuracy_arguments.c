/* Arguments at which functions of mathematics are measured.
 *
 * Argument number i is a function of i alone (Vigna's splitmix64 of it), so that runs can be cut
 * into parts and repeated. Its remainder by eight says of which kind it is: numbers close to
 * special points, any bits at all, uniform in the function's own ranges (half of all), magnitudes
 * uniform in their exponents, and whole and half numbers or multiples of pi/2 and their neighbours.
 * Pairs have kinds of their own: results of pow near over- and underflow, ratios near 1, sums of
 * exponentials near 1.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy.h"

#include <math.h>
#include <string.h>

static uint64_t hash(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(uint64_t bits, double lo, double hi)
{
    return lo + (double)(bits >> 11) * 0x1p-53 * (hi - lo);
}

/* volatile: GCC 12 vectorises two conversions there and back to nothing. */
static double to_dtype(double value, enum dtype dtype)
{
    volatile float narrow = (float)value;
    return dtype == DTYPE_FLOAT32 ? (double)narrow : value;
}

/* `value` in the dtype, moved by n_steps representable numbers. */
static double step(double value, enum dtype dtype, int n_steps)
{
    if (dtype == DTYPE_FLOAT32) {
        float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof(bits));
        bits += (uint32_t)n_steps;
        memcpy(&narrow, &bits, sizeof(bits));
        return (double)narrow;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits += (uint64_t)(int64_t)n_steps;
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

static double special(uint64_t bits, enum dtype dtype)
{
    static const double points[] = {
        0,
        0x1p-149,
        0x1p-148,
        0x1p-126,
        0x1p-1074,
        0x1p-1022,
        1,
        2,
        0.5,
        0.25,
        0.75,
        3,
        1.5,
        INFINITY,
        NAN,
        0x1p127,
        0x1p1023,
        0x1p24,
        0x1p53,
        0x1p31,
        0x1p63,
        88.722839,
        103.9721,
        709.782712893384,
        744.4400719,
        1024,
        1074,
        128,
        149,
        35.0401,
        171.6243,
        26.5432,
        27.2263,
        14.4,
        10.05,
        0.6931471805599453,
        710.4758,
        89.416,
        0x1p-27,
        0x1p-12,
        39800,
        1e5,
        1e15,
        1e22,
        0.3,
        0.65,
        1.4616321449683623,
        2.4570247382208006,
        2.7476826467274127,
        3.1435808883499798,
        3.9552942848585979,
        4.0393618397402090,
        0x1p-54,
    };
    double point = points[bits % (sizeof(points) / sizeof(points[0]))];
    int n_steps = (int)(bits >> 16 & 63) - 32;
    if (bits >> 22 & 1)
        point = -point;
    return bits >> 23 & 1 || point == 0 ? step(point, dtype, n_steps < 0 ? -n_steps : n_steps)
                                        : step(point, dtype, n_steps);
}

static double any_bits(uint64_t bits, enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT32) {
        float narrow;
        memcpy(&narrow, &bits, sizeof(narrow));
        return (double)narrow;
    }
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double any_magnitude(uint64_t bits)
{
    double value = exp2(uniform(hash(bits), -60, 14));
    return bits & 1 ? -value : value;
}

static double near_multiple(uint64_t bits, enum dtype dtype)
{
    double count = rint(exp2(uniform(bits, 0, bits & 1 ? 8 : 40)));
    double value = count * (bits & 2 ? 1.5707963267948966192 : 0.5);
    value = step(value, dtype, (int)(bits >> 4 & 7) - 3);
    return bits & 8 ? -value : value;
}

static double in_ranges(const struct accuracy_function *f, uint64_t bits)
{
    unsigned n = 1;
    while (n < ACCURACY_RANGES && (f->ranges[n].lo != 0 || f->ranges[n].hi != 0))
        n++;
    unsigned k = (unsigned)(bits % n);
    return uniform(hash(bits), f->ranges[k].lo, f->ranges[k].hi);
}

static double any_of(const struct accuracy_function *f, enum dtype dtype, unsigned kind,
                     uint64_t bits)
{
    switch (kind) {
    case 0: return special(bits, dtype);
    case 1: return any_bits(bits, dtype);
    case 2: return any_magnitude(bits);
    case 3: return near_multiple(bits, dtype);
    default: return in_ranges(f, bits);
    }
}

/* Pairs with a meaning: x any, and y so that the result is delicate. */
static double partner(const struct accuracy_function *f, enum dtype dtype, double x, uint64_t bits)
{
    bool is_f32 = dtype == DTYPE_FLOAT32;
    if (f->op == OP_POWER && x != 0 && fabs(x) != 1) {
        double exponent = is_f32 ? uniform(bits, -155, 130) : uniform(bits, -1080, 1030);
        return exponent / log2(fabs(x));
    }
    if (f->op == OP_LOGADDEXP) /* exp(x) + exp(y) near 1 */
        return x < 0 ? log(-expm1(x)) * uniform(bits, 0.999, 1.001) : x - uniform(bits, 0, 40);
    if (f->op == OP_LOGADDEXP2)
        return x < 0 ? log2(-expm1(x * 0.69314718)) * uniform(bits, 0.999, 1.001)
                     : x - uniform(bits, 0, 60);
    return ldexp(x, (int)(bits % 121) - 60) * uniform(hash(bits), 0.9, 1.1);
}

void accuracy_argument(const struct accuracy_function *f, enum dtype dtype, uint64_t i,
                       double ret_x[2])
{
    uint64_t bits = hash(i), more = hash(bits);
    unsigned kind = (unsigned)(i % ACCURACY_N_CLASSES);
    ret_x[0] = any_of(f, dtype, kind, bits);
    ret_x[1] = 0;
    if (f->n_args == 2) {
        if (f->op == OP_POWER && kind != 1 && more & 3)
            ret_x[0] = fabs(ret_x[0]);
        ret_x[0] = to_dtype(ret_x[0], dtype);
        ret_x[1] = kind >= 6 || more % 5 == 0 ? partner(f, dtype, ret_x[0], more)
                                              : any_of(f, dtype, kind, more);
    }
    for (int k = 0; k < 2; k++)
        ret_x[k] = isnan(ret_x[k]) ? NAN : to_dtype(ret_x[k], dtype); /* no signalling NaN */
}
