/* A worker's life.
 *
 *     ASLEEP --worker_wake()--+            +--- end --> RESTARTING --delay--+
 *       ^                     v            |                                |
 *       |                 STARTING --------+--- absent --> ABSENT ----------+--> STARTING
 *       |                     | ready      |                                |
 *      end                    v            +--- no memory --> SHORT --------+
 *       +----- DOZING <---- READY ---------+
 *
 *     worker_stop(): --> STOPPING --end--> STOPPED
 *
 * Each process has its own socketpair, crash page and table of open requests. Its end is known by
 * its exit alone. Before that a SIGKILL ends it: at once where it sends nonsense, or has a tile in
 * hand that hangs (strikes.c, looked for now and then), or is not ready after START_NS; after
 * LINGER_NS where its socket has ended and it has not. What it sent before it died is read first:
 * those jobs have ended well. Then the crash page says who had a tile in hand (strikes.c).
 *
 * A worker that ends again and again is started at longer intervals; one that served a job, or
 * lived for a while, starts the row afresh. After a fault of the device only a longer life does,
 * and the intervals grow further: a device that is broken stays broken, and starting costs. Where
 * none of its processes was ever ready, there is no such engine (no-engine) after MAX_FAILED_STARTS
 * attempts, until a start succeeds. Where one was, what hinders it now may be over soon: its jobs
 * stay queued, and server.info says what they wait for. A device that was never there is looked for
 * every minute; one that was there (it may come back with a driver that is loaded again), or whose
 * memory others have, is tried at growing intervals.
 *
 * The device workers of a daemon that leaves when it is idle (that of one user) sleep: they are
 * started by the first job for which a device may be worth it, and leave when they had nothing to
 * do for a while. They hold a device's memory, which others want.
 *
 * Called by workers.c, dispatch.c, region.c and info.c.
 */
#define LOG_TOPIC "worker"
#include "daemon/broker/workers/worker_impl.h"
#include "daemon/broker/jobs/dispatch.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/workers/workers.h"
#include "daemon/worker_exit.h"
#include "proto/util.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LONG_DEATHS     4u /* in a row: what waits need not wait for this one any more */
#define STABLE_NS       UINT64_C(10000000000)
#define LINGER_NS       UINT64_C(2000000000)
#define STOP_NS         UINT64_C(5000000000)
#define START_NS        UINT64_C(120000000000) /* of a device's: a driver can hang */
#define HANG_CHECK_NS   UINT64_C(1000000000)
#define ABSENT_NS       UINT64_C(60000000000)
#define SLEEP_NS        UINT64_C(30000000000)
#define BLOCKING_FACTOR 10u
#define QUEUE_BYTES     (256u * 1024u) /* to the worker: more waits in the job queue */

/* In milliseconds: of a worker that ends, and of a device that faults or has no memory. */
static const unsigned delays_ms[] = {0, 50, 200, 1000, 5000};
static const unsigned device_delays_ms[] = {0, 200, 1000, 5000, 15000, 30000, 60000};

static void start(struct worker *w);

const struct worker_info *worker_info(const struct worker *w)
{
    return &w->info;
}

const char *worker_state_name(enum worker_state state)
{
    static const char *const names[] = {
        [WORKER_ASLEEP] = "asleep",    [WORKER_STARTING] = "starting",
        [WORKER_READY] = "ready",      [WORKER_RESTARTING] = "restarting",
        [WORKER_ABSENT] = "absent",    [WORKER_SHORT] = "waiting-for-device-memory",
        [WORKER_DOZING] = "stopping",  [WORKER_STOPPING] = "stopping",
        [WORKER_STOPPED] = "stopping",
    };
    return names[state];
}

double worker_retry_seconds(const struct worker *w)
{
    uint64_t now_ns = loop_now_ns();
    return deadline_is_set(&w->restart) && w->restart.at_ns > now_ns
               ? (double)(w->restart.at_ns - now_ns) / 1e9
               : 0;
}

unsigned worker_place(const struct worker *w)
{
    return w->place;
}

bool worker_is_device(const struct worker *w)
{
    return w->info.index >= 0;
}

bool worker_is_ready(const struct worker *w)
{
    return w->info.state == WORKER_READY && w->conn;
}

bool worker_has_room(const struct worker *w)
{
    return worker_is_ready(w) && conn_n_queued_bytes(w->conn) < QUEUE_BYTES;
}

bool worker_is_coming(const struct worker *w)
{
    switch (w->info.state) {
    case WORKER_ABSENT:
    case WORKER_STOPPING:
    case WORKER_STOPPED: return false;
    case WORKER_SHORT: return !w->broker->is_draining; /* others decide for how long */
    default:
        return w->info.n_failed_starts < MAX_FAILED_STARTS ||
               (w->was_ready && !w->broker->is_draining);
    }
}

bool worker_may_return(const struct worker *w)
{
    return w->info.state == WORKER_ABSENT && w->was_ready && !w->broker->is_draining;
}

const char *worker_why(const struct worker *w)
{
    return w->info.why;
}

static bool can_sleep(const struct worker *w)
{
    return worker_is_device(w) && w->broker->options.idle_exit_ns > 0;
}

int worker_new(struct broker *broker, int index, unsigned place, struct worker **ret_worker)
{
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->broker = broker;
    w->place = place;
    w->info.state = w->waited_as = WORKER_STARTING;
    w->info.index = index;
    w->info.n_threads = broker->options.n_threads;
    if (index < 0)
        snprintf(w->info.engine, sizeof(w->info.engine), "cpu");
    else
        snprintf(w->info.engine, sizeof(w->info.engine), "cuda:%d", index);
    worker_set_hang_timeout(w, broker->options.hang_timeout_ns);
    int r = worker_limits_init(w);
    if (r) {
        worker_free(w);
        return r;
    }
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
    w->watch = loop_watch_close(w->watch);
    w->conn = conn_free(w->conn);
}

static void drop_process(struct worker *w)
{
    drop_connection(w);
    w->child = child_close(w->child);
    crashpage_unmap(steal_ptr(w->page));
    pending_deinit(&w->pending);
    frame_deinit(&w->unread, closer_close);
    w->lacks_memory = w->is_untold = false;
    broker_clear_deadline(w->broker, &w->kill);
    broker_clear_deadline(w->broker, &w->hang_check);
    broker_clear_deadline(w->broker, &w->yield_check);
    broker_clear_deadline(w->broker, &w->sleep);
    free(steal_ptr(w->info.memory));
    w->info.pid = 0;
    w->info.private_bytes = 0;
}

struct worker *worker_free(struct worker *w)
{
    if (!w)
        return NULL;
    if (w->child)
        child_kill(w->child, SIGKILL);
    drop_process(w);
    broker_clear_deadline(w->broker, &w->restart);
    worker_limits_deinit(w);
    free(w);
    return NULL;
}

/* Ending -------------------------------------------------------------------------------------- */

static void on_kill_time(struct deadline *deadline)
{
    struct worker *w = list_entry(deadline, struct worker, kill);
    log_warn(NULL, "the worker of %s (pid %d) does not leave: killed", w->info.engine,
             (int)w->info.pid);
    if (w->child)
        child_kill(w->child, SIGKILL);
}

void worker_lose_connection(struct worker *w, int r)
{
    if (r == -EPROTO || r == -EMSGSIZE) {
        log_error(NULL, "the worker of %s does not speak the protocol: killed", w->info.engine);
        w->was_bad_peer = true;
        child_kill(w->child, SIGKILL);
    } else {
        broker_set_deadline(w->broker, &w->kill, LINGER_NS, on_kill_time);
    }
    drop_connection(w);
}

static void on_restart_time(struct deadline *deadline)
{
    start(list_entry(deadline, struct worker, restart));
}

static uint64_t next_delay_ns(struct worker *w, bool is_of_device)
{
    const unsigned *delays = is_of_device ? device_delays_ms : delays_ms;
    unsigned last = (is_of_device ? ARRAY_LENGTH(device_delays_ms) : ARRAY_LENGTH(delays_ms)) - 1;
    unsigned place = w->n_deaths < last ? w->n_deaths : last;
    w->n_deaths++;
    return (uint64_t)delays[place] * 1000000;
}

static void wait_to_restart(struct worker *w, enum worker_state state, uint64_t delay_ns)
{
    w->info.state = state;
    broker_set_deadline(w->broker, &w->restart, delay_ns, on_restart_time);
    if (!worker_is_coming(w) || state != WORKER_RESTARTING || w->n_deaths > LONG_DEATHS)
        workers_lost_one(w->broker, w);
}

static void judge(struct worker *w, const struct death *death)
{
    uint64_t struck[CRASHPAGE_MAX_THREADS];
    unsigned n_struck = w->page ? strikes_judge(w->page, death, loop_now_ns(), &w->hang_limits,
                                                struck, ARRAY_LENGTH(struck))
                                : 0;
    regions_worker_lost(w->broker, w);
    info_worker_lost(w->broker, w);
    dispatch_worker_lost(w->broker, w, death, struck, n_struck);
}

static void count_failed_start(struct worker *w)
{
    w->info.n_failed_starts++;
    w->info.n_all_failed_starts++;
    w->broker->metrics.n_failed_starts++;
}

static bool has_exited_with(const struct worker *w, const struct death *death, int code)
{
    return worker_is_device(w) && death->term_signal == 0 && death->exit_code == code;
}

/* That is no failure of the worker's. */
static bool waits_for_device(const struct worker *w, const struct death *death)
{
    return has_exited_with(w, death, WORKER_EXIT_ABSENT) ||
           has_exited_with(w, death, WORKER_EXIT_NO_MEMORY);
}

/* Its life was long enough to say that the one before has nothing to do with its end. */
static bool was_well(const struct worker *w, const struct death *death)
{
    bool was_stable = w->info.state == WORKER_READY && loop_now_ns() - w->started_ns > STABLE_NS;
    return was_stable || (w->has_served && !has_exited_with(w, death, WORKER_EXIT_FAULT));
}

static const char *program_of(const struct worker *w)
{
    const struct options *o = &w->broker->options;
    return worker_is_device(w) ? o->cuda_worker_path : o->worker_path;
}

/* Of one that never got ready it is of interest which program that is. */
static void say_why(struct worker *w, const char *cause)
{
    if (w->failure[0])
        snprintf(w->info.why, sizeof(w->info.why), "%s", w->failure);
    else if (w->was_ready)
        snprintf(w->info.why, sizeof(w->info.why), "the worker ended by %s", cause);
    else
        snprintf(w->info.why, sizeof(w->info.why), "%.140s ended by %s before it was ready",
                 program_of(w), cause);
}

/* Every start is told until it is plain that they all end so; then once what that means. */
static void log_failed_start(const struct worker *w, const char *cause)
{
    if (w->info.n_failed_starts > MAX_FAILED_STARTS) {
        log_debug(NULL, "%s ended by %s, as before", program_of(w), cause);
        return;
    }
    log_error(NULL, "the worker of %s (pid %d) ended by %s before it was ready%s%s", w->info.engine,
              (int)w->info.pid, cause, w->failure[0] ? ": " : "", w->failure);
    if (w->info.n_failed_starts == MAX_FAILED_STARTS)
        log_error(NULL,
                  "%s does not work as the worker of %s: %u starts in a row failed; it is tried "
                  "again from time to time, and that is not told",
                  program_of(w), w->info.engine, MAX_FAILED_STARTS);
}

/* What waits for a device may be tried for days: it is told when it begins. */
static void log_death(struct worker *w, const struct death *death, const char *cause)
{
    bool was_ready = w->info.state == WORKER_READY;
    enum worker_state waits = has_exited_with(w, death, WORKER_EXIT_ABSENT)      ? WORKER_ABSENT
                              : has_exited_with(w, death, WORKER_EXIT_NO_MEMORY) ? WORKER_SHORT
                                                                                 : WORKER_STARTING;
    if (waits == WORKER_STARTING && !was_ready)
        log_failed_start(w, cause);
    else if (waits == WORKER_STARTING)
        log_error(NULL, "the worker of %s (pid %d) ended by %s%s%s", w->info.engine,
                  (int)w->info.pid, cause, w->failure[0] ? ": " : "", w->failure);
    else if (waits != w->waited_as)
        log_warn(NULL, "%s is %s: %s; it is tried again from time to time", w->info.engine,
                 worker_state_name(waits), w->info.why);
    else
        log_debug(NULL, "%s is still %s: %s", w->info.engine, worker_state_name(waits),
                  w->info.why);
    w->waited_as = waits;
}

static void count_death(struct worker *w, const struct death *death)
{
    char cause[64];
    bool is_fault = has_exited_with(w, death, WORKER_EXIT_FAULT);
    if (w->info.state == WORKER_STARTING && !waits_for_device(w, death))
        count_failed_start(w);
    if (was_well(w, death))
        w->n_deaths = w->info.n_faults = 0;
    w->info.n_faults += is_fault;
    w->info.n_all_faults += is_fault;
    if (w->info.state == WORKER_STOPPING || w->info.state == WORKER_DOZING)
        return;
    strikes_describe(death, cause, sizeof(cause));
    say_why(w, cause);
    log_death(w, death, cause);
}

static void restart_later(struct worker *w, const struct death *death)
{
    bool is_fault = has_exited_with(w, death, WORKER_EXIT_FAULT);
    uint64_t delay_ns = next_delay_ns(w, is_fault);
    if (is_fault && w->info.n_faults > 1)
        log_error(NULL, "%s has failed %u times in a row; started again in %.1f s; jobs wait",
                  w->info.engine, w->info.n_faults, (double)delay_ns / 1e9);
    wait_to_restart(w, WORKER_RESTARTING, delay_ns);
}

static void become_stopped(struct worker *w)
{
    w->info.state = WORKER_STOPPED;
    broker_check(w->broker);
}

static void fall_asleep(struct worker *w)
{
    log_info(NULL, "the worker of %s sleeps until it is needed", w->info.engine);
    w->info.state = WORKER_ASLEEP;
}

/* Its process is gone, and what it left is put away. */
static void go_on(struct worker *w, const struct death *death)
{
    if (w->info.state == WORKER_STOPPING) {
        become_stopped(w);
    } else if (w->info.state == WORKER_DOZING) {
        fall_asleep(w);
    } else if (has_exited_with(w, death, WORKER_EXIT_ABSENT)) {
        uint64_t delay_ns = w->was_ready ? next_delay_ns(w, true) : ABSENT_NS;
        wait_to_restart(w, WORKER_ABSENT, delay_ns > 0 ? delay_ns : next_delay_ns(w, true));
    } else if (has_exited_with(w, death, WORKER_EXIT_NO_MEMORY)) {
        uint64_t delay_ns = next_delay_ns(w, true);
        wait_to_restart(w, WORKER_SHORT, delay_ns > 0 ? delay_ns : next_delay_ns(w, true));
    } else {
        restart_later(w, death);
    }
}

static void on_exit_status(void *userdata, int exit_code, int term_signal)
{
    struct worker *w = userdata;
    struct death death = {.exit_code = exit_code,
                          .term_signal = term_signal,
                          .was_hanging = w->was_hanging,
                          .was_bad_peer = w->was_bad_peer,
                          .was_sent = w->page && strikes_was_sent(w->page, term_signal)};
    bool was_told = w->info.state == WORKER_STOPPING || w->info.state == WORKER_DOZING;
    if (!was_told && !w->was_bad_peer) {
        int r = worker_read(w, UINT_MAX); /* until its end: what it managed to say counts */
        if (r == -EPROTO)
            log_error(NULL, "the last words of the worker of %s make no sense", w->info.engine);
    }
    count_death(w, &death);
    judge(w, &death);
    drop_process(w);
    go_on(w, &death);
    broker_started_one(w->broker, w);
}

void worker_stop(struct worker *w)
{
    if (w->info.state == WORKER_STOPPING || w->info.state == WORKER_STOPPED)
        return;
    bool was_dozing = w->info.state == WORKER_DOZING;
    bool was_starting = w->info.state == WORKER_STARTING;
    broker_clear_deadline(w->broker, &w->restart);
    w->info.state = WORKER_STOPPING;
    if (!w->child) {
        become_stopped(w);
        return;
    }
    drop_connection(w); /* end of file: it leaves */
    if (was_starting && worker_is_device(w))
        child_kill(w->child, SIGKILL); /* the driver may keep it long, and it has nothing yet */
    if (!was_dozing)
        broker_set_deadline(w->broker, &w->kill, STOP_NS, on_kill_time);
}

/* Starting ------------------------------------------------------------------------------------ */

static void on_start_time(struct deadline *deadline)
{
    struct worker *w = list_entry(deadline, struct worker, kill);
    snprintf(w->failure, sizeof(w->failure), "it was not ready after %u s",
             (unsigned)(START_NS / 1000000000));
    child_kill(w->child, SIGKILL);
}

static void start(struct worker *w)
{
    w->info.state = WORKER_STARTING;
    w->has_served = w->was_hanging = w->was_bad_peer = false;
    w->failure[0] = '\0';
    w->started_ns = loop_now_ns();
    if (w->was_started)
        w->info.n_restarts++;
    w->was_started = true;
    int r = worker_start_process(w, on_exit_status);
    if (r == 0) {
        w->info.pid = child_pid(w->child);
        if (worker_is_device(w))
            broker_set_deadline(w->broker, &w->kill, START_NS, on_start_time);
        if (w->waited_as == WORKER_STARTING)
            log_info(NULL, "worker of %s started, pid %d", w->info.engine, (int)w->info.pid);
        return;
    }
    if (w->child)
        child_kill(w->child, SIGKILL);
    drop_process(w);
    count_failed_start(w);
    snprintf(w->info.why, sizeof(w->info.why), "its program cannot be started: %s",
             strerrordesc_np(-r));
    wait_to_restart(w, WORKER_RESTARTING, next_delay_ns(w, false));
    broker_started_one(w->broker, w);
}

void worker_begin(struct worker *w)
{
    if (can_sleep(w) && w->broker->options.engine != ENGINE_CUDA)
        w->info.state = WORKER_ASLEEP;
    else
        start(w);
}

void worker_wake(struct worker *w)
{
    if (w->info.state == WORKER_ASLEEP)
        start(w);
}

void worker_retry(struct worker *w)
{
    if (w->info.state != WORKER_ABSENT && w->info.state != WORKER_SHORT)
        return;
    broker_clear_deadline(w->broker, &w->restart);
    start(w);
}

static void on_sleep_time(struct deadline *deadline)
{
    struct worker *w = list_entry(deadline, struct worker, sleep);
    if (!worker_is_ready(w) || queue_n_active(w->queue) + queue_n_waiting(w->queue) > 0)
        return;
    w->info.state = WORKER_DOZING;
    regions_worker_lost(w->broker, w);
    info_worker_lost(w->broker, w);
    drop_connection(w); /* end of file: it leaves */
    broker_set_deadline(w->broker, &w->kill, STOP_NS, on_kill_time);
}

void worker_look_after(struct worker *w)
{
    unsigned n_wanting = queue_n_waiting(w->queue) - queue_n_paused(w->queue);
    bool is_needed = queue_n_active(w->queue) + n_wanting > 0;
    if (is_needed)
        worker_wake(w);
    if (is_needed || w->info.state != WORKER_READY || !can_sleep(w))
        broker_clear_deadline(w->broker, &w->sleep);
    else if (!deadline_is_set(&w->sleep))
        broker_set_deadline(w->broker, &w->sleep,
                            min_u64(SLEEP_NS, w->broker->options.idle_exit_ns), on_sleep_time);
}

/* Hangs --------------------------------------------------------------------------------------- */

static void on_hang_check(struct deadline *deadline)
{
    struct worker *w = list_entry(deadline, struct worker, hang_check);
    if (!w->child || !w->page || queue_n_active(w->queue) == 0)
        return;
    if (strikes_any_hanging(w->page, loop_now_ns(), &w->hang_limits)) {
        log_error(NULL, "a tile hangs: the worker of %s (pid %d) is killed", w->info.engine,
                  (int)w->info.pid);
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
