/* What is in a file, for messages. Inside a scope. */
#pragma once

#include "proto/error.h"

#include <hdf5.h>

/* Of hidden root links of outputs that are being written. */
#define HDF5_HIDDEN_PREFIX ".gpuarrayd-"

/* not-found for a dataset path that cannot be opened, naming datasets that can; bad-format when it
 * is there all the same. */
int hdf5_no_dataset_error(hid_t file, const char *dataset, const char *name,
                          struct gad_error *error);
