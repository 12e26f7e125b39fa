/* Preloaded into a worker: writes to one file, or reads that may wait, that wait for as long as a
 * test says so, as on a disk that does not answer. None of the file's reads finds anything in the
 * page cache.
 *
 *     test --writes--> mapped file: device, inode (0: no file) <--reads-- every pwrite and pread
 *          <--reads--               n_held
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct orders {
    _Atomic uint64_t device, inode;
    _Atomic uint64_t n_held;
};

static struct orders none;
static struct orders *orders = &none;

static int is_held(int fd)
{
    struct stat st;
    return atomic_load(&orders->inode) != 0 && fstat(fd, &st) == 0 &&
           st.st_ino == atomic_load(&orders->inode) && st.st_dev == atomic_load(&orders->device);
}

static void wait_while_held(int fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    if (!is_held(fd))
        return;
    atomic_fetch_add(&orders->n_held, 1);
    while (is_held(fd))
        nanosleep(&pause, NULL);
    atomic_fetch_sub(&orders->n_held, 1);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset)
{
    wait_while_held(fd);
    return syscall(SYS_pwrite64, fd, bytes, n_bytes, offset);
}

ssize_t pread64(int fd, void *bytes, size_t n_bytes, off_t offset)
{
    wait_while_held(fd);
    return syscall(SYS_pread64, fd, bytes, n_bytes, offset);
}

ssize_t preadv64v2(int fd, const struct iovec *pieces, int n, off_t offset, int flags)
{
    if (is_held(fd)) {
        errno = EAGAIN;
        return -1;
    }
    return syscall(SYS_preadv2, fd, pieces, n, offset, 0, flags);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("GPUARRAYD_TEST_ORDERS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped =
        fd >= 0 ? mmap(NULL, sizeof(none), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped != MAP_FAILED)
        orders = mapped;
    if (fd >= 0)
        close(fd);
}
