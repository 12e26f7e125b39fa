/* server.info and server.ops.
 *
 * server.info asks the worker for its own numbers and waits a second for them: one that is busy
 * starting or hangs must not keep anybody from seeing that it does. What the worker says becomes
 * part of its engine's map as it is. Counts are of this moment; descriptors that wait for the
 * closer are as good as closed and not counted.
 *
 * Called by methods.c, worker_messages.c, worker.c and session.c.
 */
#include "daemon/broker/info.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/closer.h"
#include "daemon/broker/session.h"
#include "daemon/broker/splice.h"
#include "daemon/broker/worker.h"
#include "daemon/poolmap.h"
#include "proto/ops.h"
#include "proto/util.h"

#include <dirent.h>
#include <unistd.h>

#define STATS_NS UINT64_C(1000000000)

struct stats_wait {
    struct list link, session_link;
    struct session *session;
    info_reply *reply;
    uint32_t id, pending_id;
    struct deadline deadline;
};

static unsigned count_descriptors(void)
{
    unsigned n = 0;
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        n += entry->d_name[0] != '.';
    closedir(directory);
    unsigned n_not_ours = 1 + closer_n_pending(); /* the directory itself */
    return n > n_not_ours ? n - n_not_ours : 0;
}

static const char *state_name(enum worker_state state)
{
    switch (state) {
    case WORKER_STARTING: return "starting";
    case WORKER_READY: return "ready";
    case WORKER_RESTARTING: return "restarting";
    case WORKER_STOPPING:
    case WORKER_STOPPED: break;
    }
    return "stopping";
}

static void pack_pool(msgpack_packer *p, const struct broker *broker)
{
    pack_str(p, "pool");
    msgpack_pack_map(p, 4);
    pack_key_u64(p, "bytes", broker->limits.pool_bytes);
    pack_key_u64(p, "slot_bytes", broker->limits.slot_bytes);
    pack_key_u64(p, "carry_limit_bytes", broker->limits.carry_limit_bytes);
    pack_key_u64(p, "carry_used_bytes", poolmap_carry_used_bytes(broker->pool));
}

static void pack_engines(msgpack_packer *p, const struct broker *broker,
                         const struct message *stats)
{
    const struct worker_info *info = worker_info(broker->worker);
    uint32_t n_pairs = 0;
    const char *pairs = "";
    size_t n_bytes = 0;
    if (stats)
        splice_map(stats->payload, stats->n_payload_bytes, &n_pairs, &pairs, &n_bytes);
    pack_str(p, "engines");
    msgpack_pack_array(p, 1);
    msgpack_pack_map(p, 9 + n_pairs);
    pack_key_str(p, "name", info->engine);
    pack_key_str(p, "device", info->device);
    pack_key_str(p, "level", info->level);
    pack_key_str(p, "state", state_name(info->state));
    pack_key_u64(p, "restarts", info->n_restarts);
    pack_key_u64(p, "failed_starts", info->n_failed_starts);
    pack_key_u64(p, "threads", info->n_threads);
    pack_key_u64(p, "pid", (uint64_t)info->pid);
    pack_key_u64(p, "overhead_bytes", info->overhead_bytes);
    pack_raw(p, pairs, n_bytes);
}

static void pack_counts(msgpack_packer *p, const struct broker *broker, const struct message *stats)
{
    uint64_t n_mappings = 0, n_slots = 0;
    struct gad_error ignored;
    bool has_stats = stats && map_u64(&stats->result, "mappings", &n_mappings, &ignored) == 0 &&
                     map_u64(&stats->result, "slots_lent", &n_slots, &ignored) == 0;
    pack_str(p, "counts");
    msgpack_pack_map(p, has_stats ? 9 : 7);
    pack_key_u64(p, "sessions", broker->n_sessions);
    pack_key_u64(p, "regions", broker->n_regions);
    pack_key_u64(p, "region_bytes", accounts_total(broker->accounts, ACCOUNT_REGION_BYTES));
    pack_key_u64(p, "jobs_running", queue_n_active(broker->queue));
    pack_key_u64(p, "jobs_queued", queue_n_waiting(broker->queue));
    pack_key_u64(p, "descriptors", count_descriptors());
    pack_key_u64(p, "carries", queue_n_carries(broker->queue));
    if (has_stats) {
        pack_key_u64(p, "mappings", n_mappings);
        pack_key_u64(p, "slots_lent", n_slots);
    }
}

void info_reply_info(struct session *session, uint32_t id, const struct message *stats)
{
    struct broker *broker = session->broker;
    msgpack_packer *p = &broker->writer.packer;
    message_begin_result(&broker->writer, id);
    msgpack_pack_map(p, 6);
    pack_key_str(p, "version", GPUARRAYD_VERSION);
    pack_key_u64(p, "pid", (uint64_t)getpid());
    pack_key_f64(p, "uptime_s", (double)(loop_now_ns() - broker->started_ns) / 1e9);
    pack_pool(p, broker);
    pack_engines(p, broker, stats);
    pack_counts(p, broker, stats);
    session_send(session);
}

static void drop_wait(struct stats_wait *wait)
{
    broker_clear_deadline(wait->session->broker, &wait->deadline);
    worker_forget(wait->session->broker->worker, wait->pending_id);
    wait->session->n_pending--;
    list_remove(&wait->link);
    list_remove(&wait->session_link);
    free(wait);
}

void info_stats_arrived(struct stats_wait *wait, const struct message *message)
{
    struct session *session = wait->session;
    info_reply *reply = wait->reply;
    uint32_t id = wait->id;
    bool is_usable = message && message->error.type == MSGPACK_OBJECT_NIL &&
                     message->result.type == MSGPACK_OBJECT_MAP;
    drop_wait(wait);
    reply(session, id, is_usable ? message : NULL);
}

static void on_deadline(struct deadline *deadline)
{
    info_stats_arrived(list_entry(deadline, struct stats_wait, deadline), NULL);
}

int info_ask(struct session *session, uint32_t id, bool with_jobs, info_reply *reply)
{
    struct broker *broker = session->broker;
    struct stats_wait *wait = calloc(1, sizeof(*wait));
    if (!wait)
        return -ENOMEM;
    if (worker_ask_stats(broker->worker, wait, with_jobs, &wait->pending_id) != 0) {
        free(wait);
        reply(session, id, NULL);
        return 0;
    }
    wait->session = session;
    wait->id = id;
    wait->reply = reply;
    list_push_back(&broker->stats_waits, &wait->link);
    list_push_back(&session->stats_waits, &wait->session_link);
    session->n_pending++;
    broker_set_deadline(broker, &wait->deadline, STATS_NS, on_deadline);
    return 0;
}

unsigned info_n_waiting(const struct broker *broker, uid_t uid, unsigned most)
{
    unsigned n = 0;
    list_for_each (it, &broker->stats_waits) {
        n += list_entry(it, struct stats_wait, link)->session->uid == uid;
        if (n >= most)
            break;
    }
    return n;
}

void info_worker_lost(struct broker *broker)
{
    struct list *first;
    while ((first = list_first(&broker->stats_waits)))
        info_stats_arrived(list_entry(first, struct stats_wait, link), NULL);
}

void info_session_gone(struct session *session)
{
    struct list *first;
    while ((first = list_first(&session->stats_waits)))
        drop_wait(list_entry(first, struct stats_wait, session_link));
}

static void pack_text_or_nil(msgpack_packer *p, const char *key, const char *text)
{
    if (text) {
        pack_key_str(p, key, text);
    } else {
        pack_str(p, key);
        msgpack_pack_nil(p);
    }
}

void info_pack_ops(msgpack_packer *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < OP_COUNT; i++)
        n += op_info((enum op)i)->rule != OP_RULE_INTERNAL;
    msgpack_pack_array(p, n);
    for (unsigned i = 0; i < OP_COUNT; i++) {
        const struct op_info *op = op_info((enum op)i);
        if (op->rule == OP_RULE_INTERNAL)
            continue;
        msgpack_pack_map(p, 8);
        pack_key_str(p, "name", op->name);
        pack_text_or_nil(p, "symbol", op->symbol);
        pack_text_or_nil(p, "alias", op->alias);
        pack_key_u64(p, "args", op->n_args);
        pack_key_u64(p, "results", op->n_results);
        pack_text_or_nil(p, "keywords", op->keywords);
        pack_key_str(p, "dtypes", op_dtypes((enum op)i));
        pack_key_str(p, "doc", op->doc);
    }
}
