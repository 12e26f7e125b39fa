/* Serves the blocks of an HDF5 dataset through the HDF5 library: whatever the daemon cannot read
 * from the file by itself (filters, many chunks, fill values, external and virtual storage). */
#pragma once

#include "client/array.h"
#include "client/formats/chunk_grid.h"
#include "client/formats/chunked/chunk_source.h"
#include "client/formats/selection.h"

#include <sys/stat.h>

struct hdf5_provider;

extern const struct provider hdf5_dataset_provider; /* its state is a struct hdf5_provider */

/* For what is selected of `dataset`, of this shape and item size, in the file at `path`, the one of
 * `st`. The blocks are in the selection's axes and the dataset's own byte order. grid: of the
 * dataset, NULL when it is not chunked. The file is opened with the first block. Needs no scope.
 * NULL: no memory, or a path that cannot be resolved. */
struct hdf5_provider *hdf5_provider_new(const char *path, const char *dataset,
                                        const struct stat *st, size_t item_bytes,
                                        const int64_t *shape, const struct selection *selection,
                                        const struct chunk_grid *grid);
/* A chunk as it is stored (a chunk_fetch_fn of chunk_source.h); state: the provider. Needs no
 * scope.
 */
int hdf5_provider_fetch(void *state, uint64_t index, const int64_t *place,
                        struct chunk_bytes *ret_bytes);
/* A chunk_watch_fn; likewise. */
int hdf5_provider_watch(void *state, struct file_sums *sums);
/* Where it lies, if that is known (a chunk_where_fn); likewise. */
void hdf5_provider_where(void *state, const int64_t *place, char *ret_text, size_t n_bytes);
/* Where chunks are (a chunk_locate_fn); likewise. */
int hdf5_provider_locate(void *state, const struct chunk_grid *grid, const int64_t *low,
                         const int64_t *n, uint32_t kind, struct packed_chunks *packed);
/* NULL allowed; needs no scope, must not be called inside one. Returns NULL. */
struct hdf5_provider *hdf5_provider_free(struct hdf5_provider *provider);

/* Closes this file in all providers of the process; each opens it again with its next block.
 * Inside a scope. */
void hdf5_provider_suspend(const struct stat *st);
/* The dataset has got storage, which outputs may be written to without HDF5: providers that were
 * made for it before find nothing any more. Inside a scope. */
void hdf5_provider_outdate(const struct stat *st, const char *dataset);
