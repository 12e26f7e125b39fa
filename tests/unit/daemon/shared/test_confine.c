/* daemon/confine.h: what fails afterwards, and what must still work. Criterion gives each test a
 * process of its own. */
#include "daemon/confine.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

static long read_itself(void)
{
    char from = 'a', to;
    const struct iovec own = {&to, 1}, others = {&from, 1};
    return process_vm_readv(getpid(), &own, 1, &others, 1, 0);
}

static void assert_nothing_foreign(void)
{
    cr_assert(eq(int, error_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL)), EPERM));
    cr_assert(eq(int, error_of(read_itself()), EPERM));
    cr_assert(eq(int, error_of(unshare(CLONE_NEWUSER)), EPERM));
    cr_assert(eq(int, error_of(setuid(getuid())), EPERM));
    cr_assert(eq(int, error_of(socket(AF_INET, SOCK_STREAM, 0)), EPERM));
    cr_assert(eq(int, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1));
}

static int run(const char *path)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, NULL);
        _exit(errno);
    }
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *set(void *argument)
{
    *(int *)argument = error_of(socket(AF_INET, SOCK_STREAM, 0));
    return NULL;
}

Test(confine, takes_what_is_foreign_from_the_broker)
{
    cr_assert(eq(int, error_of(read_itself()), 0));
    cr_assert(eq(int, confine_broker(), 0));
    assert_nothing_foreign();
}

Test(confine, leaves_the_broker_its_children_files_and_sockets)
{
    cr_assert(eq(int, confine_broker(), 0));
    cr_assert(eq(int, run("/bin/true"), 0));
    cr_assert(ge(int, open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), 0));
    cr_assert(ge(int, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), 0));
    cr_assert(eq(int, kill(getpid(), 0), 0));
}

static void *wait_and_set(void *argument)
{
    pthread_barrier_wait(argument);
    pthread_barrier_wait(argument);
    return (void *)(intptr_t)error_of(socket(AF_INET, SOCK_STREAM, 0));
}

Test(confine, holds_for_threads_that_are_there)
{
    pthread_barrier_t barrier;
    pthread_t thread;
    void *number;
    pthread_barrier_init(&barrier, NULL, 2);
    cr_assert(eq(int, pthread_create(&thread, NULL, wait_and_set, &barrier), 0));
    pthread_barrier_wait(&barrier);
    cr_assert(eq(int, confine_broker(), 0));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, &number);
    cr_assert(eq(int, (int)(intptr_t)number, EPERM));
}

Test(confine, lets_a_worker_with_a_driver_start_and_signal_nothing)
{
    pthread_t thread;
    int number = -1;
    cr_assert(eq(int, confine_broker(), 0));
    cr_assert(eq(int, confine_worker(), 0));
    assert_nothing_foreign();
    cr_assert(eq(int, error_of(execl("/bin/true", "true", NULL)), EPERM));
    cr_assert(eq(int, error_of(kill(getppid(), 0)), EPERM));
    cr_assert(ge(int, open("/proc/self/maps", O_RDONLY | O_CLOEXEC), 0));
    cr_assert(eq(int, pthread_create(&thread, NULL, set, &number), 0));
    pthread_join(thread, NULL);
    cr_assert(eq(int, number, EPERM));
}

Test(confine, leaves_a_strict_worker_threads_and_memory)
{
    pthread_t thread;
    int number = -1;
    cr_assert(eq(int, confine_worker_strictly(), 0));
    cr_assert(eq(int, pthread_create(&thread, NULL, set, &number), 0));
    pthread_join(thread, NULL);
    cr_assert(eq(int, number, ENOSYS));
    char *large = malloc(64 << 20);
    cr_assert(ne(ptr, large, NULL));
    large[12345] = 1;
    free(large);
    cr_assert(eq(int, error_of(open("/etc/passwd", O_RDONLY | O_CLOEXEC)), ENOSYS));
}

Test(confine, hides)
{
    confine_hide();
    cr_assert(eq(int, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0));
}
