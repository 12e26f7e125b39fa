#include "tests/unit/daemon/worker/harness.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#define MIB   (1024u * 1024u)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* float64 values of jobs that take a while: the test double computes each some ten times as slowly
 * as the CPU engine. */
#define LONG_VALUES ((HARNESS_IS_CUDA ? 2u : 8u) * MIB)
#define LONG_BYTES  (8 * LONG_VALUES)
#define ROW         (HARNESS_IS_CUDA ? 400000 : 1000000) /* three of them: several tiles */

static const int64_t thousand[] = {1000};

static void thousand_doubles(double *values)
{
    for (int i = 0; i < 1000; i++)
        values[i] = i * 0.5;
}

Test(jobs, a_small_one_is_answered_inline)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    double a[1000];
    thousand_doubles(a);
    harness_start(&h, 2 * MIB, 2);
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 1, thousand), a, sizeof(a));
    job_output(&j, "sqrt(a*a + 1)", "r");
    harness_run(&h, &j, &o);
    size_t n_bytes;
    const char *data = outcome_data(&o, 0, &n_bytes);
    cr_assert(eq(sz, n_bytes, sizeof(a)));
    for (int i = 0; i < 1000; i++) {
        double got;
        memcpy(&got, data + 8 * i, 8);
        cr_assert(epsilon_eq(dbl, got, sqrt(a[i] * a[i] + 1), 1e-12));
    }
    cr_assert(eq(u64, outcome_u64(&o, "tiles"), 1));
    cr_assert(eq(u64, outcome_u64(&o, "read_bytes"), 8000));
    cr_assert(eq(u64, outcome_u64(&o, "write_bytes"), 8000));
    outcome_free(&o);
    harness_stop(&h);
}

Test(jobs, many_small_ones_may_be_sent_at_once)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    double a[1000];
    uint32_t ids[100];
    thousand_doubles(a);
    harness_start(&h, 2 * MIB, 2);
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 1, thousand), a, sizeof(a));
    job_output(&j, "a + 1", "");
    for (int i = 0; i < 100; i++)
        ids[i] = harness_send(&h, &j);
    for (int i = 0; i < 100; i++) {
        harness_receive(&h, &o, NULL);
        cr_assert(eq(u32, o.id, ids[i]));
        cr_assert(eq(int, o.status, 0));
        outcome_free(&o);
    }
    harness_stop(&h);
}

Test(jobs, arrays_without_elements_work)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {0, 5};
    size_t n_bytes;
    harness_start(&h, 2 * MIB, 1);
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), "", 0);
    job_output(&j, "a * 2", "twice");
    job_output(&j, "sum(a) + 1", "sum");
    j.needs_carry = true;
    harness_run(&h, &j, &o);
    outcome_data(&o, 0, &n_bytes);
    cr_assert(eq(sz, n_bytes, 0));
    float sum;
    memcpy(&sum, outcome_data(&o, 1, NULL), sizeof(sum));
    cr_assert(eq(flt, sum, 1));
    outcome_free(&o);
    harness_stop(&h);
}

Test(jobs, warnings_are_counted)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {4};
    const int32_t a[] = {1, 2, 3, 4}, b[] = {0, 1, 0, 2};
    uint64_t n = 0;
    harness_start(&h, 2 * MIB, 1);
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_INT32, 1, shape), a, sizeof(a));
    at_inline(job_arg(&j, "b", DTYPE_INT32, 1, shape), b, sizeof(b));
    job_output(&j, "a // b", "");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0));
    const msgpack_object *warnings = map_find(&o.message.result, "warnings");
    cr_assert(eq(int, map_require_u64(warnings, "divide_by_zero", &n, NULL), 0));
    cr_assert(eq(u64, n, 2));
    outcome_free(&o);
    harness_stop(&h);
}

Test(jobs, what_cannot_be_computed_says_why)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {2};
    const int64_t a[] = {2, 3}, b[] = {-1, 2};
    harness_start(&h, 2 * MIB, 1);
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_INT64, 1, shape), a, sizeof(a));
    at_inline(job_arg(&j, "b", DTYPE_INT64, 1, shape), b, sizeof(b));
    job_output(&j, "a ** b", "power");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_NEGATIVE_POWER), "%s", o.error.message);
    cr_assert(eq(str, o.error.argument, text("power")));
    outcome_free(&o);

    job_init(&j, 2);
    at_region(job_arg(&j, "a", DTYPE_INT64, 1, shape), 77, 0);
    job_output(&j, "a", "");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_UNKNOWN_REGION));
    outcome_free(&o);

    const int64_t large[] = {10000};
    job_init(&j, 3);
    job_scalar(&j, "k", 2);
    at_inline(job_arg(&j, "a", DTYPE_INT64, 1, shape), a, sizeof(a));
    job_output(&j, "sqr(a) + k", "r");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_UNKNOWN_NAME));
    outcome_free(&o);

    job_init(&j, 4);
    int fd = make_memfd(80000, SEALS);
    cr_assert(eq(int, harness_attach(&h, 1, fd, 80000, false), 0));
    at_region(job_arg(&j, "a", DTYPE_INT64, 1, large), 1, 0);
    job_output(&j, "a", "r");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_TOO_LARGE_FOR_INLINE));
    cr_assert(eq(str, o.error.argument, text("r")));
    cr_assert(eq(str, o.error.found, text("80000 bytes")));
    outcome_free(&o);
    close(fd);
    harness_stop(&h);
}

/* A region of the client's, mapped here too. */
struct client_region {
    int fd;
    size_t n_bytes;
    char *base;
};

static struct client_region make_region(struct harness *h, uint64_t id, size_t n_bytes,
                                        bool is_writable)
{
    struct client_region r = {.n_bytes = n_bytes, .fd = make_memfd(n_bytes, SEALS)};
    r.base = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
    cr_assert(eq(int, harness_attach(h, id, r.fd, n_bytes, is_writable), 0));
    return r;
}

static void drop_region(struct client_region *r)
{
    munmap(r->base, r->n_bytes);
    close(r->fd);
}

Test(jobs, regions_are_computed_in_place)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {3, ROW}, row[] = {ROW}, turned[] = {ROW, 3};
    harness_start(&h, 2 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    struct client_region r = make_region(&h, 5, 64 * MIB, true);
    float *a = (float *)r.base, *b = (float *)(r.base + 16 * MIB);
    float *out = (float *)(r.base + 32 * MIB);
    for (int i = 0; i < 3 * ROW; i++)
        a[i] = (float)(i % 1000);
    for (int i = 0; i < ROW; i++)
        b[i] = (float)(i % 7);
    job_init(&j, 1);
    at_region(job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), 5, 0);
    at_region(job_arg(&j, "b", DTYPE_FLOAT32, 1, row), 5, 16 * MIB);
    at_region(job_output_to(&j, "a + b", "out", DTYPE_FLOAT32, 2, shape), 5, 32 * MIB);
    at_region(job_output_to(&j, "a * 2", "a", DTYPE_FLOAT32, 2, shape), 5, 0);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    cr_assert(lt(u64, 1, outcome_u64(&o, "tiles")));
    outcome_free(&o);
    for (int i = 0; i < 3 * ROW; i++) {
        cr_assert(out[i] == (float)(i % 1000) + (float)(i % ROW % 7), "element %d", i);
        cr_assert(a[i] == (float)(i % 1000 * 2), "element %d", i);
    }
    /* A transposed, reversed view of it. */
    job_init(&j, 2);
    struct array *view = job_arg(&j, "a", DTYPE_FLOAT32, 2, turned);
    at_region(view, 5, 4 * (3 * ROW - 1));
    view->strides[0] = -4;
    view->strides[1] = -4 * (int64_t)ROW;
    at_region(job_output_to(&j, "a + 1", "out", DTYPE_FLOAT32, 2, turned), 5, 32 * MIB);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    outcome_free(&o);
    for (int i = 0; i < ROW; i++)
        for (int k = 0; k < 3; k++)
            cr_assert(out[i * 3 + k] == a[(2 - k) * ROW + (ROW - 1 - i)] + 1);
    cr_assert(eq(u64, harness_stat(&h, "mappings"), 1));
    harness_detach(&h, 5);
    cr_assert(eq(u64, harness_stat(&h, "mappings"), 0));
    cr_assert(eq(u64, harness_stat(&h, "descriptors"), descriptors + 1)); /* ours */
    drop_region(&r);
    harness_stop(&h);
}

Test(jobs, of_a_region_stay_inside_it_and_write_only_where_they_may)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    harness_start(&h, 2 * MIB, 2);
    struct client_region r = make_region(&h, 5, 8192, false);
    job_init(&j, 1);
    at_region(job_arg(&j, "a", DTYPE_FLOAT64, 1, thousand), 5, 200);
    job_output(&j, "a", "");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_BAD_EXTENT));
    cr_assert(eq(str, o.error.argument, text("a")));
    outcome_free(&o);

    job_init(&j, 2);
    at_region(job_arg(&j, "a", DTYPE_FLOAT64, 1, thousand), 5, 0);
    at_region(job_output_to(&j, "a", "out", DTYPE_FLOAT64, 1, thousand), 5, 0);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_READ_ONLY));
    cr_assert(eq(str, o.error.argument, text("out")));
    outcome_free(&o);
    drop_region(&r);
    harness_stop(&h);
}

static uint64_t sum_of_noise(uint64_t pool_bytes, unsigned n_threads)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {LONG_VALUES / 8, 8};
    harness_start(&h, pool_bytes, n_threads);
    struct client_region r = make_region(&h, 1, LONG_BYTES, false);
    double *a = (double *)r.base;
    uint64_t state = 1;
    for (unsigned i = 0; i < LONG_VALUES; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        a[i] = ldexp((double)(int64_t)state, -50 - (int)(state % 30));
    }
    job_init(&j, 1);
    j.needs_carry = true;
    at_region(job_arg(&j, "a", DTYPE_FLOAT64, 2, shape), 1, 0);
    job_output(&j, "sum(a)", "sum");
    job_output(&j, "max(a - mean(a))", "largest");
    harness_run(&h, &j, &o);
    uint64_t bits;
    memcpy(&bits, outcome_data(&o, 0, NULL), sizeof(bits));
    cr_assert(lt(u64, 16, outcome_u64(&o, "tiles")));
    outcome_free(&o);
    cr_assert(eq(u64, harness_stat(&h, "carries"), 0));
    cr_assert(eq(u64, harness_stat(&h, "carry_bytes"), 0));
    drop_region(&r);
    harness_stop(&h);
    return bits;
}

Test(jobs, reductions_have_the_same_bits_whatever_the_pool_and_the_threads)
{
    uint64_t want = sum_of_noise(1 * MIB, 1);
    cr_assert(eq(u64, sum_of_noise(8 * MIB, 1), want));
    cr_assert(eq(u64, sum_of_noise(1 * MIB, 4), want));
    cr_assert(eq(u64, sum_of_noise(8 * MIB, 4), want));
}

/* A job that takes a while: its region is large, its arithmetic slow. */
static void slow_job(struct test_job *j, uint64_t id)
{
    const int64_t shape[] = {LONG_VALUES};
    job_init(j, id);
    at_region(job_arg(j, "a", DTYPE_FLOAT64, 1, shape), 1, 0);
    at_region(job_output_to(j, "tanh(exp(sin(cos(tanh(exp(sin(cos(a))))))))", "r", DTYPE_FLOAT64, 1,
                            shape),
              1, LONG_BYTES);
}

Test(jobs, one_that_is_cancelled_stops_between_tiles)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    harness_start(&h, 2 * MIB, 2);
    struct client_region r = make_region(&h, 1, 2 * LONG_BYTES, true);
    slow_job(&j, 9);
    harness_send(&h, &j);
    harness_cancel(&h, 9);
    harness_receive(&h, &o, NULL);
    cr_assert(eq(int, o.status, GAD_CANCELLED));
    outcome_free(&o);
    harness_cancel(&h, 9); /* long over */
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 0));
    cr_assert(eq(u64, harness_stat(&h, "threads_busy"), 0));
    drop_region(&r);
    harness_stop(&h);
}

Test(jobs, progress_is_told_and_small_ones_do_not_wait)
{
    struct harness h;
    struct test_job j, small;
    struct outcome o;
    double a[1000];
    unsigned n_progress = 0;
    thousand_doubles(a);
    harness_start(&h, 2 * MIB, 1);
    struct client_region r = make_region(&h, 1, 2 * LONG_BYTES, true);
    slow_job(&j, 1);
    j.request.progress_ms = 50;
    uint32_t slow = harness_send(&h, &j);
    job_init(&small, 2);
    at_inline(job_arg(&small, "a", DTYPE_FLOAT64, 1, thousand), a, sizeof(a));
    job_output(&small, "a + 1", "");
    uint32_t quick = harness_send(&h, &small);
    harness_receive(&h, &o, &n_progress);
    cr_assert(eq(u32, o.id, quick));
    outcome_free(&o);
    harness_receive(&h, &o, &n_progress);
    cr_assert(eq(u32, o.id, slow));
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    cr_assert(ge(u32, n_progress, 1));
    outcome_free(&o);
    drop_region(&r);
    harness_stop(&h);
}

Test(jobs, of_two_users_share_the_threads)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    harness_start(&h, 2 * MIB, 2);
    struct client_region r = make_region(&h, 1, 2 * LONG_BYTES, true);
    slow_job(&j, 1);
    uint32_t large = harness_send(&h, &j);
    const int64_t shape[] = {LONG_VALUES / 8};
    job_init(&j, 2);
    j.user = 2000;
    at_region(job_arg(&j, "a", DTYPE_FLOAT64, 1, shape), 1, 0);
    job_output(&j, "sum(a)", "");
    j.needs_carry = true;
    uint32_t little = harness_send(&h, &j);
    harness_receive(&h, &o, NULL);
    cr_assert(eq(u32, o.id, little));
    outcome_free(&o);
    harness_receive(&h, &o, NULL);
    cr_assert(eq(u32, o.id, large));
    outcome_free(&o);
    drop_region(&r);
    harness_stop(&h);
}

Test(jobs, a_region_punched_before_or_during_a_job_fails_that_job_alone)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    double a[1000];
    thousand_doubles(a);
    harness_start(&h, 2 * MIB, 2);
    struct client_region r = make_region(&h, 1, 2 * LONG_BYTES, true);
    slow_job(&j, 1);
    cr_assert(eq(
        int,
        fallocate(r.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, LONG_BYTES - 4 * MIB, 2 * MIB),
        0));
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_REGION_FAULT), "%s", o.error.message);
    cr_assert(o.error.argument[0] == 'r' || o.error.argument[0] == 'a');
    outcome_free(&o);
    job_init(&j, 2);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 1, thousand), a, sizeof(a));
    job_output(&j, "sum(a)", "");
    harness_run(&h, &j, &o);
    double sum;
    memcpy(&sum, outcome_data(&o, 0, NULL), sizeof(sum));
    cr_assert(eq(dbl, sum, 999 * 1000 / 4.0));
    outcome_free(&o);
    drop_region(&r);
    harness_stop(&h);
}

Test(jobs, a_worker_that_loses_its_broker_leaves_in_the_middle)
{
    struct harness h;
    struct test_job j;
    harness_start(&h, 2 * MIB, 2);
    struct client_region r = make_region(&h, 1, 2 * LONG_BYTES, true);
    slow_job(&j, 1);
    harness_send(&h, &j);
    harness_stop(&h);
    drop_region(&r);
}

Test(jobs, an_unknown_method_is_answered)
{
    struct harness h;
    struct outcome o;
    struct message_writer w;
    harness_start(&h, 2 * MIB, 1);
    message_writer_init(&w);
    message_begin_request(&w, 77, "job.dance");
    msgpack_pack_map(&w.packer, 0);
    cr_assert(eq(int, conn_send(h.conn, w.buffer.data, w.buffer.size, NULL, 0), 0));
    cr_assert(eq(int, conn_flush(h.conn), 0));
    harness_receive(&h, &o, NULL);
    cr_assert(eq(u32, o.id, 77));
    cr_assert(eq(int, o.status, GAD_UNKNOWN_METHOD));
    outcome_free(&o);
    message_writer_deinit(&w);
    harness_stop(&h);
}

Test(jobs, asked_with_the_jobs_the_numbers_at_hand_are_told)
{
    struct harness h;
    struct outcome o;
    struct message_writer w;
    harness_start(&h, 2 * MIB, 1);
    message_writer_init(&w);
    message_begin_request(&w, 77, "stats");
    msgpack_pack_map(&w.packer, 1);
    pack_key_bool(&w.packer, "jobs", true);
    cr_assert(eq(int, conn_send(h.conn, w.buffer.data, w.buffer.size, NULL, 0), 0));
    cr_assert(eq(int, conn_flush(h.conn), 0));
    harness_receive(&h, &o, NULL);
    cr_assert(eq(u32, o.id, 77));
    cr_assert(lt(u64, 0, outcome_u64(&o, "slots")));
    cr_assert(eq(u64, outcome_u64(&o, "threads_busy"), 0));
    cr_assert(eq(ptr, (void *)map_find(&o.message.result, "descriptors"), NULL));
    cr_assert(lt(u64, 0, outcome_u64(&o, "private_bytes")));
    outcome_free(&o);
    message_writer_deinit(&w);
    harness_stop(&h);
}
