/* The entries of math_entries.c in a table. LDEXP takes integers as its second argument, and
 * FREXP_EXPONENT gives an int32: these two stand beside it. */
#include "tests/unit/kernels/cuda/math/math_catalogue.h"

#include "tests/unit/kernels/cuda/math/math_entries.h"

struct entry {
    float (*one_f32)(float);
    double (*one_f64)(double);
    float (*two_f32)(float, float);
    double (*two_f64)(double, double);
};

#define ONE(op, name) [OP_##op] = {.one_f32 = entry_##name##_f32, .one_f64 = entry_##name##_f64},
#define TWO(op, name) [OP_##op] = {.two_f32 = entry_##name##_f32, .two_f64 = entry_##name##_f64},
static const struct entry entries[OP_COUNT] = {
#include "tests/unit/kernels/cuda/math/math_list.def"
};

static void run_ldexp(enum dtype dtype, size_t n, void *dst, const void *a, const void *b)
{
    for (size_t i = 0; i < n; i++)
        if (dtype == DTYPE_FLOAT32)
            ((float *)dst)[i] = entry_ldexp_f32(((const float *)a)[i], ((const int32_t *)b)[i]);
        else
            ((double *)dst)[i] = entry_ldexp_f64(((const double *)a)[i], ((const int64_t *)b)[i]);
}

static void run_frexp_exponent(enum dtype dtype, size_t n, int32_t *dst, const void *a)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = dtype == DTYPE_FLOAT32 ? entry_frexp_exponent_f32(((const float *)a)[i])
                                        : entry_frexp_exponent_f64(((const double *)a)[i]);
}

static bool run_f32(const struct entry *entry, size_t n, float *dst, const float *a, const float *b)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = entry->one_f32 ? entry->one_f32(a[i]) : entry->two_f32(a[i], b[i]);
    return true;
}

static bool run_f64(const struct entry *entry, size_t n, double *dst, const double *a,
                    const double *b)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = entry->one_f64 ? entry->one_f64(a[i]) : entry->two_f64(a[i], b[i]);
    return true;
}

bool math_run(enum op op, enum dtype dtype, size_t n, void *dst, const void *a, const void *b)
{
    const struct entry *entry = &entries[op];
    if (dtype != DTYPE_FLOAT32 && dtype != DTYPE_FLOAT64)
        return false;
    if (op == OP_LDEXP)
        run_ldexp(dtype, n, dst, a, b);
    else if (op == OP_FREXP_EXPONENT)
        run_frexp_exponent(dtype, n, dst, a);
    else if (!entry->one_f32 && !entry->two_f32)
        return false;
    else if (dtype == DTYPE_FLOAT32)
        return run_f32(entry, n, dst, a, b);
    else
        return run_f64(entry, n, dst, a, b);
    return true;
}
