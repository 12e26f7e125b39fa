/* What attributes mean: which elements are left out, how the others are scaled, and the dtype that
 * comes of it. */
#include "client/formats/attributes.h"
#include "client/formats/hdf5/hdf5_attributes.h"
#include "client/meaning.h"
#include "proto/util.h"
#include "support.h"

#include <math.h>

#define INT(n)   ((struct gad_scalar){.kind = GAD_SCALAR_INT, .int_value = (n)})
#define UINT(n)  ((struct gad_scalar){.kind = GAD_SCALAR_UINT, .uint_value = (n)})
#define FLOAT(n) ((struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = (n)})

static struct gad_array *array_of(enum gad_dtype dtype)
{
    struct gad_array *array = array_new(NULL, "hdf5", ACCESS_MEMORY, NULL);
    cr_assert(array != NULL);
    array->info.dtype = dtype;
    return array;
}

static void take(struct gad_array *array, const char *name, size_t n,
                 const struct gad_scalar *values)
{
    const struct gad_attribute attribute = {.name = name, .n_values = n, .values = values};
    attribute_take(array, &attribute);
}

static void take_text(struct gad_array *array, const char *name, const char *text)
{
    const struct gad_attribute attribute = {.name = name, .text = text};
    attribute_take(array, &attribute);
}

static void take_factor(struct gad_array *array, const char *name, enum gad_dtype dtype,
                        double value)
{
    const struct gad_scalar scalar = FLOAT(value);
    const struct gad_attribute attribute = {
        .name = name, .n_values = 1, .values = &scalar, .is_dtype_known = true, .dtype = dtype};
    attribute_take(array, &attribute);
}

static const struct gad_meaning *meaning(struct gad_array *array, enum gad_masking masking)
{
    struct gad_error error = {0};
    int r = attributes_apply(array, masking, "x", &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    return gad_array_meaning(array);
}

static const struct gad_meaning *meant(struct gad_array *array)
{
    return meaning(array, GAD_MASK_AND_SCALE);
}

/* The dtype of what is meant. */
static enum gad_dtype chosen(enum gad_dtype stored, int scale, int offset, bool has_fill)
{
    struct gad_array *array = array_of(stored);
    if (scale >= 0)
        take_factor(array, "scale_factor", (enum gad_dtype)scale, 0.5);
    if (offset >= 0)
        take_factor(array, "add_offset", (enum gad_dtype)offset, 1.5);
    if (has_fill)
        take(array, "_FillValue", 1, &INT(9));
    enum gad_dtype dtype = meant(array)->dtype;
    gad_array_release(array);
    return dtype;
}

Test(packing, has_the_dtypes_of_xarray)
{
    static const struct {
        enum gad_dtype stored;
        int scale, offset;
        bool has_fill;
        enum gad_dtype want;
    } cases[] = {
        {GAD_INT16, GAD_FLOAT32, GAD_FLOAT32, true, GAD_FLOAT32},
        {GAD_INT16, GAD_FLOAT64, GAD_FLOAT64, true, GAD_FLOAT64},
        {GAD_INT16, GAD_FLOAT32, GAD_FLOAT64, true, GAD_FLOAT64},
        {GAD_INT32, GAD_FLOAT32, GAD_FLOAT32, true, GAD_FLOAT64},
        {GAD_UINT32, GAD_FLOAT32, GAD_FLOAT32, false, GAD_FLOAT64},
        {GAD_FLOAT32, GAD_FLOAT32, GAD_FLOAT32, false, GAD_FLOAT32},
        {GAD_INT64, GAD_FLOAT32, GAD_FLOAT32, false, GAD_FLOAT32},
        {GAD_INT8, GAD_FLOAT32, -1, false, GAD_FLOAT32},
        {GAD_INT32, GAD_FLOAT32, -1, true, GAD_FLOAT32},
        {GAD_INT8, GAD_FLOAT64, -1, false, GAD_FLOAT64},
        {GAD_INT8, -1, GAD_FLOAT32, false, GAD_FLOAT64},
        {GAD_INT8, -1, -1, true, GAD_FLOAT32},
        {GAD_UINT16, -1, -1, true, GAD_FLOAT32},
        {GAD_INT32, -1, -1, true, GAD_FLOAT64},
        {GAD_UINT64, -1, -1, true, GAD_FLOAT64},
        {GAD_FLOAT32, -1, -1, true, GAD_FLOAT32},
        {GAD_FLOAT64, -1, -1, true, GAD_FLOAT64},
        {GAD_INT16, -1, -1, false, GAD_INT16},
        {GAD_BOOL, -1, -1, true, GAD_BOOL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        cr_assert(
            eq(int,
               (int)chosen(cases[i].stored, cases[i].scale, cases[i].offset, cases[i].has_fill),
               (int)cases[i].want),
            "case %zu", i);
}

Test(packing, is_computed_only_when_it_is_asked_for)
{
    for (int masking = GAD_MASK_UNSAID; masking <= GAD_MASK_AND_SCALE; masking++) {
        struct gad_array *array = array_of(GAD_INT16);
        take(array, "_FillValue", 1, &INT(-9999));
        take_text(array, "units", "m s-1");
        const struct gad_meaning *m = meaning(array, (enum gad_masking)masking);
        cr_assert(eq(str, (char *)m->packing, "_FillValue"));
        cr_assert(eq(str, (char *)m->units, "m s-1"));
        cr_assert(eq(int, m->is_unsaid, masking == GAD_MASK_UNSAID));
        cr_assert(eq(int, m->is_unpacked, masking == GAD_MASK_AND_SCALE));
        cr_assert(eq(int, (int)m->dtype, masking == GAD_MASK_AND_SCALE ? GAD_FLOAT32 : GAD_INT16));
        cr_assert(eq(int, (int)array->info.dtype, GAD_INT16));
        gad_array_release(array);
    }
    struct gad_array *plain = array_of(GAD_FLOAT32);
    take_text(plain, "long_name", "wind");
    take(plain, "_FillValue", 1, &FLOAT(NAN)); /* nothing else than NaN becomes NaN */
    const struct gad_meaning *m = meaning(plain, GAD_MASK_UNSAID);
    cr_assert(eq(str, (char *)m->packing, ""));
    cr_assert(not(m->is_unsaid));
    cr_assert(plain->info.has_fill);
    gad_array_release(plain);
    cr_assert(eq(ptr, (void *)gad_array_meaning(NULL), NULL));
    plain = array_of(GAD_UINT16); /* without attributes */
    cr_assert(eq(int, (int)gad_array_meaning(plain)->dtype, GAD_UINT16));
    cr_assert(eq(str, (char *)gad_array_meaning(plain)->packing, ""));
    cr_assert(eq(ptr, plain->meaning, NULL));
    gad_array_release(plain);
}

Test(packing, leaves_out_what_no_element_can_be)
{
    struct gad_array *array = array_of(GAD_INT16);
    const struct gad_scalar missing[] = {FLOAT(1e20), FLOAT(-0.5), INT(40000), FLOAT(-99),
                                         INT(-99),    FLOAT(NAN),  UINT(7),    FLOAT(1e300)};
    take(array, "missing_value", ARRAY_LENGTH(missing), missing);
    take_text(array, "_FillValue", "x");
    take(array, "valid_min", 1, &FLOAT(0.25));
    take(array, "valid_max", 1, &INT(100));
    const struct gad_meaning *m = meant(array);
    cr_assert(eq(sz, m->n_fills, 2));
    cr_assert(eq(int, (int)m->fills[0].int_value, -99));
    cr_assert(eq(int, (int)m->fills[1].int_value, 7));
    cr_assert(eq(int, (int)m->valid_min.kind, GAD_SCALAR_NONE));
    cr_assert(eq(int, (int)m->valid_max.uint_value, 100));
    cr_assert(eq(str, (char *)m->packing, "missing_value, valid_max"));
    cr_assert(not(array->info.has_fill)); /* of several values none is the fill value */
    gad_array_release(array);

    array = array_of(GAD_FLOAT32);
    take(array, "missing_value", 1, &FLOAT(-999.9)); /* rounded as the elements are */
    take(array, "_FillValue", 1, &FLOAT(1e300));     /* which no float32 is, infinity neither */
    m = meant(array);
    cr_assert(eq(sz, m->n_fills, 1));
    cr_assert(m->fills[0].float_value == (double)-999.9f);
    gad_array_release(array);
}

Test(packing, keeps_integers_of_64_bits)
{
    struct gad_array *array = array_of(GAD_UINT64);
    take(array, "_FillValue", 1, &UINT(UINT64_MAX - 1));
    take(array, "missing_value", 1, &FLOAT(0x1p64)); /* one more than there is */
    const struct gad_meaning *m = meant(array);
    cr_assert(eq(sz, m->n_fills, 1));
    cr_assert(eq(u64, m->fills[0].uint_value, UINT64_MAX - 1));
    gad_array_release(array);

    array = array_of(GAD_INT64);
    take(array, "_FillValue", 1, &INT(INT64_MIN));
    take(array, "missing_value", 1, &UINT((uint64_t)INT64_MAX + 1));
    m = meant(array);
    cr_assert(eq(sz, m->n_fills, 1));
    cr_assert(eq(i64, m->fills[0].int_value, INT64_MIN));
    gad_array_release(array);
}

Test(packing, reads_integers_as_unsigned_and_signed)
{
    struct gad_array *array = array_of(GAD_INT8);
    const struct gad_scalar range[] = {INT(0), INT(-6)};
    take_text(array, "_Unsigned", "true");
    take(array, "_FillValue", 1, &INT(-1));
    take(array, "valid_range", 2, range);
    const struct gad_meaning *m = meant(array);
    cr_assert(eq(u64, m->fills[0].uint_value, 255));
    cr_assert(eq(u64, m->valid_min.uint_value, 0));
    cr_assert(eq(u64, m->valid_max.uint_value, 250));
    cr_assert(eq(int, (int)m->dtype, GAD_FLOAT32));
    gad_array_release(array);

    array = array_of(GAD_INT32);
    take_text(array, "_Unsigned", "true");
    take(array, "_FillValue", 1, &UINT(4294967295));
    m = meant(array);
    cr_assert(eq(u64, m->fills[0].uint_value, 4294967295));
    gad_array_release(array);

    array = array_of(GAD_UINT16);
    take_text(array, "_Unsigned", "false");
    m = meant(array);
    cr_assert(eq(int, (int)m->dtype, GAD_INT16));
    cr_assert(eq(str, (char *)m->packing, "_Unsigned"));
    gad_array_release(array);

    array = array_of(GAD_FLOAT32);
    take_text(array, "_Unsigned", "true");
    cr_assert(eq(str, (char *)meant(array)->packing, ""));
    gad_array_release(array);
}

static void refused(const char *name, size_t n, const struct gad_scalar *values, const char *text,
                    const char *found)
{
    struct gad_error error = {0};
    struct gad_array *array = array_of(GAD_INT16);
    if (text)
        take_text(array, name, text);
    else
        take(array, name, n, values);
    int r = attributes_apply(array, GAD_MASK_AND_SCALE, "x.nc:/t", &error);
    cr_assert(eq(int, r, GAD_BAD_FORMAT), "%s", name);
    cr_assert(eq(str, error.argument, "x.nc:/t"));
    cr_assert(eq(str, error.found, (char *)found));
    cr_assert(strstr(error.message, name) != NULL, "%s", error.message);
    /* As it is stored it can be read all the same. */
    cr_assert(eq(int, attributes_apply(array, GAD_MASK_UNSAID, "x.nc:/t", &error), 0));
    gad_array_release(array);
}

Test(packing, refuses_factors_that_are_none)
{
    const struct gad_scalar two[] = {FLOAT(1), FLOAT(2)};
    refused("scale_factor", 1, &FLOAT(NAN), NULL, "nan");
    refused("add_offset", 1, &FLOAT(-INFINITY), NULL, "-inf");
    refused("scale_factor", 2, two, NULL, "2 numbers");
    refused("add_offset", 0, NULL, NULL, "0 numbers");
    refused("scale_factor", 0, NULL, "0.1", "the text '0.1'");
}

Test(packing, is_that_of_views, .init = folder_make, .fini = folder_remove)
{
    struct gad_array *array = array_of(GAD_INT16), *view = array_of(GAD_INT16);
    struct selection selection;
    const int64_t shape[3] = {4, 5, 6};
    const char *const names[3] = {"time", NULL, "lon"};
    const int axes[4] = {2, -1, 0, 1};
    const int64_t starts[4] = {5, 0, 1, 0}, steps[4] = {-2, 0, 1, 1};
    struct gad_error error;
    cr_assert(eq(int, selection_read("x[1:, :, ::-1]", 1, 3, shape, &selection, &error), 0));
    take(array, "_FillValue", 1, &INT(3));
    take_text(array, "units", "K");
    attribute_take_dimensions(array, &selection, names);
    cr_assert(eq(str, (char *)meant(array)->dimensions[2], "lon"));
    cr_assert(eq(ptr, (void *)meant(array)->dimensions[1], NULL));
    cr_assert(eq(int, meaning_copy_to_view(array, view, 4, axes, starts, steps), 0));
    gad_array_release(array);
    const struct gad_meaning *m = gad_array_meaning(view);
    cr_assert(eq(str, (char *)m->dimensions[0], "lon"));
    cr_assert(eq(str, (char *)m->dimensions[2], "time"));
    cr_assert(eq(ptr, (void *)m->dimensions[1], NULL));
    cr_assert(eq(i64, view->meaning->starts[0], 0)); /* 5 - 5 */
    cr_assert(eq(i64, view->meaning->steps[0], 2));
    cr_assert(eq(i64, view->meaning->starts[2], 2));
    cr_assert(m->is_unpacked);
    cr_assert(eq(str, (char *)m->units, "K"));
    cr_assert(eq(int, (int)meaning_dtype(view), GAD_FLOAT32));
    gad_array_release(view);
}

/* ---- From files ---- */

static void add_attribute(hid_t dataset, const char *name, hid_t type, hsize_t n, const void *data)
{
    hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(attribute > 0 && H5Awrite(attribute, type, data) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

/* A dataset whose attributes are of every kind, of those that are not meant so, too. */
static void put_strange_file(void)
{
    const hsize_t dims[2] = {3, 2};
    const short fill = -9;
    const float scale = 0.5f;
    const char *variable = "m s-1";
    const hobj_ref_t nothing[2] = {0, 0};
    const unsigned char many[200] = {1};
    hid_t file = h5_create("a.h5", 0), text = H5Tcopy(H5T_C_S1), long_text = H5Tcopy(H5T_C_S1);
    h5_put(file, "t", H5T_STD_I16BE, 2, dims, NULL, 0);
    hid_t dataset = H5Dopen2(file, "t", H5P_DEFAULT), compound = H5Tcreate(H5T_COMPOUND, 4);
    H5Tset_size(text, H5T_VARIABLE);
    H5Tset_size(long_text, 6);
    H5Tinsert(compound, "a", 0, H5T_NATIVE_INT);
    add_attribute(dataset, "_FillValue", H5T_NATIVE_SHORT, 1, &fill);
    add_attribute(dataset, "scale_factor", H5T_NATIVE_FLOAT, 0, &scale);
    add_attribute(dataset, "units", text, 0, &variable);
    add_attribute(dataset, "long_name", long_text, 0, "speeds"); /* no NUL */
    add_attribute(dataset, "missing_value", H5T_NATIVE_UCHAR, 200, many);
    add_attribute(dataset, "add_offset", compound, 0, &(int){1});
    add_attribute(dataset, "DIMENSION_LIST", H5T_STD_REF_OBJ, 2, nothing);
    H5Tclose(compound);
    H5Tclose(text);
    H5Tclose(long_text);
    H5Dclose(dataset);
    H5Fclose(file);
}

Test(packing, is_read_from_hdf5_whatever_else_is_there, .init = folder_make, .fini = folder_remove)
{
    put_strange_file();
    struct gad_array *array;
    struct gad_error error = {0};
    const struct gad_open_options options = {.masking = GAD_MASK_AND_SCALE};
    int r = format_open_as(NULL, "a.h5:/t", &options, &array, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    const struct gad_meaning *m = gad_array_meaning(array);
    cr_assert(eq(str, (char *)m->packing, "_FillValue, scale_factor"));
    cr_assert(eq(int, (int)m->dtype, GAD_FLOAT32));
    cr_assert(eq(str, (char *)m->units, "m s-1"));
    cr_assert(eq(str, (char *)m->long_name, "speeds"));
    cr_assert(eq(ptr, (void *)m->dimensions, NULL));
    cr_assert(not(array->is_writable));
    gad_array_release(array);
}

static int opened(const char *spec, const struct gad_open_options *options, struct gad_error *error)
{
    struct gad_array *array = NULL;
    int r = (int)gad_array_open_as(NULL, spec, options, &array, error);
    gad_array_release(array);
    return r;
}

Test(packing, cannot_be_written_in_place, .init = folder_make, .fini = folder_remove)
{
    struct gad_error error = {0};
    const struct gad_open_options both = {.in_place = true, .masking = GAD_MASK_AND_SCALE};
    const struct gad_open_options stored = {.in_place = true, .masking = GAD_AS_STORED};
    const struct gad_open_options unknown = {.masking = (enum gad_masking)7};
    put_strange_file();
    cr_assert(eq(int, opened("a.h5:/t", &both, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.argument, "masking"));
    cr_assert(eq(int, opened("a.h5:/t", &unknown, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, opened("a.h5:/t", NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, opened(NULL, &stored, &error), GAD_BAD_ARGUMENT));
    cr_assert(zero(int, opened("a.h5:/t", &stored, &error)), "%s", error.message);
    cr_assert(
        eq(int, (int)gad_array_open_as(NULL, "a.h5:/t", &stored, NULL, &error), GAD_BAD_ARGUMENT));
}
