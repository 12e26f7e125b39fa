/* Joining a shared scan: the description is made, and one end of a pair of sockets handed over with
 * it. The daemon answers when the process has it, which then is shown the files.
 *
 * Called by those who read rows.
 */
#include "client/lib/scans/scan_join.h"
#include "client/clock.h"
#include "client/lib/connection/client.h"
#include "proto/util.h"

#include <sys/socket.h>
#include <unistd.h>

#define N_FDS 2u /* the description, a socket */

static int ask(struct gad_client *client, int *fds_take, struct gad_error *error)
{
    struct client_call call;
    uint32_t id;
    int r = client_ensure(client, clock_deadline_ms(client->timeout_ms), 0, error);
    if (r == 0)
        r = client_begin_call(client, "scan.join", &call, &id, error);
    if (r) {
        for (unsigned i = 0; i < N_FDS; i++)
            close_fd(&fds_take[i]);
        return r;
    }
    msgpack_pack_map(&client->writer.packer, 0);
    return client_finish_call(client, &call, id, fds_take, N_FDS,
                              clock_deadline_ms(client->answer_ms), NULL, error);
}

int client_ask_scan(struct gad_client *client, const struct scan_description *description,
                    int *ret_socket, struct gad_error *error)
{
    int pair[2], described;
    int r = scan_description_make(description, &described, error);
    if (r)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        r = error_from_errno(error, errno, "socket", "socketpair");
        close(described);
        return r;
    }
    int fds[N_FDS] = {described, pair[1]};
    _cleanup_fd_ int ours = pair[0];
    r = ask(client, fds, error);
    if (r == 0)
        *ret_socket = steal_fd(&ours);
    return r;
}

int client_join_scan(struct gad_client *client, const struct scan_description *description,
                     const struct scan_access *access, struct scan_reader **ret_reader,
                     struct gad_error *error)
{
    int socket, r = client_ask_scan(client, description, &socket, error);
    if (r)
        return r;
    r = scan_reader_new(socket, description, access, client->answer_ms, ret_reader);
    return r < 0 ? error_from_errno(error, -r, "socket", "the shared scan") : 0;
}
