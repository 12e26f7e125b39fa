/* job.trace: a job's times, which the broker knows, and its tiles', which its worker remembers.
 *
 *     who may see the job asks --> its worker is asked --> its pairs become part of the reply
 *
 * A worker remembers only so much (daemon/worker/trace.h), and one that was replaced nothing: since
 * when it has everything goes with the answer. A job that never ran has no worker, and one whose
 * worker does not answer has no records here, and `since_ns` is absent. By the time of the answer
 * the job is looked up again: it may have been forgotten.
 *
 * Called by methods_job.c and ask.c.
 */
#include "daemon/broker/numbers/traces.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/sessions/splice.h"
#include "daemon/broker/workers/workers.h"
#include "proto/wire/pack.h"

static void pack_times(msgpack_packer *p, const struct job *job)
{
    pack_key_u64(p, "job", job->id);
    pack_key_u64(p, "uid", job_uid(job));
    pack_key_str(p, "state", job_state_name(job->state));
    pack_key_str(p, "label", job->label);
    pack_key_str(p, "engine", job->worker ? worker_info(job->worker)->engine : "");
    pack_key_u64(p, "submitted_ns", job->submitted_ns);
    pack_key_u64(p, "started_ns", job->state == JOB_QUEUED ? 0 : job->started_ns);
    pack_key_u64(p, "ended_ns", job->ended_ns);
}

static void reply(const struct info_asker *asker, const struct info_answer *answers)
{
    struct broker *broker = asker->broker;
    struct session *session = asker->session;
    const struct job *job = session_is_admins(session)
                                ? jobs_find_any(broker->jobs, asker->job)
                                : jobs_find(broker->jobs, session->uid, asker->job);
    struct gad_error error = {0};
    if (!job) {
        error_set(&error, GAD_UNKNOWN_JOB, "job", "there is no job %llu any more",
                  (unsigned long long)asker->job);
        session_reply_error(session, asker->id, &error);
        return;
    }
    const struct info_answer *answer = job->worker ? &answers[worker_place(job->worker)] : NULL;
    uint32_t n_pairs = 0;
    const char *pairs = "";
    size_t n_bytes = 0;
    if (answer && answer->bytes)
        splice_map(answer->bytes, answer->n_bytes, &n_pairs, &pairs, &n_bytes);
    message_begin_result(&broker->writer, asker->id);
    msgpack_pack_map(&broker->writer.packer, 8 + n_pairs);
    pack_times(&broker->writer.packer, job);
    pack_raw(&broker->writer.packer, pairs, n_bytes);
    session_send(session);
}

int traces_ask(struct session *session, uint32_t id, const struct job *job)
{
    const struct info_asker asker = {
        .broker = session->broker, .session = session, .id = id, .job = job->id};
    bool has_run = job->worker && job->started_ns > 0;
    int r = session_check_room(session, TRACE_MAX_BYTES);
    return r ? r
             : info_ask(&asker, has_run ? UINT32_C(1) << worker_place(job->worker) : 0, false,
                        reply);
}
