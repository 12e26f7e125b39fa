/* A shared scan's process, from its start to its end.
 *
 *     start --> readers come and go --> nobody for IDLE_NS --> end of file --> it exits
 *                     |
 *                     +--> it dies: its readers see the end of their sockets, and join anew or
 *                          decode by themselves; who waits for its answer gets another process
 *
 * The process decodes what clients chose, so it is believed as little as they are: it tells numbers
 * and which reader has gone, and whatever else it says ends it. It is never waited for.
 *
 * Called by scan_join.c and broker.c.
 */
#define LOG_TOPIC "scan"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/scans/scan_impl.h"
#include "daemon/broker/sessions/session.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_NS              UINT64_C(500000000)
#define KILL_NS              UINT64_C(5000000000)
#define RECEIVES_PER_WAKE_UP 8u
#define MAX_WAITING_BYTES    (256u * 1024u)

static void on_kill_time(struct deadline *deadline)
{
    struct scan *scan = list_entry(deadline, struct scan, kill);
    if (scan->child)
        child_kill(scan->child, SIGKILL);
}

/* What it sees is the end of file; its exit is still to come. */
static void lose_connection(struct scan *scan)
{
    scan->watch = loop_watch_close(scan->watch);
    scan->conn = conn_free(scan->conn);
    broker_clear_deadline(scan->broker, &scan->idle);
    broker_set_deadline(scan->broker, &scan->kill, KILL_NS, on_kill_time);
}

static void on_idle_time(struct deadline *deadline)
{
    struct scan *scan = list_entry(deadline, struct scan, idle);
    if (scan->n_readers == 0 && scan->conn)
        lose_connection(scan);
}

/* Readers -------------------------------------------------------------------------------------- */

void scan_reader_free(struct scan_reader *reader)
{
    struct scan *scan = reader->scan;
    list_remove(&reader->session_link);
    list_remove(&reader->link);
    if (scan && --scan->n_readers == 0 && scan->conn)
        broker_set_deadline(scan->broker, &scan->idle, IDLE_NS, on_idle_time);
    scan_join_free(reader->join);
    charge_release(&reader->scan_charge);
    charge_release(&reader->fd_charge);
    charge_release(&reader->bytes_charge);
    free(reader);
}

void scan_reader_refuse(struct scan_reader *reader, const struct gad_error *error)
{
    if (reader->has_waiter && reader->session) {
        metrics_refused(&reader->broker->metrics, (int)error->status);
        session_reply_error(reader->session, reader->waiter_id, error);
    }
    scan_reader_free(reader);
}

static struct scan_reader *find_reader(const struct scan *scan, uint64_t id)
{
    list_for_each (it, &scan->readers) {
        struct scan_reader *reader = list_entry(it, struct scan_reader, link);
        if (reader->id == id)
            return reader;
    }
    return NULL;
}

static void let_go(struct scan *scan)
{
    struct gad_error error = {0};
    struct list *first;
    error_set(&error, GAD_WORKER_LOST, NULL, "the process of the shared scan has ended");
    while ((first = list_first(&scan->readers))) {
        struct scan_reader *reader = list_entry(first, struct scan_reader, link);
        list_remove(&reader->link);
        reader->scan = NULL;
        scan->n_readers--;
        if (!reader->has_waiter || !scan_join_again(reader))
            scan_reader_refuse(reader, &error);
    }
}

static void answer(struct scan_reader *reader)
{
    struct message_writer *w = &reader->broker->writer;
    if (!reader->has_waiter)
        return;
    reader->has_waiter = false;
    reader->join = scan_join_free(reader->join);
    reader->broker->metrics.scans.n_joined++;
    reader->broker->metrics.scans.n_shared += reader->is_shared;
    message_begin_result(w, reader->waiter_id);
    msgpack_pack_map(&w->packer, 3);
    pack_key_u64(&w->packer, "scan", reader->scan->id);
    pack_key_u64(&w->packer, "readers", reader->scan->n_readers);
    pack_key_bool(&w->packer, "shared", reader->is_shared);
    session_send(reader->session);
}

/* What it says --------------------------------------------------------------------------------- */

/* Who has left meanwhile is not waiting any more. */
static int on_response(struct scan *scan, const struct message *message)
{
    struct scan_reader *reader = find_reader(scan, message->id);
    struct gad_error error = {0};
    if (!reader)
        return 0;
    if (message->error.type == MSGPACK_OBJECT_NIL) {
        answer(reader);
        return 0;
    }
    map_error(&message->error, &error);
    scan_reader_refuse(reader, &error);
    return 0;
}

static int on_gone(struct scan *scan, const struct message *message)
{
    uint64_t id;
    if (map_require_u64(&message->params, "reader", &id, NULL) != 0)
        return -EPROTO;
    struct scan_reader *reader = find_reader(scan, id);
    struct gad_error error = {0};
    error_set(&error, GAD_BAD_REQUEST, "socket",
              "the reader has closed its socket, or sent "
              "what no reader may send");
    if (reader)
        scan_reader_refuse(reader, &error);
    return 0;
}

/* It has counted since it began; it may only count up. */
static int take_number(const struct message *message, const char *key, uint64_t *number,
                       uint64_t *sum)
{
    uint64_t now;
    if (map_require_u64(&message->params, key, &now, NULL) != 0 || now < *number)
        return -EPROTO;
    *sum += now - *number;
    *number = now;
    return 0;
}

static int on_numbers(struct scan *scan, const struct message *message)
{
    struct metrics_scans *sums = &scan->broker->metrics.scans;
    int r = take_number(message, "decoded", &scan->n_decoded, &sums->n_decoded);
    if (r == 0)
        r = take_number(message, "failed", &scan->n_failed, &sums->n_failed);
    return r ? r : take_number(message, "taken", &scan->n_taken, &sums->n_taken);
}

static int handle(struct scan *scan, const struct frame *frame)
{
    struct message message = {0};
    struct gad_error error = {0};
    bool has_id;
    int r = message_decode(frame->body, frame->size_bytes, &message, &has_id, &error);
    if (r)
        return r < 0 ? r : -EPROTO;
    if (frame->n_fds > 0)
        r = -EPROTO;
    else if (message.kind == MESSAGE_RESPONSE)
        r = on_response(scan, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "reader.gone"))
        r = on_gone(scan, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "numbers"))
        r = on_numbers(scan, &message);
    else
        r = -EPROTO;
    message_deinit(&message);
    return r;
}

static int read_some(struct scan *scan)
{
    int r = 0;
    for (unsigned i = 0; i < RECEIVES_PER_WAKE_UP && r == 0; i++) {
        r = conn_receive(scan->conn);
        while (r == 0) {
            struct frame frame;
            r = conn_next(scan->conn, &frame);
            if (r == 0) {
                r = handle(scan, &frame);
                frame_deinit(&frame, closer_close);
            }
        }
        if (r == -EAGAIN && conn_may_have_more(scan->conn))
            r = 0;
    }
    return r == -EAGAIN ? 0 : r;
}

static int flush(struct scan *scan)
{
    int r = conn_flush(scan->conn);
    if (r == 0 || r == -EAGAIN)
        r = loop_watch_set(scan->watch, WATCH_READ | (r == -EAGAIN ? WATCH_WRITE : 0u));
    return r;
}

static void on_event(void *userdata, unsigned events)
{
    struct scan *scan = userdata;
    int r = events & WATCH_READ ? read_some(scan) : 0;
    if (r == 0 && events & WATCH_WRITE)
        r = flush(scan);
    if (r == 0)
        return;
    if (r == -EPROTO || r == -EMSGSIZE) {
        log_error(NULL, "the process of scan %llu does not speak the protocol: killed",
                  (unsigned long long)scan->id);
        child_kill(scan->child, SIGKILL);
    }
    lose_connection(scan);
}

/* Its life ------------------------------------------------------------------------------------- */

static struct scan *free_scan(struct scan *scan)
{
    list_remove(&scan->link);
    let_go(scan);
    broker_clear_deadline(scan->broker, &scan->idle);
    broker_clear_deadline(scan->broker, &scan->kill);
    scan->watch = loop_watch_close(scan->watch);
    scan->conn = conn_free(scan->conn);
    scan->child = child_close(scan->child);
    closer_close(scan->description_fd);
    free(scan);
    return NULL;
}

static void on_exit_status(void *userdata, int exit_code, int term_signal)
{
    struct scan *scan = userdata;
    if (term_signal || exit_code)
        log_warn(NULL, "the process of scan %llu (pid %d) ended by %s %d with %u readers",
                 (unsigned long long)scan->id, (int)scan->pid,
                 term_signal ? "signal" : "exit status", term_signal ? term_signal : exit_code,
                 scan->n_readers);
    scan->broker->metrics.scans.n_lost += term_signal || exit_code;
    free_scan(scan);
}

static int start_process(struct scan *scan)
{
    const struct options *o = &scan->broker->options;
    char n_threads[16];
    const char *const argv[] = {o->scan_path, n_threads, NULL};
    int pair[2];
    snprintf(n_threads, sizeof(n_threads), "%u", o->n_threads);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    _cleanup_fd_ int theirs = pair[1];
    int r = conn_new(pair[0], closer_close, &scan->conn);
    if (r == 0)
        r = loop_watch_new(scan->broker->loop, conn_fd(scan->conn), on_event, scan, &scan->watch);
    if (r == 0)
        r = loop_watch_set(scan->watch, WATCH_READ);
    if (r == 0)
        r = child_start(scan->broker->loop, (char *const *)argv,
                        (int[]){theirs, scan->description_fd}, 2, on_exit_status, scan,
                        &scan->child);
    if (r == 0)
        scan->pid = child_pid(scan->child);
    return r;
}

int scan_start(struct broker *broker, const struct scan_identity *identity, int description_fd,
               struct scan **ret_scan)
{
    struct scan *scan = calloc(1, sizeof(*scan));
    if (!scan)
        return -ENOMEM;
    *scan = (struct scan){.broker = broker, .identity = *identity, .id = ++broker->last_scan_id};
    list_init(&scan->readers);
    list_push_back(&broker->scans, &scan->link);
    scan->description_fd = fcntl(description_fd, F_DUPFD_CLOEXEC, 3);
    int r = scan->description_fd < 0 ? -errno : start_process(scan);
    if (r < 0) {
        log_error(NULL, "%s cannot be started: %s", broker->options.scan_path, strerrordesc_np(-r));
        free_scan(scan);
        return r;
    }
    broker->metrics.scans.n_started++;
    *ret_scan = scan;
    return 0;
}

static int send_packed(struct scan *scan, const int *fds_take, unsigned n_fds)
{
    const msgpack_sbuffer *body = &scan->broker->writer.buffer;
    int r = conn_send(scan->conn, body->data, body->size, fds_take, n_fds);
    if (r == 0)
        r = flush(scan);
    if (r == 0 && conn_n_queued_bytes(scan->conn) > MAX_WAITING_BYTES)
        r = -EAGAIN; /* it has stopped taking what it is told */
    return r;
}

int scan_add(struct scan *scan, struct scan_reader *reader, int socket_take)
{
    message_begin_request(&scan->broker->writer, reader->id, "reader.join");
    msgpack_pack_map(&scan->broker->writer.packer, 0);
    int r = send_packed(scan, &socket_take, 1);
    if (r < 0) {
        lose_connection(scan);
        return r;
    }
    reader->scan = scan;
    scan->n_readers++;
    list_push_back(&scan->readers, &reader->link);
    broker_clear_deadline(scan->broker, &scan->idle);
    return 0;
}

void scans_session_gone(struct scan_reader *reader)
{
    struct scan *scan = reader->scan;
    reader->session = NULL;
    reader->has_waiter = false;
    list_remove(&reader->session_link);
    if (!scan)
        return; /* who looks for its scan finds that nobody wants it */
    uint32_t id = reader->id;
    scan_reader_free(reader);
    if (!scan->conn)
        return;
    message_begin_notification(&scan->broker->writer, "reader.leave");
    msgpack_pack_map(&scan->broker->writer.packer, 1);
    pack_key_u64(&scan->broker->writer.packer, "reader", id);
    if (send_packed(scan, NULL, 0) < 0)
        lose_connection(scan);
}

struct scan_reader *scans_reader_of(struct list *session_link)
{
    return list_entry(session_link, struct scan_reader, session_link);
}

void scans_free(struct broker *broker)
{
    struct list *first;
    while ((first = list_first(&broker->scans))) {
        struct scan *scan = list_entry(first, struct scan, link);
        child_kill(scan->child, SIGKILL);
        free_scan(scan);
    }
}
