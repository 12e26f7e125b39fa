/* Journals: files in which the daemon keeps finished parts of a job that adds into an output, until
 * they are in that output whole.
 *
 *     C.npy            what is added to
 *     C.npy.journal    beside it, there while the job runs and after one that did not end well
 *
 * The daemon writes and reads the journal; here it only gets its name, is opened, and is removed
 * when the job has ended well. A journal that is found has been left by a job whose daemon, worker
 * or client ended too early: the same job goes on from it, another one is refused by the daemon.
 *
 * The lock belongs to the open file, so to the descriptor that the daemon has of it, too. Whoever
 * comes after a client that was killed waits until the daemon has let go of that client's job.
 *
 * Called by job.c.
 */
#include "client/lib/journal.h"
#include "client/array.h"
#include "client/clock.h"
#include "client/formats/file_lock.h"
#include "proto/error.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_MS       10000 /* for the daemon to let go of a job whose client is gone */
#define LOCK_RETRY_MS 5

static int refuse_busy(const char *path, const struct stat *st, struct gad_error *error)
{
    char holder[64];
    bool is_known = file_lock_holder(st, true, holder, sizeof(holder));
    error_set(error, GAD_BUSY, path, "%s: another job is adding to the same file with this journal",
              path);
    error_expected(error, "a journal that no job uses; wait for the other job");
    error_found(error, "%s", is_known ? holder : "a journal that is locked");
    return GAD_BUSY;
}

/* Whether the name is still the open file's: whoever had the lock before may have removed it. */
static bool is_named(const char *path, const struct stat *of_fd)
{
    struct stat named;
    return stat(path, &named) == 0 && named.st_dev == of_fd->st_dev &&
           named.st_ino == of_fd->st_ino;
}

static int lock(int fd, const char *path, int64_t deadline, bool *ret_is_named,
                struct gad_error *error)
{
    struct stat st;
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_from_errno(error, errno, path, "flock");
        if (deadline_left_ms(deadline) == 0)
            return fstat(fd, &st) ? -errno : refuse_busy(path, &st, error);
        clock_sleep_ms(LOCK_RETRY_MS);
    }
    if (fstat(fd, &st))
        return error_from_errno(error, errno, path, "fstat");
    *ret_is_named = is_named(path, &st);
    return 0;
}

static int refuse_open(const char *path, int code, struct gad_error *error)
{
    int r = error_from_errno(error, code, path, "opening the journal");
    error_expected(error,
                   "a place for a journal: --journal FILE, journal_path, or none on purpose");
    error_found(error, "%s", path);
    return r;
}

/* Others, which are empty as a journal that nothing was written to, would be removed. */
static int refuse_kind(const char *path, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, "journal", "%s is no file that can be a journal", path);
    error_expected(error, "a regular file, or a name that is not there");
    error_found(error, "a pipe or device");
    return GAD_BAD_ARGUMENT;
}

static int open_locked(const char *path, int *ret_fd, struct gad_error *error)
{
    int64_t deadline = deadline_after_ms(LOCK_MS);
    for (;;) {
        _cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
        struct stat st;
        bool is_ours = false;
        if (fd < 0 || fstat(fd, &st))
            return refuse_open(path, errno, error);
        if (!S_ISREG(st.st_mode))
            return refuse_kind(path, error);
        int r = lock(fd, path, deadline, &is_ours, error);
        if (r)
            return r;
        if (is_ours) {
            *ret_fd = steal_fd(&fd);
            return 0;
        }
    }
}

/* The name of a file that is open; NULL: it has none, or memory is short. */
static char *name_of(int fd)
{
    char link[64], name[PATH_MAX];
    struct stat of_fd;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof(name) - 1);
    if (n < 0 || fstat(fd, &of_fd))
        return NULL;
    name[n] = '\0';
    return is_named(name, &of_fd) ? strdup(name) : NULL;
}

/* *ret_path NULL: there shall be none. */
static int find_path(const char *path, const struct gad_array *to, char **ret_path,
                     struct gad_error *error)
{
    char *name = to && to->fd >= 0 ? name_of(to->fd) : NULL;
    *ret_path = NULL;
    if (!name && path) {
        error_set(error, GAD_BAD_ARGUMENT, "journal",
                  "a journal is for a result that is added into a file");
        error_expected(error, "an output that is a file, opened in place");
        error_found(error, "%s", to ? to->info.format : "no array");
        return GAD_BAD_ARGUMENT;
    }
    int r = 0;
    if (path)
        r = (*ret_path = strdup(path)) ? 0 : -ENOMEM;
    else if (name)
        r = asprintf(ret_path, "%s.journal", name) < 0 ? -ENOMEM : 0;
    free(name);
    return r;
}

int journal_open(struct journal *journal, const char *path, const struct gad_array *to,
                 struct gad_error *error)
{
    struct journal made = {.fd = -1};
    int r = find_path(path, to, &made.path, error);
    if (r || !made.path)
        return r;
    r = open_locked(made.path, &made.fd, error);
    if (r) {
        free(made.path);
        return r;
    }
    char *name = name_of(made.fd); /* by which it is removed, wherever the process is then */
    if (name) {
        free(made.path);
        made.path = name;
    }
    *journal = made;
    return 0;
}

void journal_close(struct journal *journal, bool is_done, bool is_lost)
{
    struct stat st;
    if (!journal->path)
        return;
    bool is_empty = fstat(journal->fd, &st) == 0 && st.st_size == 0;
    if (is_done || (is_empty && !is_lost))
        (void)!unlink(journal->path);
    close_fd(&journal->fd);
    free(steal_ptr(journal->path));
}
