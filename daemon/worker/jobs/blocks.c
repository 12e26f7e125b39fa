/* The rings of a job: what the scheduler asks of those of the stage in hand, and the blocks that a
 * tile has of them. Blocks are taken before a grain's arithmetic, all or none, and given back when
 * it was read and computed, under the lock; clients are told afterwards (after some grains
 * together, when those are short) without it, since writing to their eventfds may block. When that
 * happens is noted for the main thread, which sends a signal to a thread that does not come back.
 *
 * A device is given several grains at once: those whose blocks are there. Since a few large copies
 * cost it less than many small ones, a tile waits for all of its own while something else of the
 * job is under way, but never holds one block while it waits for another, and never waits for a
 * second one when it could have the first and nothing else goes on: a ring may have few of them,
 * and a client that answers block by block is served so.
 *
 * Where an open axis ends is seen here, too: a tile whose next grain lies behind that ends before
 * it.
 *
 * A tile that cannot have all blocks looks once at what clients have answered since. If that does
 * not help it is put aside, and whoever sees the next answer wakes a thread for it.
 */
#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/tile.h"
#include "proto/util.h"

#define TELL_NS      UINT64_C(100000)
#define LONG_TURN_NS UINT64_C(100000)
#define MANY_READY   4u /* grains */

/* A job's rings ------------------------------------------------------------------------------ */

static bool have_blocks(const struct pass_ports *ports, uint64_t position)
{
    for (unsigned i = 0; i < ports->n_rings; i++)
        if (!ring_has(ports->rings[i].port->ring, position))
            return false;
    return true;
}

/* For n grains from this one on, the last first, since it comes last. */
static bool have_all(const struct pass_ports *ports, uint64_t position, uint64_t n)
{
    for (unsigned i = 0; i < ports->n_rings; i++)
        if (ports->rings[i].is_sink && ring_n_ready(ports->rings[i].port->ring) < n)
            return false;
    while (n > 0 && have_blocks(ports, position + n - 1))
        n--;
    return n == 0;
}

/* Of a tile with so many grains left. */
static bool have_enough(const struct wjob *job, const struct pass_ports *ports, uint64_t position,
                        uint64_t n_left)
{
    bool is_alone = job->n_in_flight == 0 && job->n_with_device == 0;
    if (!job->fills_slots || is_alone || ports->n_rings == 0)
        return have_blocks(ports, position);
    return have_all(ports, position, min_u64(n_left, TILE_MAX_BLOCKS));
}

bool wjob_has_blocks(const struct tile *tile)
{
    const struct wjob *job = tile->job;
    uint64_t end = min_u64(tile->end, job->walk.end_grain);
    return !job->has_rings || tile->grain >= end ||
           have_enough(job, tile->ports, tile_position(tile), end - tile->grain);
}

bool wjob_has_next_blocks(const struct wjob *job)
{
    const struct walk_next *next = &job->walk.next;
    return !job->has_rings || have_enough(job, next->ports, next->position, next->n_grains);
}

static bool collect_one(struct wjob *job, struct ring *ring, bool is_last)
{
    struct gad_error error;
    bool has_news = false;
    int r = is_last ? ring_wish_signal(ring, &error) : 0;
    if (!r)
        r = ring_collect(ring, &has_news, &error);
    if (r)
        wjob_fail(job, r, &error);
    else
        job->wants_signal |= ring_has_asked(ring);
    if (has_news)
        walk_note_length(job);
    if (has_news)
        job->heard_ns = clock_ns();
    return has_news || r;
}

static bool collect(struct wjob *job, bool is_last)
{
    bool has_news = false;
    for (unsigned i = 0; i < job->walk.ports.n_rings; i++)
        has_news |= collect_one(job, job->walk.ports.rings[i].port->ring, is_last);
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

bool wjob_awaits_clients(const struct wjob *job)
{
    const struct pass_ports *ports = &job->walk.ports;
    unsigned n_waiting = 0;
    if (job->state != WJOB_RUNNING || job->status || job->is_complete || !job->has_rings ||
        job->wants_signal || job->n_in_flight > 0 || job->n_with_device > 0 || job->aside)
        return false;
    for (const struct tile *tile = job->waiting; tile; tile = tile->next, n_waiting++)
        if (tile->state != TILE_WAITING_CLIENT || wjob_has_blocks(tile))
            return false;
    if (n_waiting < job->n_tiles || (wjob_has_next_tile(job) && wjob_has_next_blocks(job)))
        return false;
    for (unsigned i = 0; i < ports->n_rings; i++)
        if (ring_is_awaited(ports->rings[i].port->ring))
            return true;
    return false;
}

bool wjob_is_for_one(const struct wjob *job)
{
    const struct pass_ports *ports = &job->walk.ports;
    unsigned n_ready = MANY_READY;
    if (ports->needs_slot || job->turn_ns == 0 || job->turn_ns >= LONG_TURN_NS)
        return false;
    for (unsigned i = 0; i < ports->n_rings; i++)
        n_ready = (unsigned)min_u64(n_ready, ring_n_ready(ports->rings[i].port->ring));
    return n_ready < MANY_READY;
}

bool wjob_must_tell(const struct wjob *job, bool is_idle)
{
    return job->wants_signal && (is_idle || clock_ns() - job->told_ns >= TELL_NS);
}

/* A tile's blocks ---------------------------------------------------------------------------- */

static void take_blocks(struct tile *t, uint64_t grain)
{
    uint32_t slot = 0;
    for (unsigned i = 0; i < t->ports->n_rings; i++) {
        const struct pass_ring *r = &t->ports->rings[i];
        if (ring_take(r->port->ring, t->first_position + grain, &slot))
            t->ring_slots[grain % TILE_MAX_BLOCKS][r->slot] = (uint8_t)slot;
    }
}

static bool may_take(const struct tile *t)
{
    const struct wjob *job = t->job;
    return !job->status && t->blocks_end < job->walk.end_grain &&
           have_blocks(t->ports, t->first_position + t->blocks_end);
}

static void take_more(struct tile *t, uint64_t end)
{
    for (; t->blocks_end < end && may_take(t); t->blocks_end++)
        take_blocks(t, t->blocks_end);
}

/* Where no ring is looked at, all grains are there. */
bool tile_take_blocks(struct tile *t, unsigned most)
{
    struct wjob *job = t->job;
    uint64_t end = t->end;
    if (t->ports->n_rings > 0 || most == 1)
        end = min_u64(end, t->grain + min_u64(most, TILE_MAX_BLOCKS));
    pthread_mutex_lock(job->lock);
    t->blocks_begin = t->blocks_end = t->grain;
    take_more(t, end);
    if (t->blocks_end < end && wjob_collect(job))
        take_more(t, end);
    t->end = min_u64(t->end, job->walk.end_grain);
    t->open_length = job->walk.length;
    pthread_mutex_unlock(job->lock);
    return tile_has_blocks(t);
}

void tile_drop_blocks(struct tile *t)
{
    for (; t->blocks_begin < t->blocks_end; t->blocks_begin++)
        for (unsigned i = 0; i < t->ports->n_rings; i++)
            ring_drop(t->ports->rings[i].port->ring,
                      tile_ring_slot(t, t->blocks_begin, t->ports->rings[i].slot));
}

static int give_blocks(struct tile *t, unsigned which, struct gad_error *error)
{
    int status = 0;
    for (unsigned i = 0; i < t->ports->n_rings && !status; i++) {
        const struct pass_ring *r = &t->ports->rings[i];
        if (!(which & (r->is_sink ? TILE_SINKS : TILE_SOURCES)))
            continue;
        status =
            ring_give(r->port->ring, tile_position(t), tile_ring_slot(t, t->grain, r->slot), error);
        t->job->wants_signal |= ring_has_asked(r->port->ring);
    }
    if (which & TILE_SINKS)
        t->blocks_begin = t->grain + 1;
    return status;
}

int tile_give_blocks(struct tile *t, unsigned which, struct thread_context *th)
{
    pthread_mutex_lock(t->job->lock);
    int r = give_blocks(t, which, &th->error);
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
