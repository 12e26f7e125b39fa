/* Looking at every member once, when the array is described.
 *
 * A member is opened, compared with the first one and closed again, so that there are few
 * descriptors however many files there are. What is kept of a member is little: where it begins
 * along the joined axis, and, of elements that lie in C order in a file, where; those are later
 * read without their format. Relative paths are made absolute here, since the program may change
 * its directory before blocks are read.
 *
 * Of many members several are looked at at once, by threads that take them in order: opening a
 * file waits for a disk or a server. The error is that of the first one that has one, whichever
 * thread is faster.
 *
 * Called by many.c.
 */
#include "client/formats/files/file_provider.h"
#include "client/formats/files/file_source.h"
#include "client/formats/format_impl.h"
#include "client/formats/many/many_impl.h"
#include "client/formats/many/packing.h"
#include "proto/util.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SHOW              "%.120s"
#define MAX_THREADS       4u
#define MEMBERS_OF_THREAD 64u
#define SMALL_BYTES       (INT64_C(256) << 10) /* what a block holds */

/* What the first member says, and all others are compared with. */
struct look {
    struct many *many;
    const char *name; /* of all of them, for errors that are of none */
    char here[PATH_MAX];
    int own_axis; /* of members, that is joined; -1: none */
    int64_t first_shape[ARRAY_MAX_NDIM];
    int64_t chunk_shape[ARRAY_MAX_NDIM]; /* of members */
    struct meaning_packing packing;
    enum gad_masking masking;
    atomic_size_t next, first_bad; /* members: to be looked at, that has an error */
};

/* What one thread has seen. */
struct looker {
    struct look *look;
    pthread_t thread;
    bool is_mixed, is_mixed_order, has_other_chunks, has_other_meaning;
    uint32_t other_attributes, other_names;
    size_t bad; /* the member of `error` */
    int r;
    struct gad_error error;
};

static const struct member *first_of(const struct look *look)
{
    return &look->many->members[0];
}

static int dtype_error(const struct look *look, const struct member *member, enum dtype dtype,
                       struct gad_error *error)
{
    const char *found = dtype_name(dtype), *wanted = dtype_name(look->many->form.dtype);
    error_set(error, GAD_BAD_DTYPE, member->name,
              "'" SHOW "' is %s and '" SHOW "' %s: files of one array have one dtype", member->name,
              found, first_of(look)->name, wanted);
    error_expected(error, "%s", wanted);
    error_found(error, "%s", found);
    return GAD_BAD_DTYPE;
}

static int shape_error(const struct look *look, const struct member *member, int ndim,
                       const int64_t *shape, struct gad_error *error)
{
    char found[96], wanted[96], but[32] = "";
    array_format_shape(ndim, shape, found, sizeof(found));
    array_format_shape(look->many->member_ndim, look->first_shape, wanted, sizeof(wanted));
    if (look->own_axis >= 0)
        snprintf(but, sizeof(but), " but along axis %d", look->own_axis);
    error_set(error, GAD_BAD_SHAPE, member->name,
              "'" SHOW "' has shape %s and '" SHOW "' %s: shapes are the same%s", member->name,
              found, first_of(look)->name, wanted, but);
    error_expected(error, "%.80s%s", wanted, but);
    error_found(error, "%s", found);
    return GAD_BAD_SHAPE;
}

static int axis_error(const struct look *look, int axis, int ndim, struct gad_error *error)
{
    bool has_none = ndim == 0;
    error_set(error, GAD_BAD_SHAPE, first_of(look)->name,
              has_none ? "'" SHOW "' has no axes: put the files along a new one (:stack)"
                       : "'" SHOW "' has no axis %d to join along",
              first_of(look)->name, axis);
    if (has_none)
        error_expected(error, "at least one axis");
    else
        error_expected(error, "%d to %d", -ndim, ndim - 1);
    error_found(error, has_none ? "shape ()" : "axis %d", axis);
    return GAD_BAD_SHAPE;
}

/* `axis` is of the result. */
static int take_form(struct look *look, const struct gad_array *array, int axis,
                     struct gad_error *error)
{
    struct many *many = look->many;
    const struct gad_array_info *info = &array->info;
    int ndim = info->ndim + many->is_new_axis;
    if (ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, first_of(look)->name,
                         "the result has more than %d dimensions", ARRAY_MAX_NDIM);
    if (axis < -ndim || axis >= ndim)
        return axis_error(look, axis, ndim, error);
    many->axis = axis < 0 ? axis + ndim : axis;
    many->member_ndim = info->ndim;
    many->format = info->format;
    many->form = (struct array){
        .dtype = (enum dtype)info->dtype, .is_swapped = info->is_swapped, .ndim = ndim};
    look->own_axis = many->is_new_axis ? -1 : many->axis;
    memcpy(look->first_shape, info->shape, sizeof(look->first_shape));
    for (int i = 0, own = 0; i < ndim; i++) {
        bool is_new = many->is_new_axis && i == many->axis;
        many->own_axes[i] = is_new ? -1 : own;
        many->steps[i] = 1;
        many->form.shape[i] = is_new ? 1 : info->shape[own++];
    }
    many->has_chunks = array->n_chunks > 0;
    memcpy(look->chunk_shape, array->chunk_shape, sizeof(look->chunk_shape));
    return 0;
}

static int meaning_error(const struct look *look, const struct member *member,
                         const struct packing_difference *difference, struct gad_error *error)
{
    error_set(error, GAD_BAD_FORMAT, member->name,
              "'" SHOW "' has the %s %s and '" SHOW "' %s: files of one array mean the same",
              member->name, difference->name, difference->found, first_of(look)->name,
              difference->wanted);
    error_expected(error, "%s %s", difference->name, difference->wanted);
    error_found(error, "%s", difference->found);
    return GAD_BAD_FORMAT;
}

/* What a file says of its elements may differ where they are taken as they are stored. */
static int compare_meaning(struct looker *looker, const struct member *member,
                           const struct gad_array *array)
{
    const struct look *look = looker->look;
    struct packing_difference difference;
    struct meaning_packing packing;
    int r = packing_read(array, &packing);
    if (r)
        return error_from_errno(&looker->error, -r, member->name, "attributes");
    bool is_same = packing_is_same(&look->packing, &packing, &difference);
    free(packing.fills);
    looker->has_other_meaning |= !is_same;
    return is_same || look->masking == GAD_AS_STORED
               ? 0
               : meaning_error(look, member, &difference, &looker->error);
}

/* What is said of the first one's elements and axes, and not of this one's. Of packing all say the
 * same. */
static void compare_words(struct looker *looker, const struct gad_array *array)
{
    const struct gad_array *first = looker->look->many->first;
    const struct meaning *own = first->meaning, *other = array->meaning;
    bool has_same_units = meaning_has_same_units(own, other);
    for (unsigned i = 0; own && i < own->attributes->n; i++) {
        const struct meaning_attribute *attribute = &own->attributes->list[i], *found;
        bool is_of_units =
            strcmp(attribute->name, "units") == 0 || strcmp(attribute->name, "calendar") == 0;
        found = meaning_find(other, attribute->name);
        if (!meaning_is_packing(attribute->name) &&
            (!found || !meaning_attribute_is_equal(attribute, found) ||
             (is_of_units && !has_same_units)))
            looker->other_attributes |= UINT32_C(1) << i;
    }
    for (int i = 0; own && i < first->info.ndim; i++) {
        const char *name = own->dimensions[i], *found = other ? other->dimensions[i] : NULL;
        if (!name || !found || strcmp(name, found) != 0)
            looker->other_names |= UINT32_C(1) << i;
    }
}

static int compare(struct looker *looker, const struct member *member,
                   const struct gad_array *array)
{
    const struct look *look = looker->look;
    const struct many *many = look->many;
    const struct gad_array_info *info = &array->info;
    if ((enum dtype)info->dtype != many->form.dtype)
        return dtype_error(look, member, (enum dtype)info->dtype, &looker->error);
    bool is_same = info->ndim == many->member_ndim;
    for (int i = 0; i < info->ndim && is_same; i++)
        is_same = i == look->own_axis || info->shape[i] == look->first_shape[i];
    if (!is_same)
        return shape_error(look, member, info->ndim, info->shape, &looker->error);
    int r = compare_meaning(looker, member, array);
    if (r)
        return r;
    compare_words(looker, array);
    looker->is_mixed |= strcmp(info->format, many->format) != 0;
    looker->is_mixed_order |= info->is_swapped != many->form.is_swapped;
    looker->has_other_chunks |=
        array->n_chunks == 0 ||
        memcmp(array->chunk_shape, look->chunk_shape, sizeof(look->chunk_shape)) != 0;
    return 0;
}

static bool is_in_order(const struct gad_array_info *info, bool fortran_order)
{
    int64_t stride = (int64_t)gad_dtype_size(info->dtype);
    for (int i = 0; i < info->ndim; i++) {
        int axis = fortran_order ? i : info->ndim - 1 - i;
        if (info->shape[axis] > 1 && info->strides[axis] != stride)
            return false;
        stride *= info->shape[axis];
    }
    return true;
}

/* Whether it is in one piece, whatever its format is. */
static void take_order(struct member *member, const struct gad_array *array)
{
    bool is_c_order = is_in_order(&array->info, false);
    member->is_fortran = !is_c_order && is_in_order(&array->info, true);
    member->is_plain = array->access == ACCESS_FILE && array->provider == &file_provider &&
                       (is_c_order || member->is_fortran);
    member->offset_bytes = array->offset_bytes;
}

static int take_mark(struct member *member, const struct gad_array *array, struct gad_error *error)
{
    struct stat st;
    int r = array->fd >= 0 ? fstat(array->fd, &st) : stat(member->path, &st);
    if (r < 0)
        return file_path_error(error, errno, member->path, member->name);
    file_mark_of(&st, &member->mark);
    member->is_folder = S_ISDIR(st.st_mode);
    return 0;
}

static int make_absolute(const struct look *look, struct member *member, struct gad_error *error)
{
    char *path;
    if (member->path[0] == '/')
        return 0;
    if (!look->here[0])
        return error_set(error, GAD_IO_ERROR, member->name, "the working directory has no name");
    if (asprintf(&path, "%s/%s", look->here, member->path) < 0)
        return error_from_errno(error, ENOMEM, member->name, "a path");
    free(member->path);
    member->path = path;
    return 0;
}

static int take(const struct look *look, struct member *member, const struct gad_array *array,
                struct gad_error *error)
{
    member->length = look->own_axis >= 0 ? array->info.shape[look->own_axis] : 1;
    member->is_swapped = array->info.is_swapped;
    take_order(member, array);
    int r = take_mark(member, array, error);
    return r ? r : make_absolute(look, member, error);
}

static int look_at_first(struct look *look, int axis, struct gad_error *error)
{
    struct gad_array *array;
    struct member *member = &look->many->members[0];
    int r = member_open(member, NULL, &array, error);
    if (r)
        return r;
    look->many->first = array;
    r = take_form(look, array, axis, error);
    if (r == 0)
        r = take(look, member, array, error);
    close_fd(&array->fd);
    close_fd(&array->table_fd);
    if (r == 0 && (r = packing_read(array, &look->packing)))
        r = error_from_errno(error, -r, member->name, "attributes");
    return r;
}

static int look_at(struct looker *looker, struct member *member)
{
    struct gad_array *array;
    int r = member_open(member, NULL, &array, &looker->error);
    if (r)
        return r;
    r = compare(looker, member, array);
    if (r == 0)
        r = take(looker->look, member, array, &looker->error);
    gad_array_release(array);
    return r;
}

/* Threads -------------------------------------------------------------------------------------- */

/* Members are handed out in order, so that all before one with an error are looked at, too. */
static void *look_on(void *userdata)
{
    struct looker *looker = userdata;
    struct look *look = looker->look;
    for (;;) {
        size_t i = atomic_fetch_add(&look->next, 1);
        size_t first_bad = atomic_load(&look->first_bad);
        if (i >= first_bad)
            return NULL;
        looker->r = look_at(looker, &look->many->members[i]);
        if (looker->r == 0)
            continue;
        looker->bad = i;
        while (i < first_bad && !atomic_compare_exchange_weak(&look->first_bad, &first_bad, i))
            ;
        return NULL;
    }
}

/* Returns how many were started, with all signals blocked: they are the program's. */
static unsigned start(struct look *look, struct looker *lookers)
{
    unsigned n = (unsigned)min_u64(look->many->n_members / MEMBERS_OF_THREAD, MAX_THREADS);
    sigset_t all, before;
    unsigned n_started = 1; /* the caller's */
    sigfillset(&all);
    if (n < 2 || pthread_sigmask(SIG_SETMASK, &all, &before))
        return 1;
    while (n_started < n &&
           pthread_create(&lookers[n_started].thread, NULL, look_on, &lookers[n_started]) == 0)
        n_started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n_started;
}

static int look_at_all(struct look *look, struct gad_error *error)
{
    struct many *many = look->many;
    struct looker lookers[MAX_THREADS];
    const struct looker *bad = NULL;
    for (unsigned i = 0; i < MAX_THREADS; i++)
        lookers[i] = (struct looker){.look = look};
    unsigned n = start(look, lookers);
    look_on(&lookers[0]);
    for (unsigned i = 1; i < n; i++) /* all have ended before anything changes */
        pthread_join(lookers[i].thread, NULL);
    for (unsigned i = 0; i < n; i++) {
        const struct looker *looker = &lookers[i];
        if (looker->is_mixed)
            many->format = "mixed";
        if (looker->is_mixed_order)
            many->form.is_swapped = false; /* those that are swapped are turned when read */
        many->has_chunks &= !looker->has_other_chunks;
        many->is_alike &= !looker->has_other_meaning;
        many->other_attributes |= looker->other_attributes;
        many->other_names |= looker->other_names;
        if (looker->r && (!bad || looker->bad < bad->bad))
            bad = looker;
    }
    if (!bad)
        return 0;
    if (error)
        *error = bad->error;
    return bad->r;
}

/* The whole ------------------------------------------------------------------------------------ */

/* Where each begins. */
static int lay(struct look *look, struct gad_error *error)
{
    struct many *many = look->many;
    many->length = 0;
    for (size_t i = 0; i < many->n_members; i++) {
        struct member *member = &many->members[i];
        member->first = many->length;
        if (add_overflows_i64(many->length, member->length, &many->length))
            return error_set(error, GAD_BAD_SHAPE, look->name,
                             "all files together have more than 63 bits of elements");
    }
    many->form.shape[many->axis] = many->length;
    return array_check(&many->form, look->name, error);
}

/* What is read at once, where members are in one piece: files that are small, whole ones, so that
 * each is opened once; of files in Fortran order some of their columns, which lie side by side. */
static void take_pieces_as_chunks(struct look *look)
{
    struct many *many = look->many;
    const struct member *first = first_of(look);
    int64_t n_bytes = (int64_t)dtype_size(many->form.dtype);
    bool is_alike = many->form.ndim > 0;
    for (size_t i = 0; i < many->n_members && is_alike; i++) {
        const struct member *member = &many->members[i];
        is_alike = member->is_plain && member->is_fortran == first->is_fortran &&
                   member->length == first->length;
    }
    for (int i = 0; i < many->member_ndim && is_alike; i++) {
        int64_t most = max_i64(SMALL_BYTES / n_bytes, 1), length = look->first_shape[i];
        look->chunk_shape[i] = first->is_fortran ? min_i64(length, most) : length;
        n_bytes = mul_saturating_i64(n_bytes, look->chunk_shape[i]);
        is_alike = length > 0;
    }
    many->has_chunks = is_alike && n_bytes <= SMALL_BYTES;
}

/* Chunks of all members are a grid of the whole where no chunk but the last is cut short. */
static void set_chunks(struct look *look)
{
    struct many *many = look->many;
    if (!many->has_chunks)
        take_pieces_as_chunks(look);
    for (size_t i = 0; i < many->n_members && many->has_chunks && look->own_axis >= 0; i++)
        many->has_chunks = many->members[i].first % look->chunk_shape[look->own_axis] == 0;
    for (int i = 0, own = 0; i < many->form.ndim && many->has_chunks; i++)
        many->chunk_shape[i] = many->is_new_axis && i == many->axis ? 1 : look->chunk_shape[own++];
}

int many_look(struct many *many, const struct gad_join_options *options, const char *name,
              struct gad_error *error)
{
    struct look look = {
        .many = many,
        .name = name,
        .masking = options->masking,
        .next = 1,
        .first_bad = many->n_members,
    };
    if (!getcwd(look.here, sizeof(look.here)))
        look.here[0] = '\0'; /* only relative paths need it */
    many->is_new_axis = options->is_new_axis;
    many->is_alike = true;
    int r = look_at_first(&look, options->axis, error);
    if (r == 0)
        r = look_at_all(&look, error);
    free(look.packing.fills);
    if (r == 0)
        r = lay(&look, error);
    if (r == 0)
        set_chunks(&look);
    return r;
}
