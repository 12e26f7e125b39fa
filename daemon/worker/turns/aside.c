/* Turns that are put aside: how a tile that takes long lets others go first.
 *
 * Most tiles are so small that a turn sees them through. Where the arithmetic of one grain may take
 * seconds (a grain is what it is, for the sake of the bits), or a machine is slow, the thread that
 * is at it asks after each slice of time who is next. Is it somebody else, the thread stays where
 * it is, in the middle of the arithmetic, and gives its place to a spare one:
 *
 *     thread 1   tile A ~~~~~~~|  put aside, waits    |~~~~~~~~ tile A ~~~
 *     thread 7    (bench)      |~~ tile B ~~|~ tile C |   (bench)
 *                               gets the place         picks A: gives the place back
 *
 * As many threads have a place as the engine computes with, whatever waits; only those take turns.
 * A turn that is put aside makes its job ready, as a tile that could go on does, and before the
 * job's other tiles; whoever picks it gives its own place to the thread that has it. So turns are
 * fair in time, and a long tile is charged slice by slice. A cancelled job's threads get no place:
 * each leaves its tile at once.
 *
 * A long tile (struct plan_pass) begins only while a spare thread can be kept for it, so there
 * always is one when it is to be put aside. Each user may have a share of these, and never more
 * than are left for others then: so whoever comes next finds some, and those who were there before
 * give theirs back tile by tile. One who has used his share up goes on with what he has begun. A
 * tile that waits for its client has no thread kept for it: that may take for ever. It gets one
 * before it goes on. One that waits for a disk keeps it, as it keeps its slot. A tile that is not
 * long by the table of costs, but takes its time nevertheless, is put aside where more spare
 * threads are there than are kept for others.
 *
 * A call that writes to a file may last, for as long as its disk likes, and a thread that is in one
 * cannot put itself aside. The watch sees that, and gives its place to a spare thread:
 *
 *     thread 1   tile A ~~~~|    write, without a place    |  waits  |~~~~ tile A ~~~
 *     thread 7    (bench)         |~~ tile B ~~|~ tile C ~~|~ tile C ~|   (bench)
 *                                 gets the place                       picks A
 *
 * Its tile is a long one from then on. That a disk is slow is known by then only, and all threads
 * that compute may be in calls of it: so many spare threads are reserved for that, and never kept
 * for tiles that compute. While some thread is displaced, tiles of all jobs that write to the same
 * disk begin as long ones do, with a spare thread that is kept for each, and none does any more
 * when half as many are displaced as there are spare threads, or slots. So a disk that does not
 * answer at all holds the jobs that write to it, and, where a user has many such disks, his that
 * write to others. Who writes to memory alone keeps the place: that is copying, which is to be done
 * by as many as compute.
 *
 * Called by engines (sched_may_go_on), the compute threads, the watch, and whoever ends a job.
 */
#include "daemon/worker/turns/scheduler_internal.h"
#include "proto/util.h"

#include <assert.h>

#define SLICE_NS UINT64_C(5000000)

/* Places ------------------------------------------------------------------------------------- */

void sched_sit_on_bench(struct sched *s, struct thread_context *th)
{
    th->next = s->bench;
    s->bench = th;
    s->n_bench++;
    if (s->n_idle > 0) /* a long tile may have waited for that */
        pthread_cond_signal(&s->compute_wake);
    while (!th->has_place && !s->is_stopping)
        pthread_cond_wait(&th->wake, &s->lock);
}

/* To who sat down last, whose memory is the warmest. */
static void give_place(struct sched *s, struct thread_context *th)
{
    struct thread_context *spare = s->bench;
    assert(spare && th->has_place);
    s->bench = spare->next;
    s->n_bench--;
    spare->next = NULL;
    th->has_place = false;
    spare->has_place = true;
    pthread_cond_signal(&spare->wake);
}

/* Long tiles --------------------------------------------------------------------------------- */

/* Whose jobs are not all paused. */
static unsigned n_present(const struct sched *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_users; i++)
        n += !s->users[i].is_away;
    return n;
}

/* Of the spare threads, a user's. */
static unsigned find_share(const struct sched *s)
{
    return (s->n_spares - s->n_reserved) / (n_present(s) + 1);
}

static bool is_below_share(const struct sched *s, unsigned n_long)
{
    unsigned n_taken = s->n_kept + s->n_reserved;
    unsigned n_left = s->n_bench > n_taken ? s->n_bench - n_taken : 0;
    uint64_t share = max_u64(min_u64(find_share(s), s->n_threads_compute), 1);
    return n_long < min_u64(share, n_left);
}

/* The user's own calls, which may last for ever, do not count. */
bool sched_may_begin_long(const struct sched *s, uint32_t user)
{
    const struct sched_user_load *load = &s->user_loads[sched_user_index(s, user)];
    return is_below_share(s, load->n_long - load->n_displaced);
}

bool sched_may_begin_write(const struct sched *s, uint32_t user)
{
    return is_below_share(s, s->user_loads[sched_user_index(s, user)].n_long);
}

static void keep(struct sched *s, struct tile *tile, bool is_kept)
{
    struct sched_user_load *load = &s->user_loads[sched_user_index(s, tile->job->identity.user)];
    if (tile->is_kept == is_kept)
        return;
    assert(is_kept || (load->n_long > 0 && s->n_kept > 0));
    tile->is_kept = is_kept;
    load->n_long += is_kept ? 1 : -1u;
    s->n_kept += is_kept ? 1 : -1u;
}

void sched_keep_spare(struct sched *s, struct tile *tile)
{
    if (tile->is_long)
        keep(s, tile, true);
}

/* Another of the user's may begin, or another's. */
void sched_give_spare_back(struct sched *s, struct tile *tile)
{
    if (!tile->is_kept)
        return;
    keep(s, tile, false);
    pthread_cond_signal(&s->compute_wake);
}

/* Turns -------------------------------------------------------------------------------------- */

void sched_resume(struct sched *s, struct thread_context *th, bool with_place)
{
    struct tile *tile = th->aside;
    struct wjob *job = tile->job;
    struct thread_context **p = &job->aside;
    while (*p != th)
        p = &(*p)->next;
    *p = th->next;
    th->next = NULL;
    th->aside = NULL;
    th->has_place = with_place;
    sched_wait_was_for(job, TRAFFIC_TURN);
    job->n_in_flight++;
    s->n_busy++;
    s->n_kept += tile->is_long;
    pthread_cond_signal(&th->wake);
}

/* The oldest goes on first. */
static void leave(struct sched *s, struct thread_context *th, struct tile *tile)
{
    struct wjob *job = tile->job;
    struct thread_context **p = &job->aside;
    while (*p)
        p = &(*p)->next;
    *p = th;
    th->next = NULL;
    th->aside = tile;
    job->n_in_flight--;
    sched_wait_begins(job);
    s->n_busy--;
    s->n_kept -= tile->is_long;
}

/* Who ends a job resumes the threads that were put aside before, not those that come later. */
static bool may_leave(const struct sched *s, const struct thread_context *th,
                      const struct tile *tile)
{
    return s->n_jobs > 1 && th->has_place && tile->job->state == WJOB_RUNNING &&
           !tile->job->status && s->n_bench > (tile->is_long ? 0 : s->n_kept + s->n_reserved);
}

/* Until some thread that has a place gives it that one. */
static void wait_aside(struct sched *s, struct thread_context *th)
{
    uint64_t begin = clock_ns();
    if (th->page)
        crashpage_leave(th->page);
    while (th->aside && !s->is_stopping)
        pthread_cond_wait(&th->wake, &s->lock);
    if (th->aside)
        sched_resume(s, th, false);
    th->traced_ns = clock_ns();
    th->aside_ns += th->traced_ns - begin;
}

/* Looking who is next may end the job, and then its threads have been resumed. */
static void let_others_go_first(struct sched *s, struct thread_context *th, struct tile *tile)
{
    struct wjob *job = tile->job;
    leave(s, th, tile);
    int next = sched_next_job(s);
    if (!th->aside) { /* the place was not given away */
        th->has_place = true;
        return;
    }
    if (next < 0 || s->jobs[next] == job) {
        sched_resume(s, th, true);
        return;
    }
    give_place(s, th);
    tile_trace_kernel(tile, th, clock_ns());
    wait_aside(s, th);
}

/* Calls that last ---------------------------------------------------------------------------- */

/* Each disk is known only when it holds as many threads as compute, and there may be many disks. */
static bool holds_enough(const struct sched *s, uint32_t user)
{
    unsigned n = s->user_loads[sched_user_index(s, user)].n_displaced;
    return n >= max_u64(find_share(s), s->n_threads_compute);
}

static bool may_be_held(const struct sched *s, const struct wjob *held, const struct wjob *job)
{
    uint32_t user = job->identity.user;
    if (held->identity.user == user && wjob_shares_disk(job, job) && holds_enough(s, user))
        return true;
    return wjob_shares_disk(held, job);
}

void sched_note_slow_disks(struct sched *s)
{
    for (unsigned i = 0; i < s->n_jobs; i++)
        s->jobs[i]->writes_slowly = false;
    for (unsigned i = 0; i < s->n_threads && s->n_displaced > 0; i++)
        for (unsigned k = 0; k < s->n_jobs && s->threads[i]->displaced_ns != 0; k++)
            if (may_be_held(s, s->threads[i]->in_hand->job, s->jobs[k]))
                s->jobs[k]->writes_slowly = true;
}

void sched_notice_presence(struct sched *s)
{
    if (s->n_displaced > 0)
        sched_note_slow_disks(s);
    pthread_cond_signal(&s->compute_wake);
}

bool sched_calls_are_enough(const struct sched *s)
{
    unsigned n_slots = slots_use(s->slots).n_slots;
    return s->n_displaced >= max_u64(min_u64(s->n_spares, n_slots) / 2, 1);
}

void sched_displace(struct sched *s, struct thread_context *th)
{
    struct tile *tile = th->in_hand;
    if (!wjob_shares_disk(tile->job, tile->job) || s->n_bench <= (tile->is_kept ? 0 : s->n_kept))
        return;
    tile->is_long = true;
    keep(s, tile, true);
    s->n_kept--; /* it has the place */
    s->n_busy--;
    s->n_displaced++;
    s->user_loads[sched_user_index(s, tile->job->identity.user)].n_displaced++;
    th->displaced_ns = clock_ns();
    sched_note_slow_disks(s);
    give_place(s, th);
}

uint64_t sched_come_back(struct sched *s, struct thread_context *th)
{
    uint64_t elapsed = th->displaced_ns - th->slice_ns;
    th->displaced_ns = 0;
    s->n_displaced--;
    s->user_loads[sched_user_index(s, th->in_hand->job->identity.user)].n_displaced--;
    s->n_busy++;
    s->n_kept++;
    sched_note_slow_disks(s);
    pthread_cond_signal(&s->compute_wake); /* tiles may have waited for that */
    return elapsed;
}

/* Waits for a place, as who was put aside. Of a job that has ended it goes on without one. */
static void ask_for_place(struct sched *s, struct thread_context *th, struct tile *tile)
{
    sched_charge(s, tile->job, sched_come_back(s, th));
    if (tile->job->state != WJOB_RUNNING || tile->job->status)
        return;
    leave(s, th, tile);
    wait_aside(s, th);
}

/* Asking ------------------------------------------------------------------------------------- */

static bool go_on(struct tile *tile, struct thread_context *th, bool is_divisible)
{
    struct sched *s = th->sched;
    struct wjob *job = tile->job;
    uint64_t now = clock_ns();
    if (s && now - th->slice_ns >= SLICE_NS) {
        pthread_mutex_lock(&s->lock);
        if (th->displaced_ns != 0) {
            ask_for_place(s, th, tile);
        } else {
            sched_charge(s, job, now - th->slice_ns);
            if (is_divisible && may_leave(s, th, tile))
                let_others_go_first(s, th, tile);
        }
        pthread_mutex_unlock(&s->lock);
        th->slice_ns = clock_ns();
        tile_tell(tile, th, th->slice_ns);
    }
    return !atomic_load_explicit(&job->is_stopped, memory_order_relaxed);
}

bool sched_may_go_on(struct tile *tile, struct thread_context *th)
{
    return go_on(tile, th, true);
}

bool sched_may_call_on(struct tile *tile, struct thread_context *th)
{
    return go_on(tile, th, false);
}
