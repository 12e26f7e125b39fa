/* Passes over the data of a decomposition, as jobs: how they are run, or only planned, and what
 * they read.
 *
 *     passes_init(&p, client, &operand, &run, only_plans, &error)
 *     passes_new_matrix(&p, 2, shape, &w, &error)              in shared memory, gad_array_data(w)
 *     passes_run(&p, &pass, &error)                            reads the data once or more often
 *     passes_deinit(&p)                                        releases the matrices too
 *
 * Expressions name the data `_x`, whatever the caller gave: an array or an expression of some. The
 * same code plans and runs, so that what is said before is what is read: with only_plans a pass
 * asks the daemon for its plan instead, and results are left as they are.
 */
#pragma once

#include "client/gpuarrayd-linalg.h"
#include "client/array.h"
#include "client/lib/jobs/loop_times.h"

#include <float.h>

#define PASSES_MATRICES      32
#define PASSES_LEAST_SQUARES (DBL_MIN / DBL_EPSILON) /* of a sum with all its digits */

struct passes {
    struct gad_client *client;
    struct gad_linalg_run run;
    bool only_plans;
    enum gad_dtype dtype; /* of the data, ndim and shape too */
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    struct gad_reads reads;   /* until now */
    uint64_t read_once_bytes; /* of the data */
    uint64_t carry_bytes;     /* the most that a job has of the pool */
    double planned_s;         /* of what was planned only */
    int64_t started_ms;
    struct loop_times times;
    unsigned n_before; /* iterations that were done before the call, by a checkpoint */

    char *prefix;   /* "m = t < -900; _x = where(m, 0, t); ", or "" */
    bool is_turned; /* the data is what was given, with its axes reversed: for errors' indices */
    bool is_float;  /* else the prefix converts it */
    unsigned n_args;
    struct gad_argument *args; /* the operand's; arrays are references */
    unsigned n_matrices;
    struct gad_array *matrices[PASSES_MATRICES];
};

/* One job. */
struct pass {
    bool has_no_data; /* `_x` is not used, and nothing is read but the inputs */
    bool is_beside;   /* `_x` is not used, but arguments of its expression may be */
    bool is_walk;     /* by slabs: `_x` is read once, inputs as often as grains need them */
    unsigned n_inputs, n_outputs;
    const struct gad_argument *inputs; /* beside the data */
    const struct gad_output *outputs;  /* of expressions in which `_x` is the data */
    /* While the job runs, takes from the outputs that are streams; where it fails, the job is
     * cancelled. NULL: there are none. */
    int (*take)(void *taking, struct gad_error *error);
    void *taking;
};

/* *p is valid for passes_deinit() whatever the outcome. bad-argument: no operand, a stream, a name
 * that begins with '_' and a letter. */
int passes_init(struct passes *p, struct gad_client *client, const struct gad_operand *operand,
                const struct gad_linalg_run *run, bool only_plans,
                struct gad_error *error) GAD_MUST_CHECK;
void passes_deinit(struct passes *p);

/* A float64 array in shared memory, of zeros, for inputs and outputs of passes; it belongs to
 * `p`. */
int passes_new_matrix(struct passes *p, int ndim, const int64_t *shape, struct gad_array **ret,
                      struct gad_error *error) GAD_MUST_CHECK;
/* Those behind the first n are given up. */
void passes_release_matrices(struct passes *p, unsigned n);
/* Runs or plans a job. cancelled; those of gad_run(). */
int passes_run(struct passes *p, const struct pass *pass, struct gad_error *error) GAD_MUST_CHECK;
/* Asks for the plan alone, and counts nothing: whether it could be run. Those of gad_plan(). */
int passes_try(struct passes *p, const struct pass *pass, struct gad_error *error) GAD_MUST_CHECK;

/* What is looked through for elements that are not finite. */
struct pass_finite {
    const char *argument; /* for the error */
    const char *expr;     /* NULL: the data */
    unsigned n_inputs;
    const struct gad_argument *inputs; /* of `expr` */
    int ndim;
    const int64_t *shape; /* of `expr` */
    bool is_turned;       /* what was given has the axes reversed */
};
/* Once a result was not finite: bad-argument, which names the first such element, or says that sums
 * of squares are beyond float64. */
int passes_refuse_not_finite(struct passes *p, const char *argument,
                             struct gad_error *error) GAD_MUST_CHECK;
/* Where a sum of squares is not finite, or so small that they lost digits: bad-argument, unless
 * elements are zero; with mean_axis 0 or 1, of differences from the mean along it, unless those
 * are. -1: of the elements. */
int passes_check_squares(struct passes *p, const char *argument, int mean_axis, double squares,
                         struct gad_error *error) GAD_MUST_CHECK;
/* The same as the first of what is not the data. 0: all its elements are finite. */
int passes_find_not_finite(struct passes *p, const struct pass_finite *what,
                           struct gad_error *error) GAD_MUST_CHECK;

/* bad-argument: an argument, and what is wrong with it; an option that is no such number. */
int refuse_argument(const char *argument, const char *what, struct gad_error *error);
int refuse_number(const char *argument, double found, const char *expected,
                  struct gad_error *error);
/* Tells who wants to know of an iteration's end; true: the loop shall end. Not while planning. */
bool passes_tell(const struct passes *p, unsigned iteration, unsigned n_iterations, double fit,
                 double change);
/* What was read since `before`, a copy of p->reads. */
struct gad_reads passes_since(const struct passes *p, const struct gad_reads *before);
/* a + n * b. */
struct gad_reads reads_sum(const struct gad_reads *a, int64_t n, const struct gad_reads *b);
