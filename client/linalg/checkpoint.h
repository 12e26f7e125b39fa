/* A checkpoint: the file of the factors, with the iteration that they are of, and of what.
 *
 * An npz archive of the decomposition's own arrays, and two more:
 *
 *     _of     what the iterations depend on: dtype and shape of the data, and a digest of its
 *             identity and of the settings
 *     _state  [iterations that are done, what else the loop goes on with ...]
 */
#pragma once

#include "client/array.h"
#include "client/gpuarrayd-linalg.h"

#define CHECKPOINT_STATE 8

struct checkpoint {
    const char *path; /* NULL: there is none */
    enum gad_dtype dtype;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    uint64_t digest, data_digest;
    unsigned n_state;
    double state[CHECKPOINT_STATE];
};

/* Of the data: its expression, and what its arrays are (client/lib/arguments/identity.h). */
void checkpoint_init(struct checkpoint *c, const char *path, const struct gad_operand *operand,
                     enum gad_dtype dtype, int ndim, const int64_t *shape);
/* A setting that a continued loop must have, too. */
void checkpoint_mark(struct checkpoint *c, double setting);

/* Writes state and arrays, whole or not at all. Without a path nothing. */
int checkpoint_write(const struct checkpoint *c, unsigned n, const struct gad_dense *arrays,
                     struct gad_error *error) GAD_MUST_CHECK;
/* *ret_is_there false: there is no file, and nothing changed. Else the state and the elements of
 * the arrays, whose names and shapes are given and whose `data` is the caller's, are those that
 * were written. bad-checkpoint: it is of other data or settings. */
int checkpoint_read(struct checkpoint *c, unsigned n, struct gad_dense *arrays, bool *ret_is_there,
                    struct gad_error *error) GAD_MUST_CHECK;
/* bad-checkpoint: what is in it cannot be. */
int checkpoint_refuse(const struct checkpoint *c, const char *expected, double found,
                      struct gad_error *error) GAD_MUST_CHECK;
