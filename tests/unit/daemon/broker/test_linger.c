/* Lingering: only where the waits before were short, for a bounded time, each kind by itself. */
#include "daemon/broker/linger.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct lingering linger;
static uint64_t now_ns = 1;

/* A wait that takes so long; whether it began awake. */
static bool wait_for(enum linger_kind kind, uint64_t wait_ns)
{
    bool is_awake = linger_wait(&linger, kind, now_ns);
    now_ns += wait_ns;
    linger_came(&linger, now_ns);
    return is_awake;
}

static void learn(enum linger_kind kind)
{
    for (unsigned i = 0; i < 20; i++)
        wait_for(kind, LINGER_MOST_NS / 4);
}

Test(linger, begins_asleep_and_stays_awake_after_short_waits)
{
    linger_init(&linger);
    cr_assert(not(wait_for(LINGER_FOR_CLIENT, LINGER_MOST_NS / 4)));
    learn(LINGER_FOR_CLIENT);
    cr_assert(wait_for(LINGER_FOR_CLIENT, LINGER_MOST_NS / 4));
    cr_assert(wait_for(LINGER_FOR_CLIENT, UINT64_C(1000000000))); /* one long wait may be chance */
    wait_for(LINGER_FOR_CLIENT, UINT64_C(1000000000));
    cr_assert(not(wait_for(LINGER_FOR_CLIENT, UINT64_C(1000000000))));
}

Test(linger, is_awake_for_so_long_and_no_longer)
{
    linger_init(&linger);
    learn(LINGER_FOR_WORKER);
    cr_assert(linger_wait(&linger, LINGER_FOR_WORKER, now_ns));
    cr_assert(linger_wait(&linger, LINGER_FOR_WORKER, now_ns + LINGER_MOST_NS - 1));
    cr_assert(not(linger_wait(&linger, LINGER_FOR_WORKER, now_ns + LINGER_MOST_NS)));
    cr_assert(not(linger_wait(&linger, LINGER_FOR_WORKER, now_ns + 5 * LINGER_MOST_NS)));
}

Test(linger, kinds_are_apart)
{
    linger_init(&linger);
    learn(LINGER_FOR_WORKER);
    for (unsigned i = 0; i < 20; i++) {
        cr_assert(wait_for(LINGER_FOR_WORKER, LINGER_MOST_NS / 4));
        cr_assert(not(wait_for(LINGER_FOR_CLIENT, 20 * LINGER_MOST_NS)));
    }
    learn(LINGER_NEVER);
    cr_assert(not(wait_for(LINGER_NEVER, 1)));
}

/* What came in between ends a wait; without one it says nothing. */
Test(linger, only_waits_count)
{
    linger_init(&linger);
    learn(LINGER_FOR_CLIENT);
    for (unsigned i = 0; i < 100; i++)
        linger_came(&linger, now_ns += UINT64_C(1000000000));
    cr_assert(linger_wait(&linger, LINGER_FOR_CLIENT, now_ns));
    linger.since_ns = 0; /* the loop had work of its own */
    now_ns += UINT64_C(1000000000);
    cr_assert(linger_wait(&linger, LINGER_FOR_CLIENT, now_ns));
}
