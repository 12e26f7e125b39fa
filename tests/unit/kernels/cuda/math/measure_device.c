/* Measures the device's functions of mathematics without a device.
 *
 *     measure-device [--arguments N] [FILTER]
 *
 * Linked with the C that ptx_to_c.py made of nvcc's PTX: the code that a device runs, CUDA's own
 * functions in it, executed by this processor; ptx_model.h says what is exact in that and what is
 * a model. Exact functions must give the CPU engine's bits at N awkward arguments, the others are
 * measured at the N arguments of kernels/ACCURACY.md, with both models of the approximations; MPFR
 * confirms the worst. Prints the table of kernels/cuda/ACCURACY.md; ends with 1 where something is
 * beyond 4 ulp or differs. tests/accuracy_device.sh runs it.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy_mpfr.h"
#include "tests/unit/kernels/cuda/math/math_catalogue.h"

#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_THREADS  2
#define PART       (1024 * 64)
#define N_ELEMENTS (64 * KERNEL_GRANULE)
#define MOST_APART 0.01 /* ulp between MPFR and long double */

extern _Thread_local bool ptx_model_is_rough, ptx_is_of_new;

#define N_MODELS 2

struct worst {
    double error, x[2], got;
};

struct measurement {
    const struct accuracy_function *function;
    enum dtype dtype;
    uint64_t n, next; /* under the mutex */
    pthread_mutex_t mutex;
    struct worst worst[N_MODELS]; /* of both devices */
};

static uint64_t n_arguments = 1000 * 1000;
static const char *filter;

static double result_of(const struct accuracy_function *f, enum dtype dtype, const double x[2])
{
    double result;
    if (dtype == DTYPE_FLOAT32) {
        float narrow[2] = {(float)x[0], (float)x[1]}, narrow_result = NAN;
        math_run(f->op, dtype, 1, &narrow_result, &narrow[0], &narrow[1]);
        return (double)narrow_result;
    }
    math_run(f->op, dtype, 1, &result, &x[0], &x[1]);
    return result;
}

static void measure_argument(const struct measurement *m, uint64_t i, struct worst worst[N_MODELS])
{
    double x[2];
    accuracy_argument(m->function, m->dtype, i, x);
    long double exact = accuracy_exact(m->function, x);
    for (int k = 0; k < 2 * N_MODELS; k++) {
        struct worst *w = &worst[k % N_MODELS];
        ptx_model_is_rough = k % N_MODELS;
        ptx_is_of_new = k / N_MODELS;
        double got = result_of(m->function, m->dtype, x);
        double error = accuracy_error(m->function, m->dtype, x, exact, got);
        if (error > w->error)
            *w = (struct worst){error, {x[0], x[1]}, got};
    }
}

static void *measure_parts(void *argument)
{
    struct measurement *m = argument;
    struct worst worst[N_MODELS] = {0};
    for (;;) {
        pthread_mutex_lock(&m->mutex);
        uint64_t first = m->next;
        m->next += PART;
        for (int k = 0; k < N_MODELS; k++)
            if (worst[k].error > m->worst[k].error)
                m->worst[k] = worst[k];
        pthread_mutex_unlock(&m->mutex);
        if (first >= m->n)
            return NULL;
        for (uint64_t i = first; i < m->n && i < first + PART; i++)
            measure_argument(m, i, worst);
    }
}

static void measure(struct measurement *m)
{
    pthread_t threads[N_THREADS];
    pthread_mutex_init(&m->mutex, NULL);
    for (int i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, measure_parts, m))
            exit(2);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&m->mutex);
}

/* What a device runs. */
static const char *source_of(enum op op, enum dtype dtype)
{
    switch (op) {
    case OP_GAMMA:
    case OP_LGAMMA: return dtype == DTYPE_FLOAT32 ? "own, float64" : "own";
    case OP_EXP:
    case OP_EXP2:
    case OP_SINH:
    case OP_COSH: return dtype == DTYPE_FLOAT32 ? "own" : "CUDA";
    case OP_TAN: return dtype == DTYPE_FLOAT32 ? "own, of CUDA's sin and cos" : "CUDA";
    case OP_ARCTANH: return dtype == DTYPE_FLOAT32 ? "own, of CUDA's log1p" : "CUDA";
    case OP_ERFC: return dtype == DTYPE_FLOAT32 ? "own, float64" : "own, of CUDA's erf";
    case OP_EXPIT: return dtype == DTYPE_FLOAT32 ? "own" : "own, of CUDA's exp";
    case OP_LOGIT: return "own, of CUDA's log1p";
    case OP_LOGADDEXP: return dtype == DTYPE_FLOAT32 ? "own, of CUDA's log1p" : "own, of CUDA's";
    case OP_LOGADDEXP2: return dtype == DTYPE_FLOAT32 ? "own, of CUDA's log2" : "own, of CUDA's";
    default: return "CUDA";
    }
}

static void print_how(void)
{
    printf(
        "# Accuracy of the functions of mathematics on CUDA devices\n\n"
        "Not measured on a device: the largest errors that `tests/accuracy_device.sh` found by "
        "running a\ndevice's code on a processor. nvcc %s compiled `kernels/cuda/device/math.h`, "
        "CUDA's own functions\nwith it, to PTX for %s and for %s (the older and the newer of its "
        "compilers), and every\ninstruction of that PTX was carried out in C "
        "(`tests/unit/kernels/cuda/math/ptx_model.h`). Errors are the larger\nones of the two, in "
        "units of the last place (ulp) of the exact result, rounded up. Nothing is beyond\n%.0f "
        "ulp.\n\n",
        CUDA_VERSION_USED, OLD_DEVICE, NEW_DEVICE, ACCURACY_MAX_ULP);
    printf(
        "- exact, as IEEE and PTX define them: integers, conversions, comparisons, additions, "
        "products, fused\n  products, divisions, square roots\n"
        "- a model: the approximate instructions (ex2, lg2, rcp, rsqrt, div `.approx`), of which "
        "PTX states only\n  bounds. One model is the rounded exact value, the other is off by as "
        "much as the bound allows. The\n  bounds are those that `ptx_model.h` lists; they were not "
        "checked on a device\n"
        "- of: CUDA's own function, or the project's (own) and what it calls. float32 functions "
        "of CUDA's that\n  would be beyond 4 ulp at the approximations' bounds are replaced by "
        "the project's\n");
}

static void print_head(const struct check *c)
{
    print_how();
    printf("- %llu arguments a row, the same as in [kernels/ACCURACY.md](../ACCURACY.md), with the "
           "same units and\n  references; the worst of each cell was computed again with MPFR %s\n"
           "- NaN, infinities and the signs of zeros are right at all arguments\n"
           "- what is not in the table is exact or correctly rounded: arithmetic, rounding, "
           "remainders, exponents,\n  neighbours and selections gave the CPU engine's bits at %llu "
           "awkward pairs in each of %llu comparisons\n  (function, dtype, device)\n\n",
           (unsigned long long)n_arguments, mpfr_get_version(), (unsigned long long)n_arguments,
           (unsigned long long)c->n_run);
    printf("| function | dtype | of | approximations exact | at their bounds |\n"
           "|---|---|---|---|---|\n");
}

static bool print_row(const struct accuracy_function *f, enum dtype dtype)
{
    bool is_good = true;
    struct measurement m = {.function = f, .dtype = dtype, .n = n_arguments};
    measure(&m);
    printf("| %s | %s | %s |", op_info(f->op)->name, dtype_name(dtype), source_of(f->op, dtype));
    for (int k = 0; k < N_MODELS; k++) {
        const struct worst *w = &m.worst[k];
        double confirmed = accuracy_error(f, dtype, w->x, accuracy_mpfr(f, w->x), w->got);
        printf(" %.2f |", ceil(w->error * 100) / 100);
        if (w->error > ACCURACY_MAX_ULP || fabs(confirmed - w->error) > MOST_APART) {
            is_good = false;
            fprintf(stderr, "%s %s: %g ulp, with MPFR %g, at %a, %a: %a\n", op_info(f->op)->name,
                    dtype_name(dtype), w->error, confirmed, w->x[0], w->x[1], w->got);
        }
    }
    printf("\n");
    fflush(stdout);
    return is_good;
}

static void compare_exact(struct check *c, const struct check_case *k)
{
    static char sources[3][N_ELEMENTS * 8], wanted[N_ELEMENTS * 8], got[N_ELEMENTS * 8];
    void *src[3] = {sources[0], sources[1], sources[2]};
    bool is_exchanged;
    kernel_fn *kernel = check_kernel(k, CPU_LEVEL_PLAIN, &is_exchanged);
    if (!k->is_exact || !math_run(k->op, k->compute, 0, got, sources[0], sources[1]))
        return;
    check_restart(c, k->name, 0);
    for (uint64_t done = 0; done < n_arguments; done += N_ELEMENTS) {
        struct kernel_events events = {0};
        check_fill_sources(k, src, N_ELEMENTS, false);
        kernel(N_ELEMENTS, wanted, sources[0], sources[1], sources[2], &events);
        math_run(k->op, k->compute, N_ELEMENTS, got, sources[0], sources[1]);
        size_t size = dtype_size(k->result);
        for (size_t i = 0; i < N_ELEMENTS; i++) {
            if (check_same(got + i * size, wanted + i * size, k->result))
                continue;
            c->n_failed++;
            fprintf(stderr, "%s differs\n", k->name);
            check_print("a", sources[0] + i * dtype_size(k->src[0]), k->src[0]);
            check_print("b", sources[1] + i * dtype_size(k->src[1]), k->src[1]);
            check_print("got", got + i * size, k->result);
            check_print("wanted", wanted + i * size, k->result);
            return;
        }
    }
    c->n_run++;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--arguments") && i + 1 < argc)
            n_arguments = strtoull(argv[++i], NULL, 10);
        else
            filter = argv[i];
    }
    struct check c = {.seed = 1, .filter = filter};
    for (int is_of_new = 0; is_of_new < 2; is_of_new++) {
        ptx_is_of_new = is_of_new;
        check_each_case(&c, compare_exact);
    }
    print_head(&c);
    bool is_good = c.n_failed == 0 && (filter || c.n_run > 0);
    for (unsigned i = 0; i < accuracy_n_functions; i++) {
        if (filter && !strstr(op_info(accuracy_functions[i].op)->name, filter))
            continue;
        is_good &= print_row(&accuracy_functions[i], DTYPE_FLOAT32);
        is_good &= print_row(&accuracy_functions[i], DTYPE_FLOAT64);
    }
    mpfr_free_cache();
    return !is_good;
}
