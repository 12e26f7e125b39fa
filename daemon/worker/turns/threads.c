/* The worker's threads: what they do between turns, how they start and stop.
 *
 * A compute thread takes a turn, works on it without the lock and says how it went; without work it
 * sleeps on a condition. An I/O thread does the same with reads and closings. Both see a stop at
 * the end of what they have in hand; a tile in hand sees it when it asks whether to go on.
 *
 * A thread that tells a client something writes to the client's eventfd, and a client can fill that
 * just before, so that the write waits. The main thread's tick notices such a thread and sends it a
 * signal, whose handler does nothing: the write returns EINTR and the job fails.
 */
#include "daemon/worker/walks/journal.h"
#include "daemon/worker/lastwords.h"
#include "daemon/worker/turns/scheduler_internal.h"
#include "proto/util.h"

#include <assert.h>
#include <signal.h>

#define THREAD_STACK_BYTES (1024u * 1024u) /* a device's driver is called there, too */
#define KICK_SIGNAL        SIGUSR2
#define SIGNAL_LIMIT_NS    (UINT64_C(100) * 1000 * 1000)
#define UNASKED_MS         500 /* between reports of a job whose client asked for none: for others */

static void on_kick(int number)
{
    (void)number;
}

/* Waits where there is nothing; false: look again. */
static bool find_turn(struct sched *s, struct turn *ret_turn)
{
    if (sched_pick(s, ret_turn))
        return true;
    if (sched_wish_signals(s))
        return false;
    s->n_idle++;
    pthread_cond_wait(&s->compute_wake, &s->lock);
    s->n_idle--;
    return false;
}

static void wake_another(struct sched *s)
{
    if (s->n_idle > 0 && sched_wants_another(s))
        pthread_cond_signal(&s->compute_wake);
}

static void *sched_compute_main(void *argument)
{
    struct thread_context *th = argument;
    struct sched *s = th->sched;
    struct turn turn;
    lastwords_own(th->page);
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping) {
        if (!th->has_place) {
            sched_sit_on_bench(s, th);
            continue;
        }
        if (!find_turn(s, &turn))
            continue;
        if (turn.aside) { /* that thread has the place now */
            th->has_place = false;
            sched_resume(s, turn.aside, true);
            wake_another(s);
            continue;
        }
        s->n_busy++;
        th->in_hand = turn.tile;
        wake_another(s);
        sched_watch_calls(s);
        pthread_mutex_unlock(&s->lock);
        th->slice_ns = clock_ns();
        enum tile_outcome outcome;
        if (turn.tile) {
            outcome = tile_run(s->config.engine, turn.tile, th);
        } else {
            th->status = wjob_signal(turn.job, th);
            outcome = th->status ? TILE_FAILED : TILE_DONE;
        }
        uint64_t elapsed = clock_ns() - th->slice_ns;
        pthread_mutex_lock(&s->lock);
        if (th->displaced_ns != 0) /* in the last call of its turn */
            elapsed = sched_come_back(s, th);
        th->in_hand = NULL;
        s->n_busy--;
        sched_turn_over(s, &turn, th, outcome, elapsed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct io_slot *io_slot_of(const struct thread_context *th)
{
    struct sched *s = th->sched;
    return &s->io[th->index - 1 - s->n_threads_compute - s->n_spares];
}

static void wake_another_io(struct sched *s)
{
    if (s->reads || s->openings || s->closings)
        pthread_cond_signal(&s->io_wake);
}

/* Who waited for the disk that it leaves can go on now. */
static void go_to_disk(void *thread, uint64_t device)
{
    const struct thread_context *th = thread;
    struct io_slot *slot = io_slot_of(th);
    if (slot->device == device) /* the thread's own to change */
        return;
    pthread_mutex_lock(&th->sched->lock);
    slot->device = device;
    wake_another_io(th->sched);
    pthread_mutex_unlock(&th->sched->lock);
}

static void io_read(struct sched *s, struct tile *tile, struct thread_context *th)
{
    disk_begin(&s->disk, clock_ns());
    pthread_mutex_unlock(&s->lock);
    int r = tile_read(s->config.engine, tile, th);
    pthread_mutex_lock(&s->lock);
    disk_end(&s->disk, clock_ns());
    sched_read_over(s, tile, r, &th->error);
}

static void io_close(struct sched *s, struct wjob *job, const struct thread_context *th)
{
    pthread_mutex_unlock(&s->lock);
    wjob_close(job, &th->io);
    pthread_mutex_lock(&s->lock);
    sched_closed(s, job);
}

/* What is read may be long, and gives signs of life. */
static void io_open(struct sched *s, struct wjob *job, struct thread_context *th)
{
    if (th->page)
        crashpage_enter(th->page, job->identity.id, 0, clock_ns(), CRASHPAGE_BLOCKING);
    int r = journal_open(job, &s->config.engine->limits, &th->io, &th->error);
    if (th->page)
        crashpage_leave(th->page);
    sched_opened(s, job, r, &th->error);
}

static void *sched_io_main(void *argument)
{
    struct thread_context *th = argument;
    struct sched *s = th->sched;
    struct io_slot *slot = io_slot_of(th);
    th->io.thread = th;
    th->io.go_to_disk = go_to_disk;
    lastwords_own(th->page);
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping) {
        struct io_work work;
        if (!sched_pick_io(s, (unsigned)(slot - s->io), &work)) {
            pthread_cond_wait(&s->io_wake, &s->lock);
            continue;
        }
        wake_another_io(s);
        if (work.read)
            io_read(s, work.read, th);
        else if (work.opening)
            io_open(s, work.opening, th);
        else
            io_close(s, work.closing, th);
        slot->is_busy = false;
        wake_another_io(s); /* whoever was held back by a limit can go on now */
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void kick_threads(struct sched *s, uint64_t now)
{
    for (unsigned i = 0; i < s->n_threads; i++) {
        uint64_t since = atomic_load(&s->threads[i]->signalling_since_ns);
        if (since && now > since && now - since > SIGNAL_LIMIT_NS)
            pthread_kill(s->threads[i]->thread, KICK_SIGNAL);
    }
}

int sched_tick(struct sched *s, void (*report)(struct wjob *job, void *argument), void *argument)
{
    uint64_t now = clock_ns(), next = UINT64_MAX;
    pthread_mutex_lock(&s->lock);
    if (s->n_rings > 0) {
        kick_threads(s, now);
        next = now + SCHED_TICK_MS * UINT64_C(1000000);
    }
    for (unsigned i = 0; i < s->n_jobs; i++) {
        struct wjob *job = s->jobs[i];
        uint32_t asked_ms = job->request->progress_ms;
        uint64_t interval = (asked_ms ? asked_ms : UNASKED_MS) * UINT64_C(1000000);
        bool is_first = job->next_progress_ns == 0;
        if (job->next_progress_ns <= now) {
            if (asked_ms || !is_first) /* asked for: the first one at once, the job has begun */
                report(job, argument);
            job->next_progress_ns = now + interval;
        }
        next = min_u64(next, job->next_progress_ns);
    }
    pthread_mutex_unlock(&s->lock);
    return next == UINT64_MAX ? -1 : (int)min_u64((next - now) / 1000000 + 1, INT32_MAX);
}

static int start_thread(struct sched *s, unsigned index)
{
    bool is_compute = index <= s->n_threads_compute + s->n_spares;
    struct crashpage *page = s->config.page;
    struct thread_context *th;
    pthread_attr_t attributes;
    int r = thread_context_new(index, s->config.engine->cpu, page ? &page->threads[index] : NULL,
                               is_compute, &th);
    if (r)
        return r;
    th->sched = s;
    th->trace = s->config.engine->trace;
    th->has_place = index <= s->n_threads_compute;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    r = pthread_create(&th->thread, &attributes, is_compute ? sched_compute_main : sched_io_main,
                       th);
    pthread_attr_destroy(&attributes);
    if (r) {
        thread_context_free(th);
        return -r;
    }
    pthread_setname_np(th->thread, is_compute ? "compute" : "io");
    s->threads[s->n_threads++] = th;
    return 0;
}

static int start_threads(struct sched *s)
{
    unsigned n = s->n_threads_compute + s->n_spares + SCHED_N_IO;
    struct sigaction kick = {.sa_handler = on_kick};
    int r = 0;
    sigemptyset(&kick.sa_mask);
    if (sigaction(KICK_SIGNAL, &kick, NULL) < 0)
        return -errno;
    s->threads = calloc(n, sizeof(*s->threads));
    if (!s->threads)
        return -ENOMEM;
    for (unsigned i = 0; i < n && !r; i++)
        r = start_thread(s, 1 + i);
    return r;
}

int sched_new(const struct sched_config *config, struct sched **ret_sched)
{
    struct sched *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->config = *config;
    s->reads_end = &s->reads;
    s->closings_end = &s->closings;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->watch_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&s->compute_wake, NULL);
    pthread_cond_init(&s->io_wake, NULL);
    struct engine *e = config->engine;
    s->n_threads_compute = e->limits.n_threads;
    s->n_spares = sched_n_spares(s->n_threads_compute);
    s->n_reserved = sched_n_reserved(s->n_threads_compute);
    int r = slots_new(e->pool, e->limits.pool_bytes, e->limits.slot_bytes, &s->slots);
    if (!r && e->ops->start)
        r = e->ops->start(e, s);
    if (!r)
        r = start_threads(s);
    if (!r)
        r = sched_start_watch(s);
    if (r) {
        sched_free(s);
        return r;
    }
    *ret_sched = s;
    return 0;
}

/* No thread is left: every job goes through its end, and out of every list. */
static void free_jobs(struct sched *s)
{
    struct gad_error error;
    pthread_mutex_lock(&s->lock);
    while (s->n_jobs > 0) {
        struct wjob *job = s->jobs[0];
        wjob_fail(job, error_set(&error, GAD_SHUTTING_DOWN, NULL, "the worker ends"), &error);
        sched_job_changed(s, job);
    }
    pthread_mutex_unlock(&s->lock);
    for (struct wjob *job = s->closings, *next; job; job = next) {
        next = job->next;
        wjob_free(job);
    }
    for (struct wjob *job = s->ended, *next; job; job = next) {
        next = job->next;
        wjob_free(job);
    }
}

struct sched *sched_free(struct sched *s)
{
    if (!s)
        return NULL;
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    for (unsigned i = 0; i < s->n_jobs; i++)
        atomic_store_explicit(&s->jobs[i]->is_stopped, true, memory_order_relaxed);
    pthread_cond_broadcast(&s->compute_wake);
    pthread_cond_broadcast(&s->io_wake);
    for (unsigned i = 0; i < s->n_threads; i++)
        pthread_cond_signal(&s->threads[i]->wake);
    pthread_cond_signal(&s->watch_wake);
    pthread_mutex_unlock(&s->lock);
    if (s->has_watch)
        pthread_join(s->watch, NULL);
    for (unsigned i = 0; i < s->n_threads; i++)
        pthread_join(s->threads[i]->thread, NULL);
    if (s->config.engine->ops->stop)
        s->config.engine->ops->stop(s->config.engine);
    free_jobs(s);
    for (unsigned i = 0; i < s->n_threads; i++)
        thread_context_free(s->threads[i]);
    free(s->threads);
    s->slots = slots_free(s->slots);
    free(s->jobs);
    free(s->turns);
    free(s->users);
    free(s->user_loads);
    pthread_cond_destroy(&s->io_wake);
    pthread_cond_destroy(&s->watch_wake);
    pthread_cond_destroy(&s->compute_wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}
