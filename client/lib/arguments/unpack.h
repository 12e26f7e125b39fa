/* Arguments that are masked and scaled, as parts of a request's expressions. */
#pragma once

#include "client/array.h"
#include "proto/error.h"

/* The name under which argument i of the options goes to the daemon. */
void unpack_name(const struct gad_job_options *options, unsigned i, char ret_name[ARRAY_NAME_SIZE]);
/* The text of output i as it goes to the daemon: *ret_text is a heap string, or NULL where it is as
 * it was given. limit-exceeded, no-memory. */
int unpack_text(const struct gad_job_options *options, unsigned i, char **ret_text,
                struct gad_error *error) GAD_MUST_CHECK;
/* What the daemon said, in the names and columns of the options. */
void unpack_restore(const struct gad_job_options *options, struct gad_error *error);
