/* The event loop on libuv.
 *
 *     uv_run:  timers -> idle -> prepare -> poll -> check -> closing
 *                                   |
 *                                   +-- turn(): dispatch, flush; then the timer is set
 *
 * Everything that events queue is sent in one turn before the loop sleeps, so replies that were
 * made in the same round share system calls. One uv_timer_t serves all deadlines; an idle handle
 * keeps the loop awake while work is left over, and where the next event comes sooner than a
 * sleeping thread wakes (linger.h). Watches are heap objects: loop_watch_close() forgets the
 * owner's function at once and frees the handle in its close callback. What may wait for a disk or
 * another process goes to libuv's threads (loop_work); a thread that is stuck at the end keeps the
 * loop it belongs to, and the process ends without it.
 *
 * Called by broker.c, server.c, session.c and worker.c; only this file and child.c include uv.h.
 */
#include "daemon/broker/loop.h"
#include "proto/util.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <uv.h>

#define MAX_SIGNALS   4
#define FINISH_TRIES  500u
#define FINISH_TRY_NS 1000000

struct loop_signal {
    uv_signal_t handle;
    signal_func func;
    void *userdata;
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uv_timer_t timer;
    struct loop_signal signals[MAX_SIGNALS];
    unsigned n_signals;
    struct deadlines deadlines;
    uint64_t armed_ns; /* what the timer is set to */
    bool is_busy;
    bool is_alone; /* on one processor: whom it waits for needs that */
    enum linger_kind wait;
    struct lingering linger;
    loop_func turn;
    void *turn_userdata;
    unsigned n_works;
};

struct loop_task {
    uv_work_t request;
    struct loop *loop;
    loop_func work, done;
    void *userdata;
};

struct loop_watch {
    uv_poll_t handle;
    struct loop *loop;
    unsigned events;
    loop_watch_func func; /* NULL: closed */
    void *userdata;
};

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t loop_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t loop_used_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* What has the handle lies at its `data`. */
static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_timer(uv_timer_t *handle)
{
    struct loop *loop = handle->data;
    loop->armed_ns = UINT64_MAX;
    deadlines_run(&loop->deadlines, loop_now_ns());
}

static void on_idle(uv_idle_t *handle)
{
    (void)handle; /* its being active is what counts */
}

static void arm_timer(struct loop *loop)
{
    uint64_t next_ns = deadlines_next_ns(&loop->deadlines);
    if (next_ns == loop->armed_ns)
        return;
    loop->armed_ns = next_ns;
    if (next_ns == UINT64_MAX) {
        uv_timer_stop(&loop->timer);
        return;
    }
    uint64_t now_ns = loop_now_ns();
    uint64_t delay_ms = next_ns > now_ns ? (next_ns - now_ns) / 1000000 + 1 : 0;
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->timer, on_timer, delay_ms, 0);
}

/* Work that is left over is no wait. */
static void stay_awake(struct loop *loop)
{
    bool is_awake = loop->is_busy;
    if (is_awake)
        loop->linger.since_ns = 0;
    else if (!loop->is_alone)
        is_awake = linger_wait(&loop->linger, loop->wait, loop_now_ns());
    if (is_awake)
        uv_idle_start(&loop->idle, on_idle);
    else
        uv_idle_stop(&loop->idle);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct loop *loop = handle->data;
    if (loop->turn)
        loop->turn(loop->turn_userdata);
    arm_timer(loop);
    stay_awake(loop);
}

static void do_nothing(uv_work_t *request)
{
    (void)request;
}

static void forget_nothing(uv_work_t *request, int status)
{
    (void)request;
    (void)status;
}

static int n_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* libuv's threads begin with the first work, and where one cannot begin the process ends: now, and
 * not when memory is short. */
static int start_threads(uv_loop_t *uv)
{
    uv_work_t request;
    int r = uv_queue_work(uv, &request, do_nothing, forget_nothing);
    if (r == 0)
        uv_run(uv, UV_RUN_DEFAULT);
    return r;
}

int loop_new(struct loop **ret_loop)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    if (!loop)
        return -ENOMEM;
    int r = uv_loop_init(&loop->uv);
    if (r < 0) {
        free(loop);
        return r; /* libuv's errors are negative errnos here */
    }
    r = start_threads(&loop->uv);
    if (r < 0) {
        uv_loop_close(&loop->uv);
        free(loop);
        return r;
    }
    loop->armed_ns = UINT64_MAX;
    loop->is_alone = n_processors() < 2;
    linger_init(&loop->linger);
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_idle_init(&loop->uv, &loop->idle);
    uv_timer_init(&loop->uv, &loop->timer);
    loop->prepare.data = loop->timer.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    *ret_loop = loop;
    return 0;
}

static void ignore(void *userdata, unsigned events)
{
    (void)userdata;
    (void)events;
}

int loop_reserve(struct loop *loop, unsigned n_fds)
{
    struct loop_watch *watch;
    _cleanup_fd_ int low = eventfd(0, EFD_CLOEXEC);
    if (low < 0)
        return -errno;
    _cleanup_fd_ int high = fcntl(low, F_DUPFD_CLOEXEC, (int)n_fds - 1);
    if (high < 0)
        return -errno;
    int r = loop_watch_new(loop, high, ignore, NULL, &watch);
    if (r < 0)
        return r;
    r = loop_watch_set(watch, WATCH_READ);
    loop_watch_close(watch);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    return r;
}

/* Children that nobody waits for any more: we leave before they have. */
static void close_child(uv_handle_t *handle, void *userdata)
{
    (void)userdata;
    if (uv_handle_get_type(handle) == UV_PROCESS && !uv_is_closing(handle))
        uv_close(handle, on_closed);
}

struct loop *loop_free(struct loop *loop)
{
    if (!loop || loop->n_works > 0)
        return NULL;
    uv_walk(&loop->uv, close_child, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->idle, NULL);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    for (unsigned i = 0; i < loop->n_signals; i++)
        uv_close((uv_handle_t *)&loop->signals[i].handle, NULL);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    uv_loop_close(&loop->uv);
    free(loop);
    return NULL;
}

int loop_run(struct loop *loop)
{
    int r = uv_run(&loop->uv, UV_RUN_DEFAULT);
    return r < 0 ? r : 0;
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void loop_set_turn(struct loop *loop, loop_func func, void *userdata)
{
    loop->turn = func;
    loop->turn_userdata = userdata;
}

void loop_set_busy(struct loop *loop, bool is_busy)
{
    loop->is_busy = is_busy;
}

void loop_set_wait(struct loop *loop, enum linger_kind kind)
{
    loop->wait = kind;
}

static void on_signal(uv_signal_t *handle, int signal_number)
{
    struct loop_signal *s = handle->data;
    s->func(s->userdata, signal_number);
}

int loop_add_signal(struct loop *loop, int signal_number, signal_func func, void *userdata)
{
    if (loop->n_signals == MAX_SIGNALS)
        return -ENOSPC;
    struct loop_signal *s = &loop->signals[loop->n_signals];
    int r = uv_signal_init(&loop->uv, &s->handle);
    if (r < 0)
        return r;
    loop->n_signals++;
    s->handle.data = s;
    s->func = func;
    s->userdata = userdata;
    return uv_signal_start(&s->handle, on_signal, signal_number);
}

struct deadlines *loop_deadlines(struct loop *loop)
{
    return &loop->deadlines;
}

static void on_work(uv_work_t *request)
{
    struct loop_task *task = request->data;
    task->work(task->userdata);
}

static void on_work_done(uv_work_t *request, int status)
{
    struct loop_task *task = request->data;
    (void)status; /* nothing is ever cancelled */
    task->loop->n_works--;
    task->done(task->userdata);
    free(task);
}

int loop_work(struct loop *loop, loop_func work, loop_func done, void *userdata)
{
    struct loop_task *task = calloc(1, sizeof(*task));
    if (!task)
        return -ENOMEM;
    *task = (struct loop_task){.loop = loop, .work = work, .done = done, .userdata = userdata};
    task->request.data = task;
    int r = uv_queue_work(&loop->uv, &task->request, on_work, on_work_done);
    if (r < 0) {
        free(task);
        return r;
    }
    loop->n_works++;
    return 0;
}

bool loop_finish_work(struct loop *loop)
{
    const struct timespec pause = {.tv_nsec = FINISH_TRY_NS};
    loop->turn = NULL;
    for (unsigned i = 0; loop->n_works > 0 && i < FINISH_TRIES; i++) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        if (loop->n_works > 0)
            nanosleep(&pause, NULL);
    }
    return loop->n_works == 0;
}

/* For child.c. */
uv_loop_t *loop_uv(struct loop *loop);
uv_loop_t *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct loop_watch *watch = handle->data;
    unsigned seen = 0;
    linger_came(&watch->loop->linger, loop_now_ns());
    if (status < 0 || (events & (UV_READABLE | UV_DISCONNECT)))
        seen |= WATCH_READ;
    if (events & UV_WRITABLE)
        seen |= WATCH_WRITE;
    if (watch->func)
        watch->func(watch->userdata, seen);
}

int loop_watch_new(struct loop *loop, int fd, loop_watch_func func, void *userdata,
                   struct loop_watch **ret_watch)
{
    struct loop_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return -ENOMEM;
    int r = uv_poll_init(&loop->uv, &watch->handle, fd);
    if (r < 0) {
        free(watch);
        return r;
    }
    watch->handle.data = watch;
    watch->loop = loop;
    watch->func = func;
    watch->userdata = userdata;
    *ret_watch = watch;
    return 0;
}

int loop_watch_set(struct loop_watch *watch, unsigned events)
{
    if (watch->events == events)
        return 0;
    /* Whoever is not listened to may still leave: a hang-up is always asked for. */
    int uv_events = UV_DISCONNECT | (events & WATCH_READ ? UV_READABLE : 0) |
                    (events & WATCH_WRITE ? UV_WRITABLE : 0);
    int r = uv_poll_start(&watch->handle, uv_events, on_poll);
    if (r == 0)
        watch->events = events;
    return r;
}

bool loop_watch_asks_for(const struct loop_watch *watch, unsigned events)
{
    return (watch->events & events) == events;
}

struct loop_watch *loop_watch_close(struct loop_watch *watch)
{
    if (watch) {
        watch->func = NULL;
        uv_close((uv_handle_t *)&watch->handle, on_closed);
    }
    return NULL;
}
