/* Dimension scales, by their attributes:
 *
 *     of a scale      CLASS           "DIMENSION_SCALE"
 *                     NAME            its name; of one without values netCDF's sentence, see below
 *                     REFERENCE_LIST  {dataset, dimension} of each axis that it names
 *                     _Netcdf4Dimid   its number among netCDF's dimensions
 *     of a dataset    DIMENSION_LIST  for each axis a list of references to scales; the first
 * counts
 *
 * An attribute is written anew as a whole, since HDF5's cannot grow. References to datasets that
 * were deleted are left out when a list is written.
 *
 * Called by hdf5_attributes.c for sources, by hdf5_dims.c for outputs.
 */
#include "client/formats/hdf5/hdf5_scales.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/listing/hdf5_varying.h"
#include "proto/array.h"
#include "proto/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS       "DIMENSION_SCALE"
#define BARE        "This is a netCDF dimension but not a netCDF variable."
#define MAX_OBJECTS 4096 /* that are searched for numbers */
#define BARE_CHARS  53   /* of it; the size follows, in ten characters */

struct reference { /* an entry of REFERENCE_LIST */
    hobj_ref_t dataset;
    int dimension;
};

struct references {
    size_t n;
    struct reference *list;
};

/* ---- Attributes ---- */

static bool write_text(hid_t object, const char *name, const char *text)
{
    _cleanup_hid_ hid_t type = H5Tcopy(H5T_C_S1);
    _cleanup_hid_ hid_t space = H5Screate(H5S_SCALAR);
    if (type <= 0 || space <= 0 || H5Tset_size(type, strlen(text) + 1) < 0 ||
        (H5Aexists(object, name) > 0 && H5Adelete(object, name) < 0))
        return false;
    _cleanup_hid_ hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    return attribute > 0 && H5Awrite(attribute, type, text) >= 0;
}

/* Whether an attribute is a text that begins with this. */
static bool text_begins(hid_t object, const char *name, const char *beginning)
{
    char text[256] = "";
    if (H5Aexists(object, name) <= 0)
        return false;
    _cleanup_hid_ hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    _cleanup_hid_ hid_t type = attribute > 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    _cleanup_hid_ hid_t space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    return type > 0 && space > 0 && H5Tget_class(type) == H5T_STRING &&
           H5Tis_variable_str(type) == 0 && H5Tget_size(type) < sizeof(text) &&
           H5Sget_simple_extent_npoints(space) == 1 && H5Aread(attribute, type, text) >= 0 &&
           strncmp(text, beginning, strlen(beginning)) == 0;
}

bool hdf5_scale_is(hid_t dataset)
{
    return text_begins(dataset, "CLASS", CLASS);
}

bool hdf5_scale_is_bare(hid_t dataset)
{
    return text_begins(dataset, "NAME", "This is a netCDF dimension but not a netCDF variable");
}

bool hdf5_scale_is_unlimited(hid_t dataset)
{
    hsize_t most[H5S_MAX_RANK];
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    return space > 0 && H5Sget_simple_extent_dims(space, NULL, most) > 0 &&
           most[0] == H5S_UNLIMITED;
}

bool hdf5_scale_make(hid_t dataset, const char *name, bool is_bare)
{
    char text[BARE_CHARS + 32];
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    if (space <= 0)
        return false;
    snprintf(text, sizeof(text), BARE "%10lld", (long long)H5Sget_simple_extent_npoints(space));
    return write_text(dataset, "CLASS", CLASS) &&
           write_text(dataset, "NAME", is_bare ? text : name);
}

/* ---- Lists of a dataset ---- */

static void take_references(void *userdata, size_t i, struct hdf5_varying element)
{
    hvl_t *lists = userdata;
    size_t n_bytes = element.n_items * sizeof(hobj_ref_t);
    lists[i].p = n_bytes ? malloc(n_bytes) : NULL;
    if (!lists[i].p)
        return;
    memcpy(lists[i].p, element.items, n_bytes);
    lists[i].len = element.n_items;
}

/* What is only read may be damaged in ways that HDF5 does not expect. */
static bool read_lists(hid_t dataset, hid_t attribute, hid_t type, int ndim, hvl_t *ret_lists)
{
    unsigned intent = H5F_ACC_RDWR;
    _cleanup_hid_ hid_t file = H5Iget_file_id(dataset);
    if (file <= 0 || H5Fget_intent(file, &intent) < 0 || (intent & H5F_ACC_RDWR))
        return H5Aread(attribute, type, ret_lists) >= 0;
    struct hdf5_heap heap = {.is_known = false};
    memset(ret_lists, 0, (size_t)ndim * sizeof(*ret_lists));
    bool is_read = hdf5_varying_read(&heap, attribute, (size_t)ndim, sizeof(hobj_ref_t),
                                     take_references, ret_lists);
    hdf5_heap_deinit(&heap);
    for (int i = 0; !is_read && i < ndim; i++)
        free(ret_lists[i].p);
    return is_read;
}

hid_t hdf5_scale_read_list(hid_t dataset, int ndim, hvl_t *ret_lists)
{
    if (ndim == 0 || H5Aexists(dataset, "DIMENSION_LIST") <= 0)
        return H5I_INVALID_HID;
    _cleanup_hid_ hid_t attribute = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
    _cleanup_hid_ hid_t space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    _cleanup_hid_ hid_t stored = attribute > 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
    if (space > 0 && stored > 0 && type > 0 && H5Tequal(stored, type) > 0 &&
        H5Sget_simple_extent_npoints(space) == ndim &&
        read_lists(dataset, attribute, type, ndim, ret_lists))
        return type;
    hdf5_close(&type);
    return H5I_INVALID_HID;
}

void hdf5_scale_free_list(hid_t type, int ndim, hvl_t *lists)
{
    hsize_t n = (hsize_t)ndim;
    _cleanup_hid_ hid_t space = H5Screate_simple(1, &n, NULL);
    if (space > 0)
        (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists);
}

static bool write_list(hid_t dataset, int ndim, hvl_t *lists)
{
    hsize_t n = (hsize_t)ndim;
    _cleanup_hid_ hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
    _cleanup_hid_ hid_t space = H5Screate_simple(1, &n, NULL);
    if (type <= 0 || space <= 0 ||
        (H5Aexists(dataset, "DIMENSION_LIST") > 0 && H5Adelete(dataset, "DIMENSION_LIST") < 0))
        return false;
    _cleanup_hid_ hid_t attribute =
        H5Acreate2(dataset, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT);
    return attribute > 0 && H5Awrite(attribute, type, lists) >= 0;
}

/* ---- Lists of a scale ---- */

static hid_t reference_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct reference));
    if (type > 0 &&
        (H5Tinsert(type, "dataset", offsetof(struct reference, dataset), H5T_STD_REF_OBJ) < 0 ||
         H5Tinsert(type, "dimension", offsetof(struct reference, dimension), H5T_NATIVE_INT) < 0))
        hdf5_close(&type);
    return type;
}

/* *ret->list has room for `more` others; to be freed. False: HDF5 fails, or memory is short. */
static bool read_references(hid_t scale, size_t more, struct references *ret)
{
    *ret = (struct references){0, NULL};
    _cleanup_hid_ hid_t type = reference_type();
    _cleanup_hid_ hid_t attribute = H5I_INVALID_HID, space = H5I_INVALID_HID;
    hssize_t n = 0;
    if (H5Aexists(scale, "REFERENCE_LIST") > 0) {
        attribute = H5Aopen(scale, "REFERENCE_LIST", H5P_DEFAULT);
        space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
        n = space > 0 ? H5Sget_simple_extent_npoints(space) : -1;
    }
    if (type <= 0 || n < 0)
        return false;
    ret->list = calloc((size_t)n + more + 1, sizeof(*ret->list));
    if (!ret->list)
        return false;
    if (n > 0 && H5Aread(attribute, type, ret->list) < 0)
        n = 0; /* of another form: it is written anew */
    for (hssize_t i = 0; i < n; i++) {
        _cleanup_hid_ hid_t dataset =
            H5Rdereference2(scale, H5P_DEFAULT, H5R_OBJECT, &ret->list[i].dataset);
        if (dataset > 0)
            ret->list[ret->n++] = ret->list[i];
    }
    return true;
}

static bool write_references(hid_t scale, const struct references *references)
{
    hsize_t n = references->n;
    _cleanup_hid_ hid_t type = reference_type();
    _cleanup_hid_ hid_t space = H5Screate_simple(1, &n, NULL);
    if (type <= 0 || space <= 0 ||
        (H5Aexists(scale, "REFERENCE_LIST") > 0 && H5Adelete(scale, "REFERENCE_LIST") < 0))
        return false;
    if (n == 0)
        return true;
    _cleanup_hid_ hid_t attribute =
        H5Acreate2(scale, "REFERENCE_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT);
    return attribute > 0 && H5Awrite(attribute, type, references->list) >= 0;
}

static bool add_reference(hid_t scale, hobj_ref_t dataset, int dimension)
{
    struct references references;
    bool is_done = read_references(scale, 1, &references);
    if (is_done) {
        references.list[references.n++] = (struct reference){dataset, dimension};
        is_done = write_references(scale, &references);
    }
    free(references.list);
    return is_done;
}

/* ---- Naming axes ---- */

static bool refer_to(hid_t object, hobj_ref_t *ret)
{
    return H5Rcreate(ret, object, ".", H5R_OBJECT, -1) >= 0;
}

bool hdf5_scale_attach(hid_t dataset, int ndim, const hid_t *scales)
{
    hobj_ref_t references[ARRAY_MAX_NDIM], own;
    hvl_t lists[ARRAY_MAX_NDIM];
    bool is_done = refer_to(dataset, &own);
    for (int i = 0; i < ndim && is_done; i++) {
        is_done = refer_to(scales[i], &references[i]);
        lists[i] = (hvl_t){1, &references[i]};
    }
    is_done = is_done && write_list(dataset, ndim, lists);
    for (int i = 0; i < ndim && is_done; i++)
        is_done = add_reference(scales[i], own, i);
    return is_done;
}

/* One dataset whose axis was named by the old scale. */
static bool rename_axis(hid_t dataset, int dimension, hid_t new_scale)
{
    hvl_t lists[ARRAY_MAX_NDIM];
    hobj_ref_t reference;
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    int ndim = space > 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (ndim <= 0 || ndim > ARRAY_MAX_NDIM || dimension < 0 || dimension >= ndim)
        return true; /* not what the list says: nothing to rename */
    if (new_scale <= 0)
        return H5Aexists(dataset, "DIMENSION_LIST") <= 0 ||
               H5Adelete(dataset, "DIMENSION_LIST") >= 0;
    _cleanup_hid_ hid_t type = hdf5_scale_read_list(dataset, ndim, lists);
    if (type <= 0)
        return true;
    bool is_done = refer_to(new_scale, &reference);
    if (is_done && lists[dimension].len > 0) {
        ((hobj_ref_t *)lists[dimension].p)[0] = reference;
        is_done = write_list(dataset, ndim, lists);
    }
    hdf5_scale_free_list(type, ndim, lists);
    return is_done;
}

bool hdf5_scale_replace(hid_t old_scale, hid_t new_scale)
{
    struct references references;
    bool is_done = read_references(old_scale, 0, &references);
    for (size_t i = 0; i < references.n && is_done; i++) {
        _cleanup_hid_ hid_t dataset =
            H5Rdereference2(old_scale, H5P_DEFAULT, H5R_OBJECT, &references.list[i].dataset);
        is_done = dataset <= 0 || rename_axis(dataset, references.list[i].dimension, new_scale);
    }
    if (is_done && new_scale > 0)
        is_done = write_references(new_scale, &references);
    free(references.list);
    return is_done;
}

/* ---- Numbers ---- */

static int read_number(hid_t dataset)
{
    int number = -1;
    if (H5Aexists(dataset, "_Netcdf4Dimid") <= 0)
        return -1;
    _cleanup_hid_ hid_t attribute = H5Aopen(dataset, "_Netcdf4Dimid", H5P_DEFAULT);
    _cleanup_hid_ hid_t space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    if (space > 0 && H5Sget_simple_extent_npoints(space) == 1)
        (void)H5Aread(attribute, H5T_NATIVE_INT, &number);
    return number;
}

struct numbers {
    int n_left;  /* objects to be looked at still, so that a file of very many, or one whose groups
                    contain themselves, costs no more */
    int largest; /* -1: there is none */
    bool has_unnumbered;
};

/* Of a group and those below it, along hard links. */
static void find_numbers(hid_t group, struct numbers *numbers)
{
    H5G_info_t links;
    if (H5Gget_info(group, &links) < 0)
        return;
    for (hsize_t i = 0; i < links.nlinks && numbers->n_left-- > 0; i++) {
        char name[1024];
        H5L_info_t link;
        ssize_t n = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                       sizeof(name), H5P_DEFAULT);
        if (n <= 0 || n >= (ssize_t)sizeof(name) ||
            H5Lget_info(group, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
            continue;
        _cleanup_hid_ hid_t object = H5Oopen(group, name, H5P_DEFAULT);
        H5I_type_t kind = object > 0 ? H5Iget_type(object) : H5I_BADID;
        int number = kind == H5I_DATASET ? read_number(object) : -1;
        numbers->largest = number > numbers->largest ? number : numbers->largest;
        numbers->has_unnumbered |= kind == H5I_DATASET && number < 0 && hdf5_scale_is(object);
        if (kind == H5I_GROUP)
            find_numbers(object, numbers);
    }
}

int hdf5_scale_next_number(hid_t file)
{
    struct numbers numbers = {.n_left = MAX_OBJECTS, .largest = -1};
    find_numbers(file, &numbers);
    if (numbers.largest == INT32_MAX || (numbers.largest < 0 && numbers.has_unnumbered))
        return -1;
    return numbers.largest + 1;
}

bool hdf5_scale_set_number(hid_t dataset, int number)
{
    _cleanup_hid_ hid_t space = H5Screate(H5S_SCALAR);
    if (space <= 0 ||
        (H5Aexists(dataset, "_Netcdf4Dimid") > 0 && H5Adelete(dataset, "_Netcdf4Dimid") < 0))
        return false;
    _cleanup_hid_ hid_t attribute =
        H5Acreate2(dataset, "_Netcdf4Dimid", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    return attribute > 0 && H5Awrite(attribute, H5T_NATIVE_INT, &number) >= 0;
}
