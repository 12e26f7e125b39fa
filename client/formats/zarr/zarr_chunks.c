/* The stored bytes of chunks.
 *
 *     the first element of an innermost chunk
 *         -> which file     its name, relative to the array's directory
 *         -> which shard of each level, and where in its index (zarr_shards.c)
 *         -> bytes from .. to of the file
 *
 * A file that is not there is a chunk that was never written; any other trouble with it is an
 * error, and so is one that is longer than its codecs can have made it, before memory is taken.
 *
 * Called by the chunk source, by several threads at once.
 */
#include "client/formats/zarr/zarr_chunks.h"
#include "client/formats/files/file_mark.h"
#include "client/formats/files/file_source.h"
#include "client/formats/zarr/zarr_shards.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SLACK_BYTES (UINT64_C(1) << 20)

#define MAX_MARKS (UINT64_C(1) << 20) /* a second, and 8 MiB */

struct zarr_chunks {
    struct zarr_meta meta;
    int dir_fd;
    uint64_t most_stored_bytes;
    struct zarr_shards *shards; /* NULL: files are chunks */
    struct chunk_grid files;
    uint64_t *marks; /* of the files, 0: none was there; NULL: nobody watches them */
    struct file_sums sums;
};

void zarr_key(const struct zarr_meta *meta, const int64_t *place, char ret_key[ZARR_KEY_BYTES])
{
    char *to = ret_key;
    to += sprintf(to, "%s", meta->has_prefix ? "c" : meta->ndim == 0 ? "0" : "");
    for (int i = 0; i < meta->ndim; i++) {
        if (i > 0 || meta->has_prefix)
            *to++ = meta->separator;
        to += sprintf(to, "%" PRId64, place[i]);
    }
}

/* As many bytes as the codecs can have made, with room for those of others. */
static uint64_t most_bytes(const struct zarr_meta *meta)
{
    uint64_t n = dtype_size(meta->dtype), most;
    for (int i = 0; i < meta->ndim; i++)
        n *= (uint64_t)zarr_inner_shape(meta)[i];
    most = n;
    for (unsigned i = 0; i < meta->pipeline.n_steps; i++) {
        const struct codec_step *step = &meta->pipeline.steps[i];
        n = step->codec->bound(step, n);
        most = max_u64(most, n);
    }
    return most > INT64_MAX / 2 ? most : most + most / 4 + SLACK_BYTES;
}

struct zarr_chunks *zarr_chunks_new(const struct zarr_meta *meta, int dir_fd_take)
{
    struct zarr_chunks *chunks = calloc(1, sizeof(*chunks));
    if (chunks) {
        chunks->meta = *meta;
        chunks->dir_fd = dir_fd_take;
        chunks->most_stored_bytes = most_bytes(meta);
        if (meta->n_shards > 0)
            chunks->shards = zarr_shards_new(&chunks->meta, dir_fd_take);
    }
    if (!chunks)
        close_fd(&dir_fd_take);
    if (chunks && meta->n_shards > 0 && !chunks->shards) {
        zarr_chunks_free(chunks);
        return NULL;
    }
    return chunks;
}

void zarr_chunks_free(void *state)
{
    struct zarr_chunks *chunks = state;
    if (!chunks)
        return;
    zarr_shards_free(chunks->shards);
    free(chunks->marks);
    close_fd(&chunks->dir_fd);
    free(chunks);
}

static int too_long(const struct zarr_chunks *chunks, uint64_t n_bytes, struct chunk_bytes *ret)
{
    snprintf(ret->reason, sizeof(ret->reason),
             "it has %" PRIu64 " bytes, more than %" PRIu64 ", the most that its codecs can make",
             n_bytes, chunks->most_stored_bytes);
    return EFBIG;
}

static int read_part(const struct zarr_chunks *chunks, int fd, uint64_t offset, uint64_t n_bytes,
                     struct chunk_bytes *ret)
{
    size_t n_read = 0;
    if (n_bytes > chunks->most_stored_bytes)
        return too_long(chunks, n_bytes, ret);
    int r = chunk_bytes_reserve(ret, (size_t)n_bytes);
    if (r == 0)
        r = file_read(fd, ret->data, (size_t)n_bytes, offset, &n_read);
    if (r < 0)
        return -r;
    if (n_read == n_bytes)
        return 0;
    snprintf(ret->reason, sizeof(ret->reason), "its file has become shorter meanwhile");
    return EIO;
}

/* Where the file that an element is in stands in the grid of files. */
static void place_file(const struct zarr_chunks *chunks, const int64_t *place, int64_t *ret_place)
{
    for (int i = 0; i < chunks->meta.ndim; i++)
        ret_place[i] = place[i] / chunks->meta.chunk_shape[i];
}

static int fetch_file(struct zarr_chunks *chunks, const int64_t *place, struct chunk_bytes *ret)
{
    char key[ZARR_KEY_BYTES];
    int64_t file_place[ARRAY_MAX_NDIM];
    struct stat st;
    place_file(chunks, place, file_place);
    zarr_key(&chunks->meta, file_place, key);
    _cleanup_fd_ int fd = openat(chunks->dir_fd, key, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        ret->is_absent = true;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    return read_part(chunks, fd, 0, (uint64_t)st.st_size, ret);
}

static int fetch_part(struct zarr_chunks *chunks, const int64_t *place, struct chunk_bytes *ret)
{
    struct zarr_part part;
    int r = zarr_shards_find(chunks->shards, place, &part, ret->reason);
    if (r)
        return r;
    if (part.is_absent)
        ret->is_absent = true;
    else
        r = read_part(chunks, part.fd, part.offset_bytes, part.n_bytes, ret);
    zarr_shards_release(chunks->shards, &part);
    return r;
}

/* Files that change ---------------------------------------------------------------------------- */

static uint64_t mark_of(const struct zarr_chunks *chunks, const int64_t *file_place,
                        struct file_sums *sums)
{
    char key[ZARR_KEY_BYTES];
    struct file_mark mark;
    struct stat st;
    zarr_key(&chunks->meta, file_place, key);
    if (fstatat(chunks->dir_fd, key, &st, 0) < 0)
        return 0;
    file_mark_of(&st, &mark);
    if (sums)
        file_sums_content(sums, &mark);
    return file_mark_digest(&mark);
}

int zarr_chunks_watch(void *state, struct file_sums *sums)
{
    struct zarr_chunks *chunks = state;
    const struct zarr_meta *meta = &chunks->meta;
    int64_t place[ARRAY_MAX_NDIM];
    if (!chunks->marks &&
        chunk_grid_init(&chunks->files, meta->ndim, meta->shape, meta->chunk_shape, 1) &&
        chunks->files.n_chunks <= MAX_MARKS) {
        chunks->marks = malloc((size_t)chunks->files.n_chunks * sizeof(*chunks->marks));
        if (!chunks->marks)
            return ENOMEM;
        for (uint64_t i = 0; i < chunks->files.n_chunks; i++) {
            chunk_grid_start(&chunks->files, i, place);
            place_file(chunks, place, place);
            chunks->marks[i] = mark_of(chunks, place, &chunks->sums);
        }
    }
    file_sums_add(sums, &chunks->sums);
    return 0;
}

/* After its bytes were read, or not. */
static int check(const struct zarr_chunks *chunks, const int64_t *place, int error_number,
                 struct chunk_bytes *ret)
{
    char key[ZARR_KEY_BYTES];
    int64_t file_place[ARRAY_MAX_NDIM];
    uint64_t number = 0;
    place_file(chunks, place, file_place);
    for (int i = 0; i < chunks->files.ndim; i++)
        number = number * (uint64_t)chunks->files.n_chunks_of[i] + (uint64_t)file_place[i];
    uint64_t now = mark_of(chunks, file_place, NULL);
    if (now == chunks->marks[number])
        return error_number;
    zarr_key(&chunks->meta, file_place, key);
    snprintf(ret->reason, sizeof(ret->reason), "its file '%.60s' was %s since it was opened", key,
             now == 0                     ? "removed"
             : chunks->marks[number] == 0 ? "made"
                                          : "written to");
    return ESTALE;
}

int zarr_chunks_fetch(void *state, uint64_t index, const int64_t *place, struct chunk_bytes *ret)
{
    struct zarr_chunks *chunks = state;
    (void)index;
    ret->is_absent = false;
    ret->skipped = 0;
    int r = chunks->shards ? fetch_part(chunks, place, ret) : fetch_file(chunks, place, ret);
    return chunks->marks ? check(chunks, place, r, ret) : r;
}
