/* A provider's ring: the worker's side.
 *
 * The client can write all of the ring at any time. So everything that is decided on is kept here,
 * in `blocks`: what was asked, under which sequence, for which grains. Of the ring itself only
 * `done` (compared with our own sequence, nothing else), `status` and the client's wish are read; a
 * client that writes nonsense waits for ever or fails its own job. Touching the ring can raise
 * SIGBUS (huge pages that are not there): all accesses to head and entries are guarded; those to
 * data are guarded by the tiles.
 *
 *     source:   FREE --ask--> ASKED --done--> READY --last grain given--> FREE
 *     sink:     FREE --take--> LENT --give--> ASKED --done--> FREE
 *     of a worker or an attempt that is gone: STALE --done--> FREE
 *
 * A source asks in the order of the walk's positions. Those that follow each other and need the
 * same box (an operand that is broadcast), or parts of one (a chunk), share one block; the block
 * stays open for more such positions while it is the last one asked for, but not more than
 * RING_POSITIONS_AHEAD beyond those that were given back. What is needed again later is asked for
 * again.
 *
 * An open source is asked for blocks until one is not whole. Whatever comes first, rows that are
 * there lie before all ends that its client names. Blocks without rows are free again at once.
 *
 * A stream's sink gives slots only to the positions that follow the oldest one that is not drained:
 * its client takes blocks in order and has no other place for those that come early.
 *
 * What an earlier attempt of the job asked for may still be in the client's hands: a box that it is
 * about to read, a block that it is about to store. Until it has answered all of that (STALE)
 * nothing of the ring is used, so a client never sees half of one request and half of another, and
 * never stores a block of an earlier attempt over one of this.
 */
#include "daemon/worker/io/ring.h"
#include "daemon/worker/io/ring_check.h"
#include "daemon/worker/io/ring_chunk.h"
#include "proto/util.h"

#include <assert.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#define POPULATE_MAX_BYTES (32u << 20)

enum block_state { BLOCK_FREE, BLOCK_ASKED, BLOCK_READY, BLOCK_LENT, BLOCK_STALE };

struct block {
    enum block_state state;
    uint64_t sequence;    /* of this slot, as in the entry's `request` */
    uint64_t first, last; /* source: the positions that use it, and nothing else between them does;
                             sink: first */
    uint64_t n_positions, n_given;
    struct port_box box;
};

struct ring {
    const struct array *array;
    const char *name;
    bool is_output;
    bool has_asked, was_told; /* since the client was told; the client, ever */
    int request_fd, done_fd;
    void *memory;
    size_t size_bytes;
    uint64_t slot_bytes;
    struct ring_walk walk;
    uint64_t next_position; /* source: to be asked for next */
    bool has_next;          /* there is one */
    uint64_t n_open;        /* source: positions that were asked for and not given back */
    uint32_t last;          /* source: the slot asked for last, n_slots: none */
    uint32_t newest;        /* the slot that was used last */
    /* Sink of a stream: all positions below `low` were drained, and bit i is set where low + i was.
     * Slots are for the n_slots positions from there on: the client has no room but the ring, and
     * the oldest position must always find a slot. */
    uint64_t low, drained;
    int64_t least_rows, most_rows; /* of an open source, as of ring_length() */
    uint32_t n_slots, n_busy, n_stale;
    struct block blocks[];
};

struct guard_range ring_range(const struct ring *ring)
{
    return (struct guard_range){ring->memory, ring->size_bytes};
}

int ring_done_fd(const struct ring *ring)
{
    return ring->done_fd;
}

bool ring_is_idle(const struct ring *ring)
{
    return !ring->is_output || ring->n_busy == 0;
}

static bool is_open(const struct ring *ring)
{
    return ring->array->is_open && !ring->is_output;
}

void ring_length(const struct ring *ring, int64_t *ret_least, int64_t *ret_most)
{
    *ret_least = ring->least_rows;
    *ret_most = ring->most_rows;
}

bool ring_is_over(const struct ring *ring)
{
    return is_open(ring) && ring->least_rows == ring->most_rows && !ring_is_awaited(ring);
}

bool ring_is_awaited(const struct ring *ring)
{
    bool is = false;
    for (uint32_t i = 0; i < ring->n_slots; i++)
        is |= ring->blocks[i].state == BLOCK_ASKED || ring->blocks[i].state == BLOCK_STALE;
    return is;
}

void *ring_slot_memory(const struct ring *ring, uint32_t slot)
{
    return (char *)ring->memory + ring_slot_offset_bytes(ring->n_slots, ring->slot_bytes, slot);
}

const struct port_box *ring_source_box(const struct ring *ring, const void *memory)
{
    if (ring->is_output)
        return NULL;
    uint64_t offset = (uint64_t)((const char *)memory - (const char *)ring_slot_memory(ring, 0));
    return &ring->blocks[offset / ring->slot_bytes].box;
}

/* By reading: the kernel then maps what is there in runs of pages, writable ones too, whereas the
 * first write to a page that is not mapped maps that page alone. Without it the pages come one by
 * one, later. */
static void map_pages(const struct ring *ring)
{
    if (ring->size_bytes <= POPULATE_MAX_BYTES)
        (void)madvise(ring->memory, ring->size_bytes, MADV_POPULATE_READ);
}

static struct ring_head *head_of(const struct ring *ring)
{
    return ring->memory;
}

/* The entries' side of things runs under the guard. */
struct entry_call {
    struct ring *ring;
    uint32_t slot;        /* to be written */
    bool is_wanted;       /* the client's wish, read */
    struct entry_answer { /* read */
        uint64_t done, n_rows;
        uint32_t status;
    } answers[RING_MAX_SLOTS];
};

static int entry_write(void *argument)
{
    struct entry_call *call = argument;
    const struct block *block = &call->ring->blocks[call->slot];
    struct ring_entry *entry = ring_entry_at(call->ring->memory, call->slot);
    size_t n_bytes = (size_t)call->ring->array->ndim * sizeof(block->box.start[0]);
    entry->ndim = (uint32_t)call->ring->array->ndim;
    memcpy(entry->start, block->box.start, n_bytes);
    memcpy(entry->count, block->box.count, n_bytes);
    atomic_store_explicit(&entry->request, block->sequence, memory_order_release);
    return 0;
}

static bool is_awaited(const struct block *block)
{
    return block->state == BLOCK_ASKED || block->state == BLOCK_STALE;
}

/* The answers of all slots that were asked. */
static int entries_read(void *argument)
{
    struct entry_call *call = argument;
    for (uint32_t i = 0; i < call->ring->n_slots; i++) {
        struct ring_entry *entry = ring_entry_at(call->ring->memory, i);
        if (!is_awaited(&call->ring->blocks[i]))
            continue;
        call->answers[i].done = atomic_load_explicit(&entry->done, memory_order_acquire);
        call->answers[i].status = *(volatile uint32_t *)&entry->status;
        call->answers[i].n_rows = *(volatile uint64_t *)&entry->n_rows;
    }
    return 0;
}

static int wish_write(void *argument)
{
    const struct entry_call *call = argument;
    ring_set_wish(&head_of(call->ring)->worker_wish, RING_TELL_ONCE);
    return 0;
}

static int wish_read(void *argument)
{
    struct entry_call *call = argument;
    call->is_wanted = ring_take_wish(&head_of(call->ring)->client_wish);
    return 0;
}

/* A ring may have served a worker that is gone: the sequences go on where they stopped, so that an
 * answer that is still under way is not taken for one of ours. The client may not have been told
 * of what was asked last. */
static int entries_adopt(void *argument)
{
    struct entry_call *call = argument;
    ring_set_wish(&head_of(call->ring)->worker_wish, RING_TELL_ONCE);
    for (uint32_t i = 0; i < call->ring->n_slots; i++) {
        struct ring_entry *entry = ring_entry_at(call->ring->memory, i);
        struct block *block = &call->ring->blocks[i];
        block->sequence = atomic_load_explicit(&entry->request, memory_order_relaxed);
        if (atomic_load_explicit(&entry->done, memory_order_acquire) == block->sequence)
            continue;
        block->state = BLOCK_STALE;
        call->ring->n_stale++;
        call->ring->has_asked = true;
    }
    return 0;
}

static int entry_call(struct entry_call *call, int (*function)(void *), struct gad_error *error)
{
    struct guard_range range = ring_range(call->ring);
    const void *address;
    if (guard_call(&range, 1, function, call, &address) == 0)
        return 0;
    return error_set(error, GAD_REGION_FAULT, call->ring->name, "the ring has no memory");
}

int ring_new(const struct array *array, const char *name, int ring_fd, int request_fd, int done_fd,
             bool is_output, struct ring **ret_ring, struct gad_error *error)
{
    uint32_t n_slots = array->at.provider.n_slots;
    uint64_t slot_bytes = array->at.provider.slot_bytes;
    struct ring *ring =
        calloc(1, sizeof(*ring) + min_u64(n_slots, RING_MAX_SLOTS) * sizeof(ring->blocks[0]));
    if (!ring)
        return -ENOMEM;
    ring->array = array;
    ring->name = name;
    ring->is_output = is_output;
    ring->request_fd = request_fd;
    ring->done_fd = done_fd;
    ring->n_slots = n_slots;
    ring->slot_bytes = slot_bytes;
    ring->most_rows = INT64_MAX;
    ring->size_bytes = ring_size_bytes(n_slots, slot_bytes);
    int r = ring_check(array, name, ring_fd, request_fd, done_fd, error);
    if (!r) {
        ring->memory = mmap(NULL, ring->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
        if (ring->memory == MAP_FAILED) {
            ring->memory = NULL;
            r = errno == ENOMEM
                    ? error_from_errno(error, errno, name, "mapping the ring")
                    : error_set(error, GAD_BAD_DESCRIPTOR, name, "the ring cannot be mapped: %s",
                                strerrordesc_np(errno));
        }
    }
    if (!r)
        map_pages(ring);
    struct entry_call call;
    call.ring = ring;
    if (!r)
        r = entry_call(&call, entries_adopt, error);
    if (r) {
        ring_free(ring);
        return r;
    }
    *ret_ring = ring;
    return 0;
}

struct ring *ring_free(struct ring *ring)
{
    if (ring) {
        if (ring->memory)
            munmap(ring->memory, ring->size_bytes);
        free(ring);
    }
    return NULL;
}

static int block_request(struct ring *ring, uint32_t slot, struct gad_error *error)
{
    struct entry_call call;
    call.ring = ring;
    call.slot = slot;
    ring->blocks[slot].sequence++;
    ring->blocks[slot].state = BLOCK_ASKED;
    ring->has_asked = true;
    return entry_call(&call, entry_write, error);
}

void ring_begin(struct ring *ring, const struct ring_walk *walk)
{
    ring->walk = *walk;
    ring->next_position = 0;
    ring->has_next = walk->find(walk, &ring->next_position);
    ring->n_open = 0;
    ring->last = ring->n_slots;
    ring->newest = ring->n_slots - 1;
    for (uint32_t i = 0; i < ring->n_slots; i++) {
        enum block_state *state = &ring->blocks[i].state;
        ring->n_stale += *state == BLOCK_ASKED; /* behind the end of an open axis, in vain */
        *state = is_awaited(&ring->blocks[i]) ? BLOCK_STALE : BLOCK_FREE;
    }
    ring->n_busy = 0;
    ring->low = ring->next_position;
    ring->drained = 0;
}

/* Whether the last block can serve this box too; if so it does. */
static bool last_block_extend(struct ring *ring, const struct port_box *box)
{
    if (ring->last == ring->n_slots)
        return false;
    struct block *block = &ring->blocks[ring->last];
    if (block->state == BLOCK_FREE || !ring_box_is_inside(ring->array->ndim, box, &block->box))
        return false;
    block->last = ring->next_position;
    block->n_positions++;
    return true;
}

/* None while some are stale. The one that was used longest ago: its lines have left the other
 * side's own cache. Writing to lines that still are there is several times slower. Of a stream the
 * first one: it moves slowly enough for few slots, and those stay in the caches. */
static uint32_t free_slot(const struct ring *ring)
{
    uint32_t before = ring->array->at.provider.is_stream ? ring->n_slots - 1 : ring->newest;
    for (uint32_t i = 1; i <= ring->n_slots && ring->n_stale == 0; i++) {
        uint32_t slot = (before + i) % ring->n_slots;
        if (ring->blocks[slot].state == BLOCK_FREE)
            return slot;
    }
    return ring->n_slots;
}

/* Whether the client has enough to do, and can do all of that without this block, which shares no
 * row with it: a stream's producer goes from row to row. */
static bool is_for_later(const struct ring *ring, const struct port_box *box)
{
    bool is_apart = ring->walk.n_ahead > 0 && ring->n_busy >= ring->walk.n_ahead;
    for (uint32_t i = 0; i < ring->n_slots && is_apart; i++) {
        const struct block *block = &ring->blocks[i];
        is_apart = block->state != BLOCK_ASKED ||
                   box->start[0] >= block->box.start[0] + block->box.count[0];
    }
    return is_apart;
}

int ring_ask(struct ring *ring, struct gad_error *error)
{
    struct port_box box;
    while (ring->has_next && ring->n_open < RING_POSITIONS_AHEAD) {
        ring->walk.box(&ring->walk, ring->next_position, box.start, box.count);
        if (!last_block_extend(ring, &box)) {
            if (is_for_later(ring, &box))
                return 0;
            uint32_t slot = free_slot(ring);
            if (slot == ring->n_slots)
                return 0;
            struct block *block = &ring->blocks[slot];
            ring_widen_to_chunk(ring->array, ring->slot_bytes, &ring->walk, ring->next_position,
                                &box);
            block->box = box;
            block->first = block->last = ring->next_position;
            block->n_positions = 1;
            block->n_given = 0;
            ring->last = ring->newest = slot;
            ring->n_busy++;
            int r = block_request(ring, slot, error);
            if (r)
                return r;
        }
        ring->next_position++;
        ring->has_next = ring->walk.find(&ring->walk, &ring->next_position);
        ring->n_open++;
    }
    return 0;
}

/* What it says does not matter any more. */
static void stale_answered(struct ring *ring, struct block *block)
{
    block->state = BLOCK_FREE;
    ring->n_stale--;
}

_Static_assert(RING_MAX_SLOTS <= 64, "a bit for each position that may have a slot");

static bool is_in_window(const struct ring *ring, uint64_t position)
{
    return !ring->array->at.provider.is_stream || position - ring->low < ring->n_slots;
}

/* Positions follow each other: planner_check_streams() has seen to that. */
static void note_drained(struct ring *ring, uint64_t position)
{
    if (!ring->array->at.provider.is_stream)
        return;
    ring->drained |= UINT64_C(1) << (position - ring->low);
    for (; ring->drained & 1; ring->drained >>= 1)
        ring->low++;
}

/* So many rows of the block are there. */
static int rows_answered(struct ring *ring, struct block *block, uint64_t n_rows,
                         struct gad_error *error)
{
    bool is_possible = n_rows <= (uint64_t)block->box.count[0];
    int64_t end = block->box.start[0] + (is_possible ? (int64_t)n_rows : 0);
    if (is_possible && n_rows > 0)
        ring->least_rows = end > ring->least_rows ? end : ring->least_rows;
    if (n_rows < (uint64_t)block->box.count[0])
        ring->most_rows = min_i64(ring->most_rows, end);
    ring->has_next &= ring->most_rows == INT64_MAX;
    if (!is_possible || ring->least_rows > ring->most_rows) {
        error_set(error, GAD_PROVIDER_FAILED, ring->name,
                  "the client says of its rows what cannot be");
        error_expected(error, "no rows behind the end, nor more than were asked for");
        error_found(error, "%llu rows from row %lld on", (unsigned long long)n_rows,
                    (long long)block->box.start[0]);
        return GAD_PROVIDER_FAILED;
    }
    block->state = n_rows > 0 ? BLOCK_READY : BLOCK_FREE;
    ring->n_busy -= n_rows == 0;
    return 0;
}

static int block_answered(struct ring *ring, struct block *block, uint32_t status,
                          struct gad_error *error)
{
    if (status != 0) {
        const char *why = status <= INT32_MAX ? strerrordesc_np((int)status) : NULL;
        error_set(error, GAD_PROVIDER_FAILED, ring->name, "the client could not %s a block: %s",
                  ring->is_output ? "store" : "provide", why ? why : "an unknown error");
        error_found(error, "errno %u", status);
        return GAD_PROVIDER_FAILED;
    }
    block->state = ring->is_output ? BLOCK_FREE : BLOCK_READY;
    ring->n_busy -= ring->is_output ? 1 : 0;
    if (ring->is_output)
        note_drained(ring, block->first);
    return 0;
}

int ring_collect(struct ring *ring, bool *ret_has_news, struct gad_error *error)
{
    struct entry_call call;
    bool had_stale = ring->n_stale > 0;
    call.ring = ring;
    *ret_has_news = false;
    int r = entry_call(&call, entries_read, error);
    for (uint32_t i = 0; i < ring->n_slots && !r; i++) {
        struct block *block = &ring->blocks[i];
        if (!is_awaited(block) || call.answers[i].done != block->sequence)
            continue;
        *ret_has_news = true;
        if (block->state == BLOCK_STALE)
            stale_answered(ring, block);
        else
            r = block_answered(ring, block, call.answers[i].status, error);
        if (!r && is_open(ring) && block->state == BLOCK_READY)
            r = rows_answered(ring, block, call.answers[i].n_rows, error);
    }
    if (!r && had_stale && ring->n_stale == 0 && !ring->is_output)
        r = ring_ask(ring, error); /* it was put off */
    return r;
}

static uint32_t slot_of(const struct ring *ring, uint64_t position)
{
    uint32_t i = 0;
    if (ring->is_output)
        return is_in_window(ring, position) ? free_slot(ring) : ring->n_slots;
    for (; i < ring->n_slots; i++) {
        const struct block *block = &ring->blocks[i];
        if (block->state == BLOCK_READY && position >= block->first && position <= block->last)
            break;
    }
    return i;
}

unsigned ring_n_ready(const struct ring *ring)
{
    enum block_state ready = ring->is_output ? BLOCK_FREE : BLOCK_READY;
    unsigned n = 0;
    if (ring->n_stale > 0)
        return 0;
    for (uint32_t i = 0; i < ring->n_slots; i++)
        n += ring->blocks[i].state == ready;
    return n;
}

bool ring_has(const struct ring *ring, uint64_t position)
{
    return slot_of(ring, position) < ring->n_slots;
}

bool ring_take(struct ring *ring, uint64_t position, uint32_t *ret_slot)
{
    uint32_t slot = slot_of(ring, position);
    if (slot == ring->n_slots)
        return false;
    if (ring->is_output) {
        ring->blocks[slot].state = BLOCK_LENT;
        ring->blocks[slot].first = position;
        ring->newest = slot;
        ring->n_busy++;
    }
    *ret_slot = slot;
    return true;
}

int ring_give(struct ring *ring, uint64_t position, uint32_t slot, struct gad_error *error)
{
    struct block *block = &ring->blocks[slot];
    if (ring->is_output) {
        assert(block->state == BLOCK_LENT);
        ring->walk.box(&ring->walk, position, block->box.start, block->box.count);
        return block_request(ring, slot, error);
    }
    assert(block->state == BLOCK_READY);
    ring->n_open--;
    block->n_given++;
    if (block->n_given == block->n_positions) {
        /* An open block may end early here: the next position of the same box asks for it again. */
        block->state = BLOCK_FREE;
        ring->n_busy--;
    }
    return ring_ask(ring, error);
}

void ring_drop(struct ring *ring, uint32_t slot)
{
    if (ring->is_output && ring->blocks[slot].state == BLOCK_LENT) {
        ring->blocks[slot].state = BLOCK_FREE;
        ring->n_busy--;
    }
}

bool ring_has_asked(const struct ring *ring)
{
    return ring->has_asked;
}

bool ring_wants_signal(struct ring *ring)
{
    struct entry_call call;
    struct gad_error ignored; /* a ring without memory fails the job when its answers are read */
    if (!ring->has_asked)
        return false;
    call.ring = ring;
    bool is_wanted = entry_call(&call, wish_read, &ignored) || call.is_wanted || !ring->was_told;
    ring->has_asked = false;
    ring->was_told |= is_wanted;
    return is_wanted;
}

int ring_wish_signal(struct ring *ring, struct gad_error *error)
{
    struct entry_call call;
    call.ring = ring;
    return entry_call(&call, wish_write, error);
}

/* Asked first whether there is room: the write itself can only be made not to wait for the client
 * too, whose flags they are. Whoever fills it in between is the tick's business. */
int ring_signal(const struct ring *ring, struct gad_error *error)
{
    const uint64_t one = 1;
    struct pollfd room = {.fd = ring->request_fd, .events = POLLOUT};
    errno = EAGAIN;
    if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) &&
        write(ring->request_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
        return 0;
    error_set(error, GAD_PROVIDER_FAILED, ring->name, "the client cannot be told: %s",
              strerrordesc_np(errno));
    return GAD_PROVIDER_FAILED;
}
