/* The watch: a thread that tells the broker how much of the processor's time each other one has had
 * for what it has in hand (daemon/crashpage.h), and that sees who is in a call that lasts, while
 * others could do something with the place (turns/aside.c).
 *
 * A thread that hangs cannot tell it itself, and the time of day says nothing: on a loaded machine,
 * or behind a stopped debugger, a tile may take any. What is told leaves out what passed before the
 * first look, so it is never too much. Where the watch itself gets no processor it stays 0: then
 * the longer limit in wall time alone says who hangs (blocking_ns in broker/workers/strikes.h).
 *
 * It sleeps for good while nothing was in hand for some time, until a job comes: the scheduler's,
 * of which it knows under the lock, or one that the main thread takes in hand without it. There the
 * one side writes the crash page and then asks whether the watch sleeps, the other writes that it
 * does and then looks at the page once more, each with a fence in between, so one of the two sees
 * the other.
 *
 * Started and ended by the scheduler.
 */
#include "daemon/worker/turns/scheduler_internal.h"
#include "proto/util.h"

#include <time.h>

#define LOOK_NS       UINT64_C(100000000)
#define LOOKS_IN_VAIN 10u
#define CALLS_LOOK_NS UINT64_C(2500000)
#define CALL_NS       UINT64_C(5000000) /* a call lasts */

static uint64_t time_of(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) < 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* False: it has nothing in hand. */
static bool look_at(struct thread_context *th)
{
    clockid_t clock;
    struct crashpage_thread *page = th->page;
    if (!page || atomic_load_explicit(&page->job, memory_order_acquire) == 0)
        return false;
    uint64_t since_ns = atomic_load_explicit(&page->since_ns, memory_order_relaxed);
    if (pthread_getcpuclockid(th->thread, &clock))
        return true;
    uint64_t now_ns = time_of(clock);
    if (th->watched_since_ns != since_ns) {
        th->watched_since_ns = since_ns;
        th->watched_from_ns = now_ns;
    }
    crashpage_use(page, since_ns, now_ns - th->watched_from_ns);
    return true;
}

static bool look_at_all(struct sched *s)
{
    bool is_any_busy = s->config.main && look_at(s->config.main);
    for (unsigned i = 0; i < s->n_threads; i++)
        is_any_busy |= look_at(s->threads[i]);
    return is_any_busy;
}

/* What passed before the first look is left out. */
static bool is_call_long(struct thread_context *th, uint64_t now_ns)
{
    uint64_t call = atomic_load_explicit(&th->call, memory_order_relaxed);
    if (call % 2 == 0)
        return false;
    if (call != th->watched_call) {
        th->watched_call = call;
        th->watched_call_ns = now_ns;
    }
    return now_ns - th->watched_call_ns >= CALL_NS;
}

static void look_at_calls(struct sched *s, uint64_t now_ns)
{
    for (unsigned i = 0; i < s->n_threads; i++) {
        struct thread_context *th = s->threads[i];
        if (th->has_place && th->in_hand && is_call_long(th, now_ns))
            sched_displace(s, th);
    }
}

static bool has_others(const struct sched *s)
{
    return s->n_jobs > 1 && s->n_busy > 0;
}

void sched_watch_calls(struct sched *s)
{
    if (s->watches_calls || !has_others(s))
        return;
    s->watches_calls = true;
    pthread_cond_signal(&s->watch_wake);
}

static void wait_until(struct sched *s, uint64_t end_ns)
{
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u),
                                 .tv_nsec = (long)(end_ns % 1000000000u)};
    pthread_cond_timedwait(&s->watch_wake, &s->lock, &end);
}

static void sleep_for_good(struct sched *s)
{
    atomic_store(&s->is_watch_asleep, true);
    atomic_thread_fence(memory_order_seq_cst);
    if (look_at_all(s))
        atomic_store(&s->is_watch_asleep, false);
    while (atomic_load(&s->is_watch_asleep) && !s->is_stopping)
        pthread_cond_wait(&s->watch_wake, &s->lock);
}

static void *watch_main(void *argument)
{
    struct sched *s = argument;
    unsigned n_in_vain = 0;
    uint64_t look_ns = 0; /* when the next look at all is due */
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping) {
        uint64_t now_ns = clock_ns();
        if (now_ns >= look_ns) {
            n_in_vain = look_at_all(s) || s->n_jobs > 0 ? 0 : n_in_vain + 1;
            s->watches_calls &= has_others(s);
            look_ns = now_ns + LOOK_NS;
        }
        if (s->watches_calls && has_others(s))
            look_at_calls(s, now_ns);
        if (n_in_vain < LOOKS_IN_VAIN) {
            wait_until(s, s->watches_calls ? now_ns + CALLS_LOOK_NS : look_ns);
            continue;
        }
        sleep_for_good(s);
        n_in_vain = 0;
        look_ns = 0;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void sched_wake_watch(struct sched *s)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&s->is_watch_asleep, memory_order_relaxed))
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->is_watch_asleep, false);
    pthread_cond_signal(&s->watch_wake);
    pthread_mutex_unlock(&s->lock);
}

int sched_start_watch(struct sched *s)
{
    int r = pthread_create(&s->watch, NULL, watch_main, s);
    s->has_watch = r == 0;
    if (s->has_watch)
        pthread_setname_np(s->watch, "watch");
    return -r;
}
