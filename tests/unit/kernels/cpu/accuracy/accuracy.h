/* What is measured about the functions of mathematics: their arguments, exact values and errors. */
#pragma once

#include "tests/unit/kernels/cpu/check/check.h"

#define ACCURACY_RANGES    4
#define ACCURACY_MAX_ULP   4.0 /* the promise, where the table does not say otherwise */
#define ACCURACY_N_CLASSES 8

struct accuracy_function {
    enum op op;
    unsigned n_args;
    long double (*exact1)(long double);
    long double (*exact2)(long double, long double);
    struct {
        double lo, hi;
    } ranges[ACCURACY_RANGES]; /* where most of the arguments are drawn; {0, 0}: no more */
};

extern const struct accuracy_function accuracy_functions[];
extern const unsigned accuracy_n_functions;

/* Argument number i, the same in every run: a value of the dtype in each of ret_x[0], ret_x[1]. */
void accuracy_argument(const struct accuracy_function *f, enum dtype dtype, uint64_t i,
                       double ret_x[2]);

long double accuracy_exact(const struct accuracy_function *f, const double x[2]);

/* Between two values, in units of the last place of the exact one. The logarithm of a sum is the
 * larger argument plus a logarithm; where these have different signs, the unit is that of the
 * largest of the three. Errors are infinite where NaN, an infinity or a zero's sign is wrong. A
 * result that overflows counts as the power of two behind the largest number. */
double accuracy_distance(const struct accuracy_function *f, enum dtype dtype, const double x[2],
                         long double exact, long double got);
double accuracy_error(const struct accuracy_function *f, enum dtype dtype, const double x[2],
                      long double exact, double got);

/* The worst of a level. n_unstable: results that changed with their place among the others. */
#define ACCURACY_LEVELS (CPU_LEVEL_AVX512 + 1)
struct accuracy_worst {
    bool is_there; /* the processor has the level */
    double error, x[2], got;
    uint64_t n_unstable;
};

/* Takes the arguments from number `first` to all levels and adds what it finds to `worst`. */
void accuracy_run(const struct accuracy_function *f, enum dtype dtype, uint64_t first, uint64_t n,
                  struct accuracy_worst worst[ACCURACY_LEVELS]);

/* The library that a level's kernel is made of, as kernels/ACCURACY.md names it. */
const char *accuracy_source(const struct accuracy_function *f, enum dtype dtype,
                            enum cpu_level level);
