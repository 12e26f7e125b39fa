/* One thread for all rings of a client.
 *
 *     epoll: stop eventfd (id 0), the request eventfd of every feed (its id)
 *
 * The caller's thread adds and removes feeds while this one waits or serves. An event carries the
 * feed's id and not its address, and the id is looked up under the lock before the feed is touched,
 * so an event that was fetched before its feed was removed finds nothing. pump_remove() waits until
 * the feed is not the one in hand; nothing else here waits for the other thread. Blocks are copied
 * and providers called without the lock. All signals are blocked: they are the program's.
 *
 * Called by job.c; started with the first feed of a client.
 */
#include "client/lib/pump.h"
#include "proto/util.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define STOP_ID    0
#define MAX_EVENTS 16

struct pump {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t released; /* `current` changed */
    int epoll_fd, stop_fd;
    struct feed *feeds; /* under the lock, as all below */
    struct feed *current;
    uint64_t last_id;
};

static struct feed *find(struct pump *pump, uint64_t id)
{
    struct feed *feed = pump->feeds;
    while (feed && feed->pump_id != id)
        feed = feed->pump_next;
    return feed;
}

static void serve(struct pump *pump, uint64_t id)
{
    pthread_mutex_lock(&pump->lock);
    struct feed *feed = find(pump, id);
    pump->current = feed;
    pthread_mutex_unlock(&pump->lock);
    if (!feed)
        return;
    feed_serve(feed);
    pthread_mutex_lock(&pump->lock);
    pump->current = NULL;
    pthread_cond_broadcast(&pump->released);
    pthread_mutex_unlock(&pump->lock);
}

static void *run(void *userdata)
{
    struct pump *pump = userdata;
    struct epoll_event events[MAX_EVENTS];
    for (;;) {
        int n = epoll_wait(pump->epoll_fd, events, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.u64 == STOP_ID)
                return NULL;
            serve(pump, events[i].data.u64);
        }
    }
}

static int start_thread(struct pump *pump)
{
    sigset_t all, before;
    sigfillset(&all);
    int r = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r)
        return r;
    r = pthread_create(&pump->thread, NULL, run, pump);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static int watch(struct pump *pump, int fd, uint64_t id)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = id};
    return epoll_ctl(pump->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

int pump_new(struct pump **ret_pump, struct gad_error *error)
{
    struct pump *pump = calloc(1, sizeof(*pump));
    if (!pump)
        return error_from_errno(error, ENOMEM, NULL, "the thread that serves blocks");
    pthread_mutex_init(&pump->lock, NULL);
    pthread_cond_init(&pump->released, NULL);
    pump->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pump->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = pump->epoll_fd < 0 || pump->stop_fd < 0 ? errno : 0;
    if (r == 0)
        r = watch(pump, pump->stop_fd, STOP_ID);
    if (r == 0)
        r = start_thread(pump);
    if (r) {
        close_fd(&pump->epoll_fd);
        close_fd(&pump->stop_fd);
        pthread_cond_destroy(&pump->released);
        pthread_mutex_destroy(&pump->lock);
        free(pump);
        return error_from_errno(error, r == EAGAIN ? ENOMEM : r, NULL,
                                "starting the thread that serves blocks");
    }
    *ret_pump = pump;
    return 0;
}

struct pump *pump_free(struct pump *pump)
{
    if (!pump)
        return NULL;
    assert(!pump->feeds);
    eventfd_write(pump->stop_fd, 1);
    pthread_join(pump->thread, NULL);
    close_fd(&pump->epoll_fd);
    close_fd(&pump->stop_fd);
    pthread_cond_destroy(&pump->released);
    pthread_mutex_destroy(&pump->lock);
    free(pump);
    return NULL;
}

int pump_add(struct pump *pump, struct feed *feed, struct gad_error *error)
{
    pthread_mutex_lock(&pump->lock);
    feed->pump_id = ++pump->last_id;
    feed->pump_next = pump->feeds;
    pump->feeds = feed;
    pthread_mutex_unlock(&pump->lock);
    int r = watch(pump, feed->request_fd, feed->pump_id);
    if (r == 0)
        return 0;
    pump_remove(pump, feed);
    return error_from_errno(error, r, NULL, "watching a ring");
}

void pump_remove(struct pump *pump, struct feed *feed)
{
    if (feed->pump_id == 0)
        return;
    epoll_ctl(pump->epoll_fd, EPOLL_CTL_DEL, feed->request_fd, NULL);
    pthread_mutex_lock(&pump->lock);
    struct feed **link = &pump->feeds;
    while (*link != feed)
        link = &(*link)->pump_next;
    *link = feed->pump_next;
    while (pump->current == feed)
        pthread_cond_wait(&pump->released, &pump->lock);
    feed->pump_id = 0;
    pthread_mutex_unlock(&pump->lock);
}
