/* Random arrays biased towards what goes wrong, and comparisons of single elements.
 *
 * Zeros of both signs, extremes, NaN, infinities, denormals, small numbers, ties, integers of all
 * widths, pairs whose quotient is nearly whole, bools that are neither 0 nor 1. Random numbers
 * begin anew for each case and level of the runner, from its seed and the case's name.
 */
#include "tests/unit/kernels/cpu/check/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15u;

void check_restart(const struct check *c, const char *name, int level)
{
    state = (c->seed + (uint64_t)level) * 0x9e3779b97f4a7c15u + 0xcbf29ce484222325u;
    for (; *name; name++)
        state = (state ^ (uint64_t)(unsigned char)*name) * 0x100000001b3u;
    state |= 1;
    for (int i = 0; i < 8; i++)
        check_random();
}

uint64_t check_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

uint64_t check_below(uint64_t n)
{
    return (check_random() >> 16) % n;
}

static const double special_floats[] = {
    0.0,      -0.0,      1.0,        -1.0,     0.5,     -0.5,       2.0,      NAN,
    INFINITY, -INFINITY, DBL_MAX,    -DBL_MAX, DBL_MIN, -DBL_MIN,   5e-324,   -5e-324,
    FLT_MAX,  -FLT_MAX,  FLT_MIN,    1e-45,    0x1p31,  -0x1p31,    0x1p32,   0x1p63,
    -0x1p63,  0x1p64,    127.5,      -128.9,   255.99,  65536.0,    -32769.0, 2147483647.5,
    -0.99,    3.0,       -3.0,       10.0,     709.9,   -745.5,     88.8,     -104.0,
    1e22,     -1e22,     3.14159265, 0x1p53,   0x1p52,  4294967295, 9.2e18,   -9.3e18,
    2.5,      -1.5,      0x1p23,     0x1p24,   -NAN,    8388607.5,  0x1p-126, 4503599627370495.5,
};

static double float_of_bits(uint64_t bits, enum dtype dtype)
{
    double wide;
    if (dtype == DTYPE_FLOAT32) {
        float narrow;
        uint32_t narrow_bits = (uint32_t)(bits >> 32);
        memcpy(&narrow, &narrow_bits, sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&wide, &bits, sizeof(wide));
    return wide;
}

static double random_float(enum dtype dtype, bool is_moderate)
{
    uint64_t bits = check_random();
    if (is_moderate)
        return ((double)(bits >> 11) * 0x1p-53 - 0.5) * 2000;
    switch (check_below(8)) {
    case 0: return special_floats[check_below(sizeof(special_floats) / sizeof(double))];
    case 1: return float_of_bits(bits, dtype);
    case 2: return (double)(int64_t)(bits % 41) - 20;
    case 3: return ldexp((double)(int64_t)bits, -(int)check_below(120));
    case 4: /* denormals and the smallest normal numbers */
        return float_of_bits((bits & ~((uint64_t)0x7fe << 52)) >> (bits & 16 ? 0 : 1), dtype);
    case 5: return ((double)(int64_t)(bits % 4001) - 2000) / 2;
    default: return ((double)(bits >> 11) * 0x1p-53 - 0.5) * 200;
    }
}

static uint64_t random_integer(bool is_moderate)
{
    uint64_t bits = check_random();
    if (is_moderate)
        return bits % 100;
    switch (check_below(7)) {
    case 0: return 0;
    case 1: return (uint64_t)1 << check_below(64);
    case 2: return ((uint64_t)1 << check_below(64)) - 1;
    case 3: return ~(((uint64_t)1 << check_below(64)) - 1);
    case 4: return bits % 41 - 20;
    case 5: return bits >> check_below(64);
    default: return bits;
    }
}

static void fill_one(void *p, enum dtype dtype, size_t i, bool is_moderate)
{
    if (dtype == DTYPE_FLOAT64) {
        ((double *)p)[i] = random_float(dtype, is_moderate);
    } else if (dtype == DTYPE_FLOAT32) {
        ((float *)p)[i] = (float)random_float(dtype, is_moderate);
    } else {
        uint64_t whole = random_integer(is_moderate);
        if (dtype == DTYPE_BOOL)
            whole = whole & 3 ? whole & 1 : whole;
        memcpy((char *)p + i * dtype_size(dtype), &whole, dtype_size(dtype));
    }
}

void check_fill(void *p, enum dtype dtype, size_t n, bool is_moderate)
{
    for (size_t i = 0; i < n; i++)
        fill_one(p, dtype, i, is_moderate);
}

static double step(double x, enum dtype dtype, int n)
{
    double to = n < 0 ? -INFINITY : INFINITY;
    for (; n; n += n < 0 ? 1 : -1)
        x = dtype == DTYPE_FLOAT32 ? (double)nextafterf((float)x, (float)to) : nextafter(x, to);
    return x;
}

/* x = q y or (q + 1/2) y, or a few floats beside that, q of up to 64 bits, any exponent of y. */
static void relate_floats(void *x, void *y, enum dtype dtype, size_t i)
{
    bool is_f32 = dtype == DTYPE_FLOAT32;
    double q = (double)(check_random() >> check_below(64));
    double b = (double)(check_random() >> (is_f32 ? 40 : 11) >> check_below(24));
    b = ldexp(b, is_f32 ? (int)check_below(270) - 160 : (int)check_below(2080) - 1100);
    double a = (q + (check_below(2) ? 0.5 : 0)) * b;
    if (is_f32)
        a = (double)(float)a;
    a = step(a, dtype, (int)check_below(5) - 2);
    a = check_below(2) ? -a : a;
    b = check_below(2) ? -b : b;
    if (is_f32) {
        ((float *)x)[i] = (float)a;
        ((float *)y)[i] = (float)b;
    } else {
        ((double *)x)[i] = a;
        ((double *)y)[i] = b;
    }
}

static void relate_integers(void *x, void *y, enum dtype dtype, size_t i)
{
    size_t n_bytes = dtype_size(dtype);
    uint64_t b = check_random() >> check_below(64), q = check_random() >> check_below(64);
    uint64_t a = b * q + check_below(3) - 1;
    if (check_below(2))
        b = 0 - b;
    memcpy((char *)x + i * n_bytes, &a, n_bytes);
    memcpy((char *)y + i * n_bytes, &b, n_bytes);
}

/* All of them at most so wide: kernels may choose another way for a block of such. */
static void narrow_integers(void *p, enum dtype dtype, size_t n, unsigned n_bits)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == DTYPE_INT64)
            ((int64_t *)p)[i] >>= 64 - n_bits;
        else
            ((uint64_t *)p)[i] >>= 64 - n_bits;
    }
}

static void make_exponents(void *p, enum dtype dtype, size_t n)
{
    size_t n_bytes = dtype_size(dtype);
    for (size_t i = 0; i < n; i++)
        ((char *)p)[(i + 1) * n_bytes - 1] &= 0x7f;
}

static void make_powers(void *p, enum dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t power = (int64_t)check_below(4400) - 2200;
        if (check_below(4))
            memcpy((char *)p + i * dtype_size(dtype), &power, dtype_size(dtype));
    }
}

static void relate(void *x, void *y, enum dtype dtype, size_t n)
{
    for (size_t i = 0; i < n && dtype != DTYPE_BOOL; i++) {
        if (check_below(3))
            continue;
        if (dtype_is_float(dtype))
            relate_floats(x, y, dtype, i);
        else
            relate_integers(x, y, dtype, i);
    }
    if ((dtype == DTYPE_INT64 || dtype == DTYPE_UINT64) && check_below(2)) {
        unsigned n_bits = 40 + (unsigned)check_below(25);
        narrow_integers(x, dtype, n, n_bits);
        narrow_integers(y, dtype, n, n_bits);
    }
}

void check_fill_sources(const struct check_case *k, void *const *src, size_t n, bool is_moderate)
{
    for (unsigned j = 0; j < k->n_src; j++) {
        check_fill(src[j], k->src[j], n, is_moderate);
        for (size_t i = 0; k->src[j] == DTYPE_BOOL && i < n; i++)
            ((uint8_t *)src[j])[i] = ((uint8_t *)src[j])[i] != 0;
    }
    if (k->op == OP_LDEXP)
        make_powers(src[1], k->src[1], n);
    else if (k->op == OP_POWER && dtype_is_signed(k->compute) && check_below(8))
        make_exponents(src[1], k->src[1], n);
    else if (k->n_src == 2 && !is_moderate && k->src[0] == k->src[1])
        relate(src[0], src[1], k->compute, n);
}

static double as_double(const void *p, enum dtype dtype)
{
    double wide;
    float narrow;
    if (dtype == DTYPE_FLOAT32) {
        memcpy(&narrow, p, sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&wide, p, sizeof(wide));
    return wide;
}

bool check_same(const void *a, const void *b, enum dtype dtype)
{
    if (dtype_is_float(dtype) && isnan(as_double(a, dtype)) && isnan(as_double(b, dtype)))
        return true;
    return memcmp(a, b, dtype_size(dtype)) == 0;
}

/* Floats in order, as integers; both zeros are 0. */
static int64_t rank(const void *p, enum dtype dtype)
{
    int64_t bits = 0, magnitude;
    memcpy(&bits, p, dtype_size(dtype));
    if (dtype == DTYPE_FLOAT32)
        bits = (int64_t)((uint64_t)bits << 32) >> 32;
    magnitude = bits & (dtype == DTYPE_FLOAT32 ? INT32_MAX : INT64_MAX);
    return bits < 0 ? -magnitude : magnitude;
}

bool check_is_near(const void *a, const void *b, enum dtype dtype, uint64_t max_ulp)
{
    double x = as_double(a, dtype), y = as_double(b, dtype);
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y) || (x == 0 && y == 0))
        return check_same(a, b, dtype);
    int64_t distance = rank(a, dtype) - rank(b, dtype);
    return (uint64_t)(distance < 0 ? -distance : distance) <= max_ulp;
}

bool check_is_close(const struct check_case *k, const void *x, const void *y, const void *got,
                    const void *wanted)
{
    enum dtype dtype = k->result;
    if (check_is_near(got, wanted, dtype, CHECK_MAX_ULP))
        return true;
    if (k->op != OP_LOGADDEXP && k->op != OP_LOGADDEXP2)
        return false;
    double epsilon = dtype == DTYPE_FLOAT32 ? 0x1p-23 : 0x1p-52;
    double largest = fabs(fmax(as_double(x, dtype), as_double(y, dtype)));
    return fabs(as_double(got, dtype) - as_double(wanted, dtype)) <=
           CHECK_MAX_ULP * epsilon * largest;
}

void check_print(const char *what, const void *p, enum dtype dtype)
{
    uint64_t bits = 0;
    memcpy(&bits, p, dtype_size(dtype));
    if (dtype_is_float(dtype))
        printf("    %s %a (bits %#llx)\n", what, as_double(p, dtype), (unsigned long long)bits);
    else
        printf("    %s %#llx\n", what, (unsigned long long)bits);
}
