/* The streams among a job's arrays. */
#pragma once

#include "client/lib/jobs/job.h"

bool job_has_streams(const struct gad_job_options *options);
/* The job has ended: those who push or take are told, and a stream that has failed says what the
 * job's error is. Nothing where it was never sent: then its streams serve another job. */
void job_end_streams(struct gad_job *job);
