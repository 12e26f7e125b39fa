/* A shared scan at work: its ring, the threads that decode into it, its readers' sockets. */
#pragma once

#include "client/scan/scan_description.h"

struct scan_server;

/* "", the only path that it has (scan_confine.h). */
extern const char scan_server_no_path[1];

struct scan_numbers {
    uint64_t n_decoded, n_failed; /* chunks, since it began */
    uint64_t n_taken;             /* by all readers together */
};

/* Makes the ring and starts the threads, which wait. description may be filled until the first
 * reader joins. -errno. */
int scan_server_new(const struct scan_head *head, const struct scan_description *description,
                    unsigned n_threads, struct scan_server **ret_server) GAD_MUST_CHECK;
struct scan_server *scan_server_free(struct scan_server *server); /* NULL */

/* Takes the socket, on which the reader is greeted when it has shown all files: its place, to be
 * passed to the others. -ENOSPC: there are too many. */
int scan_server_join(struct scan_server *server, int socket_take,
                     unsigned *ret_place) GAD_MUST_CHECK;
void scan_server_leave(struct scan_server *server, unsigned place);
int scan_server_socket(const struct scan_server *server, unsigned place);
/* Something is to be read from the reader's socket. 0, or the reader is to leave. */
int scan_server_hear(struct scan_server *server, unsigned place) GAD_MUST_CHECK;

void scan_server_count(struct scan_server *server, struct scan_numbers *ret);
