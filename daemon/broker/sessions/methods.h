/* What clients can ask: one handler a verb. */
#pragma once

#include "proto/wire/message.h"

struct frame;
struct session;

struct request {
    struct session *session;
    const struct message *message;
    const msgpack_object *params; /* a map */
    uint32_t id;
    struct frame *frame; /* stays the caller's; what a handler takes out of it is gone from it */
};

/* Carries out a request: 0: answered, or will be; positive: to be answered with the error;
 * negative: the session cannot go on. */
int methods_handle(const struct request *request, struct gad_error *error) GAD_MUST_CHECK;

/* methods_job.c */
int handle_job_plan(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_run(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_submit(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_wait(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_status(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_cancel(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_list(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_settle(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
