/* Who is next: the worker's tiles put to the pure functions of turns.h, and the I/O queues.
 *
 * A job is ready when a tile of it could go on now: one that was put aside (aside.c), one whose
 * reads are done, one that the device has computed, one whose client has answered, or a new one. A
 * new tile (and one that comes back without) needs a slot if something of the pass is staged, and
 * its blocks in all rings; a paused job has neither; the tiles of a job that exist at a time are
 * limited, so that the pool serves many jobs and memory is bounded; no new one begins while the
 * device has as many as it may. So are a user's tiles that wait for disks, whose slots are of no
 * use to anybody meanwhile, and tiles that take long (aside.c).
 *
 * Threads are woken in a chain: one that takes a turn and sees another one ready wakes the next.
 */
#include "daemon/worker/io/ring.h"
#include "daemon/worker/turns/scheduler_internal.h"
#include "proto/util.h"

bool sched_has_room(const struct sched *s, const struct wjob *job, const struct pass_ports *ports)
{
    return !ports->needs_slot || slots_can_lend(s->slots, job->is_express);
}

/* Where a tile takes long to compute or to write: whether it may go on, and no spare thread is kept
 * for it yet. */
static bool may_be_long(const struct sched *s, const struct wjob *job, bool is_long)
{
    uint32_t user = job->identity.user;
    if (job->writes_slowly)
        return !sched_calls_are_enough(s) && sched_may_begin_write(s, user);
    return !is_long || sched_may_begin_long(s, user);
}

static bool is_tile_ready(const struct sched *s, const struct wjob *job, const struct tile *tile)
{
    if (tile->state == TILE_STAGED || tile->state == TILE_COMPUTED)
        return !job->writes_slowly || tile->is_kept || s->n_bench > s->n_kept;
    if (job->identity.is_paused)
        return false;
    if (!tile->is_kept && !may_be_long(s, job, tile->is_long))
        return false;
    return sched_has_room(s, job, tile->ports) && wjob_has_blocks(tile);
}

/* The ready one that comes first in the array. */
static struct tile **find_waiting(const struct sched *s, struct wjob *job)
{
    struct tile **found = NULL;
    for (struct tile **p = &job->waiting; *p; p = &(*p)->next)
        if ((!found || (*p)->index < (*found)->index) && is_tile_ready(s, job, *p))
            found = p;
    return found;
}

/* Those without a slot copy nothing, and take no place from those that do. */
static bool is_device_full(const struct sched *s, const struct pass_ports *ports)
{
    const struct engine *e = s->config.engine;
    if (e->n_device_tiles == 0)
        return false;
    return ports->needs_slot ? s->n_with_device[DEVICE_SLOTS] >= e->n_device_tiles
                             : s->n_with_device[DEVICE_PRODUCTS] >= e->n_device_products;
}

static bool can_begin_tile(const struct sched *s, const struct wjob *job)
{
    const struct engine *e = s->config.engine;
    if (job->identity.is_paused || !wjob_has_next_tile(job) ||
        job->n_tiles >= s->n_threads_compute + SCHED_IO_PER_DISK + e->n_device_tiles +
                            e->n_device_products + s->n_with_device[DEVICE_LEFT])
        return false;
    const struct pass_ports *ports = job->walk.next.ports;
    if (is_device_full(s, ports) && !job->is_express)
        return false;
    if (ports->needs_slot && sched_reads_are_enough(s, job, slots_use(s->slots).n_slots))
        return false;
    if (!may_be_long(s, job, job->walk.next.is_long))
        return false;
    return sched_has_room(s, job, ports) && wjob_has_next_blocks(job);
}

/* The slots under its carry have come back: the job begins. */
static void try_begin(struct sched *s, struct wjob *job)
{
    const struct wjob_identity *id = &job->identity;
    char *carry = NULL;
    if (id->carry_size_bytes > 0) {
        if (!slots_claim_is_clear(s->slots, id->carry_offset_bytes, id->carry_size_bytes)) {
            job->lacked_room = true;
            return;
        }
        carry = slots_carry(s->slots, id->carry_offset_bytes, id->carry_size_bytes);
    }
    char *product_carry = carry;
    if (id->device_carry_size_bytes > 0)
        product_carry = s->config.engine->device_carries + id->device_carry_offset_bytes;
    wjob_set_state(job, WJOB_RUNNING);
    wjob_begin(job, carry, product_carry);
}

static bool lacks_room(const struct sched *s, const struct wjob *job)
{
    const struct pass_ports *ports = job->waiting              ? job->waiting->ports
                                     : wjob_has_next_tile(job) ? job->walk.next.ports
                                                               : NULL;
    return ports && !sched_has_room(s, job, ports);
}

static bool is_ready(struct sched *s, struct wjob *job)
{
    if (job->state == WJOB_CLAIMING)
        try_begin(s, job);
    if (job->state != WJOB_RUNNING || job->status || job->is_complete)
        return false;
    if (job->aside || can_begin_tile(s, job) || find_waiting(s, job))
        return true;
    if (job->still_since_ns != 0 && !job->lacked_room)
        job->lacked_room = lacks_room(s, job);
    return false;
}

/* Jobs that began and are over at once (nothing to compute), or could not begin. */
static bool settle_one(struct sched *s)
{
    for (unsigned i = 0; i < s->n_jobs; i++) {
        struct wjob *job = s->jobs[i];
        if (job->state == WJOB_RUNNING && (job->status || job->is_complete)) {
            sched_job_changed(s, job);
            return true;
        }
    }
    return false;
}

int sched_next_job(struct sched *s)
{
    do
        for (unsigned i = 0; i < s->n_jobs; i++)
            s->turns[i].is_ready = is_ready(s, s->jobs[i]);
    while (settle_one(s));
    int next = turns_next(s->turns, s->n_jobs, s->users, s->n_users);
    if (next >= 0)
        turns_level_kinds(&s->users[sched_user_index(s, s->turns[next].user)], s->turns, s->n_jobs,
                          &s->turns[next]);
    return next;
}

bool sched_wants_another(struct sched *s)
{
    for (unsigned i = 0; i < s->n_jobs; i++)
        if (wjob_must_tell(s->jobs[i], false))
            return true;
    if (sched_next_job(s) < 0)
        return false;
    for (unsigned i = 0; i < s->n_jobs; i++) {
        const struct wjob *job = s->jobs[i];
        bool has_its_thread = job->has_rings && job->n_in_flight > 0 && wjob_is_for_one(job);
        if (s->turns[i].is_ready && !has_its_thread)
            return true;
    }
    return false;
}

/* next: the job that the thread goes on with, or -1. What it has to tell may wait for more; what
 * another has to tell may not, since nobody may be there for long. */
static bool pick_signal(struct sched *s, int next, struct turn *ret_turn)
{
    for (unsigned i = 0; i < s->n_jobs; i++) {
        struct wjob *job = s->jobs[i];
        if (job->state != WJOB_RUNNING || job->status || !wjob_must_tell(job, (int)i != next))
            continue;
        job->wants_signal = false;
        sched_wait_ends(job);
        job->n_in_flight++;
        *ret_turn = (struct turn){.job = job};
        return true;
    }
    return false;
}

static struct tile *take_tile(struct sched *s, struct wjob *job)
{
    struct tile **waiting = find_waiting(s, job);
    struct tile *tile;
    if (waiting) {
        tile = *waiting;
        *waiting = tile->next;
        tile->next = NULL;
    } else {
        tile = malloc(sizeof(*tile));
        if (!tile)
            return NULL;
        tile_init(tile, job);
        job->n_tiles++;
    }
    tile->is_long |= job->writes_slowly;
    sched_keep_spare(s, tile);
    if (tile->ports->needs_slot && !tile->slot) {
        tile->slot = slots_lend(s->slots, job->is_express);
        job->n_slots++;
    }
    tile->state = TILE_IN_HAND;
    return tile;
}

/* A thread without work looks at the rings itself. True: something of a job has changed. From the
 * end, since a job that ends leaves its place to the last one. */
static bool look_at_rings(struct sched *s, bool (*look)(struct wjob *job))
{
    bool has_news = false;
    for (unsigned i = s->n_jobs; i-- > 0;) {
        struct wjob *job = s->jobs[i];
        if (job->has_rings && job->state == WJOB_RUNNING && !job->status && look(job)) {
            sched_job_changed(s, job);
            has_news = true;
        }
    }
    return has_news;
}

/* Before a thread turns to one job for as long as that may take: jobs that nobody is at have their
 * clients signal, or their answers would be seen by nobody. True: there is news already. */
static bool leave_others(struct sched *s, int next)
{
    for (unsigned i = 0; i < s->n_jobs; i++) {
        struct wjob *job = s->jobs[i];
        if ((int)i == next || !job->has_rings || job->is_wished || job->n_in_flight > 0 ||
            job->state != WJOB_RUNNING || job->status)
            continue;
        if (wjob_collect_last(job)) {
            sched_job_changed(s, job);
            return true;
        }
    }
    return false;
}

bool sched_pick(struct sched *s, struct turn *ret_turn)
{
    for (;;) {
        int i = sched_next_job(s);
        if (pick_signal(s, i, ret_turn))
            return true;
        if (i < 0) {
            if (look_at_rings(s, wjob_collect))
                continue;
            return pick_signal(s, -1, ret_turn); /* looking may have found what is to be told */
        }
        if (leave_others(s, i))
            continue;
        struct wjob *job = s->jobs[i];
        if (job->aside) {
            *ret_turn = (struct turn){.job = job, .aside = job->aside};
            return true;
        }
        struct tile *tile = take_tile(s, job);
        if (!tile) {
            wjob_fail(job, -ENOMEM, NULL);
            sched_job_changed(s, job);
            continue;
        }
        sched_wait_ends(job);
        job->n_in_flight++;
        if (job->idle_since_ns) {
            job->client_ns += clock_ns() - job->idle_since_ns;
            job->idle_since_ns = 0;
        }
        *ret_turn = (struct turn){.job = job, .tile = tile};
        return true;
    }
}

/* Where a thread is at work that will look itself, and soon, no other is woken. */
static bool wish_signals(struct wjob *job)
{
    return (job->n_in_flight == 0 || !wjob_is_for_one(job)) && wjob_collect_last(job);
}

bool sched_wish_signals(struct sched *s)
{
    return look_at_rings(s, wish_signals);
}

/* I/O threads --------------------------------------------------------------------------------
 *
 * A call to a disk that does not answer holds its thread for ever, so one disk has a few of the
 * threads at most, and never more than are left then beside those that are elsewhere; and so has
 * one user. A thread says to which disk it goes (port_io), since the files of one job may be on
 * several: it counts there, and a job begins where all its disks have room. For jobs of several
 * disks there is one more on each, which those of one disk, who take it as soon as it is free,
 * cannot fill. One that goes on to another of its job's disks may come on top. */

static uint64_t share(unsigned n_elsewhere, unsigned most)
{
    return max_u64(min_u64(most, (SCHED_N_IO - n_elsewhere) / 2), 1);
}

static unsigned n_serving(const struct sched *s, uint32_t user)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SCHED_N_IO; i++)
        n += s->io[i].is_busy && s->io[i].job->identity.user == user;
    return n;
}

static bool has_user_room(const struct sched *s, uint32_t user)
{
    unsigned n_own = n_serving(s, user), n_busy = 0;
    for (unsigned i = 0; i < SCHED_N_IO; i++)
        n_busy += s->io[i].is_busy;
    return n_own < share(n_busy - n_own, 2 * SCHED_IO_PER_USER);
}

static bool has_disk_room(const struct sched *s, uint32_t user, uint64_t device, unsigned n_more)
{
    unsigned n_own = 0, n_there = 0, n_elsewhere = 0;
    for (unsigned i = 0; i < SCHED_N_IO; i++) {
        const struct io_slot *slot = &s->io[i];
        bool is_there = slot->is_busy && slot->device == device;
        n_elsewhere += slot->is_busy && !is_there;
        n_there += is_there;
        n_own += is_there && slot->job->identity.user == user;
    }
    unsigned most = device ? SCHED_IO_PER_DISK : SCHED_N_IO;
    return n_own < SCHED_IO_PER_USER + n_more && n_there < share(n_elsewhere, most) + n_more;
}

/* Whether a thread may go to the job's disks from the first on, before end; the last one. */
static bool may_serve(const struct sched *s, const struct wjob *job, unsigned first, unsigned end,
                      uint64_t *ret_device)
{
    uint32_t user = job->identity.user;
    uint64_t device = 0, last = 0;
    unsigned n_more = 0;
    if (!has_user_room(s, user))
        return false;
    for (unsigned i = first; i < end; i++) {
        if (!wjob_find_disk(job, i, &device))
            continue;
        n_more |= last != 0 && device != last;
        last = device;
    }
    for (unsigned i = first; i < end; i++)
        if (wjob_find_disk(job, i, &device) && !has_disk_room(s, user, device, n_more))
            return false;
    *ret_device = last;
    return last != 0 || has_disk_room(s, user, 0, 0);
}

/* Tiles that wait for disks, of all users or one, there or anywhere. Those of jobs with files on
 * several disks count for each, whichever they wait for: so everybody may have one. */
struct reading {
    unsigned n_there, n_own, n_own_there;
};

static void count_read(struct reading *n, const struct wjob *job, const struct wjob *other)
{
    bool is_there = wjob_reads_same_disk(job, other);
    bool is_own = other->identity.user == job->identity.user;
    n->n_there += is_there;
    n->n_own += is_own;
    n->n_own_there += is_own && is_there;
}

bool sched_reads_are_enough(const struct sched *s, const struct wjob *job, unsigned n_slots)
{
    bool has_others = sched_has_others(s, job->identity.user);
    uint64_t half = n_slots > 0 ? (n_slots - 1) / 2 : 0;
    struct reading n = {0};
    if (!wjob_reads_same_disk(job, job)) /* it reads none */
        return false;
    for (unsigned i = 0; i < SCHED_N_IO; i++)
        if (s->io[i].is_busy && s->io[i].is_reading)
            count_read(&n, job, s->io[i].job);
    for (const struct tile *tile = s->reads; tile; tile = tile->next)
        count_read(&n, job, tile->job);
    uint64_t most = max_u64(n_slots / 2, has_others ? 1 : SCHED_IO_PER_USER);
    if (n.n_own_there > 0 && (n.n_there >= most || n.n_own >= most))
        return true;
    return has_others && (n.n_own_there >= max_u64(min_u64(SCHED_READS_PER_USER, half), 1) ||
                          n.n_own >= max_u64(min_u64(2 * SCHED_READS_PER_USER, half), 1));
}

/* The oldest read of those users who have the fewest I/O threads. */
static struct tile *pick_read(struct sched *s, uint64_t *ret_device)
{
    struct tile **found = NULL;
    unsigned least = SCHED_N_IO;
    uint64_t device;
    for (struct tile **p = &s->reads; *p && least > 0; p = &(*p)->next) {
        const struct wjob *job = (*p)->job;
        unsigned n = n_serving(s, job->identity.user);
        if (n >= least || !may_serve(s, job, 0, job->program->n_inputs, &device))
            continue;
        least = n;
        found = p;
        *ret_device = device;
    }
    if (!found)
        return NULL;
    struct tile *tile = *found;
    *found = tile->next;
    if (!tile->next)
        s->reads_end = found;
    tile->next = NULL;
    sched_wait_was_for(tile->job, TRAFFIC_INPUT);
    tile->job->n_in_flight++;
    return tile;
}

static struct wjob *pick_closing(struct sched *s, uint64_t *ret_device)
{
    for (struct wjob **p = &s->closings; *p; p = &(*p)->next) {
        struct wjob *job = *p;
        if (!may_serve(s, job, 0, job->n_ports + 1, ret_device))
            continue;
        *p = job->next;
        if (!job->next)
            s->closings_end = p;
        job->next = NULL;
        return job;
    }
    return NULL;
}

/* The journal comes first, whose disk is the last one. */
static struct wjob *pick_opening(struct sched *s, uint64_t *ret_device)
{
    for (struct wjob **p = &s->openings; *p; p = &(*p)->next) {
        struct wjob *job = *p;
        if (!may_serve(s, job, job->program->n_inputs, job->n_ports + 1, ret_device))
            continue;
        *p = job->next;
        job->next = NULL;
        sched_wait_was_for(job, TRAFFIC_INPUT);
        job->n_in_flight++;
        return job;
    }
    return NULL;
}

/* Closing comes first: a reply waits for it, and the reads behind it may never end. */
bool sched_pick_io(struct sched *s, unsigned io_index, struct io_work *ret_work)
{
    uint64_t device = 0;
    struct io_work work = {.closing = pick_closing(s, &device)};
    if (!work.closing)
        work.opening = pick_opening(s, &device);
    if (!work.closing && !work.opening)
        work.read = pick_read(s, &device);
    const struct wjob *job = work.closing   ? work.closing
                             : work.opening ? work.opening
                             : work.read    ? work.read->job
                                            : NULL;
    if (!job)
        return false;
    s->io[io_index] = (struct io_slot){
        .is_busy = true, .is_reading = work.read != NULL, .job = job, .device = device};
    *ret_work = work;
    return true;
}
