/* The whole broker without a worker that works: it answers, says what is wrong, and leaves. */
#include "daemon/broker/broker.h"
#include "daemon/broker/closer.h"
#include "proto/conn.h"
#include "proto/util.h"

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

static char base[64], path[100];
static pid_t daemon_pid;
static struct conn *conn;
static struct message_writer writer;

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

static void start(const char *worker, uint64_t idle_exit_ns)
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

static int exit_status(void)
{
    int status = -1;
    char command[100];

    cr_assert(eq(int, waitpid(daemon_pid, &status, 0), daemon_pid));
    snprintf(command, sizeof(command), "rm -rf '%s'", base);
    cr_assert(eq(int, system(command), 0));
    return status;
}

static struct conn *connect_to_it(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct conn *c = NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    cr_assert(eq(int, connect(fd, (struct sockaddr *)&address, sizeof(address)), 0));
    cr_assert(eq(int, conn_new(fd, NULL, &c), 0));
    return c;
}

static void send_request(struct conn *c, uint32_t id, const char *method)
{
    message_begin_request(&writer, id, method);
    msgpack_pack_map(&writer.packer, 2);
    pack_key_u64(&writer.packer, "version", 1);
    pack_str(&writer.packer, "outputs");
    msgpack_pack_array(&writer.packer, 1);
    msgpack_pack_map(&writer.packer, 1);
    pack_key_str(&writer.packer, "expr", "1 + 1");
    cr_assert(eq(int, conn_send(c, writer.buffer.data, writer.buffer.size, NULL, 0), 0));
    cr_assert(eq(int, conn_flush(c), 0));
}

/* The word of the error, "ok", or "closed". */
static const char *receive(struct conn *c, uint32_t id)
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
            error_from_map(&message.error, &error);
        message_deinit(&message);
        frame_deinit(&frame, NULL);
        return error_word((int)error.status);
    }
}

static void expect(struct conn *c, const char *method, const char *outcome)
{
    static uint32_t id = 100;
    send_request(c, ++id, method);
    cr_assert(eq(str, (char *)receive(c, id), (char *)outcome));
}

static void set_up_client(void)
{
    message_writer_init(&writer);
    conn = connect_to_it();
    expect(conn, "hello", "ok");
}

Test(supervision, answers_while_no_worker_is_there_and_then_says_so, .timeout = 30)
{
    start("/bin/false", 0);
    set_up_client();
    expect(conn, "ping", "ok");
    expect(conn, "server.ops", "ok");
    expect(conn, "server.info", "ok");
    expect(conn, "job.run", "no-engine"); /* after the last attempt */
    expect(conn, "job.run", "no-engine"); /* at once */
    expect(conn, "job.plan", "no-engine");
    expect(conn, "job.list", "ok");
    conn_free(conn);
    kill(daemon_pid, SIGTERM);
    cr_assert(eq(int, exit_status(), 0));
}

Test(supervision, jobs_that_wait_are_refused_when_it_leaves, .timeout = 30)
{
    start("/bin/cat", 0); /* ends at once: it does not know the options */
    set_up_client();
    send_request(conn, 1, "job.run");
    conn_free(conn); /* its job is cancelled */
    conn = connect_to_it();
    expect(conn, "hello", "ok");
    send_request(conn, 2, "job.run");
    send_request(conn, 3, "ping");
    cr_assert(eq(str, (char *)receive(conn, 3), "ok"));
    kill(daemon_pid, SIGTERM);
    cr_assert(eq(str, (char *)receive(conn, 2), "shutting-down"));
    cr_assert(eq(str, (char *)receive(conn, 0), "closed"));
    conn_free(conn);
    cr_assert(eq(int, exit_status(), 0));
}

Test(supervision, the_first_request_is_hello, .timeout = 30)
{
    start("/bin/false", 0);
    message_writer_init(&writer);
    conn = connect_to_it();
    expect(conn, "ping", "bad-request");
    cr_assert(eq(str, (char *)receive(conn, 0), "closed"));
    conn_free(conn);
    kill(daemon_pid, SIGTERM);
    cr_assert(eq(int, exit_status(), 0));
}

Test(supervision, the_65th_session_of_a_user_is_told_why, .timeout = 30)
{
    struct conn *many[64];

    start("/bin/false", 0);
    message_writer_init(&writer);
    for (unsigned i = 0; i < 64; i++) {
        many[i] = connect_to_it();
        expect(many[i], "hello", "ok");
    }
    conn = connect_to_it();
    expect(conn, "hello", "quota-exceeded");
    cr_assert(eq(str, (char *)receive(conn, 0), "closed"));
    conn_free(conn);
    conn_free(many[0]);
    expect(many[1], "ping", "ok");
    conn = connect_to_it();
    expect(conn, "hello", "ok");
    conn_free(conn);
    for (unsigned i = 1; i < 64; i++)
        conn_free(many[i]);
    kill(daemon_pid, SIGTERM);
    cr_assert(eq(int, exit_status(), 0));
}

Test(supervision, a_private_daemon_leaves_when_idle_but_not_before, .timeout = 30)
{
    start("/bin/false", UINT64_C(200000000));
    set_up_client();
    usleep(500000);
    expect(conn, "ping", "ok");
    conn_free(conn);
    cr_assert(eq(int, exit_status(), 0));
    cr_assert(lt(int, access(path, F_OK), 0));
}

Test(supervision, a_second_signal_ends_it_at_once, .timeout = 30)
{
    start("/bin/false", 0);
    set_up_client();
    /* Stopped, so that both are there when it goes on. */
    kill(daemon_pid, SIGSTOP);
    kill(daemon_pid, SIGTERM);
    kill(daemon_pid, SIGINT);
    kill(daemon_pid, SIGCONT);
    int status = exit_status();
    bool has_exited = WIFEXITED(status);
    cr_assert(has_exited);
    conn_free(conn);
}
