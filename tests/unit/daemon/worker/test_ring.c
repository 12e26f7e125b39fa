#include "daemon/worker/io/ring.h"
#include "kernels/grains/geometry.h"
#include "tests/unit/daemon/worker/harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define SLOT_BYTES (256u * 1024u)
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW)

static const struct geometry_rules elementwise = {.round_axis = -1};

struct fixture {
    struct array array;
    struct geometry geometry;
    struct ring *ring;
    void *memory; /* the client's mapping */
    int fds[3];
};

/* A column of n rows of 32768 float64: a grain is a row. */
static void set_up_slots(struct fixture *f, int64_t n_rows, unsigned n_slots, uint64_t slot_bytes,
                         bool is_output)
{
    memset(f, 0, sizeof(*f));
    f->array = (struct array){
        .dtype = DTYPE_FLOAT64, .ndim = 2, .shape = {n_rows, 32768}, .strides = {262144, 8}};
    f->array.at.kind = LOCATION_PROVIDER;
    f->array.at.provider.n_slots = n_slots;
    f->array.at.provider.slot_bytes = slot_bytes;
    const struct geometry_operand operand = {
        .dtype = DTYPE_FLOAT64, .ndim = 2, .shape = f->array.shape, .is_output = is_output};
    geometry_init(&f->geometry, 2, f->array.shape, 1, &operand, &elementwise);
    size_t n_bytes = ring_size_bytes(n_slots, slot_bytes);
    f->fds[0] = make_memfd(n_bytes, SEALS);
    f->fds[1] = eventfd(0, EFD_CLOEXEC);
    f->fds[2] = eventfd(0, EFD_CLOEXEC);
    f->memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fds[0], 0);
}

static void set_up(struct fixture *f, int64_t n_rows, unsigned n_slots, bool is_output)
{
    set_up_slots(f, n_rows, n_slots, SLOT_BYTES, is_output);
}

static void set_chunks(struct fixture *f, int64_t n_rows, int64_t n_columns)
{
    f->array.at.provider.has_chunks = true;
    f->array.at.provider.chunk_shape[0] = n_rows;
    f->array.at.provider.chunk_shape[1] = n_columns;
}

static bool find_grain(const struct ring_walk *walk, uint64_t *place)
{
    const struct fixture *f = walk->job;
    return *place < f->geometry.n_grains;
}

static void grain_box(const struct ring_walk *walk, uint64_t place, int64_t *ret_start,
                      int64_t *ret_count)
{
    const struct fixture *f = walk->job;
    const struct geometry *g = &f->geometry;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    geometry_grain(g, place, start, count);
    geometry_operand_box(g->ndim, start, count, f->array.ndim, f->array.shape, ret_start,
                         ret_count);
}

/* Of ten rows: 0, 5, 1, 6, 2, and so on. */
static void scattered_box(const struct ring_walk *walk, uint64_t place, int64_t *ret_start,
                          int64_t *ret_count)
{
    grain_box(walk, place % 2 * 5 + place / 2, ret_start, ret_count);
}

static void open_ring_for(struct fixture *f, bool is_output, const struct ring_walk *walk)
{
    struct gad_error error;
    cr_assert(
        eq(int,
           ring_new(&f->array, "a", f->fds[0], f->fds[1], f->fds[2], is_output, &f->ring, &error),
           0),
        "%s", error.message);
    ring_begin(f->ring, walk);
}

static void open_ring(struct fixture *f, bool is_output)
{
    open_ring_for(f, is_output,
                  &(struct ring_walk){.find = find_grain, .box = grain_box, .job = f});
}

static void tear_down(struct fixture *f)
{
    f->ring = ring_free(f->ring);
    const struct location *at = &f->array.at;
    munmap(f->memory, ring_size_bytes(at->provider.n_slots, at->provider.slot_bytes));
    for (int i = 0; i < 3; i++)
        close(f->fds[i]);
}

static void answer(struct fixture *f, uint32_t slot, uint32_t status)
{
    struct ring_entry *entry = ring_entry_at(f->memory, slot);
    entry->status = status;
    atomic_store(&entry->done, atomic_load(&entry->request));
}

static bool collect(struct fixture *f)
{
    bool has_news;
    struct gad_error error;
    cr_assert(eq(int, ring_collect(f->ring, &has_news, &error), 0));
    return has_news;
}

Test(ring, asks_ahead_in_order_and_no_more_than_there_are_slots)
{
    struct fixture f;
    struct gad_error error;
    set_up(&f, 10, 3, false);
    cr_assert(eq(u64, f.geometry.n_grains, 10));
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    for (uint32_t i = 0; i < 3; i++) {
        struct ring_entry *entry = ring_entry_at(f.memory, i);
        cr_assert(eq(u64, entry->request, 1));
        cr_assert(eq(i64, entry->start[0], i));
        cr_assert(eq(i64, entry->count[0], 1));
        cr_assert(eq(i64, entry->count[1], 32768));
    }
    cr_assert(ring_wants_signal(f.ring));
    cr_assert(not(ring_wants_signal(f.ring)));
    cr_assert(not(collect(&f)));
    cr_assert(not(ring_has(f.ring, 0)));
    answer(&f, 1, 0);
    cr_assert(collect(&f));
    cr_assert(ring_has(f.ring, 1) && !ring_has(f.ring, 0));
    uint32_t slot;
    cr_assert(ring_take(f.ring, 1, &slot));
    cr_assert(eq(u32, slot, 1));
    cr_assert(eq(int, ring_give(f.ring, 1, slot, &error), 0));
    cr_assert(eq(i64, ring_entry_at(f.memory, 1)->start[0], 3));
    cr_assert(eq(u64, ring_entry_at(f.memory, 1)->request, 2));
    tear_down(&f);
}

Test(ring, shares_a_block_among_grains_that_need_the_same)
{
    struct fixture f;
    struct gad_error error;
    const int64_t shape[] = {1000, 32768};
    set_up(&f, 1, 2, false);
    const struct geometry_operand operand = {
        .dtype = DTYPE_FLOAT64, .ndim = 2, .shape = shape, .is_output = true};
    geometry_init(&f.geometry, 2, shape, 1, &operand, &elementwise);
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    answer(&f, 0, 0);
    collect(&f);
    for (uint64_t grain = 0; grain < f.geometry.n_grains; grain++) {
        uint32_t slot;
        cr_assert(ring_take(f.ring, grain, &slot), "grain %llu", (unsigned long long)grain);
        cr_assert(eq(int, ring_give(f.ring, grain, slot, &error), 0));
    }
    cr_assert(eq(u64, ring_entry_at(f.memory, 0)->request, 1));
    cr_assert(eq(u64, ring_entry_at(f.memory, 1)->request, 0));
    tear_down(&f);
}

static void check_asked(const struct fixture *f, uint32_t slot, int64_t first_row, int64_t n_rows)
{
    const struct ring_entry *entry = ring_entry_at(f->memory, slot);
    cr_assert(eq(i64, entry->start[0], first_row));
    cr_assert(eq(i64, entry->count[0], n_rows));
    cr_assert(eq(i64, entry->start[1], 0));
    cr_assert(eq(i64, entry->count[1], 32768));
}

Test(ring, asks_for_a_chunk_as_a_whole_and_shares_it_among_its_grains)
{
    struct fixture f;
    struct gad_error error;
    uint32_t slot;
    set_up_slots(&f, 10, 2, 4 * SLOT_BYTES, false);
    set_chunks(&f, 4, 32768);
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    check_asked(&f, 0, 0, 4);
    check_asked(&f, 1, 4, 4);
    answer(&f, 0, 0);
    cr_assert(collect(&f));
    for (uint64_t grain = 0; grain < 4; grain++) {
        cr_assert(eq(u64, ring_entry_at(f.memory, 0)->request, 1)); /* until the last is given */
        cr_assert(ring_take(f.ring, grain, &slot));
        cr_assert(eq(u32, slot, 0));
        const struct port_box *box = ring_source_box(f.ring, ring_slot_memory(f.ring, slot));
        cr_assert(eq(i64, box->start[0], 0));
        cr_assert(eq(i64, box->count[0], 4));
        cr_assert(eq(int, ring_give(f.ring, grain, slot, &error), 0));
    }
    cr_assert(not(ring_has(f.ring, 4)));
    check_asked(&f, 0, 8, 2); /* what the array has of the last one */
    tear_down(&f);
}

/* The second grain of a chunk may be given back before the first, by another thread. */
Test(ring, keeps_a_chunk_until_all_of_its_grains_are_given_back)
{
    struct fixture f;
    struct gad_error error;
    uint32_t first, second;
    set_up_slots(&f, 4, 1, 2 * SLOT_BYTES, false);
    set_chunks(&f, 2, 32768);
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    answer(&f, 0, 0);
    cr_assert(collect(&f));
    cr_assert(ring_take(f.ring, 0, &first) && ring_take(f.ring, 1, &second));
    cr_assert(eq(int, ring_give(f.ring, 1, second, &error), 0));
    cr_assert(eq(u64, ring_entry_at(f.memory, 0)->request, 1));
    cr_assert(eq(int, ring_give(f.ring, 0, first, &error), 0));
    cr_assert(eq(u64, ring_entry_at(f.memory, 0)->request, 2));
    check_asked(&f, 0, 2, 2);
    tear_down(&f);
}

Test(ring, asks_for_grains_where_a_chunk_is_not_needed_whole_or_does_not_fit_a_slot)
{
    struct fixture f;
    struct gad_error error;
    const struct ring_walk scattered = {.find = find_grain, .box = scattered_box, .job = &f};
    set_up_slots(&f, 10, 2, 4 * SLOT_BYTES, false);
    set_chunks(&f, 4, 32768);
    open_ring_for(&f, false, &scattered); /* row 5 comes before the others of row 0's chunk */
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    check_asked(&f, 0, 0, 1);
    check_asked(&f, 1, 5, 1);
    tear_down(&f);

    set_up_slots(&f, 10, 2, 4 * SLOT_BYTES, false);
    set_chunks(&f, 5, 32768);
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    check_asked(&f, 0, 0, 1);
    tear_down(&f);

    set_up_slots(&f, 10, 2, 4 * SLOT_BYTES, false);
    set_chunks(&f, 4, 16384); /* a grain is in two */
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    check_asked(&f, 0, 0, 1);
    tear_down(&f);
}

Test(ring, lends_drains_and_becomes_idle_again)
{
    struct fixture f;
    struct gad_error error;
    uint32_t first, second, none;
    set_up(&f, 10, 2, true);
    open_ring(&f, true);
    cr_assert(ring_is_idle(f.ring));
    cr_assert(ring_take(f.ring, 0, &first) && ring_take(f.ring, 1, &second));
    cr_assert(not(ring_take(f.ring, 2, &none)));
    cr_assert(eq(int, ring_give(f.ring, 0, first, &error), 0));
    ring_drop(f.ring, second);
    cr_assert(ring_has(f.ring, 2));
    cr_assert(not(ring_is_idle(f.ring)));
    answer(&f, first, 0);
    cr_assert(collect(&f));
    cr_assert(ring_is_idle(f.ring));
    tear_down(&f);
}

/* Its client takes blocks in order, and has no place for those that come too early. */
Test(ring, of_a_streams_sink_keeps_a_slot_for_the_oldest_block)
{
    struct fixture f;
    struct gad_error error;
    uint32_t first, second, none;
    set_up(&f, 10, 2, true);
    f.array.at.provider.is_stream = true;
    open_ring(&f, true);
    cr_assert(ring_take(f.ring, 1, &second));
    cr_assert(not(ring_take(f.ring, 2, &none)), "there is a slot, which is for block 0");
    cr_assert(ring_take(f.ring, 0, &first));
    cr_assert(eq(int, ring_give(f.ring, 1, second, &error), 0));
    answer(&f, second, 0);
    cr_assert(collect(&f));
    cr_assert(not(ring_has(f.ring, 2)), "block 0 is not stored yet");
    cr_assert(eq(int, ring_give(f.ring, 0, first, &error), 0));
    answer(&f, first, 0);
    cr_assert(collect(&f));
    cr_assert(ring_has(f.ring, 2) && ring_has(f.ring, 3) && !ring_has(f.ring, 4));
    ring_drop(f.ring, first);
    tear_down(&f);
}

static unsigned n_asked(const struct fixture *f)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < f->array.at.provider.n_slots; i++)
        n += ring_entry_at(f->memory, i)->request != ring_entry_at(f->memory, i)->done;
    return n;
}

/* Four blocks side by side in each two rows. */
static void quarter_rows_box(const struct ring_walk *walk, uint64_t place, int64_t *ret_start,
                             int64_t *ret_count)
{
    const struct fixture *f = walk->job;
    ret_start[0] = (int64_t)(place / 4) * 2;
    ret_count[0] = 2;
    ret_count[1] = f->array.shape[1] / 4;
    ret_start[1] = (int64_t)(place % 4) * ret_count[1];
}

Test(ring, asks_for_what_is_enough_in_the_same_slots)
{
    struct fixture f;
    struct gad_error error;
    uint32_t slot;
    set_up(&f, 10, 6, false);
    open_ring_for(&f, false, &(struct ring_walk){find_grain, grain_box, &f, .n_ahead = 2});
    f.array.at.provider.is_stream = true;
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    for (uint64_t i = 0; i < 9; i++) {
        cr_assert(eq(uint, n_asked(&f), 2));
        answer(&f, (uint32_t)(i % 2), 0);
        cr_assert(collect(&f) && ring_take(f.ring, i, &slot));
        cr_assert(eq(u32, slot, (uint32_t)(i % 2)));
        cr_assert(eq(int, ring_give(f.ring, i, slot, &error), 0));
    }
    cr_assert(eq(uint, n_asked(&f), 1));
    tear_down(&f);
}

Test(ring, asks_for_all_blocks_that_share_rows_at_a_time)
{
    struct fixture f;
    struct gad_error error;
    set_up(&f, 10, 6, false);
    open_ring_for(&f, false, &(struct ring_walk){find_grain, quarter_rows_box, &f, .n_ahead = 2});
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    cr_assert(eq(uint, n_asked(&f), 4), "those of the first two rows");
    tear_down(&f);
}

Test(ring, fails_with_the_clients_errno)
{
    struct fixture f;
    struct gad_error error;
    bool has_news;
    set_up(&f, 10, 2, false);
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    answer(&f, 0, 5);
    cr_assert(eq(int, ring_collect(f.ring, &has_news, &error), GAD_PROVIDER_FAILED));
    cr_assert(eq(str, error.argument, text("a")));
    cr_assert(eq(str, error.found, text("errno 5")));
    tear_down(&f);
}

Test(ring, is_not_moved_by_nonsense_in_its_entries)
{
    struct fixture f;
    struct gad_error error;
    set_up(&f, 10, 2, false);
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    memset(f.memory, 0xff, 4096 + 2 * RING_ENTRY_BYTES);
    cr_assert(not(collect(&f)));
    atomic_store(&ring_entry_at(f.memory, 0)->done, 1);
    ring_entry_at(f.memory, 0)->status = 0;
    cr_assert(collect(&f));
    cr_assert(ring_has(f.ring, 0));
    tear_down(&f);
}

Test(ring, goes_on_where_an_earlier_worker_stopped)
{
    struct fixture f;
    struct gad_error error;
    set_up(&f, 10, 2, false);
    struct ring_entry *first = ring_entry_at(f.memory, 0), *second = ring_entry_at(f.memory, 1);
    atomic_store(&first->request, 7);
    atomic_store(&first->done, 6);
    first->start[0] = 5;
    open_ring(&f, false);
    cr_assert(ring_has_asked(f.ring), "the client may not know of it yet");
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    cr_assert(eq(u64, first->request, 7), "nothing is asked while the client is at an old request");
    cr_assert(eq(i64, first->start[0], 5));
    cr_assert(eq(u64, second->request, 0), "nor in another slot");
    first->status = 5;
    atomic_store(&first->done, 7); /* the old answer arrives, and says nothing */
    cr_assert(collect(&f));
    cr_assert(not(ring_has(f.ring, 0)));
    cr_assert(eq(u64, first->request + second->request, 8 + 1));
    answer(&f, 0, 0);
    answer(&f, 1, 0);
    cr_assert(collect(&f));
    cr_assert(ring_has(f.ring, 0) && ring_has(f.ring, 1));
    tear_down(&f);
}

Test(ring, lends_no_slot_while_a_block_of_an_earlier_worker_is_being_stored)
{
    struct fixture f;
    uint32_t slot;
    set_up(&f, 10, 2, true);
    atomic_store(&ring_entry_at(f.memory, 1)->request, 3);
    open_ring(&f, true);
    cr_assert(not(ring_has(f.ring, 0)));
    cr_assert(not(ring_take(f.ring, 0, &slot)));
    cr_assert(eq(uint, ring_n_ready(f.ring), 0));
    answer(&f, 1, 0);
    cr_assert(collect(&f));
    cr_assert(eq(uint, ring_n_ready(f.ring), 2));
    cr_assert(ring_take(f.ring, 0, &slot));
    ring_drop(f.ring, slot);
    tear_down(&f);
}

static bool tells(struct fixture *f, uint32_t slot)
{
    struct gad_error error;
    answer(f, slot, 0);
    cr_assert(collect(f));
    for (uint64_t grain = 0; grain < f->geometry.n_grains; grain++)
        if (ring_has(f->ring, grain)) {
            uint32_t taken;
            cr_assert(ring_take(f->ring, grain, &taken));
            cr_assert(eq(int, ring_give(f->ring, grain, taken, &error), 0));
        }
    cr_assert(ring_has_asked(f->ring));
    return ring_wants_signal(f->ring);
}

Test(ring, signals_as_the_client_wishes_but_always_first)
{
    struct fixture f;
    struct gad_error error;
    set_up(&f, 20, 2, false);
    struct ring_head *head = f.memory;
    ring_set_wish(&head->client_wish, RING_TELL_NOTHING);
    open_ring(&f, false);
    cr_assert(eq(int, ring_ask(f.ring, &error), 0));
    cr_assert(ring_wants_signal(f.ring), "whatever an earlier worker left there");
    cr_assert(not(tells(&f, 0)));
    ring_set_wish(&head->client_wish, RING_TELL_ONCE);
    cr_assert(tells(&f, 1));
    cr_assert(not(tells(&f, 0)), "once");
    atomic_store(&head->client_wish, 77);
    cr_assert(tells(&f, 1) && tells(&f, 0), "nonsense is always");
    tear_down(&f);
}

Test(ring, wishes_to_be_told_once)
{
    struct fixture f;
    struct gad_error error;
    set_up(&f, 20, 2, false);
    struct ring_head *head = f.memory;
    open_ring(&f, false);
    cr_assert(ring_take_wish(&head->worker_wish));
    cr_assert(not(ring_take_wish(&head->worker_wish)));
    cr_assert(eq(int, ring_wish_signal(f.ring, &error), 0));
    cr_assert(ring_take_wish(&head->worker_wish));
    tear_down(&f);
}

Test(ring, uses_its_slots_in_turn)
{
    struct fixture f;
    struct gad_error error;
    uint32_t slot;
    set_up(&f, 10, 3, true);
    open_ring(&f, true);
    for (uint32_t grain = 0; grain < 7; grain++) {
        cr_assert(ring_take(f.ring, grain, &slot));
        cr_assert(eq(u32, slot, grain % 3));
        cr_assert(eq(int, ring_give(f.ring, grain, slot, &error), 0));
        answer(&f, slot, 0);
        cr_assert(collect(&f));
    }
    tear_down(&f);
}

static void refused(struct fixture *f, const char *why)
{
    struct gad_error error = {0};
    cr_assert(eq(int,
                 ring_new(&f->array, "a", f->fds[0], f->fds[1], f->fds[2], false, &f->ring, &error),
                 GAD_BAD_DESCRIPTOR),
              "%s", why);
    cr_assert(eq(str, error.argument, text("a")));
    cr_assert(eq(ptr, f->ring, NULL));
}

Test(ring, refuses_what_is_not_one)
{
    struct fixture f;
    set_up(&f, 10, 2, false);
    int memfd = f.fds[0], event = f.fds[1], pipes[2];
    f.fds[0] = make_memfd(ring_size_bytes(2, SLOT_BYTES), F_SEAL_SHRINK);
    refused(&f, "it can grow");
    close(f.fds[0]);
    f.fds[0] = make_memfd(ring_size_bytes(2, SLOT_BYTES) - 4096, SEALS);
    refused(&f, "it is short");
    close(f.fds[0]);
    f.fds[0] = make_memfd(ring_size_bytes(2, SLOT_BYTES), SEALS | F_SEAL_WRITE);
    refused(&f, "it cannot be written");
    close(f.fds[0]);
    f.fds[0] = memfd;
    cr_assert(eq(int, pipe2(pipes, O_CLOEXEC), 0));
    f.fds[1] = pipes[1];
    refused(&f, "a pipe is no eventfd");
    f.fds[1] = event;
    f.array.at.provider.n_slots = RING_MAX_SLOTS + 1;
    refused(&f, "too many slots");
    f.array.at.provider.n_slots = 0;
    refused(&f, "no slots");
    f.array.at.provider.n_slots = 2;
    f.array.at.provider.slot_bytes = UINT64_MAX - 4095;
    refused(&f, "sizes that overflow");
    close(pipes[0]);
    close(pipes[1]);
    close(memfd);
    close(event);
    close(f.fds[2]);
}

Test(ring, does_not_wait_for_a_client_that_has_filled_its_eventfd)
{
    struct fixture f;
    struct gad_error error;
    const uint64_t most = UINT64_MAX - 1;
    set_up(&f, 2, 2, false);
    open_ring(&f, false);
    cr_assert(eq(int, ring_signal(f.ring, &error), 0));
    uint64_t count;
    cr_assert(eq(i64, read(f.fds[1], &count, sizeof(count)), 8));
    cr_assert(eq(u64, count, 1));
    cr_assert(eq(i64, write(f.fds[1], &most, sizeof(most)), 8));
    cr_assert(eq(int, ring_signal(f.ring, &error), GAD_PROVIDER_FAILED));
    cr_assert(eq(str, error.argument, text("a")));
    tear_down(&f);
}
