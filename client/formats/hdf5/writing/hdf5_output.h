/* The output of HDF5: a dataset of a new file or of an existing one. */
#pragma once

#include "client/formats/format_impl.h"

int hdf5_create(struct gad_client *client, const struct format_target *target,
                struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
