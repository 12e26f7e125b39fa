/* The provider's ring: how a worker asks a client for blocks of an array, or hands blocks over.
 *
 * One sealed memfd (F_SEAL_SHRINK | F_SEAL_GROW), made by the client, for one array:
 *
 *     0            4096                       4096 + round_up(n_slots * 1024, 4096)
 *     +------------+--------------------------+-------------+-------------+----
 *     | ring_head  | ring_entry[n_slots]      | slot 0 data | slot 1 data | ...
 *     +------------+--------------------------+-------------+-------------+----
 *                                               slot_bytes each, a multiple of 4096
 *
 * A block is a hyper-rectangle of the array, in its slot in C order of the array's own axes, in the
 * array's dtype and byte order, without gaps.
 *
 * Source: the worker writes start/count, stores `request` (release) and signals the request
 * eventfd; the client fills the slot, writes status, stores `done` = `request` (release) and
 * signals the done eventfd. Sink: the worker fills the slot before it asks; the client stores the
 * block where it belongs before it says done.
 *
 * The worker keeps its own copy of everything that it needs; of what the client can write it reads
 * `done` and `status` once each and never uses either as an index. Data may change at any time.
 */
#pragma once

#include "proto/array.h"

#include <stdatomic.h>

#define RING_MAGIC          UINT64_C(0x31676e6952646147) /* "GadRing1" */
#define RING_ENTRY_BYTES    1024u
#define RING_MAX_SLOTS      64u
#define RING_MIN_SLOT_BYTES (256u * 1024u) /* = the largest grain of one operand */
#define RING_MAX_SLOT_BYTES (16u * 1024u * 1024u)

struct ring_head { /* written once by the client, for debugging; the worker never relies on it */
    uint64_t magic;
    uint32_t n_slots;
    uint32_t ndim;
    uint64_t slot_bytes;
    uint64_t data_offset_bytes;
};

struct ring_entry {
    _Atomic uint64_t request; /* worker: sequence of the block asked for, from 1 in each slot */
    _Atomic uint64_t done;    /* client: the sequence answered */
    uint32_t status;          /* client: 0 or an errno; read after `done` */
    uint32_t ndim;            /* worker */
    int64_t start[ARRAY_MAX_NDIM];
    int64_t count[ARRAY_MAX_NDIM];
};

_Static_assert(sizeof(struct ring_entry) <= RING_ENTRY_BYTES, "an entry fits its place");

/* The size of the memfd, and where a slot's data begins. 0 when out of limits or overflowing. */
uint64_t ring_size_bytes(uint32_t n_slots, uint64_t slot_bytes);
uint64_t ring_slot_offset_bytes(uint32_t n_slots, uint64_t slot_bytes, uint32_t slot);

static inline struct ring_entry *ring_entry_at(void *ring, uint32_t slot)
{
    return (struct ring_entry *)((char *)ring + 4096 + (size_t)slot * RING_ENTRY_BYTES);
}
