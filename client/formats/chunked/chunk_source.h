/* Arrays that are kept in chunks which the daemon cannot read by itself, packed or in files of
 * their own: blocks of them, each chunk fetched and decoded once, by as many threads as ask. */
#pragma once

#include "client/array.h"
#include "client/codecs/codec.h"
#include "client/formats/chunk_grid.h"
#include "client/formats/chunked/packed_chunks.h"
#include "client/formats/selection.h"

#define CHUNK_REASON_BYTES 160

struct chunk_source;

/* Bytes of a chunk as they are stored. */
struct chunk_bytes {
    void *data; /* heap */
    size_t n_bytes, room;
    bool is_absent;   /* never written: its elements are the fill value */
    uint32_t skipped; /* bit i: step i of the pipeline was not applied */
    /* What was wrong, where the system's words of an errno say too little. */
    char reason[CHUNK_REASON_BYTES];
};
/* Makes room for n_bytes, and that many they are. What was in it is lost. -ENOMEM. */
int chunk_bytes_reserve(struct chunk_bytes *bytes, size_t n_bytes) GAD_MUST_CHECK;

/* Brings a chunk's stored bytes; is_absent, skipped and reason are false, 0 and empty before.
 * index: in C order of the grid; place: the chunk's first element. Called by several threads at
 * once. 0, or a positive errno. */
typedef int chunk_fetch_fn(void *state, uint64_t index, const int64_t *place,
                           struct chunk_bytes *ret_bytes);

/* Makes a chunk's elements instead; place: its first element. 0, or a positive errno. */
typedef int chunk_make_fn(void *state, const int64_t *place, void *ret_elements);

/* Adds (packed_add_chunk()) the chunks of a box of the grid, low .. low + n along each axis, in C
 * order, and the files that they lie in. 0; ENOTSUP: they are too many to look for, or lie
 * elsewhere; other positive errno. */
typedef int chunk_locate_fn(void *state, const struct chunk_grid *grid, const int64_t *low,
                            const int64_t *n, uint32_t kind, struct packed_chunks *packed);

/* provider.watch, of the files that chunks are fetched from. */
typedef int chunk_watch_fn(void *state, struct file_sums *sums);

/* For messages, of a chunk that was fetched: ", at byte 4016", or ", in 'c/1/2'"; left as it is,
 * "", where there is nothing to say. */
typedef void chunk_where_fn(void *state, const int64_t *place, char *ret_text, size_t n_bytes);

/* What a format says of an array; all of it is copied. */
struct chunk_layout {
    struct chunk_grid grid; /* of the whole array; chunks at its end are stored whole */
    const int64_t *shape;
    size_t item_bytes;
    const int *order; /* axes as they lie in a chunk, the slowest first; NULL: C order */
    const void *fill; /* an element, as it is stored; NULL: zeros */
    const struct selection *selection; /* what blocks are of */
    const struct codec_pipeline *pipeline;
    chunk_fetch_fn *fetch;
    chunk_make_fn *make;   /* NULL: they are fetched and decoded */
    chunk_where_fn *where; /* may be NULL */
    chunk_watch_fn *watch; /* NULL: they are in the one at `path` */
    chunk_locate_fn *locate;
    void (*free_state)(void *state); /* may be NULL */
    void *state;                     /* taken over on success */
    const char *path, *dataset;      /* for errors; dataset may be NULL */
};

extern const struct provider chunk_source_provider; /* its state is a struct chunk_source */

/* no-memory; bad-format: chunks so large that none fits memory. */
int chunk_source_new(const struct chunk_layout *layout, const char *name,
                     struct chunk_source **ret_source, struct gad_error *error) GAD_MUST_CHECK;
/* NULL allowed; no block is being filled. Returns NULL. */
struct chunk_source *chunk_source_free(struct chunk_source *source);
