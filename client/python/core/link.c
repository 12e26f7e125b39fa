/* A connection that many threads share.
 *
 * The library's client belongs to one thread at a time, so everything that touches it happens under
 * one mutex. Two rules keep that free of deadlocks with Python's own lock, the GIL: nobody waits
 * for the mutex while holding the GIL, and nobody takes the GIL while holding the mutex. Nothing
 * here includes Python.h, so the second rule cannot be broken by accident.
 *
 * What a thread gives up while another one has the mutex (Python's destructors must not wait) goes
 * to a list without locks. Whoever has the mutex empties it before it unlocks, and looks once more
 * after: either it sees what was pushed, or the one who pushed finds the mutex free.
 *
 *     Job object dies --> done:    freed --> garbage (its objects go back with the GIL)
 *                     \-> running: cancelled, an orphan; freed by who sees that it has ended
 *
 * The library may read answers in any call, not only in gad_dispatch(), and may connect anew in
 * most. link_unlock() therefore looks which jobs have ended, wakes those who wait for them, and
 * tells the one who polls when there is another descriptor to poll. A new connection is recognised
 * by its number, since descriptors' numbers are used again.
 *
 * Called by most of this folder; waiting is in wait.c.
 */
#include "core/link.h"
#include "core/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Lists ---------------------------------------------------------------------------------------- */

struct release *link_push_release(release_list *list, struct release *node)
{
    node->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &node->next, node))
        ;
    return node;
}

struct release *link_take_releases(release_list *list)
{
    return atomic_load(list) ? atomic_exchange(list, NULL) : NULL;
}

/* Jobs ----------------------------------------------------------------------------------------- */

void link_add(struct link *link, struct work *work)
{
    work->connection = gad_connection(link->client);
    work->next = link->running;
    if (link->running)
        link->running->previous = work;
    link->running = work;
    link->n_holders++;
}

static void unlink_work(struct link *link, struct work *work)
{
    if (work->previous)
        work->previous->next = work->next;
    else
        link->running = work->next;
    if (work->next)
        work->next->previous = work->previous;
    work->previous = work->next = NULL;
}

/* It has ended, so freeing does not wait. */
static void free_job(struct link *link, struct work *work)
{
    gad_job_free(work->job);
    work->job = NULL;
    link->n_holders--;
    link_push_release(&link->garbage, &work->release);
}

static void end(struct link *link, struct work *work)
{
    unlink_work(link, work);
    atomic_store(&work->is_done, true);
    if (!work->is_orphan)
        return;
    link->n_orphans--;
    free_job(link, work);
}

bool link_is_with_daemon(const struct link *link, const struct work *work)
{
    return gad_fd(link->client) >= 0 && work->connection == gad_connection(link->client);
}

/* Nobody waits for an orphan, so nobody else tells it that its daemon is gone. It was cancelled, so
 * it ends without being sent again. Its end waits for functions that give it blocks, and those for
 * the GIL: so this is no part of link_settle(), which destructors come to. */
static void end_lost_orphans(struct link *link)
{
    for (struct work *work = link->running; work && link->n_orphans > 0; work = work->next)
        if (work->is_orphan && !link_is_with_daemon(link, work))
            (void)!gad_job_wait(work->job, 0, NULL);
}

void link_talked(struct link *link)
{
    link->is_dirty = true;
    end_lost_orphans(link);
}

void link_settle(struct link *link)
{
    if (!link->is_dirty)
        return;
    link->is_dirty = false;
    bool has_ended = false;
    struct work *next;
    for (struct work *work = link->running; work; work = next) {
        next = work->next;
        if (gad_job_is_done(work->job)) {
            end(link, work);
            has_ended = true;
        }
    }
    if (has_ended)
        wait_rouse_done(link);
}

/* Giving up ------------------------------------------------------------------------------------ */

static void give_up_job(struct link *link, struct work *work)
{
    if (atomic_load(&work->is_done)) {
        free_job(link, work);
        return;
    }
    work->is_orphan = true;
    link->n_orphans++;
    (void)!gad_job_cancel(work->job, NULL);
}

static void give_up_all(struct link *link)
{
    struct release *next;
    for (struct release *node = link_take_releases(&link->released); node; node = next) {
        next = node->next;
        if (node->array) {
            gad_array_release(node->array);
            link->n_holders--;
            free(node);
        } else {
            give_up_job(link, node->work);
        }
    }
}

/* Something was left to be done by whoever has the lock. That may be somebody who goes to sleep
 * with it; then there is one who polls, and does it. */
static void announce(struct link *link)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (link_try_lock(link))
        link_unlock(link);
    else
        eventfd_write(link->wake_fd, 1);
}

void link_release(struct link *link, struct release *node)
{
    link_push_release(&link->released, node);
    announce(link);
}

void link_wake_soon(struct link *link)
{
    atomic_store(&link->wants_wake, true);
    announce(link);
}

/* The lock ------------------------------------------------------------------------------------- */

bool link_try_lock(struct link *link)
{
    return pthread_mutex_trylock(&link->mutex) == 0;
}

bool link_lock_until(struct link *link, int64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = deadline_ns / 1000000000,
                                .tv_nsec = deadline_ns % 1000000000};
    return pthread_mutex_clocklock(&link->mutex, CLOCK_MONOTONIC, &deadline) == 0;
}

void link_lock(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
}

void link_unlock(struct link *link)
{
    do {
        give_up_all(link);
        link_settle(link);
        if (atomic_load(&link->wants_wake) && atomic_exchange(&link->wants_wake, false))
            link_wake(link);
        wait_tell_poller(link);
        if (link->is_closed && link->n_holders == 0 && link->client) {
            gad_close(link->client);
            link->client = NULL;
        }
        pthread_mutex_unlock(&link->mutex);
        atomic_thread_fence(memory_order_seq_cst);
    } while ((atomic_load(&link->released) || atomic_load(&link->wants_wake)) &&
             link_try_lock(link));
}

/* Beginning and end ---------------------------------------------------------------------------- */

int link_init(struct link *link, struct gad_client *client_take)
{
    *link = (struct link){.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (link->wake_fd < 0)
        return errno;
    int r = pthread_mutex_init(&link->mutex, NULL);
    if (r) {
        close(link->wake_fd);
        return r;
    }
    link->client = client_take;
    return 0;
}

/* The socket is shut, not only closed, so that the library finds it lost and ends the jobs as
 * cancelled without asking the daemon, which may be standing still. */
void link_close(struct link *link)
{
    if (link->is_closed)
        return;
    link->is_closed = true;
    for (struct work *work = link->running; work; work = work->next)
        (void)!gad_job_cancel(work->job, NULL);
    int fd = gad_fd(link->client);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    for (struct work *work = link->running; work; work = work->next)
        while (!gad_job_is_done(work->job)) /* it ends when it is found lost */
            (void)!gad_job_wait(work->job, 0, NULL);
    while (gad_fd(link->client) >= 0) /* what was said before is handled first */
        (void)!gad_dispatch(link->client, 0, NULL);
    link->is_dirty = true;
    link_settle(link);
    wait_rouse_all(link);
}

void link_deinit(struct link *link)
{
    link_lock(link);
    give_up_all(link);
    link_close(link);
    link_unlock(link);
    close(link->wake_fd);
    pthread_mutex_destroy(&link->mutex);
}
