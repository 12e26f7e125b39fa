/* A child of fork() gives up what its parent had.
 *
 * The child has copies of the parent's descriptors, mappings and memory, and none of its threads.
 * Descriptors matter: while a copy of the socket is open the daemon does not notice that the parent
 * is gone, and a copy of a region keeps its memory. So they are closed, all that the client holds.
 * Mappings stay, since arrays of the program may be in them, and so does the heap: freeing would
 * need locks that another thread of the parent may have held. The copy of the client is leaked; the
 * parent's own is not touched by any of this.
 *
 * Reads the client's lists as fork() found them. Called by the child, once: the library has no
 * handler for fork(), a program calls gad_forget() itself, as Python does (_session.py).
 */
#include "client/lib/connection/client.h"
#include "client/lib/jobs/job.h"
#include "client/lib/memory/pump.h"
#include "proto/util.h"

static void forget_ring(struct client_ring *ring)
{
    close_fd(&ring->fd);
    close_fd(&ring->request_fd);
    close_fd(&ring->done_fd);
}

void gad_forget(struct gad_client *client)
{
    if (!client)
        return;
    if (client->conn)
        conn_forget(client->conn);
    if (client->pump)
        pump_forget(client->pump);
    for (struct gad_job *job = client->jobs; job; job = job->next)
        for (struct feed *feed = job->feeds; feed; feed = feed->next)
            forget_ring(&feed->ring);
    for (unsigned i = 0; i < client->rings.n_kept; i++)
        forget_ring(&client->rings.kept[i]);
    for (struct region *region = client->arena.regions; region; region = region->next)
        close_fd(&region->fd);
}
