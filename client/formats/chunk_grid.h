/* The arithmetic of a grid of chunks. Pure. */
#pragma once

#include "proto/array.h"

#include <stddef.h>

struct chunk_grid {
    int ndim;
    int64_t chunk_shape[ARRAY_MAX_NDIM];
    int64_t n_chunks_of[ARRAY_MAX_NDIM]; /* along each axis */
    uint64_t n_chunks;
    uint64_t chunk_bytes;
};

/* shape: as of array_check(), without a 0. False when a chunk's dimension is not positive or a
 * product does not fit 63 bits. */
bool chunk_grid_init(struct chunk_grid *ret_grid, int ndim, const int64_t *shape,
                     const int64_t *chunk_shape, int64_t item_bytes);

/* First element of the chunk with this index in C order; index < n_chunks. */
void chunk_grid_start(const struct chunk_grid *grid, uint64_t index, int64_t *ret_start);

/* The same for messages: "(3, 0, 12)"; returns the buffer. */
const char *chunk_place_text(const struct chunk_grid *grid, uint64_t index, char *buffer,
                             size_t n_bytes);

/* Every entry absent or whole, and inside a file of file_bytes: bad-chunk-table, short-read (with
 * the bytes that the file would need). ret_n_absent is set on success. */
int chunk_table_check(const struct chunk_grid *grid, const struct chunk_entry *entries,
                      uint64_t n_entries, uint64_t file_bytes, const char *name,
                      uint64_t *ret_n_absent, struct gad_error *error) GAD_MUST_CHECK;
