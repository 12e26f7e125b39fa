/* The trace: the last things that the worker's threads did with tiles, of all jobs, in a ring of
 * fixed size. Any thread adds, without a lock; the main thread looks up what was of one job. */
#pragma once

#include "proto/error.h"
#include "proto/wire/trace.h"

#include <stdatomic.h>
#include <stdbool.h>

#define TRACE_SLOTS TRACE_MAX_RECORDS /* a power of two */

struct trace_slot {
    /* 0: never used; odd: somebody writes it; else twice the number of what it has, and 2. */
    _Atomic uint64_t stamp;
    _Atomic uint64_t job, begin_ns, duration_ns, rest;
};

struct trace {
    _Atomic uint64_t n_added;
    _Atomic uint64_t since_ns; /* the ring's begin, or the latest end that was overwritten */
    struct trace_slot slots[TRACE_SLOTS];
};

int trace_new(uint64_t now_ns, struct trace **ret_trace) GAD_MUST_CHECK;
struct trace *trace_free(struct trace *trace); /* NULL; nobody adds any more */

/* trace NULL: nothing. What ends before it begins is left out. */
void trace_add(struct trace *trace, uint64_t job, const struct trace_record *record);

/* The job's records that are still there, in no order; ret_records: room for TRACE_SLOTS. Returns
 * how many. *ret_since_ns: whatever ended later than that, of any job, is there, but for what was
 * left out because two threads came to one place at once. */
unsigned trace_find(const struct trace *trace, uint64_t job, struct trace_record *ret_records,
                    uint64_t *ret_since_ns);
