/* The SIGBUS guard.
 *
 * Regions and rings are memory of clients, mapped here, and some source files are mapped, too
 * (jobs/swaths.c). A client can punch holes into memory, leave it without any where it is of huge
 * pages, or cut a file: touching such a page raises SIGBUS in the thread that does. (A file that is
 * read and not mapped shows the cut as a short read: boxio.c.) While a thread is inside
 * guard_call() the handler jumps out of the call if the address lies in one of the given mappings,
 * and restores the default action otherwise, so that a fault of our own kills the process as it
 * would without the guard.
 *
 * The signal is synchronous and the code under the guard holds no lock and owns no memory, so the
 * jump leaves nothing behind. The handler puts back the signal mask of the interrupted code itself,
 * hence sigsetjmp() does not have to save it and costs a few nanoseconds.
 *
 * Called by the engines' turns (around arithmetic and copies), by a walk's log, and by the rings
 * (around their entries).
 */
#include "daemon/worker/io/guard.h"
#include "daemon/worker/lastwords.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

struct guard {
    sigjmp_buf environment;
    const struct guard_range *ranges;
    unsigned n_ranges;
    const void *volatile address; /* written by the handler */
};

static _Thread_local struct guard *volatile guard_current;

static bool guard_covers(const struct guard *g, const char *address)
{
    for (unsigned i = 0; i < g->n_ranges; i++) {
        const struct guard_range *r = &g->ranges[i];
        if (address >= r->base && (size_t)(address - r->base) < r->size_bytes)
            return true;
    }
    return false;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    struct guard *g = guard_current;
    if (g && info->si_code > 0 && guard_covers(g, info->si_addr)) {
        g->address = info->si_addr;
        pthread_sigmask(SIG_SETMASK, &((const ucontext_t *)context)->uc_sigmask, NULL);
        siglongjmp(g->environment, 1);
    }
    /* Not ours to survive: the access is repeated and meets the default action. */
    lastwords_note(number, info);
    signal(number, SIG_DFL);
    if (info->si_code <= 0)
        raise(number); /* sent by somebody: delivered when this returns */
}

int guard_install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

int guard_call(const struct guard_range *ranges, unsigned n_ranges, int (*call)(void *),
               void *argument, const void **ret_address)
{
    struct guard g = {.ranges = ranges, .n_ranges = n_ranges};
    struct guard *const outer = guard_current;
    if (sigsetjmp(g.environment, 0)) {
        guard_current = outer;
        *ret_address = g.address;
        return -EFAULT;
    }
    guard_current = &g;
    int r = call(argument);
    guard_current = outer;
    return r;
}
