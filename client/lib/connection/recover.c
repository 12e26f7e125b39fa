/* Jobs whose daemon went away: sent again, under their keys, to the one that follows.
 *
 *     the connection is lost      sent or waited for by then: may have run, or run still to its end
 *     `shutting-down`             the daemon leaves in order, and has not begun with the job
 *
 * What may have run is sent again only where that cannot change its results: where nothing that it
 * reads is written over, or its journal says how far it was. Under the same key a daemon that is
 * the same, and has done it, answers with what it has done. What was refused has not begun,
 * whatever it reads and writes: it is as if it still waited in the queue. The daemon first ends
 * what runs, which may take long, and the next one begins nothing meanwhile; so the client stays
 * with it until it has gone.
 *
 * All jobs of a client have the same time, however many: it begins when a daemon is first missed. A
 * job goes through MAX_RECOVERIES daemons, not for ever: one that would end each of them must not.
 *
 * Called by job.c.
 */
#include "client/lib/jobs/job.h"
#include "client/lib/jobs/job_streams.h"

#define MAX_RECOVERIES 50
#define RECOVERY_MS    10000 /* for a daemon that restarts, all in all */
#define MAX_ATTEMPTS   20    /* at sending it to a daemon that is there, and goes */
#define MIN_ATTEMPT_MS 500   /* however short the caller wants to wait */

void job_note_refusal(struct gad_job *job)
{
    job->is_refused = true;
    job->client->refusing = job->client->session;
}

static bool is_over(const struct gad_job *job, uint32_t allowed_ms)
{
    return allowed_ms > 0 && clock_now_ms() - job->submitted_at >= allowed_ms;
}

static int judge_queue(const struct gad_job *job, struct gad_error *error)
{
    uint32_t allowed_ms = job->options.queue_timeout_ms;
    if (!is_over(job, allowed_ms))
        return 0;
    error_set(error, GAD_QUEUE_TIMEOUT, NULL, "the job had not begun before the daemon left");
    error_expected(error, "to begin within %.3g s", allowed_ms / 1e3);
    error_found(error, "a daemon that leaves");
    return GAD_QUEUE_TIMEOUT;
}

static int judge_loss(const struct gad_job *job, struct gad_error *error)
{
    if (job->wants_cancel)
        return error_set(error, GAD_CANCELLED, NULL, "the job was cancelled");
    if (is_over(job, job->options.deadline_ms)) { /* it goes on without a daemon */
        error_set(error, GAD_DEADLINE_EXCEEDED, NULL,
                  "the job had not ended at its deadline: the daemon that had it went away");
        error_expected(error, "to end within %.3g s", job->options.deadline_ms / 1e3);
        error_found(error, "no daemon that has it");
        return GAD_DEADLINE_EXCEEDED;
    }
    if (job->is_refused)
        return judge_queue(job, error);
    if (job->n_recoveries >= MAX_RECOVERIES)
        return error_set(error, GAD_OUTCOME_UNKNOWN, NULL,
                         "the connection to the daemon was lost for the %dth time",
                         MAX_RECOVERIES + 1);
    if (!job_is_repeatable(job))
        return error_set(error, GAD_OUTCOME_UNKNOWN, NULL,
                         job_has_streams(&job->options)
                             ? "the connection to the daemon was lost, and what the job's streams "
                               "have moved does not come again"
                             : "the connection to the daemon was lost, and the job writes over "
                               "what it reads");
    return 0;
}

/* The daemon that refused. */
static bool is_still_there(const struct gad_job *job)
{
    return job->client->conn && job->client->refusing == job->client->session;
}

/* No longer than the caller and the job's own times allow. */
static int stay(struct gad_job *job, int64_t deadline)
{
    const uint32_t allowed[] = {job->options.queue_timeout_ms, job->options.deadline_ms};
    struct gad_error ignored;
    int64_t until = deadline;
    for (unsigned i = 0; i < 2; i++)
        if (allowed[i] > 0 && job->submitted_at + allowed[i] < until)
            until = job->submitted_at + allowed[i];
    int r = client_wait(job->client, until, &ignored);
    return r == GAD_TIMEOUT && clock_left_ms(deadline) == 0 ? GAD_TIMEOUT : 0;
}

static void end_without(struct gad_job *job, int r, bool is_there, struct gad_error *error)
{
    bool is_gone = !is_there || r == GAD_DISCONNECTED || r == GAD_TIMEOUT;
    if (is_gone && job->is_refused) {
        r = error_set(error, GAD_SHUTTING_DOWN, NULL,
                      "the daemon left before the job had begun, and none has taken its place");
    } else if (is_gone) {
        error->status = GAD_OUTCOME_UNKNOWN; /* the message says what the daemon's absence is */
        r = GAD_OUTCOME_UNKNOWN;
    }
    job_end(job, r < 0 ? (int)client_status(r, error) : r, error);
}

int job_recover(struct gad_job *job, int64_t deadline)
{
    struct gad_error error;
    int r = judge_loss(job, &error);
    if (r) {
        job_end(job, r, &error);
        return 0;
    }
    if (is_still_there(job))
        return stay(job, deadline);
    int64_t missed = job->client->missed_since;
    int64_t until = (missed ? missed : clock_now_ms()) + RECOVERY_MS;
    int64_t least = clock_deadline_ms(MIN_ATTEMPT_MS);
    r = client_ensure(job->client, least > deadline ? least : deadline, until, &error);
    bool is_there = r == 0;
    if (is_there) {
        job->n_attempts++;
        r = job_begin(job, &error);
        if (r == 0) {
            job->n_recoveries += !job->is_refused;
            job->n_attempts = 0;
            job->is_refused = false;
            return 0;
        }
    }
    bool is_away = is_there ? r == GAD_DISCONNECTED && job->n_attempts < MAX_ATTEMPTS
                            : (r == GAD_NO_DAEMON || r == GAD_TIMEOUT || r == GAD_DISCONNECTED) &&
                                  clock_now_ms() < until;
    if (is_away) { /* nothing was sent to it */
        job->state = JOB_LOST;
        return clock_left_ms(deadline) == 0 ? GAD_TIMEOUT : 0;
    }
    end_without(job, r, is_there, &error);
    return 0;
}
