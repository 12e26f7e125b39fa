/* Which daemon is at the other end of a connection. */
#pragma once

#include "client/ctl/ctl.h"

#include <sys/types.h>

enum daemon_kind {
    DAEMON_SERVICE, /* the machine's: /run/gpuarrayd/socket */
    DAEMON_PRIVATE, /* at the place of this user's own */
    DAEMON_OTHER,   /* named by GPUARRAYD_SOCKET */
};

struct daemon_facts {
    enum daemon_kind kind;
    char socket[112];         /* path */
    uid_t uid;                /* of whoever listens, as the kernel says */
    pid_t listener;           /* likewise; systemd's where it made the socket */
    pid_t pid;                /* as the daemon says */
    struct json_object *info; /* server.info */
};

int facts_get(struct gad_client *client, struct daemon_facts *ret, struct gad_error *error);
/* Whether the connection still leads to that process: requests connect anew where it was lost. */
bool facts_are_of(const struct daemon_facts *facts, const struct gad_client *client);
void facts_deinit(struct daemon_facts *facts);
const char *facts_kind_name(enum daemon_kind kind);
/* Where this user's private daemon is or would be; "log" beside it. */
void facts_private_path(const char *name, char *buffer, size_t n_bytes);
/* server.info's text or number at a key, as text; "" when it is not there. */
const char *facts_text(const struct daemon_facts *facts, const char *key);
