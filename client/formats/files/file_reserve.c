/* Reserving the space of an output before anything is written.
 *
 * fallocate() finds out about a full disk or quota now, instead of in the middle of a job. It may
 * take all that is free before it finds that this is too little, and others would meet a full disk
 * for that moment, so the free space is compared first. Where a file system has no fallocate(),
 * glibc's posix_fallocate() would write every block; instead the file is given its size. The
 * process's own limit on file sizes is compared first, since the kernel sends SIGXFSZ to who
 * oversteps it.
 *
 * Called by file_output.c and by HDF5 outputs.
 */
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

static uint64_t free_bytes(int fd)
{
    struct statvfs fs;
    uint64_t bytes;
    if (fstatvfs(fd, &fs) < 0 || fs.f_blocks == 0) /* some file systems do not count */
        return UINT64_MAX;
    uint64_t n_blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
    return __builtin_mul_overflow(n_blocks, (uint64_t)fs.f_frsize, &bytes) ? UINT64_MAX : bytes;
}

/* Whether n_bytes more are surely too many: all that the file has so far may lie among them. */
static bool is_too_much(int fd, uint64_t n_bytes)
{
    struct stat st;
    uint64_t has_bytes = fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : n_bytes;
    return n_bytes > has_bytes && n_bytes - has_bytes > free_bytes(fd);
}

static int no_space(int fd, int error_number, uint64_t n_bytes, const char *path, const char *name,
                    struct gad_error *error)
{
    uint64_t there = free_bytes(fd);
    const char *why = error_number == EDQUOT  ? "the quota is used up"
                      : error_number == EFBIG ? "too large for the file system"
                                              : "the disk is full";
    error_set(error, GAD_NO_SPACE, name, "no space for %" PRIu64 " bytes of '%.160s': %s", n_bytes,
              path, why);
    error_expected(error, "%" PRIu64 " bytes", n_bytes);
    error_found(error, "%" PRIu64 " bytes free", there);
    return GAD_NO_SPACE;
}

static int check_limit(uint64_t end, const char *path, const char *name, struct gad_error *error)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        end <= limit.rlim_cur)
        return 0;
    error_set(error, GAD_NO_SPACE, name, "'%.160s' would pass the process's limit on file sizes",
              path);
    error_expected(error, "%" PRIu64 " bytes", end);
    error_found(error, "a limit of %" PRIu64 " bytes", (uint64_t)limit.rlim_cur);
    return GAD_NO_SPACE;
}

static int set_size(int fd, uint64_t end, uint64_t n_bytes, const char *path, const char *name,
                    struct gad_error *error)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return file_path_error(error, errno, path, name);
    if (n_bytes > free_bytes(fd))
        return no_space(fd, ENOSPC, n_bytes, path, name, error);
    if ((uint64_t)st.st_size < end && ftruncate(fd, (off_t)end) < 0)
        return errno == EFBIG ? no_space(fd, errno, n_bytes, path, name, error)
                              : file_path_error(error, errno, path, name);
    return 0;
}

int file_check_room(int fd, uint64_t n_bytes, const char *path, const char *name,
                    struct gad_error *error)
{
    struct stat st;
    uint64_t end;
    if (fstat(fd, &st) < 0)
        return file_path_error(error, errno, path, name);
    if (__builtin_add_overflow((uint64_t)st.st_size, n_bytes, &end) || end > INT64_MAX)
        return no_space(fd, EFBIG, n_bytes, path, name, error);
    if (n_bytes > free_bytes(fd))
        return no_space(fd, ENOSPC, n_bytes, path, name, error);
    return check_limit(end, path, name, error);
}

int file_reserve(int fd, uint64_t offset_bytes, uint64_t n_bytes, const char *path,
                 const char *name, bool *ret_is_reserved, struct gad_error *error)
{
    uint64_t end;
    *ret_is_reserved = true;
    if (n_bytes == 0)
        return 0;
    if (__builtin_add_overflow(offset_bytes, n_bytes, &end) || end > INT64_MAX)
        return no_space(fd, EFBIG, n_bytes, path, name, error);
    int r = check_limit(end, path, name, error);
    if (r)
        return r;
    if (is_too_much(fd, n_bytes))
        return no_space(fd, ENOSPC, n_bytes, path, name, error);
    do
        r = fallocate(fd, 0, (off_t)offset_bytes, (off_t)n_bytes) < 0 ? errno : 0;
    while (r == EINTR);
    switch (r) {
    case 0: return 0;
    case EOPNOTSUPP:
    case ENOSYS: *ret_is_reserved = false; return set_size(fd, end, n_bytes, path, name, error);
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return no_space(fd, r, n_bytes, path, name, error);
    default: return file_path_error(error, r, path, name);
    }
}
