/* dtypes as HDF5 types. Inside a scope. */
#pragma once

#include "proto/dtype.h"

#include <hdf5.h>

/* False when the type is none of those that are served. */
bool hdf5_type_to_dtype(hid_t type, enum dtype *ret_dtype, bool *ret_is_swapped);
/* "a string", "a compound", "a float of 2 bytes": for a message about one that is not served. */
const char *hdf5_type_describe(hid_t type, char *buffer, size_t n_bytes);
/* A new type in this machine's byte order, to be closed; bool is the enum that h5py uses. Negative
 * when HDF5 fails. */
hid_t hdf5_type_make(enum dtype dtype);
