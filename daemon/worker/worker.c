/* The worker's main thread: one epoll loop over the broker's socket, the eventfd by which threads
 * say that jobs have ended, and the eventfds by which clients say that ring blocks are done.
 *
 * Several frames may come with one wake-up; each is handled, their replies are queued and written
 * together at the end of the turn. A turn handles at most FRAMES_A_TURN of them, and begins jobs
 * for a bounded time, so that ended jobs and rings are not kept waiting.
 *
 * Clients' eventfds are watched edge-triggered and never read: reading or writing one could be made
 * to block by whoever shares it. They carry the job's serial number, since a registration may
 * outlive the job by one turn.
 *
 * End of file on the socket ends the loop: without its broker a worker has nothing to do.
 */
#include "daemon/worker/worker.h"
#include "daemon/worker/lastwords.h"
#include "daemon/worker/trace.h"
#include "kernels/expr/programs.h"
#include "proto/util.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define FRAMES_A_TURN 64
#define EVENTS_A_TURN 32
#define KEPT_BYTES    (64u * 1024u) /* for answers; some 500 bytes each */
#define TAG_SOCKET    UINT64_MAX
#define TAG_WAKE      (UINT64_MAX - 1)

static int watch(struct worker *w, int operation, int fd, uint32_t events, uint64_t tag)
{
    struct epoll_event event = {.events = events, .data.u64 = tag};
    return epoll_ctl(w->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

static int make_context(struct worker *w)
{
    struct crashpage_thread *page = w->page ? &w->page->threads[0] : NULL;
    w->tile = calloc(1, sizeof(*w->tile));
    w->small_carry = aligned_alloc(64, PLAN_SMALL_CARRY_BYTES);
    if (!w->small_carry)
        return -ENOMEM;
    int r = w->tile ? thread_context_new(0, w->engine->cpu, page, true, &w->context) : -ENOMEM;
    if (!r)
        w->context->trace = w->engine->trace;
    return r;
}

/* Main, compute, spare, I/O, and one entry for each turn that may be with the device. */
static int make_page(struct worker *w, int fd)
{
    unsigned n_compute = w->engine->limits.n_threads;
    uint32_t n_threads = 1 + n_compute + sched_n_spares(n_compute) + SCHED_N_IO;
    uint32_t n_flights = w->engine->n_device_flights;
    if (n_threads + n_flights > CRASHPAGE_MAX_THREADS)
        return -EINVAL;
    if (fd < 0)
        return 0;
    int r = crashpage_map(fd, &w->page);
    if (r)
        return r;
    atomic_store(&w->page->n_threads, n_threads + n_flights);
    lastwords_own(&w->page->threads[0]);
    w->engine->device_pages = &w->page->threads[n_threads];
    return lastwords_install(w->page);
}

static int make_sched(struct worker *w)
{
    const struct sched_config config = {.engine = w->engine,
                                        .main = w->context,
                                        .page = w->page,
                                        .wake_fd = w->wake_fd,
                                        .epoll_fd = w->epoll_fd};
    return sched_new(&config, &w->sched);
}

static void region_mapped(void *argument, struct region *region)
{
    struct engine *e = argument;
    if (e->ops->region_mapped)
        e->ops->region_mapped(e, region);
}

static void region_unmapped(void *argument, struct region *region)
{
    struct engine *e = argument;
    if (e->ops->region_unmapped)
        e->ops->region_unmapped(e, region);
}

static int make_regions(struct worker *w)
{
    const struct regions_watch watch = {
        .mapped = region_mapped, .unmapped = region_unmapped, .argument = w->engine};
    int r = regions_new(&w->regions);
    if (!r)
        regions_watch(w->regions, &watch);
    return r;
}

static int worker_init(struct worker *w, int crash_page_fd)
{
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->epoll_fd < 0 || w->wake_fd < 0)
        return -errno;
    int r = watch(w, EPOLL_CTL_ADD, w->wake_fd, EPOLLIN, TAG_WAKE);
    if (!r)
        r = watch(w, EPOLL_CTL_ADD, conn_fd(w->conn), EPOLLIN, TAG_SOCKET);
    if (!r)
        r = conn_keep_room(w->conn, KEPT_BYTES);
    if (!r)
        r = message_writer_reserve(&w->writer);
    if (!r)
        r = guard_install();
    if (!r)
        r = make_page(w, crash_page_fd);
    if (!r)
        r = make_regions(w);
    if (!r)
        r = programs_new(&w->programs);
    if (!r)
        r = starts_new(&w->starts);
    if (!r)
        r = trace_new(clock_ns(), &w->engine->trace);
    if (!r)
        r = make_context(w);
    if (!r)
        r = make_sched(w);
    return r ? r : worker_send_ready(w);
}

int worker_new(const struct worker_config *config, struct worker **ret_worker)
{
    _cleanup_fd_ int fd = config->fd_take;
    struct engine *engine = config->engine_take;
    struct worker *w = calloc(1, sizeof(*w));
    if (!w) {
        engine->ops->free(engine);
        return -ENOMEM;
    }
    w->engine = engine;
    w->epoll_fd = w->wake_fd = -1;
    message_writer_init(&w->writer);
    int r = conn_new(steal_fd(&fd), NULL, &w->conn);
    if (!r)
        r = worker_init(w, config->crash_page_fd);
    if (r) {
        worker_free(w);
        return r;
    }
    *ret_worker = w;
    return 0;
}

struct worker *worker_free(struct worker *w)
{
    if (!w)
        return NULL;
    frame_deinit(&w->frame, NULL);
    w->starts = starts_free(w->starts);
    while (w->held) {
        struct wjob *next = w->held->next;
        wjob_free(w->held);
        w->held = next;
    }
    w->sched = sched_free(w->sched);
    w->context = thread_context_free(w->context);
    free(w->tile);
    free(w->small_carry);
    w->regions = regions_free(w->regions);
    w->programs = programs_free(w->programs);
    w->engine->trace = trace_free(w->engine->trace);
    w->engine = w->engine->ops->free(w->engine);
    if (w->page) {
        lastwords_forget();
        crashpage_unmap(w->page);
    }
    w->conn = conn_free(w->conn);
    message_writer_deinit(&w->writer);
    close_fd(&w->wake_fd);
    close_fd(&w->epoll_fd);
    free(w);
    return NULL;
}

static int queue_message(struct worker *w)
{
    const msgpack_sbuffer *body = &w->writer.buffer;
    int r = conn_send(w->conn, body->data, body->size, NULL, 0);
    return r == -ENOMEM ? conn_send_urgent(w->conn, body->data, body->size) : r;
}

/* What was kept for answers has room for this one, or will have when the broker has read some. */
int worker_send(struct worker *w)
{
    struct pollfd broker = {.fd = conn_fd(w->conn), .events = POLLOUT};
    int r;
    while ((r = queue_message(w)) == -ENOMEM && conn_n_queued_bytes(w->conn) > 0) {
        if (poll(&broker, 1, -1) < 0 && errno != EINTR)
            return -errno;
        r = conn_flush(w->conn);
        if (r && r != -EAGAIN)
            return r;
    }
    return r == -EINVAL ? -ENOMEM : r;
}

/* Without memory the rest comes in a later turn: what has ended meanwhile gives back its own, and
 * so does whoever asked for much. A worker that ends takes everybody's jobs with it. */
static int receive_frames(struct worker *w)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int r = conn_receive(w->conn);
    bool lacks_memory = r == -ENOMEM;
    if (r == -EAGAIN || lacks_memory)
        r = 0;
    for (unsigned i = 0; i < FRAMES_A_TURN && !r; i++) {
        r = w->frame.body ? 0 : conn_next(w->conn, &w->frame);
        if (r)
            break;
        r = worker_handle(w, &w->frame);
        if (r && !w->frame.body)
            return r;
    }
    if (lacks_memory || r == -ENOMEM)
        nanosleep(&pause, NULL);
    return r == -ENOMEM || r == -EAGAIN ? 0 : r;
}

static int flush(struct worker *w)
{
    int n = 0, r = conn_flush(w->conn);
    if (!r && (n = worker_reply_held(w)) > 0)
        r = conn_flush(w->conn);
    if (n < 0 || (r && r != -EAGAIN))
        return n < 0 ? n : r;
    bool wants_writable = r == -EAGAIN || w->held;
    if (wants_writable == w->wants_writable)
        return 0;
    w->wants_writable = wants_writable;
    return watch(w, EPOLL_CTL_MOD, conn_fd(w->conn),
                 EPOLLIN | (wants_writable ? (uint32_t)EPOLLOUT : 0), TAG_SOCKET);
}

static int handle_event(struct worker *w, const struct epoll_event *event)
{
    uint64_t count;
    switch (event->data.u64) {
    case TAG_SOCKET: return event->events & ~(uint32_t)EPOLLOUT ? receive_frames(w) : 0;
    case TAG_WAKE:
        if (read(w->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
            return -errno;
        return worker_reply_ended(w);
    default: sched_ring_event(w->sched, event->data.u64); return 0;
    }
}

/* One turn of the loop. */
static int turn(struct worker *w)
{
    struct epoll_event events[EVENTS_A_TURN];
    bool has_frames = w->frame.body || conn_has_frame(w->conn);
    int timeout = sched_tick(w->sched, worker_report_progress, w);
    if (has_frames || !starts_are_empty(w->starts))
        timeout = 0;
    int r = flush(w);
    if (r)
        return r;
    int n = epoll_wait(w->epoll_fd, events, EVENTS_A_TURN, timeout);
    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n && !r; i++)
        r = handle_event(w, &events[i]);
    if (!r && has_frames)
        r = receive_frames(w);
    return r ? r : worker_begin_jobs(w);
}

int worker_run(struct worker *w)
{
    int r;
    w->context->thread = pthread_self();
    do
        r = turn(w);
    while (!r);
    return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
