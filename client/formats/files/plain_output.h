/* The output of npy and raw: a new file with the elements behind an optional header. */
#pragma once

#include "client/formats/format_impl.h"

/* header: n_header_bytes that stand before the elements. */
int plain_output_new(struct gad_client *client, const struct format_target *target,
                     const void *header, size_t n_header_bytes, struct gad_array **ret_array,
                     struct gad_error *error) GAD_MUST_CHECK;
