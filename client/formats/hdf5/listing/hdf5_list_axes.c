/* Names of axes.
 *
 * A dataset's attribute DIMENSION_LIST refers, for each axis, to the dataset that is its dimension
 * scale. The scale's name is what netCDF-4 calls the dimension: the last part of a path to it. HDF5
 * finds the path of what is referred to by looking through the whole file, each time. Dimensions
 * lie in the group of their variables or in one around it, so the links of these groups are
 * read, once, and tell which object has which name. A scale that lies elsewhere is called what its
 * attribute NAME says.
 *
 * Axes that no scale names may have labels (DIMENSION_LABELS). A scale without a list of its own
 * names its own first axis.
 *
 * Called by hdf5_list.c.
 */
#include "client/formats/hdf5/listing/hdf5_list_axes.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <string.h>

#define MAX_NAMES 100000 /* that are learned from links */

bool list_axes_init(struct list_axes *axes, hid_t file)
{
    struct object_id root;
    *axes = (struct list_axes){.file = file};
    _cleanup_hid_ hid_t group = H5Gopen2(file, "/", H5P_DEFAULT);
    if (group <= 0 || !object_id_of(group, &root))
        return false;
    axes->file_number = root.file;
    return true;
}

void list_axes_deinit(struct list_axes *axes)
{
    object_texts_deinit(&axes->names);
    object_texts_deinit(&axes->scales);
    object_texts_deinit(&axes->learned);
}

/* ---- Learning names ---- */

static herr_t learn_link(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)group;
    struct list_axes *axes = data;
    if (info->type != H5L_TYPE_HARD)
        return 0;
    struct object_id id = object_id_linked(axes->file_number, info);
    return axes->names.n >= MAX_NAMES || !object_texts_add(&axes->names, &id, name);
}

static void learn_group(struct list_axes *axes, const char *path)
{
    struct object_id id;
    _cleanup_hid_ hid_t group = H5Gopen2(axes->file, *path ? path : "/", H5P_DEFAULT);
    if (group <= 0 || !object_id_of(group, &id) || object_texts_find(&axes->learned, &id))
        return;
    if (object_texts_add(&axes->learned, &id, ""))
        (void)H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, learn_link, axes);
}

/* In the dataset's group or one around it. */
static const char *find_around(struct list_axes *axes, const struct object_id *id,
                               const char *dataset)
{
    const char *name = object_texts_find(&axes->names, id);
    _cleanup_free_ char *path = strdup(dataset);
    char *slash = path ? strrchr(path, '/') : NULL;
    for (; !name && slash; slash = strrchr(path, '/')) {
        *slash = '\0';
        learn_group(axes, path);
        name = object_texts_find(&axes->names, id);
    }
    return name;
}

/* ---- The scale of an axis ---- */

/* What it calls itself. NULL: nothing. */
static const char *own_name(hid_t scale, struct hdf5_heap *heap, struct list_memory *memory)
{
    const char *const *texts;
    size_t n = hdf5_list_texts(scale, "NAME", heap, memory, &texts);
    if (n != 1 || !*texts[0] || strncmp(texts[0], "This is a netCDF", 16) == 0)
        return NULL;
    const char *slash = strrchr(texts[0], '/');
    return slash ? slash + 1 : texts[0];
}

/* What the references of a list are looked up with. */
struct look_up {
    struct list_axes *axes;
    hid_t dataset;
    const char *path;
    struct hdf5_heap *heap;
    struct list_memory *memory;
    hobj_ref_t *references; /* of each axis the first; 0: none */
};

/* Of this file: names are kept. */
static const char *scale_name(const struct look_up *at, const hobj_ref_t *reference)
{
    struct list_axes *axes = at->axes;
    struct object_id key = {.file = axes->file_number}, id;
    memcpy(key.place, reference, min_u64(sizeof(*reference), sizeof(key.place)));
    const char *known = object_texts_find(&axes->scales, &key);
    if (known)
        return *known ? known : NULL;
    _cleanup_hid_ hid_t scale = H5Rdereference2(at->dataset, H5P_DEFAULT, H5R_OBJECT, reference);
    if (scale <= 0 || !object_id_of(scale, &id))
        return NULL;
    if (id.file != axes->file_number) /* the dataset is behind a link to another file */
        return own_name(scale, at->heap, at->memory);
    const char *name = find_around(axes, &id, at->path);
    if (!name)
        name = own_name(scale, at->heap, at->memory);
    at->memory->is_short |= !object_texts_add(&axes->scales, &key, name ? name : "");
    return name ? list_memory_text(at->memory, name, strlen(name)) : NULL;
}

/* As HDF5 stores it, which is an address. */
static void take_reference(void *userdata, size_t i, struct hdf5_varying element)
{
    const struct look_up *at = userdata;
    if (element.n_items > 0)
        memcpy(&at->references[i], element.items,
               min_u64(at->heap->address_bytes, sizeof(hobj_ref_t)));
}

static void read_list(const struct look_up *at, int ndim, const char **names)
{
    hobj_ref_t references[H5S_MAX_RANK] = {0};
    struct look_up look_up = *at;
    _cleanup_hid_ hid_t attribute = H5Aopen(at->dataset, "DIMENSION_LIST", H5P_DEFAULT);
    _cleanup_hid_ hid_t space = attribute > 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    _cleanup_hid_ hid_t stored = attribute > 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    _cleanup_hid_ hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
    if (space <= 0 || stored <= 0 || type <= 0 || H5Tequal(stored, type) <= 0 ||
        H5Sget_simple_extent_npoints(space) != ndim)
        return;
    look_up.references = references;
    (void)hdf5_varying_read(at->heap, attribute, (size_t)ndim, sizeof(hobj_ref_t), take_reference,
                            &look_up);
    for (int i = 0; i < ndim; i++)
        if (references[i] != 0)
            names[i] = scale_name(at, &references[i]);
}

static void read_labels(const struct look_up *at, int ndim, const char **names)
{
    const char *const *texts;
    if (hdf5_list_texts(at->dataset, "DIMENSION_LABELS", at->heap, at->memory, &texts) !=
        (size_t)ndim)
        return;
    for (int i = 0; i < ndim; i++)
        if (!names[i] && *texts[i])
            names[i] = texts[i];
}

const char *const *list_axes_of(struct list_axes *axes, hid_t dataset, const char *path, int ndim,
                                const struct list_notes *notes, struct hdf5_heap *heap,
                                struct list_memory *memory)
{
    if (ndim < 1 || ndim > H5S_MAX_RANK ||
        !(notes->has_axes || notes->has_labels || notes->is_scale))
        return NULL;
    const char **names = list_memory_take(memory, (size_t)ndim, sizeof(*names));
    if (!names)
        return NULL;
    const struct look_up at = {axes, dataset, path, heap, memory, NULL};
    if (notes->has_axes)
        read_list(&at, ndim, names);
    else if (notes->is_scale)
        names[0] = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (notes->has_labels)
        read_labels(&at, ndim, names);
    for (int i = 0; i < ndim; i++)
        if (names[i])
            return names;
    return NULL;
}
