#include "tests/unit/daemon/worker/files.h"
#include "daemon/worker/jobs/tile.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MIB (1024u * 1024u)

Test(files, larger_than_the_pool_go_through_it)
{
    struct harness h;
    struct test_job j;
    const int64_t shape[] = {2048, 1024};
    float *a;
    int in = make_floats(2 * MIB, &a), out = make_file("", 0);
    harness_start(&h, 2 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    for (int is_cold = 0; is_cold < 2; is_cold++) {
        if (is_cold) {
            fsync(in);
            posix_fadvise(in, 0, 0, POSIX_FADV_DONTNEED);
        }
        job_init(&j, 1);
        at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), in, 0);
        at_file(&j, job_output_to(&j, "a * 2 + 1", "r", DTYPE_FLOAT32, 2, shape), out, 128);
        run_ok(&h, &j);
        float *r = read_floats(out, 2 * MIB + 32);
        for (unsigned i = 0; i < 2 * MIB; i++)
            cr_assert(r[32 + i] == a[i] * 2 + 1, "element %u", i);
        free(r);
        cr_assert(eq(int, ftruncate(out, 0), 0));
    }
    check_unused(&h, descriptors);
    free(a);
    close(in);
    close(out);
    harness_stop(&h);
}

Test(files, in_any_order_and_stride_give_the_same)
{
    struct harness h;
    struct test_job j;
    const int64_t shape[] = {500, 300};
    float *a;
    int in = make_floats(500 * 300 * 4, &a), out = make_file("", 0);
    harness_start(&h, 2 * MIB, 2);
    /* C order plus Fortran order, reversed rows, every second column, into Fortran order. */
    job_init(&j, 1);
    at_file(&j, job_arg(&j, "c", DTYPE_FLOAT32, 2, shape), in, 0);
    struct array *f = job_arg(&j, "f", DTYPE_FLOAT32, 2, shape);
    at_file(&j, f, in, 4);
    f->strides[0] = 4;
    f->strides[1] = 2000;
    struct array *s = job_arg(&j, "s", DTYPE_FLOAT32, 2, shape);
    at_file(&j, s, in, 499 * 2400);
    s->strides[0] = -2400;
    s->strides[1] = 8;
    struct array *b = job_arg(&j, "b", DTYPE_FLOAT32, 2, shape);
    at_file(&j, b, in, 40);
    b->strides[0] = 0;
    b->strides[1] = 4;
    struct array *r = job_output_to(&j, "c + 3*f - s + 7*b", "r", DTYPE_FLOAT32, 2, shape);
    at_file(&j, r, out, 0);
    r->strides[0] = 4;
    r->strides[1] = 2000;
    run_ok(&h, &j);
    float *got = read_floats(out, 500 * 300);
    for (int i = 0; i < 500; i++)
        for (int k = 0; k < 300; k++) {
            float want = a[i * 300 + k] + 3 * a[1 + i + 500 * k] - a[(499 - i) * 600 + 2 * k] +
                         7 * a[10 + k];
            cr_assert(eq(flt, got[i + 500 * k], want), "at %d, %d", i, k);
        }
    free(got);
    free(a);
    close(in);
    close(out);
    harness_stop(&h);
}

Test(files, of_either_byte_order_are_read_and_written)
{
    struct harness h;
    struct test_job j;
    const int64_t shape[] = {100000};
    uint32_t *big = malloc(400000);
    for (uint32_t i = 0; i < 100000; i++)
        big[i] = __builtin_bswap32(i);
    int in = make_file(big, 400000), out = make_file("", 0);
    harness_start(&h, 2 * MIB, 2);
    job_init(&j, 1);
    struct array *a = job_arg(&j, "a", DTYPE_UINT32, 1, shape);
    a->is_swapped = true;
    at_file(&j, a, in, 0);
    struct array *r = job_output_to(&j, "a + a", "r", DTYPE_UINT32, 1, shape);
    r->is_swapped = true;
    at_file(&j, r, out, 0);
    run_ok(&h, &j);
    uint32_t *got = (uint32_t *)read_floats(out, 100000);
    for (uint32_t i = 0; i < 100000; i++)
        cr_assert(eq(u32, __builtin_bswap32(got[i]), 2 * i));
    free(got);
    free(big);
    close(in);
    close(out);
    harness_stop(&h);
}

Test(files, are_overwritten_in_place)
{
    struct harness h;
    struct test_job j;
    const int64_t shape[] = {2 * MIB};
    float *a;
    int fd = make_floats(2 * MIB, &a);
    harness_start(&h, 2 * MIB, 2);
    job_init(&j, 1);
    j.needs_carry = true;
    at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), fd, 0);
    at_file(&j, job_output_to(&j, "a - min(a) + 2", "a", DTYPE_FLOAT32, 1, shape), fd, 0);
    run_ok(&h, &j);
    float *got = read_floats(fd, 2 * MIB);
    for (unsigned i = 0; i < 2 * MIB; i++)
        cr_assert(got[i] == a[i] + 2);
    free(got);
    free(a);
    close(fd);
    harness_stop(&h);
}

Test(files, with_reductions_have_the_same_bits_whatever_the_pool)
{
    const int64_t shape[] = {2 * MIB};
    uint64_t bits[4];
    float *a;
    int fd = make_floats(2 * MIB, &a);
    for (int i = 0; i < 4; i++) {
        struct harness h;
        struct test_job j;
        struct outcome o;
        harness_start(&h, i & 1 ? 8 * MIB : 1 * MIB, i & 2 ? 4 : 1);
        job_init(&j, 1);
        j.needs_carry = true;
        at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), fd, 0);
        job_output(&j, "sum(sqrt(float64(a)))", "");
        harness_run(&h, &j, &o);
        memcpy(&bits[i], outcome_data(&o, 0, NULL), 8);
        outcome_free(&o);
        harness_stop(&h);
        cr_assert(eq(u64, bits[i], bits[0]));
    }
    free(a);
    close(fd);
}

/* Of what many jobs read each: several tiles, fewer on the test double, which computes each value
 * some ten times as slowly as the CPU engine. */
#define SHARED_VALUES ((HARNESS_IS_CUDA ? 1u : 4u) * MIB / 2)
#define CUT_VALUES    ((HARNESS_IS_CUDA ? 4u : 16u) * MIB) /* that take longer than to cut them */

/* Reads, writes, reductions and cancels of three users, with a pool of 16 slots. */
Test(files, many_jobs_of_all_kinds_run_at_once)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {SHARED_VALUES};
    float *a;
    int in = make_floats(SHARED_VALUES, &a), outs[6];
    harness_start(&h, 8 * MIB, 3);
    for (int i = 0; i < 6; i++)
        outs[i] = make_file("", 0);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    fsync(in);
    for (unsigned round = 0; round < 4; round++) {
        posix_fadvise(in, 0, 0, POSIX_FADV_DONTNEED);
        for (unsigned i = 0; i < 18; i++) {
            job_init(&j, round * 100 + i);
            j.user = 1000 + i % 3;
            j.request.priority = (int)(i % 5);
            at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), in, 0);
            if (i % 3 == 0) {
                at_file(&j, job_output_to(&j, "a + 1", "r", DTYPE_FLOAT32, 1, shape), outs[i / 3],
                        0);
            } else {
                job_output(&j, i % 3 == 1 ? "sum(a - mean(a))" : "max(a)", "");
                j.needs_carry = true;
                j.carry_offset = i / 3 * CARRY_BYTES + (i % 3 == 1 ? 0 : 2 * MIB);
            }
            harness_send(&h, &j);
        }
        for (unsigned i = 0; i < 18; i += 7)
            harness_cancel(&h, round * 100 + i);
        for (unsigned i = 0; i < 18; i++) {
            harness_receive(&h, &o, NULL);
            bool is_expected = o.status == 0 || o.status == GAD_CANCELLED;
            cr_assert(is_expected, "%s", o.error.message);
            outcome_free(&o);
        }
    }
    float *got = read_floats(outs[1], SHARED_VALUES);
    for (unsigned i = 0; i < SHARED_VALUES; i++)
        cr_assert(got[i] == a[i] + 1);
    check_unused(&h, descriptors);
    harness_stop(&h);
    free(got);
    free(a);
    close(in);
    for (int i = 0; i < 6; i++)
        close(outs[i]);
}

Test(files, that_end_too_early_are_refused_with_the_numbers)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {4 * MIB};
    float *a;
    int fd = make_floats(MIB, &a);
    harness_start(&h, 2 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    job_init(&j, 1);
    at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), fd, 100);
    job_output(&j, "sum(a)", "");
    j.needs_carry = true;
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_SHORT_READ));
    cr_assert(eq(str, o.error.argument, text("a")));
    cr_assert(eq(str, o.error.expected, text("16777316 bytes")));
    cr_assert(eq(str, o.error.found, text("4194304 bytes")));
    outcome_free(&o);
    check_unused(&h, descriptors);
    free(a);
    close(fd);
    harness_stop(&h);
}

Test(files, that_are_cut_in_the_middle_fail_their_job_alone)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {CUT_VALUES};
    float *a;
    int fd = make_floats(CUT_VALUES, &a);
    harness_start(&h, 2 * MIB, 1);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    job_init(&j, 1);
    j.needs_carry = true;
    at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), fd, 0);
    job_output(&j, "sum(tanh(exp(sin(cos(tanh(exp(sin(cos(a)))))))))", "");
    harness_send(&h, &j);
    while (atomic_load(&h.page->threads[1].job) == 0)
        usleep(100);
    cr_assert(eq(int, ftruncate(fd, 2 * CUT_VALUES), 0));
    harness_receive(&h, &o, NULL);
    cr_assert(eq(int, o.status, GAD_SHORT_READ), "%s", o.error.message);
    cr_assert(eq(str, o.error.argument, text("a")));
    outcome_free(&o);
    check_unused(&h, descriptors);
    free(a);
    close(fd);
    harness_stop(&h);
}

Test(files, of_other_kinds_are_refused)
{
    struct harness h;
    struct test_job j;
    const int64_t shape[] = {100000};
    int pipes[2], folder = open("/", O_RDONLY | O_CLOEXEC);
    float *a;
    int good = make_floats(100000, &a), written = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, pipe2(pipes, O_CLOEXEC), 0));
    const int bad[] = {folder, pipes[0], written};
    harness_start(&h, 2 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    for (unsigned i = 0; i < 3; i++) {
        job_init(&j, i);
        j.needs_carry = true;
        at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), bad[i], 0);
        job_output(&j, "sum(a)", "");
        run_refused(&h, &j, GAD_BAD_DESCRIPTOR, "a");
        job_init(&j, i);
        at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), good, 0);
        at_file(&j, job_output_to(&j, "a", "r", DTYPE_FLOAT32, 1, shape), bad[i], 0);
        run_refused(&h, &j, GAD_BAD_DESCRIPTOR, "r");
    }
    check_unused(&h, descriptors);
    harness_stop(&h);
    free(a);
    close(good);
    close(folder);
    close(written);
    close(pipes[0]);
    close(pipes[1]);
}

Test(files, that_cannot_be_written_fail_their_job)
{
    struct harness h;
    struct test_job j;
    const int64_t shape[] = {100000};
    float *a;
    int in = make_floats(100000, &a);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", in);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    harness_start(&h, 2 * MIB, 2);
    job_init(&j, 1);
    at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), in, 0);
    at_file(&j, job_output_to(&j, "a", "r", DTYPE_FLOAT32, 1, shape), reader, 0);
    run_refused(&h, &j, GAD_READ_ONLY, "r");
    harness_stop(&h);
    free(a);
    close(in);
    close(reader);
}

#if !HARNESS_IS_CUDA /* whose pool is never without slots */
Test(files, need_a_slot_and_say_so_when_the_pool_has_none)
{
    struct harness h;
    struct test_job j;
    const int64_t shape[] = {100000};
    float *a;
    int in = make_floats(100000, &a);
    harness_start(&h, 256 * 1024, 2);
    job_init(&j, 1);
    at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), in, 0);
    job_output(&j, "a[0]", "");
    j.outputs[0].expr = "sum(a)";
    j.outputs[0].n_expr_chars = 6;
    run_refused(&h, &j, GAD_TOO_LARGE_FOR_POOL, "pool");
    harness_stop(&h);
    free(a);
    close(in);
}
#endif

/* Grids of chunks ---------------------------------------------------------------------------- */

/* A 3-d array of floats as chunks in scrambled order, some of them absent. */
struct grid {
    int64_t shape[3], chunk[3], n[3];
    uint64_t n_chunks;
    size_t chunk_bytes;
    float *values; /* dense */
    struct chunk_entry *table;
    int fd, table_fd;
};

static void grid_write_chunk(struct grid *g, uint64_t number, uint64_t offset)
{
    float *chunk = calloc(1, g->chunk_bytes);
    int64_t at[3] = {(int64_t)number / (g->n[1] * g->n[2]), (int64_t)number / g->n[2] % g->n[1],
                     (int64_t)number % g->n[2]};
    for (int64_t x = 0; x < g->chunk[0]; x++)
        for (int64_t y = 0; y < g->chunk[1]; y++)
            for (int64_t z = 0; z < g->chunk[2]; z++) {
                int64_t i = at[0] * g->chunk[0] + x, k = at[1] * g->chunk[1] + y;
                int64_t l = at[2] * g->chunk[2] + z;
                float *value = &chunk[(x * g->chunk[1] + y) * g->chunk[2] + z];
                if (i >= g->shape[0] || k >= g->shape[1] || l >= g->shape[2])
                    *value = NAN; /* the edge is whole and nobody reads it */
                else if (number % 11 == 5)
                    g->values[(i * g->shape[1] + k) * g->shape[2] + l] = 0; /* absent */
                else
                    *value = g->values[(i * g->shape[1] + k) * g->shape[2] + l];
            }
    if (number % 11 != 5)
        cr_assert(
            eq(i64, pwrite(g->fd, chunk, g->chunk_bytes, (off_t)offset), (int64_t)g->chunk_bytes));
    free(chunk);
}

static void grid_seal(struct grid *g)
{
    size_t n_bytes = g->n_chunks * sizeof(*g->table);
    g->table_fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(eq(i64, write(g->table_fd, g->table, n_bytes), (int64_t)n_bytes));
    cr_assert(
        eq(int, fcntl(g->table_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0));
}

static void grid_make(struct grid *g, const int64_t *shape, const int64_t *chunk)
{
    g->n_chunks = 1;
    g->chunk_bytes = sizeof(float);
    int64_t n = 1;
    for (int i = 0; i < 3; i++) {
        g->shape[i] = shape[i];
        g->chunk[i] = chunk[i];
        g->n[i] = (shape[i] + chunk[i] - 1) / chunk[i];
        g->n_chunks *= (uint64_t)g->n[i];
        g->chunk_bytes *= (size_t)chunk[i];
        n *= shape[i];
    }
    g->values = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        g->values[i] = (float)(i % 100003);
    g->table = calloc(g->n_chunks, sizeof(*g->table));
    g->fd = make_file("", 0);
    for (uint64_t i = 0; i < g->n_chunks; i++) {
        uint64_t offset = 2048 + (g->n_chunks - 1 - i) * (g->chunk_bytes + 16);
        grid_write_chunk(g, i, offset);
        g->table[i] = (struct chunk_entry){i % 11 == 5 ? CHUNK_ABSENT : offset, g->chunk_bytes};
    }
    grid_seal(g);
}

static void grid_free(struct grid *g)
{
    close(g->fd);
    close(g->table_fd);
    free(g->table);
    free(g->values);
}

static void at_grid(struct test_job *j, struct array *a, const struct grid *g)
{
    at_file(j, a, g->fd, 0);
    a->at.file.is_grid = true;
    a->at.file.n_chunks = g->n_chunks;
    a->at.file.table_fd_index = j->n_fds;
    for (int i = 0; i < 3; i++)
        a->at.file.chunk_shape[i] = g->chunk[i];
    j->fds[j->n_fds++] = g->table_fd;
}

static void grid_job(struct test_job *j, const struct grid *g, int out)
{
    job_init(j, 1);
    at_grid(j, job_arg(j, "a", DTYPE_FLOAT32, 3, g->shape), g);
    at_file(j, job_output_to(j, "a + 1", "r", DTYPE_FLOAT32, 3, g->shape), out, 0);
}

Test(files, in_chunks_of_any_shape_are_read)
{
    static const int64_t shapes[][2][3] = {
        {{13, 73, 144}, {1, 73, 144}},  /* a plane a chunk */
        {{50, 60, 70}, {16, 16, 16}},   /* cubes with edges */
        {{3, 300, 500}, {2, 64, 128}},  /* a chunk as large as a grain */
        {{5, 700, 600}, {5, 512, 300}}, /* larger than one */
        {{20, 20, 20}, {1, 1, 1}},      /* an element a chunk */
        {{200, 7, 9}, {64, 1, 2}},
    };
    struct harness h;
    harness_start(&h, 2 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct grid g;
        struct test_job j;
        grid_make(&g, shapes[i][0], shapes[i][1]);
        int out = make_file("", 0);
        unsigned n = (unsigned)(g.shape[0] * g.shape[1] * g.shape[2]);
        grid_job(&j, &g, out);
        run_ok(&h, &j);
        float *got = read_floats(out, n);
        for (unsigned k = 0; k < n; k++)
            cr_assert(eq(flt, got[k], g.values[k] + 1), "shape %u, element %u", i, k);
        free(got);
        close(out);
        grid_free(&g);
    }
    check_unused(&h, descriptors);
    harness_stop(&h);
}

Test(files, in_chunks_with_a_bad_table_are_refused)
{
    static const int64_t shape[] = {13, 73, 144}, chunk[] = {1, 73, 144};
    struct harness h;
    struct grid g;
    struct test_job j;
    int out = make_file("", 0);
    harness_start(&h, 2 * MIB, 2);
    grid_make(&g, shape, chunk);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    struct chunk_entry good = g.table[7];
    static const struct {
        uint64_t offset, size;
        int status;
    } bad[] = {
        {0, 73 * 144 * 4 - 4, GAD_BAD_CHUNK_TABLE},
        {0, UINT64_MAX, GAD_BAD_CHUNK_TABLE},
        {UINT64_MAX - 1, 73 * 144 * 4, GAD_BAD_CHUNK_TABLE},
        {INT64_MAX, 73 * 144 * 4, GAD_BAD_CHUNK_TABLE},
        {MIB * 64, 73 * 144 * 4, GAD_SHORT_READ},
    };
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        close(g.table_fd);
        g.table[7] = (struct chunk_entry){bad[i].offset, bad[i].size};
        grid_seal(&g);
        grid_job(&j, &g, out);
        run_refused(&h, &j, bad[i].status, "a");
    }
    close(g.table_fd);
    g.table[7] = good;
    grid_seal(&g);
    g.n_chunks--;
    grid_job(&j, &g, out);
    run_refused(&h, &j, GAD_BAD_CHUNK_TABLE, "a");
    g.n_chunks++;
    int sealed = g.table_fd;
    g.table_fd = make_file(g.table, g.n_chunks * sizeof(*g.table));
    grid_job(&j, &g, out);
    run_refused(&h, &j, GAD_BAD_CHUNK_TABLE, "a");
    close(g.table_fd);
    g.table_fd = make_memfd(g.n_chunks * sizeof(*g.table) - 1, F_SEAL_SHRINK | F_SEAL_WRITE);
    grid_job(&j, &g, out);
    run_refused(&h, &j, GAD_BAD_CHUNK_TABLE, "a");
    close(g.table_fd);
    g.table_fd = sealed;
    grid_job(&j, &g, out);
    run_ok(&h, &j);
    check_unused(&h, descriptors);
    harness_stop(&h);
    close(out);
    grid_free(&g);
}
