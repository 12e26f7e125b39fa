#include "client/scan/scan_flow.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#define N_SLOTS 8u
#define MS      UINT64_C(1000000)

static unsigned join(struct scan_flow *flow, uint64_t *ret_first)
{
    unsigned place = 0;
    while (flow->readers[place].is_there)
        place++;
    *ret_first = scan_flow_join(flow, place, 1);
    return place;
}

/* Begins and ends as many numbers as may be. */
static unsigned run(struct scan_flow *flow, uint64_t now_ns)
{
    uint64_t number, until_ns;
    unsigned n = 0;
    for (; scan_flow_claim(flow, now_ns, &number, &until_ns); n++)
        scan_flow_publish(flow, number);
    return n;
}

static int ack(struct scan_flow *flow, unsigned place, uint64_t done, uint64_t now_ns)
{
    return scan_flow_ack(flow, place, &(struct scan_ack){.done = done}, now_ns);
}

Test(scan_flow, rests_without_readers)
{
    struct scan_flow flow;
    scan_flow_init(&flow, N_SLOTS, 100);
    cr_assert(eq(uint, run(&flow, 1), 0));
}

Test(scan_flow, fills_the_ring_and_waits_for_the_only_reader_for_ever)
{
    struct scan_flow flow;
    uint64_t first, number, until_ns;
    scan_flow_init(&flow, N_SLOTS, 100);
    unsigned place = join(&flow, &first);
    cr_assert(eq(u64, first, 0));
    cr_assert(eq(uint, run(&flow, 1), N_SLOTS));
    cr_assert(not(scan_flow_claim(&flow, 1000000 * MS, &number, &until_ns)));
    cr_assert(eq(u64, until_ns, SCAN_NEVER_NS));
    cr_assert(eq(int, ack(&flow, place, 3, 2), 0));
    cr_assert(eq(uint, run(&flow, 2), 3));
    scan_flow_leave(&flow, place);
    cr_assert(eq(uint, run(&flow, 3), 0));
}

Test(scan_flow, waits_for_who_is_behind_no_longer_than_its_patience)
{
    struct scan_flow flow;
    uint64_t first, number, until_ns;
    scan_flow_init(&flow, N_SLOTS, 100);
    unsigned fast = join(&flow, &first), slow = join(&flow, &first);
    run(&flow, 1);
    cr_assert(eq(int, ack(&flow, fast, 8, 2), 0));
    cr_assert(not(scan_flow_claim(&flow, 2, &number, &until_ns)));
    cr_assert(eq(u64, until_ns, 2 + 100 * MS));
    cr_assert(not(scan_flow_claim(&flow, 99 * MS, &number, &until_ns)));
    cr_assert(eq(uint, run(&flow, 101 * MS), N_SLOTS));
    /* It lags: all else goes on without it. */
    cr_assert(eq(int, ack(&flow, fast, 16, 102 * MS), 0));
    cr_assert(eq(uint, run(&flow, 102 * MS), N_SLOTS));
    cr_assert(flow.readers[slow].is_lagging);
    /* When it has caught up, it is waited for, but has little patience left. */
    cr_assert(eq(int, ack(&flow, slow, 20, 102 * MS), 0));
    cr_assert(not(flow.readers[slow].is_lagging));
    cr_assert(eq(int, ack(&flow, fast, 24, 102 * MS), 0));
    cr_assert(eq(uint, run(&flow, 102 * MS), 4));
    cr_assert(not(scan_flow_claim(&flow, 102 * MS, &number, &until_ns)));
    cr_assert(lt(u64, until_ns, 103 * MS));
}

/* However a reader spends its patience, it costs the others an eighth of the time. */
Test(scan_flow, patience_comes_back_slowly)
{
    struct scan_flow flow;
    uint64_t first, number, until_ns, now_ns = 1, waited_ns = 0;
    scan_flow_init(&flow, N_SLOTS, 100);
    unsigned fast = join(&flow, &first), slow = join(&flow, &first);
    for (uint64_t round = 0; round < 1000; round++) {
        run(&flow, now_ns);
        cr_assert(eq(int, ack(&flow, fast, flow.published, now_ns), 0));
        if (!scan_flow_claim(&flow, now_ns, &number, &until_ns)) {
            waited_ns += until_ns - now_ns;
            now_ns = until_ns;
        } else {
            scan_flow_publish(&flow, number);
        }
        cr_assert(eq(int, ack(&flow, slow, flow.published, now_ns), 0));
        now_ns += 10 * MS;
    }
    cr_assert(lt(u64, waited_ns, 100 * MS + now_ns / 8));
}

Test(scan_flow, believes_no_more_than_can_be)
{
    struct scan_flow flow;
    uint64_t first, number, until_ns;
    scan_flow_init(&flow, N_SLOTS, 100);
    unsigned place = join(&flow, &first);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(scan_flow_claim(&flow, 1, &number, &until_ns));
    cr_assert(eq(int, ack(&flow, place, 4, 1), -EPROTO));
    cr_assert(eq(int, ack(&flow, place, UINT64_MAX, 1), -EPROTO));
    scan_flow_publish(&flow, 0);
    cr_assert(eq(int, ack(&flow, place, 1, 1), 0));
    cr_assert(eq(int, ack(&flow, place, 0, 1), -EPROTO));
    cr_assert(eq(int, ack(&flow, place, 3, 1), 0));
    cr_assert(eq(u64, flow.n_taken, 3));
}

/* Who was away uses what the other threads have written since, and is told of what it waits for. */
Test(scan_flow, a_number_that_takes_long_may_be_skipped)
{
    struct scan_flow flow;
    uint64_t first, number, until_ns;
    scan_flow_init(&flow, N_SLOTS, 100);
    unsigned place = join(&flow, &first);
    while (scan_flow_claim(&flow, 1, &number, &until_ns))
        if (number > 0)
            scan_flow_publish(&flow, number);
    cr_assert(eq(u64, number, N_SLOTS - 1));
    cr_assert(eq(int, ack(&flow, place, N_SLOTS / 2, 1), 0));
    cr_assert(not(scan_flow_claim(&flow, 1, &number, &until_ns)), "number 0 is still written");
    scan_flow_publish(&flow, 0);
    cr_assert(scan_flow_claim(&flow, 1, &number, &until_ns));
    cr_assert(eq(u64, number, N_SLOTS));
}

Test(scan_flow, no_slot_is_given_away_while_it_is_written)
{
    struct scan_flow flow;
    uint64_t first, number, until_ns;
    scan_flow_init(&flow, N_SLOTS, 100);
    unsigned a = join(&flow, &first);
    for (unsigned i = 0; i < N_SLOTS; i++)
        cr_assert(scan_flow_claim(&flow, 1, &number, &until_ns));
    for (unsigned i = 1; i < N_SLOTS; i++)
        scan_flow_publish(&flow, i);
    scan_flow_leave(&flow, a);
    join(&flow, &first); /* begins at 4: what it does not need is no reason to overwrite it */
    cr_assert(eq(u64, first, 4));
    cr_assert(not(scan_flow_claim(&flow, 1000 * MS, &number, &until_ns)));
    scan_flow_publish(&flow, 0);
    cr_assert(scan_flow_claim(&flow, 1000 * MS, &number, &until_ns));
    cr_assert(eq(u64, number, 8));
}

Test(scan_flow, tells_once_what_a_reader_waits_for)
{
    struct scan_flow flow;
    uint64_t first, number, until_ns;
    scan_flow_init(&flow, N_SLOTS, 100);
    unsigned place = join(&flow, &first);
    const struct scan_ack wish = {.done = 0, .wants_more = 1};
    cr_assert(eq(int, scan_flow_ack(&flow, place, &wish, 1), 0));
    cr_assert(scan_flow_claim(&flow, 1, &number, &until_ns));
    cr_assert(scan_flow_claim(&flow, 1, &number, &until_ns));
    scan_flow_publish(&flow, 1);
    cr_assert(not(scan_flow_take_wish(&flow, place)));
    scan_flow_publish(&flow, 0);
    cr_assert(scan_flow_take_wish(&flow, place));
    cr_assert(not(scan_flow_take_wish(&flow, place)));
}

Test(scan_flow, does_not_go_round_more_than_once_ahead)
{
    struct scan_flow flow;
    uint64_t first;
    scan_flow_init(&flow, N_SLOTS, 3);
    unsigned place = join(&flow, &first);
    cr_assert(eq(uint, run(&flow, 1), 3));
    cr_assert(eq(int, ack(&flow, place, 2, 1), 0));
    cr_assert(eq(uint, run(&flow, 1), 2));
}
