/* The stored bytes of an array's chunks: files, or parts of files that are shards. */
#pragma once

#include "client/formats/chunked/chunk_source.h"
#include "client/formats/zarr/zarr_meta.h"

struct zarr_chunks;

/* dir_fd_take: of the array's directory. NULL: no memory. */
struct zarr_chunks *zarr_chunks_new(const struct zarr_meta *meta, int dir_fd_take);
/* NULL allowed. For chunk_layout.free_state. */
void zarr_chunks_free(void *chunks);

/* chunk_layout.fetch, of the grid of innermost chunks. */
int zarr_chunks_fetch(void *chunks, uint64_t index, const int64_t *place, struct chunk_bytes *ret);

/* chunk_layout.where: the file, a chunk or a shard. */
void zarr_chunks_where(void *chunks, const int64_t *place, char *ret_text, size_t n_bytes);

/* chunk_layout.watch: files are marked as they are now; of very many, none. */
int zarr_chunks_watch(void *chunks, struct file_sums *sums);

/* The name of the file of a chunk in the grid of files, as "c/0/1" or "0.1". */
#define ZARR_KEY_BYTES (ARRAY_MAX_NDIM * 21 + 4)
void zarr_key(const struct zarr_meta *meta, const int64_t *place, char ret_key[ZARR_KEY_BYTES]);

/* chunk_layout.locate, likewise. */
int zarr_chunks_locate(void *chunks, const struct chunk_grid *grid, const int64_t *low,
                       const int64_t *n, uint32_t kind, struct packed_chunks *packed);
