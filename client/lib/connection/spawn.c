/* Starts the private daemon out of a program that is not ours.
 *
 * The program may have threads, much memory, signal handlers and open descriptors, so fork() is
 * out: it would copy page tables for many milliseconds and run the program's atfork handlers. As
 * posix_spawn() does, the child shares the memory (CLONE_VM) and the calling thread waits until it
 * is done with it (CLONE_VFORK). Two of these, one inside the other: the first ends at once and is
 * waited for, so the second, the daemon, has no parent that would have to reap it.
 *
 *     caller -- clone --> middle: setsid() -- clone --> daemon: descriptors, execve()
 *       |<- waitpid() ------'                              |
 *       reads `error_number`, which the daemon's side set when something failed
 *
 * In the shared memory no signal handler of the program may run: all signals are blocked in the
 * caller before, and the daemon's side resets every handler before it unblocks them.
 */
#include "client/lib/connection/spawn.h"
#include "proto/util.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STACK_BYTES   (64 * 1024)
#define EXTRA_FD      3
#define MAX_FD_TO_TRY 4096 /* where close_range() is missing */

/* Sanitizers know the stacks of threads; these are stacks of none. */
#define NOT_INSTRUMENTED __attribute__((no_sanitize("address", "thread")))

extern char **environ;

struct spawn {
    char *const *argv;
    int log_fd, extra_fd;
    char *stacks; /* two */
    int error_number;
};

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); /* fails for those that have no handler */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* dup2() onto itself would leave CLOEXEC set, so sources are moved out of the way first. */
static int set_descriptors(const struct spawn *spawn)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int first = EXTRA_FD + 1;
    null = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, first);
    int log = fcntl(spawn->log_fd, F_DUPFD_CLOEXEC, first);
    int extra = fcntl(spawn->extra_fd, F_DUPFD_CLOEXEC, first);
    if (null < 0 || log < 0 || extra < 0)
        return errno;
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0 || dup2(extra, EXTRA_FD) < 0)
        return errno;
    if (syscall(SYS_close_range, EXTRA_FD + 1, ~0u, 0) == 0)
        return 0;
    for (int fd = EXTRA_FD + 1; fd < MAX_FD_TO_TRY; fd++)
        close(fd);
    return 0;
}

NOT_INSTRUMENTED static int run_daemon(void *userdata)
{
    struct spawn *spawn = userdata;
    reset_signals();
    int r = set_descriptors(spawn);
    if (r == 0 && chdir("/"))
        r = errno;
    if (r == 0) {
        execve(spawn->argv[0], spawn->argv, environ);
        r = errno;
    }
    spawn->error_number = r;
    _exit(127);
}

NOT_INSTRUMENTED static int run_middle(void *userdata)
{
    struct spawn *spawn = userdata;
    setsid();
    char *top = spawn->stacks + 2 * STACK_BYTES;
    if (clone(run_daemon, top, CLONE_VM | CLONE_VFORK, spawn) < 0)
        spawn->error_number = errno;
    _exit(0);
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

int spawn_detached(char *const *argv, int log_fd, int extra_fd)
{
    struct spawn spawn = {.argv = argv, .log_fd = log_fd, .extra_fd = extra_fd};
    sigset_t all, before;
    int cancel_state;
    spawn.stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (spawn.stacks == MAP_FAILED)
        return errno;
    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* Without an exit signal the program's SIGCHLD handler and wait() never see the middle one. */
    pid_t pid = clone(run_middle, spawn.stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, &spawn);
    if (pid < 0)
        spawn.error_number = errno;
    else
        reap(pid);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_setcancelstate(cancel_state, NULL);
    munmap(spawn.stacks, 2 * STACK_BYTES);
    return spawn.error_number;
}
