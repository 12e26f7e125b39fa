/* The registry of jobs.
 *
 *               submit                 dispatch              answer            job.settle
 *     (new) ------------> QUEUED ----------------> RUNNING ----------> SETTLING ----------> DONE
 *                          |  ^                     |  |  |               |
 *                          |  +---- worker lost ----+  |  +--> DONE       +--> FAILED
 *                          +--> CANCELLED, FAILED      +--> CANCELLED, FAILED
 *
 * Ids increase and are never used again while the daemon lives. They begin at the time since the
 * machine started, in units of 10 us. No daemon takes jobs faster than that, so one that takes the
 * place of another begins above its ids. A job is looked up by its id or key inside its user: what
 * belongs to another user does not exist. A job
 * that has ended stays as a record, so that a later job.wait or a repeated key finds its outcome;
 * per user as many records for as long as the limits say. Those of which somebody has got the
 * outcome go first: who submits a job and asks for it later must not lose it to another program of
 * the same user that runs thousands of small ones. Results are bounded apart, in the same order.
 *
 * Invariants: a job is in the id table from jobs_add() to its end; user->live and user->kept hold
 * each job of the user once, in the order of its beginning or its end; data_link is in
 * user->fetched or user->unread exactly while a kept job has a result.
 *
 * Called by submit.c, dispatch.c, finish.c and the methods.
 */
#include "daemon/broker/jobs/job.h"
#include "daemon/broker/jobs/result.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#define N_ID_BUCKETS  4096u
#define N_KEY_BUCKETS 256u

struct job_user {
    struct jobs *jobs;
    struct list link;
    uid_t uid;
    struct list live, kept; /* of user_link */
    unsigned n_live, n_kept;
    struct list told;            /* of told_link, oldest first */
    struct list fetched, unread; /* of data_link, oldest first */
    uint64_t fetched_bytes, unread_bytes;
};

struct jobs {
    struct list users;
    struct list by_id[N_ID_BUCKETS], by_key[N_KEY_BUCKETS];
    uint64_t last_id;
    unsigned n_live, n_kept;
    struct jobs_limits limits;
};

static const bool moves[JOB_N_STATES][JOB_N_STATES] = {
    [JOB_QUEUED] = {[JOB_RUNNING] = true, [JOB_FAILED] = true, [JOB_CANCELLED] = true},
    [JOB_RUNNING] = {[JOB_QUEUED] = true,
                     [JOB_SETTLING] = true,
                     [JOB_DONE] = true,
                     [JOB_FAILED] = true,
                     [JOB_CANCELLED] = true},
    [JOB_SETTLING] = {[JOB_DONE] = true, [JOB_FAILED] = true, [JOB_CANCELLED] = true},
};

static const char *const state_names[JOB_N_STATES] = {
    [JOB_QUEUED] = "queued", [JOB_RUNNING] = "running", [JOB_SETTLING] = "settling",
    [JOB_DONE] = "done",     [JOB_FAILED] = "failed",   [JOB_CANCELLED] = "cancelled",
};

bool job_can_move(enum job_state from, enum job_state to)
{
    return moves[from][to];
}

void job_set_state(struct job *job, enum job_state state)
{
    assert(job_can_move(job->state, state));
    job->state = state;
}

void job_failure(const struct job *job, struct gad_error *ret)
{
    if (job->error)
        *ret = *job->error;
    else
        error_set(ret, job->failed_as, NULL, "the job failed; no memory was left to keep why");
}

bool job_has_ended(const struct job *job)
{
    return job->state >= JOB_DONE;
}

const char *job_state_name(enum job_state state)
{
    return state_names[state];
}

enum traffic_wait job_queue_wait(const struct job *job)
{
    return job->item.lacked_room ? TRAFFIC_ROOM : TRAFFIC_TURN;
}

uint64_t job_wait_ns(const struct job *job, enum traffic_wait wait, uint64_t now_ns)
{
    uint64_t ns = job->queue_wait_ns[wait] + job->traffic.wait_ns[wait];
    bool waits_now = job->state == JOB_QUEUED && wait == job_queue_wait(job);
    return waits_now && now_ns > job->queued_since_ns ? ns + now_ns - job->queued_since_ns : ns;
}

uid_t job_uid(const struct job *job)
{
    return job->user->uid;
}

/* In units of 10 us: no daemon takes jobs faster than that. */
static uint64_t time_since_boot(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 100000 + (uint64_t)now.tv_nsec / 10000;
}

int jobs_new(struct jobs **ret_jobs)
{
    struct jobs *jobs = calloc(1, sizeof(*jobs));
    if (!jobs)
        return -ENOMEM;
    list_init(&jobs->users);
    jobs->last_id = time_since_boot();
    jobs->limits = (struct jobs_limits){
        .max_kept = JOBS_MAX_KEPT, .kept_ns = JOBS_KEPT_NS, .unread_bytes = JOBS_UNREAD_BYTES};
    for (unsigned i = 0; i < N_ID_BUCKETS; i++)
        list_init(&jobs->by_id[i]);
    for (unsigned i = 0; i < N_KEY_BUCKETS; i++)
        list_init(&jobs->by_key[i]);
    *ret_jobs = jobs;
    return 0;
}

static struct job_user *find_user(const struct jobs *jobs, uid_t uid)
{
    list_for_each (it, &jobs->users) {
        struct job_user *user = list_entry(it, struct job_user, link);
        if (user->uid == uid)
            return user;
    }
    return NULL;
}

static struct job_user *find_or_add_user(struct jobs *jobs, uid_t uid)
{
    struct job_user *user = find_user(jobs, uid);
    if (user)
        return user;
    user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    user->jobs = jobs;
    user->uid = uid;
    list_init(&user->live);
    list_init(&user->kept);
    list_init(&user->told);
    list_init(&user->fetched);
    list_init(&user->unread);
    list_push_back(&jobs->users, &user->link);
    return user;
}

static void drop_user_if_unused(struct job_user *user)
{
    if (user->n_live == 0 && user->n_kept == 0) {
        list_remove(&user->link);
        free(user);
    }
}

int jobs_add(struct jobs *jobs, uid_t uid, struct job **ret_job)
{
    struct job_user *user = find_or_add_user(jobs, uid);
    if (!user)
        return -ENOMEM;
    struct job *job = calloc(1, sizeof(*job));
    if (!job) {
        drop_user_if_unused(user);
        return -ENOMEM;
    }
    job->id = ++jobs->last_id;
    job->user = user;
    list_init(&job->waiters);
    list_init(&job->owner_link);
    list_init(&job->key_link);
    list_init(&job->data_link);
    list_init(&job->told_link);
    list_push_back(&jobs->by_id[job->id % N_ID_BUCKETS], &job->id_link);
    list_push_back(&user->live, &job->user_link);
    user->n_live++;
    jobs->n_live++;
    *ret_job = job;
    return 0;
}

static struct list *key_bucket(const struct jobs *jobs, uid_t uid, const char *key)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ uid; /* FNV-1a */
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * UINT64_C(1099511628211);
    return (struct list *)&jobs->by_key[(hash ^ hash >> 32) % N_KEY_BUCKETS];
}

void job_set_key(struct jobs *jobs, struct job *job)
{
    if (job->key[0] != '\0')
        list_push_front(key_bucket(jobs, job->user->uid, job->key), &job->key_link);
}

struct job *jobs_find_any(const struct jobs *jobs, uint64_t id)
{
    list_for_each (it, &jobs->by_id[id % N_ID_BUCKETS]) {
        struct job *job = list_entry(it, struct job, id_link);
        if (job->id == id)
            return job;
    }
    return NULL;
}

struct job *jobs_find(const struct jobs *jobs, uid_t uid, uint64_t id)
{
    struct job *job = jobs_find_any(jobs, id);
    return job && job->user->uid == uid ? job : NULL;
}

/* Whoever asks again after a failure wants it tried again. */
static bool answers_for_key(const struct job *job)
{
    return job->state == JOB_DONE ? job->result != NULL
                                  : !job_has_ended(job) && !job->is_cancelling;
}

struct job *jobs_find_key(const struct jobs *jobs, uid_t uid, const char *key)
{
    list_for_each (it, key_bucket(jobs, uid, key)) {
        struct job *job = list_entry(it, struct job, key_link);
        if (job->user->uid == uid && strcmp(job->key, key) == 0 && answers_for_key(job))
            return job;
    }
    return NULL;
}

static void drop_result(struct job *job)
{
    if (list_is_linked(&job->data_link)) {
        struct job_user *user = job->user;
        *(job->was_fetched ? &user->fetched_bytes : &user->unread_bytes) -=
            job->result->n_body_bytes;
        list_remove(&job->data_link);
    }
    job->result = result_drop(job->result);
}

static void free_job(struct job *job)
{
    assert(list_is_empty(&job->waiters) && !job->body && !job->fds && !job->regions);
    assert(job->item.place == QUEUE_OUT && !job->job_charge.account);
    assert(!job->reply_charge.account);
    drop_result(job);
    list_remove(&job->id_link);
    list_remove(&job->key_link);
    list_remove(&job->owner_link);
    list_remove(&job->told_link);
    list_remove(&job->user_link);
    free(job->room);
    free(job->error);
    free(job);
}

static void drop_record(struct jobs *jobs, struct job *job)
{
    job->user->n_kept--;
    jobs->n_kept--;
    free_job(job);
}

static void file_result(struct job *job)
{
    struct job_user *user = job->user;
    list_push_back(job->was_fetched ? &user->fetched : &user->unread, &job->data_link);
    *(job->was_fetched ? &user->fetched_bytes : &user->unread_bytes) += job->result->n_body_bytes;
}

/* The newest may stay even if it is over the bound by itself. */
static void bound_results(struct job_user *user)
{
    uint64_t most = user->jobs->limits.unread_bytes;
    while (user->fetched_bytes > most / JOBS_FETCHED_SHARE &&
           user->fetched.next != user->fetched.prev)
        drop_result(list_entry(user->fetched.next, struct job, data_link));
    while (user->unread_bytes > most && user->unread.next != user->unread.prev)
        drop_result(list_entry(user->unread.next, struct job, data_link));
}

/* The newest one stays: it is in its caller's hands. */
static void bound_records(struct job_user *user, struct job *newest)
{
    uint64_t most = user->jobs->limits.max_kept;
    struct list *told;
    while (user->n_kept > most && (told = list_first(&user->told)) && told != &newest->told_link)
        drop_record(user->jobs, list_entry(told, struct job, told_link));
    while (user->n_kept > most * JOBS_UNTOLD_FACTOR)
        drop_record(user->jobs, list_entry(user->kept.next, struct job, user_link));
}

void job_keep(struct jobs *jobs, struct job *job, uint64_t now_ns)
{
    struct job_user *user = job->user;
    assert(job_has_ended(job));
    job->ended_ns = now_ns;
    list_remove(&job->user_link);
    user->n_live--;
    jobs->n_live--;
    list_push_back(&user->kept, &job->user_link);
    user->n_kept++;
    jobs->n_kept++;
    job->is_kept = true;
    if (job->was_fetched)
        list_push_back(&user->told, &job->told_link);
    if (job->result)
        file_result(job);
    bound_results(user);
    bound_records(user, job);
}

void job_discard(struct jobs *jobs, struct job *job)
{
    struct job_user *user = job->user;
    assert(!job_has_ended(job));
    user->n_live--;
    jobs->n_live--;
    free_job(job);
    drop_user_if_unused(user);
}

void job_fetched(struct job *job)
{
    if (job->was_fetched)
        return;
    bool is_filed = list_is_linked(&job->data_link);
    if (is_filed) {
        job->user->unread_bytes -= job->result->n_body_bytes;
        list_remove(&job->data_link);
    }
    job->was_fetched = true;
    if (job->is_kept)
        list_push_back(&job->user->told, &job->told_link);
    if (is_filed) {
        file_result(job);
        bound_results(job->user);
    }
}

void jobs_expire(struct jobs *jobs, uint64_t now_ns)
{
    list_for_each_safe (it, next, &jobs->users) {
        struct job_user *user = list_entry(it, struct job_user, link);
        struct list *first;
        while ((first = list_first(&user->kept))) {
            struct job *job = list_entry(first, struct job, user_link);
            if (now_ns - job->ended_ns < jobs->limits.kept_ns)
                break;
            drop_record(jobs, job);
        }
        drop_user_if_unused(user);
    }
}

void jobs_set_limits(struct jobs *jobs, const struct jobs_limits *limits)
{
    jobs->limits = *limits;
}

struct jobs *jobs_free(struct jobs *jobs)
{
    if (!jobs)
        return NULL;
    assert(jobs->n_live == 0);
    list_for_each_safe (it, next, &jobs->users) {
        struct job_user *user = list_entry(it, struct job_user, link);
        while (!list_is_empty(&user->kept))
            drop_record(jobs, list_entry(user->kept.next, struct job, user_link));
        drop_user_if_unused(user);
    }
    free(jobs);
    return NULL;
}

unsigned jobs_n_live(const struct jobs *jobs)
{
    return jobs->n_live;
}

unsigned jobs_n_kept(const struct jobs *jobs)
{
    return jobs->n_kept;
}

void jobs_for_each_live(const struct jobs *jobs, uid_t uid,
                        bool (*func)(void *userdata, const struct job *job), void *userdata)
{
    list_for_each (it, &jobs->users) {
        const struct job_user *user = list_entry(it, struct job_user, link);
        if (uid != JOBS_OF_EVERYBODY && user->uid != uid)
            continue;
        list_for_each (of_user, &user->live)
            if (!func(userdata, list_entry(of_user, struct job, user_link)))
                return;
    }
}

static bool for_each_backwards(const struct list *list,
                               bool (*func)(void *userdata, const struct job *job), void *userdata)
{
    for (const struct list *it = list->prev; it != list; it = it->prev)
        if (!func(userdata, list_entry(it, struct job, user_link)))
            return false;
    return true;
}

void jobs_for_each(const struct jobs *jobs, uid_t uid,
                   bool (*func)(void *userdata, const struct job *job), void *userdata)
{
    for (int has_ended = 0; has_ended < 2; has_ended++)
        list_for_each (it, &jobs->users) {
            const struct job_user *user = list_entry(it, struct job_user, link);
            bool is_meant = uid == JOBS_OF_EVERYBODY || user->uid == uid;
            if (is_meant &&
                !for_each_backwards(has_ended ? &user->kept : &user->live, func, userdata))
                return;
        }
}
