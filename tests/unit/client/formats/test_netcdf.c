/* Variables of netCDF classic files as sources and in place, and which files are whose. */
#include "client/formats/formats.h"
#include "netcdf_maker.h"
#include "support.h"

#include "client/gpuarrayd-files.h"

#include <stdlib.h>
#include <unistd.h>

TestSuite(netcdf, .init = folder_make, .fini = folder_remove);

enum { DIMENSION = 10, VARIABLE = 11, ATTRIBUTE = 12 };
enum { BYTE = 1, CHAR, SHORT, INT, FLOAT, DOUBLE };

/* fixed and text, then records of a[0][x], two shorts, and b[y], three bytes filled up by one. */
#define OFFSET_FIXED 512
#define OFFSET_TEXT  516
#define OFFSET_A     520
#define OFFSET_B     524
#define RECORD_BYTES 8
#define N_RECORDS    4
#define FILE_BYTES   (OFFSET_A + N_RECORDS * RECORD_BYTES)

static struct netcdf_maker maker;
static const uint64_t along_x[1] = {1};

/* The header so far, and n_bytes in all, of which byte i is i. */
static void put_file(const char *path, size_t n_bytes)
{
    cr_assert(n_bytes <= sizeof(maker.bytes));
    for (size_t i = maker.n_bytes; i < n_bytes; i++)
        maker.bytes[i] = (uint8_t)i;
    file_put(path, maker.bytes, n_bytes);
}

static void put_usual(const char *path, int version, uint64_t n_records, size_t n_bytes)
{
    maker_begin(&maker, version, n_records);
    maker_list(&maker, DIMENSION, 3);
    maker_dimension(&maker, "t", 0);
    maker_dimension(&maker, "x", 2);
    maker_dimension(&maker, "y", 3);
    maker_list(&maker, ATTRIBUTE, 1);
    maker_text(&maker, "title", "bytes");
    maker_list(&maker, VARIABLE, 4);
    maker_variable(&maker, "fixed", SHORT, 1, along_x, OFFSET_FIXED);
    maker_variable(&maker, "text", CHAR, 1, along_x, OFFSET_TEXT);
    maker_variable(&maker, "a[0]", SHORT, 2, (uint64_t[]){0, 1}, OFFSET_A);
    maker_variable(&maker, "b", BYTE, 2, (uint64_t[]){0, 2}, OFFSET_B);
    put_file(path, n_bytes);
}

/* Byte i of the file is i. */
static void expect_bytes(const char *spec, size_t n, const size_t *places)
{
    int n_descriptors = descriptor_count();
    struct gad_array *array = open_ok(spec);
    size_t item = dtype_size((enum dtype)array->info.dtype);
    cr_assert(eq(int, (int)array->access, ACCESS_FILE));
    cr_assert(eq(str, (char *)array->info.format, "netcdf"));
    cr_assert(eq(int, array->info.is_swapped, item > 1));
    cr_assert(eq(sz, n_elements(array), n), "%s", spec);
    for (int64_t step = 0; step <= 3; step++) {
        uint8_t *bytes = step ? elements_by_blocks(array, step) : elements(array);
        for (size_t i = 0; i < n * item; i++)
            cr_assert(bytes[i] == (uint8_t)(places[i / item] + i % item), "%s: byte %zu", spec, i);
        free(bytes);
    }
    gad_array_release(array);
    cr_assert(eq(int, descriptor_count(), n_descriptors));
}

Test(netcdf, variables_lie_where_the_header_says_records_apart)
{
    static const int versions[3] = {1, 2, 5};
    for (size_t i = 0; i < 3; i++) {
        put_usual("a.nc", versions[i], N_RECORDS, FILE_BYTES);
        expect_bytes("a.nc:/fixed", 2, (size_t[]){512, 514});
        expect_bytes("a.nc:a[0]", 8, (size_t[]){520, 522, 528, 530, 536, 538, 544, 546});
        expect_bytes("a.nc:/a[0][1]", 2, (size_t[]){528, 530});
        expect_bytes("a.nc:/a[0][::-2, 1]", 2, (size_t[]){546, 530});
        expect_bytes("a.nc:b[2:, ::2]", 4, (size_t[]){540, 542, 548, 550});
        expect_bytes("a.nc:b[3]", 3, (size_t[]){548, 549, 550});
    }
}

Test(netcdf, records_that_nobody_counted_are_those_that_are_there)
{
    put_usual("a.nc", 1, UINT32_MAX, FILE_BYTES - 2);
    struct gad_array *array = open_ok("a.nc:b");
    cr_assert(eq(i64, array->info.shape[0], N_RECORDS - 1));
    gad_array_release(array);
    put_usual("a.nc", 5, UINT64_MAX, FILE_BYTES - 1);
    array = open_ok("a.nc:b");
    cr_assert(eq(i64, array->info.shape[0], N_RECORDS));
    gad_array_release(array);
    put_usual("a.nc", 2, UINT32_MAX, OFFSET_A);
    array = open_ok("a.nc:b");
    cr_assert(eq(i64, array->info.shape[0], 0));
    gad_array_release(array);
}

/* Whatever is cut off: a variable is there whole, or the file is told to be too short. */
Test(netcdf, files_that_are_cut_are_short)
{
    static const struct {
        const char *spec;
        size_t end;
    } cases[] = {{"a.nc:fixed", OFFSET_FIXED + 4},
                 {"a.nc:a[0]", FILE_BYTES - 4},
                 {"a.nc:b", FILE_BYTES - 1}};
    put_usual("a.nc", 2, N_RECORDS, FILE_BYTES);
    for (off_t n = FILE_BYTES - 1; n >= 0; n--) {
        cr_assert(truncate("a.nc", n) == 0);
        for (size_t i = 0; i < 3; i++) {
            bool is_there = (size_t)n >= cases[i].end;
            const char *word = open_word(cases[i].spec);
            if (n >= 4)
                cr_assert(eq(str, (char *)word, is_there ? "ok" : "short-read"), "%zd of %s", n,
                          cases[i].spec);
            else /* nothing says any longer that it is a classic file */
                cr_assert(eq(str, (char *)word, "bad-format"));
        }
    }
}

Test(netcdf, what_is_not_there_or_no_number_is_told)
{
    put_usual("a.nc", 1, N_RECORDS, FILE_BYTES);
    cr_assert(eq(str, (char *)open_word("a.nc:/fixt"), "not-found"));
    cr_assert(eq(str, last_error.message,
                 "no variable '/fixt'; there are '/fixed', '/text', '/a[0]', '/b'"));
    cr_assert(eq(str, (char *)open_word("a.nc:/text"), "bad-dtype"));
    cr_assert(eq(str, last_error.found, "a text"));
    cr_assert(eq(str, (char *)open_word("a.nc"), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("a.nc:/b[9]"), "bad-argument"));

    maker_begin(&maker, 1, 0);
    maker_list(&maker, DIMENSION, 1);
    maker_dimension(&maker, "one", 1);
    maker_list(&maker, 0, 0);
    maker_list(&maker, VARIABLE, 1);
    maker_variable(&maker, "deep", BYTE, 33, (uint64_t[33]){0}, 512);
    put_file("deep.nc", 600);
    cr_assert(eq(str, (char *)open_word("deep.nc:deep"), "bad-shape"));
}

/* A variable of the file "a.nc" with an attribute, whose place is free up to byte 512. */
static void begin_attributes(uint32_t n)
{
    maker_begin(&maker, 1, 0);
    maker_list(&maker, DIMENSION, 1);
    maker_dimension(&maker, "x", 2);
    maker_list(&maker, 0, 0);
    maker_list(&maker, VARIABLE, 1);
    maker_name(&maker, "v");
    maker_number(&maker, 1);
    maker_number(&maker, 0);
    maker_list(&maker, ATTRIBUTE, n);
}

static void end_attributes(uint32_t type)
{
    maker_u32(&maker, type);
    maker_number(&maker, 0);
    maker_offset(&maker, 512);
    put_file("a.nc", 600);
}

static void expect_fill(enum gad_dtype dtype, enum gad_scalar_kind kind, double fill)
{
    struct gad_array *array = open_ok("a.nc:v");
    cr_assert(eq(int, (int)array->info.dtype, dtype));
    cr_assert(array->info.has_fill);
    cr_assert(eq(int, (int)array->info.exact_fill.kind, kind));
    cr_assert(eq(dbl, array->info.fill, fill));
    gad_array_release(array);
}

Test(netcdf, attributes_are_read_and_unsigned_ones_are_meant_so)
{
    static const struct {
        uint32_t type;
        uint64_t stored;
        size_t n_bytes;
        enum gad_dtype dtype, as_unsigned;
        double fill, unsigned_fill;
    } cases[] = {
        {BYTE, 0xff, 1, GAD_INT8, GAD_UINT8, -1, 255},
        {SHORT, 0x8000, 2, GAD_INT16, GAD_UINT16, -32768, 32768},
        {INT, 0xfffffffe, 4, GAD_INT32, GAD_UINT32, -2, 4294967294},
    };
    for (size_t i = 0; i < 3; i++) {
        begin_attributes(1);
        maker_attribute(&maker, "_FillValue", cases[i].type, cases[i].stored, cases[i].n_bytes);
        end_attributes(cases[i].type);
        expect_fill(cases[i].dtype, GAD_SCALAR_INT, cases[i].fill);
        begin_attributes(2);
        maker_attribute(&maker, "_FillValue", cases[i].type, cases[i].stored, cases[i].n_bytes);
        maker_text(&maker, "_Unsigned", i ? "true" : "True");
        end_attributes(cases[i].type);
        expect_fill(cases[i].as_unsigned, GAD_SCALAR_UINT, cases[i].unsigned_fill);
        begin_attributes(2);
        maker_text(&maker, "_Unsigned", "false");
        maker_attribute(&maker, "missing_value", cases[i].type, cases[i].stored, cases[i].n_bytes);
        end_attributes(cases[i].type);
        expect_fill(cases[i].dtype, GAD_SCALAR_INT, cases[i].fill);
    }
    begin_attributes(2);
    maker_attribute(&maker, "missing_value", DOUBLE, UINT64_C(0xc058c00000000000), 8);
    maker_text(&maker, "_Unsigned", "true");
    end_attributes(FLOAT);
    expect_fill(GAD_FLOAT32, GAD_SCALAR_FLOAT, -99);
}

Test(netcdf, variables_are_written_in_place_where_they_lie)
{
    uint8_t bytes[FILE_BYTES];
    put_usual("a.nc", 1, N_RECORDS, FILE_BYTES);
    struct gad_array *array;
    cr_assert(eq(int, format_open(NULL, "a.nc:b[1:3]", true, &array, &last_error), 0));
    cr_assert(array->is_writable);
    write_elements(array, "\1\2\3\4\5\6");
    gad_array_release(array);
    FILE *file = fopen("a.nc", "rb");
    cr_assert(eq(sz, fread(bytes, 1, sizeof(bytes), file), sizeof(bytes)));
    fclose(file);
    for (size_t i = maker.n_bytes; i < FILE_BYTES; i++) {
        size_t at = i - OFFSET_B - RECORD_BYTES, record = at / RECORD_BYTES, k = at % RECORD_BYTES;
        bool is_written = i >= OFFSET_B + RECORD_BYTES && record < 2 && k < 3;
        cr_assert(eq(u8, bytes[i], is_written ? (uint8_t)(1 + 3 * record + k) : (uint8_t)i));
    }
    cr_assert(eq(str, (char *)open_in_place_word("a.nc:text"), "bad-dtype"));
}

Test(netcdf, nothing_is_added_to_a_classic_file)
{
    const int64_t shape[1] = {2};
    put_usual("a.nc", 1, N_RECORDS, FILE_BYTES);
    cr_assert(eq(str, (char *)create_word("a.nc:new", false, DTYPE_INT8, 1, shape), "read-only"));
    cr_assert(strstr(last_error.message, "nccopy -k nc4 a.nc") != NULL);
    cr_assert(eq(str, (char *)create_word("a.nc:fixed", true, DTYPE_INT8, 1, shape), "read-only"));
    cr_assert(eq(str, (char *)create_word("new.nc3:x", false, DTYPE_INT8, 1, shape), "read-only"));
    cr_assert(strstr(last_error.message, "ends in .nc") != NULL);
    cr_assert(eq(int, folder_count(), 1));
}

static const char *format_of(const char *spec)
{
    struct gad_array *array = open_ok(spec);
    const char *format = array->info.format;
    gad_array_release(array);
    return format;
}

Test(netcdf, files_are_what_they_begin_with)
{
    static const char *const names[] = {"a.nc", "a.CDF", "a.nc4", "a.h5", "a.nc3", "a.nc5"};
    const int64_t shape[1] = {2};
    for (size_t i = 0; i < 6; i++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "%s:fixed", names[i]);
        put_usual(names[i], 1, N_RECORDS, FILE_BYTES);
        cr_assert(eq(str, (char *)format_of(spec), "netcdf"), "%s", spec);
        cr_assert(unlink(names[i]) == 0);
        hid_t file = h5_create(names[i], 0);
        h5_put(file, "fixed", H5T_IEEE_F64LE, 1, (hsize_t[]){2}, NULL, 0);
        H5Fclose(file);
        cr_assert(eq(str, (char *)format_of(spec), "hdf5"), "%s", spec);
    }
    struct gad_array *array = create_ok("new.nc:x", DTYPE_INT8, 1, shape);
    cr_assert(eq(str, (char *)array->info.format, "hdf5"));
    gad_array_release(array);
    file_put("b.nc", "neither", 7);
    cr_assert(eq(str, (char *)open_word("b.nc:x"), "bad-format"));
    file_put("b.nc5", "neither", 7);
    cr_assert(eq(str, (char *)open_word("b.nc5:x"), "bad-format"));
    file_put("b.nc3", "", 0);
    cr_assert(eq(str, (char *)open_word("b.nc3:x"), "short-read"));
    cr_assert(eq(str, (char *)open_word("none.nc3:x"), "not-found"));
    cr_assert(mkdir("d.nc3", 0755) == 0);
    cr_assert(eq(str, (char *)open_word("d.nc3:x"), "bad-descriptor"));
}

Test(netcdf, headers_may_be_long)
{
    char name[64];
    maker_begin(&maker, 2, 0);
    maker_list(&maker, DIMENSION, 1);
    maker_dimension(&maker, "x", 2);
    maker_list(&maker, 0, 0);
    maker_list(&maker, VARIABLE, 3000);
    for (uint64_t i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "variable_%d", (int)i);
        maker_variable(&maker, name, BYTE, 1, (uint64_t[]){0}, 200000 + 4 * i);
    }
    cr_assert(maker.n_bytes > 100000 && maker.n_bytes < 200000);
    put_file("a.nc", 212000);
    expect_bytes("a.nc:variable_2999", 2, (size_t[]){211996, 211997});
    cr_assert(truncate("a.nc", (off_t)maker.n_bytes - 1) == 0);
    cr_assert(eq(str, (char *)open_word("a.nc:variable_1"), "short-read"));
}

/* Listing ------------------------------------------------------------------------------------- */

static char listed[1024];
static int n_wanted;
static enum gad_list_step last_step;

static int note(void *userdata, const struct gad_listed *entry)
{
    char *text = userdata;
    size_t n = strlen(text);
    n += (size_t)snprintf(text + n, sizeof(listed) - n, "%s", entry->name);
    if (entry->kind == GAD_LISTED_ARRAY)
        n += (size_t)snprintf(text + n, sizeof(listed) - n, " %s%s", entry->type,
                              entry->is_served ? "" : "!");
    for (int i = 0; entry->kind == GAD_LISTED_ARRAY && i < entry->ndim; i++)
        n += (size_t)snprintf(text + n, sizeof(listed) - n, " %s=%d", entry->dimensions[i],
                              (int)entry->shape[i]);
    for (size_t i = 0; i < entry->n_attributes; i++)
        n += (size_t)snprintf(text + n, sizeof(listed) - n, " @%s=%s", entry->attributes[i].name,
                              entry->attributes[i].text ? entry->attributes[i].text : "?");
    snprintf(text + n, sizeof(listed) - n, "\n");
    return --n_wanted == 0 ? last_step : GAD_LIST_ON;
}

/* The n-th one answers `step`. */
static const char *list_until(const char *spec, int n, enum gad_list_step step)
{
    n_wanted = n;
    last_step = step;
    listed[0] = '\0';
    int r = format_list(spec, note, listed, &last_error);
    return r ? error_word(r) : listed;
}

static const char *list(const char *spec, int n)
{
    return list_until(spec, n, GAD_LIST_END);
}

#define WHOLE_LIST                                                                                 \
    "/ @title=bytes\n/fixed int16 x=2\n/text a text! x=2\n/a[0] int16 t=4 x=2\n/b int8 t=4 y=3\n"

Test(netcdf, the_file_and_its_variables_are_listed)
{
    put_usual("a.nc", 5, N_RECORDS, FILE_BYTES);
    cr_assert(eq(str, (char *)list("a.nc", 99), WHOLE_LIST));
    cr_assert(eq(str, (char *)list("a.nc:/", 2), "/ @title=bytes\n/fixed int16 x=2\n"));
    cr_assert(eq(str, (char *)list_until("a.nc", 1, GAD_LIST_PAST), "/ @title=bytes\n"));
    cr_assert(eq(str, (char *)list_until("a.nc", 2, GAD_LIST_PAST), WHOLE_LIST));
    cr_assert(eq(str, (char *)list("a.nc:/b", 99), "/b int8 t=4 y=3\n"));
    cr_assert(eq(str, (char *)list("a.nc:/a[0][2]", 99), "/a[0] int16 t=4 x=2\n"));
    cr_assert(eq(str, (char *)list("a.nc:/c", 99), "not-found"));
    cr_assert(eq(str, (char *)list("none.nc3", 99), "not-found"));
    put_file("cut.nc", 100);
    cr_assert(eq(str, (char *)list("cut.nc", 99), "short-read"));
}
