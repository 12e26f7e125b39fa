/* Where agents are found: sockets in the private directory above the registry.
 *
 *     gpuarrayd/agent-KEY-PID    an agent listens here
 *     gpuarrayd/agents.lock      flock: one looks for an agent, or starts one, at a time
 *
 * An agent opens files for whoever asks it, so it must be one whose files are the same and come out
 * the same: the key is a hash of what a process hands to all that it does and an order does not
 * carry: program, groups, umask, limits, mount namespace, the environment that the library and HDF5
 * read, and whether the agent would be in a scope. The directory is the user's alone.
 *
 * A socket is made anew by each agent under a name of its own, so nobody takes another's place. A
 * name whose agent is gone is removed by whoever finds it, under the lock.
 *
 * Called by submit.c, agent.c and numbers.c.
 */
#include "client/ctl/agent/agent.h"
#include "client/clock.h"
#include "proto/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCK_NAME    "agents.lock"
#define PREFIX       "agent-"
#define NAME_SIZE    64
#define LOCK_WAIT_MS 10000
#define LOCK_STEP_MS 2
#define BACKLOG      64
#define MAX_GROUPS   256

/* The key ------------------------------------------------------------------------------------- */

static uint64_t hash_bytes(const void *bytes, size_t n_bytes, uint64_t hash)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n_bytes; i++) /* FNV-1a */
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text), UINT64_C(0xcbf29ce484222325));
}

/* Those that the library, HDF5 or the loader read, in whatever order they are. */
static uint64_t hash_environment(void)
{
    static const char *const prefixes[] = {"GPUARRAYD_",       "HDF5_", "LD_",
                                           "XDG_RUNTIME_DIR=", "HOME=", "TMPDIR="};
    uint64_t sum = 0;
    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
            if (strncmp(*variable, prefixes[i], strlen(prefixes[i])) == 0)
                sum += hash_text(*variable);
    return sum;
}

static uint64_t hash_file(const char *path, uint64_t hash)
{
    struct stat st;
    if (stat(path, &st))
        return hash;
    uint64_t what[] = {st.st_dev, st.st_ino, (uint64_t)st.st_ctim.tv_sec,
                       (uint64_t)st.st_ctim.tv_nsec};
    return hash_bytes(what, sizeof(what), hash);
}

static uint64_t hash_inode(const char *path, uint64_t hash)
{
    struct stat st;
    return stat(path, &st) ? hash : hash_bytes(&st.st_ino, sizeof(st.st_ino), hash);
}

static uint64_t hash_rights(uint64_t hash)
{
    static const int limits[] = {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_CPU, RLIMIT_NOFILE};
    gid_t groups[MAX_GROUPS];
    int n_groups = getgroups(MAX_GROUPS, groups);
    gid_t group = getegid();
    mode_t mask = umask(0);
    umask(mask);
    hash = hash_bytes(&group, sizeof(group), hash);
    hash = hash_bytes(&mask, sizeof(mask), hash);
    if (n_groups > 0)
        hash = hash_bytes(groups, (size_t)n_groups * sizeof(*groups), hash);
    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
        struct rlimit limit = {0};
        getrlimit(limits[i], &limit);
        if (limits[i] == RLIMIT_NOFILE)
            limit.rlim_cur = 0; /* the agent raises it */
        hash = hash_bytes(&limit, sizeof(limit), hash);
    }
    return hash;
}

/* The place ------------------------------------------------------------------------------------ */

static int open_folder(void)
{
    char path[AGENTS_PATH_SIZE];
    for (unsigned i = 0; i < AGENTS_N_FOLDERS; i++)
        if (agents_folder(i, true, path)) {
            *strrchr(path, '/') = '\0';
            return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
    return -1;
}

void agent_place_init(struct agent_place *ret)
{
    uint64_t hash = hash_text(gad_versions());
    hash = hash_file("/proc/self/exe", hash);
    hash = hash_inode("/proc/self/ns/mnt", hash);
    hash = hash_rights(hash) + hash_environment();
    hash = hash_text(agent_scope_is_reachable() ? "scope" : "session") ^ hash;
    snprintf(ret->key, sizeof(ret->key), "%016llx", (unsigned long long)hash);
    int low = open_folder();
    ret->folder_fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 3);
    close_fd(&low);
}

void agent_place_deinit(struct agent_place *place)
{
    close_fd(&place->folder_fd);
}

int agent_place_lock(const struct agent_place *place)
{
    int64_t deadline = clock_deadline_ms(LOCK_WAIT_MS);
    _cleanup_fd_ int fd =
        openat(place->folder_fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_left_ms(deadline) == 0)
            return -1;
        clock_sleep_ms(LOCK_STEP_MS);
    }
    return steal_fd(&fd);
}

/* By the directory's descriptor, since paths of sockets are short. */
static struct sockaddr_un address_in(int folder_fd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.64s", folder_fd, name);
    return address;
}

static int connect_in(int folder_fd, const char *name)
{
    struct sockaddr_un address = address_in(folder_fd, name);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
        fcntl(fd, F_SETFL, 0))
        return -1;
    return steal_fd(&fd);
}

int agent_place_connect(const struct agent_place *place, unsigned n)
{
    char prefix[NAME_SIZE];
    int found = -1;
    int copy = openat(place->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    snprintf(prefix, sizeof(prefix), PREFIX "%s-", place->key);
    for (struct dirent *d; directory && found < 0 && (d = readdir(directory));) {
        if (strncmp(d->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        bool is_meant = strncmp(d->d_name, prefix, strlen(prefix)) == 0;
        int fd = connect_in(place->folder_fd, d->d_name);
        if (fd < 0 && errno == ECONNREFUSED)
            unlinkat(place->folder_fd, d->d_name, 0);
        if (fd >= 0 && is_meant && n-- == 0)
            found = fd;
        else
            close_fd(&fd);
    }
    if (directory)
        closedir(directory);
    else
        close_fd(&copy);
    return found;
}

int agent_place_connect_path(const char *path)
{
    char folder[AGENTS_PATH_SIZE];
    const char *name = strrchr(path, '/');
    if (!name)
        return -1;
    snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
    _cleanup_fd_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -1 : connect_in(fd, name + 1);
}

int agent_place_listen(const struct agent_place *place, char ret_path[AGENTS_PATH_SIZE])
{
    char name[NAME_SIZE], self[48], folder[AGENTS_PATH_SIZE];
    ret_path[0] = '\0';
    snprintf(self, sizeof(self), "/proc/self/fd/%d", place->folder_fd);
    ssize_t n = place->folder_fd < 0 ? -1 : readlink(self, folder, sizeof(folder) - 1);
    if (n <= 0 || (size_t)n + NAME_SIZE >= AGENTS_PATH_SIZE)
        return -1;
    snprintf(name, sizeof(name), PREFIX "%s-%d", place->key, (int)getpid());
    struct sockaddr_un address = address_in(place->folder_fd, name);
    unlinkat(place->folder_fd, name, 0); /* of an earlier process with our pid */
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG))
        return -1;
    snprintf(ret_path, AGENTS_PATH_SIZE, "%.*s/%s", (int)n, folder, name);
    return steal_fd(&fd);
}
