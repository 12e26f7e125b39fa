/* A Tucker decomposition while it is made. */
#pragma once

#include "client/gpuarrayd-tensor.h"
#include "client/linalg/checkpoint.h"
#include "client/linalg/tensor/slabs.h"

struct tucker {
    struct gad_tucker_options options; /* with defaults filled in */
    struct passes passes;
    struct slabs slabs;
    struct checkpoint checkpoint;
    int64_t n_columns; /* of the slabs' matrices: the slabs' rank, and more for the sketch */
    double squares;    /* of the data */

    /* Of the newest read: q (n x n_kept) along the slabs' axis, orthonormal, and what the data is
     * in these coordinates, small: (others ..., n_kept). */
    int64_t n_kept;
    double *q, *small;
    /* Truncated: the factors, and small with the others' ranks; wide is that before the slabs' axis
     * was truncated, as orthonormal columns: (others' ranks ..., n_wide). */
    int64_t ranks[SLABS_MAX_NDIM], n_wide;
    double *factors[SLABS_MAX_NDIM], *core, *wide;
    double relative_error;
    unsigned n_done; /* reads */
    bool is_converged, is_stopped;
};

/* tucker_small.c: what is done of a read in memory. */

/* rows and rest of the slabs to q and small. */
int tucker_compress(struct tucker *t, struct gad_error *error) GAD_MUST_CHECK;
/* What of the data is not in small: squares of the distance. */
double tucker_lost(const struct tucker *t);
/* small to factors, core, ranks, the error; the highest-order SVD, truncated axis by axis. */
int tucker_truncate(struct tucker *t, struct gad_error *error) GAD_MUST_CHECK;
/* The same, but what was there before stays where it is better. */
int tucker_improve(struct tucker *t, struct gad_error *error) GAD_MUST_CHECK;
/* The next read's C, of wide and the factors, into the slabs' `columns`. */
int tucker_make_columns(struct tucker *t, struct gad_error *error) GAD_MUST_CHECK;

/* tucker_kept.c: checkpoints. */

/* The core with its axes in the data's order. */
void tucker_place_core(const struct tucker *t, double *ret_core);
/* Once the slabs are known. */
void tucker_init_checkpoint(struct tucker *t, const struct gad_operand *tensor);
/* change: of the error, by the newest read. Without a path nothing. */
int tucker_save(struct tucker *t, double change, struct gad_error *error) GAD_MUST_CHECK;
/* Everything that tucker_save() kept; *ret_columns: the slabs' rank then. bad-checkpoint. */
int tucker_load(struct tucker *t, int64_t *ret_columns, double *ret_change, bool *ret_is_there,
                struct gad_error *error) GAD_MUST_CHECK;
