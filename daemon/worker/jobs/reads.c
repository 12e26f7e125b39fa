/* Inputs that are near (kernels/neighbours.h) and the ports that they are read from.
 *
 * An argument in memory is read where it lies: each input has a view of its own, as far from the
 * grain as its offsets say, and the engine sees to the ends of axes. Of others the grain's box is
 * read with what lies around it, and the views are into that:
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

void reads_box(const struct program *program, const struct pass_port *input, int ndim,
               const int64_t *start, const int64_t *count, struct port_box *ret_box)
{
    if (input->is_near && !port_can(input->port, PORT_MAPPED))
        neighbours_box(program, input->together, ndim, start, count, ret_box->start,
                       ret_box->count);
    else
        port_pass_box(input->port, ndim, start, count, ret_box);
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

/* From the box's beginning to the grain's first element, along one of the port's axes. */
static int64_t distance_to(const struct port *port, const struct port_box *box, int axis,
                           int64_t place, bool goes_on)
{
    int64_t distance = place - box->start[axis], length = port->array.shape[axis];
    if (!goes_on)
        return distance;
    return distance < 0 ? distance + length : distance >= length ? distance - length : distance;
}

void reads_views(const struct program *program, const struct pass_port *input, int ndim,
                 const int64_t *start, const struct port_box *box, struct engine_view *views)
{
    const struct engine_view view = views[input->index];
    const struct port *port = input->port;
    uint32_t axes = going_on(input, box);
    int n_missing = ndim - port->array.ndim;
    unsigned last = input->index;
    for (uint64_t left = input->together; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        const struct program_input *of = &program->inputs[i];
        char *base = view.base;
        for (int own = 0; own < port->array.ndim; own++) {
            int64_t place = start[n_missing + own] + (of->is_near ? of->offsets[own] : 0);
            if (port->array.shape[own] > 1)
                base += distance_to(port, box, own, place, axes >> own & 1) *
                        view.strides[n_missing + own];
        }
        views[i] = view;
        views[i].base = base;
        views[i].goes_on_axes = axes << n_missing;
        views[i].is_fetched_ahead = false;
        last = views[i].base > views[last].base ? i : last;
    }
    views[last].is_fetched_ahead = view.is_fetched_ahead; /* the others have been there before */
}
