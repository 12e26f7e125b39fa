/* A provider's ring in the worker, beside a client that writes whatever it likes into it.
 *
 *     byte 0: what the array is      byte 1: slots      then orders of three bytes, one after
 * another: the client writes a sequence, a status, a number of rows, or any eight bytes, or answers
 *     honestly; the worker collects, takes the next position, gives the oldest one back, begins
 *     anew, asks whether to signal
 *
 * Checked besides the sanitizers' own: a slot is the ring's and lent once at a time; a block that
 * is there is a part of the array and has what its position needs; what the client has said of the
 * rows is no contradiction; errors have a code and say something.
 */
#include "daemon/worker/io/guard.h"
#include "daemon/worker/io/ring.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOT_BYTES  RING_MIN_SLOT_BYTES
#define MAX_SLOTS   4u
#define N_COLUMNS   16
#define N_POSITIONS 40u

enum { IS_OUTPUT = 1, IS_OPEN = 2, IS_STREAM = 4, HAS_CHUNKS = 8, IS_SHARED = 16, IS_LAZY = 32 };

static int fds[3]; /* the memfd, and two eventfds */
static char *memory;

struct fixture {
    struct array array;
    struct ring *ring;
    bool is_output, is_shared;
    uint64_t next;                    /* position to be taken */
    uint64_t taken[N_POSITIONS];      /* positions, oldest first */
    uint32_t taken_slot[N_POSITIONS]; /* theirs */
    unsigned n_taken;
};

static bool find(const struct ring_walk *walk, uint64_t *position)
{
    (void)walk;
    return *position < N_POSITIONS;
}

/* Two positions may need the same row. */
static void box(const struct ring_walk *walk, uint64_t position, int64_t *ret_start,
                int64_t *ret_count)
{
    const struct fixture *f = walk->job;
    ret_start[0] = (int64_t)(f->is_shared ? position / 2 : position);
    ret_count[0] = 1;
    ret_start[1] = 0;
    ret_count[1] = N_COLUMNS;
}

static void make_memory(void)
{
    if (memory)
        return;
    size_t n_bytes = ring_size_bytes(MAX_SLOTS, SLOT_BYTES);
    int r = guard_install();
    assert(r == 0);
    fds[0] = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    r = ftruncate(fds[0], (off_t)n_bytes);
    assert(r == 0);
    r = fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    assert(r == 0);
    fds[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fds[2] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    assert(memory != MAP_FAILED);
}

static void check(int r, const struct gad_error *error)
{
    assert(r == GAD_PROVIDER_FAILED && error->status == GAD_PROVIDER_FAILED && error->message[0]);
}

static bool is_ours(const struct fixture *f, uint32_t slot)
{
    for (unsigned i = 0; i < f->n_taken; i++)
        if (f->taken_slot[i] == slot)
            return true;
    return false;
}

static void check_box(const struct fixture *f, uint64_t position, uint32_t slot)
{
    const struct port_box *there = ring_source_box(f->ring, ring_slot_memory(f->ring, slot));
    const struct ring_walk walk = {.job = f};
    struct port_box wanted;
    box(&walk, position, wanted.start, wanted.count);
    uint64_t n_bytes = 8;
    for (int i = 0; i < 2; i++) {
        assert(there->start[i] >= 0 && there->count[i] > 0);
        assert(there->count[i] <= f->array.shape[i] - there->start[i]);
        assert(there->start[i] <= wanted.start[i]);
        assert(wanted.start[i] + wanted.count[i] <= there->start[i] + there->count[i]);
        n_bytes *= (uint64_t)there->count[i];
    }
    assert(n_bytes <= SLOT_BYTES);
}

static void take(struct fixture *f)
{
    uint32_t slot = UINT32_MAX;
    bool has = f->next < N_POSITIONS && ring_has(f->ring, f->next);
    if (f->next == N_POSITIONS || f->n_taken == N_POSITIONS)
        return;
    bool is_taken = ring_take(f->ring, f->next, &slot);
    assert(is_taken == has);
    if (!is_taken)
        return;
    assert(slot < f->array.at.provider.n_slots);
    if (f->is_output)
        assert(!is_ours(f, slot));
    else
        check_box(f, f->next, slot);
    f->taken[f->n_taken] = f->next++;
    f->taken_slot[f->n_taken++] = slot;
}

static int give(struct fixture *f, bool is_dropped, struct gad_error *error)
{
    if (f->n_taken == 0)
        return 0;
    uint64_t position = f->taken[0];
    uint32_t slot = f->taken_slot[0];
    f->n_taken--;
    memmove(f->taken, f->taken + 1, f->n_taken * sizeof(f->taken[0]));
    memmove(f->taken_slot, f->taken_slot + 1, f->n_taken * sizeof(f->taken_slot[0]));
    if (!is_dropped || !f->is_output)
        return ring_give(f->ring, position, slot, error);
    ring_drop(f->ring, slot);
    return 0;
}

static int begin(struct fixture *f, bool is_lazy, struct gad_error *error)
{
    const struct ring_walk walk = {
        .find = find, .box = box, .job = f, .n_ahead = is_lazy ? 2u : 0u};
    if (f->n_taken > 0)
        return 0;
    ring_begin(f->ring, &walk);
    f->next = 0;
    return f->is_output ? 0 : ring_ask(f->ring, error);
}

static void write_any(uint16_t place, uint8_t value)
{
    size_t n_bytes = 4096 + MAX_SLOTS * RING_ENTRY_BYTES;
    memset(memory + place % (n_bytes - 8), value, 8);
}

static int obey(struct fixture *f, const uint8_t *order, struct gad_error *error)
{
    struct ring_entry *entry = ring_entry_at(memory, order[1] % f->array.at.provider.n_slots);
    bool has_news;
    switch (order[0] % 11) {
    case 0: atomic_store(&entry->done, atomic_load(&entry->request) + order[2] - 128); return 0;
    case 1: entry->status = order[2] == 255 ? UINT32_MAX : order[2]; return 0;
    case 2: entry->n_rows = order[2] == 255 ? UINT64_MAX : order[2] % 4u; return 0;
    case 3: write_any((uint16_t)(order[1] * 64u), order[2]); return 0;
    case 4:
    case 5:
        entry->n_rows = order[0] % 11 == 4 ? (uint64_t)entry->count[0] : order[2] % 2u;
        entry->status = 0;
        atomic_store(&entry->done, atomic_load(&entry->request));
        return 0;
    case 6: return ring_collect(f->ring, &has_news, error);
    case 7: take(f); return 0;
    case 8: return give(f, order[1] & 1, error);
    case 9: return begin(f, order[1] & 1, error);
    default:
        if (ring_wants_signal(f->ring))
            assert(!ring_has_asked(f->ring));
        return ring_wish_signal(f->ring, error);
    }
}

static void check_state(const struct fixture *f)
{
    int64_t least, most;
    ring_length(f->ring, &least, &most);
    assert(least >= 0 && least <= most);
    assert(ring_n_ready(f->ring) <= f->array.at.provider.n_slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct gad_error error = {0};
    if (n_bytes < 2 || n_bytes > 3 * 400 + 2)
        return 0;
    unsigned kind = data[0];
    struct fixture f = {.is_output = kind & IS_OUTPUT, .is_shared = kind & IS_SHARED};
    f.array = (struct array){
        .dtype = DTYPE_FLOAT64, .ndim = 2, .shape = {N_POSITIONS, N_COLUMNS}, .strides = {128, 8}};
    f.array.is_open = kind & IS_OPEN;
    f.array.at.kind = LOCATION_PROVIDER;
    f.array.at.provider.n_slots = 1 + data[1] % MAX_SLOTS;
    f.array.at.provider.slot_bytes = SLOT_BYTES;
    f.array.at.provider.is_stream = (kind & IS_STREAM) && !f.is_shared;
    f.array.at.provider.has_chunks = kind & HAS_CHUNKS;
    f.array.at.provider.chunk_shape[0] = 3;
    f.array.at.provider.chunk_shape[1] = N_COLUMNS;
    make_memory();
    memset(memory, data[1] / MAX_SLOTS, 4096 + MAX_SLOTS * RING_ENTRY_BYTES);
    int r = ring_new(&f.array, "a", fds[0], fds[1], fds[2], f.is_output, &f.ring, &error);
    assert(r == 0);
    r = begin(&f, kind & IS_LAZY, &error);
    for (size_t at = 2; r == 0 && at + 3 <= n_bytes; at += 3) {
        r = obey(&f, data + at, &error);
        if (r == 0)
            check_state(&f);
    }
    if (r)
        check(r, &error);
    ring_free(f.ring);
    return 0;
}
