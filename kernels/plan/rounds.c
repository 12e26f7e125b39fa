/* Rounds: where the results of all reductions together do not fit the carry, all passes are done
 * for one part of the arrays after the other.
 *
 * The part is a piece of one axis of every pass, which has to be found:
 *
 *     (a - mean(a, axis=0)) / std(a, axis=0)        a: (1000, 10^8)
 *
 *     pass 0 reduces axis 0, keeps axis 1 --results (10^8,)--> pass 1 reads them along its axis 1
 *
 * The largest result is cut along one of its axes. Then the pass that makes it is cut along the
 * same axis, which it must keep; all results of that pass are; and every pass that reads one of
 * them has to be cut along the axis with which it reads. Passes that this does not reach are done
 * once, in the first round, and their results are there for the others in whole. If these still are
 * too many, the largest of them is cut too, along an axis of the same length. A result that some
 * pass reads as a table is not cut.
 *
 * A round is a number of chunks, where an array is a grid of chunks, unless one is too large, and a
 * power of two of them, so that grains of all passes divide it.
 *
 * Called by carry.c. Pure code; at most passes x reductions steps for each axis.
 */
#include "kernels/plan/cutter.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <string.h>

/* The axis of a result that is this axis of the pass that makes it. */
static int result_axis(const struct program *program, unsigned reduction, int axis)
{
    const struct reduction *r = &program->reductions[reduction];
    const struct pass *pass = &program->passes[r->pass];
    int own = 0;

    for (int i = 0; i < axis; i++)
        own += r->keeps_dims || !(pass->reduced_axes >> i & 1);
    return own;
}

int planner_result_round_axis(const struct planner *p, unsigned reduction)
{
    unsigned pass = p->program->reductions[reduction].pass;

    if (p->round_length == 0 || p->round_axes[pass] < 0)
        return -1;
    return result_axis(p->program, reduction, p->round_axes[pass]);
}

uint64_t planner_one_result_bytes(const struct planner *p, unsigned reduction)
{
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t n_bytes = (int64_t)dtype_size((enum dtype)p->program->reductions[reduction].result);
    int ndim = program_reduction_shape(p->program, reduction, shape);
    int cut = planner_result_round_axis(p, reduction);

    for (int i = 0; i < ndim; i++)
        n_bytes = multiply_saturating(n_bytes, i == cut ? p->round_length : shape[i]);
    return round_up_u64((uint64_t)n_bytes, PLANNER_CARRY_ALIGN);
}

uint64_t planner_result_bytes(const struct planner *p)
{
    uint64_t offsets[PROGRAM_MAX_REDUCTIONS];

    return planner_place_results(p, offsets);
}

/* Some pass reads a result of this one in whole. */
static bool has_table(const struct program *program, unsigned pass)
{
    uint64_t used = 0;

    for (unsigned i = 0; i < program->n_passes; i++)
        used |= program->passes[i].tables_used;
    for (unsigned i = 0; i < program->n_reductions; i++)
        if ((used >> i & 1) && program->reductions[i].pass == pass)
            return true;
    return false;
}

/* The pass is to be cut along this axis. False: it cannot be, or is along another one. */
static bool want(struct planner *p, unsigned pass, int axis, int64_t length, bool *is_changed)
{
    const struct pass *which = &p->program->passes[pass];
    int *own = &p->round_axes[pass];

    if (*own == axis)
        return true;
    if (*own >= 0 || (which->reduced_axes >> axis & 1) || which->shape[axis] != length ||
        has_table(p->program, pass))
        return false;
    *own = axis;
    *is_changed = true;
    return true;
}

static bool spread_to_readers(struct planner *p, unsigned reduction, int64_t length,
                              bool *is_changed)
{
    const struct program *program = p->program;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim = program_reduction_shape(program, reduction, shape);
    int axis = p->round_axes[program->reductions[reduction].pass];

    if (axis < 0)
        return true;
    axis = result_axis(program, reduction, axis);
    for (unsigned i = 0; i < program->n_passes; i++) {
        const struct pass *pass = &program->passes[i];
        if ((pass->reduced_used >> reduction & 1) &&
            !want(p, i, pass->ndim - ndim + axis, length, is_changed))
            return false;
    }
    return true;
}

/* From the passes that are cut so far to all that have to be. */
static bool spread(struct planner *p, int64_t length)
{
    bool is_changed = true;

    while (is_changed) {
        is_changed = false;
        for (unsigned i = 0; i < p->program->n_reductions; i++)
            if (!spread_to_readers(p, i, length, &is_changed))
                return false;
    }
    return true;
}

/* The chunks along the passes' round axes: their common multiple. */
static int64_t chunk_unit(const struct planner *p, int64_t length)
{
    const struct program *program = p->program;
    int64_t unit = 1;

    for (unsigned i = 0; i < program->n_passes; i++) {
        const struct pass *pass = &program->passes[i];
        for (unsigned k = 0; k < program->n_inputs && p->round_axes[i] >= 0; k++) {
            const struct program_input *input = &program->inputs[k];
            const int64_t *chunks = array_chunk_shape(&p->request->args[input->arg].array);
            int own = p->round_axes[i] - (pass->ndim - input->ndim);
            if (!(pass->inputs_used >> k & 1) || own < 0 || input->shape[own] != length || !chunks)
                continue;
            int64_t common = greatest_common_divisor(unit, chunks[own]);
            unit = multiply_saturating(unit / common, chunks[own]);
        }
    }
    return unit < length ? unit : 1;
}

static bool fits_at(struct planner *p, int64_t round_length, uint64_t max_bytes)
{
    p->round_length = round_length;
    return planner_least_result_bytes(p) <= max_bytes && planner_result_bytes(p) <= max_bytes;
}

/* The longest rounds whose results fit. */
static bool choose_length(struct planner *p, int64_t length, uint64_t max_bytes)
{
    int64_t unit = chunk_unit(p, length), round_length = unit;

    if (!fits_at(p, unit, max_bytes)) {
        for (round_length = 1; 2 * round_length < unit; round_length *= 2)
            ;
        while (round_length > 1 && !fits_at(p, round_length, max_bytes))
            round_length /= 2;
        return fits_at(p, round_length, max_bytes);
    }
    while (round_length <= (length - 1) / 2 && fits_at(p, 2 * round_length, max_bytes))
        round_length *= 2;
    return fits_at(p, round_length, max_bytes);
}

/* The largest result of which the pass is not cut, and may be; n_reductions: there is none. */
static unsigned largest_whole(const struct planner *p)
{
    unsigned best = p->program->n_reductions;
    uint64_t most = 0;

    for (unsigned i = 0; i < p->program->n_reductions; i++) {
        uint64_t n_bytes = planner_one_result_bytes(p, i);
        unsigned pass = p->program->reductions[i].pass;
        if (p->round_axes[pass] < 0 && n_bytes > most && !has_table(p->program, pass)) {
            best = i;
            most = n_bytes;
        }
    }
    return best;
}

/* Cuts one pass more along some axis of this length, and whatever follows. */
static bool cut_one_more(struct planner *p, int64_t length)
{
    unsigned which = largest_whole(p);
    int before[PROGRAM_MAX_PASSES];

    if (which == p->program->n_reductions)
        return false;
    unsigned pass = p->program->reductions[which].pass;
    memcpy(before, p->round_axes, sizeof(before));
    for (int axis = 0; axis < p->program->passes[pass].ndim; axis++) {
        bool is_changed;
        if (want(p, pass, axis, length, &is_changed) && spread(p, length))
            return true;
        memcpy(p->round_axes, before, sizeof(before));
    }
    return false;
}

static void cut_nothing(struct planner *p)
{
    p->round_length = 0;
    for (unsigned i = 0; i < PROGRAM_MAX_PASSES; i++)
        p->round_axes[i] = -1;
}

static bool try_axis(struct planner *p, unsigned pass, int axis, uint64_t max_bytes)
{
    int64_t length = p->program->passes[pass].shape[axis];
    bool is_changed;

    cut_nothing(p);
    if (length < 2 || !want(p, pass, axis, length, &is_changed) || !spread(p, length))
        return false;
    do {
        if (choose_length(p, length, max_bytes))
            return true;
    } while (cut_one_more(p, length));
    return false;
}

bool planner_choose_rounds(struct planner *p, uint64_t max_bytes)
{
    cut_nothing(p);
    unsigned which = largest_whole(p);

    if (which == p->program->n_reductions)
        return false;
    unsigned pass = p->program->reductions[which].pass;
    for (int i = 0; i < p->program->passes[pass].ndim; i++)
        if (try_axis(p, pass, p->plan->passes[pass].geometry.axis_order[i], max_bytes))
            return true;
    cut_nothing(p);
    return false;
}
