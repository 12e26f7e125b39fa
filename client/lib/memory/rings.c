/* The memory of rings: made, kept from one job to the next, given back.
 *
 * Fresh shared memory is slow: reserving a ring, the first touch of its pages by either side and
 * giving them back take longer than a job of some MiB. So the rings of a job that went well are
 * kept for the next one of the same client, at most RINGS_KEPT, the larger ones first; those of a
 * question for a plan, too.
 *
 * A ring is kept only after the daemon's answer that the job is done: its worker has let go of the
 * memory by then. After anything else (a lost connection, a lost worker, a job that failed)
 * somebody may still write to it, and it is closed. A kept ring has no request open: `done` is made
 * equal to `request` in every entry. The numbers themselves go on, since the next worker counts
 * from there, and so do the eventfds' counts, which nobody reads.
 *
 * Called by feed.c, in the caller's thread.
 */
#include "client/lib/memory/rings.h"
#include "client/lib/memory/region.h"
#include "proto/wire/ring.h"
#include "proto/util.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

static const struct client_ring NO_RING = {.fd = -1, .request_fd = -1, .done_fd = -1};

void client_ring_close(struct client_ring *ring)
{
    if (ring->memory)
        munmap(ring->memory, (size_t)ring->n_bytes);
    close_fd(&ring->fd);
    close_fd(&ring->request_fd);
    close_fd(&ring->done_fd);
    *ring = NO_RING;
}

/* On failure the ring is left for client_ring_close(). */
static int ring_make(struct client_ring *ring, struct gad_error *error)
{
    ring->n_bytes = ring_size_bytes(ring->n_slots, ring->slot_bytes);
    int r = region_map_memfd("gpuarrayd-ring", ring->n_bytes, &ring->fd, &ring->memory, error);
    if (r)
        return r;
    ring->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ring->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->request_fd < 0 || ring->done_fd < 0)
        return error_from_errno(error, errno, NULL, "eventfd");
    return 0;
}

/* The smallest that is large enough, or n_kept. */
static unsigned find_kept(const struct rings *rings, uint32_t n_slots, uint64_t slot_bytes)
{
    unsigned found = rings->n_kept;
    for (unsigned i = 0; i < rings->n_kept; i++)
        if (rings->kept[i].slot_bytes == slot_bytes && rings->kept[i].n_slots >= n_slots &&
            (found == rings->n_kept || rings->kept[i].n_slots < rings->kept[found].n_slots))
            found = i;
    return found;
}

int rings_take(struct rings *rings, uint32_t n_slots, uint64_t slot_bytes, int ndim,
               struct client_ring *ret_ring, struct gad_error *error)
{
    struct client_ring ring = NO_RING;
    unsigned kept = rings ? find_kept(rings, n_slots, slot_bytes) : 0;
    if (rings && kept < rings->n_kept) {
        ring = rings->kept[kept];
        rings->kept[kept] = rings->kept[--rings->n_kept];
    } else {
        ring.n_slots = n_slots;
        ring.slot_bytes = slot_bytes;
        int r = ring_make(&ring, error);
        if (r) {
            client_ring_close(&ring);
            return r;
        }
    }
    struct ring_head *head = ring.memory;
    head->magic = RING_MAGIC;
    head->n_slots = ring.n_slots;
    head->ndim = (uint32_t)ndim;
    head->slot_bytes = ring.slot_bytes;
    head->data_offset_bytes = ring_slot_offset_bytes(ring.n_slots, ring.slot_bytes, 0);
    ring_set_wish(&head->client_wish, RING_TELL_ALWAYS);
    *ret_ring = ring;
    return 0;
}

static unsigned find_smallest(const struct rings *rings)
{
    unsigned found = 0;
    for (unsigned i = 1; i < rings->n_kept; i++)
        if (rings->kept[i].n_bytes < rings->kept[found].n_bytes)
            found = i;
    return found;
}

void rings_keep(struct rings *rings, const struct client_ring *ring_take)
{
    struct client_ring ring = *ring_take;
    for (uint32_t i = 0; i < ring.n_slots; i++) {
        struct ring_entry *entry = ring_entry_at(ring.memory, i);
        atomic_store_explicit(&entry->done,
                              atomic_load_explicit(&entry->request, memory_order_relaxed),
                              memory_order_relaxed);
    }
    if (rings->n_kept < RINGS_KEPT) {
        rings->kept[rings->n_kept++] = ring;
        return;
    }
    unsigned smallest = find_smallest(rings);
    if (rings->kept[smallest].n_bytes < ring.n_bytes) {
        struct client_ring other = rings->kept[smallest];
        rings->kept[smallest] = ring;
        ring = other;
    }
    client_ring_close(&ring);
}

void rings_deinit(struct rings *rings)
{
    while (rings->n_kept > 0)
        client_ring_close(&rings->kept[--rings->n_kept]);
}
