/* Reading the header of a netCDF classic file.
 *
 *     header      magic  n_records  dimensions  attributes  variables
 *     magic       "CDF" and a byte: 1, 2 or 5
 *     list        tag  n  n entries; the tag is 0 where n is
 *     dimension   name  size                        0: the one of the records
 *     attribute   name  type  n  n values
 *     variable    name  n  n numbers of dimensions  attributes  type  size in bytes  offset
 *     name        n  n bytes
 *
 * All is big-endian; names and values are filled up to four bytes. Tags and types have four bytes,
 * numbers four, in CDF-5 eight; offsets four in CDF-1, else eight.
 *
 * Every number is held against the bytes that are left of the file before anything is made of it,
 * so that memory is taken only for what is really there. What the file says of a variable's size
 * in bytes is not used: it wraps where a variable is large, and follows from the dimensions.
 *
 * Called by netcdf_file.c for files, and by the fuzz target.
 */
#include "client/formats/netcdf/netcdf_header.h"
#include "client/formats/netcdf/netcdf_layout.h"
#include "proto/util.h"

#include <string.h>

enum tag { TAG_ABSENT, TAG_DIMENSION = 10, TAG_VARIABLE = 11, TAG_ATTRIBUTE = 12 };

struct reader {
    const uint8_t *bytes;
    size_t n_bytes, at;
    uint64_t file_bytes;
    int version;
    const char *name;
    struct gad_error *error;
};

/* Numbers ------------------------------------------------------------------------------------- */

static uint64_t big_endian(const uint8_t *bytes, size_t n_bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes; i++)
        value = value << 8 | bytes[i];
    return value;
}

static size_t number_bytes(int version)
{
    return version == 5 ? 8 : 4;
}

static int damaged(const struct reader *reader, size_t at, const char *what)
{
    return error_set(reader->error, GAD_BAD_FORMAT, reader->name,
                     "the header is damaged at byte %zu: %s", at, what);
}

/* Whether n items of at least item_bytes can still come. */
static int expect(const struct reader *reader, uint64_t n, size_t item_bytes)
{
    uint64_t n_bytes, left = reader->n_bytes - reader->at;
    if (__builtin_mul_overflow(n, item_bytes, &n_bytes))
        n_bytes = UINT64_MAX;
    if (n_bytes <= left)
        return 0;
    if (n_bytes <= reader->file_bytes - reader->at)
        return -EAGAIN;
    error_set(reader->error, GAD_SHORT_READ, reader->name,
              "the file ends inside its header, or what is at byte %zu is damaged", reader->at);
    error_expected(reader->error, "%llu bytes more", (unsigned long long)n_bytes);
    error_found(reader->error, "%llu bytes", (unsigned long long)(reader->file_bytes - reader->at));
    return GAD_SHORT_READ;
}

static int read_bytes(struct reader *reader, uint64_t n_bytes, const uint8_t **ret_bytes)
{
    int r = expect(reader, n_bytes, 1);
    if (r)
        return r;
    *ret_bytes = reader->bytes + reader->at;
    reader->at += n_bytes;
    return 0;
}

static int read_unsigned(struct reader *reader, size_t n_bytes, uint64_t *ret_value)
{
    const uint8_t *bytes;
    int r = read_bytes(reader, n_bytes, &bytes);
    if (r == 0)
        *ret_value = big_endian(bytes, n_bytes);
    return r;
}

/* A size or count. */
static int read_number(struct reader *reader, uint64_t *ret_value)
{
    size_t at = reader->at;
    int r = read_unsigned(reader, number_bytes(reader->version), ret_value);
    return r == 0 && *ret_value > INT64_MAX ? damaged(reader, at, "a size is negative") : r;
}

/* What is filled up to four bytes. */
static int read_filled(struct reader *reader, uint64_t n_bytes, const uint8_t **ret_bytes)
{
    int r = expect(reader, n_bytes, 1);
    return r ? r : read_bytes(reader, round_up_u64(n_bytes, 4), ret_bytes);
}

static int read_name(struct reader *reader, struct netcdf_text *ret_name)
{
    uint64_t n;
    size_t at = reader->at;
    const uint8_t *bytes;
    int r = read_number(reader, &n);
    if (r)
        return r;
    if (n > NETCDF_MAX_NAME_BYTES) {
        damaged(reader, at, "a name is too long");
        error_expected(reader->error, "at most %d bytes", NETCDF_MAX_NAME_BYTES);
        error_found(reader->error, "%llu bytes", (unsigned long long)n);
        return GAD_BAD_FORMAT;
    }
    r = read_filled(reader, n, &bytes);
    if (r == 0)
        *ret_name = (struct netcdf_text){(const char *)bytes, strnlen((const char *)bytes, n)};
    return r;
}

static int read_type(struct reader *reader, enum netcdf_type *ret_type)
{
    uint64_t type, last = reader->version == 5 ? NETCDF_UINT64 : NETCDF_DOUBLE;
    size_t at = reader->at;
    int r = read_unsigned(reader, 4, &type);
    if (r)
        return r;
    if (type >= NETCDF_BYTE && type <= last) {
        *ret_type = (enum netcdf_type)type;
        return 0;
    }
    damaged(reader, at, "there is no such type");
    error_expected(reader->error, "a type from 1 to %llu", (unsigned long long)last);
    error_found(reader->error, "%llu", (unsigned long long)type);
    return GAD_BAD_FORMAT;
}

/* Lists --------------------------------------------------------------------------------------- */

/* The number of entries, which take entry_bytes at least. */
static int read_list(struct reader *reader, enum tag wanted, size_t entry_bytes, uint64_t *ret_n)
{
    uint64_t tag;
    size_t at = reader->at;
    int r = read_unsigned(reader, 4, &tag);
    if (r == 0)
        r = read_number(reader, ret_n);
    if (r)
        return r;
    if (tag != wanted && (tag != TAG_ABSENT || *ret_n > 0)) {
        damaged(reader, at, "another list is expected there");
        error_expected(reader->error, "tag %d", wanted);
        error_found(reader->error, "tag %llu", (unsigned long long)tag);
        return GAD_BAD_FORMAT;
    }
    return expect(reader, *ret_n, entry_bytes);
}

static int read_dimensions(struct reader *reader, struct netcdf_header *header)
{
    uint64_t n;
    int r = read_list(reader, TAG_DIMENSION, 2 * number_bytes(reader->version), &n);
    if (r || n == 0)
        return r;
    header->dimensions = calloc(n, sizeof(*header->dimensions));
    if (!header->dimensions)
        return -ENOMEM;
    header->n_dimensions = n;
    for (uint64_t i = 0; i < n && r == 0; i++) {
        struct netcdf_dimension *dimension = &header->dimensions[i];
        r = read_name(reader, &dimension->name);
        if (r == 0)
            r = read_number(reader, &dimension->size);
        dimension->is_record = dimension->size == 0;
    }
    return r;
}

static int read_attribute(struct reader *reader, struct netcdf_attribute *ret_attribute)
{
    uint64_t n_bytes;
    size_t at = reader->at;
    int r = read_name(reader, &ret_attribute->name);
    if (r == 0)
        r = read_type(reader, &ret_attribute->type);
    if (r == 0)
        r = read_number(reader, &ret_attribute->n_values);
    if (r)
        return r;
    if (__builtin_mul_overflow(ret_attribute->n_values, netcdf_type_size(ret_attribute->type),
                               &n_bytes) ||
        n_bytes > INT64_MAX)
        return damaged(reader, at, "an attribute has too many values");
    return read_filled(reader, n_bytes, &ret_attribute->values);
}

static int read_attributes(struct reader *reader, struct netcdf_attributes *ret_attributes)
{
    uint64_t n;
    struct netcdf_attribute attribute;
    int r = read_list(reader, TAG_ATTRIBUTE, 2 * number_bytes(reader->version) + 4, &n);
    *ret_attributes = (struct netcdf_attributes){
        .at = reader->bytes + reader->at, .n = n, .is_wide = reader->version == 5};
    for (uint64_t i = 0; i < n && r == 0; i++)
        r = read_attribute(reader, &attribute);
    return r;
}

/* Variables ----------------------------------------------------------------------------------- */

static int read_dimension_ids(struct reader *reader, const struct netcdf_header *header,
                              struct netcdf_variable *variable)
{
    uint64_t n;
    size_t n_bytes = number_bytes(reader->version), at;
    int r = read_number(reader, &n);
    if (r == 0)
        r = expect(reader, n, n_bytes);
    if (r)
        return r;
    at = reader->at;
    variable->ndim = n;
    r = read_bytes(reader, n * n_bytes, &variable->dimension_ids);
    for (size_t i = 0; i < n && r == 0; i++)
        if (big_endian(variable->dimension_ids + i * n_bytes, n_bytes) >= header->n_dimensions)
            r = damaged(reader, at + i * n_bytes, "there is no such dimension");
    return r;
}

/* The sizes of all axes but the records' multiplied. */
static int count_bytes(struct reader *reader, const struct netcdf_header *header,
                       struct netcdf_variable *variable)
{
    uint64_t n_bytes = netcdf_type_size(variable->type);
    for (size_t i = 0; i < variable->ndim; i++) {
        const struct netcdf_dimension *dimension = netcdf_dimension_of(header, variable, i);
        if (dimension->is_record && i == 0) {
            variable->is_record = true;
            continue;
        }
        if (dimension->is_record)
            return error_set(reader->error, GAD_BAD_FORMAT, reader->name,
                             "the dimension that grows is not the first one of '%.*s'",
                             NETCDF_SHOWN(&variable->name));
        if (__builtin_mul_overflow(n_bytes, dimension->size, &n_bytes) || n_bytes > INT64_MAX - 3)
            return error_set(reader->error, GAD_BAD_FORMAT, reader->name,
                             "'%.*s' has more bytes than 63 bits can count",
                             NETCDF_SHOWN(&variable->name));
    }
    variable->n_bytes = n_bytes;
    return 0;
}

static int read_variable(struct reader *reader, const struct netcdf_header *header,
                         struct netcdf_variable *variable)
{
    uint64_t unused;
    int r = read_name(reader, &variable->name);
    if (r == 0)
        r = read_dimension_ids(reader, header, variable);
    if (r == 0)
        r = read_attributes(reader, &variable->attributes);
    if (r == 0)
        r = read_type(reader, &variable->type);
    if (r == 0)
        r = read_unsigned(reader, number_bytes(reader->version), &unused);
    if (r == 0)
        r = read_unsigned(reader, reader->version == 1 ? 4 : 8, &variable->offset_bytes);
    if (r)
        return r;
    if (variable->offset_bytes > INT64_MAX)
        return damaged(reader, reader->at - 8, "an offset is negative");
    return count_bytes(reader, header, variable);
}

static int read_variables(struct reader *reader, struct netcdf_header *header)
{
    uint64_t n;
    size_t number = number_bytes(reader->version), offset = reader->version == 1 ? 4 : 8;
    int r = read_list(reader, TAG_VARIABLE, 4 * number + 8 + offset, &n);
    if (r || n == 0)
        return r;
    header->variables = calloc(n, sizeof(*header->variables));
    if (!header->variables)
        return -ENOMEM;
    header->n_variables = n;
    for (uint64_t i = 0; i < n && r == 0; i++)
        r = read_variable(reader, header, &header->variables[i]);
    return r;
}

/* The whole ----------------------------------------------------------------------------------- */

bool netcdf_is_magic(const uint8_t *bytes, size_t n_bytes)
{
    return n_bytes >= NETCDF_MAGIC_BYTES && memcmp(bytes, "CDF", 3) == 0 &&
           (bytes[3] == 1 || bytes[3] == 2 || bytes[3] == 5);
}

static int read_magic(struct reader *reader)
{
    const uint8_t *magic;
    int r = read_bytes(reader, NETCDF_MAGIC_BYTES, &magic);
    if (r)
        return r;
    if (netcdf_is_magic(magic, NETCDF_MAGIC_BYTES)) {
        reader->version = magic[3];
        return 0;
    }
    error_set(reader->error, GAD_BAD_FORMAT, reader->name, "this is no netCDF file");
    error_expected(reader->error, "CDF and a byte 1, 2 or 5, or HDF5 (netCDF-4)");
    error_found(reader->error, "other bytes");
    return GAD_BAD_FORMAT;
}

static int read_all(struct reader *reader, struct netcdf_header *header)
{
    int r = read_magic(reader);
    header->version = reader->version;
    if (r == 0)
        r = read_unsigned(reader, number_bytes(reader->version), &header->n_records);
    if (r == 0)
        r = read_dimensions(reader, header);
    if (r == 0)
        r = read_attributes(reader, &header->attributes);
    if (r == 0)
        r = read_variables(reader, header);
    header->n_bytes = reader->at;
    return r ? r : netcdf_lay_out(header, reader->file_bytes, reader->name, reader->error);
}

int netcdf_header_parse(const void *bytes, size_t n_bytes, uint64_t file_bytes, const char *name,
                        struct netcdf_header *ret_header, struct gad_error *error)
{
    struct netcdf_header header = {0};
    struct reader reader = {
        .bytes = bytes, .n_bytes = n_bytes, .file_bytes = file_bytes, .name = name, .error = error};
    int r = read_all(&reader, &header);
    if (r == 0) {
        *ret_header = header;
        return 0;
    }
    netcdf_header_deinit(&header);
    return r == -ENOMEM ? error_from_errno(error, ENOMEM, name, "netCDF header") : r;
}

void netcdf_header_deinit(struct netcdf_header *header)
{
    free_ptr(&header->dimensions);
    free_ptr(&header->variables);
}

/* What was checked ---------------------------------------------------------------------------- */

const struct netcdf_dimension *netcdf_dimension_of(const struct netcdf_header *header,
                                                   const struct netcdf_variable *variable,
                                                   size_t axis)
{
    size_t n_bytes = number_bytes(header->version);
    return &header->dimensions[big_endian(variable->dimension_ids + axis * n_bytes, n_bytes)];
}

bool netcdf_next_attribute(struct netcdf_attributes *attributes, struct netcdf_attribute *ret)
{
    if (attributes->n == 0)
        return false;
    struct reader reader = {.bytes = attributes->at,
                            .n_bytes = SIZE_MAX,
                            .file_bytes = UINT64_MAX,
                            .version = attributes->is_wide ? 5 : 1};
    if (read_attribute(&reader, ret))
        return false;
    attributes->at += reader.at;
    attributes->n--;
    return true;
}

bool netcdf_text_is(const struct netcdf_text *text, const char *wanted)
{
    return strlen(wanted) == text->n_chars && memcmp(text->chars, wanted, text->n_chars) == 0;
}

size_t netcdf_type_size(enum netcdf_type type)
{
    static const uint8_t sizes[] = {
        [NETCDF_BYTE] = 1,  [NETCDF_CHAR] = 1,   [NETCDF_SHORT] = 2, [NETCDF_INT] = 4,
        [NETCDF_FLOAT] = 4, [NETCDF_DOUBLE] = 8, [NETCDF_UBYTE] = 1, [NETCDF_USHORT] = 2,
        [NETCDF_UINT] = 4,  [NETCDF_INT64] = 8,  [NETCDF_UINT64] = 8};
    return sizes[type];
}

bool netcdf_type_to_dtype(enum netcdf_type type, enum dtype *ret_dtype)
{
    static const enum dtype dtypes[] = {
        [NETCDF_BYTE] = DTYPE_INT8,      [NETCDF_SHORT] = DTYPE_INT16,
        [NETCDF_INT] = DTYPE_INT32,      [NETCDF_FLOAT] = DTYPE_FLOAT32,
        [NETCDF_DOUBLE] = DTYPE_FLOAT64, [NETCDF_UBYTE] = DTYPE_UINT8,
        [NETCDF_USHORT] = DTYPE_UINT16,  [NETCDF_UINT] = DTYPE_UINT32,
        [NETCDF_INT64] = DTYPE_INT64,    [NETCDF_UINT64] = DTYPE_UINT64};
    *ret_dtype = type == NETCDF_CHAR ? DTYPE_UINT8 : dtypes[type];
    return type != NETCDF_CHAR;
}
