/* The crash page: a memfd shared by worker and broker. Per worker thread: which job and tile is in
 * hand, since when, and whether it is in arithmetic or in a system call that may block. When the
 * worker dies the broker reads who was in hand; while it lives the broker sees who hangs.
 * Written by relaxed stores of the owning thread; n_threads is fixed at start. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define CRASHPAGE_MAX_THREADS 1024u

enum crashpage_state { CRASHPAGE_IDLE, CRASHPAGE_COMPUTING, CRASHPAGE_BLOCKING };

struct crashpage_thread {
    _Atomic uint64_t job; /* 0: none */
    _Atomic uint64_t tile;
    _Atomic uint64_t since_ns; /* CLOCK_MONOTONIC when this tile was begun */
    _Atomic uint32_t state;
    uint32_t padding[9]; /* one cache line each */
};

struct crashpage {
    _Atomic uint32_t n_threads;
    uint32_t padding[15];
    struct crashpage_thread threads[CRASHPAGE_MAX_THREADS];
};

_Static_assert(sizeof(struct crashpage_thread) == 64, "one cache line a thread");

/* A memfd of the page's size (broker), and mapping it (both; never unmapped by the worker). */
int crashpage_create(int *ret_fd);
int crashpage_map(int fd, struct crashpage **ret_page);
void crashpage_unmap(struct crashpage *page);

static inline void crashpage_enter(struct crashpage_thread *t, uint64_t job, uint64_t tile,
                                   uint64_t now_ns, enum crashpage_state state)
{
    atomic_store_explicit(&t->tile, tile, memory_order_relaxed);
    atomic_store_explicit(&t->since_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&t->state, state, memory_order_relaxed);
    atomic_store_explicit(&t->job, job, memory_order_release);
}

static inline void crashpage_leave(struct crashpage_thread *t)
{
    atomic_store_explicit(&t->job, 0, memory_order_release);
    atomic_store_explicit(&t->state, CRASHPAGE_IDLE, memory_order_relaxed);
}
