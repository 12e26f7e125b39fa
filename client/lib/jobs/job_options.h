/* A job's own copy of what its caller asked for. */
#pragma once

#include "client/gpuarrayd.h"

#include <stdbool.h>

/* Texts are copied, sources referenced; outputs' arrays stay in `to`, without a reference. -ENOMEM.
 */
int job_options_copy(const struct gad_job_options *options, struct gad_job_options *ret);
void job_options_deinit(struct gad_job_options *options); /* also zeroed and half-copied ones */

/* No blocks have to be moved and it takes milliseconds: worth no third message. */
bool job_options_are_small(const struct gad_job_options *options);
