/* Decoded chunks, shared by the threads that need parts of them. */
#pragma once

#include "client/formats/chunked/chunk_source.h"

#include <pthread.h>

#define CHUNK_LOAD_ABSENT (-1)
/* What brings the elements of a chunk: 0, a positive errno, or CHUNK_LOAD_ABSENT: they are the fill
 * value, and were not touched. Called by several threads at once, without the cache's lock. */
typedef int chunk_load_fn(void *state, uint64_t index, void *ret_elements);
/* Whether a chunk may be wanted at all. */
typedef bool chunk_wanted_fn(const void *state, uint64_t index);

struct cached_chunk;

struct chunk_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cached_chunk *chunks;
    struct cached_chunk *oldest, *newest; /* all of them, as they were used */
    struct cached_chunk **table;          /* by the index's hash */
    unsigned n_chunks, n_table;
    size_t chunk_bytes;
    chunk_load_fn *load;
    chunk_wanted_fn *is_wanted;
    void *state;
    /* The walk, as far as it can be guessed: chunk `last` was loaded last, the one before it was
     * `step` away. */
    bool has_last;
    uint64_t last;
    int64_t step;
    unsigned n_useful, n_useless;
};

/* n_chunks: at least 1. -ENOMEM. */
int chunk_cache_init(struct chunk_cache *cache, unsigned n_chunks, size_t chunk_bytes,
                     chunk_load_fn *load, chunk_wanted_fn *is_wanted, void *state) GAD_MUST_CHECK;
void chunk_cache_deinit(struct chunk_cache *cache);

/* Whether a chunk is there, or somebody loads it. */
bool chunk_cache_has(struct chunk_cache *cache, uint64_t index);
/* The elements of a chunk, to be given back; NULL: it is absent. A thread has one at a time.
 * Positive errno. */
int chunk_cache_take(struct chunk_cache *cache, uint64_t index, const void **ret_elements,
                     struct cached_chunk **ret_chunk) GAD_MUST_CHECK;
void chunk_cache_give_back(struct chunk_cache *cache, struct cached_chunk *chunk);
