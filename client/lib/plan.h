/* Asking the daemon for a plan. */
#pragma once

#include "client/lib/build.h"

/* The options were checked. *ret_plan: gad_plan_free(). Turns to providers by itself where the
 * daemon asks for it. */
int plan_ask(struct gad_client *client, const struct gad_job_options *options,
             enum build_purpose purpose, struct gad_plan **ret_plan,
             struct gad_error *error) GAD_MUST_CHECK;
