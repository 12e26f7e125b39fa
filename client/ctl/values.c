/* Elements, sizes, statuses: as text for a reader and as JSON for a program. */
#include "client/ctl/ctl.h"

#include "proto/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t ctl_element_i64(enum gad_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case GAD_BOOL: return ((const uint8_t *)data)[i] != 0;
    case GAD_INT8: return ((const int8_t *)data)[i];
    case GAD_INT16: return ((const int16_t *)data)[i];
    case GAD_INT32: return ((const int32_t *)data)[i];
    case GAD_INT64: return ((const int64_t *)data)[i];
    case GAD_UINT8: return ((const uint8_t *)data)[i];
    case GAD_UINT16: return ((const uint16_t *)data)[i];
    case GAD_UINT32: return ((const uint32_t *)data)[i];
    case GAD_UINT64: return (int64_t)((const uint64_t *)data)[i];
    default: return 0;
    }
}

double ctl_element_f64(enum gad_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case GAD_FLOAT32: return ((const float *)data)[i];
    case GAD_FLOAT64: return ((const double *)data)[i];
    case GAD_UINT64: return (double)((const uint64_t *)data)[i];
    default: return (double)ctl_element_i64(dtype, data, i);
    }
}

/* Without the sign that printf gives to some NaN. */
static void print_float(FILE *file, int n_digits, double value)
{
    if (isnan(value))
        fputs("nan", file);
    else
        fprintf(file, "%.*g", n_digits, value);
}

static void print_element(FILE *file, enum gad_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case GAD_BOOL: fputs(ctl_element_i64(dtype, data, i) ? "True" : "False", file); break;
    case GAD_FLOAT32: print_float(file, 9, (double)((const float *)data)[i]); break;
    case GAD_FLOAT64: print_float(file, 17, ((const double *)data)[i]); break;
    case GAD_UINT64: fprintf(file, "%" PRIu64, ((const uint64_t *)data)[i]); break;
    default: fprintf(file, "%" PRId64, ctl_element_i64(dtype, data, i)); break;
    }
}

static size_t count_elements(int ndim, const int64_t *shape)
{
    size_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= (size_t)shape[i];
    return n;
}

static void print_row(FILE *file, const struct gad_plan_output *what, const void *data,
                      size_t first, enum ctl_printing printing)
{
    size_t row = (size_t)what->shape[what->ndim - 1];
    const char *between = printing == CTL_PRINT_CSV ? "," : " ";
    for (size_t j = 0; j < row; j++) {
        if (j == 8 && row > 12 && printing == CTL_PRINT_SOME) {
            fputs(" ...", file);
            break;
        }
        fputs(j ? between : "", file);
        print_element(file, what->dtype, data, first + j);
    }
    fputc('\n', file);
}

/* One line per innermost row; unless all are wanted at most some elements of each, as NumPy
 * abbreviates. */
void ctl_print_array(FILE *file, const struct gad_plan_output *what, const void *data,
                     enum ctl_printing printing)
{
    if (what->ndim == 0) {
        print_element(file, what->dtype, data, 0);
        fputc('\n', file);
        return;
    }
    size_t n = count_elements(what->ndim, what->shape);
    size_t row = (size_t)what->shape[what->ndim - 1];
    char shape[128];
    if (printing != CTL_PRINT_CSV)
        fprintf(file, "%s %s\n", gad_dtype_name(what->dtype),
                ctl_format_shape(what->ndim, what->shape, shape, sizeof(shape)));
    for (size_t i = 0; row > 0 && i < n; i += row) {
        if (i / row == 20 && n / row > 24 && printing == CTL_PRINT_SOME) {
            fputs("...\n", file);
            break;
        }
        print_row(file, what, data, i, printing);
    }
}

static struct json_object *element_json(enum gad_dtype dtype, const void *data, size_t i)
{
    if (dtype == GAD_BOOL)
        return json_object_new_boolean(ctl_element_i64(dtype, data, i) != 0);
    if (dtype == GAD_UINT64)
        return json_object_new_uint64(((const uint64_t *)data)[i]);
    if (dtype != GAD_FLOAT32 && dtype != GAD_FLOAT64)
        return json_object_new_int64(ctl_element_i64(dtype, data, i));
    double value = ctl_element_f64(dtype, data, i);
    if (!isfinite(value)) /* JSON has no such numbers: the names that Python's float() reads */
        return json_object_new_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    char text[40];
    snprintf(text, sizeof(text), dtype == GAD_FLOAT32 ? "%.9g" : "%.17g", value);
    return json_object_new_double_s(value, text);
}

struct json_object *ctl_array_json(const struct gad_plan_output *what, const void *data)
{
    struct json_object *object = json_object_new_object();
    struct json_object *shape = json_object_new_array();
    for (int i = 0; i < what->ndim; i++)
        json_object_array_add(shape, what->shape[i] == GAD_UNKNOWN_LENGTH
                                         ? NULL
                                         : json_object_new_int64(what->shape[i]));
    if (what->name[0])
        json_object_object_add(object, "name", json_object_new_string(what->name));
    json_object_object_add(object, "dtype", json_object_new_string(gad_dtype_name(what->dtype)));
    json_object_object_add(object, "shape", shape);
    if (!data)
        return object;
    if (what->ndim == 0) {
        json_object_object_add(object, "data", element_json(what->dtype, data, 0));
        return object;
    }
    struct json_object *elements = json_object_new_array();
    size_t n = count_elements(what->ndim, what->shape);
    for (size_t i = 0; i < n; i++)
        json_object_array_add(elements, element_json(what->dtype, data, i));
    json_object_object_add(object, "data", elements);
    return object;
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
    if (text[0])
        json_object_object_add(object, key, json_object_new_string(text));
}

static void add_u64(struct json_object *object, const char *key, uint64_t value)
{
    json_object_object_add(object, key, json_object_new_uint64(value));
}

static void add_f64(struct json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, json_object_new_double(value));
}

struct json_object *ctl_error_json(const struct gad_error *error)
{
    struct json_object *object = json_object_new_object();
    char hint[CTL_HINT_SIZE];
    ctl_hint(error, hint, sizeof(hint));
    add_text(object, "code", gad_status_word((int)error->status));
    add_text(object, "argument", error->argument);
    add_text(object, "expected", error->expected);
    add_text(object, "found", error->found);
    add_text(object, "message",
             error->message[0] ? error->message : gad_status_text((int)error->status));
    add_text(object, "hint", hint);
    return object;
}

static struct json_object *product_json(const struct gad_job_stats *stats)
{
    struct json_object *object = json_object_new_object(), *tile = json_object_new_array();
    for (int i = 0; i < 3; i++)
        json_object_array_add(tile, json_object_new_int64(stats->product_tile[i]));
    add_text(object, "library", stats->product_library);
    add_text(object, "precision", stats->product_precision);
    json_object_object_add(object, "tile", tile);
    add_u64(object, "tiles", stats->n_product_tiles);
    add_u64(object, "left_bytes", stats->left_bytes);
    add_u64(object, "right_bytes", stats->right_bytes);
    return object;
}

struct json_object *ctl_stats_json(const struct gad_job_stats *stats)
{
    struct json_object *object = json_object_new_object();
    struct json_object *seconds = json_object_new_object();
    struct json_object *warnings = json_object_new_object();
    add_u64(object, "job", stats->job);
    add_text(object, "engine", stats->engine);
    add_text(object, "engine_why", stats->engine_why);
    add_u64(object, "tiles", stats->n_tiles);
    add_u64(object, "read_bytes", stats->read_bytes);
    add_u64(object, "write_bytes", stats->write_bytes);
    add_u64(object, "around_cache_bytes", stats->around_cache_bytes);
    add_f64(seconds, "total", stats->total_s);
    add_f64(seconds, "source", stats->source_s);
    add_f64(seconds, "kernel", stats->kernel_s);
    add_f64(seconds, "sink", stats->sink_s);
    add_f64(seconds, "client", stats->client_s);
    add_f64(seconds, "to_device", stats->to_device_s);
    add_f64(seconds, "from_device", stats->from_device_s);
    json_object_object_add(object, "seconds", seconds);
    add_u64(warnings, "divide_by_zero", stats->n_divide_by_zero);
    add_u64(warnings, "invalid_cast", stats->n_invalid_casts);
    json_object_object_add(object, "warnings", warnings);
    if (stats->product_library[0])
        json_object_object_add(object, "product", product_json(stats));
    add_text(object, "journal", stats->journal);
    return object;
}

bool ctl_knows_tiles(const struct gad_job_status *status)
{
    return status->n_tiles > 0 || strcmp(status->state, "done") == 0;
}

struct json_object *ctl_status_json(const struct gad_job_status *status)
{
    struct json_object *object = json_object_new_object();
    add_u64(object, "job", status->job);
    add_text(object, "state", status->state);
    add_text(object, "label", status->label);
    add_u64(object, "tiles_done", status->tiles_done);
    if (ctl_knows_tiles(status))
        add_u64(object, "tiles", status->n_tiles);
    else
        json_object_object_add(object, "tiles", NULL);
    add_u64(object, "read_bytes", status->read_bytes);
    add_u64(object, "write_bytes", status->write_bytes);
    add_f64(object, "queued_s", status->queued_s);
    add_f64(object, "running_s", status->running_s);
    if (status->is_paused)
        json_object_object_add(object, "paused", json_object_new_boolean(true));
    if (status->error.status)
        json_object_object_add(object, "error", ctl_error_json(&status->error));
    return object;
}

char *ctl_format_bytes(double n_bytes, char buffer[32])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    while (n_bytes >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        n_bytes /= 1000;
        unit++;
    }
    snprintf(buffer, 32, unit == 0 || n_bytes >= 99.95 ? "%.0f %s" : "%.3g %s", n_bytes,
             units[unit]);
    return buffer;
}

char *ctl_format_shape(int ndim, const int64_t *shape, char *buffer, size_t n_bytes)
{
    size_t used = (size_t)snprintf(buffer, n_bytes, "(");
    for (int i = 0; i < ndim && used < n_bytes; i++) {
        used += (size_t)snprintf(buffer + used, n_bytes - used, i ? ", " : "");
        if (used < n_bytes && shape[i] == GAD_UNKNOWN_LENGTH)
            used += (size_t)snprintf(buffer + used, n_bytes - used, "?");
        else if (used < n_bytes)
            used += (size_t)snprintf(buffer + used, n_bytes - used, "%" PRId64, shape[i]);
    }
    if (used < n_bytes)
        snprintf(buffer + used, n_bytes - used, ndim == 1 ? ",)" : ")");
    return buffer;
}

/* Names of files may be any bytes, JSON is UTF-8. */
static void put_utf8(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        size_t n = text_character_bytes(text, left);
        if (n > 0)
            fwrite(text, 1, n, stdout);
        else
            putchar('?');
        text += n ? n : 1;
        left -= n ? n : 1;
    }
    putchar('\n');
}

void ctl_put_json(struct json_object *object)
{
    put_utf8(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
                                                        JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
}
