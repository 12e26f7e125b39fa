/* The last word of a worker that cannot start: worker.failed, so that the broker can tell people
 * why in the worker's words.
 *
 * It goes out before there is a worker with its loop, so the connection is made for it alone, on a
 * copy of the descriptor. It is the first message and a small one: the socket has room for it.
 *
 * Called by the programs, which then leave with one of daemon/worker_exit.h.
 */
#include "daemon/worker/failed.h"
#include "proto/wire/conn.h"
#include "proto/wire/message.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <poll.h>

static void pack_failed(struct message_writer *writer, const struct gad_error *error)
{
    unsigned n_pairs = 2 + (error->expected[0] != '\0') + (error->found[0] != '\0');
    message_begin_notification(writer, "worker.failed");
    msgpack_pack_map(&writer->packer, n_pairs);
    pack_key_str(&writer->packer, "code", error_word(error->status));
    pack_key_str(&writer->packer, "message", error->message);
    if (error->expected[0])
        pack_key_str(&writer->packer, "expected", error->expected);
    if (error->found[0])
        pack_key_str(&writer->packer, "found", error->found);
}

static int flush_all(struct conn *conn)
{
    int r;
    while ((r = conn_flush(conn)) == -EAGAIN) {
        struct pollfd broker = {.fd = conn_fd(conn), .events = POLLOUT};
        if (poll(&broker, 1, -1) < 0 && errno != EINTR)
            return -errno;
    }
    return r;
}

int worker_send_failed(int fd, const struct gad_error *error)
{
    struct message_writer writer;
    struct conn *conn = NULL;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return -errno;
    int r = conn_new(copy, NULL, &conn);
    if (r)
        return r;
    message_writer_init(&writer);
    pack_failed(&writer, error);
    r = conn_send(conn, writer.buffer.data, writer.buffer.size, NULL, 0);
    if (!r)
        r = flush_all(conn);
    message_writer_deinit(&writer);
    conn_free(conn);
    return r;
}
