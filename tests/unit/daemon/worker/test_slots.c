#include "daemon/worker/turns/slots.h"
#include "kernels/grains/geometry.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#define SLOT ((uint64_t)GRAIN_MAX_TOTAL_BYTES)

static char pool[16 * SLOT] __attribute__((aligned(4096)));

static struct slots *make(uint64_t pool_bytes)
{
    struct slots *s = NULL;
    cr_assert(le(u64, pool_bytes, sizeof(pool)));
    cr_assert(eq(int, slots_new(pool, pool_bytes, SLOT, &s), 0));
    return s;
}

Test(slots, lends_from_the_top_and_again_the_same)
{
    struct slots *s = make(8 * SLOT);
    char *first = slots_lend(s, true), *second = slots_lend(s, true);
    cr_assert(eq(ptr, second, first - SLOT));
    slots_return(s, first);
    cr_assert(eq(ptr, slots_lend(s, true), first));
    slots_free(s);
}

Test(slots, keeps_the_last_one_for_express_jobs)
{
    struct slots *s = make(4 * SLOT);
    for (int i = 0; i < 3; i++)
        cr_assert(slots_lend(s, false) != NULL);
    cr_assert(eq(ptr, slots_lend(s, false), NULL));
    void *last = slots_lend(s, true);
    cr_assert(last != NULL);
    cr_assert(eq(ptr, slots_lend(s, true), NULL));
    slots_return(s, last);
    cr_assert(not(slots_can_lend(s, false)));
    slots_free(s);
}

Test(slots, of_a_tiny_pool_all_serve_everybody)
{
    struct slots *s = make(SLOT);
    cr_assert(slots_lend(s, false) != NULL);
    cr_assert(eq(ptr, slots_lend(s, true), NULL));
    slots_free(s);
}

Test(slots, of_a_pool_below_one_slot_there_are_none)
{
    struct slots *s = make(SLOT - 1);
    cr_assert(eq(ptr, slots_lend(s, true), NULL));
    cr_assert(eq(int, slots_claim(s, 0, 4096), 0));
    cr_assert(slots_claim_is_clear(s, 0, 4096));
    slots_free(s);
}

Test(slots, under_a_claim_are_not_lent_any_more)
{
    struct slots *s = make(4 * SLOT);
    void *slots[4];
    for (int i = 0; i < 4; i++)
        slots[i] = slots_lend(s, true);
    cr_assert(eq(int, slots_claim(s, 0, SLOT + 1), 0));
    cr_assert(not(slots_claim_is_clear(s, 0, SLOT + 1)));
    slots_return(s, slots[3]);
    cr_assert(eq(ptr, slots_lend(s, true), NULL));
    cr_assert(not(slots_claim_is_clear(s, 0, SLOT + 1)));
    slots_return(s, slots[2]);
    cr_assert(slots_claim_is_clear(s, 0, SLOT + 1));
    char *carry = slots_carry(s, 0, SLOT + 1);
    cr_assert(eq(ptr, carry, slots[3]));
    slots_unclaim(s, 0, SLOT + 1);
    cr_assert(eq(ptr, slots_lend(s, true), slots[2]));
    slots_free(s);
}

Test(slots, a_block_shared_by_two_claims_waits_for_both)
{
    struct slots *s = make(SLOT);
    cr_assert(eq(int, slots_claim(s, 0, 4096), 0));
    cr_assert(eq(int, slots_claim(s, 4096, 4096), 0));
    cr_assert(eq(u32, slots_use(s).n_carries, 2));
    cr_assert(eq(u64, slots_use(s).carry_bytes, 8192));
    slots_unclaim(s, 0, 4096);
    cr_assert(eq(ptr, slots_lend(s, true), NULL));
    slots_unclaim(s, 4096, 4096);
    cr_assert(slots_lend(s, true) != NULL);
    slots_free(s);
}

Test(slots, refuses_claims_outside_the_pool)
{
    struct slots *s = make(SLOT);
    cr_assert(eq(int, slots_claim(s, 0, 0), -EINVAL));
    cr_assert(eq(int, slots_claim(s, 0, SLOT + 1), -EINVAL));
    cr_assert(eq(int, slots_claim(s, SLOT, 1), -EINVAL));
    cr_assert(eq(int, slots_claim(s, UINT64_MAX, 2), -EINVAL));
    cr_assert(eq(int, slots_claim(s, 2, UINT64_MAX), -EINVAL));
    struct slots *none = NULL;
    cr_assert(eq(int, slots_new(pool, 0, SLOT, &none), -EINVAL));
    cr_assert(eq(int, slots_new(pool, SLOT, 0, &none), -EINVAL));
    cr_assert(eq(int, slots_new(pool, SLOT, 100, &none), -EINVAL));
    slots_free(s);
}

/* Carries never have more than half the pool: whoever holds them finds slots beside them. */
Test(slots, of_any_pool_are_there_beside_all_carries)
{
    for (uint64_t pool_bytes = 2 * SLOT; pool_bytes <= 9 * SLOT; pool_bytes += 12345) {
        struct slots *s = make(pool_bytes);
        uint64_t half_bytes = pool_bytes / 2 / 4096 * 4096;
        cr_assert(eq(int, slots_claim(s, 0, half_bytes), 0));
        char *slot = slots_lend(s, false);
        cr_assert(slot != NULL, "a pool of %llu bytes", (unsigned long long)pool_bytes);
        char *carry = slots_carry(s, 0, half_bytes);
        bool is_apart = slot >= carry + half_bytes && slot + SLOT <= carry + pool_bytes;
        cr_assert(is_apart, "a pool of %llu bytes", (unsigned long long)pool_bytes);
        cr_assert(eq(u64, (uintptr_t)slot % 4096, 0));
        slots_return(s, slot);
        slots_unclaim(s, 0, half_bytes);
        slots_free(s);
    }
}
