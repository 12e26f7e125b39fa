#include "daemon/worker/cuda/fault.h"
#include "daemon/worker_exit.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ILLEGAL_ADDRESS 700 /* of the runtime */

static void *fault_main(void *argument)
{
    device_fault(argument, ILLEGAL_ADDRESS);
}

/* What the process says on stderr, and how it ends, with several threads that meet the fault. */
static int fault_with(unsigned n_threads, char *ret_said, size_t n_bytes)
{
    char what[] = "a copy to the device";
    int fds[2], status;
    cr_assert(eq(int, pipe(fds), 0));
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        dup2(fds[1], STDERR_FILENO);
        for (unsigned i = 1; i < n_threads; i++)
            pthread_create(&thread, NULL, fault_main, what);
        device_fault(what, ILLEGAL_ADDRESS);
    }
    close(fds[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(fds[0], ret_said + used, n_bytes - used - 1)) > 0;)
        used += (size_t)n;
    ret_said[used] = '\0';
    close(fds[0]);
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    cr_assert(eq(int, WIFEXITED(status), 1));
    return WEXITSTATUS(status);
}

Test(fault, leaves_with_its_own_status_and_the_runtimes_words)
{
    char said[1024];
    cr_assert(eq(int, fault_with(1, said, sizeof(said)), WORKER_EXIT_FAULT));
    cr_assert(eq(int, strncmp(said, "<3>gpuarrayd-worker-cuda: a copy to the device: ", 48), 0));
    cr_assert(ne(ptr, strstr(said, "cudaErrorIllegalAddress"), NULL));
}

Test(fault, is_said_once_by_whoever_meets_it_first)
{
    char said[4096];
    cr_assert(eq(int, fault_with(8, said, sizeof(said)), WORKER_EXIT_FAULT));
    const char *end = strchr(said, '\n');
    cr_assert(ne(ptr, (void *)end, NULL));
    cr_assert(eq(str, (char *)end + 1, (char *)""));
}
