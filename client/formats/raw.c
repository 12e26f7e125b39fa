/* Raw files: elements and nothing else; dtype, shape, offset and order come from the spec.
 *
 * Written in this machine's byte order, and in C order unless the spec says F. A spec of an output
 * may say dtype and shape, as a promise that is checked against what the result turns out to be.
 *
 * Called by format.c.
 */
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/files/plain_output.h"
#include "client/formats/format_impl.h"
#include "proto/util.h"

#include <string.h>

#define MAX_PART_CHARS 512 /* of a spec's shape */

/* Digits only, without sign or blanks. */
static bool parse_decimal(const char *text, size_t n_chars, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (n_chars == 0)
        return false;
    for (size_t i = 0; i < n_chars; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value) || value > max)
            return false;
    }
    *ret_value = value;
    return true;
}

static int parse_shape(const char *text, size_t n_chars, const char *whole, struct spec *spec,
                       struct gad_error *error)
{
    const char *end = text + n_chars;
    for (;;) {
        const char *x = memchr(text, 'x', (size_t)(end - text));
        const char *stop = x ? x : end;
        uint64_t dim = 0;
        bool is_open = spec->ndim == 0 && stop == text + 1 && *text == '?';
        if (!is_open && !parse_decimal(text, (size_t)(stop - text), INT64_MAX, &dim)) {
            error_set(error, GAD_BAD_SHAPE, whole, "'%.*s' is no shape", (int)n_chars,
                      end - n_chars);
            error_expected(error, "numbers of at most 63 bits joined by x, as in 1000x1000");
            error_found(error, "'%.*s'", (int)n_chars, end - n_chars);
            return GAD_BAD_SHAPE;
        }
        if (spec->ndim == ARRAY_MAX_NDIM)
            return error_set(error, GAD_BAD_SHAPE, whole, "more than %d dimensions",
                             ARRAY_MAX_NDIM);
        spec->shape[spec->ndim++] = is_open ? GAD_UNKNOWN_LENGTH : (int64_t)dim;
        if (!x)
            return 0;
        text = x + 1;
    }
}

static int parse_dtype(const char *text, size_t n_chars, const char *whole, struct spec *spec,
                       struct gad_error *error)
{
    if (dtype_from_name(text, n_chars, &spec->dtype))
        return 0;
    if (dtype_from_typestr(text, n_chars, &spec->dtype, &spec->is_swapped, NULL) == 0)
        return 0;
    int n = (int)(n_chars < 64 ? n_chars : 64);
    error_set(error, GAD_BAD_DTYPE, whole, "'%.*s' is no dtype that is served", n, text);
    error_expected(error, "f4, f8, i1 to i8, u1 to u8, bool; > before it: big-endian");
    error_found(error, "'%.*s'", n, text);
    return GAD_BAD_DTYPE;
}

static int refuse_parts(const char *whole, struct gad_error *error)
{
    return error_set(error, GAD_BAD_ARGUMENT, whole,
                     "after the path of a raw file come DTYPE:SHAPE[:OFFSET][:F]");
}

/* The last part may be NumPy's word for an order. */
static bool parse_order(const char *text, size_t n_chars, struct spec *spec)
{
    if (n_chars != 1 || (*text != 'C' && *text != 'F'))
        return false;
    spec->is_fortran_order = *text == 'F';
    return true;
}

/* `rest` is what follows the path: "" or ":DTYPE:SHAPE[:OFFSET][:C|F]". */
static int parse_rest(const char *rest, const char *whole, bool is_output, struct spec *spec,
                      struct gad_error *error)
{
    if (*rest == '\0') {
        if (is_output)
            return 0;
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "a raw file needs dtype and shape, as in %s:f4:1000x1000", spec->path);
    }
    const char *parts[4], *bracket = strpbrk(rest, "[]");
    size_t n_chars[4];
    unsigned n_parts = 0;
    if (bracket)
        return spec_refuse_bracket(whole, bracket, error);
    for (const char *at = rest + 1;; n_parts++) {
        const char *colon = strchr(at, ':');
        if (n_parts == 4 || (colon ? (size_t)(colon - at) : strlen(at)) > MAX_PART_CHARS)
            return refuse_parts(whole, error);
        parts[n_parts] = at;
        n_chars[n_parts] = colon ? (size_t)(colon - at) : strlen(at);
        if (!colon) {
            n_parts++;
            break;
        }
        at = colon + 1;
    }
    if (n_parts < 2)
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "a raw file needs dtype and shape, as in %s:f4:1000x1000", spec->path);
    int r = parse_dtype(parts[0], n_chars[0], whole, spec, error);
    if (r == 0)
        r = parse_shape(parts[1], n_chars[1], whole, spec, error);
    if (r)
        return r;
    if (n_parts > 2 && parse_order(parts[n_parts - 1], n_chars[n_parts - 1], spec))
        n_parts--;
    if (n_parts == 4)
        return refuse_parts(whole, error);
    if (n_parts == 3 && !parse_decimal(parts[2], n_chars[2], INT64_MAX, &spec->offset_bytes)) {
        error_set(error, GAD_BAD_EXTENT, whole, "'%.*s' is no offset in bytes and no order",
                  (int)n_chars[2], parts[2]);
        error_expected(error, "a number from 0 to %lld, then C or F", (long long)INT64_MAX);
        error_found(error, "'%.*s'", (int)n_chars[2], parts[2]);
        return GAD_BAD_EXTENT;
    }
    if (is_output && spec->offset_bytes)
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "a new raw file begins at 0: an offset cannot be given");
    spec->has_type = true;
    return 0;
}

int format_parse_raw(const char *rest, const char *whole, struct spec *spec,
                     struct gad_error *error)
{
    int r = parse_rest(rest, whole, false, spec, error);
    if (r == 0 && spec->is_fortran_order)
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "what comes through a pipe is in C order: the last axis is the fastest");
    return r;
}

static int open_array(struct gad_array *array, const struct spec *spec, const char *name,
                      struct gad_error *error)
{
    struct stat st;
    struct file_layout layout = {
        .dtype = spec->dtype,
        .is_swapped = spec->is_swapped,
        .fortran_order = spec->is_fortran_order,
        .ndim = spec->ndim,
        .shape = spec->shape,
        .offset_bytes = spec->offset_bytes,
    };
    if (spec->ndim > 0 && spec->shape[0] == GAD_UNKNOWN_LENGTH)
        return error_set(error, GAD_BAD_SHAPE, name,
                         "%s: only what comes through a pipe may be of unknown length", name);
    int r = file_array_describe(array, &layout, name, error);
    if (r == 0)
        r = file_source_open(spec->path, array->is_writable, name, &array->fd, &st, error);
    return r ? r : file_array_check_size(array, (uint64_t)st.st_size, name, error);
}

static int raw_open(struct gad_client *client, const struct spec *spec, const char *name,
                    bool for_writing, struct gad_array **ret_array, struct gad_error *error)
{
    return file_array_open(client, spec, name, for_writing, open_array, ret_array, error);
}

static int check_promise(const struct format_target *target, struct gad_error *error)
{
    const struct spec *spec = target->spec;
    char wanted[112], got[112];
    if (!spec->has_type)
        return 0;
    if (spec->dtype != target->dtype || spec->is_swapped) {
        error_set(error, GAD_BAD_DTYPE, target->name, "the result is %s, the output says %s",
                  dtype_name(target->dtype), dtype_typestr(spec->dtype, spec->is_swapped));
        error_expected(error, "%s", dtype_typestr(spec->dtype, spec->is_swapped));
        error_found(error, "%s", dtype_typestr(target->dtype, false));
        return GAD_BAD_DTYPE;
    }
    if (spec->ndim == target->ndim &&
        memcmp(spec->shape, target->shape, (size_t)spec->ndim * sizeof(int64_t)) == 0)
        return 0;
    array_format_shape(spec->ndim, spec->shape, wanted, sizeof(wanted));
    array_format_shape(target->ndim, target->shape, got, sizeof(got));
    error_set(error, GAD_BAD_SHAPE, target->name, "the result's shape is %s, the output says %s",
              got, wanted);
    error_expected(error, "%s", wanted);
    error_found(error, "%s", got);
    return GAD_BAD_SHAPE;
}

static int raw_create(struct gad_client *client, const struct format_target *target,
                      struct gad_array **ret_array, struct gad_error *error)
{
    struct format_target plain = *target;
    plain.fortran_order = target->spec->is_fortran_order;
    int r = check_promise(target, error);
    return r ? r : plain_output_new(client, &plain, "", 0, ret_array, error);
}

const struct format format_raw = {
    .name = "raw",
    .extensions = ".raw .bin .dat",
    .written = "FILE.raw:DTYPE:SHAPE",
    .parse_rest = parse_rest,
    .open = raw_open,
    .create = raw_create,
};
