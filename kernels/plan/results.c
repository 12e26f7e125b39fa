/* The results of reductions in the carry: who writes and who reads which of them.
 *
 * A result lies densely in C order of its shape; where the job goes in rounds and the result is cut
 * along an axis, that axis has the length of a round, and the place is used again by every round.
 * A node has its cells in visiting order of the kept axes (the geometry's walking order), so
 * keeping a chain's values is a copy between two orders: of runs, where the fastest axis of both is
 * the same. Different chains write different values, so any number of threads may keep at a time.
 * Counts have their bins behind everything else in both; running sums along the bins are made here.
 *
 * The states of scans are such results too, which tiles read and write as they go.
 *
 * Called by the worker: once a chain, and once a grain of a pass that reads results.
 */
#include "kernels/plan/plan.h"
#include "proto/box.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

/* Of a result: steps between neighbours along the axes of the pass that makes it (0 along the
 * reduced ones); an axis of bins is behind them. Returns the number of elements. */
static uint64_t result_strides(const struct plan *plan, const struct program *program,
                               unsigned reduction, int64_t *ret_strides)
{
    unsigned index = program->reductions[reduction].pass;
    const struct pass *pass = &program->passes[index];
    const struct geometry *g = &plan->passes[index].geometry;
    const struct reduction *r = &program->reductions[reduction];
    int64_t stride = (int64_t)(dtype_size((enum dtype)r->result) * reduce_values_per_cell(r));
    uint64_t n = reduce_values_per_cell(r);

    for (int axis = pass->ndim - 1; axis >= 0; axis--) {
        int64_t length = axis == g->round_axis ? g->round_length : pass->shape[axis];
        bool is_reduced = pass->reduced_axes >> axis & 1;
        ret_strides[axis] = is_reduced ? 0 : stride;
        if (is_reduced)
            continue;
        stride *= length;
        n *= (uint64_t)length;
    }
    return n;
}

/* The axis of the reading pass that is this axis of the pass that makes the result; -1: none. */
static int reader_axis(const struct program *program, unsigned reduction, int axis, int reader_ndim)
{
    const struct reduction *r = &program->reductions[reduction];
    const struct pass *maker = &program->passes[r->pass];
    int behind = (r->n_bins > 0) + (r->op == OP_QR_R); /* axes of the result behind this one */

    if (maker->reduced_axes >> axis & 1)
        return -1;
    for (int i = axis + 1; i < maker->ndim; i++)
        behind += r->keeps_dims || !(maker->reduced_axes >> i & 1);
    assert(behind < reader_ndim);
    return reader_ndim - 1 - behind;
}

/* The axis of bins is the reader's last one. An R lies column by column. */
static void add_bins(const struct reduction *r, int axis, const int64_t *start,
                     struct engine_view *view)
{
    int64_t stride = (int64_t)dtype_size((enum dtype)r->result);

    if (r->n_bins < 2)
        return;
    if (r->op == OP_QR_R) {
        view->strides[axis - 1] = stride;
        view->base = (char *)view->base + start[axis - 1] * stride;
        stride *= (int64_t)r->n_bins;
    }
    view->strides[axis] = stride;
    view->base = (char *)view->base + start[axis] * stride;
}

void plan_result_view(const struct plan *plan, const struct program *program, unsigned reduction,
                      unsigned pass, const int64_t *start, char *carry,
                      struct engine_view *ret_view)
{
    unsigned index = program->reductions[reduction].pass;
    const struct pass *maker = &program->passes[index];
    const struct geometry *g = &plan->passes[index].geometry;
    int64_t strides[ARRAY_MAX_NDIM];

    *ret_view = (struct engine_view){.base = carry + plan->results[reduction].offset_bytes};
    (void)result_strides(plan, program, reduction, strides);
    for (int axis = 0; axis < maker->ndim; axis++) {
        int own = reader_axis(program, reduction, axis, program->passes[pass].ndim);
        if (own < 0 || maker->shape[axis] == 1)
            continue;
        int64_t place = axis == g->round_axis ? start[own] % g->round_length : start[own];
        ret_view->strides[own] = strides[axis];
        ret_view->base = (char *)ret_view->base + place * strides[axis];
    }
    add_bins(&program->reductions[reduction], program->passes[pass].ndim - 1, start, ret_view);
}

void *plan_table(const struct plan *plan, unsigned reduction, char *carry)
{
    return carry + plan->results[reduction].offset_bytes;
}

void plan_state_view(const struct plan *plan, const struct program *program, unsigned reduction,
                     const int64_t *start, char *carry, struct engine_view *ret_view)
{
    unsigned index = program->reductions[reduction].pass;
    const struct geometry *g = &plan->passes[index].geometry;

    *ret_view = (struct engine_view){.base = carry + plan->results[reduction].offset_bytes};
    (void)result_strides(plan, program, reduction, ret_view->strides);
    for (int axis = 0; axis < g->ndim; axis++) {
        int64_t place = axis == g->round_axis ? start[axis] % g->round_length : start[axis];
        ret_view->base = (char *)ret_view->base + place * ret_view->strides[axis];
    }
}

/* Where the chain's first cell goes; its kept axes in visiting order. */
static char *place_chain(const struct plan_pass *pass, const int64_t *strides, uint64_t grain,
                         int64_t open_length, char *to, struct box *ret_box)
{
    const struct geometry *g = &pass->geometry;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];

    geometry_grain(g, grain, start, count);
    plan_open_clip(pass, open_length, start, count);
    ret_box->n = 0;
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        if (g->reduced_axes >> axis & 1)
            continue;
        to += (axis == g->round_axis ? start[axis] % g->round_length : start[axis]) * strides[axis];
        box_add(ret_box, count[axis], strides[axis], 0);
    }
    box_need_axis(ret_box, 0, 0);
    return to;
}

/* Cells with all of their bins. */
static void copy_bins(const struct reduction *r, char *to, int64_t stride, const char *from,
                      int64_t n)
{
    size_t cell_bytes = reduce_values_per_cell(r) * sizeof(int64_t);

    for (int64_t i = 0; i < n; i++, to += stride, from += cell_bytes) {
        const int64_t *counts = (const int64_t *)from;
        int64_t *sums = (int64_t *)to, sum = 0;
        if (!r->is_cumulative) {
            memcpy(to, from, cell_bytes);
            continue;
        }
        for (uint32_t bin = 0; bin < r->n_bins; bin++)
            sums[bin] = sum += counts[bin];
    }
}

/* Sums begin with -0 in kernels, since that changes none; adding 0 makes them NumPy's. */
static void copy_sums(char *to, int64_t stride, const char *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++, to += stride) {
        double sum = ((const double *)from)[i] + 0.0;
        memcpy(to, &sum, sizeof(sum));
    }
}

static void copy_cells(const struct reduction *r, const struct box *box, char *to, const char *from)
{
    size_t item_bytes = dtype_size((enum dtype)r->result);
    int64_t n = box->axes[0].count, stride = box->axes[0].strides[0];
    struct box_place place = {.index = {0}};

    do {
        char *line = to + place.offset[0];
        if (r->n_bins > 0)
            copy_bins(r, line, stride, from, n);
        else if (r->op == OP_SUM && r->result == DTYPE_FLOAT64 && !r->has_minus_zero)
            copy_sums(line, stride, from, n);
        else
            box_copy_line(line, stride, from, (int64_t)item_bytes, n, item_bytes);
        from += (size_t)n * item_bytes * reduce_values_per_cell(r);
    } while (box_next(box->axes + 1, box->n - 1, &place));
}

void plan_keep_results(const struct plan *plan, const struct program *program, unsigned pass,
                       uint64_t first_grain, int64_t open_length,
                       const struct reduce_layout *layout, const void *node, char *carry)
{
    unsigned first = program->passes[pass].first_reduction;

    for (unsigned i = 0; i < layout->n_reductions; i++) {
        int64_t strides[ARRAY_MAX_NDIM];
        struct box box;
        char *to = carry + plan->results[first + i].offset_bytes;
        (void)result_strides(plan, program, first + i, strides);
        to = place_chain(&plan->passes[pass], strides, first_grain, open_length, to, &box);
        copy_cells(&layout->reductions[i], &box, to, reduce_values(layout, node, i));
    }
}

void plan_keep_identities(const struct plan *plan, const struct program *program, unsigned pass,
                          uint64_t round, char *carry)
{
    const struct pass *p = &program->passes[pass];

    (void)round; /* a round's place is the same for all */
    if (plan->passes[pass].n_tiles > 0 && !plan->passes[pass].has_open_axis)
        return; /* it has elements, in the first round */
    for (unsigned i = p->first_reduction; i < (unsigned)p->first_reduction + p->n_reductions; i++) {
        int64_t strides[ARRAY_MAX_NDIM];
        reduce_fill_identity(&program->reductions[i], result_strides(plan, program, i, strides),
                             carry + plan->results[i].offset_bytes);
    }
}
