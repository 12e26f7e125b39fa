/* Jobs, from gad_submit() to gad_job_free().
 *
 *     SENT --job.submit's answer--> WAITING --job.wait's answer--> SETTLING --job.settle's--> DONE
 *      |  \--job.run's answer---------------------------\            (only with new files)     ^
 *      |                                                 \------------------------------------ /
 *      +-- use-provider: sent again by itself, through the providers
 *
 *     COPYING ------> DONE: what this process does alone (copy.c)
 *
 *     LOST: the connection went in SENT or WAITING, or the daemon leaves and has not begun with the
 *     job; whoever waits for it connects anew and sends it again under its key (recover.c)
 *
 * Everything happens in the functions of calls, run by client_wait(); gad_job_wait() only waits.
 * Files are put in their place before DONE, and the daemon is told before, so that others who wait
 * for the job by its id see it done when its files are there.
 *
 * Invariants: feeds are in the pump exactly while the request that names their rings may be served;
 * a job is in client->jobs until DONE; `error` is filled when `status` is not GAD_OK.
 */
#include "client/lib/jobs/job.h"
#include "client/lib/arguments/indexed.h"
#include "client/lib/jobs/job_options.h"
#include "client/lib/jobs/job_streams.h"
#include "client/lib/memory/pump.h"
#include "client/lib/memory/stream.h"
#include "client/lib/jobs/targets.h"
#include "client/lib/arguments/unpack.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static call_func on_submitted, on_outcome, on_settled;

/* Feeds ---------------------------------------------------------------------------------------- */

/* NULL: a function that has not returned has it in hand. */
static struct feed *take_feed(struct gad_job *job)
{
    struct feed *feed = job->feeds;
    job->feeds = feed->next;
    if (feed->stream)
        stream_detach(feed->stream, feed);
    return pump_remove(job->client->pump, feed);
}

static void drop_feeds(struct gad_job *job)
{
    while (job->feeds)
        feed_free(take_feed(job));
}

/* The daemon has let go of the rings. */
static void end_feeds(struct gad_job *job)
{
    while (job->feeds)
        feed_free_done(take_feed(job));
}

static int start_feeds(struct gad_job *job, struct build *build, struct gad_error *error)
{
    int r = 0;
    if (build->feeds && !job->client->pump)
        r = pump_new(&job->client->pump, error);
    while (build->feeds && r == 0) {
        struct feed *feed = build->feeds;
        r = feed->stream ? stream_attach(feed->stream, job->client->pump, feed, error)
                         : pump_add(job->client->pump, feed, error);
        if (r)
            break;
        build->feeds = feed->next;
        feed->next = job->feeds;
        job->feeds = feed;
    }
    return r;
}

/* The end -------------------------------------------------------------------------------------- */

static void unlink_job(struct gad_job *job)
{
    if (job->previous)
        job->previous->next = job->next;
    else if (job->client->jobs == job)
        job->client->jobs = job->next;
    if (job->next)
        job->next->previous = job->previous;
    job->previous = job->next = NULL;
}

static bool explain(struct gad_array *array, struct gad_error *error)
{
    if (!array || !array->provider || !array->provider->explain)
        return false;
    char before[sizeof(error->message)];
    memcpy(before, error->message, sizeof(before));
    array->provider->explain(array->provider_state, error);
    return strcmp(before, error->message) != 0;
}

/* The daemon knows of a block that failed an errno alone; whoever served it knows more. */
static bool explain_failure(struct gad_job *job)
{
    struct gad_error *error = &job->error;
    if (error->status != GAD_PROVIDER_FAILED)
        return false;
    for (unsigned i = 0; i < job->options.n_args; i++)
        if (strcmp(job->options.args[i].name, error->argument) == 0 &&
            explain(job->options.args[i].array, error))
            return true;
    for (unsigned i = 0; i < job->options.n_outputs; i++) {
        const char *name = job->options.outputs[i].name;
        char own[24];
        snprintf(own, sizeof(own), "outputs[%u]", i);
        if (strcmp(name ? name : own, error->argument) == 0 && explain(job->targets[i].to, error))
            return true;
    }
    return false;
}

/* The daemon knows a source by its argument's name alone, which in a movement is not the program's.
 * What cannot be read is said by the name under which it was opened. */
static void name_source(struct gad_job *job)
{
    struct gad_error *error = &job->error;
    char message[sizeof(error->message)];
    if (error->status != GAD_PROVIDER_FAILED && error->status != GAD_SHORT_READ &&
        error->status != GAD_IO_ERROR)
        return;
    for (unsigned i = 0; i < job->options.n_outputs; i++) {
        const char *name = job->options.outputs[i].name;
        if (name && strcmp(name, error->argument) == 0)
            return; /* it may be the output of this name */
    }
    for (unsigned i = 0; i < job->options.n_args; i++) {
        const struct gad_argument *arg = &job->options.args[i];
        if (!arg->array || !arg->array->spec || strcmp(arg->name, error->argument) != 0 ||
            strstr(error->message, arg->array->spec))
            continue;
        memcpy(message, error->message, sizeof(message));
        snprintf(error->message, sizeof(error->message), "%.120s: %.200s", arg->array->spec,
                 message);
        return;
    }
}

void job_end(struct gad_job *job, int status, const struct gad_error *error)
{
    if (job->state == JOB_DONE)
        return;
    bool is_lost = job->state == JOB_LOST || status == GAD_OUTCOME_UNKNOWN ||
                   status == GAD_DISCONNECTED || status == GAD_PROTOCOL;
    drop_feeds(job);
    unlink_job(job);
    job->state = JOB_DONE;
    job->status = (enum gad_status)status;
    if (status) {
        if (error != &job->error)
            job->error = *error;
        if (explain_failure(job))
            job->status = job->error.status;
        else
            name_source(job);
        indexed_restore(&job->options, &job->error);
        result_deinit(&job->result);
    }
    copy_deinit(&job->copy);
    job_end_streams(job);
    journal_close(&job->journal, status == GAD_OK, is_lost);
    targets_deinit(job);
}

static void end_with(struct gad_job *job, int r)
{
    if (r < 0)
        r = (int)client_status(r, &job->error);
    job_end(job, r, &job->error);
}

/* Sending -------------------------------------------------------------------------------------- */

static int send_request(struct gad_job *job, struct build *build, struct gad_error *error)
{
    struct gad_client *client = job->client;
    uint32_t id;
    int fds[FRAME_MAX_FDS];
    unsigned n_fds = build->n_fds;
    int r = client_begin(client, job->is_run ? "job.run" : "job.submit",
                         job->is_run ? on_outcome : on_submitted, job, &id, error);
    if (r)
        return r;
    request_encode(&client->writer.packer, &build->request);
    memcpy(fds, build->fds, sizeof(fds));
    build->n_fds = 0;
    return client_send(client, id, fds, n_fds, error);
}

/* Nothing that it reads is written over, or it goes on from what its journal says; and nothing has
 * come or gone for good. */
bool job_is_repeatable(const struct gad_job *job)
{
    return !job_has_streams(&job->options) &&
           (job->journal.path || targets_are_repeatable(&job->options, job->to));
}

int job_begin(struct gad_job *job, struct gad_error *error)
{
    struct build build;
    struct build_source source = {
        .options = &job->options,
        .to = job->to,
        .key = job->key,
        .journal = &job->journal,
        .settle = job->needs_settling,
        .is_repeatable = job_is_repeatable(job),
        .elapsed_ms = (uint64_t)(clock_now_ms() - job->submitted_at),
        .purpose = BUILD_RUN,
    };
    source.waited_ms = job->is_refused ? source.elapsed_ms : 0;
    job->state = JOB_SENT;
    job->id = 0;
    int r = targets_check_unseen(job, error);
    if (r)
        return r;
    r = build_init(&build, job->client, &source, error);
    job->open_length = build.request.open_length;
    if (r == 0)
        r = start_feeds(job, &build, error);
    if (r == 0)
        r = send_request(job, &build, error);
    build_deinit(&build);
    job->was_sent |= r == 0;
    if (r)
        drop_feeds(job);
    return r;
}

static int send_about(struct gad_job *job, const char *method, call_func *func, void *userdata,
                      const struct gad_error *outcome)
{
    struct gad_client *client = job->client;
    uint32_t id;
    int r = client_begin(client, method, func, userdata, &id, &job->error);
    if (r)
        return r;
    msgpack_pack_map(&client->writer.packer, outcome ? 2 : 1);
    pack_key_u64(&client->writer.packer, "job", job->id);
    if (outcome) {
        pack_str(&client->writer.packer, "error");
        pack_error_map(&client->writer.packer, outcome);
    }
    return client_send(client, id, NULL, 0, &job->error);
}

/* Answers -------------------------------------------------------------------------------------- */

/* A job that was refused or failed may be worth another try of ours. */
static bool can_try_again(struct gad_job *job, int status, const struct gad_error *error)
{
    if (job->wants_cancel)
        return false;
    if (status == GAD_USE_PROVIDER)
        return job_turn_to_providers(&job->options, job->to, error);
    return false;
}

static void failed(struct gad_job *job, int status, const struct gad_error *error)
{
    if (status == GAD_DISCONNECTED || status == GAD_SHUTTING_DOWN) {
        drop_feeds(job);
        job->state = JOB_LOST;
        if (status == GAD_SHUTTING_DOWN)
            job_note_refusal(job);
        return;
    }
    struct gad_error own = *error; /* in the program's names */
    unpack_restore(&job->options, &own);
    build_restore_length(job->open_length, &own);
    if (!can_try_again(job, status, &own)) {
        job_end(job, status, &own);
        return;
    }
    drop_feeds(job);
    int r = job_begin(job, &job->error);
    if (r == GAD_DISCONNECTED)
        job->state = JOB_LOST;
    else if (r)
        end_with(job, r);
}

static void on_submitted(void *userdata, int status, struct reply *reply_take,
                         const struct gad_error *error)
{
    struct gad_job *job = userdata;
    if (status) {
        failed(job, status, error);
        return;
    }
    int r = map_require_u64(&reply_take->message.result, "job", &job->id, &job->error);
    reply_free(reply_take);
    if (r) {
        end_with(job, r);
        return;
    }
    job->state = JOB_WAITING;
    if (job->wants_cancel)
        r = send_about(job, "job.cancel", call_ignore, NULL, NULL);
    if (r == 0)
        r = send_about(job, "job.wait", on_outcome, job, NULL);
    if (r == GAD_DISCONNECTED)
        job->state = JOB_LOST;
    else if (r)
        end_with(job, r);
}

/* The files are in their place, or not; the daemon is told either way. */
static void settle(struct gad_job *job, int status)
{
    if (status < 0)
        status = (int)client_status(status, &job->error);
    job->status = (enum gad_status)status;
    job->state = JOB_SETTLING;
    struct gad_error outcome = job->error;
    int r = send_about(job, "job.settle", on_settled, job, status ? &outcome : NULL);
    job->error = outcome;
    if (r)
        job_end(job, status, &job->error);
}

static void on_outcome(void *userdata, int status, struct reply *reply_take,
                       const struct gad_error *error)
{
    struct gad_job *job = userdata;
    if (status) {
        failed(job, status, error);
        return;
    }
    int r = result_init(&job->result, reply_take, job->options.n_outputs, &job->error);
    reply_free(reply_take);
    if (r == 0) {
        job->id = job->result.stats.job;
        end_feeds(job); /* before the outputs are read: nothing writes to them any more */
        r = targets_finish(job, &job->error);
    }
    if (job->needs_settling)
        settle(job, r);
    else
        end_with(job, r);
}

static void on_settled(void *userdata, int status, struct reply *reply_take,
                       const struct gad_error *error)
{
    struct gad_job *job = userdata;
    (void)status; /* what the daemon makes of it does not move the files */
    (void)error;
    reply_free(reply_take);
    job_end(job, (int)job->status, &job->error);
}

void job_copied(struct gad_job *job, int r)
{
    end_with(job, r ? r : targets_finish(job, &job->error));
}

/* Beginning ------------------------------------------------------------------------------------ */

static int make_key(struct gad_job *job)
{
    uint8_t random[16];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -errno;
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(job->key + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static int submit_given(struct gad_client *client, const struct gad_job_options *options,
                        bool is_waited, struct gad_job **ret_job, struct gad_error *error)
{
    struct gad_job *job = calloc(1, sizeof(*job));
    if (!job)
        return (int)client_status(-ENOMEM, error);
    job->client = client;
    job->submitted_at = clock_now_ms();
    job->next = client->jobs;
    if (client->jobs)
        client->jobs->previous = job;
    client->jobs = job;
    int r = make_key(job);
    if (r == 0)
        r = job_options_copy(options, &job->options);
    if (r == 0)
        r = client_ensure(client, DEADLINE_NEVER, 0, error);
    if (r == 0)
        r = targets_init(job, error);
    if (r == 0 && options->has_journal)
        r = journal_open(&job->journal, job->options.journal_path,
                         job->targets[0].is_created ? NULL : job->targets[0].to, error);
    if (r == 0 && options->deadline_ms == 0 && copy_begin(job)) {
        job->state = JOB_COPYING;
    } else if (r == 0) {
        job->is_run = !job->needs_settling && !options->progress &&
                      (is_waited || job_options_are_small(options));
        r = job_begin(job, error);
        /* Nothing was sent: the daemon that follows gets it as the first. */
        if (r == GAD_DISCONNECTED && (r = client_ensure(client, DEADLINE_NEVER, 0, error)) == 0)
            r = job_begin(job, error);
    }
    if (r) {
        r = (int)client_status(r, error);
        struct gad_error none = {0};
        job_end(job, r, &none);
        gad_job_free(job);
        return r;
    }
    *ret_job = job;
    return 0;
}

static int submit(struct gad_client *client, const struct gad_job_options *options, bool is_waited,
                  struct gad_job **ret_job, struct gad_error *error)
{
    struct indexed indexed;
    int r = indexed_init(&indexed, client, options, error);
    if (r == 0)
        r = submit_given(client, &indexed.options, is_waited, ret_job, error);
    if (r)
        indexed_restore(&indexed.options, error);
    indexed_deinit(&indexed);
    return (int)client_status(r, error);
}

static int check_call(struct gad_client *client, const struct gad_job_options *options,
                      struct gad_error *error)
{
    if (!client)
        return error_set(error, GAD_BAD_ARGUMENT, "client", "client is NULL");
    return build_check_options(options, error);
}

enum gad_status gad_submit(struct gad_client *client, const struct gad_job_options *options,
                           struct gad_job **ret_job, struct gad_error *error)
{
    int r = check_call(client, options, error);
    if (r)
        return (enum gad_status)r;
    if (!ret_job)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_job", "ret_job is NULL");
    return (enum gad_status)submit(client, options, false, ret_job, error);
}

enum gad_status gad_run(struct gad_client *client, const struct gad_job_options *options,
                        struct gad_job_stats *ret_stats, struct gad_error *error)
{
    struct gad_job *job;
    int r = check_call(client, options, error);
    if (r == 0)
        r = submit(client, options, true, &job, error);
    if (r)
        return (enum gad_status)r;
    enum gad_status status = gad_job_wait(job, -1, error);
    if (status == GAD_OK && ret_stats)
        *ret_stats = *gad_job_stats(job);
    gad_job_free(job);
    return status;
}

/* Waiting -------------------------------------------------------------------------------------- */

enum gad_status gad_job_wait(struct gad_job *job, int timeout_ms, struct gad_error *error)
{
    if (!job)
        return error_set(error, GAD_BAD_ARGUMENT, "job", "job is NULL");
    int64_t deadline = clock_deadline_ms(timeout_ms);
    while (job->state != JOB_DONE) {
        if (job->state == JOB_LOST) {
            if (job_recover(job, deadline))
                return error_set(error, GAD_TIMEOUT, NULL, "the daemon is not back yet");
            continue;
        }
        int r = client_wait(job->client, deadline, error);
        if (job->state == JOB_COPYING && clock_left_ms(deadline) == 0)
            return error_set(error, GAD_TIMEOUT, NULL, "the copy goes on");
        if (job->state == JOB_COPYING || job->state == JOB_DONE)
            continue;
        if (r == GAD_TIMEOUT)
            return GAD_TIMEOUT;
        if (r == GAD_DISCONNECTED)
            job->state = JOB_LOST;
    }
    if (job->status && error)
        *error = job->error;
    return job->status;
}

enum gad_status gad_job_cancel(struct gad_job *job, struct gad_error *error)
{
    if (!job)
        return error_set(error, GAD_BAD_ARGUMENT, "job", "job is NULL");
    bool is_first = !job->wants_cancel;
    if (job->state != JOB_DONE)
        job->wants_cancel = true;
    if (job->state == JOB_LOST && job->is_refused) /* nobody has it */
        job_end(job, error_set(&job->error, GAD_CANCELLED, NULL, "the job was cancelled"),
                &job->error);
    if (job->state != JOB_WAITING || !is_first)
        return GAD_OK;
    int r = send_about(job, "job.cancel", call_ignore, NULL, NULL);
    if (r && r != GAD_DISCONNECTED && error)
        *error = job->error;
    return r == GAD_DISCONNECTED ? GAD_OK : (enum gad_status)r;
}

void gad_job_free(struct gad_job *job)
{
    if (!job)
        return;
    (void)!gad_job_cancel(job, NULL);
    (void)!gad_job_wait(job, -1, NULL);
    result_deinit(&job->result);
    targets_deinit(job);
    job_options_deinit(&job->options);
    free(job);
}
