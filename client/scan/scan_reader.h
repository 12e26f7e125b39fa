/* Reading from a shared scan: every chunk once, in whatever order it comes, and by oneself what the
 * scan does not bring. */
#pragma once

#include "client/scan/scan_description.h"

struct scan_reader;

/* Takes the socket, of which the daemon has the other end: waits until the process greets, at most
 * timeout_ms. The description and the file stay the caller's. -ETIMEDOUT, -EPROTO, -EPIPE; others
 * of the system: there is no scan, and nothing else was done. */
int scan_reader_new(int socket_take, const struct scan_description *description, int file_fd,
                    int timeout_ms, struct scan_reader **ret_reader) GAD_MUST_CHECK;
struct scan_reader *scan_reader_free(struct scan_reader *reader); /* NULL */

/* How the reader gets to another process when its own has gone: 0, and a socket of which the daemon
 * has the other end. Called by who reads, a few times in a circle at most. */
typedef int scan_rejoin_fn(void *state, int *ret_socket);
void scan_reader_set_rejoin(struct scan_reader *reader, scan_rejoin_fn *rejoin, void *state);

/* Gets a chunk. elements: NULL where it was never written, or where `fault` says what is wrong.
 * They may be overwritten meanwhile: then the chunk comes once more, and what was taken the first
 * time is to be replaced. Not 0: the end. */
typedef int scan_use_fn(void *state, uint64_t index, const void *elements,
                        const struct scan_fault *fault);

struct scan_circle {
    uint64_t n_shared, n_own; /* chunks, by who decoded them */
};

/* Every chunk. is_cancelled (may be NULL) is looked at between chunks. What `use` said; -ENOMEM;
 * -ECANCELED. */
int scan_reader_circle(struct scan_reader *reader, scan_use_fn *use, void *state,
                       const atomic_bool *is_cancelled,
                       struct scan_circle *ret_circle) GAD_MUST_CHECK;
