/* Replacing a file whole, as a collector needs it that may read at any moment.
 *
 * The new content is written under a hidden name that does not end as the file does (a collector
 * takes *.prom), with the mode 0644 whatever the umask, since the collector is another user. On any
 * failure the hidden file is removed and the old file is as it was.
 *
 * What is there and is no file (a device, a pipe, /dev/stdout) is written to, not replaced.
 */
#include "client/ctl/stats/stats.h"
#include "client/hidden.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *data, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, data, n_bytes);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            data += n;
            n_bytes -= (size_t)n;
        }
    }
    return 0;
}

static int fill(int fd, const char *data, size_t n_bytes)
{
    int r = write_all(fd, data, n_bytes);
    if (r == 0 && fchmod(fd, 0644) < 0)
        r = -errno;
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r;
}

static int open_folder(const char *path, const char *base)
{
    _cleanup_free_ char *folder = base > path ? strndup(path, (size_t)(base - path)) : strdup(".");
    if (!folder)
        return -ENOMEM;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Below one folder, whatever others do to the way there. */
static int replace(const char *path, const char *data, size_t n_bytes)
{
    char tag[HIDDEN_TAG_SIZE], hidden[NAME_MAX + 1];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (*base == '\0')
        return -EISDIR;
    _cleanup_fd_ int folder_fd = open_folder(path, base);
    int r = folder_fd < 0 ? folder_fd : hidden_tag(tag);
    if (r < 0)
        return r;
    hidden_sweep(folder_fd);
    hidden_file_name(base, tag, hidden);
    int fd = openat(folder_fd, hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = fill(fd, data, n_bytes);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && renameat(folder_fd, hidden, folder_fd, base) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(folder_fd, hidden, 0);
    return r;
}

static int write_into(const char *path, const char *data, size_t n_bytes)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : write_all(fd, data, n_bytes);
}

int stats_replace_file(const char *path, const char *data, size_t n_bytes, struct gad_error *error)
{
    struct stat st;
    bool is_no_file = stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    int r = is_no_file ? write_into(path, data, n_bytes) : replace(path, data, n_bytes);
    return r < 0 ? error_from_errno(error, -r, path, path) : 0;
}
