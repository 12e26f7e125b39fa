/* Names of datasets: in specs, and those of a file, for messages. */
#pragma once

#include "client/formats/formats.h"
#include "proto/error.h"

#include <hdf5.h>

/* Outputs that are being written have a hidden link in the root, whose name begins so. */
#define HDF5_HIDDEN_PREFIX ".gpuarrayd-"

/* Inside a scope: not-found for a dataset path that cannot be opened, naming datasets that can;
 * bad-format when it is there all the same. */
int hdf5_no_dataset_error(hid_t file, const char *dataset, const char *name,
                          struct gad_error *error);

/* What follows the path in a spec, "" or ":group/name", as the path of a dataset: one leading
 * slash, no empty components; a heap string. NULL: no memory. */
char *hdf5_normalise(const char *rest);
int hdf5_parse_rest(const char *rest, const char *whole, bool is_output, struct spec *spec,
                    struct gad_error *error) GAD_MUST_CHECK;
