/* Writing encoded chunks.
 *
 * Chunks are encoded by many threads and written by one: HDF5 has one lock, and a file may be open
 * for writing in one place only. They come in order (chunk_order.h) and gather in a batch; the
 * thread that fills it opens the file, writes all of them as they are and closes it again. Batches
 * end where their bytes say so, for HDF5 puts its tables between those of two batches: so of two
 * runs of one job the files are the same. Between batches the file is closed and whole, as far as
 * HDF5 is concerned: a source of the same job may lie in it, and whoever dies leaves what was there
 * (hdf5_driver.c).
 *
 * A file that somebody else has locked is tried for a while. What failed is not tried again.
 *
 * Called by chunk sinks (store) and hdf5_output.c.
 */
#include "client/formats/hdf5/writing/hdf5_chunk_writer.h"
#include "client/formats/hdf5/writing/hdf5_driver.h"
#include "client/clock.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_lent.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define BATCH_BYTES (UINT64_C(4) << 20)
#define WAIT_MS     5000 /* in all */
#define RETRY_MS    50
#define SLACK_BYTES (UINT64_C(1) << 19)

struct stored_chunk {
    struct stored_chunk *next;
    hsize_t place[ARRAY_MAX_NDIM];
    uint32_t skipped;
    size_t n_bytes;
    uint8_t bytes[];
};

struct hdf5_chunk_writer {
    const struct hdf5_target *target;
    const char *dataset, *shown;
    int ndim;
    int failed_with; /* what failed once is not tried again */
    char reason[160];
    struct stored_chunk *batch, **batch_end;
    uint64_t batch_bytes;
};

struct hdf5_chunk_writer *hdf5_chunk_writer_new(const struct hdf5_target *target,
                                                const char *dataset, const char *shown, int ndim)
{
    struct hdf5_chunk_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->target = target;
    writer->dataset = dataset;
    writer->shown = shown;
    writer->ndim = ndim;
    writer->batch_end = &writer->batch;
    return writer;
}

static void free_batch(struct stored_chunk *batch)
{
    while (batch) {
        struct stored_chunk *next = batch->next;
        free(batch);
        batch = next;
    }
}

struct hdf5_chunk_writer *hdf5_chunk_writer_free(struct hdf5_chunk_writer *writer)
{
    if (!writer)
        return NULL;
    free_batch(writer->batch);
    free(writer);
    return NULL;
}

static int write_failed(char *reason, size_t n_reason)
{
    hdf5_reason(reason, n_reason);
    return errno == ENOSPC || strstr(reason, "No space left") ? ENOSPC : EIO;
}

/* Of a dataset whose length is not known yet: so long that these begin in it, and no longer. HDF5
 * decodes and fills what it makes shorter, for which it must have the filters itself. */
static bool make_long(hid_t dataset, const struct stored_chunk *batch)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK], end = 0;
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    if (space <= 0 || H5Sget_simple_extent_dims(space, dims, most) < 1)
        return false;
    if (most[0] != H5S_UNLIMITED)
        return true;
    for (; batch; batch = batch->next)
        end = batch->place[0] + 1 > end ? batch->place[0] + 1 : end;
    if (end <= dims[0])
        return true;
    dims[0] = end;
    return H5Dset_extent(dataset, dims) >= 0;
}

static int write_chunks(const struct hdf5_chunk_writer *writer, hid_t file,
                        const struct stored_chunk *batch, char *reason, size_t n_reason)
{
    _cleanup_hid_ hid_t dataset = H5Dopen2(file, writer->dataset, H5P_DEFAULT);
    if (dataset <= 0 || !make_long(dataset, batch))
        return write_failed(reason, n_reason);
    for (const struct stored_chunk *chunk = batch; chunk; chunk = chunk->next)
        if (H5Dwrite_chunk(dataset, H5P_DEFAULT, chunk->skipped, chunk->place, chunk->n_bytes,
                           chunk->bytes) < 0)
            return write_failed(reason, n_reason);
    return 0;
}

/* EBUSY: the file is locked. */
static int write_once(const struct hdf5_chunk_writer *writer, const struct stored_chunk *batch,
                      char *reason, size_t n_reason)
{
    struct gad_error error;
    HDF5_SCOPE(scope);
    hid_t file = H5I_INVALID_HID;
    errno = 0;
    int r = hdf5_file_open(hdf5_target_path(writer->target), hdf5_target_stat(writer->target), true,
                           writer->shown, writer->shown, &file, &error);
    if (r) {
        snprintf(reason, n_reason, "%.*s", (int)n_reason - 1, error.message);
        return r == GAD_BUSY ? EBUSY : EIO;
    }
    r = write_chunks(writer, file, batch, reason, n_reason);
    if (hdf5_driver_close(file) < 0 && r == 0)
        r = write_failed(reason, n_reason);
    return r;
}

/* HDF5 leaves a file broken where it finds no space in the middle of writing: so there is space for
 * the batch, and for what HDF5 notes of it, before it begins. The rest goes back when HDF5 closes
 * the file. */
static int reserve(const struct hdf5_chunk_writer *writer, uint64_t n_bytes)
{
    struct statvfs disk;
    struct stat st;
    _cleanup_fd_ int fd = open(hdf5_target_path(writer->target), O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    n_bytes += n_bytes / 8 + SLACK_BYTES;
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, st.st_size, (off_t)n_bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    return fstatvfs(fd, &disk) == 0 && disk.f_bavail * disk.f_frsize < n_bytes ? ENOSPC : 0;
}

static int write_batch(const struct hdf5_chunk_writer *writer, const struct stored_chunk *batch,
                       uint64_t n_bytes, char *reason, size_t n_reason)
{
    int r = reserve(writer, n_bytes);
    if (r)
        return r;
    r = write_once(writer, batch, reason, n_reason);
    for (int ms = 0; r == EBUSY && ms < WAIT_MS; ms += RETRY_MS) {
        clock_sleep_ms(RETRY_MS);
        r = write_once(writer, batch, reason, n_reason);
    }
    return r;
}

int hdf5_chunk_writer_flush(struct hdf5_chunk_writer *writer, char *reason, size_t n_reason)
{
    struct stored_chunk *batch = writer->batch;
    uint64_t n_bytes = writer->batch_bytes;
    writer->batch = NULL;
    writer->batch_end = &writer->batch;
    writer->batch_bytes = 0;
    if (batch && !writer->failed_with)
        writer->failed_with =
            write_batch(writer, batch, n_bytes, writer->reason, sizeof(writer->reason));
    int r = writer->failed_with;
    snprintf(reason, n_reason, "%.*s", (int)n_reason - 1, r ? writer->reason : "");
    free_batch(batch);
    return r;
}

int hdf5_chunk_writer_store(void *state, uint64_t index, const int64_t *place, const void *bytes,
                            size_t n_bytes, uint32_t skipped, char *reason, size_t n_reason)
{
    struct hdf5_chunk_writer *writer = state;
    struct stored_chunk *chunk = malloc(sizeof(*chunk) + n_bytes);
    if (!chunk)
        return ENOMEM;
    chunk->next = NULL;
    chunk->skipped = skipped;
    chunk->n_bytes = n_bytes;
    memcpy(chunk->bytes, bytes, n_bytes);
    for (int i = 0; i < writer->ndim; i++)
        chunk->place[i] = (hsize_t)place[i];
    *writer->batch_end = chunk;
    writer->batch_end = &chunk->next;
    writer->batch_bytes += n_bytes;
    return writer->batch_bytes >= BATCH_BYTES ? hdf5_chunk_writer_flush(writer, reason, n_reason)
                                              : 0;
}

/* New datasets --------------------------------------------------------------------------------- */

/* Values that the filter itself puts before those of the user, where HDF5 has it. */
static unsigned n_filters_own(const struct codec *codec)
{
    if (strcmp(codec->name, "bitshuffle") != 0 || hdf5_is_lent(codec->hdf5_id))
        return 0;
    return H5Zfilter_avail((H5Z_filter_t)codec->hdf5_id) > 0 ? 3 : 0;
}

/* A filter that HDF5 has not must be optional: then it makes the dataset all the same. One that it
 * has may put values of its own in the place of ours, or before them: so the dataset is asked, once
 * it is made, what its filters are. */
bool hdf5_chunk_properties(hid_t create_plist, int ndim, const struct storage *storage)
{
    hsize_t dims[ARRAY_MAX_NDIM];
    for (int i = 0; i < ndim; i++)
        dims[i] = (hsize_t)storage->chunk_shape[i];
    if (H5Pset_chunk(create_plist, ndim, dims) < 0)
        return false;
    for (unsigned i = 0; i < storage->pipeline.n_steps; i++) {
        const struct codec_step *step = &storage->pipeline.steps[i];
        unsigned values[CODEC_MAX_VALUES], n_own = n_filters_own(step->codec);
        for (unsigned k = n_own; k < step->n_values; k++)
            values[k - n_own] = step->values[k];
        unsigned flags = step->is_optional ? H5Z_FLAG_OPTIONAL : H5Z_FLAG_MANDATORY;
        if (H5Pset_filter(create_plist, (H5Z_filter_t)step->codec->hdf5_id, flags,
                          step->n_values - n_own, values) < 0)
            return false;
    }
    return true;
}
