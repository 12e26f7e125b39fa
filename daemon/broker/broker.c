/* The broker as a whole: building it, the loop's turn, and how it leaves.
 *
 *     turn:  busy sessions -> accept -> dispatch -> flush workers -> resume and flush sessions
 *            -> reap -> check, again where one of them made work for another and there is time
 *
 *     SIGTERM --> drain: no more connections, queued jobs `shutting-down`
 *             --> running jobs end, settling ones get the setting settle-time
 *             --> sessions are sent what waits for them and closed
 *             --> the workers leave --> exit 0
 *
 * SIGHUP reads the settings again (reload.c). A second SIGTERM ends the loop at once. A private
 * daemon leaves the same way when it had neither session nor job for a while; who knocks while it
 * is leaving is taken in first. broker_check() only notes that something changed: the decision is
 * made at the end of the turn, where nobody up the stack holds anything.
 *
 * Called by main.c.
 */
#define LOG_TOPIC "broker"
#include "daemon/broker/broker.h"
#include "daemon/broker/jobs/dispatch.h"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/host/notify.h"
#include "daemon/broker/config/reload.h"
#include "daemon/broker/jobs/pause.h"
#include "daemon/broker/jobs/planner.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/numbers/sampler.h"
#include "daemon/broker/scans/scans.h"
#include "daemon/broker/sessions/inspect.h"
#include "daemon/broker/sessions/server.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/sessions/terms.h"
#include "daemon/broker/workers/workers.h"
#include "kernels/expr/programs.h"
#include "proto/util.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TIDY_NS        UINT64_C(10000000000)
#define TRIM_PAD_BYTES (256u * 1024u)
#define LOG_REPORT_NS  UINT64_C(2000000000)
#define TURN_NS        UINT64_C(1000000) /* from then on what is left is the next turn's */

void broker_set_deadline(struct broker *broker, struct deadline *deadline, uint64_t delay_ns,
                         void (*func)(struct deadline *deadline))
{
    deadline_set(loop_deadlines(broker->loop), deadline, loop_now_ns() + delay_ns, func);
}

void broker_clear_deadline(struct broker *broker, struct deadline *deadline)
{
    deadline_clear(loop_deadlines(broker->loop), deadline);
}

/* Leaving ------------------------------------------------------------------------------------- */

static void end_all_sessions(struct broker *broker)
{
    struct gad_error error = {0};
    struct list *next;
    error_set(&error, GAD_SHUTTING_DOWN, NULL, "the daemon is leaving");
    planner_refuse_all(broker->planner, &error);
    for (struct list *it = broker->sessions.next; it != &broker->sessions; it = next) {
        next = it->next;
        session_end(list_entry(it, struct session, link));
    }
}

static void leave(struct broker *broker)
{
    broker->is_leaving = true;
    end_all_sessions(broker);
    broker_check(broker);
}

static void on_settle_time(struct deadline *deadline)
{
    struct broker *broker = list_entry(deadline, struct broker, drain_deadline);
    log_warn(NULL, "%u jobs are not settled by their owners", jobs_n_live(broker->jobs));
    leave(broker);
}

/* Stops accepting, lets running jobs end, refuses the rest, then leaves. */
static void broker_drain(struct broker *broker)
{
    struct gad_error error = {0};
    struct job *job;
    if (broker->is_draining)
        return;
    log_info(NULL, "leaving: %u jobs run, %u wait", workers_n_active(broker),
             workers_n_waiting(broker));
    notifier_send(broker->notifier, "STOPPING=1");
    notifier_status(broker->notifier, "leaving: %u jobs run", workers_n_active(broker));
    broker->is_draining = true;
    broker->server = server_free(broker->server);
    error_set(&error, GAD_SHUTTING_DOWN, NULL, "the daemon is leaving");
    while ((job = workers_any_waiting(broker)))
        finish_error(broker, job, &error);
    pause_end_all(broker);
    broker_check(broker);
}

static void check_drained(struct broker *broker)
{
    if (!broker->is_leaving) {
        if (jobs_n_live(broker->jobs) == 0)
            leave(broker);
        else if (workers_n_active(broker) + workers_n_waiting(broker) == 0 &&
                 !deadline_is_set(&broker->drain_deadline))
            broker_set_deadline(broker, &broker->drain_deadline, broker->options.settle_ns,
                                on_settle_time);
    }
    if (broker->is_leaving && broker->n_sessions == 0)
        workers_stop(broker);
    if (workers_have_stopped(broker))
        loop_stop(broker->loop);
}

static bool is_idle(const struct broker *broker)
{
    return broker->n_sessions == 0 && jobs_n_live(broker->jobs) == 0;
}

static void on_idle_time(struct deadline *deadline)
{
    struct broker *broker = list_entry(deadline, struct broker, idle_deadline);
    if (broker->server && server_accept(broker->server) == 0 && is_idle(broker))
        broker_drain(broker);
    else
        broker_check(broker);
}

static void check_idle(struct broker *broker)
{
    uint64_t idle_ns = broker->options.idle_exit_ns;
    if (idle_ns == 0)
        return;
    if (!is_idle(broker))
        broker_clear_deadline(broker, &broker->idle_deadline);
    else if (!deadline_is_set(&broker->idle_deadline))
        broker_set_deadline(broker, &broker->idle_deadline, idle_ns, on_idle_time);
}

/* The turn ------------------------------------------------------------------------------------ */

static void tell_status(struct broker *broker)
{
    if (!broker->is_draining)
        notifier_status(broker->notifier, "%s: %u sessions, %u jobs run, %u wait",
                        broker->is_closed ? "takes no new jobs" : "serving", broker->n_sessions,
                        workers_n_active(broker), workers_n_waiting(broker));
}

void broker_close(struct broker *broker, bool is_closed, const char *notice)
{
    broker->is_closed = is_closed;
    snprintf(broker->notice, sizeof(broker->notice), "%s", notice);
    tell_status(broker);
}

static void on_tidy_time(struct deadline *deadline)
{
    struct broker *broker = list_entry(deadline, struct broker, tidy_deadline);
    jobs_expire(broker->jobs, loop_now_ns());
    accounts_forget(broker->accounts, loop_now_ns());
    list_for_each (it, &broker->sessions)
        conn_trim(list_entry(it, struct session, link)->conn);
    workers_trim(broker);
    malloc_trim(TRIM_PAD_BYTES); /* also what is free below what is kept */
    tell_status(broker);
    broker_check(broker);
}

static void check_tidy(struct broker *broker)
{
    bool is_needed = broker->n_sessions > 0 || jobs_n_kept(broker->jobs) > 0;
    if (is_needed && !deadline_is_set(&broker->tidy_deadline))
        broker_set_deadline(broker, &broker->tidy_deadline, TIDY_NS, on_tidy_time);
}

void broker_check(struct broker *broker)
{
    broker->needs_check = true;
}

static void check(struct broker *broker)
{
    broker->needs_check = false;
    if (broker->is_draining)
        check_drained(broker);
    else
        check_idle(broker);
    check_tidy(broker);
}

static void accept_callers(struct broker *broker)
{
    if (broker->has_callers && broker->server)
        server_accept(broker->server);
    broker->has_callers = false;
}

static void on_log_time(struct deadline *deadline)
{
    (void)deadline;
    log_report();
}

/* Of several jobs the events follow each other, and their clients and workers need the processors.
 */
static enum linger_kind what_is_awaited(const struct broker *broker)
{
    unsigned n = workers_n_active(broker) + workers_n_waiting(broker);
    return n == 0 ? LINGER_FOR_CLIENT : n == 1 ? LINGER_FOR_WORKER : LINGER_NEVER;
}

static bool has_work_left(const struct broker *broker)
{
    return !list_is_empty(&broker->dirty) || !list_is_empty(&broker->closed) ||
           broker->needs_check || broker->has_room_again;
}

static void turn(void *userdata)
{
    struct broker *broker = userdata;
    session_work_busy(broker);
    accept_callers(broker);
    uint64_t until_ns = loop_now_ns() + TURN_NS;
    do {
        broker->has_room_again = false;
        dispatch_turn(broker);
        workers_flush(broker);
        session_resume_paused(broker);
        session_flush_dirty(broker, until_ns);
        workers_flush(broker); /* cancellations of who left */
        session_reap(broker);
        if (broker->needs_check)
            check(broker);
    } while (has_work_left(broker) && loop_now_ns() < until_ns);
    if (has_work_left(broker))
        loop_set_busy(broker->loop, true);
    loop_set_wait(broker->loop, what_is_awaited(broker));
    sampler_look_after(broker->sampler);
    if (log_has_untold() && !deadline_is_set(&broker->log_deadline))
        broker_set_deadline(broker, &broker->log_deadline, LOG_REPORT_NS, on_log_time);
}

static void on_signal(void *userdata, int signal_number)
{
    struct broker *broker = userdata;
    if (broker->is_draining) {
        log_warn(NULL, "signal %d again: leaving at once", signal_number);
        broker->exit_status = 1;
        loop_stop(broker->loop);
        return;
    }
    broker_drain(broker);
}

static void on_hangup(void *userdata, int signal_number)
{
    struct broker *broker = userdata;
    (void)signal_number;
    if (!broker->is_draining)
        reload_begin(broker);
}

/* Limits -------------------------------------------------------------------------------------- */

static struct jobs_limits jobs_limits_of(const struct options *o)
{
    return (struct jobs_limits){
        .max_kept = o->keep_jobs,
        .kept_ns = o->keep_ns,
        .unread_bytes = o->keep_result_bytes,
    };
}

void broker_apply_limits(struct broker *broker)
{
    const struct options *o = &broker->options;
    struct jobs_limits jobs = jobs_limits_of(o);
    terms_apply(broker);
    jobs_set_limits(broker->jobs, &jobs);
    workers_apply_limits(broker);
    workers_retry(broker); /* who reads the settings again may have changed more than them */
    broker_clear_deadline(broker, &broker->idle_deadline);
    broker_check(broker); /* which sets it anew */
}

/* Building it --------------------------------------------------------------------------------- */

/* Of a user, for the log. */
static bool count_line(void *userdata, uint32_t uid)
{
    struct accounts *accounts = ((struct broker *)userdata)->accounts;
    accounts_forget(accounts, loop_now_ns());
    if (!account_has_room(accounts, uid, ACCOUNT_LOG_LINES, 1))
        return false;
    account_spend(accounts, uid, ACCOUNT_LOG_LINES, 1);
    return true;
}

static unsigned n_files_of_process(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 ? (unsigned)min_u64(files.rlim_cur, LOOP_MAX_FDS)
                                                 : 1024;
}

static int make_parts(struct broker *broker)
{
    const struct options *o = &broker->options;
    const struct jobs_limits jobs_limits = jobs_limits_of(o);
    struct account_limits accounts;
    terms_limits(o, &accounts);
    int r = loop_new(&broker->loop);
    if (r == 0)
        r = loop_reserve(broker->loop, n_files_of_process());
    if (r == 0)
        r = notifier_new(broker->loop, &broker->notifier);
    if (r == 0)
        r = accounts_new(&accounts, &broker->accounts);
    if (r == 0)
        log_set_account(count_line, broker);
    if (r == 0)
        r = jobs_new(&broker->jobs);
    if (r == 0)
        jobs_set_limits(broker->jobs, &jobs_limits);
    if (r == 0)
        r = mounts_new(NULL, &broker->mounts);
    if (r == 0)
        closer_look(inspect_may_hang, broker->mounts);
    if (r == 0)
        r = programs_new(&broker->programs);
    if (r == 0)
        r = planner_new(broker, &broker->planner);
    if (r == 0)
        r = sampler_new(broker, &broker->sampler);
    if (r == 0)
        r = workers_new(broker);
    return r;
}

int broker_init(struct broker *broker, const struct options *options)
{
    *broker = (struct broker){.options = *options, .started_ns = loop_now_ns()};
    struct list *lists[] = {&broker->sessions, &broker->regions,     &broker->dirty,
                            &broker->busy,     &broker->paused,      &broker->slow,
                            &broker->closed,   &broker->stats_waits, &broker->scans};
    for (unsigned i = 0; i < ARRAY_LENGTH(lists); i++)
        list_init(lists[i]);
    for (unsigned i = 0; i < BROKER_REGION_BUCKETS; i++)
        list_init(&broker->regions_by_id[i]);
    fair_init(&broker->users);
    metrics_init(&broker->metrics);
    message_writer_init(&broker->writer);
    message_writer_init(&broker->scratch);
    int r = message_writer_reserve(&broker->writer);
    if (r == 0)
        r = make_parts(broker);
    if (r == 0)
        r = loop_add_signal(broker->loop, SIGTERM, on_signal, broker);
    if (r == 0)
        r = loop_add_signal(broker->loop, SIGINT, on_signal, broker);
    if (r == 0)
        r = loop_add_signal(broker->loop, SIGHUP, on_hangup, broker);
    if (r == 0)
        r = server_new(broker, &broker->server);
    return r;
}

static void close_all_sessions(struct broker *broker)
{
    struct list *first;
    while ((first = list_first(&broker->sessions)))
        session_close(list_entry(first, struct session, link));
    session_reap(broker);
}

/* After a loop that was stopped at once: whatever still runs has lost its worker. */
static void end_all_jobs(struct broker *broker)
{
    struct gad_error error = {0};
    struct list *first;
    error_set(&error, GAD_SHUTTING_DOWN, NULL, "the daemon is leaving");
    for (unsigned i = 0; i < broker->n_workers; i++)
        while ((first = list_first(queue_active(worker_queue(broker->workers[i])))))
            finish_error(broker,
                         list_entry(list_entry(first, struct queue_item, link), struct job, item),
                         &error);
}

void broker_deinit(struct broker *broker)
{
    planner_stop(broker->planner);
    broker->is_stuck = broker->loop && !loop_finish_work(broker->loop);
    broker->reload = reload_free(broker->reload);
    broker->notifier = notifier_free(broker->notifier);
    broker->server = server_free(broker->server);
    if (broker->n_workers > 0) {
        close_all_sessions(broker);
        end_all_jobs(broker);
    }
    info_forget_all(broker);
    broker->sampler = sampler_free(broker->sampler);
    scans_free(broker);
    broker->planner = planner_free(broker->planner);
    workers_free(broker);
    broker->jobs = jobs_free(broker->jobs);
    log_set_account(NULL, NULL);
    if (!broker->is_stuck) /* its planner would still hold charges */
        broker->accounts = accounts_free(broker->accounts);
    fair_deinit(&broker->users);
    metrics_deinit(&broker->metrics);
    closer_look(NULL, NULL);
    broker->mounts = mounts_free(broker->mounts);
    broker->programs = programs_free(broker->programs);
    message_writer_deinit(&broker->writer);
    message_writer_deinit(&broker->scratch);
    broker->loop = loop_free(broker->loop);
}

static void tell_ready(struct broker *broker)
{
    int fd = broker->options.ready_fd;
    broker->has_told_ready = true;
    notifier_send(broker->notifier, "READY=1");
    if (fd < 0)
        return;
    if (write(fd, "R", 1) != 1)
        log_warn(NULL, "nobody waits for readiness: %s", strerror(errno));
    close(fd);
    broker->options.ready_fd = -1;
}

/* A daemon that may use devices alone is of no use without one, and says so instead of being ready;
 * whatever else is wrong with its worker may pass. */
void broker_started_one(struct broker *broker, const struct worker *worker)
{
    const struct worker_info *info = worker_info(worker);
    if (broker->has_told_ready || broker->is_draining)
        return;
    if (info->state != WORKER_ABSENT && info->state != WORKER_SHORT) {
        tell_ready(broker);
        return;
    }
    log_error(NULL, "the settings say engine = cuda, and %s is not there: %s", info->engine,
              info->why);
    broker->exit_status = BROKER_EXIT_NO_ENGINE;
    loop_stop(broker->loop);
}

int broker_run(struct broker *broker)
{
    loop_set_turn(broker->loop, turn, broker);
    if (broker->options.engine != ENGINE_CUDA)
        tell_ready(broker);
    workers_begin(broker);
    tell_status(broker);
    broker_check(broker);
    int r = loop_run(broker->loop);
    if (r < 0) {
        log_error(NULL, "the loop ended: %s", strerror(-r));
        return 1;
    }
    return broker->exit_status;
}
