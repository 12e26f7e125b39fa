/* Preloaded into the broker or a worker: allocations that fail when a test says so, and mappings,
 * counted all together.
 *
 *     test --writes--> mapped file: fail_from, fail_to <--reads-- every malloc and mmap
 *          <--reads--               n_calls, n_failed, n_live
 *
 * A call whose number is in [fail_from, fail_to) fails with ENOMEM, in whatever library it was
 * made. Blocks that are there are counted, so that a test sees what was not given back. Children
 * are started without it.
 *
 * What dlsym() itself may need before the real functions are known comes from a few bytes here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct orders {
    _Atomic uint64_t n_calls, n_failed, n_live;
    _Atomic uint64_t fail_from, fail_to;
};

static struct orders none;
static struct orders *orders = &none;

static void *(*real_malloc)(size_t n_bytes);
static void *(*real_calloc)(size_t n, size_t n_bytes);
static void *(*real_realloc)(void *block, size_t n_bytes);
static void (*real_free)(void *block);

static _Alignas(max_align_t) char early[16384];
static size_t n_early;

static bool is_early(const void *block)
{
    return (const char *)block >= early && (const char *)block < early + sizeof(early);
}

static void *take_early(size_t n_bytes)
{
    char *block = early + n_early;
    n_early += (n_bytes + 63) / 64 * 64;
    return n_early <= sizeof(early) ? block : NULL;
}

static bool find_real(void)
{
    static bool is_looking; /* before there are threads */
    if (real_free)
        return true;
    if (is_looking)
        return false;
    is_looking = true;
    real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    is_looking = false;
    return true;
}

static bool is_to_fail(void)
{
    uint64_t call = atomic_fetch_add(&orders->n_calls, 1);
    if (call < atomic_load(&orders->fail_from) || call >= atomic_load(&orders->fail_to))
        return false;
    atomic_fetch_add(&orders->n_failed, 1);
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add(&orders->n_live, 1);
    return block;
}

void *malloc(size_t n_bytes)
{
    if (!find_real())
        return take_early(n_bytes);
    return is_to_fail() ? NULL : counted(real_malloc(n_bytes));
}

void *calloc(size_t n, size_t n_bytes)
{
    if (!find_real())
        return take_early(n * n_bytes);
    return is_to_fail() ? NULL : counted(real_calloc(n, n_bytes));
}

void *realloc(void *block, size_t n_bytes)
{
    if (!block)
        return malloc(n_bytes);
    if (is_early(block)) {
        void *moved = malloc(n_bytes);
        return moved ? memcpy(moved, block, n_bytes) : NULL;
    }
    return is_to_fail() ? NULL : real_realloc(block, n_bytes);
}

void free(void *block)
{
    if (!block || is_early(block))
        return;
    find_real();
    atomic_fetch_sub(&orders->n_live, 1);
    real_free(block);
}

void *mmap(void *at, size_t n_bytes, int protection, int flags, int fd, off_t offset)
{
    if (is_to_fail())
        return MAP_FAILED;
    long mapped = syscall(SYS_mmap, at, n_bytes, protection, flags, fd, offset);
    return mapped == -1 ? MAP_FAILED : (char *)mapped;
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
    unsetenv("LD_PRELOAD");
}
