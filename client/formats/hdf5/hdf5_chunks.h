/* The table of where a dataset's chunks are in the file. Inside a scope. */
#pragma once

#include "client/formats/chunk_pick.h"
#include "client/formats/chunked/chunk_source.h"

#include <hdf5.h>

/* Above, looking them up takes longer than it saves. Each costs as much as the dataset has chunks.
 */
#define HDF5_MAX_TABLE_CHUNKS 4096
#define HDF5_MAX_LOOK_UPS     (UINT64_C(4096) * 4096)

/* The grid of a chunked dataset of this shape (without a 0). */
bool hdf5_chunk_grid(hid_t create_plist, int ndim, const int64_t *shape, int64_t item_bytes,
                     struct chunk_grid *ret_grid);

/* Where a box of a dataset's chunks is, filtered or not, in a file without a user block: offsets,
 * sizes and what was skipped. ENOTSUP: they are too many, or HDF5 does not tell. */
int hdf5_chunk_places(hid_t file, hid_t dataset, const struct chunk_grid *grid, const int64_t *low,
                      const int64_t *n, struct packed_chunk *ret_chunks) GAD_MUST_CHECK;

/* Looks up the chunks of the pick, among n_chunks of the dataset, and makes the sealed memfd, whose
 * entries are of pick->grid. `fd` is the file's. On success ret_table_fd is -1 when the chunks
 * cannot be told by a table: too many, filtered, an absent one with a fill value that is not zero,
 * or addresses that cannot be trusted. short-read, bad-chunk-table, io-error. */
int hdf5_chunk_table(hid_t file, hid_t dataset, hid_t create_plist, const struct chunk_pick *pick,
                     uint64_t n_chunks, int fd, const char *name, int *ret_table_fd,
                     struct gad_error *error) GAD_MUST_CHECK;
