/* A job on its way: submitted, waited for, its outputs put in their place. */
#pragma once

#include "client/lib/jobs/build.h"
#include "client/lib/jobs/copy.h"
#include "client/lib/jobs/result.h"

enum job_state {
    JOB_SENT,     /* job.run or job.submit is under way */
    JOB_WAITING,  /* job.wait is under way; the id is known */
    JOB_COPYING,  /* by this process: see copy.c */
    JOB_SETTLING, /* files are in their place; job.settle is under way */
    JOB_LOST,     /* the connection went first */
    JOB_DONE,
};

struct job_target {             /* of one output */
    struct gad_array *to;       /* a reference; NULL: inline in the answer */
    struct gad_array *stand_in; /* shared memory that is computed into and copied to `to` */
    bool is_created;            /* from to_path: committed at the end */
};

struct gad_job {
    struct gad_client *client;
    struct gad_job *previous, *next; /* of client->jobs, while not done */
    enum job_state state;
    struct gad_job_options options; /* a copy, with references to the arrays */
    struct job_target *targets;
    struct gad_array **to; /* what the request names: stand_in or to */
    struct feed *feeds;
    char key[33]; /* idempotency */
    uint64_t id;
    int64_t open_length;  /* of its request */
    int64_t submitted_at; /* by the caller */
    uint64_t total_bytes; /* as planned; 0: no plan was asked for */
    bool is_run;          /* job.run: one message each way; the id is not known before the end */
    bool needs_settling;  /* some output is created */
    bool was_sent;
    bool wants_cancel;
    bool is_refused;                   /* LOST, because the daemon leaves: it has not begun */
    unsigned n_recoveries, n_attempts; /* sent again after a loss; begun to be */
    enum gad_status status;            /* of the end */
    struct gad_error error;
    struct result result;
    struct journal journal;
    struct copy copy;
};

/* Sends it, or sends it again. A status or -errno; GAD_DISCONNECTED: nothing was sent. */
int job_begin(struct gad_job *job, struct gad_error *error) GAD_MUST_CHECK;
void job_end(struct gad_job *job, int status, const struct gad_error *error);
/* Nothing that it reads is written over, or it goes on from what its journal says; and nothing has
 * come or gone for good. */
bool job_is_repeatable(const struct gad_job *job);

/* recover.c. The daemon leaves, and has not begun with the job. */
void job_note_refusal(struct gad_job *job);
/* It is LOST: sends it again where that is safe, or ends it; GAD_TIMEOUT: not yet possible. A
 * daemon that is there and does not answer counts as one that stays away. */
int job_recover(struct gad_job *job, int64_t deadline) GAD_MUST_CHECK;

/* Every byte is in its place, or what went wrong. */
void job_copied(struct gad_job *job, int r);

/* job.progress */
void job_progress(struct gad_client *client, const msgpack_object *params);

/* After a refusal with use-provider: turns to the providers of what the error names. false: there
 * is nothing to turn to. */
bool job_turn_to_providers(const struct gad_job_options *options, struct gad_array *const *to,
                           const struct gad_error *error);
