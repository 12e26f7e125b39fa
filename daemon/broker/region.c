/* Regions.
 *
 *     attach: memfd checked, charged --> worker maps it --> the client gets its id
 *     detach, or the session goes: no new job finds it; it lives on until the last job that uses it
 *     has ended; then the worker forgets it, the descriptor is closed, the charges go back
 *
 * The descriptor is kept because the next worker needs it: regions_worker_ready() announces all
 * again. An answer to the client waits for a worker that can map it, so it says whether the region
 * is usable at all (a memfd with holes is not).
 *
 * Ids are never used again and looked up inside the user. Called by methods.c, submit.c, worker.c.
 */
#define LOG_TOPIC "region"
#include "daemon/broker/region.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/closer.h"
#include "daemon/broker/inspect.h"
#include "daemon/broker/log.h"
#include "daemon/broker/session.h"
#include "daemon/broker/worker.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>

/* Without descriptors or memory for it the region is of no use at this worker. */
static int announce(struct region *region, struct gad_error *error)
{
    struct broker *broker = region->broker;
    if (region->is_at_worker || !worker_is_ready(broker->worker))
        return 0;
    int r = worker_send_region(broker->worker, region);
    region->is_at_worker = r == 0;
    region->is_broken = r != 0;
    if (r == 0)
        return 0;
    log_error(LOG_UID(region->uid), "region %llu cannot be announced: %s",
              (unsigned long long)region->id, strerror(-r));
    return error_from_errno(error, -r, "region", "the region cannot be given to the worker");
}

static void free_region(struct region *region)
{
    struct broker *broker = region->broker;
    if (region->is_pending)
        worker_forget(broker->worker, region->pending_id);
    if (region->is_at_worker)
        worker_detach_region(broker->worker, region->id);
    list_remove(&region->link);
    list_remove(&region->id_link);
    broker->n_regions--;
    closer_close(region->fd);
    charge_release(&region->bytes_charge);
    charge_release(&region->fd_charge);
    free(region);
}

void region_ref(struct region *region)
{
    region->n_refs++;
}

void region_unref(struct region *region)
{
    if (--region->n_refs == 0)
        free_region(region);
}

void region_session_gone(struct region *region)
{
    list_remove(&region->session_link);
    region->session = NULL;
    region->has_waiter = false;
    region_unref(region);
}

static int charge_region(struct broker *broker, struct region *region, struct gad_error *error)
{
    int r = account_charge(broker->accounts, region->uid, ACCOUNT_REGION_BYTES, region->size_bytes,
                           &region->bytes_charge, error);
    if (r == 0)
        r = account_charge(broker->accounts, region->uid, ACCOUNT_DESCRIPTORS, 1,
                           &region->fd_charge, error);
    if (r != 0)
        charge_release(&region->bytes_charge);
    return r;
}

int region_attach(struct session *session, uint32_t id, int fd_take, uint64_t size_bytes,
                  bool is_writable, struct gad_error *error)
{
    struct broker *broker = session->broker;
    struct inspected what;
    int r = size_bytes == 0 || size_bytes > INT64_MAX
                ? error_set(error, GAD_BAD_REGION, "size", "a region of %llu bytes",
                            (unsigned long long)size_bytes)
                : inspect_memfd(fd_take, F_SEAL_SHRINK | F_SEAL_GROW, size_bytes, is_writable,
                                GAD_BAD_REGION, "region", &what, error);
    struct region *region = r == 0 ? calloc(1, sizeof(*region)) : NULL;
    if (r == 0 && !region)
        r = -ENOMEM;
    if (r != 0) {
        closer_close(fd_take);
        return r;
    }
    *region = (struct region){
        .broker = broker,
        .uid = session->uid,
        .session = session,
        .fd = fd_take,
        .size_bytes = size_bytes,
        .device = what.device,
        .inode = what.inode,
        .is_writable = is_writable,
        .n_refs = 1,
        .has_waiter = true,
        .waiter_id = id,
    };
    if (broker->is_draining)
        r = error_set(error, GAD_SHUTTING_DOWN, NULL, "the daemon is leaving");
    if (r == 0)
        r = worker_check(broker->worker, error);
    if (r == 0)
        r = charge_region(broker, region, error);
    if (r != 0) {
        closer_close(fd_take);
        free(region);
        return r;
    }
    region->id = ++broker->last_region_id;
    list_push_back(&broker->regions, &region->link);
    list_push_back(&broker->regions_by_id[region->id % BROKER_REGION_BUCKETS], &region->id_link);
    list_push_back(&session->regions, &region->session_link);
    broker->n_regions++;
    r = announce(region, error);
    if (r != 0)
        region_session_gone(region); /* nobody else knows it */
    return r;
}

struct region *region_find(const struct broker *broker, uid_t uid, uint64_t id)
{
    list_for_each (it, &broker->regions_by_id[id % BROKER_REGION_BUCKETS]) {
        struct region *region = list_entry(it, struct region, id_link);
        if (region->id == id)
            return region->uid == uid && region->session && !region->has_waiter ? region : NULL;
    }
    return NULL;
}

int region_detach(struct session *session, uint64_t region_id, struct gad_error *error)
{
    struct region *region = region_find(session->broker, session->uid, region_id);
    if (!region || region->session != session)
        return error_set(error, GAD_UNKNOWN_REGION, "region", "there is no region %llu",
                         (unsigned long long)region_id);
    region_session_gone(region);
    return 0;
}

void regions_worker_lost(struct broker *broker)
{
    list_for_each (it, &broker->regions) {
        struct region *region = list_entry(it, struct region, link);
        region->is_at_worker = region->is_pending = false;
    }
}

/* The region may be gone afterwards. */
static void refuse_client(struct region *region, const struct gad_error *error)
{
    struct session *session = region->session;
    uint32_t id = region->waiter_id;
    if (!region->has_waiter || !session)
        return;
    metrics_refused(&session->broker->metrics, (int)error->status);
    region_session_gone(region);
    session_reply_error(session, id, error);
}

void regions_worker_ready(struct broker *broker)
{
    list_for_each_safe (it, next, &broker->regions) {
        struct region *region = list_entry(it, struct region, link);
        struct gad_error error = {0};
        if (announce(region, &error) != 0)
            refuse_client(region, &error); /* may free it, and closes no session */
    }
}

static void answer_client(struct region *region)
{
    struct message_writer *w = &region->broker->writer;
    if (!region->has_waiter || !region->session)
        return;
    region->has_waiter = false;
    region->broker->metrics.n_regions++;
    message_begin_result(w, region->waiter_id);
    msgpack_pack_map(&w->packer, 1);
    pack_key_u64(&w->packer, "region", region->id);
    session_send(region->session);
}

void region_answered(struct region *region, const struct message *message)
{
    region->is_pending = false;
    if (message->error.type == MSGPACK_OBJECT_NIL) {
        answer_client(region);
        return;
    }
    struct gad_error error = {0};
    error_from_map(&message->error, &error);
    region->is_at_worker = false; /* it did not map it */
    region->is_broken = true;
    refuse_client(region, &error);
}

void regions_refuse(struct broker *broker, const struct gad_error *error)
{
    list_for_each_safe (it, next, &broker->regions)
        refuse_client(list_entry(it, struct region, link), error);
}
