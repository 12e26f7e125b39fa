/* Strikes: reads the crash page of a worker.
 *
 * The page is written by the worker's threads without locks; after its death it stands still,
 * and while it lives a torn reading can at worst mix two tiles of one thread, whose time stamps are
 * both recent: never a false hang. `job` is stored last when a tile is begun and cleared first when
 * it ends, so a thread without a job has nothing in hand whatever its other fields say.
 * A thread that faults marks itself (lastwords.c in the worker): its job is the suspect, and not
 * those that were beside it.
 *
 * Called by worker.c, once a second while jobs are active, and when the worker has ended.
 */
#include "daemon/broker/workers/strikes.h"
#include "daemon/worker_exit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

bool strikes_count(const struct death *death)
{
    if (death->was_hanging)
        return true;
    if (death->was_bad_peer)
        return false;
    switch (death->term_signal) {
    case 0:
        return death->exit_code != 0 && death->exit_code != WORKER_EXIT_ABSENT &&
               death->exit_code != WORKER_EXIT_NO_MEMORY;
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS: return !death->was_sent;
    default: return false;
    }
}

bool strikes_all(const struct death *death, unsigned n_struck)
{
    bool is_of_device = death->term_signal == 0 && death->exit_code == WORKER_EXIT_FAULT;
    return n_struck == 0 && !death->was_hanging &&
           (death->was_bad_peer || (strikes_count(death) && !is_of_device));
}

/* A thread that gets no processor does not hang. */
static uint64_t used_ns(const struct crashpage_thread *thread, uint64_t since_ns)
{
    if (atomic_load_explicit(&thread->used_since_ns, memory_order_acquire) != since_ns)
        return 0;
    return atomic_load_explicit(&thread->used_ns, memory_order_relaxed);
}

bool strikes_is_hanging(const struct crashpage_thread *thread, uint64_t now_ns,
                        const struct hang_limits *limits)
{
    if (atomic_load_explicit(&thread->job, memory_order_acquire) == 0)
        return false;
    uint64_t since_ns = atomic_load_explicit(&thread->since_ns, memory_order_relaxed);
    uint32_t state = atomic_load_explicit(&thread->state, memory_order_relaxed);
    if (since_ns >= now_ns)
        return false;
    switch (state) {
    case CRASHPAGE_COMPUTING:
        return used_ns(thread, since_ns) > limits->computing_ns ||
               now_ns - since_ns > limits->blocking_ns;
    case CRASHPAGE_WITH_DEVICE: return now_ns - since_ns > limits->computing_ns;
    case CRASHPAGE_BLOCKING: return now_ns - since_ns > limits->blocking_ns;
    default: return false;
    }
}

static unsigned n_threads(const struct crashpage *page)
{
    unsigned n = atomic_load_explicit(&page->n_threads, memory_order_relaxed);
    return n < CRASHPAGE_MAX_THREADS ? n : CRASHPAGE_MAX_THREADS;
}

bool strikes_any_hanging(const struct crashpage *page, uint64_t now_ns,
                         const struct hang_limits *limits)
{
    for (unsigned i = 0; i < n_threads(page); i++)
        if (strikes_is_hanging(&page->threads[i], now_ns, limits))
            return true;
    return false;
}

static bool is_among(const uint64_t *jobs, unsigned n, uint64_t job)
{
    for (unsigned i = 0; i < n; i++)
        if (jobs[i] == job)
            return true;
    return false;
}

bool strikes_was_sent(const struct crashpage *page, int term_signal)
{
    return term_signal != 0 &&
           atomic_load_explicit(&page->sent_signal, memory_order_acquire) == (uint32_t)term_signal;
}

static uint64_t job_in_hand(const struct crashpage_thread *thread)
{
    return atomic_load_explicit(&thread->job, memory_order_acquire);
}

static bool has_faulted(const struct crashpage_thread *thread, const struct death *death)
{
    return death->term_signal != 0 && !death->was_hanging &&
           atomic_load_explicit(&thread->fault_signal, memory_order_acquire) ==
               (uint32_t)death->term_signal;
}

static bool any_faulted_at_a_tile(const struct crashpage *page, const struct death *death)
{
    for (unsigned i = 0; i < n_threads(page); i++)
        if (has_faulted(&page->threads[i], death) && job_in_hand(&page->threads[i]) != 0)
            return true;
    return false;
}

unsigned strikes_judge(const struct crashpage *page, const struct death *death, uint64_t now_ns,
                       const struct hang_limits *limits, uint64_t *ret_jobs, unsigned max)
{
    unsigned n = 0;
    if (!strikes_count(death))
        return 0;
    bool is_known = any_faulted_at_a_tile(page, death);
    for (unsigned i = 0; i < n_threads(page) && n < max; i++) {
        const struct crashpage_thread *thread = &page->threads[i];
        uint64_t job = job_in_hand(thread);
        if (job == 0 || is_among(ret_jobs, n, job))
            continue;
        if (death->was_hanging && !strikes_is_hanging(thread, now_ns, limits))
            continue;
        if (is_known && !has_faulted(thread, death))
            continue;
        ret_jobs[n++] = job;
    }
    return n;
}

const char *strikes_describe(const struct death *death, char *buffer, unsigned n_bytes)
{
    if (death->was_hanging)
        snprintf(buffer, n_bytes, "a tile that hung");
    else if (death->was_bad_peer)
        snprintf(buffer, n_bytes, "a message that made no sense");
    else if (death->term_signal != 0)
        snprintf(buffer, n_bytes, "signal %d (%s)%s", death->term_signal,
                 strsignal(death->term_signal), death->was_sent ? " from outside" : "");
    else if (death->exit_code == WORKER_EXIT_FAULT)
        snprintf(buffer, n_bytes, "a fault of the device");
    else
        snprintf(buffer, n_bytes, "exit status %d", death->exit_code);
    return buffer;
}
