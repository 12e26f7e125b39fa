/* Counting.
 *
 *     session.c    sessions, refusals
 *     region.c     regions
 *     submit.c     jobs that were taken
 *     dispatch.c   starts, requeues, what running jobs move
 *     worker.c     starts that failed
 *     finish.c     outcomes, what was moved at the end
 *
 * A job carries what of its traffic was counted already (job->traffic, of this attempt): each
 * tiding counts what is more than that, so that sums grow while a job runs and nothing counts
 * twice. What a worker did and had not told when it died is not counted.
 *
 * A user is looked up by uid when a job or a session comes, in a list where who was found moves to
 * the front; a job then keeps its user, who is not forgotten while it has jobs. Without memory for
 * another user only the sums count.
 *
 * Invariants: every number but those of struct metrics_jobs only rises, except for users that were
 * forgotten and come again; jobs.n[s] are the jobs with counted_as == s.
 */
#include "daemon/broker/numbers/metrics.h"
#include "daemon/broker/jobs/job.h"
#include "proto/util.h"

#include <assert.h>
#include <stdlib.h>

void metrics_init(struct metrics *metrics)
{
    *metrics = (struct metrics){.n_users = 0};
    list_init(&metrics->users);
}

static void drop_user(struct metrics *metrics, struct metrics_user *user)
{
    list_remove(&user->link);
    metrics->n_users--;
    free(user);
}

void metrics_deinit(struct metrics *metrics)
{
    while (metrics->n_users > 0)
        drop_user(metrics, list_entry(metrics->users.next, struct metrics_user, link));
}

static struct metrics_user *longest_idle(struct metrics *metrics)
{
    for (struct list *it = metrics->users.prev; it != &metrics->users; it = it->prev) {
        struct metrics_user *user = list_entry(it, struct metrics_user, link);
        if (metrics_n_live(&user->jobs) == 0)
            return user;
    }
    return NULL;
}

static struct metrics_user *add_user(struct metrics *metrics, uid_t uid)
{
    struct metrics_user *idle =
        metrics->n_users >= METRICS_MAX_USERS ? longest_idle(metrics) : NULL;
    if (idle)
        drop_user(metrics, idle);
    struct metrics_user *user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    user->uid = uid;
    list_push_front(&metrics->users, &user->link);
    metrics->n_users++;
    return user;
}

static struct metrics_user *user_of(struct metrics *metrics, uid_t uid)
{
    list_for_each (it, &metrics->users) {
        struct metrics_user *user = list_entry(it, struct metrics_user, link);
        if (user->uid != uid)
            continue;
        list_remove(it);
        list_push_front(&metrics->users, it);
        return user;
    }
    return add_user(metrics, uid);
}

void metrics_session(struct metrics *metrics, uid_t uid)
{
    metrics->n_sessions++;
    (void)user_of(metrics, uid);
}

void metrics_refused(struct metrics *metrics, int status)
{
    bool is_known = status > 0 && status < (int)GAD_STATUS_COUNT;
    metrics->n_refusals[is_known ? status : (int)GAD_INTERNAL]++;
}

/* States -------------------------------------------------------------------------------------- */

uint64_t metrics_n_live(const struct metrics_jobs *jobs)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < METRICS_N_STATES; i++)
        n += jobs->n[i];
    return n;
}

/* Sums of times may have wrapped around; what they differ by has not. */
uint64_t metrics_waiting_ns(const struct metrics_jobs *jobs, uint64_t now_ns)
{
    return jobs->n[METRICS_QUEUED] * now_ns - jobs->queued_since_sum_ns;
}

static enum metrics_state state_of(const struct job *job)
{
    return job->state == JOB_QUEUED    ? METRICS_QUEUED
           : job->state == JOB_RUNNING ? METRICS_RUNNING
                                       : METRICS_SETTLING;
}

/* The job is in another state than it was counted in; METRICS_N_STATES: in none. */
static void move(struct metrics *metrics, struct job *job, enum metrics_state to)
{
    struct metrics_jobs *sums[] = {&metrics->jobs,
                                   job->metrics_user ? &job->metrics_user->jobs : NULL};
    for (unsigned i = 0; i < 2 && sums[i]; i++) {
        if (job->counted_as < METRICS_N_STATES)
            sums[i]->n[job->counted_as]--;
        if (job->counted_as == METRICS_QUEUED)
            sums[i]->queued_since_sum_ns -= job->queued_since_ns;
        if (to < METRICS_N_STATES)
            sums[i]->n[to]++;
    }
    job->counted_as = to;
}

static void enter_queue(struct metrics *metrics, struct job *job, uint64_t now_ns)
{
    move(metrics, job, METRICS_QUEUED);
    job->queued_since_ns = now_ns;
    metrics->jobs.queued_since_sum_ns += now_ns;
    if (job->metrics_user)
        job->metrics_user->jobs.queued_since_sum_ns += now_ns;
}

/* To where it goes from the queue, if it was there. */
static void leave_queue(struct metrics *metrics, struct job *job, enum metrics_state to,
                        uint64_t now_ns)
{
    bool has_waited = job->counted_as == METRICS_QUEUED && now_ns > job->queued_since_ns;
    uint64_t ns = has_waited ? now_ns - job->queued_since_ns : 0;
    enum traffic_wait wait = job_queue_wait(job);
    metrics->queue_ns += ns;
    metrics->traffic.wait_ns[wait] += ns;
    job->queue_wait_ns[wait] += ns;
    if (job->metrics_user) {
        job->metrics_user->waited_ns += ns;
        job->metrics_user->wait_ns[wait] += ns;
    }
    job->item.lacked_room = false;
    move(metrics, job, to);
}

void metrics_submitted(struct metrics *metrics, struct job *job)
{
    assert(state_of(job) == METRICS_QUEUED);
    metrics->n_submitted++;
    job->metrics_user = user_of(metrics, job_uid(job));
    job->counted_as = METRICS_N_STATES;
    enter_queue(metrics, job, job->submitted_ns);
}

void metrics_started(struct metrics *metrics, struct job *job)
{
    leave_queue(metrics, job, METRICS_RUNNING, job->started_ns);
    job->traffic = (struct traffic){.around_cache_bytes = 0};
}

void metrics_requeued(struct metrics *metrics, struct job *job, uint64_t now_ns)
{
    metrics->n_requeued++;
    enter_queue(metrics, job, now_ns);
}

void metrics_settling(struct metrics *metrics, struct job *job)
{
    move(metrics, job, METRICS_SETTLING);
}

void metrics_ended(struct metrics *metrics, struct job *job, uint64_t now_ns)
{
    assert(job_has_ended(job));
    enum gad_status failure = job->failed_as;
    metrics->n_ended[job->state == JOB_DONE ? GAD_OK : failure]++;
    leave_queue(metrics, job, METRICS_N_STATES, now_ns);
    job->metrics_user = NULL;
}

/* Traffic ------------------------------------------------------------------------------------- */

/* What `now` has more than `before`. */
static struct traffic difference(const struct traffic *now, const struct traffic *before)
{
    struct traffic more = *now;
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++) {
        more.read_bytes[i] -= before->read_bytes[i];
        more.write_bytes[i] -= before->write_bytes[i];
    }
    more.around_cache_bytes -= before->around_cache_bytes;
    for (unsigned i = 0; i < TRAFFIC_N_STAGES; i++)
        more.stage_ns[i] -= before->stage_ns[i];
    for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
        more.wait_ns[i] -= before->wait_ns[i];
    return more;
}

void metrics_moved(struct metrics *metrics, struct job *job, const msgpack_object *map)
{
    struct metrics_user *user = job->metrics_user;
    struct traffic before = job->traffic;
    traffic_update(&job->traffic, map);
    struct traffic more = difference(&job->traffic, &before);
    traffic_add(&metrics->traffic, &more);
    if (user) {
        user->read_bytes += traffic_sum(more.read_bytes);
        user->write_bytes += traffic_sum(more.write_bytes);
        user->work_ns += traffic_work_ns(&job->traffic) - traffic_work_ns(&before);
        for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
            user->wait_ns[i] += more.wait_ns[i];
    }
}
