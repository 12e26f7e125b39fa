/* Whether a dataset's index of chunks is whole. Inside a scope. */
#pragma once

#include "client/formats/chunk_grid.h"

#include <hdf5.h>

#define HDF5_INDEX_REASON 160

/* True: the index is damaged, with what is wrong with it ("the chunk at (40, 5), at byte 4016, is
 * beyond the dataset"). False also of datasets with so many places of chunks that looking at each
 * would take long. */
bool hdf5_index_is_damaged(hid_t dataset, const struct chunk_grid *grid,
                           char ret_reason[HDF5_INDEX_REASON]);
