/* The configuration file: every mistake with its line, what was expected and what was found. */
#include "daemon/broker/config/config.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct config_faults faults;
static struct options o;

static unsigned parse_bytes(const char *text, size_t n_bytes)
{
    memset(&faults, 0, sizeof(faults));
    settings_set_defaults(&o, false);
    config_parse(text, n_bytes, &o, &faults);
    return faults.n;
}

static unsigned parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void expect(unsigned i, unsigned line, const char *text)
{
    cr_assert(lt(uint, i, faults.n_kept));
    cr_assert(eq(uint, faults.kept[i].line, line), "%s", faults.kept[i].text);
    cr_assert(eq(str, faults.kept[i].text, (char *)text));
}

Test(config, values_are_taken)
{
    cr_assert(eq(uint,
                 parse("\xef\xbb\xbf# a comment\n\n[engine]\r\n"
                       "pool = 64M ; and one behind it\n"
                       "  threads: 3\n"
                       "; another\n"
                       "[users]\n"
                       "user-jobs=12"),
                 0));
    cr_assert(eq(u64, o.pool_bytes, 64u << 20));
    cr_assert(eq(uint, o.n_threads, 3));
    cr_assert(eq(uint, o.user_jobs, 12));
    cr_assert(eq(uint, o.sources[SETTING_USER_JOBS].line, 8));
}

Test(config, nothing_is_a_file_too)
{
    cr_assert(eq(uint, parse(""), 0));
    cr_assert(eq(uint, parse("\n\n"), 0));
    cr_assert(eq(uint, parse("[engine]"), 0));
}

Test(config, all_mistakes_are_told_in_the_order_of_lines)
{
    cr_assert(eq(uint,
                 parse("pool = 1M\n"
                       "[engin]\n"
                       "threads = 5\n"
                       "[engine]\n"
                       "pool = 5s\n"
                       "pool = 7M\n"
                       "levle = avx2\n"
                       "just words\n"
                       "[queue\n"
                       "max-queue = 5\n"
                       "[users] and more\n"
                       "[users]\n"
                       "max-queue = 5\n"
                       "zzzzzzzzzzzz = 5\n"
                       "user-jobs =\n"),
                 11));
    expect(0, 1, "pool: expected in [engine], found before any section");
    expect(1, 2, "unknown section [engin]; did you mean [engine]?");
    expect(2, 5,
           "pool: expected bytes, with K, M, G or T, or a share of the memory as in 50%, from 64K "
           "to 1T; found '5s'");
    expect(3, 6, "pool: expected once, found again after line 5");
    expect(4, 7, "levle: unknown setting; did you mean 'level' (in [engine])?");
    expect(5, 8, "expected NAME = VALUE, [SECTION] or a comment");
    expect(6, 9, "expected ']' after the section's name, found '[queue'");
    expect(7, 11, "expected nothing after ']', found 'and more'");
    expect(8, 13, "max-queue: expected in [queue], found in [users]");
    expect(9, 14, "zzzzzzzzzzzz: unknown setting");
    expect(10, 15, "user-jobs: expected a number, from 1 to 1048576; found ''");
}

Test(config, a_wrong_value_says_range_and_words)
{
    parse("[engine]\nthreads = 0\nlevel = sse\n[log]\nlog-level = loud\n"
          "[server]\nsettle-time = 2h\nsocket-mode = 0999\n");
    expect(0, 2, "threads: expected a number, from 1 to 1024, or auto; found '0'");
    expect(1, 3, "level: expected plain, baseline, avx2 or avx512, or auto; found 'sse'");
    expect(2, 5, "log-level: expected error, warn, info or debug; found 'loud'");
    expect(3, 7, "settle-time: expected seconds, or with ms, min or h, from 0 to 1h; found '2h'");
    expect(4, 8, "socket-mode: expected an octal mode, from 0 to 0777; found '0999'");
}

Test(config, a_byte_of_0_is_a_mistake)
{
    static const char text[] = "[engine]\npool\0 = 5M\nthreads = 2\n";
    cr_assert(eq(uint, parse_bytes(text, sizeof(text) - 1), 1));
    expect(0, 2, "expected text, found a byte of 0");
    cr_assert(eq(uint, o.n_threads, 2));
}

Test(config, long_lines_are_refused_and_the_next_one_is_read)
{
    char text[4096];
    int n = snprintf(text, sizeof(text), "[engine]\nworker = /");
    memset(text + n, 'x', 189);
    snprintf(text + n + 189, sizeof(text) - (size_t)n - 189, "\nthreads = 2\n");
    cr_assert(eq(uint, parse(text), 1));
    expect(0, 2, "expected a line of at most 198 bytes, found 199");
    cr_assert(eq(uint, o.n_threads, 2));
    memmove(text + n, text + n + 1, strlen(text + n)); /* one byte less */
    cr_assert(eq(uint, parse(text), 0));
    cr_assert(eq(sz, strlen(o.worker), 189));
}

Test(config, what_was_found_cannot_write_to_a_terminal)
{
    parse("[engine]\nlevel = \x1b[31mred\n\x1b]0;x = 1\n");
    cr_assert(eq(uint, faults.n, 2));
    for (unsigned i = 0; i < faults.n; i++)
        cr_assert(eq(ptr, strchr(faults.kept[i].text, '\x1b'), NULL));
}

Test(config, more_mistakes_than_are_kept_are_counted)
{
    char text[4096] = "[engine]\n";
    for (unsigned i = 0; i < CONFIG_MAX_FAULTS + 10; i++)
        strcat(text, "nonsense = 1\n");
    cr_assert(eq(uint, parse(text), CONFIG_MAX_FAULTS + 10));
    cr_assert(eq(uint, faults.n_kept, CONFIG_MAX_FAULTS));
    expect(CONFIG_MAX_FAULTS - 1, CONFIG_MAX_FAULTS + 1, "nonsense: unknown setting");
}

/* Files --------------------------------------------------------------------------------------- */

static char base[64];

static void set_up(void)
{
    snprintf(base, sizeof(base), "/tmp/gpuarrayd-config-XXXXXX");
    cr_assert(ne(ptr, mkdtemp(base), NULL));
}

static void tear_down(void)
{
    unlink(o.config_path);
    rmdir(base);
}

static const char *load(const char *name)
{
    memset(&faults, 0, sizeof(faults));
    settings_set_defaults(&o, false);
    snprintf(o.config_path, sizeof(o.config_path), "%s%s", base, name);
    o.has_config = true;
    config_load(&o, &faults);
    return faults.n > 0 ? faults.kept[0].text + strlen(base) : "";
}

static void make(const char *name, off_t n_bytes)
{
    char path[128];
    snprintf(path, sizeof(path), "%s%s", base, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, ftruncate(fd, n_bytes), 0));
    close(fd);
}

Test(config, what_is_no_file_is_refused, .init = set_up, .fini = tear_down, .timeout = 10)
{
    char path[128];

    cr_assert(eq(str, (char *)load("/none"), "/none: No such file or directory"));
    cr_assert(eq(str, (char *)load(""), ": expected a regular file, found a directory"));
    snprintf(path, sizeof(path), "%s/pipe", base);
    cr_assert(eq(int, mkfifo(path, 0600), 0));
    cr_assert(
        eq(str, (char *)load("/pipe"), "/pipe: expected a regular file, found something else"));
}

Test(config, a_huge_file_is_refused, .init = set_up, .fini = tear_down)
{
    make("/huge", 100 << 20);
    cr_assert(eq(str, (char *)load("/huge"), "/huge: expected at most 65536 bytes, found more"));
}

Test(config, zeros_are_one_mistake, .init = set_up, .fini = tear_down)
{
    make("/zeros", CONFIG_MAX_BYTES);
    load("/zeros");
    cr_assert(eq(uint, faults.n, 1));
    expect(0, 1, "expected text, found a byte of 0");
}

Test(config, a_default_file_may_be_missing)
{
    memset(&faults, 0, sizeof(faults));
    settings_set_defaults(&o, false);
    snprintf(o.config_path, sizeof(o.config_path), "/nonexistent/gpuarrayd.conf");
    config_load(&o, &faults);
    cr_assert(eq(uint, faults.n, 0));
}

Test(config, a_mistake_is_told_with_its_file)
{
    char text[512];

    parse("[engine]\npool = x\n");
    snprintf(o.config_path, sizeof(o.config_path), "/etc/c");
    config_fault_format(&o, &faults, 0, text, sizeof(text));
    cr_assert(eq(int, strncmp(text, "/etc/c:2: pool: expected", 24), 0));
}
