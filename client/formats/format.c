/* From a spec to the format that it names.
 *
 * Where the text ends in a bracket, what exists under the whole text wins: a file `x.npy[0]`, a
 * dataset `/d[0]`. Otherwise the bracket is a selection, which the formats apply to what they open;
 * a new file has none. A path with wildcards, where no file has that very name, is many files
 * (many/many.h).
 *
 * Called by the public functions of open.c (gad_array_open() and its kin), which work without a
 * connection too, and by targets.c for new files.
 */
#include "client/formats/attributes.h"
#include "client/formats/format_impl.h"
#include "client/formats/many/many.h"
#include "proto/util.h"

#include <string.h>
#include <sys/stat.h>

static bool has_literal(const struct spec *spec)
{
    struct stat st;
    if (!spec->literal)
        return false;
    return spec->format->has_dataset ? spec->format->has_dataset(spec->path, spec->literal)
                                     : stat(spec->literal, &st) == 0;
}

/* The name with its brackets, where there is such a thing. */
static void choose_name(struct spec *spec)
{
    if (!has_literal(spec))
        return;
    char **name = spec->format->has_dataset ? &spec->dataset : &spec->path;
    free(*name);
    *name = steal_ptr(spec->literal);
    spec->selection_at = 0;
}

int format_parse(const char *text, bool is_output, struct spec *ret_spec, struct gad_error *error)
{
    int r = spec_parse(text, is_output, ret_spec, error);
    if (r)
        return r;
    ret_spec->format = format_of_file(ret_spec->format, ret_spec->path);
    choose_name(ret_spec);
    return 0;
}

static int open_many(struct gad_client *client, const struct many_pattern *pattern,
                     const char *text, const struct gad_open_options *options,
                     struct gad_array **ret_array, struct gad_error *error)
{
    if (!options->in_place)
        return many_open_pattern(client, pattern, text, options->masking, ret_array, error);
    error_set(error, GAD_READ_ONLY, text, "many files as one array are only read");
    error_expected(error, "one file");
    error_found(error, "a pattern");
    return GAD_READ_ONLY;
}

static int open_any(struct gad_client *client, const char *text,
                    const struct gad_open_options *options, struct gad_array **ret_array,
                    struct gad_error *error)
{
    struct many_pattern pattern;
    struct spec spec;
    if (many_pattern_parse(text, &pattern)) {
        int r = open_many(client, &pattern, text, options, ret_array, error);
        many_pattern_deinit(&pattern);
        return r;
    }
    int r = format_parse(text, false, &spec, error);
    if (r)
        return r;
    r = spec.format->open(client, &spec, text, options->in_place, ret_array, error);
    spec_deinit(&spec);
    return r;
}

/* Takes over the array. */
static int apply_attributes(struct gad_array *array, enum gad_masking masking, const char *name,
                            struct gad_array **ret_array, struct gad_error *error)
{
    int r = attributes_apply(array, masking, name, error);
    if (r)
        gad_array_release(array);
    else
        *ret_array = array;
    return r;
}

int format_open_as(struct gad_client *client, const char *text,
                   const struct gad_open_options *options, struct gad_array **ret_array,
                   struct gad_error *error)
{
    struct gad_array *array;
    int r = open_any(client, text, options, &array, error);
    return r ? r : apply_attributes(array, options->masking, text, ret_array, error);
}

int format_open(struct gad_client *client, const char *text, bool for_writing,
                struct gad_array **ret_array, struct gad_error *error)
{
    const struct gad_open_options options = {.in_place = for_writing};
    return format_open_as(client, text, &options, ret_array, error);
}

int format_open_many(struct gad_client *client, size_t n, const char *const *specs,
                     const struct gad_join_options *options, struct gad_array **ret_array,
                     struct gad_error *error)
{
    struct gad_array *array;
    int r = many_open_list(client, n, specs, options, &array, error);
    return r ? r : apply_attributes(array, options->masking, specs[0], ret_array, error);
}

/* A new file is written whole. */
static int refuse_selection(const struct spec *spec, const char *text, struct gad_error *error)
{
    const char *selection = text + spec->selection_at;
    error_set(
        error, GAD_BAD_ARGUMENT, text,
        "a new output has no selection %.80s: it is written whole; in place a selection of an "
        "existing array can be written",
        selection);
    error_expected(error, "%.100s", spec->dataset ? spec->dataset : spec->path);
    error_found(error, "%.80s behind it", selection);
    return GAD_BAD_ARGUMENT;
}

/* What Zarr alone has. */
static int refuse_kind(const struct spec *spec, const char *kind, const char *text,
                       struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, text, "%s has no %s", spec->format->name, kind);
    error_expected(error, "chunks without that, or a Zarr store");
    error_found(error, "%s for %.140s", kind, text);
    return GAD_BAD_ARGUMENT;
}

static int refuse_chunks(const struct spec *spec, const char *text, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, text, "%s files have neither chunks nor compression",
              spec->format->name);
    error_expected(error, "an output that has: HDF5, netCDF-4, Zarr, or npz with gzip");
    error_found(error, "%.160s", text);
    return GAD_BAD_ARGUMENT;
}

static int refuse_one_piece(const char *text, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, text, "a Zarr array is always in chunks");
    error_expected(error, "sizes of chunks, or nothing about them");
    error_found(error, "no chunks for %.140s", text);
    return GAD_BAD_ARGUMENT;
}

int format_create_as(struct gad_client *client, const char *text, bool replace, enum dtype dtype,
                     int ndim, const int64_t *shape, bool fortran_order,
                     const struct gad_storage *storage, const struct axis_limits *limits,
                     struct gad_array **ret_array, struct gad_error *error)
{
    struct spec spec;
    struct storage stored = {.has_chunks = false};
    int r = format_parse(text, true, &spec, error);
    if (r)
        return r;
    if (spec.selection_at) {
        r = refuse_selection(&spec, text, error);
        spec_deinit(&spec);
        return r;
    }
    struct array described = {.dtype = dtype, .ndim = ndim};
    bool is_open = ndim > 0 && shape[0] == GAD_UNKNOWN_LENGTH;
    if (ndim > 0 && ndim <= ARRAY_MAX_NDIM)
        memcpy(described.shape, shape, (size_t)ndim * sizeof(int64_t));
    if (is_open)
        described.shape[0] = 1;
    r = array_check(&described, text, error);
    if (is_open)
        described.shape[0] = GAD_UNKNOWN_LENGTH;
    limits = spec.format->can_grow ? limits : NULL;
    if (r == 0)
        r = storage_read(storage, dtype, ndim, described.shape, limits, spec.format->has_numcodecs,
                         text, &stored, error);
    if (r == 0 && is_open && spec.format->has_chunks && !stored.has_chunks) {
        stored.has_chunks = true; /* what has them grows by them */
        storage_choose_chunks(dtype, ndim, described.shape, stored.chunk_shape);
    }
    if (r == 0 && stored.has_chunks && !spec.format->has_chunks)
        r = refuse_chunks(&spec, text, error);
    if (r == 0 && stored.is_transposed && !spec.format->has_numcodecs)
        r = refuse_kind(&spec, "transposed chunks", text, error);
    if (r == 0 && stored.n_shard_levels > 0 && !spec.format->has_shards)
        r = refuse_kind(&spec, "shards", text, error);
    if (r == 0 && stored.is_contiguous && spec.format->has_shards)
        r = refuse_one_piece(text, error);
    struct format_target target = {
        .spec = &spec,
        .name = text,
        .replace = replace,
        .dtype = dtype,
        .ndim = ndim,
        .shape = described.shape,
        .fortran_order = fortran_order,
        .storage = &stored,
        .limits = stored.has_chunks ? limits : NULL,
    };
    if (r == 0)
        r = spec.format->create(client, &target, ret_array, error);
    spec_deinit(&spec);
    return r;
}

int format_create(struct gad_client *client, const char *text, bool replace, enum dtype dtype,
                  int ndim, const int64_t *shape, bool fortran_order,
                  const struct gad_storage *storage, struct gad_array **ret_array,
                  struct gad_error *error)
{
    return format_create_as(client, text, replace, dtype, ndim, shape, fortran_order, storage, NULL,
                            ret_array, error);
}

const char *format_of_new(const char *text)
{
    struct spec spec;
    struct gad_error error;
    if (format_parse(text, true, &spec, &error))
        return NULL;
    const char *name = spec.format->name;
    spec_deinit(&spec);
    return name;
}

/* New arrays ----------------------------------------------------------------------------------- */

int format_make(struct gad_client *client, const struct format_target *target, format_make_fn *make,
                struct gad_array **ret_array, struct gad_error *error)
{
    struct gad_array *array =
        array_new(client, target->spec->format->name, ACCESS_FILE, target->spec->path);
    if (!array)
        return error_from_errno(error, ENOMEM, target->name, "array");
    return array_settle(array, make(array, target, error), ret_array);
}
