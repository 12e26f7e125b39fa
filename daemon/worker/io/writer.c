/* Writing a run of bytes to a file, in the way that writing.c chooses.
 *
 * Around the cache go whole pages. A page that the run has only a part of is shared with the run
 * before or behind it, and would have to be read again from the disk when that one comes; so the
 * ends go through the cache:
 *
 *     file pages   |       |       |       |       |       |
 *     run              |cac| around| around| around|c|
 *
 * RWF_DONTCACHE has the kernel start writing back at once and drop the pages when that is done.
 * Where it is not known the same is asked for: sync_file_range() starts writing back, and pages
 * that lie BEHIND_BYTES earlier, written by now, are dropped.
 *
 * A file system that does not know a way says so before it has written anything; the same bytes
 * then go the next way. Called by boxio.c on compute threads.
 */
#include "daemon/worker/io/writer.h"
#include "daemon/worker/io/port.h"
#include "proto/util.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#define BEHIND_BYTES (64 * 1024 * 1024)

#ifndef RWF_DONTCACHE /* Linux 6.14 */
#define RWF_DONTCACHE 0x00000080
#endif

struct run {
    int fd;
    const char *name;
    const char *memory;
    int64_t n_bytes, offset;
};

static int write_failed(const struct run *run, int number, int64_t done, struct gad_error *error)
{
    struct statvfs fs;
    if (number == EBADF)
        return error_set(error, GAD_READ_ONLY, run->name, "the file is not open for writing");
    int r = error_from_errno(error, number, run->name, "writing the file");
    if (r == GAD_NO_SPACE) {
        error_expected(error, "%lld bytes at byte %lld", (long long)(run->n_bytes - done),
                       (long long)(run->offset + done));
        if (fstatvfs(run->fd, &fs) == 0)
            error_found(error, "%llu bytes free",
                        (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_frsize);
    }
    return r;
}

static bool is_unknown_way(int number)
{
    return number == EOPNOTSUPP || number == EINVAL || number == ENOSYS;
}

/* -EOPNOTSUPP: the flags are not known here; nothing was written. */
static int write_all(const struct run *run, int flags, struct gad_error *error)
{
    for (int64_t done = 0; done < run->n_bytes;) {
        const struct iovec vector = {.iov_base = (char *)run->memory + done,
                                     .iov_len = (size_t)(run->n_bytes - done)};
        ssize_t n = flags ? pwritev2(run->fd, &vector, 1, run->offset + done, flags)
                          : pwrite(run->fd, vector.iov_base, vector.iov_len, run->offset + done);
        if (n > 0)
            done += n;
        else if (n < 0 && flags && done == 0 && is_unknown_way(errno))
            return -EOPNOTSUPP;
        else if (n == 0 || errno != EINTR)
            return write_failed(run, n == 0 ? ENOSPC : errno, done, error);
    }
    return 0;
}

/* What fails here was written and is in the cache, which is no error; an error of the disk is the
 * file's, as with every write into the cache. */
static void drop_behind(const struct run *run, struct writing *writing)
{
    if (sync_file_range(run->fd, run->offset, run->n_bytes, SYNC_FILE_RANGE_WRITE) < 0 &&
        (is_unknown_way(errno) || errno == ESPIPE))
        writing_lost(writing->device, AROUND_BEHIND);
    else if (run->offset - writing->first_byte >= BEHIND_BYTES)
        posix_fadvise(run->fd, run->offset - BEHIND_BYTES, run->n_bytes, POSIX_FADV_DONTNEED);
}

/* Whole pages. *ret_is_around: not when the file system turned out to have no way around. */
static int write_pages(const struct run *run, struct writing *writing, bool *ret_is_around,
                       struct gad_error *error)
{
    int r = -EOPNOTSUPP;
    bool is_refused = false;
    *ret_is_around = true;
    if (writing_around(writing->device) == AROUND_DONTCACHE) {
        r = write_all(run, RWF_DONTCACHE, error);
        is_refused = r == -EOPNOTSUPP;
    }
    if (r == -EOPNOTSUPP) {
        r = write_all(run, 0, error);
        if (!r && is_refused) /* it was the flag, not this file */
            writing_lost(writing->device, AROUND_DONTCACHE);
        *ret_is_around = writing_around(writing->device) == AROUND_BEHIND;
        if (!r && *ret_is_around)
            drop_behind(run, writing);
    }
    if (!r && *ret_is_around)
        atomic_fetch_add_explicit(&writing->around_bytes, (uint64_t)run->n_bytes,
                                  memory_order_relaxed);
    return r;
}

static struct run part_of(const struct run *run, int64_t low, int64_t high)
{
    struct run part = *run;
    part.memory += low - run->offset;
    part.offset = low;
    part.n_bytes = high - low;
    return part;
}

static int write_around(const struct run *run, struct writing *writing, bool *ret_is_around,
                        struct gad_error *error)
{
    int64_t page = sysconf(_SC_PAGESIZE), end = run->offset + run->n_bytes;
    int64_t low = (run->offset + page - 1) / page * page, high = end / page * page;
    *ret_is_around = false;
    if (high <= low) /* pages may be larger than the run */
        return write_all(run, 0, error);
    const struct run head = part_of(run, run->offset, low), pages = part_of(run, low, high),
                     tail = part_of(run, high, end);
    int r = write_all(&head, 0, error);
    if (!r)
        r = write_pages(&pages, writing, ret_is_around, error);
    return r ? r : write_all(&tail, 0, error);
}

int writer_write(int fd, struct writing *writing, const char *name, const char *memory,
                 int64_t n_bytes, int64_t offset, struct gad_error *error)
{
    const struct run run = {fd, name, memory, n_bytes, offset};
    if (!writing || !writing->device || n_bytes < WRITING_MIN_BYTES)
        return write_all(&run, 0, error);
    bool is_around = false;
    if (offset < writing->no_choice_before && writing_around(writing->device) == AROUND_DONTCACHE)
        return write_around(&run, writing, &is_around, error);
    enum write_way way = writing_next(writing->device);
    uint64_t begin = clock_ns();
    int r = way == WRITE_AROUND ? write_around(&run, writing, &is_around, error)
                                : write_all(&run, 0, error);
    if (!r && is_around == (way == WRITE_AROUND))
        writing_note(writing->device, way, (uint64_t)n_bytes, begin, clock_ns());
    return r;
}
