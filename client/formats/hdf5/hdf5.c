/* HDF5 datasets as sources, netCDF-4 files among them.
 *
 * How a dataset travels depends on how it lies in the file:
 *
 *     contiguous, allocated          file      descriptor and offset
 *     chunked, no filter, not many   chunks    descriptor and a table
 *     chunked, with filters we have  provider  chunks read through HDF5, decoded outside of it
 *     everything else                provider  blocks read through HDF5
 *
 * A selection of a contiguous dataset is an offset and strides; of a chunked one a part of the
 * table, where it cuts through no chunk in a way that a table cannot tell (chunk_pick.h); otherwise
 * HDF5 reads what is selected. So a frame of a stack may be a table where the whole stack has too
 * many chunks for one.
 *
 * HDF5 opens the file only while the array is described (and, for the provider, while blocks are
 * read), so that an output may go into the same file.
 *
 * Called by format.c.
 */
#include "client/formats/chunked/chunk_source.h"
#include "client/formats/dataset_path.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_attributes.h"
#include "client/formats/hdf5/hdf5_chunks.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_filters.h"
#include "client/formats/hdf5/hdf5_index.h"
#include "client/formats/hdf5/hdf5_lent.h"
#include "client/formats/hdf5/hdf5_names.h"
#include "client/formats/hdf5/writing/hdf5_output.h"
#include "client/formats/hdf5/hdf5_provider.h"
#include "client/formats/hdf5/hdf5_storage.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "client/formats/hdf5/listing/hdf5_list.h"
#include "proto/util.h"

#include <string.h>

/* What is open while a dataset is described. */
struct source {
    struct gad_array *array;
    const struct spec *spec;
    const char *name;
    struct stat st;
    hid_t file, dataset, create_plist;
    struct file_layout layout;     /* of the whole dataset */
    int64_t shape[ARRAY_MAX_NDIM]; /* the same */
    uint64_t offset_bytes;
    struct selection selection;
    enum access access;
    bool has_grid;
    bool is_decoded; /* chunks are read as they are stored, and decoded outside HDF5 */
    struct codec_pipeline pipeline;
    uint8_t fill[16];
    bool is_unallocated; /* contiguous, and never written to */
    bool is_converted;   /* the elements are not as they lie */
    struct chunk_grid grid;
    struct chunk_pick pick;
};

static int read_type(struct source *source, struct gad_error *error)
{
    char text[64];
    _cleanup_hid_ hid_t type = H5Dget_type(source->dataset);
    source->is_converted = type > 0 && hdf5_type_is_converted(type);
    if (type > 0 && hdf5_type_to_dtype(type, &source->layout.dtype, &source->layout.is_swapped)) {
        source->layout.dtype = hdf5_attributes_sign(source->dataset, source->layout.dtype);
        return 0;
    }
    if (type <= 0)
        return error_set(error, GAD_BAD_FORMAT, source->name, "'%.120s' has no type",
                         source->spec->dataset);
    hdf5_type_describe(type, text, sizeof(text));
    error_set(error, GAD_BAD_DTYPE, source->name, "the elements of '%.120s' are not served: %s",
              source->spec->dataset, text);
    error_expected(error, "bool, int8 to int64, uint8 to uint64, float32 or float64");
    error_found(error, "%s", text);
    return GAD_BAD_DTYPE;
}

/* MATLAB stores an empty array as its shape. */
static bool is_shape_alone(hid_t dataset)
{
    uint8_t is_empty = 0;
    if (H5Aexists(dataset, "MATLAB_empty") <= 0)
        return false;
    _cleanup_hid_ hid_t attribute = H5Aopen(dataset, "MATLAB_empty", H5P_DEFAULT);
    _cleanup_hid_ hid_t space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    return space > 0 && H5Sget_simple_extent_npoints(space) == 1 &&
           H5Aread(attribute, H5T_NATIVE_UINT8, &is_empty) >= 0 && is_empty;
}

static int refuse_shape_alone(const struct source *source, struct gad_error *error)
{
    error_set(error, GAD_BAD_SHAPE, source->name,
              "'%.200s' is an empty array of MATLAB: the numbers in the file are its shape",
              source->spec->dataset);
    error_expected(error, "an array with elements");
    error_found(error, "the attribute MATLAB_empty");
    return GAD_BAD_SHAPE;
}

static int read_shape(struct source *source, struct gad_error *error)
{
    hsize_t dims[H5S_MAX_RANK];
    if (is_shape_alone(source->dataset))
        return refuse_shape_alone(source, error);
    _cleanup_hid_ hid_t space = H5Dget_space(source->dataset);
    int ndim = space > 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (ndim < 0 || ndim > ARRAY_MAX_NDIM || H5Sget_simple_extent_type(space) == H5S_NULL ||
        H5Sget_simple_extent_dims(space, dims, NULL) != ndim)
        return error_set(error, GAD_BAD_SHAPE, source->name, "'%.200s' is empty: it has no shape",
                         source->spec->dataset);
    for (int i = 0; i < ndim; i++) {
        if (dims[i] > INT64_MAX)
            return error_set(error, GAD_BAD_SHAPE, source->name,
                             "dimension %d of '%.160s' is beyond 63 bits", i,
                             source->spec->dataset);
        source->shape[i] = (int64_t)dims[i];
    }
    source->layout.ndim = ndim;
    source->layout.shape = source->shape;
    return 0;
}

static int read_selection(struct source *source, struct gad_error *error)
{
    const struct file_layout *layout = &source->layout;
    if (source->spec->selection_at)
        return selection_read(source->name, source->spec->selection_at, layout->ndim, layout->shape,
                              &source->selection, error);
    selection_whole(layout->ndim, layout->shape, &source->selection);
    return 0;
}

/* A table of the chunks that are needed, if there can be one. */
static int locate_chunks(struct source *source, struct gad_error *error)
{
    struct gad_array *array = source->array;
    int64_t item_bytes = (int64_t)dtype_size(source->layout.dtype);
    if (!source->has_grid ||
        !chunk_pick_init(&source->pick, &source->grid, &source->selection, item_bytes))
        return 0;
    memcpy(array->chunk_shape, source->pick.grid.chunk_shape, sizeof(array->chunk_shape));
    array->n_chunks = source->pick.grid.n_chunks;
    int r =
        hdf5_chunk_table(source->file, source->dataset, source->create_plist, &source->pick,
                         source->grid.n_chunks, array->fd, source->name, &array->table_fd, error);
    if (array->table_fd >= 0)
        source->access = ACCESS_CHUNKS;
    return r;
}

/* What elements are that were never written: zero where the dataset does not say, or says that they
 * are not to be filled. */
static void read_fill_element(struct source *source)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_NEVER;
    _cleanup_hid_ hid_t type = H5Dget_type(source->dataset);
    if (H5Pfill_value_defined(source->create_plist, &defined) < 0 ||
        H5Pget_fill_time(source->create_plist, &when) < 0 || defined == H5D_FILL_VALUE_UNDEFINED ||
        when == H5D_FILL_TIME_NEVER || type <= 0 || H5Tget_size(type) > sizeof(source->fill) ||
        H5Pget_fill_value(source->create_plist, type, source->fill) < 0)
        memset(source->fill, 0, sizeof(source->fill));
}

/* Whether its chunks can be decoded by us, wherever they lie. */
static void look_at_chunks(struct source *source)
{
    int64_t item_bytes = (int64_t)dtype_size(source->layout.dtype);
    if (H5Pget_layout(source->create_plist) != H5D_CHUNKED)
        return;
    source->has_grid = hdf5_chunk_grid(source->create_plist, source->layout.ndim, source->shape,
                                       item_bytes, &source->grid);
    source->is_decoded = source->has_grid && !source->is_converted &&
                         hdf5_filters_pipeline(source->create_plist, &source->pipeline);
    if (source->is_decoded)
        read_fill_element(source);
}

static int check_index(const struct source *source, struct gad_error *error)
{
    char reason[HDF5_INDEX_REASON];
    if (!source->has_grid || !hdf5_index_is_damaged(source->dataset, &source->grid, reason))
        return 0;
    error_set(error, GAD_BAD_FORMAT, source->name,
              "%.120s:%.80s: its table of chunks is damaged: %s", source->spec->path,
              source->spec->dataset, reason);
    error_expected(error, "each chunk once, where the dataset has one");
    error_found(error, "%s", reason);
    return GAD_BAD_FORMAT;
}

/* Decides file, chunks or provider. */
static int locate(struct source *source, struct gad_error *error)
{
    bool is_empty = selection_is_empty(&source->selection);
    source->access = ACCESS_PROVIDER;
    if (is_empty)
        source->access = ACCESS_FILE;
    if (is_empty)
        return 0;
    look_at_chunks(source);
    int r = check_index(source, error);
    if (r)
        return r;
    if (source->is_converted || !hdf5_is_in_file(source->dataset, &source->st))
        return 0;
    switch (H5Pget_layout(source->create_plist)) {
    case H5D_CONTIGUOUS: {
        haddr_t offset = H5Dget_offset(source->dataset);
        int n_external = H5Pget_external_count(source->create_plist);
        bool has_storage = H5Dget_storage_size(source->dataset) > 0;
        /* Without storage the offset means nothing: behind a user block it even looks like one. */
        if (n_external == 0 && offset != HADDR_UNDEF && has_storage) {
            source->access = ACCESS_FILE;
            source->offset_bytes = offset;
        }
        source->is_unallocated = n_external == 0 && !has_storage;
        return 0;
    }
    case H5D_CHUNKED: return locate_chunks(source, error);
    default: return 0;
    }
}

/* Its elements, or those of the datasets that it is made of. */
static bool is_read_by_library(const struct source *source)
{
    struct codec_pipeline pipeline;
    return source->is_converted || H5Pget_layout(source->create_plist) == H5D_VIRTUAL ||
           !hdf5_filters_pipeline(source->create_plist, &pipeline);
}

static int describe(struct source *source, struct gad_error *error)
{
    source->dataset = H5Dopen2(source->file, source->spec->dataset, H5P_DEFAULT);
    if (source->dataset <= 0)
        return hdf5_no_dataset_error(source->file, source->spec->dataset, source->name, error);
    int r = read_type(source, error);
    if (r)
        return r;
    /* Only now: it has the fill value, and HDF5 follows damaged ones of varying length. */
    source->create_plist = H5Dget_create_plist(source->dataset);
    if (source->create_plist <= 0)
        return error_set(error, GAD_BAD_FORMAT, source->name, "'%.200s' cannot be read",
                         source->spec->dataset);
    r = read_shape(source, error);
    if (r == 0)
        r = hdf5_check_external(source->create_plist, source->spec->path, source->spec->dataset,
                                source->name, error);
    if (r == 0 && is_read_by_library(source))
        hdf5_lend_codecs();
    if (r == 0)
        r = hdf5_filters_check(source->create_plist, source->spec->dataset, source->name, error);
    /* The shape's product is checked before the table is computed with it. */
    if (r == 0)
        r = file_array_describe(source->array, &source->layout, source->name, error);
    if (r == 0)
        r = read_selection(source, error);
    if (r == 0)
        r = locate(source, error);
    if (r == 0) {
        hdf5_attributes_take(source->dataset, source->array);
        hdf5_dimensions_take(source->dataset, &source->selection, source->array);
    }
    return r;
}

static int describe_in_scope(struct source *source, struct gad_error *error)
{
    HDF5_SCOPE(scope);
    int r = hdf5_file_open(source->spec->path, &source->st, false, source->spec->path, source->name,
                           &source->file, error);
    if (r == 0)
        r = describe(source, error);
    hdf5_close(&source->create_plist);
    hdf5_close(&source->dataset);
    hdf5_close(&source->file);
    return r;
}

static void provider_free(struct gad_array *array)
{
    array->format_state = hdf5_provider_free(array->format_state);
}

static void chunks_free(struct gad_array *array)
{
    array->format_state = chunk_source_free(array->format_state);
}

static void provider_free_state(void *state)
{
    hdf5_provider_free(state);
}

static int use_chunks(struct source *source, struct hdf5_provider *provider_take,
                      struct gad_error *error)
{
    struct gad_array *array = source->array;
    struct chunk_source *chunks;
    const struct chunk_layout layout = {
        .grid = source->grid,
        .shape = source->shape,
        .item_bytes = dtype_size(source->layout.dtype),
        .fill = source->fill,
        .selection = &source->selection,
        .pipeline = &source->pipeline,
        .fetch = hdf5_provider_fetch,
        .watch = hdf5_provider_watch,
        .where = hdf5_provider_where,
        .locate = hdf5_provider_locate,
        .free_state = provider_free_state,
        .state = provider_take,
        .path = source->spec->path,
        .dataset = source->spec->dataset,
    };
    int r = chunk_source_new(&layout, source->name, &chunks, error);
    if (r) {
        hdf5_provider_free(provider_take);
        return r;
    }
    array->format_state = array->provider_state = chunks;
    array->maker_free = chunks_free;
    array->provider = &chunk_source_provider;
    return 0;
}

static void use_library(struct gad_array *array, struct hdf5_provider *provider_take)
{
    array->format_state = array->provider_state = provider_take;
    array->maker_free = provider_free;
    array->provider = &hdf5_dataset_provider;
}

/* The dataset is read through HDF5, or may be when the daemon does not read this file system. */
static int add_provider(struct source *source, struct gad_error *error)
{
    struct gad_array *array = source->array;
    struct hdf5_provider *provider = hdf5_provider_new(
        source->spec->path, source->spec->dataset, &source->st, dtype_size(source->layout.dtype),
        source->shape, &source->selection, source->has_grid ? &source->grid : NULL);
    if (!provider)
        return error_from_errno(error, errno, source->name, source->spec->path);
    int r = source->is_decoded ? use_chunks(source, provider, error) : 0;
    if (r)
        return r;
    if (!source->is_decoded)
        use_library(array, provider);
    array->info.ndim = source->selection.ndim;
    memset(array->info.shape, 0, sizeof(array->info.shape));
    memset(array->info.strides, 0, sizeof(array->info.strides));
    for (int i = 0; i < array->info.ndim; i++)
        array->info.shape[i] = selection_size(&source->selection, i);
    return 0;
}

/* Contiguous, or without elements: then nothing is where the layout says. */
static int set_file(struct source *source, struct gad_error *error)
{
    struct gad_array *array = source->array;
    source->layout.offset_bytes = source->offset_bytes;
    int r = file_array_describe(array, &source->layout, source->name, error);
    if (r == 0 && !selection_is_empty(&source->selection))
        r = file_array_check_size(array, (uint64_t)source->st.st_size, source->name, error);
    return r ? r : file_array_select(array, source->spec, source->name, error);
}

static int set_access(struct source *source, struct gad_error *error)
{
    struct gad_array *array = source->array;
    array->access = source->access;
    switch (source->access) {
    case ACCESS_FILE: return set_file(source, error);
    case ACCESS_CHUNKS: array->info.access = "chunks"; return add_provider(source, error);
    default:
        array->info.access = "provider";
        close_fd(&array->fd);
        return add_provider(source, error);
    }
}

/* What is written in place gets its storage as from anybody else's first write. */
static int allocate(struct source *source, struct gad_error *error)
{
    struct gad_array *array = source->array;
    int r = hdf5_allocate(source->spec->path, source->spec->dataset, &source->st, array->fd,
                          source->name, error);
    if (r == 0 && fstat(array->fd, &source->st) < 0)
        r = error_from_errno(error, errno, source->name, source->spec->path);
    return r ? r : describe_in_scope(source, error);
}

static int open_array(struct source *source, struct gad_error *error)
{
    struct gad_array *array = source->array;
    int r = file_source_open(source->spec->path, array->is_writable, source->name, &array->fd,
                             &source->st, error);
    if (r == 0)
        r = describe_in_scope(source, error);
    if (r == 0 && array->is_writable && source->is_unallocated)
        r = allocate(source, error);
    if (r)
        return r;
    if (array->is_writable && source->access != ACCESS_FILE)
        return error_set(error, GAD_READ_ONLY, source->name,
                         "only contiguous datasets%s can be written in place; '%.160s' is not",
                         source->is_converted ? " whose elements lie as they are read" : "",
                         source->spec->dataset);
    return set_access(source, error);
}

static bool hdf5_is_magic(const uint8_t *bytes, size_t n_bytes)
{
    return n_bytes >= 8 && memcmp(bytes, "\x89HDF\r\n\x1a\n", 8) == 0;
}

static bool hdf5_has_dataset(const char *path, const char *dataset)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    HDF5_SCOPE(scope);
    _cleanup_hid_ hid_t file = H5I_INVALID_HID;
    if (hdf5_file_open(path, &st, false, path, NULL, &file, NULL))
        return false;
    _cleanup_hid_ hid_t found = H5Dopen2(file, dataset, H5P_DEFAULT);
    return found > 0;
}

static int hdf5_open(struct gad_client *client, const struct spec *spec, const char *name,
                     bool for_writing, struct gad_array **ret_array, struct gad_error *error)
{
    struct source source = {
        .spec = spec,
        .name = name,
        .file = H5I_INVALID_HID,
        .dataset = H5I_INVALID_HID,
        .create_plist = H5I_INVALID_HID,
    };
    source.array = array_new(client, spec->format->name, ACCESS_FILE, spec->path);
    if (!source.array)
        return error_from_errno(error, ENOMEM, name, "array");
    source.array->is_writable = for_writing;
    return array_settle(source.array, open_array(&source, error), ret_array);
}

const struct format format_hdf5 = {
    .name = "hdf5",
    .extensions = ".h5 .hdf5 .he5 .h5p .mat .nc .nc4 .cdf",
    .written = "FILE.h5:/DATASET",
    .has_chunks = true,
    .can_grow = true,
    .takes_brackets = true,
    .normalise = dataset_path_normalise,
    .parse_rest = dataset_path_parse,
    .is_own = hdf5_is_magic,
    .has_dataset = hdf5_has_dataset,
    .open = hdf5_open,
    .create = hdf5_create,
    .list = hdf5_list,
    .passes_over = true,
};
