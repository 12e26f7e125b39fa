/* Inputs that are read near (kernels/neighbours.h) and the ports that they are read from.
 *
 * An argument in memory is read where it lies, unless the engine has all in its slots. Of others
 * the grain's box is read with what lies around it, and the view is into that; the engine finds in
 * it what is near, and sees to the ends of axes:
 *
 *     slot:   . . . . . . . . .        u: | grain |, near(u, -1, 0): the same, a row above
 *             . . | grain | . .
 *             . . . . . . . . .
 *
 * Where a box goes on beyond the end of an axis with what is at its beginning, it is read in parts,
 * each to its place; a client that is asked for it does the same.
 *
 * Called by tiles and walks for the boxes, by the engines for the rest.
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
    if (input->is_near)
        neighbours_box(program, pass, input->index, start, count, ret_box->start, ret_box->count);
    else
        port_pass_box(input->port, pass->ndim, start, count, ret_box);
}

bool reads_goes_on(const struct pass_port *input, const struct port_box *box)
{
    return going_on(input, box) != 0;
}

/* *part: of the axes along which the box goes on, those of which this is the part behind the end.
 * All sets of these axes have their turn. */
bool reads_next_part(const struct pass_port *input, const struct port_box *box,
                     const struct engine_view *whole, uint32_t *part, struct port_box *ret_box,
                     struct engine_view *ret_view)
{
    uint32_t axes = going_on(input, box);
    *ret_box = *box;
    *ret_view = *whole;
    for (uint32_t left = axes; left != 0; left &= left - 1) {
        int axis = __builtin_ctz(left);
        int64_t n_before = input->port->array.shape[axis] - box->start[axis];
        ret_box->count[axis] = n_before;
        if (!(*part >> axis & 1))
            continue;
        ret_box->start[axis] = 0;
        ret_box->count[axis] = box->count[axis] - n_before;
        ret_view->base = (char *)ret_view->base + n_before * whole->strides[axis];
    }
    *part = (*part - axes) & axes;
    return *part != 0;
}

int reads_fill(const struct pass_port *input, const struct port_box *box, void *memory,
               const struct port_io *io, struct gad_error *error)
{
    const struct port *port = input->port;
    struct engine_view whole, view;
    struct port_box of_array;
    uint32_t part = 0;
    int r = 0;
    if (!reads_goes_on(input, box))
        return port->ops->fill(port, box, memory, io, error);
    port->ops->place(port, box, memory, &whole);
    for (bool has_more = true; has_more && r == 0;) {
        has_more = reads_next_part(input, box, &whole, &part, &of_array, &view);
        r = port->ops->fill_view(port, &of_array, &view, io, error);
    }
    return r;
}

void reads_prefetch(const struct pass_port *input, const struct port_box *box)
{
    if (input->port->ops->prefetch && !reads_goes_on(input, box))
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
