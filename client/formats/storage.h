/* How a new array is to be stored: the user's words as chunks and a pipeline. */
#pragma once

#include "client/codecs/codec.h"
#include "client/formats/chunk_grid.h"
#include "client/gpuarrayd-files.h"
#include "client/meaning.h"

struct storage {
    bool has_chunks;    /* else as the format does by itself */
    bool is_contiguous; /* which the user has said */
    int64_t chunk_shape[ARRAY_MAX_NDIM];
    unsigned n_shard_levels;                                    /* 0: no shards */
    int64_t shard_shapes[GAD_MAX_SHARD_LEVELS][ARRAY_MAX_NDIM]; /* from the file inwards */
    bool says_packing; /* whether the user has said how chunks are packed, or that they are not */
    bool is_transposed;
    int order[ARRAY_MAX_NDIM]; /* of the axes in a chunk, the slowest first */
    struct codec_pipeline pipeline;
    bool sync;
};

/* asked: may be NULL. Chunks that were not given, where something packs them or an axis has no
 * limit, are of about 1 MiB and span the last axes. limits: NULL: no axis can grow. has_numcodecs:
 * codecs are framed as numcodecs does, not as HDF5's filters. bad-argument with what was expected.
 */
int storage_read(const struct gad_storage *asked, enum dtype dtype, int ndim, const int64_t *shape,
                 const struct axis_limits *limits, bool has_numcodecs, const char *name,
                 struct storage *ret_storage, struct gad_error *error) GAD_MUST_CHECK;
/* Chunks for an array of this shape that was given none. */
void storage_choose_chunks(enum dtype dtype, int ndim, const int64_t *shape, int64_t *ret_chunks);
/* The same, for an array that grows along some axes: the chunks of its source where they are
 * neither very small nor very large. */
void storage_choose_growing(enum dtype dtype, int ndim, const int64_t *shape,
                            const struct axis_limits *limits, int64_t *ret_chunks);
