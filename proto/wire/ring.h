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
 * The client of an open array (`open`) says with every block of a source how many of its rows there
 * are, from the first on: all of them, fewer in the block where the array ends, none behind it.
 *
 * Signals cost more than small blocks, so a side that looks at the ring by itself says so, and is
 * not signalled meanwhile: enum ring_wish. A side that is about to wait wishes to be told, and then
 * looks once more, since what came just before was not signalled.
 *
 * The worker keeps its own copy of everything that it needs; of what the client can write it reads
 * `done`, `status`, `n_rows` and `client_wish` once each and never uses any as an index: a client
 * that lies about its wish waits for ever, or is signalled too often. Numbers of rows are compared
 * with the block's and with each other. Data may change at any time.
 */
#pragma once

#include "proto/array.h"

#include <stdatomic.h>
#include <stddef.h>

#define RING_MAGIC          UINT64_C(0x31676e6952646147) /* "GadRing1" */
#define RING_ENTRY_BYTES    1024u
#define RING_MAX_SLOTS      64u
#define RING_MIN_SLOT_BYTES (256u * 1024u) /* = the largest grain of one operand */
#define RING_MAX_SLOT_BYTES (16u * 1024u * 1024u)

/* What a side wants to be told by signals. */
enum ring_wish {
    RING_TELL_ALWAYS = 0, /* every time (any value but the two others); of who knows no wishes */
    RING_TELL_NOTHING = 1,
    RING_TELL_ONCE = 2, /* who signals makes it RING_TELL_NOTHING */
};

struct ring_head {
    /* Written once by the client, for debugging; the worker never relies on it. */
    uint64_t magic;
    uint32_t n_slots;
    uint32_t ndim;
    uint64_t slot_bytes;
    uint64_t data_offset_bytes;
    /* Each in a cache line of its own. */
    _Alignas(64) _Atomic uint32_t client_wish; /* about the request eventfd */
    _Alignas(64) _Atomic uint32_t worker_wish; /* about the done eventfd */
};

struct ring_entry {
    _Atomic uint64_t request; /* worker: sequence of the block asked for, from 1 in each slot */
    _Atomic uint64_t done;    /* client: the sequence answered */
    uint32_t status;          /* client: 0 or an errno; read after `done` */
    uint32_t ndim;            /* worker */
    int64_t start[ARRAY_MAX_NDIM];
    int64_t count[ARRAY_MAX_NDIM];
    uint64_t n_rows; /* client, of an open source: read after `done` */
};

_Static_assert(offsetof(struct ring_head, client_wish) == 64, "as in PROTOCOL.md");
_Static_assert(offsetof(struct ring_head, worker_wish) == 128, "as in PROTOCOL.md");
_Static_assert(sizeof(struct ring_entry) <= RING_ENTRY_BYTES, "an entry fits its place");

/* The size of the memfd, and where a slot's data begins. 0 when out of limits or overflowing. */
uint64_t ring_size_bytes(uint32_t n_slots, uint64_t slot_bytes);
uint64_t ring_slot_offset_bytes(uint32_t n_slots, uint64_t slot_bytes, uint32_t slot);

static inline struct ring_entry *ring_entry_at(void *ring, uint32_t slot)
{
    return (struct ring_entry *)((char *)ring + 4096 + (size_t)slot * RING_ENTRY_BYTES);
}

/* A side's own wish. After RING_TELL_ONCE it looks at all entries before it waits. */
static inline void ring_set_wish(_Atomic uint32_t *wish, enum ring_wish value)
{
    atomic_exchange(wish, (uint32_t)value);
}

/* The other side's wish, asked after `request` or `done` was stored: whether to signal now. Both
 * functions write the wish even where it stays as it is, which puts them in one order: either the
 * side that waits sees what was stored, or the side that stored sees the wish. */
static inline bool ring_take_wish(_Atomic uint32_t *wish)
{
    uint32_t found = atomic_fetch_or(wish, 0);
    if (found == RING_TELL_ONCE)
        return atomic_compare_exchange_strong(wish, &found, RING_TELL_NOTHING);
    return found != RING_TELL_NOTHING;
}
