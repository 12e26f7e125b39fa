/* gpuarrayctl show: what is in an array, without loading it.
 *
 * The daemon reads the array twice: once for counts, least, greatest and sum, once for a histogram
 * between them. Fill values that the source names (_FillValue) and NaN are counted and left out;
 * infinities count for min, max and mean as in NumPy, and not for the histogram. Integers stay
 * integers all the way; the mean alone is a float, as NumPy's is. Standard input is read once, so
 * there is no histogram of it.
 *
 *     speed.npy  npy  float32 (132, 73, 144)  1387584 elements
 *     min 0.003   mean 6.84   max 25.6   NaN 0
 *        0.003 |##################                |  213412
 */
#include "client/ctl/show.h"
#include "client/ctl/picture/picture.h"

#include "proto/error.h"
#include "proto/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALE_BITS 64 /* a sum of scaled doubles is finite: there are no 2^64 of them */

struct summary {
    uint64_t n, n_nan, n_fill, n_above, n_below; /* above, below: +inf, -inf */
    struct gad_scalar least, greatest;           /* of the finite ones */
    double sum, scaled_sum; /* of them, times 2 to -n_scaled_bits, to -SCALE_BITS */
    int n_scaled_bits;
    struct show_bins bins;
};

struct show_options {
    const char *source;
    enum gad_masking masking;
    struct picture_options picture;
    bool json;
};

enum { OPTION_JSON = 0x100 };

static const struct argp_option show_argp_options[] = {
    CTL_MASKING_OPTIONS,
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {"picture", CTL_OPTION_PICTURE, "WHEN", OPTION_ARG_OPTIONAL,
     "draw in the terminal instead of text: auto (without it: where standard output is one), "
     "always "
     "or never",
     0},
    {"png", CTL_OPTION_PNG, "FILE", 0, "write the picture to FILE as PNG instead", 0},
    {"svg", CTL_OPTION_SVG, "FILE", 0, "the same as SVG", 0},
    {"fast", CTL_OPTION_FAST, NULL, 0, "draw single elements instead of means of all", 0},
    {"colours", CTL_OPTION_COLOURS, "NAME", 0, "viridis (without it), magma or grey", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct show_options *o = state->input;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->source)
            return ctl_usage_error(state, "one source only: '%s' is too much" CTL_IN_QUOTES, arg);
        o->source = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        return ctl_usage_error(state, "a source is needed, as in 'show speed.npy'");
    case ARGP_KEY_END:
        return o->json && picture_is_filed(&o->picture)
                   ? ctl_usage_error(state, "--json and a picture's file together")
                   : 0;
    default:
        return ctl_parse_masking(key, &o->masking) ? 0
                                                   : picture_parse(key, arg, &o->picture, state);
    }
}

static const struct argp show_argp = {
    show_argp_options,
    parse_option,
    "SOURCE",
    "An array's dtype, shape, least, mean and greatest element, and a histogram. NaN and the fill "
    "value that a source names are counted and left out. With --mask-and-scale the elements are "
    "what its attributes mean. In a terminal it is a picture.\v"
    "A picture is of the last two axes, at the first place of those before; of one axis it is a "
    "line with the least and the greatest elements around. Its cells are means, made in one read; "
    "with --fast they are single elements, and little is read. What is NaN or a fill value is "
    "grey. "
    "Without colours (NO_COLOR is set, or TERM=dumb) or UTF-8 it is of characters.\n"
    "\nExamples:\n"
    "  gpuarrayctl show speed.npy\n"
    "  gpuarrayctl show speed.npy --picture --fast\n"
    "  gpuarrayctl show speed.npy --png speed.png --svg speed.svg\n"
    "  gpuarrayctl show winds.h5:/UWND --json\n"
    "  cat speed.npy | gpuarrayctl show -\n"
    "  gpuarrayctl show 'runs/*.npy'" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static uint64_t n_counted(const struct summary *s)
{
    return s->n - s->n_nan - s->n_fill;
}

/* Of one kind. */
static bool is_below(const struct gad_scalar *a, const struct gad_scalar *b)
{
    if (a->kind == GAD_SCALAR_FLOAT)
        return a->float_value < b->float_value;
    return a->kind == GAD_SCALAR_UINT ? a->uint_value < b->uint_value : a->int_value < b->int_value;
}

/* What is shown of: the array as the expressions name it, and the fill value, if an element can be
 * equal to it. */
struct subject {
    struct gad_array *array;
    const struct gad_array_info *info;
    bool is_float, has_fill, is_pipe;
    struct gad_argument fill;
    const char *x; /* bool is counted as 0 and 1 */
};

static struct gad_argument scalar_argument(const char *name, const struct gad_scalar *scalar)
{
    struct gad_argument argument = {.name = name, .scalar = scalar->kind};
    if (scalar->kind == GAD_SCALAR_FLOAT)
        argument.float_value = scalar->float_value;
    else if (scalar->kind == GAD_SCALAR_UINT)
        argument.uint_value = scalar->uint_value;
    else
        argument.int_value = scalar->int_value;
    return argument;
}

/* A whole float as the integer that it is; one that no integer is equal to stays. */
static struct gad_scalar as_integer(struct gad_scalar number)
{
    double value = number.float_value;
    if (number.kind != GAD_SCALAR_FLOAT || value != trunc(value))
        return number;
    if (value >= -0x1p63 && value < 0x1p63)
        return (struct gad_scalar){.kind = GAD_SCALAR_INT, .int_value = (int64_t)value};
    if (value > 0 && value < 0x1p64)
        return (struct gad_scalar){.kind = GAD_SCALAR_UINT, .uint_value = (uint64_t)value};
    return number;
}

static struct subject subject_of(struct gad_array *array, const struct gad_array_info *info)
{
    struct subject s = {.array = array, .info = info, .x = "x"};
    s.is_float = info->dtype == GAD_FLOAT32 || info->dtype == GAD_FLOAT64;
    struct gad_scalar fill = s.is_float ? info->exact_fill : as_integer(info->exact_fill);
    s.has_fill = info->has_fill && (s.is_float || fill.kind != GAD_SCALAR_FLOAT);
    s.fill = scalar_argument("f", &fill);
    if (info->dtype == GAD_BOOL)
        s.x = "uint8(x)";
    return s;
}

/* Runs reductions over the array, with scalars beside it; one value each. */
static int reduce(struct gad_client *client, const struct subject *subject, unsigned n_outputs,
                  const struct gad_output *outputs, const struct gad_argument *scalars,
                  unsigned n_scalars, struct gad_scalar *ret_values, struct gad_error *error)
{
    struct gad_argument args[2 + SHOW_MAX_BINS] = {{.name = "x", .array = subject->array}};
    unsigned n_args = 1;
    if (subject->has_fill)
        args[n_args++] = subject->fill;
    for (unsigned i = 0; i < n_scalars; i++)
        args[n_args++] = scalars[i];
    struct gad_job_options options = {.n_args = n_args,
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
            ret_values[i] = ctl_element(what.dtype, data, 0);
    }
    gad_job_free(job);
    return r;
}

static struct gad_argument scale_argument(void)
{
    const struct gad_scalar scale = {.kind = GAD_SCALAR_FLOAT,
                                     .float_value = ldexp(1, -SCALE_BITS)};
    return scalar_argument("k", &scale);
}

static int summarize_floats(struct gad_client *client, const struct subject *subject,
                            struct summary *s, struct gad_error *error)
{
    static const struct gad_output filled[] = {
        {.expr = "count_nonzero(isnan(x) & (x != f))"},
        {.expr = "count_nonzero((x == inf) & (x != f))"},
        {.expr = "count_nonzero((x == -inf) & (x != f))"},
        {.expr = "min(where(isfinite(x) & (x != f), float64(x), inf))"},
        {.expr = "max(where(isfinite(x) & (x != f), float64(x), -inf))"},
        {.expr = "sum(where(isfinite(x) & (x != f), float64(x), 0.0))"},
        {.expr = "count_nonzero(x == f)"},
    };
    static const struct gad_output plain[] = {
        {.expr = "count_nonzero(isnan(x))"},
        {.expr = "count_nonzero(x == inf)"},
        {.expr = "count_nonzero(x == -inf)"},
        {.expr = "min(where(isfinite(x), float64(x), inf))"},
        {.expr = "max(where(isfinite(x), float64(x), -inf))"},
        {.expr = "sum(where(isfinite(x), float64(x), 0.0))"},
        {.expr = "count_nonzero((x == x) | (x != x))"}, /* of a pipe, that is all */
        {.expr = "sum(where(isfinite(x), float64(x) * k, 0.0))"},
    };
    const struct gad_argument scale = scale_argument();
    struct gad_scalar values[8] = {{.kind = GAD_SCALAR_NONE}};
    int r = reduce(client, subject,
                   subject->has_fill  ? 7
                   : subject->is_pipe ? 8
                                      : 6,
                   subject->has_fill ? filled : plain, &scale, subject->is_pipe, values, error);
    if (r)
        return r;
    if (subject->is_pipe) {
        s->n = (uint64_t)values[6].int_value;
        s->scaled_sum = values[7].float_value;
    }
    s->n_nan = (uint64_t)values[0].int_value;
    s->n_above = (uint64_t)values[1].int_value;
    s->n_below = (uint64_t)values[2].int_value;
    s->least = values[3];
    s->greatest = values[4];
    s->sum = values[5].float_value;
    s->n_fill = subject->has_fill ? (uint64_t)values[6].int_value : 0;
    return 0;
}

/* The least and the greatest integer, which never win where they stand for what is left out. */
static void set_ends(enum gad_dtype dtype, struct gad_scalar *ret_low, struct gad_scalar *ret_high)
{
    bool is_unsigned = dtype == GAD_BOOL || (dtype >= GAD_UINT8 && dtype <= GAD_UINT64);
    uint64_t all = UINT64_MAX >> (64 - 8 * gad_dtype_size(dtype));
    uint64_t most = is_unsigned ? all : all >> 1;
    *ret_high = (struct gad_scalar){.kind = GAD_SCALAR_UINT, .uint_value = most};
    *ret_low = (struct gad_scalar){.kind = GAD_SCALAR_INT,
                                   .int_value = is_unsigned ? 0 : -(int64_t)most - 1};
}

static int summarize_integers(struct gad_client *client, const struct subject *subject,
                              struct summary *s, struct gad_error *error)
{
    const char *x = subject->x;
    char least[64], greatest[64];
    struct gad_output outputs[] = {{.expr = least},
                                   {.expr = greatest},
                                   {.expr = "sum(float64(x))"},
                                   {.expr = "count_nonzero(x == f)"}};
    struct gad_scalar low, high, values[4] = {{.kind = GAD_SCALAR_NONE}};
    set_ends(subject->info->dtype, &low, &high);
    struct gad_argument ends[] = {scalar_argument("low", &low), scalar_argument("high", &high)};
    bool has_fill = subject->has_fill;
    snprintf(least, sizeof(least), has_fill ? "min(where(x != f, %s, high))" : "min(%s)", x);
    snprintf(greatest, sizeof(greatest), has_fill ? "max(where(x != f, %s, low))" : "max(%s)", x);
    if (has_fill)
        outputs[2].expr = "sum(where(x != f, float64(x), 0.0))";
    if (subject->is_pipe)
        outputs[3].expr = "count_nonzero(x == x)";
    int r = reduce(client, subject, has_fill || subject->is_pipe ? 4 : 3, outputs, ends,
                   has_fill ? 2 : 0, values, error);
    if (r)
        return r;
    s->least = values[0];
    s->greatest = values[1];
    s->sum = values[2].float_value;
    if (has_fill)
        s->n_fill = (uint64_t)values[3].int_value;
    else if (subject->is_pipe)
        s->n = (uint64_t)values[3].int_value;
    return 0;
}

/* bins[i]: elements from edge i to below edge i + 1; what is not below the last but one is in the
 * last. */
static int count_bins(struct gad_client *client, const struct subject *subject, struct summary *s,
                      struct gad_error *error)
{
    struct show_bins *bins = &s->bins;
    struct gad_argument scalars[SHOW_MAX_BINS];
    struct gad_output outputs[SHOW_MAX_BINS];
    char names[SHOW_MAX_BINS][8], texts[SHOW_MAX_BINS][96];
    struct gad_scalar below[SHOW_MAX_BINS];
    show_bins_init(bins, &s->least, &s->greatest);
    unsigned n = bins->n - 1;
    for (unsigned i = 0; i < n; i++) {
        snprintf(names[i], sizeof(names[i]), "e%u", i);
        snprintf(texts[i], sizeof(texts[i]), "count_nonzero((%s < e%u)%s%s)",
                 subject->is_float ? "float64(x)" : subject->x, i,
                 subject->is_float ? " & isfinite(x)" : "", subject->has_fill ? " & (x != f)" : "");
        outputs[i] = (struct gad_output){.expr = texts[i]};
        scalars[i] = scalar_argument(names[i], &bins->edges[i + 1]);
    }
    int r = n > 0 ? reduce(client, subject, n, outputs, scalars, n, below, error) : 0;
    if (r)
        return r;
    uint64_t before = 0, n_finite = n_counted(s) - s->n_above - s->n_below;
    for (unsigned i = 0; i < bins->n; i++) {
        uint64_t up_to = i < n ? (uint64_t)below[i].int_value : n_finite;
        bins->counts[i] = up_to - before;
        before = up_to;
    }
    return 0;
}

/* The sum of finite numbers was too large for a double; their mean is not. */
static int sum_scaled(struct gad_client *client, const struct subject *subject, struct summary *s,
                      struct gad_error *error)
{
    char text[96];
    struct gad_output output = {.expr = text};
    const struct gad_argument argument = scale_argument();
    struct gad_scalar sum = {.float_value = s->scaled_sum};
    snprintf(text, sizeof(text), "sum(where(isfinite(x)%s, float64(x) * k, 0.0))",
             subject->has_fill ? " & (x != f)" : "");
    int r = subject->is_pipe ? 0 : reduce(client, subject, 1, &output, &argument, 1, &sum, error);
    if (r)
        return r;
    s->sum = sum.float_value;
    s->n_scaled_bits = SCALE_BITS;
    return 0;
}

static int summarize(struct gad_client *client, const struct subject *subject, struct summary *s,
                     struct gad_error *error)
{
    int r = subject->is_float ? summarize_floats(client, subject, s, error)
                              : summarize_integers(client, subject, s, error);
    if (!r && !isfinite(s->sum))
        r = sum_scaled(client, subject, s, error);
    bool is_wide = n_counted(s) > s->n_above + s->n_below && is_below(&s->least, &s->greatest);
    if (!r && is_wide && !subject->is_pipe)
        r = count_bins(client, subject, s, error);
    return r;
}

/* Output --------------------------------------------------------------------------------------- */

static struct gad_scalar float_scalar(double value)
{
    return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = value};
}

static struct gad_scalar summary_min(const struct summary *s)
{
    if (n_counted(s) == 0)
        return float_scalar(NAN);
    if (n_counted(s) == s->n_above)
        return float_scalar(INFINITY);
    return s->n_below ? float_scalar(-INFINITY) : s->least;
}

static struct gad_scalar summary_max(const struct summary *s)
{
    if (n_counted(s) == 0)
        return float_scalar(NAN);
    if (n_counted(s) == s->n_below)
        return float_scalar(-INFINITY);
    return s->n_above ? float_scalar(INFINITY) : s->greatest;
}

static double summary_mean(const struct summary *s)
{
    if (n_counted(s) == 0 || (s->n_above && s->n_below))
        return NAN;
    if (s->n_above || s->n_below)
        return s->n_above ? INFINITY : -INFINITY;
    return ldexp(s->sum / (double)n_counted(s), s->n_scaled_bits);
}

/* Edges with as few digits as tell each from the next; integers whole. Returns the widest. */
static int format_edges(const struct show_bins *bins, char texts[][CTL_SCALAR_SIZE])
{
    bool is_told = false;
    int widest = 0;
    for (int n_digits = 5; !is_told && n_digits <= 17; n_digits++) {
        is_told = true;
        widest = 12;
        for (unsigned i = 0; i <= bins->n; i++) {
            const struct gad_scalar *edge = &bins->edges[i];
            if (edge->kind == GAD_SCALAR_FLOAT)
                snprintf(texts[i], CTL_SCALAR_SIZE, "%.*g", n_digits, edge->float_value);
            else
                ctl_format_scalar(GAD_INT64, edge, texts[i]);
            bool is_next = i > 0 && is_below(&bins->edges[i - 1], edge);
            is_told = is_told && !(is_next && strcmp(texts[i - 1], texts[i]) == 0);
            widest = (int)strlen(texts[i]) > widest ? (int)strlen(texts[i]) : widest;
        }
    }
    return widest;
}

static void print_bins(const struct show_bins *bins)
{
    char edges[SHOW_MAX_BINS + 1][CTL_SCALAR_SIZE];
    int width = bins->n > 0 ? format_edges(bins, edges) : 0;
    uint64_t most = 1;
    for (unsigned i = 0; i < bins->n; i++)
        most = bins->counts[i] > most ? bins->counts[i] : most;
    for (unsigned i = 0; i < bins->n; i++) {
        char bar[41] = "";
        memset(bar, '#', (size_t)ceil(40.0 * (double)bins->counts[i] / (double)most));
        printf("%*s |%-40s| %llu\n", width, edges[i], bar, (unsigned long long)bins->counts[i]);
    }
    if (bins->n > 0 && is_below(&bins->edges[bins->n - 1], &bins->edges[bins->n]))
        printf("%*s\n", width, edges[bins->n]);
}

static void print_summary(const struct show_options *o, const struct gad_array_info *info,
                          const struct gad_meaning *meaning, const struct summary *s)
{
    char min[CTL_SCALAR_SIZE], mean[CTL_SCALAR_SIZE], max[CTL_SCALAR_SIZE];
    struct gad_scalar least = summary_min(s), greatest = summary_max(s);
    picture_print_head(o->source, info, meaning, s->n);
    snprintf(mean, sizeof(mean), "%.9g", summary_mean(s));
    printf("min %s   mean %s   max %s   NaN %llu\n", ctl_format_scalar(info->dtype, &least, min),
           isnan(summary_mean(s)) ? "nan" : mean, ctl_format_scalar(info->dtype, &greatest, max),
           (unsigned long long)s->n_nan);
    if (info->has_fill)
        printf("fill value %s: %llu elements, left out\n",
               ctl_format_scalar(info->dtype, &info->exact_fill, min),
               (unsigned long long)s->n_fill);
    print_bins(&s->bins);
    if (ctl_is_pipe(o->source))
        puts("no histogram: it takes a second pass, and standard input comes once");
}

static void add_scalar(struct json_object *object, const char *key, struct gad_scalar value)
{
    json_object_object_add(object, key, ctl_scalar_json(&value));
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
    if (text)
        json_object_object_add(object, key, json_object_new_string(text));
}

static void print_summary_json(const struct gad_array_info *info, const struct gad_meaning *meaning,
                               const struct summary *s)
{
    struct gad_plan_output what = {.dtype = info->dtype, .ndim = info->ndim};
    memcpy(what.shape, info->shape, sizeof(what.shape));
    struct json_object *object = ctl_array_json(&what, NULL);
    json_object_object_add(object, "format", json_object_new_string(info->format));
    add_scalar(object, "min", summary_min(s));
    add_scalar(object, "mean", float_scalar(summary_mean(s)));
    add_scalar(object, "max", summary_max(s));
    json_object_object_add(object, "nan", json_object_new_uint64(s->n_nan));
    if (meaning) {
        add_text(object, "units", meaning->units);
        add_text(object, "long_name", meaning->long_name);
        add_text(object, "masked_and_scaled", meaning->is_unpacked ? meaning->packing : NULL);
    }
    if (info->has_fill) {
        add_scalar(object, "fill", info->exact_fill);
        json_object_object_add(object, "n_fill", json_object_new_uint64(s->n_fill));
    }
    struct json_object *counts = json_object_new_array(), *edges = json_object_new_array();
    for (unsigned i = 0; i < s->bins.n; i++)
        json_object_array_add(counts, json_object_new_uint64(s->bins.counts[i]));
    for (unsigned i = 0; s->bins.n > 0 && i <= s->bins.n; i++)
        json_object_array_add(edges, ctl_scalar_json(&s->bins.edges[i]));
    json_object_object_add(object, "histogram", counts);
    json_object_object_add(object, "edges", edges);
    ctl_put_json(object);
}

/* The array as expressions see it: of one that is masked and scaled NaN is what was left out. */
static struct gad_array_info seen(struct gad_array *array)
{
    const struct gad_meaning *meaning = gad_array_meaning(array);
    struct gad_array_info info = *gad_array_info(array);
    if (meaning && meaning->is_unpacked) {
        info.dtype = meaning->dtype;
        info.has_fill = false;
    }
    return info;
}

/* One fill value and nothing else is counted and left out here: nothing is hidden then. */
static void warn_packed(const struct show_options *o, struct gad_array *array)
{
    const struct gad_meaning *meaning = gad_array_meaning(array);
    bool is_shown = meaning && meaning->n_fills == 1 && gad_array_info(array)->has_fill &&
                    !strchr(meaning->packing, ',');
    if (!is_shown)
        ctl_warn_packed(o->source, array);
}

static int show_array(struct gad_client *client, const struct show_options *o, struct gad_array *x,
                      struct gad_error *error)
{
    struct gad_array_info info = seen(x);
    struct summary s = {.n = 1};
    bool is_whole = picture_is_filed(&o->picture) || !ctl_is_pipe(o->source);
    if (!o->json && is_whole && picture_is_wanted(&o->picture, &info))
        return picture_draw(client, o->source, x, &info, &o->picture, error);
    uint64_t n_of_row = 1;
    bool is_open = info.ndim > 0 && info.shape[0] == GAD_UNKNOWN_LENGTH;
    for (int i = 0; i < info.ndim; i++)
        s.n *= (uint64_t)info.shape[i];
    for (int i = 1; i < info.ndim; i++)
        n_of_row *= (uint64_t)info.shape[i];
    struct subject subject = subject_of(x, &info);
    subject.is_pipe = ctl_is_pipe(o->source);
    int r = s.n > 0 ? summarize(client, &subject, &s, error) : 0;
    if (is_open && r == GAD_BAD_SHAPE) { /* there is no least element of none */
        s.n = 0;
        r = 0;
    }
    if (is_open)
        info.shape[0] = (int64_t)(s.n / n_of_row);
    if (!r && o->json)
        print_summary_json(&info, gad_array_meaning(x), &s);
    else if (!r)
        print_summary(o, &info, gad_array_meaning(x), &s);
    return r;
}

static int show(struct gad_client *client, const struct show_options *o, struct gad_error *error)
{
    struct gad_array *x;
    struct gad_stream *stream = NULL;
    bool is_pipe = ctl_is_pipe(o->source) && !picture_is_filed(&o->picture);
    int r = is_pipe ? ctl_open_pipe(client, o->source, &stream, error)
                    : ctl_open_source(client, o->source, o->masking, &x, error);
    if (r)
        return r;
    if (!is_pipe)
        warn_packed(o, x);
    r = show_array(client, o, is_pipe ? gad_stream_array(stream) : x, error);
    if (!is_pipe)
        gad_array_release(x);
    gad_stream_free(stream);
    return r;
}

int ctl_show_array(struct gad_client *client, const char *name, struct gad_array *array,
                   struct gad_error *error)
{
    const struct show_options o = {.source = name};
    return show_array(client, &o, array, error);
}

int ctl_show_file(struct gad_client *client, const char *spec, struct gad_error *error)
{
    const struct show_options o = {.source = spec};
    return show(client, &o, error);
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
