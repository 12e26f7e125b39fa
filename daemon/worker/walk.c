/* How a job walks its passes, and tiles within a pass. All of it under the scheduler's lock.
 *
 * Tiles begin in order and end in any. A pass with reductions keeps a window: no tile begins
 * REDUCE_WINDOW ahead of the oldest that is not done, so the tree in the carry is bounded; bits in
 * `done_window` remember which tiles behind the oldest are done. A pass of a single tile needs no
 * tree: the tile's own result is the root.
 *
 * A pass is over when its tiles are done and its sinks' rings are drained; then the results of its
 * reductions become operands of the passes behind it.
 */
#include "daemon/worker/ring.h"
#include "daemon/worker/wjob.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

#define TELL_NS      UINT64_C(100000)
#define LONG_TURN_NS UINT64_C(100000)
#define MANY_READY   4u /* grains */

static void collect_pass_ports(struct wjob *job)
{
    const struct pass *pass = wjob_pass(job);
    job->n_inputs = job->n_outputs = 0;
    job->pass_needs_slot = job->is_device;
    for (unsigned i = 0; i < job->program->n_inputs; i++)
        if (pass->inputs_used >> i & 1)
            job->inputs[job->n_inputs++] = (struct pass_port){&job->ports[i], i};
    for (unsigned i = 0; i < pass->n_stores; i++) {
        unsigned output = job->program->stores[pass->first_store + i].output;
        job->outputs[job->n_outputs++] =
            (struct pass_port){&job->ports[job->program->n_inputs + output], output};
    }
    for (unsigned i = 0; i < job->n_inputs; i++)
        job->pass_needs_slot |= port_can(job->inputs[i].port, PORT_STAGED);
    for (unsigned i = 0; i < job->n_outputs; i++)
        job->pass_needs_slot |= port_can(job->outputs[i].port, PORT_STAGED);
}

static void begin_rings(struct wjob *job)
{
    const struct geometry *geometry = &job->plan.passes[job->pass].geometry;
    struct gad_error error;
    for (unsigned i = 0; i < job->n_outputs; i++)
        if (job->outputs[i].port->ring)
            ring_begin(job->outputs[i].port->ring, geometry);
    for (unsigned i = 0; i < job->n_inputs; i++) {
        struct ring *ring = job->inputs[i].port->ring;
        if (!ring)
            continue;
        ring_begin(ring, geometry);
        int r = ring_ask(ring, &error);
        if (r)
            wjob_fail(job, r, &error);
        job->wants_signal = true;
        job->told_ns = 0;
    }
}

static void begin_pass(struct wjob *job)
{
    const struct plan_pass *plan = &job->plan.passes[job->pass];
    const struct pass *pass = wjob_pass(job);
    job->next_tile = job->n_tiles_done = job->oldest_tile = 0;
    memset(job->done_window, 0, sizeof(job->done_window));
    job->tree = NULL;
    if (pass->n_reductions > 0 && plan->n_tiles > 1)
        job->tree = reduce_tree_init(job->carry + plan->carry_offset_bytes, pass->n_reductions,
                                     plan->n_tiles);
    collect_pass_ports(job);
    if (job->has_rings)
        begin_rings(job);
}

static void keep_results(struct wjob *job, const struct partial *partials)
{
    const struct pass *pass = wjob_pass(job);
    for (unsigned i = 0; i < pass->n_reductions; i++)
        job->reduced[pass->first_reduction + i] = partials[i].value;
}

static void end_pass(struct wjob *job)
{
    const struct pass *pass = wjob_pass(job);
    struct partial partials[PROGRAM_MAX_REDUCTIONS];
    const struct reduction *reductions = &job->program->reductions[pass->first_reduction];
    if (job->tree) {
        assert(reduce_tree_is_complete(job->tree));
        reduce_tree_result(job->tree, reductions, partials);
        keep_results(job, partials);
    } else if (job->plan.passes[job->pass].n_tiles == 0) {
        for (unsigned i = 0; i < pass->n_reductions; i++)
            partial_identity(&reductions[i], &partials[i]);
        keep_results(job, partials);
    }
}

static bool is_pass_over(const struct wjob *job)
{
    if (job->n_tiles_done < job->plan.passes[job->pass].n_tiles)
        return false;
    for (unsigned i = 0; i < job->n_outputs; i++)
        if (job->outputs[i].port->ring && !ring_is_idle(job->outputs[i].port->ring))
            return false;
    return true;
}

void wjob_begin(struct wjob *job, char *carry)
{
    job->carry = carry;
    job->pass = 0;
    if (job->plan.n_passes == 0) {
        job->is_complete = true;
        return;
    }
    begin_pass(job);
    wjob_advance(job);
}

void wjob_advance(struct wjob *job)
{
    while (!job->is_complete && !job->status && is_pass_over(job)) {
        end_pass(job);
        if (job->pass + 1 == job->plan.n_passes) {
            job->is_complete = true;
        } else {
            job->pass++;
            begin_pass(job);
        }
    }
}

bool wjob_has_next_tile(const struct wjob *job)
{
    if (job->is_complete || job->next_tile == job->plan.passes[job->pass].n_tiles)
        return false;
    return !job->tree || job->next_tile - job->oldest_tile < REDUCE_WINDOW;
}

uint64_t wjob_next_tile(struct wjob *job)
{
    assert(wjob_has_next_tile(job));
    return job->next_tile++;
}

static uint64_t *window_word(struct wjob *job, uint64_t tile)
{
    return &job->done_window[tile % REDUCE_WINDOW / 64];
}

static void window_done(struct wjob *job, uint64_t tile)
{
    *window_word(job, tile) |= UINT64_C(1) << (tile % 64);
    while (*window_word(job, job->oldest_tile) >> (job->oldest_tile % 64) & 1) {
        *window_word(job, job->oldest_tile) &= ~(UINT64_C(1) << (job->oldest_tile % 64));
        job->oldest_tile++;
    }
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
    sum->warnings.n_divide_by_zero += m->warnings.n_divide_by_zero;
    sum->warnings.n_invalid_casts += m->warnings.n_invalid_casts;
}

void wjob_tile_done(struct wjob *job, uint64_t tile, const struct partial *partials,
                    const struct measure *measure)
{
    const struct pass *pass = wjob_pass(job);
    job->n_tiles_done++;
    job->n_all_tiles_done++;
    measure_add(&job->measure, measure);
    if (job->tree) {
        reduce_tree_add(job->tree, &job->program->reductions[pass->first_reduction], tile,
                        partials);
        window_done(job, tile);
    } else if (pass->n_reductions > 0) {
        keep_results(job, partials);
    }
}

bool wjob_has_blocks(const struct wjob *job, uint64_t grain)
{
    for (unsigned i = 0; i < job->n_inputs; i++)
        if (job->inputs[i].port->ring && !ring_has(job->inputs[i].port->ring, grain))
            return false;
    for (unsigned i = 0; i < job->n_outputs; i++)
        if (job->outputs[i].port->ring && !ring_has(job->outputs[i].port->ring, grain))
            return false;
    return true;
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
    return has_news || r;
}

static bool collect(struct wjob *job, bool is_last)
{
    bool has_news = false;
    for (unsigned i = 0; i < job->n_inputs; i++)
        has_news |= collect_one(job, job->inputs[i].port->ring, is_last);
    for (unsigned i = 0; i < job->n_outputs; i++)
        has_news |= collect_one(job, job->outputs[i].port->ring, is_last);
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

bool wjob_is_for_one(const struct wjob *job)
{
    unsigned n_ready = MANY_READY;
    if (job->pass_needs_slot || job->turn_ns == 0 || job->turn_ns >= LONG_TURN_NS)
        return false;
    for (unsigned i = 0; i < job->n_inputs; i++)
        if (job->inputs[i].port->ring)
            n_ready = (unsigned)min_u64(n_ready, ring_n_ready(job->inputs[i].port->ring));
    for (unsigned i = 0; i < job->n_outputs; i++)
        if (job->outputs[i].port->ring)
            n_ready = (unsigned)min_u64(n_ready, ring_n_ready(job->outputs[i].port->ring));
    return n_ready < MANY_READY;
}

bool wjob_must_tell(const struct wjob *job, bool is_idle)
{
    return job->wants_signal && (is_idle || clock_ns() - job->told_ns >= TELL_NS);
}
