#include "tests/unit/daemon/worker/files.h"
#include "daemon/worker/jobs/tile.h"
#include "proto/util.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MIB (1024u * 1024u)

/* Transposing: the source's file may be cut as the first tile begins. */
#define N_ROWS    2048
#define N_COLUMNS 2048

static int fd_to_cut = -1;

void worker_fault_point(const char *label, uint64_t tile, uint64_t n_tiles)
{
    (void)tile;
    (void)n_tiles;
    if (label && !strcmp(label, "cut"))
        cr_assert(eq(int, ftruncate(fd_to_cut, 4096), 0));
}

static void init_transpose(struct test_job *j, int in, int out)
{
    const int64_t shape[] = {N_COLUMNS, N_ROWS};
    job_init(j, 1);
    struct array *a = job_arg(j, "a", DTYPE_FLOAT32, 2, shape);
    a->strides[0] = 4;
    a->strides[1] = N_COLUMNS * 4;
    at_file(j, a, in, 0);
    at_file(j, job_output_to(j, "a", "r", DTYPE_FLOAT32, 2, shape), out, 128);
    j->needs_carry = true;
    j->carry_bytes = 6 * MIB;
}

Test(transposes, that_are_transposed_are_read_whether_the_cache_has_them_or_not)
{
    struct harness h;
    struct test_job j;
    float *a;
    int in = make_floats(N_ROWS * N_COLUMNS, &a), out = make_file("", 0);
    harness_start(&h, 16 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    for (int is_cold = 0; is_cold < 2; is_cold++) {
        if (is_cold) {
            fsync(in);
            posix_fadvise(in, 0, 0, POSIX_FADV_DONTNEED);
        }
        init_transpose(&j, in, out);
        run_ok(&h, &j);
        float *r = read_floats(out, N_ROWS * N_COLUMNS + 32);
        for (unsigned i = 0; i < N_ROWS * N_COLUMNS; i++)
            cr_assert(r[32 + i % N_COLUMNS * N_ROWS + i / N_COLUMNS] == a[i], "element %u", i);
        free(r);
    }
    check_unused(&h, descriptors);
    harness_stop(&h);
    free(a);
    close(in);
    close(out);
}

Test(transposes, that_are_cut_while_they_are_transposed_are_too_short)
{
    struct harness h;
    struct test_job j;
    int out = make_file("", 0);
    harness_start(&h, 16 * MIB, 2);
    for (int is_in_memory = 0; is_in_memory < 2; is_in_memory++) {
        fd_to_cut = is_in_memory ? memfd_create("cut", MFD_CLOEXEC) : make_file("", 0);
        cr_assert(ge(int, fd_to_cut, 0));
        cr_assert(eq(int, posix_fallocate(fd_to_cut, 0, (off_t)N_ROWS * N_COLUMNS * 4), 0));
        uint64_t descriptors = harness_stat(&h, "descriptors");
        init_transpose(&j, fd_to_cut, out);
        memcpy(j.request.label, "cut", sizeof("cut"));
        run_refused(&h, &j, GAD_SHORT_READ, "a");
        check_unused(&h, descriptors);
        close(fd_to_cut);
    }
    harness_stop(&h);
    close(out);
}

Test(transposes, in_memory_that_have_holes_take_no_memory_when_they_are_transposed)
{
    struct harness h;
    struct test_job j;
    struct stat st;
    int in = memfd_create("sparse", MFD_CLOEXEC), out = make_file("", 0);
    cr_assert(ge(int, in, 0));
    cr_assert(eq(int, ftruncate(in, (off_t)N_ROWS * N_COLUMNS * 4), 0));
    harness_start(&h, 16 * MIB, 2);
    init_transpose(&j, in, out);
    run_ok(&h, &j);
    cr_assert(eq(int, fstat(in, &st), 0));
    cr_assert(eq(i64, st.st_blocks, 0));
    harness_stop(&h);
    close(in);
    close(out);
}
