/* The connection: making it, requests out, responses and notifications in.
 *
 *     gad_connect --> start_connect --> hello --> requests ... --> lost (conn NULL)
 *                          ^                                            |
 *                          \-------------- client_ensure <--------------/
 *
 * One thread at a time. Everything that comes is handled in client_wait(), which runs the functions
 * of calls and the progress callbacks; whoever waits for something particular calls it until that
 * has happened, so waiting for one thing never holds up the others.
 *
 * Invariants: conn is NULL exactly while there is no connection that said hello; when a connection
 * is lost every call that was in flight is failed with GAD_DISCONNECTED at that moment, so no call
 * survives into the next session. Regions know the session that they were attached in.
 */
#include "client/lib/connection/client.h"
#include "client/lib/jobs/job.h"
#include "client/lib/memory/memory.h"
#include "client/lib/memory/pump.h"
#include "client/lib/connection/start.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_TIMEOUT_MS 10000
#define DEFAULT_RESTART_MS 3000
#define ANSWER_MS          60000 /* a worker that gets ready takes some seconds */
#define CLIENT_NAME_SIZE   64
#define RETRY_MS           20

enum gad_status client_status(int r, struct gad_error *error)
{
    if (r >= 0)
        return (enum gad_status)r;
    if (r == -ENOMEM)
        return error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
    if (r == -EMSGSIZE)
        return error_set(error, GAD_LIMIT_EXCEEDED, NULL, "the request is too large for a message");
    return error_from_errno(error, -r, NULL, "the client library");
}

static void lose(struct gad_client *client, const char *why)
{
    struct gad_error error;
    error_set(&error, GAD_DISCONNECTED, NULL, "the connection to the daemon is lost: %s", why);
    struct conn *conn = steal_ptr(client->conn); /* a child of fork() never sees it half-freed */
    conn_free(conn);
    calls_fail_all(&client->calls, &error);
}

static int lost(struct gad_error *error)
{
    return error_set(error, GAD_DISCONNECTED, NULL, "the connection to the daemon is lost");
}

/* Requests ------------------------------------------------------------------------------------ */

int client_begin(struct gad_client *client, const char *method, call_func *func, void *userdata,
                 uint32_t *ret_id, struct gad_error *error)
{
    if (!client->conn)
        return lost(error);
    int r = calls_add(&client->calls, func, userdata, ret_id);
    if (r)
        return (int)client_status(r, error);
    message_begin_request(&client->writer, *ret_id, method);
    return 0;
}

/* Instead of sending. */
static void client_abandon(struct gad_client *client, uint32_t id)
{
    calls_drop(&client->calls, id);
    message_writer_clear(&client->writer);
}

int client_send(struct gad_client *client, uint32_t id, const int *fds_take, unsigned n_fds,
                struct gad_error *error)
{
    struct message_writer *w = &client->writer;
    int r = conn_send(client->conn, w->buffer.data, w->buffer.size, fds_take, n_fds);
    if (r) {
        client_abandon(client, id);
        if (r == -EINVAL || r == -ENOMEM || r == -EMSGSIZE)
            return (int)client_status(r == -EINVAL ? -ENOMEM : r, error);
        return lost(error); /* sending failed before: the loss itself is met in client_wait() */
    }
    (void)!conn_flush(client->conn); /* a failure stays and is met in client_wait() */
    return 0;
}

/* What comes in -------------------------------------------------------------------------------- */

static int handle_frame(struct gad_client *client, struct frame *frame)
{
    struct message message;
    struct gad_error error;
    bool has_id;
    int r = message_decode(frame->body, frame->size_bytes, &message, &has_id, &error);
    if (r)
        return r < 0 ? r : -EPROTO;
    if (message.kind == MESSAGE_RESPONSE) {
        calls_answer(&client->calls, &message, steal_ptr(frame->body));
        return 0;
    }
    if (message_is(&message, "job.progress"))
        job_progress(client, &message.params);
    r = message.kind == MESSAGE_REQUEST ? -EPROTO : 0;
    message_deinit(&message);
    return r;
}

/* All frames that are there. ret_n counts them. A function of a call may lose the connection. */
static int handle_frames(struct gad_client *client, unsigned *ret_n)
{
    struct frame frame;
    *ret_n = 0;
    while (client->conn) {
        int r = conn_next(client->conn, &frame);
        if (r == -EAGAIN)
            return 0;
        if (r)
            return r;
        r = handle_frame(client, &frame);
        frame_deinit(&frame, NULL);
        if (r)
            return r;
        (*ret_n)++;
    }
    return 0;
}

static int poll_conn(struct gad_client *client, int64_t deadline)
{
    struct pollfd polled = {.fd = conn_fd(client->conn), .events = POLLIN};
    if (conn_n_queued_bytes(client->conn) > 0)
        polled.events |= POLLOUT;
    int n = poll(&polled, 1, clock_left_ms(deadline));
    if (n < 0)
        return -errno;
    if (n == 0)
        return GAD_TIMEOUT;
    int sent = polled.revents & POLLOUT ? conn_flush(client->conn) : 0;
    int r = 0;
    if (polled.revents & ~POLLOUT) /* before a failure to send: its last words say why it left */
        r = conn_receive(client->conn);
    else if (sent != -EAGAIN)
        r = sent;
    return r == -EAGAIN ? 0 : r;
}

/* Where this process copies, a piece of that is what happens, and answers do not have to wait. */
int client_wait(struct gad_client *client, int64_t deadline, struct gad_error *error)
{
    bool has_copied = copy_jobs(client);
    for (;;) {
        unsigned n = 0;
        if (!client->conn)
            return lost(error);
        int r = handle_frames(client, &n);
        if (n > 0 && r == 0)
            return 0;
        if (r == 0)
            r = poll_conn(client, has_copied ? 0 : deadline);
        if (r == GAD_TIMEOUT && has_copied)
            return 0;
        if (r == GAD_TIMEOUT)
            return error_set(error, GAD_TIMEOUT, NULL, "nothing happened in time");
        if (r == -EINTR)
            return r;
        if (r) {
            lose(client, r == -EPIPE ? "the daemon left" : strerrordesc_np(-r));
            return lost(error);
        }
    }
}

/* Calls that are waited for -------------------------------------------------------------------- */

static void on_call_done(void *userdata, int status, struct reply *reply_take,
                         const struct gad_error *error)
{
    struct client_call *call = userdata;
    call->is_done = true;
    call->status = status;
    call->reply = reply_take;
    if (status)
        call->error = *error;
}

int client_begin_call(struct gad_client *client, const char *method, struct client_call *call,
                      uint32_t *ret_id, struct gad_error *error)
{
    *call = (struct client_call){.method = method};
    return client_begin(client, method, on_call_done, call, ret_id, error);
}

/* What the daemon has done all the same may have to be undone when its answer comes. */
static int give_up(struct gad_client *client, const struct client_call *call, uint32_t id, int r,
                   struct gad_error *error)
{
    if (r == GAD_TIMEOUT && call->late)
        calls_hand_over(&client->calls, id, call->late, client);
    else
        calls_drop(&client->calls, id);
    return r == GAD_TIMEOUT
               ? error_set(error, GAD_TIMEOUT, NULL,
                           "the daemon is there and does not answer '%s': its log may say why, "
                           "restarting it helps",
                           call->method)
               : r;
}

int client_finish_call(struct gad_client *client, struct client_call *call, uint32_t id,
                       const int *fds_take, unsigned n_fds, int64_t deadline,
                       struct reply **ret_reply, struct gad_error *error)
{
    int r = client_send(client, id, fds_take, n_fds, error);
    while (r == 0 && !call->is_done) {
        r = client_wait(client, deadline, error);
        if (r == -EINTR || (r == GAD_DISCONNECTED && call->is_done))
            r = 0;
    }
    if (r)
        return give_up(client, call, id, r, error);
    if (call->status) {
        if (error)
            *error = call->error;
        return call->status;
    }
    if (ret_reply)
        *ret_reply = call->reply;
    else
        reply_free(call->reply);
    return 0;
}

/* Connecting ----------------------------------------------------------------------------------- */

static int say_hello(struct gad_client *client, int64_t deadline, struct gad_error *error)
{
    struct client_call call;
    uint32_t id;
    int r = client_begin_call(client, "hello", &call, &id, error);
    if (r)
        return r;
    msgpack_packer *p = &client->writer.packer;
    char name[CLIENT_NAME_SIZE];
    snprintf(name, sizeof(name), "%s", client->name ? client->name : program_invocation_short_name);
    msgpack_pack_map(p, 2);
    pack_key_u64(p, "version", PROTOCOL_VERSION);
    pack_key_str(p, "client", name);
    struct reply *reply;
    r = client_finish_call(client, &call, id, NULL, 0, deadline, &reply, error);
    if (r)
        return r;
    uint64_t version = 0;
    char server[64] = "";
    r = map_require_u64(&reply->message.result, "version", &version, error);
    if (r == 0 && map_copy_str(&reply->message.result, "server", server, sizeof(server), NULL))
        server[0] = '\0';
    reply_free(reply);
    if (r)
        return error_set(error, GAD_PROTOCOL, "hello", "the daemon does not say its version");
    if (version == PROTOCOL_VERSION)
        return 0;
    error_set(error, GAD_VERSION, "version",
              "%s speaks another version of the protocol than libgpuarrayd " GPUARRAYD_VERSION,
              server[0] ? server : "the daemon");
    error_expected(error, "%u", PROTOCOL_VERSION);
    error_found(error, "%llu", (unsigned long long)version);
    return GAD_VERSION;
}

static int connect_once(struct gad_client *client, bool is_patient, int64_t deadline,
                        bool *ret_is_refused, struct gad_error *error)
{
    struct start_options options = {
        .socket = client->socket,
        .daemon_path = client->daemon_path,
        .no_private_daemon = client->no_private_daemon || (is_patient && client->had_service),
        .waits_for_service = is_patient,
    };
    struct start_found found;
    int r = start_connect(&options, deadline, &found, error);
    *ret_is_refused = found.is_refused;
    if (r)
        return r;
    client->had_service = !found.is_private;
    r = conn_new(found.fd, NULL, &client->conn);
    if (r)
        return (int)client_status(r, error);
    client->session++;
    r = say_hello(client, deadline, error);
    if (r && client->conn)
        lose(client, "the daemon refused");
    return r;
}

/* Whether a daemon that is not there is waited for now; from here on, if this is the first time
 * that it is missed. */
static bool is_patient_now(struct gad_client *client, int64_t patience)
{
    int64_t now = clock_now_ms();
    if (client->missed_since == 0)
        client->missed_since = now;
    return patience > now || client->missed_since + client->restart_ms > now;
}

/* A private daemon may leave for want of work between connect() and hello: then another is
 * started. A service that was there before, or whose socket is there, is waited for, and no private
 * daemon takes its place, until the patience is over. Once it is over, further calls do not wait
 * again until the daemon was back. */
static int connect_patiently(struct gad_client *client, int64_t patience, int64_t deadline,
                             struct gad_error *error)
{
    bool was_there = client->had_service;
    for (;;) {
        bool is_refused, is_patient = is_patient_now(client, patience);
        int r = connect_once(client, is_patient, deadline, &is_refused, error);
        was_there = was_there || is_refused;
        if (r == 0)
            client->missed_since = 0;
        bool may_retry = r == GAD_DISCONNECTED || (r == GAD_NO_DAEMON && is_patient && was_there);
        if (!may_retry || clock_left_ms(deadline) == 0)
            return r;
        clock_sleep_ms(RETRY_MS);
    }
}

/* The daemon may have left while nobody looked. What it said before is handled first. */
static void notice_loss(struct gad_client *client)
{
    while (client->conn) {
        struct pollfd polled = {.fd = conn_fd(client->conn)}; /* asks for POLLHUP, POLLERR alone */
        if (poll(&polled, 1, 0) <= 0)
            return;
        (void)!client_wait(client, 0, NULL);
    }
}

int client_ensure(struct gad_client *client, int64_t deadline, int64_t patience,
                  struct gad_error *error)
{
    notice_loss(client);
    if (client->conn)
        return 0;
    int64_t own = clock_deadline_ms(client->timeout_ms);
    return connect_patiently(client, patience, own < deadline ? own : deadline, error);
}

static int copy_text(const char *text, char **ret_copy)
{
    *ret_copy = text ? strdup(text) : NULL;
    return text && !*ret_copy ? -ENOMEM : 0;
}

static int copy_options(struct gad_client *client, const struct gad_connect_options *options)
{
    client->no_private_daemon = options->no_private_daemon;
    client->answer_ms = ANSWER_MS;
    client->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    client->restart_ms = options->restart_ms == 0  ? DEFAULT_RESTART_MS
                         : options->restart_ms < 0 ? 0
                                                   : options->restart_ms;
    int r = copy_text(options->socket, &client->socket);
    if (r == 0)
        r = copy_text(options->daemon_path, &client->daemon_path);
    if (r == 0)
        r = copy_text(options->client_name, &client->name);
    return r;
}

enum gad_status gad_connect(const struct gad_connect_options *options,
                            struct gad_client **ret_client, struct gad_error *error)
{
    static const struct gad_connect_options defaults = {0};
    if (!ret_client)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_client", "ret_client is NULL");
    struct gad_client *client = calloc(1, sizeof(*client));
    if (!client)
        return client_status(-ENOMEM, error);
    message_writer_init(&client->writer);
    int r = copy_options(client, options ? options : &defaults);
    if (r == 0)
        r = client_ensure(client, DEADLINE_NEVER, 0, error);
    if (r) {
        gad_close(client);
        return client_status(r, error);
    }
    *ret_client = client;
    return GAD_OK;
}

void gad_close(struct gad_client *client)
{
    if (!client)
        return;
    if (client->conn) {
        (void)!conn_flush(client->conn);
        lose(client, "closed");
    }
    pump_free(client->pump);
    rings_deinit(&client->rings);
    arena_deinit(&client->arena);
    message_writer_deinit(&client->writer);
    free(client->socket);
    free(client->daemon_path);
    free(client->name);
    free(client);
}

/* For the caller's loop ------------------------------------------------------------------------ */

int gad_fd(const struct gad_client *client)
{
    return client && client->conn ? conn_fd(client->conn) : -1;
}

uint64_t gad_connection(const struct gad_client *client)
{
    return client ? client->session : 0;
}

bool gad_wants_write(const struct gad_client *client)
{
    return client && client->conn &&
           (conn_n_queued_bytes(client->conn) > 0 || copy_is_under_way(client));
}

enum gad_status gad_dispatch(struct gad_client *client, int timeout_ms, struct gad_error *error)
{
    if (!client)
        return error_set(error, GAD_BAD_ARGUMENT, "client", "client is NULL");
    int r = client_wait(client, clock_deadline_ms(timeout_ms), error);
    if (r == -EINTR)
        return error_set(error, GAD_TIMEOUT, NULL, "interrupted by a signal");
    return client_status(r, error);
}
