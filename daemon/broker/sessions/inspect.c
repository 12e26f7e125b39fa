/* Inspection of descriptors.
 *
 * The client opened them as itself, so what it may read or write is settled; what is left to find
 * out is whether serving them can hurt anybody else:
 *
 *     flags  no O_PATH, O_APPEND (moves our writes) or O_DIRECT (flags are the client's, and can
 *            change under us); open for what they are used for
 *     kind   regular files only
 *     place  a local file system from the list: no server, no process of the user's behind it
 *
 * memfds are on a mount that no table shows: F_GET_SEALS works on them and says so.
 *
 * statx() with AT_STATX_DONT_SYNC answers from what the kernel knows already. The size is only good
 * for an early refusal: a file can shrink at any time, and the worker copes with it.
 *
 * Called by submit.c and region.c.
 */
#include "daemon/broker/sessions/inspect.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int refuse(struct gad_error *error, enum gad_status status, const char *name,
                  const char *expected, const char *found)
{
    error_set(error, status, name, "%s: expected %s, found %s", name, expected, found);
    error_expected(error, "%s", expected);
    error_found(error, "%s", found);
    return (int)status;
}

static const char *kind_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    case S_IFCHR: return "a character device";
    case S_IFBLK: return "a block device";
    case S_IFLNK: return "a symbolic link";
    case S_IFREG: return "a regular file";
    default: return "an anonymous inode";
    }
}

static int get_stat(int fd, const char *name, struct statx *ret, struct gad_error *error)
{
    unsigned mask = STATX_TYPE | STATX_SIZE | STATX_INO | STATX_BLOCKS | STATX_MNT_ID |
                    STATX_MTIME | STATX_CTIME;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, ret) < 0)
        return error_from_errno(error, errno, name, "statx");
    return 0;
}

static uint64_t device_of(const struct statx *st)
{
    return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

/* Pages behind the end would make up for missing ones before it. A file system in memory tells its
 * size of pages as that of blocks. */
static bool has_holes(const struct statx *st)
{
    uint64_t page = max_u64(st->stx_blksize, 512), n_bytes = st->stx_blocks * 512;
    return n_bytes < st->stx_size || n_bytes > (st->stx_size + page - 1) / page * page;
}

static int64_t nanoseconds(const struct statx_timestamp *at)
{
    return (int64_t)((uint64_t)at->tv_sec * 1000000000u + at->tv_nsec);
}

static void fill(const struct statx *st, struct inspected *ret)
{
    *ret = (struct inspected){
        .device = device_of(st),
        .inode = st->stx_ino,
        .size_bytes = st->stx_size,
        .modified_ns = nanoseconds(&st->stx_mtime),
        .changed_ns = nanoseconds(&st->stx_ctime),
        .has_holes = has_holes(st),
    };
}

static bool is_readable(int flags)
{
    return (flags & O_ACCMODE) == O_RDONLY || (flags & O_ACCMODE) == O_RDWR;
}

static bool is_writable(int flags)
{
    return (flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR;
}

/* The kind comes first: that a pipe is read-only is not what is wrong with it. */
static int check_flags(int flags, mode_t mode, const char *name, struct gad_error *error)
{
    if (flags & O_PATH)
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "an open file", "one opened with O_PATH");
    if (!S_ISREG(mode))
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "a regular file", kind_name(mode));
    if (flags & O_APPEND)
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "a file without O_APPEND", "O_APPEND");
    if (flags & O_DIRECT)
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "a file without O_DIRECT", "O_DIRECT");
    return 0;
}

static int check_access(int flags, bool is_output, const char *name, struct gad_error *error)
{
    if (is_output && !is_writable(flags))
        return refuse(error, GAD_READ_ONLY, name, "a descriptor open for writing",
                      "one open for reading only");
    if (!is_output && !is_readable(flags))
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "a descriptor open for reading",
                      "one open for writing only");
    return 0;
}

/* From fdinfo, for kernels before 5.8. */
static bool mount_id_of(int fd, const struct statx *st, uint64_t *ret_id)
{
    if (st->stx_mask & STATX_MNT_ID) {
        *ret_id = st->stx_mnt_id;
        return true;
    }
    char path[48], text[512];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    _cleanup_fd_ int info = open(path, O_RDONLY | O_CLOEXEC);
    if (info < 0)
        return false;
    ssize_t n = read(info, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *line = strstr(text, "mnt_id:");
    unsigned long long id;
    if (!line || sscanf(line, "mnt_id: %llu", &id) != 1)
        return false;
    *ret_id = id;
    return true;
}

/* Files on subvolumes of btrfs have devices of their own, which no table has. Their handles tell
 * them: of the kernel's own numbers (exportfs.h) these three are btrfs's. Making one is done
 * without asking any disk, server or process. */
static bool is_on_btrfs(int fd)
{
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } made = {.handle.handle_bytes = MAX_HANDLE_SZ};
    int mount_id;
    return name_to_handle_at(fd, "", &made.handle, &mount_id, AT_EMPTY_PATH) == 0 &&
           made.handle.handle_type >= 0x4d && made.handle.handle_type <= 0x4f;
}

/* By the mount, else, for a client in another mount namespace, by the device. */
static const char *type_of(struct mounts *mounts, int fd, const struct statx *st)
{
    uint64_t mount_id;
    const char *type = mount_id_of(fd, st, &mount_id) ? mounts_type(mounts, mount_id) : NULL;
    if (!type)
        type = mounts_type_of_device(mounts, device_of(st));
    return type || !is_on_btrfs(fd) ? type : "btrfs";
}

static int check_place(struct mounts *mounts, int fd, const struct statx *st, const char *name,
                       struct gad_error *error)
{
    char found[MOUNT_TYPE_SIZE + 32];
    if (fcntl(fd, F_GET_SEALS) >= 0)
        return 0; /* the kernel's own memory file system */
    const char *type = type_of(mounts, fd, st);
    switch (file_system_classify(type)) {
    case FILE_SYSTEM_LOCAL: return 0;
    case FILE_SYSTEM_PSEUDO:
        snprintf(found, sizeof(found), "a file of %s", type);
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "a regular file", found);
    default:
        snprintf(found, sizeof(found), "%s", type ? type : "a mount that is not known here");
        return refuse(error, GAD_USE_PROVIDER, name, "a local file system", found);
    }
}

bool inspect_may_hang(void *mounts, int fd)
{
    struct statx st;
    struct gad_error ignored;
    return fcntl(fd, F_GET_SEALS) < 0 && get_stat(fd, "", &st, &ignored) == 0 &&
           S_ISREG(st.stx_mode) &&
           file_system_classify(type_of(mounts, fd, &st)) == FILE_SYSTEM_OTHER;
}

int inspect_file(struct mounts *mounts, int fd, bool is_output, const char *name,
                 struct inspected *ret, struct gad_error *error)
{
    struct statx st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return error_from_errno(error, errno, name, "fcntl");
    int r = get_stat(fd, name, &st, error);
    if (r == 0)
        r = check_flags(flags, st.stx_mode, name, error);
    if (r == 0)
        r = check_place(mounts, fd, &st, name, error);
    if (r == 0)
        r = check_access(flags, is_output, name, error);
    if (r == 0) {
        fill(&st, ret);
        ret->is_memory = fcntl(fd, F_GET_SEALS) >= 0;
    }
    return r;
}

static int check_seals(int has, int wanted, enum gad_status status, const char *name,
                       struct gad_error *error)
{
    static const struct {
        int seal;
        const char *missing;
    } names[] = {
        {F_SEAL_SHRINK, "no F_SEAL_SHRINK"},
        {F_SEAL_GROW, "no F_SEAL_GROW"},
        {F_SEAL_WRITE, "no F_SEAL_WRITE"},
    };
    if (has < 0)
        return refuse(error, status, name, "a sealed memfd", "no memfd");
    for (unsigned i = 0; i < ARRAY_LENGTH(names); i++)
        if ((wanted & names[i].seal) && !(has & names[i].seal))
            return refuse(error, status, name, "a sealed memfd", names[i].missing);
    return 0;
}

int inspect_memfd(int fd, int seals, uint64_t min_size_bytes, bool is_written,
                  enum gad_status status, const char *name, struct inspected *ret,
                  struct gad_error *error)
{
    struct statx st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return error_from_errno(error, errno, name, "fcntl");
    int r = get_stat(fd, name, &st, error);
    if (r)
        return r;
    if ((flags & O_PATH) || !S_ISREG(st.stx_mode))
        return refuse(error, status, name, "a sealed memfd",
                      flags & O_PATH ? "one opened with O_PATH" : kind_name(st.stx_mode));
    int has = fcntl(fd, F_GET_SEALS);
    r = check_seals(has, seals, status, name, error);
    if (r)
        return r;
    if (is_written && (has & F_SEAL_WRITE || has & F_SEAL_FUTURE_WRITE))
        return refuse(error, status, name, "a memfd that can be written", "F_SEAL_WRITE");
    if (is_written ? (flags & O_ACCMODE) != O_RDWR : !is_readable(flags))
        return refuse(
            error, status, name,
            is_written ? "a memfd open for reading and writing" : "a memfd open for reading",
            is_writable(flags) ? "one open for writing only" : "one open for reading only");
    if (st.stx_size < min_size_bytes) {
        char expected[48], found[48];
        snprintf(expected, sizeof(expected), "%llu bytes", (unsigned long long)min_size_bytes);
        snprintf(found, sizeof(found), "%llu bytes", (unsigned long long)st.stx_size);
        return refuse(error, status, name, expected, found);
    }
    fill(&st, ret);
    ret->may_lose_pages = !is_writable(flags) && !(has & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
    return 0;
}

static bool has_name(int fd, int (*get_name)(int fd, struct sockaddr *restrict name,
                                             socklen_t *restrict n_bytes))
{
    struct sockaddr_un address;
    socklen_t n_bytes = sizeof(address);
    return get_name(fd, (struct sockaddr *)&address, &n_bytes) < 0 ||
           n_bytes > sizeof(address.sun_family);
}

static int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t n_bytes = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &n_bytes) < 0 ? -1 : value;
}

/* A connection to some service would have its name at one end, or the service's process as peer. */
int inspect_socketpair(int fd, uid_t uid, const char *name, struct gad_error *error)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t n_bytes = sizeof(peer);
    if (socket_option(fd, SO_DOMAIN) != AF_UNIX || socket_option(fd, SO_TYPE) != SOCK_SEQPACKET)
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "a Unix socket of packets",
                      "another descriptor");
    if (has_name(fd, getsockname) || has_name(fd, getpeername) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) < 0 || peer.uid != uid)
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "one of a pair of sockets of the client's",
                      "another socket");
    return 0;
}

int inspect_eventfd(int fd, const char *name, struct gad_error *error)
{
    char path[48], target[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n < 0)
        return error_from_errno(error, errno, name, "readlink");
    target[n] = '\0';
    if (strcmp(target, "anon_inode:[eventfd]") != 0)
        return refuse(error, GAD_BAD_DESCRIPTOR, name, "an eventfd", "another descriptor");
    return 0;
}
