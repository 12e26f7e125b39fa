/* Attributes of datasets: numbers and texts that say what elements mean, and names of axes.
 *
 * Numbers are read exactly: the usual fill values of 64-bit integers are beyond what a double tells
 * apart. Texts are of fixed or variable length, and are cut at the first NUL. The axes of a dataset
 * are named by the dimension scales that its attribute DIMENSION_LIST refers to; a dataset that is
 * a scale itself, as netCDF's coordinate variables are, names its own axis. Nothing of this can
 * make a dataset unreadable: what is not as it should be is left out.
 *
 * By netCDF's convention integers with an attribute `_Unsigned` are of the other sign where it says
 * so, and so are those of their attributes that are elements: the same bits.
 *
 * Called by hdf5.c.
 */
#include "client/formats/hdf5/hdf5_attributes.h"
#include "client/formats/attributes.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_scales.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "client/formats/hdf5/listing/hdf5_varying.h"
#include "proto/util.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_VALUES     64
#define MAX_TEXT_BYTES 65536 /* HDF5's own limit of a compact attribute */
#define MAX_NAME_BYTES 1024

/* ---- Attributes ---- */

static void take_varying(void *userdata, size_t i, struct hdf5_varying element)
{
    char **text = userdata;
    (void)i;
    if (element.items && element.n_items <= MAX_TEXT_BYTES)
        *text = strndup((const char *)element.items, element.n_items);
}

/* A heap string; NULL: it is none, or too long. */
static char *read_text(hid_t attribute, hid_t type)
{
    if (H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        struct hdf5_heap heap = {.is_known = false};
        (void)hdf5_varying_read(&heap, attribute, 1, 1, take_varying, &text);
        hdf5_heap_deinit(&heap);
        return text;
    }
    size_t n = H5Tget_size(type);
    if (n == 0 || n > MAX_TEXT_BYTES)
        return NULL;
    char *text = calloc(1, n + 1);
    if (text && H5Aread(attribute, type, text) >= 0)
        return text;
    free(text);
    return NULL;
}

struct taker {
    struct gad_array *array;
    enum dtype stored; /* of the elements, which may be meant with the other sign */
};

static void take_text(struct gad_array *array, const char *name, hid_t attribute, hid_t type)
{
    char *text = read_text(attribute, type);
    if (!text)
        return;
    const struct gad_attribute taken = {.name = name, .text = text};
    attribute_take(array, &taken);
    free(text);
}

/* ---- The sign that is meant ---- */

static bool is_integer(enum dtype dtype)
{
    return dtype >= DTYPE_INT8 && dtype <= DTYPE_UINT64;
}

static enum dtype with_sign(enum dtype dtype, bool is_unsigned)
{
    if (!is_integer(dtype) || is_unsigned == (dtype >= DTYPE_UINT8))
        return dtype;
    return is_unsigned ? dtype - DTYPE_INT8 + DTYPE_UINT8 : dtype - DTYPE_UINT8 + DTYPE_INT8;
}

enum dtype hdf5_attributes_sign(hid_t dataset, enum dtype dtype)
{
    if (!is_integer(dtype) || H5Aexists(dataset, "_Unsigned") <= 0)
        return dtype;
    _cleanup_hid_ hid_t attribute = H5Aopen(dataset, "_Unsigned", H5P_DEFAULT);
    _cleanup_hid_ hid_t type = attribute > 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    _cleanup_hid_ hid_t space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    bool is_text = type > 0 && space > 0 && H5Tget_class(type) == H5T_STRING &&
                   H5Sget_simple_extent_npoints(space) == 1;
    _cleanup_free_ char *text = is_text ? read_text(attribute, type) : NULL;
    if (text && strcasecmp(text, "true") == 0)
        return with_sign(dtype, true);
    return text && strcasecmp(text, "false") == 0 ? with_sign(dtype, false) : dtype;
}

static bool is_of_elements(const char *name)
{
    static const char *const names[] = {"_FillValue", "missing_value", "valid_min", "valid_max",
                                        "valid_range"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Values of the elements' dtype as it lies there. */
static void change_sign(struct gad_attribute *taken, enum dtype dtype)
{
    struct gad_scalar *values = (struct gad_scalar *)taken->values;
    unsigned shift = 64 - 8 * (unsigned)dtype_size(dtype);
    bool is_unsigned = dtype >= DTYPE_UINT8;
    for (size_t i = 0; i < taken->n_values; i++) {
        uint64_t bits = values[i].uint_value << shift;
        values[i].kind = is_unsigned ? GAD_SCALAR_UINT : GAD_SCALAR_INT;
        if (is_unsigned)
            values[i].uint_value = bits >> shift;
        else
            values[i].int_value = (int64_t)bits >> shift;
    }
    taken->dtype = (enum gad_dtype)dtype;
}

static void take_integers(struct gad_attribute *taken, hid_t attribute, hid_t type)
{
    struct gad_scalar *values = (struct gad_scalar *)taken->values;
    union {
        int64_t i64[MAX_VALUES];
        uint64_t u64[MAX_VALUES];
    } read;
    bool is_unsigned = H5Tget_sign(type) == H5T_SGN_NONE;
    if (H5Aread(attribute, is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, &read) < 0)
        return;
    for (size_t i = 0; i < taken->n_values; i++) {
        values[i].kind = is_unsigned ? GAD_SCALAR_UINT : GAD_SCALAR_INT;
        values[i].uint_value = read.u64[i];
    }
}

static void take_numbers(const struct taker *taker, const char *name, hid_t attribute, hid_t type,
                         size_t n)
{
    struct gad_scalar values[MAX_VALUES] = {{GAD_SCALAR_NONE}};
    double floats[MAX_VALUES];
    enum dtype dtype;
    bool is_swapped;
    struct gad_attribute taken = {.name = name, .n_values = n, .values = values};
    if (n > MAX_VALUES)
        return;
    taken.is_dtype_known = hdf5_type_to_dtype(type, &dtype, &is_swapped);
    taken.dtype = taken.is_dtype_known ? (enum gad_dtype)dtype : GAD_BOOL;
    if (H5Tget_class(type) == H5T_INTEGER)
        take_integers(&taken, attribute, type);
    else if (H5Aread(attribute, H5T_NATIVE_DOUBLE, floats) >= 0)
        for (size_t i = 0; i < n; i++)
            values[i] = (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = floats[i]};
    enum dtype own = (enum dtype)taker->array->info.dtype;
    if (taken.is_dtype_known && dtype == taker->stored && own != dtype && is_of_elements(name))
        change_sign(&taken, own);
    if (values[0].kind != GAD_SCALAR_NONE)
        attribute_take(taker->array, &taken);
}

static herr_t take_attribute(hid_t dataset, const char *name, const H5A_info_t *info, void *data)
{
    const struct taker *taker = data;
    (void)info;
    if (!attribute_is_kept(name))
        return 0;
    _cleanup_hid_ hid_t attribute = H5Aopen(dataset, name, H5P_DEFAULT);
    _cleanup_hid_ hid_t type = attribute > 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    _cleanup_hid_ hid_t space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    hssize_t n = type > 0 && space > 0 ? H5Sget_simple_extent_npoints(space) : -1;
    H5T_class_t class = n > 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    if (class == H5T_STRING && n == 1)
        take_text(taker->array, name, attribute, type);
    else if (class == H5T_INTEGER || class == H5T_FLOAT)
        take_numbers(taker, name, attribute, type, (size_t)n);
    return 0;
}

void hdf5_attributes_take(hid_t dataset, struct gad_array *array)
{
    bool is_swapped;
    struct taker taker = {.array = array, .stored = (enum dtype)array->info.dtype};
    _cleanup_hid_ hid_t type = H5Dget_type(dataset);
    if (type > 0)
        (void)hdf5_type_to_dtype(type, &taker.stored, &is_swapped);
    (void)H5Aiterate2(dataset, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, take_attribute, &taker);
}

/* ---- Names of axes ---- */

/* What a scale says of an axis; heap strings. */
struct axis_names {
    char *names[ARRAY_MAX_NDIM];
    char *coordinates[ARRAY_MAX_NDIM]; /* paths of scales with values of their own */
    struct axis_limits limits;
};

static void name_axis(struct axis_names *axes, int axis, hid_t scale)
{
    char path[MAX_NAME_BYTES];
    ssize_t n = H5Iget_name(scale, path, sizeof(path));
    if (n <= 0 || n >= (ssize_t)sizeof(path))
        return;
    axes->names[axis] = strdup(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    axes->limits.is_unlimited[axis] = hdf5_scale_is_unlimited(scale);
    if (!hdf5_scale_is_bare(scale))
        axes->coordinates[axis] = strdup(path);
}

static void name_by_list(struct axis_names *axes, int axis, hid_t dataset, const hvl_t *scales)
{
    if (scales->len == 0)
        return;
    _cleanup_hid_ hid_t scale =
        H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, &((hobj_ref_t *)scales->p)[0]);
    if (scale > 0)
        name_axis(axes, axis, scale);
}

/* False: it has no such list. */
static bool read_list(hid_t dataset, int ndim, struct axis_names *axes)
{
    hvl_t lists[ARRAY_MAX_NDIM];
    _cleanup_hid_ hid_t type = hdf5_scale_read_list(dataset, ndim, lists);
    if (type <= 0)
        return false;
    for (int i = 0; i < ndim; i++)
        name_by_list(axes, i, dataset, &lists[i]);
    hdf5_scale_free_list(type, ndim, lists);
    return true;
}

static void read_chunks(hid_t dataset, int ndim, struct axis_limits *limits)
{
    hsize_t chunks[ARRAY_MAX_NDIM];
    _cleanup_hid_ hid_t how = H5Dget_create_plist(dataset);
    if (how <= 0 || H5Pget_layout(how) != H5D_CHUNKED || H5Pget_chunk(how, ndim, chunks) != ndim)
        return;
    for (int i = 0; i < ndim; i++)
        limits->chunks[i] = (int64_t)chunks[i];
}

void hdf5_dimensions_take(hid_t dataset, const struct selection *selection, struct gad_array *array)
{
    struct axis_names axes = {.names = {NULL}};
    int ndim = selection->source_ndim;
    if (!read_list(dataset, ndim, &axes) && ndim == 1 && hdf5_scale_is(dataset))
        name_axis(&axes, 0, dataset);
    attribute_take_dimensions(array, selection, (const char *const *)axes.names);
    attribute_take_coordinates(array, selection, (const char *const *)axes.coordinates);
    read_chunks(dataset, ndim, &axes.limits);
    attribute_take_limits(array, selection, &axes.limits);
    for (int i = 0; i < ndim; i++) {
        free(axes.names[i]);
        free(axes.coordinates[i]);
    }
}
