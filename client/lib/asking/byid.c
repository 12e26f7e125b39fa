/* The daemon's state and the user's other jobs: plain questions, each one request.
 *
 * A job is named by its number here and belongs to whoever submitted it, in this process or in
 * another one of the same user. Nobody stands still with a daemon that does: an answer is waited
 * for no longer than for a connection, and a late one is dropped. Waiting for a job uses the
 * daemon's own time-out, so the request is over when this function returns.
 */
#include "client/lib/connection/client.h"
#include "client/lib/asking/ask.h"
#include "client/lib/asking/json.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <string.h>

#define ANSWER_GRACE_MS 5000 /* for the daemon to say that its time-out is over */

static int ask_once(struct gad_client *client, const struct question *question, int64_t deadline,
                    struct reply **ret_reply, struct gad_error *error)
{
    struct client_call call;
    uint32_t id;
    int r = client_ensure(client, deadline, 0, error);
    if (r == 0)
        r = client_begin_call(client, question->method, &call, &id, error);
    if (r)
        return r;
    msgpack_packer *p = &client->writer.packer;
    msgpack_pack_map(p, question->n_numbers + (question->flag != NULL) + (question->text != NULL));
    for (unsigned i = 0; i < question->n_numbers; i++)
        pack_key_u64(p, question->numbers[i].key, question->numbers[i].value);
    if (question->flag)
        pack_key_bool(p, question->flag, true);
    if (question->text)
        pack_key_str(p, "message", question->text);
    return client_finish_call(client, &call, id, NULL, 0, deadline, ret_reply, error);
}

/* A question that only looks is asked once more where its daemon goes away over it: the answer of
 * the one that follows is as good. */
static int ask_until(struct gad_client *client, const struct question *question, int64_t deadline,
                     struct reply **ret_reply, struct gad_error *error)
{
    int r = ask_once(client, question, deadline, ret_reply, error);
    return r == GAD_DISCONNECTED && !question->is_of_a_job
               ? ask_once(client, question, deadline, ret_reply, error)
               : r;
}

int client_ask(struct gad_client *client, const struct question *question, struct reply **ret_reply,
               struct gad_error *error)
{
    if (!client)
        return error_set(error, GAD_BAD_ARGUMENT, "client", "client is NULL");
    return ask_until(client, question, clock_deadline_ms(client->timeout_ms), ret_reply, error);
}

static int ask(struct gad_client *client, const char *method, struct reply **ret_reply,
               struct gad_error *error)
{
    return client_ask(client, &(struct question){.method = method}, ret_reply, error);
}

struct question client_question_of_users(const char *method, uint32_t uid)
{
    const bool is_everybody = uid == GAD_EVERYBODY;
    return (struct question){.method = method,
                             .is_of_a_job = true,
                             .n_numbers = is_everybody ? 0 : 1,
                             .numbers = {{"user", uid}},
                             .flag = is_everybody ? "everybody" : NULL};
}

int client_ask_of_job(struct gad_client *client, const char *method, uint64_t job,
                      struct reply **ret_reply, struct gad_error *error)
{
    const struct question question = {
        .method = method, .is_of_a_job = true, .n_numbers = 1, .numbers = {{"job", job}}};
    if (job == 0)
        return error_set(error, GAD_UNKNOWN_JOB, "job", "there is no job 0");
    return client_ask(client, &question, ret_reply, error);
}

enum gad_status gad_ping(struct gad_client *client, struct gad_error *error)
{
    return client_status(ask(client, "ping", NULL, error), error);
}

static enum gad_status ask_json(struct gad_client *client, const char *method, char **ret_json,
                                struct gad_error *error)
{
    struct reply *reply;
    if (!ret_json)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_json", "ret_json is NULL");
    int r = ask(client, method, &reply, error);
    if (r)
        return client_status(r, error);
    r = json_from_msgpack(&reply->message.result, ret_json);
    reply_free(reply);
    if (r == -EPROTO)
        r = error_set(error, GAD_PROTOCOL, NULL, "the daemon's map has a key that is no text");
    return client_status(r, error);
}

enum gad_status gad_info_json(struct gad_client *client, char **ret_json, struct gad_error *error)
{
    return ask_json(client, "server.info", ret_json, error);
}

enum gad_status gad_stats_json(struct gad_client *client, char **ret_json, struct gad_error *error)
{
    return ask_json(client, "server.stats", ret_json, error);
}

enum gad_status gad_users_json(struct gad_client *client, char **ret_json, struct gad_error *error)
{
    return ask_json(client, "server.users", ret_json, error);
}

enum gad_status gad_ops_json(struct gad_client *client, char **ret_json, struct gad_error *error)
{
    return ask_json(client, "server.ops", ret_json, error);
}

/* A label may be longer, or of bytes that are no text for us: as much as fits. */
static void copy_label(const msgpack_object *map, char *ret, size_t n_bytes)
{
    const char *text = NULL;
    size_t n = 0;
    if (map_str(map, "label", &text, &n, NULL) || !text)
        return;
    n = n < n_bytes ? n : n_bytes - 1;
    memcpy(ret, text, n);
    ret[n] = '\0';
}

static int read_status(const msgpack_object *map, struct gad_job_status *ret,
                       struct gad_error *error)
{
    struct gad_job_status s = {0};
    const msgpack_object *failure = map_find(map, "error");
    uint64_t uid = 0;
    copy_label(map, s.label, sizeof(s.label));
    if (map_require_u64(map, "job", &s.job, NULL) || map_u64(map, "uid", &uid, NULL) ||
        map_copy_str(map, "state", s.state, sizeof(s.state), NULL) ||
        map_u64(map, "tiles_done", &s.tiles_done, NULL) ||
        map_u64(map, "tiles", &s.n_tiles, NULL) ||
        map_u64(map, "read_bytes", &s.read_bytes, NULL) ||
        map_u64(map, "write_bytes", &s.write_bytes, NULL) ||
        map_f64(map, "queued_s", &s.queued_s, NULL) ||
        map_f64(map, "running_s", &s.running_s, NULL) ||
        map_bool(map, "paused", &s.is_paused, NULL))
        return error_set(error, GAD_PROTOCOL, NULL, "the daemon's answer is no status of a job");
    if (failure && failure->type == MSGPACK_OBJECT_MAP)
        map_error(failure, &s.error);
    s.uid = (uint32_t)uid;
    *ret = s;
    return 0;
}

enum gad_status gad_job_status_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_job_status *ret_status, struct gad_error *error)
{
    struct reply *reply;
    if (!ret_status)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_status", "ret_status is NULL");
    int r = client_ask_of_job(client, "job.status", job, &reply, error);
    if (r)
        return client_status(r, error);
    r = read_status(&reply->message.result, ret_status, error);
    reply_free(reply);
    return client_status(r, error);
}

enum gad_status gad_job_wait_by_id(struct gad_client *client, uint64_t job, int timeout_ms,
                                   struct gad_error *error)
{
    int64_t deadline =
        timeout_ms < 0 ? DEADLINE_NEVER : clock_deadline_ms((int64_t)timeout_ms + ANSWER_GRACE_MS);
    const struct question question = {
        .method = "job.wait",
        .is_of_a_job = true,
        .n_numbers = timeout_ms < 0 ? 1 : 2,
        .numbers = {{"job", job}, {"timeout_ms", (uint64_t)timeout_ms}}};
    if (job == 0)
        return error_set(error, GAD_UNKNOWN_JOB, "job", "there is no job 0");
    if (!client)
        return error_set(error, GAD_BAD_ARGUMENT, "client", "client is NULL");
    return client_status(ask_until(client, &question, deadline, NULL, error), error);
}

static enum gad_status ask_about(struct gad_client *client, const char *method, uint64_t job,
                                 struct gad_error *error)
{
    return client_status(client_ask_of_job(client, method, job, NULL, error), error);
}

enum gad_status gad_job_cancel_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_error *error)
{
    return ask_about(client, "job.cancel", job, error);
}

enum gad_status gad_job_pause_by_id(struct gad_client *client, uint64_t job,
                                    struct gad_error *error)
{
    return ask_about(client, "job.pause", job, error);
}

enum gad_status gad_job_resume_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_error *error)
{
    return ask_about(client, "job.resume", job, error);
}

static int compare_jobs(const void *a, const void *b)
{
    const struct gad_job_status *x = a, *y = b;
    return (x->job > y->job) - (x->job < y->job);
}

static int read_list(const msgpack_object *list, struct gad_job_status **ret_jobs,
                     size_t *ret_n_jobs, struct gad_error *error)
{
    if (list->type != MSGPACK_OBJECT_ARRAY)
        return error_set(error, GAD_PROTOCOL, NULL, "the daemon's answer is no list of jobs");
    size_t n = list->via.array.size;
    _cleanup_free_ struct gad_job_status *jobs = calloc(n + 1, sizeof(*jobs));
    if (!jobs)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = read_status(&list->via.array.ptr[i], &jobs[i], error);
    if (r)
        return r;
    qsort(jobs, n, sizeof(*jobs), compare_jobs);
    *ret_jobs = steal_ptr(jobs);
    *ret_n_jobs = n;
    return 0;
}

static enum gad_status list_of(struct gad_client *client, const struct question *question,
                               struct gad_job_status **ret_jobs, size_t *ret_n_jobs,
                               struct gad_error *error)
{
    struct reply *reply;
    if (!ret_jobs || !ret_n_jobs)
        return error_set(error, GAD_BAD_ARGUMENT, ret_jobs ? "ret_n_jobs" : "ret_jobs", "is NULL");
    int r = client_ask(client, question, &reply, error);
    if (r)
        return client_status(r, error);
    r = read_list(&reply->message.result, ret_jobs, ret_n_jobs, error);
    reply_free(reply);
    return client_status(r, error);
}

enum gad_status gad_job_list(struct gad_client *client, struct gad_job_status **ret_jobs,
                             size_t *ret_n_jobs, struct gad_error *error)
{
    return list_of(client, &(struct question){.method = "job.list"}, ret_jobs, ret_n_jobs, error);
}

enum gad_status gad_jobs_list(struct gad_client *client, uint32_t uid,
                              struct gad_job_status **ret_jobs, size_t *ret_n_jobs,
                              struct gad_error *error)
{
    const struct question question = client_question_of_users("job.list", uid);
    return list_of(client, &question, ret_jobs, ret_n_jobs, error);
}
