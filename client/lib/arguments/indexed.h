/* NAME[NAME], NAME[:, NAME] and take(NAME, NAME, axis=1) in the expressions of a job: elements of
 * an argument by their indices in another, or where that is true. */
#pragma once

#include "client/gpuarrayd.h"
#include "proto/error.h"

struct indexed {
    struct gad_job_options options; /* as they go on */
    struct gad_argument *args;      /* NULL: as they were given */
    struct gad_output *outputs;     /* whose texts are ours */
    unsigned n_given;               /* args, which are the caller's */
};

/* The options stay the caller's, and are needed as long. Masks are run as jobs of the client. Those
 * of gad_array_take(); bad-expression, limit-exceeded, no-memory. */
int indexed_init(struct indexed *indexed, struct gad_client *client,
                 const struct gad_job_options *options, struct gad_error *error) GAD_MUST_CHECK;
void indexed_deinit(struct indexed *indexed); /* also after a failure */
/* The same in the text of a plan. */
void indexed_restore_text(const struct gad_job_options *options, char *text);
/* What is said of such options, as they were written. error may be NULL. */
void indexed_restore(const struct gad_job_options *options, struct gad_error *error);
