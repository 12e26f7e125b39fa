/* See direct.h. What lies between two pieces goes through the slot in one copy:
 *
 *     slot:    | header, grains | input 0, input 0, ... | input 1, input 1, ... | ...
 *     copies:  `--- slot ------' `------- client ------' `------- slot -------' ...
 *
 * Places begin at multiples of ENGINE_SLOT_ALIGN, so what lies between two pieces and is less than
 * that is nobody's. Pieces that follow one another in the slot and in the client's memory are one.
 * A part of a matrix's columns is rows in the client's memory, and dense in the slot.
 *
 * Called by the CUDA engine's tiles and its pipeline.
 */
#include "daemon/worker/cuda/direct.h"
#include "kernels/cuda/tile.h"

#include <string.h>

static uint64_t piece_bytes(const struct direct_piece *p)
{
    return p->rows.n_rows * p->rows.row_bytes;
}

/* Whether the rows go on where the piece ends, in the slot and in the client's memory. */
static bool extend(struct direct_piece *p, const struct direct_rows *rows, uint64_t offset)
{
    struct direct_rows *own = &p->rows;
    bool is_dense = own->n_rows == 1 && rows->n_rows == 1;
    bool is_alike = own->n_rows > 1 && rows->n_rows > 1 && own->row_bytes == rows->row_bytes &&
                    own->stride_bytes == rows->stride_bytes;
    uint64_t n_bytes = is_dense ? own->row_bytes : own->n_rows * own->stride_bytes;
    if ((!is_dense && !is_alike) || p->offset + piece_bytes(p) != offset ||
        own->client + n_bytes != rows->client)
        return false;
    if (is_dense)
        own->row_bytes += rows->row_bytes;
    else
        own->n_rows += rows->n_rows;
    return true;
}

bool direct_take(struct direct *d, struct registered *r, const struct direct_rows *rows,
                 uint64_t offset, uint64_t job)
{
    uint64_t span_bytes = (rows->n_rows - 1) * rows->stride_bytes + rows->row_bytes;
    if (rows->n_rows * rows->row_bytes < DIRECT_MIN_BYTES ||
        (rows->n_rows > 1 && (rows->row_bytes < DIRECT_MIN_ROW_BYTES ||
                              rows->stride_bytes > INT32_MAX))) /* the driver's limit */
        return false;
    unsigned at = d->n;
    while (at > 0 && d->pieces[at - 1].offset > offset)
        at--;
    struct registered_window *window = registered_hold(r, rows->client, span_bytes, job);
    if (!window)
        return false;
    bool is_extended =
        at > 0 && d->pieces[at - 1].window == window && extend(&d->pieces[at - 1], rows, offset);
    if (is_extended || d->n == DIRECT_MAX) {
        registered_release(r, window); /* held once a piece */
        return is_extended;
    }
    memmove(&d->pieces[at + 1], &d->pieces[at], (d->n - at) * sizeof(d->pieces[0]));
    d->pieces[at] = (struct direct_piece){offset, *rows, window};
    d->n++;
    return true;
}

bool direct_has(const struct direct *d, uint64_t offset)
{
    for (unsigned i = 0; i < d->n; i++)
        if (offset - d->pieces[i].offset < piece_bytes(&d->pieces[i]))
            return true;
    return false;
}

void direct_release(struct direct *d, struct registered *r)
{
    for (unsigned i = 0; i < d->n; i++) {
        if (d->pieces[i].window)
            registered_release(r, d->pieces[i].window);
        d->pieces[i].window = NULL;
    }
}

/* [done, until) of the slot, where that is somebody's. */
static int copy_to(char *device_slot, const char *slot, uint64_t done, uint64_t until,
                   bool is_between, cuda_stream stream)
{
    if (until <= done || (is_between && until - done < ENGINE_SLOT_ALIGN))
        return 0;
    return cuda_copy_to_device(device_slot + done, slot + done, until - done, stream);
}

int direct_copy_to(const struct direct *d, char *device_slot, const char *slot, uint64_t n_bytes,
                   cuda_stream stream)
{
    uint64_t done = 0;
    int r = 0;
    for (unsigned i = 0; i < d->n && !r; i++) {
        const struct direct_piece *p = &d->pieces[i];
        r = copy_to(device_slot, slot, done, p->offset, i > 0, stream);
        if (!r)
            r = cuda_copy_rows_to_device(device_slot + p->offset, p->rows.client,
                                         p->rows.stride_bytes, p->rows.row_bytes, p->rows.n_rows,
                                         stream);
        done = p->offset + piece_bytes(p);
    }
    return r ? r : copy_to(device_slot, slot, done, n_bytes, false, stream);
}

static int copy_from(char *slot, const char *device_slot, uint64_t done, uint64_t until,
                     bool is_between, cuda_stream stream)
{
    if (until <= done || (is_between && until - done < ENGINE_SLOT_ALIGN))
        return 0;
    return cuda_copy_from_device(slot + done, device_slot + done, until - done, stream);
}

int direct_copy_from(const struct direct *d, char *slot, const char *device_slot, uint64_t offset,
                     uint64_t n_bytes, cuda_stream stream)
{
    uint64_t done = offset;
    int r = 0;
    for (unsigned i = 0; i < d->n && !r; i++) {
        const struct direct_piece *p = &d->pieces[i];
        r = copy_from(slot, device_slot, done, p->offset, i > 0, stream);
        if (!r)
            r = cuda_copy_rows_from_device(p->rows.client, p->rows.stride_bytes,
                                           device_slot + p->offset, p->rows.row_bytes,
                                           p->rows.n_rows, stream);
        done = p->offset + piece_bytes(p);
    }
    return r ? r : copy_from(slot, device_slot, done, offset + n_bytes, false, stream);
}
