/* Checkpoints of Tucker decompositions: what the next read is made of.
 *
 *     core, factor_0 ...   the decomposition as it is, for programs that read it
 *     _core, _wide         the same core with the slabs' axis last, and what the next read's
 * columns are made of _ranks               how large all of these are
 */
#include "client/linalg/dense_files.h"
#include "client/linalg/tensor/tucker_state.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

enum { STATE_DONE, STATE_COLUMNS, STATE_WIDE, STATE_SQUARES, STATE_ERROR, STATE_CHANGE, N_STATES };

#define MOST_ARRAYS (SLABS_MAX_NDIM + 3)

void tucker_place_core(const struct tucker *t, double *ret_core)
{
    int ndim = t->passes.ndim, axis = t->slabs.axis;
    int64_t before = 1, after = 1, rank = t->ranks[axis];
    for (int i = 0; i < ndim; i++)
        *(i < axis ? &before : &after) *= i == axis ? 1 : t->ranks[i];
    for (int64_t i = 0; i < before; i++)
        for (int64_t j = 0; j < after; j++)
            for (int64_t q = 0; q < rank; q++)
                ret_core[(i * rank + q) * after + j] = t->core[(i * after + j) * rank + q];
}

void tucker_init_checkpoint(struct tucker *t, const struct gad_operand *tensor)
{
    const struct gad_tucker_options *o = &t->options;
    struct checkpoint *c = &t->checkpoint;
    checkpoint_init(c, o->checkpoint, tensor, t->passes.dtype, t->passes.ndim, t->passes.shape);
    c->n_state = N_STATES;
    for (int i = 0; i < t->passes.ndim; i++)
        checkpoint_mark(c, (double)o->ranks[i]);
    checkpoint_mark(c, o->tolerance);
    checkpoint_mark(c, (double)(o->seed >> 32));
    checkpoint_mark(c, (double)(o->seed & UINT32_MAX));
}

static struct gad_dense ranks_of(const struct tucker *t, double *numbers)
{
    return (struct gad_dense){
        .name = "_ranks", .ndim = 1, .shape = {t->passes.ndim}, .data = numbers};
}

/* All but the ranks and the core as it is in the result. */
static unsigned list(const struct tucker *t, struct gad_dense *ret_arrays)
{
    int64_t n_others = 1, axis = t->slabs.axis;
    unsigned n = 0;
    for (int i = 0; i < t->passes.ndim; i++) {
        struct gad_dense *factor = &ret_arrays[n++];
        *factor = (struct gad_dense){
            .ndim = 2, .shape = {t->passes.shape[i], t->ranks[i]}, .data = t->factors[i]};
        snprintf(factor->name, sizeof(factor->name), "factor_%d", i);
        n_others *= i == axis ? 1 : t->ranks[i];
    }
    ret_arrays[n++] = (struct gad_dense){
        .name = "_core", .ndim = 2, .shape = {n_others, t->ranks[axis]}, .data = t->core};
    ret_arrays[n++] = (struct gad_dense){
        .name = "_wide", .ndim = 2, .shape = {n_others, t->n_wide}, .data = t->wide};
    return n;
}

static int64_t size_of(const struct gad_dense *dense)
{
    int64_t n = 1;
    for (int i = 0; i < dense->ndim; i++)
        n *= dense->shape[i];
    return max_i64(n, 1);
}

int tucker_save(struct tucker *t, double change, struct gad_error *error)
{
    struct gad_dense arrays[MOST_ARRAYS + 1], core;
    double ranks[SLABS_MAX_NDIM], *state = t->checkpoint.state;
    if (!t->checkpoint.path)
        return 0;
    unsigned n = list(t, arrays);
    int r = dense_init(&core, "core", t->passes.ndim, t->ranks, error);
    if (r)
        return r;
    tucker_place_core(t, core.data);
    arrays[n++] = core;
    for (int i = 0; i < t->passes.ndim; i++)
        ranks[i] = (double)t->ranks[i];
    arrays[n++] = ranks_of(t, ranks);
    state[STATE_DONE] = t->n_done;
    state[STATE_COLUMNS] = (double)t->slabs.rank;
    state[STATE_WIDE] = (double)t->n_wide;
    state[STATE_SQUARES] = t->squares;
    state[STATE_ERROR] = t->relative_error;
    state[STATE_CHANGE] = change;
    r = checkpoint_write(&t->checkpoint, n, arrays, error);
    gad_dense_deinit(&core);
    return r;
}

/* Room for what is then read. */
static int allocate(struct tucker *t, struct gad_error *error)
{
    struct gad_dense arrays[MOST_ARRAYS];
    unsigned n = list(t, arrays);
    bool is_short = false;
    for (unsigned i = 0; i < n; i++) {
        double *made = calloc((size_t)size_of(&arrays[i]), sizeof(*made));
        double **slot = i + 2 < n ? &t->factors[i] : i + 2 == n ? &t->core : &t->wide;
        free(*slot);
        *slot = made;
        is_short |= !made;
    }
    return is_short ? error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left") : 0;
}

int tucker_load(struct tucker *t, int64_t *ret_columns, double *ret_change, bool *ret_is_there,
                struct gad_error *error)
{
    struct gad_dense arrays[MOST_ARRAYS];
    double ranks[SLABS_MAX_NDIM];
    const double *state = t->checkpoint.state;
    struct gad_dense first = ranks_of(t, ranks);
    int r = checkpoint_read(&t->checkpoint, 1, &first, ret_is_there, error);
    if (r || !*ret_is_there)
        return r;
    for (int i = 0; i < t->passes.ndim; i++) {
        if (!(ranks[i] >= 1 && ranks[i] <= (double)t->passes.shape[i]))
            return checkpoint_refuse(&t->checkpoint, "ranks of the tensor", ranks[i], error);
        t->ranks[i] = (int64_t)ranks[i];
    }
    t->n_wide = (int64_t)state[STATE_WIDE];
    t->n_done = (unsigned)state[STATE_DONE];
    t->squares = state[STATE_SQUARES];
    t->relative_error = state[STATE_ERROR];
    *ret_change = state[STATE_CHANGE];
    *ret_columns = (int64_t)state[STATE_COLUMNS];
    if (t->n_wide < 1 || t->n_wide > SLABS_MAX_RANK || *ret_columns < 1 ||
        *ret_columns > SLABS_MAX_RANK)
        return checkpoint_refuse(&t->checkpoint, "sizes of a sketch",
                                 (double)max_i64(t->n_wide, *ret_columns), error);
    r = allocate(t, error);
    unsigned n = list(t, arrays);
    return r ? r : checkpoint_read(&t->checkpoint, n, arrays, ret_is_there, error);
}
