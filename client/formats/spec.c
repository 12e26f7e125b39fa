/* Specs: how a file, a dataset in it, or a raw array is named on a command line and in calls.
 *
 *     file.npy                     a path,
 *     file.h5:/group/name          and what follows it, which the format reads
 *
 * The format is decided by the extension (format_table.c), whatever its case. A path may have
 * colons of its own: the path ends at the first colon (or the end of the text) before which a known
 * extension stands, perhaps with brackets of its own behind it.
 *
 * Behind all that may come a selection, `[10:20, ::2]` (selection.h). A name that ends in a bracket
 * can be read in two ways: `path` and `dataset` are without the bracket, `literal` is the path
 * (npy) or the dataset (HDF5) with it, and wins where there is such a thing. A bracket with no name
 * before it, `file.h5:/[0]`, is a name.
 *
 * Called by format.c; pure.
 */
#include "client/formats/format_impl.h"
#include "client/formats/selection.h"
#include "proto/util.h"

#include <limits.h>
#include <string.h>

/* Without the pairs of brackets at its end. */
static size_t without_brackets(const char *text, size_t n_chars)
{
    size_t at;
    while (n_chars > 0 && text[n_chars - 1] == ']' && selection_find(text, n_chars, &at))
        n_chars = at;
    return n_chars;
}

/* Of a name, which may have slashes behind it where it is a directory's. */
static const struct format *find_format(const char *text, size_t n_name)
{
    size_t n = n_name;
    while (n > 0 && text[n - 1] == '/')
        n--;
    const struct format *format = format_of_name(text, n);
    return format && (n == n_name || format->is_directory) ? format : NULL;
}

/* Where the path ends: at the first colon or end that has a known extension before it. */
static bool find_path_end(const char *text, size_t *ret_n_chars, const struct format **ret_format)
{
    for (size_t n = 1;; n++) {
        if (text[n - 1] == '\0')
            return false;
        if (text[n] != '\0' && text[n] != ':')
            continue;
        *ret_format = find_format(text, without_brackets(text, n));
        if (*ret_format) {
            *ret_n_chars = n;
            return true;
        }
        if (text[n] == '\0')
            return false;
    }
}

int spec_refuse_bracket(const char *whole, const char *bracket, struct gad_error *error)
{
    bool is_open = *bracket == '[';
    error_set(error, GAD_BAD_ARGUMENT, whole, "the '%c' at character %zu has no '%c'", *bracket,
              (size_t)(bracket - whole) + 1, is_open ? ']' : '[');
    error_expected(error, "a selection at the end, as in [10:20, ::2]");
    error_found(error, "'%.24s' at character %zu", bracket, (size_t)(bracket - whole) + 1);
    return GAD_BAD_ARGUMENT;
}

static bool is_known(const char *text, size_t n_chars)
{
    while (n_chars > 0 && text[n_chars - 1] == ' ')
        n_chars--;
    return format_of_name(text, n_chars) != NULL;
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
    char list[sizeof(error->expected)];
    const char *bracket = find_odd_bracket(whole);
    if (bracket)
        return spec_refuse_bracket(whole, bracket, error);
    if (text[0] == '-' && (text[1] == '\0' || text[1] == ':') && strchr(whole, '[')) {
        error_set(error, GAD_BAD_ARGUMENT, whole, "standard input has no parts: it comes once");
        error_expected(error, "'%.60s' whole, or a file of it", text);
        error_found(error, "%.100s", whole);
        return GAD_BAD_ARGUMENT;
    }
    if (strcasestr(text, ".zarr.zip"))
        return error_set(error, GAD_BAD_ARGUMENT, whole,
                         "packed Zarr stores are not served: unpack it into a directory .zarr");
    if (strcasestr(text, ".zarr/")) {
        error_set(error, GAD_BAD_ARGUMENT, whole, "an array of a store is named behind a colon");
        error_expected(error, "STORE.zarr:/ARRAY");
        error_found(error, "%.100s", text);
        return GAD_BAD_ARGUMENT;
    }
    error_set(error, GAD_BAD_ARGUMENT, whole, "'%.200s' has no extension of a known format", text);
    error_expected(error, "%s", format_names(list, sizeof(list)));
    error_found(error, "'%.100s'", text);
    return GAD_BAD_ARGUMENT;
}

int spec_place(const char *text, const char *whole, struct format_place *ret_place,
               struct gad_error *error)
{
    struct format_place place;
    size_t n_path_chars;
    if (!find_path_end(text, &n_path_chars, &place.format))
        return refuse_unknown(text, whole, error);
    if (n_path_chars >= PATH_MAX)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "the path is too long");
    place.path = strndup(text, n_path_chars);
    if (!place.path)
        return error_from_errno(error, ENOMEM, whole, "spec");
    place.rest = text + n_path_chars;
    *ret_place = place;
    return 0;
}

/* text: of `whole`, without its selection. */
static int parse(const char *text, const char *whole, bool is_output, struct spec *spec,
                 struct gad_error *error)
{
    struct format_place place;
    int r = spec_place(text, whole, &place, error);
    if (r)
        return r;
    spec->format = place.format;
    spec->path = place.path;
    return spec->format->parse_rest(place.rest, whole, is_output, spec, error);
}

/* What the whole text would name if its brackets belonged to the name. */
static int set_literal(const char *text, struct spec *spec, struct gad_error *error)
{
    if (!spec->format->takes_brackets)
        return 0;
    spec->literal =
        spec->format->normalise ? spec->format->normalise(text + strlen(spec->path)) : strdup(text);
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
