/* gpuarrayctl show: what is in an array, without loading it.
 *
 * The daemon reads the array twice: once for counts, least, greatest and sum, once for a histogram
 * between them. Fill values that the source names (_FillValue) and NaN are counted and left out;
 * infinities count for min, max and mean as in NumPy, and not for the histogram.
 *
 *     speed.npy  npy  float32 (132, 73, 144)  1387584 elements
 *     min 0.003   mean 6.84   max 25.6   NaN 0
 *        0.003 |##################                |  213412
 */
#include "client/ctl/ctl.h"

#include "proto/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_BINS 14

struct summary {
    uint64_t n, n_nan, n_fill, n_above, n_below; /* above, below: +inf, -inf */
    double least, greatest, sum;                 /* of the finite ones */
    uint64_t bins[N_BINS];
    bool has_bins;
};

struct show_options {
    const char *source;
    bool json;
};

enum { OPTION_JSON = 0x100 };

static const struct argp_option show_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct show_options *o = state->input;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->source)
            return ctl_usage_error(state, "one source only: '%s' is too much", arg);
        o->source = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        return ctl_usage_error(state, "a source is needed, as in 'show speed.npy'");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp show_argp = {
    show_argp_options,
    parse_option,
    "SOURCE",
    "An array's dtype, shape, least, mean and greatest element, and a histogram. NaN and the fill "
    "value that a source names are counted and left out.\v"
    "Examples:\n"
    "  gpuarrayctl show speed.npy\n"
    "  gpuarrayctl show winds.h5:/UWND --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* Runs reductions over the source "x" (and the fill value "f"); the results as doubles. */
static int reduce(struct gad_client *client, struct gad_array *x, unsigned n_outputs,
                  const struct gad_output *outputs, const struct gad_argument *scalars,
                  unsigned n_scalars, double *ret_values, struct gad_error *error)
{
    struct gad_argument args[1 + 1 + N_BINS] = {{.name = "x", .array = x}};
    memcpy(args + 1, scalars, n_scalars * sizeof(*scalars));
    struct gad_job_options options = {.n_args = 1 + n_scalars,
                                      .args = args,
                                      .n_outputs = n_outputs,
                                      .outputs = outputs,
                                      .label = "show"};
    struct gad_job *job;
    int r = (int)gad_submit(client, &options, &job, error);
    if (r)
        return r;
    r = ctl_wait(job, error);
    for (unsigned i = 0; i < n_outputs && !r; i++) {
        struct gad_plan_output what;
        const void *data = gad_job_result(job, i, &what);
        if (!data)
            r = error_set(error, GAD_INTERNAL, "x", "the daemon sent no value");
        else
            ret_values[i] = ctl_element_f64(what.dtype, data, 0);
    }
    gad_job_free(job);
    return r;
}

/* The fill value as a scalar of the source's kind. Without one: NaN, which equals nothing. */
static struct gad_argument fill_argument(const struct gad_array_info *info)
{
    bool is_float = info->dtype == GAD_FLOAT32 || info->dtype == GAD_FLOAT64;
    struct gad_argument f = {
        .name = "f", .scalar = GAD_SCALAR_FLOAT, .float_value = info->has_fill ? info->fill : NAN};
    if (info->has_fill && !is_float && fabs(info->fill) < 9e18) {
        f.scalar = GAD_SCALAR_INT;
        f.int_value = (int64_t)info->fill;
    }
    return f;
}

static int summarize(struct gad_client *client, struct gad_array *x, struct summary *s,
                     struct gad_error *error)
{
    static const struct gad_output outputs[] = {
        {.expr = "count_nonzero(isnan(x) & (x != f))"},
        {.expr = "count_nonzero(x == f)"},
        {.expr = "count_nonzero((float64(x) == inf) & (x != f))"},
        {.expr = "count_nonzero((float64(x) == -inf) & (x != f))"},
        {.expr = "min(where(isfinite(x) & (x != f), float64(x), inf))"},
        {.expr = "max(where(isfinite(x) & (x != f), float64(x), -inf))"},
        {.expr = "sum(where(isfinite(x) & (x != f), float64(x), 0.0))"},
    };
    struct gad_argument f = fill_argument(gad_array_info(x));
    double values[7];
    int r = reduce(client, x, 7, outputs, &f, 1, values, error);
    if (r)
        return r;
    s->n_nan = (uint64_t)values[0];
    s->n_fill = (uint64_t)values[1];
    s->n_above = (uint64_t)values[2];
    s->n_below = (uint64_t)values[3];
    s->least = values[4];
    s->greatest = values[5];
    s->sum = values[6];
    return 0;
}

/* bins[i]: elements in [edge i, edge i+1), the last one with its upper edge. */
static int count_bins(struct gad_client *client, struct gad_array *x, struct summary *s,
                      struct gad_error *error)
{
    struct gad_argument scalars[1 + N_BINS] = {fill_argument(gad_array_info(x))};
    struct gad_output outputs[N_BINS];
    char names[N_BINS][8], texts[N_BINS][96];
    double below[N_BINS];
    for (int i = 0; i < N_BINS; i++) {
        bool is_last = i == N_BINS - 1;
        snprintf(names[i], sizeof(names[i]), "e%d", i);
        snprintf(texts[i], sizeof(texts[i]),
                 "count_nonzero((float64(x) %s e%d) & isfinite(x) & (x != f))",
                 is_last ? "<=" : "<", i);
        outputs[i] = (struct gad_output){.expr = texts[i]};
        double edge = s->least + (s->greatest / N_BINS - s->least / N_BINS) * (i + 1);
        scalars[1 + i] = (struct gad_argument){.name = names[i],
                                               .scalar = GAD_SCALAR_FLOAT,
                                               .float_value = is_last ? s->greatest : edge};
    }
    int r = reduce(client, x, N_BINS, outputs, scalars, 1 + N_BINS, below, error);
    if (r)
        return r;
    for (int i = 0; i < N_BINS; i++)
        s->bins[i] = (uint64_t)below[i] - (i ? (uint64_t)below[i - 1] : 0);
    s->has_bins = true;
    return 0;
}

static uint64_t n_counted(const struct summary *s)
{
    return s->n - s->n_nan - s->n_fill;
}

static double summary_min(const struct summary *s)
{
    if (n_counted(s) == 0)
        return NAN;
    return s->n_below ? -INFINITY : s->least;
}

static double summary_max(const struct summary *s)
{
    if (n_counted(s) == 0)
        return NAN;
    return s->n_above ? INFINITY : s->greatest;
}

static double summary_mean(const struct summary *s)
{
    if (n_counted(s) == 0 || (s->n_above && s->n_below))
        return NAN;
    if (s->n_above || s->n_below)
        return s->n_above ? INFINITY : -INFINITY;
    return s->sum / (double)n_counted(s);
}

/* Digits of least and greatest: integers whole (up to 2^53), floats as far as float32 goes. */
static int value_digits(const struct gad_array_info *info)
{
    return info->dtype == GAD_FLOAT32 || info->dtype == GAD_FLOAT64 ? 9 : 17;
}

static void print_summary(const struct show_options *o, const struct gad_array_info *info,
                          const struct summary *s)
{
    char shape[256];
    printf("%s  %s  %s %s  %llu elements\n", o->source, info->format, gad_dtype_name(info->dtype),
           ctl_format_shape(info->ndim, info->shape, shape, sizeof(shape)),
           (unsigned long long)s->n);
    int digits = value_digits(info);
    printf("min %.*g   mean %.9g   max %.*g   NaN %llu\n", digits, summary_min(s), summary_mean(s),
           digits, summary_max(s), (unsigned long long)s->n_nan);
    if (info->has_fill)
        printf("fill value %.*g: %llu elements, left out\n", digits > 9 ? digits : 6, info->fill,
               (unsigned long long)s->n_fill);
    uint64_t most = 1;
    for (int i = 0; i < N_BINS; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    for (int i = 0; i < N_BINS && s->has_bins; i++) {
        char bar[41] = "";
        int width = (int)ceil(40.0 * (double)s->bins[i] / (double)most);
        memset(bar, '#', (size_t)width);
        printf("%12.5g |%-40s| %llu\n", s->least + (s->greatest / N_BINS - s->least / N_BINS) * i,
               bar, (unsigned long long)s->bins[i]);
    }
    if (s->has_bins)
        printf("%12.5g\n", s->greatest);
}

static void add_number(struct json_object *object, const char *key, double value)
{
    const struct gad_plan_output what = {.dtype = GAD_FLOAT64, .ndim = 0};
    struct json_object *array = ctl_array_json(&what, &value);
    json_object_object_add(object, key, json_object_get(json_object_object_get(array, "data")));
    json_object_put(array);
}

static void print_summary_json(const struct gad_array_info *info, const struct summary *s)
{
    struct gad_plan_output what = {.dtype = info->dtype, .ndim = info->ndim};
    memcpy(what.shape, info->shape, sizeof(what.shape));
    struct json_object *object = ctl_array_json(&what, NULL);
    json_object_object_add(object, "format", json_object_new_string(info->format));
    add_number(object, "min", summary_min(s));
    add_number(object, "mean", summary_mean(s));
    add_number(object, "max", summary_max(s));
    json_object_object_add(object, "nan", json_object_new_uint64(s->n_nan));
    if (info->has_fill) {
        add_number(object, "fill", info->fill);
        json_object_object_add(object, "n_fill", json_object_new_uint64(s->n_fill));
    }
    struct json_object *bins = json_object_new_array();
    for (int i = 0; i < N_BINS && s->has_bins; i++)
        json_object_array_add(bins, json_object_new_uint64(s->bins[i]));
    json_object_object_add(object, "histogram", bins);
    ctl_put_json(object);
}

static int show(struct gad_client *client, const struct show_options *o, struct gad_error *error)
{
    struct gad_array *x;
    int r = (int)gad_array_open(client, o->source, &x, error);
    if (r)
        return r;
    const struct gad_array_info *info = gad_array_info(x);
    struct summary s = {.n = 1, .least = INFINITY, .greatest = -INFINITY};
    for (int i = 0; i < info->ndim; i++)
        s.n *= (uint64_t)info->shape[i];
    if (s.n > 0)
        r = summarize(client, x, &s, error);
    if (!r && s.least < s.greatest)
        r = count_bins(client, x, &s, error);
    if (!r && o->json)
        print_summary_json(info, &s);
    else if (!r)
        print_summary(o, info, &s);
    gad_array_release(x);
    return r;
}

int verb_show(int argc, char **argv)
{
    struct show_options o = {0};
    if (ctl_parse(&show_argp, argc, argv, &o))
        return EXIT_USAGE;
    ctl_watch_signals();
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    int r = ctl_connect(&client, &error);
    if (!r)
        r = show(client, &o, &error);
    gad_close(client);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}
