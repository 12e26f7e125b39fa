/* gpuarrayd-scan THREADS: one shared scan, for as long as the broker wants it. Its other work,
 * gpuarrayd-scan copy, is row_copy_serve.c's.
 *
 * Started by the broker, never by a person, with its socket as descriptor 3 and the scan's
 * description as 4. Until it is confined it looks at nothing of the description but its head; the
 * files come later, from those who read them. It tells the broker who joins, who has gone, and what
 * was done (proto/PROTOCOL.md has what readers see):
 *
 *     broker: request reader.join, with the reader's socket; its id is the reader's
 *             notification reader.leave {reader}
 *     scan:   notifications reader.gone {reader} and numbers {decoded, failed, taken}
 *
 * It dies with its broker, by end of file or the kernel's signal, and never waits for anybody:
 * nothing that it holds outlives it. A description that is no good is each reader's answer.
 *
 * Its readers need the processor more than it does: what it decodes is of no use before they have
 * taken what is there. So it is a little nicer than they are, where that is allowed. Memory beyond
 * what such chunks need is refused by the kernel, and a chunk that asks for it has failed.
 */
#include "client/scan/row_copy.h"
#include "client/scan/row_copy_serve.h"
#include "client/scan/scan_confine.h"
#include "client/scan/scan_flow.h"
#include "client/scan/scan_server.h"
#include "proto/util.h"
#include "proto/wire/conn.h"
#include "proto/wire/map.h"
#include "proto/wire/message.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define BROKER_FD      3
#define DESCRIPTION_FD 4
#define MAX_THREADS    256
#define NICE           5
#define VICTIM_SCORE   "500"
#define BASE_BYTES     (UINT64_C(64) << 20)
#define THREAD_BYTES   (UINT64_C(24) << 20) /* its stack, and states of libraries */
#define CHUNK_COPIES   8u                   /* of a thread: stored, and between steps */
#define EVENTS_A_TURN  32
#define TELL_MS        200
#define TAG_BROKER     UINT64_MAX

struct member {
    bool is_there;
    uint32_t id;
};

struct program {
    struct conn *conn;
    struct message_writer writer;
    int epoll_fd;
    bool wants_writable;
    struct scan_description description;
    size_t description_bytes;
    void *described;          /* mapped */
    struct gad_error refusal; /* of the description; status 0: none */
    struct scan_server *server;
    struct member members[SCAN_MAX_READERS]; /* by place */
    struct scan_numbers told;
};

static int failed(const char *what, int r)
{
    fprintf(stderr, "<3>%s: %s: %s\n", program_invocation_short_name, what, strerrordesc_np(-r));
    return EXIT_FAILURE;
}

static int watch(const struct program *p, int operation, int fd, uint32_t events, uint64_t tag)
{
    struct epoll_event event = {.events = events, .data.u64 = tag};
    return epoll_ctl(p->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

/* To the broker -------------------------------------------------------------------------------- */

static int send_packed(struct program *p)
{
    return conn_send(p->conn, p->writer.buffer.data, p->writer.buffer.size, NULL, 0);
}

static int tell_numbers(struct program *p)
{
    struct scan_numbers now;
    scan_server_count(p->server, &now);
    if (memcmp(&now, &p->told, sizeof(now)) == 0)
        return 0;
    p->told = now;
    message_begin_notification(&p->writer, "numbers");
    msgpack_pack_map(&p->writer.packer, 3);
    pack_key_u64(&p->writer.packer, "decoded", now.n_decoded);
    pack_key_u64(&p->writer.packer, "failed", now.n_failed);
    pack_key_u64(&p->writer.packer, "taken", now.n_taken);
    return send_packed(p);
}

static int flush(struct program *p)
{
    int r = conn_flush(p->conn);
    if (r && r != -EAGAIN)
        return r;
    bool wants_writable = r == -EAGAIN;
    if (wants_writable == p->wants_writable)
        return 0;
    p->wants_writable = wants_writable;
    return watch(p, EPOLL_CTL_MOD, BROKER_FD, EPOLLIN | (wants_writable ? (uint32_t)EPOLLOUT : 0),
                 TAG_BROKER);
}

/* Readers -------------------------------------------------------------------------------------- */

/* The client may have kept a copy of our end, so closing it would not end the watch. */
static void drop(struct program *p, unsigned place)
{
    (void)watch(p, EPOLL_CTL_DEL, scan_server_socket(p->server, place), 0, 0);
    scan_server_leave(p->server, place);
    p->members[place].is_there = false;
}

static int add_reader(struct program *p, uint32_t id, int socket_take, struct gad_error *error)
{
    unsigned place = 0;
    if (p->refusal.status) {
        close(socket_take);
        *error = p->refusal;
        return (int)error->status;
    }
    int r = scan_server_join(p->server, socket_take, &place);
    if (r == 0) {
        r = watch(p, EPOLL_CTL_ADD, scan_server_socket(p->server, place), EPOLLIN | EPOLLRDHUP,
                  place);
        if (r < 0)
            scan_server_leave(p->server, place);
    }
    if (r < 0)
        return error_from_errno(error, -r, "socket", "the reader's socket");
    p->members[place] = (struct member){.is_there = true, .id = id};
    return 0;
}

static int handle_join(struct program *p, const struct message *message, struct frame *frame)
{
    struct gad_error error = {0};
    if (frame->n_fds != 1)
        return -EPROTO;
    int r = add_reader(p, message->id, steal_fd(&frame->fds[0]), &error);
    if (r == 0) {
        message_begin_result(&p->writer, message->id);
        msgpack_pack_map(&p->writer.packer, 0);
    } else {
        message_error(&p->writer, message->id, &error);
    }
    return send_packed(p);
}

static int handle_leave(struct program *p, const struct message *message)
{
    uint64_t id;
    struct gad_error error;
    if (map_require_u64(&message->params, "reader", &id, &error) != 0)
        return -EPROTO;
    for (unsigned i = 0; i < SCAN_MAX_READERS; i++)
        if (p->members[i].is_there && p->members[i].id == id)
            drop(p, i);
    return 0;
}

static int hear_reader(struct program *p, unsigned place)
{
    if (!p->members[place].is_there || scan_server_hear(p->server, place) == 0)
        return 0;
    drop(p, place);
    message_begin_notification(&p->writer, "reader.gone");
    msgpack_pack_map(&p->writer.packer, 1);
    pack_key_u64(&p->writer.packer, "reader", p->members[place].id);
    return send_packed(p);
}

/* From the broker ------------------------------------------------------------------------------ */

static int handle_frame(struct program *p, struct frame *frame)
{
    struct message message = {0};
    struct gad_error error = {0};
    bool has_id;
    int r = message_decode(frame->body, frame->size_bytes, &message, &has_id, &error);
    if (r)
        return r < 0 ? r : -EPROTO;
    if (message.kind == MESSAGE_REQUEST && message_is(&message, "reader.join"))
        r = handle_join(p, &message, frame);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "reader.leave"))
        r = handle_leave(p, &message);
    else
        r = -EPROTO;
    message_deinit(&message);
    return r;
}

static int hear_broker(struct program *p)
{
    struct frame frame;
    int r = conn_receive(p->conn);
    while (r == 0) {
        r = conn_next(p->conn, &frame);
        if (r == 0) {
            r = handle_frame(p, &frame);
            frame_deinit(&frame, NULL);
        }
    }
    return r == -EAGAIN ? 0 : r;
}

static int turn(struct program *p)
{
    struct epoll_event events[EVENTS_A_TURN];
    struct scan_numbers now;
    int r = flush(p);
    if (r)
        return r;
    scan_server_count(p->server, &now);
    bool has_news = memcmp(&now, &p->told, sizeof(now)) != 0;
    int n = epoll_wait(p->epoll_fd, events, EVENTS_A_TURN, has_news ? TELL_MS : -1);
    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n && r == 0; i++)
        r = events[i].data.u64 == TAG_BROKER ? hear_broker(p)
                                             : hear_reader(p, (unsigned)events[i].data.u64);
    return r;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int serve(struct program *p)
{
    uint64_t told_ms = 0;
    int r = 0;
    while (r == 0) {
        r = turn(p);
        if (r == 0 && now_ms() - told_ms >= TELL_MS) {
            told_ms = now_ms();
            r = tell_numbers(p);
        }
    }
    return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* Setting up ----------------------------------------------------------------------------------- */

static void set_signals(void)
{
    static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGHUP, SIGQUIT};
    for (unsigned i = 0; i < ARRAY_LENGTH(ignored); i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void be_humble(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, VICTIM_SCORE, sizeof(VICTIM_SCORE) - 1);
        close(fd);
    }
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    mallopt(M_ARENA_MAX, 2);
}

static int map_description(struct program *p, struct scan_head *ret_head)
{
    struct gad_error error;
    off_t n_bytes = lseek(DESCRIPTION_FD, 0, SEEK_END);
    if (n_bytes < 0)
        return -errno;
    if (pread(DESCRIPTION_FD, ret_head, sizeof(*ret_head), 0) != sizeof(*ret_head) ||
        scan_head_check(ret_head, (uint64_t)n_bytes, &error) != 0)
        return -EINVAL; /* the broker looks at it first */
    p->description_bytes = (size_t)n_bytes;
    p->described = mmap(NULL, p->description_bytes, PROT_READ, MAP_SHARED, DESCRIPTION_FD, 0);
    return p->described == MAP_FAILED ? -errno : 0;
}

/* Sanitizers need memory of their own. */
static void limit_memory(uint64_t chunk_bytes, unsigned n_threads)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    uint64_t most = BASE_BYTES + n_threads * (THREAD_BYTES + CHUNK_COPIES * chunk_bytes);
    (void)setrlimit(RLIMIT_DATA, &(struct rlimit){most, most});
    (void)prctl(PR_SET_DUMPABLE, 0);
#else
    (void)chunk_bytes;
    (void)n_threads;
#endif
}

static int set_up(struct program *p, unsigned n_threads)
{
    struct scan_head head;
    message_writer_init(&p->writer);
    int r = map_description(p, &head);
    if (r == 0)
        r = scan_server_new(&head, &p->description, n_threads, &p->server);
    if (r == 0)
        r = conn_new(BROKER_FD, NULL, &p->conn);
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (r == 0)
        r = p->epoll_fd < 0 ? -errno : watch(p, EPOLL_CTL_ADD, BROKER_FD, EPOLLIN, TAG_BROKER);
    limit_memory(head.chunk_bytes, n_threads);
    return r;
}

int main(int argc, char **argv)
{
    static struct program p;
    if (argc == 2 && strcmp(argv[1], ROW_COPY_WORD) == 0)
        return row_copy_serve();
    unsigned n_threads = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (n_threads == 0 || n_threads > MAX_THREADS) {
        fprintf(stderr, "gpuarrayd-scan is started by gpuarrayd\n");
        return EXIT_FAILURE;
    }
    set_signals();
    be_humble();
    int r = set_up(&p, n_threads);
    if (r)
        _exit(failed("start", r));
    r = scan_confine(scan_server_no_path);
    if (r) /* it decodes for others: not without this */
        _exit(failed("system calls", r));
    if (scan_description_read(p.described, p.description_bytes, &p.description, &p.refusal) == 0)
        p.refusal.status = 0;
    r = serve(&p);
    _exit(r ? failed("the broker's socket", r) : EXIT_SUCCESS);
}
