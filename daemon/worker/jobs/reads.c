/* Inputs that are read near (kernels/neighbours.h) and the ports that they are read from.
 *
 * An argument in memory is read where it lies. Of others the grain's box is read with what lies
 * around it, and the view is into that; the engine finds in it what is near, and sees to the ends
 * of axes:
 *
 *     slot:   . . . . . . . . .        u: | grain |, near(u, -1, 0): the same, a row above
 *             . . | grain | . .
 *             . . . . . . . . .
 *
 * Where a box goes on beyond the end of an axis with what is at its beginning, it is read in parts,
 * each to its place; a client that is asked for it does the same.
 *
 * Called by tiles and walks for the boxes, by the CPU engine for the rest.
 */
#include "daemon/worker/jobs/reads.h"
#include "kernels/neighbours.h"

/* Axes, bits, along which the box goes on beyond the end. */
static uint32_t going_on(const struct pass_port *input, const struct port_box *box)
{
    uint32_t axes = 0;
    for (int i = 0; input->is_near && i < input->port->array.ndim; i++)
        if (box->start[i] + box->count[i] > input->port->array.shape[i])
            axes |= UINT32_C(1) << i;
    return axes;
}

void reads_box(const struct program *program, const struct pass *pass,
               const struct pass_port *input, const int64_t *start, const int64_t *count,
               struct port_box *ret_box)
{
    if (input->is_near && !port_can(input->port, PORT_MAPPED))
        neighbours_box(program, pass, input->index, start, count, ret_box->start, ret_box->count);
    else
        port_pass_box(input->port, pass->ndim, start, count, ret_box);
}

/* `behind`: of the axes along which the box goes on, those of which this is the part behind the
 * end. */
static int fill_part(const struct port *port, const struct port_box *box, uint32_t axes,
                     uint32_t behind, const struct engine_view *whole, const struct port_io *io,
                     struct gad_error *error)
{
    struct port_box part = *box;
    struct engine_view view = *whole;
    for (; axes != 0; axes &= axes - 1) {
        int axis = __builtin_ctz(axes);
        int64_t n_before = port->array.shape[axis] - box->start[axis];
        part.count[axis] = n_before;
        if (!(behind >> axis & 1))
            continue;
        part.start[axis] = 0;
        part.count[axis] = box->count[axis] - n_before;
        view.base = (char *)view.base + n_before * view.strides[axis];
    }
    return port->ops->fill_view(port, &part, &view, io, error);
}

int reads_fill(const struct pass_port *input, const struct port_box *box, void *memory,
               const struct port_io *io, struct gad_error *error)
{
    const struct port *port = input->port;
    uint32_t axes = going_on(input, box), behind = axes;
    struct engine_view view;
    if (axes == 0)
        return port->ops->fill(port, box, memory, io, error);
    port->ops->place(port, box, memory, &view);
    for (;; behind = (behind - 1) & axes) { /* all sets of these axes */
        int r = fill_part(port, box, axes, behind, &view, io, error);
        if (r != 0 || behind == 0)
            return r;
    }
}

void reads_prefetch(const struct pass_port *input, const struct port_box *box)
{
    if (input->port->ops->prefetch && going_on(input, box) == 0)
        input->port->ops->prefetch(input->port, box);
}

void reads_view(const struct pass_port *input, int ndim, const int64_t *start,
                const struct port_box *box, struct engine_view *view)
{
    const struct port *port = input->port;
    uint32_t axes = going_on(input, box);
    int n_missing = ndim - port->array.ndim;
    char *base = view->base;
    for (int own = 0; own < port->array.ndim; own++) {
        int axis = n_missing + own;
        int64_t length = port->array.shape[own], at = start[axis] - box->start[own];
        if (length == 1)
            continue;
        if (axes >> own & 1)
            at += at < 0 ? length : 0;
        view->goes_on_at[axis] = at;
        base += at * view->strides[axis];
    }
    view->base = base;
    view->goes_on_axes = axes << n_missing;
}
