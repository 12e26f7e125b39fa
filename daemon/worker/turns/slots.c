/* The pool's memory and who has which part of it.
 *
 *     0  rest                                                            pool
 *     +--+--------+--------+--------+--------+---- ... ----+--------+--------+
 *     | carry | carry   |                                  slots, lent from the top
 *     +--+--------+--------+--------+--------+---- ... ----+--------+--------+
 *       carries from the bottom
 *
 * Slots are of one size, the engine's. What a pool has beyond whole slots lies below them: so
 * carries, which have at most the lower half or, in a large pool of the CPU's, all but 8 MiB or
 * more, leave half of the slots (rounded down) or 16 of them, and with two slots or more there is
 * always one for whoever holds the carries. The slab is the engine's and never grows; lending from
 * the top downward touches the same few pages again. A block that a carry claims is counted (small
 * carries share blocks) and not lent while its count is not 0. One slot is kept for express jobs as
 * long as there are at least SLOTS_FOR_RESERVE, so that a small job finds one while a large one
 * fills the pool.
 *
 * What leaves a slot or a carry is only what a job wrote there: builds with GAD_POISON fill both
 * with a pattern when they are lent, so that a test sees anything else. They are not cleared: a
 * carry may be most of the pool, and the lock is held.
 *
 * Called by the scheduler, under its lock.
 */
#include "daemon/worker/turns/slots.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

#define SLOTS_FOR_RESERVE 4
#define PAGE_BYTES        4096u

struct slot_block {
    bool is_lent;
    uint16_t n_claims;
};

struct slots {
    char *pool;
    uint64_t pool_bytes, slot_bytes, rest_bytes; /* rest: below the first slot, whole pages */
    unsigned n_slots, n_lent, n_free, n_carries; /* n_free: neither lent nor claimed */
    uint64_t carry_bytes;
    struct slot_block blocks[];
};

int slots_new(void *pool, uint64_t pool_bytes, uint64_t slot_bytes, struct slots **ret_slots)
{
    if (pool_bytes == 0 || slot_bytes == 0 || slot_bytes % PAGE_BYTES != 0)
        return -EINVAL;
    uint64_t n_slots = pool_bytes / slot_bytes;
    if (n_slots > UINT32_MAX / 2)
        return -EINVAL;
    struct slots *s = calloc(1, sizeof(*s) + n_slots * sizeof(s->blocks[0]));
    if (!s)
        return -ENOMEM;
    s->pool = pool;
    s->pool_bytes = pool_bytes;
    s->slot_bytes = slot_bytes;
    s->rest_bytes = (pool_bytes - n_slots * slot_bytes) / PAGE_BYTES * PAGE_BYTES;
    s->n_slots = s->n_free = (unsigned)n_slots;
    *ret_slots = s;
    return 0;
}

struct slots *slots_free(struct slots *s)
{
    free(s);
    return NULL;
}

void *slots_poison(void *memory, uint64_t n_bytes)
{
#ifdef GAD_POISON
    memset(memory, 0xa5, n_bytes);
#else
    (void)n_bytes;
#endif
    return memory;
}

static unsigned slot_index(const struct slots *s, const void *slot)
{
    uint64_t i = (uint64_t)((const char *)slot - s->pool - s->rest_bytes) / s->slot_bytes;
    assert(i < s->n_slots);
    return (unsigned)i;
}

bool slots_can_lend(const struct slots *s, bool is_express)
{
    unsigned n_kept = !is_express && s->n_slots >= SLOTS_FOR_RESERVE ? 1 : 0;
    return s->n_free > n_kept;
}

void *slots_lend(struct slots *s, bool is_express)
{
    if (!slots_can_lend(s, is_express))
        return NULL;
    unsigned i = s->n_slots;
    do
        i--;
    while (s->blocks[i].is_lent || s->blocks[i].n_claims > 0);
    s->blocks[i].is_lent = true;
    s->n_lent++;
    s->n_free--;
    return slots_poison(s->pool + s->rest_bytes + i * s->slot_bytes, s->slot_bytes);
}

void slots_return(struct slots *s, void *slot)
{
    unsigned i = slot_index(s, slot);
    assert(s->blocks[i].is_lent);
    s->blocks[i].is_lent = false;
    s->n_lent--;
    if (s->blocks[i].n_claims == 0)
        s->n_free++;
}

/* The blocks [*first, *end) that an extent touches; what lies below or beyond all is in none. */
static void blocks_of(const struct slots *s, uint64_t offset_bytes, uint64_t size_bytes,
                      unsigned *ret_first, unsigned *ret_end)
{
    uint64_t low = max_u64(offset_bytes, s->rest_bytes) - s->rest_bytes;
    uint64_t high = max_u64(offset_bytes + size_bytes, s->rest_bytes) - s->rest_bytes;
    *ret_first = (unsigned)min_u64(low / s->slot_bytes, s->n_slots);
    *ret_end = (unsigned)min_u64((high + s->slot_bytes - 1) / s->slot_bytes, s->n_slots);
}

int slots_claim(struct slots *s, uint64_t offset_bytes, uint64_t size_bytes)
{
    if (size_bytes == 0 || size_bytes > s->pool_bytes || offset_bytes > s->pool_bytes - size_bytes)
        return -EINVAL;
    unsigned first, end;
    blocks_of(s, offset_bytes, size_bytes, &first, &end);
    for (unsigned i = first; i < end; i++)
        if (s->blocks[i].n_claims == UINT16_MAX)
            return -EINVAL;
    for (unsigned i = first; i < end; i++)
        if (s->blocks[i].n_claims++ == 0 && !s->blocks[i].is_lent)
            s->n_free--;
    s->n_carries++;
    s->carry_bytes += size_bytes;
    return 0;
}

bool slots_claim_is_clear(const struct slots *s, uint64_t offset_bytes, uint64_t size_bytes)
{
    unsigned first, end;
    blocks_of(s, offset_bytes, size_bytes, &first, &end);
    for (unsigned i = first; i < end; i++)
        if (s->blocks[i].is_lent)
            return false;
    return true;
}

void *slots_carry(struct slots *s, uint64_t offset_bytes, uint64_t size_bytes)
{
    assert(slots_claim_is_clear(s, offset_bytes, size_bytes));
    return slots_poison(s->pool + offset_bytes, size_bytes);
}

void slots_unclaim(struct slots *s, uint64_t offset_bytes, uint64_t size_bytes)
{
    unsigned first, end;
    blocks_of(s, offset_bytes, size_bytes, &first, &end);
    for (unsigned i = first; i < end; i++) {
        assert(s->blocks[i].n_claims > 0);
        if (--s->blocks[i].n_claims == 0 && !s->blocks[i].is_lent)
            s->n_free++;
    }
    s->n_carries--;
    s->carry_bytes -= size_bytes;
}

struct slots_use slots_use(const struct slots *s)
{
    return (struct slots_use){.n_slots = s->n_slots,
                              .n_lent = s->n_lent,
                              .n_carries = s->n_carries,
                              .carry_bytes = s->carry_bytes};
}
