/* See walk.h: the stages of a job one after the other, what all kinds of them share.
 *
 * A stage is over when its tiles are done and its sinks' rings are drained; then what it has
 * reduced is there for the stages behind it.
 *
 * An open axis is planned with the most that it may have. When a client says where it ends, the
 * tiles behind that are the stage's no more: none of them has begun, since each waits for its
 * blocks. The tile in which the end is has fewer grains, the last of these fewer rows (tile.c). The
 * stage then waits until all clients with open arrays have said so, and the job has no rounds
 * behind this one.
 */
#include "daemon/worker/jobs/tile.h"
#include "kernels/neighbours.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static void add_port(struct pass_ports *ports, struct port *port, unsigned slot, bool is_sink)
{
    ports->needs_slot |= port_can(port, PORT_STAGED);
    if (port->ring)
        ports->rings[ports->n_rings++] = (struct pass_ring){port, slot, is_sink};
}

void walk_collect_ports(const struct wjob *job, unsigned index, struct pass_ports *ports)
{
    const struct program *program = job->program;
    const struct pass *pass = &program->passes[index];
    ports->n_inputs = ports->n_outputs = ports->n_rings = 0;
    ports->needs_slot = job->fills_slots || pass->repeats != 0;
    for (unsigned i = 0; i < program->n_inputs; i++) {
        if (!(pass->inputs_used >> i & 1))
            continue;
        add_port(ports, &job->ports[i], ports->n_inputs, false);
        bool has_box = job->fills_slots || !port_can(&job->ports[i], PORT_MAPPED);
        bool is_around = pass->repeats || neighbours_are(program, pass, i);
        ports->inputs[ports->n_inputs++] =
            (struct pass_port){.port = &job->ports[i], .index = i, .is_near = has_box && is_around};
    }
    for (unsigned i = 0; i < pass->n_stores; i++) {
        unsigned output = program->stores[pass->first_store + i].output;
        if (output >= program->n_outputs) /* it is an operand of a product */
            continue;
        struct port *port = &job->ports[program->n_inputs + output];
        add_port(ports, port, REQUEST_MAX_ARGS + ports->n_outputs, true);
        ports->outputs[ports->n_outputs++] = (struct pass_port){.port = port, .index = output};
    }
}

const struct port *walk_find_port(const struct pass_ports *ports, const struct ring *ring)
{
    for (unsigned i = 0; i < ports->n_rings; i++)
        if (ports->rings[i].port->ring == ring)
            return ports->rings[i].port;
    return NULL;
}

void walk_collect_rings(struct wjob *job, unsigned n_passes, const struct pass_ports *passes)
{
    struct pass_ports *all = &job->walk.ports;
    all->n_rings = 0;
    all->needs_slot = false;
    for (unsigned pass = 0; pass < n_passes; pass++) {
        const struct pass_ports *ports = &passes[pass];
        all->needs_slot |= ports->needs_slot;
        for (unsigned i = 0; i < ports->n_rings; i++)
            if (!walk_find_port(all, ports->rings[i].port->ring))
                all->rings[all->n_rings++] = ports->rings[i];
    }
}

void walk_ring_box(const struct ring_walk *walk, const struct pass_ports *ports,
                   const struct geometry *geometry, uint64_t grain, int64_t *ret_start,
                   int64_t *ret_count)
{
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    const struct port *asked = walk->port, *port = walk_find_port(ports, asked->ring);
    struct port_box box;
    assert(port);
    geometry_grain(geometry, grain, start, count);
    port_pass_box(port, geometry->ndim, start, count, &box);
    memcpy(ret_start, box.start, (size_t)port->array.ndim * sizeof(*ret_start));
    memcpy(ret_count, box.count, (size_t)port->array.ndim * sizeof(*ret_count));
}

/* Tiles that wait for others ----------------------------------------------------------------- */

void walk_order_begin(struct wjob *job)
{
    job->walk.order = (struct walk_order){.oldest = job->walk.first_tile};
}

bool walk_order_can_begin(const struct wjob *job)
{
    const struct walk *w = &job->walk;
    return w->next_tile - w->order.oldest < PLAN_MAX_WINDOW && w->order.oldest >= w->next.needs;
}

void walk_order_done(struct wjob *job, const struct tile *t)
{
    struct walk_order *order = &job->walk.order;
    order->done[t->index / 64 % ARRAY_LENGTH(order->done)] |= UINT64_C(1) << t->index % 64;
    for (;; order->oldest++) {
        uint64_t *word = &order->done[order->oldest / 64 % ARRAY_LENGTH(order->done)];
        uint64_t bit = UINT64_C(1) << order->oldest % 64;
        if (!(*word & bit))
            return;
        *word &= ~bit;
    }
}

/* Stages ------------------------------------------------------------------------------------- */

/* Enough for all threads, and so few that they stay in the caches; 0: all that there are, of which
 * a device takes several at once. */
static uint32_t stream_blocks(const struct wjob *job)
{
    return job->fills_slots ? 0 : (uint32_t)max_u64(UINT64_C(2) * job->n_threads, 6);
}

/* What an earlier worker has asked a sink's client for may not have been told to it. */
static void begin_rings(struct wjob *job)
{
    const struct walk_ops *ops = job->walk.ops;
    struct gad_error error;
    bool has_asked = false;
    for (unsigned i = 0; i < job->walk.ports.n_rings; i++) {
        const struct pass_ring *r = &job->walk.ports.rings[i];
        const struct ring_walk walk = {
            .find = ops->find_position,
            .box = ops->position_box,
            .job = job,
            .port = r->port,
            .n_ahead = r->port->array.at.provider.is_stream ? stream_blocks(job) : 0};
        ring_begin(r->port->ring, &walk);
        int status = r->is_sink ? 0 : ring_ask(r->port->ring, &error);
        if (status)
            wjob_fail(job, status, &error);
        has_asked |= !r->is_sink || ring_has_asked(r->port->ring);
    }
    if (has_asked) {
        job->wants_signal = true;
        job->told_ns = 0;
    }
}

/* The open axis ------------------------------------------------------------------------------ */

int64_t walk_length(const struct wjob *job, int64_t planned)
{
    bool is_open = job->request->open_length > 0 && planned == job->request->open_length;
    return is_open && job->walk.length < planned ? job->walk.length : planned;
}

/* The stage's tiles end where the axis does. */
static void cut_stage(struct wjob *job)
{
    struct walk *w = &job->walk;
    const struct plan_pass *plan = &job->plan.passes[w->stage->first_pass];
    w->end_grain = UINT64_MAX;
    if (w->length == INT64_MAX || stage_has_turns(w->stage) || !plan->has_open_axis)
        return;
    w->end_grain = plan_open_grains(plan, w->length);
    w->end_tile = max_u64(w->first_tile, min_u64(w->end_tile, plan_open_tiles(plan, w->end_grain)));
}

static int refuse_lengths(const struct port *shorter, const struct port *longer,
                          struct gad_error *error)
{
    int64_t least, most, rows, end;
    ring_length(shorter->ring, &least, &most);
    ring_length(longer->ring, &rows, &end);
    const char *or_more = end == rows ? "" : " or more";
    error_set(error, GAD_BAD_SHAPE, longer->name,
              "%s ended after %" PRId64 " rows, and %s has %" PRId64 "%s: they are computed row by "
              "row, and must be equally long",
              shorter->name, most, longer->name, rows, or_more);
    error_expected(error, "%" PRId64 " rows", most);
    error_found(error, "%" PRId64 " rows%s", rows, or_more);
    return GAD_BAD_SHAPE;
}

static bool is_open_source(const struct pass_ring *ring)
{
    return ring->port->array.is_open && !ring->is_sink;
}

void walk_note_length(struct wjob *job)
{
    struct walk *w = &job->walk;
    const struct port *shortest = NULL, *longest = NULL;
    int64_t length = INT64_MAX, rows = 0, least, most;
    if (job->request->open_length == 0 || job->status)
        return;
    for (unsigned i = 0; i < w->ports.n_rings; i++) {
        const struct port *port = w->ports.rings[i].port;
        if (!is_open_source(&w->ports.rings[i]))
            continue;
        ring_length(port->ring, &least, &most);
        shortest = most < length ? port : shortest;
        longest = least > rows ? port : longest;
        length = min_i64(length, most);
        rows = least > rows ? least : rows;
    }
    if (rows > length) {
        struct gad_error error;
        wjob_fail(job, refuse_lengths(shortest, longest, &error), &error);
    } else if (length < w->length) {
        w->length = length;
        cut_stage(job);
    }
}

/* What clients of open arrays have still to say. */
static bool waits_for_end(const struct wjob *job)
{
    const struct walk *w = &job->walk;
    for (unsigned i = 0; i < w->ports.n_rings && w->length < INT64_MAX; i++)
        if (is_open_source(&w->ports.rings[i]) && !ring_is_over(w->ports.rings[i].port->ring))
            return true;
    return false;
}

static int refuse_nothing(const struct wjob *job, struct gad_error *error)
{
    error_set(error, GAD_BAD_SHAPE, NULL,
              "zero-size array to reduction operation %s which has no identity",
              op_info((enum op)job->program->needs_elements)->name);
    error_expected(error, "at least one element");
    error_found(error, "none");
    return GAD_BAD_SHAPE;
}

static const struct walk_ops *ops_of(const struct program *program, const struct stage *stage)
{
    if (stage->kind == STAGE_PRODUCT)
        return &walk_product_ops;
    if (stage->kind == STAGE_SLAB)
        return &walk_slab_ops;
    bool is_scan = program->passes[stage->first_pass].scanned_axis >= 0;
    return is_scan ? &walk_scan_ops : &walk_pass_ops;
}

static void look_at_next(struct wjob *job)
{
    if (job->walk.next_tile < job->walk.end_tile)
        job->walk.ops->look(job);
}

static void begin_stage(struct wjob *job)
{
    struct walk *w = &job->walk;
    w->ops = ops_of(job->program, w->stage);
    w->ops->begin(job);
    cut_stage(job);
    w->next_tile = w->first_tile;
    w->n_tiles_done = 0;
    look_at_next(job);
    if (job->has_rings)
        begin_rings(job);
}

static bool is_stage_over(const struct wjob *job)
{
    const struct walk *w = &job->walk;
    if (w->n_tiles_done < w->end_tile - w->first_tile)
        return false;
    for (unsigned i = 0; i < w->ports.n_rings; i++)
        if (!ring_is_idle(w->ports.rings[i].port->ring))
            return false;
    return !waits_for_end(job);
}

void wjob_begin(struct wjob *job, char *carry, char *product_carry)
{
    job->carry = carry;
    job->product_carry = product_carry;
    job->walk.stage = job->program->stages;
    job->walk.round = 0;
    job->walk.length = INT64_MAX;
    if (job->program->n_stages == 0) {
        job->is_complete = true;
        return;
    }
    begin_stage(job);
    wjob_advance(job);
}

static bool has_next_stage(struct wjob *job)
{
    struct walk *w = &job->walk;
    const struct program *program = job->program;
    if (++w->stage == program->stages + program->n_stages) {
        w->stage = program->stages;
        w->round++;
        return w->round < job->plan.n_rounds && w->length == INT64_MAX;
    }
    return true;
}

void wjob_advance(struct wjob *job)
{
    while (!job->is_complete && !job->status && is_stage_over(job)) {
        struct gad_error error;
        if (job->walk.length == 0 && job->program->needs_elements >= 0)
            wjob_fail(job, refuse_nothing(job, &error), &error);
        else if (job->walk.ops->end)
            job->walk.ops->end(job);
        if (job->status)
            return;
        if (!has_next_stage(job)) {
            job->is_complete = true;
            return;
        }
        begin_stage(job);
    }
}

/* Tiles -------------------------------------------------------------------------------------- */

bool wjob_has_next_tile(const struct wjob *job)
{
    const struct walk *w = &job->walk;
    return !job->is_complete && w->next_tile < w->end_tile && w->ops->can_begin(job);
}

void walk_take(struct wjob *job, struct tile *t)
{
    struct walk *w = &job->walk;
    assert(wjob_has_next_tile(job));
    t->index = w->next_tile++;
    t->ports = w->next.ports;
    t->is_long = w->next.is_long;
    w->ops->take(t);
    look_at_next(job);
}

void walk_drop(struct tile *t)
{
    if (t->job->walk.ops->drop)
        t->job->walk.ops->drop(t);
}

static void measure_add(struct measure *sum, const struct measure *m)
{
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++) {
        sum->read_bytes[i] += m->read_bytes[i];
        sum->write_bytes[i] += m->write_bytes[i];
    }
    sum->source_ns += m->source_ns;
    sum->to_device_ns += m->to_device_ns;
    sum->kernel_ns += m->kernel_ns;
    sum->from_device_ns += m->from_device_ns;
    sum->sink_ns += m->sink_ns;
    sum->operand_bytes[0] += m->operand_bytes[0];
    sum->operand_bytes[1] += m->operand_bytes[1];
    sum->warnings.n_divide_by_zero += m->warnings.n_divide_by_zero;
    sum->warnings.n_invalid_casts += m->warnings.n_invalid_casts;
}

void wjob_tile_done(struct wjob *job, const struct tile *tile)
{
    job->walk.n_tiles_done++;
    job->n_all_tiles_done++;
    measure_add(&job->measure, &tile->measure);
    if (job->walk.ops->done && !tile->has_left)
        job->walk.ops->done(job, tile);
}

void wjob_tile_left(struct wjob *job, struct tile *tile)
{
    assert(job->walk.ops->done && !tile->has_left);
    job->walk.ops->done(job, tile);
    tile->has_left = true;
}
