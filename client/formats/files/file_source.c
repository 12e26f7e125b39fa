/* Opening sources, and the faults of paths.
 *
 * The daemon is handed regular files only. A directory, pipe, socket or device is refused here by
 * its kind, before it is opened (opening a device can do things, opening a pipe can wait) and again
 * on the descriptor, since the path may have changed in between; O_NONBLOCK keeps that second open
 * from waiting and is cleared afterwards. Files under /proc, /sys and their like claim to be
 * regular but have no honest size: they are refused by their file system.
 *
 * Called by the formats.
 */
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

int file_path_error(struct gad_error *error, int error_number, const char *path, const char *name)
{
    switch (error_number) {
    case ENOENT:
    case ENOTDIR: return error_set(error, GAD_NOT_FOUND, name, "there is no '%.200s'", path);
    case EACCES:
    case EPERM: return error_set(error, GAD_PERMISSION, name, "access to '%.200s' is denied", path);
    case EROFS:
        return error_set(error, GAD_READ_ONLY, name, "'%.200s' is on a read-only file system",
                         path);
    case ETXTBSY: return error_set(error, GAD_BUSY, name, "'%.200s' is being executed", path);
    case EISDIR: return error_set(error, GAD_BAD_DESCRIPTOR, name, "'%.200s' is a directory", path);
    case ENXIO:
        return error_set(error, GAD_BAD_DESCRIPTOR, name, "'%.200s' is no regular file", path);
    case ELOOP:
    case ENAMETOOLONG:
        return error_set(error, GAD_BAD_ARGUMENT, name, "'%.200s' cannot be followed: %s", path,
                         error_number == ELOOP ? "too many symbolic links" : "too long");
    default: return error_from_errno(error, error_number, name, path);
    }
}

int file_check_kind(mode_t mode, const char *path, const char *name, struct gad_error *error)
{
    const char *kind = "something unusual";
    switch (mode & S_IFMT) {
    case S_IFREG: return 0;
    case S_IFDIR: kind = "a directory"; break;
    case S_IFIFO: kind = "a pipe"; break;
    case S_IFSOCK: kind = "a socket"; break;
    case S_IFCHR: kind = "a character device"; break;
    case S_IFBLK: kind = "a block device"; break;
    default: break;
    }
    error_set(error, GAD_BAD_DESCRIPTOR, name, "'%.200s' is %s", path, kind);
    error_expected(error, "a regular file");
    error_found(error, "%s", kind);
    return GAD_BAD_DESCRIPTOR;
}

/* File systems whose files are made up when they are read. */
static const char *virtual_file_system(int fd)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {
        {PROC_SUPER_MAGIC, "/proc"},
        {SYSFS_MAGIC, "/sys"},
        {DEBUGFS_MAGIC, "debugfs"},
        {TRACEFS_MAGIC, "tracefs"},
        {SECURITYFS_MAGIC, "securityfs"},
        {SELINUX_MAGIC, "selinuxfs"},
        {CGROUP_SUPER_MAGIC, "cgroup"},
        {CGROUP2_SUPER_MAGIC, "cgroup"},
        {BPF_FS_MAGIC, "bpf"},
        {PSTOREFS_MAGIC, "pstore"},
        {EFIVARFS_MAGIC, "efivarfs"},
        {0x62656570, "configfs"},
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if ((unsigned long)fs.f_type == known[i].magic)
            return known[i].name;
    return NULL;
}

int file_check_stored(int fd, const struct stat *st, const char *path, const char *name,
                      struct gad_error *error)
{
    int r = file_check_kind(st->st_mode, path, name, error);
    if (r)
        return r;
    const char *fs = major(st->st_dev) == 0 ? virtual_file_system(fd) : NULL; /* no device's */
    if (fs) {
        error_set(error, GAD_BAD_DESCRIPTOR, name,
                  "'%.200s' is a file of the kernel (%s): copy it first", path, fs);
        error_expected(error, "a regular file that is stored somewhere");
        error_found(error, "a file of %s", fs);
        return GAD_BAD_DESCRIPTOR;
    }
    return 0;
}

static int check_opened(int fd, const char *path, const char *name, struct stat *ret_stat,
                        struct gad_error *error)
{
    if (fstat(fd, ret_stat) < 0)
        return file_path_error(error, errno, path, name);
    int r = file_check_stored(fd, ret_stat, path, name, error);
    if (r)
        return r;
    if (fcntl(fd, F_SETFL, 0) < 0) /* of those that can be set, only O_NONBLOCK is */
        return file_path_error(error, errno, path, name);
    return 0;
}

int file_source_open(const char *path, bool for_writing, const char *name, int *ret_fd,
                     struct stat *ret_stat, struct gad_error *error)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return file_path_error(error, errno, path, name);
    int r = file_check_kind(st.st_mode, path, name, error);
    if (r)
        return r;
    _cleanup_fd_ int fd =
        open(path, (for_writing ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return file_path_error(error, errno, path, name);
    r = check_opened(fd, path, name, &st, error);
    if (r)
        return r;
    *ret_stat = st;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int file_read(int fd, void *buffer, size_t n_bytes, uint64_t offset_bytes, size_t *ret_n_bytes)
{
    size_t done = 0;
    while (done < n_bytes) {
        ssize_t n = pread(fd, (char *)buffer + done, n_bytes - done, (off_t)(offset_bytes + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    *ret_n_bytes = done;
    return 0;
}

int file_write(int fd, const void *buffer, size_t n_bytes, uint64_t offset_bytes)
{
    size_t done = 0;
    while (done < n_bytes) {
        ssize_t n =
            pwrite(fd, (const char *)buffer + done, n_bytes - done, (off_t)(offset_bytes + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EIO;
        done += (size_t)n;
    }
    return 0;
}
