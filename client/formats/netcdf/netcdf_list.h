/* What is in a netCDF classic file, for gad_list(). */
#pragma once

#include "client/formats/format_impl.h"

int netcdf_list(const char *path, const char *dataset, const char *name,
                gad_list_function *function, void *userdata,
                struct gad_error *error) GAD_MUST_CHECK;
