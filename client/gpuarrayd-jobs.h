/** gpuarrayd: jobs of other processes of the same user. Included by gpuarrayd.h.
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

/** Lists all of the user's jobs that the daemon knows.
 * client: not NULL.
 * ret_jobs: an array, newest last, never NULL; the caller's, to be given to free().
 * ret_n_jobs: how many they are.
 * Connection statuses. */
enum gad_status gad_job_list(struct gad_client *client, struct gad_job_status **ret_jobs,
                             size_t *ret_n_jobs, struct gad_error *error);

#ifdef __cplusplus
}
#endif
