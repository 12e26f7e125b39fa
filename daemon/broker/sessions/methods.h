/* What clients can ask: one handler a verb. */
#pragma once

#include "daemon/broker/numbers/info.h"
#include "proto/wire/message.h"

struct frame;
struct job;
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

/* methods_jobs.c */
int handle_job_cancel(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_pause(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_resume(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;

/* The job that the request names: the user's own, or anybody's, for those who may look at all. */
/* Of a request about all jobs of a user, or of everybody (JOBS_OF_EVERYBODY): whose, where the
 * session may. bad-request, permission-denied. */
int methods_find_whose(const struct request *q, uid_t *ret_uid,
                       struct gad_error *error) GAD_MUST_CHECK;
int methods_find_any_job(const struct request *q, struct job **ret_job,
                         struct gad_error *error) GAD_MUST_CHECK;
/* permission-denied, unless the session is an admin's; `what`: they alone do. */
int methods_check_admin(const struct session *session, const char *what,
                        struct gad_error *error) GAD_MUST_CHECK;

/* methods_admin.c */
int handle_server_users(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_server_drain(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_server_weight(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;

/* So many questions of the session's user may wait for the workers' numbers. */
int methods_check_asking(const struct session *session, unsigned limit,
                         struct gad_error *error) GAD_MUST_CHECK;

/* Asks all workers for their numbers; the reply follows. */
int methods_ask_all(const struct request *q, bool with_jobs, info_reply *reply) GAD_MUST_CHECK;

/* methods_job.c */
int handle_job_plan(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_run(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_submit(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_wait(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_status(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_list(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_trace(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
int handle_job_settle(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
