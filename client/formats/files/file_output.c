/* New files, whole or not at all.
 *
 *     open    directory of the target (links followed, see may_follow()), in it a file without a
 *             name
 *     write   by whoever has the descriptor
 *     commit  mode, owner and ACL of the file that is replaced; then the name, in one step:
 *             link() where nothing has the name, else a hidden name first and rename()
 *
 * Everything is named in the directory that was opened, whatever others do to the way there. Where
 * a file system has no files without a name the file has a hidden one from the beginning. After a
 * process was killed the first kind is gone by itself; the second stays until the next output of
 * that user in that directory removes it (hidden.c). A file that is replaced keeps its old content
 * for those who have it open.
 *
 * Called by npy, raw and HDF5 outputs.
 */
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "client/hidden.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#define MAX_LINKS     40
#define MAX_TRIES     100
#define ACL_NAME      "system.posix_acl_access"
#define ACL_MAX_BYTES 8192

struct file_output {
    int dir_fd, fd;
    dev_t dir_dev;
    ino_t dir_ino;
    char *path; /* the target, links followed */
    char *dir;
    const char *base;             /* in path */
    char temporary[NAME_MAX + 1]; /* in dir; "" when the file has no name */
    char open_path[32];           /* the file that is open, whoever has its name */
    bool is_unreserved;           /* some space could not be reserved: flush at the commit */
    bool is_synced;               /* on the disk when the commit returns */
    bool is_committed;
};

/* Takes the last component apart: "a/b" -> "a", "b"; "b" -> ".", "b"; "/b" -> "/", "b". */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static int set_path(struct file_output *output, char *path_take)
{
    free(output->path);
    free(output->dir);
    output->path = path_take;
    output->dir = path_take ? directory_of(path_take) : NULL;
    if (!output->dir)
        return -ENOMEM;
    char *slash = strrchr(output->path, '/');
    output->base = slash ? slash + 1 : output->path;
    return 0;
}

/* `text` is relative to the directory that is open, or to where the process is. */
static int open_directory(struct file_output *output, const char *text)
{
    _cleanup_free_ char *dir = directory_of(text);
    if (!dir)
        return -ENOMEM;
    int fd = openat(output->dir_fd < 0 ? AT_FDCWD : output->dir_fd, dir,
                    O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    close_fd(&output->dir_fd);
    output->dir_fd = fd;
    return 0;
}

/* As the system does with links in /tmp when it opens a file, which it would not see here: what
 * somebody else has put into a directory that everybody writes to leads nowhere. */
static bool may_follow(const struct file_output *output, const struct stat *link)
{
    struct stat dir;
    if (fstat(output->dir_fd, &dir) < 0)
        return false;
    bool is_shared = dir.st_mode & S_ISVTX && dir.st_mode & (S_IWOTH | S_IWGRP);
    return !is_shared || link->st_uid == geteuid() || link->st_uid == dir.st_uid;
}

/* The text of the link that has the target's name; "" where it is none. */
static int read_link(const struct file_output *output, char ret_target[PATH_MAX])
{
    struct stat st;
    *ret_target = '\0';
    _cleanup_fd_ int fd = openat(output->dir_fd, output->base, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISLNK(st.st_mode))
        return 0;
    if (!may_follow(output, &st))
        return -EACCES;
    ssize_t n = readlinkat(fd, "", ret_target, PATH_MAX);
    if (n < 0 || n >= PATH_MAX)
        return n < 0 ? -errno : -ENAMETOOLONG;
    ret_target[n] = '\0';
    return 0;
}

/* The text of a link, relative to the place of the link itself. */
static char *beside(const struct file_output *output, const char *target)
{
    char *path;
    if (*target == '/')
        return strdup(target);
    return asprintf(&path, "%s/%s", output->dir, target) < 0 ? NULL : path;
}

static bool is_base_usable(const char *base)
{
    return *base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0;
}

static int link_error(const struct file_output *output, int number, const char *name,
                      struct gad_error *error)
{
    if (number != EACCES)
        return file_path_error(error, number, output->path, name);
    error_set(error, GAD_PERMISSION, name,
              "'%.200s' is a symbolic link of somebody else's in a directory that others write to",
              output->path);
    error_expected(error, "a file, or a link of your own");
    error_found(error, "another user's link");
    return GAD_PERMISSION;
}

static int find_directory(struct file_output *output, const char *path, const char *name,
                          struct gad_error *error)
{
    char target[PATH_MAX];
    struct stat st;
    snprintf(target, sizeof(target), "%s", path);
    int r = strlen(path) < sizeof(target) ? set_path(output, strdup(path)) : -ENAMETOOLONG;
    if (r)
        return file_path_error(error, -r, path, name);
    for (int i = 0; *target; i++) {
        r = open_directory(output, target);
        if (r)
            return file_path_error(error, -r, output->dir, name);
        if (!is_base_usable(output->base))
            return file_path_error(error, EISDIR, output->path, name);
        r = i == MAX_LINKS ? -ELOOP : read_link(output, target);
        if (r)
            return link_error(output, -r, name, error);
        if (*target && set_path(output, beside(output, target)))
            return error_from_errno(error, ENOMEM, name, "output");
    }
    if (fstat(output->dir_fd, &st) < 0)
        return file_path_error(error, errno, output->dir, name);
    output->dir_dev = st.st_dev;
    output->dir_ino = st.st_ino;
    return 0;
}

/* What has the target's name now; ret_exists false when nothing. Refuses what is no regular file,
 * what may not be written, and what a sticky directory would not let us replace. */
static int check_existing(const struct file_output *output, const char *name, bool *ret_exists,
                          struct stat *ret_stat, struct gad_error *error)
{
    struct stat dir;
    *ret_exists = fstatat(output->dir_fd, output->base, ret_stat, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*ret_exists)
        return errno == ENOENT ? 0 : file_path_error(error, errno, output->path, name);
    int r = file_check_kind(ret_stat->st_mode, output->path, name, error);
    if (r)
        return r;
    if (faccessat(output->dir_fd, output->base, W_OK, AT_EACCESS) < 0)
        return error_set(error, GAD_READ_ONLY, name, "'%.200s' is there and may not be written",
                         output->path);
    uid_t me = geteuid();
    if (fstat(output->dir_fd, &dir) == 0 && (dir.st_mode & S_ISVTX) && me != 0 &&
        me != dir.st_uid && me != ret_stat->st_uid)
        return error_set(error, GAD_PERMISSION, name,
                         "'%.200s' is somebody else's in a sticky directory", output->path);
    return 0;
}

static int make_hidden_name(const struct file_output *output, char ret_name[NAME_MAX + 1])
{
    char tag[HIDDEN_TAG_SIZE];
    int r = hidden_tag(tag);
    if (r == 0)
        hidden_file_name(output->base, tag, ret_name);
    return r;
}

static int open_named(struct file_output *output, mode_t mode)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        char temporary[NAME_MAX + 1];
        int r = make_hidden_name(output, temporary);
        if (r)
            return r;
        output->fd = openat(output->dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (output->fd >= 0) {
            memcpy(output->temporary, temporary, sizeof(temporary));
            return 0;
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int open_file(struct file_output *output, bool exists)
{
    /* Until the commit nobody else may read what will replace a private file. */
    mode_t mode = exists ? 0600 : 0666;
    output->fd = openat(output->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    int r = output->fd >= 0 ? 0 : -errno;
    if (r == -EOPNOTSUPP || r == -EISDIR || r == -ENOENT || r == -EINVAL)
        r = open_named(output, mode);
    snprintf(output->open_path, sizeof(output->open_path), "/proc/self/fd/%d", output->fd);
    return r;
}

/* The directory is there, so what is not there any more, or never was, is a place for a file in it:
 * a file system of the kernel has none. */
static int create_error(const struct file_output *output, int error_number, const char *name,
                        struct gad_error *error)
{
    if (error_number != ENOENT)
        return file_path_error(error, error_number, output->dir, name);
    error_set(error, GAD_BAD_DESCRIPTOR, name, "no file can be made in '%.200s'", output->dir);
    error_expected(error, "a directory that files can be written to");
    error_found(error, "%.60s", output->dir);
    return GAD_BAD_DESCRIPTOR;
}

int file_output_new(const char *path, const char *name, struct file_output **ret_output,
                    struct gad_error *error)
{
    struct file_output *output = calloc(1, sizeof(*output));
    if (!output)
        return error_from_errno(error, ENOMEM, name, "output");
    output->fd = output->dir_fd = -1;
    struct stat st;
    bool exists = false;
    int r = find_directory(output, path, name, error);
    if (r == 0)
        r = check_existing(output, name, &exists, &st, error);
    if (r == 0) {
        hidden_sweep(output->dir_fd);
        r = open_file(output, exists);
        if (r < 0)
            r = create_error(output, -r, name, error);
    }
    if (r) {
        file_output_free(output);
        return r;
    }
    *ret_output = output;
    return 0;
}

struct file_output *file_output_free(struct file_output *output)
{
    if (!output)
        return NULL;
    if (*output->temporary && !output->is_committed)
        unlinkat(output->dir_fd, output->temporary, 0);
    close_fd(&output->fd);
    close_fd(&output->dir_fd);
    free(output->dir);
    free(output->path);
    free(output);
    return NULL;
}

int file_output_fd(const struct file_output *output)
{
    return output->fd;
}

const char *file_output_path(const struct file_output *output)
{
    return output->open_path;
}

const char *file_output_target(const struct file_output *output)
{
    return output->path;
}

bool file_output_is_for(const struct file_output *output, const struct file_output *other)
{
    return output->dir_dev == other->dir_dev && output->dir_ino == other->dir_ino &&
           strcmp(output->base, other->base) == 0;
}

int file_output_open_current(const struct file_output *output, int *ret_fd)
{
    /* Were it a pipe by now, opening it would wait. */
    int fd = openat(output->dir_fd, output->base,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

bool file_output_is_current(const struct file_output *output, int fd)
{
    struct stat named, opened;
    return fstat(fd, &opened) == 0 &&
           fstatat(output->dir_fd, output->base, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

int file_output_reserve(struct file_output *output, uint64_t offset_bytes, uint64_t n_bytes,
                        const char *name, struct gad_error *error)
{
    bool is_reserved;
    int r =
        file_reserve(output->fd, offset_bytes, n_bytes, output->path, name, &is_reserved, error);
    if (r == 0 && !is_reserved)
        output->is_unreserved = true;
    return r;
}

/* The ACL of the file that goes. Returns the mode that may be set beside it. */
static mode_t keep_acl(const struct file_output *output, mode_t mode)
{
    char path[64 + NAME_MAX + 1], acl[ACL_MAX_BYTES];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", output->dir_fd, output->base);
    ssize_t n = lgetxattr(path, ACL_NAME, acl, sizeof(acl));
    if (n > 0 && fsetxattr(output->fd, ACL_NAME, acl, (size_t)n, 0) == 0)
        return mode;
    bool had_none = n < 0 && (errno == ENODATA || errno == EOPNOTSUPP);
    fremovexattr(output->fd, ACL_NAME);
    return had_none ? mode : mode & ~(mode_t)070; /* with an ACL the group's bits are its mask */
}

/* Owner, group, ACL and mode of the file that goes, as far as the system allows it. Rights are
 * never widened by what it does not allow. */
static int keep_rights(const struct file_output *output, const struct stat *st)
{
    mode_t mode = st->st_mode & 07777;
    bool has_owner = fchown(output->fd, st->st_uid, st->st_gid) == 0;
    bool has_group = has_owner || fchown(output->fd, (uid_t)-1, st->st_gid) == 0;
    if (!has_owner && st->st_uid != geteuid())
        mode &= ~(mode_t)S_ISUID;
    if (has_group)
        mode = keep_acl(output, mode);
    else
        mode &= (mode << 3 & 070) | 05707; /* our group may what everybody may */
    return fchmod(output->fd, mode) < 0 ? -errno : 0;
}

/* Gives the file the name `base`, which nothing may have. */
static int link_file(const struct file_output *output, const char *base)
{
    char path[64];
    if (*output->temporary) {
        if (linkat(output->dir_fd, output->temporary, output->dir_fd, base, 0) < 0)
            return -errno;
        return 0;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", output->fd);
    if (linkat(AT_FDCWD, path, output->dir_fd, base, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno == ENOENT && linkat(output->fd, "", output->dir_fd, base, AT_EMPTY_PATH) == 0)
        return 0;
    return -errno;
}

void file_output_sync(struct file_output *output)
{
    output->is_synced = true;
}

static int sync_name(const struct file_output *output)
{
    _cleanup_fd_ int fd = openat(output->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int commit_new(struct file_output *output)
{
    if (!*output->temporary)
        return link_file(output, output->base);
    if (renameat2(output->dir_fd, output->temporary, output->dir_fd, output->base,
                  RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    int r = link_file(output, output->base);
    if (r == 0)
        unlinkat(output->dir_fd, output->temporary, 0);
    return r;
}

static int commit_over(struct file_output *output)
{
    char temporary[NAME_MAX + 1];
    memcpy(temporary, output->temporary, sizeof(temporary));
    int r = 0;
    for (int i = 0; !*output->temporary && i < MAX_TRIES; i++) {
        r = make_hidden_name(output, temporary);
        if (r == 0)
            r = link_file(output, temporary);
        if (r != -EEXIST)
            break;
    }
    if (r)
        return r;
    if (renameat(output->dir_fd, temporary, output->dir_fd, output->base) == 0)
        return 0;
    r = -errno;
    if (!*output->temporary)
        unlinkat(output->dir_fd, temporary, 0);
    return r;
}

static int exists_error(const struct file_output *output, const char *name, struct gad_error *error)
{
    error_set(error, GAD_EXISTS, name, "'%.200s' has appeared meanwhile", output->path);
    error_expected(error, "no such file, as when this began");
    error_found(error, "'%.160s', made by another program or job", output->path);
    return GAD_EXISTS;
}

int file_output_commit(struct file_output *output, bool must_be_new, const char *name,
                       struct gad_error *error)
{
    struct stat st;
    bool exists;
    int r = check_existing(output, name, &exists, &st, error);
    if (r)
        return r;
    if (exists && must_be_new)
        return exists_error(output, name, error);
    if ((output->is_unreserved || output->is_synced) && fsync(output->fd) < 0)
        return file_path_error(error, errno, output->path, name);
    if (exists)
        r = keep_rights(output, &st);
    if (r == 0)
        r = exists ? commit_over(output) : commit_new(output);
    if (r == -EEXIST && must_be_new)
        return exists_error(output, name, error);
    if (r == -EEXIST)
        r = commit_over(output); /* it appeared just now */
    if (r == 0)
        output->is_committed = true;
    if (r == 0 && output->is_synced)
        r = sync_name(output);
    return r < 0 ? file_path_error(error, -r, output->path, name) : 0;
}
