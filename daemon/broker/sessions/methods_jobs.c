/* What is done to jobs from outside: ending, pausing, letting go on.
 *
 * A request names one job, or all that a user has, or everybody's. A user's own are its own to do
 * this to, whichever connection submitted them; those of others are the admins'. Of several the
 * jobs are taken down first, since ending one changes the lists: none of the others goes with it.
 *
 * Called through the table in methods.c.
 */
#define LOG_TOPIC "job"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/jobs/pause.h"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/sessions/session.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <stdlib.h>

struct chosen {
    struct job **jobs;
    unsigned n;
};

static bool add_job(void *userdata, const struct job *job)
{
    struct chosen *chosen = userdata;
    chosen->jobs[chosen->n++] = (struct job *)job;
    return true;
}

int methods_find_whose(const struct request *q, uid_t *ret_uid, struct gad_error *error)
{
    const struct session *session = q->session;
    uint64_t uid = JOBS_OF_EVERYBODY;
    bool is_everybody = false;
    int r = map_bool(q->params, "everybody", &is_everybody, error);
    if (r == 0)
        r = map_u64(q->params, "user", &uid, error);
    if (r)
        return r;
    bool has_user = map_find(q->params, "user") != NULL;
    if (has_user == is_everybody || (has_user && uid >= JOBS_OF_EVERYBODY)) {
        error_set(error, GAD_BAD_REQUEST, "job", "the request does not say which jobs");
        error_expected(error, "one of job, user and everybody");
        return GAD_BAD_REQUEST;
    }
    *ret_uid = (uid_t)uid;
    return has_user && uid == session->uid
               ? 0
               : methods_check_admin(session, "what is seen of jobs of others, and done to them,",
                                     error);
}

/* As they wait in the queue, which is quick then (queue.c). */
static int compare_jobs(const void *a, const void *b)
{
    const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;
    if (x->item.priority != y->item.priority)
        return x->item.priority > y->item.priority ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int choose(const struct request *q, struct chosen *ret, struct gad_error *error)
{
    const struct jobs *jobs = q->session->broker->jobs;
    struct job *job = NULL;
    uid_t uid = 0;
    bool is_one = map_find(q->params, "job") != NULL;
    int r = is_one ? methods_find_any_job(q, &job, error) : methods_find_whose(q, &uid, error);
    if (r)
        return r;
    ret->jobs = calloc(jobs_n_live(jobs) + 1, sizeof(struct job *));
    if (!ret->jobs)
        return -ENOMEM;
    if (is_one)
        add_job(ret, job);
    else
        jobs_for_each_live(jobs, uid, add_job, ret);
    qsort(ret->jobs, ret->n, sizeof(struct job *), compare_jobs);
    return 0;
}

static void do_cancel(struct broker *broker, struct job *job)
{
    finish_cancel(broker, job);
}

static void do_pause(struct broker *broker, struct job *job)
{
    (void)broker;
    pause_set(job, true);
}

static void do_resume(struct broker *broker, struct job *job)
{
    (void)broker;
    pause_set(job, false);
}

static int do_to_all(const struct request *q, const char *what,
                     void (*func)(struct broker *broker, struct job *job), struct gad_error *error)
{
    struct session *session = q->session;
    struct message_writer *w = &session->broker->writer;
    struct chosen chosen = {NULL, 0};
    int r = choose(q, &chosen, error);
    for (unsigned i = 0; i < chosen.n; i++) {
        struct job *job = chosen.jobs[i];
        if (job_uid(job) != session->uid)
            log_info(LOG_JOB(job->id, job_uid(job)), "is %s by user %u", what,
                     (unsigned)session->uid);
        func(session->broker, job);
    }
    free(chosen.jobs);
    if (r)
        return r;
    message_begin_result(w, q->id);
    msgpack_pack_map(&w->packer, 1);
    pack_key_u64(&w->packer, "jobs", chosen.n);
    session_send(session);
    return 0;
}

int handle_job_cancel(const struct request *q, struct gad_error *error)
{
    return do_to_all(q, "cancelled", do_cancel, error);
}

int handle_job_pause(const struct request *q, struct gad_error *error)
{
    return do_to_all(q, "paused", do_pause, error);
}

int handle_job_resume(const struct request *q, struct gad_error *error)
{
    return do_to_all(q, "let go on", do_resume, error);
}
