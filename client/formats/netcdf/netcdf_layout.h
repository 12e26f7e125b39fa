/* Where the variables of a netCDF classic file lie: records, their size and number. Pure. */
#pragma once

#include "client/formats/netcdf/netcdf_header.h"

/* Fills in record_bytes, n_records and the sizes of dimensions that are records, from a header that
 * is read otherwise. bad-format: variables lie over each other, or numbers have no room. */
int netcdf_lay_out(struct netcdf_header *header, uint64_t file_bytes, const char *name,
                   struct gad_error *error) GAD_MUST_CHECK;
