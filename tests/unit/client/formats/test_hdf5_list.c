/* What is in an HDF5 file: entries in their order, and what they say. */
#include "listed.h"

TestSuite(hdf5_list, .init = folder_make, .fini = folder_remove);

static const hsize_t dims[2] = {4, 6}, chunk[2] = {2, 3};

/* ---- What there is ---- */

Test(hdf5_list, names_groups_before_what_is_in_them)
{
    hid_t file = h5_create("a.h5", 512);
    h5_put(file, "/g/h/d", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    h5_put(file, "/g/e", H5T_STD_I16BE, 0, NULL, NULL, 0);
    h5_put(file, "/z", H5T_STD_U8LE, 1, dims, NULL, 0);
    h5_put(file, "/.gpuarrayd-x", H5T_STD_U8LE, 1, dims, NULL, 0);
    h5_put(file, "/g/.gpuarrayd-x", H5T_STD_U8LE, 1, dims, NULL, 0);
    make_group(file, "/empty");
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"),
                 "G /\n"
                 "G /empty\n"
                 "G /g\n"
                 "A /g/.gpuarrayd-x uint8 (4)\n"
                 "A /g/e int16 ()\n"
                 "G /g/h\n"
                 "A /g/h/d float64 (4x6)\n"
                 "A /z uint8 (4)\n"));
    cr_assert(eq(str, list("a.h5:/g/h"), "G /g/h\nA /g/h/d float64 (4x6)\n"));
    cr_assert(eq(str, list("a.h5:g//h/"), "G /g/h\nA /g/h/d float64 (4x6)\n"));
    cr_assert(eq(str, list("a.h5:/z"), "A /z uint8 (4)\n"));
}

Test(hdf5_list, says_what_arrays_are_stored_as)
{
    hid_t file = h5_create("a.h5", 0), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t half = H5Tcopy(H5T_IEEE_F32LE), varying = H5Tcopy(H5T_C_S1), fixed = H5Tcopy(H5T_C_S1);
    cr_assert(H5Tset_fields(half, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(half, 2) >= 0);
    cr_assert(H5Tset_size(varying, H5T_VARIABLE) >= 0 && H5Tset_size(fixed, 8) >= 0);
    cr_assert(H5Pset_chunk(dcpl, 2, chunk) >= 0 && H5Pset_shuffle(dcpl) >= 0 &&
              H5Pset_deflate(dcpl, 6) >= 0 && H5Pset_fletcher32(dcpl) >= 0);
    h5_put(file, "packed", H5T_IEEE_F32BE, 2, dims, NULL, dcpl);
    h5_put(file, "chunked", H5T_STD_I64LE, 2, dims, chunk, 0);
    h5_put(file, "half", half, 2, dims, NULL, 0);
    hid_t space = H5Screate_simple(1, dims, NULL), none = H5Screate(H5S_NULL);
    H5Dclose(H5Dcreate2(file, "varying", varying, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "fixed", fixed, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "none", H5T_STD_I8LE, none, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    cr_assert(H5Tcommit2(file, "type", half, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"),
                 "G /\n"
                 "A /chunked int64 (4x6) by 2x3\n"
                 "A /fixed a string of 8 bytes (4) unserved\n"
                 "A /half float32 (4x6)\n"
                 "A /none nothing, of type int8 () unserved\n"
                 "A /packed float32 (4x6) by 2x3 "
                 "[shuffle, deflate 6, fletcher32]\n"
                 "O /type a named type: float32\n"
                 "A /varying a string of varying length (4) unserved\n"));
}

/* An optional filter that nobody has. */
Test(hdf5_list, filters_that_nobody_has_are_named)
{
    const unsigned values[3] = {7, 8, 9};
    hid_t file = h5_create("a.h5", 0), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    cr_assert(H5Pset_filter(dcpl, 31999, H5Z_FLAG_OPTIONAL, 3, values) >= 0);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, chunk, dcpl);
    H5Fclose(file);
    cr_assert(
        eq(str, list("a.h5:/d"), "A /d float64 (4x6) by 2x3 [filter 31999 7 8 9] unserved\n"));
}

Test(hdf5_list, the_files_own_order_is_kept_where_it_has_one)
{
    hid_t file, fcpl = H5Pcreate(H5P_FILE_CREATE);
    cr_assert(H5Pset_link_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    file = H5Fcreate("a.h5", H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);
    h5_put(file, "z", H5T_STD_U8LE, 1, dims, NULL, 0);
    h5_put(file, "a", H5T_STD_U8LE, 1, dims, NULL, 0);
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"), "G /\nA /z uint8 (4)\nA /a uint8 (4)\n"));
}

/* ---- Attributes ---- */

Test(hdf5_list, attributes_have_texts)
{
    hid_t file = h5_create("a.h5", 0), varying = text_type(H5T_VARIABLE, H5T_STR_NULLTERM);
    hid_t full = text_type(4, H5T_STR_NULLPAD), blank = text_type(8, H5T_STR_SPACEPAD);
    const char *one = "h\xc3\xb6he", *three[3] = {"x", "", "yy"};
    put_attribute(file, "varying", varying, varying, 0, &one);
    put_attribute(file, "one", varying, varying, 1, &one);
    put_attribute(file, "several", varying, varying, 3, three);
    put_attribute(file, "full", full, full, 0, "abcd");
    put_attribute(file, "blank", blank, blank, 0, "ab c    ");
    put_attribute(file, "fixed", full, full, 2, "ab\0\0wxyz");
    hid_t none = H5Screate(H5S_NULL);
    H5Aclose(H5Acreate2(file, "empty", full, none, H5P_DEFAULT, H5P_DEFAULT));
    H5Aclose(H5Acreate2(file, "nothing", H5T_STD_I8LE, none, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    cr_assert(eq(str, value("a.h5", "varying"), "'h\xc3\xb6he'"));
    cr_assert(eq(str, value("a.h5", "one"), "'h\xc3\xb6he'"));
    cr_assert(eq(str, value("a.h5", "several"), "'x' '' 'yy'"));
    cr_assert(eq(str, value("a.h5", "full"), "'abcd'"));
    cr_assert(eq(str, value("a.h5", "blank"), "'ab c'"));
    cr_assert(eq(str, value("a.h5", "fixed"), "'ab' 'wxyz'"));
    cr_assert(eq(str, value("a.h5", "empty"), "''"));
    cr_assert(eq(str, value("a.h5", "nothing"), "?"));
}

Test(hdf5_list, attributes_have_numbers_without_a_digit_lost)
{
    const uint64_t most = UINT64_MAX;
    const int64_t least = INT64_MIN;
    const double floats[3] = {0.1, -1.5, 1e300};
    const int8_t yes = 1;
    static const int many[1025];
    hid_t file = h5_create("a.h5", 0), truth = H5Tenum_create(H5T_NATIVE_INT8);
    const int8_t no = 0;
    cr_assert(H5Tenum_insert(truth, "FALSE", &no) >= 0 && H5Tenum_insert(truth, "TRUE", &yes) >= 0);
    put_attribute(file, "u", H5T_STD_U64BE, H5T_NATIVE_UINT64, 0, &most);
    put_attribute(file, "i", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &least);
    put_attribute(file, "f", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 3, floats);
    put_attribute(file, "b", truth, truth, 0, &yes);
    put_attribute(file, "most", H5T_STD_I8LE, H5T_NATIVE_INT, 1024, many);
    put_attribute(file, "more", H5T_STD_I8LE, H5T_NATIVE_INT, 1025, many);
    put_attribute(file, "bits", H5T_STD_B8LE, H5T_NATIVE_B8, 0, &yes);
    H5Fclose(file);
    cr_assert(eq(str, value("a.h5", "u"), "18446744073709551615u"));
    cr_assert(eq(str, value("a.h5", "i"), "-9223372036854775808"));
    cr_assert(eq(str, value("a.h5", "f"), "0.10000000000000001 -1.5 1.0000000000000001e+300"));
    cr_assert(eq(str, value("a.h5", "b"), "True"));
    cr_assert(eq(sz, strlen(value("a.h5", "most")), 2 * 1024 - 1));
    cr_assert(eq(str, value("a.h5", "more"), "?"));
    cr_assert(eq(str, value("a.h5", "bits"), "?"));
}

Test(hdf5_list, attributes_are_bounded_in_number_and_bytes)
{
    static char text[60000];
    char name[32];
    memset(text, 'x', sizeof(text));
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), type = text_type(sizeof(text), H5T_STR_NULLPAD);
    cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "t%03d", i);
        put_attribute(file, name, type, type, 0, text);
    }
    H5Fclose(file);
    list("a.h5");
    cr_assert(eq(sz, told.n_attributes, 200));
    cr_assert(eq(sz, told.n_texts, (8 << 20) / sizeof(text) + 1)); /* the others by name alone */
}

/* ---- Names of axes ---- */

Test(hdf5_list, axes_are_called_by_their_scales)
{
    const hsize_t square[2] = {4, 4};
    hid_t file = h5_create("a.h5", 0);
    put_scale(file, "/time", "another name");
    put_scale(file, "/g/depth", "depth");
    put_scale(file, "/far/off", "its own name");
    h5_put(file, "/g/h/both", H5T_IEEE_F32LE, 2, square, NULL, 0);
    h5_put(file, "/g/h/one", H5T_IEEE_F32LE, 2, square, NULL, 0);
    h5_put(file, "/g/h/afar", H5T_IEEE_F32LE, 1, square, NULL, 0);
    attach(file, "/g/h/both", 2, (const char *[]){"/time", "/g/depth"});
    attach(file, "/g/h/one", 2, (const char *[]){NULL, "/time"});
    attach(file, "/g/h/afar", 1, (const char *[]){"/far/off"});
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5:/g/h"),
                 "G /g/h\n"
                 "A /g/h/afar float32 (4) its own name\n"
                 "A /g/h/both float32 (4x4) time,depth\n"
                 "A /g/h/one float32 (4x4) -,time\n"));
    cr_assert(eq(str, list("a.h5:/time"), "A /time float64 (4) time\n"));
    cr_assert(eq(str, value("a.h5:/time", "CLASS"), ""));
    cr_assert(eq(str, value("a.h5:/g/h/both", "DIMENSION_LIST"), ""));
}

Test(hdf5_list, a_dimension_without_a_variable_is_no_array)
{
    hid_t file = h5_create("a.h5", 0);
    put_scale(file, "x", "This is a netCDF dimension but not a netCDF variable.         4");
    h5_put(file, "y", H5T_IEEE_F32LE, 1, dims, NULL, 0);
    attach(file, "y", 1, (const char *[]){"x"});
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"), "G /\nO /x a dimension of 4\nA /y float32 (4) x\n"));
}

Test(hdf5_list, labels_name_axes_that_no_scale_names)
{
    const char *labels[2] = {"rows", "columns"};
    hid_t file = h5_create("a.h5", 0), varying = text_type(H5T_VARIABLE, H5T_STR_NULLTERM);
    put_scale(file, "x", "x");
    h5_put(file, "d", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    hid_t dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    put_attribute(dataset, "DIMENSION_LABELS", varying, varying, 2, labels);
    H5Dclose(dataset);
    attach(file, "d", 2, (const char *[]){"x", NULL});
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5:d"), "A /d float32 (4x6) x,columns\n"));
}

Test(hdf5_list, lists_of_scales_that_are_none_are_left)
{
    const int numbers[2] = {1, 2};
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "d", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    h5_put(file, "e", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    hid_t dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    put_attribute(dataset, "DIMENSION_LIST", H5T_STD_I32LE, H5T_NATIVE_INT, 2, numbers);
    put_attribute(dataset, "DIMENSION_LABELS", H5T_STD_I32LE, H5T_NATIVE_INT, 2, numbers);
    H5Dclose(dataset);
    attach(file, "e", 1, (const char *[]){"d"});
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"), "G /\nA /d float32 (4x6)\nA /e float32 (4x6)\n"));
}

/* ---- Names and the function ---- */

Test(hdf5_list, names_are_those_of_specs)
{
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "/a b[0]", H5T_STD_U8LE, 1, dims, NULL, 0);
    h5_put(file, "/a b", H5T_IEEE_F64LE, 1, dims, NULL, 0);
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5:/a b"), "A /a b float64 (4)\n"));
    cr_assert(eq(str, list("a.h5:/a b[0]"), "A /a b[0] uint8 (4)\n"));
    cr_assert(eq(str, list("a.h5:/a b[1:2]"), "A /a b float64 (4)\n"));
    cr_assert(eq(str, (char *)list_word("a.h5:/ab"), "not-found"));
    cr_assert(strstr(last_error.message, "'/a b'") != NULL);
    cr_assert(eq(str, (char *)list_word("a.h5:/ab[0]"), "not-found"));
    cr_assert(eq(str, last_error.argument, "a.h5:/ab[0]"));
    cr_assert(eq(str, (char *)list_word("no.h5"), "not-found"));
}

Test(hdf5_list, the_function_ends_it_or_passes_a_group_over_or_opens_arrays)
{
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "/g/d", H5T_STD_U8LE, 1, dims, NULL, 0);
    h5_put(file, "/h/d", H5T_STD_U8LE, 1, dims, NULL, 0);
    H5Fclose(file);
    told.opens = true;
    told.past = "/g";
    cr_assert(eq(str, list("a.h5"), "G /\nG /g\nG /h\nA /h/d uint8 (4)\n"));
    told.past = NULL;
    told.end_at = 3;
    cr_assert(eq(str, list("a.h5"), "G /\nG /g\nA /g/d uint8 (4)\n"));
    told.end_at = 1;
    cr_assert(eq(str, list("a.h5"), "G /\n"));
}

/* ---- Other formats ---- */

Test(hdf5_list, a_file_of_one_array_is_that_array)
{
    npy_put("a.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24);
    cr_assert(eq(str, list("a.npy"), "A  float32 (2x3)\n"));
    cr_assert(eq(str, (char *)list_word("b.npy"), "not-found"));
    cr_assert(eq(str, (char *)list_word("a.csv"), "bad-argument"));
}
