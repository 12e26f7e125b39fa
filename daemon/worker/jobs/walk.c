/* How a job walks its rounds, passes in a round, and tiles in a pass. All of it under the
 * scheduler's lock.
 *
 *     round 0: pass 0, pass 1, ...     round 1: pass 0, pass 1, ...     ...
 *
 * A round is a part of the arrays for which the results of all reductions fit the carry; most jobs
 * have one. Tiles are numbered through all rounds: a pass in a round has those of
 * [first_tile, end_tile). They begin in order and end in any; with reductions, the memory for their
 * nodes bounds how many there are at a time and how far one is ahead of the oldest (nodes.c).
 *
 * The three passes of a matrix product are walked together, in turns that go through them by turns
 * (product.c).
 *
 * A pass is over when its tiles are done and its sinks' rings are drained; then the results of its
 * reductions are there for the passes behind it.
 */
#include "daemon/worker/jobs/nodes.h"
#include "daemon/worker/jobs/product.h"
#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/tile.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

#define TELL_NS      UINT64_C(100000)
#define LONG_TURN_NS UINT64_C(100000)
#define MANY_READY   4u /* grains */

void wjob_collect_ports(const struct wjob *job, unsigned index, struct pass_ports *ports)
{
    const struct program *program = job->program;
    const struct pass *pass = &program->passes[index];
    ports->n_inputs = ports->n_outputs = 0;
    ports->needs_slot = job->is_device;
    for (unsigned i = 0; i < program->n_inputs; i++)
        if (pass->inputs_used >> i & 1)
            ports->inputs[ports->n_inputs++] = (struct pass_port){&job->ports[i], i};
    for (unsigned i = 0; i < pass->n_stores; i++) {
        unsigned output = program->stores[pass->first_store + i].output;
        if (output < program->n_outputs) /* else it is an operand of a product */
            ports->outputs[ports->n_outputs++] =
                (struct pass_port){&job->ports[program->n_inputs + output], output};
    }
    for (unsigned i = 0; i < ports->n_inputs; i++)
        ports->needs_slot |= port_can(ports->inputs[i].port, PORT_STAGED);
    for (unsigned i = 0; i < ports->n_outputs; i++)
        ports->needs_slot |= port_can(ports->outputs[i].port, PORT_STAGED);
}

static bool find_grain(const struct ring_walk *walk, uint64_t *place)
{
    const struct wjob *job = walk->job;
    uint64_t first, n;
    geometry_round(&job->plan.passes[job->pass].geometry, job->round, &first, &n);
    *place = max_u64(*place, first);
    return *place < first + n;
}

static void grain_box(const struct ring_walk *walk, uint64_t place, int64_t *ret_start,
                      int64_t *ret_count)
{
    const struct wjob *job = walk->job;
    const struct port *port = walk->port;
    const struct geometry *g = &job->plan.passes[job->pass].geometry;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    geometry_grain(g, place, start, count);
    geometry_operand_box(g->ndim, start, count, port->array.ndim, port->array.shape, ret_start,
                         ret_count);
}

static void begin_ring(struct wjob *job, const struct port *port)
{
    struct ring_walk walk = {find_grain, grain_box, job, port};
    if (job->product)
        product_ring_walk(job, port, &walk);
    ring_begin(port->ring, &walk);
}

static void begin_source(struct wjob *job, const struct port *port)
{
    struct gad_error error;
    begin_ring(job, port);
    int r = ring_ask(port->ring, &error);
    if (r)
        wjob_fail(job, r, &error);
}

/* What an earlier worker has asked a sink's client for may not have been told to it. */
static void begin_rings(struct wjob *job)
{
    const struct pass_ports *ports = &job->ports_of_pass;
    bool has_asked = false;
    for (unsigned i = 0; i < ports->n_outputs; i++)
        if (ports->outputs[i].port->ring) {
            begin_ring(job, ports->outputs[i].port);
            has_asked |= ring_has_asked(ports->outputs[i].port->ring);
        }
    for (unsigned i = 0; i < ports->n_inputs; i++)
        if (ports->inputs[i].port->ring) {
            begin_source(job, ports->inputs[i].port);
            has_asked = true;
        }
    if (has_asked) {
        job->wants_signal = true;
        job->told_ns = 0;
    }
}

static void begin_tiles(struct wjob *job)
{
    uint64_t n_tiles;
    plan_round_tiles(&job->plan.passes[job->pass], job->round, &job->first_tile, &n_tiles);
    job->end_tile = job->first_tile + n_tiles;
    job->next_tile = job->oldest_tile = job->first_tile;
    job->n_tiles_done = 0;
    nodes_begin_pass(job);
    wjob_collect_ports(job, job->pass, &job->ports_of_pass);
}

static void begin_pass(struct wjob *job)
{
    if (job->product)
        product_begin(job);
    else
        begin_tiles(job);
    if (job->has_rings)
        begin_rings(job);
}

static bool is_pass_over(const struct wjob *job)
{
    const struct pass_ports *ports = &job->ports_of_pass;
    if (job->n_tiles_done < job->end_tile - job->first_tile)
        return false;
    for (unsigned i = 0; i < ports->n_outputs; i++)
        if (ports->outputs[i].port->ring && !ring_is_idle(ports->outputs[i].port->ring))
            return false;
    return true;
}

void wjob_begin(struct wjob *job, char *carry)
{
    job->carry = carry;
    job->pass = 0;
    job->round = 0;
    if (job->plan.n_passes == 0) {
        job->is_complete = true;
        return;
    }
    begin_pass(job);
    wjob_advance(job);
}

/* The turns of a product are of all its passes. */
static bool has_next_pass(struct wjob *job)
{
    if (job->product)
        return false;
    if (++job->pass == job->plan.n_passes) {
        job->pass = 0;
        job->round++;
    }
    return job->round < job->plan.n_rounds;
}

void wjob_advance(struct wjob *job)
{
    while (!job->is_complete && !job->status && is_pass_over(job)) {
        nodes_end_pass(job);
        if (job->status)
            return;
        if (!has_next_pass(job)) {
            job->is_complete = true;
            return;
        }
        begin_pass(job);
    }
}

bool wjob_has_next_tile(const struct wjob *job)
{
    return !job->is_complete && job->next_tile < job->end_tile && nodes_can_begin_tile(job);
}

uint64_t wjob_next_tile(struct wjob *job)
{
    assert(wjob_has_next_tile(job));
    return job->next_tile++;
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

/* Threads may come here in another order than they combined in. */
void wjob_tile_done(struct wjob *job, const struct tile *tile)
{
    job->n_tiles_done++;
    job->n_all_tiles_done++;
    measure_add(&job->measure, &tile->measure);
    job->oldest_tile = max_u64(job->oldest_tile, tile->oldest_tile);
    nodes_tile_done(job, tile);
}

bool wjob_next_is_long(const struct wjob *job)
{
    return !job->product && job->plan.passes[job->pass].tile_worst_ns > PLAN_LONG_TURN_NS;
}

const struct pass_ports *wjob_next_ports(const struct wjob *job)
{
    return job->product ? product_next_ports(job) : &job->ports_of_pass;
}

static bool have_blocks(const struct pass_ports *ports, uint64_t place)
{
    for (unsigned i = 0; i < ports->n_inputs; i++)
        if (ports->inputs[i].port->ring && !ring_has(ports->inputs[i].port->ring, place))
            return false;
    for (unsigned i = 0; i < ports->n_outputs; i++)
        if (ports->outputs[i].port->ring && !ring_has(ports->outputs[i].port->ring, place))
            return false;
    return true;
}

bool wjob_has_blocks(const struct tile *tile)
{
    return !tile->job->has_rings || have_blocks(tile->ports, tile_place(tile));
}

bool wjob_has_next_blocks(const struct wjob *job)
{
    uint64_t first_grain, n_grains;
    if (!job->has_rings)
        return true;
    if (job->product)
        return have_blocks(wjob_next_ports(job), product_place(job, job->next_tile, 0));
    plan_tile_grains(&job->plan.passes[job->pass], job->next_tile, &first_grain, &n_grains);
    return have_blocks(wjob_next_ports(job), first_grain);
}

static bool collect_one(struct wjob *job, struct ring *ring, bool is_last)
{
    struct gad_error error;
    bool has_news = false;
    int r = ring && is_last ? ring_wish_signal(ring, &error) : 0;
    if (ring && !r)
        r = ring_collect(ring, &has_news, &error);
    if (r)
        wjob_fail(job, r, &error);
    else if (ring)
        job->wants_signal |= ring_has_asked(ring);
    if (has_news)
        job->heard_ns = clock_ns();
    return has_news || r;
}

static bool collect(struct wjob *job, bool is_last)
{
    const struct pass_ports *ports = &job->ports_of_pass;
    bool has_news = false;
    for (unsigned i = 0; i < ports->n_inputs; i++)
        has_news |= collect_one(job, ports->inputs[i].port->ring, is_last);
    for (unsigned i = 0; i < ports->n_outputs; i++)
        has_news |= collect_one(job, ports->outputs[i].port->ring, is_last);
    return has_news;
}

bool wjob_collect(struct wjob *job)
{
    return collect(job, false);
}

bool wjob_collect_last(struct wjob *job)
{
    job->is_wished = true;
    return collect(job, true);
}

static bool is_awaited(const struct pass_port *ports, unsigned n_ports)
{
    for (unsigned i = 0; i < n_ports; i++)
        if (ports[i].port->ring && ring_is_awaited(ports[i].port->ring))
            return true;
    return false;
}

bool wjob_awaits_clients(const struct wjob *job)
{
    const struct pass_ports *ports = &job->ports_of_pass;
    unsigned n_waiting = 0;
    if (job->state != WJOB_RUNNING || job->status || job->is_complete || !job->has_rings ||
        job->wants_signal || job->n_in_flight > 0 || job->n_with_device > 0 || job->aside)
        return false;
    for (const struct tile *tile = job->waiting; tile; tile = tile->next, n_waiting++)
        if (tile->state != TILE_WAITING_CLIENT || wjob_has_blocks(tile))
            return false;
    if (n_waiting < job->n_tiles || (wjob_has_next_tile(job) && wjob_has_next_blocks(job)))
        return false;
    return is_awaited(ports->inputs, ports->n_inputs) ||
           is_awaited(ports->outputs, ports->n_outputs);
}

bool wjob_is_for_one(const struct wjob *job)
{
    const struct pass_ports *ports = &job->ports_of_pass;
    unsigned n_ready = MANY_READY;
    if (ports->needs_slot || job->turn_ns == 0 || job->turn_ns >= LONG_TURN_NS)
        return false;
    for (unsigned i = 0; i < ports->n_inputs; i++)
        if (ports->inputs[i].port->ring)
            n_ready = (unsigned)min_u64(n_ready, ring_n_ready(ports->inputs[i].port->ring));
    for (unsigned i = 0; i < ports->n_outputs; i++)
        if (ports->outputs[i].port->ring)
            n_ready = (unsigned)min_u64(n_ready, ring_n_ready(ports->outputs[i].port->ring));
    return n_ready < MANY_READY;
}

bool wjob_must_tell(const struct wjob *job, bool is_idle)
{
    return job->wants_signal && (is_idle || clock_ns() - job->told_ns >= TELL_NS);
}
