/* Writes headers of netCDF classic files as tests want them, wrong ones too. */
#include "netcdf_maker.h"

#include <string.h>

static void put(struct netcdf_maker *maker, uint64_t value, size_t n_bytes)
{
    for (size_t i = n_bytes; i-- > 0; value >>= 8)
        maker->bytes[maker->n_bytes + i] = (uint8_t)value;
    maker->n_bytes += n_bytes;
}

void maker_u32(struct netcdf_maker *maker, uint32_t value)
{
    put(maker, value, 4);
}

void maker_number(struct netcdf_maker *maker, uint64_t value)
{
    put(maker, value, maker->version == 5 ? 8 : 4);
}

void maker_offset(struct netcdf_maker *maker, uint64_t value)
{
    put(maker, value, maker->version == 1 ? 4 : 8);
}

void maker_bytes(struct netcdf_maker *maker, const void *bytes, size_t n_bytes)
{
    memcpy(maker->bytes + maker->n_bytes, bytes, n_bytes);
    maker->n_bytes += n_bytes;
    while (maker->n_bytes % 4)
        maker->bytes[maker->n_bytes++] = 0;
}

void maker_begin(struct netcdf_maker *maker, int version, uint64_t n_records)
{
    const uint8_t magic[4] = {'C', 'D', 'F', (uint8_t)version};
    maker->n_bytes = 0;
    maker->version = version;
    maker_bytes(maker, magic, 4);
    maker_number(maker, n_records);
}

void maker_list(struct netcdf_maker *maker, uint32_t tag, uint64_t n)
{
    maker_u32(maker, tag);
    maker_number(maker, n);
}

void maker_name(struct netcdf_maker *maker, const char *name)
{
    maker_number(maker, strlen(name));
    maker_bytes(maker, name, strlen(name));
}

void maker_dimension(struct netcdf_maker *maker, const char *name, uint64_t size)
{
    maker_name(maker, name);
    maker_number(maker, size);
}

void maker_text(struct netcdf_maker *maker, const char *name, const char *text)
{
    maker_name(maker, name);
    maker_u32(maker, 2);
    maker_name(maker, text);
}

void maker_attribute(struct netcdf_maker *maker, const char *name, uint32_t type, uint64_t value,
                     size_t n_bytes)
{
    maker_name(maker, name);
    maker_u32(maker, type);
    maker_number(maker, 1);
    put(maker, value, n_bytes);
    maker_bytes(maker, "", 0);
}

void maker_variable(struct netcdf_maker *maker, const char *name, uint32_t type, size_t ndim,
                    const uint64_t *dimensions, uint64_t offset)
{
    maker_name(maker, name);
    maker_number(maker, ndim);
    for (size_t i = 0; i < ndim; i++)
        maker_number(maker, dimensions[i]);
    maker_list(maker, 0, 0);
    maker_u32(maker, type);
    maker_number(maker, 0x12345678);
    maker_offset(maker, offset);
}
