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

/* The name of the file that an element is in; returns its number in C order. */
static uint64_t key_of(const struct zarr_meta *meta, const int64_t *place,
                       char ret_key[ZARR_KEY_BYTES])
{
    int64_t file_place[ARRAY_MAX_NDIM];
    uint64_t number = 0;
    for (int i = 0; i < meta->ndim; i++) {
        file_place[i] = place[i] / meta->chunk_shape[i];
        number = number * (uint64_t)divide_up_i64(meta->shape[i], meta->chunk_shape[i]) +
                 (uint64_t)file_place[i];
    }
    zarr_key(meta, file_place, ret_key);
    return number;
}

void zarr_chunks_where(void *state, const int64_t *place, char *ret_text, size_t n_bytes)
{
    const struct zarr_chunks *chunks = state;
    char key[ZARR_KEY_BYTES];
    (void)key_of(&chunks->meta, place, key);
    snprintf(ret_text, n_bytes, ", in '%.64s'", key);
}

static int fetch_file(struct zarr_chunks *chunks, const int64_t *place, struct chunk_bytes *ret)
{
    char key[ZARR_KEY_BYTES];
    struct stat st;
    (void)key_of(&chunks->meta, place, key);
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

static uint64_t mark_of(const struct zarr_chunks *chunks, const char *key, struct file_sums *sums)
{
    struct file_mark mark;
    struct stat st;
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
    char key[ZARR_KEY_BYTES];
    if (!chunks->marks &&
        chunk_grid_init(&chunks->files, meta->ndim, meta->shape, meta->chunk_shape, 1) &&
        chunks->files.n_chunks <= MAX_MARKS) {
        chunks->marks = malloc((size_t)chunks->files.n_chunks * sizeof(*chunks->marks));
        if (!chunks->marks)
            return ENOMEM;
        for (uint64_t i = 0; i < chunks->files.n_chunks; i++) {
            chunk_grid_start(&chunks->files, i, place);
            (void)key_of(meta, place, key);
            chunks->marks[i] = mark_of(chunks, key, &chunks->sums);
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
    uint64_t number = key_of(&chunks->meta, place, key), now = mark_of(chunks, key, NULL);
    if (now == chunks->marks[number])
        return error_number;
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

/* Elsewhere ------------------------------------------------------------------------------------ */

struct locating {
    struct zarr_chunks *chunks;
    struct packed_chunks *packed;
    int folder_fd;
    uint64_t n_shards; /* files, in their grid */
    uint32_t *files;   /* 1 + the file of a shard that was added; 0: it was not */
};

static int locate_file(struct locating *l, const int64_t *place, struct packed_chunk *chunk)
{
    char key[ZARR_KEY_BYTES];
    struct stat st;
    (void)key_of(&l->chunks->meta, place, key);
    if (fstatat(l->chunks->dir_fd, key, &st, 0) < 0) {
        chunk->offset_bytes = CHUNK_ABSENT;
        return errno == ENOENT ? 0 : errno;
    }
    chunk->offset_bytes = 0;
    chunk->size_bytes = (uint64_t)st.st_size;
    return packed_add_file(l->packed, l->folder_fd, key, &st, &chunk->file);
}

static int add_shard(struct locating *l, const int64_t *place, int fd, uint32_t *ret_file)
{
    char key[ZARR_KEY_BYTES];
    struct stat st;
    uint64_t number = key_of(&l->chunks->meta, place, key);
    int r = 0;
    if (number >= l->n_shards)
        return ENOTSUP;
    if (l->files[number] == 0) {
        r = fstat(fd, &st) < 0 ? errno
                               : packed_add_file(l->packed, l->folder_fd, key, &st, ret_file);
        if (r == 0)
            l->files[number] = 1 + *ret_file;
    }
    *ret_file = r ? 0 : l->files[number] - 1;
    return r;
}

static int locate_part(struct locating *l, const int64_t *place, struct packed_chunk *chunk)
{
    char reason[CHUNK_REASON_BYTES];
    struct zarr_part part;
    int r = zarr_shards_find(l->chunks->shards, place, &part, reason);
    if (r)
        return r;
    chunk->offset_bytes = CHUNK_ABSENT;
    if (!part.is_absent) {
        chunk->offset_bytes = part.offset_bytes;
        chunk->size_bytes = part.n_bytes;
        r = add_shard(l, place, part.fd, &chunk->file);
    }
    zarr_shards_release(l->chunks->shards, &part);
    return r;
}

static int locate_box(struct locating *l, const struct chunk_grid *grid, const int64_t *low,
                      const int64_t *n, uint32_t kind)
{
    int64_t place[ARRAY_MAX_NDIM];
    uint64_t n_all = 1;
    int r = 0;
    for (int k = 0; k < grid->ndim; k++)
        n_all *= (uint64_t)n[k];
    if (n_all > PACKED_MAX_CHUNKS || grid->chunk_bytes > UINT32_MAX)
        return ENOTSUP;
    for (uint64_t i = 0; i < n_all && r == 0; i++) {
        struct packed_chunk chunk = {.kind = kind, .n_bytes = (uint32_t)grid->chunk_bytes};
        uint64_t rest = i;
        for (int k = grid->ndim - 1; k >= 0; rest /= (uint64_t)n[k--])
            place[k] = (low[k] + (int64_t)(rest % (uint64_t)n[k])) * grid->chunk_shape[k];
        r = l->chunks->shards ? locate_part(l, place, &chunk) : locate_file(l, place, &chunk);
        if (r == 0)
            r = packed_add_chunk(l->packed, &chunk);
    }
    return r;
}

int zarr_chunks_locate(void *state, const struct chunk_grid *grid, const int64_t *low,
                       const int64_t *n, uint32_t kind, struct packed_chunks *packed)
{
    struct locating l = {.chunks = state, .packed = packed, .n_shards = 1};
    const struct zarr_meta *meta = &l.chunks->meta;
    for (int i = 0; i < meta->ndim; i++)
        l.n_shards *= (uint64_t)divide_up_i64(meta->shape[i], meta->chunk_shape[i]);
    l.n_shards = min_u64(l.n_shards, PACKED_MAX_CHUNKS);
    l.files = calloc(l.n_shards, sizeof(*l.files));
    int r = l.files ? packed_add_folder(packed, l.chunks->dir_fd, &l.folder_fd) : ENOMEM;
    if (r == 0)
        r = locate_box(&l, grid, low, n, kind);
    free(l.files);
    return r;
}
