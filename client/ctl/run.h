/* The words of run and submit. */
#pragma once

#include "client/ctl/ctl.h"

struct run_options {
    struct ctl_job job;
    const char *engine, *label;
    int priority;
    bool json, explain, quiet, verbose, in_place;
    const char *expression;
    char *destinations[CTL_MAX_OUTPUTS];
    unsigned n_destinations;
    struct gad_error error;
};

/* 0 or EXIT_USAGE, after the message was printed. Whatever it returns, ctl_job_deinit(&o->job). */
int run_parse_words(struct run_options *o, int argc, char **argv);
/* Opens sources, and destinations that are written in place. */
int run_open_all(struct run_options *o, struct gad_client *client);
/* progress may be NULL. The result points into o. */
struct gad_job_options run_job_options(struct run_options *o, struct ctl_progress *progress);
