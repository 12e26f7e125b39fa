/* From a request to a job: decoded, inspected, compiled, checked for overlap, planned. */
#pragma once

#include "daemon/broker/broker.h"
#include "kernels/program.h"

struct frame;
struct session;

struct submission {
    struct job_request *request;
    struct program *program; /* shared: not to be changed */
    /* Filled last; the broker's, until something else is decided upon. */
    const struct engine_decision *decision;
    const struct engine_offer *offers;
    unsigned n_offers;
    const struct plan *plan; /* of the worker that was chosen */
    struct worker *worker;
    bool is_in_place, has_provider;
    struct region *regions[JOB_MAX_REGIONS]; /* no references */
    unsigned n_regions;
};

/* Judges params as job.run would; a plan's arguments may be without a place. Nothing is kept but
 * in *ret; submission_deinit() in any case. */
int submission_make(struct session *session, const struct message *message,
                    const struct frame *frame, bool is_plan, struct submission *ret,
                    struct gad_error *error) GAD_MUST_CHECK;
void submission_deinit(struct submission *s);

/* Makes and queues the job, which takes the frame's body and descriptors; or finds the one with the
 * same key (then nothing is taken and it is not new). */
int submit(struct session *session, const struct message *message, struct frame *frame,
           struct job **ret_job, bool *ret_is_new, struct gad_error *error) GAD_MUST_CHECK;

/* Things changed since it was decided which worker computes the job: its limits, or whether it is
 * there. Plans again; a job that another worker is to compute now goes to the end of its queue; one
 * that waits where it was is left as it is. The job stays as it was where that fails. */
int submit_decide_again(struct broker *broker, struct job *job,
                        struct gad_error *error) GAD_MUST_CHECK;
