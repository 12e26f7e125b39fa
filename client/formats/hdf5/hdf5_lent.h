/* Codecs of ours as filters of the HDF5 library. Inside a scope. */
#pragma once

#include <stdbool.h>

/* Registers those that HDF5 has neither by itself nor from the program around us; no plugin is
 * loaded for it. They decode: who makes a chunk with one is told that it fails. */
void hdf5_lend_codecs(void);
/* Whether HDF5 has this filter of us. */
bool hdf5_is_lent(unsigned id);
