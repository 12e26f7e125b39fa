/* Regions: memfds that a session attached. The broker checks and keeps the descriptor (to attach it
 * again to the next worker); only the worker maps. */
#pragma once

#include "daemon/broker/account.h"
#include "daemon/broker/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct broker;
struct message;
struct session;

struct region {
    struct broker *broker;
    struct list link, id_link, session_link;
    uint64_t id;
    unsigned n_refs; /* its session, and the jobs that use it */
    uid_t uid;
    struct session *session; /* NULL: detached or gone */
    int fd;
    uint64_t size_bytes, device, inode;
    bool is_writable;
    bool is_at_worker; /* announced to the worker that lives now */
    uint32_t pending_id;
    bool is_pending;
    bool is_broken;  /* the worker refused it */
    bool has_waiter; /* the session waits for the answer to waiter_id */
    uint32_t waiter_id;
    struct charge bytes_charge, fd_charge;
};

/* Takes the descriptor; answers the request when the worker has mapped it. */
int region_attach(struct session *session, uint32_t id, int fd_take, uint64_t size_bytes,
                  bool is_writable, struct gad_error *error) GAD_MUST_CHECK;
int region_detach(struct session *session, uint64_t region_id,
                  struct gad_error *error) GAD_MUST_CHECK;
void region_session_gone(struct region *region);

/* Looked up inside the user; NULL when there is none that is attached and was answered. */
struct region *region_find(const struct broker *broker, uid_t uid, uint64_t id);
void region_ref(struct region *region);
void region_unref(struct region *region);

void regions_worker_ready(struct broker *broker);
void regions_worker_lost(struct broker *broker);
/* The worker does not come up: nobody need wait to attach. */
void regions_refuse(struct broker *broker, const struct gad_error *error);
void region_answered(struct region *region, const struct message *message);
