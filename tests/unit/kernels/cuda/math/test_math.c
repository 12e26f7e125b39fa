/* The device's functions of mathematics, compiled for the host, against the CPU engine.
 *
 * Every instruction that computes with floats has one, but comparisons, predicates, selections and
 * casts, which are the interpreter's. Exact ones give the CPU engine's bits (any NaN for any NaN)
 * over awkward arrays: zeros of both signs, NaN, infinities, denormals, halves, quotients that are
 * nearly whole, any bits. The others are within 4 ulp of long double, and right at zeros,
 * infinities and NaN, over the arguments that the CPU engine is measured with; where the device has
 * CUDA's function, that is libm's here.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy.h"
#include "tests/unit/kernels/cuda/math/math_catalogue.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N           (64 * KERNEL_GRANULE)
#define N_TRIALS    8
#define N_ARGUMENTS 40000

static char sources[3][N * 8], wanted[N * 8], got[N * 8];
static unsigned n_compared;

static bool is_the_interpreters(const struct check_case *k)
{
    return op_info(k->op)->rule == OP_RULE_COMPARE || op_info(k->op)->rule == OP_RULE_PREDICATE ||
           k->op == OP_WHERE || k->op == OP_CAST;
}

static void compare(struct check *c, const struct check_case *k)
{
    void *src[3] = {sources[0], sources[1], sources[2]};
    bool is_exchanged;
    kernel_fn *kernel = check_kernel(k, CPU_LEVEL_PLAIN, &is_exchanged);
    check_restart(c, k->name, 0);
    for (int trial = 0; trial < N_TRIALS; trial++) {
        struct kernel_events events = {0};
        check_fill_sources(k, src, N, trial == 0);
        kernel(N, wanted, sources[0], sources[1], sources[2], &events);
        cr_assert(math_run(k->op, k->compute, N, got, sources[0], sources[1]), "%s", k->name);
        size_t size = dtype_size(k->result), src_size = dtype_size(k->compute);
        for (size_t i = 0; i < N; i++) {
            const char *w = wanted + i * size, *g = got + i * size;
            if (check_same(g, w, k->result))
                continue;
            check_print("a", sources[0] + i * src_size, k->src[0]);
            check_print("b", sources[1] + i * dtype_size(k->src[1]), k->src[1]);
            check_print("got", g, k->result);
            check_print("wanted", w, k->result);
            cr_assert(false, "%s: element %zu", k->name, i);
        }
    }
    n_compared++;
}

static void compare_exact(struct check *c, const struct check_case *k)
{
    bool is_float = k->compute == DTYPE_FLOAT32 || k->compute == DTYPE_FLOAT64;
    if (is_float && k->is_exact && !is_the_interpreters(k))
        compare(c, k);
}

Test(math, exact_functions_give_the_bits_of_the_cpu_engine)
{
    struct check c = {.seed = 1};
    check_each_case(&c, compare_exact);
    cr_assert(eq(u64, c.n_failed, 0));
    cr_assert(eq(u32, n_compared, 2 * 28)); /* two dtypes */
}

static uint64_t next_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double of_exponent(uint64_t exponent, uint64_t mantissa)
{
    uint64_t bits = exponent << 52 | mantissa >> 12;
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void compare_remainder(double a, double b)
{
    double result, exact = fmod(a, b);
    math_run(OP_FMOD, DTYPE_FLOAT64, 1, &result, &a, &b);
    cr_assert(check_same(&result, &exact, DTYPE_FLOAT64), "%a, %a: %a", a, b, result);
}

static void compare_narrow_remainder(float a, float b)
{
    float result, exact = fmodf(a, b);
    math_run(OP_FMOD, DTYPE_FLOAT32, 1, &result, &a, &b);
    cr_assert(check_same(&result, &exact, DTYPE_FLOAT32), "%a, %a: %a", (double)a, (double)b,
              (double)result);
}

/* Mantissas of any bits, of nearly all, of one. */
Test(math, remainders_of_ratios_of_any_size_are_exact)
{
    uint64_t state = UINT64_C(88172645463325252);
    for (uint64_t i = 0; i < 2047; i += 3)
        for (uint64_t k = 0; k < 2047; k += 1 + i % 5) {
            uint64_t any = next_bits(&state);
            uint64_t mantissa = k % 3 == 0 ? any : k % 3 == 1 ? UINT64_MAX - any % 65536 : 1 << 12;
            double a = of_exponent(i, next_bits(&state)), b = of_exponent(k, mantissa);
            compare_remainder(a, b);
            compare_narrow_remainder((float)of_exponent(870 + i / 6, any),
                                     (float)of_exponent(870 + k / 6, mantissa));
        }
    compare_remainder(0x1.fffffffffffffp1023, 0x1p-1074);
    compare_narrow_remainder(0x1.fffffep127f, 0x1p-149f);
}

static void measure(const struct accuracy_function *f, enum dtype dtype, struct accuracy_worst *w)
{
    for (uint64_t i = 0; i < N_ARGUMENTS; i++) {
        double x[2], result;
        float narrow[2], narrow_result;
        accuracy_argument(f, dtype, i, x);
        if (dtype == DTYPE_FLOAT32) {
            narrow[0] = (float)x[0];
            narrow[1] = (float)x[1];
            cr_assert(math_run(f->op, dtype, 1, &narrow_result, &narrow[0], &narrow[1]));
            result = (double)narrow_result;
        } else {
            cr_assert(math_run(f->op, dtype, 1, &result, &x[0], &x[1]));
        }
        double error = accuracy_error(f, dtype, x, accuracy_exact(f, x), result);
        if (!(error <= w->error))
            *w = (struct accuracy_worst){
                .is_there = true, .error = error, .x = {x[0], x[1]}, .got = result};
    }
}

Test(math, functions_are_within_4_ulp_of_exact)
{
    for (unsigned i = 0; i < accuracy_n_functions; i++) {
        for (int k = 0; k < 2; k++) {
            const struct accuracy_function *f = &accuracy_functions[i];
            enum dtype dtype = k ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
            struct accuracy_worst worst = {0};
            measure(f, dtype, &worst);
            cr_expect(worst.error <= ACCURACY_MAX_ULP, "%s %s: %g ulp at %a, %a: %a",
                      op_info(f->op)->name, dtype_name(dtype), worst.error, worst.x[0], worst.x[1],
                      worst.got);
        }
    }
}

/* The float64 on both sides of each zero between two poles, where digits would be lost. */
Test(math, lgamma_keeps_its_digits_next_to_its_zeros)
{
    static const double zeros[] = {
        -2.4570247382208006, -2.7476826467274127, -3.1435808883499801, -3.9552942848585979,
        -4.0393618397405369, -4.9915444156485905, -5.0082181683234655, -5.9986074804487650,
        -6.0013852941533399, -6.9998008366430560, -7.0001983326494040, -7.9999751927095560,
        -8.0000248002712680,
    };
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++) {
        double x = zeros[i] * (1 + 0x1p-40);
        for (int k = 0; k < 40000; k++) {
            double result;
            int sign;
            x = nextafter(x, 0);
            math_run(OP_LGAMMA, DTYPE_FLOAT64, 1, &result, &x, NULL);
            long double exact = lgammal_r((long double)x, &sign);
            double error = fabs((double)((result - exact) / exact));
            cr_assert(error < 4 * 0x1p-52, "%a: %a, %La", x, result, exact);
        }
    }
}
