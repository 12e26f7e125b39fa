/* Joining a shared scan: the description is made, and one end of a pair of sockets handed over with
 * it and the file. The daemon answers when the process has greeted at the other end.
 *
 * Called by those who read rows.
 */
#include "client/lib/scans/scan_join.h"
#include "client/clock.h"
#include "client/lib/connection/client.h"
#include "proto/util.h"

#include <fcntl.h>
#include <sys/socket.h>

static int ask(struct gad_client *client, int *fds_take, struct gad_error *error)
{
    struct client_call call;
    uint32_t id;
    int r = client_ensure(client, clock_deadline_ms(client->timeout_ms), 0, error);
    if (r == 0)
        r = client_begin_call(client, "scan.join", &call, &id, error);
    if (r) {
        for (unsigned i = 0; i < 3; i++)
            close_fd(&fds_take[i]);
        return r;
    }
    msgpack_pack_map(&client->writer.packer, 0);
    return client_finish_call(client, &call, id, fds_take, 3, clock_deadline_ms(client->answer_ms),
                              NULL, error);
}

int client_ask_scan(struct gad_client *client, const struct scan_description *description,
                    int file_fd, int *ret_socket, struct gad_error *error)
{
    int pair[2];
    _cleanup_fd_ int described = -1, file = fcntl(file_fd, F_DUPFD_CLOEXEC, 3);
    if (file < 0)
        return error_from_errno(error, errno, "file", "dup");
    int r = scan_description_make(description, &described, error);
    if (r)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_from_errno(error, errno, "socket", "socketpair");
    int fds[] = {steal_fd(&file), steal_fd(&described), pair[1]};
    _cleanup_fd_ int ours = pair[0];
    r = ask(client, fds, error);
    if (r == 0)
        *ret_socket = steal_fd(&ours);
    return r;
}

int client_join_scan(struct gad_client *client, const struct scan_description *description,
                     int file_fd, struct scan_reader **ret_reader, struct gad_error *error)
{
    int socket, r = client_ask_scan(client, description, file_fd, &socket, error);
    if (r)
        return r;
    r = scan_reader_new(socket, description, file_fd, client->answer_ms, ret_reader);
    return r < 0 ? error_from_errno(error, -r, "socket", "the shared scan") : 0;
}
