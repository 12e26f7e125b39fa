/* Encoded chunks of a new array into files, or into shards. */
#pragma once

#include "client/formats/zarr/zarr_meta.h"

struct zarr_writer;

/* is_open: the first axis ends where it ends. dir_fd: the array's folder, the caller's. What
 * encodes as `blank` does, n_blank bytes, has no element but the fill value, if the array has one,
 * and is not stored. NULL: no memory. */
struct zarr_writer *zarr_writer_new(const struct zarr_meta *meta, bool is_open, int dir_fd,
                                    const void *blank, size_t n_blank);
struct zarr_writer *zarr_writer_free(struct zarr_writer *writer); /* NULL; returns NULL */

/* chunk_sink_layout.store, of the grid of innermost chunks. */
int zarr_writer_store(void *writer, uint64_t index, const int64_t *place, const void *bytes,
                      size_t n_bytes, uint32_t skipped, char *reason, size_t n_reason);
/* After the last chunk: shards that are not full are closed. 0 or a positive errno. */
int zarr_writer_finish(struct zarr_writer *writer) GAD_MUST_CHECK;
