/** gpuarrayd: decompositions of what never fits memory. Included by gpuarrayd.h.
 *
 * A decomposition is a loop in the caller's process. Each pass over the data is a job like any
 * other, whose results are small, and with them LAPACK (from OpenBLAS, which is loaded when it is
 * first needed) does the rest here. So jobs of others have their turns in between, and what is lost
 * by an interruption is one iteration: a checkpoint is the file of the factors.
 *
 * Results are float64 in C order, whatever the data's dtype is: sums of products are made in
 * float64.
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is decomposed: an array, or an expression of arrays on the way in, which is computed in
 * each read and stored nowhere. Any numbers: integers are converted. */
struct gad_operand {
    struct gad_array *array; /**< where `expr` is NULL. No stream */
    const char *expr;        /**< of `args`: "where(t < -900, 0, t)" */
    unsigned n_args;
    const struct gad_argument *args; /**< names that begin with '_' are the library's */
};

/** What a decomposition reads and writes: at its end as it was, or before as the jobs' own plans
 * say. */
struct gad_reads {
    uint64_t n_jobs;
    uint64_t n_reads;     /**< how often all of the data is read */
    uint64_t read_bytes;  /**< of the data, and of what is small beside it */
    uint64_t write_bytes; /**< results, which are small as well unless they are a file */
};

/** What will be done. `total` is of the number of iterations that was asked for: tolerance may end
 * them earlier. */
struct gad_linalg_plan {
    struct gad_reads start, iteration, finish, total;
    unsigned n_iterations;
    uint64_t carry_bytes; /**< of the daemon's pool, in the largest of the jobs */
    double seconds;       /**< estimate of `total` */
    char method[128]; /**< in words: "by slabs of axis 0, 1 read an iteration", and what one read
                           would need where there is not so much */
};

/** How far a decomposition is: told after each iteration. */
struct gad_iteration {
    unsigned iteration, n_iterations; /**< from 1; at most */
    double fit;                       /**< 1 - relative error; NaN: not known */
    double change;                    /**< of what the tolerance is about, by this iteration */
    struct gad_reads reads;           /**< so far */
    double seconds;                   /**< since the call */
    double seconds_left;              /**< as iterations have taken until now; 0 after the last */
};

/** Called after each iteration, in the caller's thread, between jobs. Anything but 0 ends the loop:
 * the result is what there is, and its is_stopped is true.
 * data: that of struct gad_linalg_run.
 * iteration: valid during the call. */
typedef int gad_iteration_fn(void *data, const struct gad_iteration *iteration);

/** How passes run: part of every decomposition's options. Zeroed: auto, nobody is told. */
struct gad_linalg_run {
    const char *engine, *label; /**< as of struct gad_job_options */
    int priority;               /**< likewise */
    uint32_t queue_timeout_ms;  /**< each job has so long to begin, or it ends with
                                     GAD_QUEUE_TIMEOUT; 0: for ever */
    uint32_t deadline_ms;       /**< all of them together to end, or it does with
                                     GAD_DEADLINE_EXCEEDED, and a checkpoint has the last
                                     full iteration; 0: for ever */
    gad_iteration_fn *iteration;
    gad_progress_fn *progress;              /**< of the job that runs */
    bool (*is_cancelled)(const void *data); /**< asked some times a second, in the midst of jobs;
                                                 true: it ends with GAD_CANCELLED, and a checkpoint
                                                 has the last full iteration */
    void *data;                             /**< of all three */
    struct gad_linalg_plan *plan; /**< not NULL: nothing is run, and what would be is told there;
                                       results have no elements. Of matrices alone:
                                       gpuarrayd-matrix.h; others have functions that explain */
};

/** A small array with a name, of float64 in C order. */
struct gad_dense {
    char name[32];
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
    double *data;
};

/** Writes small arrays into an npz archive, which appears whole or not at all, in the place of what
 * has its name.
 * path: of the archive; it ends in .npz.
 * n, arrays: not NULL; each becomes the member of its name.
 * GAD_BAD_ARGUMENT: another ending. GAD_NO_SPACE, GAD_PERMISSION. */
enum gad_status gad_dense_save(const char *path, unsigned n, const struct gad_dense *arrays,
                               struct gad_error *error);

/** Reads one array, of any numbers, as float64.
 * spec: of any source: "f.npz:weights".
 * ret_dense: the caller's, ended by gad_dense_deinit(); its name is empty.
 * The statuses of gad_array_open(). */
enum gad_status gad_dense_load(const char *spec, struct gad_dense *ret_dense,
                               struct gad_error *error);

/** Frees the elements.
 * dense: NULL is allowed. */
void gad_dense_deinit(struct gad_dense *dense);

#ifdef __cplusplus
}
#endif

#include "gpuarrayd-matrix.h"
#include "gpuarrayd-solve.h"
#include "gpuarrayd-tensor.h"
