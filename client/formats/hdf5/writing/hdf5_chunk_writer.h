/* Encoded chunks on their way into an HDF5 dataset. */
#pragma once

#include "client/formats/hdf5/writing/hdf5_target.h"
#include "client/formats/storage.h"

#include <hdf5.h>

struct hdf5_chunk_writer;

/* target, dataset (the path of the one that is written, as long as it is written) and shown (the
 * file's path, for messages) are needed as long as the writer. NULL: no memory. */
struct hdf5_chunk_writer *hdf5_chunk_writer_new(const struct hdf5_target *target,
                                                const char *dataset, const char *shown, int ndim);
struct hdf5_chunk_writer *
hdf5_chunk_writer_free(struct hdf5_chunk_writer *writer); /* NULL allowed */

/* A chunk_store_fn (chunk_sink.h); state: the writer. Needs no scope. */
int hdf5_chunk_writer_store(void *state, uint64_t index, const int64_t *place, const void *bytes,
                            size_t n_bytes, uint32_t skipped, char *reason, size_t n_reason);
/* What was stored and is not in the file yet. Needs no scope. As the store; and not busy. */
int hdf5_chunk_writer_flush(struct hdf5_chunk_writer *writer, char *reason, size_t n_reason);

/* Chunks and filters for a new dataset; false: HDF5 refuses. Inside a scope. */
bool hdf5_chunk_properties(hid_t create_plist, int ndim, const struct storage *storage);
