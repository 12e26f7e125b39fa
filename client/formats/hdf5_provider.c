/* Reading datasets by blocks.
 *
 * A provider opens its file with the first block that is asked for, and can be told to close it in
 * between (another part of the process wants to write to the file). What it opens again must be the
 * same file with a dataset of the same shape and item size, or the block fails.
 *
 * HDF5 decodes whole chunks and keeps some: the cache holds what one slab of blocks along the first
 * axis touches, within limits, so that walking the array in C order decodes each chunk once.
 *
 * Memory type = the type in the file, so nothing is converted. Chunks that were never written, of a
 * dataset that says its fill value is not to be used, leave the block untouched in HDF5: such
 * blocks are cleared first, as h5py does.
 *
 * Called by the pump's thread (fill), by hdf5_file.c (suspend) and at the array's end.
 */
#include "client/formats/hdf5_provider.h"
#include "client/formats/hdf5_file.h"
#include "proto/util.h"

#include <limits.h>
#include <string.h>

#define MIN_CACHE_BYTES  (UINT64_C(4) << 20)
#define MAX_CACHE_BYTES  (UINT64_C(64) << 20)
#define MAX_CACHED_CHUNK (UINT64_C(1) << 30)

struct hdf5_provider {
    struct hdf5_provider *next; /* of all that exist */
    char *path, *dataset;
    struct stat st;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    size_t item_bytes;
    uint64_t cache_bytes, n_cached;
    hid_t file, id, type; /* negative while closed */
    bool may_skip;        /* HDF5 may leave parts of a block untouched */
};

static struct hdf5_provider *all; /* under the scope's lock */

static void plan_cache(struct hdf5_provider *provider, const struct chunk_grid *grid)
{
    uint64_t bytes = MIN_CACHE_BYTES;
    if (!grid)
        return;
    uint64_t slab = grid->chunk_bytes;
    for (int i = 1; i < grid->ndim; i++)
        if (__builtin_mul_overflow(slab, (uint64_t)grid->n_chunks_of[i], &slab))
            slab = MAX_CACHE_BYTES;
    bytes = min_u64(max_u64(slab, MIN_CACHE_BYTES), MAX_CACHE_BYTES);
    if (grid->chunk_bytes <= MAX_CACHED_CHUNK)
        bytes = max_u64(bytes, grid->chunk_bytes);
    provider->cache_bytes = bytes;
    provider->n_cached = min_u64(bytes / grid->chunk_bytes + 1, grid->n_chunks);
}

struct hdf5_provider *hdf5_provider_new(const char *path, const char *dataset,
                                        const struct stat *st, const struct gad_array_info *info,
                                        const struct chunk_grid *grid)
{
    struct hdf5_provider *provider = calloc(1, sizeof(*provider));
    if (!provider)
        return NULL;
    provider->file = provider->id = provider->type = H5I_INVALID_HID;
    provider->st = *st;
    provider->ndim = info->ndim;
    memcpy(provider->shape, info->shape, sizeof(provider->shape));
    provider->item_bytes = dtype_size((enum dtype)info->dtype);
    plan_cache(provider, grid);
    provider->path = realpath(path, NULL);
    provider->dataset = strdup(dataset);
    if (!provider->path || !provider->dataset) {
        free(provider->path);
        free(provider->dataset);
        free(provider);
        return NULL;
    }
    HDF5_SCOPE(scope);
    provider->next = all;
    all = provider;
    return provider;
}

static void close_dataset(struct hdf5_provider *provider)
{
    hdf5_close(&provider->type);
    hdf5_close(&provider->id);
    hdf5_close(&provider->file);
}

static void forget(struct hdf5_provider *provider)
{
    HDF5_SCOPE(scope);
    close_dataset(provider);
    for (struct hdf5_provider **at = &all; *at; at = &(*at)->next) {
        if (*at == provider) {
            *at = provider->next;
            return;
        }
    }
}

struct hdf5_provider *hdf5_provider_free(struct hdf5_provider *provider)
{
    if (!provider)
        return NULL;
    forget(provider);
    free(provider->path);
    free(provider->dataset);
    free(provider);
    return NULL;
}

void hdf5_provider_suspend(const struct stat *st)
{
    for (struct hdf5_provider *provider = all; provider; provider = provider->next)
        if (provider->st.st_dev == st->st_dev && provider->st.st_ino == st->st_ino)
            close_dataset(provider);
}

static hid_t dataset_properties(const struct hdf5_provider *provider)
{
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
    /* Some ten slots of the hash table for each chunk keep collisions (evictions) rare. */
    if (dapl > 0 && provider->cache_bytes)
        H5Pset_chunk_cache(dapl, (size_t)(provider->n_cached * 10 + 521),
                           (size_t)provider->cache_bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
    return dapl;
}

static bool is_as_it_was(const struct hdf5_provider *provider)
{
    hsize_t dims[H5S_MAX_RANK];
    _cleanup_hid_ hid_t space = H5Dget_space(provider->id);
    if (space <= 0 || H5Tget_size(provider->type) != provider->item_bytes ||
        H5Sget_simple_extent_dims(space, dims, NULL) != provider->ndim)
        return false;
    for (int i = 0; i < provider->ndim; i++)
        if (dims[i] != (hsize_t)provider->shape[i])
            return false;
    return true;
}

static bool may_skip(hid_t dataset)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_NEVER;
    _cleanup_hid_ hid_t dcpl = H5Dget_create_plist(dataset);
    return dcpl <= 0 || H5Pfill_value_defined(dcpl, &defined) < 0 ||
           H5Pget_fill_time(dcpl, &when) < 0 || defined == H5D_FILL_VALUE_UNDEFINED ||
           when == H5D_FILL_TIME_NEVER;
}

static int open_dataset(struct hdf5_provider *provider)
{
    struct gad_error error;
    if (provider->id > 0)
        return 0;
    int r = hdf5_file_open(provider->path, &provider->st, false, provider->path, provider->dataset,
                           &provider->file, &error);
    if (r)
        return r == GAD_BUSY ? EBUSY : r == GAD_NOT_FOUND ? ESTALE : EIO;
    _cleanup_hid_ hid_t dapl = dataset_properties(provider);
    provider->id = H5Dopen2(provider->file, provider->dataset, dapl > 0 ? dapl : H5P_DEFAULT);
    if (provider->id > 0)
        provider->type = H5Dget_type(provider->id);
    if (provider->type > 0 && is_as_it_was(provider)) {
        provider->may_skip = may_skip(provider->id);
        return 0;
    }
    close_dataset(provider);
    return ESTALE;
}

static int read_block(const struct hdf5_provider *provider, const int64_t *start,
                      const int64_t *count, void *ret_block)
{
    hsize_t offsets[ARRAY_MAX_NDIM], counts[ARRAY_MAX_NDIM];
    size_t n_bytes = provider->item_bytes;
    for (int i = 0; i < provider->ndim; i++) {
        if (start[i] < 0 || count[i] < 0 || start[i] > provider->shape[i] ||
            count[i] > provider->shape[i] - start[i])
            return EINVAL;
        offsets[i] = (hsize_t)start[i];
        counts[i] = (hsize_t)count[i];
        n_bytes *= (size_t)count[i];
    }
    if (n_bytes == 0)
        return 0;
    if (provider->may_skip)
        memset(ret_block, 0, n_bytes);
    if (provider->ndim == 0)
        return H5Dread(provider->id, provider->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, ret_block) < 0
                   ? EIO
                   : 0;
    _cleanup_hid_ hid_t memory = H5Screate_simple(provider->ndim, counts, NULL);
    _cleanup_hid_ hid_t file = H5Dget_space(provider->id);
    if (memory <= 0 || file <= 0 ||
        H5Sselect_hyperslab(file, H5S_SELECT_SET, offsets, NULL, counts, NULL) < 0 ||
        H5Dread(provider->id, provider->type, memory, file, H5P_DEFAULT, ret_block) < 0)
        return EIO;
    return 0;
}

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct hdf5_provider *provider = state;
    HDF5_SCOPE(scope);
    int r = open_dataset(provider);
    return r ? r : read_block(provider, start, count, ret_block);
}

const struct provider hdf5_dataset_provider = {.fill = fill};
