/* Attempts of a worker that was taken over, as its code would make them: to open, start, watch,
 * signal or talk to what is not its own, and to write to what it was given for reading. Refused
 * means that the kernel did not let it, by EPERM, EACCES or ENOSYS; any other failure would say
 * that only the arguments were wrong. */
#include "tests/integration/worker_escape.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_FD 1024

static unsigned n_attempts, n_escapes;

static void judge(const char *what, long result)
{
    int number = errno;
    n_attempts++;
    if (result < 0 && (number == EPERM || number == EACCES || number == ENOSYS))
        return;
    n_escapes++;
    fprintf(stderr, "escape: %s: %ld, errno %d\n", what, result, result < 0 ? number : 0);
}

static void try_files(void)
{
    judge("open", open("/etc/passwd", O_RDONLY | O_CLOEXEC));
    judge("openat2", syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", (long[]){O_RDONLY, 0, 0}, 24L));
    judge("creat", open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    judge("unlink", unlink("/tmp/gpuarrayd-escape"));
    judge("memfd_create", memfd_create("escape", MFD_CLOEXEC));
    judge("io_uring_setup", syscall(SYS_io_uring_setup, 4L, (long[64]){0}));
}

/* All that it was given: regular files and memfds, some of them for reading only. */
static void try_descriptors(void)
{
    for (int fd = 3; fd < MAX_FD; fd++) {
        struct stat st;
        char path[32];
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
            continue;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        judge(path, open(path, O_RDWR | O_CLOEXEC));
        if ((flags & O_ACCMODE) != O_RDONLY)
            continue;
        void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        judge("a mapping that can be written to", map == MAP_FAILED ? -1 : 0);
    }
}

static void try_processes(void)
{
    char byte = 0, target = 0, program[] = "/bin/true", *words[] = {program, NULL};
    pid_t broker = getppid();
    const struct iovec own = {&byte, 1}, others = {&target, 1};
    judge("ptrace", ptrace(PTRACE_SEIZE, broker, NULL, NULL));
    judge("process_vm_readv", process_vm_readv(broker, &own, 1, &others, 1, 0));
    judge("process_vm_writev", process_vm_writev(broker, &own, 1, &others, 1, 0));
    judge("kill", kill(broker, 0));
    judge("tgkill", syscall(SYS_tgkill, broker, broker, 0));
    judge("pidfd_open", syscall(SYS_pidfd_open, broker, 0));
    judge("F_SETOWN", fcntl(STDERR_FILENO, F_SETOWN, broker));
    judge("execve", execve(program, words, words + 1));
    judge("unshare", unshare(CLONE_NEWUSER));
    judge("prctl", prctl(PR_SET_DUMPABLE, 1));
    judge("prlimit", syscall(SYS_prlimit64, broker, 0, NULL, NULL));
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(0);
    judge("fork", child);
}

static void try_talking(void)
{
    int pair[2];
    judge("AF_INET", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    judge("AF_UNIX", socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    judge("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
}

static void try_code(void)
{
    void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    judge("code by mmap", map == MAP_FAILED ? -1 : 0);
    map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    judge("code by mprotect", mprotect(map, 4096, PROT_READ | PROT_EXEC));
    munmap(map, 4096);
}

void worker_escape(void)
{
    try_files();
    try_descriptors();
    try_processes();
    try_talking();
    try_code();
    fprintf(stderr, "escape: %u of %u attempts succeeded\n", n_escapes, n_attempts);
}
