/* The whole broker without a worker that works: it answers, says what is wrong, and leaves. */
#include "whole.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

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

static struct conn *conn;
static struct message_writer writer;

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

/* 64 and, to look and cancel, 8 in reserve. */
Test(supervision, the_65th_session_of_a_user_may_only_look_the_73rd_is_told_why, .timeout = 30)
{
    struct conn *many[72];

    start("/bin/false", 0);
    message_writer_init(&writer);
    for (unsigned i = 0; i < 72; i++) {
        many[i] = connect_to_it();
        expect(many[i], "hello", "ok");
    }
    conn = connect_to_it();
    expect(conn, "hello", "quota-exceeded");
    cr_assert(eq(str, (char *)receive(conn, 0), "closed"));
    conn_free(conn);
    expect(many[64], "ping", "ok");
    expect(many[64], "job.list", "ok");
    expect(many[64], "job.run", "quota-exceeded");
    cr_assert(eq(str, (char *)receive(many[64], 0), "closed"));
    conn_free(many[0]);
    conn_free(many[64]);
    expect(many[1], "ping", "ok");
    conn = connect_to_it();
    expect(conn, "hello", "ok");
    conn_free(conn);
    for (unsigned i = 1; i < 72; i++)
        if (i != 64)
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
