/* Rings, served by the pump; the test is the worker at the other end. */
#include "client/lib/memory/block.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "client/lib/memory/pump.h"
#include "proto/wire/ring.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

struct end { /* of the worker: its own mapping of the same memfd */
    struct feed *feed;
    void *ring;
};

static struct end end_of(struct feed *feed)
{
    void *ring =
        mmap(NULL, feed->ring.n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, feed->ring.fd, 0);
    cr_assert(ne(ptr, ring, MAP_FAILED));
    return (struct end){feed, ring};
}

static char *slot_of(const struct end *end, uint32_t slot)
{
    return (char *)end->ring +
           ring_slot_offset_bytes(end->feed->ring.n_slots, end->feed->ring.slot_bytes, slot);
}

static void ask(const struct end *end, uint32_t slot, uint64_t request, const int64_t *start,
                const int64_t *count)
{
    struct ring_entry *entry = ring_entry_at(end->ring, slot);
    entry->ndim = (uint32_t)end->feed->ndim;
    for (int i = 0; i < end->feed->ndim; i++) {
        entry->start[i] = start[i];
        entry->count[i] = count[i];
    }
    atomic_store_explicit(&entry->request, request, memory_order_release);
    cr_assert(zero(int, eventfd_write(end->feed->ring.request_fd, 1)));
}

/* Returns the status of the answer. */
static uint32_t wait_done(const struct end *end, uint32_t slot, uint64_t request)
{
    struct ring_entry *entry = ring_entry_at(end->ring, slot);
    while (atomic_load_explicit(&entry->done, memory_order_acquire) != request) {
        struct pollfd polled = {.fd = end->feed->ring.done_fd, .events = POLLIN};
        eventfd_t ignored;
        cr_assert(lt(int, 0, poll(&polled, 1, 5000)), "the pump does not answer");
        eventfd_read(end->feed->ring.done_fd, &ignored);
    }
    return entry->status;
}

static struct gad_array *array_in(void *data, int ndim, const int64_t *shape,
                                  const int64_t *strides)
{
    struct gad_array *array;
    struct gad_error error = {0};
    struct gad_layout layout = {
        .dtype = GAD_FLOAT64, .ndim = ndim, .shape = shape, .strides = strides};
    enum gad_status status = gad_array_from_memory(NULL, &layout, data, true, &array, &error);
    cr_assert(zero(int, (int)status), "%s", error.message);
    return array;
}

struct bench {
    struct pump *pump;
    struct gad_array *array;
    struct feed *feed;
    struct end end;
};

static void bench_init(struct bench *b, struct gad_array *array, bool is_sink)
{
    b->array = array;
    cr_assert(zero(int, pump_new(&b->pump, NULL)));
    cr_assert(zero(int, feed_new(array, is_sink, &b->feed, NULL)));
    cr_assert(zero(int, pump_add(b->pump, b->feed, NULL)));
    b->end = end_of(b->feed);
}

static void bench_deinit(struct bench *b)
{
    munmap(b->end.ring, b->feed->ring.n_bytes);
    (void)!pump_remove(b->pump, b->feed);
    feed_free(b->feed);
    pump_free(b->pump);
    gad_array_release(b->array);
}

Test(pump, makes_a_ring_that_the_daemon_takes, .timeout = 20)
{
    double data[4] = {0};
    int64_t shape[] = {4};
    struct bench b;
    bench_init(&b, array_in(data, 1, shape, NULL), false);
    int seals = fcntl(b.feed->ring.fd, F_GET_SEALS);
    cr_assert(eq(int, seals &(F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW));
    cr_assert(eq(u32, b.feed->ring.n_slots, 1), "small arrays have small rings");
    cr_assert(eq(u64, b.feed->ring.n_bytes, ring_size_bytes(1, RING_MIN_SLOT_BYTES)));
    cr_assert(eq(u64, ((struct ring_head *)b.end.ring)->magic, RING_MAGIC));
    bench_deinit(&b);
}

Test(pump, fills_blocks_of_a_strided_array, .timeout = 20)
{
    enum { ROWS = 300, COLUMNS = 400 };
    double *data = malloc(sizeof(double) * ROWS * COLUMNS * 2);
    for (int i = 0; i < ROWS * COLUMNS * 2; i++)
        data[i] = i;
    int64_t shape[] = {ROWS, COLUMNS}, strides[] = {-COLUMNS * 16, 16};
    struct bench b;
    bench_init(&b, array_in(data + (ROWS - 1) * COLUMNS * 2, 2, shape, strides), false);
    cr_assert(eq(u32, b.feed->ring.n_slots, 4));
    int64_t start[] = {7, 30}, count[] = {100, 200};
    for (uint64_t request = 1; request <= 3; request++) {
        ask(&b.end, 2, request, start, count);
        cr_assert(zero(u32, wait_done(&b.end, 2, request)));
        const double *block = (const double *)(void *)slot_of(&b.end, 2);
        for (int64_t i = 0; i < count[0]; i++)
            for (int64_t j = 0; j < count[1]; j++)
                cr_assert(
                    eq(dbl, block[i * count[1] + j],
                       (double)((ROWS - 1 - start[0] - i) * COLUMNS * 2 + (start[1] + j) * 2)));
        start[0] += 50;
    }
    bench_deinit(&b);
    free(data);
}

Test(pump, drains_all_slots_into_place, .timeout = 20)
{
    enum { N = 8 * 1024 };
    double *data = calloc(2 * N, sizeof(double));
    int64_t shape[] = {2 * N}, count[] = {N / 4};
    struct bench b;
    bench_init(&b, array_in(data, 1, shape, NULL), true);
    uint32_t n_slots = b.feed->ring.n_slots;
    uint64_t request = 1;
    for (int64_t start = 0; start < 2 * N; request++)
        for (uint32_t s = 0; s < n_slots && start < 2 * N; s++, start += N / 4) {
            if (request > 1)
                wait_done(&b.end, s, request - 1);
            double *block = (double *)(void *)slot_of(&b.end, s);
            for (int64_t i = 0; i < N / 4; i++)
                block[i] = (double)(start + i);
            ask(&b.end, s, request, &start, count);
        }
    for (uint32_t s = 0; s < n_slots; s++) {
        struct ring_entry *entry = ring_entry_at(b.end.ring, s);
        cr_assert(zero(u32, wait_done(&b.end, s, entry->request)));
    }
    for (int i = 0; i < 2 * N; i++)
        cr_assert(eq(dbl, data[i], (double)i));
    bench_deinit(&b);
    free(data);
}

Test(pump, refuses_boxes_outside_of_the_array, .timeout = 20)
{
    double data[100] = {0};
    int64_t shape[] = {10, 10};
    static const int64_t boxes[][4] = {
        {0, 0, 11, 1},         {10, 0, 1, 1},        {-1, 0, 1, 1},        {0, 5, 1, 6},
        {0, 0, -1, 1},         {INT64_MAX, 0, 1, 1}, {1, 1, INT64_MAX, 1}, {0, 0, INT64_MIN, 1},
        {INT64_MIN, 0, 10, 1}, {0, 0, 1, INT64_MAX}, {5, 5, 6, 5},
    };
    struct bench b;
    bench_init(&b, array_in(data, 2, shape, NULL), true);
    uint64_t request = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(boxes); i++) {
        ask(&b.end, 0, ++request, boxes[i], boxes[i] + 2);
        cr_assert(eq(u32, wait_done(&b.end, 0, request), EINVAL), "box %zu", i);
    }
    int64_t start[] = {0, 0}, count[] = {10, 10};
    ask(&b.end, 0, ++request, start, count);
    cr_assert(zero(u32, wait_done(&b.end, 0, request)), "and serves on");
    bench_deinit(&b);
}

Test(pump, refuses_blocks_larger_than_a_slot, .timeout = 20)
{
    int64_t shape[] = {1 << 20}, start[] = {0}, count[] = {(RING_MIN_SLOT_BYTES / 8) + 1};
    double *data = calloc(1 << 20, sizeof(double));
    struct bench b;
    bench_init(&b, array_in(data, 1, shape, NULL), false);
    ask(&b.end, 0, 1, start, count);
    cr_assert(eq(u32, wait_done(&b.end, 0, 1), EINVAL));
    count[0]--;
    ask(&b.end, 0, 2, start, count);
    cr_assert(zero(u32, wait_done(&b.end, 0, 2)));
    bench_deinit(&b);
    free(data);
}

Test(pump, serves_a_worker_that_continues_the_sequence, .timeout = 20)
{
    double data[2] = {1, 2};
    int64_t shape[] = {2}, start[] = {0}, count[] = {2};
    struct bench b;
    bench_init(&b, array_in(data, 1, shape, NULL), false);
    ask(&b.end, 0, 41, start, count);
    wait_done(&b.end, 0, 41);
    ask(&b.end, 0, 1, start, count);
    cr_assert(zero(u32, wait_done(&b.end, 0, 1)), "or begins anew");
    bench_deinit(&b);
}

static int fail_fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    (void)start;
    (void)count;
    (void)ret_block;
    return ++*(atomic_int *)state == 1 ? EIO : 0;
}

Test(pump, passes_a_providers_errno_on, .timeout = 20)
{
    static const struct provider provider = {.fill = fail_fill};
    atomic_int n_calls = 0;
    int64_t start[] = {0}, count[] = {1};
    struct gad_array *array = array_new(NULL, "npy", ACCESS_PROVIDER, NULL);
    array->info.dtype = GAD_FLOAT64;
    array->info.ndim = 1;
    array->info.shape[0] = 5;
    array->provider = &provider;
    array->provider_state = &n_calls;
    struct bench b;
    bench_init(&b, array, false);
    ask(&b.end, 0, 1, start, count);
    cr_assert(eq(u32, wait_done(&b.end, 0, 1), EIO));
    ask(&b.end, 0, 2, start, count);
    cr_assert(zero(u32, wait_done(&b.end, 0, 2)));
    cr_assert(eq(int, (int)n_calls, 2));
    bench_deinit(&b);
}

static int check_mask(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    sigset_t mask;
    (void)start;
    (void)count;
    (void)ret_block;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    *(atomic_int *)state =
        sigismember(&mask, SIGINT) && sigismember(&mask, SIGALRM) && sigismember(&mask, SIGCHLD);
    return 0;
}

Test(pump, blocks_all_signals_in_its_thread, .timeout = 20)
{
    static const struct provider provider = {.fill = check_mask};
    atomic_int are_blocked = 0;
    int64_t start[] = {0}, count[] = {1};
    struct gad_array *array = array_new(NULL, "npy", ACCESS_PROVIDER, NULL);
    array->info.ndim = 1;
    array->info.shape[0] = 1;
    array->provider = &provider;
    array->provider_state = &are_blocked;
    struct bench b;
    bench_init(&b, array, false);
    ask(&b.end, 0, 1, start, count);
    wait_done(&b.end, 0, 1);
    cr_assert(ne(int, (int)are_blocked, 0));
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    cr_assert(not(sigismember(&mask, SIGUSR2)), "and leaves the caller's alone");
    bench_deinit(&b);
}

static int fill_slowly(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    (void)start;
    (void)count;
    (void)ret_block;
    atomic_store((atomic_int *)state, 1);
    clock_sleep_ms(100);
    atomic_store((atomic_int *)state, 2);
    return 0;
}

Test(pump, lets_go_of_a_feed_only_after_its_block, .timeout = 20)
{
    static const struct provider provider = {.fill = fill_slowly};
    atomic_int progress = 0;
    int64_t start[] = {0}, count[] = {1};
    struct gad_array *array = array_new(NULL, "npy", ACCESS_PROVIDER, NULL);
    array->info.ndim = 1;
    array->info.shape[0] = 1;
    array->provider = &provider;
    array->provider_state = &progress;
    struct bench b;
    bench_init(&b, array, false);
    ask(&b.end, 0, 1, start, count);
    while (atomic_load(&progress) == 0)
        clock_sleep_ms(1);
    (void)!pump_remove(b.pump, b.feed);
    cr_assert(eq(int, atomic_load(&progress), 2));
    bench_deinit(&b);
}

Test(pump, serves_many_feeds_that_come_and_go, .timeout = 60)
{
    double data[16];
    int64_t shape[] = {16}, start[] = {0}, count[] = {16};
    struct pump *pump;
    struct feed *feeds[24];
    for (int i = 0; i < 16; i++)
        data[i] = i;
    struct gad_array *array = array_in(data, 1, shape, NULL);
    cr_assert(zero(int, pump_new(&pump, NULL)));
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < ARRAY_LENGTH(feeds); i++) {
            cr_assert(zero(int, feed_new(array, false, &feeds[i], NULL)));
            cr_assert(zero(int, pump_add(pump, feeds[i], NULL)));
        }
        for (size_t i = 0; i < ARRAY_LENGTH(feeds); i++) {
            struct end end = end_of(feeds[i]);
            ask(&end, 0, 1, start, count);
            if (i % 3 != 0) {
                cr_assert(zero(u32, wait_done(&end, 0, 1)));
                cr_assert(zero(int, memcmp(slot_of(&end, 0), data, sizeof(data))));
            }
            munmap(end.ring, feeds[i]->ring.n_bytes);
        }
        for (size_t i = 0; i < ARRAY_LENGTH(feeds); i++) {
            (void)!pump_remove(pump, feeds[i]);
            feed_free(feeds[i]);
        }
    }
    pump_free(pump);
    gad_array_release(array);
}

Test(pump, takes_its_wish_back_before_it_waits, .timeout = 20)
{
    double data[2] = {1, 2};
    int64_t shape[] = {2}, start[] = {0}, count[] = {2};
    struct bench b;
    bench_init(&b, array_in(data, 1, shape, NULL), false);
    struct ring_head *head = b.end.ring;
    for (uint64_t request = 1; request <= 200; request++) {
        struct ring_entry *entry = ring_entry_at(b.end.ring, 0);
        entry->ndim = 1;
        entry->start[0] = start[0];
        entry->count[0] = count[0];
        ring_set_wish(&head->worker_wish, RING_TELL_ONCE);
        atomic_store_explicit(&entry->request, request, memory_order_release);
        if (ring_take_wish(&head->client_wish)) /* else somebody looks, and must find it */
            eventfd_write(b.feed->ring.request_fd, 1);
        cr_assert(zero(u32, wait_done(&b.end, 0, request)));
    }
    bench_deinit(&b);
}

struct slow {
    atomic_int is_in;
    atomic_int may_leave;
};

static int fill_when_told(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct slow *slow = state;
    (void)start;
    (void)count;
    (void)ret_block;
    atomic_store(&slow->is_in, 1);
    while (!atomic_load(&slow->may_leave))
        clock_sleep_ms(1);
    return 0;
}

Test(pump, serves_memory_again_after_a_slow_provider, .timeout = 20)
{
    static const struct provider provider = {.fill = fill_when_told};
    struct slow slow = {0};
    double data[2] = {1, 2};
    int64_t shape[] = {2}, start[] = {0}, count[] = {1};
    struct gad_array *slow_array = array_new(NULL, "npy", ACCESS_PROVIDER, NULL);
    slow_array->info.ndim = 1;
    slow_array->info.shape[0] = 1;
    slow_array->provider = &provider;
    slow_array->provider_state = &slow;
    struct bench b;
    struct feed *memory;
    bench_init(&b, slow_array, false);
    struct gad_array *array = array_in(data, 1, shape, NULL);
    cr_assert(zero(int, feed_new(array, false, &memory, NULL)));
    cr_assert(zero(int, pump_add(b.pump, memory, NULL)));
    struct end end = end_of(memory);
    ask(&b.end, 0, 1, start, count);
    while (!atomic_load(&slow.is_in))
        clock_sleep_ms(1);
    ask(&end, 0, 1, start, count);
    atomic_store(&slow.may_leave, 1);
    cr_assert(zero(u32, wait_done(&b.end, 0, 1)));
    cr_assert(zero(u32, wait_done(&end, 0, 1)));
    munmap(end.ring, memory->ring.n_bytes);
    (void)!pump_remove(b.pump, memory);
    feed_free(memory);
    gad_array_release(array);
    bench_deinit(&b);
}

static struct gad_array *array_of(const struct provider *provider, void *state)
{
    struct gad_array *array = array_new(NULL, "npy", ACCESS_PROVIDER, NULL);
    array->info.dtype = GAD_FLOAT64;
    array->info.ndim = 1;
    array->info.shape[0] = 1 << 20; /* a ring of many slots */
    array->provider = provider;
    array->provider_state = state;
    return array;
}

struct noted {
    atomic_llong starts[8];
    atomic_uint n, n_allowed; /* blocks that were begun; so many may be answered */
};

static int fill_noted(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct noted *noted = state;
    (void)count;
    (void)ret_block;
    unsigned i = noted->n++;
    noted->starts[i] = start[0];
    while (noted->n_allowed <= i)
        clock_sleep_ms(1);
    return 0;
}

Test(pump, serves_slots_in_the_order_in_which_they_are_used, .timeout = 20)
{
    static const struct provider provider = {.fill = fill_noted};
    static const int64_t starts[] = {0, 1, 2, 3, 4, 5}, count[] = {1};
    struct noted noted = {.n = 0};
    struct bench b;
    bench_init(&b, array_of(&provider, &noted), false);
    for (uint32_t i = 0; i < 4; i++)
        ask(&b.end, i, 1, &starts[i], count);
    for (uint32_t i = 0; i < 2; i++) { /* they are used again while the others wait */
        noted.n_allowed = i + 1;
        cr_assert(zero(u32, wait_done(&b.end, i, 1)));
        ask(&b.end, i, 2, &starts[4 + i], count);
    }
    noted.n_allowed = 6;
    for (uint32_t i = 0; i < 4; i++)
        cr_assert(zero(u32, wait_done(&b.end, i, i < 2 ? 2 : 1)));
    for (unsigned i = 0; i < 6; i++)
        cr_assert(eq(i64, (int64_t)noted.starts[i], starts[i]), "block %u", i);
    bench_deinit(&b);
}

struct meeting {
    atomic_uint n_in;
    atomic_bool have_met;
};

static int fill_when_two_are_there(void *state, const int64_t *start, const int64_t *count,
                                   void *ret_block)
{
    struct meeting *meeting = state;
    (void)start;
    (void)count;
    (void)ret_block;
    if (++meeting->n_in == 2)
        meeting->have_met = true;
    while (!meeting->have_met)
        clock_sleep_ms(1);
    meeting->n_in--;
    return 0;
}

/* The worker, which waits, asks for some blocks by one signal. */
Test(pump, wakes_a_second_thread_for_a_provider_each_time, .timeout = 20)
{
    static const struct provider provider = {.is_concurrent = true,
                                             .fill = fill_when_two_are_there};
    const int64_t start[] = {0}, count[] = {1};
    cpu_set_t processors;
    struct meeting meeting;
    struct bench b;
    if (sched_getaffinity(0, sizeof(processors), &processors) || CPU_COUNT(&processors) < 2)
        cr_skip("a client's threads are no more than its processors");
    bench_init(&b, array_of(&provider, &meeting), false);
    struct ring_head *head = b.end.ring;
    for (uint64_t request = 1; request <= 20; request++) {
        meeting.n_in = 0;
        meeting.have_met = false;
        while (atomic_load(&head->client_wish) != RING_TELL_ONCE) /* all wait */
            clock_sleep_ms(1);
        ring_set_wish(&head->worker_wish, RING_TELL_ONCE);
        for (uint32_t slot = 0; slot < 6; slot++) {
            struct ring_entry *entry = ring_entry_at(b.end.ring, slot);
            entry->ndim = 1;
            entry->start[0] = start[0];
            entry->count[0] = count[0];
            atomic_store_explicit(&entry->request, request, memory_order_release);
        }
        eventfd_write(b.feed->ring.request_fd, 1);
        for (uint32_t slot = 0; slot < 6; slot++) {
            ring_set_wish(&head->worker_wish, RING_TELL_ALWAYS);
            cr_assert(zero(u32, wait_done(&b.end, slot, request)));
        }
    }
    bench_deinit(&b);
}

Test(rings, serve_the_next_job_when_the_daemon_has_let_go, .timeout = 20)
{
    struct gad_client client = {.conn = NULL};
    double data[4] = {1, 2, 3, 4};
    int64_t shape[] = {4}, start[] = {1}, count[] = {2};
    struct bench b;
    struct gad_array *array = array_in(data, 1, shape, NULL);
    array->client = &client;
    bench_init(&b, array, false);
    void *memory = b.feed->ring.memory;
    atomic_store(&ring_entry_at(b.end.ring, 0)->request, 7);
    munmap(b.end.ring, b.feed->ring.n_bytes);
    (void)!pump_remove(b.pump, b.feed);
    feed_free_done(b.feed);
    cr_assert(eq(u32, client.rings.n_kept, 1));
    cr_assert(zero(int, feed_new(array, false, &b.feed, NULL)));
    cr_assert(eq(ptr, b.feed->ring.memory, memory));
    cr_assert(zero(u32, client.rings.n_kept));
    cr_assert(not(feed_has_request(b.feed, 0)), "what was not answered is not asked any more");
    cr_assert(zero(int, pump_add(b.pump, b.feed, NULL)));
    b.end = end_of(b.feed);
    ask(&b.end, 0, 8, start, count);
    cr_assert(zero(u32, wait_done(&b.end, 0, 8)));
    cr_assert(eq(dbl, *(double *)(void *)slot_of(&b.end, 0), 2));
    bench_deinit(&b);
    rings_deinit(&client.rings);
}

Test(rings, are_closed_when_the_daemon_may_still_use_them, .timeout = 20)
{
    struct gad_client client = {.conn = NULL};
    double data[4] = {0};
    int64_t shape[] = {4};
    struct feed *feed;
    struct gad_array *array = array_in(data, 1, shape, NULL);
    array->client = &client;
    cr_assert(zero(int, feed_new(array, true, &feed, NULL)));
    int fd = feed->ring.fd;
    feed_free(feed);
    cr_assert(zero(u32, client.rings.n_kept));
    cr_assert(eq(int, fcntl(fd, F_GETFD), -1));
    gad_array_release(array);
}

Test(rings, are_kept_up_to_a_number_and_the_larger_ones_first, .timeout = 20)
{
    struct rings rings = {.n_kept = 0};
    struct client_ring made[RINGS_KEPT + 1], ring;
    for (uint32_t i = 0; i <= RINGS_KEPT; i++) /* 2, 3, 4 .. slots */
        cr_assert(zero(int, rings_take(&rings, i + 2, RING_MIN_SLOT_BYTES, 1, &made[i], NULL)));
    for (uint32_t i = 0; i <= RINGS_KEPT; i++)
        rings_keep(&rings, &made[i]);
    cr_assert(eq(u32, rings.n_kept, RINGS_KEPT));
    cr_assert(eq(int, fcntl(made[0].fd, F_GETFD), -1), "the smallest gave way");
    cr_assert(zero(int, rings_take(&rings, 1, RING_MIN_SLOT_BYTES, 1, &ring, NULL)));
    cr_assert(eq(u32, ring.n_slots, 3), "the smallest that is large enough");
    rings_keep(&rings, &ring);
    cr_assert(zero(int, rings_take(&rings, RINGS_KEPT + 3, RING_MIN_SLOT_BYTES, 1, &ring, NULL)));
    cr_assert(eq(u32, ring.n_slots, RINGS_KEPT + 3), "none fits: a new one");
    cr_assert(eq(u32, rings.n_kept, RINGS_KEPT));
    client_ring_close(&ring);
    rings_deinit(&rings);
    cr_assert(zero(u32, rings.n_kept));
}
