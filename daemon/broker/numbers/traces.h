/* job.trace: what the worker did with the tiles of a job, for the job's user and for admins. */
#pragma once

#include "proto/error.h"
#include "proto/wire/trace.h"

/* Of a worker's answer: the records, and names of lanes. */
#define TRACE_MAX_BYTES (TRACE_MAX_RECORDS * sizeof(struct trace_record) + 64u * 1024)

struct job;
struct session;

/* The session may look at the job. The request is answered when the worker was asked. */
int traces_ask(struct session *session, uint32_t id, const struct job *job) GAD_MUST_CHECK;
