/* The log: the form of a line, and that nobody is ever waited for. */
#define LOG_TOPIC "test"
#include "daemon/broker/host/log.h"
#include "daemon/broker/host/loglimit.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

Test(log, a_line_has_level_topic_text_and_fields)
{
    char line[128];

    log_format(line, sizeof(line), false, LOG_LEVEL_WARN, "queue", LOG_JOB(7, 1000), "is full");
    cr_assert(eq(str, line, "gpuarrayd: warn: queue: is full JOB=7 UID=1000\n"));
    log_format(line, sizeof(line), true, LOG_LEVEL_ERROR, "queue", NULL, "is full");
    cr_assert(eq(str, line, "<3>queue: is full\n"));
    log_format(line, sizeof(line), true, LOG_LEVEL_DEBUG, "queue", LOG_UID(0), "x");
    cr_assert(eq(str, line, "<7>queue: x UID=0\n"));
}

Test(log, more_fields_go_behind_the_others)
{
    char line[128];
    const struct log_fields fields = {
        .job = 7, .has_uid = true, .uid = 1, .more = "CODE=ok A=\"\n\""};

    log_format(line, sizeof(line), false, LOG_LEVEL_INFO, "job", &fields, "done");
    cr_assert(eq(str, line, "gpuarrayd: info: job: done JOB=7 UID=1 CODE=ok A=\"?\"\n"));
}

Test(log, a_long_text_leaves_room_for_the_fields)
{
    int ends[2];
    char text[4000], line[4000] = "";

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cr_assert(eq(int, pipe(ends), 0));
    log_open(ends[1], LOG_LEVEL_INFO);
    log_info(LOG_JOB(7, 1), "%s", text);
    cr_assert(lt(int, 0, (int)read(ends[0], line, sizeof(line) - 1)));
    cr_assert(ne(ptr, strstr(line, "x JOB=7 UID=1\n"), NULL));
    log_close();
}

Test(log, the_level_can_change)
{
    log_set_level(LOG_LEVEL_DEBUG);
    cr_assert(log_is_on(LOG_LEVEL_DEBUG));
    log_set_level(LOG_LEVEL_ERROR);
    cr_assert(not(log_is_on(LOG_LEVEL_WARN)));
}

Test(log, a_clients_text_cannot_make_lines)
{
    char line[128];

    log_format(line, sizeof(line), false, LOG_LEVEL_INFO, "t", NULL, "a\nb\x1b[0m\x7f");
    cr_assert(eq(str, line, "gpuarrayd: info: t: a?b?[0m?\n"));
}

Test(log, a_long_line_is_cut_and_ends)
{
    char text[600], line[64];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    size_t n = log_format(line, sizeof(line), false, LOG_LEVEL_INFO, "t", LOG_JOB(1, 1), text);
    cr_assert(eq(sz, n, sizeof(line) - 1));
    cr_assert(eq(chr, line[n - 1], '\n'));
    cr_assert(eq(sz, strlen(line), n));
    cr_assert(eq(sz, log_format(line, 1, false, LOG_LEVEL_INFO, "t", NULL, text), 0));
    cr_assert(eq(sz, log_format(line, 2, false, LOG_LEVEL_INFO, "t", NULL, text), 1));
}

static void fill(int fd, uint64_t n_lines)
{
    log_open(fd, LOG_LEVEL_INFO);
    for (uint64_t i = 0; i < n_lines; i++)
        log_info(NULL, "a line that is some fifty characters long: %llu", (unsigned long long)i);
}

Test(log, a_full_pipe_drops_lines_and_says_so_later, .timeout = 10)
{
    int ends[2];
    char buffer[200000];

    cr_assert(eq(int, pipe(ends), 0));
    fill(ends[1], 5000);
    cr_assert(lt(u64, 0, log_n_dropped()));
    cr_assert(eq(int, fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0));
    cr_assert(lt(int, 0, (int)read(ends[0], buffer, sizeof(buffer))));
    log_info(NULL, "after");
    ssize_t n = read(ends[0], buffer, sizeof(buffer) - 1);
    cr_assert(lt(int, 0, (int)n));
    buffer[n] = '\0';
    cr_assert(ne(ptr, strstr(buffer, "lines found no room"), NULL));
    cr_assert(ne(ptr, strstr(buffer, "test: after\n"), NULL));
    log_close();
}

Test(log, a_full_socket_drops_lines, .timeout = 10)
{
    int ends[2];

    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0));
    fill(ends[1], 20000);
    cr_assert(lt(u64, 0, log_n_dropped()));
    log_close();
}

Test(log, lines_below_the_level_are_not_written)
{
    int ends[2];
    char c;

    cr_assert(eq(int, pipe(ends), 0));
    log_open(ends[1], LOG_LEVEL_WARN);
    cr_assert(not(log_is_on(LOG_LEVEL_INFO)));
    log_info(NULL, "no");
    log_write(LOG_LEVEL_DEBUG, "t", NULL, "no");
    log_close();
    close(ends[1]);
    cr_assert(eq(int, (int)read(ends[0], &c, 1), 0));
}

Test(log, the_journals_stream_gets_priorities)
{
    int ends[2];
    char stream[64], line[64] = "";
    struct stat st;

    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0));
    cr_assert(eq(int, fstat(ends[1], &st), 0));
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_open(ends[1], LOG_LEVEL_WARN);
    log_error(NULL, "no");
    cr_assert(lt(int, 0, (int)read(ends[0], line, sizeof(line) - 1)));
    cr_assert(eq(str, line, "<3>test: no\n"));
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_open(ends[1], LOG_LEVEL_WARN);
    log_error(NULL, "no");
    memset(line, 0, sizeof(line));
    cr_assert(lt(int, 0, (int)read(ends[0], line, sizeof(line) - 1)));
    cr_assert(eq(str, line, "gpuarrayd: error: test: no\n"));
    log_close();
}

Test(log, levels_have_names)
{
    enum log_level level;

    cr_assert(log_level_from_name("debug", &level));
    cr_assert(eq(int, level, LOG_LEVEL_DEBUG));
    cr_assert(not(log_level_from_name("loud", &level)));
}

Test(log, marks_of_direction_are_not_shown)
{
    char line[128];

    log_format(line, sizeof(line), false, LOG_LEVEL_INFO, "t", NULL,
               "a\xe2\x80\xae"
               "b\xc2\x9b\xff");
    cr_assert(eq(str, line, "gpuarrayd: info: t: a???b???\n"));
}

#define SECOND UINT64_C(1000000000)

static unsigned count_allowed(struct log_limit *limit, uint32_t uid, enum log_limit_kind kind,
                              unsigned n, uint64_t now_ns)
{
    unsigned n_allowed = 0;
    for (unsigned i = 0; i < n; i++)
        n_allowed += log_limit_allows(limit, uid, true, kind, now_ns);
    return n_allowed;
}

Test(log_limit, a_user_has_so_many_lines_and_later_some_more)
{
    static struct log_limit limit;

    cr_assert(eq(uint, count_allowed(&limit, 7, LOG_LIMIT_FAULTS, 1000, SECOND), 50));
    cr_assert(eq(uint, count_allowed(&limit, 7, LOG_LIMIT_NOTES, 3000, SECOND), 500));
    cr_assert(eq(uint, count_allowed(&limit, 8, LOG_LIMIT_FAULTS, 10, SECOND), 10));
    cr_assert(eq(uint, count_allowed(&limit, 7, LOG_LIMIT_FAULTS, 10, 4 * SECOND), 3));
    cr_assert(eq(uint, count_allowed(&limit, 7, LOG_LIMIT_FAULTS, 100, 1000 * SECOND), 50));
    cr_assert(eq(u64, limit.n_left_out, 950 + 2500 + 7 + 50));
}

Test(log_limit, what_was_left_out_is_told_once)
{
    static struct log_limit limit;
    uint32_t uid = 0;
    uint64_t n = 0;

    cr_assert(not(log_limit_untold(&limit, &uid, &n)));
    count_allowed(&limit, 7, LOG_LIMIT_FAULTS, 60, SECOND);
    count_allowed(&limit, 0, LOG_LIMIT_FAULTS, 51, SECOND);
    cr_assert(log_limit_untold(&limit, &uid, &n));
    cr_assert(eq(u32, uid, 7));
    cr_assert(eq(u64, n, 10));
    cr_assert(log_limit_untold(&limit, &uid, &n));
    cr_assert(eq(u32, uid, 0));
    cr_assert(eq(u64, n, 1));
    cr_assert(not(log_limit_untold(&limit, &uid, &n)));
    cr_assert(eq(u64, limit.n_left_out, 11));
}

Test(log_limit, many_users_share_the_places)
{
    static struct log_limit limit;

    count_allowed(&limit, 1000, LOG_LIMIT_FAULTS, 60, SECOND);
    for (uint32_t uid = 0; uid < 3 * LOG_LIMIT_USERS; uid++)
        cr_assert(log_limit_allows(&limit, uid, true, LOG_LIMIT_FAULTS, (2 + uid) * SECOND));
    cr_assert(eq(u64, limit.n_left_out, 10));
    cr_assert(eq(u64, limit.n_untold, 0));
}
