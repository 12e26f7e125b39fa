/* The table of where a dataset's chunks are in the file. Inside a scope. */
#pragma once

#include "client/formats/chunk_grid.h"

#include <hdf5.h>

#define HDF5_MAX_TABLE_CHUNKS 4096 /* above: looking them up takes longer than it saves */

/* The grid of a chunked dataset of this shape (without a 0). */
bool hdf5_chunk_grid(hid_t create_plist, int ndim, const int64_t *shape, int64_t item_bytes,
                     struct chunk_grid *ret_grid);

/* Looks up every chunk and makes the sealed memfd. `fd` is the file's. On success ret_table_fd is
 * -1 when the chunks cannot be told by a table: too many, filtered, an absent one with a fill value
 * that is not zero, or addresses that cannot be trusted. short-read, bad-chunk-table, io-error. */
int hdf5_chunk_table(hid_t file, hid_t dataset, hid_t create_plist, const struct chunk_grid *grid,
                     int fd, const char *name, int *ret_table_fd,
                     struct gad_error *error) GAD_MUST_CHECK;
