/* Pausing jobs, and letting them go on. */
#pragma once

#include "daemon/broker/jobs/job.h"

/* Nothing happens to what has been computed, is being ended, or is so already; and none is paused
 * in a daemon that is leaving. */
void pause_set(struct job *job, bool is_paused);
/* Those at workers, all of them: the daemon leaves when the last has ended. */
void pause_end_all(struct broker *broker);
bool pause_is_on(const struct job *job); /* for those who look */
/* Others wait for something, and the job at the worker has been paused for allowed_ns: what it has
 * of that it gives back. */
void pause_yield(struct job *job, uint64_t allowed_ns);
