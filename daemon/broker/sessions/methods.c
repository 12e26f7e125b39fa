/* The table of methods, and those that are not about jobs.
 *
 * A session begins with hello: the version is agreed before anything else is understood, and the
 * client learns the limits. Unknown keys are ignored, unknown methods are an error, so that clients
 * and daemons of different age can talk.
 *
 * Called by session.c. Handlers answer through session_send() or return why not.
 */
#define LOG_TOPIC "session"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/scans/scans.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/numbers/sampler.h"
#include "daemon/broker/numbers/stats.h"
#include "daemon/broker/workers/workers.h"
#include "proto/text.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void pack_limits(msgpack_packer *p)
{
    pack_str(p, "limits");
    msgpack_pack_map(p, 7);
    pack_key_u64(p, "body_bytes", FRAME_MAX_BODY_BYTES);
    pack_key_u64(p, "descriptors", FRAME_MAX_FDS);
    pack_key_u64(p, "inline_bytes", ARRAY_MAX_INLINE_BYTES);
    pack_key_u64(p, "ndim", ARRAY_MAX_NDIM);
    pack_key_u64(p, "args", REQUEST_MAX_ARGS);
    pack_key_u64(p, "outputs", REQUEST_MAX_OUTPUTS);
    pack_key_u64(p, "expr_chars", REQUEST_MAX_EXPR_CHARS);
}

static void reply_hello(const struct request *q)
{
    struct broker *broker = q->session->broker;
    const struct plan_limits *limits = worker_limits(workers_main(broker));
    msgpack_packer *p = &broker->writer.packer;
    message_begin_result(&broker->writer, q->id);
    msgpack_pack_map(p, 7);
    pack_key_u64(p, "version", PROTOCOL_VERSION);
    pack_key_str(p, "server", "gpuarrayd " GPUARRAYD_VERSION);
    pack_key_u64(p, "pid", (uint64_t)getpid());
    pack_str(p, "engines");
    msgpack_pack_array(p, broker->n_workers);
    for (unsigned i = 0; i < broker->n_workers; i++)
        pack_str(p, worker_info(broker->workers[i])->engine);
    pack_key_u64(p, "pool_bytes", limits->pool_bytes);
    pack_key_u64(p, "slot_bytes", limits->slot_bytes);
    pack_limits(p);
    session_send(q->session);
}

static int handle_hello(const struct request *q, struct gad_error *error)
{
    struct session *session = q->session;
    char name[SESSION_NAME_SIZE] = "";
    uint64_t version = 0;
    if (session->state != SESSION_NEW)
        return error_set(error, GAD_BAD_REQUEST, NULL, "hello was said before");
    int r = map_require_u64(q->params, "version", &version, error);
    if (r == 0)
        r = map_copy_str(q->params, "client", name, sizeof(name), error);
    if (r)
        return r;
    if (version != PROTOCOL_VERSION) {
        error_set(error, GAD_VERSION, "version",
                  "gpuarrayd " GPUARRAYD_VERSION " speaks version %u of the protocol, not %llu",
                  PROTOCOL_VERSION, (unsigned long long)version);
        error_expected(error, "%u", PROTOCOL_VERSION);
        error_found(error, "%llu", (unsigned long long)version);
        return GAD_VERSION;
    }
    text_quote(name[0] ? name : "?", session->client, sizeof(session->client));
    session->state = SESSION_OPEN;
    log_info(LOG_UID(session->uid), "client %s (pid %d) came", session->client, (int)session->pid);
    reply_hello(q);
    return 0;
}

static int handle_ping(const struct request *q, struct gad_error *error)
{
    (void)error;
    session_reply_empty(q->session, q->id);
    return 0;
}

/* What a user asks of the worker takes its time, so only so many questions may wait. */
int methods_check_asking(const struct session *session, unsigned limit, struct gad_error *error)
{
    unsigned n_waiting = info_n_waiting(session->broker, session->uid, limit);
    if (n_waiting < limit)
        return 0;
    error_set(error, GAD_LIMIT_EXCEEDED, NULL, "%u requests for numbers wait for an answer",
              n_waiting);
    error_expected(error, "at most %u", limit);
    return GAD_LIMIT_EXCEEDED;
}

int methods_ask_all(const struct request *q, bool with_jobs, info_reply *reply)
{
    const struct info_asker asker = {q->session->broker, q->session, q->id};
    return info_ask(&asker, INFO_ALL_PLACES, with_jobs, reply);
}

static int handle_server_info(const struct request *q, struct gad_error *error)
{
    int r = methods_check_asking(q->session, INFO_MAX_WAITING, error);
    return r ? r : methods_ask_all(q, false, info_reply_info);
}

static int handle_server_stats(const struct request *q, struct gad_error *error)
{
    int r = session_check_room(q->session, stats_most_bytes(q->session->broker));
    if (r == 0)
        r = methods_check_asking(q->session, STATS_MAX_WAITING, error);
    return r ? r : methods_ask_all(q, true, stats_reply);
}

static int handle_server_ops(const struct request *q, struct gad_error *error)
{
    struct message_writer *w = &q->session->broker->writer;
    (void)error;
    message_begin_result(w, q->id);
    info_pack_ops(&w->packer);
    int r = session_check_room(q->session, w->buffer.size);
    if (r == 0)
        session_send(q->session);
    return r;
}

static int handle_region_attach(const struct request *q, struct gad_error *error)
{
    uint64_t size_bytes = 0;
    bool is_writable = false;
    int r = map_require_u64(q->params, "size", &size_bytes, error);
    if (r == 0)
        r = map_bool(q->params, "writable", &is_writable, error);
    if (r == 0 && q->frame->n_fds != 1) {
        error_set(error, GAD_BAD_REQUEST, NULL, "region.attach comes with one descriptor");
        error_expected(error, "1 descriptor");
        error_found(error, "%u descriptors", q->frame->n_fds);
        r = GAD_BAD_REQUEST;
    }
    if (r)
        return r;
    return region_attach(q->session, q->id, steal_fd(&q->frame->fds[0]), size_bytes, is_writable,
                         error);
}

static int handle_region_detach(const struct request *q, struct gad_error *error)
{
    uint64_t region = 0;
    int r = map_require_u64(q->params, "region", &region, error);
    if (r == 0)
        r = region_detach(q->session, region, error);
    if (r == 0)
        session_reply_empty(q->session, q->id);
    return r;
}

static const struct {
    const char *name;
    int (*handle)(const struct request *q, struct gad_error *error);
    bool is_in_reserve; /* also on a session of the reserve: it looks, waits or cancels */
} table[] = {
    {"job.run", handle_job_run, false},
    {"job.submit", handle_job_submit, false},
    {"job.wait", handle_job_wait, true},
    {"job.status", handle_job_status, true},
    {"job.plan", handle_job_plan, false},
    {"job.cancel", handle_job_cancel, true},
    {"job.pause", handle_job_pause, true},
    {"job.resume", handle_job_resume, true},
    {"job.settle", handle_job_settle, false},
    {"job.list", handle_job_list, true},
    {"job.trace", handle_job_trace, true},
    {"region.attach", handle_region_attach, false},
    {"region.detach", handle_region_detach, false},
    {"scan.join", scans_join, false},
    {"ping", handle_ping, true},
    {"hello", handle_hello, true},
    {"server.info", handle_server_info, true},
    {"server.ops", handle_server_ops, true},
    {"server.stats", handle_server_stats, true},
    {"server.samples", sampler_handle, true},
    {"server.users", handle_server_users, true},
    {"server.weight", handle_server_weight, true},
    {"server.drain", handle_server_drain, true},
};

/* It leaves after that: the reserve is for others. */
static int refuse_in_reserve(const struct request *q, int r, struct gad_error *error)
{
    struct session *session = q->session;
    if (r < 0)
        return r;
    size_t n_chars = strlen(error->message);
    snprintf(error->message + n_chars, sizeof(error->message) - n_chars,
             "; one in reserve can list, wait for and cancel jobs: end one of them");
    metrics_refused(&session->broker->metrics, (int)error->status);
    session_reply_error(session, q->id, error);
    session_end(session);
    return 0;
}

int methods_handle(const struct request *q, struct gad_error *error)
{
    const struct message *m = q->message;
    if (q->session->state == SESSION_NEW && !message_is(m, "hello"))
        return error_set(error, GAD_BAD_REQUEST, NULL, "the first request is hello");
    for (unsigned i = 0; i < ARRAY_LENGTH(table); i++)
        if (message_is(m, table[i].name)) {
            int r = table[i].is_in_reserve ? 0 : session_leave_reserve(q->session, error);
            return r != 0 ? refuse_in_reserve(q, r, error) : table[i].handle(q, error);
        }
    error_set(error, GAD_UNKNOWN_METHOD, NULL, "there is no method '%.*s'", (int)m->n_method_chars,
              m->method);
    error_found(error, "%.*s", (int)m->n_method_chars, m->method);
    return GAD_UNKNOWN_METHOD;
}
