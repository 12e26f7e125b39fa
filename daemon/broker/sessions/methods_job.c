/* The methods about jobs.
 *
 * job.run is job.submit and job.wait in one, without the second request; both attach to a job with
 * the same key instead of making another. A job is looked up inside the caller's user, so every
 * connection of a user can wait for and look at what another one submitted; only settling is the
 * owner's, who alone knows where the output belongs. Admins look at anybody's: the group of the
 * socket is no sign of it, all users are in it. What ends or pauses jobs is in methods_jobs.c.
 *
 * Called through the table in methods.c.
 */
#define LOG_TOPIC "job"
#include "daemon/broker/broker.h"
#include "daemon/broker/workers/engines.h"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/jobs/pause.h"
#include "daemon/broker/jobs/planner.h"
#include "daemon/broker/numbers/stats.h"
#include "daemon/broker/numbers/traces.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#define LIST_BYTES (FRAME_MAX_BODY_BYTES - 16384u) /* of statuses: the latest that fit */
#define LIST_JOBS  1800u /* of them: a status has up to 35 of a body's 65536 objects */

static int unknown_job(uint64_t id, struct gad_error *error)
{
    return error_set(error, GAD_UNKNOWN_JOB, "job", "there is no job %llu", (unsigned long long)id);
}

static int find_job(const struct request *q, struct job **ret_job, struct gad_error *error)
{
    uint64_t id = 0;
    int r = map_require_u64(q->params, "job", &id, error);
    if (r)
        return r;
    *ret_job = jobs_find(q->session->broker->jobs, q->session->uid, id);
    return *ret_job ? 0 : unknown_job(id, error);
}

int methods_find_any_job(const struct request *q, struct job **ret_job, struct gad_error *error)
{
    uint64_t id = 0;
    if (!session_is_admins(q->session))
        return find_job(q, ret_job, error);
    int r = map_require_u64(q->params, "job", &id, error);
    if (r)
        return r;
    *ret_job = jobs_find_any(q->session->broker->jobs, id);
    return *ret_job ? 0 : unknown_job(id, error);
}

/* job.plan ------------------------------------------------------------------------------------ */

static void pack_shape(msgpack_packer *p, const char *key, int ndim, const int64_t *shape)
{
    pack_str(p, key);
    msgpack_pack_array(p, (size_t)ndim);
    for (int i = 0; i < ndim; i++)
        msgpack_pack_int64(p, shape[i]);
}

static void pack_plan_outputs(msgpack_packer *p, const struct submission *s)
{
    pack_str(p, "outputs");
    msgpack_pack_array(p, s->program->n_outputs);
    for (unsigned i = 0; i < s->program->n_outputs; i++) {
        const struct program_output *output = &s->program->outputs[i];
        msgpack_pack_map(p, 4);
        pack_key_str(p, "name", s->request->outputs[i].name);
        pack_key_str(p, "dtype", dtype_typestr(output->dtype, false));
        pack_shape(p, "shape", output->ndim, output->shape);
        pack_key_str(p, "order", s->plan->is_fortran_order ? "F" : "C");
    }
}

static void pack_axes(msgpack_packer *p, const char *key, uint32_t axes)
{
    pack_str(p, key);
    msgpack_pack_array(p, (size_t)__builtin_popcount(axes));
    for (uint32_t left = axes; left; left &= left - 1)
        msgpack_pack_int(p, __builtin_ctz(left));
}

/* An argument may be several inputs. */
static uint64_t args_read(const struct program *program, const struct pass *pass)
{
    uint64_t args = 0;
    for (uint64_t left = pass->inputs_used; left; left &= left - 1)
        args |= UINT64_C(1) << program->inputs[__builtin_ctzll(left)].arg;
    return args;
}

/* The axes that the pass reduces or scans, the arrays that it reads and writes. */
static void pack_pass_arrays(msgpack_packer *p, const struct submission *s, unsigned index)
{
    const struct pass *pass = &s->program->passes[index];
    bool is_scan = pass->scanned_axis >= 0;
    pack_axes(p, "reduces", is_scan ? 0 : pass->reduced_axes);
    pack_axes(p, "scans", is_scan ? pass->reduced_axes : 0);
    pack_str(p, "reads");
    uint64_t args = args_read(s->program, pass);
    msgpack_pack_array(p, (size_t)__builtin_popcountll(args));
    for (uint64_t left = args; left; left &= left - 1)
        pack_str(p, s->request->args[__builtin_ctzll(left)].name);
    pack_str(p, "writes");
    unsigned n_outputs = s->program->n_outputs, n = 0; /* without those of products */
    for (unsigned i = 0; i < pass->n_stores; i++)
        n += s->program->stores[pass->first_store + i].output < n_outputs;
    msgpack_pack_array(p, n);
    for (unsigned i = 0; i < pass->n_stores; i++) {
        unsigned output = s->program->stores[pass->first_store + i].output;
        if (output >= n_outputs)
            continue;
        char name[REQUEST_UNNAMED_SIZE];
        pack_str(p, request_output_name(&s->request->outputs[output], output, name));
    }
}

static void pack_passes(msgpack_packer *p, const struct submission *s)
{
    const struct plan *plan = s->plan;
    pack_key_u64(p, "rounds", plan->n_rounds);
    pack_str(p, "passes");
    msgpack_pack_array(p, plan->n_passes);
    for (unsigned i = 0; i < plan->n_passes; i++) {
        const struct plan_pass *pass = &plan->passes[i];
        const struct geometry *g = &pass->geometry;
        msgpack_pack_map(p, 11);
        pack_shape(p, "shape", g->ndim, g->shape);
        pack_shape(p, "grain_shape", g->ndim, g->grain_shape);
        pack_key_u64(p, "grains", g->n_grains);
        pack_key_u64(p, "tiles", pass->n_tiles);
        pack_key_bool(p, "needs_slot", pass->needs_slot);
        pack_key_u64(p, "read_bytes", pass->read_bytes);
        pack_key_u64(p, "write_bytes", pass->write_bytes);
        pack_pass_arrays(p, s, i);
    }
}

static void pack_product(msgpack_packer *p, const struct submission *s)
{
    const struct plan_product *planned = &s->plan->products[0];
    const struct program_product *product = planned->whole;
    const int64_t tile[] = {planned->tile_matrices, planned->tile_rows, planned->tile_columns};
    const int64_t block[] = {planned->block_matrices, planned->block_rows, planned->block_columns};
    pack_str(p, "product");
    msgpack_pack_map(p, 14);
    pack_key_str(p, "precision", planned->is_tf32 ? "tf32" : dtype_name(product->dtype));
    pack_shape(p, "tile", 3, tile);
    pack_key_u64(p, "tiles", planned->n_tiles);
    pack_shape(p, "block", 3, block);
    pack_key_u64(p, "step_depth", (uint64_t)planned->step_depth);
    pack_key_u64(p, "steps", planned->n_depth_steps);
    pack_key_u64(p, "panel_depth", (uint64_t)planned->panel_depth);
    pack_key_u64(p, "kept_panels", planned->n_kept);
    pack_key_u64(p, "buffers", planned->has_two_buffers ? 2 : 1);
    pack_key_bool(p, "symmetric", product->is_symmetric);
    pack_key_bool(p, "journal", planned->has_journal);
    pack_key_u64(p, "left_bytes", planned->left_bytes);
    pack_key_u64(p, "right_bytes", planned->right_bytes);
    pack_key_f64(p, "operations", planned->n_operations);
}

/* What an engine would take, or why it cannot be asked for an estimate. */
static void pack_plan_engine(msgpack_packer *p, const struct submission *s, unsigned offer)
{
    const struct engine_estimate *e = engines_estimate_of(&s->choice->decision, offer);
    bool has_seconds = e && e->is_possible, is_chosen = offer == s->choice->decision.offer;
    char why_not[ENGINE_WHY_SIZE];
    engines_why_not(s->request, s->choice->offers, &s->choice->decision, offer, why_not);
    msgpack_pack_map(p, 2u + 3u * has_seconds + !is_chosen);
    pack_key_str(p, "engine", s->choice->offers[offer].name);
    if (has_seconds) {
        pack_key_f64(p, "seconds", e->plan.seconds);
        pack_key_str(p, "bound", plan_bound_name(e->plan.bound));
        pack_key_f64(p, "behind_seconds", s->choice->offers[offer].busy_seconds);
    }
    pack_key_bool(p, "chosen", is_chosen);
    if (!is_chosen)
        pack_key_str(p, "why_not", why_not);
}

static void pack_plan_engines(msgpack_packer *p, const struct submission *s)
{
    pack_key_str(p, "engine", s->choice->offers[s->choice->decision.offer].name);
    pack_key_str(p, "engine_why", s->choice->decision.why);
    pack_str(p, "engines");
    msgpack_pack_array(p, s->choice->n_offers);
    for (unsigned i = 0; i < s->choice->n_offers; i++)
        pack_plan_engine(p, s, i);
}

static void reply_plan(const struct request *q, const struct submission *s)
{
    struct message_writer *w = &q->session->broker->writer;
    msgpack_packer *p = &w->packer;
    const struct plan *plan = s->plan;
    message_begin_result(w, q->id);
    msgpack_pack_map(p, 13u + program_is_product(s->program));
    pack_plan_outputs(p, s);
    pack_plan_engines(p, s);
    pack_passes(p, s);
    if (program_is_product(s->program))
        pack_product(p, s);
    pack_key_u64(p, "tiles", plan->n_tiles);
    pack_key_u64(p, "carry_bytes", plan->carry_bytes + plan->device_carry_bytes);
    pack_key_u64(p, "read_bytes", plan->read_bytes);
    pack_key_u64(p, "write_bytes", plan->write_bytes);
    pack_key_f64(p, "seconds", plan->seconds);
    pack_key_bool(p, "restartable",
                  plan->is_restartable && (!s->places.has_provider || s->request->again));
    pack_key_str(p, "program", s->text);
    session_send(q->session);
}

int handle_job_plan(const struct request *q, struct gad_error *error)
{
    return planner_take(q, SUBMISSION_PLAN, error);
}

/* job.run, job.submit, job.wait --------------------------------------------------------------- */

static int check_pending(const struct session *session, struct gad_error *error)
{
    if (session->n_pending < session->broker->options.session_requests)
        return 0;
    error_set(error, GAD_LIMIT_EXCEEDED, NULL, "%u requests of this connection wait already",
              session->n_pending);
    error_expected(error, "at most %u", session->broker->options.session_requests);
    return GAD_LIMIT_EXCEEDED;
}

int handle_job_run(const struct request *q, struct gad_error *error)
{
    int r = check_pending(q->session, error);
    return r ? r : planner_take(q, SUBMISSION_RUN, error);
}

int handle_job_submit(const struct request *q, struct gad_error *error)
{
    return planner_take(q, SUBMISSION_SUBMIT, error);
}

static void reply_submit(const struct request *q, const struct job *job)
{
    struct message_writer *w = &q->session->broker->writer;
    message_begin_result(w, q->id);
    msgpack_pack_map(&w->packer, 1);
    pack_key_u64(&w->packer, "job", job->id);
    session_send(q->session);
}

int methods_job_found(const struct request *q, enum submission_kind kind, struct job *job,
                      struct gad_error *error)
{
    if (kind == SUBMISSION_RUN)
        return finish_wait(q->session, q->id, job, UINT64_MAX, error);
    reply_submit(q, job);
    return 0;
}

int methods_job_judged(const struct request *q, const struct submission *s, struct gad_error *error)
{
    struct job *job;
    if (s->kind == SUBMISSION_PLAN) {
        reply_plan(q, s);
        return 0;
    }
    int r = submission_make_job(q->session, q->message, q->frame, s, &job, error);
    if (r)
        return r;
    if (s->kind == SUBMISSION_RUN)
        finish_wait_run(q->session, q->id, job);
    else
        reply_submit(q, job);
    return 0;
}

int handle_job_wait(const struct request *q, struct gad_error *error)
{
    struct job *job;
    uint64_t timeout_ms = UINT64_MAX;
    int r = find_job(q, &job, error);
    if (r == 0)
        r = map_u64(q->params, "timeout_ms", &timeout_ms, error);
    if (r == 0)
        r = check_pending(q->session, error);
    if (r)
        return r;
    bool is_forever = timeout_ms > UINT64_MAX / 2 / 1000000;
    return finish_wait(q->session, q->id, job, is_forever ? UINT64_MAX : timeout_ms * 1000000,
                       error);
}

/* job.status, job.list ------------------------------------------------------------------------ */

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static void pack_status(msgpack_packer *p, const struct job *job)
{
    uint64_t until_ns = job->ended_ns ? job->ended_ns : loop_now_ns();
    uint64_t started_ns = job->state == JOB_QUEUED ? 0 : job->started_ns;
    bool is_paused = pause_is_on(job);
    msgpack_pack_map(p, 10u + is_paused + (job->failed_as != GAD_OK));
    pack_key_u64(p, "job", job->id);
    pack_key_u64(p, "uid", job_uid(job));
    pack_key_str(p, "state", job_state_name(job->state));
    pack_key_str(p, "label", job->label);
    pack_key_u64(p, "tiles_done", job->n_tiles_done);
    pack_key_u64(p, "tiles", job->n_tiles);
    pack_key_u64(p, "read_bytes", job->read_bytes);
    pack_key_u64(p, "write_bytes", job->write_bytes);
    pack_key_f64(p, "queued_s",
                 seconds_between(job->submitted_ns, started_ns ? started_ns : until_ns));
    pack_key_f64(p, "running_s", started_ns ? seconds_between(started_ns, until_ns) : 0);
    if (is_paused)
        pack_key_bool(p, "paused", true);
    if (job->failed_as != GAD_OK) {
        struct gad_error error = {0};
        job_failure(job, &error);
        pack_str(p, "error");
        pack_error_map(p, &error);
    }
}

int handle_job_status(const struct request *q, struct gad_error *error)
{
    struct message_writer *w = &q->session->broker->writer;
    struct job *job;
    int r = methods_find_any_job(q, &job, error);
    if (r)
        return r;
    message_begin_result(w, q->id);
    pack_status(&w->packer, job);
    session_send(q->session);
    return 0;
}

struct listing {
    struct message_writer *w;
    unsigned n;
};

static bool list_job(void *userdata, const struct job *job)
{
    struct listing *listing = userdata;
    pack_status(&listing->w->packer, job);
    listing->n++;
    return listing->w->buffer.size < LIST_BYTES && listing->n < LIST_JOBS;
}

int handle_job_list(const struct request *q, struct gad_error *error)
{
    struct broker *broker = q->session->broker;
    struct listing listing = {.w = &broker->scratch};
    uid_t uid = q->session->uid;
    bool is_said = map_find(q->params, "user") || map_find(q->params, "everybody");
    int r = is_said ? methods_find_whose(q, &uid, error) : 0;
    if (r)
        return r;
    message_writer_clear(listing.w);
    jobs_for_each(broker->jobs, uid, list_job, &listing);
    r = session_check_room(q->session, listing.w->buffer.size);
    if (r) {
        message_writer_clear(listing.w);
        return r;
    }
    message_begin_result(&broker->writer, q->id);
    msgpack_pack_array(&broker->writer.packer, listing.n);
    pack_raw(&broker->writer.packer, listing.w->buffer.data, listing.w->buffer.size);
    message_writer_clear(listing.w); /* a long list's memory goes back at once */
    session_send(q->session);
    return 0;
}

int handle_job_trace(const struct request *q, struct gad_error *error)
{
    struct job *job;
    int r = methods_find_any_job(q, &job, error);
    if (r == 0)
        r = methods_check_asking(q->session, STATS_MAX_WAITING, error);
    return r ? r : traces_ask(q->session, q->id, job);
}

/* job.settle ---------------------------------------------------------------------- */

static int read_settle_error(const struct request *q, struct gad_error *ret, bool *ret_has,
                             struct gad_error *error)
{
    const msgpack_object *map = map_find(q->params, "error");
    *ret_has = map && map->type != MSGPACK_OBJECT_NIL;
    if (!*ret_has)
        return 0;
    if (map->type != MSGPACK_OBJECT_MAP)
        return error_set(error, GAD_BAD_REQUEST, "error", "'error' is not a map");
    map_error(map, ret);
    if (ret->status == GAD_OK)
        ret->status = GAD_INTERNAL;
    return 0;
}

int handle_job_settle(const struct request *q, struct gad_error *error)
{
    struct gad_error outcome = {0};
    struct job *job;
    bool has_error;
    int r = find_job(q, &job, error);
    if (r)
        return r;
    if (job->owner != q->session || job->state != JOB_SETTLING)
        return error_set(error, GAD_BAD_REQUEST, "job",
                         "job %llu is not this connection's to settle",
                         (unsigned long long)job->id);
    r = read_settle_error(q, &outcome, &has_error, error);
    if (r)
        return r;
    finish_settled(q->session->broker, job, has_error ? &outcome : NULL);
    session_reply_empty(q->session, q->id);
    return 0;
}
