/* Blocks of tiles that transpose a file (kernels/plan/swaths.c says why there are two kinds).
 *
 * Mapped: the source is used where the mapping has it, the block is the output's.
 *
 *     block   | row of the output | row | ...          the tile's box, packed as its port does it
 *              ^ grain                                 and written at once
 *
 * A page that is not in the cache would make the thread wait for a disk when it touches it. So a
 * few elements of the tile are read first, in the way that does not wait; where one is not there an
 * I/O thread asks for all that the tile needs, with what lies beside it for the tiles that follow,
 * and waits. What leaves the cache meanwhile is waited for after all (mapping.c).
 *
 * Read: the block is the source's.
 *
 *     block   | row |pad| row |pad| row |pad| ...      a row: the source's box for one element
 *              ^ grain                                 along swath_axis, packed as its port does it
 *
 * It is read row by row through the port of the pass's only source; a read that would wait begins
 * anew in the I/O thread.
 *
 * The block is the tile's, in the job's carry, from when the tile begins until it is dropped, so an
 * I/O thread may read it and a compute thread go on. Called by the CPU engine's turns, and as a job
 * begins.
 */
#include "daemon/worker/jobs/swaths.h"
#include "daemon/worker/jobs/mapping.h"
#include "proto/util.h"

#define N_SAMPLES    8
#define BESIDE_BYTES (64 * 1024) /* of a row, asked for together */

static const struct port *source_of(const struct tile *t)
{
    return t->ports->inputs[0].port;
}

/* All grains of the tile together: they are neighbours along one axis. */
static void block_box(const struct tile *t, struct port_box *ret_box)
{
    const struct plan_pass *plan = tile_plan(t);
    const struct geometry *g = &plan->geometry;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    uint64_t first, n;
    plan_tile_grains(plan, t->index, &first, &n);
    geometry_grain(g, first, ret_box->start, ret_box->count);
    geometry_grain(g, first + n - 1, start, count);
    for (int i = 0; i < g->ndim; i++)
        ret_box->count[i] = start[i] + count[i] - ret_box->start[i];
}

/* From the block's first element to the grain's. */
static void go_to_grain(const struct port_box *box, const struct thread_context *th, int ndim,
                        struct engine_view *view)
{
    char *base = view->base;
    for (int i = 0; i < ndim; i++)
        base += (th->start[i] - box->start[i]) * view->strides[i];
    view->base = base;
}

/* Mapped ------------------------------------------------------------------------------------- */

/* Along the axis that the source is slowest in, of the tile's box. */
static int swath_row_axis(const struct tile *t)
{
    const struct geometry *g = &tile_plan(t)->geometry;
    return g->grid_order[g->ndim - 1];
}

static int sample(const struct tile *t, struct thread_context *th)
{
    struct port_box box;
    block_box(t, &box);
    int axis = swath_row_axis(t);
    int64_t start = box.start[axis], n = box.count[axis];
    int r = 0;
    for (int64_t i = 0; i < N_SAMPLES && !r; i++) {
        box.start[axis] = start + (n - 1) * i / (N_SAMPLES - 1);
        r = mapping_touch(source_of(t), &box, th);
    }
    return r;
}

/* Asks for all rows first, so that the disk has them all to do, and then waits for each. */
static int load_rows(const struct tile *t, struct thread_context *th)
{
    const struct port *port = source_of(t);
    const struct geometry *g = &tile_plan(t)->geometry;
    struct port_box box, row;
    block_box(t, &box);
    int axis = swath_row_axis(t), column = g->grid_order[g->ndim - 2];
    int64_t n_beside = BESIDE_BYTES / port->item_bytes, n = box.count[axis];
    row = box;
    row.count[axis] = 1;
    row.count[column] =
        (int64_t)min_u64((uint64_t)max_u64((uint64_t)box.count[column], (uint64_t)n_beside),
                         (uint64_t)(port->array.shape[column] - box.start[column]));
    for (int64_t i = 0; i < n; i++, row.start[axis]++)
        port->ops->prefetch(port, &row);
    int r = 0;
    row.start[axis] = box.start[axis];
    for (int64_t i = 0; i < n && !r; i++, row.start[axis]++)
        r = mapping_touch(port, &row, th);
    return r;
}

static int fill_mapped(struct tile *t, struct thread_context *th)
{
    if (t->has_block)
        return 0;
    int r = th->io.may_block ? load_rows(t, th) : sample(t, th);
    t->has_block = r == 0;
    return r;
}

bool swaths_output(const struct tile *t, const struct thread_context *th,
                   struct engine_view *ret_view)
{
    if (!t->block || !tile_plan(t)->swaths_are_mapped)
        return false;
    const struct port *port = t->ports->outputs[0].port;
    struct port_box box;
    block_box(t, &box);
    port->ops->place(port, &box, t->block, ret_view);
    go_to_grain(&box, th, tile_plan(t)->geometry.ndim, ret_view);
    return true;
}

int swaths_store(const struct tile *t, struct thread_context *th)
{
    const struct port *port = t->ports->outputs[0].port;
    struct port_box box;
    if (!tile_plan(t)->swaths_are_mapped)
        return tile_store(t, th);
    if (t->grain + 1 < t->end)
        return 0;
    int r = mapping_check(source_of(t), &th->error);
    if (r)
        return r;
    block_box(t, &box);
    return port->ops->store(port, &box, t->block, &th->io, &th->error);
}

/* Read --------------------------------------------------------------------------------------- */

static int fill_block(struct tile *t, struct thread_context *th)
{
    const struct plan_pass *plan = tile_plan(t);
    const struct port *port = source_of(t);
    int axis = plan->swath_axis;
    struct port_box row;
    if (t->has_block)
        return 0;
    block_box(t, &row);
    int64_t n_rows = row.count[axis];
    row.count[axis] = 1;
    for (int64_t i = 0; i < n_rows; i++, row.start[axis]++) {
        int r = port->ops->fill(port, &row, t->block + (uint64_t)i * plan->swath_row_bytes, &th->io,
                                &th->error);
        if (r)
            return r;
    }
    t->has_block = true;
    return 0;
}

int swaths_fill(struct tile *t, struct thread_context *th)
{
    return tile_plan(t)->swaths_are_mapped ? fill_mapped(t, th) : fill_block(t, th);
}

bool swaths_input(const struct tile *t, const struct thread_context *th,
                  struct engine_view *ret_view)
{
    const struct plan_pass *plan = tile_plan(t);
    const struct port *port = source_of(t);
    struct port_box box;
    if (!t->block)
        return false;
    if (plan->swaths_are_mapped) {
        mapping_view(port, &th->input_boxes[0], ret_view);
        return true;
    }
    block_box(t, &box);
    box.count[plan->swath_axis] = 1;
    port->ops->place(port, &box, t->block, ret_view);
    ret_view->strides[plan->swath_axis] = (int64_t)plan->swath_row_bytes;
    go_to_grain(&box, th, plan->geometry.ndim, ret_view);
    return true;
}
