/* The worker's supervision.
 *
 *            spawn            worker.ready            end
 *     STARTING ----------------> READY ------------------> RESTARTING --delay--> STARTING
 *         |                        |  worker_stop()            ^
 *         +------ end -------------|---------------------------+
 *                                  +--> STOPPING --end--> STOPPED
 *
 * Each worker has its own socketpair, crash page and table of open requests. Its end is known by
 * its exit alone; an end of file or nonsense on the socket before that leads to a SIGKILL, at once
 * or after a moment. What it sent before it died is read first: those jobs have ended well. Then
 * the crash page says who had a tile in hand (strikes.c).
 *
 * A worker that ends again and again is started at longer intervals; one that served a job, or
 * lived for a while, starts the row afresh. Where none ever got ready, jobs are refused (no-engine)
 * after MAX_FAILED_STARTS attempts, until one does. Where one did, what is in its way may pass:
 * jobs wait in the queue, and server.info says what they wait for.
 *
 * Called by broker.c, dispatch.c, region.c and info.c.
 */
#define LOG_TOPIC "worker"
#include "daemon/broker/worker_impl.h"
#include "daemon/broker/closer.h"
#include "daemon/broker/dispatch.h"
#include "daemon/broker/info.h"
#include "daemon/broker/log.h"
#include "daemon/broker/region.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define MAX_FAILED_STARTS    5u
#define STABLE_NS            UINT64_C(10000000000)
#define LINGER_NS            UINT64_C(2000000000)
#define STOP_NS              UINT64_C(5000000000)
#define HANG_CHECK_NS        UINT64_C(1000000000)
#define BLOCKING_FACTOR      10u
#define QUEUE_BYTES          (256u * 1024u) /* to the worker: more waits in the job queue */
#define RECEIVES_PER_WAKE_UP 8u
#define SOCKET_BUFFER_BYTES  (1024 * 1024)

static const uint64_t delays_ns[] = {0, 50000000, 200000000, 1000000000, 5000000000};

static void start(struct worker *w);
static void on_exit_status(void *userdata, int exit_code, int term_signal);

const struct worker_info *worker_info(const struct worker *w)
{
    return &w->info;
}

bool worker_is_ready(const struct worker *w)
{
    return w->info.state == WORKER_READY && w->conn;
}

bool worker_has_room(const struct worker *w)
{
    return worker_is_ready(w) && conn_n_queued_bytes(w->conn) < QUEUE_BYTES;
}

int worker_check(const struct worker *w, struct gad_error *error)
{
    bool is_hopeless = !w->was_ready || w->broker->is_draining;
    if (worker_is_ready(w) || w->info.n_failed_starts < MAX_FAILED_STARTS || !is_hopeless)
        return 0;
    return error_set(error, GAD_NO_ENGINE, "engine",
                     "the engine cpu does not start (%u attempts); see the daemon's log",
                     w->info.n_failed_starts);
}

int worker_new(struct broker *broker, struct worker **ret_worker)
{
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->broker = broker;
    w->info.state = WORKER_STARTING;
    w->info.n_threads = broker->options.n_threads;
    snprintf(w->info.engine, sizeof(w->info.engine), "cpu");
    worker_set_hang_timeout(w, broker->options.hang_timeout_ns);
    *ret_worker = w;
    return 0;
}

void worker_set_hang_timeout(struct worker *w, uint64_t timeout_ns)
{
    w->hang_limits.computing_ns = timeout_ns;
    w->hang_limits.blocking_ns = BLOCKING_FACTOR * timeout_ns;
}

static void drop_connection(struct worker *w)
{
    w->watch = watch_close(w->watch);
    w->conn = conn_free(w->conn);
}

static void drop_process(struct worker *w)
{
    drop_connection(w);
    w->child = child_close(w->child);
    crashpage_unmap(steal_ptr(w->page));
    pending_deinit(&w->pending);
    broker_clear_deadline(w->broker, &w->kill);
    broker_clear_deadline(w->broker, &w->hang_check);
    w->info.pid = 0;
}

struct worker *worker_free(struct worker *w)
{
    if (!w)
        return NULL;
    if (w->child)
        child_kill(w->child, SIGKILL);
    drop_process(w);
    broker_clear_deadline(w->broker, &w->restart);
    free(w);
    return NULL;
}

/* Ending -------------------------------------------------------------------------------------- */

static void on_kill_time(struct deadline *deadline)
{
    struct worker *w = list_entry(deadline, struct worker, kill);
    log_warn(NULL, "the worker (pid %d) does not leave: killed", (int)w->info.pid);
    if (w->child)
        child_kill(w->child, SIGKILL);
}

void worker_lose_connection(struct worker *w, int r)
{
    if (r == -EPROTO || r == -EMSGSIZE) {
        log_error(NULL, "the worker does not speak the protocol: killed");
        w->was_bad_peer = true;
        child_kill(w->child, SIGKILL);
    } else if (!deadline_is_set(&w->kill)) {
        broker_set_deadline(w->broker, &w->kill, LINGER_NS, on_kill_time);
    }
    drop_connection(w);
}

static void on_restart_time(struct deadline *deadline)
{
    start(list_entry(deadline, struct worker, restart));
}

static void schedule_restart(struct worker *w)
{
    struct gad_error error = {0};
    unsigned last = ARRAY_LENGTH(delays_ns) - 1;
    uint64_t delay_ns = delays_ns[w->n_deaths < last ? w->n_deaths : last];
    w->n_deaths++;
    w->info.state = WORKER_RESTARTING;
    broker_set_deadline(w->broker, &w->restart, delay_ns, on_restart_time);
    if (worker_check(w, &error) != 0) {
        dispatch_refuse_all(w->broker, &error);
        regions_refuse(w->broker, &error);
    }
}

static void judge(struct worker *w, const struct death *death)
{
    uint64_t struck[CRASHPAGE_MAX_THREADS];
    unsigned n_struck = w->page ? strikes_judge(w->page, death, loop_now_ns(), &w->hang_limits,
                                                struck, ARRAY_LENGTH(struck))
                                : 0;
    regions_worker_lost(w->broker);
    info_worker_lost(w->broker);
    dispatch_worker_lost(w->broker, death, struck, n_struck);
}

static void count_failed_start(struct worker *w)
{
    w->info.n_failed_starts++;
    w->broker->metrics.n_failed_starts++;
}

static void count_death(struct worker *w, const struct death *death)
{
    char cause[64];
    bool was_ready = w->info.state == WORKER_READY;
    if (!was_ready && w->info.state == WORKER_STARTING)
        count_failed_start(w);
    if (w->has_served || (was_ready && loop_now_ns() - w->started_ns > STABLE_NS))
        w->n_deaths = 0;
    if (w->info.state != WORKER_STOPPING)
        log_error(NULL, "the worker (pid %d) ended by %s%s", (int)w->info.pid,
                  strikes_describe(death, cause, sizeof(cause)),
                  was_ready ? "" : " before it was ready");
}

/* Starting ------------------------------------------------------------------------------------ */

static int spawn(struct worker *w, int worker_fd, int page_fd)
{
    const struct options *o = &w->broker->options;
    char pool[32], threads[16], lock[PATH_MAX];
    snprintf(pool, sizeof(pool), "%" PRIu64, o->pool_bytes);
    snprintf(threads, sizeof(threads), "%u", o->n_threads);
    snprintf(lock, sizeof(lock), "%s.pool", o->socket_path);
    const char *argv[] = {
        o->worker_path, "--fd",      "3",     "--crash-page", "4",  "--pool",
        pool,           "--threads", threads, "--lock",       lock, o->level[0] ? "--level" : NULL,
        o->level,       NULL};
    int fds[] = {worker_fd, page_fd};
    return child_start(w->broker->loop, (char *const *)argv, fds, 2, on_exit_status, w, &w->child);
}

static void on_event(void *userdata, unsigned events)
{
    struct worker *w = userdata;
    if (events & WATCH_READ) {
        int r = worker_read(w, RECEIVES_PER_WAKE_UP);
        if (r < 0 && r != -EAGAIN && w->conn)
            worker_lose_connection(w, r);
    }
    if (events & WATCH_WRITE)
        worker_flush(w);
}

static int open_connection(struct worker *w, int *fd_take)
{
    int n_bytes = SOCKET_BUFFER_BYTES;
    setsockopt(*fd_take, SOL_SOCKET, SO_SNDBUF, &n_bytes, sizeof(n_bytes));
    int r = conn_new(steal_fd(fd_take), closer_close, &w->conn);
    if (r == 0)
        r = watch_new(w->broker->loop, conn_fd(w->conn), on_event, w, &w->watch);
    if (r == 0)
        r = watch_set(w->watch, WATCH_READ);
    return r;
}

static int try_start(struct worker *w)
{
    int pair[2];
    _cleanup_fd_ int page_fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    _cleanup_fd_ int ours = pair[0];
    _cleanup_fd_ int theirs = pair[1];
    int r = crashpage_create(&page_fd);
    if (r == 0)
        r = crashpage_map(page_fd, &w->page);
    if (r == 0)
        r = spawn(w, theirs, page_fd);
    if (r == 0)
        r = open_connection(w, &ours);
    return r;
}

static void start(struct worker *w)
{
    w->info.state = WORKER_STARTING;
    w->has_served = w->was_hanging = w->was_bad_peer = false;
    w->started_ns = loop_now_ns();
    if (w->was_started)
        w->info.n_restarts++;
    w->was_started = true;
    int r = try_start(w);
    if (r == 0) {
        w->info.pid = child_pid(w->child);
        log_info(NULL, "worker started, pid %d", (int)w->info.pid);
        return;
    }
    log_error(NULL, "%s cannot be started: %s", w->broker->options.worker_path, strerror(-r));
    if (w->child)
        child_kill(w->child, SIGKILL);
    drop_process(w);
    count_failed_start(w);
    schedule_restart(w);
}

void worker_begin(struct worker *w)
{
    start(w);
}

static void become_stopped(struct worker *w)
{
    w->info.state = WORKER_STOPPED;
    broker_check(w->broker);
}

void worker_stop(struct worker *w)
{
    if (w->info.state == WORKER_STOPPING || w->info.state == WORKER_STOPPED)
        return;
    broker_clear_deadline(w->broker, &w->restart);
    w->info.state = WORKER_STOPPING;
    if (!w->child) {
        become_stopped(w);
        return;
    }
    drop_connection(w); /* end of file: it leaves */
    broker_set_deadline(w->broker, &w->kill, STOP_NS, on_kill_time);
}

static void on_exit_status(void *userdata, int exit_code, int term_signal)
{
    struct worker *w = userdata;
    struct death death = {exit_code, term_signal, w->was_hanging, w->was_bad_peer};
    bool is_stopping = w->info.state == WORKER_STOPPING;
    if (!is_stopping && !w->was_bad_peer) {
        int r = worker_read(w, UINT_MAX); /* until its end: what it managed to say counts */
        if (r == -EPROTO)
            log_error(NULL, "the worker's last words make no sense");
    }
    count_death(w, &death);
    judge(w, &death);
    drop_process(w);
    if (is_stopping)
        become_stopped(w);
    else
        schedule_restart(w);
}

/* Hangs --------------------------------------------------------------------------------------- */

static void on_hang_check(struct deadline *deadline)
{
    struct worker *w = list_entry(deadline, struct worker, hang_check);
    if (!w->child || !w->page || queue_n_active(w->broker->queue) == 0)
        return;
    if (strikes_any_hanging(w->page, loop_now_ns(), &w->hang_limits)) {
        log_error(NULL, "a tile hangs: the worker (pid %d) is killed", (int)w->info.pid);
        w->was_hanging = true;
        child_kill(w->child, SIGKILL);
        return;
    }
    worker_watch_hangs(w);
}

void worker_watch_hangs(struct worker *w)
{
    if (!deadline_is_set(&w->hang_check))
        broker_set_deadline(w->broker, &w->hang_check,
                            min_u64(HANG_CHECK_NS, w->hang_limits.computing_ns / 4 + 1),
                            on_hang_check);
}
