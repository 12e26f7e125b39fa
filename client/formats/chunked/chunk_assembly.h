/* Chunks of an output while their elements come in. */
#pragma once

#include "client/formats/chunk_grid.h"
#include "proto/box.h"

#include <pthread.h>
#include <stdbool.h>

struct assembled_chunk {
    uint64_t index;
    bool is_used;
    unsigned n_users; /* threads that copy into it */
    uint64_t last_used;
    uint64_t n_left; /* elements that have not come */
    uint8_t *elements;
    uint64_t *has; /* bit e: element e of the chunk has come */
};

struct chunk_assembly {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct chunk_grid *grid;
    const int64_t *shape;
    size_t item_bytes;
    size_t elements_bytes, has_bytes; /* of a chunk */
    struct assembled_chunk *chunks;
    unsigned n_chunks;
    uint64_t clock;
    /* Chunks that had to make room: their elements and bits lie in a file without a name. */
    const char *folder;
    int spill_fd; /* -1: not needed so far */
    uint64_t n_places, n_free_places;
    struct spilled *spilled; /* of n_places */
};

/* grid, shape and folder are needed as long as the assembly. most_bytes: of memory, in which at
 * least least_chunks are kept. -ENOMEM. */
int chunk_assembly_init(struct chunk_assembly *assembly, const struct chunk_grid *grid,
                        const int64_t *shape, size_t item_bytes, uint64_t most_bytes,
                        unsigned least_chunks, const char *folder) GAD_MUST_CHECK;
void chunk_assembly_deinit(struct chunk_assembly *assembly);

/* The chunk, begun if it was not; to be given back. Positive errno. */
int chunk_assembly_take(struct chunk_assembly *assembly, uint64_t index,
                        struct assembled_chunk **ret_chunk) GAD_MUST_CHECK;
/* Notes which elements have come: the box's strides, in elements from `first`, are those of the
 * chunk (it is used up). Returns whether the chunk is whole now and nobody copies into it: then it
 * is the caller's, to be put with chunk_assembly_end(). */
bool chunk_assembly_give_back(struct chunk_assembly *assembly, struct assembled_chunk *chunk,
                              struct box *box, int64_t first);
void chunk_assembly_end(struct chunk_assembly *assembly, struct assembled_chunk *chunk);
/* How many chunks have begun and are not whole. */
uint64_t chunk_assembly_n_begun(const struct chunk_assembly *assembly);
