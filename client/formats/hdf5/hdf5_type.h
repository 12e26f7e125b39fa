/* dtypes as HDF5 types. Inside a scope. */
#pragma once

#include "proto/dtype.h"

#include <hdf5.h>

/* False when the type is none of those that are served. */
bool hdf5_type_to_dtype(hid_t type, enum dtype *ret_dtype, bool *ret_is_swapped);
/* Times of 64 bits, as PyTables writes them: seconds in the upper half, microseconds in the lower.
 * They are served as the float64 of seconds that PyTables makes of them, never as they lie. */
bool hdf5_type_is_time64(hid_t type);
/* From how they lie in the file to float64 in this machine's byte order. */
void hdf5_times_convert(hid_t type, void *values, size_t n_bytes);
/* "a string", "a compound", "a float of 2 bytes": for a message about one that is not served. */
const char *hdf5_type_describe(hid_t type, char *buffer, size_t n_bytes);
/* A new type in this machine's byte order, to be closed; bool is the enum that h5py uses. Negative
 * when HDF5 fails. */
hid_t hdf5_type_make(enum dtype dtype);
