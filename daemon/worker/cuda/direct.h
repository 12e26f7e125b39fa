/* Boxes of a tile that the device copies from and to clients' registered memory itself, past the
 * slot's pinned memory. Their places in the slot are taken all the same. */
#pragma once

#include "daemon/worker/cuda/registered.h"
#include "kernels/cuda/runtime.h"

#define DIRECT_MAX           64u
#define DIRECT_MIN_BYTES     (64u * 1024) /* below, a copy of its own costs more than staging */
#define DIRECT_MIN_ROW_BYTES 1024u        /* below, the link is the slower for it */

/* What lies dense in the slot, and in the client's memory in rows that are stride_bytes apart; one
 * row: dense there, too. */
struct direct_rows {
    char *client;
    uint64_t n_rows, row_bytes, stride_bytes;
};

struct direct_piece {
    uint64_t offset; /* in the slot */
    struct direct_rows rows;
    struct registered_window *window; /* held; NULL: not any more */
};

/* In the order of their offsets. Not thread-safe; may go from thread to thread. */
struct direct {
    unsigned n;
    struct direct_piece pieces[DIRECT_MAX];
};

/* Whether the rows will go that way; then they are held. r may be NULL. */
bool direct_take(struct direct *d, struct registered *r, const struct direct_rows *rows,
                 uint64_t offset, uint64_t job);
/* Whether the box at this offset went that way; as long as `d` is not begun anew. */
bool direct_has(const struct direct *d, uint64_t offset);
/* Nothing of it is with the device. direct_has() goes on telling what it told. */
void direct_release(struct direct *d, struct registered *r);

/* Puts the copies of [offset, offset + n_bytes) of the slot into the stream, pieces from and to
 * their clients. 0 or a runtime error. */
int direct_copy_to(const struct direct *d, char *device_slot, const char *slot, uint64_t n_bytes,
                   cuda_stream stream) GAD_MUST_CHECK;
int direct_copy_from(const struct direct *d, char *slot, const char *device_slot, uint64_t offset,
                     uint64_t n_bytes, cuda_stream stream) GAD_MUST_CHECK;
