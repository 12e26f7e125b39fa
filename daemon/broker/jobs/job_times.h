/* The times that a job may take: to begin in, and to end in. */
#pragma once

#include "daemon/broker/jobs/job.h"

/* It was taken; job->times has what is allowed. */
void job_times_begin(struct broker *broker, struct job *job);
void job_times_begun(struct job *job); /* an engine has it */
void job_times_end(struct job *job);   /* it is computed, or has ended */
/* Why it is ended, with what was expected and found. */
void job_times_explain(const struct job *job, struct gad_error *ret);
