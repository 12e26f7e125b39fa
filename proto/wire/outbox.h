/* What a connection will send: bytes, bytes of others, descriptors, in one order. Inside proto/. */
#pragma once

#include "proto/wire/buffer.h"
#include "proto/wire/shared.h"

#include <sys/uio.h>

struct outbox_fds;
struct outbox_piece;

struct outbox {
    struct buffer own;   /* copied bytes, without those of pieces */
    uint64_t begin, end; /* positions in the stream: sent so far, queued so far */
    struct outbox_piece *pieces, **pieces_end;
    struct outbox_fds *batches, **batches_end;
};

void outbox_init(struct outbox *outbox);
/* Unsent descriptors are closed with close_fd. */
void outbox_deinit(struct outbox *outbox, void (*close_fd)(int fd));
/* For a child of fork(): closes its copies of the descriptors. */
void outbox_forget(struct outbox *outbox);

/* Room for n copied bytes: 0 or -ENOMEM. Then outbox_add() cannot fail. */
int outbox_reserve(struct outbox *outbox, size_t n_bytes) GAD_MUST_CHECK;
void outbox_add(struct outbox *outbox, const void *bytes, size_t n_bytes);
/* Bytes of somebody's, with a reference, behind what is there, in a piece that was made before;
 * NULL: without memory. */
struct outbox_piece *outbox_make_piece(void);
void outbox_add_shared(struct outbox *outbox, struct outbox_piece *piece_take,
                       struct shared *shared, const void *bytes, size_t n_bytes);
/* Descriptors that go with the next byte that is added. 0 or -ENOMEM: they stay the caller's. */
int outbox_add_fds(struct outbox *outbox, const int *fds_take, unsigned n_fds) GAD_MUST_CHECK;

size_t outbox_n_bytes(const struct outbox *outbox);     /* all that waits */
size_t outbox_n_own_bytes(const struct outbox *outbox); /* copied: memory of this queue's */

/* What one sendmsg() may send: parts up to the next descriptors, and those that go with the first
 * byte (*ret_n_fds 0: none). The number of parts. */
unsigned outbox_gather(const struct outbox *outbox, struct iovec *parts, unsigned max_parts,
                       const int **ret_fds, unsigned *ret_n_fds);
/* n bytes were sent, with the descriptors of the first, which are closed. */
void outbox_sent(struct outbox *outbox, size_t n_bytes, void (*close_fd)(int fd));
