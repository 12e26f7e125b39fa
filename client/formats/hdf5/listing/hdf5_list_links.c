/* Links: what they are, and which of them are followed.
 *
 * A link to another file is followed as HDF5 does it: by its name as it stands, beside the file
 * that has it, or in one of the folders of $HDF5_EXT_PREFIX. HDF5 opens what it finds there, and
 * opening a pipe waits until somebody writes into it; so whatever is no regular file is refused
 * before.
 *
 * Called by hdf5_list.c.
 */
#include "client/formats/hdf5/listing/hdf5_list_links.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_TARGET_BYTES (64 * 1024)
#define MAX_SHOWN        500

/* ---- Following ---- */

static bool is_odd(const char *folder, size_t n_folder, const char *file)
{
    char path[PATH_MAX];
    struct stat st;
    int n =
        snprintf(path, sizeof(path), "%.*s%s%s", (int)n_folder, folder, n_folder ? "/" : "", file);
    return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
           !S_ISDIR(st.st_mode);
}

static size_t folder_chars(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static bool is_odd_in_prefix(const char *file)
{
    const char *prefix = getenv("HDF5_EXT_PREFIX");
    while (prefix && *prefix) {
        size_t n = strcspn(prefix, ":");
        if (n > 0 && n < PATH_MAX && is_odd(prefix, n, file))
            return true;
        prefix += n + (prefix[n] == ':');
    }
    return false;
}

/* Of an absolute name HDF5 also looks for its last part. */
static bool leads_to_odd(const char *from, const char *file)
{
    char real[PATH_MAX];
    return is_odd(from, folder_chars(from), file) || is_odd("", 0, file) ||
           is_odd_in_prefix(file) ||
           (realpath(from, real) && is_odd(real, folder_chars(real), file));
}

static herr_t check_external(const char *from, const char *group, const char *file,
                             const char *object, unsigned *flags, hid_t fapl, void *data)
{
    (void)group, (void)object, (void)fapl, (void)data;
    *flags = H5F_ACC_RDONLY;
    const char *slash = strrchr(file, '/');
    return leads_to_odd(from, file) || (slash && leads_to_odd(from, slash + 1)) ? -1 : 0;
}

hid_t hdf5_list_access(void)
{
    hid_t lapl = H5Pcreate(H5P_LINK_ACCESS);
    if (lapl > 0 && H5Pset_elink_cb(lapl, check_external, NULL) < 0)
        hdf5_close(&lapl);
    return lapl;
}

/* ---- Describing ---- */

static const char *describe_soft(const char *target, size_t n, struct list_memory *memory)
{
    return list_memory_format(memory, "a soft link to '%.*s'",
                              (int)min_u64(strnlen(target, n), MAX_SHOWN), target);
}

static const char *describe_external(const char *target, size_t n, struct list_memory *memory)
{
    unsigned flags;
    const char *file, *object;
    if (H5Lunpack_elink_val(target, n, &flags, &file, &object) < 0)
        return "a link to another file";
    return list_memory_format(memory, "a link to '%.*s' of '%.*s'", MAX_SHOWN, object, MAX_SHOWN,
                              file);
}

const char *hdf5_list_link(hid_t group, const char *name, H5L_type_t type,
                           struct list_memory *memory)
{
    H5L_info_t info;
    if (type == H5L_TYPE_HARD)
        return "an object that HDF5 cannot read";
    if (type != H5L_TYPE_SOFT && type != H5L_TYPE_EXTERNAL)
        return list_memory_format(memory, "a link of class %d, which HDF5 does not know",
                                  (int)type);
    if (H5Lget_info(group, name, &info, H5P_DEFAULT) < 0 || info.u.val_size > MAX_TARGET_BYTES)
        return "a link that HDF5 cannot read";
    _cleanup_free_ char *target = calloc(1, info.u.val_size + 1);
    if (!target) {
        memory->is_short = true;
        return NULL;
    }
    if (H5Lget_val(group, name, target, info.u.val_size, H5P_DEFAULT) < 0)
        return "a link that HDF5 cannot read";
    return type == H5L_TYPE_SOFT ? describe_soft(target, info.u.val_size, memory)
                                 : describe_external(target, info.u.val_size, memory);
}
