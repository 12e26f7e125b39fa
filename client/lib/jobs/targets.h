/* Where the outputs of a job go, before and after it. */
#pragma once

#include "client/lib/jobs/job.h"

/* Fills job->targets and job->to from job->options: references, stand-ins, new files (which takes a
 * plan, so a round trip). A failure leaves what was made to targets_deinit(). */
int targets_init(struct gad_job *job, struct gad_error *error) GAD_MUST_CHECK;

/* After a job that went well: copies out of the stand-ins, puts new files in their place. */
int targets_finish(struct gad_job *job, struct gad_error *error) GAD_MUST_CHECK;

/* Gives up stand-ins; new files that are not in their place disappear. */
void targets_deinit(struct gad_job *job);

/* Whether the job may simply be run again: no output is also what it reads. */
bool targets_are_repeatable(const struct gad_job_options *options, struct gad_array *const *to);

/* overlapping-output where rings hide from the daemon that an output is written over what another
 * argument reads. */
int targets_check_unseen(const struct gad_job *job, struct gad_error *error) GAD_MUST_CHECK;
