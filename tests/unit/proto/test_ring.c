/* Sizes and places in a provider's ring. */
#include "proto/wire/ring.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define SLOT RING_MIN_SLOT_BYTES

Test(ring, has_a_head_entries_and_slots)
{
    cr_assert(eq(u64, ring_size_bytes(1, SLOT), 4096 + 4096 + SLOT));
    cr_assert(eq(u64, ring_size_bytes(4, SLOT), 4096 + 4096 + 4 * SLOT));
    cr_assert(eq(u64, ring_size_bytes(5, SLOT), 4096 + 8192 + 5 * SLOT));
    cr_assert(eq(u64, ring_size_bytes(64, RING_MAX_SLOT_BYTES),
                 4096 + 65536 + UINT64_C(64) * RING_MAX_SLOT_BYTES));
}

Test(ring, slots_follow_each_other_to_the_end)
{
    for (uint32_t n = 1; n <= RING_MAX_SLOTS; n++) {
        uint64_t at = ring_slot_offset_bytes(n, SLOT, 0);
        cr_assert(at % 4096 == 0 && at >= 4096 + n * RING_ENTRY_BYTES);
        cr_assert(eq(u64, ring_slot_offset_bytes(n, SLOT, n - 1) + SLOT, ring_size_bytes(n, SLOT)));
        cr_assert(eq(u64, ring_slot_offset_bytes(n, SLOT, n), 0));
    }
}

Test(ring, what_is_out_of_limits_has_no_size)
{
    cr_assert(eq(u64, ring_size_bytes(0, SLOT), 0));
    cr_assert(eq(u64, ring_size_bytes(65, SLOT), 0));
    cr_assert(eq(u64, ring_size_bytes(UINT32_MAX, UINT64_MAX), 0));
    cr_assert(eq(u64, ring_size_bytes(1, SLOT - 4096), 0));
    cr_assert(eq(u64, ring_size_bytes(1, SLOT + 1), 0));
    cr_assert(eq(u64, ring_size_bytes(1, RING_MAX_SLOT_BYTES + 4096), 0));
    cr_assert(eq(u64, ring_slot_offset_bytes(1, 0, 0), 0));
    cr_assert(eq(u64, ring_slot_offset_bytes(1, SLOT, UINT32_MAX), 0));
}
