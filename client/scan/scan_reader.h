/* Reading from a shared scan: every chunk once, in whatever order it comes, and word of those that
 * the scan does not bring. */
#pragma once

#include "client/scan/scan_description.h"

struct scan_reader;

/* Opens a file of the description: a descriptor that the reader may close, or -errno. */
typedef int scan_open_fn(void *state, uint32_t file);

/* How a reader gets to a process: 0, and a socket of which the daemon has the other end. Called by
 * who reads, a few times in a circle at most. */
typedef int scan_rejoin_fn(void *state, int *ret_socket);

struct scan_access {
    scan_open_fn *open;
    scan_rejoin_fn *rejoin; /* when the process has gone; NULL: there is no other one */
    void *state;
};

/* Takes the socket, of which the daemon has the other end: shows its process all files and waits
 * until that greets, at most timeout_ms. The description stays the caller's. -ETIMEDOUT, -EPROTO,
 * -EPIPE, -ESTALE (a file is another one than described); others of the system: there is no scan,
 * and nothing else was done. */
int scan_reader_new(int socket_take, const struct scan_description *description,
                    const struct scan_access *access, int timeout_ms,
                    struct scan_reader **ret_reader) GAD_MUST_CHECK;
struct scan_reader *scan_reader_free(struct scan_reader *reader); /* NULL */

/* Gets a chunk. They may be overwritten meanwhile: then the chunk comes once more, and what was
 * taken the first time is to be replaced. elements NULL: it is not brought, as it was never
 * written, cannot be decoded or was missed: who wants it has to read it by itself; such a one comes
 * once. Not 0: the end. */
typedef int scan_use_fn(void *state, uint64_t index, const void *elements);

struct scan_circle {
    uint64_t n_shared, n_own; /* chunks that were brought, and that were not */
};

/* Every chunk. is_cancelled (may be NULL) is looked at between chunks. What `use` said;
 * -ECANCELED. */
int scan_reader_circle(struct scan_reader *reader, scan_use_fn *use, void *state,
                       const atomic_bool *is_cancelled,
                       struct scan_circle *ret_circle) GAD_MUST_CHECK;
