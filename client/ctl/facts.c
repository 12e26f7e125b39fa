/* Which daemon is at the other end of a connection: its socket, who listens there, what it says.
 *
 * What the kernel says of the socket (its path, the process that began to listen) is kept apart
 * from what the daemon says of itself (its process, version): when both name the same process, a
 * signal to it reaches the daemon; when they differ, somebody else made the socket for it.
 *
 * Called by daemon.c and version.c.
 */
#include "client/ctl/facts.h"

#include "proto/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* As the library looks for it. */
void facts_private_path(const char *name, char *buffer, size_t n_bytes)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof("/gpuarrayd/socket");
    struct stat st;
    if (runtime && runtime[0] == '/' && strlen(runtime) <= most && stat(runtime, &st) == 0 &&
        S_ISDIR(st.st_mode) && st.st_uid == geteuid())
        snprintf(buffer, n_bytes, "%s/gpuarrayd/%s", runtime, name);
    else
        snprintf(buffer, n_bytes, "/tmp/gpuarrayd-%u/%s", geteuid(), name);
}

static enum daemon_kind kind_of(const char *socket)
{
    char own[256];
    facts_private_path("socket", own, sizeof(own));
    if (strcmp(socket, CTL_SERVICE_SOCKET) == 0)
        return DAEMON_SERVICE;
    return strcmp(socket, own) == 0 ? DAEMON_PRIVATE : DAEMON_OTHER;
}

const char *facts_kind_name(enum daemon_kind kind)
{
    switch (kind) {
    case DAEMON_SERVICE: return "service";
    case DAEMON_PRIVATE: return "private";
    case DAEMON_OTHER: break;
    }
    return "named by GPUARRAYD_SOCKET";
}

static int ask_kernel(struct gad_client *client, struct daemon_facts *facts,
                      struct gad_error *error)
{
    struct sockaddr_un address = {0};
    struct ucred peer;
    socklen_t n_address = sizeof(address), n_peer = sizeof(peer);
    if (getpeername(gad_fd(client), (struct sockaddr *)&address, &n_address) ||
        getsockopt(gad_fd(client), SOL_SOCKET, SO_PEERCRED, &peer, &n_peer))
        return error_from_errno(error, errno, "socket", "asking who listens");
    snprintf(facts->socket, sizeof(facts->socket), "%.*s", (int)sizeof(address.sun_path),
             address.sun_path);
    facts->uid = peer.uid;
    facts->listener = peer.pid;
    facts->kind = kind_of(facts->socket);
    return 0;
}

bool facts_are_of(const struct daemon_facts *facts, const struct gad_client *client)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(gad_fd(client), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.pid == facts->listener && peer.uid == facts->uid;
}

int facts_get(struct gad_client *client, struct daemon_facts *ret, struct gad_error *error)
{
    char *text;
    *ret = (struct daemon_facts){0};
    int r = (int)gad_info_json(client, &text, error);
    if (!r)
        r = ask_kernel(client, ret, error);
    if (r)
        return r;
    ret->info = json_tokener_parse(text);
    free(text);
    ret->pid = (pid_t)json_object_get_int(json_object_object_get(ret->info, "pid"));
    return 0;
}

void facts_deinit(struct daemon_facts *facts)
{
    json_object_put(facts->info);
    facts->info = NULL;
}

const char *facts_text(const struct daemon_facts *facts, const char *key)
{
    struct json_object *value = json_object_object_get(facts->info, key);
    return value ? json_object_get_string(value) : "";
}
