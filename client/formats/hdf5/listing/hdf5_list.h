/* What is in an HDF5 file: the row's `list` (client/formats/format_impl.h). Needs no scope. */
#pragma once

#include "client/gpuarrayd.h"
#include "proto/error.h"

int hdf5_list(const char *path, const char *dataset, const char *name, gad_list_function *function,
              void *userdata, struct gad_error *error) GAD_MUST_CHECK;
