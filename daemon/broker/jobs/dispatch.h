/* Between the queues and the workers. */
#pragma once

#include "daemon/broker/jobs/job.h"
#include "daemon/broker/workers/strikes.h"

struct broker;
struct frame;
struct message;
struct worker;

void dispatch_turn(struct broker *broker); /* starts what can start */
/* A queue's gate: whether the user may get a result of so many bytes. userdata: the broker. */
bool dispatch_may_reply(void *userdata, uid_t uid, uint64_t reply_bytes);
void dispatch_answered(struct broker *broker, struct job *job, const struct message *message,
                       struct frame *frame);
void dispatch_progress(struct broker *broker, const struct message *message);
void dispatch_moved(struct broker *broker, const struct message *message); /* no client is told */
/* A job gave up its carry, until its client is back. */
void dispatch_parked(struct broker *broker, struct worker *worker, const struct message *message);

/* The worker is gone: its jobs go back to its queue or end. `struck`: ids of the suspects. */
void dispatch_worker_lost(struct broker *broker, struct worker *worker, const struct death *death,
                          const uint64_t *struck, unsigned n_struck);
/* The worker does not come up, or not soon: what waits there goes elsewhere, stays or ends, in the
 * turns that come. */
void dispatch_decide_again(struct broker *broker, struct worker *worker);
