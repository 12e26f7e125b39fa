/* Headers of netCDF classic files: what is read of them, and that no number of theirs is believed
 * before it was held against the file. */
#include "client/formats/netcdf/netcdf_header.h"
#include "netcdf_maker.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSION = 10, VARIABLE = 11, ATTRIBUTE = 12 };
#define FILE_BYTES 100000

static struct netcdf_maker maker;
static struct gad_error error;
static const int versions[3] = {1, 2, 5};

/* A heap block of exactly these bytes, so that ASan sees what is read behind them. */
static int parse_some(size_t n_bytes, uint64_t file_bytes, struct netcdf_header *ret_header,
                      uint8_t **ret_bytes)
{
    *ret_bytes = malloc(n_bytes ? n_bytes : 1);
    memcpy(*ret_bytes, maker.bytes, n_bytes);
    memset(&error, 0, sizeof(error));
    int r = netcdf_header_parse(*ret_bytes, n_bytes, file_bytes, "x.nc", ret_header, &error);
    cr_assert(r <= 0 || (error.status == (enum gad_status)r && error.message[0]));
    return r;
}

static int parse(uint64_t file_bytes)
{
    uint8_t *bytes;
    struct netcdf_header header;
    int r = parse_some(maker.n_bytes, file_bytes, &header, &bytes);
    if (r == 0)
        netcdf_header_deinit(&header);
    free(bytes);
    return r;
}

static void expect_refused(enum gad_status status, const char *what)
{
    int r = parse(FILE_BYTES);
    cr_assert(eq(int, r, status), "%s: %s", what, error.message);
    cr_assert(strstr(error.message, what) != NULL, "%s", error.message);
}

/* Two fixed variables, three of records, attributes of both kinds. */
static void make_usual(int version, uint64_t n_records)
{
    maker_begin(&maker, version, n_records);
    maker_list(&maker, DIMENSION, 3);
    maker_dimension(&maker, "time", 0);
    maker_dimension(&maker, "y", 3);
    maker_dimension(&maker, "longer name", 5);
    maker_list(&maker, ATTRIBUTE, 2);
    maker_text(&maker, "title", "wind");
    maker_attribute(&maker, "n", 4, 77, 4);
    maker_list(&maker, VARIABLE, 5);
    maker_variable(&maker, "scalar", 6, 0, NULL, 1000);
    maker_variable(&maker, "grid", 3, 2, (uint64_t[]){1, 2}, 1008);
    maker_variable(&maker, "time", 6, 1, (uint64_t[]){0}, 2000);
    maker_variable(&maker, "b", 1, 2, (uint64_t[]){0, 1}, 2008);
    maker_name(&maker, "c");
    maker_number(&maker, 3);
    for (uint64_t i = 0; i < 3; i++)
        maker_number(&maker, i);
    maker_list(&maker, ATTRIBUTE, 1);
    maker_attribute(&maker, "_FillValue", 3, 0xfffe, 2);
    maker_u32(&maker, 3);
    maker_number(&maker, 4);
    maker_offset(&maker, 2012);
}

Test(netcdf_header, everything_is_read_in_all_versions)
{
    for (size_t i = 0; i < 3; i++) {
        uint8_t *bytes;
        struct netcdf_header header;
        struct netcdf_attribute attribute;
        make_usual(versions[i], 7);
        cr_assert(eq(int, parse_some(maker.n_bytes, FILE_BYTES, &header, &bytes), 0));
        cr_assert(eq(int, header.version, versions[i]));
        cr_assert(eq(sz, header.n_bytes, maker.n_bytes));
        cr_assert(eq(u64, header.n_records, 7));
        cr_assert(eq(u64, header.record_bytes, 8 + 4 + 32));
        cr_assert(eq(sz, header.n_dimensions, 3));
        cr_assert(eq(sz, header.n_variables, 5));

        struct netcdf_attributes left = header.attributes;
        cr_assert(netcdf_next_attribute(&left, &attribute));
        cr_assert(netcdf_text_is(&attribute.name, "title") && attribute.n_values == 4);
        cr_assert(memcmp(attribute.values, "wind", 4) == 0);
        cr_assert(netcdf_next_attribute(&left, &attribute));
        cr_assert(netcdf_text_is(&attribute.name, "n") && attribute.type == NETCDF_INT);
        cr_assert(not(netcdf_next_attribute(&left, &attribute)));

        const struct netcdf_variable *grid = &header.variables[1], *c = &header.variables[4];
        cr_assert(netcdf_text_is(&grid->name, "grid") && !grid->is_record);
        cr_assert(eq(u64, grid->n_bytes, 30));
        cr_assert(eq(u64, grid->offset_bytes, 1008));
        cr_assert(netcdf_text_is(&netcdf_dimension_of(&header, grid, 1)->name, "longer name"));
        cr_assert(c->is_record && c->ndim == 3 && c->type == NETCDF_SHORT);
        cr_assert(eq(u64, c->n_bytes, 30));
        cr_assert(eq(u64, netcdf_dimension_of(&header, c, 0)->size, 7));
        left = c->attributes;
        cr_assert(netcdf_next_attribute(&left, &attribute));
        cr_assert(attribute.values[0] == 0xff && attribute.values[1] == 0xfe);
        netcdf_header_deinit(&header);
        free(bytes);
    }
}

Test(netcdf_header, cut_at_every_byte_it_goes_on_or_ends)
{
    for (size_t i = 0; i < 3; i++) {
        uint8_t *bytes;
        struct netcdf_header header;
        make_usual(versions[i], 7);
        for (size_t n = 0; n < maker.n_bytes; n++) {
            cr_assert(eq(int, parse_some(n, FILE_BYTES, &header, &bytes), -EAGAIN), "%zu", n);
            free(bytes);
            cr_assert(eq(int, parse_some(n, n, &header, &bytes), GAD_SHORT_READ), "%zu", n);
            free(bytes);
        }
    }
}

static uint64_t records_of(uint64_t file_bytes)
{
    uint8_t *bytes;
    struct netcdf_header header;
    cr_assert(eq(int, parse_some(maker.n_bytes, file_bytes, &header, &bytes), 0), "%s",
              error.message);
    uint64_t n = header.n_records;
    netcdf_header_deinit(&header);
    free(bytes);
    return n;
}

Test(netcdf_header, records_that_are_not_counted_are_those_that_are_there)
{
    for (size_t i = 0; i < 3; i++) {
        make_usual(versions[i], versions[i] == 5 ? UINT64_MAX : UINT32_MAX);
        cr_assert(eq(u64, records_of(2000), 0));
        cr_assert(eq(u64, records_of(2041), 0));
        cr_assert(eq(u64, records_of(2042), 1)); /* without what fills it up */
        cr_assert(eq(u64, records_of(2044 + 41), 1));
        cr_assert(eq(u64, records_of(2044 + 42), 2));
        cr_assert(eq(u64, records_of(2000 + 10 * 44), 10));
    }
}

static uint64_t record_bytes(void)
{
    uint8_t *bytes;
    struct netcdf_header header;
    cr_assert(eq(int, parse_some(maker.n_bytes, FILE_BYTES, &header, &bytes), 0));
    uint64_t n = header.record_bytes;
    netcdf_header_deinit(&header);
    free(bytes);
    return n;
}

Test(netcdf_header, a_variable_that_has_the_records_to_itself_is_not_filled_up)
{
    for (uint64_t n = 1; n <= 2; n++) {
        maker_begin(&maker, 1, 9);
        maker_list(&maker, DIMENSION, 2);
        maker_dimension(&maker, "t", 0);
        maker_dimension(&maker, "x", 3);
        maker_list(&maker, 0, 0);
        maker_list(&maker, VARIABLE, n + 1);
        maker_variable(&maker, "fixed", 1, 1, (uint64_t[]){1}, 500);
        maker_variable(&maker, "a", 3, 2, (uint64_t[]){0, 1}, 504);
        if (n == 2)
            maker_variable(&maker, "b", 1, 1, (uint64_t[]){0}, 512);
        cr_assert(eq(u64, record_bytes(), n == 1 ? 6 : 8 + 4));
    }
}

Test(netcdf_header, sizes_in_bytes_that_wrap_are_not_used)
{
    maker_begin(&maker, 2, 0);
    maker_list(&maker, DIMENSION, 2);
    maker_dimension(&maker, "x", 2000000000);
    maker_dimension(&maker, "y", 2000000000);
    maker_list(&maker, 0, 0);
    maker_list(&maker, VARIABLE, 2);
    maker_variable(&maker, "a", 1, 2, (uint64_t[]){0, 1}, 500);
    maker_variable(&maker, "b", 1, 1, (uint64_t[]){0}, 4000000000000000500);
    cr_assert(eq(int, parse(FILE_BYTES), 0), "%s", error.message);
}

Test(netcdf_header, counts_that_lie_take_no_memory)
{
    for (size_t i = 0; i < 3; i++) {
        uint64_t most = versions[i] == 5 ? INT64_MAX : UINT32_MAX;
        for (uint32_t tag = DIMENSION; tag <= ATTRIBUTE; tag++) {
            maker_begin(&maker, versions[i], 0);
            if (tag != DIMENSION)
                maker_list(&maker, 0, 0);
            if (tag == VARIABLE)
                maker_list(&maker, 0, 0);
            maker_list(&maker, tag, most);
            expect_refused(GAD_SHORT_READ, "ends inside its header");
        }
        maker_begin(&maker, versions[i], 0);
        maker_list(&maker, 0, 0);
        maker_list(&maker, ATTRIBUTE, 1);
        maker_name(&maker, "a");
        maker_u32(&maker, 6);
        maker_number(&maker, most);
        maker_bytes(&maker, "12345678", 8);
        maker_list(&maker, 0, 0);
        cr_assert(eq(int, parse(FILE_BYTES), versions[i] == 5 ? GAD_BAD_FORMAT : GAD_SHORT_READ));
        maker_begin(&maker, versions[i], 0);
        maker_list(&maker, 0, 0);
        maker_list(&maker, 0, 0);
        maker_list(&maker, VARIABLE, 1);
        maker_name(&maker, "a");
        maker_number(&maker, most);
        for (int k = 0; k < 20; k++)
            maker_u32(&maker, 0);
        expect_refused(GAD_SHORT_READ, "ends inside its header");
    }
}

static void begin_variable(int version, uint64_t x, uint64_t y)
{
    maker_begin(&maker, version, 2);
    maker_list(&maker, DIMENSION, 2);
    maker_dimension(&maker, "x", x);
    maker_dimension(&maker, "y", y);
    maker_list(&maker, 0, 0);
    maker_list(&maker, VARIABLE, 2);
    maker_variable(&maker, "first", 1, 0, NULL, 800);
}

Test(netcdf_header, what_is_damaged_is_named)
{
    maker_begin(&maker, 3, 0);
    expect_refused(GAD_BAD_FORMAT, "no netCDF file");

    begin_variable(1, 4, 0);
    maker_variable(&maker, "v", 1, 2, (uint64_t[]){0, 1}, 900);
    expect_refused(GAD_BAD_FORMAT, "the dimension that grows is not the first one of 'v'");
    begin_variable(1, 4, 5);
    maker_variable(&maker, "v", 1, 2, (uint64_t[]){0, 2}, 900);
    expect_refused(GAD_BAD_FORMAT, "no such dimension");
    begin_variable(1, 4, 5);
    maker_variable(&maker, "v", 7, 1, (uint64_t[]){0}, 900);
    expect_refused(GAD_BAD_FORMAT, "no such type");
    begin_variable(5, 4, 5);
    maker_variable(&maker, "v", 12, 1, (uint64_t[]){0}, 900);
    expect_refused(GAD_BAD_FORMAT, "no such type");
    begin_variable(5, 4, 5);
    maker_variable(&maker, "v", 0, 1, (uint64_t[]){0}, 900);
    expect_refused(GAD_BAD_FORMAT, "no such type");
    begin_variable(1, 4, 5);
    maker_variable(&maker, "v", 1, 1, (uint64_t[]){0}, 800);
    expect_refused(GAD_BAD_FORMAT, "'v' lies over what comes before it");
    begin_variable(1, 4, 5);
    maker_variable(&maker, "v", 1, 1, (uint64_t[]){0}, 20);
    expect_refused(GAD_BAD_FORMAT, "lies over");
    begin_variable(2, 4, 5);
    maker_variable(&maker, "v", 1, 1, (uint64_t[]){0}, UINT64_C(1) << 63);
    expect_refused(GAD_BAD_FORMAT, "an offset is negative");
    begin_variable(5, UINT64_C(1) << 40, UINT64_C(1) << 24);
    maker_variable(&maker, "v", 1, 2, (uint64_t[]){0, 1}, 900);
    expect_refused(GAD_BAD_FORMAT, "'v' has more bytes than 63 bits can count");
    begin_variable(5, UINT64_MAX, 1);
    maker_variable(&maker, "v", 1, 1, (uint64_t[]){0}, 900);
    expect_refused(GAD_BAD_FORMAT, "a size is negative");

    maker_begin(&maker, 5, INT64_MAX + UINT64_C(1));
    for (int i = 0; i < 3; i++)
        maker_list(&maker, 0, 0);
    expect_refused(GAD_BAD_FORMAT, "the number of records is negative");
    maker_begin(&maker, 1, 0);
    maker_list(&maker, ATTRIBUTE, 0);
    expect_refused(GAD_BAD_FORMAT, "another list");
    cr_assert(eq(str, error.expected, "tag 10"));
    maker_begin(&maker, 1, 0);
    maker_list(&maker, 0, 3);
    expect_refused(GAD_BAD_FORMAT, "another list");
    maker_begin(&maker, 1, 0);
    maker_list(&maker, DIMENSION, 1);
    maker_number(&maker, NETCDF_MAX_NAME_BYTES + 1);
    maker_u32(&maker, 0);
    expect_refused(GAD_BAD_FORMAT, "a name is too long");
}

Test(netcdf_header, records_beyond_63_bits_are_refused)
{
    const uint64_t size = UINT64_C(1) << 62;
    maker_begin(&maker, 5, 1);
    maker_list(&maker, DIMENSION, 2);
    maker_dimension(&maker, "t", 0);
    maker_dimension(&maker, "x", size);
    maker_list(&maker, 0, 0);
    maker_list(&maker, VARIABLE, 2);
    maker_variable(&maker, "v", 1, 2, (uint64_t[]){0, 1}, 1000);
    maker_variable(&maker, "w", 1, 2, (uint64_t[]){0, 1}, 1000 + size);
    expect_refused(GAD_BAD_FORMAT, "a record has more bytes than 63 bits can count");
}

Test(netcdf_header, names_with_a_nul_end_there_and_types_have_their_dtypes)
{
    enum dtype dtype;
    uint8_t *bytes;
    struct netcdf_header header;
    maker_begin(&maker, 1, 0);
    maker_list(&maker, DIMENSION, 1);
    maker_number(&maker, 4);
    maker_bytes(&maker, "lon", 4);
    maker_number(&maker, 2);
    maker_list(&maker, 0, 0);
    maker_list(&maker, 0, 0);
    cr_assert(eq(int, parse_some(maker.n_bytes, FILE_BYTES, &header, &bytes), 0));
    cr_assert(netcdf_text_is(&header.dimensions[0].name, "lon"));
    netcdf_header_deinit(&header);
    free(bytes);
    for (enum netcdf_type type = NETCDF_BYTE; type <= NETCDF_UINT64; type++)
        if (netcdf_type_to_dtype(type, &dtype))
            cr_assert(eq(sz, dtype_size(dtype), netcdf_type_size(type)));
    cr_assert(not(netcdf_type_to_dtype(NETCDF_CHAR, &dtype)));
}
