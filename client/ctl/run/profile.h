/* run --profile: what a job takes of memory and moves, while it runs, as a picture. */
#pragma once

#include "client/ctl/ctl.h"

struct profile;

/* Looks from now on, by a thread with a connection of its own. */
int profile_begin(struct profile **ret_profile, struct gad_error *error) GAD_MUST_CHECK;
/* How far the job is. */
void profile_progress(struct profile *profile, const struct gad_progress *now);
/* The job is over: looks a last time. stats NULL: it failed. */
void profile_end(struct profile *profile, const struct gad_job_stats *stats);
/* After profile_end(): draws what was seen. title: what was run. */
int profile_write(struct profile *profile, const char *path, const char *title,
                  struct gad_error *error) GAD_MUST_CHECK;
struct profile *profile_free(struct profile *profile); /* NULL */
