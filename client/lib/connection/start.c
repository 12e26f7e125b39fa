/* Where the daemon is.
 *
 *     the caller's option, $GPUARRAYD_SOCKET    that one or none
 *     /run/gpuarrayd/socket                     the service, where there is one
 *     $XDG_RUNTIME_DIR/gpuarrayd/socket         the user's own daemon, started where it is not
 *     /tmp/gpuarrayd-UID/socket                 the same without a runtime directory
 *
 * What is sent to a server are the user's open files, so the server must be somebody who could open
 * them anyway or is meant to: root, the user, or the service's own user (SO_PEERCRED). A private
 * directory must be the user's and closed to others, or another user could put a socket there
 * first.
 *
 * Called by client.c, when connecting and when connecting anew.
 */
#include "client/lib/connection/start.h"
#include "client/clock.h"
#include "client/lib/connection/launch.h"
#include "proto/util.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SERVICE_SOCKET "/run/gpuarrayd/socket"
#define SERVICE_USER   "gpuarrayd"
#define PREDECESSOR_MS 1000 /* that a daemon which is leaving may hold its lock */
#define RETRY_MS       20

static int set_path(char *ret_path, size_t n_bytes, const char *directory, const char *name,
                    struct gad_error *error)
{
    int n = snprintf(ret_path, n_bytes, "%s%s", directory, name);
    if (n >= 0 && (size_t)n < n_bytes)
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, "socket", "the socket's path is too long: %.200s%s",
              directory, name);
    error_expected(error, "at most %zu bytes", n_bytes - 1);
    error_found(error, "%d bytes", n);
    return GAD_BAD_ARGUMENT;
}

/* A negative errno. The socket does not block; a full backlog is waited for. */
static int try_connect(const char *path, int64_t deadline, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    for (;;) {
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return -errno;
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
            *ret_fd = steal_fd(&fd);
            return 0;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        if (clock_left_ms(deadline) == 0)
            return -ETIMEDOUT;
        clock_sleep_ms(1);
    }
}

static bool is_absent(int error_number)
{
    return error_number == ENOENT || error_number == ENOTDIR || error_number == ECONNREFUSED;
}

static int connect_error(int error_number, const char *path, struct gad_error *error)
{
    if (is_absent(error_number))
        return error_set(error, GAD_NO_DAEMON, path, "no daemon listens on %s", path);
    if (error_number == ETIMEDOUT)
        return error_set(error, GAD_TIMEOUT, path, "the daemon on %s does not answer", path);
    if (error_number == EACCES || error_number == EPERM)
        return error_set(error, GAD_PERMISSION, path, "no permission to use the socket %s", path);
    return error_from_errno(error, error_number, path, "connect");
}

static bool is_service_user(uid_t uid)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    return getpwnam_r(SERVICE_USER, &entry, buffer, sizeof(buffer), &found) == 0 && found &&
           found->pw_uid == uid;
}

/* "65534 (nobody)" into a buffer of 64; returns it. */
static const char *user_text(uid_t uid, char text[64])
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) == 0 && found)
        snprintf(text, 64, "%u (%s)", uid, found->pw_name);
    else
        snprintf(text, 64, "%u", uid);
    return text;
}

/* Root, the caller, or the service's user. */
static int start_check_peer(int fd, struct gad_error *error)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return error_from_errno(error, errno, "socket", "SO_PEERCRED");
    if (peer.uid == 0 || peer.uid == geteuid() || is_service_user(peer.uid))
        return 0;
    char text[64];
    error_set(error, GAD_UNTRUSTED, "socket", "the server belongs to another user");
    error_expected(error, "user %s, root or " SERVICE_USER, user_text(geteuid(), text));
    error_found(error, "user %s", user_text(peer.uid, text));
    return GAD_UNTRUSTED;
}

static int connect_checked(const char *path, int64_t deadline, int *ret_fd, struct gad_error *error)
{
    _cleanup_fd_ int fd = -1;
    int r = try_connect(path, deadline, &fd);
    if (r)
        return connect_error(-r, path, error);
    r = start_check_peer(fd, error);
    if (r == 0)
        *ret_fd = steal_fd(&fd);
    return r;
}

int start_check_directory(const char *path, struct gad_error *error)
{
    struct stat st;
    if (mkdir(path, 0700) && errno != EEXIST)
        return error_from_errno(error, errno, path, "mkdir");
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EACCES))
        return error_set(error, GAD_UNTRUSTED, path, "%s is not a directory of this user", path);
    if (fd < 0 || fstat(fd, &st))
        return error_from_errno(error, errno, path, "the private directory");
    if (st.st_uid != geteuid()) {
        error_set(error, GAD_UNTRUSTED, path, "%s belongs to another user", path);
        error_expected(error, "user %u", geteuid());
        error_found(error, "user %u", st.st_uid);
        return GAD_UNTRUSTED;
    }
    if (st.st_mode & 0077) {
        error_set(error, GAD_UNTRUSTED, path, "%s is open to other users", path);
        error_expected(error, "mode 0700");
        error_found(error, "mode %04o", st.st_mode & 07777);
        return GAD_UNTRUSTED;
    }
    return 0;
}

/* $XDG_RUNTIME_DIR is believed when it is a directory of the caller's: not after sudo. */
static bool has_runtime_directory(const char *path)
{
    struct stat st;
    return path && path[0] == '/' &&
           strlen(path) + sizeof("/gpuarrayd/socket") <= SOCKET_PATH_SIZE && stat(path, &st) == 0 &&
           S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

int start_private_directory(char *ret_path, size_t n_bytes, struct gad_error *error)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    char directory[64];
    if (has_runtime_directory(runtime))
        return set_path(ret_path, n_bytes, runtime, "/gpuarrayd", error);
    snprintf(directory, sizeof(directory), "/tmp/gpuarrayd-%u", geteuid());
    return set_path(ret_path, n_bytes, directory, "", error);
}

static int start_and_connect(const struct start_options *options, const char *directory,
                             const char *path, int64_t deadline, int *ret_fd,
                             struct gad_error *error)
{
    _cleanup_fd_ int lock = -1;
    int r = launch_lock(directory, deadline, &lock, error);
    if (r)
        return r;
    int64_t patience = clock_deadline_ms(PREDECESSOR_MS);
    for (;;) {
        /* Another process may have started it meanwhile. */
        r = connect_checked(path, deadline, ret_fd, error);
        if (r != GAD_NO_DAEMON)
            return r;
        r = launch_daemon(directory, path, options->daemon_path, deadline, error);
        if (r == 0)
            return connect_checked(path, deadline, ret_fd, error);
        if (r != -EAGAIN)
            return r;
        if (clock_left_ms(patience) == 0 || clock_left_ms(deadline) == 0)
            return GAD_NO_DAEMON;
        clock_sleep_ms(RETRY_MS);
    }
}

static int connect_private(const struct start_options *options, int64_t deadline, int *ret_fd,
                           struct gad_error *error)
{
    char directory[SOCKET_PATH_SIZE], path[SOCKET_PATH_SIZE];
    int r = start_private_directory(directory, sizeof(directory), error);
    if (r == 0)
        r = start_check_directory(directory, error);
    if (r == 0)
        r = set_path(path, sizeof(path), directory, "/socket", error);
    if (r == 0)
        r = connect_checked(path, deadline, ret_fd, error);
    if (r != GAD_NO_DAEMON || options->no_private_daemon)
        return r;
    return start_and_connect(options, directory, path, deadline, ret_fd, error);
}

static const char *non_empty(const char *text)
{
    return text && text[0] ? text : NULL;
}

/* A socket that has no other daemon but one that somebody else starts. */
static int connect_service(const char *path, int64_t deadline, struct start_found *ret,
                           struct gad_error *error)
{
    struct stat st;
    int r = connect_checked(path, deadline, &ret->fd, error);
    ret->is_refused = r == GAD_NO_DAEMON && stat(path, &st) == 0;
    return r;
}

int start_connect(const struct start_options *options, int64_t deadline, struct start_found *ret,
                  struct gad_error *error)
{
    char path[SOCKET_PATH_SIZE];
    const char *given =
        options->socket ? options->socket : non_empty(secure_getenv("GPUARRAYD_SOCKET"));
    *ret = (struct start_found){.fd = -1};
    if (given) {
        int r = set_path(path, sizeof(path), given, "", error);
        return r ? r : connect_service(path, deadline, ret, error);
    }
    int r = connect_service(SERVICE_SOCKET, deadline, ret, error);
    if (r != GAD_NO_DAEMON || (ret->is_refused && options->waits_for_service))
        return r;
    *ret = (struct start_found){.fd = -1, .is_private = true};
    return connect_private(options, deadline, &ret->fd, error);
}
