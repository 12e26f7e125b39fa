#include "tests/unit/daemon/worker/files.h"
#include "daemon/worker/jobs/tile.h"
#include "proto/util.h"

#include <string.h>
#include <sys/mman.h>

#define MIB (1024u * 1024u)

/* x.T @ (x @ c), with x mapped where it is in the cache. Its file may be cut as a tile begins. */
#define N_ROWS    20
#define N_COLUMNS 150000 /* rows in parts */
#define N_RESULTS 1

static int fd_to_cut = -1;
static uint64_t tiles_left; /* when it is cut */
static off_t bytes_left;

void worker_fault_point(const char *label, uint64_t tile, uint64_t n_tiles)
{
    if (label && !strcmp(label, "cut") && tile + tiles_left == n_tiles)
        cr_assert(eq(int, ftruncate(fd_to_cut, bytes_left), 0));
}

static void init_slabs(struct test_job *j, int x, int c, int out)
{
    const int64_t shape[] = {N_ROWS, N_COLUMNS}, small[] = {N_COLUMNS, N_RESULTS};
    job_init(j, 1);
    at_file(j, job_arg(j, "x", DTYPE_FLOAT32, 2, shape), x, 0);
    at_file(j, job_arg(j, "c", DTYPE_FLOAT32, 2, small), c, 0);
    at_file(j, job_output_to(j, "tensordot(x, x @ c, (0, 0))", "r", DTYPE_FLOAT32, 2, small), out,
            0);
    j->needs_carry = true;
    j->carry_bytes = 24 * MIB;
}

Test(slabs, of_a_file_are_read_whether_the_cache_has_them_or_not)
{
    struct harness h;
    struct test_job j;
    float *x, *c;
    int in = make_floats(N_ROWS * N_COLUMNS, &x), operand = make_floats(N_COLUMNS * N_RESULTS, &c);
    int out = make_file("", 0);
    static double rows[N_ROWS];
    for (unsigned i = 0; i < N_ROWS; i++)
        for (unsigned k = 0; k < N_COLUMNS; k++)
            rows[i] += (double)x[i * N_COLUMNS + k] * c[k * N_RESULTS];
    harness_start(&h, 64 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    for (int is_cold = 0; is_cold < 2; is_cold++) {
        if (is_cold) {
            fsync(in);
            posix_fadvise(in, 0, 0, POSIX_FADV_DONTNEED);
        }
        init_slabs(&j, in, operand, out);
        run_ok(&h, &j);
        float *r = read_floats(out, N_COLUMNS * N_RESULTS);
        for (unsigned k = 0; k < N_COLUMNS; k++) {
            double sum = 0;
            for (unsigned i = 0; i < N_ROWS; i++)
                sum += x[i * N_COLUMNS + k] * rows[i];
            cr_assert(epsilon_eq(dbl, r[k * N_RESULTS] / sum, 1, 1e-5), "column %u", k);
        }
        free(r);
    }
    check_unused(&h, descriptors);
    harness_stop(&h);
    free(x);
    free(c);
    close(in);
    close(operand);
    close(out);
}

/* Behind the sums come FINISH and one STORE. */
Test(slabs, of_a_file_that_is_cut_meanwhile_are_too_short)
{
    struct harness h;
    struct test_job j;
    float *x, *c;
    const off_t size = (off_t)N_ROWS * N_COLUMNS * 4;
    const struct {
        uint64_t tiles_left;
        off_t bytes_left;
    } cuts[] = {{3, 4096}, {2, size - 4}, {UINT64_MAX, 4096}};
    int operand = make_floats(N_COLUMNS * N_RESULTS, &c), out = make_file("", 0);
    harness_start(&h, 64 * MIB, 2);
    for (unsigned i = 0; i < ARRAY_LENGTH(cuts); i++) {
        tiles_left = cuts[i].tiles_left;
        bytes_left = cuts[i].bytes_left;
        fd_to_cut = make_floats(N_ROWS * N_COLUMNS, &x); /* and so in the cache */
        free(x);
        uint64_t descriptors = harness_stat(&h, "descriptors");
        init_slabs(&j, fd_to_cut, operand, out);
        memcpy(j.request.label, "cut", sizeof("cut"));
        if (tiles_left > 3)
            run_ok(&h, &j); /* nobody has cut it */
        else
            run_refused(&h, &j, GAD_SHORT_READ, "x");
        check_unused(&h, descriptors);
        close(fd_to_cut);
    }
    harness_stop(&h);
    free(c);
    close(operand);
    close(out);
}
