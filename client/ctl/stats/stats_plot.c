/* The daemon's samples as a picture: private memory of its processes, the pool in use, bytes a
 * second, jobs.
 *
 * Columns are found by their names, so that a daemon of another age, with fewer or more, is drawn
 * as far as both know them. Counters become rates between two samples; of the first one nothing is
 * known but where it is the daemon's first, too. Times of samples are the daemon's uptime: what the
 * clock said then follows from what it says now.
 *
 * Called by stats.c; tested alone.
 */
#include "client/ctl/picture/chart.h"
#include "client/ctl/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_CURVES 24u /* more workers than that are not drawn */
#define WORKER      "worker_bytes "

struct plot {
    struct json_object *columns, *samples;
    size_t n;
    double *times;
    double *numbers[MOST_CURVES]; /* owned */
    char names[MOST_CURVES][48];
    struct chart_curve curves[MOST_CURVES];
    unsigned n_curves;
    bool has_failed; /* without memory */
};

static double number_at(struct json_object *sample, size_t column)
{
    if (!json_object_is_type(sample, json_type_array) || column >= json_object_array_length(sample))
        return NAN;
    struct json_object *value = json_object_array_get_idx(sample, column);
    bool is_number =
        json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    return is_number ? json_object_get_double(value) : NAN;
}

static const char *column_name(const struct plot *p, size_t i)
{
    struct json_object *name = json_object_array_get_idx(p->columns, i);
    return json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "";
}

static size_t find_column(const struct plot *p, const char *name)
{
    size_t n = json_object_array_length(p->columns), i = 0;
    while (i < n && strcmp(column_name(p, i), name) != 0)
        i++;
    return i;
}

static double *read_column(struct plot *p, size_t column)
{
    double *values = calloc(p->n + 1, sizeof(*values));
    p->has_failed |= !values;
    for (size_t i = 0; values && i < p->n; i++)
        values[i] = number_at(json_object_array_get_idx(p->samples, i), column);
    return values;
}

/* NULL where there is no room, or no memory. */
static struct chart_curve *add_curve(struct plot *p, struct chart *chart, const char *name,
                                     size_t column)
{
    double *values = p->n_curves < MOST_CURVES ? read_column(p, column) : NULL;
    if (!values)
        return NULL;
    struct chart_curve *curve = &p->curves[p->n_curves];
    snprintf(p->names[p->n_curves], sizeof(p->names[0]), "%s", name);
    p->numbers[p->n_curves] = values;
    *curve = (struct chart_curve){.name = p->names[p->n_curves], .values = values};
    if (chart->n_curves++ == 0)
        chart->curves = curve;
    p->n_curves++;
    return curve;
}

/* Of a counter, how fast it rose. */
static void make_rates(const struct plot *p, double *values)
{
    size_t period = find_column(p, "period_ms");
    for (size_t i = p->n; i-- > 0;) {
        double span = number_at(json_object_array_get_idx(p->samples, i), period) / 1e3;
        bool is_known = i > 0 || p->times[0] - span < 1e-3;
        double before = i > 0 ? values[i - 1] : 0, since = i > 0 ? p->times[i - 1] : 0;
        values[i] = is_known && p->times[i] > since && values[i] >= before
                        ? (values[i] - before) / (p->times[i] - since)
                        : NAN;
    }
}

static bool has_any(const struct plot *p, size_t column)
{
    for (size_t i = 0; i < p->n; i++)
        if (number_at(json_object_array_get_idx(p->samples, i), column) > 0)
            return true;
    return false;
}

static void add_workers(struct plot *p, struct chart *chart)
{
    for (size_t i = 0; i < json_object_array_length(p->columns); i++) {
        const char *column = column_name(p, i);
        char name[48];
        if (strncmp(column, WORKER, sizeof(WORKER) - 1) != 0)
            continue;
        snprintf(name, sizeof(name), "worker %.32s", column + sizeof(WORKER) - 1);
        (void)add_curve(p, chart, name, i);
    }
}

enum { MEMORY, POOL, RATES, JOBS, N_CHARTS };

static const struct {
    unsigned chart;
    const char *name, *column;
    bool is_rate, is_filled, is_dashed;
    bool is_rare; /* left out where it is 0 all the time */
} rows[] = {
    {MEMORY, "broker", "broker_bytes", false, false, false, false},
    {POOL, "slots lent", "slot_bytes", false, true, false, false},
    {POOL, "carries", "carry_bytes", false, true, false, false},
    {POOL, "all of it", "pool_bytes", false, false, true, false},
    {POOL, "carries on devices", "device_carry_bytes", false, false, false, true},
    {RATES, "read", "read_bytes", true, true, false, false},
    {RATES, "written", "write_bytes", true, true, false, false},
    {JOBS, "running", "running", false, true, false, false},
    {JOBS, "queued", "queued", false, false, false, false},
};

static void add_rows(struct plot *p, struct chart *charts)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t column = find_column(p, rows[i].column);
        if (rows[i].is_rare && !has_any(p, column))
            continue;
        struct chart *chart = &charts[rows[i].chart];
        struct chart_curve *curve = add_curve(p, chart, rows[i].name, column);
        if (!curve)
            continue;
        curve->is_filled = rows[i].is_filled;
        curve->is_dashed = rows[i].is_dashed;
        if (rows[i].is_rate)
            make_rates(p, p->numbers[p->n_curves - 1]);
        if (rows[i].chart == MEMORY)
            add_workers(p, chart);
    }
}

static void write_clock(double epoch_s, char ret[32])
{
    time_t seconds = (time_t)epoch_s;
    struct tm local;
    ret[0] = '\0';
    if (localtime_r(&seconds, &local))
        strftime(ret, 32, "%Y-%m-%d %H:%M:%S", &local);
}

static void draw(FILE *file, struct plot *p, double uptime_s, double last_s)
{
    struct chart charts[N_CHARTS] = {
        [MEMORY] = {.title = "Private memory", .unit = AXIS_BYTES},
        [POOL] = {.title = "Pool", .unit = AXIS_BYTES},
        [RATES] = {.title = "Bytes a second", .unit = AXIS_BYTES_A_SECOND},
        [JOBS] = {.title = "Jobs", .unit = AXIS_NUMBER}};
    char subtitle[80], from[32], to[32];
    struct chart_page page = {.title = "gpuarrayd",
                              .subtitle = subtitle,
                              .times = p->times,
                              .n_times = p->n,
                              .first = last_s > 0 ? fmax(uptime_s - last_s, 0) : 0,
                              .last = uptime_s,
                              .clock_s = (double)time(NULL) - uptime_s,
                              .charts = charts,
                              .n_charts = N_CHARTS};
    if (p->n > 0)
        page.first = fmax(page.first, fmin(p->times[0], uptime_s - 1));
    write_clock(page.clock_s + page.first, from);
    write_clock(page.clock_s + page.last, to);
    snprintf(subtitle, sizeof(subtitle), "%s to %s", from, to);
    add_rows(p, charts);
    if (!p->has_failed)
        chart_write_page(file, &page);
}

int stats_write_plot(FILE *file, struct json_object *samples, uint64_t last_ms)
{
    struct plot p = {.columns = stats_at(samples, "columns"),
                     .samples = stats_at(samples, "samples")};
    struct json_object *none = json_object_new_array();
    if (!json_object_is_type(p.columns, json_type_array))
        p.columns = none;
    if (!json_object_is_type(p.samples, json_type_array))
        p.samples = none;
    p.n = none ? json_object_array_length(p.samples) : 0;
    p.has_failed = !none;
    p.times = none ? read_column(&p, find_column(&p, "at_ms")) : NULL;
    for (size_t i = 0; p.times && i < p.n; i++)
        p.times[i] /= 1e3;
    if (p.times)
        draw(file, &p, stats_f64(samples, "uptime_ms") / 1e3, (double)last_ms / 1e3);
    for (unsigned i = 0; i < p.n_curves; i++)
        free(p.numbers[i]);
    free(p.times);
    json_object_put(none);
    return p.has_failed ? GAD_NO_MEMORY : 0;
}
