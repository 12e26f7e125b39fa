#include "whole.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static char base[64];
char path[100];
pid_t daemon_pid;

static int serve(const char *worker, uint64_t idle_exit_ns, int ready_fd)
{
    static struct broker broker;
    struct options options = {.is_private = true, .ready_fd = -1, .listen_fd = -1};
    settings_set_defaults(&options, true);
    snprintf(options.socket_path, sizeof(options.socket_path), "%s", path);
    options.pool_bytes = 2u << 20;
    options.n_threads = 1;
    options.hang_timeout_ns = UINT64_C(1000000000);
    options.idle_exit_ns = idle_exit_ns;
    snprintf(options.worker_path, sizeof(options.worker_path), "%s", worker);
    log_open(STDERR_FILENO, LOG_LEVEL_ERROR);
    signal(SIGPIPE, SIG_IGN);
    int status = closer_start(4096) == 0 && broker_init(&broker, &options) == 0 ? 0 : 9;
    if (status == 0 && write(ready_fd, "R", 1) == 1)
        status = broker_run(&broker);
    broker_deinit(&broker);
    closer_stop(1000);
    return status;
}

void start(const char *worker, uint64_t idle_exit_ns)
{
    int ends[2];
    char c;

    snprintf(base, sizeof(base), "/tmp/gpuarrayd-broker-XXXXXX");
    cr_assert(ne(ptr, mkdtemp(base), NULL));
    snprintf(path, sizeof(path), "%s/socket", base);
    cr_assert(eq(int, pipe(ends), 0));
    daemon_pid = fork();
    if (daemon_pid == 0) {
        int null_fd = open("/dev/null", O_WRONLY);
        dup2(null_fd, STDERR_FILENO); /* it reports every worker that ends */
        _exit(serve(worker, idle_exit_ns, ends[1]));
    }
    close(ends[1]);
    cr_assert(eq(int, (int)read(ends[0], &c, 1), 1));
    close(ends[0]);
}

int exit_status(void)
{
    int status = -1;
    char command[100];

    cr_assert(eq(int, waitpid(daemon_pid, &status, 0), daemon_pid));
    snprintf(command, sizeof(command), "rm -rf '%s'", base);
    cr_assert(eq(int, system(command), 0));
    return status;
}

struct conn *connect_to_it(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct conn *c = NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    cr_assert(eq(int, connect(fd, (struct sockaddr *)&address, sizeof(address)), 0));
    cr_assert(eq(int, conn_new(fd, NULL, &c), 0));
    return c;
}

const char *receive(struct conn *c, uint32_t id)
{
    static struct gad_error error;
    for (;;) {
        struct frame frame;
        int r = conn_next(c, &frame);
        if (r == -EAGAIN) {
            struct pollfd p = {.fd = conn_fd(c), .events = POLLIN};
            cr_assert(eq(int, poll(&p, 1, 20000), 1));
            r = conn_receive(c);
            if (r < 0 && r != -EAGAIN)
                return "closed";
            continue;
        }
        cr_assert(eq(int, r, 0));
        struct message message;
        bool has_id;
        cr_assert(
            eq(int, message_decode(frame.body, frame.size_bytes, &message, &has_id, &error), 0));
        cr_assert(eq(u32, message.id, id));
        memset(&error, 0, sizeof(error));
        if (message.error.type != MSGPACK_OBJECT_NIL)
            map_error(&message.error, &error);
        message_deinit(&message);
        frame_deinit(&frame, NULL);
        return error_word((int)error.status);
    }
}
