/* Shards: files that hold many chunks, and an index of where each of them is.
 *
 *     | chunk | chunk | ... | offset n_bytes, offset n_bytes, ... crc32c |   index at the end
 *
 * Entries are 64 bits each, in C order of the chunks in the shard; one of all ones is a chunk that
 * was never written. A chunk may be a shard itself: its index is at the end (or start) of its own
 * bytes, and what it says counts from where those begin.
 *
 * The indices that were used last are kept, each with a descriptor of its file, so that the chunks
 * of a shard cost one read each. N_KEPT is what all threads of a client may hold, one of each
 * level, and more; so there is always one to be had. Whoever wants an index that another thread is
 * reading waits for it.
 *
 * Called by zarr_chunks.c.
 */
#include "client/formats/zarr/zarr_shards.h"
#include "client/codecs/crc32c.h"
#include "client/formats/files/file_source.h"
#include "client/formats/zarr/zarr_chunks.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define N_KEPT      96u
#define N_IDLE      24u                 /* that nobody uses just now: each has a descriptor */
#define KEPT_BYTES  (UINT64_C(8) << 20) /* of entries, but for those in use */
#define ENTRY_BYTES 16

struct zarr_index {
    unsigned n_users;
    bool is_used, is_loading;
    unsigned level;
    uint64_t number; /* of the shard among those of its level */
    uint64_t used_at;
    int error; /* of loading */
    char reason[CHUNK_REASON_BYTES];
    bool is_absent;
    int fd;
    uint64_t base_bytes, n_bytes; /* of the shard in its file */
    uint8_t *entries;
};

struct zarr_shards {
    const struct zarr_meta *meta;
    int dir_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t clock, kept_bytes;
    struct zarr_index kept[N_KEPT];
};

struct zarr_shards *zarr_shards_new(const struct zarr_meta *meta, int dir_fd)
{
    struct zarr_shards *shards = calloc(1, sizeof(*shards));
    if (!shards)
        return NULL;
    shards->meta = meta;
    shards->dir_fd = dir_fd;
    pthread_mutex_init(&shards->lock, NULL);
    pthread_cond_init(&shards->changed, NULL);
    for (unsigned i = 0; i < N_KEPT; i++)
        shards->kept[i].fd = -1;
    return shards;
}

static void index_clear(struct zarr_shards *shards, struct zarr_index *index)
{
    if (index->entries)
        shards->kept_bytes -= shards->meta->shards[index->level].index_bytes;
    free(index->entries);
    close_fd(&index->fd);
    *index = (struct zarr_index){.fd = -1};
}

struct zarr_shards *zarr_shards_free(struct zarr_shards *shards)
{
    if (!shards)
        return NULL;
    for (unsigned i = 0; i < N_KEPT; i++)
        index_clear(shards, &shards->kept[i]);
    pthread_cond_destroy(&shards->changed);
    pthread_mutex_destroy(&shards->lock);
    free(shards);
    return NULL;
}

static uint64_t read_u64(const uint8_t *at, bool is_swapped)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << 8 * (is_swapped ? 7 - i : i);
    return value;
}

/* "c/0/1", of the file that an element is in. */
static const char *file_of(const struct zarr_meta *meta, const int64_t *place,
                           char ret_key[ZARR_KEY_BYTES])
{
    int64_t file_place[ARRAY_MAX_NDIM];
    (void)zarr_shard_of(meta, 0, place, file_place);
    zarr_key(meta, file_place, ret_key);
    return ret_key;
}

static int find_entry(const struct zarr_shards *shards, const struct zarr_index *index,
                      const int64_t *place, struct zarr_part *part,
                      char ret_reason[CHUNK_REASON_BYTES])
{
    char key[ZARR_KEY_BYTES];
    bool is_swapped = shards->meta->shards[index->level].is_index_swapped;
    const uint8_t *at =
        index->entries + ENTRY_BYTES * zarr_entry_of(shards->meta, index->level, place);
    uint64_t offset = read_u64(at, is_swapped), n_bytes = read_u64(at + 8, is_swapped);
    part->is_absent = offset == UINT64_MAX && n_bytes == UINT64_MAX;
    if (part->is_absent)
        return 0;
    if (offset > index->n_bytes || n_bytes > index->n_bytes - offset) {
        snprintf(ret_reason, CHUNK_REASON_BYTES,
                 "shard '%.40s' of %" PRIu64 " bytes says that it has %" PRIu64 " at %" PRIu64,
                 file_of(shards->meta, place, key), index->n_bytes, n_bytes, offset);
        return EBADMSG;
    }
    part->offset_bytes = index->base_bytes + offset;
    part->n_bytes = n_bytes;
    part->fd = index->fd;
    return 0;
}

static int open_file(const struct zarr_shards *shards, const int64_t *place,
                     struct zarr_index *index)
{
    char key[ZARR_KEY_BYTES];
    struct stat st;
    index->fd = openat(shards->dir_fd, file_of(shards->meta, place, key),
                       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (index->fd < 0 && errno == ENOENT) {
        index->is_absent = true;
        return 0;
    }
    if (index->fd < 0 || fstat(index->fd, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    index->n_bytes = (uint64_t)st.st_size;
    return 0;
}

/* A shard in a shard has a descriptor of its own, so that the outer one can be given up. */
static int open_inner(const struct zarr_part *part, struct zarr_index *index)
{
    index->is_absent = part->is_absent;
    if (part->is_absent)
        return 0;
    index->fd = fcntl(part->fd, F_DUPFD_CLOEXEC, 3);
    index->base_bytes = part->offset_bytes;
    index->n_bytes = part->n_bytes;
    return index->fd < 0 ? errno : 0;
}

/* key: of the shard's file. */
static int read_entries(const struct zarr_shard *shard, const char *key, struct zarr_index *index)
{
    size_t n_read = 0;
    if (index->n_bytes < shard->index_bytes) {
        snprintf(index->reason, sizeof(index->reason),
                 "shard '%.40s' has %" PRIu64 " bytes, its index alone has %" PRIu64, key,
                 index->n_bytes, shard->index_bytes);
        return EBADMSG;
    }
    uint64_t offset = shard->is_index_first ? 0 : index->n_bytes - shard->index_bytes;
    index->entries = malloc((size_t)shard->index_bytes);
    if (!index->entries)
        return ENOMEM;
    int r = file_read(index->fd, index->entries, (size_t)shard->index_bytes,
                      index->base_bytes + offset, &n_read);
    if (r == 0 && n_read < shard->index_bytes)
        snprintf(index->reason, sizeof(index->reason), "shard '%.40s' has become shorter meanwhile",
                 key);
    if (r < 0 || n_read < shard->index_bytes)
        return r < 0 ? -r : EIO;
    const uint8_t *sum = index->entries + ENTRY_BYTES * shard->n_chunks;
    uint32_t stored = (uint32_t)(shard->has_checksum ? sum[0] : 0);
    for (int i = 1; i < 4 && shard->has_checksum; i++)
        stored |= (uint32_t)sum[i] << 8 * i;
    if (!shard->has_checksum || crc32c(index->entries, ENTRY_BYTES * shard->n_chunks) == stored)
        return 0;
    snprintf(index->reason, sizeof(index->reason),
             "the checksum of the index of shard '%.40s' is wrong", key);
    return EBADMSG;
}

static int find_at(struct zarr_shards *shards, unsigned level, const int64_t *place,
                   struct zarr_part *ret_part, char ret_reason[CHUNK_REASON_BYTES]);

/* Without the lock: nobody else touches an index that is loading. */
static int load(struct zarr_shards *shards, struct zarr_index *index, const int64_t *place)
{
    char key[ZARR_KEY_BYTES];
    int r;
    if (index->level == 0) {
        r = open_file(shards, place, index);
    } else {
        struct zarr_part part;
        r = find_at(shards, index->level - 1, place, &part, index->reason);
        if (r)
            return r;
        r = open_inner(&part, index);
        zarr_shards_release(shards, &part);
    }
    if (r || index->is_absent)
        return r;
    return read_entries(&shards->meta->shards[index->level], file_of(shards->meta, place, key),
                        index);
}

/* Under the lock ------------------------------------------------------------------------------- */

static struct zarr_index *find_kept(struct zarr_shards *shards, unsigned level, uint64_t number)
{
    for (unsigned i = 0; i < N_KEPT; i++) {
        struct zarr_index *index = &shards->kept[i];
        if (index->is_used && index->level == level && index->number == number)
            return index;
    }
    return NULL;
}

/* The one that nobody uses and that was used longest ago, or an empty one. */
static struct zarr_index *find_oldest(struct zarr_shards *shards, bool is_empty_wanted)
{
    struct zarr_index *oldest = NULL;
    for (unsigned i = 0; i < N_KEPT; i++) {
        struct zarr_index *index = &shards->kept[i];
        if (!index->is_used && is_empty_wanted)
            return index;
        if (index->is_used && index->n_users == 0 && (!oldest || index->used_at < oldest->used_at))
            oldest = index;
    }
    return oldest;
}

static unsigned count_idle(const struct zarr_shards *shards)
{
    unsigned n = 0;
    for (unsigned i = 0; i < N_KEPT; i++)
        n += shards->kept[i].is_used && shards->kept[i].n_users == 0;
    return n;
}

static void make_room(struct zarr_shards *shards)
{
    for (unsigned n = count_idle(shards); n > 0 && (n >= N_IDLE || shards->kept_bytes > KEPT_BYTES);
         n--)
        index_clear(shards, find_oldest(shards, false));
}

static struct zarr_index *begin_index(struct zarr_shards *shards, unsigned level, uint64_t number)
{
    struct zarr_index *index;
    make_room(shards);
    while (!(index = find_oldest(shards, true)))
        pthread_cond_wait(&shards->changed, &shards->lock);
    index_clear(shards, index);
    index->is_used = index->is_loading = true;
    index->level = level;
    index->number = number;
    return index;
}

/* The index of the shard, in use from now on; its error may say that it cannot be used. */
static struct zarr_index *hold_index(struct zarr_shards *shards, unsigned level,
                                     const int64_t *place)
{
    int64_t shard_place[ARRAY_MAX_NDIM];
    uint64_t number = zarr_shard_of(shards->meta, level, place, shard_place);
    struct zarr_index *index = find_kept(shards, level, number);
    bool is_new = !index;
    if (is_new)
        index = begin_index(shards, level, number);
    index->n_users++;
    index->used_at = ++shards->clock;
    while (!is_new && index->is_loading)
        pthread_cond_wait(&shards->changed, &shards->lock);
    if (!is_new)
        return index;
    pthread_mutex_unlock(&shards->lock);
    int r = load(shards, index, place);
    pthread_mutex_lock(&shards->lock);
    index->error = r;
    index->is_loading = false;
    if (index->entries)
        shards->kept_bytes += shards->meta->shards[level].index_bytes;
    pthread_cond_broadcast(&shards->changed);
    return index;
}

/* What failed is not kept: the next one who asks tries again. */
static void let_go(struct zarr_shards *shards, struct zarr_index *index)
{
    if (--index->n_users > 0)
        return;
    if (index->error)
        index_clear(shards, index);
    pthread_cond_broadcast(&shards->changed);
}

/* ---------------------------------------------------------------------------------------------- */

static int find_at(struct zarr_shards *shards, unsigned level, const int64_t *place,
                   struct zarr_part *ret_part, char ret_reason[CHUNK_REASON_BYTES])
{
    struct zarr_part part = {.fd = -1};
    pthread_mutex_lock(&shards->lock);
    part.index = hold_index(shards, level, place);
    pthread_mutex_unlock(&shards->lock);
    part.is_absent = part.index->is_absent;
    int r = part.index->error;
    if (r)
        memcpy(ret_reason, part.index->reason, CHUNK_REASON_BYTES);
    else if (!part.is_absent)
        r = find_entry(shards, part.index, place, &part, ret_reason);
    if (r)
        zarr_shards_release(shards, &part);
    else
        *ret_part = part;
    return r;
}

int zarr_shards_find(struct zarr_shards *shards, const int64_t *place, struct zarr_part *ret_part,
                     char ret_reason[CHUNK_REASON_BYTES])
{
    return find_at(shards, shards->meta->n_shards - 1, place, ret_part, ret_reason);
}

void zarr_shards_release(struct zarr_shards *shards, struct zarr_part *part)
{
    pthread_mutex_lock(&shards->lock);
    let_go(shards, part->index);
    pthread_mutex_unlock(&shards->lock);
}
