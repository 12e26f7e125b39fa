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

void workers_set_weight(struct broker *broker, uid_t uid, uint32_t weight);

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

/* What is chosen among: the workers as they are at one moment, in their order. Large. */
struct choice {
    unsigned n_offers;
    struct engine_offer offers[ENGINES_MAX];
    struct engine_decision decision;             /* of engines_decide() */
    char texts[ENGINES_MAX][2][WORKER_WHY_SIZE]; /* of workers_keep_texts() */
};

/* Fills the offers. A worker at which one of the regions is of no use is none. */
void workers_offer(const struct broker *broker, struct region *const *regions, unsigned n_regions,
                   struct choice *ret_choice);
/* From here on nothing in the offers is the workers' any more: for another thread. */
void workers_keep_texts(struct choice *choice);
/* Whether the same workers take jobs, with the same limits. */
bool workers_are_as_offered(const struct broker *broker, struct region *const *regions,
                            unsigned n_regions, const struct choice *choice);
/* A job that is to run was decided upon: workers that sleep are woken, if it is one for which a
 * device is worth it. */
void workers_wake_for(struct broker *broker, const struct job_request *request,
                      const struct plan *plan);

/* A device is named, and nobody knows yet how many there are: it gets a worker, which finds out. */
void workers_name_device(struct broker *broker, const struct job_request *request);
/* The worker said how many devices there are: those that the settings allow get workers. */
void workers_found_devices(struct broker *broker, unsigned n_devices);
/* The worker's life ended, or it does not come up: what waits for it may go elsewhere, or ends. */
void workers_lost_one(struct broker *broker, struct worker *w);
