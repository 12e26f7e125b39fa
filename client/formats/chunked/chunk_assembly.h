/* Chunks of an output while their elements come in. */
#pragma once

#include "client/formats/chunk_grid.h"
#include "proto/box.h"
#include "proto/error.h"

#include <pthread.h>
#include <stdbool.h>

struct assembled_chunk {
    struct assembled_chunk *next; /* of those with the same hash */
    uint64_t index;
    unsigned n_users;  /* threads that copy into it */
    uint64_t n_left;   /* elements that have not come */
    uint64_t *has;     /* bit e: element e of the chunk has come */
    uint8_t *elements; /* NULL: they are in the file */
    uint64_t place;    /* there */
};

struct chunk_assembly {
    pthread_mutex_t lock;
    const struct chunk_grid *grid;
    const int64_t *shape;
    bool is_open; /* the first axis may end anywhere: shape[0] is the most until it is known */
    size_t item_bytes, elements_bytes, has_bytes; /* the latter two of a chunk */
    uint64_t n_in_memory, most_in_memory;         /* chunks whose elements are */
    struct assembled_chunk **table;               /* by hash */
    uint64_t n_table, n_begun;
    /* Chunks for which there was no memory: a file without a name. */
    const char *folder;
    int spill_fd;      /* -1: not needed so far */
    uint64_t n_places; /* in it */
    uint64_t *free_places, n_free_places, free_room;
};

/* grid, shape and folder are needed as long as the assembly. most_bytes: of memory for elements.
 * -ENOMEM. */
int chunk_assembly_init(struct chunk_assembly *assembly, const struct chunk_grid *grid,
                        const int64_t *shape, size_t item_bytes, uint64_t most_bytes,
                        const char *folder) GAD_MUST_CHECK;
void chunk_assembly_deinit(struct chunk_assembly *assembly);

/* Elements of a chunk, from a block: the box's strides are bytes in the chunk, from `first` on, and
 * in `from`. ret_whole: the chunk, if all its elements have come now: it is the caller's, to be put
 * with chunk_assembly_end(), and its elements are in memory; else NULL. Positive errno. */
int chunk_assembly_add(struct chunk_assembly *assembly, uint64_t index, const struct box *box,
                       int64_t first, const void *from,
                       struct assembled_chunk **ret_whole) GAD_MUST_CHECK;
/* A chunk that was whole all the time, now that the shape says where the array ends; NULL: there is
 * none. The same; positive errno. */
int chunk_assembly_next_cut(struct chunk_assembly *assembly,
                            struct assembled_chunk **ret_whole) GAD_MUST_CHECK;
void chunk_assembly_end(struct chunk_assembly *assembly, struct assembled_chunk *chunk);

/* A file without a name in a folder, to read and write. -1 and errno. */
int chunk_spill_open(const char *folder) GAD_MUST_CHECK;
