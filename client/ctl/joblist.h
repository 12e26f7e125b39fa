/* Jobs as text: one in full, or a list of lines. */
#pragma once

#include "client/ctl/ctl.h"

/* "queued" ... "cancelled", or "active" for those that have not ended. */
bool joblist_is_state(const char *state);
/* The state; "paused" where it is. */
const char *joblist_state(const struct gad_job_status *job);
bool joblist_is_active(const struct gad_job_status *job);
/* Keeps those of a state (NULL: all) in their order; returns how many. */
size_t joblist_keep(struct gad_job_status *jobs, size_t n_jobs, const char *state);
/* "123", or "?" where nobody knows how many there are, as of streams of unknown length. */
#define JOBLIST_TILES 24
const char *joblist_tiles(const struct gad_job_status *job, char buffer[JOBLIST_TILES]);
void joblist_print_status(const struct gad_job_status *job);
/* Returns the number of lines. */
size_t joblist_print(const struct gad_job_status *jobs, size_t n_jobs, bool with_users);
