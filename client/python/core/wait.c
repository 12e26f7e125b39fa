/* Who waits for what, and who polls.
 *
 *     link->waiters:  A (polls: has neither mutex nor GIL)   B (sleeps)   C (sleeps)
 *                       \-- answers come: takes the mutex, dispatches, wakes B
 *
 * Whoever waits and finds nobody polling polls, for all. When its own job has ended it hands the
 * role to another waiter: it wakes one, which finds nobody polling. One that is woken and leaves
 * wakes the next in the same way, so the role is never lost. A waiter is in the list only while it
 * waits, and every change that concerns it happens under the mutex, so no wake-up is lost either.
 *
 * The poller also watches an eventfd: for changes by threads that use the connection meanwhile (its
 * job ended in their call, a new connection, something to be written) and for link_wake().
 *
 * A lost connection is made anew by gad_job_wait(), one job at a time and with the mutex released
 * in between, the one that was not tried for longest first. When the connection is there again the
 * others that are waited for follow at once. Those that nobody waits for follow when somebody does.
 *
 * Threads that must see signals wait in slices: a sleeper is not woken by a signal, and one that
 * comes just before poll() would not end it.
 */
#include "core/wait.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#define SLICE_NS INT64_C(100000000) /* between looks for signals */
#define PAUSE_NS INT64_C(10000000)  /* between attempts to connect; the mutex is free */
#define YIELD_NS INT64_C(100000)    /* between pieces that this process copies; likewise */
#define BILLION  INT64_C(1000000000)

struct waiter {
    struct waiter *previous, *next;
    struct work *const *works;
    size_t n_works;
    bool is_wakable, is_woken;
    pthread_cond_t cond;
};

int64_t wait_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * BILLION + now.tv_nsec;
}

static bool is_done(const struct waiter *waiter)
{
    for (size_t i = 0; i < waiter->n_works; i++)
        if (atomic_load_explicit(&waiter->works[i]->is_done, memory_order_acquire))
            return true;
    return false;
}

/* Waking --------------------------------------------------------------------------------------- */

static void rouse(struct link *link, struct waiter *waiter)
{
    if (waiter == link->poller)
        eventfd_write(link->wake_fd, 1);
    else
        pthread_cond_signal(&waiter->cond);
}

void wait_rouse_done(struct link *link)
{
    for (struct waiter *waiter = link->waiters; waiter; waiter = waiter->next)
        if (is_done(waiter))
            rouse(link, waiter);
}

void wait_rouse_all(struct link *link)
{
    for (struct waiter *waiter = link->waiters; waiter; waiter = waiter->next)
        rouse(link, waiter);
}

void wait_tell_poller(struct link *link)
{
    if (link->poller && (link->polled_fd != gad_fd(link->client) ||
                         link->polled_connection != gad_connection(link->client) ||
                         link->is_polled_for_writing != gad_wants_write(link->client)))
        eventfd_write(link->wake_fd, 1);
}

void link_wake(struct link *link)
{
    bool is_heard = false;
    for (struct waiter *waiter = link->waiters; waiter; waiter = waiter->next)
        if (waiter->is_wakable) {
            waiter->is_woken = is_heard = true;
            rouse(link, waiter);
        }
    link->is_woken = !is_heard;
}

/* The list ------------------------------------------------------------------------------------- */

static void enter(struct link *link, struct waiter *waiter)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->cond, &attributes);
    pthread_condattr_destroy(&attributes);
    waiter->next = link->waiters;
    if (link->waiters)
        link->waiters->previous = waiter;
    link->waiters = waiter;
    if (waiter->is_wakable && link->is_woken) {
        waiter->is_woken = true;
        link->is_woken = false;
    }
}

static void leave(struct link *link, struct waiter *waiter)
{
    if (waiter->previous)
        waiter->previous->next = waiter->next;
    else
        link->waiters = waiter->next;
    if (waiter->next)
        waiter->next->previous = waiter->previous;
    if (!link->poller && link->waiters)
        pthread_cond_signal(&link->waiters->cond);
    pthread_cond_destroy(&waiter->cond);
}

/* A lost connection ---------------------------------------------------------------------------- */

static bool has_lost(const struct link *link, const struct waiter *waiter)
{
    for (size_t i = 0; i < waiter->n_works; i++)
        if (!link_is_with_daemon(link, waiter->works[i]))
            return true;
    return false;
}

static void look_after(struct link *link, struct work *work)
{
    work->attempt = ++link->n_attempts;
    (void)!gad_job_wait(work->job, 0, NULL); /* what it says is asked for again at the end */
    link_talked(link);
    link_settle(link);
    work->connection = gad_connection(link->client);
}

/* Returns one that is waited for, has not ended and is not known to be served: the one that was not
 * tried for longest. */
static struct work *find_lost(const struct link *link)
{
    struct work *found = NULL;
    for (const struct waiter *waiter = link->waiters; waiter; waiter = waiter->next)
        for (size_t i = 0; i < waiter->n_works; i++) {
            struct work *work = waiter->works[i];
            if (!atomic_load_explicit(&work->is_done, memory_order_acquire) &&
                !link_is_with_daemon(link, work) && (!found || work->attempt < found->attempt))
                found = work;
        }
    return found;
}

/* Returns whether all that is waited for is served; if not, try again after a pause. */
static bool recover(struct link *link)
{
    while (gad_fd(link->client) < 0 || link->recovered != gad_connection(link->client)) {
        struct work *work = find_lost(link);
        if (work)
            look_after(link, work);
        if (gad_fd(link->client) < 0)
            return !work;
        if (!work)
            link->recovered = gad_connection(link->client);
    }
    return true;
}

/* Waiting -------------------------------------------------------------------------------------- */

static struct timespec as_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / BILLION, .tv_nsec = ns % BILLION};
}

/* Returns WAIT_INTERRUPTED when a signal came. */
static enum wait_end poll_for_all(struct link *link, struct waiter *waiter, int64_t until_ns)
{
    bool is_served = recover(link);
    if (is_done(waiter))
        return WAIT_DONE;
    if (!is_served && wait_now_ns() + PAUSE_NS < until_ns)
        until_ns = wait_now_ns() + PAUSE_NS;
    link->poller = waiter;
    link->polled_fd = gad_fd(link->client);
    link->polled_connection = gad_connection(link->client);
    link->is_polled_for_writing = gad_wants_write(link->client);
    struct pollfd polled[] = {
        {.fd = link->wake_fd, .events = POLLIN},
        {.fd = link->polled_fd,
         .events = (short)(link->is_polled_for_writing ? POLLIN | POLLOUT : POLLIN)},
    };
    link_unlock(link);
    int64_t left = until_ns == WAIT_FOR_EVER ? 0 : until_ns - wait_now_ns();
    struct timespec timeout = as_timespec(left > 0 ? left : 0);
    int n = ppoll(polled, 2, until_ns == WAIT_FOR_EVER ? NULL : &timeout, NULL);
    bool is_interrupted = n < 0 && errno == EINTR;
    const struct timespec yield = as_timespec(YIELD_NS);
    if (n > 0 && polled[1].revents == POLLOUT)
        nanosleep(&yield, NULL); /* others that want the mutex have time to wake up */
    link_lock(link);
    link->poller = NULL;
    eventfd_t count;
    if (n > 0 && polled[0].revents)
        (void)!eventfd_read(link->wake_fd, &count);
    if (n > 0 && polled[1].revents && link->client) {
        (void)!gad_dispatch(link->client, 0, NULL);
        link_talked(link);
        link_settle(link);
    }
    return is_interrupted ? WAIT_INTERRUPTED : WAIT_TIMEOUT;
}

static void sleep_until(struct link *link, struct waiter *waiter, int64_t until_ns)
{
    struct timespec until = as_timespec(until_ns);
    wait_tell_poller(link); /* of what this thread has done under the mutex */
    if (until_ns == WAIT_FOR_EVER)
        pthread_cond_wait(&waiter->cond, &link->mutex);
    else
        pthread_cond_timedwait(&waiter->cond, &link->mutex, &until);
}

static enum wait_end wait_in_list(struct link *link, struct waiter *waiter, int64_t deadline_ns,
                                  bool sees_signals)
{
    bool has_looked = false;
    int64_t until = deadline_ns;
    if (sees_signals) {
        int64_t slice = wait_now_ns() + SLICE_NS;
        until = slice < deadline_ns ? slice : deadline_ns;
    }
    for (;;) {
        link_settle(link);
        if (is_done(waiter))
            return WAIT_DONE;
        if (waiter->is_woken || link->is_closed)
            return WAIT_WOKEN;
        if (has_looked && until != WAIT_FOR_EVER && wait_now_ns() >= until)
            return until == deadline_ns ? WAIT_TIMEOUT : WAIT_INTERRUPTED;
        has_looked = true;
        if (link->poller)
            sleep_until(link, waiter, until);
        else if (poll_for_all(link, waiter, until) == WAIT_INTERRUPTED && !is_done(waiter))
            return WAIT_INTERRUPTED;
    }
}

enum wait_end link_wait(struct link *link, struct work *const *works, size_t n_works,
                        bool is_wakable, int64_t deadline_ns, bool sees_signals)
{
    struct waiter waiter = {.works = works, .n_works = n_works, .is_wakable = is_wakable};
    link_settle(link);
    if (is_done(&waiter))
        return WAIT_DONE;
    enter(link, &waiter);
    if (has_lost(link, &waiter)) {
        link->recovered = 0;
        if (link->poller)
            rouse(link, link->poller);
    }
    enum wait_end end = wait_in_list(link, &waiter, deadline_ns, sees_signals);
    leave(link, &waiter);
    return end;
}
