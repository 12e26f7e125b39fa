/* The kernel runner's parts: cases, random arrays of awkward values, truth, comparisons. */
#pragma once

#include "kernels/cpu/run/run.h"
#include "tests/unit/kernels/cpu/builder.h"

#define CHECK_MAX_ULP 8 /* between two libraries, each within 4 of the truth */

struct check {
    const char *filter; /* only cases whose name contains it; NULL: all */
    uint64_t seed;
    unsigned n_trials;
    uint64_t n_run, n_failed;
};

/* An op with one computing dtype and one result, as the compiler would make it. */
struct check_case {
    enum op op;
    enum dtype compute, result;
    enum dtype src[3];
    unsigned n_src;
    bool is_exact; /* NumPy's to the bit; else a function of a vector library */
    char name[64];
};

/* Calls `each` for every op of the catalogue that becomes an instruction and every dtype that
 * program.h gives it. One without a kernel at the plain level is a failure. */
void check_each_case(struct check *c, void (*each)(struct check *, const struct check_case *));
void check_build(struct built *b, const struct check_case *k);
kernel_fn *check_kernel(const struct check_case *k, enum cpu_level level, bool *ret_is_exchanged);
/* Whether this processor has the level. */
bool check_has_level(int level);

/* Random numbers begin anew for each case and level, so that a filter does not change them. */
void check_restart(const struct check *c, const char *name, int level);
uint64_t check_random(void);
uint64_t check_below(uint64_t n);
void check_fill(void *p, enum dtype dtype, size_t n, bool is_moderate);
/* All sources of a case, n elements each: some of them related where a pair makes the difficulty.
 */
void check_fill_sources(const struct check_case *k, void *const *src, size_t n, bool is_moderate);
/* Bits, but any NaN for any NaN. */
bool check_same(const void *a, const void *b, enum dtype dtype);
/* Numbers at most max_ulp floats apart; NaN, infinities and zeros must agree. */
bool check_is_near(const void *a, const void *b, enum dtype dtype, uint64_t max_ulp);
/* Results of one element of a function by two libraries, of sources x (and y), close enough to each
 * other where each is within its tolerance. Where terms cancel, the last place is the larger
 * term's. */
bool check_is_close(const struct check_case *k, const void *x, const void *y, const void *got,
                    const void *wanted);
void check_print(const char *what, const void *p, enum dtype dtype);

/* What element i of an exact case must be and what it counts, by plain C and libm, one element at a
 * time. Returns whether NaN's bits are determined too. */
bool check_truth(const struct check_case *k, const void *const *src, size_t i, void *ret_item,
                 struct kernel_events *events);

void check_flat(struct check *c);
void check_layouts(struct check *c);
void check_reductions(struct check *c);
void check_counts(struct check *c);
void check_scans(struct check *c);
void check_accuracy(struct check *c);
void bench_kernels(struct check *c);
void bench_worst(struct check *c);
