/* The disk's rate from what threads waited for: in milliseconds and MiB. */
#include "daemon/worker/io/disk.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define MS  UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

/* From `begin` on, n times: one thread waits for wait_ms of every period_ms, and so much is there
 * then. Returns the end. */
static uint64_t stream(struct disk_meter *m, uint64_t begin, int n, uint64_t wait_ms,
                       uint64_t period_ms, uint64_t n_bytes)
{
    for (int i = 0; i < n; i++) {
        uint64_t at = begin + (uint64_t)i * period_ms;
        disk_begin(m, at * MS);
        disk_count(m, n_bytes);
        disk_end(m, (at + wait_ms) * MS);
    }
    return begin + (uint64_t)n * period_ms;
}

static double mib_per_second(const struct disk_meter *m)
{
    return m->rate / (double)MIB;
}

Test(disk, has_the_rate_at_which_threads_waited)
{
    struct disk_meter m = {0};

    stream(&m, 5, 9, 10, 10, 2 * MIB); /* not enough for a rate */
    cr_assert(eq(dbl, m.rate, 0));
    stream(&m, 95, 200, 10, 10, 2 * MIB);
    cr_assert(epsilon_eq(dbl, mib_per_second(&m), 200, 0.01));
}

Test(disk, counts_the_time_of_threads_that_wait_together_once)
{
    struct disk_meter m = {0};

    for (uint64_t i = 1; i <= 100; i++) {
        disk_begin(&m, 20 * i * MS);
        disk_begin(&m, (20 * i + 5) * MS);
        disk_count(&m, 2 * MIB);
        disk_end(&m, (20 * i + 10) * MS);
        disk_count(&m, 2 * MIB);
        disk_end(&m, (20 * i + 20) * MS);
    }
    cr_assert(epsilon_eq(dbl, mib_per_second(&m), 200, 0.01));
}

Test(disk, is_not_known_where_something_else_was_slow)
{
    struct disk_meter m = {0};

    stream(&m, 1, 400, 4, 10, 2 * MIB);
    cr_assert(eq(dbl, m.rate, 0));
    stream(&m, 4001, 400, 6, 10, 3 * MIB);
    cr_assert(epsilon_eq(dbl, mib_per_second(&m), 500, 5));
}

Test(disk, follows_what_changes_and_forgets_what_was_before_a_pause)
{
    struct disk_meter m = {0};
    uint64_t at = stream(&m, 1, 100, 10, 10, 2 * MIB);

    disk_count(&m, 4096 * MIB); /* from the page cache, a pause long */
    at = stream(&m, at + 500, 10, 10, 10, 2 * MIB);
    cr_assert(epsilon_eq(dbl, mib_per_second(&m), 200, 0.01));
    at = stream(&m, at, 10, 10, 10, 4 * MIB);
    cr_assert(lt(dbl, 240, mib_per_second(&m)));
    cr_assert(lt(dbl, mib_per_second(&m), 300));
    stream(&m, at, 400, 10, 10, 4 * MIB);
    cr_assert(epsilon_eq(dbl, mib_per_second(&m), 400, 1));
}
