/* Claims: which bytes of a file the job of a process may write to, after the process too.
 *
 *     client:  opens, claims its dataset, hands the descriptor over   killed
 *     daemon:                               tile, tile, tile .................. lets go
 *     claim:           |--------------------------------------------------------|
 *
 * Who is killed cannot wait until the daemon has let go of the job, and a dataset that is deleted
 * before would have its place given to another one, into which the last tile would then be written.
 * The lock of F_OFD_SETLK belongs to the open file, whoever has descriptors of it: the client, the
 * daemon, its worker, or a socket on the way there. So it stays as long as somebody can
 * write by it, and the system removes it with the last of them. Whoever knows that the job is over
 * gives the claim up for all of them, since an array that a program merely keeps writes nothing.
 *
 * It is taken on local file systems only. On others the daemon never writes, so a process that has
 * ended has no job there that does; and NFS makes locks of this kind of those of flock(), so HDF5
 * would be kept out of its file by our claim.
 *
 * Called by HDF5 outputs.
 */
#include "client/formats/files/file_claim.h"
#include "proto/system/file_systems.h"
#include "proto/util.h"

#include <fcntl.h>

static struct flock lock_of(uint64_t offset_bytes, uint64_t n_bytes)
{
    return (struct flock){
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset_bytes,
        .l_len = (off_t)n_bytes, /* not 0, which would be all that follows */
    };
}

/* A file system or a kernel without such locks, or without room for one more: an output there is as
 * safe as it was before there were claims. */
static bool has_no_locks(int error_number)
{
    return error_number == EINVAL || error_number == ENOLCK || error_number == ENOSYS ||
           error_number == EOPNOTSUPP;
}

int file_claim(int fd, uint64_t offset_bytes, uint64_t n_bytes, const char *path, const char *name,
               struct gad_error *error)
{
    struct flock lock = lock_of(offset_bytes, n_bytes);
    if (n_bytes == 0 || !file_system_is_local(fd) || fcntl(fd, F_OFD_SETLK, &lock) == 0 ||
        has_no_locks(errno))
        return 0;
    if (errno == EAGAIN || errno == EACCES)
        return error_set(error, GAD_BUSY, name,
                         "'%.200s': another job may still write to bytes that HDF5 gives to this "
                         "dataset; the one that was there has been deleted meanwhile",
                         path);
    return error_from_errno(error, errno, name, "a lock on the output's bytes");
}

void file_claim_release(int fd, uint64_t offset_bytes, uint64_t n_bytes)
{
    struct flock lock = lock_of(offset_bytes, n_bytes);
    lock.l_type = F_UNLCK;
    if (n_bytes > 0)
        (void)fcntl(fd, F_OFD_SETLK, &lock);
}

bool file_is_claimed(int fd, uint64_t offset_bytes, uint64_t n_bytes)
{
    struct flock lock = lock_of(offset_bytes, n_bytes);
    return n_bytes > 0 && file_system_is_local(fd) && fcntl(fd, F_OFD_GETLK, &lock) == 0 &&
           lock.l_type != F_UNLCK;
}
