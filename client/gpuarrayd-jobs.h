/** gpuarrayd: jobs of other processes of the same user, how they and the daemon went over time,
 * many jobs as one, and users. Included by gpuarrayd.h.
 *
 * The daemon knows every job by its number (gad_job_id()), whichever connection it came over: it
 * can be looked at, waited for and cancelled from anywhere.
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A job as the daemon has it. */
struct gad_job_status {
    uint64_t job;   /**< its id */
    char state[16]; /**< "queued" "running" "settling" "done" "failed" "cancelled" */
    char label[64];
    uint64_t tiles_done, n_tiles, read_bytes, write_bytes; /**< n_tiles 0 before the end: unknown */
    double queued_s, running_s;
    struct gad_error error; /**< status 0 when there is none */
    bool is_paused;         /**< queued or running, but not until it is let go on */
    uint32_t uid;           /**< whose it is */
};

/** Says how a job of the same user is doing.
 * client: not NULL.
 * job: its id.
 * ret_status: the caller's structure.
 * GAD_UNKNOWN_JOB: the user has no such job, or the daemon forgot it. Connection statuses. */
enum gad_status gad_job_status_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_job_status *ret_status, struct gad_error *error);

/** Waits until a job of the same user has ended and its files are in their place.
 * client: not NULL.
 * job: its id.
 * timeout_ms: milliseconds; 0: only look, -1: for ever.
 * GAD_OK, or the job's own status and error, as of gad_job_wait(). GAD_TIMEOUT: the time is over,
 * the job goes on. GAD_UNKNOWN_JOB: the user has no such job. Connection statuses. */
enum gad_status gad_job_wait_by_id(struct gad_client *client, uint64_t job, int timeout_ms,
                                   struct gad_error *error);

/** Asks for the end of a job of the same user.
 * client: not NULL.
 * job: its id; of one that has ended nothing changes.
 * GAD_UNKNOWN_JOB: the user has no such job. Connection statuses. */
enum gad_status gad_job_cancel_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_error *error);

/** Pauses a job of the same user: in the queue it is passed over, running it begins no part of its
 * work any more, and its slots go to others. Where others wait for what else it keeps of the pool,
 * it gives that up after a while, to begin anew, or goes on if it cannot.
 * client: not NULL.
 * job: its id; of one that has ended, or is paused, nothing changes.
 * GAD_UNKNOWN_JOB: the user has no such job. Connection statuses. */
enum gad_status gad_job_pause_by_id(struct gad_client *client, uint64_t job,
                                    struct gad_error *error);

/** Lets a paused job go on.
 * client: not NULL.
 * job: its id; of one that is not paused nothing changes.
 * GAD_UNKNOWN_JOB: the user has no such job. Connection statuses. */
enum gad_status gad_job_resume_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_error *error);

enum gad_jobs_action { GAD_JOBS_CANCEL, GAD_JOBS_PAUSE, GAD_JOBS_RESUME };

#define GAD_EVERYBODY UINT32_MAX

/** Cancels or pauses all jobs that have not ended of a user, or of everybody, or lets them go on.
 * client: not NULL.
 * action: what is done to each.
 * uid: the user's number, for others than the caller's by admins alone; or GAD_EVERYBODY, by them.
 * ret_n_jobs: how many they were; may be NULL.
 * GAD_PERMISSION: the caller is no admin. Connection statuses. */
enum gad_status gad_jobs_change(struct gad_client *client, enum gad_jobs_action action,
                                uint32_t uid, uint64_t *ret_n_jobs, struct gad_error *error);

/** Lists all of the user's jobs that the daemon knows.
 * client: not NULL.
 * ret_jobs: an array, newest last, never NULL; the caller's, to be given to free().
 * ret_n_jobs: how many they are.
 * Connection statuses. */
enum gad_status gad_job_list(struct gad_client *client, struct gad_job_status **ret_jobs,
                             size_t *ret_n_jobs, struct gad_error *error);

/** The same of another user, or of everybody: those that have not ended, of each user the newest
 * first, then those that have.
 * client: not NULL.
 * uid: the user's number, for others than the caller's by admins alone; or GAD_EVERYBODY, by them.
 * ret_jobs, ret_n_jobs: as above.
 * GAD_PERMISSION: the caller is no admin. Connection statuses. */
enum gad_status gad_jobs_list(struct gad_client *client, uint32_t uid,
                              struct gad_job_status **ret_jobs, size_t *ret_n_jobs,
                              struct gad_error *error);

/* ---- Over time ----------------------------------------------------------------------------- */

/** How the daemon's memory, pool, jobs and bytes went over time, from the ring of samples that it
 * keeps: by seconds for ten minutes, then coarser, for a day.
 * client: not NULL.
 * last_ms: only those of so many milliseconds; 0: all that there are.
 * ret_json: JSON text, the map of server.samples with all of its samples: uptime_ms, columns (names
 * of numbers), samples (lists of numbers, the oldest first); the caller's, to be given to free().
 * Connection statuses. */
enum gad_status gad_samples_json(struct gad_client *client, uint64_t last_ms, char **ret_json,
                                 struct gad_error *error);

/** What a job did, tile by tile, on which thread of the worker or stream of the device, for
 * Perfetto (ui.perfetto.dev) and other readers of Chrome's trace events. The worker remembers the
 * last sixteen thousand steps of all jobs: of a job that ended long ago, or has more, there is less
 * or nothing, and `complete` says so.
 * client: not NULL.
 * job: the id of one of the user's own jobs; of anybody's for admins.
 * ret_json: JSON text: traceEvents, times in microseconds since the job was submitted; otherData
 * with job, state, engine, complete; the caller's, to be given to free().
 * GAD_UNKNOWN_JOB: the user has no such job, or the daemon forgot it. Connection statuses. */
enum gad_status gad_job_trace_json(struct gad_client *client, uint64_t job, char **ret_json,
                                   struct gad_error *error);

/* ---- Users -------------------------------------------------------------------------------- */

/** Who is connected or has jobs: weight, jobs, slots and carries of the pool, and of everything
 * that a user may hold how much is held, the limit, and the share of what others leave. Of others
 * than the caller only admins (root, the daemon's user, its admin-group) are told all. client: not
 * NULL. ret_json: JSON text, the map of server.users; the caller's, to be given to free().
 * Connection statuses. */
enum gad_status gad_users_json(struct gad_client *client, char **ret_json, struct gad_error *error);

/** Has the daemon take no new jobs, and begin with none that wait: submitting ends with
 * GAD_DRAINING. What runs goes on to its end. Until that is undone, or the daemon ends. For admins.
 * client: not NULL.
 * undo: jobs are taken again.
 * message: why, for people; at most 199 bytes; may be NULL.
 * ret_n_running, ret_n_queued: jobs that are under way, and that wait; may be NULL.
 * GAD_PERMISSION: the caller is no admin. GAD_BAD_REQUEST: too long a message. Connection statuses.
 */
enum gad_status gad_drain(struct gad_client *client, bool undo, const char *message,
                          uint64_t *ret_n_running, uint64_t *ret_n_queued, struct gad_error *error);

/** Says how much a user's jobs count beside those of others, from now on, until the daemon ends or
 * reads its settings again. For admins.
 * client: not NULL.
 * uid: the user's number, who need not be there.
 * weight: 1 to 1000; 0: as the settings say.
 * GAD_PERMISSION: the caller is no admin. GAD_BAD_REQUEST: no such weight. GAD_LIMIT_EXCEEDED: that
 * was said of 1024 users. Connection statuses. */
enum gad_status gad_set_weight(struct gad_client *client, uint32_t uid, uint32_t weight,
                               struct gad_error *error);

/* ---- Many steps of time -------------------------------------------------------------------- */

/** Told after each job how many of the steps are done. Anything but 0 ends it there: what is done
 * stays for the next call.
 * data: of struct gad_repeat.
 * n_done: steps, of all calls.
 * n_steps: how many there are to be. */
typedef int gad_step_fn(void *data, uint64_t n_done, uint64_t n_steps);

/** Steps of time, more than one job can take. Zeroed but for what is said: auto, nobody is told. */
struct gad_repeat {
    uint64_t n_steps;       /**< 1 or more */
    uint32_t steps_at_once; /**< of one job, in one read and one write; 0: 8, or as many as there is
                                 room for */
    unsigned n_args;        /**< at most 48: what the arrays begin with, and what else steps read */
    const struct gad_argument *args;
    /** The arrays that change, at most 16. `name`: as in steps; `expr`: what a step makes of it, as
     * in repeat(n, name = expr), of all arrays as the step before has left them, behind functions,
     * "f(x) = ...; "; `to_path`: where it goes in the end, or NULL: it is not kept; at least one
     * is. `to`: NULL. */
    unsigned n_outputs;
    const struct gad_output *outputs;
    const char *engine, *label; /**< as of struct gad_job_options */
    const struct gad_beyond *beyond;
    int priority;              /**< likewise */
    uint32_t queue_timeout_ms; /**< each job has so long to begin, or it ends with
                                    GAD_QUEUE_TIMEOUT; 0: for ever */
    uint32_t deadline_ms;      /**< all of them together to end, or it does with
                                    GAD_DEADLINE_EXCEEDED; steps that are done stay. 0: for
                                    ever */
    gad_step_fn *step;
    bool (*is_cancelled)(const void *data); /**< asked some times a second; true: GAD_CANCELLED */
    void *data;                             /**< of both */
    bool only_plans; /**< nothing is run: how many steps there would be at once */
};

/** How it went. */
struct gad_repeat_outcome {
    uint64_t n_before;                        /**< steps that an earlier call had done */
    uint64_t n_done;                          /**< of n_steps, with those */
    uint64_t n_jobs, read_bytes, write_bytes; /**< of this call */
    uint32_t steps_at_once;
};

/** Takes many steps of time, job by job. Each job makes hidden files beside the first destination,
 * of which each appears whole or not at all; a call with the same steps, arguments and destination
 * goes on from the last ones that are there, whatever ended the one before. The same are files that
 * were not written since, and memory of the same elements; what a function of the program's own
 * makes is only told by dtype and shape. They are gone when the destinations are there; those of
 * another call that is never made again stay.
 * client, options: not NULL.
 * ret_outcome: may be NULL; valid whatever is returned.
 * GAD_BAD_ARGUMENT: no steps, no destination, an expression without a name. What is wrong with a
 * destination is found before the first job, as by gad_array_create(). GAD_LIMIT_EXCEEDED: too
 * many arrays; steps_at_once do not fit a tile. GAD_CANCELLED. Those of gad_run(). */
enum gad_status gad_repeat(struct gad_client *client, const struct gad_repeat *options,
                           struct gad_repeat_outcome *ret_outcome, struct gad_error *error);

#ifdef __cplusplus
}
#endif
