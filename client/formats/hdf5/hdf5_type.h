/* dtypes as HDF5 types. Inside a scope. */
#pragma once

#include "proto/dtype.h"

#include <hdf5.h>

/* False when the type is none of those that are served. */
bool hdf5_type_to_dtype(hid_t type, enum dtype *ret_dtype, bool *ret_is_swapped);
/* Whether elements are not as they lie in the file: HDF5 converts them to the type as which they
 * are read, or they are times of 64 bits. */
bool hdf5_type_is_converted(hid_t type);
/* The type that HDF5 is to give elements of `type` in, of the size of its dtype. To be closed;
 * negative when HDF5 fails. */
hid_t hdf5_type_as_read(hid_t type);
/* Elements that came in that type, into their dtype: integers of fewer bits, and times of 64 bits,
 * which PyTables writes as seconds in the upper half and microseconds in the lower, and reads as a
 * float64 of seconds, as they are served. Others are left as they are. */
void hdf5_type_convert(hid_t type, void *values, size_t n_bytes);
/* "a string", "a compound", "a float of 2 bytes": for a message about one that is not served. */
const char *hdf5_type_describe(hid_t type, char *buffer, size_t n_bytes);
/* A new type in this machine's byte order, to be closed; bool is the enum that h5py uses. Negative
 * when HDF5 fails. */
hid_t hdf5_type_make(enum dtype dtype);
