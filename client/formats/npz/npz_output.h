/* New members of npz archives. */
#pragma once

#include "client/formats/format_impl.h"

int npz_create(struct gad_client *client, const struct format_target *target,
               struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
