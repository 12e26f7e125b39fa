/* The threads for all rings of a client.
 *
 *     epoll: the kick eventfd, the request eventfd of every feed; edge-triggered, never read
 *
 * A thread takes the block of one slot, serves it without the lock, and takes the next, in turns
 * among the feeds; one that finds nothing waits in epoll_wait(), where an event wakes one thread.
 * What the event says does not matter: a thread that is awake looks at all feeds. Arrays in memory
 * are served by as many threads as there is work for, up to one a processor; the further ones are
 * started when blocks pile up. Providers are called by one thread at a time, all of a client's,
 * but those that are concurrent, which get as many threads as there are processors.
 *
 * Signals cost about as much as a small block, so there are few. While a thread looks at the rings
 * (it is awake, and not in a provider, which may take long) the worker is asked not to signal; the
 * last one that stops looking takes that back and looks once more. What
 * was answered is told to the worker together after TELL_NS, or when nothing is left to do; blocks
 * of providers, which may take long, one by one, but of those that are quick. Where the last block
 * took less than TOGETHER_NS, half of the ring is told together: the worker is woken half as often,
 * and finds two chunks that it works on one after the other.
 *
 * A function of the program's own may not return. A thread that is in one does not count as one of
 * the pump's, and there is always another; a feed that is removed meanwhile is kept, with its
 * array, until the function has returned and the caller's thread comes by (reap()).
 *
 * The caller's thread adds and removes feeds while these wait or serve: under the lock, which no
 * thread holds while it copies. pump_remove() waits until no slot of the feed is in hand. All
 * signals are blocked in these threads: they are the program's.
 *
 * Called by job.c; started with the first feed of a client.
 */
#include "client/lib/memory/pump.h"
#include "client/clock.h"
#include "client/process.h"
#include "proto/util.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#define MAX_THREADS 16u
#define MAX_COPIERS 4u /* of arrays in memory: more do not copy faster */
#define MAX_EVENTS  16
#define MAX_AWAY    64u /* threads in functions that may not return */
#define BACKLOG     3u  /* blocks that wait before another thread is woken */
#define TELL_NS     UINT64_C(100000)
#define TOGETHER_NS UINT64_C(1000000)

struct pump {
    pthread_mutex_t lock;
    pthread_cond_t released; /* a feed has no slot in hand any more */
    int epoll_fd, kick_fd;
    /* Under the lock. */
    struct feed *feeds; /* the one that was served last is at the end */
    bool is_stopping, is_in_provider;
    struct feed *orphans; /* that were removed while functions had them in hand */
    pthread_t threads[MAX_THREADS + MAX_AWAY];
    unsigned n_threads, most_threads; /* the latter: of those that are not away */
    unsigned n_away;                  /* in functions that may not return */
    unsigned n_waiting;               /* in epoll_wait() */
    unsigned n_looking;
    bool is_kicked; /* one of those that wait is on its way out */
};

struct block { /* feed NULL: none */
    struct feed *feed;
    uint32_t slot;
};

struct work { /* one block, or one of each */
    struct block drain, fill;
};

/* Under the lock ------------------------------------------------------------------------------- */

static void feeds_append(struct pump *pump, struct feed *feed)
{
    struct feed **link = &pump->feeds;
    while (*link)
        link = &(*link)->pump_next;
    feed->pump_next = NULL;
    *link = feed;
}

static void feeds_unlink(struct pump *pump, struct feed *feed)
{
    struct feed **link = &pump->feeds;
    while (*link != feed)
        link = &(*link)->pump_next;
    *link = feed->pump_next;
}

static void wish_all(struct pump *pump, enum ring_wish wish)
{
    for (struct feed *feed = pump->feeds; feed; feed = feed->pump_next)
        feed_wish(feed, wish);
}

/* One that was not told for so long, other than `but`, or NULL. */
static struct feed *find_untold(const struct pump *pump, uint64_t for_ns, const struct feed *but)
{
    struct feed *feed = pump->feeds;
    uint64_t now = for_ns > 0 ? (uint64_t)clock_now_ns() : 0;
    while (feed &&
           !(feed->n_untold > 0 && feed != but && (for_ns == 0 || now - feed->told_ns >= for_ns)))
        feed = feed->pump_next;
    return feed;
}

/* Whether the block of a slot does, in C order. */
static bool comes_before(const struct feed *feed, uint32_t slot, uint32_t other)
{
    int64_t start[ARRAY_MAX_NDIM], other_start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    int i = 0;
    if (feed_take_box(feed, slot, start, count) || feed_take_box(feed, other, other_start, count))
        return false;
    while (i < feed->ndim && start[i] == other_start[i])
        i++;
    return i < feed->ndim && start[i] < other_start[i];
}

/* Returns how many blocks of the feed could be served, counting no further than `most`, and the
 * first one of them: the worker uses slots in turn, and waits for the block that it asked for
 * longest ago. */
static unsigned find_blocks(struct feed *feed, unsigned most, struct block *ret_block)
{
    unsigned n = 0;
    if (feed->most_in_hand > 0 && feed->n_in_hand >= feed->most_in_hand)
        return 0;
    for (uint32_t i = 1; i <= feed->ring.n_slots && (n < most || feed->is_in_order); i++) {
        uint32_t slot = (feed->newest + i) % feed->ring.n_slots;
        if (feed->is_in_hand[slot] || !feed_has_request(feed, slot))
            continue;
        if (n++ == 0 || (feed->is_in_order && comes_before(feed, slot, ret_block->slot)))
            *ret_block = (struct block){feed, slot};
    }
    return n;
}

/* Whether its provider is called by one thread at a time. */
static bool is_alone(const struct feed *feed)
{
    return feed->provider && !feed->provider->is_concurrent;
}

/* Whether a block of its provider may take long. */
static bool is_slow(const struct feed *feed)
{
    return feed->provider && !feed->provider->is_quick;
}

/* Whether what it has not told may wait for the next block. */
static bool may_wait(const struct feed *feed)
{
    return is_slow(feed) && !is_alone(feed) && !feed->may_hang && feed->took_ns < TOGETHER_NS &&
           feed->n_untold < feed->ring.n_slots / 2;
}

/* Returns how many blocks could be served now, BACKLOG + 1 for more, and what to do first. */
static unsigned find_work(const struct pump *pump, struct work *ret_work)
{
    struct work work = {.drain = {NULL, 0}};
    unsigned n = 0;
    for (struct feed *feed = pump->feeds; feed; feed = feed->pump_next) {
        struct block *wanted = feed->is_sink ? &work.drain : &work.fill, block;
        if (feed->provider && (n > 0 || (is_alone(feed) && pump->is_in_provider)))
            continue;
        if (feed->may_hang && pump->n_away >= MAX_AWAY) /* others may be what these wait for */
            continue;
        unsigned n_more = find_blocks(feed, n > BACKLOG ? 1 : BACKLOG + 1 - n, &block);
        if (n_more > 0 && !wanted->feed)
            *wanted = block;
        n += n_more;
        if ((n_more > 0 && feed->provider) || (work.drain.feed && work.fill.feed))
            break;
    }
    *ret_work = work;
    return n;
}

static void take(struct pump *pump, const struct block *block)
{
    struct feed *feed = block->feed;
    if (!feed)
        return;
    feed->is_in_hand[block->slot] = true;
    feed->newest = block->slot;
    feed->n_in_hand++;
    pump->is_in_provider |= is_alone(feed);
    feeds_unlink(pump, feed);
    feeds_append(pump, feed);
}

static void let_go(struct pump *pump, struct feed *feed)
{
    if (--feed->n_in_hand <= feed->n_away)
        pthread_cond_broadcast(&pump->released);
}

/* Without the lock, since whoever is woken may take this processor at once. */
static void tell(struct pump *pump, struct feed *feed)
{
    feed->n_untold = 0;
    feed->told_ns = (uint64_t)clock_now_ns();
    feed->n_in_hand++;
    pthread_mutex_unlock(&pump->lock);
    feed_tell(feed);
    pthread_mutex_lock(&pump->lock);
    let_go(pump, feed);
}

static void give(struct pump *pump, const struct block *block)
{
    struct feed *feed = block->feed;
    feed->is_in_hand[block->slot] = false;
    feed->n_untold++;
    if (is_alone(feed))
        pump->is_in_provider = false;
    if (!may_wait(feed) && (is_slow(feed) || (uint64_t)clock_now_ns() - feed->told_ns >= TELL_NS))
        tell(pump, feed);
    let_go(pump, feed);
}

static void look_again(struct pump *pump)
{
    if (pump->n_looking++ == 0)
        wish_all(pump, RING_TELL_NOTHING);
}

/* If it was the last that looked: what came until now may not have been signalled. */
static void look_away(struct pump *pump)
{
    if (--pump->n_looking == 0)
        wish_all(pump, RING_TELL_ONCE);
}

/* Threads -------------------------------------------------------------------------------------- */

static void *run(void *userdata);

/* Returns a positive errno. */
static int start_thread(struct pump *pump)
{
    sigset_t all, before;
    sigfillset(&all);
    int r = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r)
        return r;
    r = pthread_create(&pump->threads[pump->n_threads], NULL, run, pump);
    if (r == 0) {
        pump->n_threads++;
        look_again(pump);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static bool is_waited_for(const struct pump *pump)
{
    const struct feed *feed = pump->feeds;
    while (feed && !feed_is_waited_for(feed))
        feed = feed->pump_next;
    return feed;
}

static bool may_start(const struct pump *pump, unsigned most)
{
    unsigned n_here = pump->n_threads - pump->n_away;
    return n_here < most && n_here < pump->most_threads && pump->n_threads < MAX_THREADS + MAX_AWAY;
}

/* Returns whether the kick eventfd is to be written. most: threads that there may be. */
static bool needs_kick(struct pump *pump, unsigned most)
{
    if (pump->n_waiting > 0) {
        bool was_kicked = pump->is_kicked;
        pump->is_kicked = true;
        return !was_kicked;
    }
    if (may_start(pump, most) && start_thread(pump))
        pump->most_threads = pump->n_threads - pump->n_away; /* it goes on without */
    return false;
}

/* This thread is about to call a function that may not return: it counts no more, and is not the
 * last that looks. */
static void go_away(struct pump *pump, struct feed *feed)
{
    pump->n_away++;
    feed->n_away++;
    pthread_cond_broadcast(&pump->released);
    if (pump->n_threads == pump->n_away && may_start(pump, 1))
        (void)!start_thread(pump);
}

static void come_back(struct pump *pump, struct feed *feed)
{
    pump->n_away--;
    feed->n_away--;
}

static void wait_for_events(struct pump *pump)
{
    struct epoll_event events[MAX_EVENTS];
    struct work work;
    look_away(pump);
    if (pump->n_looking == 0 && find_work(pump, &work) > 0) {
        look_again(pump);
        return;
    }
    pump->n_waiting++;
    pthread_mutex_unlock(&pump->lock);
    (void)!epoll_wait(pump->epoll_fd, events, MAX_EVENTS, -1);
    pthread_mutex_lock(&pump->lock);
    pump->n_waiting--;
    pump->is_kicked = false;
    look_again(pump);
}

/* n: blocks that could be served. One that is to be filled is fetched from memory while the other
 * is drained. */
static void serve_memory(struct pump *pump, const struct work *work, unsigned n)
{
    bool is_kick = n > BACKLOG && is_waited_for(pump) && needs_kick(pump, MAX_COPIERS);
    pthread_mutex_unlock(&pump->lock);
    if (is_kick)
        eventfd_write(pump->kick_fd, 1);
    if (work->drain.feed) {
        feed_serve(work->drain.feed, work->drain.slot, work->fill.feed, work->fill.slot);
        pthread_mutex_lock(&pump->lock);
        give(pump, &work->drain);
        pthread_mutex_unlock(&pump->lock);
    }
    if (work->fill.feed)
        feed_serve(work->fill.feed, work->fill.slot, NULL, 0);
    pthread_mutex_lock(&pump->lock);
    if (work->fill.feed)
        give(pump, &work->fill);
}

/* It may take long: this thread does not look meanwhile. */
static void serve_provider(struct pump *pump, const struct block *block)
{
    struct work others;
    if (block->feed->may_hang)
        go_away(pump, block->feed);
    const struct feed *waits = may_wait(block->feed) ? block->feed : NULL;
    uint64_t for_ns = is_slow(block->feed) ? 0 : TELL_NS;
    for (struct feed *untold; (untold = find_untold(pump, for_ns, waits));)
        tell(pump, untold);
    look_away(pump);
    bool is_kick = find_work(pump, &others) > 0 && needs_kick(pump, MAX_THREADS);
    pthread_mutex_unlock(&pump->lock);
    if (is_kick)
        eventfd_write(pump->kick_fd, 1);
    uint64_t began_ns = (uint64_t)clock_now_ns();
    feed_serve(block->feed, block->slot, NULL, 0);
    pthread_mutex_lock(&pump->lock);
    block->feed->took_ns = (uint64_t)clock_now_ns() - began_ns;
    if (block->feed->may_hang)
        come_back(pump, block->feed);
    look_again(pump);
    give(pump, block);
}

static void serve(struct pump *pump, const struct work *work, unsigned n)
{
    const struct block *first = work->drain.feed ? &work->drain : &work->fill;
    take(pump, &work->drain);
    take(pump, &work->fill);
    if (first->feed->provider)
        serve_provider(pump, first);
    else
        serve_memory(pump, work, n);
}

/* Looks for something to do until there is nothing. What is left for one of several threads is left
 * to the others. */
static void work_on(struct pump *pump)
{
    struct work work;
    struct feed *untold = find_untold(pump, TELL_NS, NULL); /* while others have work for us */
    if (untold && !may_wait(untold)) {
        tell(pump, untold);
        return;
    }
    unsigned n = find_work(pump, &work);
    if (n > (pump->n_looking > 1))
        serve(pump, &work, n);
    else if ((untold = find_untold(pump, 0, NULL)))
        tell(pump, untold);
    else
        wait_for_events(pump);
}

static void *run(void *userdata)
{
    struct pump *pump = userdata;
    pthread_mutex_lock(&pump->lock);
    while (!pump->is_stopping)
        work_on(pump);
    pthread_mutex_unlock(&pump->lock);
    eventfd_write(pump->kick_fd, 1); /* the next one */
    return NULL;
}

/* The caller's side ---------------------------------------------------------------------------- */

static int watch(struct pump *pump, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | (uint32_t)EPOLLET};
    return epoll_ctl(pump->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

static void pump_close(struct pump *pump)
{
    close_fd(&pump->epoll_fd);
    close_fd(&pump->kick_fd);
    pthread_cond_destroy(&pump->released);
    pthread_mutex_destroy(&pump->lock);
    free(pump);
}

int pump_new(struct pump **ret_pump, struct gad_error *error)
{
    struct pump *pump = calloc(1, sizeof(*pump));
    if (!pump)
        return error_from_errno(error, ENOMEM, NULL, "the threads that serve blocks");
    pthread_mutex_init(&pump->lock, NULL);
    pthread_cond_init(&pump->released, NULL);
    pump->most_threads = (unsigned)min_u64(n_processors(), MAX_THREADS);
    pump->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pump->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = pump->epoll_fd < 0 || pump->kick_fd < 0 ? errno : 0;
    if (r == 0)
        r = watch(pump, pump->kick_fd);
    if (r == 0) {
        pthread_mutex_lock(&pump->lock);
        r = start_thread(pump);
        pthread_mutex_unlock(&pump->lock);
    }
    if (r) {
        pump_close(pump);
        return error_from_errno(error, r == EAGAIN ? ENOMEM : r, NULL,
                                "starting the thread that serves blocks");
    }
    *ret_pump = pump;
    return 0;
}

/* Feeds that functions have let go of. */
static void reap(struct pump *pump)
{
    struct feed *done = NULL, *next;
    pthread_mutex_lock(&pump->lock);
    for (struct feed **link = &pump->orphans; *link;) {
        struct feed *feed = *link;
        if (feed->n_in_hand > 0) {
            link = &feed->pump_next;
            continue;
        }
        *link = feed->pump_next;
        feed->pump_next = done;
        done = feed;
    }
    pthread_mutex_unlock(&pump->lock);
    for (; done; done = next) {
        next = done->pump_next;
        gad_array_release(done->array);
        feed_free(done);
    }
}

struct pump *pump_free(struct pump *pump)
{
    if (!pump)
        return NULL;
    assert(!pump->feeds);
    reap(pump);
    pthread_mutex_lock(&pump->lock);
    pump->is_stopping = true;
    bool is_kept = pump->orphans; /* by its last threads, which nobody can wait for */
    for (unsigned i = 0; is_kept && i < pump->n_threads; i++)
        pthread_detach(pump->threads[i]);
    pthread_mutex_unlock(&pump->lock);
    eventfd_write(pump->kick_fd, 1);
    if (is_kept)
        return NULL;
    for (unsigned i = 0; i < pump->n_threads; i++) /* none is started any more */
        pthread_join(pump->threads[i], NULL);
    pump_close(pump);
    return NULL;
}

void pump_forget(struct pump *pump)
{
    close_fd(&pump->epoll_fd);
    close_fd(&pump->kick_fd);
}

/* Waits until no thread has it in hand, or only functions that may not return have. */
static bool take_out(struct pump *pump, struct feed *feed)
{
    epoll_ctl(pump->epoll_fd, EPOLL_CTL_DEL, feed->ring.request_fd, NULL);
    pthread_mutex_lock(&pump->lock);
    feeds_unlink(pump, feed);
    while (feed->n_in_hand > feed->n_away)
        pthread_cond_wait(&pump->released, &pump->lock);
    feed->is_in_pump = false;
    bool is_free = feed->n_away == 0;
    if (!is_free) {
        array_ref(feed->array);
        feed->pump_next = pump->orphans;
        pump->orphans = feed;
    }
    pthread_mutex_unlock(&pump->lock);
    return is_free;
}

int pump_add(struct pump *pump, struct feed *feed, struct gad_error *error)
{
    reap(pump);
    int r = watch(pump, feed->ring.request_fd);
    if (r)
        return error_from_errno(error, r, NULL, "watching a ring");
    pthread_mutex_lock(&pump->lock);
    feed->is_in_pump = true;
    feeds_append(pump, feed);
    feed_wish(feed, RING_TELL_ONCE); /* what is awake may not come by before it waits */
    struct block block;
    bool is_kick = find_blocks(feed, 1, &block) > 0; /* of a stream's, which had served it before */
    pthread_mutex_unlock(&pump->lock);
    if (is_kick)
        eventfd_write(pump->kick_fd, 1);
    return 0;
}

struct feed *pump_remove(struct pump *pump, struct feed *feed)
{
    if (!feed->is_in_pump)
        return feed;
    bool is_free = take_out(pump, feed);
    reap(pump);
    return is_free ? feed : NULL;
}
