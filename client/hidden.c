/* Names that tell whether their maker lives.
 *
 *     .out.h5.gad-1000-9f3c...-4711-a83f1-k2j4h5g6
 *              |   |    |       |    |     random
 *              |   |    |       |    start of the process, ticks since the machine's
 *              |   |    |       process
 *              |   |    the machine's start and the namespace of processes, hashed
 *              |   user
 *
 * A process of another machine, container or earlier start of the machine is never taken for one
 * that has ended: its number means nothing here. Where the system does not say enough the hash is
 * 0, which belongs to nobody. Names of two processes are never the same, and no lock is needed,
 * which not every file system has, and which HDF5 takes itself.
 *
 * A process that lives long keeps a list of what it could not remove itself.
 *
 * Called by outputs.
 */
#include "client/hidden.h"
#include "client/clock.h"
#include "client/process.h"
#include "client/tree.h"
#include "proto/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define PREFIX      "gad-"
#define N_RANDOM    8
#define MAX_ENTRIES 50000u /* of a folder that are looked at */
#define N_GIVEN_UP  64u
#define N_SWEPT     4u
#define SWEPT_MS    500 /* what was left since then stays a while longer */

/* The last ones, in a ring. */
static pthread_mutex_t given_up_lock = PTHREAD_MUTEX_INITIALIZER;
static char given_up[N_GIVEN_UP][HIDDEN_TAG_SIZE];
static unsigned n_given_up;

static uint64_t machine(void)
{
    char text[128] = "";
    struct stat st;
    _cleanup_fd_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, 64);
    if (n <= 0 || stat("/proc/self/ns/pid", &st))
        return 0;
    snprintf(text + n, sizeof(text) - (size_t)n, "%llu", (unsigned long long)st.st_ino);
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return h;
}

int hidden_tag(char ret_tag[HIDDEN_TAG_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint8_t random[N_RANDOM];
    char word[N_RANDOM + 1] = "";
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -EIO;
    for (size_t i = 0; i < sizeof(random); i++)
        word[i] = letters[random[i] % (sizeof(letters) - 1)];
    snprintf(ret_tag, HIDDEN_TAG_SIZE, PREFIX "%u-%016" PRIx64 "-%d-%" PRIx64 "-%s", geteuid(),
             machine(), (int)getpid(), process_start(getpid()), word);
    return 0;
}

void hidden_give_up(const char *tag)
{
    pthread_mutex_lock(&given_up_lock);
    snprintf(given_up[n_given_up++ % N_GIVEN_UP], HIDDEN_TAG_SIZE, "%s", tag);
    pthread_mutex_unlock(&given_up_lock);
}

static bool is_given_up(const char *tag)
{
    bool is_found = false;
    pthread_mutex_lock(&given_up_lock);
    for (unsigned i = 0; i < N_GIVEN_UP && !is_found; i++)
        is_found = *given_up[i] && strcmp(given_up[i], tag) == 0;
    pthread_mutex_unlock(&given_up_lock);
    return is_found;
}

bool hidden_is_left(const char *tag)
{
    if (is_given_up(tag))
        return true;
    char again[HIDDEN_TAG_SIZE], word[N_RANDOM + 1];
    unsigned uid;
    uint64_t where, start;
    int pid;
    if (sscanf(tag, PREFIX "%10u-%16" SCNx64 "-%10d-%16" SCNx64 "-%8[a-z0-9]", &uid, &where, &pid,
               &start, word) != 5)
        return false;
    snprintf(again, sizeof(again), PREFIX "%u-%016" PRIx64 "-%d-%" PRIx64 "-%s", uid, where, pid,
             start, word);
    if (strcmp(tag, again) != 0 || strlen(word) != N_RANDOM || pid <= 0)
        return false;
    if (uid != geteuid() || where == 0 || start == 0 || where != machine())
        return false;
    return process_has_ended(pid, start);
}

void hidden_file_name(const char *base, const char *tag, char *ret_name)
{
    bool is_short = strlen(base) + strlen(tag) + 2 <= NAME_MAX;
    snprintf(ret_name, NAME_MAX + 1, ".%s.%s", is_short ? base : "gpuarrayd", tag);
}

/* A file of this user's, which has this name alone, or a folder. */
static void sweep_file(int dir_fd, const char *name)
{
    const char *tag = strrchr(name, '.');
    struct stat st;
    if (name[0] != '.' || tag < name + 2 || !hidden_is_left(tag + 1))
        return;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != geteuid())
        return;
    if (S_ISREG(st.st_mode) && st.st_nlink == 1)
        unlinkat(dir_fd, name, 0);
    else if (S_ISDIR(st.st_mode))
        (void)!tree_remove(dir_fd, name); /* what stays is left to the next output */
}

/* Programs that write file after file to a few folders do not look through them each time. */
static bool was_swept(const struct stat *st)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        dev_t device;
        ino_t inode;
        int64_t until;
    } swept[N_SWEPT];
    static unsigned n;
    unsigned i = 0;
    pthread_mutex_lock(&lock);
    while (i < N_SWEPT && !(swept[i].device == st->st_dev && swept[i].inode == st->st_ino))
        i++;
    bool was = i < N_SWEPT && clock_left_ms(swept[i].until) > 0;
    if (i == N_SWEPT)
        i = n++ % N_SWEPT;
    if (!was) {
        swept[i].device = st->st_dev;
        swept[i].inode = st->st_ino;
        swept[i].until = clock_deadline_ms(SWEPT_MS);
    }
    pthread_mutex_unlock(&lock);
    return was;
}

void hidden_sweep(int dir_fd)
{
    struct stat st;
    if (fstat(dir_fd, &st) || was_swept(&st))
        return;
    _cleanup_fd_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory)
        return;
    (void)steal_fd(&fd); /* the stream's */
    struct dirent *d;
    for (unsigned i = 0; i < MAX_ENTRIES && (d = readdir(directory)); i++)
        sweep_file(dir_fd, d->d_name);
    closedir(directory);
}
