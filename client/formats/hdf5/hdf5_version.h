/* What the HDF5 library is that is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "1.10.8" into the buffer. To be called outside of HDF5_SCOPE. */
void hdf5_version(char *buffer, size_t n_bytes);
/* Whether HDF5 itself has a filter, or a plugin for it. Needs no scope. */
bool hdf5_has_filter(uint32_t id);
