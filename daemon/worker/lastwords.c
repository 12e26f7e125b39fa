/* The last words of a worker that a signal ends.
 *
 * A tile that makes its thread fault, and somebody who sends the worker a SIGSEGV, look alike to
 * whoever waits for the process: only the signal's handler is told where it came from. It marks the
 * thread that faulted, whose job is then the suspect, or says that the signal was sent, which is no
 * job's doing; then the signal meets the action that it would have met without us. A signal that a
 * process sends to itself (abort(), raise()) is of the thread that handles it.
 *
 * A handler needs some stack: a thread that has none left dies without a word, and then everybody
 * who had a tile in hand is a suspect.
 *
 * SIGBUS belongs to the guard (guard.c), which calls lastwords_note() for those that are not its
 * own.
 */
#include "daemon/worker/lastwords.h"
#include "proto/util.h"

static const int numbers[] = {SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
static struct sigaction previous[ARRAY_LENGTH(numbers)];
static struct crashpage *the_page;
static _Thread_local struct crashpage_thread *own_page;

void lastwords_own(struct crashpage_thread *own)
{
    own_page = own;
}

void lastwords_forget(void)
{
    own_page = NULL;
    the_page = NULL;
}

void lastwords_note(int number, const siginfo_t *info)
{
    struct crashpage_thread *own = own_page;
    bool is_ours = info->si_code > 0 || info->si_pid == getpid();
    if (!is_ours && the_page)
        atomic_store(&the_page->sent_signal, (uint32_t)number);
    else if (is_ours && own)
        atomic_store(&own->fault_signal, (uint32_t)number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    lastwords_note(number, info);
    for (unsigned i = 0; i < ARRAY_LENGTH(numbers); i++)
        if (numbers[i] == number)
            sigaction(number, &previous[i], NULL);
    /* A fault is met again by the same instruction; what was sent is delivered on return. Behind a
     * trap the thread would go on. */
    if (info->si_code <= 0 || number == SIGTRAP || number == SIGSYS)
        raise(number);
}

int lastwords_install(struct crashpage *page)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    the_page = page;
    for (unsigned i = 0; i < ARRAY_LENGTH(numbers); i++) {
        struct sigaction found;
        if (sigaction(numbers[i], NULL, &found) < 0)
            return -errno;
        bool is_installed = (found.sa_flags & SA_SIGINFO) && found.sa_sigaction == on_signal;
        if (!is_installed && (sigaction(numbers[i], &action, &previous[i]) < 0))
            return -errno;
    }
    return 0;
}
