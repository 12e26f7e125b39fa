/* server.info and server.ops.
 *
 * server.info tells what the daemon is made of at this moment: its workers, one map each, the pool
 * of the main one, and what everybody holds. What a worker says of itself becomes part of its
 * engine's map as it is (ask.c has bounded it). Counts are of this moment; descriptors that wait
 * for the closer are as good as closed and not counted.
 *
 * Called by methods.c and ask.c.
 */
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/scans/scans.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/sessions/splice.h"
#include "daemon/broker/workers/workers.h"
#include "daemon/poolmap.h"
#include "daemon/rates.h"
#include "proto/ops.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#define N_ENGINE_PAIRS 16u

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

static void pack_pool(msgpack_packer *p, const struct worker *worker)
{
    const struct plan_limits *limits = worker_limits(worker);
    const struct carry_maps *maps = worker_carries(worker);
    pack_str(p, "pool");
    msgpack_pack_map(p, 6);
    pack_key_u64(p, "bytes", limits->pool_bytes);
    pack_key_u64(p, "slot_bytes", limits->slot_bytes);
    pack_key_u64(p, "carry_limit_bytes", limits->product_carry_bytes);
    pack_key_u64(p, "carry_used_bytes", poolmap_carry_used_bytes(maps->of[CARRY_IN_POOL]));
    pack_key_u64(p, "device_carry_bytes", limits->device_carry_bytes);
    pack_key_u64(p, "device_carry_used_bytes", poolmap_carry_used_bytes(maps->of[CARRY_ON_DEVICE]));
}

static void pack_life(msgpack_packer *p, const struct worker *worker,
                      const struct worker_info *info)
{
    pack_key_str(p, "state", worker_state_name(info->state));
    pack_key_u64(p, "restarts", info->n_restarts);
    pack_key_u64(p, "failed_starts", info->n_failed_starts);
    pack_key_u64(p, "faults", info->n_faults);
    pack_key_u64(p, "jobs_running", queue_n_active(worker_queue(worker)));
    pack_key_u64(p, "jobs_queued", queue_n_waiting(worker_queue(worker)));
    pack_key_u64(p, "threads", info->n_threads);
    pack_key_u64(p, "pid", (uint64_t)info->pid);
    pack_key_u64(p, "overhead_bytes", info->overhead_bytes);
}

/* Of a worker that is not ready: why, and when it is tried again. */
static void pack_absence(msgpack_packer *p, const struct worker *worker)
{
    pack_key_str(p, "why", worker_why(worker));
    pack_key_f64(p, "retry_s", worker_retry_seconds(worker));
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

static void pack_engine(msgpack_packer *p, const struct worker *worker,
                        const struct info_answer *answer)
{
    const struct worker_info *info = worker_info(worker);
    bool is_absent = worker_why(worker)[0] != '\0';
    uint32_t n_pairs = 0;
    const char *pairs = "";
    size_t n_bytes = 0;
    if (answer->bytes)
        splice_map(answer->bytes, answer->n_bytes, &n_pairs, &pairs, &n_bytes);
    bool has_reason = info->why_no_blas[0] != '\0';
    n_pairs += N_ENGINE_PAIRS + (is_absent ? 2 : 0) + (info->memory ? 1 : 0) + has_reason;
    msgpack_pack_map(p, n_pairs);
    pack_key_str(p, "name", info->engine);
    pack_key_i64(p, "index", info->index);
    pack_key_str(p, "device", info->device);
    pack_key_str(p, "level", info->level);
    pack_text_or_nil(p, "blas", info->blas[0] ? info->blas : NULL);
    if (has_reason)
        pack_key_str(p, "why_no_blas", info->why_no_blas);
    pack_life(p, worker, info);
    pack_pool(p, worker);
    rates_pack(p, &worker_limits(worker)->rates);
    if (is_absent)
        pack_absence(p, worker);
    if (info->memory) {
        pack_str(p, "memory");
        pack_raw(p, info->memory, info->n_memory_bytes);
    }
    pack_raw(p, pairs, n_bytes);
}

static void pack_engines(msgpack_packer *p, const struct broker *broker,
                         const struct info_answer *answers)
{
    pack_str(p, "engines");
    msgpack_pack_array(p, broker->n_workers);
    for (unsigned i = 0; i < broker->n_workers; i++)
        pack_engine(p, broker->workers[i], &answers[i]);
}

static void pack_counts(msgpack_packer *p, const struct broker *broker,
                        const struct info_answer *answer)
{
    pack_str(p, "counts");
    msgpack_pack_map(p, answer->bytes ? 9 : 7);
    pack_key_u64(p, "sessions", broker->n_sessions);
    pack_key_u64(p, "regions", broker->n_regions);
    pack_key_u64(p, "region_bytes", accounts_total(broker->accounts, ACCOUNT_REGION_BYTES));
    pack_key_u64(p, "jobs_running", workers_n_active(broker));
    pack_key_u64(p, "jobs_queued", workers_n_waiting(broker));
    pack_key_u64(p, "descriptors", count_descriptors());
    pack_key_u64(p, "carries", workers_n_carries(broker));
    if (answer->bytes) {
        pack_key_u64(p, "mappings", info_number(answer, "mappings"));
        pack_key_u64(p, "slots_lent", info_number(answer, "slots_lent"));
    }
}

/* Others may not look into the process to see it. */
static void pack_program(msgpack_packer *p)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    pack_key_str(p, "program", path);
}

void info_reply_info(const struct info_asker *asker, const struct info_answer *answers)
{
    struct broker *broker = asker->broker;
    msgpack_packer *p = &broker->writer.packer;
    message_begin_result(&broker->writer, asker->id);
    msgpack_pack_map(p, 8u + broker->is_closed);
    pack_key_str(p, "version", GPUARRAYD_VERSION);
    if (broker->is_closed)
        pack_key_str(p, "draining", broker->notice);
    pack_key_u64(p, "pid", (uint64_t)getpid());
    pack_program(p);
    pack_key_f64(p, "uptime_s", (double)(loop_now_ns() - broker->started_ns) / 1e9);
    pack_pool(p, workers_main(broker));
    pack_engines(p, broker, answers);
    pack_counts(p, broker, &answers[0]);
    pack_str(p, "scans");
    scans_pack(p, asker->session);
    session_send(asker->session);
}

void info_pack_ops(msgpack_packer *p)
{
    msgpack_pack_array(p, OP_N_ROWS);
    for (unsigned i = 0; i < OP_N_ROWS; i++) {
        const struct op_info *op = op_row_info(i);
        msgpack_pack_map(p, 9);
        pack_key_str(p, "name", op->name);
        pack_text_or_nil(p, "symbol", op->symbol);
        pack_text_or_nil(p, "alias", op->alias);
        pack_key_u64(p, "args", op->n_args);
        pack_text_or_nil(p, "arguments", op_arguments(i));
        pack_key_u64(p, "results", op->n_results);
        pack_text_or_nil(p, "keywords", op->keywords);
        pack_key_str(p, "dtypes", op_dtypes(i));
        pack_key_str(p, "doc", op->doc);
    }
}
