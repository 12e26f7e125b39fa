/* A cache of decoded chunks.
 *
 * Blocks are smaller than many chunks, so neighbours ask for parts of the same one: the first
 * thread decodes it, into memory of the cache, others wait for it. Who has to wait decodes the
 * chunk that comes next meanwhile, if the walk through the chunks can be guessed: that keeps all
 * processors busy also where a single chunk is larger than all that is asked for at a time. Guesses
 * that are thrown away unused are counted, and too many of them end the guessing.
 *
 * A thread holds one chunk at a time, so there is always one that can be loaded, whatever their
 * number. The chunk that was used longest ago makes room.
 *
 * Called by chunk_source.c.
 */
#include "client/formats/chunked/chunk_cache.h"
#include "proto/util.h"

#include <errno.h>

#define MAX_USELESS 4 /* more than useful ones */

enum cached_state { CACHED_NOTHING, CACHED_LOADING, CACHED_READY };

struct cached_chunk {
    struct cached_chunk *older, *newer;
    struct cached_chunk *next; /* of those with the same hash, where it is not nothing */
    enum cached_state state;
    uint64_t index;
    unsigned n_users;
    bool is_guess;  /* nobody has asked for it yet */
    bool is_absent; /* the elements are the fill value, and not here */
    void *elements;
};

static void append(struct chunk_cache *cache, struct cached_chunk *chunk)
{
    chunk->newer = NULL;
    chunk->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = chunk;
    cache->newest = chunk;
}

int chunk_cache_init(struct chunk_cache *cache, unsigned n_chunks, size_t chunk_bytes,
                     chunk_load_fn *load, chunk_wanted_fn *is_wanted, void *state)
{
    unsigned n_table = 1;
    while (n_table < n_chunks)
        n_table *= 2;
    *cache = (struct chunk_cache){
        .chunks = calloc(n_chunks, sizeof(*cache->chunks)),
        .table = calloc(n_table, sizeof(struct cached_chunk *)),
        .n_chunks = n_chunks,
        .n_table = n_table,
        .chunk_bytes = chunk_bytes,
        .load = load,
        .is_wanted = is_wanted,
        .state = state,
        .step = 1,
    };
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    for (unsigned i = 0; cache->chunks && i < n_chunks; i++)
        append(cache, &cache->chunks[i]);
    return cache->chunks && cache->table ? 0 : -ENOMEM;
}

void chunk_cache_deinit(struct chunk_cache *cache)
{
    for (unsigned i = 0; cache->chunks && i < cache->n_chunks; i++)
        free(cache->chunks[i].elements);
    free_ptr(&cache->chunks);
    free_ptr(&cache->table);
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
}

/* Under the lock ------------------------------------------------------------------------------- */

static struct cached_chunk **slot_of(const struct chunk_cache *cache, uint64_t index)
{
    uint64_t hash = index * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    return &cache->table[hash & (cache->n_table - 1)];
}

static struct cached_chunk *find(const struct chunk_cache *cache, uint64_t index)
{
    struct cached_chunk *chunk = *slot_of(cache, index);
    while (chunk && chunk->index != index)
        chunk = chunk->next;
    return chunk;
}

static void use(struct chunk_cache *cache, struct cached_chunk *chunk)
{
    *(chunk->older ? &chunk->older->newer : &cache->oldest) = chunk->newer;
    *(chunk->newer ? &chunk->newer->older : &cache->newest) = chunk->older;
    append(cache, chunk);
}

/* One that nobody uses, of longest ago. NULL: there is none. */
static struct cached_chunk *find_free(const struct chunk_cache *cache)
{
    struct cached_chunk *chunk = cache->oldest;
    while (chunk && (chunk->state == CACHED_LOADING || chunk->n_users > 0))
        chunk = chunk->newer;
    return chunk;
}

static void set_nothing(struct chunk_cache *cache, struct cached_chunk *chunk)
{
    struct cached_chunk **at = slot_of(cache, chunk->index);
    while (*at != chunk)
        at = &(*at)->next;
    *at = chunk->next;
    chunk->state = CACHED_NOTHING;
}

static void set_loading(struct chunk_cache *cache, struct cached_chunk *chunk, uint64_t index)
{
    struct cached_chunk **slot = slot_of(cache, index);
    chunk->state = CACHED_LOADING;
    chunk->index = index;
    chunk->next = *slot;
    *slot = chunk;
    use(cache, chunk);
}

/* Loads a chunk into one that is free; the lock is let go meanwhile. */
static int load(struct chunk_cache *cache, struct cached_chunk *chunk, uint64_t index,
                bool is_guess)
{
    if (chunk->state == CACHED_READY) {
        cache->n_useless += chunk->is_guess;
        set_nothing(cache, chunk);
    }
    set_loading(cache, chunk, index);
    chunk->is_guess = is_guess;
    cache->has_last = true;
    cache->last = index;
    pthread_mutex_unlock(&cache->lock);
    if (!chunk->elements)
        chunk->elements = malloc(cache->chunk_bytes);
    int r = chunk->elements ? cache->load(cache->state, index, chunk->elements) : ENOMEM;
    pthread_mutex_lock(&cache->lock);
    chunk->is_absent = r == CHUNK_LOAD_ABSENT;
    if (r > 0)
        set_nothing(cache, chunk);
    else
        chunk->state = CACHED_READY;
    pthread_cond_broadcast(&cache->changed);
    return r > 0 ? r : 0;
}

/* Somebody else loads what is wanted: returns whether another one was loaded meanwhile. */
static bool load_next(struct chunk_cache *cache)
{
    uint64_t next = cache->last + (uint64_t)cache->step;
    struct cached_chunk *chunk;
    if (!cache->has_last || cache->step == 0 || cache->n_useless > cache->n_useful + MAX_USELESS ||
        !cache->is_wanted(cache->state, next) || find(cache, next) || !(chunk = find_free(cache)) ||
        (chunk->state == CACHED_READY && chunk->is_guess))
        return false;
    (void)load(cache, chunk, next, true); /* who needs it finds out what is wrong with it */
    return true;
}

static int load_wanted(struct chunk_cache *cache, uint64_t index)
{
    struct cached_chunk *chunk = find_free(cache);
    if (!chunk) {
        pthread_cond_wait(&cache->changed, &cache->lock);
        return 0;
    }
    if (cache->has_last)
        cache->step = (int64_t)(index - cache->last);
    return load(cache, chunk, index, false);
}

/* The caller's side ---------------------------------------------------------------------------- */

bool chunk_cache_has(struct chunk_cache *cache, uint64_t index)
{
    pthread_mutex_lock(&cache->lock);
    bool has = find(cache, index);
    pthread_mutex_unlock(&cache->lock);
    return has;
}

int chunk_cache_take(struct chunk_cache *cache, uint64_t index, const void **ret_elements,
                     struct cached_chunk **ret_chunk)
{
    struct cached_chunk *chunk;
    int r = 0;
    pthread_mutex_lock(&cache->lock);
    while (!(chunk = find(cache, index)) || chunk->state != CACHED_READY) {
        if (!chunk)
            r = load_wanted(cache, index);
        else if (!load_next(cache))
            pthread_cond_wait(&cache->changed, &cache->lock);
        if (r) {
            pthread_mutex_unlock(&cache->lock);
            return r;
        }
    }
    cache->n_useful += chunk->is_guess;
    chunk->is_guess = false;
    chunk->n_users++;
    use(cache, chunk);
    pthread_mutex_unlock(&cache->lock);
    *ret_elements = chunk->is_absent ? NULL : chunk->elements;
    *ret_chunk = chunk;
    return 0;
}

void chunk_cache_give_back(struct chunk_cache *cache, struct cached_chunk *chunk)
{
    pthread_mutex_lock(&cache->lock);
    if (--chunk->n_users == 0)
        pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
}
