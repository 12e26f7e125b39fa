/* The ring of samples: what it keeps, what it forgets, and that each time is told once. */
#include "daemon/broker/numbers/samples.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define DAY_MS UINT64_C(86400000)

static struct samples samples;
static struct sample told[4000];

static void set_up(void)
{
    cr_assert(eq(int, samples_init(&samples), 0));
}

static void tear_down(void)
{
    samples_deinit(&samples);
}

static void add(uint64_t at_ms, uint64_t period_ms, uint64_t broker_bytes, uint64_t read_bytes)
{
    struct sample sample = {.at_ms = at_ms, .period_ms = period_ms};
    sample.numbers[SAMPLE_BROKER_BYTES] = broker_bytes;
    sample.numbers[SAMPLE_READ_BYTES] = read_bytes;
    samples_add(&samples, &sample);
}

/* One a second, from the first second to the last; the byte counter is the time. */
static void add_seconds(uint64_t first, uint64_t last)
{
    for (uint64_t s = first; s <= last; s++)
        add(1000 * s, 1000, 7, 1000 * s);
}

static size_t all_after(uint64_t after_ms)
{
    size_t n = samples_after(&samples, after_ms, told, sizeof(told) / sizeof(told[0]));
    for (size_t i = 1; i < n; i++)
        cr_assert(lt(u64, told[i - 1].at_ms, told[i].at_ms));
    return n;
}

TestSuite(samples, .init = set_up, .fini = tear_down);

Test(samples, nothing_is_told_of_an_empty_ring)
{
    cr_assert(eq(sz, all_after(0), 0));
}

Test(samples, minutes_are_told_by_the_second)
{
    add_seconds(1, 500);
    cr_assert(eq(sz, all_after(0), 500));
    for (size_t i = 0; i < 500; i++) {
        cr_assert(eq(u64, told[i].at_ms, 1000 * (i + 1)));
        cr_assert(eq(u64, told[i].numbers[SAMPLE_READ_BYTES], 1000 * (i + 1)));
    }
    cr_assert(eq(sz, all_after(499000), 1));
    cr_assert(eq(sz, all_after(500000), 0));
    cr_assert(eq(sz, all_after(UINT64_MAX), 0));
}

Test(samples, hours_are_told_coarsely_and_without_a_gap)
{
    add_seconds(1, 3600);
    size_t n = all_after(0);
    cr_assert(eq(u64, told[n - 1].at_ms, 3600000));
    cr_assert(eq(u64, told[0].at_ms, 10000));
    for (size_t i = 1; i < n; i++) {
        uint64_t apart_ms = told[i].at_ms - told[i - 1].at_ms;
        cr_assert(le(u64, apart_ms, 10000));
        cr_assert(eq(u64, apart_ms, told[i].at_ms > 3000000 ? 1000 : 10000), "at %zu", i);
    }
    cr_assert(eq(sz, n, 300 + 600));
}

Test(samples, a_day_is_kept_and_no_more)
{
    add_seconds(1, 2 * 86400);
    size_t n = all_after(0);
    cr_assert(eq(u64, told[n - 1].at_ms, 2 * DAY_MS));
    cr_assert(le(u64, told[0].at_ms, DAY_MS + 60000));
    cr_assert(le(u64, DAY_MS, told[0].at_ms));
    for (size_t i = 1; i < n; i++)
        cr_assert(le(u64, told[i].at_ms - told[i - 1].at_ms, 60000));
    cr_assert(le(sz, n, 600 + 720 + 1440));
}

Test(samples, a_peak_of_a_second_is_seen_a_day_later)
{
    add_seconds(1, 100);
    add(101000, 1000, 1000000, 101000);
    add_seconds(102, 80000);
    size_t n = all_after(0), n_peaks = 0;
    for (size_t i = 0; i < n; i++) {
        n_peaks += told[i].numbers[SAMPLE_BROKER_BYTES] == 1000000;
        cr_assert(eq(u64, told[i].numbers[SAMPLE_READ_BYTES], told[i].at_ms));
    }
    cr_assert(eq(sz, n_peaks, 1));
}

Test(samples, an_answer_is_cut_and_the_next_goes_on_behind_it)
{
    uint64_t after_ms = 0;
    size_t n_all = 0;
    add_seconds(1, 4000);
    size_t n_once = all_after(0);
    for (size_t n; (n = samples_after(&samples, after_ms, told, 100)) > 0; n_all += n) {
        cr_assert(le(sz, n, 100));
        cr_assert(lt(u64, after_ms, told[0].at_ms));
        after_ms = told[n - 1].at_ms;
    }
    cr_assert(eq(sz, n_all, n_once));
    cr_assert(eq(u64, after_ms, 4000000));
}

Test(samples, a_time_that_does_not_go_on_is_left_out)
{
    add(1000, 1000, 1, 1);
    add(1000, 0, 2, 2);
    add(500, 0, 3, 3);
    cr_assert(eq(sz, all_after(0), 1));
    cr_assert(eq(u64, told[0].numbers[SAMPLE_BROKER_BYTES], 1));
}

Test(samples, one_that_stands_for_long_is_in_every_ring_at_once)
{
    add(3600000, 3600000, 5, 9);
    for (unsigned i = 0; i < SAMPLES_N_LEVELS; i++)
        cr_assert(eq(sz, samples.levels[i].n, 1));
    cr_assert(eq(sz, all_after(0), 1));
    cr_assert(eq(u64, told[0].period_ms, 3600000));
}
