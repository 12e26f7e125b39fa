/* server.stats.
 *
 * Everybody may ask, so nothing is in it that only a job's owner should know: no expressions, no
 * names of arguments or files, no names of clients. A job's label is told to its own user, to root
 * and to the daemon's user.
 *
 * The reply must fit a frame, 1 MiB and 65536 objects: at most STATS_MAX_USERS users of 14 pairs
 * and STATS_MAX_JOBS jobs of 16 pairs are told, and how many were left out. Jobs that run come
 * before jobs that wait, and of those no user takes more than its part of the places.
 *
 * What the workers have to say arrives with the request's wait (ask.c); their jobs' traffic was
 * taken in before. Where one does not answer its numbers are absent, all others are there.
 *
 * Called by ask.c, after methods.c asked it.
 */
#include "daemon/broker/numbers/stats.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/jobs/pause.h"
#include "daemon/broker/numbers/sampler.h"
#include "daemon/broker/scans/scans.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/workers/workers.h"
#include "daemon/poolmap.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#define USER_BYTES      240u /* about what one takes in the reply */
#define JOB_BYTES       280u
#define USER_PAIRS      14u
#define JOB_PAIRS       16u
#define REST_OBJECTS    4096u /* of the reply: sums, pool, engines */
#define MIN_QUEUED_EACH 16u   /* jobs in the queue that are told of each user, if there is room */

_Static_assert(STATS_MAX_USERS *(1 + 2 * USER_PAIRS) + STATS_MAX_JOBS * (1 + 2 * JOB_PAIRS) +
                       REST_OBJECTS <=
                   FRAME_MAX_OBJECTS,
               "the longest reply fits a frame");

struct listing { /* of jobs, packed into the broker's scratch writer */
    struct broker *broker;
    uint64_t now_ns;
    uid_t reader;
    bool sees_all, is_queued_turn;
    uint64_t n;        /* packed */
    uint64_t n_wanted; /* more, of this user in this turn */
};

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? seconds(to_ns - from_ns) : 0;
}

/* The sums ------------------------------------------------------------------------------------ */

static void pack_words(msgpack_packer *p, const char *key, const uint64_t *by_status)
{
    unsigned n = 0;
    for (unsigned i = 0; i < GAD_STATUS_COUNT; i++)
        n += by_status[i] > 0;
    pack_str(p, key);
    msgpack_pack_map(p, n);
    for (unsigned i = 0; i < GAD_STATUS_COUNT; i++)
        if (by_status[i] > 0)
            pack_key_u64(p, error_word((int)i), by_status[i]);
}

static void pack_jobs(msgpack_packer *p, const struct metrics *m)
{
    pack_str(p, "jobs");
    msgpack_pack_map(p, 6);
    pack_key_u64(p, "queued", m->jobs.n[METRICS_QUEUED]);
    pack_key_u64(p, "running", m->jobs.n[METRICS_RUNNING]);
    pack_key_u64(p, "settling", m->jobs.n[METRICS_SETTLING]);
    pack_key_u64(p, "submitted", m->n_submitted);
    pack_key_u64(p, "requeued", m->n_requeued);
    pack_words(p, "ended", m->n_ended);
}

static void pack_paths(msgpack_packer *p, const char *key, const uint64_t *by_path)
{
    pack_str(p, key);
    msgpack_pack_map(p, TRAFFIC_N_PATHS);
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++)
        pack_key_u64(p, traffic_path_name((enum traffic_path)i), by_path[i]);
}

static void pack_traffic(msgpack_packer *p, const struct metrics *m, uint64_t now_ns)
{
    pack_str(p, "bytes");
    msgpack_pack_map(p, 3);
    pack_paths(p, "read", m->traffic.read_bytes);
    pack_paths(p, "write", m->traffic.write_bytes);
    pack_key_u64(p, "around_cache", m->traffic.around_cache_bytes);
    pack_str(p, "seconds");
    msgpack_pack_map(p, 1 + TRAFFIC_N_STAGES);
    pack_key_f64(p, "queue", seconds(m->queue_ns + metrics_waiting_ns(&m->jobs, now_ns)));
    for (unsigned i = 0; i < TRAFFIC_N_STAGES; i++)
        pack_key_f64(p, traffic_stage_name((enum traffic_stage)i), seconds(m->traffic.stage_ns[i]));
    pack_str(p, "waits");
    traffic_pack_waits(p, m->traffic.wait_ns);
}

static void pack_of_worker(msgpack_packer *p, const struct info_answer *answer, const char *key)
{
    pack_key_u64(p, key, info_number(answer, key));
}

/* The main worker's. */
static void pack_pool(msgpack_packer *p, const struct broker *broker,
                      const struct info_answer *answer)
{
    const struct worker *worker = workers_main(broker);
    const struct plan_limits *limits = worker_limits(worker);
    const struct carry_maps *maps = worker_carries(worker);
    pack_str(p, "pool");
    msgpack_pack_map(p, answer->bytes ? 9 : 7);
    pack_key_u64(p, "bytes", limits->pool_bytes);
    pack_key_u64(p, "slot_bytes", limits->slot_bytes);
    pack_key_u64(p, "carry_limit_bytes", limits->product_carry_bytes);
    pack_key_u64(p, "carry_used_bytes", poolmap_carry_used_bytes(maps->of[CARRY_IN_POOL]));
    pack_key_u64(p, "device_carry_bytes", limits->device_carry_bytes);
    pack_key_u64(p, "device_carry_used_bytes", poolmap_carry_used_bytes(maps->of[CARRY_ON_DEVICE]));
    pack_key_u64(p, "carries", queue_n_carries(worker_queue(worker)));
    if (answer->bytes) {
        pack_of_worker(p, answer, "slots");
        pack_of_worker(p, answer, "slots_lent");
    }
}

static void pack_scans(msgpack_packer *p, const struct broker *broker)
{
    const struct metrics_scans *scans = &broker->metrics.scans;
    uint64_t n_running = 0, n_readers = 0;
    scans_count(broker, &n_running, &n_readers);
    pack_str(p, "scans");
    msgpack_pack_map(p, 9);
    pack_key_u64(p, "running", n_running);
    pack_key_u64(p, "readers", n_readers);
    pack_key_u64(p, "started", scans->n_started);
    pack_key_u64(p, "lost", scans->n_lost);
    pack_key_u64(p, "joined", scans->n_joined);
    pack_key_u64(p, "shared", scans->n_shared);
    pack_key_u64(p, "decoded", scans->n_decoded);
    pack_key_u64(p, "failed", scans->n_failed);
    pack_key_u64(p, "taken", scans->n_taken);
}

static void pack_counts(msgpack_packer *p, const struct broker *broker)
{
    pack_str(p, "sessions");
    msgpack_pack_map(p, 2);
    pack_key_u64(p, "open", broker->n_sessions);
    pack_key_u64(p, "total", broker->metrics.n_sessions);
    pack_str(p, "regions");
    msgpack_pack_map(p, 3);
    pack_key_u64(p, "attached", broker->n_regions);
    pack_key_u64(p, "bytes", accounts_total(broker->accounts, ACCOUNT_REGION_BYTES));
    pack_key_u64(p, "total", broker->metrics.n_regions);
    pack_scans(p, broker);
    pack_words(p, "refusals", broker->metrics.n_refusals);
    pack_str(p, "log");
    msgpack_pack_map(p, 2);
    pack_key_u64(p, "dropped_lines", log_n_dropped());
    pack_key_u64(p, "left_out_lines", log_n_left_out());
}

static void pack_engine(msgpack_packer *p, const struct worker *worker,
                        const struct info_answer *answer)
{
    const struct worker_info *info = worker_info(worker);
    msgpack_pack_map(p, answer->bytes ? 15 : 12);
    pack_key_str(p, "name", info->engine);
    pack_key_str(p, "level", info->level);
    pack_key_bool(p, "ready", worker_is_ready(worker));
    pack_key_str(p, "state", worker_state_name(info->state));
    pack_key_u64(p, "threads", info->n_threads);
    pack_key_u64(p, "restarts", info->n_restarts);
    pack_key_u64(p, "failed_starts", info->n_all_failed_starts);
    pack_key_u64(p, "faults", info->n_all_faults);
    pack_key_u64(p, "jobs_running", queue_n_active(worker_queue(worker)));
    pack_key_u64(p, "jobs_queued", queue_n_waiting(worker_queue(worker)));
    pack_key_u64(p, "jobs_ended", info->n_jobs_ended);
    pack_key_u64(p, "private_bytes", info->private_bytes);
    if (answer->bytes) {
        pack_of_worker(p, answer, "threads_busy");
        pack_of_worker(p, answer, "slots");
        pack_of_worker(p, answer, "slots_lent");
    }
}

static void pack_engines(msgpack_packer *p, const struct broker *broker,
                         const struct info_answer *answers)
{
    pack_str(p, "engines");
    msgpack_pack_array(p, broker->n_workers);
    for (unsigned i = 0; i < broker->n_workers; i++)
        pack_engine(p, broker->workers[i], &answers[i]);
}

/* Of users and jobs. */
static const char *const wait_keys[TRAFFIC_N_WAITS] = {
    [TRAFFIC_INPUT] = "input_s", [TRAFFIC_ROOM] = "room_s", [TRAFFIC_TURN] = "turn_s"};

/* Users --------------------------------------------------------------------------------------- */

struct waiting { /* of a user's jobs, in the queue now */
    uint64_t now_ns, wait_ns[TRAFFIC_N_WAITS];
};

static bool count_waiting(void *userdata, const struct job *job)
{
    struct waiting *w = userdata;
    if (job->state == JOB_QUEUED && w->now_ns > job->queued_since_ns)
        w->wait_ns[job_queue_wait(job)] += w->now_ns - job->queued_since_ns;
    return true;
}

static void pack_user_waits(msgpack_packer *p, const struct broker *broker,
                            const struct metrics_user *user, uint64_t now_ns)
{
    struct waiting waiting = {.now_ns = now_ns};
    if (user->jobs.n[METRICS_QUEUED] > 0)
        jobs_for_each_live(broker->jobs, user->uid, count_waiting, &waiting);
    for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
        pack_key_f64(p, wait_keys[i], seconds(user->wait_ns[i] + waiting.wait_ns[i]));
}

static void pack_user(msgpack_packer *p, const struct broker *broker,
                      const struct metrics_user *user, uint64_t now_ns)
{
    msgpack_pack_map(p, USER_PAIRS);
    pack_key_u64(p, "uid", user->uid);
    pack_key_u64(p, "weight", account_weight(broker->accounts, user->uid));
    pack_key_u64(p, "sessions", account_use(broker->accounts, user->uid, ACCOUNT_SESSIONS));
    pack_key_u64(p, "jobs_queued", user->jobs.n[METRICS_QUEUED]);
    pack_key_u64(p, "jobs_running", user->jobs.n[METRICS_RUNNING]);
    pack_key_u64(p, "jobs_settling", user->jobs.n[METRICS_SETTLING]);
    pack_key_u64(p, "read_bytes", user->read_bytes);
    pack_key_u64(p, "write_bytes", user->write_bytes);
    pack_key_u64(p, "region_bytes", account_use(broker->accounts, user->uid, ACCOUNT_REGION_BYTES));
    pack_key_f64(p, "waited_s", seconds(user->waited_ns + metrics_waiting_ns(&user->jobs, now_ns)));
    pack_key_f64(p, "work_s", seconds(user->work_ns));
    pack_user_waits(p, broker, user, now_ns);
}

static void pack_users(msgpack_packer *p, const struct broker *broker, uint64_t now_ns)
{
    unsigned n_left = (unsigned)min_u64(broker->metrics.n_users, STATS_MAX_USERS);
    pack_str(p, "users");
    msgpack_pack_array(p, n_left);
    list_for_each (it, &broker->metrics.users)
        if (n_left > 0) {
            pack_user(p, broker, list_entry(it, struct metrics_user, link), now_ns);
            n_left--;
        }
}

/* Jobs ---------------------------------------------------------------------------------------- */

static const char *stage_of(const struct job *job)
{
    return job->state == JOB_QUEUED    ? traffic_wait_name(job_queue_wait(job))
           : job->state == JOB_RUNNING ? job->stage
                                       : "";
}

static void pack_job(const struct listing *l, const struct job *job)
{
    msgpack_packer *p = &l->broker->scratch.packer;
    bool tells_label = l->sees_all || job_uid(job) == l->reader;
    bool is_queued = job->state == JOB_QUEUED;
    uint64_t begin_ns = is_queued ? l->now_ns : job->started_ns;
    bool is_paused = pause_is_on(job);
    msgpack_pack_map(p, JOB_PAIRS - 2u + tells_label + is_paused);
    pack_key_u64(p, "job", job->id);
    pack_key_u64(p, "uid", job_uid(job));
    pack_key_str(p, "state", job_state_name(job->state));
    pack_key_str(p, "engine", worker_info(job->worker)->engine);
    pack_key_u64(p, "tiles_done", job->n_tiles_done);
    pack_key_u64(p, "tiles", job->n_tiles);
    pack_key_u64(p, "read_bytes", job->read_bytes);
    pack_key_u64(p, "write_bytes", job->write_bytes);
    pack_key_f64(p, "queued_s", seconds_between(job->submitted_ns, begin_ns));
    pack_key_f64(p, "running_s", is_queued ? 0 : seconds_between(job->started_ns, l->now_ns));
    pack_key_str(p, "stage", stage_of(job));
    for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
        pack_key_f64(p, wait_keys[i], seconds(job_wait_ns(job, (enum traffic_wait)i, l->now_ns)));
    if (is_paused)
        pack_key_bool(p, "paused", true);
    if (tells_label)
        pack_key_str(p, "label", job->label);
}

static bool list_job(void *userdata, const struct job *job)
{
    struct listing *l = userdata;
    if (l->n_wanted > 0 && (job->state == JOB_QUEUED) == l->is_queued_turn) {
        pack_job(l, job);
        l->n++;
        l->n_wanted--;
    }
    return l->n_wanted > 0;
}

static void list_turn(struct listing *l, uint64_t n_most_each)
{
    list_for_each (it, &l->broker->metrics.users) {
        const struct metrics_user *user = list_entry(it, struct metrics_user, link);
        const uint64_t *n = user->jobs.n;
        uint64_t n_there =
            l->is_queued_turn ? n[METRICS_QUEUED] : n[METRICS_RUNNING] + n[METRICS_SETTLING];
        l->n_wanted = min_u64(min_u64(n_there, n_most_each), STATS_MAX_JOBS - l->n);
        if (l->n_wanted > 0)
            jobs_for_each_live(l->broker->jobs, user->uid, list_job, l);
    }
}

static unsigned count_waiting_users(const struct metrics *m)
{
    unsigned n = 0;
    list_for_each (it, &m->users)
        n += list_entry(it, struct metrics_user, link)->jobs.n[METRICS_QUEUED] > 0;
    return n;
}

static void list_jobs(struct listing *l)
{
    unsigned n_users = count_waiting_users(&l->broker->metrics);
    uint64_t share = n_users > 0 ? STATS_MAX_JOBS / n_users : STATS_MAX_JOBS;
    message_writer_clear(&l->broker->scratch);
    l->is_queued_turn = false;
    list_turn(l, STATS_MAX_JOBS);
    l->is_queued_turn = true;
    list_turn(l, share > MIN_QUEUED_EACH ? share : MIN_QUEUED_EACH);
    if (l->broker->scratch.has_failed) /* without memory */
        l->n = 0;
}

static void pack_listing(msgpack_packer *p, const struct listing *l)
{
    struct message_writer *scratch = &l->broker->scratch;
    const struct metrics *m = &l->broker->metrics;
    pack_str(p, "active");
    msgpack_pack_array(p, l->n);
    pack_raw(p, scratch->buffer.data, scratch->buffer.size);
    message_writer_clear(scratch); /* a long list's memory goes back at once */
    pack_str(p, "left_out");
    msgpack_pack_map(p, 2);
    pack_key_u64(p, "users", m->n_users > STATS_MAX_USERS ? m->n_users - STATS_MAX_USERS : 0);
    pack_key_u64(p, "jobs", metrics_n_live(&m->jobs) - l->n);
}

uint64_t stats_most_bytes(const struct broker *broker)
{
    const struct metrics *m = &broker->metrics;
    return min_u64(m->n_users, STATS_MAX_USERS) * USER_BYTES +
           min_u64(metrics_n_live(&m->jobs), STATS_MAX_JOBS) * JOB_BYTES;
}

void stats_reply(const struct info_asker *asker, const struct info_answer *answers)
{
    struct broker *broker = asker->broker;
    struct session *session = asker->session;
    msgpack_packer *p = &broker->writer.packer;
    uint64_t now_ns = loop_now_ns();
    struct listing listing = {.broker = broker,
                              .now_ns = now_ns,
                              .reader = session->uid,
                              .sees_all = session_is_admins(session)};
    list_jobs(&listing);
    message_begin_result(&broker->writer, asker->id);
    msgpack_pack_map(p, 17);
    pack_key_str(p, "version", GPUARRAYD_VERSION);
    pack_key_f64(p, "uptime_s", seconds_between(broker->started_ns, now_ns));
    pack_key_u64(p, "private_bytes", sampler_broker_bytes(broker->sampler));
    pack_jobs(p, &broker->metrics);
    pack_traffic(p, &broker->metrics, now_ns);
    pack_pool(p, broker, &answers[0]);
    pack_counts(p, broker);
    pack_engines(p, broker, answers);
    pack_users(p, broker, now_ns);
    pack_listing(p, &listing);
    session_send(session);
}
