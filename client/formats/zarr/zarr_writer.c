/* Encoded chunks into files.
 *
 * A chunk is a file of its own, or a part of a shard's:
 *
 *     | chunk | chunk | ... | offset n_bytes, ... crc32c |
 *
 * Chunks of a shard come in any order, by any thread: each takes the next bytes of the file. The
 * thread that brings the last one writes the index behind them. Until then the index is in memory,
 * 16 bytes a chunk. A chunk that comes again, of a job that was begun again, has the same elements,
 * and is passed over.
 *
 * Files are open for one write only, however many shards are begun.
 *
 * Called by the chunk sink, by several threads at once.
 */
#include "client/formats/zarr/zarr_writer.h"
#include "client/codecs/crc32c.h"
#include "client/formats/files/file_source.h"
#include "client/formats/zarr/zarr_chunks.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NOT_COME UINT64_MAX - 1 /* an entry's offset */
#define ABSENT   UINT64_MAX

struct entry {
    uint64_t offset_bytes, n_bytes;
};

struct shard {
    bool is_done;
    uint64_t n_left;       /* chunks that have not come */
    uint64_t n_file_bytes; /* of chunks */
    struct entry *entries; /* NULL: none has come, or all have */
};

struct zarr_writer {
    struct zarr_meta meta;
    int dir_fd;
    void *blank;
    size_t n_blank;
    pthread_mutex_t lock; /* of the shards */
    uint64_t n_shards;
    struct shard *shards; /* NULL: chunks are files */
};

static uint64_t count_shards(const struct zarr_meta *meta)
{
    uint64_t n = 1;
    for (int i = 0; i < meta->ndim; i++)
        n *= (uint64_t)divide_up_i64(meta->shape[i], meta->chunk_shape[i]);
    return n;
}

struct zarr_writer *zarr_writer_new(const struct zarr_meta *meta, int dir_fd, const void *blank,
                                    size_t n_blank)
{
    struct zarr_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    pthread_mutex_init(&writer->lock, NULL);
    writer->meta = *meta;
    writer->dir_fd = dir_fd;
    writer->n_blank = n_blank;
    writer->blank = malloc(n_blank > 0 ? n_blank : 1);
    if (writer->blank)
        memcpy(writer->blank, blank, n_blank);
    if (meta->n_shards > 0) {
        writer->n_shards = count_shards(meta);
        writer->shards = calloc(writer->n_shards, sizeof(*writer->shards));
    }
    if (!writer->blank || (meta->n_shards > 0 && !writer->shards))
        return zarr_writer_free(writer);
    return writer;
}

struct zarr_writer *zarr_writer_free(struct zarr_writer *writer)
{
    if (!writer)
        return NULL;
    for (uint64_t i = 0; writer->shards && i < writer->n_shards; i++)
        free(writer->shards[i].entries);
    pthread_mutex_destroy(&writer->lock);
    free(writer->shards);
    free(writer->blank);
    free(writer);
    return NULL;
}

/* Files ---------------------------------------------------------------------------------------- */

/* The folders of a name such as "c/0/1". */
static int make_folders(int dir_fd, const char *key)
{
    char folder[ZARR_KEY_BYTES];
    snprintf(folder, sizeof(folder), "%s", key);
    for (char *slash = strchr(folder, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(dir_fd, folder, 0777) < 0 && errno != EEXIST)
            return errno;
        *slash = '/';
    }
    return 0;
}

static int open_key(const struct zarr_writer *writer, const char *key, int flags, int *ret_fd)
{
    flags |= O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(writer->dir_fd, key, flags, 0666);
    if (fd < 0 && errno == ENOENT) {
        int r = make_folders(writer->dir_fd, key);
        if (r)
            return r;
        fd = openat(writer->dir_fd, key, flags, 0666);
    }
    *ret_fd = fd;
    return fd < 0 ? errno : 0;
}

static int write_at(const struct zarr_writer *writer, const char *key, int flags, const void *bytes,
                    size_t n_bytes, uint64_t offset)
{
    int fd;
    int r = open_key(writer, key, flags, &fd);
    if (r)
        return r;
    r = -file_write(fd, bytes, n_bytes, offset);
    if (close(fd) < 0 && r == 0) /* where a network's file system says that it is full */
        r = errno;
    return r;
}

static const char *key_of(const struct zarr_writer *writer, const int64_t *place,
                          char ret_key[ZARR_KEY_BYTES])
{
    int64_t file_place[ARRAY_MAX_NDIM];
    for (int i = 0; i < writer->meta.ndim; i++)
        file_place[i] = place[i] / writer->meta.chunk_shape[i];
    zarr_key(&writer->meta, file_place, ret_key);
    return ret_key;
}

/* Shards --------------------------------------------------------------------------------------- */

static uint64_t shard_number(const struct zarr_meta *meta, const int64_t *place)
{
    uint64_t number = 0;
    for (int i = 0; i < meta->ndim; i++)
        number = number * (uint64_t)divide_up_i64(meta->shape[i], meta->chunk_shape[i]) +
                 (uint64_t)(place[i] / meta->chunk_shape[i]);
    return number;
}

static uint64_t entry_number(const struct zarr_meta *meta, const int64_t *place)
{
    const int64_t *inner = meta->shards[0].chunk_shape;
    uint64_t number = 0;
    for (int i = 0; i < meta->ndim; i++)
        number = number * (uint64_t)(meta->chunk_shape[i] / inner[i]) +
                 (uint64_t)(place[i] % meta->chunk_shape[i] / inner[i]);
    return number;
}

/* Chunks of a shard that the array has elements in. */
static uint64_t count_chunks(const struct zarr_meta *meta, const int64_t *place)
{
    const int64_t *inner = meta->shards[0].chunk_shape;
    uint64_t n = 1;
    for (int i = 0; i < meta->ndim; i++) {
        int64_t first = place[i] / meta->chunk_shape[i] * meta->chunk_shape[i];
        n *= (uint64_t)divide_up_i64(min_i64(meta->chunk_shape[i], meta->shape[i] - first),
                                     inner[i]);
    }
    return n;
}

/* Under the lock. */
static int begin_shard(const struct zarr_writer *writer, struct shard *shard, const int64_t *place)
{
    uint64_t n = writer->meta.shards[0].n_chunks;
    shard->entries = malloc(n * sizeof(*shard->entries));
    if (!shard->entries)
        return ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        shard->entries[i] = (struct entry){NOT_COME, 0};
    shard->n_left = count_chunks(&writer->meta, place);
    return 0;
}

/* All have come: only this thread knows of the entries now. */
static int end_shard(const struct zarr_writer *writer, struct entry *entries, uint64_t n_file_bytes,
                     const char *key)
{
    uint64_t n = writer->meta.shards[0].n_chunks;
    size_t n_bytes = (size_t)(n * sizeof(*entries));
    for (uint64_t i = 0; i < n; i++)
        if (entries[i].offset_bytes == NOT_COME || entries[i].offset_bytes == ABSENT)
            entries[i] = (struct entry){ABSENT, ABSENT};
    if (n_file_bytes == 0)
        return 0; /* nothing but the fill value: no file */
    uint32_t sum = crc32c(entries, n_bytes);
    int r = write_at(writer, key, 0, entries, n_bytes, n_file_bytes);
    return r ? r : write_at(writer, key, 0, &sum, sizeof(sum), n_file_bytes + n_bytes);
}

static int store_part(struct zarr_writer *writer, const int64_t *place, const char *key,
                      const void *bytes, size_t n_bytes, bool is_blank)
{
    struct shard *shard = &writer->shards[shard_number(&writer->meta, place)];
    struct entry *entry, *ended = NULL;
    uint64_t number = entry_number(&writer->meta, place), offset = 0, n_file_bytes = 0;
    pthread_mutex_lock(&writer->lock);
    int r = shard->is_done || shard->entries ? 0 : begin_shard(writer, shard, place);
    bool is_known = r || shard->is_done || shard->entries[number].offset_bytes != NOT_COME;
    if (!is_known && !is_blank) {
        offset = shard->n_file_bytes;
        shard->n_file_bytes += n_bytes;
    }
    pthread_mutex_unlock(&writer->lock);
    if (is_known)
        return r;
    if (!is_blank)
        r = write_at(writer, key, 0, bytes, n_bytes, offset);
    if (r)
        return r;
    pthread_mutex_lock(&writer->lock);
    entry = shard->is_done ? NULL : &shard->entries[number];
    if (entry && entry->offset_bytes == NOT_COME) {
        *entry = is_blank ? (struct entry){ABSENT, ABSENT} : (struct entry){offset, n_bytes};
        if (--shard->n_left == 0) {
            shard->is_done = true;
            ended = shard->entries;
            n_file_bytes = shard->n_file_bytes;
            shard->entries = NULL;
        }
    }
    pthread_mutex_unlock(&writer->lock);
    if (ended)
        r = end_shard(writer, ended, n_file_bytes, key);
    free(ended);
    return r;
}

static int store_file(struct zarr_writer *writer, const char *key, const void *bytes,
                      size_t n_bytes, bool is_blank)
{
    if (!is_blank)
        return write_at(writer, key, O_TRUNC, bytes, n_bytes, 0);
    return unlinkat(writer->dir_fd, key, 0) < 0 && errno != ENOENT ? errno : 0;
}

int zarr_writer_store(void *state, uint64_t index, const int64_t *place, const void *bytes,
                      size_t n_bytes, uint32_t skipped, char *reason, size_t n_reason)
{
    struct zarr_writer *writer = state;
    char key[ZARR_KEY_BYTES];
    bool is_blank = writer->meta.has_fill && n_bytes == writer->n_blank &&
                    memcmp(bytes, writer->blank, writer->n_blank) == 0;
    (void)index, (void)skipped; /* no step may be left out */
    key_of(writer, place, key);
    int r = writer->shards ? store_part(writer, place, key, bytes, n_bytes, is_blank)
                           : store_file(writer, key, bytes, n_bytes, is_blank);
    if (r)
        snprintf(reason, n_reason, "%.60s", key);
    return r;
}
