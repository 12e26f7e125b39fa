/* Times of a call that makes several jobs.
 *
 *     began                                                  the deadline
 *       | job 1 (all of it) | job 2 (what is left) | .. |       |
 *
 * Called by decompositions, repeats and movements. The daemon ends the job that runs at the
 * deadline; what is between jobs ends with it, as none is left for the next one.
 */
#include "client/lib/jobs/loop_times.h"
#include "client/clock.h"
#include "proto/error.h"

#include <stdio.h>

struct loop_times loop_times_begin(uint32_t queue_timeout_ms, uint32_t deadline_ms)
{
    return (struct loop_times){queue_timeout_ms, deadline_ms, clock_now_ms()};
}

static int refuse(const struct loop_times *times, const char *found, struct gad_error *error)
{
    double seconds = times->deadline_ms / 1e3;
    error_set(error, GAD_DEADLINE_EXCEEDED, NULL,
              "its jobs had not all ended at the deadline, %.3g s after it began: %s", seconds,
              found);
    error_expected(error, "to end within %.3g s", seconds);
    error_found(error, "%s", found);
    return GAD_DEADLINE_EXCEEDED;
}

int loop_times_give(const struct loop_times *times, struct gad_job_options *job,
                    struct gad_error *error)
{
    job->queue_timeout_ms = times->queue_timeout_ms;
    job->deadline_ms = 0;
    if (times->deadline_ms == 0)
        return 0;
    int64_t left_ms = times->began_ms + times->deadline_ms - clock_now_ms();
    if (left_ms <= 0)
        return refuse(times, "between two jobs", error);
    job->deadline_ms = (uint32_t)left_ms;
    return 0;
}

int loop_times_tell(const struct loop_times *times, int r, struct gad_error *error)
{
    if (r != GAD_DEADLINE_EXCEEDED || times->deadline_ms == 0 || !error)
        return r;
    char found[sizeof(error->found)];
    snprintf(found, sizeof(found), "%s", error->found);
    return refuse(times, found, error);
}
