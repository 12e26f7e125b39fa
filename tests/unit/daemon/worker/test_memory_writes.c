/* Writes to files in memory are work for processors, however long they take: no more threads are in
 * them at a time than compute. Linked with --wrap=pwrite64. */
#include "tests/unit/daemon/worker/harness.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#define N_THREADS  2
#define N_USERS    3
#define POOL_BYTES (32u * 1024 * 1024)
#define N_VALUES   (1u << 20)
#define WRITTEN    (HARNESS_IS_CUDA ? "a * 4" : "repeat(2, a = a + a)")

static atomic_uint n_writing, n_most;

ssize_t __real_pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset);

/* Longer than what a disk's call may last before others go on. */
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset)
{
    const struct timespec copying = {.tv_nsec = 20000000};
    unsigned n = atomic_fetch_add(&n_writing, 1) + 1, most = atomic_load(&n_most);
    while (n > most && !atomic_compare_exchange_weak(&n_most, &most, n))
        ;
    nanosleep(&copying, NULL);
    ssize_t n_written = __real_pwrite64(fd, bytes, n_bytes, offset);
    atomic_fetch_sub(&n_writing, 1);
    return n_written;
}

Test(memory_writes, no_more_threads_are_in_them_than_compute)
{
    const int64_t shape[] = {N_VALUES};
    const size_t n_bytes = N_VALUES * sizeof(float);
    struct harness h;
    int region_fd = make_memfd(n_bytes, F_SEAL_SHRINK | F_SEAL_GROW), fds[N_USERS];
    harness_start(&h, POOL_BYTES, N_THREADS);
    cr_assert(zero(int, harness_attach(&h, 1, region_fd, n_bytes, true)));
    for (unsigned i = 0; i < N_USERS; i++) {
        struct test_job j;
        fds[i] = make_memfd(n_bytes, 0);
        job_init(&j, 1 + i);
        j.user = 1000 + i;
        at_region(job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), 1, 0);
        at_file(&j, job_output_to(&j, WRITTEN, "r", DTYPE_FLOAT32, 1, shape), fds[i], 0);
        (void)harness_send(&h, &j);
    }
    for (unsigned i = 0; i < N_USERS; i++) {
        struct outcome o;
        harness_receive(&h, &o, NULL);
        cr_assert(zero(int, o.status), "%s", o.error.message);
        outcome_free(&o);
    }
    cr_assert(ge(uint, atomic_load(&n_most), 1));
    cr_assert(le(uint, atomic_load(&n_most), N_THREADS));
    harness_stop(&h);
    close(region_fd);
    for (unsigned i = 0; i < N_USERS; i++)
        close(fds[i]);
}
