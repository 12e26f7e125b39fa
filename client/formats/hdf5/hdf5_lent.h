/* Codecs of ours as filters of the HDF5 library. Inside a scope. */
#pragma once

/* Registers those that HDF5 has neither by itself, nor from the program around us, nor from a
 * plugin. They decode: who makes a chunk with one is told that it fails. */
void hdf5_lend_codecs(void);
