/* New arrays in stores. */
#pragma once

#include "client/formats/format_impl.h"

/* struct format, `create`. */
int zarr_create(struct gad_client *client, const struct format_target *target,
                struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
