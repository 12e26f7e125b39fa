/* What a dataset is: type, shape, chunks and filters, without its elements.
 *
 * Whatever cannot be read is said in the place of the type. Filters are named as the table of
 * codecs does, or else as the file does, with those of their values that somebody has chosen: HDF5
 * and plugins add sizes of their own, which say nothing.
 *
 * Called by hdf5_list.c.
 */
#include "client/formats/hdf5/listing/hdf5_list_array.h"
#include "client/formats/hdf5/hdf5_attributes.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_filters.h"
#include "client/formats/hdf5/hdf5_storage.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "proto/array.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define MAX_FILTER_VALUES 32
#define MAX_SHOWN_VALUES  8

/* ---- Type ---- */

/* -1: it is not served. */
static int read_type(hid_t dataset, struct list_memory *memory, struct gad_listed *entry)
{
    char text[96];
    enum dtype dtype;
    bool is_swapped;
    _cleanup_hid_ hid_t type = H5Dget_type(dataset);
    if (type > 0 && hdf5_type_to_dtype(type, &dtype, &is_swapped)) {
        dtype = hdf5_attributes_sign(dataset, dtype);
        entry->type = dtype_name(dtype);
        return (int)dtype;
    }
    if (type > 0)
        hdf5_type_describe(type, text, sizeof(text));
    entry->type = type > 0 ? list_memory_text(memory, text, strlen(text))
                           : "elements of a type that HDF5 cannot read";
    return -1;
}

/* ---- Shape ---- */

static bool read_shape(hid_t dataset, struct list_memory *memory, struct gad_listed *entry)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    int ndim = space > 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (ndim < 0 || H5Sget_simple_extent_dims(space, dims, most) != ndim) {
        entry->type = "an array of a shape that HDF5 cannot read";
        return false;
    }
    if (H5Sget_simple_extent_type(space) == H5S_NULL) {
        entry->type = list_memory_format(memory, "nothing, of type %s", entry->type);
        return false;
    }
    int64_t *shape = list_memory_take(memory, 2 * (size_t)ndim + 1, sizeof(*shape));
    if (!shape)
        return false;
    int64_t *max_shape = shape + ndim;
    bool is_served = ndim <= ARRAY_MAX_NDIM;
    entry->ndim = ndim;
    entry->shape = shape;
    for (int i = 0; i < ndim; i++) {
        is_served &= dims[i] <= INT64_MAX;
        shape[i] = (int64_t)min_u64(dims[i], INT64_MAX);
        max_shape[i] =
            most[i] == H5S_UNLIMITED ? GAD_UNKNOWN_LENGTH : (int64_t)min_u64(most[i], INT64_MAX);
        if (max_shape[i] != shape[i])
            entry->max_shape = max_shape;
    }
    return is_served;
}

/* Its bytes are a number of 63 bits. */
static bool has_bytes(const struct gad_listed *entry, enum dtype dtype)
{
    int64_t n = (int64_t)dtype_size(dtype);
    for (int i = 0; i < entry->ndim; i++)
        if (entry->shape[i] == 0)
            return true;
    for (int i = 0; i < entry->ndim; i++)
        n = mul_saturating_i64(n, entry->shape[i]);
    return n < INT64_MAX;
}

static void read_chunks(hid_t plist, struct list_memory *memory, struct gad_listed *entry)
{
    hsize_t dims[H5S_MAX_RANK];
    if (entry->ndim == 0 || H5Pget_layout(plist) != H5D_CHUNKED ||
        H5Pget_chunk(plist, H5S_MAX_RANK, dims) != entry->ndim)
        return;
    int64_t *shape = list_memory_take(memory, (size_t)entry->ndim, sizeof(*shape));
    for (int i = 0; shape && i < entry->ndim; i++)
        shape[i] = (int64_t)min_u64(dims[i], INT64_MAX);
    entry->chunk_shape = shape;
}

/* ---- Filters ---- */

/* Of a filter's values those that are chosen; all, where it is not in the table. */
static const struct chosen {
    H5Z_filter_t filter;
    unsigned first, n;
} chosen[] = {
    {H5Z_FILTER_DEFLATE, 0, 1},    {H5Z_FILTER_SHUFFLE, 0, 0},
    {H5Z_FILTER_FLETCHER32, 0, 0}, {H5Z_FILTER_SZIP, 0, 2},
    {H5Z_FILTER_NBIT, 0, 0},       {H5Z_FILTER_SCALEOFFSET, 0, 2},
    {307, 0, 1} /* bzip2 */,       {32000, 0, 0} /* lzf */,
    {32004, 0, 1} /* lz4 */,       {32001, 4, 3} /* blosc: level, shuffle, compressor */,
    {32026, 4, 3} /* blosc2 */,    {32008, 3, 2} /* bitshuffle: block, compressor */,
    {32015, 0, 1} /* zstd */,
};

static const struct chosen *find_chosen(H5Z_filter_t filter)
{
    static const struct chosen all = {.n = MAX_SHOWN_VALUES};
    for (size_t i = 0; i < ARRAY_LENGTH(chosen); i++)
        if (chosen[i].filter == filter)
            return &chosen[i];
    return &all;
}

static bool is_served(struct list_filters *filters, H5Z_filter_t filter)
{
    for (unsigned i = 0; i < filters->n; i++)
        if (filters->known[i].filter == filter)
            return filters->known[i].is_served;
    bool answer = filter >= 0 && H5Zfilter_avail(filter) > 0;
    if (filters->n < ARRAY_LENGTH(filters->known)) {
        filters->known[filters->n].filter = filter;
        filters->known[filters->n++].is_served = answer;
    }
    return answer;
}

/* As the file calls it, where we do not know it. NULL: nobody does. */
static const char *filter_name(H5Z_filter_t filter, const char *own_name)
{
    const struct codec *codec = filter > 0 ? codec_of_hdf5((uint32_t)filter) : NULL;
    const struct codec_elsewhere *known = filter > 0 ? codec_elsewhere((uint32_t)filter) : NULL;
    return codec ? codec->name : known ? known->name : *own_name ? own_name : NULL;
}

/* One filter with its values, behind what the buffer has. */
static void add_filter(H5Z_filter_t filter, const char *own_name, const unsigned *values,
                       size_t n_values, char *buffer, size_t n_bytes)
{
    const struct chosen *row = find_chosen(filter);
    const char *name = filter_name(filter, own_name);
    FILE *file = fmemopen(buffer, n_bytes, "a");
    if (!file)
        return;
    fputs(*buffer ? ", " : "", file);
    if (name)
        fputs(name, file);
    else
        fprintf(file, "filter %d", (int)filter);
    for (size_t i = row->first; i < n_values && i < row->first + row->n; i++)
        fprintf(file, " %u", values[i]);
    fclose(file);
}

/* Returns whether all can be undone. */
static bool read_filters(hid_t plist, struct list_filters *filters, struct list_memory *memory,
                         struct gad_listed *entry)
{
    char buffer[1024] = "";
    struct codec_pipeline pipeline;
    bool are_served = true, is_ours = hdf5_filters_pipeline(plist, &pipeline);
    int n = H5Pget_nfilters(plist);
    for (int i = 0; i < n; i++) {
        unsigned flags, config, values[MAX_FILTER_VALUES];
        size_t n_values = MAX_FILTER_VALUES;
        char name[64] = "";
        H5Z_filter_t filter = H5Pget_filter2(plist, (unsigned)i, &flags, &n_values, values,
                                             sizeof(name), name, &config);
        are_served &= is_ours || is_served(filters, filter);
        add_filter(filter, name, values, min_u64(n_values, MAX_FILTER_VALUES), buffer,
                   sizeof(buffer));
    }
    entry->filters = list_memory_text(memory, buffer, strlen(buffer));
    return are_served && n >= 0;
}

void hdf5_list_array(hid_t dataset, hid_t plist, const char *file, struct list_filters *filters,
                     struct list_memory *memory, struct gad_listed *entry)
{
    entry->filters = "";
    int dtype = read_type(dataset, memory, entry);
    bool has_shape = read_shape(dataset, memory, entry);
    if (plist <= 0)
        return;
    read_chunks(plist, memory, entry);
    bool is_unpacked = read_filters(plist, filters, memory, entry);
    entry->is_served = dtype >= 0 && has_shape && has_bytes(entry, (enum dtype)dtype) &&
                       is_unpacked &&
                       hdf5_check_external(plist, file, entry->name, entry->name, NULL) == 0;
}
