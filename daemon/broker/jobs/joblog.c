/* The line of the log that says how a job ended: one for each, at info, with the numbers that an
 * administrator asks about later.
 *
 *     job: done JOB=17 UID=1000 CODE=ok ENGINE=cpu QUEUED_SECONDS=0.001 RUN_SECONDS=1.234
 *     INPUT_SECONDS=0.000 ROOM_SECONDS=0.000 TURN_SECONDS=0.052 READ_BYTES=800 WRITTEN_BYTES=400
 *     LABEL="night run"
 *
 * CODE is the outcome's word of the wire; ENGINE is `none` for a job that never ran. QUEUED_SECONDS
 * are those until its last attempt began, RUN_SECONDS the rest, with what its owner took to put the
 * output in its place. INPUT_SECONDS, ROOM_SECONDS and TURN_SECONDS are those of both in which it
 * waited for its clients or a disk, for memory of the pool, for others. The label is a client's
 * text, quoted so that it cannot pass for a field. A user with thousands of jobs a second gets no
 * line for most of them (loglimit.c), and those are not made.
 *
 * Called by finish.c.
 */
#define LOG_TOPIC "job"
#include "daemon/broker/jobs/joblog.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/workers/worker.h"
#include "proto/text.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_SIZE (384 + 2 * REQUEST_LABEL_SIZE)

static const char *code_of(const struct job *job)
{
    return error_word((int)job->failed_as);
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static double waited(const struct job *job, enum traffic_wait wait)
{
    return (double)job_wait_ns(job, wait, 0) / 1e9;
}

void joblog_ended(const struct broker *broker, const struct job *job)
{
    char fields[FIELDS_SIZE], label[2 * REQUEST_LABEL_SIZE + 3];
    struct log_fields all = {.job = job->id, .has_uid = true, .uid = job_uid(job), .more = fields};
    if (!log_may_write(LOG_LEVEL_INFO, &all))
        return;
    bool has_run = job->started_ns > 0;
    uint64_t started_ns = has_run ? job->started_ns : job->ended_ns;
    text_quote(job->label, label, sizeof(label));
    snprintf(fields, sizeof(fields),
             "CODE=%s ENGINE=%s QUEUED_SECONDS=%.6f RUN_SECONDS=%.6f INPUT_SECONDS=%.6f "
             "ROOM_SECONDS=%.6f TURN_SECONDS=%.6f READ_BYTES=%" PRIu64 " WRITTEN_BYTES=%" PRIu64
             " LABEL=%s",
             code_of(job), has_run ? worker_info(job->worker)->engine : "none",
             seconds(job->submitted_ns, started_ns), seconds(started_ns, job->ended_ns),
             waited(job, TRAFFIC_INPUT), waited(job, TRAFFIC_ROOM), waited(job, TRAFFIC_TURN),
             job->read_bytes, job->write_bytes, label);
    log_put(LOG_LEVEL_INFO, LOG_TOPIC, &all, "%s", job_state_name(job->state));
}
