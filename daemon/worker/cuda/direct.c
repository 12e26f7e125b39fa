/* See direct.h. What lies between two pieces goes through the slot in one copy:
 *
 *     slot:    | header, grains | input 0, input 0, ... | input 1, input 1, ... | ...
 *     copies:  `--- slot ------' `------- client ------' `------- slot -------' ...
 *
 * Places begin at multiples of ENGINE_SLOT_ALIGN, so what lies between two pieces and is less than
 * that is nobody's. Pieces that follow one another in the slot and in the client's memory are one.
 *
 * Called by the CUDA engine's tiles and its pipeline.
 */
#include "daemon/worker/cuda/direct.h"
#include "kernels/cuda/tile.h"

#include <string.h>

bool direct_take(struct direct *d, struct registered *r, char *client, uint64_t n_bytes,
                 uint64_t offset, uint64_t job)
{
    if (n_bytes < DIRECT_MIN_BYTES)
        return false;
    unsigned at = d->n;
    while (at > 0 && d->pieces[at - 1].offset > offset)
        at--;
    struct direct_piece *last = at > 0 ? &d->pieces[at - 1] : NULL;
    struct registered_window *window = registered_hold(r, client, n_bytes, job);
    if (!window)
        return false;
    if (last && last->window == window && last->offset + last->n_bytes == offset &&
        last->client + last->n_bytes == client) {
        last->n_bytes += n_bytes;
        registered_release(r, window); /* held once a piece */
        return true;
    }
    if (d->n == DIRECT_MAX) {
        registered_release(r, window);
        return false;
    }
    memmove(&d->pieces[at + 1], &d->pieces[at], (d->n - at) * sizeof(d->pieces[0]));
    d->pieces[at] = (struct direct_piece){offset, n_bytes, client, window};
    d->n++;
    return true;
}

bool direct_has(const struct direct *d, uint64_t offset)
{
    for (unsigned i = 0; i < d->n; i++)
        if (offset - d->pieces[i].offset < d->pieces[i].n_bytes)
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
            r = cuda_copy_to_device(device_slot + p->offset, p->client, p->n_bytes, stream);
        done = p->offset + p->n_bytes;
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
            r = cuda_copy_from_device(p->client, device_slot + p->offset, p->n_bytes, stream);
        done = p->offset + p->n_bytes;
    }
    return r ? r : copy_from(slot, device_slot, done, offset + n_bytes, false, stream);
}
