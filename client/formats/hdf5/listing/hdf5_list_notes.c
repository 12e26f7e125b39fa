/* Attributes of an object of an HDF5 file: numbers and texts, whatever their number.
 *
 * What is read is bounded: by the number of attributes of an object, of values of an attribute, and
 * by bytes, since files may hold attributes of any size. What is beyond that, is of another type or
 * cannot be read is there by its name alone. Texts are of fixed or varying length and are what the
 * file has, without what fills a fixed one up.
 *
 * HDF5's dimension scales and netCDF-4 keep in attributes which dataset names which axis. That is
 * told as names of axes, so those attributes are left out.
 *
 * Called by hdf5_list.c and hdf5_list_axes.c.
 */
#include "client/formats/hdf5/listing/hdf5_list_notes.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "proto/util.h"

#include <string.h>

#define MAX_NOTES      4096 /* of an object */
#define MAX_VALUES     1024 /* of an attribute: numbers or texts */
#define MAX_ITEM_BYTES 16   /* of a number */
#define MAX_TEXT_BYTES (1 << 20)
#define MAX_ALL_BYTES  (8 << 20) /* of an object */

/* ---- Values ---- */

/* Without what fills it up: '\0' or blanks. */
static const char *fixed_text(const char *bytes, size_t n_bytes, hid_t type,
                              struct list_memory *memory)
{
    size_t n = strnlen(bytes, n_bytes);
    while (n > 0 && H5Tget_strpad(type) == H5T_STR_SPACEPAD && bytes[n - 1] == ' ')
        n--;
    return list_memory_text(memory, bytes, n);
}

static bool read_fixed(hid_t attribute, hid_t type, size_t n, const char **texts,
                       struct list_memory *memory)
{
    size_t item = H5Tget_size(type);
    if (item == 0 || item > MAX_TEXT_BYTES / n)
        return false;
    _cleanup_free_ char *bytes = calloc(n, item);
    if (!bytes || H5Aread(attribute, type, bytes) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        texts[i] = fixed_text(bytes + i * item, item, type, memory);
    return true;
}

struct varying_texts {
    const char **texts;
    size_t n_bytes;
    struct list_memory *memory;
};

static void take_varying(void *userdata, size_t i, struct hdf5_varying element)
{
    struct varying_texts *taken = userdata;
    const char *text = element.items ? (const char *)element.items : "";
    size_t n = element.items ? strnlen(text, element.n_items) : 0;
    taken->n_bytes += n;
    if (taken->n_bytes <= MAX_TEXT_BYTES)
        taken->texts[i] = list_memory_text(taken->memory, text, n);
}

static bool read_varying(hid_t attribute, struct hdf5_heap *heap, size_t n, const char **texts,
                         struct list_memory *memory)
{
    struct varying_texts taken = {.texts = texts, .memory = memory};
    return hdf5_varying_read(heap, attribute, n, 1, take_varying, &taken) &&
           taken.n_bytes <= MAX_TEXT_BYTES;
}

static const char **read_texts(hid_t attribute, hid_t type, struct hdf5_heap *heap, size_t n,
                               struct list_memory *memory)
{
    const char **texts = list_memory_take(memory, n, sizeof(*texts));
    bool is_read =
        texts && (H5Tis_variable_str(type) > 0 ? read_varying(attribute, heap, n, texts, memory)
                                               : read_fixed(attribute, type, n, texts, memory));
    return is_read && !memory->is_short ? texts : NULL;
}

static void take_texts(struct gad_attribute *note, hid_t attribute, hid_t type,
                       struct hdf5_heap *heap, size_t n, struct list_memory *memory)
{
    const char **texts = read_texts(attribute, type, heap, n, memory);
    if (texts && n == 1) {
        note->text = texts[0];
    } else if (texts) {
        note->n_texts = n;
        note->texts = texts;
    }
}

/* An integer exactly: the usual fill values of 64-bit integers are beyond what double tells apart.
 */
static void take_numbers(struct gad_attribute *note, hid_t attribute, hid_t type, size_t n,
                         struct list_memory *memory)
{
    enum dtype dtype;
    bool is_swapped, is_known = hdf5_type_to_dtype(type, &dtype, &is_swapped);
    bool is_float = H5Tget_class(type) == H5T_FLOAT;
    bool is_unsigned = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
    union number {
        int64_t i;
        uint64_t u;
        double f;
    };
    struct gad_scalar *values = list_memory_take(memory, n, sizeof(*values));
    _cleanup_free_ union number *read = calloc(n, sizeof(*read));
    hid_t wanted = is_float      ? H5T_NATIVE_DOUBLE
                   : is_unsigned ? H5T_NATIVE_UINT64
                                 : H5T_NATIVE_INT64;
    if (!values || !read || H5Aread(attribute, wanted, read) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        values[i].kind = is_float                          ? GAD_SCALAR_FLOAT
                         : is_known && dtype == DTYPE_BOOL ? GAD_SCALAR_BOOL
                         : is_unsigned                     ? GAD_SCALAR_UINT
                                                           : GAD_SCALAR_INT;
        if (is_float)
            values[i].float_value = read[i].f;
        else
            values[i].uint_value = read[i].u;
    }
    note->n_values = n;
    note->values = values;
    note->is_dtype_known = is_known;
    note->dtype = is_known ? (enum gad_dtype)dtype : GAD_BOOL;
}

/* Leaves out what it cannot read. */
static void read_values(hid_t attribute, struct gad_attribute *note, struct hdf5_heap *heap,
                        struct list_memory *memory)
{
    _cleanup_hid_ hid_t type = H5Aget_type(attribute);
    _cleanup_hid_ hid_t space = H5Aget_space(attribute);
    if (type <= 0 || space <= 0)
        return;
    hssize_t n = H5Sget_simple_extent_npoints(space);
    H5T_class_t class = H5Tget_class(type);
    bool is_text = class == H5T_STRING;
    if (n < 0 || n > MAX_VALUES || memory->n_bytes > MAX_ALL_BYTES)
        return;
    if (n == 0 && is_text) /* as netCDF-4 stores empty ones */
        note->text = "";
    else if (n > 0 && is_text)
        take_texts(note, attribute, type, heap, (size_t)n, memory);
    else if (n > 0 && (class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_ENUM) &&
             H5Tget_size(type) <= MAX_ITEM_BYTES)
        take_numbers(note, attribute, type, (size_t)n, memory);
}

size_t hdf5_list_texts(hid_t object, const char *attribute, struct hdf5_heap *heap,
                       struct list_memory *memory, const char *const **ret_texts)
{
    _cleanup_hid_ hid_t opened = H5Aopen(object, attribute, H5P_DEFAULT);
    struct gad_attribute note = {.name = attribute};
    if (opened > 0)
        read_values(opened, &note, heap, memory);
    if (note.text) {
        const char **one = list_memory_take(memory, 1, sizeof(*one));
        if (one)
            one[0] = note.text;
        *ret_texts = one;
        return one != NULL;
    }
    *ret_texts = note.texts;
    return note.n_texts;
}

/* ---- All of them ---- */

struct ordered {
    struct gad_attribute note;
    int64_t order; /* of its making, where the object keeps that */
};

struct walk {
    struct list_notes *notes;
    struct hdf5_heap *heap;
    struct list_memory *memory;
    struct ordered *list;
    size_t n, room;
};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool ties_axes(struct list_notes *notes, const char *name)
{
    static const char *const ties[] = {"DIMENSION_LIST",
                                       "REFERENCE_LIST",
                                       "DIMENSION_LABELS",
                                       "_Netcdf4Coordinates",
                                       "_Netcdf4Dimid",
                                       "_nc3_strict",
                                       NULL};
    notes->has_axes |= strcmp(name, "DIMENSION_LIST") == 0;
    notes->has_labels |= strcmp(name, "DIMENSION_LABELS") == 0;
    return is_one_of(name, ties);
}

static bool make_room(struct walk *walk)
{
    if (walk->n < walk->room)
        return true;
    size_t room = walk->room ? walk->room * 2 : 16;
    struct ordered *list = list_memory_take(walk->memory, room, sizeof(*list));
    if (!list)
        return false;
    if (walk->n)
        memcpy(list, walk->list, walk->n * sizeof(*list));
    walk->list = list;
    walk->room = room;
    return true;
}

static herr_t take_note(hid_t object, const char *name, const H5A_info_t *info, void *data)
{
    struct walk *walk = data;
    if (ties_axes(walk->notes, name))
        return 0;
    if (walk->n >= MAX_NOTES || !make_room(walk))
        return 1;
    struct gad_attribute note = {.name = list_memory_text(walk->memory, name, strlen(name))};
    if (!note.name)
        return 1;
    _cleanup_hid_ hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute > 0)
        read_values(attribute, &note, walk->heap, walk->memory);
    walk->list[walk->n++] = (struct ordered){note, info->corder_valid ? info->corder : 0};
    return 0;
}

/* A scale's own two attributes are of the same kind as the ties. */
static void look_at_scale(struct list_notes *notes)
{
    static const char *const own[] = {"CLASS", "NAME", NULL};
    static const char bare[] = "This is a netCDF dimension but not a netCDF variable";
    for (size_t i = 0; i < notes->n; i++)
        notes->is_scale |= strcmp(notes->list[i].name, "CLASS") == 0 && notes->list[i].text &&
                           strcmp(notes->list[i].text, "DIMENSION_SCALE") == 0;
    if (!notes->is_scale)
        return;
    size_t n = 0;
    for (size_t i = 0; i < notes->n; i++) {
        const struct gad_attribute *note = &notes->list[i];
        notes->is_dimension |= strcmp(note->name, "NAME") == 0 && note->text &&
                               strncmp(note->text, bare, sizeof(bare) - 1) == 0;
        if (!is_one_of(note->name, own))
            notes->list[n++] = *note;
    }
    notes->n = n;
}

static int compare_names(const void *a, const void *b)
{
    const struct ordered *one = a, *other = b;
    return strcmp(one->note.name, other->note.name);
}

static int compare_orders(const void *a, const void *b)
{
    const struct ordered *one = a, *other = b;
    return one->order < other->order ? -1 : one->order > other->order;
}

static void sort(struct walk *walk, bool is_by_creation)
{
    struct list_notes *notes = walk->notes;
    if (walk->n > 1)
        qsort(walk->list, walk->n, sizeof(*walk->list),
              is_by_creation ? compare_orders : compare_names);
    notes->list = list_memory_take(walk->memory, walk->n, sizeof(*notes->list));
    for (size_t i = 0; notes->list && i < walk->n; i++)
        notes->list[notes->n++] = walk->list[i].note;
}

void hdf5_list_notes(hid_t object, hid_t plist, struct hdf5_heap *heap, struct list_memory *memory,
                     struct list_notes *ret)
{
    unsigned order = 0;
    *ret = (struct list_notes){0};
    struct walk walk = {.notes = ret, .heap = heap, .memory = memory};
    if (plist <= 0 || H5Pget_attr_creation_order(plist, &order) < 0)
        order = 0;
    bool is_by_creation = (order & H5P_CRT_ORDER_INDEXED) != 0;
    /* In native order, as links are read (hdf5_list.c). */
    (void)H5Aiterate2(object, is_by_creation ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_NATIVE,
                      NULL, take_note, &walk);
    sort(&walk, is_by_creation);
    look_at_scale(ret);
}
