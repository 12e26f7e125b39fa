/* Names of datasets of a file, for messages. */
#pragma once

#include "proto/error.h"

#include <hdf5.h>

/* Outputs that are being written have a hidden link in the root, whose name begins so. */
#define HDF5_HIDDEN_PREFIX ".gpuarrayd-"

/* Inside a scope: not-found for a dataset path that cannot be opened, naming datasets that can;
 * bad-format when it is there all the same. */
int hdf5_no_dataset_error(hid_t file, const char *dataset, const char *name,
                          struct gad_error *error);
