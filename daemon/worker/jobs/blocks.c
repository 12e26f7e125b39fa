/* A tile and the rings of its job: blocks are taken before a grain's arithmetic, all or none, and
 * given back after it, under the lock; clients are told afterwards (after some grains together,
 * when those are short) without it, since writing to their eventfds may block. When that happens is
 * noted for the main thread, which sends a signal to a thread that does not come back.
 *
 * A tile that cannot have all blocks looks once at what clients have answered since. If that does
 * not help it is put aside, and whoever sees the next answer wakes a thread for it.
 */
#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/tile.h"

static void take_blocks(struct tile *t)
{
    const struct pass_ports *ports = t->ports;
    uint32_t slot = 0;
    for (unsigned i = 0; i < ports->n_inputs; i++)
        if (ports->inputs[i].port->ring &&
            ring_take(ports->inputs[i].port->ring, tile_place(t), &slot))
            t->ring_slots[i] = (uint8_t)slot;
    for (unsigned i = 0; i < ports->n_outputs; i++)
        if (ports->outputs[i].port->ring &&
            ring_take(ports->outputs[i].port->ring, tile_place(t), &slot))
            t->ring_slots[REQUEST_MAX_ARGS + i] = (uint8_t)slot;
    t->has_blocks = true;
}

bool tile_take_blocks(struct tile *t)
{
    struct wjob *job = t->job;
    pthread_mutex_lock(job->lock);
    if (!wjob_has_blocks(t))
        wjob_collect(job);
    if (!job->status && wjob_has_blocks(t))
        take_blocks(t);
    pthread_mutex_unlock(job->lock);
    return t->has_blocks;
}

void tile_drop_blocks(struct tile *t)
{
    const struct pass_ports *ports = t->ports;
    for (unsigned i = 0; i < ports->n_outputs && t->has_blocks; i++)
        if (ports->outputs[i].port->ring)
            ring_drop(ports->outputs[i].port->ring, t->ring_slots[REQUEST_MAX_ARGS + i]);
    t->has_blocks = false;
}

static int give_block(struct tile *t, struct ring *ring, unsigned index, struct gad_error *error)
{
    int r = ring_give(ring, tile_place(t), t->ring_slots[index], error);
    t->job->wants_signal |= ring_has_asked(ring);
    return r;
}

static int give_blocks(struct tile *t, struct gad_error *error)
{
    const struct pass_ports *ports = t->ports;
    int r = 0;
    for (unsigned i = 0; i < ports->n_inputs && !r; i++)
        if (ports->inputs[i].port->ring)
            r = give_block(t, ports->inputs[i].port->ring, i, error);
    for (unsigned i = 0; i < ports->n_outputs && !r; i++)
        if (ports->outputs[i].port->ring)
            r = give_block(t, ports->outputs[i].port->ring, REQUEST_MAX_ARGS + i, error);
    t->has_blocks = false;
    return r;
}

int tile_give_blocks(struct tile *t, struct thread_context *th)
{
    pthread_mutex_lock(t->job->lock);
    int r = give_blocks(t, &th->error);
    bool must_tell = wjob_must_tell(t->job, false);
    pthread_mutex_unlock(t->job->lock);
    return r || !must_tell ? r : wjob_signal(t->job, th);
}

int wjob_signal(struct wjob *job, struct thread_context *th)
{
    const struct ring *rings[REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS];
    unsigned n_rings = 0;
    int r = 0;
    pthread_mutex_lock(job->lock);
    job->wants_signal = false;
    job->told_ns = clock_ns();
    for (unsigned i = 0; i < job->n_ports; i++)
        if (job->ports[i].ring && ring_wants_signal(job->ports[i].ring))
            rings[n_rings++] = job->ports[i].ring;
    pthread_mutex_unlock(job->lock);
    for (unsigned i = 0; i < n_rings && !r; i++) {
        atomic_store(&th->signalling_since_ns, clock_ns());
        r = ring_signal(rings[i], &th->error);
        atomic_store(&th->signalling_since_ns, 0);
    }
    return r;
}
