/* A netCDF classic file: its header in memory. */
#pragma once

#include "client/formats/netcdf/netcdf_header.h"

#include <sys/stat.h>

struct netcdf_file {
    uint8_t *bytes; /* of the header, and perhaps of what follows it */
    struct netcdf_header header;
};

/* Reads the header of the open file of `st`. `name` is the error's argument. The errors of
 * netcdf_header_parse(), io-error. */
int netcdf_file_read(int fd, const struct stat *st, const char *path, const char *name,
                     struct netcdf_file *ret_file, struct gad_error *error) GAD_MUST_CHECK;
void netcdf_file_deinit(struct netcdf_file *file);

/* The variable of a dataset's path, "/t"; NULL: there is none. */
const struct netcdf_variable *netcdf_file_find(const struct netcdf_file *file, const char *dataset);
/* not-found, naming those that are there. */
int netcdf_no_variable_error(const struct netcdf_file *file, const char *dataset, const char *name,
                             struct gad_error *error);
