/* From the answer to job.trace to Chrome's trace event format. Pure. */
#pragma once

#include "proto/error.h"

#include <msgpack.h>

struct json_object;

/* ret: to be put. GAD_PROTOCOL: it is no such answer; -ENOMEM. */
int trace_events_make(const msgpack_object *answer, struct json_object **ret,
                      struct gad_error *error) GAD_MUST_CHECK;
