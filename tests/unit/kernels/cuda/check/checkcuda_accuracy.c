/* The functions of mathematics on the device: within ACCURACY_MAX_ULP of the truth.
 *
 * The arguments are the first of those that kernels/ACCURACY.md was measured with; the exact value
 * is computed by the C library in long double, as for the CPU's levels. One tile of flat grains for
 * each function and dtype; --trials times SAMPLES_A_TRIAL arguments.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy.h"
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <string.h>

#define SAMPLES_A_TRIAL 1000
#define GRAIN_ELEMENTS  4096
#define MAX_GRAINS      32

struct samples {
    const struct accuracy_function *f;
    enum dtype dtype;
    uint64_t first, n;
};

static struct grain grains[MAX_GRAINS];
static double arguments[MAX_GRAINS][GRAIN_ELEMENTS][2];

static void put(void *array, enum dtype dtype, size_t i, double value)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

static double get(const void *array, enum dtype dtype, size_t i)
{
    return dtype == DTYPE_FLOAT32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static void store_arguments(const struct samples *s, unsigned g)
{
    for (size_t i = 0; i < grains[g].shape.n; i++) {
        accuracy_argument(s->f, s->dtype, s->first + (uint64_t)g * GRAIN_ELEMENTS + i,
                          arguments[g][i]);
        for (unsigned j = 0; j < s->f->n_args; j++)
            put(grains[g].inputs[j].arena, s->dtype, i, arguments[g][i][j]);
    }
}

static void find_worst(const struct samples *s, unsigned g, struct accuracy_worst *worst)
{
    for (size_t i = 0; i < grains[g].shape.n; i++) {
        const double *x = arguments[g][i];
        double got = get(grains[g].outputs[0].arena, s->dtype, i);
        double error = accuracy_error(s->f, s->dtype, x, accuracy_exact(s->f, x), got);
        if (error > worst->error) {
            worst->error = error;
            worst->got = got;
            memcpy(worst->x, x, sizeof(worst->x));
        }
    }
}

static void build_function(struct built *b, const struct accuracy_function *f, enum dtype dtype)
{
    struct operand src[3] = {{0}};
    built_init(b);
    for (unsigned j = 0; j < f->n_args; j++)
        src[j] = built_input(b, dtype);
    built_store(b, built_insn(b, f->op, dtype, dtype, 0, src[0], src[1], src[2]));
}

static void run_samples(struct checkcuda *c, const struct samples *s, struct accuracy_worst *worst)
{
    static struct built b;
    struct cuda_tile tile;
    unsigned n_grains = (unsigned)((s->n + GRAIN_ELEMENTS - 1) / GRAIN_ELEMENTS);
    build_function(&b, s->f, s->dtype);
    grain_space(&b);
    for (unsigned g = 0; g < n_grains; g++) {
        uint64_t left = s->n - (uint64_t)g * GRAIN_ELEMENTS;
        shape_flat(&grains[g].shape, left < GRAIN_ELEMENTS ? left : GRAIN_ELEMENTS);
        for (unsigned j = 0; j < s->f->n_args; j++)
            laid_flat(&grains[g].inputs[j], &grains[g].shape, s->dtype);
        laid_flat(&grains[g].outputs[0], &grains[g].shape, s->dtype);
    }
    rig_begin(c->rig, &tile, &b.program, 0, NULL, grains, n_grains);
    for (unsigned g = 0; g < n_grains; g++) {
        grain_place(&grains[g], &tile);
        store_arguments(s, g);
        grain_add(&grains[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < n_grains; g++)
        find_worst(s, g, worst);
}

static void check_function(struct checkcuda *c, const struct accuracy_function *f, enum dtype dtype)
{
    uint64_t n = (uint64_t)c->check.n_trials * SAMPLES_A_TRIAL;
    struct accuracy_worst worst = {.is_there = true};
    for (uint64_t done = 0; done < n; done += (uint64_t)MAX_GRAINS * GRAIN_ELEMENTS) {
        uint64_t most = (uint64_t)MAX_GRAINS * GRAIN_ELEMENTS;
        struct samples s = {f, dtype, done, n - done < most ? n - done : most};
        run_samples(c, &s, &worst);
    }
    bool is_failed = worst.error > ACCURACY_MAX_ULP;
    c->check.n_run++;
    c->check.n_failed += is_failed;
    if (is_failed || c->check.filter)
        printf("%s%s %s: %.3f ulp at %a, %a (got %a), %g allowed\n", is_failed ? "FAILED " : "",
               op_info(f->op)->name, dtype_name(dtype), worst.error, worst.x[0], worst.x[1],
               worst.got, ACCURACY_MAX_ULP);
}

void checkcuda_accuracy(struct checkcuda *c)
{
    for (unsigned i = 0; i < accuracy_n_functions; i++) {
        const struct accuracy_function *f = &accuracy_functions[i];
        if (c->check.filter && !strstr(op_info(f->op)->name, c->check.filter))
            continue;
        check_function(c, f, DTYPE_FLOAT32);
        check_function(c, f, DTYPE_FLOAT64);
    }
}
