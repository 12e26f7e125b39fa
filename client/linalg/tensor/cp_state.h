/* A CP decomposition while it is made. */
#pragma once

#include "client/gpuarrayd-tensor.h"
#include "client/linalg/checkpoint.h"
#include "client/linalg/tensor/slabs.h"

struct cp {
    struct gad_cp_options options; /* with defaults filled in */
    struct passes passes;
    struct slabs slabs;
    struct checkpoint checkpoint;
    double *grams[SLABS_MAX_NDIM]; /* of each factor: rank x rank */
    double *normal;                /* rank x rank: of the axis that is updated */
    double *rows;                  /* HALS: the slabs' factor before its right side is read */
    double squares;                /* of the data; below 0: not known yet */
    double relative_error, previous_error;
    double ridge_added;
    unsigned n_done; /* iterations */
    bool is_converged, is_stopped;
    bool has_descent; /* rows that must not be negative come of the same read as the rest */
};

/* cp_start.c: factors to begin with, and grams. */
int cp_start(struct cp *cp, struct gad_error *error) GAD_MUST_CHECK;

/* cp_update.c. */

/* inv(normal + ridge) into g of the slabs, so that rows come out solved. */
int cp_make_solver(struct cp *cp, struct gad_error *error) GAD_MUST_CHECK;
/* The factor of an axis from its right side (n x rank, which is spoilt), and its gram. */
int cp_update(struct cp *cp, int axis, double *right_side, struct gad_error *error) GAD_MUST_CHECK;
int cp_make_gram(struct cp *cp, int axis, struct gad_error *error) GAD_MUST_CHECK;
/* What the slabs' rows are improved by, for slabs_read_descent(). */
int cp_make_descent(struct cp *cp, struct gad_error *error) GAD_MUST_CHECK;
/* After a read: all other factors, and the fit. */
int cp_update_others(struct cp *cp, struct gad_error *error) GAD_MUST_CHECK;
