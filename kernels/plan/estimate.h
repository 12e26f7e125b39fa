/* What kinds of engines estimate a pass with, part by part; see estimate.c. */
#pragma once

#include "kernels/plan/planner.h"

#define PLAN_N_BOUNDS (PLAN_BOUND_WORK + 1)

struct plan_estimate {
    const struct planner *p;
    struct plan_rates rates; /* measured, or defaults: none is 0, but perhaps the disk's */
    double *spent;           /* PLAN_N_BOUNDS: seconds by what bounds them */
};

/* Files: what passes the page cache, and what I/O threads wait for. */
struct file_seconds {
    double cached, disk;
};

struct file_seconds estimate_files(const struct plan_rates *rates, double all, double read);
/* A pass's instructions and reductions over all its elements, in cheap instructions. */
double estimate_work(const struct plan_estimate *e, unsigned pass);
/* The time of n_tiles that go through stages, one behind the other. All tiles together spend `sum`
 * seconds, and `slowest` of them in the stage that takes longest. */
static inline double estimate_pipelined(double slowest, double sum, uint64_t n_tiles)
{
    return slowest + (sum - slowest) / (double)n_tiles;
}
