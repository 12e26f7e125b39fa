/* Pictures: marks of axes where people expect them, texts that are no markup, gaps and odd numbers.
 */
#include "client/ctl/picture/chart.h"
#include "client/picture/svg.h"
#include "client/ctl/stats/stats.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t n_bytes;

static FILE *begin(void)
{
    FILE *file = open_memstream(&text, &n_bytes);
    cr_assert(file != NULL);
    return file;
}

static unsigned count(const char *word)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

Test(axis, steps_are_round_and_few)
{
    static const struct {
        double last;
        unsigned most;
        enum axis_unit unit;
        double step;
    } cases[] = {{100, 5, AXIS_BYTES, 20}, {101, 5, AXIS_BYTES, 50},  {1e9, 5, AXIS_BYTES, 2e8},
                 {7, 5, AXIS_NUMBER, 2},   {1, 5, AXIS_NUMBER, 1},    {0, 5, AXIS_NUMBER, 1},
                 {0, 5, AXIS_BYTES, 1},    {0.5, 5, AXIS_BYTES, 0.1}, {3e-9, 3, AXIS_BYTES, 1e-9}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double step = axis_step(cases[i].last, cases[i].most, cases[i].unit);
        cr_expect(lt(dbl, fabs(step - cases[i].step), 1e-9 * cases[i].step + 1e-18), "at %zu: %g",
                  i, step);
    }
    for (double last = 1; last < 1e15; last *= 1.37)
        cr_expect(le(dbl, last / axis_step(last, 5, AXIS_BYTES), 5 * (1 + 1e-9)));
}

Test(axis, labels_have_one_unit)
{
    char label[AXIS_LABEL_SIZE];
    cr_expect(eq(str, axis_label(500e6, 1.5e9, AXIS_BYTES_A_SECOND, label), "0.5 GB/s"));
    cr_expect(eq(str, axis_label(0, 40e6, AXIS_BYTES, label), "0 MB"));
    cr_expect(eq(str, axis_label(7, 7, AXIS_NUMBER, label), "7"));
    cr_expect(eq(str, axis_label(1e30, 1e30, AXIS_BYTES, label), "1e+12 EB"));
}

Test(axis, times_are_at_whole_steps)
{
    char label[AXIS_LABEL_SIZE];
    setenv("TZ", "UTC-2", 1);
    cr_expect(eq(dbl, axis_time_step(3600, 9), 600));
    cr_expect(eq(dbl, axis_time_step(10, 9), 2));
    cr_expect(lt(dbl, fabs(axis_time_step(0.9, 9) - 0.1), 1e-12));
    cr_expect(eq(dbl, axis_time_step(86400 * 90, 9), 86400 * 10));
    cr_expect(eq(dbl, axis_first_time(3, 2, NAN), 4));
    cr_expect(eq(str, axis_time_label(4, 2, NAN, label), "4 s"));
    /* 1970-01-01 02:00:50 local at time 0: the next whole minute is 10 seconds on. */
    cr_expect(eq(dbl, axis_first_time(0, 60, 50), 10));
    cr_expect(eq(str, axis_time_label(10, 60, 50, label), "02:01"));
    cr_expect(eq(str, axis_time_label(10, 30, 50, label), "02:01:00"));
}

Test(svg, texts_are_no_markup)
{
    FILE *file = begin();
    svg_write_escaped(file, "a<b>&\"c\x01\x7f\xff\xc3\xa4\xef\xbf\xbf");
    fclose(file);
    cr_assert(strncmp(text, "a&lt;b&gt;&amp;&quot;c???\xc3\xa4?", 28) == 0, "%s", text);
    free(text);
}

Test(svg, numbers_that_are_none_do_not_break_the_file)
{
    const struct svg_point points[] = {{NAN, 1}, {INFINITY, -INFINITY}};
    FILE *file = begin();
    svg_curve(file, points, 2, "#000000", "");
    svg_curve(file, points, 1, "#000000", "");
    svg_curve(file, points, 0, "#000000", "");
    svg_area(file, points, 1, 0, "#000000", 1);
    fclose(file);
    cr_assert(eq(uint, count("nan") + count("inf"), 0));
    cr_assert(eq(uint, count("<polyline") + count("<circle"), 2));
    cr_assert(eq(uint, count("<polygon"), 0));
    free(text);
}

Test(chart, a_gap_cuts_the_curve)
{
    const double times[] = {0, 1, 2, 3, 4}, values[] = {1, 2, NAN, 4, 5};
    const struct chart_curve curve = {.name = "<n>", .values = values};
    const struct chart chart = {.title = "t", .unit = AXIS_BYTES, .curves = &curve, .n_curves = 1};
    const struct chart_page page = {.title = "p",
                                    .subtitle = "",
                                    .times = times,
                                    .n_times = 5,
                                    .last = 4,
                                    .clock_s = NAN,
                                    .charts = &chart,
                                    .n_charts = 1};
    FILE *file = begin();
    chart_write_page(file, &page);
    fclose(file);
    cr_assert(eq(uint, count("<polyline"), 2));
    cr_assert(eq(uint, count("&lt;n&gt;, at most 5 B"), 1));
    free(text);
}

Test(chart, many_curves_have_their_names_within_the_page)
{
    const double times[] = {0, 1}, values[] = {1e9, 2e9};
    struct chart_curve curves[20];
    for (unsigned i = 0; i < 20; i++)
        curves[i] = (struct chart_curve){.name = "worker cuda:12", .values = values};
    const struct chart chart = {.title = "t", .unit = AXIS_BYTES, .curves = curves, .n_curves = 20};
    const struct chart_page page = {.title = "p",
                                    .subtitle = "",
                                    .times = times,
                                    .n_times = 2,
                                    .last = 1,
                                    .clock_s = NAN,
                                    .charts = &chart,
                                    .n_charts = 1};
    FILE *file = begin();
    chart_write_page(file, &page);
    fclose(file);
    double width = 0, height = 0;
    const char *svg = strstr(text, "<svg");
    cr_assert(eq(int,
                 sscanf(svg,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" "
                        "width=\"%lf\" height=\"%lf\"",
                        &width, &height),
                 2));
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "<text")); at++) {
        double x, y;
        cr_assert(eq(int, sscanf(at, "<text x=\"%lf\" y=\"%lf\"", &x, &y), 2));
        cr_assert(le(dbl, x, width - 20));
        cr_assert(le(dbl, y, height));
        n += strncmp(strchr(at, '>'), ">worker cuda:12", 15) == 0;
    }
    cr_assert(eq(uint, n, 20));
    free(text);
}

/* What a daemon may say that is not what we expect. */
Test(plot, answers_of_any_form_become_a_picture)
{
    static const char *const answers[] = {
        "{}", "{\"columns\": 1, \"samples\": {}}",
        "{\"columns\": [1, null, \"at_ms\"], \"samples\": [1, [], [null], [1, 2, \"x\"]]}",
        "{\"uptime_ms\": 9000, \"columns\": [\"at_ms\", \"period_ms\", \"read_bytes\","
        " \"worker_bytes <cpu>\", \"broker_bytes\"],"
        " \"samples\": [[1000, 1000, 5, 6, 7], [2000, 1000, 4, 6, 7], [1500, 0, 9, 1, 1]]}"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct json_object *samples = json_tokener_parse(answers[i]);
        FILE *file = begin();
        cr_assert(eq(int, stats_write_plot(file, samples, 60000), 0));
        fclose(file);
        json_object_put(samples);
        cr_assert(eq(uint, count("</svg>"), 1));
        cr_assert(eq(uint, count("nan") + count("<cpu>"), 0));
        free(text);
    }
}
