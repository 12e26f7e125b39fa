/* Removing folders with all that is in them.
 *
 * Each folder is opened where it was found, without following links, so that nothing outside is
 * ever reached, whatever others do meanwhile. Depth has a limit: stores are not that deep.
 *
 * Called by hidden.c and outputs that are folders.
 */
#include "client/tree.h"
#include "proto/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#define MAX_DEPTH 64

static int remove_at(int dir_fd, const char *name, int depth);

static int remove_entries(int fd_take, int depth)
{
    DIR *directory = fdopendir(fd_take);
    if (!directory) {
        int r = -errno;
        close(fd_take);
        return r;
    }
    int r = 0;
    for (struct dirent *d; (d = readdir(directory));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        int one = remove_at(dirfd(directory), d->d_name, depth + 1);
        r = one ? one : r;
    }
    closedir(directory);
    return r;
}

static int remove_at(int dir_fd, const char *name, int depth)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (depth >= MAX_DEPTH) {
        close(fd);
        return -ELOOP;
    }
    int r = remove_entries(fd, depth);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    return r ? r : -errno;
}

int tree_remove(int dir_fd, const char *name)
{
    return remove_at(dir_fd, name, 0);
}
