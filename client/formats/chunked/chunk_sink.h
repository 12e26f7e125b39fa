/* Outputs in chunks: blocks come in any order, whole chunks go out encoded, by as many threads as
 * bring blocks. */
#pragma once

#include "client/array.h"
#include "client/codecs/codec.h"
#include "client/formats/chunk_grid.h"
#include "client/gpuarrayd-files.h"

struct chunk_sink;

/* Takes an encoded chunk; the bytes are the caller's again afterwards. index: in C order of the
 * grid; place: its first element; skipped: bit i: step i of the pipeline was not applied. Once for
 * each chunk, by any thread. 0, or a positive errno; reason (of n_reason bytes, empty before): what
 * more there is to say. */
typedef int chunk_store_fn(void *state, uint64_t index, const int64_t *place, const void *bytes,
                           size_t n_bytes, uint32_t skipped, char *reason, size_t n_reason);

/* In a part chunks are stored in C order and one at a time, so that a file does not tell which was
 * ready first; of several parts, beside each other. Where a part has parts of its own, those come
 * in C order, each of them whole. */
enum chunk_parts { PARTS_OF_CHUNKS, PARTS_OF_SHAPE, PARTS_OF_ALL };

/* What a format says of an output; all of it is copied. */
struct chunk_sink_layout {
    struct chunk_grid
        grid; /* of the whole array; chunks at its end are stored whole, zero beyond */
    const int64_t *shape;
    bool is_open; /* shape[0] is the most: where the array ends is said at its end */
    size_t item_bytes;
    const int *order; /* of the axes in a chunk, the slowest first; NULL: as in the array */
    const struct codec_pipeline *pipeline;
    enum chunk_parts parts;
    unsigned n_part_levels;            /* PARTS_OF_SHAPE: from the outside inwards, each */
    const int64_t *const *part_shapes; /* multiples of the next, and of the chunks' */
    chunk_store_fn *store;
    void *state;                /* the caller's, until the sink is freed */
    const char *path, *dataset; /* for errors, and where there is room; dataset may be NULL */
};

extern const struct provider chunk_sink_provider; /* its state is a struct chunk_sink */

/* no-memory; bad-argument: chunks too large. */
int chunk_sink_new(const struct chunk_sink_layout *layout, const char *name,
                   struct chunk_sink **ret_sink, struct gad_error *error) GAD_MUST_CHECK;
/* After the last block: whether every chunk was stored. internal: blocks are missing. */
int chunk_sink_finish(struct chunk_sink *sink, const char *name,
                      struct gad_error *error) GAD_MUST_CHECK;
/* A new array of a format, described by now, is written through a sink. */
struct chunk_sink_format {
    const int64_t *chunk_shape;
    const int *order; /* as of the layout */
    const struct codec_pipeline *pipeline;
    enum chunk_parts parts; /* these as of the layout */
    unsigned n_part_levels;
    const int64_t *const *part_shapes;
    chunk_store_fn *store;
    void *state;
    const char *dataset; /* "": the file, or folder, is the array */
};
/* ret_sink: the caller's; NULL: there are no elements, and the array is as it was. */
int chunk_sink_serve(struct gad_array *array, const struct chunk_sink_format *format,
                     const char *name, struct chunk_sink **ret_sink,
                     struct gad_error *error) GAD_MUST_CHECK;
/* At the commit: all of it has come, and is stored. Of an array that was open the length is known
 * by now. */
int chunk_sink_complete(struct chunk_sink *sink, const struct gad_array *array,
                        struct gad_error *error) GAD_MUST_CHECK;
/* Both are PARTS_OF_ALL, store into one file, and are of one job to which nothing has come: they do
 * so by turns. */
int chunk_sink_join(struct chunk_sink *sink, struct chunk_sink *other, const char *name,
                    struct gad_error *error) GAD_MUST_CHECK;
/* NULL allowed; no block is being taken. Returns NULL. */
struct chunk_sink *chunk_sink_free(struct chunk_sink *sink);
