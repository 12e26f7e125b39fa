/* The exposition format: what is told becomes samples, what is not leaves its family out. */
#include "client/ctl/stats/stats.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t n_bytes;

static const char *written(const char *json)
{
    struct json_object *stats = json_tokener_parse(json);
    FILE *file = open_memstream(&text, &n_bytes);
    cr_assert(stats != NULL && file != NULL);
    stats_write_prometheus(file, stats);
    fclose(file);
    json_object_put(stats);
    return text;
}

static bool has_line(const char *line)
{
    size_t n = strlen(line);
    for (const char *at = text; (at = strstr(at, line)); at += n)
        if ((at == text || at[-1] == '\n') && at[n] == '\n')
            return true;
    return false;
}

Test(prometheus, label_values_are_escaped)
{
    FILE *file = open_memstream(&text, &n_bytes);
    stats_write_label_value(file, "a\"b\\c\nd{e}=\xc3\xa4");
    fclose(file);
    cr_assert(eq(str, text, "a\\\"b\\\\c\\nd{e}=\xc3\xa4"));
    free(text);
}

Test(prometheus, numbers_become_samples)
{
    written("{\"version\": \"9\\\"9\", \"uptime_s\": 1.5, \"jobs\": {\"queued\": 1, \"running\": 2,"
            " \"submitted\": 18446744073709551615, \"ended\": {\"ok\": 3, \"new-code\": 4}},"
            " \"bytes\": {\"read\": {\"file\": 7}}, \"seconds\": {\"queue\": 0.1234567}}");
    cr_assert(has_line("gpuarrayd_info{version=\"9\\\"9\"} 1"));
    cr_assert(has_line("gpuarrayd_uptime_seconds 1.500000"));
    cr_assert(has_line("gpuarrayd_jobs{state=\"queued\"} 1"));
    cr_assert(has_line("gpuarrayd_jobs{state=\"running\"} 2"));
    cr_assert(has_line("gpuarrayd_jobs_submitted_total 18446744073709551615"));
    cr_assert(has_line("gpuarrayd_jobs_ended_total{status=\"ok\"} 3"));
    cr_assert(has_line("gpuarrayd_jobs_ended_total{status=\"new-code\"} 4"));
    cr_assert(has_line("gpuarrayd_jobs_ended_total{status=\"no-space\"} 0"));
    cr_assert(has_line("gpuarrayd_read_bytes_total{path=\"file\"} 7"));
    cr_assert(has_line("gpuarrayd_stage_seconds_total{stage=\"queue\"} 0.123456"));
    cr_assert(strstr(text, "submitted\"}") == NULL); /* no state of a job */
    free(text);
}

Test(prometheus, what_is_not_told_is_a_gap)
{
    written("{\"version\": \"1\", \"pool\": {\"bytes\": 5}, \"users\": [],"
            " \"engines\": [{\"name\": \"cpu\", \"ready\": false, \"threads\": 2}]}");
    cr_assert(has_line("gpuarrayd_pool_bytes 5"));
    cr_assert(has_line("gpuarrayd_worker_ready{engine=\"cpu\"} 0"));
    cr_assert(strstr(text, "pool_slots") == NULL);
    cr_assert(strstr(text, "threads_busy") == NULL);
    cr_assert(strstr(text, "user_") == NULL);
    cr_assert(strstr(text, "uptime") == NULL);
    free(text);
}

Test(prometheus, a_user_is_a_number_and_a_name)
{
    written("{\"version\": \"1\", \"users\": [{\"uid\": 4000000001, \"jobs_queued\": 2,"
            " \"jobs_running\": 1, \"jobs_settling\": 0, \"waited_s\": 3}]}");
    cr_assert(has_line("gpuarrayd_user_jobs{uid=\"4000000001\",user=\"4000000001\","
                       "state=\"queued\"} 2"));
    cr_assert(has_line("gpuarrayd_user_queue_seconds_total{uid=\"4000000001\","
                       "user=\"4000000001\"} 3"));
    free(text);
}
