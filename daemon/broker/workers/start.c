/* Starting a worker's process: its command line, its socketpair, its crash page.
 *
 * The two kinds of workers are told what concerns them: the CPU's the pool and the processor's
 * level, a device's which device it is and what the settings say about it; what they leave to the
 * worker is not passed. Each holds a lock of its own beside the socket for as long as it has its
 * pool: SOCKET.pool, SOCKET.pool.cuda0 and so on.
 *
 * Called by worker.c.
 */
#define LOG_TOPIC "worker"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/workers/worker_impl.h"
#include "daemon/crashpage.h"
#include "proto/util.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>

#define RECEIVES_PER_WAKE_UP 8u
#define SOCKET_BUFFER_BYTES  (1024 * 1024)
#define URGENT_BYTES         (64u * 1024u) /* of notifications, which are some 50 bytes each */
#define MAX_WORDS            32u
#define NUMBER_SIZE          24

struct command_line {
    const char *argv[MAX_WORDS];
    char numbers[MAX_WORDS][NUMBER_SIZE];
    unsigned n;
    char lock[PATH_MAX];
};

static void add_text(struct command_line *line, const char *option, const char *value)
{
    line->argv[line->n++] = option;
    line->argv[line->n++] = value;
}

static void add_number(struct command_line *line, const char *option, uint64_t value)
{
    char *text = line->numbers[line->n];
    snprintf(text, NUMBER_SIZE, "%" PRIu64, value);
    add_text(line, option, text);
}

static void add_unless_auto(struct command_line *line, const char *option, uint64_t value)
{
    if (value != OPTIONS_AUTO)
        add_number(line, option, value);
}

static void add_for_cpu(struct command_line *line, const struct options *o)
{
    snprintf(line->lock, sizeof(line->lock), "%s.pool", o->socket_path);
    add_number(line, "--pool", o->pool_bytes);
    if (o->level[0])
        add_text(line, "--level", o->level);
}

static void add_for_device(struct command_line *line, const struct options *o, int index)
{
    snprintf(line->lock, sizeof(line->lock), "%s.pool.cuda%d", o->socket_path, index);
    add_number(line, "--device", (uint64_t)index);
    add_unless_auto(line, "--device-bytes", o->device_bytes);
    add_unless_auto(line, "--pinned-bytes", o->pinned_bytes);
    add_unless_auto(line, "--chunk-bytes", o->chunk_bytes);
    add_unless_auto(line, "--register-bytes", o->register_bytes);
    if (o->device_depth > 0)
        add_number(line, "--depth", o->device_depth);
}

static void make_command_line(struct command_line *line, const struct worker *w)
{
    const struct options *o = &w->broker->options;
    line->n = 0;
    line->argv[line->n++] = w->info.index < 0 ? o->worker_path : o->cuda_worker_path;
    add_text(line, "--fd", "3");
    add_text(line, "--crash-page", "4");
    add_number(line, "--threads", o->n_threads);
    if (w->info.index < 0)
        add_for_cpu(line, o);
    else
        add_for_device(line, o, w->info.index);
    add_text(line, "--lock", line->lock);
    line->argv[line->n] = NULL;
}

static void on_event(void *userdata, unsigned events)
{
    struct worker *w = userdata;
    if (events & WATCH_READ) {
        int r = worker_read(w, RECEIVES_PER_WAKE_UP);
        if (r < 0 && r != -EAGAIN && w->conn)
            worker_lose_connection(w, r);
    }
    if (events & WATCH_WRITE)
        worker_flush(w);
}

static int open_connection(struct worker *w, int *fd_take)
{
    int n_bytes = SOCKET_BUFFER_BYTES;
    setsockopt(*fd_take, SOL_SOCKET, SO_SNDBUF, &n_bytes, sizeof(n_bytes));
    int r = conn_new(steal_fd(fd_take), closer_close, &w->conn);
    if (r == 0)
        r = conn_keep_room(w->conn, URGENT_BYTES);
    if (r == 0)
        r = loop_watch_new(w->broker->loop, conn_fd(w->conn), on_event, w, &w->watch);
    if (r == 0)
        r = loop_watch_set(w->watch, WATCH_READ);
    return r;
}

int worker_start_process(struct worker *w, exit_func on_exit_status)
{
    struct command_line line;
    int pair[2];
    _cleanup_fd_ int page_fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    _cleanup_fd_ int ours = pair[0];
    _cleanup_fd_ int theirs = pair[1];
    make_command_line(&line, w);
    int r = crashpage_create(&page_fd);
    if (r == 0)
        r = crashpage_map(page_fd, &w->page);
    if (r == 0)
        r = child_start(w->broker->loop, (char *const *)line.argv, (int[]){theirs, page_fd}, 2,
                        on_exit_status, w, &w->child);
    if (r < 0 && w->info.n_failed_starts < MAX_FAILED_STARTS)
        log_error(NULL, "%s cannot be started: %s", line.argv[0], strerrordesc_np(-r));
    return r == 0 ? open_connection(w, &ours) : r;
}
