/* Jobs by the number that their user knows, wherever the daemon has them by now. Each function
 * connects by itself, to the daemon that has the job; none starts one. */
#pragma once

#include "client/ctl/agent/agents.h"
#include "client/ctl/ctl.h"

/* Of a detached job .job is the number first given. States beside those of the daemon:
 * "reconnecting", while the job is on its way back to a daemon that was restarted. */
int numbers_status(uint64_t number, struct gad_job_status *ret, struct gad_error *error);
/* Waits for the job's end, over restarts of the daemon; its error is this error. */
int numbers_wait(uint64_t number, int timeout_ms, struct gad_error *error);
int numbers_cancel(uint64_t number, struct gad_error *error);
int numbers_pause(uint64_t number, bool is_paused, struct gad_error *error);
/* What the daemon's worker remembers of the job, as JSON (gad_job_trace_json()); free() it. */
int numbers_trace(uint64_t number, char **ret_json, struct gad_error *error);
/* The daemon's list, and of the registry the detached jobs that it does not know; free() it. */
int numbers_list(struct gad_job_status **ret_jobs, size_t *ret_n_jobs, struct gad_error *error);
