/* Blocks of a source for all grains of a tile (kernels/plan/strips.c says why).
 *
 *     block   | row |pad| row |pad| row |pad| ...      a row: the source's box for one element
 *              ^ grain                                 along strip_axis, packed as its port does it
 *
 * The block is the tile's, in the job's carry, from when the tile begins until it is dropped, so an
 * I/O thread may read it and a compute thread go on. It is read row by row through the port of the
 * pass's only source; a read that would wait begins anew in the I/O thread.
 *
 * Called by the CPU engine's turns.
 */
#include "daemon/worker/strips.h"

static const struct plan_pass *plan_of(const struct tile *t)
{
    return &t->job->plan.passes[t->job->pass];
}

/* All grains of the tile together: they are neighbours along one axis. */
static void block_box(const struct tile *t, struct port_box *ret_box)
{
    const struct plan_pass *plan = plan_of(t);
    const struct geometry *g = &plan->geometry;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    uint64_t first, n;
    plan_tile_grains(plan, t->index, &first, &n);
    geometry_grain(g, first, ret_box->start, ret_box->count);
    geometry_grain(g, first + n - 1, start, count);
    for (int i = 0; i < g->ndim; i++)
        ret_box->count[i] = start[i] + count[i] - ret_box->start[i];
}

int strips_fill(struct tile *t, struct thread_context *th)
{
    const struct plan_pass *plan = plan_of(t);
    const struct port *port = t->job->inputs[0].port;
    int axis = plan->strip_axis;
    struct port_box row;
    if (t->has_block)
        return 0;
    block_box(t, &row);
    int64_t n_rows = row.count[axis];
    row.count[axis] = 1;
    for (int64_t i = 0; i < n_rows; i++, row.start[axis]++) {
        int r = port->ops->fill(port, &row, t->block + (uint64_t)i * plan->strip_row_bytes, &th->io,
                                &th->error);
        if (r)
            return r;
    }
    t->has_block = true;
    return 0;
}

void strips_view(const struct tile *t, const struct thread_context *th, struct cpu_view *ret_view)
{
    const struct plan_pass *plan = plan_of(t);
    const struct port *port = t->job->inputs[0].port;
    int axis = plan->strip_axis;
    struct port_box box;
    block_box(t, &box);
    box.count[axis] = 1;
    port->ops->place(port, &box, t->block, ret_view);
    ret_view->strides[axis] = (int64_t)plan->strip_row_bytes;
    char *base = (char *)ret_view->base;
    for (int i = 0; i < plan->geometry.ndim; i++)
        base += (th->start[i] - box.start[i]) * ret_view->strides[i];
    ret_view->base = base;
}
