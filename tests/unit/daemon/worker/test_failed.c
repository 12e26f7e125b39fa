#include "daemon/worker/failed.h"
#include "proto/wire/conn.h"
#include "proto/wire/map.h"
#include "proto/wire/message.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct gad_error told;

/* What arrives at the broker's end of the socket. */
static void send_and_receive(const struct gad_error *error)
{
    int fds[2];
    struct conn *conn;
    struct frame frame;
    struct message message;
    bool has_id;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0));
    cr_assert(eq(int, worker_send_failed(fds[1], error), 0));
    cr_assert(ge(int, fcntl(fds[1], F_GETFD), 0)); /* still the caller's */
    close(fds[1]);
    cr_assert(eq(int, conn_new(fds[0], NULL, &conn), 0));
    cr_assert(eq(int, conn_receive(conn), 0));
    cr_assert(eq(int, conn_next(conn, &frame), 0));
    cr_assert(eq(int, message_decode(frame.body, frame.size_bytes, &message, &has_id, NULL), 0));
    cr_assert(eq(int, message.kind, MESSAGE_NOTIFICATION));
    cr_assert(message_is(&message, "worker.failed"));
    map_error(&message.params, &told);
    message_deinit(&message);
    frame_deinit(&frame, NULL);
    cr_assert(eq(int, conn_receive(conn), -EPIPE)); /* nothing else was said */
    conn_free(conn);
}

Test(failed, says_code_message_and_both_sides)
{
    struct gad_error error;
    error_set(&error, GAD_NO_ENGINE, "engine", "there is no device %d: the driver shows %d", 7, 2);
    error_expected(&error, "0 to 1");
    error_found(&error, "7");
    send_and_receive(&error);
    cr_assert(eq(int, told.status, GAD_NO_ENGINE));
    cr_assert(eq(str, (char *)told.message, (char *)"there is no device 7: the driver shows 2"));
    cr_assert(eq(str, (char *)told.expected, (char *)"0 to 1"));
    cr_assert(eq(str, (char *)told.found, (char *)"7"));
}

Test(failed, leaves_out_what_is_not_known)
{
    struct gad_error error;
    error_set(&error, GAD_DEVICE_FAULT, "engine", "running every kernel once: no");
    send_and_receive(&error);
    cr_assert(eq(int, told.status, GAD_DEVICE_FAULT));
    cr_assert(eq(str, (char *)told.expected, (char *)""));
    cr_assert(eq(str, (char *)told.found, (char *)""));
}

Test(failed, a_broker_that_is_gone_is_no_catastrophe)
{
    struct gad_error error;
    int fds[2];
    error_set(&error, GAD_NO_MEMORY, "device-bytes", "no");
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0));
    close(fds[0]);
    cr_assert(lt(int, worker_send_failed(fds[1], &error), 0));
    close(fds[1]);
}
