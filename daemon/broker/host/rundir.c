/* Where the daemon is found.
 *
 * Two clients may start a private daemon at the same moment: the one that gets the lock file binds
 * the socket, the other leaves, and both clients connect to the same one. The lock file is never
 * removed (a second starter could hold a lock on a file that has no name any more); the kernel
 * drops the lock with the process. A private daemon serves whoever can reach its socket only if the
 * directory lets nobody else in, so its owner and mode are checked, not assumed.
 *
 * The socket has its mode and its group from the moment that it has its name, so that a client who
 * knocks while the daemon starts is never told that it may not. Only a daemon that is not root and
 * gives its socket to another of its groups cannot have that: until the group is set, which is a
 * moment later, nobody else gets in.
 *
 * Called by server.c.
 */
#include "daemon/broker/host/rundir.h"
#include "proto/util.h"

#include <ctype.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 256

int rundir_prepare(const char *socket_path)
{
    char path[PATH_MAX];
    struct stat st;
    if ((size_t)snprintf(path, sizeof(path), "%s", socket_path) >= sizeof(path))
        return -ENAMETOOLONG;
    const char *directory = dirname(path);
    if (mkdir(directory, 0700) < 0 && errno != EEXIST)
        return -errno;
    _cleanup_fd_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? 0 : -EPERM;
}

int rundir_lock(const char *socket_path, int *ret_fd)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s.lock", socket_path) >= sizeof(path))
        return -ENAMETOOLONG;
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int rundir_find_group(const char *name, gid_t *ret_group)
{
    char *end;
    errno = 0;
    const struct group *group = getgrnam(name);
    if (group) {
        *ret_group = group->gr_gid;
        return 0;
    }
    unsigned long number = strtoul(name, &end, 10);
    if (!isdigit((unsigned char)name[0]) || *end != '\0' || number >= (gid_t)-1)
        return -ENOENT;
    *ret_group = (gid_t)number;
    return 0;
}

/* Whether new files get the group now. */
static bool make_files_of(gid_t group)
{
    setfsgid(group);
    return (gid_t)setfsgid((gid_t)-1) == group; /* nothing else says whether it was allowed */
}

static int bind_with_mode(int fd, const struct sockaddr_un *address, mode_t mode, gid_t group)
{
    bool is_of_group = group == (gid_t)-1 || make_files_of(group);
    mode_t before = umask(is_of_group ? 0777 & ~mode : 0177);
    int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
    umask(before);
    setfsgid(getegid());
    return r;
}

int rundir_listen(const char *socket_path, mode_t mode, gid_t group, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, socket_path, strlen(socket_path));
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    struct stat st;
    if (lstat(socket_path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return -EEXIST;
        if (unlink(socket_path) < 0)
            return -errno;
    }
    int r = bind_with_mode(fd, &address, mode, group);
    if (r == 0 && group != (gid_t)-1 && lchown(socket_path, (uid_t)-1, group) < 0)
        r = -errno;
    if (r == 0 && chmod(socket_path, mode) < 0)
        r = -errno;
    if (r == 0 && listen(fd, BACKLOG) < 0)
        r = -errno;
    if (r == 0)
        *ret_fd = steal_fd(&fd);
    return r;
}
