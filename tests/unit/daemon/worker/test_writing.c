#include "daemon/worker/io/writer.h"
#include "tests/unit/daemon/worker/harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define PIECES 20000

/* A file system that is simulated: what a piece costs, and how many went each way. */
struct simulated {
    struct write_choice choice;
    uint64_t cost_ns[WRITE_N_WAYS];
    unsigned n_pieces[WRITE_N_WAYS];
    uint64_t total_ns;
};

static void write_pieces(struct simulated *s, unsigned n)
{
    memset(s->n_pieces, 0, sizeof(s->n_pieces));
    s->total_ns = 0;
    for (unsigned i = 0; i < n; i++) {
        enum write_way way = writing_choose(&s->choice);
        s->n_pieces[way]++;
        s->total_ns += s->cost_ns[way];
        writing_learn(&s->choice, way, s->cost_ns[way]);
    }
}

Test(writing, takes_both_ways_in_turns_until_it_knows_them)
{
    struct simulated s = {.cost_ns = {50000, 100000}};
    write_pieces(&s, 32);
    cr_assert(eq(u32, s.n_pieces[WRITE_CACHED], 16));
    cr_assert(eq(u32, s.n_pieces[WRITE_AROUND], 16));
    write_pieces(&s, 60);
    cr_assert(eq(u32, s.n_pieces[WRITE_AROUND], 0), "the slower one was taken further");
}

Test(writing, takes_the_faster_way_and_loses_little_on_probes_of_the_other)
{
    static const uint64_t costs[][2] = {
        {50000, 100000}, {100000, 50000}, {50000, 5000000}, {2000000, 60000}, {100, 4000000000}};
    for (unsigned i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        struct simulated s = {.cost_ns = {costs[i][0], costs[i][1]}};
        int better = costs[i][0] < costs[i][1] ? WRITE_CACHED : WRITE_AROUND;
        write_pieces(&s, PIECES); /* the first probes come often */
        write_pieces(&s, PIECES);
        cr_assert(lt(u32, PIECES * 9 / 10, s.n_pieces[better]), "case %u", i);
        cr_assert(ge(u32, s.n_pieces[1 - better], 1), "case %u: never looked again", i);
        if (i < 4)
            cr_assert(lt(dbl, (double)s.total_ns, 1.05 * PIECES * (double)costs[i][better]),
                      "case %u", i);
    }
}

Test(writing, goes_around_the_cache_when_that_is_nearly_as_fast)
{
    struct simulated near = {.cost_ns = {100000, 109000}}, far = {.cost_ns = {100000, 112000}};
    write_pieces(&near, PIECES);
    cr_assert(lt(u32, PIECES * 8 / 10, near.n_pieces[WRITE_AROUND]));
    write_pieces(&far, PIECES);
    cr_assert(lt(u32, PIECES * 8 / 10, far.n_pieces[WRITE_CACHED]));
}

Test(writing, turns_when_the_way_it_takes_becomes_slow)
{
    struct simulated s = {.cost_ns = {50000, 100000}};
    write_pieces(&s, 1000);
    s.cost_ns[WRITE_CACHED] = 20000000; /* too many dirty pages: every write waits */
    write_pieces(&s, 100);
    cr_assert(le(u32, s.n_pieces[WRITE_CACHED], 4), "%u waits", s.n_pieces[WRITE_CACHED]);
}

Test(writing, turns_back_soon_after_the_other_way_has_become_fast)
{
    struct simulated s = {.cost_ns = {50000, 400000}};
    write_pieces(&s, 1000);
    cr_assert(eq(int, writing_choose(&s.choice), WRITE_CACHED));
    s.cost_ns[WRITE_AROUND] = 30000;
    write_pieces(&s, 3000);
    cr_assert(lt(u32, 1000, s.n_pieces[WRITE_AROUND]));
}

Test(writing, one_long_wait_turns_nothing)
{
    struct simulated s = {.cost_ns = {50000, 1000000}};
    write_pieces(&s, 100);
    while (s.choice.n_probe > 0 || writing_choose(&s.choice) != WRITE_CACHED)
        write_pieces(&s, 1);
    writing_learn(&s.choice, WRITE_CACHED, 200000000);
    cr_assert(eq(int, s.choice.better, WRITE_CACHED));
    writing_learn(&s.choice, WRITE_CACHED, 200000000);
    writing_learn(&s.choice, WRITE_CACHED, 200000000);
    cr_assert(eq(int, s.choice.better, WRITE_AROUND));
}

/* Of 4 ms, which began and ended at nearly the same time. */
static void wait_at_once(struct write_device *d, unsigned n_threads, uint64_t begin_ns)
{
    enum write_way way = writing_next(d);
    for (unsigned i = 0; i < n_threads; i++)
        writing_note(d, way, WRITING_PIECE_BYTES, begin_ns + i, begin_ns + 4000000 + i);
}

Test(writing, a_wait_of_all_threads_at_once_turns_nothing)
{
    static struct write_devices table;
    struct write_device *d = writing_find(&table, 7);
    for (uint64_t i = 0; i < 300 || d->choice.n_probe > 0; i++) {
        enum write_way way = writing_next(d);
        writing_note(d, way, WRITING_PIECE_BYTES, i * 1000000,
                     i * 1000000 + (way == WRITE_AROUND ? 100000 : 227000));
    }
    cr_assert(eq(int, writing_next(d), WRITE_AROUND));
    wait_at_once(d, 8, UINT64_C(1000000000));
    cr_assert(eq(int, writing_next(d), WRITE_AROUND), "one wait counted for several");
    wait_at_once(d, 8, UINT64_C(2000000000));
    cr_assert(eq(int, writing_next(d), WRITE_CACHED), "a second wait did not count");
}

Test(writing, a_slow_probe_ends_early)
{
    struct simulated s = {.cost_ns = {50000, 80000000}};
    write_pieces(&s, 32);
    unsigned n_probed = 0;
    for (unsigned i = 0; i < 300; i++) {
        write_pieces(&s, 1);
        n_probed += s.n_pieces[WRITE_AROUND];
    }
    cr_assert(ge(u32, n_probed, 1));
    cr_assert(le(u32, n_probed, 3));
}

Test(writing, late_news_of_a_way_that_was_left_changes_nothing)
{
    struct simulated s = {.cost_ns = {50000, 100000}};
    write_pieces(&s, 40);
    const struct write_choice before = s.choice;
    writing_learn(&s.choice, WRITE_AROUND, 1);
    cr_assert(eq(int, memcmp(&before, &s.choice, sizeof(before)), 0));
}

Test(writing, remembers_file_systems_and_forgets_the_oldest)
{
    static struct write_devices table;
    struct write_device *first = writing_find(&table, 7);
    for (int i = 0; i < 100; i++) {
        enum write_way way = writing_next(first);
        writing_note(first, way, WRITING_PIECE_BYTES / 2, 0, way == WRITE_AROUND ? 10000 : 90000);
    }
    cr_assert(eq(int, writing_next(first), WRITE_AROUND));
    cr_assert(eq(u32, first->choice.piece_ns[WRITE_AROUND], 20000), "rates are of whole pieces");
    for (uint64_t device = 100; device < 100 + WRITING_MAX_DEVICES - 1; device++)
        cr_assert(ne(ptr, writing_find(&table, device), first));
    cr_assert(eq(ptr, writing_find(&table, 7), first));
    cr_assert(lt(u32, 0, first->choice.n_between));
    struct write_device *other = writing_find(&table, 200);
    cr_assert(eq(ptr, other, writing_find(&table, 200)));
    cr_assert(eq(u32, other->choice.n_between, 0), "what another one was like is forgotten");
    cr_assert(eq(ptr, writing_find(&table, 7), first));
}

Test(writing, a_way_that_is_not_there_is_left_for_good)
{
    struct write_device d = {.device = 1};
    writing_lost(&d, AROUND_DONTCACHE);
    writing_lost(&d, AROUND_DONTCACHE); /* another thread's */
    cr_assert(eq(int, writing_around(&d), AROUND_BEHIND));
    writing_lost(&d, AROUND_BEHIND);
    cr_assert(eq(int, writing_around(&d), AROUND_NONE));
    atomic_store(&d.way, WRITE_AROUND);
    cr_assert(eq(int, writing_next(&d), WRITE_CACHED));
}

Test(writing, is_for_large_outputs)
{
    cr_assert(not(writing_is_large(0)));
    cr_assert(not(writing_is_large(1024 * 1024)));
    cr_assert(writing_is_large(WRITING_LARGE_BYTES));
}

Test(writing, leaves_a_choice_to_small_outputs_and_to_the_last_bytes_of_huge_ones)
{
    const uint64_t huge = UINT64_C(1) << 60;
    cr_assert(eq(u64, writing_no_choice_bytes(0), 0));
    cr_assert(eq(u64, writing_no_choice_bytes(1024 * 1024), 0));
    cr_assert(lt(u64, huge / 2, writing_no_choice_bytes(huge)));
    cr_assert(lt(u64, writing_no_choice_bytes(huge), huge));
}

/* The bytes in the file are the same whatever the way, the place and the length. */
static void check_ways(enum write_around around)
{
    enum { ROOM = 700 * 1024 };
    static const struct {
        int64_t offset, n_bytes;
    } runs[] = {{0, 262144},     {128, 262144}, {4095, 262144}, {4096, 262145},
                {100000, 65536}, {1, 65535},    {65536, 65536}, {300001, 399999}};
    char path[] = "/var/tmp/gpuarrayd-test-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    unlink(path);
    char *memory = malloc(ROOM), *expected = calloc(1, ROOM), *found = calloc(1, ROOM);
    struct write_device device = {.device = 1};
    struct writing writing = {.device = &device};
    struct gad_error error;
    atomic_store(&device.around, around);
    cr_assert(eq(i64, write(fd, expected, ROOM), ROOM));
    for (unsigned i = 0; i < 20 * sizeof(runs) / sizeof(runs[0]); i++) {
        int64_t offset = runs[i / 20].offset, n_bytes = runs[i / 20].n_bytes;
        for (int64_t k = 0; k < n_bytes; k++)
            memory[k] = (char)(k * 7 + i + 1);
        memcpy(expected + offset, memory, (size_t)n_bytes);
        atomic_store(&device.way, i % 2 ? WRITE_AROUND : WRITE_CACHED);
        cr_assert(eq(int, writer_write(fd, &writing, "r", memory, n_bytes, offset, &error), 0));
        cr_assert(eq(i64, pread(fd, found, ROOM, 0), ROOM));
        cr_assert(eq(int, memcmp(expected, found, ROOM), 0), "run %u", i);
    }
    if (around == AROUND_NONE)
        cr_assert(eq(u64, atomic_load(&writing.around_bytes), 0));
    else
        cr_assert(lt(u64, 0, atomic_load(&writing.around_bytes)));
    free(memory);
    free(expected);
    free(found);
    close(fd);
}

Test(writer, writes_the_same_bytes_whatever_the_way)
{
    check_ways(AROUND_DONTCACHE); /* or behind, where the kernel does not have it */
    check_ways(AROUND_BEHIND);
    check_ways(AROUND_NONE);
}

Test(writer, goes_around_the_cache_without_a_choice_up_to_the_byte_that_was_said)
{
    enum { PIECE = 256 * 1024 };
    static char memory[PIECE];
    char path[] = "/var/tmp/gpuarrayd-test-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    unlink(path);
    struct write_device device = {.device = 1};
    struct writing writing = {.device = &device, .no_choice_before = 3 * PIECE};
    struct gad_error error;
    uint64_t around_bytes = 0;
    for (int64_t i = 0; i < 3 && writing_around(&device) == AROUND_DONTCACHE; i++) {
        cr_assert(eq(int, writer_write(fd, &writing, "r", memory, PIECE, i * PIECE, &error), 0));
        cr_assert(eq(u32, device.choice.n_samples[WRITE_CACHED], 0), "there was a choice");
        around_bytes += PIECE;
    }
    bool has_flag = writing_around(&device) == AROUND_DONTCACHE;
    if (has_flag)
        cr_assert(eq(u64, atomic_load(&writing.around_bytes), around_bytes));
    cr_assert(eq(int, writer_write(fd, &writing, "r", memory, PIECE, 3 * PIECE, &error), 0));
    cr_assert(eq(u32, device.choice.n_samples[WRITE_CACHED], 1));
    close(fd);
}

Test(writer, says_what_went_wrong_on_every_way)
{
    static char memory[262144];
    for (int around = AROUND_DONTCACHE; around <= AROUND_NONE; around++) {
        char path[] = "/var/tmp/gpuarrayd-test-XXXXXX";
        int fd = mkostemp(path, O_CLOEXEC), reader = open(path, O_RDONLY | O_CLOEXEC);
        unlink(path);
        struct write_device device = {.device = 1};
        struct writing writing = {.device = &device};
        struct gad_error error;
        atomic_store(&device.around, (uint32_t)around);
        atomic_store(&device.way, WRITE_AROUND);
        cr_assert(
            eq(int, writer_write(reader, &writing, "r", memory, 262144, 0, &error), GAD_READ_ONLY));
        cr_assert(eq(str, error.argument, text("r")));
        const struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        cr_assert(ne(int, writer_write(fd, &writing, "r", memory, 262144, 0, &error), 0));
        close(fd);
        close(reader);
    }
}

#define THREADS      4
#define THREAD_RUNS  32
#define THREAD_BYTES (128 * 1024 + 40) /* the ends of runs share pages */

struct one_of_several {
    pthread_t thread;
    int fd, index, status;
    struct writing *writing;
};

static void *write_every_fourth(void *argument)
{
    struct one_of_several *one = argument;
    struct gad_error error;
    char *memory = malloc(THREAD_BYTES);
    for (int i = one->index; i < THREADS * THREAD_RUNS && !one->status; i += THREADS) {
        memset(memory, i + 1, THREAD_BYTES);
        one->status = writer_write(one->fd, one->writing, "r", memory, THREAD_BYTES,
                                   (int64_t)i * THREAD_BYTES, &error);
    }
    free(memory);
    return NULL;
}

/* Two files of one file system, as of two jobs; the ways change while threads write. */
Test(writer, threads_write_side_by_side_whatever_the_others_find_out)
{
    struct write_device device = {.device = 1};
    struct writing writings[2] = {{.device = &device}, {.device = &device}};
    struct one_of_several each[2][THREADS];
    char *found = malloc(THREAD_BYTES), *expected = malloc(THREAD_BYTES);
    int fds[2];
    for (int k = 0; k < 2; k++) {
        char path[] = "/var/tmp/gpuarrayd-test-XXXXXX";
        fds[k] = mkostemp(path, O_CLOEXEC);
        unlink(path);
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < THREADS; i++) {
            each[k][i] = (struct one_of_several){.fd = fds[k], .index = i, .writing = &writings[k]};
            cr_assert(eq(
                int, pthread_create(&each[k][i].thread, NULL, write_every_fourth, &each[k][i]), 0));
        }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < THREADS; i++) {
            pthread_join(each[k][i].thread, NULL);
            cr_assert(eq(int, each[k][i].status, 0));
        }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < THREADS * THREAD_RUNS; i++) {
            cr_assert(eq(i64, pread(fds[k], found, THREAD_BYTES, (int64_t)i * THREAD_BYTES),
                         THREAD_BYTES));
            memset(expected, i + 1, THREAD_BYTES);
            cr_assert(eq(int, memcmp(found, expected, THREAD_BYTES), 0), "file %d, run %d", k, i);
        }
    cr_assert(lt(u32, 0, device.choice.n_samples[WRITE_CACHED]), "nothing was timed");
    close(fds[0]);
    close(fds[1]);
    free(found);
    free(expected);
}
