/* Regions.
 *
 *     attach: memfd checked, charged --> the workers map it --> the client gets its id
 *     detach, or the session goes: no new job finds it; it lives on until the last job that uses it
 *     has ended; then the workers forget it, the descriptor is closed, the charges go back
 *
 * The descriptor is kept because workers that come later need it: regions_worker_ready() announces
 * all to each. An answer to the client waits for a worker that can map it, and for PATIENCE_NS more
 * for all that are ready, so it says whether the region is usable at all (a memfd with holes is
 * not), and a job that comes next finds it wherever it can be; but a worker that hangs keeps nobody
 * from the others. Where all that are ready refuse it, those that are coming have COMING_NS. A
 * worker that refuses a region that another one mapped gets no job with it.
 *
 * A hole that a client punches later would be filled when the worker reads it, with memory that
 * nobody is charged for. The worker is told of it by the kernel, but not through a descriptor that
 * is open for reading alone: such a memfd must be sealed against that.
 *
 * Ids are never used again and looked up inside the user. Called by methods.c, submit.c, worker.c.
 */
#define LOG_TOPIC "region"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/sessions/inspect.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/workers/workers.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <string.h>

#define PATIENCE_NS UINT64_C(1000000000)
#define COMING_NS   UINT64_C(5000000000)

static struct region_place *place_at(struct region *region, const struct worker *worker)
{
    return &region->places[worker_place(worker)];
}

/* Without descriptors or memory for it the region is of no use at this worker. */
static int announce(struct region *region, struct worker *worker, struct gad_error *error)
{
    struct region_place *place = place_at(region, worker);
    if (place->state != REGION_NOWHERE || !worker_is_ready(worker))
        return 0;
    int r = worker_send_region(worker, region, &place->pending_id);
    place->state = r == 0 ? REGION_ANNOUNCED : REGION_BROKEN;
    if (r == 0)
        return 0;
    log_error(LOG_UID(region->uid), "region %llu cannot be announced to %s: %s",
              (unsigned long long)region->id, worker_info(worker)->engine, strerror(-r));
    return error_from_errno(error, -r, "region", "the region cannot be given to the worker");
}

static void leave_worker(struct region *region, struct worker *worker)
{
    struct region_place *place = place_at(region, worker);
    if (place->state == REGION_ANNOUNCED)
        worker_forget(worker, place->pending_id);
    if (place->state == REGION_ANNOUNCED || place->state == REGION_MAPPED)
        worker_detach_region(worker, region->id);
}

static void free_region(struct region *region)
{
    struct broker *broker = region->broker;
    for (unsigned i = 0; i < broker->n_workers; i++)
        leave_worker(region, broker->workers[i]);
    list_remove(&region->link);
    list_remove(&region->id_link);
    broker->n_regions--;
    closer_close(region->fd);
    charge_release(&region->bytes_charge);
    charge_release(&region->fd_charge);
    free(region->refusal);
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
    broker_clear_deadline(region->broker, &region->patience);
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
    if (r)
        charge_release(&region->bytes_charge);
    return r;
}

/* Of a region that nobody else knows: it goes again where it can be told to no worker. */
static int announce_first(struct region *region, struct gad_error *error)
{
    const struct broker *broker = region->broker;
    unsigned n_failed = 0, n_ready = 0;
    int r = 0;
    for (unsigned i = 0; i < broker->n_workers; i++) {
        struct worker *worker = broker->workers[i];
        int failure = announce(region, worker, error);
        n_ready += worker_is_ready(worker);
        n_failed += failure != 0;
        r = failure != 0 ? failure : r;
    }
    if (n_failed == 0 || n_failed < n_ready)
        return 0;
    region_session_gone(region);
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
    if (r == 0 && what.may_lose_pages)
        r = error_set(error, GAD_BAD_REGION, "region",
                      "a region whose descriptor is open for reading alone must be sealed against "
                      "writing (F_SEAL_FUTURE_WRITE)");
    struct region *region = r == 0 ? calloc(1, sizeof(*region)) : NULL;
    if (r == 0 && !region)
        r = -ENOMEM;
    if (r) {
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
        r = workers_check(broker, error);
    if (r == 0)
        r = charge_region(broker, region, error);
    if (r) {
        closer_close(fd_take);
        free(region);
        return r;
    }
    region->id = ++broker->last_region_id;
    list_push_back(&broker->regions, &region->link);
    list_push_back(&broker->regions_by_id[region->id % BROKER_REGION_BUCKETS], &region->id_link);
    list_push_back(&session->regions, &region->session_link);
    broker->n_regions++;
    workers_need_one(broker);
    return announce_first(region, error);
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

static unsigned n_places(const struct region *region, enum region_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < region->broker->n_workers; i++)
        n += region->places[i].state == state;
    return n;
}

bool region_is_broken_at(const struct region *region, const struct worker *worker)
{
    return region->places[worker_place(worker)].state == REGION_BROKEN;
}

bool region_is_announced_at(const struct region *region, const struct worker *worker)
{
    return region->places[worker_place(worker)].state == REGION_ANNOUNCED;
}

/* At none of them is it of use, or may be. */
bool region_is_broken(const struct region *region)
{
    const struct broker *broker = region->broker;
    unsigned n_broken = 0;
    for (unsigned i = 0; i < broker->n_workers; i++) {
        const struct worker *worker = broker->workers[i];
        if (region_is_broken_at(region, worker))
            n_broken++;
        else if (worker_is_ready(worker) || worker_is_coming(worker))
            return false;
    }
    return n_broken > 0;
}

/* The region may be gone afterwards. */
static void refuse_client(struct region *region, const struct gad_error *error)
{
    struct session *session = region->session;
    uint32_t id = region->waiter_id;
    struct gad_error copy = *error; /* which may be the region's own */
    if (!region->has_waiter || !session)
        return;
    metrics_refused(&session->broker->metrics, (int)copy.status);
    region_session_gone(region);
    session_reply_error(session, id, &copy);
}

static void answer_client(struct region *region)
{
    struct message_writer *w = &region->broker->writer;
    broker_clear_deadline(region->broker, &region->patience);
    region->has_waiter = false;
    region->broker->metrics.n_regions++;
    message_begin_result(w, region->waiter_id);
    msgpack_pack_map(&w->packer, 1);
    pack_key_u64(&w->packer, "region", region->id);
    session_send(region->session);
}

static void refuse_as_workers_did(struct region *region)
{
    struct gad_error error = {0};
    error_set(&error, GAD_BAD_REGION, "region", "no worker can map the region");
    refuse_client(region, region->refusal ? region->refusal : &error);
}

static void on_patience_end(struct deadline *deadline)
{
    struct region *region = list_entry(deadline, struct region, patience);
    if (n_places(region, REGION_MAPPED) > 0)
        answer_client(region);
    else if (n_places(region, REGION_ANNOUNCED) == 0 && n_places(region, REGION_BROKEN) > 0)
        refuse_as_workers_did(region);
}

static void wait_at_most(struct region *region, uint64_t time_ns)
{
    if (!deadline_is_set(&region->patience))
        broker_set_deadline(region->broker, &region->patience, time_ns, on_patience_end);
}

/* Those that sleep stay asleep: jobs wake them. */
static bool is_one_coming(const struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++) {
        const struct worker *worker = broker->workers[i];
        if (!worker_is_ready(worker) && worker_is_coming(worker) &&
            worker_info(worker)->state != WORKER_ASLEEP)
            return true;
    }
    return false;
}

/* Some worker answered or is gone: is there an answer for the client? The region may be gone
 * afterwards. */
static void settle(struct region *region)
{
    bool is_mapped = n_places(region, REGION_MAPPED) > 0;
    if (!region->has_waiter || !region->session)
        return;
    if (n_places(region, REGION_ANNOUNCED) > 0) {
        if (is_mapped)
            wait_at_most(region, PATIENCE_NS);
    } else if (is_mapped) {
        answer_client(region);
    } else if (n_places(region, REGION_BROKEN) > 0) {
        if (is_one_coming(region->broker))
            wait_at_most(region, COMING_NS);
        else
            refuse_as_workers_did(region);
    }
}

static void keep_refusal(struct region *region, const struct gad_error *error)
{
    if (!region->refusal)
        region->refusal = malloc(sizeof(*region->refusal));
    if (region->refusal)
        *region->refusal = *error;
}

void regions_worker_lost(struct broker *broker, struct worker *worker)
{
    list_for_each_safe (it, next, &broker->regions) {
        struct region *region = list_entry(it, struct region, link);
        place_at(region, worker)->state = REGION_NOWHERE;
        settle(region);
    }
}

void regions_worker_ready(struct broker *broker, struct worker *worker)
{
    list_for_each_safe (it, next, &broker->regions) {
        struct region *region = list_entry(it, struct region, link);
        struct gad_error error = {0};
        if (announce(region, worker, &error) != 0) {
            keep_refusal(region, &error);
            settle(region);
        }
    }
}

void region_answered(struct region *region, struct worker *worker, const struct message *message)
{
    struct gad_error error = {0};
    struct region_place *place = place_at(region, worker);
    place->state = REGION_MAPPED;
    if (message->error.type != MSGPACK_OBJECT_NIL) {
        place->state = REGION_BROKEN;
        map_error(&message->error, &error);
        log_warn(LOG_UID(region->uid), "region %llu is refused by %s: %s",
                 (unsigned long long)region->id, worker_info(worker)->engine, error.message);
        keep_refusal(region, &error);
    }
    settle(region);
}

void regions_settle(struct broker *broker)
{
    list_for_each_safe (it, next, &broker->regions)
        settle(list_entry(it, struct region, link));
}

void regions_refuse(struct broker *broker, const struct gad_error *error)
{
    list_for_each_safe (it, next, &broker->regions)
        refuse_client(list_entry(it, struct region, link), error);
}
