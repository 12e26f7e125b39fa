/* Requests that are costly to plan, of a whole broker without a worker: what they come to does not
 * matter here, but that they are answered, in which order, and what is left of those who go. */
#include "whole.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define N_AXES 31

static struct message_writer writer;

static void send_what_was_packed(struct conn *c)
{
    cr_assert(eq(int, conn_send(c, writer.buffer.data, writer.buffer.size, NULL, 0), 0));
    cr_assert(eq(int, conn_flush(c), 0));
}

static struct conn *greet(void)
{
    struct conn *c = connect_to_it();
    message_begin_request(&writer, 1, "hello");
    msgpack_pack_map(&writer.packer, 1);
    pack_key_u64(&writer.packer, "version", PROTOCOL_VERSION);
    send_what_was_packed(c);
    cr_assert(eq(str, (char *)receive(c, 1), "ok"));
    return c;
}

static void ask(struct conn *c, uint32_t id, const char *method)
{
    message_begin_request(&writer, id, method);
    msgpack_pack_map(&writer.packer, 0);
    send_what_was_packed(c);
}

/* Few characters, but each function reads the one before it twice. */
static const char *const functions =
    "A(x)=median(x)+median(x)+median(x)+median(x);B(x)=A(x)+A(x);C(x)=B(x)+B(x);D(x)=C(x)+C(x);"
    "E(x)=D(x)+D(x);F(x)=E(x)+E(x);G(x)=F(x)+F(x);H(x)=G(x)+G(x);I(x)=H(x)+H(x);I(a)";
static bool has_functions;

/* A reduction along each axis of an array that has many; or functions. */
static void pack_costly(msgpack_packer *p, const char *key)
{
    char expr[2048] = "";
    int n_axes = has_functions ? 1 : N_AXES;
    for (int axis = 0, n = 0; axis < N_AXES; axis++)
        n += snprintf(expr + n, sizeof(expr) - (size_t)n, "%svar(a,axis=%d,keepdims=True)",
                      axis ? "+" : "", axis);
    msgpack_pack_map(p, key ? 3 : 2);
    if (key)
        pack_key_str(p, "key", key);
    pack_str(p, "outputs");
    msgpack_pack_array(p, 1);
    msgpack_pack_map(p, 1);
    pack_key_str(p, "expr", has_functions ? functions : expr);
    pack_str(p, "args");
    msgpack_pack_map(p, 1);
    pack_str(p, "a");
    msgpack_pack_map(p, 2);
    pack_key_str(p, "dtype", "<f4");
    pack_str(p, "shape");
    msgpack_pack_array(p, (size_t)n_axes);
    for (int i = 0; i < n_axes; i++)
        msgpack_pack_int(p, 2);
}

static void plan(struct conn *c, uint32_t id)
{
    message_begin_request(&writer, id, "job.plan");
    pack_costly(&writer.packer, NULL);
    send_what_was_packed(c);
}

static void end_it(void)
{
    kill(daemon_pid, SIGTERM);
    cr_assert(eq(int, exit_status(), 0)); /* no charge, no reference was left */
}

static void init(void)
{
    message_writer_init(&writer);
    start("/bin/cat", 0); /* ends at once, comes again: workers come and go while it plans */
}

TestSuite(planner, .init = init, .timeout = 60);

Test(planner, answers_the_requests_of_a_connection_in_their_order)
{
    struct conn *c = greet();
    for (uint32_t id = 10; id < 16; id += 2) {
        plan(c, id);
        ask(c, id + 1, "ping");
    }
    for (uint32_t id = 10; id < 16; id++)
        cr_assert(ne(str, (char *)receive(c, id), "closed"));
    conn_free(c);
    end_it();
}

/* Counted, not timed: each of them has one answer while another one's are under way. */
static void serve_others(void)
{
    struct conn *busy[8], *other = greet();
    unsigned n_before = 0;
    for (unsigned i = 0; i < ARRAY_LENGTH(busy); i++) {
        busy[i] = greet();
        for (uint32_t id = 10; id < 42; id++)
            plan(busy[i], id);
    }
    ask(other, 100, "ping");
    cr_assert(eq(str, (char *)receive(other, 100), "ok"));
    for (unsigned i = 0; i < ARRAY_LENGTH(busy); i++) {
        while (conn_receive(busy[i]) == 0)
            ;
        struct frame frame;
        for (; conn_next(busy[i], &frame) == 0; n_before++)
            frame_deinit(&frame, NULL);
        conn_free(busy[i]);
    }
    cr_assert(lt(u32, n_before, 8 * 32), "all were planned before a ping was answered");
    conn_free(other);
    end_it();
}

Test(planner, serves_others_while_it_plans)
{
    serve_others();
}

Test(planner, serves_others_while_functions_are_read)
{
    has_functions = true;
    serve_others();
}

Test(planner, drops_what_was_asked_by_those_who_go)
{
    struct conn *stays = greet();
    for (unsigned i = 0; i < 20; i++) {
        struct conn *c = greet();
        plan(c, 10);
        plan(c, 11);
        conn_free(c);
    }
    plan(stays, 10);
    cr_assert(ne(str, (char *)receive(stays, 10), "closed"));
    conn_free(stays);
    end_it();
}

Test(planner, answers_who_waits_when_it_leaves)
{
    struct conn *many[30];
    for (unsigned i = 0; i < ARRAY_LENGTH(many); i++) {
        many[i] = greet();
        plan(many[i], 10);
    }
    kill(daemon_pid, SIGTERM);
    for (unsigned i = 0; i < ARRAY_LENGTH(many); i++) {
        cr_assert(ne(str, (char *)receive(many[i], 10), "closed"));
        conn_free(many[i]);
    }
    cr_assert(eq(int, exit_status(), 0));
}
