/** gpuarrayd: random numbers of a job. Included by gpuarrayd.h.
 *
 * Random functions of an expression are functions of a seed and of an element's number, by default
 * its place in the array that is computed. Here a job says both for all of them.
 *
 *     struct gad_draws draws = {.has_seed = true, .seed = 7, .rows = "i"};
 *     struct gad_job_options job = {..., .draws = &draws};     with an argument "i" of row numbers
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Of random functions: what those take that do not say it, and what their elements are numbered
 * by. Numbers by rows do not depend on which rows are computed together: row i of what is drawn has
 * the numbers of row rows[i] of an array with any number of rows. */
struct gad_draws {
    bool has_seed; /**< `seed` is that of functions without one, and with seed=k they take its k-th:
                        all numbers of a job differ with it */
    uint64_t seed;
    const char *rows; /**< an argument, int64 of shape (n, 1, ..., 1) with as many axes as what is
                           drawn, whose first length is then n; NULL: by their place */
    int ndim;         /**< of `size`; 0: they take the shape of what they meet */
    const int64_t *size; /**< of functions without one; NULL where ndim is 0 */
};
