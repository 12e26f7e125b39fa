/* Attributes of netCDF classic files as all formats hand them on. */
#pragma once

#include "client/formats/netcdf/netcdf_header.h"
#include "client/gpuarrayd-files.h"

/* All of a list; NULL where there are none. netcdf_attributes_free() frees it. */
struct netcdf_attribute_list {
    size_t n;
    struct gad_attribute *attributes;
};

/* The dtype of a variable's elements, with what its attribute _Unsigned says. False: a text. */
bool netcdf_variable_dtype(const struct netcdf_variable *variable, enum dtype *ret_dtype);

/* Those of a variable, or of the file (variable is NULL). -ENOMEM. */
int netcdf_attributes_read(const struct netcdf_header *header,
                           const struct netcdf_variable *variable,
                           struct netcdf_attribute_list *ret_list) GAD_MUST_CHECK;
void netcdf_attributes_free(struct netcdf_attribute_list *list);
