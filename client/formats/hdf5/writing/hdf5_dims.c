/* What is written beside a new dataset: its attributes, and the names of its axes.
 *
 * As netCDF-4 has it, a name is a dataset beside the new one, a dimension scale, whose elements are
 * the coordinates along the axis where those are known. One that is there already is used where it
 * says the same: the same size, and the same coordinates or none. Where it does not, the axis gets
 * a name with a number, lat_2. A dataset of one axis with its own name is a scale itself.
 *
 * Where the dataset's axis has no limit the scale's has none, as netCDF's unlimited dimensions have
 * it: one that is there and has a limit says another thing.
 *
 * Where a scale is replaced by a new dataset, as when coordinates are computed anew, those whose
 * axes it names are told; a dataset of another size can name nothing of theirs.
 *
 * Called by hdf5_output.c, when the elements are written and the dataset is still hidden.
 */
#include "client/formats/hdf5/writing/hdf5_dims.h"
#include "client/carried.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_scales.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "client/formats/storage.h"
#include "proto/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 99 /* lat_99 */

struct dims {
    hid_t file, dataset;
    const char *path; /* where the dataset will be */
    size_t n_group;   /* characters of its group, the slash included */
    const struct gad_array *array;
    hsize_t most[H5S_MAX_RANK]; /* elements of its axes */
    int next_number;            /* -1: dimensions have none in this file */
};

/* ---- Attributes ---- */

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

static bool write_text(hid_t object, const struct meaning_attribute *attribute)
{
    size_t n = strlen(attribute->text);
    _cleanup_hid_ hid_t type = H5Tcopy(H5T_C_S1);
    _cleanup_hid_ hid_t space = H5Screate(H5S_SCALAR);
    if (type <= 0 || space <= 0 || H5Tset_size(type, n > 0 ? n : 1) < 0 ||
        (!is_ascii(attribute->text) && H5Tset_cset(type, H5T_CSET_UTF8) < 0))
        return false;
    _cleanup_hid_ hid_t made =
        H5Acreate2(object, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    return made > 0 && H5Awrite(made, type, attribute->text) >= 0;
}

/* Numbers of one kind, as the file's dtype if that is known. */
static bool write_numbers(hid_t object, const struct meaning_attribute *attribute)
{
    hsize_t n = attribute->n_values;
    enum gad_scalar_kind kind = attribute->values[0].kind;
    hid_t memory = kind == GAD_SCALAR_FLOAT  ? H5T_NATIVE_DOUBLE
                   : kind == GAD_SCALAR_UINT ? H5T_NATIVE_UINT64
                                             : H5T_NATIVE_INT64;
    _cleanup_free_ uint64_t *packed = malloc(n * sizeof(*packed));
    if (!packed)
        return false;
    for (hsize_t i = 0; i < n; i++)
        packed[i] = attribute->values[i].uint_value; /* whatever it is, it has 64 bits */
    _cleanup_hid_ hid_t type =
        attribute->is_dtype_known ? hdf5_type_make((enum dtype)attribute->dtype) : H5Tcopy(memory);
    _cleanup_hid_ hid_t space = H5Screate_simple(1, &n, NULL);
    if (type <= 0 || space <= 0)
        return false;
    _cleanup_hid_ hid_t made =
        H5Acreate2(object, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    return made > 0 && H5Awrite(made, memory, packed) >= 0;
}

static bool write_attributes(hid_t object, unsigned n, const struct meaning_attribute *list)
{
    for (unsigned i = 0; i < n; i++) {
        bool is_there = H5Aexists(object, list[i].name) > 0;
        if (is_there && H5Adelete(object, list[i].name) < 0)
            return false;
        if (list[i].text ? !write_text(object, &list[i])
                         : list[i].n_values > 0 && !write_numbers(object, &list[i]))
            return false;
    }
    return true;
}

/* ---- Scales ---- */

static bool has_size(hid_t dataset, int64_t size)
{
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    return space > 0 && H5Sget_simple_extent_ndims(space) == 1 &&
           H5Sget_simple_extent_npoints(space) == size;
}

static bool has_values(hid_t dataset, const struct carried_coordinate *coordinate)
{
    enum dtype dtype;
    bool is_swapped;
    _cleanup_hid_ hid_t stored = H5Dget_type(dataset);
    _cleanup_hid_ hid_t memory = hdf5_type_make((enum dtype)coordinate->dtype);
    if (stored <= 0 || memory <= 0 || !hdf5_type_to_dtype(stored, &dtype, &is_swapped) ||
        dtype != (enum dtype)coordinate->dtype)
        return false;
    struct carried_coordinate *found = coordinate_new(coordinate->dtype, coordinate->n, NULL);
    bool is_same = found &&
                   H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, found->values) >= 0 &&
                   coordinates_are_equal(found, coordinate);
    coordinate_free(found);
    return is_same;
}

/* Whether what is there says of axis i what is to be said. */
static bool says_the_same(const struct dims *dims, int i, hid_t found)
{
    const struct carried_coordinate *coordinate = dims->array->carried->coordinates[i];
    if (!hdf5_scale_is(found) || !has_size(found, dims->array->info.shape[i]) ||
        (dims->most[i] == H5S_UNLIMITED && !hdf5_scale_is_unlimited(found)))
        return false;
    return coordinate ? !hdf5_scale_is_bare(found) && has_values(found, coordinate)
                      : hdf5_scale_is_bare(found);
}

/* What has no limit is in chunks. */
static hid_t scale_properties(enum dtype dtype, int64_t size, bool is_unlimited)
{
    static const struct axis_limits limits = {.is_unlimited = {true}};
    int64_t chunk;
    hid_t how = hdf5_untimed(H5P_DATASET_CREATE);
    if (how <= 0 || !is_unlimited)
        return how;
    storage_choose_growing(dtype, 1, &size, &limits, &chunk);
    const hsize_t n = (hsize_t)chunk;
    if (H5Pset_chunk(how, 1, &n) < 0)
        hdf5_close(&how);
    return how;
}

/* The dataset of a scale, without values where there is no coordinate: netCDF's is of float32. */
static hid_t make_dataset(const struct dims *dims, int i, const char *path)
{
    const struct carried_coordinate *coordinate = dims->array->carried->coordinates[i];
    hsize_t size = (hsize_t)dims->array->info.shape[i];
    bool is_unlimited = dims->most[i] == H5S_UNLIMITED;
    enum dtype dtype = coordinate ? (enum dtype)coordinate->dtype : DTYPE_FLOAT32;
    _cleanup_hid_ hid_t space = H5Screate_simple(1, &size, is_unlimited ? &dims->most[i] : NULL);
    _cleanup_hid_ hid_t type = coordinate ? hdf5_type_make(dtype) : H5Tcopy(H5T_IEEE_F32BE);
    _cleanup_hid_ hid_t links = H5Pcreate(H5P_LINK_CREATE);
    _cleanup_hid_ hid_t how = scale_properties(dtype, (int64_t)size, is_unlimited);
    if (space <= 0 || type <= 0 || links <= 0 || how <= 0 ||
        H5Pset_create_intermediate_group(links, 1) < 0)
        return H5I_INVALID_HID;
    hid_t made = H5Dcreate2(dims->file, path, type, space, links, how, H5P_DEFAULT);
    if (made <= 0 || !coordinate)
        return made;
    const struct meaning_attributes *attributes = coordinate->attributes;
    if (H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, coordinate->values) < 0 ||
        (attributes && !write_attributes(made, attributes->n, attributes->list)))
        hdf5_close(&made);
    return made;
}

static hid_t make_scale(struct dims *dims, int i, const char *path)
{
    bool is_bare = !dims->array->carried->coordinates[i];
    hid_t made = make_dataset(dims, i, path);
    if (made <= 0)
        return made;
    if (!hdf5_scale_make(made, strrchr(path, '/') + 1, is_bare) ||
        (dims->next_number >= 0 && !hdf5_scale_set_number(made, dims->next_number++)))
        hdf5_close(&made);
    return made;
}

/* Whether the path can be looked at: of a path whose groups are not there it cannot. */
static bool is_there(hid_t file, const char *path)
{
    char part[1024];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0)
            return false;
    }
    return H5Lexists(file, path, H5P_DEFAULT) > 0;
}

/* The scale of axis i: one that is there, or a new one. Negative: HDF5 fails. */
static hid_t find_scale(struct dims *dims, int i)
{
    const char *name = dims->array->carried->dimensions[i];
    char path[1024];
    for (int number = 1; number <= MAX_NUMBER; number++) {
        int n = snprintf(path, sizeof(path), "%.*s%s", (int)dims->n_group, dims->path, name);
        if (number > 1 && n < (int)sizeof(path))
            n += snprintf(path + n, sizeof(path) - (size_t)n, "_%d", number);
        if (n >= (int)sizeof(path))
            return H5I_INVALID_HID;
        if (strcmp(path, dims->path) == 0)
            continue; /* it will be the dataset itself */
        if (!is_there(dims->file, path))
            return make_scale(dims, i, path);
        hid_t found = H5Dopen2(dims->file, path, H5P_DEFAULT);
        if (found > 0 && says_the_same(dims, i, found))
            return found;
        hdf5_close(&found);
    }
    return H5I_INVALID_HID;
}

static bool write_dimensions(struct dims *dims)
{
    hid_t scales[ARRAY_MAX_NDIM];
    int ndim = dims->array->info.ndim, n = 0;
    while (n < ndim && (scales[n] = find_scale(dims, n)) > 0)
        n++;
    bool is_done = n == ndim && hdf5_scale_attach(dims->dataset, ndim, scales);
    while (n > 0)
        hdf5_close(&scales[--n]);
    return is_done;
}

/* ---- The dataset as a scale ---- */

/* "lat" of one axis, which is lat, in the place of "lat". */
static bool is_own_scale(const struct dims *dims)
{
    const struct gad_array *array = dims->array;
    return array->carried && array->carried->has_dimensions && array->info.ndim == 1 &&
           strcmp(array->carried->dimensions[0], dims->path + dims->n_group) == 0;
}

/* What the dataset that will be replaced says of others' axes. */
static bool take_over(struct dims *dims, bool *ret_is_scale)
{
    *ret_is_scale = is_own_scale(dims);
    if (!is_there(dims->file, dims->path))
        return true;
    _cleanup_hid_ hid_t old = H5Dopen2(dims->file, dims->path, H5P_DEFAULT);
    if (old <= 0 || !hdf5_scale_is(old))
        return true;
    bool has_its_size = dims->array->info.ndim == 1 && has_size(old, dims->array->info.shape[0]);
    *ret_is_scale = *ret_is_scale || has_its_size;
    return hdf5_scale_replace(old, has_its_size ? dims->dataset : H5I_INVALID_HID);
}

/* ---- All of it ---- */

static bool read_limits(struct dims *dims)
{
    _cleanup_hid_ hid_t space = H5Dget_space(dims->dataset);
    return space > 0 && H5Sget_simple_extent_dims(space, NULL, dims->most) >= 0;
}

static bool write_all(struct dims *dims)
{
    const struct carried *carried = dims->array->carried;
    bool is_scale;
    if (!read_limits(dims) || !take_over(dims, &is_scale))
        return false;
    if (carried && !write_attributes(dims->dataset, carried->n_attributes, carried->attributes))
        return false;
    if (is_scale || (carried && carried->has_dimensions))
        dims->next_number = hdf5_scale_next_number(dims->file);
    if (is_scale)
        return hdf5_scale_make(dims->dataset, dims->path + dims->n_group, false) &&
               (dims->next_number < 0 || hdf5_scale_set_number(dims->dataset, dims->next_number));
    return !carried || !carried->has_dimensions || write_dimensions(dims);
}

int hdf5_dims_write(hid_t file, const char *hidden, const char *dataset,
                    const struct gad_array *array, const char *name, struct gad_error *error)
{
    char reason[160];
    const char *slash = strrchr(dataset, '/');
    struct dims dims = {
        .file = file,
        .dataset = H5Dopen2(file, hidden, H5P_DEFAULT),
        .path = dataset,
        .n_group = slash ? (size_t)(slash + 1 - dataset) : 0,
        .array = array,
        .next_number = -1,
    };
    bool is_done = dims.dataset > 0 && write_all(&dims);
    hdf5_close(&dims.dataset);
    if (is_done)
        return 0;
    hdf5_reason(reason, sizeof(reason));
    return error_set(error, GAD_IO_ERROR, name,
                     "HDF5 cannot write the attributes of '%.120s': %.160s", dataset, reason);
}
