/* The queue of what a connection will send.
 *
 *     own:      [ frame ][ frame's head ]             [ frame ][ frame ]
 *     pieces:                            [ shared.... ]
 *     batches:  fds                                            fds
 *               +------------------------------------------------------> position in the stream
 *               begin                                                 end
 *
 * Most bytes are copied into one buffer. Large ones that many receive are not: a piece says where
 * in the stream they belong, and holds a reference until they are sent. A batch holds descriptors,
 * with the position of the byte that they go with. A sendmsg() never crosses the beginning of a
 * batch, and carries the batch's descriptors when it starts there. The kernel attaches them to the
 * first byte it takes, so whatever was written, they are gone: never twice.
 *
 * Invariants: pieces and batches are in the order of their positions, all in [begin, end]; what of
 * [begin, end) lies in no piece is in `own`.
 *
 * Called by conn.c.
 */
#include "proto/wire/outbox.h"

#include "proto/util.h"

#include <assert.h>
#include <string.h>

struct outbox_piece {
    struct outbox_piece *next;
    uint64_t position;
    struct shared *shared;
    const char *bytes;
    size_t n_bytes;
};

struct outbox_fds {
    struct outbox_fds *next;
    uint64_t position;
    unsigned n_fds;
    int fds[];
};

void outbox_init(struct outbox *outbox)
{
    *outbox = (struct outbox){0};
    outbox->pieces_end = &outbox->pieces;
    outbox->batches_end = &outbox->batches;
}

static void drop_first_piece(struct outbox *outbox)
{
    struct outbox_piece *piece = outbox->pieces;
    outbox->pieces = piece->next;
    if (outbox->pieces == NULL)
        outbox->pieces_end = &outbox->pieces;
    shared_unref(piece->shared);
    free(piece);
}

static void drop_first_batch(struct outbox *outbox, void (*close_fd_)(int fd))
{
    struct outbox_fds *batch = outbox->batches;
    outbox->batches = batch->next;
    if (outbox->batches == NULL)
        outbox->batches_end = &outbox->batches;
    for (unsigned i = 0; i < batch->n_fds; i++)
        close_fd_(batch->fds[i]);
    free(batch);
}

void outbox_deinit(struct outbox *outbox, void (*close_fd_)(int fd))
{
    while (outbox->batches != NULL)
        drop_first_batch(outbox, close_fd_);
    while (outbox->pieces != NULL)
        drop_first_piece(outbox);
    buffer_deinit(&outbox->own);
}

void outbox_forget(struct outbox *outbox)
{
    for (struct outbox_fds *batch = outbox->batches; batch != NULL; batch = batch->next)
        for (unsigned i = 0; i < batch->n_fds; i++)
            close_fd(&batch->fds[i]);
}

int outbox_reserve(struct outbox *outbox, size_t n_bytes)
{
    return buffer_reserve(&outbox->own, n_bytes);
}

void outbox_add(struct outbox *outbox, const void *bytes, size_t n_bytes)
{
    if (n_bytes == 0)
        return;
    memcpy(outbox->own.bytes + outbox->own.end, bytes, n_bytes);
    buffer_produced(&outbox->own, n_bytes);
    outbox->end += n_bytes;
}

struct outbox_piece *outbox_make_piece(void)
{
    return malloc(sizeof(struct outbox_piece));
}

void outbox_add_shared(struct outbox *outbox, struct outbox_piece *piece, struct shared *shared,
                       const void *bytes, size_t n_bytes)
{
    if (n_bytes == 0) {
        free(piece);
        return;
    }
    *piece = (struct outbox_piece){
        .position = outbox->end, .shared = shared, .bytes = bytes, .n_bytes = n_bytes};
    shared_ref(shared);
    *outbox->pieces_end = piece;
    outbox->pieces_end = &piece->next;
    outbox->end += n_bytes;
}

int outbox_add_fds(struct outbox *outbox, const int *fds_take, unsigned n_fds)
{
    struct outbox_fds *batch = malloc(sizeof(*batch) + n_fds * sizeof(int));
    if (batch == NULL)
        return -ENOMEM;
    batch->next = NULL;
    batch->position = outbox->end;
    batch->n_fds = n_fds;
    memcpy(batch->fds, fds_take, n_fds * sizeof(int));
    *outbox->batches_end = batch;
    outbox->batches_end = &batch->next;
    return 0;
}

size_t outbox_n_bytes(const struct outbox *outbox)
{
    return (size_t)(outbox->end - outbox->begin);
}

size_t outbox_n_own_bytes(const struct outbox *outbox)
{
    return buffer_n_bytes(&outbox->own);
}

unsigned outbox_gather(const struct outbox *outbox, struct iovec *parts, unsigned max_parts,
                       const int **ret_fds, unsigned *ret_n_fds)
{
    const struct outbox_fds *batch = outbox->batches;
    const struct outbox_piece *piece = outbox->pieces;
    uint8_t *own = outbox->own.bytes + outbox->own.start;
    uint64_t at = outbox->begin, end = outbox->end;
    unsigned n_parts = 0;
    *ret_n_fds = 0;
    if (batch != NULL && batch->position == at) {
        *ret_fds = batch->fds;
        *ret_n_fds = batch->n_fds;
        batch = batch->next;
    }
    if (batch != NULL)
        end = batch->position;
    while (at < end && n_parts < max_parts) {
        struct iovec *part = &parts[n_parts++];
        if (piece != NULL && piece->position == at) {
            *part = (struct iovec){(void *)piece->bytes, min_u64(piece->n_bytes, end - at)};
            piece = piece->next;
        } else {
            *part = (struct iovec){own, (piece ? min_u64(piece->position, end) : end) - at};
            own += part->iov_len;
        }
        at += part->iov_len;
    }
    return n_parts;
}

/* At most n bytes from the front, all of one kind; how many. */
static size_t consume(struct outbox *outbox, size_t n_bytes)
{
    struct outbox_piece *piece = outbox->pieces;
    if (piece == NULL || piece->position > outbox->begin) {
        size_t n = min_u64(n_bytes, (piece ? piece->position : outbox->end) - outbox->begin);
        outbox->begin += n;
        buffer_consumed(&outbox->own, n);
        return n;
    }
    size_t n = min_u64(n_bytes, piece->n_bytes);
    outbox->begin += n;
    piece->position += n;
    piece->bytes += n;
    piece->n_bytes -= n;
    if (piece->n_bytes == 0)
        drop_first_piece(outbox);
    return n;
}

void outbox_sent(struct outbox *outbox, size_t n_bytes, void (*close_fd_)(int fd))
{
    assert(n_bytes <= outbox_n_bytes(outbox));
    if (n_bytes > 0 && outbox->batches != NULL && outbox->batches->position == outbox->begin)
        drop_first_batch(outbox, close_fd_);
    while (n_bytes > 0)
        n_bytes -= consume(outbox, n_bytes);
}
