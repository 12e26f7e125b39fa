/* Any bytes as a netCDF classic file.
 *
 * Checked: what is pointed to of an accepted header lies in it, variables lie one behind the other,
 * attributes can be read, sizes fit 63 bits; the same header with more of its file behind it is the
 * same; one that is refused says why, and one that is cut asks for more where there is more.
 */
#include "client/formats/netcdf/netcdf_attributes.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const uint8_t *begin, *end;

static void check_inside(const void *at, uint64_t n_bytes)
{
    const uint8_t *bytes = at;
    assert(n_bytes == 0 || (bytes >= begin && bytes <= end && n_bytes <= (uint64_t)(end - bytes)));
}

static void check_attributes(const struct netcdf_header *header,
                             const struct netcdf_variable *variable)
{
    struct netcdf_attributes left = variable ? variable->attributes : header->attributes;
    struct netcdf_attribute attribute;
    struct netcdf_attribute_list list;
    uint64_t n = left.n, n_seen = 0;
    for (; netcdf_next_attribute(&left, &attribute); n_seen++) {
        check_inside(attribute.name.chars, attribute.name.n_chars);
        check_inside(attribute.values, attribute.n_values * netcdf_type_size(attribute.type));
    }
    assert(n_seen == n);
    int r = netcdf_attributes_read(header, variable, &list);
    assert(r == 0 && list.n == n);
    for (size_t i = 0; i < list.n; i++)
        assert(list.attributes[i].name && (list.attributes[i].text || list.attributes[i].values ||
                                           list.attributes[i].n_values == 0));
    netcdf_attributes_free(&list);
}

static uint64_t check_variable(const struct netcdf_header *header,
                               const struct netcdf_variable *variable, uint64_t lowest)
{
    enum dtype dtype;
    uint64_t n_bytes = netcdf_type_size(variable->type);
    check_inside(variable->name.chars, variable->name.n_chars);
    for (size_t i = 0; i < variable->ndim; i++) {
        const struct netcdf_dimension *dimension = netcdf_dimension_of(header, variable, i);
        assert(dimension >= header->dimensions &&
               dimension < header->dimensions + header->n_dimensions);
        assert(dimension->is_record == (i == 0 && variable->is_record));
        if (!dimension->is_record)
            n_bytes *= dimension->size;
    }
    assert(n_bytes == variable->n_bytes && n_bytes <= INT64_MAX);
    assert(variable->offset_bytes >= lowest && variable->offset_bytes <= INT64_MAX);
    assert(!variable->is_record || n_bytes <= header->record_bytes);
    if (netcdf_variable_dtype(variable, &dtype))
        assert(dtype_size(dtype) == netcdf_type_size(variable->type));
    return variable->offset_bytes + n_bytes;
}

static void check_accepted(const struct netcdf_header *header)
{
    uint64_t fixed_end = header->n_bytes, record_end;
    assert(header->n_bytes <= (size_t)(end - begin));
    assert(header->n_records <= INT64_MAX && header->record_bytes <= INT64_MAX);
    for (size_t i = 0; i < header->n_dimensions; i++) {
        check_inside(header->dimensions[i].name.chars, header->dimensions[i].name.n_chars);
        assert(header->dimensions[i].size <= INT64_MAX);
    }
    check_attributes(header, NULL);
    for (size_t i = 0; i < header->n_variables; i++)
        if (!header->variables[i].is_record)
            fixed_end = check_variable(header, &header->variables[i], fixed_end);
    record_end = fixed_end;
    for (size_t i = 0; i < header->n_variables; i++) {
        if (header->variables[i].is_record)
            record_end = check_variable(header, &header->variables[i], record_end);
        check_attributes(header, &header->variables[i]);
    }
}

/* The header alone, of the same file. */
static void check_alone(const struct netcdf_header *header, size_t n_bytes)
{
    struct netcdf_header again;
    int r = netcdf_header_parse(begin, header->n_bytes, n_bytes, "x", &again, NULL);
    assert(r == 0);
    assert(again.n_variables == header->n_variables && again.n_records == header->n_records);
    netcdf_header_deinit(&again);
    r = netcdf_header_parse(begin, header->n_bytes - 1, n_bytes, "x", &again, NULL);
    assert(r == -EAGAIN);
}

/* What is too short may go on where its file is longer; what is damaged stays so. */
static void check_refused(int status, size_t n_bytes)
{
    struct netcdf_header header;
    int r = netcdf_header_parse(begin, n_bytes, UINT64_MAX, "x", &header, NULL);
    assert(r == status || (status == GAD_SHORT_READ && r == -EAGAIN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct netcdf_header header;
    struct gad_error error = {0};
    begin = data;
    end = data + n_bytes;
    int r = netcdf_header_parse(data, n_bytes, n_bytes, "x", &header, &error);
    if (r) {
        assert(r > 0 && error.status == (enum gad_status)r && error.message[0]);
        check_refused(r, n_bytes);
        return 0;
    }
    check_accepted(&header);
    check_alone(&header, n_bytes);
    netcdf_header_deinit(&header);
    return 0;
}
