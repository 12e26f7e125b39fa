/* Reading datasets by blocks.
 *
 * A provider opens its file with the first block that is asked for, and can be told to close it in
 * between (another part of the process wants to write to the file). What it opens again must be the
 * same file with a dataset of the same item size that has grown at most, or the block fails.
 *
 * HDF5 decodes whole chunks and keeps some: the cache holds what three slabs of blocks along the
 * outermost axis touch, within limits, so that walking the array roughly in C order decodes each
 * chunk once.
 *
 * A block of a selection is a regular hyperslab of the dataset. HDF5 knows steps upwards only, and
 * takes stepped elements one by one: with small steps it is several times faster to read all that
 * lies between and to pick the elements, in the selection's direction, from a buffer.
 *
 * Memory type = the type in the file, so HDF5 converts nothing, but for integers and floats of odd
 * widths. Chunks that were never written, of a dataset that says its fill value is not to be used,
 * leave the block untouched in HDF5: such blocks are cleared first, as h5py does.
 *
 * Stored chunks are found under HDF5's lock and read outside of it, by many threads at a time. What
 * was read while the file was closed here, and so may have been written to, is read once more.
 *
 * Called by the pump's threads (fill), by hdf5_file.c (suspend) and at the array's end.
 */
#include "client/formats/hdf5/hdf5_provider.h"
#include "client/formats/hdf5/hdf5_chunks.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_others.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "client/formats/hdf5/reading/hdf5_stored.h"
#include "proto/box.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MIN_CACHE_BYTES  (UINT64_C(8) << 20)
#define MAX_CACHE_BYTES  (UINT64_C(64) << 20)
#define N_SLABS          3 /* blocks are asked for out of order, across the border of two */
#define MAX_CACHED_CHUNK (UINT64_C(1) << 30)
#define MAX_SPREAD       16 /* times as much as is selected may be read */

struct hdf5_provider {
    struct hdf5_provider *next; /* of all that exist */
    char *path, *dataset;
    struct stat st;
    struct stat own_st;            /* of the file in which it lies, behind an external link */
    int64_t shape[ARRAY_MAX_NDIM]; /* of the dataset */
    size_t item_bytes;
    struct selection selection; /* what the blocks are of */
    uint64_t cache_bytes, n_cached;
    hid_t file, id, type; /* negative while closed */
    struct hdf5_beside beside;
    bool may_skip;       /* HDF5 may leave parts of a block untouched */
    bool has_plain_ends; /* chunks that the dataset's end cuts have no filters */
    hsize_t chunk_dims[H5S_MAX_RANK];
    bool is_outdated;          /* the dataset has got storage meanwhile */
    struct hdf5_others others; /* of who watches */
    const char *changed;       /* one of them that is not what it was */
    char reason[160];          /* why HDF5 could not read */
    char *buffer;              /* for what is read around a block */
    uint64_t buffer_bytes;
};

static struct hdf5_provider *all; /* under the scope's lock */

/* Chunks along an axis of the dataset that the selection touches. */
static uint64_t n_touched(const struct selection_axis *axis, int64_t chunk)
{
    int64_t first = axis->start, last = axis->start + (axis->count - 1) * axis->step;
    return (uint64_t)(llabs(last / chunk - first / chunk) + 1);
}

static void plan_cache(struct hdf5_provider *provider, const struct chunk_grid *grid)
{
    uint64_t bytes = MIN_CACHE_BYTES;
    if (!grid || selection_is_empty(&provider->selection))
        return;
    uint64_t slab = grid->chunk_bytes;
    bool has_walk = false; /* the axis that is walked outermost counts once */
    for (int i = 0; i < grid->ndim; i++) {
        const struct selection_axis *axis = &provider->selection.axes[i];
        if (!has_walk && axis->count > 1)
            has_walk = true;
        else if (__builtin_mul_overflow(slab, n_touched(axis, grid->chunk_shape[i]), &slab))
            slab = MAX_CACHE_BYTES;
    }
    slab = min_u64(slab, MAX_CACHE_BYTES);
    bytes = min_u64(max_u64(N_SLABS * slab, MIN_CACHE_BYTES), MAX_CACHE_BYTES);
    if (grid->chunk_bytes <= MAX_CACHED_CHUNK)
        bytes = max_u64(bytes, grid->chunk_bytes);
    provider->cache_bytes = bytes;
    provider->n_cached = min_u64(bytes / grid->chunk_bytes + 1, grid->n_chunks);
}

struct hdf5_provider *hdf5_provider_new(const char *path, const char *dataset,
                                        const struct stat *st, size_t item_bytes,
                                        const int64_t *shape, const struct selection *selection,
                                        const struct chunk_grid *grid)
{
    struct hdf5_provider *provider = calloc(1, sizeof(*provider));
    if (!provider)
        return NULL;
    provider->file = provider->id = provider->type = H5I_INVALID_HID;
    provider->beside.fd = -1;
    provider->st = *st;
    provider->selection = *selection;
    memcpy(provider->shape, shape, (size_t)selection->source_ndim * sizeof(*shape));
    provider->item_bytes = item_bytes;
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
    hdf5_beside_close(&provider->beside);
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
    close_fd(&provider->beside.fd);
    hdf5_others_deinit(&provider->others);
    free(provider->buffer);
    free(provider->path);
    free(provider->dataset);
    free(provider);
    return NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

void hdf5_provider_suspend(const struct stat *st)
{
    for (struct hdf5_provider *provider = all; provider; provider = provider->next)
        if (is_same(&provider->st, st) || is_same(&provider->own_st, st))
            close_dataset(provider);
}

void hdf5_provider_outdate(const struct stat *st, const char *dataset)
{
    for (struct hdf5_provider *provider = all; provider; provider = provider->next)
        if (provider->st.st_dev == st->st_dev && provider->st.st_ino == st->st_ino &&
            strcmp(provider->dataset, dataset) == 0)
            provider->is_outdated = true;
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
        H5Sget_simple_extent_dims(space, dims, NULL) != provider->selection.source_ndim)
        return false;
    for (int i = 0; i < provider->selection.source_ndim; i++)
        if (dims[i] < (hsize_t)provider->shape[i]) /* a writer may have added to it */
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

static void read_chunk_options(struct hdf5_provider *provider)
{
    unsigned options = 0;
    _cleanup_hid_ hid_t dcpl = H5Dget_create_plist(provider->id);
    provider->has_plain_ends =
        dcpl > 0 && H5Pget_layout(dcpl) == H5D_CHUNKED &&
        H5Pget_chunk(dcpl, H5S_MAX_RANK, provider->chunk_dims) == provider->selection.source_ndim &&
        H5Pget_chunk_opts(dcpl, &options) >= 0 && (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
}

static void note_own_file(struct hdf5_provider *provider)
{
    _cleanup_hid_ hid_t file = provider->id > 0 ? H5Iget_file_id(provider->id) : H5I_INVALID_HID;
    int fd = file > 0 ? hdf5_file_fd(file) : -1;
    if (fstat(fd, &provider->own_st) < 0)
        provider->own_st = provider->st;
    hdf5_beside_open(&provider->beside, fd, &provider->own_st);
}

static int open_dataset(struct hdf5_provider *provider)
{
    struct gad_error error;
    if (provider->is_outdated)
        return ESTALE;
    if (provider->id > 0)
        return 0;
    int r = hdf5_file_open(provider->path, &provider->st, false, provider->path, provider->dataset,
                           &provider->file, &error);
    if (r) { /* it is not what it was when the array was opened */
        snprintf(provider->reason, sizeof(provider->reason), "%.150s", error.message);
        return r == GAD_BUSY ? EBUSY : r == GAD_NOT_FOUND ? ESTALE : EIO;
    }
    _cleanup_hid_ hid_t dapl = dataset_properties(provider);
    provider->id = H5Dopen2(provider->file, provider->dataset, dapl > 0 ? dapl : H5P_DEFAULT);
    _cleanup_hid_ hid_t type = provider->id > 0 ? H5Dget_type(provider->id) : H5I_INVALID_HID;
    if (type > 0)
        provider->type = hdf5_type_as_read(type);
    note_own_file(provider);
    if (provider->type > 0 && is_as_it_was(provider)) {
        provider->may_skip = may_skip(provider->id);
        read_chunk_options(provider);
        return 0;
    }
    close_dataset(provider);
    return ESTALE;
}

/* A block as HDF5 reads it, all steps upwards, and what the block is of that: of an axis with a
 * step HDF5 reads either the elements, or everything between the first and the last. */
struct slab {
    hsize_t start[ARRAY_MAX_NDIM], step[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    uint64_t n_bytes; /* as read */
    bool is_packed;   /* what is read is the block */
    int64_t first;    /* else: where the block's first element is in it */
    int64_t strides[ARRAY_MAX_NDIM];
};

static bool is_inside(const struct selection *selection, const int64_t *start, const int64_t *count)
{
    for (int i = 0; i < selection->ndim; i++) {
        int64_t size = selection_size(selection, i);
        if (start[i] < 0 || count[i] < 0 || start[i] > size || count[i] > size - start[i])
            return false;
    }
    return true;
}

/* Axis k of the dataset. Called from the last axis to the first: inner steps cost most. */
static void lay_axis(struct slab *slab, const struct selection_axis *axis, int k, int64_t start,
                     int64_t count, uint64_t *spread)
{
    int64_t first = axis->step > 0 ? start : start + count - 1, step = llabs(axis->step);
    slab->start[k] = (hsize_t)(axis->start + first * axis->step);
    slab->step[k] = (hsize_t)step;
    slab->count[k] = (hsize_t)count;
    if (step > 1 && (uint64_t)step <= MAX_SPREAD / *spread) {
        *spread *= (uint64_t)step;
        slab->step[k] = 1;
        slab->count[k] = (hsize_t)((count - 1) * step + 1);
    }
}

/* Where the block's elements are in what is read. */
static void lay_block(struct slab *slab, const struct selection *selection, const int64_t *count,
                      size_t item_bytes)
{
    int64_t sizes[ARRAY_MAX_NDIM], size = (int64_t)item_bytes;
    slab->is_packed = true;
    for (int k = selection->source_ndim - 1; k >= 0; k--) {
        sizes[k] = size;
        size *= (int64_t)slab->count[k];
    }
    slab->n_bytes = (uint64_t)size;
    for (int i = 0; i < selection->ndim; i++) {
        int k = selection->axis_of[i];
        if (k == SELECTION_NEW_AXIS)
            continue;
        int64_t step = selection->axes[k].step;
        int64_t stride = (slab->step[k] == 1 ? llabs(step) : 1) * sizes[k];
        slab->strides[i] = step < 0 ? -stride : stride;
        slab->first += step < 0 ? (count[i] - 1) * stride : 0;
        slab->is_packed &= slab->strides[i] == sizes[k];
    }
}

/* The block has elements and is inside. */
static struct slab make_slab(const struct hdf5_provider *provider, const int64_t *start,
                             const int64_t *count)
{
    const struct selection *selection = &provider->selection;
    struct slab slab = {.first = 0};
    uint64_t spread = 1;
    for (int k = 0; k < selection->source_ndim; k++) {
        slab.start[k] = (hsize_t)selection->axes[k].start;
        slab.step[k] = slab.count[k] = 1;
    }
    for (int i = selection->ndim - 1; i >= 0; i--) {
        int k = selection->axis_of[i];
        if (k != SELECTION_NEW_AXIS)
            lay_axis(&slab, &selection->axes[k], k, start[i], count[i], &spread);
    }
    lay_block(&slab, selection, count, provider->item_bytes);
    return slab;
}

static herr_t read_elements(struct hdf5_provider *provider, const struct slab *slab,
                            void *ret_bytes)
{
    int ndim = provider->selection.source_ndim;
    herr_t r;
    if (ndim == 0)
        return H5Dread(provider->id, provider->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, ret_bytes);
    _cleanup_hid_ hid_t memory = H5Screate_simple(ndim, slab->count, NULL);
    _cleanup_hid_ hid_t file = H5Dget_space(provider->id);
    if (memory <= 0 || file <= 0 ||
        H5Sselect_hyperslab(file, H5S_SELECT_SET, slab->start, slab->step, slab->count, NULL) < 0)
        return -1;
    r = H5Dread(provider->id, provider->type, memory, file, H5P_DEFAULT, ret_bytes);
    if (r < 0) /* before HDF5 is called again, which forgets it */
        hdf5_reason(provider->reason, sizeof(provider->reason));
    return r;
}

static int read_slab(struct hdf5_provider *provider, const struct slab *slab, void *ret_bytes)
{
    if (provider->may_skip)
        memset(ret_bytes, 0, slab->n_bytes);
    if (read_elements(provider, slab, ret_bytes) < 0)
        return EIO;
    hdf5_type_convert(provider->type, ret_bytes, slab->n_bytes);
    return 0;
}

static int keep_buffer(struct hdf5_provider *provider, uint64_t n_bytes)
{
    if (n_bytes <= provider->buffer_bytes)
        return 0;
    free(provider->buffer);
    provider->buffer = malloc(n_bytes);
    provider->buffer_bytes = provider->buffer ? n_bytes : 0;
    return provider->buffer ? 0 : ENOMEM;
}

static int read_block(struct hdf5_provider *provider, const int64_t *start, const int64_t *count,
                      void *ret_block)
{
    if (!is_inside(&provider->selection, start, count))
        return EINVAL;
    for (int i = 0; i < provider->selection.ndim; i++)
        if (count[i] == 0)
            return 0;
    struct slab slab = make_slab(provider, start, count);
    if (slab.is_packed)
        return read_slab(provider, &slab, ret_block);
    int r = keep_buffer(provider, slab.n_bytes);
    if (r == 0)
        r = read_slab(provider, &slab, provider->buffer);
    if (r)
        return r;
    struct box box;
    int64_t block_stride = (int64_t)provider->item_bytes;
    box.n = 0;
    for (int i = provider->selection.ndim - 1; i >= 0; block_stride *= count[i--])
        box_add(&box, count[i], block_stride, slab.strides[i]);
    box_copy(&box, ret_block, provider->buffer + slab.first, provider->item_bytes, false);
    return 0;
}

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct hdf5_provider *provider = state;
    HDF5_SCOPE(scope);
    int r = open_dataset(provider);
    return r ? r : read_block(provider, start, count, ret_block);
}

/* Chunks as they are stored ---------------------------------------------------------------------
 */

/* Whether the chunk is cut by the dataset's end, as it is now, and was therefore left without
 * filters. */
static bool is_left_plain(const struct hdf5_provider *provider, const int64_t *place)
{
    hsize_t dims[H5S_MAX_RANK];
    if (!provider->has_plain_ends)
        return false;
    _cleanup_hid_ hid_t space = H5Dget_space(provider->id);
    if (space <= 0 || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return false;
    for (int i = 0; i < provider->selection.source_ndim; i++)
        if ((hsize_t)place[i] + provider->chunk_dims[i] > dims[i])
            return true;
    return false;
}

/* may_find false: HDF5 reads. */
static int fetch(struct hdf5_provider *provider, const int64_t *place, bool may_find,
                 struct chunk_bytes *ret_bytes, struct hdf5_where *ret_where)
{
    hsize_t offsets[H5S_MAX_RANK];
    for (int i = 0; i < provider->selection.source_ndim; i++)
        offsets[i] = (hsize_t)place[i];
    int r = hdf5_stored_fetch(provider->id, offsets,
                              may_find && provider->others.n == 0 ? &provider->beside : NULL,
                              ret_bytes, ret_where);
    if (r == 0 && !ret_bytes->is_absent && is_left_plain(provider, place))
        ret_bytes->skipped = UINT32_MAX;
    return r;
}

static int fetch_inside(struct hdf5_provider *provider, const int64_t *place, bool may_find,
                        struct chunk_bytes *ret_bytes, struct hdf5_where *ret_where)
{
    HDF5_SCOPE(scope);
    ret_where->address = HADDR_UNDEF;
    int r = open_dataset(provider);
    if (r == 0)
        r = fetch(provider, place, may_find, ret_bytes, ret_where);
    else if (*provider->reason)
        snprintf(ret_bytes->reason, sizeof(ret_bytes->reason), "%s", provider->reason);
    *provider->reason = '\0';
    const char *changed =
        hdf5_others_changed(&provider->others); /* one at most: of an external link */
    if (!changed)
        return r;
    snprintf(ret_bytes->reason, sizeof(ret_bytes->reason), "'%.120s' has changed meanwhile",
             changed);
    return ESTALE;
}

int hdf5_provider_fetch(void *state, uint64_t index, const int64_t *place,
                        struct chunk_bytes *ret_bytes)
{
    struct hdf5_provider *provider = state;
    struct hdf5_where where;
    int r = fetch_inside(provider, place, true, ret_bytes, &where);
    if (r == 0 && !hdf5_beside_read(&provider->beside, &where, ret_bytes))
        r = fetch_inside(provider, place, false, ret_bytes, &where); /* it says what is wrong */
    return r;
}

/* Of a file with a user block HDF5's versions disagree where it begins to count. */
void hdf5_provider_where(void *state, const int64_t *place, char *ret_text, size_t n_bytes)
{
    struct hdf5_provider *provider = state;
    hsize_t offsets[H5S_MAX_RANK], block = 1, n_stored = 0;
    haddr_t address = HADDR_UNDEF;
    unsigned mask;
    HDF5_SCOPE(scope);
    if (open_dataset(provider))
        return;
    _cleanup_hid_ hid_t file = H5Iget_file_id(provider->id);
    _cleanup_hid_ hid_t fcpl = file > 0 ? H5Fget_create_plist(file) : H5I_INVALID_HID;
    for (int i = 0; i < provider->selection.source_ndim; i++)
        offsets[i] = (hsize_t)place[i];
    if (fcpl > 0 && H5Pget_userblock(fcpl, &block) >= 0 && block == 0 &&
        H5Dget_chunk_info_by_coord(provider->id, offsets, &mask, &address, &n_stored) >= 0 &&
        address != HADDR_UNDEF)
        snprintf(ret_text, n_bytes, ", at byte %" PRIu64, (uint64_t)address);
}

/* What lies behind an external link is in a file whose path is not ours to open. */
static int add_own_file(const struct hdf5_provider *provider, struct packed_chunks *packed,
                        uint32_t *ret_file)
{
    struct stat st;
    if (stat(provider->path, &st) < 0)
        return errno;
    if (st.st_dev != provider->own_st.st_dev || st.st_ino != provider->own_st.st_ino)
        return ENOTSUP;
    return packed_add_file(packed, AT_FDCWD, provider->path, &st, ret_file);
}

static int locate(struct hdf5_provider *provider, const struct chunk_grid *grid, const int64_t *low,
                  const int64_t *n, struct packed_chunk *chunks)
{
    HDF5_SCOPE(scope);
    int r = open_dataset(provider);
    if (r)
        return r;
    return provider->has_plain_ends
               ? ENOTSUP
               : hdf5_chunk_places(provider->file, provider->id, grid, low, n, chunks);
}

int hdf5_provider_locate(void *state, const struct chunk_grid *grid, const int64_t *low,
                         const int64_t *n, uint32_t kind, struct packed_chunks *packed)
{
    uint64_t n_all = 1;
    struct packed_chunk chunk = {.kind = kind, .n_bytes = (uint32_t)grid->chunk_bytes};
    for (int k = 0; k < grid->ndim; k++)
        n_all *= (uint64_t)n[k];
    if (n_all > HDF5_MAX_TABLE_CHUNKS || grid->chunk_bytes > UINT32_MAX)
        return ENOTSUP;
    _cleanup_free_ struct packed_chunk *chunks = calloc(n_all, sizeof(*chunks));
    int r = chunks ? locate(state, grid, low, n, chunks) : ENOMEM;
    if (r == 0)
        r = add_own_file(state, packed, &chunk.file);
    for (uint64_t i = 0; i < n_all && r == 0; i++) {
        chunk.offset_bytes = chunks[i].offset_bytes;
        chunk.size_bytes = chunks[i].size_bytes;
        chunk.skipped = chunks[i].skipped;
        r = packed_add_chunk(packed, &chunk);
    }
    return r;
}

/* Files that change --------------------------------------------------------------------------- */

int hdf5_provider_watch(void *state, struct file_sums *sums)
{
    struct hdf5_provider *provider = state;
    HDF5_SCOPE(scope);
    int r = open_dataset(provider);
    if (r == 0 && !provider->others.list)
        r = hdf5_others_find(provider->id, provider->path, &provider->others);
    hdf5_others_sum(&provider->others, sums);
    return r;
}

static int verify(void *state)
{
    struct hdf5_provider *provider = state;
    provider->changed = hdf5_others_changed(&provider->others);
    return provider->changed ? ESTALE : 0;
}

static void explain(void *state, struct gad_error *error)
{
    struct hdf5_provider *provider = state;
    char argument[sizeof(error->argument)];
    memcpy(argument, error->argument, sizeof(argument)); /* error_set() begins with an empty one */
    if (provider->changed)
        error_set(error, GAD_PROVIDER_FAILED, argument,
                  "%.100s:%.60s: '%.100s' has changed meanwhile", provider->path, provider->dataset,
                  provider->changed);
    else if (*provider->reason)
        error_set(error, GAD_PROVIDER_FAILED, argument, "%.100s:%.60s: HDF5 cannot read it: %.100s",
                  provider->path, provider->dataset,
                  strstr(provider->reason, "plugin") /* which it has looked for last */
                      ? "what it is made of has a filter for which HDF5 has no plugin"
                      : provider->reason);
    provider->changed = NULL;
    *provider->reason = '\0';
}

const struct provider hdf5_dataset_provider = {
    .fill = fill, .explain = explain, .watch = hdf5_provider_watch, .verify = verify};
