/* HDF5 datasets of every type, and the values that stand for what was not measured. */
#include "support.h"

TestSuite(hdf5_types, .init = folder_make, .fini = folder_remove);

static const hsize_t dims[2] = {50, 30};

Test(hdf5_types, every_dtype_in_either_byte_order)
{
    static const char names[] = "bhiqBHIQfd";
    const struct {
        hid_t le, be;
        enum gad_dtype dtype;
    } cases[] = {
        {H5T_STD_I8LE, H5T_STD_I8BE, GAD_INT8},
        {H5T_STD_I16LE, H5T_STD_I16BE, GAD_INT16},
        {H5T_STD_I32LE, H5T_STD_I32BE, GAD_INT32},
        {H5T_STD_I64LE, H5T_STD_I64BE, GAD_INT64},
        {H5T_STD_U8LE, H5T_STD_U8BE, GAD_UINT8},
        {H5T_STD_U16LE, H5T_STD_U16BE, GAD_UINT16},
        {H5T_STD_U32LE, H5T_STD_U32BE, GAD_UINT32},
        {H5T_STD_U64LE, H5T_STD_U64BE, GAD_UINT64},
        {H5T_IEEE_F32LE, H5T_IEEE_F32BE, GAD_FLOAT32},
        {H5T_IEEE_F64LE, H5T_IEEE_F64BE, GAD_FLOAT64},
    };
    const hsize_t n[1] = {100}, chunk[1] = {30};
    hid_t file = h5_create("a.h5", 0);
    for (int i = 0; i < 40; i++) {
        char name[3] = {names[i / 4], (char)('0' + i % 4), 0};
        h5_put(file, name, i % 2 ? cases[i / 4].be : cases[i / 4].le, 1, n,
               i % 4 / 2 ? chunk : NULL, 0);
    }
    H5Fclose(file);
    for (int i = 0; i < 40; i++) {
        char spec[] = {'a', '.', 'h', '5', ':', names[i / 4], (char)('0' + i % 4), 0};
        struct gad_array *array = open_ok(spec);
        size_t size = dtype_size((enum dtype)array->info.dtype);
        cr_assert(eq(int, (int)array->info.dtype, (int)cases[i / 4].dtype));
        cr_assert(eq(int, array->info.is_swapped, i % 2 && size > 1));
        char *a = elements(array), *b = elements_by_blocks(array, 33);
        cr_assert(memcmp(a, b, 100 * size) == 0);
        if (size == 1)
            cr_assert(a[77] == 77);
        free(a);
        free(b);
        gad_array_release(array);
    }
}

Test(hdf5_types, bool_is_the_enum_of_false_and_true)
{
    const hsize_t n[1] = {4};
    const int8_t no = 0, yes = 1;
    const int8_t values[4] = {0, 1, 1, 0};
    hid_t file = h5_create("a.h5", 0), type = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    hid_t space = H5Screate_simple(1, n, NULL);
    hid_t dataset = H5Dcreate2(file, "b", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    hid_t other = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(other, "RED", &no);
    H5Tenum_insert(other, "GREEN", &yes);
    H5Dclose(H5Dcreate2(file, "e", other, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    struct gad_array *array = open_ok("a.h5:b");
    cr_assert(eq(int, (int)array->info.dtype, GAD_BOOL));
    int8_t *got = elements(array);
    cr_assert(memcmp(got, values, 4) == 0);
    free(got);
    gad_array_release(array);
    array = open_ok("a.h5:e"); /* another enum is the integers that it names */
    cr_assert(eq(int, (int)array->info.dtype, GAD_INT8));
    gad_array_release(array);
}

Test(hdf5_types, other_types_are_refused_by_kind)
{
    const hsize_t n[1] = {4};
    hid_t file = h5_create("a.h5", 0), space = H5Screate_simple(1, n, NULL);
    hid_t text = H5Tcopy(H5T_C_S1), vlen = H5Tvlen_create(H5T_NATIVE_INT);
    hid_t compound = H5Tcreate(H5T_COMPOUND, 8), odd = H5Tcopy(H5T_STD_I64LE);
    H5Tinsert(compound, "x", 0, H5T_NATIVE_FLOAT);
    hid_t bits = H5Tcopy(H5T_STD_B64LE);
    H5Tset_size(odd, 9);
    H5Tset_size(bits, 16);
    H5Tset_size(text, 10);
    const struct {
        const char *name;
        hid_t type;
        const char *kind;
    } cases[] = {
        {"text", text, "a string of 10 bytes"},
        {"vlen", vlen, "a list of varying length"},
        {"compound", compound, "a compound of 8 bytes"},
        {"odd", odd, "an unusual integer of 9 bytes"},
        {"long", H5T_NATIVE_LDOUBLE, "an unusual float of 16 bytes"},
        {"bits", bits, "an unusual bit field of 16 bytes"},
    };
    for (size_t i = 0; i < 6; i++)
        H5Dclose(H5Dcreate2(file, cases[i].name, cases[i].type, space, H5P_DEFAULT, H5P_DEFAULT,
                            H5P_DEFAULT));
    H5Fclose(file);
    for (size_t i = 0; i < 6; i++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "a.h5:%s", cases[i].name);
        cr_assert(eq(str, (char *)open_word(spec), "bad-dtype"));
        cr_assert(strstr(last_error.found, cases[i].kind) != NULL, "%s", last_error.found);
    }
}

Test(hdf5_types, bit_fields_of_odd_widths_are_unsigned_integers)
{
    const hsize_t n[1] = {4};
    const uint32_t values[4] = {0, 1, 30, 31};
    hid_t file = h5_create("a.h5", 0), space = H5Screate_simple(1, n, NULL);
    hid_t bits = H5Tcopy(H5T_STD_B32BE);
    cr_assert(H5Tset_precision(bits, 5) >= 0 && H5Tset_offset(bits, 9) >= 0);
    hid_t d = H5Dcreate2(file, "bits", bits, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(H5Dwrite(d, H5T_NATIVE_B32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(d);
    H5Fclose(file);
    struct gad_array *array = open_ok("a.h5:bits");
    cr_assert(eq(int, (int)array->info.dtype, GAD_UINT32));
    void *got = elements(array);
    cr_assert(memcmp(got, values, sizeof(values)) == 0);
    free(got);
    gad_array_release(array);
    cr_assert(eq(str, (char *)open_in_place_word("a.h5:bits"), "read-only"));
    cr_assert(strstr(last_error.message, "lie as they are read") != NULL);
}

static void put_attribute(hid_t file, const char *dataset, const char *name, hid_t type,
                          double value, hsize_t n)
{
    double values[2] = {value, value};
    hid_t space = H5Screate_simple(1, &n, NULL), id = H5Dopen2(file, dataset, H5P_DEFAULT);
    hid_t attribute = H5Acreate2(id, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(attribute > 0 && H5Awrite(attribute, H5T_NATIVE_DOUBLE, values) >= 0);
    H5Aclose(attribute);
    H5Dclose(id);
    H5Sclose(space);
}

Test(hdf5_types, fill_values_of_netcdf_are_told)
{
    hid_t file = h5_create("a.nc", 0);
    h5_put(file, "none", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    h5_put(file, "fill", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    h5_put(file, "missing", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    h5_put(file, "two", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    put_attribute(file, "fill", "_FillValue", H5T_IEEE_F32BE, -99.9, 1);
    put_attribute(file, "fill", "missing_value", H5T_IEEE_F32LE, 1, 1);
    put_attribute(file, "missing", "missing_value", H5T_STD_I16LE, -32767, 1);
    put_attribute(file, "two", "_FillValue", H5T_IEEE_F32LE, 1, 2);
    H5Fclose(file);
    static const struct {
        const char *spec;
        bool has_fill;
        double fill;
    } cases[] = {{"a.nc:none", false, 0},
                 {"a.nc:fill", true, (double)-99.9f},
                 {"a.nc:missing", true, -32767},
                 {"a.nc:two", false, 0}};
    for (size_t i = 0; i < 4; i++) {
        struct gad_array *array = open_ok(cases[i].spec);
        cr_assert(eq(int, array->info.has_fill, cases[i].has_fill));
        cr_assert(eq(dbl, array->info.fill, cases[i].fill));
        gad_array_release(array);
    }
}

static void put_integer(hid_t file, const char *dataset, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR), id = H5Dopen2(file, dataset, H5P_DEFAULT);
    hid_t attribute = H5Acreate2(id, "_FillValue", type, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(attribute > 0 && H5Awrite(attribute, type, value) >= 0);
    H5Aclose(attribute);
    H5Dclose(id);
    H5Sclose(space);
}

/* netCDF's own for 64-bit integers, which no double is. */
Test(hdf5_types, fill_values_of_integers_are_exact)
{
    static const int64_t low = -9223372036854775806LL;
    static const uint64_t high = 18446744073709551614ULL;
    hid_t file = h5_create("a.nc", 0);
    h5_put(file, "low", H5T_STD_I64LE, 2, dims, NULL, 0);
    h5_put(file, "high", H5T_STD_U64LE, 2, dims, NULL, 0);
    put_integer(file, "low", H5T_NATIVE_INT64, &low);
    put_integer(file, "high", H5T_NATIVE_UINT64, &high);
    H5Fclose(file);
    struct gad_array *array = open_ok("a.nc:low[0]");
    cr_assert(eq(int, (int)array->info.exact_fill.kind, GAD_SCALAR_INT));
    cr_assert(eq(i64, array->info.exact_fill.int_value, low));
    gad_array_release(array);
    array = open_ok("a.nc:high");
    cr_assert(eq(int, (int)array->info.exact_fill.kind, GAD_SCALAR_UINT));
    cr_assert(eq(u64, array->info.exact_fill.uint_value, high));
    cr_assert(eq(dbl, array->info.fill, 0x1p64));
    gad_array_release(array);
}
