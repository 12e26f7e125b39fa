/* Grains that are read and written at once.
 *
 * A system call for 1 MiB copies faster than four of 256 KiB, and a slot often has room for the
 * operands of several grains. Neighbours along the axis in which grains are numbered fastest are
 * one box together:
 *
 *     slot:   | input 0 of grains 4, 5, 6, 7 | output 0 of grains 4, 5, 6, 7 |
 *                            ^ grain 5's part is found through the view of the whole
 *
 * It is read with the first of them and written with the last, and stays in the slot meanwhile: so
 * only where nothing else comes into the slot, and where the tile keeps it. Which grains these are
 * is the tile's business, not the thread's: another one may go on with it.
 *
 * Called by the CPU engine's turns and reads (turn.c).
 */
#include "daemon/worker/cpu/engine.h"
#include "daemon/worker/jobs/reads.h"
#include "kernels/neighbours.h"
#include "proto/util.h"

#include <string.h>

/* Along which neighbours lie; -1: there is one grain. */
static int fastest_axis(const struct geometry *g)
{
    for (int i = g->ndim - 1; i >= 0; i--)
        if (g->grid[g->grid_order[i]] > 1)
            return g->grid_order[i];
    return -1;
}

/* The pass's axis as the port has it; -1: all its grains have the same of the port. */
static int own_axis(const struct tile *t, const struct port *port)
{
    int own = t->together.axis - (tile_pass(t)->ndim - port->array.ndim);
    return own >= 0 && port->array.shape[own] != 1 ? own : -1;
}

/* One grain's bytes of a staged operand, of which grains have different parts or one for all.
 * False: its grains go one by one. */
static bool add_operand(const struct tile *t, const struct port *port, const struct port_box *box,
                        uint64_t *grain_bytes, uint64_t *fixed_bytes)
{
    if (!port_can(port, PORT_STAGED))
        return true;
    if (!port_can(port, PORT_LONG) || port->is_transposed)
        return false;
    *(own_axis(t, port) < 0 ? fixed_bytes : grain_bytes) += (uint64_t)port_box_bytes(port, box);
    return true;
}

/* The box of an input that is read near, of all grains together. */
static void near_box_of_all(const struct tile *t, const struct thread_context *th, unsigned input,
                            struct port_box *ret_box)
{
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    int ndim = tile_pass(t)->ndim;
    memcpy(start, th->start, (size_t)ndim * sizeof(start[0]));
    memcpy(count, th->count, (size_t)ndim * sizeof(count[0]));
    if (t->together.end - t->together.first > 1) {
        start[t->together.axis] = t->together.start;
        count[t->together.axis] = t->together.count;
    }
    reads_box(t->job->program, tile_pass(t), &t->ports->inputs[input], start, count, ret_box);
}

/* Of a grain's box and what lies around it, along the axis of all, once. */
static bool add_near(const struct tile *t, const struct thread_context *th, unsigned input,
                     uint64_t *grain_bytes, uint64_t *fixed_bytes)
{
    const struct pass_port *near = &t->ports->inputs[input];
    const struct port_box *box = &th->input_boxes[input];
    uint64_t n_bytes = (uint64_t)port_box_bytes(near->port, box);
    int own = own_axis(t, near->port);
    int64_t reach[ARRAY_MAX_NDIM];
    if (!port_can(near->port, PORT_STAGED))
        return true;
    if (!port_can(near->port, PORT_LONG))
        return false;
    if (own < 0) {
        *fixed_bytes += n_bytes;
        return true;
    }
    n_bytes /= (uint64_t)box->count[own]; /* of one element along the axis */
    *grain_bytes += n_bytes * (uint64_t)th->count[t->together.axis];
    if (neighbours_reach(t->job->program, tile_pass(t), near->index, reach))
        *fixed_bytes += n_bytes * (uint64_t)reach[own];
    return true;
}

/* How many grains' operands the slot has room for. */
static uint64_t count_fitting(const struct tile *t, const struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    uint64_t fixed_bytes = 0, grain_bytes = 0, written_once = 0;
    if (tile_pass(t)->repeats) /* the slot is for what these keep */
        return 1;
    for (unsigned i = 0; i < ports->n_inputs; i++)
        if (!(ports->inputs[i].is_near ? add_near(t, th, i, &grain_bytes, &fixed_bytes)
                                       : add_operand(t, ports->inputs[i].port, &th->input_boxes[i],
                                                     &grain_bytes, &fixed_bytes)))
            return 1;
    for (unsigned i = 0; i < ports->n_outputs; i++)
        if (!add_operand(t, ports->outputs[i].port, &th->output_boxes[i], &grain_bytes,
                         &written_once))
            return 1;
    if (grain_bytes == 0 || written_once > 0 || fixed_bytes >= th->slot_bytes)
        return 1;
    return max_u64((th->slot_bytes - fixed_bytes) / grain_bytes, 1);
}

void together_begin(struct tile *t, const struct thread_context *th)
{
    const struct geometry *g = &tile_plan(t)->geometry;
    struct together *s = &t->together;
    *s = (struct together){.first = t->grain, .end = t->grain + 1, .axis = fastest_axis(g)};
    if (s->axis < 0 || !t->ports->needs_slot || t->job->has_rings || t->block ||
        !t->job->walk.ops->has_runs)
        return;
    uint64_t length = (uint64_t)g->grid[s->axis];
    uint64_t n = min_u64(count_fitting(t, th), length - t->grain % length);
    n = min_u64(n, t->end - t->grain);
    int64_t left = g->shape[s->axis] - th->start[s->axis];
    s->end = t->grain + n;
    s->start = th->start[s->axis];
    s->count = n == 1 ? th->count[s->axis]
                      : (int64_t)min_u64(n * (uint64_t)g->grain_shape[s->axis], (uint64_t)left);
}

/* In which the box of all is longer than the grain's; -1: in none. */
static int longer_axis(const struct tile *t, const struct port *port)
{
    return t->together.end - t->together.first == 1 ? -1 : own_axis(t, port);
}

static void box_of_all(const struct tile *t, const struct port_box *box, int ndim, int own,
                       struct port_box *ret_box)
{
    memcpy(ret_box->start, box->start, (size_t)ndim * sizeof(box->start[0]));
    memcpy(ret_box->count, box->count, (size_t)ndim * sizeof(box->count[0]));
    ret_box->start[own] = t->together.start;
    ret_box->count[own] = t->together.count;
}

int64_t together_bytes(const struct tile *t, const struct port *port, const struct port_box *box)
{
    int own = longer_axis(t, port);
    int64_t n_bytes = port_box_bytes(port, box);
    return own < 0 ? n_bytes : n_bytes / box->count[own] * t->together.count;
}

void together_place(const struct tile *t, const struct port *port, const struct port_box *box,
                    void *memory, struct engine_view *ret_view)
{
    int own = longer_axis(t, port);
    struct port_box all;
    if (own < 0) {
        port->ops->place(port, box, memory, ret_view);
        return;
    }
    box_of_all(t, box, port->array.ndim, own, &all);
    port->ops->place(port, &all, memory, ret_view);
    int64_t distance = box->start[own] - all.start[own];
    ret_view->base = (char *)ret_view->base + distance * ret_view->strides[own];
}

int64_t together_input_bytes(const struct tile *t, const struct thread_context *th, unsigned input)
{
    const struct pass_port *of = &t->ports->inputs[input];
    struct port_box all;
    if (!of->is_near)
        return together_bytes(t, of->port, &th->input_boxes[input]);
    near_box_of_all(t, th, input, &all);
    return port_box_bytes(of->port, &all);
}

void together_input_views(const struct tile *t, struct thread_context *th, unsigned input)
{
    const struct pass_port *of = &t->ports->inputs[input];
    struct engine_view *view = &th->inputs[of->index];
    int ndim = tile_pass(t)->ndim;
    struct port_box all;
    view->goes_on_axes = 0;
    if (!of->is_near) {
        together_place(t, of->port, &th->input_boxes[input], th->input_memory[input], view);
        port_pass_view(of->port, ndim, view);
        return;
    }
    near_box_of_all(t, th, input, &all);
    of->port->ops->place(of->port, &all, th->input_memory[input], view);
    port_pass_view(of->port, ndim, view);
    reads_view(of, ndim, th->start, &all, view);
}

int together_fill(const struct tile *t, struct thread_context *th, unsigned input)
{
    const struct pass_port *of = &t->ports->inputs[input];
    struct port_box all = th->input_boxes[input];
    int own = longer_axis(t, of->port);
    if (of->is_near)
        near_box_of_all(t, th, input, &all);
    else if (own >= 0)
        box_of_all(t, &th->input_boxes[input], of->port->array.ndim, own, &all);
    return reads_fill(of, &all, th->input_memory[input], &th->io, &th->error);
}

int together_store(const struct tile *t, struct thread_context *th)
{
    if (t->grain + 1 < t->together.end)
        return 0;
    for (unsigned i = 0; i < t->ports->n_outputs; i++) {
        const struct port *port = t->ports->outputs[i].port;
        int own = longer_axis(t, port);
        struct port_box box = th->output_boxes[i];
        if (own >= 0)
            box_of_all(t, &th->output_boxes[i], port->array.ndim, own, &box);
        int r = 0;
        if (port->ops->store)
            r = port->ops->store(port, &box, th->output_memory[i], &th->io, &th->error);
        if (r)
            return r;
    }
    return 0;
}
