/* The listening socket: who knocks is accepted, asked who it is (SO_PEERCRED, which cannot lie) and
 * becomes a session. A user who has used up the sessions gets some more that may only look and
 * cancel, so that nobody is locked out of the own jobs. After these a session answers its first
 * request with the refusal, so that the reason is seen; beyond a few of those of a user at a time
 * nobody is told.
 *
 * Without descriptors left accept() would fail for ever with the socket readable: a spare one is
 * given up for a moment, to take the connection and close it.
 *
 * A socket that was handed over belongs to who listens on it: nothing of it is changed, its name
 * stays, and who knocks while nobody serves is kept in its queue for the next daemon.
 *
 * Called by broker.c.
 */
#define LOG_TOPIC "server"
#include "daemon/broker/sessions/server.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/host/rundir.h"
#include "daemon/broker/sessions/session.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_PER_WAKE_UP 16u

struct server {
    struct broker *broker;
    int lock_fd, listen_fd, spare_fd;
    bool is_ours; /* the socket's name: it goes with us */
    struct loop_watch *watch;
};

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* 0: a session, maybe in reserve; positive: one that is told the error; -ENOBUFS: not even that. */
static int charge_session(struct accounts *accounts, uid_t uid, struct charge *charge,
                          struct gad_error *error)
{
    struct gad_error ignored;
    int r = account_charge(accounts, uid, ACCOUNT_SESSIONS, 1, charge, error);
    if (r <= 0 || account_charge(accounts, uid, ACCOUNT_RESERVE, 1, charge, &ignored) == 0)
        return r < 0 ? r : 0;
    return account_charge(accounts, uid, ACCOUNT_REFUSED, 1, charge, &ignored) == 0 ? r : -ENOBUFS;
}

static void welcome(struct broker *broker, int fd_take)
{
    _cleanup_fd_ int fd = fd_take;
    struct ucred peer;
    socklen_t n_bytes = sizeof(peer);
    struct gad_error error = {0};
    struct charge charge = {0};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) < 0)
        return;
    if (closer_is_full(peer.uid)) {
        log_warn(LOG_UID(peer.uid), "a connection was turned away: the user's files hang");
        return;
    }
    int r = charge_session(broker->accounts, peer.uid, &charge, &error);
    if (r < 0)
        return;
    if (r > 0)
        log_warn(LOG_UID(peer.uid), "%s", error.message);
    r = session_new(broker, steal_fd(&fd), peer.uid, peer.pid, &charge, r > 0 ? &error : NULL);
    if (r < 0)
        log_error(LOG_UID(peer.uid), "no session: %s", strerror(-r));
}

static void turn_away(struct server *server)
{
    close_fd(&server->spare_fd);
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t n_bytes = sizeof(peer);
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) == 0)
        log_error(LOG_UID(peer.uid), "no descriptors left: a connection was turned away");
    close_fd(&fd);
    server->spare_fd = open_spare();
}

unsigned server_accept(struct server *server)
{
    unsigned n = 0;
    while (n < ACCEPTS_PER_WAKE_UP) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            welcome(server->broker, fd);
            n++;
        } else if (errno == EMFILE || errno == ENFILE) {
            turn_away(server);
            break;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            break;
        }
    }
    return n;
}

/* Taken in after what was read in this round: who left has made room for who comes. */
static void on_event(void *userdata, unsigned events)
{
    struct server *server = userdata;
    (void)events;
    server->broker->has_callers = true;
}

static int listen_anew(struct server *server, const struct options *o)
{
    gid_t group = (gid_t)-1;
    int r = o->is_private ? rundir_prepare(o->socket_path) : 0;
    if (r == 0 && o->group[0]) {
        r = rundir_find_group(o->group, &group);
        if (r < 0) {
            log_error(NULL, "group '%s': %s", o->group,
                      r == -ENOENT ? "there is no such group" : strerror(-r));
            return SERVER_TOLD;
        }
    }
    if (r == 0)
        r = rundir_lock(o->socket_path, &server->lock_fd);
    if (r == 0)
        r = rundir_listen(o->socket_path, o->socket_mode, group, &server->listen_fd);
    server->is_ours = r == 0;
    return r;
}

static int take_over(struct server *server, const struct options *o)
{
    server->listen_fd = o->listen_fd;
    return rundir_lock(o->socket_path, &server->lock_fd);
}

int server_new(struct broker *broker, struct server **ret_server)
{
    const struct options *o = &broker->options;
    struct server *server = calloc(1, sizeof(*server));
    if (!server)
        return -ENOMEM;
    server->broker = broker;
    server->lock_fd = server->listen_fd = -1;
    server->spare_fd = open_spare();
    int r = o->listen_fd >= 0 ? take_over(server, o) : listen_anew(server, o);
    if (r == 0)
        r = loop_watch_new(broker->loop, server->listen_fd, on_event, server, &server->watch);
    if (r == 0)
        r = loop_watch_set(server->watch, WATCH_READ);
    if (r) {
        server_free(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

struct server *server_free(struct server *server)
{
    if (!server)
        return NULL;
    loop_watch_close(server->watch);
    if (server->is_ours)
        unlink(server->broker->options.socket_path);
    close_fd(&server->listen_fd);
    close_fd(&server->lock_fd);
    close_fd(&server->spare_fd);
    free(server);
    return NULL;
}
