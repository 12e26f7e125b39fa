/* What is in an HDF5 file: groups, datasets, links, one after the other.
 *
 * A walk in depth, over a stack of groups of bounded height. Only hard links are walked, and each
 * group once: files may have circles, or the same group in many places, whose paths are more than
 * anybody could wait for. A group that is met again, lies too deep or is behind a soft or external
 * link is an entry that says so; naming it in the spec lists it. Links are read in portions, since
 * a group may have millions. What HDF5 cannot read is an entry, too: the rest may be sound.
 *
 * The caller's function may open files, so it is called when HDF5 is left. Hidden links of outputs
 * that are being made are left out.
 *
 * Called by list.c through the table of formats.
 */
#include "client/formats/hdf5/listing/hdf5_list.h"
#include "client/formats/dataset_path.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_names.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "client/formats/hdf5/listing/hdf5_list_array.h"
#include "client/formats/hdf5/listing/hdf5_list_axes.h"
#include "client/formats/hdf5/listing/hdf5_list_links.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH      256
#define MAX_PATH_CHARS 65536
#define PORTION_BYTES  (8 << 20) /* of names that are read at a time */

/* Where a link stands in level->bytes, and when it was made: of a group that keeps that. */
struct link {
    size_t at;
    int64_t order;
};

/* A group that is being walked, and the portion of its links that was read. */
struct level {
    hid_t group;
    size_t n_path_chars;
    bool is_by_creation, is_read; /* is_read: there is no further portion */
    hsize_t next;
    char *bytes; /* of each link its type as a character, its name, '\0' */
    size_t n_bytes, byte_room;
    struct link *links;
    size_t n_links, link_room, at;
    bool is_short; /* of memory */
};

struct list {
    gad_list_function *function;
    void *userdata;
    const char *file_path, *name; /* name: the spec, for errors */
    struct hdf5_scope scope;
    hid_t file, access;
    struct stat st;
    char path[MAX_PATH_CHARS]; /* of what is looked at; "" is the root */
    unsigned n_levels;
    struct level levels[MAX_DEPTH];
    struct object_texts seen; /* groups, and the paths by which they are walked */
    struct list_axes axes;
    struct list_filters filters;
    struct hdf5_heap heap;
    struct list_memory memory; /* of the entry at hand */
    bool is_ended;
};

/* ---- Portions of links ---- */

static bool grow(void *array, size_t *room, size_t wanted, size_t item_bytes)
{
    if (wanted <= *room)
        return true;
    size_t more = *room ? *room : 512;
    while (more < wanted)
        more *= 2;
    void *made = realloc(*(void **)array, more * item_bytes);
    if (!made)
        return false;
    *(void **)array = made;
    *room = more;
    return true;
}

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)group;
    struct level *level = data;
    size_t n = strlen(name) + 2;
    if (!grow(&level->bytes, &level->byte_room, level->n_bytes + n, 1) ||
        !grow(&level->links, &level->link_room, level->n_links + 1, sizeof(*level->links))) {
        level->is_short = true;
        return -1;
    }
    level->bytes[level->n_bytes] = (char)info->type;
    memcpy(level->bytes + level->n_bytes + 1, name, n - 1);
    level->links[level->n_links++] =
        (struct link){level->n_bytes, info->corder_valid ? info->corder : 0};
    level->n_bytes += n;
    return level->n_bytes >= PORTION_BYTES;
}

static int compare_names(const void *a, const void *b, void *bytes)
{
    const struct link *one = a, *other = b;
    return strcmp((const char *)bytes + one->at + 1, (const char *)bytes + other->at + 1);
}

static int compare_orders(const void *a, const void *b, void *bytes)
{
    const struct link *one = a, *other = b;
    (void)bytes;
    return one->order < other->order ? -1 : one->order > other->order;
}

/* Whether there is a link at level->at. ret_fails: HDF5 cannot read further ones.
 *
 * They are sorted here. Where HDF5 itself has to sort, it makes a table of all links, and frees
 * what it has never filled in when one of them is damaged; its native order needs none. */
static bool read_links(struct level *level, bool *ret_fails)
{
    *ret_fails = false;
    if (level->at < level->n_links)
        return true;
    if (level->is_read)
        return false;
    level->at = level->n_links = level->n_bytes = 0;
    herr_t r = H5Literate(level->group, level->is_by_creation ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME,
                          H5_ITER_NATIVE, &level->next, take_link, level);
    level->is_read = r <= 0;
    *ret_fails = r < 0 && !level->is_short;
    if (level->n_links > 1)
        qsort_r(level->links, level->n_links, sizeof(*level->links),
                level->is_by_creation ? compare_orders : compare_names, level->bytes);
    return level->n_links > 0;
}

/* ---- Levels ---- */

static bool has_creation_order(hid_t plist)
{
    unsigned order = 0;
    return plist > 0 && H5Pget_link_creation_order(plist, &order) >= 0 &&
           (order & H5P_CRT_ORDER_INDEXED);
}

static void push(struct list *list, hid_t group_take, hid_t plist)
{
    list->levels[list->n_levels++] = (struct level){.group = group_take,
                                                    .n_path_chars = strlen(list->path),
                                                    .is_by_creation = has_creation_order(plist)};
}

static void pop(struct list *list)
{
    struct level *level = &list->levels[--list->n_levels];
    hdf5_close(&level->group);
    free(level->bytes);
    free(level->links);
}

/* ---- Entries ---- */

/* Outside of HDF5, for the function may open files. ret_is_past: it does not want what is in it. */
static int tell(struct list *list, struct gad_listed *entry, bool *ret_is_past,
                struct gad_error *error)
{
    bool is_short = list->memory.is_short;
    if (!is_short) {
        hdf5_leave(&list->scope);
        int step = list->function(list->userdata, entry);
        hdf5_enter(&list->scope);
        *ret_is_past = step == GAD_LIST_PAST;
        list->is_ended = step != GAD_LIST_ON && step != GAD_LIST_PAST;
    }
    list_memory_clear(&list->memory);
    return is_short ? error_from_errno(error, ENOMEM, list->name, "an entry") : 0;
}

static int tell_other(struct list *list, const char *what, struct gad_error *error)
{
    bool is_past;
    struct gad_listed entry = {
        .kind = GAD_LISTED_OTHER, .name = *list->path ? list->path : "/", .type = what};
    return tell(list, &entry, &is_past, error);
}

static void add_notes(struct gad_listed *entry, const struct list_notes *notes)
{
    entry->n_attributes = notes->n;
    entry->attributes = notes->list;
}

/* netCDF-4 stores a dimension without a variable as a dataset without elements. */
static void make_dimension(struct list *list, struct gad_listed *entry)
{
    long long size = entry->ndim == 1 ? (long long)entry->shape[0] : 0;
    bool is_unlimited = entry->max_shape && entry->max_shape[0] == GAD_UNKNOWN_LENGTH;
    *entry = (struct gad_listed){.kind = GAD_LISTED_OTHER, .name = list->path};
    entry->type = is_unlimited ? "an unlimited dimension"
                               : list_memory_format(&list->memory, "a dimension of %lld", size);
}

/* How a dataset was made. HDF5 then also reads its fill value, and where that is of varying length
 * follows damaged heaps as of attributes (hdf5_varying.c): such datasets are not asked. */
static hid_t create_plist(hid_t dataset)
{
    _cleanup_hid_ hid_t type = H5Dget_type(dataset);
    H5T_class_t class = type > 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    bool is_compound = class == H5T_COMPOUND || class == H5T_ARRAY;
    if (type <= 0 || H5Tdetect_class(type, H5T_VLEN) != 0 || H5Tis_variable_str(type) != 0 ||
        (is_compound && H5Tdetect_class(type, H5T_STRING) != 0))
        return H5I_INVALID_HID;
    return H5Dget_create_plist(dataset);
}

static int list_array(struct list *list, hid_t dataset, struct gad_error *error)
{
    bool is_past;
    struct list_notes notes;
    struct gad_listed entry = {.kind = GAD_LISTED_ARRAY, .name = list->path};
    _cleanup_hid_ hid_t plist = create_plist(dataset);
    hdf5_list_notes(dataset, plist, &list->heap, &list->memory, &notes);
    hdf5_list_array(dataset, plist, list->file_path, &list->filters, &list->memory, &entry);
    entry.dimensions = list_axes_of(&list->axes, dataset, list->path, entry.ndim, &notes,
                                    &list->heap, &list->memory);
    if (notes.is_dimension)
        make_dimension(list, &entry);
    add_notes(&entry, &notes);
    return tell(list, &entry, &is_past, error);
}

static int list_type(struct list *list, hid_t type, struct gad_error *error)
{
    char text[96];
    bool is_past, is_swapped;
    enum dtype dtype;
    struct list_notes notes;
    struct gad_listed entry = {.kind = GAD_LISTED_OTHER, .name = list->path};
    bool is_known = hdf5_type_to_dtype(type, &dtype, &is_swapped);
    entry.type = list_memory_format(&list->memory, "a named type: %s",
                                    is_known ? dtype_name(dtype)
                                             : hdf5_type_describe(type, text, sizeof(text)));
    hdf5_list_notes(type, H5I_INVALID_HID, &list->heap, &list->memory, &notes);
    add_notes(&entry, &notes);
    return tell(list, &entry, &is_past, error);
}

/* Why a group is not walked; NULL: it is. */
static const char *why_not(struct list *list, hid_t group, struct object_id *ret_id)
{
    const char *seen;
    if (!object_id_of(group, ret_id))
        return "a group that HDF5 cannot read";
    seen = object_texts_find(&list->seen, ret_id);
    if (seen)
        return list_memory_format(&list->memory, "the group '%s' again", *seen ? seen : "/");
    if (list->n_levels == MAX_DEPTH)
        return "a group that lies too deep to be looked into";
    return NULL;
}

/* link: what leads to it, where that is not to be walked; else NULL. */
static int list_group(struct list *list, hid_t *group, const char *link, struct gad_error *error)
{
    bool is_past = false;
    struct object_id id;
    struct list_notes notes;
    struct gad_listed entry = {.kind = GAD_LISTED_GROUP, .name = *list->path ? list->path : "/"};
    _cleanup_hid_ hid_t plist = H5Gget_create_plist(*group);
    hdf5_list_notes(*group, plist, &list->heap, &list->memory, &notes);
    add_notes(&entry, &notes);
    entry.type = link ? link : why_not(list, *group, &id);
    bool is_walked = !entry.type;
    int r = tell(list, &entry, &is_past, error);
    if (r || list->is_ended || !is_walked || is_past)
        return r;
    if (!object_texts_add(&list->seen, &id, list->path))
        return error_from_errno(error, ENOMEM, list->name, "a group");
    push(list, *group, plist);
    *group = H5I_INVALID_HID;
    return 0;
}

/* object: taken where it is a group to be walked. */
static int list_object(struct list *list, hid_t *object, const char *link, struct gad_error *error)
{
    switch (H5Iget_type(*object)) {
    case H5I_DATASET: return list_array(list, *object, error);
    case H5I_GROUP: return list_group(list, object, link, error);
    case H5I_DATATYPE: return list_type(list, *object, error);
    default: return tell_other(list, "an object that HDF5 does not know", error);
    }
}

/* ---- The walk ---- */

static bool is_hidden(const struct level *level, const char *name)
{
    return level->n_path_chars == 0 &&
           strncmp(name, HDF5_HIDDEN_PREFIX, strlen(HDF5_HIDDEN_PREFIX)) == 0;
}

static int list_link(struct list *list, const struct level *level, H5L_type_t type,
                     const char *name, struct gad_error *error)
{
    size_t room = sizeof(list->path) - level->n_path_chars;
    list->path[level->n_path_chars] = '\0';
    if (strlen(name) + 2 > room)
        return tell_other(list, "something whose name is too long", error);
    snprintf(list->path + level->n_path_chars, room, "/%s", name);
    _cleanup_hid_ hid_t object = H5Oopen(level->group, name, list->access);
    bool is_hard = type == H5L_TYPE_HARD;
    const char *link =
        object > 0 && is_hard ? NULL : hdf5_list_link(level->group, name, type, &list->memory);
    if (object > 0)
        return list_object(list, &object, link, error);
    if (!is_hard && link)
        link = list_memory_format(&list->memory, "%s, which leads nowhere", link);
    return tell_other(list, link, error);
}

static int list_unreadable(struct list *list, struct gad_error *error)
{
    char reason[160];
    hdf5_reason(reason, sizeof(reason));
    const char *what = list_memory_format(&list->memory, "links that HDF5 cannot read: %s", reason);
    return tell_other(list, what, error);
}

/* The next link of the group on top, or the end of that group. */
static int step(struct list *list, struct gad_error *error)
{
    struct level *level = &list->levels[list->n_levels - 1];
    bool fails;
    int r = 0;
    bool is_there = read_links(level, &fails);
    if (fails) {
        list->path[level->n_path_chars] = '\0';
        r = list_unreadable(list, error);
    }
    if (level->is_short)
        return error_from_errno(error, ENOMEM, list->name, "links");
    if (!is_there || r || list->is_ended) {
        pop(list);
        return r;
    }
    const char *link = level->bytes + level->links[level->at++].at, *name = link + 1;
    H5L_type_t type = (H5L_type_t)*link;
    return is_hidden(level, name) ? 0 : list_link(list, level, type, name, error);
}

static int list_all(struct list *list, const char *dataset, struct gad_error *error)
{
    if (strlen(dataset) >= sizeof(list->path))
        return error_set(error, GAD_BAD_ARGUMENT, list->name, "the group's path is too long");
    strcpy(list->path, dataset);
    list->access = hdf5_list_access();
    if (list->access <= 0)
        return error_set(error, GAD_NO_MEMORY, list->name, "HDF5 cannot be used");
    if (!list_axes_init(&list->axes, list->file))
        return error_set(error, GAD_BAD_FORMAT, list->name, "HDF5 cannot read the root group");
    _cleanup_hid_ hid_t object = H5Oopen(list->file, *dataset ? dataset : "/", list->access);
    if (object <= 0)
        return hdf5_no_dataset_error(list->file, dataset, list->name, error);
    int r = list_object(list, &object, NULL, error);
    while (r == 0 && list->n_levels > 0 && !list->is_ended)
        r = step(list, error);
    return r;
}

static int list_in_scope(struct list *list, const char *dataset, struct gad_error *error)
{
    hdf5_enter(&list->scope);
    int r = hdf5_file_open(list->file_path, &list->st, false, list->file_path, list->name,
                           &list->file, error);
    if (r == 0)
        r = list_all(list, dataset, error);
    while (list->n_levels > 0)
        pop(list);
    list_axes_deinit(&list->axes);
    hdf5_heap_deinit(&list->heap);
    hdf5_close(&list->access);
    hdf5_close(&list->file);
    hdf5_leave(&list->scope);
    object_texts_deinit(&list->seen);
    list_memory_clear(&list->memory);
    return r;
}

/* As a spec has it behind the path, with its colon; a heap string. */
static char *normalise(const char *dataset)
{
    size_t n = strlen(dataset) + 2;
    _cleanup_free_ char *rest = malloc(n);
    if (!rest)
        return NULL;
    snprintf(rest, n, ":%s", dataset);
    return dataset_path_normalise(rest);
}

int hdf5_list(const char *path, const char *dataset, const char *name, gad_list_function *function,
              void *userdata, struct gad_error *error)
{
    _cleanup_fd_ int fd = -1;
    _cleanup_free_ char *wanted = normalise(dataset);
    _cleanup_free_ struct list *list = calloc(1, sizeof(*list));
    if (!list || !wanted)
        return error_from_errno(error, ENOMEM, name, "a list");
    list->function = function;
    list->userdata = userdata;
    list->file_path = path;
    list->name = name;
    list->file = list->access = H5I_INVALID_HID;
    int r = file_source_open(path, false, name, &fd, &list->st, error);
    return r ? r : list_in_scope(list, wanted, error);
}
