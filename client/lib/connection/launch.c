/* Starts the user's private daemon: finds the program, holds the lock, waits for readiness.
 *
 *     <directory>/lock     flock: one starter at a time
 *     <directory>/log      what the daemon says, begun anew when it has grown
 *     <directory>/socket   made by the daemon; it writes a byte to the ready pipe when it listens
 *
 * The daemon is nobody's child and shares nothing with the program that started it (spawn.c). It
 * leaves after 30 idle seconds.
 *
 * Called by start.c, which has checked the directory.
 */
#include "client/lib/connection/launch.h"
#include "client/clock.h"
#include "client/lib/connection/spawn.h"
#include "proto/system/beside.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#ifndef GAD_BINDIR
#define GAD_BINDIR "/usr/bin"
#endif

#define LOCK_RETRY_MS 2
#define MAX_LOG_BYTES (1024 * 1024)
#define IDLE_SECONDS  "30"
#define READY_FD      "3" /* where spawn_detached() puts it */

static int open_in(const char *directory, const char *name, int flags, int *ret_fd,
                   struct gad_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    *ret_fd = open(path, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *ret_fd < 0 ? error_from_errno(error, errno, path, "open") : 0;
}

int launch_lock(const char *directory, int64_t deadline, int *ret_fd, struct gad_error *error)
{
    _cleanup_fd_ int fd = -1;
    int r = open_in(directory, "lock", O_RDWR, &fd, error);
    if (r)
        return r;
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_from_errno(error, errno, directory, "flock");
        if (clock_left_ms(deadline) == 0)
            return error_set(error, GAD_TIMEOUT, directory,
                             "another process has been starting the daemon all the time");
        clock_sleep_ms(LOCK_RETRY_MS);
    }
    *ret_fd = steal_fd(&fd);
    return 0;
}

static bool find_on_path(char *ret_path)
{
    const char *list = secure_getenv("PATH");
    while (list && *list) {
        size_t n = strcspn(list, ":");
        char candidate[PATH_MAX];
        int length = snprintf(candidate, sizeof(candidate), "%.*s/gpuarrayd", (int)n, list);
        if (n > 0 && n < PATH_MAX && (size_t)length < sizeof(candidate) &&
            beside_is_program(candidate))
            return realpath(candidate, ret_path) != NULL;
        list += n + (list[n] == ':');
    }
    return false;
}

/* ret_path has PATH_MAX bytes. */
static int find_daemon(const char *given, char *ret_path, struct gad_error *error)
{
    if (!given)
        given = secure_getenv("GPUARRAYD_DAEMON");
    if (given && given[0]) {
        if (beside_is_program(given) && realpath(given, ret_path))
            return 0;
        return error_set(error, GAD_NO_DAEMON, given, "%s is not a program that can be started",
                         given);
    }
    char found[PATH_MAX];
    if (beside_find("gpuarrayd", GAD_BINDIR "/gpuarrayd", found, sizeof(found)) &&
        realpath(found, ret_path))
        return 0;
    if (find_on_path(ret_path))
        return 0;
    return error_set(error, GAD_NO_DAEMON, "gpuarrayd",
                     "no service runs here and the program gpuarrayd is neither in " GAD_BINDIR
                     " nor on the PATH");
}

static int open_log(const char *directory, int *ret_fd, struct gad_error *error)
{
    struct stat st;
    int r = open_in(directory, "log", O_WRONLY | O_APPEND, ret_fd, error);
    if (r == 0 && fstat(*ret_fd, &st) == 0 && st.st_size > MAX_LOG_BYTES && ftruncate(*ret_fd, 0))
        return error_from_errno(error, errno, directory, "ftruncate of the log");
    return r;
}

static int wait_ready(int fd, const char *directory, int64_t deadline, struct gad_error *error)
{
    char byte;
    for (;;) {
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        int n = poll(&waited, 1, clock_left_ms(deadline));
        if (n < 0 && errno != EINTR)
            return error_from_errno(error, errno, directory, "poll");
        if (n == 0)
            return error_set(error, GAD_TIMEOUT, directory,
                             "the daemon was started and is not ready; its log is %s/log",
                             directory);
        if (n < 0)
            continue;
        ssize_t got = read(fd, &byte, 1);
        if (got == 1)
            return 0;
        if (got == 0) {
            error_set(error, GAD_NO_DAEMON, directory,
                      "the daemon was started and ended at once; its log is %s/log", directory);
            return -EAGAIN;
        }
        if (errno != EINTR)
            return error_from_errno(error, errno, directory, "read");
    }
}

int launch_daemon(const char *directory, const char *socket_path, const char *daemon_path,
                  int64_t deadline, struct gad_error *error)
{
    char program[PATH_MAX];
    _cleanup_fd_ int log = -1, ready = -1, ready_daemon = -1;
    int r = find_daemon(daemon_path, program, error);
    if (r == 0)
        r = open_log(directory, &log, error);
    if (r)
        return r;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return error_from_errno(error, errno, directory, "pipe");
    ready = fds[0];
    ready_daemon = fds[1];
    char *const argv[] = {program,
                          (char *)"--private",
                          (char *)"--socket",
                          (char *)socket_path,
                          (char *)"--idle-exit",
                          (char *)IDLE_SECONDS,
                          (char *)"--ready-fd",
                          (char *)READY_FD,
                          NULL};
    r = spawn_detached(argv, log, ready_daemon);
    if (r)
        return error_set(error, GAD_NO_DAEMON, program, "%s cannot be started: %s", program,
                         strerrordesc_np(r));
    close_fd(&ready_daemon);
    return wait_ready(ready, directory, deadline, error);
}
