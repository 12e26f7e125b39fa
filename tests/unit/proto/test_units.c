/* Sizes, times and shares as people write them. */
#include "proto/system/units.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(units, sizes_have_units)
{
    uint64_t bytes;

    cr_assert(units_parse_size("4096", &bytes));
    cr_assert(eq(u64, bytes, 4096));
    cr_assert(units_parse_size("2K", &bytes));
    cr_assert(eq(u64, bytes, 2048));
    cr_assert(units_parse_size("32MiB", &bytes));
    cr_assert(eq(u64, bytes, 32u << 20));
    cr_assert(units_parse_size("3g", &bytes));
    cr_assert(eq(u64, bytes, UINT64_C(3) << 30));
    cr_assert(units_parse_size("1T", &bytes));
    cr_assert(eq(u64, bytes, UINT64_C(1) << 40));
}

Test(units, sizes_that_make_no_sense_are_refused)
{
    static const char *const bad[] = {"",     "M",
                                      "-1",   " 1",
                                      "1MB",  "1P",
                                      "1Mi",  "99999999999999999999",
                                      "5s",   "18446744073709551615",
                                      "0x10", "17179869184G",
                                      "1 M",  "1.5M"};
    uint64_t bytes = 7;

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert(not(units_parse_size(bad[i], &bytes)), "%s", bad[i]);
    cr_assert(eq(u64, bytes, 7));
}

Test(units, seconds_may_have_a_fraction_and_a_unit)
{
    static const char *const bad[] = {"",     "-1", "x",    "1S",    "nan", "inf",
                                      "1e30", "1K", "0x10", "1 min", "5M",  "1d"};
    uint64_t ns;

    cr_assert(units_parse_seconds("60", &ns));
    cr_assert(eq(u64, ns, UINT64_C(60000000000)));
    cr_assert(units_parse_seconds("0.25", &ns));
    cr_assert(eq(u64, ns, 250000000));
    cr_assert(units_parse_seconds("500ms", &ns));
    cr_assert(eq(u64, ns, 500000000));
    cr_assert(units_parse_seconds("10min", &ns));
    cr_assert(eq(u64, ns, UINT64_C(600000000000)));
    cr_assert(units_parse_seconds("2h", &ns));
    cr_assert(eq(u64, ns, UINT64_C(7200000000000)));
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert(not(units_parse_seconds(bad[i], &ns)), "%s", bad[i]);
}

Test(units, shares_are_whole_percents)
{
    uint64_t n;

    cr_assert(units_parse_share("50%", 1000, &n));
    cr_assert(eq(u64, n, 500));
    cr_assert(units_parse_share("0%", 1000, &n));
    cr_assert(eq(u64, n, 0));
    cr_assert(not(units_parse_share("101%", 1000, &n)));
    cr_assert(not(units_parse_share("50", 1000, &n)));
    cr_assert(not(units_parse_share("50%%", 1000, &n)));
    cr_assert(not(units_parse_share("5.5%", 1000, &n)));
}

Test(units, what_is_written_reads_back_the_same)
{
    static const uint64_t sizes[] = {0,        1,        1023,           1024,
                                     1u << 20, 3u << 20, (3u << 20) + 1, UINT64_C(1) << 40};
    static const uint64_t times[] = {
        0, 1, 10000000, 500000000, 1000000000, 1500000000, UINT64_C(600000000000)};
    char text[32];
    uint64_t again;

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        units_format_size(sizes[i], text, sizeof(text));
        cr_assert(units_parse_size(text, &again), "%s", text);
        cr_assert(eq(u64, again, sizes[i]));
    }
    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        units_format_seconds(times[i], text, sizeof(text));
        cr_assert(units_parse_seconds(text, &again), "%s", text);
        cr_assert(eq(u64, again, times[i]));
    }
    units_format_size(3u << 20, text, sizeof(text));
    cr_assert(eq(str, text, "3M"));
    units_format_seconds(1500000000, text, sizeof(text));
    cr_assert(eq(str, text, "1.5"));
}
