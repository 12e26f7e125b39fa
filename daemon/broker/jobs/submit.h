/* From a request to a job: decoded, located, judged, charged and queued. */
#pragma once

#include "daemon/broker/broker.h"
#include "daemon/broker/sessions/places.h"
#include "daemon/broker/workers/workers.h"
#include "kernels/program.h"

struct frame;
struct programs;
struct session;

enum submission_kind { SUBMISSION_PLAN, SUBMISSION_SUBMIT, SUBMISSION_RUN }; /* job.plan ... */

struct submission {
    enum submission_kind kind;
    uid_t uid;
    struct job_request *request;
    /* Where its arrays are, or why they cannot be there: errors of expressions come first. */
    struct places places;
    int r_places;
    struct gad_error of_places;
    struct choice *choice; /* its caller's */
    /* Judged: */
    struct program *program; /* shared: not to be changed */
    bool is_in_place;
    const struct plan *plan; /* of the worker that was chosen */
    char *text;              /* of a plan: the program, for people */
};

/* The steps, in this order (the first is part of the second); submission_deinit() in any case. */
void submission_init(struct submission *s, enum submission_kind kind, uid_t uid);
int submission_decode(const struct session *session, const struct message *message,
                      const struct frame *frame, enum submission_kind kind, struct submission *ret,
                      struct gad_error *error) GAD_MUST_CHECK;
/* Whether jobs are taken: shutting-down, draining. A plan always is, and what has a twin. */
int submission_check_open(const struct session *session, const struct submission *s,
                          struct gad_error *error) GAD_MUST_CHECK;
/* A job with the same key: then there is nothing to judge. NULL: none. */
struct job *submission_twin(const struct session *session, const struct submission *s);
/* Its places, and the workers as they are now, to *choice. */
void submission_locate(const struct session *session, const struct frame *frame,
                       struct submission *s, struct choice *choice);
/* Pure: reads and writes nothing but the submission, its choice and the table of programs (NULL: it
 * is compiled anew), so that another thread may do it. */
int submission_judge(struct submission *s, struct programs *programs,
                     struct gad_error *error) GAD_MUST_CHECK;
/* Makes and queues the job, which takes the frame's body and descriptors. */
int submission_make_job(struct session *session, const struct message *message, struct frame *frame,
                        const struct submission *s, struct job **ret_job,
                        struct gad_error *error) GAD_MUST_CHECK;
void submission_deinit(struct submission *s);

/* Things changed since it was decided which worker computes the job: its limits, or whether it is
 * there. Plans again; a job that another worker is to compute now goes to the end of its queue; one
 * that waits where it was is left as it is. The job stays as it was where that fails. */
int submit_decide_again(struct broker *broker, struct job *job,
                        struct gad_error *error) GAD_MUST_CHECK;
