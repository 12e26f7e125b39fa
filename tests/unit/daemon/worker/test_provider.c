#include "tests/unit/daemon/worker/ring_client.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

static void heap_to_heap(unsigned n_slots, unsigned n_threads)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in, out;
    const int64_t shape[] = {30, 333, 500};
    const unsigned n = 30 * 333 * 500;
    float *a = floats(n), *r = calloc(n, sizeof(float));
    harness_start(&h, 2 * MIB, n_threads);
    client_start(&in, a, 4, 3, shape, n_slots, false);
    client_start(&out, r, 4, 3, shape, n_slots, true);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    job_init(&j, 1);
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 3, shape), &in);
    at_provider(&j, job_output_to(&j, "a * 2 + 1", "r", DTYPE_FLOAT32, 3, shape), &out);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s: %s", o.error.argument, o.error.message);
    outcome_free(&o);
    check_unused(&h, descriptors);
    client_stop(&in);
    client_stop(&out);
    for (unsigned i = 0; i < n; i++)
        cr_assert(r[i] == a[i] * 2 + 1, "element %u", i);
    harness_stop(&h);
    free(a);
    free(r);
}

Test(provider, heap_arrays_go_through_rings_of_any_length)
{
    heap_to_heap(1, 2);
    heap_to_heap(2, 1);
    heap_to_heap(8, 2);
    heap_to_heap(64, 4);
}

/* The client gives a block once it has the one before back: a tile of several must not wait for
 * them. */
Test(provider, a_client_that_needs_a_block_back_before_it_gives_the_next_is_served)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in, out;
    const int64_t shape[] = {40 * 65536 + 5};
    float *a = floats(40 * 65536 + 5), *r = calloc(40 * 65536 + 5, sizeof(float));
    harness_start(&h, 4 * MIB, 2);
    client_start(&out, r, 4, 1, shape, 16, true);
    client_start(&in, a, 4, 1, shape, 16, false);
    in.after = &out;
    job_init(&j, 1);
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), &in);
    at_provider(&j, job_output_to(&j, "a + 1", "r", DTYPE_FLOAT32, 1, shape), &out);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    outcome_free(&o);
    client_stop(&in);
    client_stop(&out);
    for (int64_t i = 0; i < shape[0]; i++)
        cr_assert(r[i] == a[i] + 1, "element %lld", (long long)i);
    harness_stop(&h);
    free(a);
    free(r);
}

/* While some of its blocks lie computed, some computed and not drained, some asked for; far from
 * the end, which a slow machine may reach before the client falls silent. */
Test(provider, a_job_whose_client_falls_silent_in_a_tile_gives_all_back)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in, out;
    const int64_t shape[] = {16000000};
    float *a = floats(16000000), *r = calloc(16000000, sizeof(float));
    harness_start(&h, 4 * MIB, 2);
    for (unsigned n = 1; n < 30; n += 4) {
        client_start(&out, r, 4, 1, shape, 16, true);
        client_start(&in, a, 4, 1, shape, 16, false);
        uint64_t descriptors = harness_stat(&h, "descriptors");
        job_init(&j, 4);
        at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), &in);
        at_provider(&j, job_output_to(&j, "a + 1", "r", DTYPE_FLOAT32, 1, shape), &out);
        harness_send(&h, &j);
        while (out.n_answers < n)
            (void)poll(NULL, 0, 1);
        (n % 8 == 1 ? &in : &out)->is_silent = true;
        for (unsigned ms = 0; harness_stat(&h, "slots_lent") > 0; ms++) {
            cr_assert(lt(uint, ms, 10000), "its slots wait for its client");
            (void)poll(NULL, 0, 1);
        }
        harness_cancel(&h, 4);
        harness_receive(&h, &o, NULL);
        if (o.status != 0) /* it may have ended before */
            cr_assert(eq(int, o.status, GAD_CANCELLED));
        outcome_free(&o);
        check_unused(&h, descriptors);
        client_stop(&in);
        client_stop(&out);
    }
    harness_stop(&h);
    free(a);
    free(r);
}

/* Grains are the same wherever they lie: parts of a chunk in its slot, along either axis, or alone
 * in slots that no chunk fits. */
static void sum_of_chunks(const int64_t *chunk_shape, uint64_t slot_bytes, unsigned n_blocks,
                          unsigned n_threads, double *ret_sum)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in;
    const int64_t shape[] = {600, 1000};
    double *a = malloc(600 * 1000 * sizeof(*a));
    for (unsigned i = 0; i < 600 * 1000; i++)
        a[i] = 1.0 / (i + 1);
    harness_start(&h, 2 * MIB, n_threads);
    client_start_slots(&in, a, sizeof(*a), 2, shape, 3, slot_bytes, false);
    job_init(&j, 1);
    j.needs_carry = true;
    struct array *array = job_arg(&j, "a", DTYPE_FLOAT64, 2, shape);
    at_provider(&j, array, &in);
    array->at.provider.has_chunks = true;
    memcpy(array->at.provider.chunk_shape, chunk_shape, 2 * sizeof(*chunk_shape));
    job_output(&j, "sum(a)", "");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s: %s", o.error.argument, o.error.message);
    memcpy(ret_sum, outcome_data(&o, 0, NULL), sizeof(*ret_sum));
    outcome_free(&o);
    client_stop(&in);
    if (n_blocks > 0)
        cr_assert(eq(uint, in.n_answers, n_blocks));
    harness_stop(&h);
    free(a);
}

Test(provider, chunks_are_asked_for_as_a_whole_and_the_sum_has_the_same_bits)
{
    const int64_t rows[] = {128, 1000}, columns[] = {600, 200}, tiles[] = {250, 300};
    const struct {
        const int64_t *shape;
        unsigned n_blocks;
    } cases[] = {{rows, 5}, {columns, 5}, {tiles, 0}}; /* of the last a grain has parts of two */
    for (unsigned i = 0; i < ARRAY_LENGTH(cases); i++) {
        double whole, again, grains;
        sum_of_chunks(cases[i].shape, MIB, cases[i].n_blocks, 2, &whole);
        sum_of_chunks(cases[i].shape, MIB, cases[i].n_blocks, 1, &again);
        sum_of_chunks(cases[i].shape, SLOT_BYTES, 0, 2, &grains);
        cr_assert(memcmp(&whole, &again, sizeof(whole)) == 0);
        cr_assert(memcmp(&whole, &grains, sizeof(whole)) == 0);
        cr_assert(epsilon_eq(dbl, whole, 13.8819, 1e-3)); /* ln 600000 + 0.5772 */
    }
}

Test(provider, two_passes_read_the_array_twice_and_broadcast_it)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in, row;
    const int64_t shape[] = {400, 5000}, row_shape[] = {5000};
    float *a = floats(400 * 5000), *b = floats(5000);
    harness_start(&h, 2 * MIB, 2);
    client_start(&in, a, 4, 2, shape, 4, false);
    client_start(&row, b, 4, 1, row_shape, 2, false);
    job_init(&j, 1);
    j.needs_carry = true;
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), &in);
    at_provider(&j, job_arg(&j, "b", DTYPE_FLOAT32, 1, row_shape), &row);
    job_output(&j, "max(a - min(a + b) - b)", "");
    harness_run(&h, &j, &o);
    float low = a[0] + b[0], want = -1e30f, got;
    for (int i = 0; i < 400; i++)
        for (int k = 0; k < 5000; k++)
            low = a[i * 5000 + k] + b[k] < low ? a[i * 5000 + k] + b[k] : low;
    for (int i = 0; i < 400; i++)
        for (int k = 0; k < 5000; k++)
            want = a[i * 5000 + k] - low - b[k] > want ? a[i * 5000 + k] - low - b[k] : want;
    memcpy(&got, outcome_data(&o, 0, NULL), sizeof(got));
    cr_assert(eq(flt, got, want));
    outcome_free(&o);
    client_stop(&in);
    client_stop(&row);
    harness_stop(&h);
    free(a);
    free(b);
}

Test(provider, a_file_and_a_ring_meet_in_one_pass)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in, out;
    const int64_t shape[] = {1000, 3000};
    const unsigned n = 3000000;
    float *a = floats(n), *r = calloc(n, sizeof(float));
    int fd = make_file(a, n * sizeof(float));
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    harness_start(&h, 2 * MIB, 2);
    client_start(&in, a, 4, 2, shape, 3, false);
    client_start(&out, r, 4, 2, shape, 2, true);
    job_init(&j, 1);
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), &in);
    at_file(&j, job_arg(&j, "f", DTYPE_FLOAT32, 2, shape), fd, 0);
    at_provider(&j, job_output_to(&j, "a + f", "r", DTYPE_FLOAT32, 2, shape), &out);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    outcome_free(&o);
    client_stop(&in);
    client_stop(&out);
    for (unsigned i = 0; i < n; i++)
        cr_assert(r[i] == 2 * a[i], "element %u", i);
    harness_stop(&h);
    free(a);
    free(r);
    close(fd);
}

Test(provider, a_client_that_fails_fails_its_job)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in, out;
    const int64_t shape[] = {1000, 1000};
    float *a = floats(1000000), *r = calloc(1000000, sizeof(float));
    harness_start(&h, 2 * MIB, 2);
    for (int is_sink = 0; is_sink < 2; is_sink++) {
        client_start(&in, a, 4, 2, shape, 3, false);
        client_start(&out, r, 4, 2, shape, 2, true);
        uint64_t descriptors = harness_stat(&h, "descriptors");
        atomic_store(is_sink ? &out.fail_at : &in.fail_at, 7);
        job_init(&j, 1);
        at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), &in);
        at_provider(&j, job_output_to(&j, "a", "r", DTYPE_FLOAT32, 2, shape), &out);
        harness_run(&h, &j, &o);
        cr_assert(eq(int, o.status, GAD_PROVIDER_FAILED), "%s", o.error.message);
        cr_assert(eq(str, o.error.argument, text(is_sink ? "r" : "a")));
        outcome_free(&o);
        check_unused(&h, descriptors);
        client_stop(&in);
        client_stop(&out);
    }
    harness_stop(&h);
    free(a);
    free(r);
}

Test(provider, a_client_that_never_answers_holds_no_slot_and_can_be_cancelled)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in;
    const int64_t shape[] = {1000, 1000};
    float *a = floats(1000000);
    int fd = make_file(a, 4000000);
    harness_start(&h, 2 * MIB, 2);
    client_start(&in, a, 4, 2, shape, 3, false);
    in.is_silent = true;
    uint64_t descriptors = harness_stat(&h, "descriptors");
    job_init(&j, 4);
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), &in);
    at_file(&j, job_arg(&j, "f", DTYPE_FLOAT32, 2, shape), fd, 0);
    job_output(&j, "sum(a + f)", "");
    j.needs_carry = true;
    harness_send(&h, &j);
    usleep(50000);
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 1));
    cr_assert(eq(u64, harness_stat(&h, "slots_lent"), 0));
    cr_assert(eq(u64, harness_stat(&h, "threads_busy"), 0));
    harness_cancel(&h, 4);
    harness_receive(&h, &o, NULL);
    cr_assert(eq(int, o.status, GAD_CANCELLED));
    outcome_free(&o);
    check_unused(&h, descriptors);
    client_stop(&in);
    harness_stop(&h);
    free(a);
    close(fd);
}

/* A worker asked for a block to be stored and died before it told: the client sleeps. */
Test(provider, what_an_earlier_worker_asked_is_told_by_the_next)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client out;
    const int64_t shape[] = {1000};
    float *a = floats(1000), *r = calloc(1000, sizeof(float));
    harness_start(&h, 2 * MIB, 2);
    client_start(&out, r, 4, 1, shape, 2, true);
    struct ring_entry *entry = ring_entry_at(out.memory, 0);
    entry->ndim = 1;
    entry->count[0] = 1000;
    atomic_store(&entry->done, 4);
    atomic_store(&entry->request, 5);
    usleep(50000); /* all threads are idle */
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), a, 4000);
    at_provider(&j, job_output_to(&j, "a * 2", "r", DTYPE_FLOAT32, 1, shape), &out);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    outcome_free(&o);
    client_stop(&out);
    for (unsigned i = 0; i < 1000; i++)
        cr_assert(r[i] == 2 * a[i], "element %u", i);
    harness_stop(&h);
    free(a);
    free(r);
}

/* Everything in the ring changes all the time: wrong answers are the client's own business. */
static void *scribble(void *argument)
{
    struct client *c = argument;
    size_t n_bytes = 4096 + c->n_slots * RING_ENTRY_BYTES;
    for (unsigned i = 0; !c->is_over; i++) {
        memset(c->memory, (int)(i % 256), n_bytes);
        for (uint32_t k = 0; k < c->n_slots; k++)
            atomic_store(&ring_entry_at(c->memory, k)->done, i / 256 % 64);
        const uint64_t one = 1;
        if (i % 64 == 0)
            cr_assert(eq(i64, write(c->fds[2], &one, sizeof(one)), 8));
    }
    return NULL;
}

Test(provider, a_client_that_scribbles_harms_only_itself)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in;
    const int64_t shape[] = {1000, 1000};
    float *a = floats(1000000);
    double b[100] = {1};
    const int64_t small_shape[] = {100};
    harness_start(&h, 2 * MIB, 2);
    client_start(&in, a, 4, 2, shape, 3, false);
    in.is_over = true;
    pthread_join(in.thread, NULL);
    in.is_over = false;
    uint64_t descriptors = harness_stat(&h, "descriptors");
    cr_assert(eq(int, pthread_create(&in.thread, NULL, scribble, &in), 0));
    job_init(&j, 4);
    j.needs_carry = true;
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), &in);
    job_output(&j, "sum(a)", "");
    uint32_t scribbled = harness_send(&h, &j);
    bool has_ended = false;
    for (int i = 0; i < 200; i++) {
        job_init(&j, 5);
        at_inline(job_arg(&j, "b", DTYPE_FLOAT64, 1, small_shape), b, sizeof(b));
        job_output(&j, "b + 1", "");
        uint32_t id = harness_send(&h, &j);
        harness_receive(&h, &o, NULL);
        if (o.id == scribbled) {
            has_ended = true;
            outcome_free(&o);
            harness_receive(&h, &o, NULL);
        }
        cr_assert(eq(u32, o.id, id));
        cr_assert(eq(int, o.status, 0));
        outcome_free(&o);
    }
    if (!has_ended) {
        harness_cancel(&h, 4);
        harness_receive(&h, &o, NULL);
        cr_assert(eq(u32, o.id, scribbled));
        outcome_free(&o);
    }
    check_unused(&h, descriptors);
    client_stop(&in);
    harness_stop(&h);
    free(a);
}

Test(provider, an_eventfd_that_is_full_fails_the_job_and_blocks_nobody)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in;
    const int64_t shape[] = {1000, 1000};
    const uint64_t most = UINT64_MAX - 1;
    float *a = floats(1000000);
    harness_start(&h, 2 * MIB, 1);
    client_start(&in, a, 4, 2, shape, 3, false);
    in.is_silent = true;
    cr_assert(eq(i64, write(in.fds[1], &most, sizeof(most)), 8));
    job_init(&j, 4);
    j.needs_carry = true;
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), &in);
    job_output(&j, "sum(a)", "");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, GAD_PROVIDER_FAILED), "%s", o.error.message);
    outcome_free(&o);
    client_stop(&in);
    harness_stop(&h);
    free(a);
}

/* The pool's only slot lies under the carry of a job whose client is silent; when that is
 * cancelled, the main thread gives the memory back, and somebody has to be woken. */
#if !HARNESS_IS_CUDA /* where a job with a carry has two slots at least */
Test(provider, a_job_that_ends_gives_its_place_in_the_pool_to_one_that_waits)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in;
    const int64_t shape[] = {1000, 1000};
    float *a = floats(1000000);
    int fd = make_file(a, 4000000), out = make_file("", 0);
    harness_start(&h, GRAIN_MAX_TOTAL_BYTES, 2);
    client_start(&in, a, 4, 2, shape, 3, false);
    in.is_silent = true;
    uint64_t descriptors = harness_stat(&h, "descriptors");
    job_init(&j, 4);
    at_provider(&j, job_arg(&j, "a", DTYPE_FLOAT32, 2, shape), &in);
    job_output(&j, "sum(a)", "");
    j.needs_carry = true;
    harness_send(&h, &j);
    job_init(&j, 5);
    at_file(&j, job_arg(&j, "f", DTYPE_FLOAT32, 2, shape), fd, 0);
    at_file(&j, job_output_to(&j, "f + 1", "r", DTYPE_FLOAT32, 2, shape), out, 0);
    uint32_t waiting = harness_send(&h, &j);
    usleep(100000);
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 2));
    cr_assert(eq(u64, harness_stat(&h, "slots_lent"), 0));
    harness_cancel(&h, 4);
    for (int i = 0; i < 2; i++) { /* in any order */
        harness_receive(&h, &o, NULL);
        cr_assert(eq(int, o.status, o.id == waiting ? 0 : GAD_CANCELLED), "%s", o.error.message);
        outcome_free(&o);
    }
    check_unused(&h, descriptors);
    client_stop(&in);
    harness_stop(&h);
    free(a);
    close(fd);
    close(out);
}
#endif
