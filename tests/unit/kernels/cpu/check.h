/* The kernel runner's parts: cases, random arrays of awkward values, comparisons. */
#pragma once

#include "tests/unit/kernels/cpu/builder.h"

struct check {
    const char *filter; /* only cases whose name contains it; NULL: all */
    unsigned n_trials;
    uint64_t n_run, n_failed;
};

/* An op with one computing dtype and one result, as the compiler would make it. */
struct check_case {
    enum op op;
    enum dtype compute, result;
    enum dtype src[3];
    unsigned n_src;
    char name[48];
};

/* Calls `each` for every op and dtype that the plain level has. */
void check_each_case(struct check *c, void (*each)(struct check *, const struct check_case *));
void check_build(struct built *b, const struct check_case *k);

uint64_t check_random(void);
uint64_t check_below(uint64_t n);
void check_fill(void *p, enum dtype dtype, size_t n, bool is_moderate);
/* Bits, but any NaN for any NaN. */
bool check_same(const void *a, const void *b, enum dtype dtype);
void check_print(const char *what, const void *p, enum dtype dtype);

void check_layouts(struct check *c);
void check_reductions(struct check *c);
void check_accuracy(struct check *c);
void bench_kernels(struct check *c);
