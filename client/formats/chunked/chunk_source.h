/* Arrays that are kept in chunks which the daemon cannot read by itself, packed or in files of
 * their own: blocks of them, each chunk fetched and decoded once, by as many threads as ask. */
#pragma once

#include "client/array.h"
#include "client/codecs/codec.h"
#include "client/formats/chunk_grid.h"
#include "client/formats/selection.h"

struct chunk_source;

/* Bytes of a chunk as they are stored. */
struct chunk_bytes {
    void *data; /* heap */
    size_t n_bytes, room;
    bool is_absent;   /* never written: elements are the fill value */
    uint32_t skipped; /* bit i: step i of the pipeline was not applied */
};
/* Makes room for n_bytes and sets n_bytes. -ENOMEM. */
int chunk_bytes_reserve(struct chunk_bytes *bytes, size_t n_bytes) GAD_MUST_CHECK;

/* What a format says of an array; all of it is copied. */
struct chunk_layout {
    int ndim; /* of the whole array; at least 1 */
    const int64_t *shape, *chunk_shape;
    size_t item_bytes;
    const int *order; /* axes as they lie in a chunk, the outermost first; NULL: C order */
    const void *fill; /* an element of item_bytes; NULL: zeros */
    const struct selection *selection; /* what blocks are of */
    const struct codec_pipeline *pipeline;
    size_t most_stored_bytes; /* of a chunk; 0: what the pipeline could make of it */
    bool is_exact_size;       /* without a pipeline: a stored chunk must have chunk_bytes */
    /* Brings chunk `index` (C order of the grid), called by several threads at once. 0, or a
     * positive errno after which `explain` is not asked for more. */
    int (*fetch)(void *state, uint64_t index, const int64_t *grid_place, struct chunk_bytes *ret);
    void (*free_state)(void *state); /* may be NULL */
    void *state;                     /* taken over on success */
    const char *path, *dataset;      /* for errors */
};

extern const struct provider chunk_source_provider; /* its state is a struct chunk_source */

int chunk_source_new(const struct chunk_layout *layout, const char *name,
                     struct chunk_source **ret_source, struct gad_error *error) GAD_MUST_CHECK;
/* NULL allowed; no block is being filled. Returns NULL. */
struct chunk_source *chunk_source_free(struct chunk_source *source);
