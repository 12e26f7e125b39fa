/* gpuarrayctl info with a source: files alone, no daemon. */
#pragma once

#include "client/ctl/ctl.h"

struct info_file_options {
    const char *source;
    bool json, has_attributes, names_alone;
};

/* Prints. 0 or a status. */
int info_file(const struct info_file_options *options, struct gad_error *error);
