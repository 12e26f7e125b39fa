/* The workers together: which there are, what they have in hand, and which computes a job. */
#pragma once

#include "daemon/broker/workers/engines.h"
#include "daemon/broker/workers/worker.h"

struct program;

/* The CPU's worker, and the first device's, as the settings say. -ENOMEM. */
int workers_new(struct broker *broker) GAD_MUST_CHECK;
void workers_free(struct broker *broker);
void workers_begin(struct broker *broker);
void workers_stop(struct broker *broker);
bool workers_have_stopped(const struct broker *broker);
void workers_flush(struct broker *broker);
void workers_trim(struct broker *broker);
void workers_retry(struct broker *broker); /* those that wait for a device or its memory */
void workers_apply_limits(struct broker *broker);

/* The CPU's, or the only one: what numbers without an engine's name are about. */
struct worker *workers_main(const struct broker *broker);
unsigned workers_n_active(const struct broker *broker);
unsigned workers_n_waiting(const struct broker *broker);
unsigned workers_n_carries(const struct broker *broker);
/* Some job that waits, or NULL. */
struct job *workers_any_waiting(const struct broker *broker);

/* no-engine where no worker is ready or coming. */
int workers_check(const struct broker *broker, struct gad_error *error) GAD_MUST_CHECK;
/* Somebody needs a worker: if none is up or on its way, one that sleeps is woken. */
void workers_need_one(struct broker *broker);

/* Chooses among the workers, as they are at this moment; the choice is in broker->decision, over
 * broker->offers. A worker at which one of the regions is of no use is none. */
int workers_decide(struct broker *broker, const struct job_request *request,
                   const struct program *program, bool in_place, struct region *const *regions,
                   unsigned n_regions, struct worker **ret_worker,
                   struct gad_error *error) GAD_MUST_CHECK;
/* After workers_decide() for a job that is to run: workers that sleep are woken, if it is one for
 * which a device is worth it. */
void workers_wake_for(struct broker *broker, const struct job_request *request);

/* A device is named, and nobody knows yet how many there are: it gets a worker, which finds out. */
void workers_name_device(struct broker *broker, const struct job_request *request);
/* The worker said how many devices there are: those that the settings allow get workers. */
void workers_found_devices(struct broker *broker, unsigned n_devices);
/* The worker's life ended, or it does not come up: what waits for it may go elsewhere, or ends. */
void workers_lost_one(struct broker *broker, struct worker *w);
