/* Encoded chunks into files.
 *
 * A chunk is a file of its own, or a part of a shard's, which may be a part of another's:
 *
 *     | chunk | chunk | ... | index || chunk | ... | index || ... | index of the shards |
 *
 *     index: offset n_bytes, offset n_bytes, ... crc32c
 *
 * Chunks of a file come one at a time, and those of a shard in it one after the other
 * (chunk_order.h), those of several files at once. A shard in a shard ends where a chunk of another
 * one comes; the thread that brings the file's last chunk ends all of them. Where the array's
 * length was not known, what is left at the end is closed then. Until then indices are in memory,
 * 16 bytes a chunk, of one shard a level.
 *
 * Files are open for one write only, however many shards are begun.
 *
 * Called by the chunk sink, by several threads at once.
 */
#include "client/formats/zarr/writing/zarr_writer.h"
#include "client/codecs/crc32c.h"
#include "client/formats/files/file_source.h"
#include "client/formats/zarr/zarr_chunks.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define ABSENT    UINT64_MAX /* both of an entry */
#define N_BUCKETS 64u

struct entry {
    uint64_t offset_bytes, n_bytes;
};

struct level {
    uint64_t entry;      /* in the index of the level outside */
    uint64_t base_bytes; /* where the shard begins in its file */
    uint64_t n_entries;
    struct entry *entries;
};

struct shard { /* a file's, that is begun, and not ended */
    struct shard *next;
    uint64_t number;
    uint64_t n_left;       /* chunks that have not come */
    uint64_t n_file_bytes; /* of chunks, and of shards that have ended */
    char key[ZARR_KEY_BYTES];
    struct level levels[ZARR_MAX_LEVELS];
    struct entry entries[];
};

struct zarr_writer {
    struct zarr_meta meta;
    bool is_open; /* along the first axis */
    int dir_fd;
    void *blank;
    size_t n_blank;
    pthread_mutex_t lock; /* of the list, not of what is in it */
    struct shard *shards[N_BUCKETS];
};

struct zarr_writer *zarr_writer_new(const struct zarr_meta *meta, bool is_open, int dir_fd,
                                    const void *blank, size_t n_blank)
{
    struct zarr_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    pthread_mutex_init(&writer->lock, NULL);
    writer->meta = *meta;
    writer->is_open = is_open;
    writer->dir_fd = dir_fd;
    writer->n_blank = n_blank;
    writer->blank = malloc(n_blank > 0 ? n_blank : 1);
    if (!writer->blank)
        return zarr_writer_free(writer);
    memcpy(writer->blank, blank, n_blank);
    return writer;
}

struct zarr_writer *zarr_writer_free(struct zarr_writer *writer)
{
    if (!writer)
        return NULL;
    for (unsigned i = 0; i < N_BUCKETS; i++) {
        while (writer->shards[i]) {
            struct shard *shard = writer->shards[i];
            writer->shards[i] = shard->next;
            free(shard);
        }
    }
    pthread_mutex_destroy(&writer->lock);
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

static int open_key(const struct zarr_writer *writer, const char *key, int *ret_fd)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
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

static int write_at(const struct zarr_writer *writer, const char *key, const void *bytes,
                    size_t n_bytes, uint64_t offset)
{
    int fd;
    int r = open_key(writer, key, &fd);
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

/* Chunks of a file that the array has elements in. */
static uint64_t count_chunks(const struct zarr_writer *writer, const int64_t *place)
{
    const struct zarr_meta *meta = &writer->meta;
    const int64_t *inner = zarr_inner_shape(meta);
    uint64_t n = 1;
    for (int i = 0; i < meta->ndim; i++) {
        int64_t length = meta->chunk_shape[i], first = place[i] / length * length;
        if (i > 0 || !writer->is_open)
            length = min_i64(length, meta->shape[i] - first);
        n *= (uint64_t)divide_up_i64(length, inner[i]);
    }
    return n;
}

static struct shard **find_shard(struct zarr_writer *writer, uint64_t number)
{
    struct shard **at = &writer->shards[number % N_BUCKETS];
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void blank_level(struct level *level)
{
    for (uint64_t i = 0; i < level->n_entries; i++)
        level->entries[i] = (struct entry){ABSENT, ABSENT};
}

static struct shard *begin_shard(const struct zarr_writer *writer, uint64_t number,
                                 const int64_t *place, const char *key)
{
    const struct zarr_meta *meta = &writer->meta;
    uint64_t n = 0;
    for (unsigned i = 0; i < meta->n_shards; i++)
        n += meta->shards[i].n_chunks;
    struct shard *shard = calloc(1, sizeof(*shard) + n * sizeof(*shard->entries));
    if (!shard)
        return NULL;
    shard->number = number;
    shard->n_left = count_chunks(writer, place);
    snprintf(shard->key, sizeof(shard->key), "%s", key);
    n = 0;
    for (unsigned i = 0; i < meta->n_shards; i++) {
        struct level *level = &shard->levels[i];
        level->entries = shard->entries + n;
        level->n_entries = meta->shards[i].n_chunks;
        level->entry = ABSENT;
        blank_level(level);
        n += level->n_entries;
    }
    return shard;
}

static struct shard *get_shard(struct zarr_writer *writer, const int64_t *place, const char *key)
{
    int64_t shard_place[ARRAY_MAX_NDIM];
    uint64_t number = zarr_shard_of(&writer->meta, 0, place, shard_place);
    pthread_mutex_lock(&writer->lock);
    struct shard **at = find_shard(writer, number);
    if (!*at)
        *at = begin_shard(writer, number, place, key);
    struct shard *shard = *at;
    pthread_mutex_unlock(&writer->lock);
    return shard;
}

/* Writes the index of a shard, and enters it in the one outside. Without a chunk there is only the
 * fill value: neither index nor entry, nor file. */
static int end_level(struct zarr_writer *writer, struct shard *shard, unsigned i)
{
    struct level *level = &shard->levels[i];
    size_t n_bytes = (size_t)level->n_entries * sizeof(*level->entries);
    uint64_t at = shard->n_file_bytes;
    uint32_t sum = crc32c(level->entries, n_bytes);
    if (at == level->base_bytes)
        return 0;
    int r = write_at(writer, shard->key, level->entries, n_bytes, at);
    if (r == 0)
        r = write_at(writer, shard->key, &sum, sizeof(sum), at + n_bytes);
    shard->n_file_bytes += n_bytes + sizeof(sum);
    if (i > 0)
        level[-1].entries[level->entry] = (struct entry){level->base_bytes - level[-1].base_bytes,
                                                         shard->n_file_bytes - level->base_bytes};
    blank_level(level);
    return r;
}

/* From the innermost level out to this one. */
static int end_levels(struct zarr_writer *writer, struct shard *shard, unsigned outermost)
{
    int r = 0;
    for (unsigned i = writer->meta.n_shards; i-- > outermost && r == 0;)
        r = end_level(writer, shard, i);
    return r;
}

/* Into the shards that have the chunk: those that do not are ended. */
static int enter_levels(struct zarr_writer *writer, struct shard *shard, const int64_t *place)
{
    for (unsigned i = 1; i < writer->meta.n_shards; i++) {
        uint64_t entry = zarr_entry_of(&writer->meta, i - 1, place);
        if (entry == shard->levels[i].entry)
            continue;
        int r = end_levels(writer, shard, i);
        for (unsigned k = i; k < writer->meta.n_shards && r == 0; k++) {
            shard->levels[k].entry = zarr_entry_of(&writer->meta, k - 1, place);
            shard->levels[k].base_bytes = shard->n_file_bytes;
        }
        return r;
    }
    return 0;
}

/* Ends all levels, and forgets the shard. */
static int end_shard(struct zarr_writer *writer, struct shard *shard)
{
    int r = end_levels(writer, shard, 0);
    pthread_mutex_lock(&writer->lock);
    *find_shard(writer, shard->number) = shard->next;
    pthread_mutex_unlock(&writer->lock);
    free(shard);
    return r;
}

static int store_part(struct zarr_writer *writer, const int64_t *place, const char *key,
                      const void *bytes, size_t n_bytes, bool is_blank)
{
    unsigned innermost = writer->meta.n_shards - 1;
    struct shard *shard = get_shard(writer, place, key);
    int r = shard ? enter_levels(writer, shard, place) : ENOMEM;
    if (r == 0 && !is_blank) {
        struct level *level = &shard->levels[innermost];
        level->entries[zarr_entry_of(&writer->meta, innermost, place)] =
            (struct entry){shard->n_file_bytes - level->base_bytes, n_bytes};
        r = write_at(writer, key, bytes, n_bytes, shard->n_file_bytes);
        shard->n_file_bytes += n_bytes;
    }
    return r == 0 && --shard->n_left == 0 ? end_shard(writer, shard) : r;
}

int zarr_writer_finish(struct zarr_writer *writer)
{
    int r = 0;
    for (unsigned i = 0; i < N_BUCKETS && r == 0; i++)
        while (r == 0 && writer->shards[i])
            r = end_shard(writer, writer->shards[i]);
    return r;
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
    int r = writer->meta.n_shards > 0 ? store_part(writer, place, key, bytes, n_bytes, is_blank)
            : is_blank                ? 0
                                      : write_at(writer, key, bytes, n_bytes, 0);
    if (r)
        snprintf(reason, n_reason, "%.60s", key);
    return r;
}
