/* The sampler: one sample a second while there are sessions or jobs, one a minute while not.
 *
 *     deadline --> workers that have jobs are asked --> all have answered, or a second --> a sample
 *
 * A worker without jobs is not asked, so it sleeps on: it holds no slots, and its memory is as it
 * was told last. A daemon that nobody uses wakes up once a minute, and as soon as somebody comes.
 *
 * server.samples tells at most PAGE of them in a reply, and whether there are more; any client may
 * ask, as for server.stats: nothing in it is of a job or a user.
 *
 * Called by broker.c, methods.c and ask.c.
 */
#include "daemon/broker/numbers/sampler.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/numbers/samples.h"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/workers/workers.h"
#include "daemon/poolmap.h"
#include "proto/private_memory.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <fcntl.h>

#define BUSY_NS     UINT64_C(1000000000)
#define IDLE_NS     UINT64_C(60000000000)
#define PAGE        512u
#define SAMPLE_SIZE 260u /* the most that one takes in a reply */

struct sampler {
    struct broker *broker;
    int statm_fd; /* open for good: memory is looked at when no descriptor is to be had, too */
    struct samples samples;
    struct deadline tick;
    uint64_t last_ms;        /* when the last sample was taken */
    uint32_t asked_last;     /* workers that had jobs at the last tick */
    bool is_idle, is_asking; /* the former: the tick is far */
    struct sample page[PAGE + 1];
};

uint64_t sampler_broker_bytes(const struct sampler *s)
{
    return private_memory_bytes(s->statm_fd);
}

static uint64_t uptime_ms(const struct broker *broker)
{
    return (loop_now_ns() - broker->started_ns) / 1000000;
}

static void add_worker(struct sample *sample, const struct worker *worker,
                       const struct info_answer *answer)
{
    const struct plan_limits *limits = worker_limits(worker);
    const struct carry_maps *maps = worker_carries(worker);
    uint64_t *numbers = sample->numbers;
    numbers[SAMPLE_FIRST_WORKER_BYTES + worker_place(worker)] = worker_info(worker)->private_bytes;
    numbers[SAMPLE_CARRY_BYTES] += poolmap_carry_used_bytes(maps->of[CARRY_IN_POOL]);
    numbers[SAMPLE_DEVICE_CARRY_BYTES] += poolmap_carry_used_bytes(maps->of[CARRY_ON_DEVICE]);
    if (!worker_is_ready(worker))
        return;
    numbers[SAMPLE_POOL_BYTES] += limits->pool_bytes;
    numbers[SAMPLE_SLOT_BYTES] += info_number(answer, "slots_lent") * limits->slot_bytes;
}

static void take_sample(const struct info_asker *asker, const struct info_answer *answers)
{
    const struct broker *broker = asker->broker;
    struct sampler *s = broker->sampler;
    const struct metrics *m = &broker->metrics;
    struct sample sample = {.at_ms = uptime_ms(broker)};
    sample.period_ms = sample.at_ms - s->last_ms;
    sample.numbers[SAMPLE_BROKER_BYTES] = sampler_broker_bytes(s);
    for (unsigned i = 0; i < broker->n_workers; i++)
        add_worker(&sample, broker->workers[i], &answers[i]);
    sample.numbers[SAMPLE_QUEUED] = m->jobs.n[METRICS_QUEUED];
    sample.numbers[SAMPLE_RUNNING] = m->jobs.n[METRICS_RUNNING] + m->jobs.n[METRICS_SETTLING];
    sample.numbers[SAMPLE_READ_BYTES] = traffic_sum(m->traffic.read_bytes);
    sample.numbers[SAMPLE_WRITE_BYTES] = traffic_sum(m->traffic.write_bytes);
    s->is_asking = false;
    s->last_ms = sample.at_ms;
    samples_add(&s->samples, &sample);
}

/* Those that have jobs, and once more those that had. */
static uint32_t workers_to_ask(struct sampler *s)
{
    const struct broker *broker = s->broker;
    uint32_t with_jobs = 0, asked_last = s->asked_last;
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (queue_n_active(worker_queue(broker->workers[i])) > 0)
            with_jobs |= UINT32_C(1) << i;
    s->asked_last = with_jobs;
    return with_jobs | asked_last;
}

static bool is_idle(const struct broker *broker)
{
    return broker->n_sessions == 0 && jobs_n_live(broker->jobs) == 0;
}

static void on_tick(struct deadline *deadline)
{
    struct sampler *s = list_entry(deadline, struct sampler, tick);
    const struct info_asker asker = {.broker = s->broker};
    s->is_idle = is_idle(s->broker) && s->asked_last == 0;
    broker_set_deadline(s->broker, &s->tick, s->is_idle ? IDLE_NS : BUSY_NS, on_tick);
    if (s->is_asking)
        return;
    s->is_asking = true;
    if (info_ask(&asker, workers_to_ask(s), true, take_sample) < 0)
        s->is_asking = false; /* without memory there is no sample */
}

int sampler_new(struct broker *broker, struct sampler **ret_sampler)
{
    struct sampler *s = calloc(1, sizeof(*s));
    int r = s ? samples_init(&s->samples) : -ENOMEM;
    if (r) {
        free(s);
        return r;
    }
    s->broker = broker;
    s->statm_fd = open(PRIVATE_MEMORY_FILE, O_RDONLY | O_CLOEXEC);
    s->is_idle = true;
    *ret_sampler = s;
    return 0;
}

struct sampler *sampler_free(struct sampler *s)
{
    if (!s)
        return NULL;
    broker_clear_deadline(s->broker, &s->tick);
    samples_deinit(&s->samples);
    close_fd(&s->statm_fd);
    free(s);
    return NULL;
}

void sampler_look_after(struct sampler *s)
{
    if (deadline_is_set(&s->tick) && (!s->is_idle || is_idle(s->broker)))
        return;
    s->is_idle = false;
    broker_set_deadline(s->broker, &s->tick, BUSY_NS, on_tick);
}

/* server.samples ------------------------------------------------------------------------------ */

/* In the order of enum sample_number, but for the workers'. */
static const char *const columns[SAMPLE_FIRST_WORKER_BYTES] = {
    "broker_bytes",       "pool_bytes", "slot_bytes", "carry_bytes",
    "device_carry_bytes", "queued",     "running"};

static void pack_columns(msgpack_packer *p, const struct broker *broker)
{
    pack_str(p, "columns");
    msgpack_pack_array(p, 2u + SAMPLE_FIRST_WORKER_BYTES + broker->n_workers + 2u);
    pack_str(p, "at_ms");
    pack_str(p, "period_ms");
    for (unsigned i = 0; i < SAMPLE_FIRST_WORKER_BYTES; i++)
        pack_str(p, columns[i]);
    for (unsigned i = 0; i < broker->n_workers; i++) {
        char name[ENGINE_NAME_SIZE + 16];
        snprintf(name, sizeof(name), "worker_bytes %s", worker_info(broker->workers[i])->engine);
        pack_str(p, name);
    }
    pack_str(p, "read_bytes");
    pack_str(p, "write_bytes");
}

static void pack_sample(msgpack_packer *p, const struct broker *broker, const struct sample *sample)
{
    unsigned n_numbers = SAMPLE_FIRST_WORKER_BYTES + broker->n_workers;
    msgpack_pack_array(p, 2u + n_numbers + 2u);
    msgpack_pack_uint64(p, sample->at_ms);
    msgpack_pack_uint64(p, sample->period_ms);
    for (unsigned i = 0; i < n_numbers; i++)
        msgpack_pack_uint64(p, sample->numbers[i]);
    msgpack_pack_uint64(p, sample->numbers[SAMPLE_READ_BYTES]);
    msgpack_pack_uint64(p, sample->numbers[SAMPLE_WRITE_BYTES]);
}

int sampler_handle(const struct request *q, struct gad_error *error)
{
    struct broker *broker = q->session->broker;
    struct sampler *s = broker->sampler;
    msgpack_packer *p = &broker->writer.packer;
    uint64_t after_ms = 0, last_ms = 0, now_ms = uptime_ms(broker);
    int r = map_u64(q->params, "after_ms", &after_ms, error);
    if (r == 0)
        r = map_u64(q->params, "last_ms", &last_ms, error);
    if (r)
        return r;
    if (last_ms > 0 && last_ms < now_ms)
        after_ms = max_u64(after_ms, now_ms - last_ms);
    size_t n = samples_after(&s->samples, after_ms, s->page, PAGE + 1);
    size_t n_told = min_u64(n, PAGE);
    r = session_check_room(q->session, n_told * SAMPLE_SIZE);
    if (r)
        return r;
    message_begin_result(&broker->writer, q->id);
    msgpack_pack_map(p, 4);
    pack_key_u64(p, "uptime_ms", now_ms);
    pack_columns(p, broker);
    pack_str(p, "samples");
    msgpack_pack_array(p, n_told);
    for (size_t i = 0; i < n_told; i++)
        pack_sample(p, broker, &s->page[i]);
    pack_key_bool(p, "more", n > n_told);
    session_send(q->session);
    return 0;
}
