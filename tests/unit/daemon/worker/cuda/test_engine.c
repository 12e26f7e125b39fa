/* What the jobs' own tests do not see: how tiles are with the device, and how that ends. The double
 * reads its settings once a process, and every test is one. */
#include "daemon/crashpage.h"
#include "daemon/worker/cuda/engine.h"
#include "daemon/worker/turns/scheduler.h"
#include "proto/wire/map.h"
#include "tests/double/double.h"
#include "tests/unit/daemon/worker/harness.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#define MIB   (1024u * 1024u)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

#define N_THREADS 2u

static const int64_t many[] = {6 * MIB}; /* floats: 24 MiB */

struct memory {
    float *floats;
    size_t n_bytes;
    int fd;
};

static struct memory make_region(struct harness *h, uint64_t id, size_t n_bytes)
{
    struct memory m = {.n_bytes = n_bytes, .fd = make_memfd(n_bytes, SEALS)};
    m.floats = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    cr_assert(m.floats != MAP_FAILED);
    cr_assert(eq(int, harness_attach(h, id, m.fd, n_bytes, true), 0));
    return m;
}

static void drop(struct memory *m)
{
    munmap(m->floats, m->n_bytes);
    close(m->fd);
}

/* out = a + 1, of many elements in a region of 48 MiB. */
static void add_one(struct test_job *j, uint64_t id)
{
    job_init(j, id);
    at_region(job_arg(j, "a", DTYPE_FLOAT32, 1, many), 1, 0);
    at_region(job_output_to(j, "a + 1", "out", DTYPE_FLOAT32, 1, many), 1, 24 * MIB);
}

static void fill(struct memory *m)
{
    for (unsigned i = 0; i < 6 * MIB; i++)
        m->floats[i] = (float)(i % 100000);
    memset(m->floats + 6 * MIB, 0xff, 24 * MIB);
}

static void check_added(const struct memory *m)
{
    for (unsigned i = 0; i < 6 * MIB; i++)
        cr_assert(m->floats[6 * MIB + i] == (float)(i % 100000) + 1, "element %u", i);
}

static void run_ok(struct harness *h, struct test_job *j, struct outcome *ret)
{
    harness_run(h, j, ret);
    cr_assert(eq(int, ret->status, 0), "%s: %s", error_word(ret->status), ret->error.message);
}

static double seconds(const struct outcome *o, const char *key)
{
    const msgpack_object *map = map_find(&o->message.result, "seconds");
    const msgpack_object *value = map ? map_find(map, key) : NULL;
    cr_assert(value && value->type == MSGPACK_OBJECT_FLOAT, "%s", key);
    return value->via.f64;
}

Test(cuda_engine, says_which_device_it_was_and_how_long_each_stage_took)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    static const char *const stages[] = {"total",  "source",      "to_device",
                                         "kernel", "from_device", "sink"};
    harness_start(&h, 2 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 48 * MIB);
    fill(&m);
    add_one(&j, 1);
    run_ok(&h, &j, &o);
    const msgpack_object *engine = map_find(&o.message.result, "engine");
    cr_assert(engine && engine->type == MSGPACK_OBJECT_STR && engine->via.str.size == 6);
    cr_assert(eq(int, memcmp(engine->via.str.ptr, "cuda:0", 6), 0));
    for (unsigned i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
        cr_assert(lt(dbl, 0, seconds(&o, stages[i])), "%s", stages[i]);
    cr_assert(eq(u64, outcome_u64(&o, "read_bytes"), 24 * MIB));
    cr_assert(eq(u64, outcome_u64(&o, "write_bytes"), 24 * MIB));
    outcome_free(&o);
    check_added(&m);
    drop(&m);
    harness_stop(&h);
}

/* Every copy and kernel waits a little, so tiles come faster than they go. */
Test(cuda_engine, has_several_tiles_at_the_device_and_takes_no_memory_for_them)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    setenv("GPUARRAYD_DOUBLE", "seed=1,delay-us=1000", 1);
    harness_start(&h, 8 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 48 * MIB);
    fill(&m);
    (void)harness_stat(&h, "slots");
    struct double_stats before = double_stats();
    for (uint64_t i = 1; i <= 3; i++) {
        add_one(&j, i);
        run_ok(&h, &j, &o);
        outcome_free(&o);
    }
    struct double_stats after = double_stats();
    check_added(&m);
    cr_assert(lt(u64, before.n_overlapped, after.n_overlapped));
    cr_assert(lt(u64, 3, after.n_launches - before.n_launches));
    cr_assert(
        eq(u64, after.n_to_device - before.n_to_device, after.n_launches - before.n_launches));
    cr_assert(
        eq(u64, after.n_from_device - before.n_from_device, after.n_launches - before.n_launches));
    cr_assert(eq(u64, after.n_mallocs, before.n_mallocs));
    cr_assert(eq(u64, after.n_host_allocs, before.n_host_allocs));
    cr_assert(eq(u64, after.n_streams, before.n_streams));
    cr_assert(eq(u64, after.n_events, before.n_events));
    cr_assert(eq(u64, after.n_frees, before.n_frees));
    drop(&m);
    harness_stop(&h);
}

Test(cuda_engine, copies_what_is_broadcast_once_a_tile)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {6 * 1024, 1024}, row[] = {1024};
    float values[1024];
    harness_start(&h, 2 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 48 * MIB);
    fill(&m);
    for (int i = 0; i < 1024; i++)
        values[i] = (float)i;
    job_init(&j, 1);
    at_region(job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), 1, 0);
    at_inline(job_arg(&j, "b", DTYPE_FLOAT32, 1, row), values, sizeof(values));
    at_region(job_output_to(&j, "a + b", "out", DTYPE_FLOAT32, 2, shape), 1, 24 * MIB);
    struct double_stats before = double_stats();
    run_ok(&h, &j, &o);
    outcome_free(&o);
    struct double_stats after = double_stats();
    uint64_t n_tiles = after.n_launches - before.n_launches;
    uint64_t n_beside = after.bytes_to_device - before.bytes_to_device - 24 * MIB;
    cr_assert(le(u64, n_beside, n_tiles * 32 * 1024), "%llu bytes in %llu tiles",
              (unsigned long long)n_beside, (unsigned long long)n_tiles);
    for (unsigned i = 0; i < 6 * MIB; i++)
        cr_assert(m.floats[6 * MIB + i] == (float)(i % 100000) + (float)(i % 1024), "element %u",
                  i);
    drop(&m);
    harness_stop(&h);
}

/* A file whose existence arms the double's faults. */
static void arm(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert(ge(int, fd, 0));
    close(fd);
}

static void set_faults(char *path, const char *fault)
{
    char settings[256];
    int fd = mkostemp(path, O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    close(fd);
    unlink(path);
    snprintf(settings, sizeof(settings), "%s,armed=%s", fault, path);
    setenv("GPUARRAYD_DOUBLE", settings, 1);
}

Test(cuda_engine, fails_the_job_whose_launch_failed_and_goes_on)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    char path[] = "/tmp/gpuarrayd-armed-XXXXXX";
    set_faults(path, "fail-launch=3");
    harness_start(&h, 8 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 48 * MIB);
    fill(&m);
    arm(path);
    add_one(&j, 1);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_DEVICE_FAULT));
    cr_assert(eq(str, o.error.found, text("cudaErrorLaunchOutOfResources")));
    outcome_free(&o);
    cr_assert(eq(u64, harness_stat(&h, "slots_lent"), 0));
    add_one(&j, 2);
    run_ok(&h, &j, &o);
    outcome_free(&o);
    check_added(&m);
    cr_assert(eq(u64, harness_stat(&h, "slots_lent"), 0));
    unlink(path);
    drop(&m);
    harness_stop(&h);
}

Test(cuda_engine, waits_for_the_tiles_of_a_job_that_is_cancelled)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    setenv("GPUARRAYD_DOUBLE", "seed=1,delay-us=20000", 1);
    harness_start(&h, 8 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 48 * MIB);
    fill(&m);
    struct double_stats before = double_stats();
    add_one(&j, 7);
    harness_send(&h, &j);
    while (double_stats().n_to_device == before.n_to_device)
        poll(NULL, 0, 1);
    harness_cancel(&h, 7);
    harness_receive(&h, &o, NULL);
    cr_assert(eq(int, o.status, GAD_CANCELLED));
    outcome_free(&o);
    struct double_stats after = double_stats();
    cr_assert(eq(u64, after.n_from_device - before.n_from_device,
                 after.n_to_device - before.n_to_device));
    cr_assert(eq(u64, harness_stat(&h, "slots_lent"), 0));
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 0));
    drop(&m);
    harness_stop(&h);
}

/* Flights of a job in the page, and how many of them the device has come to. */
static unsigned page_names(const struct harness *h, uint64_t job, unsigned *ret_n_begun)
{
    unsigned n = atomic_load(&h->page->n_threads), n_named = 0;
    *ret_n_begun = 0;
    for (unsigned i = 1 + N_THREADS + sched_n_spares(N_THREADS) + SCHED_N_IO; i < n; i++) {
        const struct crashpage_thread *page = &h->page->threads[i];
        if (atomic_load(&page->job) != job)
            continue;
        n_named++;
        *ret_n_begun += atomic_load(&page->since_ns) != CRASHPAGE_NOT_YET;
    }
    return n_named;
}

/* The process ends with its threads at the device: nothing can be waited for. */
Test(cuda_engine, names_the_tiles_at_a_device_that_hangs)
{
    static struct harness h; /* never stopped, and not lost */
    struct test_job j;
    char path[] = "/tmp/gpuarrayd-armed-XXXXXX";
    set_faults(path, "hang-launch=1");
    harness_start(&h, 8 * MIB, N_THREADS);
    cr_assert(eq(u32, atomic_load(&h.page->n_threads),
                 1 + N_THREADS + sched_n_spares(N_THREADS) + SCHED_N_IO + CARD_MIN_DEPTH +
                     CUDA_MAX_MULTIPLIES + CUDA_MAX_STORES));
    struct memory m = make_region(&h, 1, 48 * MIB);
    fill(&m);
    unsigned n_begun;
    cr_assert(zero(uint, page_names(&h, 77, &n_begun)));
    arm(path);
    add_one(&j, 77);
    harness_send(&h, &j);
    for (int i = 0; i < 60000 && page_names(&h, 77, &n_begun) < 2; i++)
        poll(NULL, 0, 1);
    cr_assert(ge(uint, page_names(&h, 77, &n_begun), 2));
    cr_assert(eq(uint, n_begun, 1), "those behind it do not hang");
    unlink(path);
}

/* a * b + c, of parts of the region: each is one copy a tile, however many grains that has. */
static void check_copies_of_three(struct harness *h, const struct memory *m, uint64_t id)
{
    static const int64_t shape[] = {3 * MIB};
    static const char *const names[] = {"a", "b", "c"};
    struct test_job j;
    struct outcome o;
    for (unsigned i = 0; i < 9 * MIB; i++)
        m->floats[i] = (float)(i % 1000);
    job_init(&j, id);
    for (unsigned i = 0; i < 3; i++)
        at_region(job_arg(&j, names[i], DTYPE_FLOAT32, 1, shape), 1, i * 12 * MIB);
    at_region(job_output_to(&j, "a * b + c", "out", DTYPE_FLOAT32, 1, shape), 1, 36 * MIB);
    struct double_stats before = double_stats();
    run_ok(h, &j, &o);
    outcome_free(&o);
    struct double_stats after = double_stats();
    const uint64_t n_tiles = after.n_launches - before.n_launches;
    cr_assert(lt(u64, 4 * 128 * 1024, 48 * MIB / n_tiles), "tiles of one grain show nothing");
    cr_assert(eq(u64, after.n_to_device - before.n_to_device, 4 * n_tiles)); /* and the records */
    cr_assert(eq(u64, after.n_from_device - before.n_from_device, n_tiles));
    for (unsigned i = 0; i < 3 * MIB; i++)
        cr_assert(m->floats[9 * MIB + i] ==
                      (float)(i % 1000) * m->floats[3 * MIB + i] + m->floats[6 * MIB + i],
                  "element %u", i);
}

/* From the left half of a matrix's columns to the right one: rows with gaps, one copy a tile. */
static void check_copies_of_columns(struct harness *h, const struct memory *m, uint64_t id)
{
    static const int64_t shape[] = {3000, 1024};
    struct test_job j;
    struct outcome o;
    for (unsigned i = 0; i < 3000 * 2048; i++)
        m->floats[i] = (float)(i % 1000);
    job_init(&j, id);
    struct array *in = job_arg(&j, "a", DTYPE_FLOAT32, 2, shape);
    struct array *out = job_output_to(&j, "a + 1", "out", DTYPE_FLOAT32, 2, shape);
    at_region(in, 1, 0);
    at_region(out, 1, 1024 * sizeof(float));
    in->strides[0] = out->strides[0] = 2048 * sizeof(float);
    struct double_stats before = double_stats();
    run_ok(h, &j, &o);
    outcome_free(&o);
    struct double_stats after = double_stats();
    const uint64_t n_tiles = after.n_launches - before.n_launches;
    cr_assert(lt(u64, 256 * 1024, 12 * MIB / n_tiles), "tiles of one grain show nothing");
    cr_assert(eq(u64, after.n_to_device - before.n_to_device, 2 * n_tiles)); /* and the records */
    cr_assert(eq(u64, after.n_from_device - before.n_from_device, n_tiles));
    for (unsigned i = 0; i < 3000 * 2048; i++) {
        bool is_left = i % 2048 < 1024;
        cr_assert(m->floats[i] == (float)((is_left ? i : i - 1024) % 1000) + (is_left ? 0 : 1),
                  "element %u", i);
    }
}

/* The second job that uses a region has it registered; from then on the device copies from and to
 * it by itself. */
Test(cuda_engine, copies_registered_regions_without_staging_them)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    setenv("HARNESS_REGISTER_BYTES", "268435456", 1);
    harness_start(&h, 8 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 48 * MIB);
    fill(&m);
    uint64_t id = 0;
    for (; id < 1000 && double_stats().registered_bytes < 48 * MIB; id++) {
        add_one(&j, id + 1);
        run_ok(&h, &j, &o);
        outcome_free(&o);
    }
    cr_assert(eq(u64, double_stats().registered_bytes, 48 * MIB));
    fill(&m);
    struct double_stats before = double_stats();
    add_one(&j, id + 1);
    run_ok(&h, &j, &o);
    outcome_free(&o);
    struct double_stats after = double_stats();
    check_added(&m);
    cr_assert(
        lt(u64, after.n_launches - before.n_launches, after.n_to_device - before.n_to_device));
    /* The records, and the input; there is one output. */
    cr_assert(
        eq(u64, after.n_launches - before.n_launches, after.n_from_device - before.n_from_device));
    check_copies_of_three(&h, &m, id + 2);
    check_copies_of_columns(&h, &m, id + 3);
    harness_detach(&h, 1);
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 0));
    cr_assert(eq(u64, double_stats().registered_bytes, 0));
    drop(&m);
    harness_stop(&h);
}

Test(cuda_engine, computes_small_jobs_without_a_slot_of_the_pool)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {100};
    double a[100], got[100];
    for (int i = 0; i < 100; i++)
        a[i] = i;
    harness_start(&h, 2 * MIB, N_THREADS);
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 1, shape), a, sizeof(a));
    job_output(&j, "a * 2 + mean(a)", "");
    struct double_stats before = double_stats();
    run_ok(&h, &j, &o);
    memcpy(got, outcome_data(&o, 0, NULL), sizeof(got));
    for (int i = 0; i < 100; i++)
        cr_assert(got[i] == i * 2 + 49.5, "element %d", i);
    struct double_stats after = double_stats();
    cr_assert(eq(u64, after.n_launches - before.n_launches, 2)); /* a mean comes before */
    cr_assert(eq(u64, after.n_records - before.n_records, 2));
    cr_assert(eq(u64, after.n_waits - before.n_waits, 0));
    cr_assert(lt(dbl, 0, seconds(&o, "kernel")));
    cr_assert(le(dbl, seconds(&o, "to_device") + seconds(&o, "from_device"), 0));
    outcome_free(&o);
    harness_stop(&h);
}

static void square(struct test_job *j, uint64_t id, size_t n_bytes)
{
    const int64_t shape[] = {60, 60};
    job_init(j, id);
    at_region(job_arg(j, "a", DTYPE_FLOAT32, 2, shape), 1, 0);
    at_region(job_output_to(j, "a @ a", "out", DTYPE_FLOAT32, 2, shape), 1, n_bytes);
    j->needs_carry = true;
}

/* What the broker lends of the device's memory is where panels and C are. */
Test(cuda_engine, multiplies_where_its_carry_is_and_nowhere_else)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const size_t n_bytes = 60 * 60 * sizeof(float);
    harness_start(&h, 8 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 2 * n_bytes);
    const struct plan_limits *limits = &h.worker->engine->limits;
    uint64_t there = limits->device_carry_bytes, quarter = there / 4;
    cr_assert(lt(u64, 2 * MIB, there));
    for (int i = 0; i < 60 * 60; i++)
        m.floats[i] = i % 61 == 0;
    const struct {
        uint64_t offset, size;
        const char *argument; /* NULL: it is right */
    } rows[] = {{0, quarter, NULL},
                {there - quarter, quarter, NULL},
                {quarter, quarter, NULL},
                {there - quarter + 4096, quarter, "device_carry_offset"},
                {UINT64_MAX - 4095, 4096, "device_carry_offset"},
                {0, there + 4096, "device_carry_offset"},
                {0, 4096, "device_carry_size"}};
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset((char *)m.floats + n_bytes, 0xff, n_bytes);
        square(&j, i + 1, n_bytes);
        j.device_carry_offset = rows[i].offset;
        j.device_carry_bytes = rows[i].size;
        harness_run(&h, &j, &o);
        cr_assert(eq(int, o.status, rows[i].argument ? GAD_BAD_REQUEST : 0), "row %u: %s", i,
                  o.error.message);
        if (rows[i].argument)
            cr_assert(eq(str, o.error.argument, (char *)rows[i].argument), "row %u", i);
        else
            cr_assert(eq(int, memcmp(m.floats, (char *)m.floats + n_bytes, n_bytes), 0));
        outcome_free(&o);
    }
    drop(&m);
    harness_stop(&h);
}

/* Both operands go there, C comes back; what is multiplied lies on the device. */
Test(cuda_engine, multiplies_matrices_without_copies_of_their_own)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {60, 60};
    const size_t n_bytes = 60 * 60 * sizeof(float);
    harness_start(&h, 8 * MIB, N_THREADS);
    struct memory m = make_region(&h, 1, 4 * n_bytes);
    (void)harness_stat(&h, "slots");
    for (uint64_t id = 1; id <= 3; id++) {
        for (int i = 0; i < 60 * 60; i++) {
            m.floats[i] = (float)(i % 7);
            m.floats[60 * 60 + i] = i % 60 == i / 60 ? (float)id : 0;
        }
        job_init(&j, id);
        at_region(job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), 1, 0);
        at_region(job_arg(&j, "b", DTYPE_FLOAT32, 2, shape), 1, n_bytes);
        at_region(job_output_to(&j, "a @ b", "out", DTYPE_FLOAT32, 2, shape), 1, 2 * n_bytes);
        j.needs_carry = true;
        struct double_stats before = double_stats();
        run_ok(&h, &j, &o);
        struct double_stats after = double_stats();
        cr_assert(lt(dbl, 0, seconds(&o, "kernel")));
        outcome_free(&o);
        for (int i = 0; i < 60 * 60; i++)
            cr_assert(m.floats[2 * 60 * 60 + i] == (float)id * (float)(i % 7), "element %d", i);
        cr_assert(eq(u64, after.n_launches - before.n_launches, 4)); /* LOADs, MULTIPLY, STORE */
        cr_assert(eq(u64, after.n_to_device - before.n_to_device, 3));
        cr_assert(eq(u64, after.n_from_device - before.n_from_device, 1));
        cr_assert(eq(u64, after.n_mallocs, before.n_mallocs));
        cr_assert(eq(u64, after.n_events, before.n_events));
    }
    cr_assert(eq(u64, harness_stat(&h, "slots_lent"), 0));
    drop(&m);
    harness_stop(&h);
}
