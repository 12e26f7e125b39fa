/* Between the queue and the worker. */
#pragma once

#include "daemon/broker/job.h"
#include "daemon/broker/strikes.h"

struct broker;
struct frame;
struct message;

void dispatch_turn(struct broker *broker); /* starts what can start */
void dispatch_answered(struct broker *broker, struct job *job, const struct message *message,
                       struct frame *frame);
void dispatch_progress(struct broker *broker, const struct message *message);
void dispatch_moved(struct broker *broker, const struct message *message); /* no client is told */

/* The worker is gone: its jobs go back to the queue or end. `struck`: ids of the suspects. */
void dispatch_worker_lost(struct broker *broker, const struct death *death, const uint64_t *struck,
                          unsigned n_struck);
/* The worker does not come up: nobody need wait. */
void dispatch_refuse_all(struct broker *broker, const struct gad_error *error);
