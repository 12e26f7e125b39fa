/* Where the packed chunks of an array lie, for who decodes them elsewhere: files, chunks in them,
 * and which elements of which rows each chunk has. Every format that packs adds its part (the
 * `locate` of its provider); several sources as one array are a part each. */
#pragma once

#include "client/codecs/codec.h"
#include "client/formats/chunk_grid.h"
#include "client/formats/selection.h"
#include "proto/box.h"

#include <sys/stat.h>

#define PACKED_MAX_CHUNKS (UINT64_C(1) << 20)

struct packed_file {
    int folder_fd; /* AT_FDCWD, or of packed_chunks.folders */
    char *path;    /* heap */
    struct stat st;
};

struct packed_chunk {
    uint64_t offset_bytes; /* CHUNK_ABSENT: never written */
    uint64_t size_bytes;   /* as stored */
    uint32_t file, kind;
    uint32_t n_bytes; /* decoded */
    uint32_t skipped; /* bit i: step i was not applied to it; of a stream the CRC-32 of it all */
};

/* Chunks first_chunk .. first_chunk + n_chunks, in C order, and what of them is in the array. Axes
 * are the source's; to_axis: those of the array. */
struct packed_part {
    uint64_t first_chunk, n_chunks;
    bool is_stream;                 /* else a grid */
    int64_t origin[ARRAY_MAX_NDIM]; /* of the array, where the part begins */
    /* A grid: the box of chunks that the selection cuts. */
    int ndim, to_axis[ARRAY_MAX_NDIM]; /* -1: it is none */
    int64_t low[ARRAY_MAX_NDIM], n_of[ARRAY_MAX_NDIM];
    int64_t chunk_shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM]; /* bytes in a chunk */
    struct selection_axis axes[ARRAY_MAX_NDIM];
    /* A stream: rows of row_bytes, each in one piece. */
    uint64_t begin_bytes, row_bytes, stride_bytes, chunk_bytes;
    int64_t n_rows;
    /* Once it is laid: rows, and elements in them. */
    int64_t first_row;
    int row_axis; /* -1: the part is one row */
    int64_t offset_bytes, to_strides[ARRAY_MAX_NDIM];
};

struct packed_chunks {
    uint32_t n_files, n_kinds, n_parts, n_folders;
    uint64_t n_chunks;
    struct packed_file *files;
    struct codec_packing *kinds;
    struct packed_part *parts;
    struct packed_chunk *chunks;
    int *folders; /* descriptors */
    size_t item_bytes;
};

void packed_chunks_deinit(struct packed_chunks *packed); /* zeroed: nothing */

/* For formats. All return 0, ENOTSUP (too many) or another positive errno. path is copied; st: of
 * the file that is meant. */
int packed_add_file(struct packed_chunks *packed, int folder_fd, const char *path,
                    const struct stat *st, uint32_t *ret_file) GAD_MUST_CHECK;
/* A copy of a folder's descriptor, for the files in it. */
int packed_add_folder(struct packed_chunks *packed, int fd, int *ret_folder_fd) GAD_MUST_CHECK;
int packed_add_kind(struct packed_chunks *packed, const struct codec_packing *kind,
                    uint32_t *ret_kind) GAD_MUST_CHECK;
int packed_add_chunk(struct packed_chunks *packed, const struct packed_chunk *chunk) GAD_MUST_CHECK;
/* The chunks from first_chunk on, which were added. */
int packed_add_part(struct packed_chunks *packed, const struct packed_part *part) GAD_MUST_CHECK;

/* For who decodes: after all parts are there, of an array of this shape and item size. ENOTSUP:
 * there is nothing packed in it. */
int packed_lay(struct packed_chunks *packed, int ndim, const int64_t *shape,
               size_t item_bytes) GAD_MUST_CHECK;
/* What a chunk has of the array. Laid. */
struct packed_piece {
    const struct packed_part *part;
    int64_t first_row, end_row; /* [first_row, end_row) of the array, or a part of each */
    /* Of a grid. */
    struct box box; /* of one row: strides there, and in the chunk */
    size_t run_bytes;
    int64_t to_bytes, from_bytes, row_stride; /* in a row; of first_row in the chunk; to the next */
    /* Of a stream: what it is of all bytes. */
    uint64_t low_bytes, high_bytes;
};
void packed_piece_of(const struct packed_chunks *packed, uint64_t index,
                     struct packed_piece *ret_piece);
/* What the decoded chunk has of one of its rows, to where that row goes. */
void packed_copy(const struct packed_piece *piece, const void *elements, int64_t row,
                 char *ret_row);
