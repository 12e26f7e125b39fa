/* The list of file systems.
 *
 * A local one answers from this machine's disks and memory alone. Whatever has a server or a
 * process of somebody's behind it may keep a reader waiting for ever, so only its own user's client
 * touches it. What nobody has tried is not on the list.
 *
 * The daemon decides by it, and a client says by it beforehand what the daemon will decide.
 */
#include "proto/system/file_systems.h"
#include "proto/util.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>

#define ZFS_MAGIC 0x2fc12fc1

static const char *const local_types[] = {
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay",
};

static const char *const pseudo_types[] = {
    "proc",    "sysfs",    "cgroup", "cgroup2", "debugfs",    "tracefs",     "securityfs",
    "devpts",  "configfs", "bpf",    "pstore",  "efivarfs",   "binfmt_misc", "selinuxfs",
    "fusectl", "mqueue",   "nsfs",   "autofs",  "rpc_pipefs", "resctrl",     "smackfs",
};

static bool is_in(const char *const *list, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], type) == 0)
            return true;
    return false;
}

enum file_system_class file_system_classify(const char *type)
{
    if (!type)
        return FILE_SYSTEM_OTHER;
    if (is_in(local_types, ARRAY_LENGTH(local_types), type))
        return FILE_SYSTEM_LOCAL;
    if (is_in(pseudo_types, ARRAY_LENGTH(pseudo_types), type))
        return FILE_SYSTEM_PSEUDO;
    return FILE_SYSTEM_OTHER;
}

bool file_system_is_local(int fd)
{
    static const unsigned long local[] = {
        EXT4_SUPER_MAGIC, /* and its forerunners' */
        XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC, ZFS_MAGIC,
        F2FS_SUPER_MAGIC, TMPFS_MAGIC,       OVERLAYFS_SUPER_MAGIC,
    };
    struct statfs fs;
    if (fstatfs(fd, &fs))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(local); i++)
        if ((unsigned long)fs.f_type == local[i])
            return true;
    return false;
}
