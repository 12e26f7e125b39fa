/* What is in an HDF5 file: entries in their order, what they say, and files in every shape of
 * trouble. */
#include "support.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(hdf5_list, .init = folder_make, .fini = folder_remove);

static const hsize_t dims[2] = {4, 6}, chunk[2] = {2, 3};

/* ---- A list as a text: a line for each entry ---- */

struct told {
    char text[1 << 18];
    size_t n_chars, n_attributes, n_texts;
    unsigned n, end_at;    /* end_at: the entry that ends the list; 0: none */
    const char *past;      /* a group that is passed over */
    const char *attribute; /* whose value is told instead */
    bool opens;            /* arrays, meanwhile */
};

static void say(struct told *told, const char *format, ...) GAD_PRINTF(2, 3);
static void say(struct told *told, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof(told->text) - told->n_chars;
    int n = vsnprintf(told->text + told->n_chars, room, format, arguments);
    va_end(arguments);
    cr_assert(n >= 0 && (size_t)n < room);
    told->n_chars += (size_t)n;
}

static void say_sizes(struct told *told, const char *before, int ndim, const int64_t *sizes)
{
    say(told, "%s", before);
    for (int i = 0; i < ndim; i++)
        say(told, "%s%" PRId64, i ? "x" : "", sizes[i]);
}

static void say_value(struct told *told, const struct gad_attribute *attribute)
{
    if (attribute->text)
        say(told, "'%s'", attribute->text);
    for (size_t i = 0; i < attribute->n_texts; i++)
        say(told, "%s'%s'", i ? " " : "", attribute->texts[i]);
    for (size_t i = 0; i < attribute->n_values; i++) {
        const struct gad_scalar *value = &attribute->values[i];
        say(told, "%s", i ? " " : "");
        switch (value->kind) {
        case GAD_SCALAR_FLOAT: say(told, "%.17g", value->float_value); break;
        case GAD_SCALAR_UINT: say(told, "%" PRIu64 "u", value->uint_value); break;
        case GAD_SCALAR_BOOL: say(told, value->int_value ? "True" : "False"); break;
        default: say(told, "%" PRId64, value->int_value); break;
        }
    }
    if (!attribute->text && attribute->n_texts + attribute->n_values == 0)
        say(told, "?");
}

static void say_array(struct told *told, const struct gad_listed *entry)
{
    say_sizes(told, " (", entry->ndim, entry->shape);
    say(told, ")");
    if (entry->chunk_shape)
        say_sizes(told, " by ", entry->ndim, entry->chunk_shape);
    if (*entry->filters)
        say(told, " [%s]", entry->filters);
    for (int i = 0; entry->dimensions && i < entry->ndim; i++)
        say(told, "%s%s", i ? "," : " ", entry->dimensions[i] ? entry->dimensions[i] : "-");
    say(told, entry->is_served ? "" : " unserved");
}

static int take(void *userdata, const struct gad_listed *entry)
{
    struct told *told = userdata;
    told->n++;
    told->n_attributes += entry->n_attributes;
    for (size_t i = 0; i < entry->n_attributes; i++)
        told->n_texts += entry->attributes[i].text != NULL;
    for (size_t i = 0; told->attribute && i < entry->n_attributes; i++)
        if (strcmp(entry->attributes[i].name, told->attribute) == 0)
            say_value(told, &entry->attributes[i]);
    if (!told->attribute) {
        say(told, "%c %s", "AGO"[entry->kind], entry -> name);
        if (entry->type)
            say(told, " %s", entry->type);
        if (entry->kind == GAD_LISTED_ARRAY)
            say_array(told, entry);
        say(told, "\n");
    }
    if (told->opens && entry->kind == GAD_LISTED_ARRAY) {
        char spec[300];
        snprintf(spec, sizeof(spec), "a.h5:%s", entry->name);
        gad_array_release(open_ok(spec));
    }
    if (told->past && strcmp(told->past, entry->name) == 0)
        return GAD_LIST_PAST;
    return told->n == told->end_at ? GAD_LIST_END : GAD_LIST_ON;
}

static struct told told;

static const char *list_word(const char *spec)
{
    int n = descriptor_count();
    told.n = 0;
    told.n_chars = 0;
    told.text[0] = '\0';
    int r = format_list(spec, take, &told, &last_error);
    cr_assert(eq(int, descriptor_count(), n), "%s", spec);
    if (r)
        cr_assert(last_error.status == (enum gad_status)r && last_error.message[0], "%s", spec);
    return error_word(r);
}

static char *list(const char *spec)
{
    const char *word = list_word(spec);
    cr_assert(eq(str, (char *)word, "ok"), "%s: %s", spec, last_error.message);
    return told.text;
}

static char *value(const char *spec, const char *attribute)
{
    told.attribute = attribute;
    char *text = list(spec);
    told.attribute = NULL;
    return text;
}

/* ---- What there is ---- */

static void link_soft(hid_t file, const char *target, const char *name)
{
    cr_assert(H5Lcreate_soft(target, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void link_hard(hid_t file, const char *target, const char *name)
{
    cr_assert(H5Lcreate_hard(file, target, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void link_external(hid_t file, const char *other, const char *target, const char *name)
{
    cr_assert(H5Lcreate_external(other, target, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void make_group(hid_t file, const char *name)
{
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(group > 0);
    H5Gclose(group);
}

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
                 "A /half an unusual float of 2 bytes (4x6) unserved\n"
                 "A /none nothing, of type int8 () unserved\n"
                 "A /packed float32 (4x6) by 2x3 "
                 "[shuffle, deflate 6, fletcher32]\n"
                 "O /type a named type: an unusual float of 2 bytes\n"
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

static void put_attribute(hid_t object, const char *name, hid_t stored, hid_t memory, hsize_t n,
                          const void *values)
{
    hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(attribute > 0 && H5Awrite(attribute, memory, values) >= 0, "%s", name);
    H5Aclose(attribute);
    H5Sclose(space);
}

static hid_t text_type(size_t n_bytes, H5T_str_t padding)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    cr_assert(H5Tset_size(type, n_bytes) >= 0 && H5Tset_strpad(type, padding) >= 0);
    return type;
}

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

static void put_scale(hid_t file, const char *name, const char *own_name)
{
    h5_put(file, name, H5T_IEEE_F64LE, 1, dims, NULL, 0);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), type = text_type(16, H5T_STR_NULLTERM);
    put_attribute(dataset, "CLASS", type, type, 0, "DIMENSION_SCALE");
    H5Tset_size(type, 64);
    char text[64] = "";
    snprintf(text, sizeof(text), "%s", own_name);
    put_attribute(dataset, "NAME", type, type, 0, text);
    H5Dclose(dataset);
}

/* scales: of each axis its path, or NULL. */
static void attach(hid_t file, const char *name, hsize_t ndim, const char *const *scales)
{
    hvl_t lists[4] = {{0, NULL}};
    hobj_ref_t references[4];
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), dataset = H5Dopen2(file, name, H5P_DEFAULT);
    for (hsize_t i = 0; i < ndim; i++)
        if (scales[i]) {
            cr_assert(H5Rcreate(&references[i], file, scales[i], H5R_OBJECT, -1) >= 0);
            lists[i] = (hvl_t){1, &references[i]};
        }
    put_attribute(dataset, "DIMENSION_LIST", type, type, ndim, lists);
    H5Dclose(dataset);
}

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

/* ---- Links ---- */

Test(hdf5_list, links_are_followed_or_said)
{
    hid_t other = h5_create("b.h5", 0);
    h5_put(other, "/g/d", H5T_STD_U8LE, 1, dims, NULL, 0);
    H5Fclose(other);
    cr_assert(mkfifo("pipe", 0600) == 0); /* opening it would wait for ever */
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "/g/d", H5T_IEEE_F64LE, 1, dims, NULL, 0);
    link_soft(file, "/g/d", "soft");
    link_soft(file, "/g", "soft_group");
    link_soft(file, "/nowhere", "broken");
    link_soft(file, "/self", "self");
    link_external(file, "b.h5", "/g/d", "there");
    link_external(file, "b.h5", "/g", "there_group");
    link_external(file, "no.h5", "/d", "no_file");
    link_external(file, "pipe", "/d", "pipe");
    link_external(file, ".", "/d", "folder");
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"),
                 "G /\n"
                 "O /broken a soft link to '/nowhere', which leads nowhere\n"
                 "O /folder a link to '/d' of '.', which leads nowhere\n"
                 "G /g\n"
                 "A /g/d float64 (4)\n"
                 "O /no_file a link to '/d' of 'no.h5', which leads nowhere\n"
                 "O /pipe a link to '/d' of 'pipe', which leads nowhere\n"
                 "O /self a soft link to '/self', which leads nowhere\n"
                 "A /soft float64 (4)\n"
                 "G /soft_group a soft link to '/g'\n"
                 "A /there uint8 (4)\n"
                 "G /there_group a link to '/g' of 'b.h5'\n"));
    cr_assert(eq(str, list("a.h5:/soft_group"), "G /soft_group\nA /soft_group/d float64 (4)\n"));
    cr_assert(eq(str, list("a.h5:/there_group"), "G /there_group\nA /there_group/d uint8 (4)\n"));
}

Test(hdf5_list, circles_and_groups_in_many_places_end)
{
    hid_t file = h5_create("a.h5", 0);
    make_group(file, "/a");
    make_group(file, "/a/b");
    link_hard(file, "/a", "/a/b/c");
    link_hard(file, "/", "/a/root");
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"),
                 "G /\nG /a\nG /a/b\nG /a/b/c the group '/a' again\n"
                 "G /a/root the group '/' again\n"));
    file = h5_create("b.h5", 0);
    char path[200] = "", one[204], two[204];
    for (int i = 0; i < 60; i++) { /* 2^60 paths */
        snprintf(one, sizeof(one), "%s/x", path);
        snprintf(two, sizeof(two), "%s/y", path);
        make_group(file, one);
        link_hard(file, one, two);
        snprintf(path, sizeof(path), "%.198s", one);
    }
    H5Fclose(file);
    list("b.h5");
    cr_assert(eq(u32, told.n, 1 + 2 * 60));
}

Test(hdf5_list, groups_lie_deep_and_then_too_deep)
{
    hid_t file = h5_create("a.h5", 0), group = H5Gopen2(file, "/", H5P_DEFAULT);
    for (int i = 0; i < 300; i++) {
        hid_t next = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        group = next;
    }
    H5Gclose(group);
    H5Fclose(file);
    char *text = list("a.h5"), *end = strstr(text, " a group that lies too deep");
    cr_assert(eq(u32, told.n, 257));
    cr_assert(end && strcmp(end, " a group that lies too deep to be looked into\n") == 0);
}

/* More than is read at a time. */
Test(hdf5_list, a_group_may_have_very_many_links)
{
    static char name[1024];
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    memset(name, 'n', 1000);
    told.attribute = "none";
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(name + 1000, 8, "%u", i);
        link_soft(file, "/x", name);
    }
    H5Fclose(file);
    list("a.h5");
    cr_assert(eq(u32, told.n, 10001));
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

/* ---- Damage ---- */

static char *read_file(const char *path, size_t *ret_n_bytes)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    cr_assert(f && fstat(fileno(f), &st) == 0);
    char *bytes = malloc((size_t)st.st_size);
    cr_assert(fread(bytes, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
    fclose(f);
    *ret_n_bytes = (size_t)st.st_size;
    return bytes;
}

static void make_damaged(const char *path, bool is_latest)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (is_latest)
        cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    const int one = 1;
    char name[16];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "/g%d/d", i % 10);
        if (i >= 10)
            snprintf(name, sizeof(name), "/d%d", i);
        h5_put(file, name, H5T_IEEE_F64LE, 2, dims, i % 2 ? chunk : NULL, 0);
    }
    hid_t dataset = H5Dopen2(file, "d20", H5P_DEFAULT);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        put_attribute(dataset, name, H5T_STD_I32LE, H5T_NATIVE_INT, 0, &one);
    }
    H5Dclose(dataset);
    H5Fclose(file);
    H5Pclose(fapl);
}

/* HDF5 looks at the marks of its structures; so each that it meets is a part that cannot be read.
 */
static unsigned spoil_marks(const char *path)
{
    static const char *const marks[] = {"SNOD", "TREE", "HEAP", "OHDR", "OCHK",
                                        "FRHP", "FHDB", "BTHD", "BTLF"};
    size_t n_bytes;
    unsigned n = 0, n_told = 0;
    char *bytes = read_file(path, &n_bytes);
    list(path);
    unsigned whole = told.n;
    for (size_t at = 0; at + 4 < n_bytes; at++) {
        bool is_mark = false;
        for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
            is_mark |= memcmp(bytes + at, marks[i], 4) == 0;
        if (!is_mark)
            continue;
        bytes[at] ^= 1;
        file_put("damaged.h5", bytes, n_bytes);
        bytes[at] ^= 1;
        const char *word = list_word("damaged.h5");
        cr_assert(strcmp(word, "ok") == 0 || strcmp(word, "bad-format") == 0, "at %zu: %s", at,
                  word);
        n++;
        n_told += strcmp(word, "ok") == 0 && told.n > whole / 2 && told.n <= whole + 1;
    }
    free(bytes);
    cr_assert(n > 20, "%u marks", n);
    return n_told;
}

Test(hdf5_list, what_is_sound_is_listed_whatever_is_damaged)
{
    make_damaged("old.h5", false);
    make_damaged("new.h5", true);
    cr_assert(spoil_marks("old.h5") > 20);
    cr_assert(spoil_marks("new.h5") > 20);
}

Test(hdf5_list, an_object_that_cannot_be_read_is_an_entry)
{
    size_t n_bytes;
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    h5_put(file, "/d", H5T_STD_U8LE, 1, dims, NULL, 0);
    h5_put(file, "/e", H5T_STD_U8LE, 1, dims, NULL, 0);
    H5Fclose(file);
    char *bytes = read_file("a.h5", &n_bytes);
    unsigned n = 0;
    for (size_t at = 100; at + 4 < n_bytes; at++) /* the root's header comes before */
        if (memcmp(bytes + at, "OHDR", 4) == 0 && n++ == 0)
            memcpy(bytes + at, "oops", 4);
    file_put("a.h5", bytes, n_bytes);
    free(bytes);
    cr_assert(n >= 2);
    char *text = list("a.h5");
    cr_assert(strstr(text, "O /d an object that HDF5 cannot read\n") ||
              strstr(text, "O /e an object that HDF5 cannot read\n"));
    cr_assert(eq(u32, told.n, 3));
}

Test(hdf5_list, files_that_end_early_or_are_none_are_refused)
{
    size_t n_bytes;
    make_damaged("a.h5", false);
    char *bytes = read_file("a.h5", &n_bytes);
    for (size_t n = 0; n < n_bytes; n += n_bytes / 20) {
        file_put("cut.h5", bytes, n);
        const char *word = list_word("cut.h5");
        cr_assert(strcmp(word, "short-read") == 0 || strcmp(word, "bad-format") == 0, "%zu: %s", n,
                  word);
    }
    free(bytes);
    file_put("text.h5", "hello", 5);
    cr_assert(eq(str, (char *)list_word("text.h5"), "bad-format"));
    cr_assert(mkdir("folder.h5", 0755) == 0 && mkfifo("pipe.h5", 0600) == 0);
    cr_assert(eq(str, (char *)list_word("folder.h5"), "bad-descriptor"));
    cr_assert(eq(str, (char *)list_word("pipe.h5"), "bad-descriptor"));
}

/* ---- Other formats ---- */

Test(hdf5_list, a_file_of_one_array_is_that_array)
{
    npy_put("a.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24);
    cr_assert(eq(str, list("a.npy"), "A  float32 (2x3)\n"));
    cr_assert(eq(str, (char *)list_word("b.npy"), "not-found"));
    cr_assert(eq(str, (char *)list_word("a.csv"), "bad-argument"));
}
