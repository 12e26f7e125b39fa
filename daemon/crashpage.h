/* The crash page: a memfd shared by worker and broker. Per worker thread: which job and tile is in
 * hand, since when, and whether it is in arithmetic, in a system call that may block, or with a
 * device. When the worker dies the broker reads who was in hand, and which thread's own fault ended
 * it (fault_signal) or that the signal was sent from outside (sent_signal); while it lives the
 * broker sees who hangs. Written by the owning thread, but for the processor's time, which
 * the worker's watch looks at (daemon/worker/watch.c). Stores are relaxed; `job` is stored last and
 * with release, and used_since_ns is for used_ns. n_threads is fixed at start. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define CRASHPAGE_MAX_THREADS 1024u
#define CRASHPAGE_NOT_YET     UINT64_MAX /* later than any time: it does not hang */

enum crashpage_state {
    CRASHPAGE_IDLE,
    CRASHPAGE_COMPUTING,
    CRASHPAGE_BLOCKING,
    CRASHPAGE_WITH_DEVICE
};

struct crashpage_thread {
    _Atomic uint64_t job; /* 0: none */
    _Atomic uint64_t tile;
    /* CLOCK_MONOTONIC when it was begun, or gave a sign of life; CRASHPAGE_NOT_YET: it waits for
     * its turn. */
    _Atomic uint64_t since_ns;
    /* The processor's time that the thread has had since then, if used_since_ns is since_ns; else
     * it was not looked at yet. */
    _Atomic uint64_t used_ns, used_since_ns;
    _Atomic uint32_t state;
    _Atomic uint32_t fault_signal; /* by which the thread ended the worker; 0: it did not */
    uint32_t padding[4];           /* one cache line each */
};

struct crashpage {
    _Atomic uint32_t n_threads;
    _Atomic uint32_t sent_signal; /* that ended the worker and came from another process; 0: none */
    uint32_t padding[14];
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

/* A sign of life of what is in hand. */
static inline void crashpage_go_on(struct crashpage_thread *t, uint64_t now_ns)
{
    atomic_store_explicit(&t->since_ns, now_ns, memory_order_relaxed);
}

/* Called by the watch alone: what the thread has used from its first look at this since_ns on. */
static inline void crashpage_use(struct crashpage_thread *t, uint64_t since_ns, uint64_t used_ns)
{
    atomic_store_explicit(&t->used_ns, used_ns, memory_order_relaxed);
    atomic_store_explicit(&t->used_since_ns, since_ns, memory_order_release);
}

static inline void crashpage_leave(struct crashpage_thread *t)
{
    atomic_store_explicit(&t->job, 0, memory_order_release);
    atomic_store_explicit(&t->state, CRASHPAGE_IDLE, memory_order_relaxed);
}
