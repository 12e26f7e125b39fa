/* Times of a call that makes several jobs, one after the other: a job must begin within the queue's
 * time-out, as each does by itself; the deadline is that of all together, and each job gets what is
 * left of it.
 */
#pragma once

#include "client/array.h"

struct loop_times {
    uint32_t queue_timeout_ms, deadline_ms; /* 0: for ever */
    int64_t began_ms;
};

struct loop_times loop_times_begin(uint32_t queue_timeout_ms, uint32_t deadline_ms);
/* Into the options of the next job. deadline-exceeded: nothing is left. */
int loop_times_give(const struct loop_times *times, struct gad_job_options *job,
                    struct gad_error *error) GAD_MUST_CHECK;
/* r: how a job ended; a deadline that it has missed is told as that of all. Returns r. */
int loop_times_tell(const struct loop_times *times, int r, struct gad_error *error);
