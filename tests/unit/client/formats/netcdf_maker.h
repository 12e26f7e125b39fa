/* Headers of netCDF classic files, number by number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct netcdf_maker {
    int version;
    size_t n_bytes;
    uint8_t bytes[256 * 1024];
};

/* "CDF", the version and the number of records. */
void maker_begin(struct netcdf_maker *maker, int version, uint64_t n_records);
void maker_bytes(struct netcdf_maker *maker, const void *bytes, size_t n_bytes); /* filled up */
void maker_u32(struct netcdf_maker *maker, uint32_t value);
void maker_number(struct netcdf_maker *maker, uint64_t value); /* 4 bytes, in CDF-5 8 */
void maker_offset(struct netcdf_maker *maker, uint64_t value); /* 4 bytes in CDF-1, else 8 */
void maker_list(struct netcdf_maker *maker, uint32_t tag, uint64_t n);
void maker_name(struct netcdf_maker *maker, const char *name);
void maker_dimension(struct netcdf_maker *maker, const char *name, uint64_t size);
void maker_text(struct netcdf_maker *maker, const char *name, const char *text);
/* One that has a value of this many bytes. */
void maker_attribute(struct netcdf_maker *maker, const char *name, uint32_t type, uint64_t value,
                     size_t n_bytes);
/* All but its attributes, of which it has none; its size in bytes is a lie. */
void maker_variable(struct netcdf_maker *maker, const char *name, uint32_t type, size_t ndim,
                    const uint64_t *dimensions, uint64_t offset);
