/* When requests are planned (how: kernels/plan; for which engine: workers/engines.h). What takes a
 * moment is planned at once, in the loop; what takes longer in a thread, one at a time.
 */
#pragma once

#include "daemon/broker/jobs/submit.h"

struct planner;
struct request;

int planner_new(struct broker *broker, struct planner **ret_planner) GAD_MUST_CHECK; /* -ENOMEM */
void planner_stop(struct planner *planner); /* NULL too; nothing is begun any more */
/* NULL; when the loop has finished its work and all sessions are closed. */
struct planner *planner_free(struct planner *planner);

/* Carries out a job.plan, job.submit or job.run, as methods_handle() does. Where planning takes
 * long, the frame is taken and the session is not read from until it is answered. */
int planner_take(const struct request *q, enum submission_kind kind,
                 struct gad_error *error) GAD_MUST_CHECK;
/* The session is closed: what it waits for is dropped. */
void planner_session_gone(struct session *session);
/* Who still waits gets `error`. */
void planner_refuse_all(struct planner *planner, const struct gad_error *error);

/* Room for what is decided at once in the loop. */
struct choice *planner_choice(struct planner *planner);

/* methods_job.c: a job with the same key was there; the request was judged. */
int methods_job_found(const struct request *q, enum submission_kind kind, struct job *job,
                      struct gad_error *error) GAD_MUST_CHECK;
int methods_job_judged(const struct request *q, const struct submission *s,
                       struct gad_error *error) GAD_MUST_CHECK;
