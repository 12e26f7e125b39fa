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
 * Others may be able to write to the directory. So the journal is the caller's own regular file,
 * with one name, and no link is followed to it; and it is opened, looked at and removed in the
 * directory that was opened first, which must be the one that has the output if it is beside that.
 *
 * The lock belongs to the open file, so to the descriptor that the daemon has of it, too. Whoever
 * comes after a client that was killed waits until the daemon has let go of that client's job.
 *
 * Called by job.c.
 */
#include "client/lib/jobs/journal.h"
#include "client/array.h"
#include "client/clock.h"
#include "client/formats/files/file_lock.h"
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

#define JOURNAL_SUFFIX ".journal"

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

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the name is still the open file's: whoever had the lock before may have removed it. */
static bool is_named(int dir_fd, const char *path, const struct stat *of_fd)
{
    struct stat named;
    return fstatat(dir_fd, base_of(path), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           named.st_dev == of_fd->st_dev && named.st_ino == of_fd->st_ino;
}

static int lock(const struct journal *journal, int64_t deadline, bool *ret_is_named,
                struct gad_error *error)
{
    const char *path = journal->path;
    struct stat st;
    while (flock(journal->fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_from_errno(error, errno, path, "flock");
        if (clock_left_ms(deadline) == 0)
            return fstat(journal->fd, &st) ? -errno : refuse_busy(path, &st, error);
        clock_sleep_ms(LOCK_RETRY_MS);
    }
    if (fstat(journal->fd, &st))
        return error_from_errno(error, errno, path, "fstat");
    *ret_is_named = is_named(journal->dir_fd, path, &st);
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
static int refuse_kind(const char *path, const char *found, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, "journal", "%s is no file that can be a journal", path);
    error_expected(error, "a regular file, or a name that is not there");
    error_found(error, "%s", found);
    return GAD_BAD_ARGUMENT;
}

/* What others have put there may change while it is read, and may be something else tomorrow. */
static int check_kind(const char *path, const struct stat *st, struct gad_error *error)
{
    if (!S_ISREG(st->st_mode))
        return refuse_kind(path, "a pipe or device", error);
    if (st->st_uid != geteuid()) {
        error_set(error, GAD_PERMISSION, "journal", "%s is another user's file", path);
        error_expected(error, "a file of user %u, or a name that is not there", geteuid());
        error_found(error, "a file of user %u", st->st_uid);
        return GAD_PERMISSION;
    }
    return st->st_nlink > 1 ? refuse_kind(path, "a file with more names", error) : 0;
}

static int open_file(struct journal *journal, struct gad_error *error)
{
    struct stat st;
    journal->fd = openat(journal->dir_fd, base_of(journal->path),
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
    if (journal->fd < 0 && errno == ELOOP)
        return refuse_kind(journal->path, "a symbolic link", error);
    if (journal->fd < 0 || fstat(journal->fd, &st))
        return refuse_open(journal->path, errno, error);
    return check_kind(journal->path, &st, error);
}

static int open_locked(struct journal *journal, struct gad_error *error)
{
    int64_t deadline = clock_deadline_ms(LOCK_MS);
    for (;;) {
        bool is_ours = false;
        int r = open_file(journal, error);
        if (r == 0)
            r = lock(journal, deadline, &is_ours, error);
        if (r || is_ours)
            return r;
        close_fd(&journal->fd);
    }
}

static int open_directory(struct journal *journal, struct gad_error *error)
{
    size_t n = (size_t)(base_of(journal->path) - journal->path);
    _cleanup_free_ char *dir = n > 0 ? strndup(journal->path, n) : strdup(".");
    if (!dir)
        return -ENOMEM;
    journal->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return journal->dir_fd < 0 ? refuse_open(journal->path, errno, error) : 0;
}

/* The name of a file that is open; NULL: it has none, or memory is short. */
static char *name_of(int fd)
{
    char link[64], name[PATH_MAX];
    struct stat of_fd, named;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof(name) - 1);
    if (n < 0 || fstat(fd, &of_fd))
        return NULL;
    name[n] = '\0';
    return stat(name, &named) == 0 && named.st_dev == of_fd.st_dev && named.st_ino == of_fd.st_ino
               ? strdup(name)
               : NULL;
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
        r = asprintf(ret_path, "%s" JOURNAL_SUFFIX, name) < 0 ? -ENOMEM : 0;
    free(name);
    return r;
}

/* A journal beside its output is in the very directory that has the output. */
static int check_beside(const struct journal *journal, const struct gad_array *to,
                        struct gad_error *error)
{
    _cleanup_free_ char *output =
        strndup(journal->path, strlen(journal->path) - strlen(JOURNAL_SUFFIX));
    struct stat st;
    if (!output || fstat(to->fd, &st))
        return -ENOMEM;
    return is_named(journal->dir_fd, output, &st) ? 0 : refuse_open(journal->path, ENOENT, error);
}

static void deinit(struct journal *journal)
{
    close_fd(&journal->fd);
    close_fd(&journal->dir_fd);
    free(steal_ptr(journal->path));
}

int journal_open(struct journal *journal, const char *path, const struct gad_array *to,
                 struct gad_error *error)
{
    struct journal made = {.fd = -1, .dir_fd = -1};
    int r = find_path(path, to, &made.path, error);
    if (r || !made.path)
        return r;
    r = open_directory(&made, error);
    if (r == 0 && !path)
        r = check_beside(&made, to, error);
    if (r == 0)
        r = open_locked(&made, error);
    if (r) {
        deinit(&made);
        return r;
    }
    *journal = made;
    return 0;
}

void journal_close(struct journal *journal, bool is_done, bool is_lost)
{
    struct stat st;
    if (!journal->path)
        return;
    bool is_there = fstat(journal->fd, &st) == 0;
    if (is_there && (is_done || (st.st_size == 0 && !is_lost)) &&
        is_named(journal->dir_fd, journal->path, &st))
        (void)!unlinkat(journal->dir_fd, base_of(journal->path), 0);
    deinit(journal);
}
