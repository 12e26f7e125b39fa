/* Replacing a file whole, as a collector needs it that may read at any moment.
 *
 * The new content is written under a hidden name that does not end as the file does (a collector
 * takes *.prom), with the mode 0644 whatever the umask, since the collector is another user. On any
 * failure the hidden file is removed and the old file is as it was.
 */
#include "client/ctl/stats/stats.h"

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

/* ".NAME.XXXXXX" in the file's folder. */
static int hidden_path(const char *path, char *ret, size_t n_bytes)
{
    const char *slash = strrchr(path, '/');
    int n_folder = slash ? (int)(slash + 1 - path) : 0;
    int n = snprintf(ret, n_bytes, "%.*s.%s.XXXXXX", n_folder, path, path + n_folder);
    if (path[n_folder] == '\0')
        return -EISDIR;
    return n < 0 || (size_t)n >= n_bytes ? -ENAMETOOLONG : 0;
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

static int replace(const char *path, const char *data, size_t n_bytes)
{
    char hidden[PATH_MAX];
    int r = hidden_path(path, hidden, sizeof(hidden));
    if (r < 0)
        return r;
    int fd = mkostemp(hidden, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = fill(fd, data, n_bytes);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(hidden, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(hidden);
    return r;
}

int stats_replace_file(const char *path, const char *data, size_t n_bytes, struct gad_error *error)
{
    int r = replace(path, data, n_bytes);
    return r < 0 ? error_from_errno(error, -r, path, path) : 0;
}
