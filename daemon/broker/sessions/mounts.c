/* The table of mounts, read when it changed.
 *
 * A line of mountinfo (proc(5)):
 *
 *     36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 *     ^id   ^device                                ^type, behind " - "
 *
 * A service has a mount namespace of its own, and there the mounts of its clients' files have other
 * ids. The device is the same in all namespaces, and as long as a mount of ours holds it, nothing
 * else can have its number.
 *
 * Both are reused, so an old table could take a server's files for local ones. poll() on the
 * open mountinfo reports POLLPRI once the mounts changed since it was last asked; that is asked
 * before every look-up and costs no more than a system call. Reading it never asks a file system.
 *
 * Called by inspect.c.
 */
#include "daemon/broker/sessions/mounts.h"
#include "proto/util.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define MAX_TABLE_BYTES (4u * 1024u * 1024u)

struct mount {
    uint64_t id, device;
    char type[MOUNT_TYPE_SIZE];
};

struct mounts {
    int fd;
    struct mount *table; /* in the order of the file */
    unsigned n, capacity;
    bool is_read;
};

int mounts_new(const char *path, struct mounts **ret_mounts)
{
    struct mounts *mounts = calloc(1, sizeof(*mounts));
    if (!mounts)
        return -ENOMEM;
    mounts->fd = open(path ? path : "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (mounts->fd < 0) {
        int r = -errno;
        free(mounts);
        return r;
    }
    *ret_mounts = mounts;
    return 0;
}

struct mounts *mounts_free(struct mounts *mounts)
{
    if (mounts) {
        close_fd(&mounts->fd);
        free(mounts->table);
        free(mounts);
    }
    return NULL;
}

static int add(struct mounts *mounts, uint64_t id, uint64_t device, const char *type,
               size_t n_chars)
{
    if (n_chars >= MOUNT_TYPE_SIZE)
        n_chars = MOUNT_TYPE_SIZE - 1; /* no name of the lists is that long */
    if (mounts->n == mounts->capacity) {
        unsigned capacity = mounts->capacity ? 2 * mounts->capacity : 64;
        struct mount *table = realloc(mounts->table, capacity * sizeof(*table));
        if (!table)
            return -ENOMEM;
        mounts->table = table;
        mounts->capacity = capacity;
    }
    struct mount *mount = &mounts->table[mounts->n++];
    *mount = (struct mount){.id = id, .device = device};
    memcpy(mount->type, type, n_chars);
    return 0;
}

static int parse_line(struct mounts *mounts, const char *line)
{
    char *end;
    unsigned major, minor;
    errno = 0;
    unsigned long long id = strtoull(line, &end, 10);
    const char *dash = strstr(line, " - ");
    if (errno || end == line || *end != ' ' || !dash ||
        sscanf(end, " %*u %u:%u ", &major, &minor) != 2)
        return 0; /* a line of another form names nothing that we serve */
    const char *type = dash + 3;
    return add(mounts, id, (uint64_t)major << 32 | minor, type, strcspn(type, " \n"));
}

static int read_all(int fd, char **ret_text)
{
    _cleanup_free_ char *text = NULL;
    size_t n = 0, capacity = 0;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    for (;;) {
        if (n + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : 16384;
            if (capacity > MAX_TABLE_BYTES)
                return -EFBIG;
            char *larger = realloc(text, capacity);
            if (!larger)
                return -ENOMEM;
            text = larger;
        }
        ssize_t got = read(fd, text + n, capacity - n - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    text[n] = '\0';
    *ret_text = steal_ptr(text);
    return 0;
}

static int read_table(struct mounts *mounts)
{
    _cleanup_free_ char *text = NULL;
    mounts->n = 0;
    int r = read_all(mounts->fd, &text);
    for (char *line = text; r == 0 && line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        r = parse_line(mounts, line);
        line = end ? end + 1 : NULL;
    }
    mounts->is_read = r == 0;
    return r;
}

static bool has_changed(const struct mounts *mounts)
{
    struct pollfd p = {.fd = mounts->fd, .events = POLLPRI};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLPRI | POLLERR));
}

/* Asked first, so that a change while we read is seen the next time. */
static bool refresh(struct mounts *mounts)
{
    return !(has_changed(mounts) || !mounts->is_read) || read_table(mounts) == 0;
}

const char *mounts_type(struct mounts *mounts, uint64_t mount_id)
{
    if (!refresh(mounts))
        return NULL;
    for (unsigned i = 0; i < mounts->n; i++)
        if (mounts->table[i].id == mount_id)
            return mounts->table[i].type;
    return NULL;
}

const char *mounts_type_of_device(struct mounts *mounts, uint64_t device)
{
    if (!refresh(mounts))
        return NULL;
    for (unsigned i = 0; i < mounts->n; i++)
        if (mounts->table[i].device == device)
            return mounts->table[i].type;
    return NULL;
}
