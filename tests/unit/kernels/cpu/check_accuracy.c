/* The functions exp, log, sin, cos, tanh and sqrt at every level: within 4 ulp of exact over random
 * arguments of all sizes, special values exactly as libm's. The exact value is long double's. */
#include "tests/unit/kernels/cpu/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ULP 4.0L

struct function {
    enum op op;
    long double (*exact)(long double);
    double (*libm)(double);
    float (*libm_f32)(float);
};

static const struct function functions[] = {
    {OP_EXP, expl, exp, expf}, {OP_LOG, logl, log, logf},     {OP_SIN, sinl, sin, sinf},
    {OP_COS, cosl, cos, cosf}, {OP_TANH, tanhl, tanh, tanhf}, {OP_SQRT, sqrtl, sqrt, sqrtf},
};

static double argument(size_t i, enum dtype dtype)
{
    uint64_t bits = check_random();
    double unit = (double)(bits >> 11) * 0x1p-53 * 2 - 1;
    if (i % 8 == 0) {
        double special;
        check_fill(&special, DTYPE_FLOAT64, 1, false);
        return special;
    }
    switch (i % 8) {
    case 1: return unit;
    case 2: return unit * 100;
    case 3: return unit * 800;
    case 4: return (double)(int64_t)(bits % 2000000) * 1.57079632679489661923;
    case 5: return 1 + unit * 0x1p-8;
    default:
        if (dtype == DTYPE_FLOAT32) {
            uint32_t narrow = (uint32_t)bits;
            float value;
            memcpy(&value, &narrow, sizeof(value));
            return (double)value;
        }
        memcpy(&unit, &bits, sizeof(unit));
        return unit;
    }
}

/* Distance in units of the exact value's last place; NaN, infinities and zeros must agree. */
static long double distance(long double exact, double libm, double got, enum dtype dtype)
{
    bool is_f32 = dtype == DTYPE_FLOAT32;
    if (isnan(libm) || isnan(got))
        return isnan(libm) && isnan(got) ? 0 : INFINITY;
    if (isinf(libm) || isinf(got))
        return libm == got ? 0 : INFINITY;
    if (libm == 0 && got == 0)
        return signbit(libm) == signbit(got) ? 0 : INFINITY;
    double size = fabs(libm);
    long double ulp = is_f32 ? (long double)nextafterf((float)size, INFINITY) - (long double)size
                             : (long double)nextafter(size, INFINITY) - (long double)size;
    return fabsl((long double)got - exact) / ulp;
}

struct sample { /* one argument, and what is right for it */
    double x, libm;
    long double exact;
};

static void draw_samples(const struct function *f, enum dtype dtype, size_t n,
                         struct sample *ret_samples, void *ret_x)
{
    for (size_t i = 0; i < n; i++) {
        struct sample *s = &ret_samples[i];
        s->x = argument(i, dtype);
        if (dtype == DTYPE_FLOAT32) {
            float x = (float)s->x;
            ((float *)ret_x)[i] = x;
            s->x = (double)x;
            s->libm = (double)f->libm_f32(x);
        } else {
            ((double *)ret_x)[i] = s->x;
            s->libm = f->libm(s->x);
        }
        s->exact = f->exact((long double)s->x);
    }
}

static void check_level(struct check *c, const struct function *f, enum dtype dtype,
                        enum cpu_level level, size_t n, const struct sample *samples, const void *x,
                        void *y)
{
    static struct built b;
    struct check_case k = {
        .op = f->op, .compute = dtype, .result = dtype, .src = {dtype}, .n_src = 1};
    check_build(&b, &k);
    struct cpu_warnings warnings;
    int r =
        run_flat(cpu_engine_get(level), &b, n, (const void *[]){x}, (void *[]){y}, NULL, &warnings);
    long double worst = 0;
    size_t worst_i = 0;
    for (size_t i = 0; i < n; i++) {
        double got = dtype == DTYPE_FLOAT32 ? (double)((float *)y)[i] : ((double *)y)[i];
        long double d = distance(samples[i].exact, samples[i].libm, got, dtype);
        if (d > worst) {
            worst = d;
            worst_i = i;
        }
    }
    c->n_run++;
    if (r || worst > MAX_ULP) {
        c->n_failed++;
        printf("FAILED %s %s, level %s: %.2Lf ulp at %a, libm gives %a\n", op_info(f->op)->name,
               dtype_name(dtype), cpu_level_name(level), worst, samples[worst_i].x,
               samples[worst_i].libm);
    } else if (c->filter) {
        printf("%s %s, level %s: at most %.2Lf ulp\n", op_info(f->op)->name, dtype_name(dtype),
               cpu_level_name(level), worst);
    }
}

static void check_function(struct check *c, const struct function *f, enum dtype dtype, size_t n)
{
    struct sample *samples = malloc(n * sizeof(*samples));
    void *x = malloc(n * sizeof(double)), *y = malloc(n * sizeof(double));
    if (!samples || !x || !y)
        exit(2);
    draw_samples(f, dtype, n, samples, x);
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
        if (cpu_engine_level(cpu_engine_get((enum cpu_level)level)) == (enum cpu_level)level)
            check_level(c, f, dtype, (enum cpu_level)level, n, samples, x, y);
    free(samples);
    free(x);
    free(y);
}

void check_accuracy(struct check *c)
{
    size_t n = (size_t)c->n_trials * 20000;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (c->filter && !strstr(op_info(functions[i].op)->name, c->filter))
            continue;
        check_function(c, &functions[i], DTYPE_FLOAT32, n);
        check_function(c, &functions[i], DTYPE_FLOAT64, n);
    }
}
