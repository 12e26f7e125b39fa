/* What who looks after the daemon asks of it: to change what it does with its users and their jobs.
 *
 * Plain questions, as those of byid.c; who may ask is the daemon's to say. A daemon that goes away
 * over one is not asked again: the next has other users and jobs.
 */
#include "client/lib/asking/ask.h"
#include "proto/util.h"
#include "proto/wire/map.h"

enum gad_status gad_jobs_change(struct gad_client *client, enum gad_jobs_action action,
                                uint32_t uid, uint64_t *ret_n_jobs, struct gad_error *error)
{
    static const char *const methods[] = {[GAD_JOBS_CANCEL] = "job.cancel",
                                          [GAD_JOBS_PAUSE] = "job.pause",
                                          [GAD_JOBS_RESUME] = "job.resume"};
    struct reply *reply;
    uint64_t n = 0;
    if ((unsigned)action >= ARRAY_LENGTH(methods))
        return error_set(error, GAD_BAD_ARGUMENT, "action", "%d is no action", (int)action);
    const struct question question = client_question_of_users(methods[action], uid);
    int r = client_ask(client, &question, &reply, error);
    if (r)
        return client_status(r, error);
    r = map_u64(&reply->message.result, "jobs", &n, error);
    reply_free(reply);
    if (r == 0 && ret_n_jobs)
        *ret_n_jobs = n;
    return client_status(r, error);
}

enum gad_status gad_set_weight(struct gad_client *client, uint32_t uid, uint32_t weight,
                               struct gad_error *error)
{
    const struct question question = {.method = "server.weight",
                                      .is_of_a_job = true,
                                      .n_numbers = 2,
                                      .numbers = {{"user", uid}, {"weight", weight}}};
    return client_status(client_ask(client, &question, NULL, error), error);
}

enum gad_status gad_drain(struct gad_client *client, bool undo, const char *message,
                          uint64_t *ret_n_running, uint64_t *ret_n_queued, struct gad_error *error)
{
    const struct question question = {.method = "server.drain",
                                      .is_of_a_job = true,
                                      .flag = undo ? "undo" : NULL,
                                      .text = message};
    struct reply *reply;
    uint64_t n_running = 0, n_queued = 0;
    int r = client_ask(client, &question, &reply, error);
    if (r)
        return client_status(r, error);
    r = map_u64(&reply->message.result, "running", &n_running, error);
    if (r == 0)
        r = map_u64(&reply->message.result, "queued", &n_queued, error);
    reply_free(reply);
    if (r == 0 && ret_n_running)
        *ret_n_running = n_running;
    if (r == 0 && ret_n_queued)
        *ret_n_queued = n_queued;
    return client_status(r, error);
}
