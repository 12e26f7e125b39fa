/* Numbers on the command line. */
#include "daemon/broker/options.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(options, sizes_have_units)
{
    uint64_t bytes;

    cr_assert(options_parse_size("4096", &bytes));
    cr_assert(eq(u64, bytes, 4096));
    cr_assert(options_parse_size("2K", &bytes));
    cr_assert(eq(u64, bytes, 2048));
    cr_assert(options_parse_size("32M", &bytes));
    cr_assert(eq(u64, bytes, 32u << 20));
    cr_assert(options_parse_size("3g", &bytes));
    cr_assert(eq(u64, bytes, UINT64_C(3) << 30));
}

Test(options, sizes_that_make_no_sense_are_refused)
{
    static const char *const bad[] = {"",
                                      "M",
                                      "-1",
                                      " 1",
                                      "1MB",
                                      "1T",
                                      "99999999999999999999",
                                      "18446744073709551615",
                                      "17179869184G",
                                      "1.5M"};
    uint64_t bytes;

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert(not(options_parse_size(bad[i], &bytes)), "%s", bad[i]);
}

Test(options, seconds_may_have_a_fraction)
{
    static const char *const bad[] = {"", "-1", "x", "1s", "nan", "inf", "1e30"};
    uint64_t ns;

    cr_assert(options_parse_seconds("60", &ns));
    cr_assert(eq(u64, ns, UINT64_C(60000000000)));
    cr_assert(options_parse_seconds("0.25", &ns));
    cr_assert(eq(u64, ns, 250000000));
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert(not(options_parse_seconds(bad[i], &ns)), "%s", bad[i]);
}

Test(options, the_command_line_fills_them)
{
    struct options o;
    char *argv[] = {"gpuarrayd",   "--socket",    "/x/y",        "--pool",     "8M",
                    "--threads",   "3",           "--private",   "--worker",   "/bin/true",
                    "--level",     "avx2",        "--idle-exit", "1.5",        "--hang-timeout",
                    "2",           "--max-queue", "9",           "--ready-fd", "7",
                    "--log-level", "debug",       NULL};

    cr_assert(eq(int, options_parse((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv, &o), 0));
    cr_assert(eq(str, (char *)o.socket_path, "/x/y"));
    cr_assert(eq(u64, o.pool_bytes, 8u << 20));
    cr_assert(eq(uint, o.n_threads, 3));
    cr_assert(o.is_private);
    cr_assert(eq(uint, o.socket_mode, 0600));
    cr_assert(eq(str, o.worker_path, "/bin/true"));
    cr_assert(eq(u64, o.idle_exit_ns, 1500000000));
    cr_assert(eq(u64, o.hang_timeout_ns, 2000000000));
    cr_assert(eq(uint, o.max_queue, 9));
    cr_assert(eq(int, o.ready_fd, 7));
    cr_assert(eq(int, o.log_level, LOG_LEVEL_DEBUG));
}

Test(options, a_worker_that_is_not_there_is_said)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--worker", "/nonexistent/worker", NULL};

    cr_assert(lt(int, options_parse(3, argv, &o), 0));
}

Test(options, a_mistake_ends_the_program_with_status_2, .exit_code = 2)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--threads", "0", NULL};

    (void)!options_parse(3, argv, &o);
}
