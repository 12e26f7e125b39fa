/* How jobs end, and who is told. */
#pragma once

#include "daemon/broker/jobs/job.h"

struct broker;
struct frame;
struct message;
struct session;

/* The session's request `id` waits for the job's outcome; the answer may come at once. timeout_ns
 * UINT64_MAX: none. 0, quota-exceeded, -ENOMEM. */
int finish_wait(struct session *session, uint32_t id, struct job *job, uint64_t timeout_ns,
                struct gad_error *error) GAD_MUST_CHECK;
void finish_wait_run(struct session *session, uint32_t id, struct job *job); /* its own job.run */
void finish_drop_waiter(struct waiter *waiter); /* its session is gone */

/* The worker's answer: takes the frame's body. */
void finish_result(struct broker *broker, struct job *job, const struct message *message,
                   struct frame *frame);
void finish_error(struct broker *broker, struct job *job, const struct gad_error *error);
void finish_settled(struct broker *broker, struct job *job, const struct gad_error *error);

/* Cancels it, or asks the worker to; nothing happens to what has been computed. */
void finish_cancel(struct broker *broker, struct job *job);
void finish_owner_gone(struct broker *broker, struct job *job);

/* Gives back all that it took to ask for the job: queue place, carry, regions, descriptors, body,
 * charges. */
void finish_release(struct broker *broker, struct job *job);
