/* Where else the elements of a dataset are.
 *
 * HDF5 looks for files that are named in a file beside it, and in the working directory. A name
 * that leads nowhere is a file that is not there yet, which reads as fill values. Patterns of
 * virtual datasets (%b) and what lies behind virtual datasets of virtual datasets are not followed.
 *
 * Called by hdf5_provider.c, for who reads for long.
 */
#include "client/formats/hdf5/hdf5_others.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(struct hdf5_others *others, const char *path, const struct stat *st)
{
    struct hdf5_other *list = realloc(others->list, (others->n + 1) * sizeof(*list));
    if (!list)
        return ENOMEM;
    others->list = list;
    struct hdf5_other *other = &list[others->n];
    other->path = realpath(path, NULL);
    if (!other->path)
        return errno == ENOMEM ? ENOMEM : 0;
    file_mark_of(st, &other->mark);
    others->n++;
    return 0;
}

/* Many parts in turn may be of one file. */
static bool is_last(const struct hdf5_others *others, const struct stat *st)
{
    struct file_mark mark;
    file_mark_of(st, &mark);
    return others->n > 0 && file_mark_is_same_file(&others->list[others->n - 1].mark, &mark);
}

/* A name in the file at `path`. */
static int add_named(struct hdf5_others *others, const char *path, const char *name)
{
    char beside[PATH_MAX];
    struct stat st, own;
    const char *slash = strrchr(path, '/');
    int n_folder = slash ? (int)(slash - path) + 1 : 0;
    int n = snprintf(beside, sizeof(beside), "%.*s%s", name[0] == '/' ? 0 : n_folder, path, name);
    const char *found = beside;
    if (n >= (int)sizeof(beside) || stat(beside, &st) < 0) {
        found = name;
        if (stat(name, &st) < 0)
            return 0;
    }
    if (stat(path, &own) == 0 && own.st_dev == st.st_dev && own.st_ino == st.st_ino)
        return 0;
    return is_last(others, &st) ? 0 : add(others, found, &st);
}

int hdf5_others_find(hid_t dataset, const char *path, struct hdf5_others *ret_others)
{
    struct hdf5_others others = {0};
    char name[PATH_MAX] = "";
    size_t n_parts = 0;
    int r = 0;
    _cleanup_hid_ hid_t file = H5Iget_file_id(dataset);
    _cleanup_hid_ hid_t dcpl = H5Dget_create_plist(dataset);
    if (file > 0 && H5Fget_name(file, name, sizeof(name)) > 0)
        r = add_named(&others, path, name);
    bool is_virtual = dcpl > 0 && H5Pget_layout(dcpl) == H5D_VIRTUAL;
    if (is_virtual && H5Pget_virtual_count(dcpl, &n_parts) < 0)
        n_parts = 0;
    for (size_t i = 0; i < n_parts && r == 0; i++)
        if (H5Pget_virtual_filename(dcpl, i, name, sizeof(name)) > 0)
            r = add_named(&others, path, name);
    int n_external = dcpl > 0 && !is_virtual ? H5Pget_external_count(dcpl) : 0;
    for (int i = 0; i < n_external && r == 0; i++) {
        off_t offset;
        hsize_t n_bytes;
        if (H5Pget_external(dcpl, (unsigned)i, sizeof(name), name, &offset, &n_bytes) >= 0)
            r = add_named(&others, path, name);
    }
    if (r)
        hdf5_others_deinit(&others);
    *ret_others = others;
    return r;
}

void hdf5_others_deinit(struct hdf5_others *others)
{
    while (others->n > 0)
        free(others->list[--others->n].path);
    free(steal_ptr(others->list));
}

void hdf5_others_sum(const struct hdf5_others *others, struct file_sums *sums)
{
    for (size_t i = 0; i < others->n; i++) {
        file_sums_name(sums, others->list[i].path);
        file_sums_content(sums, &others->list[i].mark);
    }
}

const char *hdf5_others_changed(const struct hdf5_others *others)
{
    for (size_t i = 0; i < others->n; i++) {
        struct file_mark now;
        struct stat st;
        if (stat(others->list[i].path, &st) < 0)
            return others->list[i].path;
        file_mark_of(&st, &now);
        if (!file_mark_is_same(&now, &others->list[i].mark))
            return others->list[i].path;
    }
    return NULL;
}
