/* The header of netCDF classic files: CDF-1, CDF-2 (offsets of 64 bits), CDF-5 (sizes too). Pure
 * functions of bytes. */
#pragma once

#include "proto/dtype.h"

#define NETCDF_MAGIC_BYTES      4
#define NETCDF_MAX_HEADER_BYTES (64u << 20)
#define NETCDF_MAX_NAME_BYTES   4096

enum netcdf_type {
    NETCDF_BYTE = 1, /* signed */
    NETCDF_CHAR,
    NETCDF_SHORT,
    NETCDF_INT,
    NETCDF_FLOAT,
    NETCDF_DOUBLE,
    NETCDF_UBYTE, /* from here on in CDF-5 only */
    NETCDF_USHORT,
    NETCDF_UINT,
    NETCDF_INT64,
    NETCDF_UINT64,
};

/* Inside the header's bytes, without a NUL behind it. */
struct netcdf_text {
    const char *chars;
    size_t n_chars;
};

/* For "%.*s" in messages. */
#define NETCDF_SHOWN(text) (int)((text)->n_chars < 80 ? (text)->n_chars : 80), (text)->chars

struct netcdf_dimension {
    struct netcdf_text name;
    bool is_record; /* it grows: its size is that of the file's records */
    uint64_t size;
};

struct netcdf_attribute {
    struct netcdf_text name;
    enum netcdf_type type;
    uint64_t n_values;
    const uint8_t *values; /* big-endian; of NETCDF_CHAR a text */
};

/* Attributes that are still to be seen: netcdf_next_attribute(). */
struct netcdf_attributes {
    const uint8_t *at;
    uint64_t n;
    bool is_wide;
};

struct netcdf_variable {
    struct netcdf_text name;
    enum netcdf_type type;
    size_t ndim;
    const uint8_t *dimension_ids; /* netcdf_dimension_of() */
    struct netcdf_attributes attributes;
    bool is_record;        /* its first dimension is the file's records, which lie apart */
    uint64_t offset_bytes; /* of its first element */
    uint64_t n_bytes;      /* of its elements, or of those of one record */
};

/* Points into the bytes that it was read from. */
struct netcdf_header {
    int version; /* 1, 2 or 5 */
    size_t n_bytes;
    uint64_t n_records, record_bytes; /* from one record to the next */
    size_t n_dimensions, n_variables;
    struct netcdf_dimension *dimensions;
    struct netcdf_variable *variables;
    struct netcdf_attributes attributes; /* of the whole file */
};

/* Whether a file that begins so is one. */
bool netcdf_is_magic(const uint8_t *bytes, size_t n_bytes);

/* Reads the header from the first n_bytes of a file of file_bytes (at least n_bytes). -EAGAIN: it
 * goes on behind n_bytes. bad-format, short-read (the file ends inside of it), no-memory; then
 * there is nothing to be freed. */
int netcdf_header_parse(const void *bytes, size_t n_bytes, uint64_t file_bytes, const char *name,
                        struct netcdf_header *ret_header, struct gad_error *error) GAD_MUST_CHECK;
void netcdf_header_deinit(struct netcdf_header *header);

/* Axis `axis` of a variable. */
const struct netcdf_dimension *netcdf_dimension_of(const struct netcdf_header *header,
                                                   const struct netcdf_variable *variable,
                                                   size_t axis);
/* False: there are no more. */
bool netcdf_next_attribute(struct netcdf_attributes *attributes, struct netcdf_attribute *ret);
bool netcdf_text_is(const struct netcdf_text *text, const char *wanted);

size_t netcdf_type_size(enum netcdf_type type);
/* False: a text. */
bool netcdf_type_to_dtype(enum netcdf_type type, enum dtype *ret_dtype);
