/* Specs: how a file, a dataset in it, or a raw array is named on a command line and in calls.
 *
 *     file.npy                     npy
 *     file.raw:f4:100x100[:128]    raw (also .bin, .dat): dtype, shape, offset in bytes
 *     file.h5:/group/name          HDF5 (also .hdf5 .he5 .h5p .nc .nc4 .cdf)
 *
 * The format is decided by the extension, whatever its case. A path may have colons of its own: the
 * path ends at the first colon (or the end of the text) before which a known extension stands,
 * perhaps with brackets of its own behind it. What follows is the format's. A dataset's path is
 * normalised: one leading slash, no empty components.
 *
 * Behind all that may come a selection, `[10:20, ::2]` (selection.h). A name that ends in a bracket
 * can be read in two ways: `path` and `dataset` are without the bracket, `literal` is the path
 * (npy) or the dataset (HDF5) with it, and wins where there is such a thing. A bracket with no name
 * before it, `file.h5:/[0]`, is a name.
 *
 * Called by format.c; pure.
 */
#include "client/formats/formats.h"
#include "client/formats/selection.h"
#include "proto/util.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#define MAX_DATASET_CHARS 4096
#define MAX_PART_CHARS    512 /* of a raw spec's shape */

static const struct {
    const char *extension;
    enum format format;
} known_extensions[] = {
    {".npy", FORMAT_NPY}, {".raw", FORMAT_RAW},   {".bin", FORMAT_RAW},  {".dat", FORMAT_RAW},
    {".h5", FORMAT_HDF5}, {".hdf5", FORMAT_HDF5}, {".he5", FORMAT_HDF5}, {".h5p", FORMAT_HDF5},
    {".nc", FORMAT_HDF5}, {".nc4", FORMAT_HDF5},  {".cdf", FORMAT_HDF5},
};

static bool has_suffix(const char *text, size_t n_chars, const char *suffix)
{
    size_t n = strlen(suffix);
    return n_chars > n && text[n_chars - n - 1] != '/' &&
           strncasecmp(text + n_chars - n, suffix, n) == 0;
}

/* Without the pairs of brackets at its end. */
static size_t without_brackets(const char *text, size_t n_chars)
{
    size_t at;
    while (n_chars > 0 && text[n_chars - 1] == ']' && selection_find(text, n_chars, &at))
        n_chars = at;
    return n_chars;
}

/* Where the path ends: at the first colon or end that has a known extension before it. */
static bool find_path_end(const char *text, size_t *ret_n_chars, enum format *ret_format)
{
    for (size_t n = 1;; n++) {
        if (text[n - 1] == '\0')
            return false;
        if (text[n] != '\0' && text[n] != ':')
            continue;
        size_t n_name = without_brackets(text, n);
        for (size_t i = 0; i < ARRAY_LENGTH(known_extensions); i++) {
            if (has_suffix(text, n_name, known_extensions[i].extension)) {
                *ret_n_chars = n;
                *ret_format = known_extensions[i].format;
                return true;
            }
        }
        if (text[n] == '\0')
            return false;
    }
}

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
        uint64_t dim;
        if (!parse_decimal(text, (size_t)(stop - text), INT64_MAX, &dim)) {
            error_set(error, GAD_BAD_SHAPE, whole, "'%.*s' is no shape", (int)n_chars,
                      end - n_chars);
            error_expected(error, "numbers of at most 63 bits joined by x, as in 1000x1000");
            error_found(error, "'%.*s'", (int)n_chars, end - n_chars);
            return GAD_BAD_SHAPE;
        }
        if (spec->ndim == ARRAY_MAX_NDIM)
            return error_set(error, GAD_BAD_SHAPE, whole, "more than %d dimensions",
                             ARRAY_MAX_NDIM);
        spec->shape[spec->ndim++] = (int64_t)dim;
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

static int bracket_error(const char *whole, const char *bracket, struct gad_error *error)
{
    bool is_open = *bracket == '[';
    error_set(error, GAD_BAD_ARGUMENT, whole, "the '%c' at character %zu has no '%c'", *bracket,
              (size_t)(bracket - whole) + 1, is_open ? ']' : '[');
    error_expected(error, "a selection at the end, as in [10:20, ::2]");
    error_found(error, "'%.24s' at character %zu", bracket, (size_t)(bracket - whole) + 1);
    return GAD_BAD_ARGUMENT;
}

/* `rest` is what follows the path: "" or ":DTYPE:SHAPE[:OFFSET]". */
static int parse_raw(const char *rest, const char *whole, bool is_output, struct spec *spec,
                     struct gad_error *error)
{
    if (*rest == '\0') {
        if (is_output)
            return 0;
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "a raw file needs dtype and shape, as in %s:f4:1000x1000", spec->path);
    }
    const char *parts[3], *bracket = strpbrk(rest, "[]");
    size_t n_chars[3];
    unsigned n_parts = 0;
    if (bracket)
        return bracket_error(whole, bracket, error);
    for (const char *at = rest + 1;; n_parts++) {
        const char *colon = strchr(at, ':');
        if (n_parts == 3 || (colon ? (size_t)(colon - at) : strlen(at)) > MAX_PART_CHARS)
            return error_set(error, GAD_BAD_ARGUMENT, whole,
                             "after the path of a raw file come DTYPE:SHAPE[:OFFSET]");
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
    if (n_parts == 3 && !parse_decimal(parts[2], n_chars[2], INT64_MAX, &spec->offset_bytes)) {
        error_set(error, GAD_BAD_EXTENT, whole, "'%s' is no offset in bytes", parts[2]);
        error_expected(error, "a number from 0 to %lld", (long long)INT64_MAX);
        error_found(error, "'%s'", parts[2]);
        return GAD_BAD_EXTENT;
    }
    if (is_output && spec->offset_bytes)
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "a new raw file begins at 0: an offset cannot be given");
    spec->has_type = true;
    return 0;
}

/* `rest` is "" or ":group/name". One leading slash, no empty components. NULL: no memory. */
static char *normalise(const char *rest)
{
    size_t n = strlen(rest);
    char *dataset = malloc(n + 2), *out = dataset;
    if (!dataset)
        return NULL;
    for (const char *at = n ? rest + 1 : rest; *at;) {
        size_t part = strcspn(at, "/");
        bool is_dot = part == 1 && at[0] == '.';
        if (part > 0 && !is_dot) {
            *out++ = '/';
            memcpy(out, at, part);
            out += part;
        }
        at += part;
        if (*at == '/')
            at++;
    }
    *out = '\0';
    return dataset;
}

/* `rest` is "" or ":/group/name". */
static int parse_dataset(const char *rest, const char *whole, struct spec *spec,
                         struct gad_error *error)
{
    if (strlen(rest) > MAX_DATASET_CHARS)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "the dataset's path is too long");
    spec->dataset = normalise(rest);
    if (!spec->dataset)
        return error_from_errno(error, ENOMEM, whole, "spec");
    if (*spec->dataset)
        return 0;
    return error_set(error, GAD_BAD_ARGUMENT, whole,
                     "an HDF5 file needs the path of a dataset, as in %s:/name", spec->path);
}

static bool is_known(const char *text, size_t n_chars)
{
    while (n_chars > 0 && text[n_chars - 1] == ' ')
        n_chars--;
    for (size_t i = 0; i < ARRAY_LENGTH(known_extensions); i++)
        if (has_suffix(text, n_chars, known_extensions[i].extension))
            return true;
    return false;
}

/* A bracket without its other one, where a name that is known has brackets or blanks behind it. */
static const char *find_odd_bracket(const char *text)
{
    size_t n_name = strcspn(text, "[] ");
    while (text[n_name] && !is_known(text, n_name))
        n_name += 1 + strcspn(text + n_name + 1, "[] ");
    const char *open = NULL;
    for (const char *at = text + n_name; *at; at++) {
        if (*at == ']' && !open)
            return at;
        if (*at == '[' && !open)
            open = at;
        else if (*at == ']')
            open = NULL;
    }
    return open;
}

static int refuse_unknown(const char *text, const char *whole, struct gad_error *error)
{
    const char *bracket = find_odd_bracket(whole);
    if (bracket)
        return bracket_error(whole, bracket, error);
    if (strcasestr(text, ".npz"))
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "npz archives are not served: save the array with numpy.save");
    error_set(error, GAD_BAD_ARGUMENT, whole, "'%.200s' has no extension of a known format", text);
    error_expected(error, "FILE.npy, FILE.raw:DTYPE:SHAPE, FILE.h5:/DATASET");
    error_found(error, "'%.100s'", text);
    return GAD_BAD_ARGUMENT;
}

/* text: of `whole`, without its selection. */
static int parse(const char *text, const char *whole, bool is_output, struct spec *spec,
                 struct gad_error *error)
{
    size_t n_path_chars;
    if (!find_path_end(text, &n_path_chars, &spec->format))
        return refuse_unknown(text, whole, error);
    if (n_path_chars >= PATH_MAX)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "the path is too long");
    spec->path = strndup(text, n_path_chars);
    if (!spec->path)
        return error_from_errno(error, ENOMEM, whole, "spec");
    const char *rest = text + n_path_chars;
    switch (spec->format) {
    case FORMAT_NPY:
        if (*rest)
            return error_set(error, GAD_BAD_ARGUMENT, whole, "nothing may follow the path of %s",
                             spec->path);
        return 0;
    case FORMAT_RAW: return parse_raw(rest, whole, is_output, spec, error);
    case FORMAT_HDF5: return parse_dataset(rest, whole, spec, error);
    }
    return 0;
}

/* What the whole text would name if its brackets belonged to the name. */
static int set_literal(const char *text, struct spec *spec, struct gad_error *error)
{
    if (spec->format == FORMAT_RAW)
        return 0;
    spec->literal =
        spec->format == FORMAT_NPY ? strdup(text) : normalise(text + strlen(spec->path));
    return spec->literal ? 0 : error_from_errno(error, ENOMEM, text, "spec");
}

/* `file.h5:/`: brackets behind it are the name of a dataset in the root group. */
static bool names_no_dataset(const char *text, size_t n_chars)
{
    while (n_chars > 0 && text[n_chars - 1] == '/')
        n_chars--;
    return n_chars > 1 && text[n_chars - 1] == ':' && is_known(text, n_chars - 1);
}

/* The name and the selection behind it; blanks between them belong to neither. */
static int parse_selected(const char *text, size_t at, bool is_output, struct spec *spec,
                          struct gad_error *error)
{
    size_t n = at;
    while (n > 0 && text[n - 1] == ' ')
        n--;
    if (names_no_dataset(text, n))
        return parse(text, text, is_output, spec, error);
    _cleanup_free_ char *base = strndup(text, n);
    if (!base)
        return error_from_errno(error, ENOMEM, text, "spec");
    int r = parse(base, text, is_output, spec, error);
    if (r)
        return r;
    spec->selection_at = at;
    return set_literal(text, spec, error);
}

int spec_parse(const char *text, bool is_output, struct spec *ret_spec, struct gad_error *error)
{
    struct spec spec = {0};
    size_t at;
    int r = selection_find(text, strlen(text), &at)
                ? parse_selected(text, at, is_output, &spec, error)
                : parse(text, text, is_output, &spec, error);
    if (r) {
        spec_deinit(&spec);
        return r;
    }
    *ret_spec = spec;
    return 0;
}

void spec_deinit(struct spec *spec)
{
    free_ptr(&spec->path);
    free_ptr(&spec->dataset);
    free_ptr(&spec->literal);
}
