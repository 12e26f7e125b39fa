/* top without a terminal: rates between two answers, the order of rows, what fits a line. */
#include "client/ctl/stats/top.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static struct top_snapshot *snapshot_of(const char *json)
{
    struct json_object *stats = json_tokener_parse(json);
    cr_assert(stats != NULL, "%s", json);
    struct top_snapshot *s = top_snapshot_new(stats);
    json_object_put(stats);
    cr_assert(s != NULL);
    return s;
}

static void set_up(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
}

static const char *fitted(const char *text, unsigned columns, bool pad)
{
    static char buffer[256];
    top_fit(buffer, sizeof(buffer), text, columns, pad);
    return buffer;
}

TestSuite(top, .init = set_up);

Test(top, text_fits_by_the_width_of_its_characters)
{
    cr_assert(eq(str, (char *)fitted("abc", 5, true), "abc  "));
    cr_assert(eq(str, (char *)fitted("abcdef", 3, false), "abc"));
    cr_assert(eq(str, (char *)fitted("\xe4\xb8\xad\xe4\xb8\xad", 3, true), "\xe4\xb8\xad "));
    cr_assert(eq(str, (char *)fitted("\xc3\xa4\xc3\xb6", 2, false), "\xc3\xa4\xc3\xb6"));
}

Test(top, nothing_of_others_reaches_the_terminal_but_text)
{
    cr_assert(eq(str, (char *)fitted("a\033[2Jb\x07\x7f", 20, false), "a?[2Jb??"));
    cr_assert(eq(str, (char *)fitted("\xff\xc3z", 20, false), "??z"));
    char small[4];
    cr_assert(eq(uint, top_fit(small, sizeof(small), "abcdef", 6, true), 3));
    cr_assert(eq(str, small, "abc"));
}

Test(top, times_and_rates_are_short)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0.0 s"},      {12.34, "12.3 s"}, {99.94, "99.9 s"},   {99.96, "1:39 m"},
                 {3599, "59:59 m"}, {6000, "1:40 h"},  {359999, "99:59 h"}, {360000, "4 d"},
                 {-1, "0.0 s"},     {NAN, "-"},        {1e12, "-"}};
    char buffer[16], rate[40];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stats_format_time(cases[i].seconds, buffer);
        cr_expect(eq(str, buffer, (char *)cases[i].text));
        cr_expect(le(sz, strlen(buffer), 7));
    }
    cr_assert(eq(str, top_format_rate(1.25e9, rate), "1.25 GB/s"));
    cr_assert(eq(str, top_format_rate(NAN, rate), "-"));
}

#define JOB(id, state, read)                                                                       \
    "{\"job\": " #id ", \"uid\": 4000000001, \"state\": \"" state "\", \"read_bytes\": " #read     \
    ", \"write_bytes\": 100, \"tiles\": 10, \"tiles_done\": 5, \"engine\": \"cpu\"}"

Test(top, rates_are_differences_over_the_daemons_time)
{
    struct top_snapshot *a =
        snapshot_of("{\"uptime_s\": 10, \"bytes\": {\"read\": {\"file\": 100, \"inline\": 50}},"
                    " \"users\": [{\"uid\": 1, \"read_bytes\": 100, \"write_bytes\": 7}],"
                    " \"active\": [" JOB(5, "running", 1000) "," JOB(6, "queued", 0) "]}");
    struct top_snapshot *b = snapshot_of(
        "{\"uptime_s\": 14, \"bytes\": {\"read\": {\"file\": 500, \"inline\": 50}},"
        " \"users\": [{\"uid\": 2}, {\"uid\": 1, \"read_bytes\": 900, \"write_bytes\": 7}],"
        " \"active\": [" JOB(7, "queued", 0) "," JOB(6, "running", 300) "," JOB(5, "running",
                                                                                5000) "]}");
    top_snapshot_compare(a, NULL);
    cr_assert(isnan(a->read_rate) && isnan(a->users[0].read_rate) && isnan(a->jobs[0].rate));
    top_snapshot_compare(b, a);
    cr_assert(eq(dbl, b->read_rate, 100));
    cr_assert(eq(uint, b->users[0].uid, 1)); /* it moves more */
    cr_assert(eq(dbl, b->users[0].read_rate, 200));
    cr_assert(eq(dbl, b->users[0].write_rate, 0));
    cr_assert(isnan(b->users[1].read_rate)); /* it was not there */
    cr_assert(eq(u64, b->jobs[0].id, 5));    /* running first, the oldest of them first */
    cr_assert(eq(dbl, b->jobs[0].rate, 1000));
    cr_assert(eq(dbl, b->jobs[1].rate, 75)); /* 300 read; the 100 written were there before */
    cr_assert(isnan(b->jobs[2].rate));       /* it waits */
    top_snapshot_free(a);
    top_snapshot_free(b);
}

Test(top, shares_are_of_the_work_between_two_answers)
{
    struct top_snapshot *a = snapshot_of("{\"uptime_s\": 10, \"users\": [{\"uid\": 1, \"work_s\": "
                                         "100}, {\"uid\": 2, \"work_s\": 5}]}");
    struct top_snapshot *b = snapshot_of(
        "{\"uptime_s\": 12, \"users\": [{\"uid\": 1, \"work_s\": 101}, {\"uid\": 2, \"work_s\": 8,"
        " \"jobs_running\": 1}, {\"uid\": 3, \"work_s\": 50}]}");
    top_snapshot_compare(a, NULL);
    cr_assert(isnan(a->users[0].share));
    top_snapshot_compare(b, a);
    cr_assert(eq(uint, b->users[0].uid, 2));
    cr_assert(eq(dbl, b->users[0].share, 0.75));
    cr_assert(eq(dbl, b->users[1].share, 0.25));
    cr_assert(eq(dbl, b->users[2].share, 0)); /* who came only now */
    top_snapshot_compare(b, b);
    cr_assert(eq(dbl, b->users[0].share, 0.75)); /* no time has passed */
    top_snapshot_free(a);
    top_snapshot_free(b);
}

Test(top, a_stage_is_what_a_job_is_at_or_waits_for)
{
    struct top_snapshot *s = snapshot_of(
        "{\"active\": [{\"job\": 1, \"state\": \"running\", \"stage\": \"input\"},"
        " {\"job\": 2, \"state\": \"running\", \"stage\": \"\"}, {\"job\": 3, \"state\": "
        "\"queued\","
        " \"stage\": \"turn\"}, {\"job\": 4, \"state\": \"queued\", \"stage\": \"room\"},"
        " {\"job\": 5, \"state\": \"settling\"}, {\"job\": 6, \"state\": \"queued\", \"paused\": "
        "true,"
        " \"stage\": \"turn\"}]}");
    static const char *const stages[] = {"input",   "running",  "queued",
                                         "no room", "settling", "paused"};
    for (size_t i = 0; i < 6; i++)
        cr_expect(eq(str, s->jobs[i].stage, (char *)stages[i]));
    top_snapshot_free(s);
}

Test(top, a_daemon_that_was_restarted_has_no_rates)
{
    struct top_snapshot *a = snapshot_of("{\"uptime_s\": 100, \"bytes\": {\"read\": {\"x\": 9}}}");
    struct top_snapshot *b = snapshot_of("{\"uptime_s\": 1, \"bytes\": {\"read\": {\"x\": 5}}}");
    struct top_snapshot *c = snapshot_of("{\"uptime_s\": 2, \"bytes\": {\"read\": {\"x\": 3}}}");
    top_snapshot_compare(b, a);
    cr_assert(isnan(b->read_rate));
    top_snapshot_compare(c, b);
    cr_assert(isnan(c->read_rate)); /* a number that fell */
    top_snapshot_free(a);
    top_snapshot_free(b);
    top_snapshot_free(c);
}

Test(top, an_answer_of_another_age_is_no_fault)
{
    struct top_snapshot *s =
        snapshot_of("{\"jobs\": 3, \"users\": {}, \"active\": [1], \"pool\": []}");
    top_snapshot_compare(s, NULL);
    cr_assert(eq(sz, s->n_users, 0));
    cr_assert(eq(sz, s->n_jobs, 1));
    cr_assert(eq(u64, s->jobs[0].id, 0));
    top_snapshot_free(s);
}

static unsigned width_of(const char *text)
{
    wchar_t wide[TOP_LINE_BYTES];
    size_t n = mbstowcs(wide, text, TOP_LINE_BYTES);
    return (unsigned)wcswidth(wide, n);
}

Test(top, the_largest_numbers_fit_eighty_columns)
{
    struct top_snapshot *s = snapshot_of(
        "{\"version\": \"0.1.0\", \"uptime_s\": 99999999, \"jobs\": {\"running\": 256, \"queued\": "
        "16384, \"ended\": {\"ok\": 999999, \"no-space\": 99999}}, \"sessions\": {\"open\": 999},"
        "\"pool\": {\"carries\": 256, "
        "\"carry_used_bytes\": 99900000000}, \"engines\": [{\"name\": \"cpu\", \"threads\": 128, "
        "\"threads_busy\": 128, \"slots\": 1234, \"slots_lent\": 1234, \"ready\": true}],"
        "\"users\": [{\"uid\": 4294967294, \"sessions\": 64, \"jobs_running\": 256, "
        "\"jobs_queued\":"
        " 16384, \"weight\": 1000, \"input_s\": 359999, \"room_s\": 359999, \"turn_s\": 359999}],"
        "\"active\": [{\"job\": 999999999, \"uid\": 4294967294, \"state\": \"settling\", "
        "\"engine\":"
        " \"cuda\", \"tiles_done\": 1, \"tiles\": 1, \"queued_s\": 359999, \"running_s\": 359999,"
        " \"label\": \"a label of many words\"}]}");
    s->read_rate = s->write_rate = s->users[0].read_rate = s->users[0].write_rate = 998e9;
    s->users[0].share = 1;
    s->jobs[0].rate = 998e9;
    const struct top_frame wide = {.columns = TOP_MAX_COLUMNS, .clock = "", .message = ""};
    const struct top_frame frame = {.columns = 80, .clock = "12:34:56", .message = ""};
    struct top_page page;
    cr_assert(top_page_make(s, &wide, &page));
    for (size_t i = 0; i + 1 < page.n_lines; i++) /* the last one's label takes what is left */
        cr_expect(le(uint, width_of(page.lines[i].text), 80), "%s", page.lines[i].text);
    cr_assert(strstr(page.lines[page.n_lines - 1].text, " a label of many words") != NULL);
    top_page_deinit(&page);
    cr_assert(top_page_make(s, &frame, &page));
    for (size_t i = 0; i < page.n_lines; i++)
        cr_expect(le(uint, width_of(page.lines[i].text), 80), "%s", page.lines[i].text);
    cr_assert(eq(str, page.lines[0].text + 72, "12:34:56"));
    cr_assert(strstr(page.lines[page.n_lines - 1].text, " a label") != NULL);
    top_page_deinit(&page);
    top_snapshot_free(s);
}

Test(top, every_engine_has_a_state_and_those_that_are_there_are_added_up)
{
    struct top_snapshot *s = snapshot_of(
        "{\"version\": \"0.1.0\", \"uptime_s\": 1, \"engines\": ["
        "{\"name\": \"cpu\", \"state\": \"ready\", \"threads\": 8, \"threads_busy\": 3, "
        "\"slots\": 64, \"slots_lent\": 5},"
        "{\"name\": \"cuda:0\", \"state\": \"ready\", \"threads\": 4, \"threads_busy\": 2, "
        "\"slots\": 31, \"slots_lent\": 7},"
        "{\"name\": \"cuda:1\", \"state\": \"absent\", \"threads\": 4}]}");
    const struct top_frame frame = {.columns = TOP_MAX_COLUMNS, .clock = "", .message = ""};
    struct top_page page;
    cr_assert(top_page_make(s, &frame, &page));
    cr_expect(strstr(page.lines[0].text, ", cpu ready, cuda:0 ready, cuda:1 absent, 5/12 threads "
                                         "busy") != NULL,
              "%s", page.lines[0].text);
    cr_expect(strstr(page.lines[2].text, "12 of 95 slots lent") != NULL, "%s", page.lines[2].text);
    top_page_deinit(&page);
    top_snapshot_free(s);
}

/* So many users and jobs on so many lines. */
static struct top_page page_of(unsigned n_users, unsigned n_jobs, unsigned n_lines)
{
    struct top_page page;
    struct json_object *stats = json_object_new_object(), *users = json_object_new_array(),
                       *active = json_object_new_array();
    for (unsigned i = 0; i < n_users; i++)
        json_object_array_add(users, json_tokener_parse("{\"uid\": 4000000001}"));
    for (unsigned i = 0; i < n_jobs; i++)
        json_object_array_add(active, json_tokener_parse("{\"job\": 77, \"state\": \"queued\"}"));
    json_object_object_add(stats, "users", users);
    json_object_object_add(stats, "active", active);
    struct top_snapshot *s = top_snapshot_new(stats);
    const struct top_frame frame = {
        .columns = 80, .n_lines = n_lines, .clock = "", .message = "something"};
    cr_assert(top_page_make(s, &frame, &page));
    top_snapshot_free(s);
    json_object_put(stats);
    return page;
}

static unsigned count(const struct top_page *page, const char *word)
{
    unsigned n = 0;
    for (size_t i = 0; i < page->n_lines; i++)
        n += strstr(page->lines[i].text, word) != NULL;
    return n;
}

Test(top, sections_that_are_cut_say_by_how_much)
{
    struct top_page page = page_of(20, 50, 24);
    cr_assert(eq(sz, page.n_lines, 24));
    cr_assert(eq(str, page.lines[3].text, "something"));
    cr_assert(eq(uint, count(&page, "4000000001"), 4)); /* a third of 17 lines, one says more */
    cr_assert(eq(uint, count(&page, "... 16 more"), 1));
    cr_assert(eq(uint, count(&page, " 77 "), 11));
    cr_assert(eq(uint, count(&page, "... 39 more"), 1));
    top_page_deinit(&page);
    page = page_of(20, 50, 0);
    cr_assert(eq(uint, count(&page, "4000000001"), 20));
    cr_assert(eq(uint, count(&page, " 77 "), 50));
    cr_assert(eq(uint, count(&page, "more"), 0));
    top_page_deinit(&page);
    page = page_of(3, 2, 5); /* no room for either */
    cr_assert(eq(uint, count(&page, "USER"), 2));
    top_page_deinit(&page);
}
