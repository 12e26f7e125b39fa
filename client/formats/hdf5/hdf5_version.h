/* The version of the HDF5 library. */
#pragma once

#include <stddef.h>

/* "1.10.8" into the buffer. To be called outside of HDF5_SCOPE. */
void hdf5_version(char *buffer, size_t n_bytes);
