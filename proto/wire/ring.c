/* The size and places of a provider's ring.
 *
 * Pure arithmetic on numbers that a client sent: called by the broker and the worker before the
 * memfd is looked at, and by the client that makes it. Within the limits (64 slots of 16 MiB)
 * nothing here can overflow; what is outside the limits is 0, which no caller takes for a size.
 * A slot's entry has RING_ENTRY_BYTES so that no two slots share a cache line.
 */
#include "proto/wire/ring.h"

#include "proto/util.h"

#define PAGE_BYTES 4096u

static bool is_within_limits(uint32_t n_slots, uint64_t slot_bytes)
{
    return n_slots >= 1 && n_slots <= RING_MAX_SLOTS && slot_bytes >= RING_MIN_SLOT_BYTES &&
           slot_bytes <= RING_MAX_SLOT_BYTES && slot_bytes % PAGE_BYTES == 0;
}

static uint64_t data_offset_bytes(uint32_t n_slots)
{
    return PAGE_BYTES + round_up_u64((uint64_t)n_slots * RING_ENTRY_BYTES, PAGE_BYTES);
}

uint64_t ring_size_bytes(uint32_t n_slots, uint64_t slot_bytes)
{
    if (!is_within_limits(n_slots, slot_bytes))
        return 0;
    return data_offset_bytes(n_slots) + n_slots * slot_bytes;
}

uint64_t ring_slot_offset_bytes(uint32_t n_slots, uint64_t slot_bytes, uint32_t slot)
{
    if (!is_within_limits(n_slots, slot_bytes) || slot >= n_slots)
        return 0;
    return data_offset_bytes(n_slots) + slot * slot_bytes;
}
