/* Regions: memfds that a session attached. The broker checks and keeps the descriptor (to attach it
 * to the workers that come later); only the workers map. */
#pragma once

#include "daemon/broker/sessions/account.h"
#include "daemon/broker/deadlines.h"
#include "daemon/broker/workers/engines.h"
#include "daemon/broker/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct broker;
struct message;
struct session;
struct worker;

enum region_state {
    REGION_NOWHERE,
    REGION_ANNOUNCED, /* the worker has not answered */
    REGION_MAPPED,
    REGION_BROKEN, /* the worker refused it, or could not be told */
};

struct region_place { /* what it is to one worker that lives now */
    enum region_state state;
    uint32_t pending_id; /* while announced */
};

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
    struct region_place places[ENGINES_MAX]; /* by the worker's place */
    struct gad_error *refusal;               /* of a worker, while the session waits; NULL: none */
    bool has_waiter;                         /* the session waits for the answer to waiter_id */
    uint32_t waiter_id;
    struct deadline patience; /* one worker can map it, and others do not answer */
    struct charge bytes_charge, fd_charge;
};

/* Takes the descriptor; answers the request when the workers that are ready have said whether they
 * can map it, and one could. */
int region_attach(struct session *session, uint32_t id, int fd_take, uint64_t size_bytes,
                  bool is_writable, struct gad_error *error) GAD_MUST_CHECK;
int region_detach(struct session *session, uint64_t region_id,
                  struct gad_error *error) GAD_MUST_CHECK;
void region_session_gone(struct region *region);

/* Looked up inside the user; NULL when there is none that is attached and was answered. */
struct region *region_find(const struct broker *broker, uid_t uid, uint64_t id);
void region_ref(struct region *region);
void region_unref(struct region *region);

/* The worker cannot map the region. */
bool region_is_broken_at(const struct region *region, const struct worker *worker);
/* The worker was told of the region and has not answered: whether it can map it is not known. */
bool region_is_announced_at(const struct region *region, const struct worker *worker);
/* No worker that is ready or coming can map it, and one said so. */
bool region_is_broken(const struct region *region);

void regions_worker_ready(struct broker *broker, struct worker *worker);
void regions_worker_lost(struct broker *broker, struct worker *worker);
/* Some worker that was coming does not come. */
void regions_settle(struct broker *broker);
/* No worker comes up: nobody need wait to attach. */
void regions_refuse(struct broker *broker, const struct gad_error *error);
void region_answered(struct region *region, struct worker *worker, const struct message *message);
