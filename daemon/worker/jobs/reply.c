/* What a job's end looks like on the wire (RESULT in daemon/WORKER.md), and its progress before
 * that. Runs on the main thread; a job that has ended is nobody else's.
 *
 * Of results that are large because arrays are in them one is in the connection's queue at a time.
 * The others wait, and users take turns, so that an answer of nearly nothing, and a large one of
 * somebody else, does not wait for all that one user can have computed and not read.
 */
#include "daemon/worker/walks/walk_product.h"
#include "daemon/worker/worker.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#define WAIT_TOLD_NS UINT64_C(10000000)
#define LARGE_BYTES  4096

/* Bytes that end a message, and go into it from where they are. */
struct tail {
    const char *bytes;
    size_t n_bytes;
};

/* The elements of the last output, if they are in the reply, are left to the tail. */
static void pack_output(msgpack_packer *p, const struct wjob *job, unsigned index,
                        struct tail *ret_tail)
{
    const struct port *port = &job->ports[job->program->n_inputs + index];
    bool is_inline = port->array.at.kind == LOCATION_NONE;
    bool is_last = index + 1u == job->program->n_outputs;
    msgpack_pack_map(p, is_inline ? 4 : 3);
    pack_key_str(p, "name", job->request->outputs[index].name);
    pack_key_str(p, "dtype", dtype_typestr(port->array.dtype, port->array.is_swapped));
    pack_str(p, "shape");
    msgpack_pack_array(p, (size_t)port->array.ndim);
    for (int i = 0; i < port->array.ndim; i++)
        msgpack_pack_int64(p, walk_length(job, port->array.shape[i]));
    if (is_inline) {
        size_t n_bytes = (size_t)array_n_bytes(&port->array);
        pack_str(p, "data");
        msgpack_pack_bin(p, n_bytes);
        if (is_last)
            *ret_tail = (struct tail){port->base, n_bytes};
        else
            msgpack_pack_bin_body(p, port->base, n_bytes);
    }
}

static void pack_seconds(msgpack_packer *p, const struct wjob *job)
{
    const struct measure *m = &job->measure;
    uint64_t until_ns = job->ended_ns ? job->ended_ns : clock_ns();
    msgpack_pack_map(p, 7);
    pack_key_f64(p, "total", (double)(until_ns - job->begun_ns) * 1e-9);
    pack_key_f64(p, "source", (double)m->source_ns * 1e-9);
    pack_key_f64(p, "to_device", (double)m->to_device_ns * 1e-9);
    pack_key_f64(p, "kernel", (double)m->kernel_ns * 1e-9);
    pack_key_f64(p, "from_device", (double)m->from_device_ns * 1e-9);
    pack_key_f64(p, "sink", (double)m->sink_ns * 1e-9);
    pack_key_f64(p, "client", (double)job->client_ns * 1e-9);
}

static uint64_t around_bytes(const struct wjob *job)
{
    uint64_t n_bytes = 0;
    for (unsigned i = 0; i < job->program->n_outputs; i++)
        n_bytes += atomic_load(&job->writings[i].around_bytes);
    return n_bytes;
}

/* The six pairs that tell what was moved, how long it took and what it waited for. */
static void pack_traffic(msgpack_packer *p, const struct wjob *job)
{
    const struct measure *m = &job->measure;
    pack_key_u64(p, "read_bytes", traffic_sum(m->read_bytes));
    pack_key_u64(p, "write_bytes", traffic_sum(m->write_bytes));
    pack_key_u64(p, "around_cache_bytes", around_bytes(job));
    pack_str(p, "bytes");
    traffic_pack_bytes(p, m->read_bytes, m->write_bytes);
    pack_str(p, "seconds");
    pack_seconds(p, job);
    pack_str(p, "waits");
    traffic_pack_waits(p, job->wait_ns);
}

static void pack_result(struct worker *w, msgpack_packer *p, const struct wjob *job,
                        struct tail *ret_tail)
{
    const struct measure *m = &job->measure;
    msgpack_pack_map(p, 11 + walk_product_n_pairs(job));
    pack_key_str(p, "engine", w->engine->name);
    pack_key_str(p, "level", w->engine->level);
    pack_key_u64(p, "tiles", job->n_all_tiles_done);
    pack_traffic(p, job);
    pack_str(p, "warnings");
    msgpack_pack_map(p, 2);
    pack_key_u64(p, "divide_by_zero", m->warnings.n_divide_by_zero);
    pack_key_u64(p, "invalid_cast", m->warnings.n_invalid_casts);
    walk_product_pack(job, w->engine, p);
    pack_str(p, "outputs");
    msgpack_pack_array(p, job->program->n_outputs);
    for (unsigned i = 0; i < job->program->n_outputs; i++)
        pack_output(p, job, i, ret_tail);
}

/* Without memory there is no notification; the next one may have some. */
static void notify(struct worker *w)
{
    if (conn_send(w->conn, w->writer.buffer.data, w->writer.buffer.size, NULL, 0))
        return;
}

static void report_moved(struct worker *w, const struct wjob *job, enum wjob_stage stage)
{
    message_writer_clear(&w->writer);
    message_begin_notification(&w->writer, "job.moved");
    msgpack_packer *p = &w->writer.packer;
    msgpack_pack_map(p, 11);
    pack_key_u64(p, "job", job->identity.id);
    pack_key_str(p, "stage", wjob_stage_name(stage));
    pack_key_u64(p, "tiles_done", job->n_all_tiles_done);
    pack_key_u64(p, "tiles", job->plan.n_tiles);
    pack_key_u64(p, "slots", job->n_slots);
    pack_traffic(p, job);
    notify(w);
}

void worker_report_moved(struct wjob *job, void *worker)
{
    struct worker *w = worker;
    report_moved(w, job, sched_settle_wait(w->sched, job));
}

/* Of one that failed: what it moved, or a wait that somebody may ask about. */
static bool has_news(const struct wjob *job)
{
    uint64_t waited_ns = 0;
    for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
        waited_ns += job->wait_ns[i];
    return job->n_all_tiles_done > 0 || waited_ns >= WAIT_TOLD_NS;
}

static int send_result(struct worker *w, const struct wjob *job)
{
    const msgpack_sbuffer *body = &w->writer.buffer;
    struct tail tail = {NULL, 0};
    message_begin_result(&w->writer, job->identity.message_id);
    pack_result(w, &w->writer.packer, job, &tail);
    if (tail.n_bytes == 0)
        return worker_send(w);
    int r = conn_send_with(w->conn, body->data, body->size, tail.bytes, tail.n_bytes, NULL, 0);
    return r == -EINVAL ? -ENOMEM : r;
}

/* Without memory for a result, that is the answer. */
int worker_reply(struct worker *w, const struct wjob *job)
{
    struct gad_error error = job->error;
    if (!job->status) {
        int r = send_result(w, job);
        if (r != -ENOMEM)
            return r;
        (void)error_from_errno(&error, ENOMEM, NULL, "sending the result");
    } else if (has_news(job)) {
        report_moved(w, job, WSTAGE_ENDING);
    }
    message_error(&w->writer, job->identity.message_id, &error);
    return worker_send(w);
}

static bool is_large(const struct wjob *job)
{
    int64_t n_bytes = 0;
    for (unsigned i = 0; i < job->program->n_outputs && !job->status; i++) {
        const struct port *port = &job->ports[job->program->n_inputs + i];
        n_bytes += port->array.at.kind == LOCATION_NONE ? array_n_bytes(&port->array) : 0;
    }
    return n_bytes > LARGE_BYTES;
}

static void hold(struct worker *w, struct wjob *job_take)
{
    struct wjob **last = &w->held;
    while (*last)
        last = &(*last)->next;
    job_take->next = NULL;
    *last = job_take;
}

/* Round robin by uid, from the last one's on: of a user's the first. */
static struct wjob *take_held(struct worker *w)
{
    struct wjob **found = &w->held;
    for (struct wjob **p = &w->held; *p; p = &(*p)->next)
        if ((*p)->identity.user - w->held_user - 1 < (*found)->identity.user - w->held_user - 1)
            found = p;
    struct wjob *job = *found;
    *found = job->next;
    return job;
}

static int reply_and_free(struct worker *w, struct wjob *job_take)
{
    int r = worker_reply(w, job_take);
    wjob_free(job_take);
    return r;
}

int worker_reply_held(struct worker *w)
{
    if (!w->held || conn_n_sent_bytes(w->conn) < w->held_end)
        return 0;
    struct wjob *job = take_held(w);
    w->held_user = job->identity.user;
    int r = reply_and_free(w, job);
    w->held_end = conn_n_sent_bytes(w->conn) + conn_n_queued_bytes(w->conn);
    return r ? r : 1;
}

int worker_end_job(struct worker *w, struct wjob *job_take)
{
    if (!is_large(job_take))
        return reply_and_free(w, job_take);
    hold(w, job_take);
    int r = worker_reply_held(w);
    return r < 0 ? r : 0;
}

void worker_report_progress(struct wjob *job, void *worker)
{
    struct worker *w = worker;
    message_writer_clear(&w->writer);
    message_begin_notification(&w->writer, "job.progress");
    msgpack_packer *p = &w->writer.packer;
    msgpack_pack_map(p, 5);
    pack_key_u64(p, "job", job->identity.id);
    pack_key_u64(p, "tiles_done", job->n_all_tiles_done);
    pack_key_u64(p, "tiles", job->plan.n_tiles);
    pack_key_u64(p, "read_bytes", traffic_sum(job->measure.read_bytes));
    pack_key_u64(p, "write_bytes", traffic_sum(job->measure.write_bytes));
    notify(w);
}
