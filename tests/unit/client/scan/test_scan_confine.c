#include "client/scan/scan_confine.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Each in a child: its exit status is 0 where the call was refused. */
static int open_file(void)
{
    return open("/dev/null", O_RDONLY);
}
static int make_descriptor(void)
{
    return memfd_create("x", 0);
}
static int copy_descriptor(void)
{
    return dup(0);
}
static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}
static int start_program(void)
{
    char *const words[] = {"/bin/true", NULL};
    return execv(words[0], words);
}
static int start_process(void)
{
    return fork();
}
static int send_signal(void)
{
    return kill(getppid(), 0);
}
static int make_code(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -1 : 0;
}
static int cut_file(void)
{
    return ftruncate(1, 0);
}
static int remove_file(void)
{
    return unlink("/nonexistent");
}

static const char no_path[1] = "";

static int look_elsewhere(void)
{
    struct statx st;
    return (int)syscall(SYS_statx, 0, "/dev/null", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                        STATX_BASIC_STATS, &st);
}
/* It may ask a file system of somebody's. */
static int look_in_sync(void)
{
    struct statx st;
    return (int)syscall(SYS_statx, 0, no_path, AT_EMPTY_PATH, STATX_BASIC_STATS, &st);
}

static int (*const refused[])(void) = {
    open_file,   make_descriptor, copy_descriptor, make_socket, start_program,  start_process,
    send_signal, make_code,       cut_file,        remove_file, look_elsewhere, look_in_sync};

static int try(int (*call)(void))
{
    pid_t child = fork();
    if (child == 0) {
        if (scan_confine(no_path) != 0)
            _exit(2);
        errno = 0;
        int r = call();
        _exit(r < 0 && errno == ENOSYS ? 0 : 1);
    }
    int status = -1;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    return status;
}

Test(scan_confine, nothing_new_can_be_had)
{
    for (unsigned i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        cr_assert(eq(int, try(refused[i]), 0), "call %u", i);
}

static int readable_fd;

static int read_and_allocate(void)
{
    char byte;
    struct statx st;
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool is_well = p != MAP_FAILED && pread(readable_fd, &byte, 1, 0) == 1 && byte == 'x' &&
                   statx(readable_fd, no_path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                         STATX_BASIC_STATS, &st) == 0 &&
                   st.stx_size == 1;
    errno = ENOSYS;
    return is_well ? -1 : 0;
}

Test(scan_confine, what_is_there_can_be_read)
{
    readable_fd = memfd_create("x", 0);
    cr_assert(eq(long, write(readable_fd, "x", 1), 1));
    cr_assert(eq(int, try(read_and_allocate), 0));
    close(readable_fd);
}
#else
Test(scan_confine, leaves_sanitizers_alone)
{
    cr_assert(eq(int, scan_confine(""), 0));
}
#endif
