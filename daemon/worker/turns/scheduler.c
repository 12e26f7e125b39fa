/* Jobs in and out of the scheduler, and the threads' start and end.
 *
 * One mutex covers all of the scheduling and all of the jobs' progress: it is taken per turn (a
 * tile, some ms; of a long one, a slice: aside.c), per grain only by jobs with rings, and by I/O
 * threads that go to another disk. Nothing under it blocks or is long; reductions are combined
 * under locks of their jobs, never beside this one.
 *
 *     main --sched_add--> jobs --pick--> compute thread --turn over--+--> jobs
 *                          ^                                         +--> reads --> I/O thread
 *                          |                                         |               |
 *                          +------------------ staged ------------------------------+
 *                          +-- computed <- the engine's device <-- turn over (engine.h)
 *     main <--ended-- (closings: I/O thread) <-- the last turn of a job
 *
 * A job ends when it is complete, has failed or was cancelled, and no thread is at it: whoever
 * changes something of it calls sched_job_changed(), which decides. Descriptors are closed by an
 * I/O thread, because the last close of a large deleted file takes long, and before the job's reply
 * is sent, so that a client that has its answer finds nothing left behind.
 */
#include "daemon/worker/turns/scheduler_internal.h"
#include "proto/util.h"

/* A realloc for two arrays that belong together. */
static int grow(void **a, size_t a_bytes, void **b, size_t b_bytes, unsigned n, unsigned *n_room)
{
    if (n < *n_room)
        return 0;
    unsigned n_new = *n_room ? *n_room * 2 : 16;
    void *p = realloc(*a, n_new * a_bytes);
    if (p)
        *a = p;
    void *q = realloc(*b, n_new * b_bytes);
    if (q)
        *b = q;
    if (!p || !q)
        return -ENOMEM;
    *n_room = n_new;
    return 0;
}

static int make_room(struct sched *s)
{
    int r = grow((void **)&s->jobs, sizeof(*s->jobs), (void **)&s->turns, sizeof(*s->turns),
                 s->n_jobs, &s->n_jobs_room);
    return r ? r
             : grow((void **)&s->users, sizeof(*s->users), (void **)&s->user_loads,
                    sizeof(*s->user_loads), s->n_users, &s->n_users_room);
}

static unsigned count_rings(const struct wjob *job)
{
    unsigned n = 0;
    for (unsigned i = 0; i < job->n_ports; i++)
        n += port_owns_ring(&job->ports[i]);
    return n;
}

static int claim_carry(struct sched *s, struct wjob *job, struct gad_error *error)
{
    const struct wjob_identity *id = &job->identity;
    if (id->carry_size_bytes == 0)
        return 0;
    if (slots_claim(s->slots, id->carry_offset_bytes, id->carry_size_bytes) == 0)
        return 0;
    return error_set(error, GAD_BAD_REQUEST, "carry_offset", "the carry is not inside the pool");
}

/* Cancelled before a thread came to it. */
static void drop_opening(struct sched *s, const struct wjob *job)
{
    struct wjob **p = &s->openings;
    while (*p && *p != job)
        p = &(*p)->next;
    if (*p)
        *p = job->next;
}

void sched_opened(struct sched *s, struct wjob *job, int status, const struct gad_error *error)
{
    job->n_in_flight--;
    sched_wait_begins(job);
    if (status)
        wjob_fail(job, status, error);
    if (job->state == WJOB_OPENING && !job->status)
        wjob_set_state(job, WJOB_CLAIMING);
    sched_job_changed(s, job);
    pthread_cond_signal(&s->compute_wake);
}

/* Those that move at most 4 MiB (express), 64 MiB, 1 GiB and so on. Smaller ones go first: whoever
 * looks at something while a large job of theirs runs need not wait for its end. */
static unsigned kind_of(const struct wjob *job)
{
    unsigned kind = 0;
    if (!job->is_express)
        for (uint64_t n = job->plan.read_bytes / 2 + job->plan.write_bytes / 2; n > 2u << 20;
             n >>= 4)
            kind++;
    return (unsigned)min_u64(kind, TURN_N_KINDS - 1);
}

static void enter_turns(struct sched *s, struct wjob *job)
{
    const struct wjob_identity *id = &job->identity;
    sched_enter_user(s, id->user, id->is_paused);
    job->kind = kind_of(job);
    s->jobs[s->n_jobs] = job;
    s->turns[s->n_jobs] = (struct turn_job){.user = id->user,
                                            .weight = id->weight,
                                            .priority = id->priority,
                                            .kind = job->kind,
                                            .order = job->serial};
    s->n_jobs++;
}

int sched_add(struct sched *s, struct wjob *job, struct gad_error *error)
{
    pthread_mutex_lock(&s->lock);
    int r = make_room(s);
    if (!r)
        r = claim_carry(s, job, error);
    if (r) {
        pthread_mutex_unlock(&s->lock);
        return r;
    }
    job->still_since_ns = job->begun_ns;
    enter_turns(s, job);
    s->n_rings += count_rings(job);
    if (job->walk.journal) {
        wjob_set_state(job, WJOB_OPENING);
        job->next = s->openings;
        s->openings = job;
        pthread_cond_signal(&s->io_wake);
    } else {
        wjob_set_state(job, WJOB_CLAIMING); /* the first pick takes the carry and begins */
    }
    if (s->n_displaced > 0)
        sched_note_slow_disks(s);
    sched_job_changed(s, job);
    pthread_cond_signal(&s->compute_wake);
    sched_watch_calls(s);
    pthread_mutex_unlock(&s->lock);
    sched_wake_watch(s);
    return 0;
}

void sched_cancel(struct sched *s, uint64_t job_id)
{
    struct gad_error error;
    pthread_mutex_lock(&s->lock);
    struct wjob *job = sched_find_job(s, job_id);
    if (job) {
        (void)sched_settle_wait(s, job);
        wjob_fail(job, error_set(&error, GAD_CANCELLED, NULL, "the job was cancelled"), &error);
        sched_job_changed(s, job);
    }
    pthread_mutex_unlock(&s->lock);
}

/* The broker has parked it too, and queues it again. */
static void leave_park(struct sched *s, struct wjob *job)
{
    struct gad_error error;
    if (job->status || !wjob_collect_last(job))
        return;
    wjob_fail(job, error_set(&error, GAD_PROVIDER_FAILED, NULL, "the client is back"), &error);
    sched_job_changed(s, job);
}

/* True: a thread can go on. */
static bool ring_event(struct sched *s, struct wjob *job)
{
    job->is_wished = false;
    if (job->state == WJOB_PARKED)
        leave_park(s, job);
    if (job->state != WJOB_RUNNING || job->status)
        return false;
    bool has_news = wjob_collect(job);
    /* The signal fulfilled the wishes of all who wait: they wish again. */
    if (s->n_idle > has_news && (job->n_in_flight == 0 || !wjob_is_for_one(job)))
        has_news |= wjob_collect_last(job);
    if (has_news)
        sched_job_changed(s, job);
    return has_news;
}

void sched_ring_event(struct sched *s, uint64_t serial)
{
    bool has_news = false;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_jobs; i++)
        if (s->jobs[i]->serial == serial) {
            has_news = ring_event(s, s->jobs[i]);
            break;
        }
    pthread_mutex_unlock(&s->lock);
    if (has_news)
        pthread_cond_signal(&s->compute_wake);
}

static void wake_main(struct sched *s)
{
    const uint64_t one = 1;
    if (s->is_wake_written)
        return;
    s->is_wake_written = true;
    if (write(s->config.wake_fd, &one, sizeof(one)) < 0)
        return; /* only when it is full, and then main is awake */
}

struct wjob *sched_take_ended(struct sched *s)
{
    pthread_mutex_lock(&s->lock);
    struct wjob *ended = steal_ptr(s->ended);
    s->is_wake_written = false;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

static void give_to_main(struct sched *s, struct wjob *job)
{
    job->next = s->ended;
    s->ended = job;
    wake_main(s);
}

void sched_closed(struct sched *s, struct wjob *job)
{
    give_to_main(s, job);
}

static void unclaim(struct sched *s, struct wjob *job)
{
    struct wjob_identity *id = &job->identity;
    if (id->carry_size_bytes == 0)
        return;
    slots_unclaim(s->slots, id->carry_offset_bytes, id->carry_size_bytes);
    id->carry_size_bytes = 0;
    pthread_cond_signal(&s->compute_wake);
}

/* Out of the active jobs: its place goes to the last one, its carry back. */
static void job_end(struct sched *s, struct wjob *job)
{
    unsigned i = 0;
    while (s->jobs[i] != job)
        i++;
    s->n_jobs--;
    s->jobs[i] = s->jobs[s->n_jobs];
    s->turns[i] = s->turns[s->n_jobs];
    sched_leave_user(s, job->identity.user, job->identity.is_paused);
    sched_notice_presence(s);
    unclaim(s, job);
    wjob_set_state(job, WJOB_ENDED);
    job->ended_ns = clock_ns();
    job->next = NULL;
    wjob_unwatch_rings(job, s->config.epoll_fd);
    s->n_rings -= count_rings(job);
    if (job->frame.n_fds == 0) {
        give_to_main(s, job);
        return;
    }
    *s->closings_end = job;
    s->closings_end = &job->next;
    pthread_cond_signal(&s->io_wake);
}

/* Whoever gives memory back may be a thread that takes no turns (main, I/O): others may have waited
 * for it, so a compute thread has to look. */
static void return_slot(struct sched *s, struct tile *tile)
{
    if (tile->slot) {
        tile->job->n_slots--;
        slots_return(s->slots, steal_ptr(tile->slot));
        pthread_cond_signal(&s->compute_wake);
    }
}

static void drop_tile(struct sched *s, struct tile *tile)
{
    struct engine *e = s->config.engine;
    tile_drop_blocks(tile);
    walk_drop(tile);
    if (e->ops->drop)
        e->ops->drop(e, tile);
    return_slot(s, tile);
    sched_give_spare_back(s, tile);
    tile->job->n_tiles--;
    free(tile);
}

/* The tiles that no thread is at. */
static void drop_tiles(struct sched *s, struct wjob *job)
{
    while (job->waiting) {
        struct tile *tile = job->waiting;
        job->waiting = tile->next;
        drop_tile(s, tile);
    }
    struct tile **p = &s->reads;
    while (*p) {
        struct tile *tile = *p;
        if (tile->job != job) {
            p = &tile->next;
            continue;
        }
        *p = tile->next;
        drop_tile(s, tile);
    }
    s->reads_end = p;
}

void sched_job_changed(struct sched *s, struct wjob *job)
{
    if (job->state == WJOB_RUNNING && !job->status)
        wjob_advance(job);
    if (job->state < WJOB_ENDING && (job->status || job->is_complete)) {
        sched_wait_ends(job);
        wjob_set_state(job, WJOB_ENDING);
        drop_opening(s, job);
        drop_tiles(s, job);
        while (job->aside) /* they see that it was stopped */
            sched_resume(s, job->aside, false);
    }
    if (job->state == WJOB_ENDING && job->n_in_flight == 0 && job->n_with_device == 0)
        job_end(s, job);
}

static void fail_silent(struct wjob *job, uint64_t silent_ns, uint64_t limit_ns)
{
    struct gad_error error;
    error_set(&error, GAD_PROVIDER_FAILED, NULL,
              "the client has not answered for %.1f s, while others wait for the job, which keeps "
              "%llu bytes of memory and cannot begin again",
              (double)silent_ns * 1e-9,
              (unsigned long long)(job->identity.carry_size_bytes +
                                   job->identity.device_carry_size_bytes));
    error_expected(&error, "an answer within %.1f s", (double)limit_ns * 1e-9);
    error_found(&error, "none for %.1f s", (double)silent_ns * 1e-9);
    wjob_fail(job, GAD_PROVIDER_FAILED, &error);
}

/* The time for which the job's clients said nothing, though it waits for them alone; else 0. What
 * came meanwhile is read. */
static uint64_t silent_ns_of(struct sched *s, struct wjob *job)
{
    if (!wjob_awaits_clients(job))
        return 0;
    if (!wjob_collect_last(job))
        return clock_ns() - job->heard_ns;
    sched_job_changed(s, job);
    pthread_cond_signal(&s->compute_wake);
    return 0;
}

static bool yield_carry(struct sched *s, struct wjob *job, uint64_t limit_ns, bool again,
                        uint64_t *ret_silent_ns)
{
    uint64_t silent_ns = silent_ns_of(s, job);
    *ret_silent_ns = silent_ns;
    if (silent_ns == 0 || silent_ns < limit_ns)
        return false;
    if (!again) {
        fail_silent(job, silent_ns, limit_ns);
        sched_job_changed(s, job);
        return false;
    }
    wjob_set_state(job, WJOB_PARKED);
    drop_tiles(s, job);
    unclaim(s, job);
    return true;
}

bool sched_yield_carry(struct sched *s, uint64_t job_id, uint64_t limit_ns, bool again,
                       uint64_t *ret_silent_ns)
{
    pthread_mutex_lock(&s->lock);
    struct wjob *job = sched_find_job(s, job_id);
    bool is_parked = job && yield_carry(s, job, limit_ns, again, ret_silent_ns);
    pthread_mutex_unlock(&s->lock);
    return is_parked;
}

static void read_failed(struct wjob *job, struct tile *tile, int status,
                        const struct gad_error *error)
{
    tile->next = job->waiting; /* dropped with the others */
    job->waiting = tile;
    tile->state = TILE_WAITING_CLIENT;
    if (status)
        wjob_fail(job, status, error);
}

static void wait_for_turn(struct sched *s, struct tile *tile, enum tile_state state)
{
    tile->state = state;
    tile->next = tile->job->waiting;
    tile->job->waiting = tile;
    pthread_cond_signal(&s->compute_wake);
}

/* Users share the device by the time that it spends on them. A tile may have been there before. */
static void charge_device(struct sched *s, struct tile *tile)
{
    const struct measure *m = &tile->measure;
    uint64_t ns = max_u64(m->kernel_ns, max_u64(m->to_device_ns, m->from_device_ns));
    sched_charge(s, tile->job, ns - tile->charged_ns);
    tile->charged_ns = ns;
}

static enum device_kind device_kind(const struct tile *tile)
{
    return !tile->slot ? DEVICE_PRODUCTS : tile->has_left ? DEVICE_LEFT : DEVICE_SLOTS;
}

/* The device may have been faster than the thread that gave it the tile. */
static void with_device(struct sched *s, struct tile *tile)
{
    if (tile->is_computed) {
        charge_device(s, tile);
        wait_for_turn(s, tile, TILE_COMPUTED);
        return;
    }
    tile->state = TILE_WITH_DEVICE;
    tile->job->n_with_device++;
    s->n_with_device[device_kind(tile)]++;
}

void sched_device_left(struct sched *s, struct tile *tile)
{
    pthread_mutex_lock(&s->lock);
    struct wjob *job = tile->job;
    if (job->state == WJOB_RUNNING && !job->status) {
        bool is_counted = tile->state == TILE_WITH_DEVICE;
        s->n_with_device[DEVICE_SLOTS] -= is_counted;
        wjob_tile_left(job, tile);
        s->n_with_device[DEVICE_LEFT] += is_counted;
        sched_job_changed(s, job);
        pthread_cond_signal(&s->compute_wake);
    }
    pthread_mutex_unlock(&s->lock);
}

void sched_device_done(struct sched *s, struct tile *tile, int error)
{
    pthread_mutex_lock(&s->lock);
    struct wjob *job = tile->job;
    tile->device_error = error;
    tile->is_computed = true;
    if (tile->state == TILE_WITH_DEVICE) {
        job->n_with_device--;
        sched_wait_begins(job);
        s->n_with_device[device_kind(tile)]--;
        charge_device(s, tile);
        wait_for_turn(s, tile, TILE_COMPUTED);
        if (job->state == WJOB_ENDING)
            drop_tiles(s, job);
        sched_job_changed(s, job);
    }
    pthread_mutex_unlock(&s->lock);
}

static void tile_over(struct sched *s, struct tile *tile, struct thread_context *th,
                      enum tile_outcome outcome)
{
    struct wjob *job = tile->job;
    switch (outcome) {
    case TILE_DONE:
        disk_count(&s->disk, tile->measure.read_bytes[TRAFFIC_FILE] +
                                 tile->measure.read_bytes[TRAFFIC_CHUNKS]);
        if (!job->status)
            wjob_tile_done(job, tile);
        drop_tile(s, tile);
        break;
    case TILE_ON_DEVICE: with_device(s, tile); break;
    case TILE_NEEDS_READ:
        tile->state = TILE_READING;
        tile->next = NULL;
        *s->reads_end = tile;
        s->reads_end = &tile->next;
        pthread_cond_signal(&s->io_wake);
        break;
    case TILE_NEEDS_CLIENT:
        return_slot(s, tile);
        sched_give_spare_back(s, tile);
        tile->state = TILE_WAITING_CLIENT;
        tile->next = job->waiting;
        job->waiting = tile;
        break;
    case TILE_FAILED:
        if (th->status)
            wjob_fail(job, th->status, &th->error);
        drop_tile(s, tile);
        break;
    }
}

void sched_turn_over(struct sched *s, const struct turn *turn, struct thread_context *th,
                     enum tile_outcome outcome, uint64_t elapsed_ns)
{
    struct wjob *job = turn->job;
    sched_charge(s, job, elapsed_ns);
    job->n_in_flight--;
    if (turn->tile)
        job->turn_ns = (3 * job->turn_ns + elapsed_ns) / 4;
    if (turn->tile)
        tile_over(s, turn->tile, th, outcome);
    else if (outcome == TILE_FAILED)
        wjob_fail(job, th->status, &th->error);
    if (job->has_rings)
        job->heard_ns = clock_ns();
    if (job->has_rings && job->n_in_flight == 0 && job->n_with_device == 0 &&
        job->idle_since_ns == 0)
        job->idle_since_ns = clock_ns();
    if (job->status && job->state == WJOB_ENDING)
        drop_tiles(s, job);
    sched_wait_begins(job);
    sched_job_changed(s, job);
}

void sched_read_over(struct sched *s, struct tile *tile, int status, const struct gad_error *error)
{
    struct wjob *job = tile->job;
    job->n_in_flight--;
    if (status || job->status) {
        read_failed(job, tile, status, error);
        if (job->state == WJOB_ENDING)
            drop_tiles(s, job);
    } else {
        wait_for_turn(s, tile, TILE_STAGED);
    }
    sched_wait_begins(job);
    sched_job_changed(s, job);
}

pthread_mutex_t *sched_lock(struct sched *s)
{
    return &s->lock;
}

void sched_each(struct sched *s, void (*report)(struct wjob *job, void *argument), void *argument)
{
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_jobs; i++)
        report(s->jobs[i], argument);
    pthread_mutex_unlock(&s->lock);
}

struct sched_stats sched_stats(struct sched *s)
{
    pthread_mutex_lock(&s->lock);
    struct sched_stats stats = {.slots = slots_use(s->slots),
                                .n_jobs = s->n_jobs,
                                .n_busy = s->n_busy,
                                .n_rings = s->n_rings,
                                .disk_rate = s->disk.rate};
    pthread_mutex_unlock(&s->lock);
    return stats;
}
