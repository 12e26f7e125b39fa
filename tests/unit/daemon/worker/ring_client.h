/* A client of the worker's that serves the rings of arrays in its heap. */
#pragma once

#include "tests/unit/daemon/worker/harness.h"
#include "proto/util.h"
#include "proto/wire/ring.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define MIB        (1024u * 1024u)
#define SLOT_BYTES (256u * 1024u)

/* The client's side of one ring over a dense array in its heap. */
struct client {
    char *values;
    int ndim;
    int64_t shape[3];
    int64_t item_bytes;
    bool is_output;
    unsigned n_slots;
    uint64_t slot_bytes;
    int fds[3];
    char *memory;
    pthread_t thread;
    _Atomic bool is_over;
    _Atomic unsigned n_answers;
    struct client *after; /* it answers once for each answer of that one, and once more; or NULL */
    _Atomic unsigned fail_at; /* 0: never */
    _Atomic bool is_silent;
    /* Of an open stream: it ends so; -1: it is none. What it says of a block of so many rows from
     * `start` on, where it does not tell the truth; NULL: it does. */
    _Atomic int64_t end_row;
    uint64_t (*_Atomic lie)(int64_t start, int64_t count);
};

static inline uint64_t rows_there(const struct client *c, const struct ring_entry *entry)
{
    int64_t start = entry->start[0], count = entry->count[0];
    if (c->lie)
        return c->lie(start, count);
    return c->end_row <= start ? 0 : (uint64_t)min_i64(c->end_row - start, count);
}

static inline void copy_block(struct client *c, const struct ring_entry *entry, char *slot)
{
    int64_t strides[3], row = c->item_bytes;
    array_c_strides(c->ndim, c->shape, c->item_bytes, strides);
    int64_t count[3] = {1, 1, 1}, offset = 0;
    for (int i = 0; i < c->ndim; i++) {
        count[3 - c->ndim + i] = entry->count[i];
        offset += entry->start[i] * strides[i];
    }
    row *= count[2];
    for (int64_t x = 0; x < count[0]; x++)
        for (int64_t y = 0; y < count[1]; y++, slot += row) {
            char *at = c->values + offset + (c->ndim > 2 ? x * strides[0] : 0) +
                       (c->ndim > 1 ? y * strides[c->ndim - 2] : 0);
            if (c->is_output)
                memcpy(at, slot, (size_t)row);
            else
                memcpy(slot, at, (size_t)row);
        }
}

static inline void answer(struct client *c, uint32_t slot, uint64_t *last)
{
    struct ring_entry *entry = ring_entry_at(c->memory, slot);
    uint64_t request = atomic_load(&entry->request);
    const uint64_t one = 1;
    if (request == last[slot])
        return;
    last[slot] = request;
    struct ring_entry there = {.ndim = 0};
    memcpy(there.start, entry->start, sizeof(there.start));
    memcpy(there.count, entry->count, sizeof(there.count));
    if (c->end_row >= 0) {
        entry->n_rows = rows_there(c, entry);
        there.count[0] = (int64_t)min_u64(entry->n_rows, c->lie ? 0 : UINT64_MAX);
    }
    copy_block(c, &there, c->memory + ring_slot_offset_bytes(c->n_slots, c->slot_bytes, slot));
    entry->status = ++c->n_answers == c->fail_at ? 5 : 0;
    atomic_store(&entry->done, request);
    cr_assert(eq(i64, write(c->fds[2], &one, sizeof(one)), 8));
}

/* In the order of the array's first axis, as far as the other client has come. */
static inline void answer_in_step(struct client *c, uint64_t *last)
{
    while (c->n_answers <= c->after->n_answers) {
        uint32_t first = c->n_slots;
        int64_t start = INT64_MAX;
        for (uint32_t i = 0; i < c->n_slots; i++) {
            const struct ring_entry *entry = ring_entry_at(c->memory, i);
            if (atomic_load(&entry->request) == last[i] || entry->start[0] >= start)
                continue;
            first = i;
            start = entry->start[0];
        }
        if (first == c->n_slots)
            return;
        answer(c, first, last);
    }
}

static inline void *serve(void *argument)
{
    struct client *c = argument;
    uint64_t last[RING_MAX_SLOTS] = {0}, count;
    while (!c->is_over) {
        struct pollfd p = {.fd = c->fds[1], .events = POLLIN};
        if (c->after) {
            answer_in_step(c, last);
            (void)poll(NULL, 0, 1);
            continue;
        }
        if (poll(&p, 1, 5) <= 0 || c->is_silent)
            continue;
        cr_assert(eq(i64, read(c->fds[1], &count, sizeof(count)), 8));
        for (uint32_t i = 0; i < c->n_slots; i++)
            answer(c, i, last);
    }
    return NULL;
}

static inline void client_start_slots(struct client *c, void *values, int64_t item_bytes, int ndim,
                                      const int64_t *shape, unsigned n_slots, uint64_t slot_bytes,
                                      bool is_output)
{
    memset(c, 0, sizeof(*c));
    c->values = values;
    c->item_bytes = item_bytes;
    c->ndim = ndim;
    memcpy(c->shape, shape, (size_t)ndim * sizeof(*shape));
    c->n_slots = n_slots;
    c->slot_bytes = slot_bytes;
    c->end_row = -1;
    c->is_output = is_output;
    size_t n_bytes = ring_size_bytes(n_slots, slot_bytes);
    c->fds[0] = make_memfd(n_bytes, F_SEAL_SHRINK | F_SEAL_GROW);
    c->fds[1] = eventfd(0, EFD_CLOEXEC);
    c->fds[2] = eventfd(0, EFD_CLOEXEC);
    c->memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->fds[0], 0);
    cr_assert(eq(int, pthread_create(&c->thread, NULL, serve, c), 0));
}

static inline void client_start(struct client *c, void *values, int64_t item_bytes, int ndim,
                                const int64_t *shape, unsigned n_slots, bool is_output)
{
    client_start_slots(c, values, item_bytes, ndim, shape, n_slots, SLOT_BYTES, is_output);
}

static inline void client_stop(struct client *c)
{
    c->is_over = true;
    pthread_join(c->thread, NULL);
    munmap(c->memory, ring_size_bytes(c->n_slots, c->slot_bytes));
    for (int i = 0; i < 3; i++)
        close(c->fds[i]);
}

static inline void at_provider(struct test_job *j, struct array *array, const struct client *c)
{
    array->at.kind = LOCATION_PROVIDER;
    array->at.provider.ring_fd_index = j->n_fds;
    array->at.provider.request_fd_index = j->n_fds + 1;
    array->at.provider.done_fd_index = j->n_fds + 2;
    array->at.provider.n_slots = c->n_slots;
    array->at.provider.slot_bytes = c->slot_bytes;
    for (int i = 0; i < 3; i++)
        j->fds[j->n_fds++] = c->fds[i];
}

static inline float *floats(unsigned n)
{
    float *values = malloc(n * sizeof(float));
    for (unsigned i = 0; i < n; i++)
        values[i] = (float)(i % 100003);
    return values;
}

static inline void check_unused(struct harness *h, uint64_t descriptors)
{
    cr_assert(eq(u64, harness_stat(h, "slots_lent"), 0));
    cr_assert(eq(u64, harness_stat(h, "jobs"), 0));
    cr_assert(eq(u64, harness_stat(h, "mappings"), 0));
    cr_assert(eq(u64, harness_stat(h, "descriptors"), descriptors));
}
