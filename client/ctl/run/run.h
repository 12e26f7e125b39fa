/* The words of run and submit. */
#pragma once

#include "client/ctl/ctl.h"

struct profile;

#define RUN_LABEL_SIZE 64 /* as much as a daemon keeps */

struct run_options {
    struct ctl_job job;
    const char *engine, *label; /* the label is never NULL after the words were read */
    char own_label[RUN_LABEL_SIZE];
    const char *journal_path; /* NULL: none */
    const char *profile_path; /* run --profile; NULL: none */
    uint64_t n_repeats;       /* run --repeat; 0: it was not said */
    int priority;
    uint32_t queue_timeout_ms, deadline_ms; /* 0: none */
    bool json, explain, quiet, verbose, in_place, tf32, show;
    bool has_mode;
    struct gad_beyond beyond;   /* --mode */
    enum ctl_printing printing; /* of results without a destination */
    bool has_seed;              /* random: shown with the outcome */
    uint64_t seed;
    const char *expression;
    char *destinations[CTL_MAX_OUTPUTS];
    unsigned n_destinations;
    struct gad_stream *input, *output;  /* "-": NULL: none */
    unsigned input_index, output_index; /* among arguments and outputs, whose arrays are theirs */
    struct profile *profile;            /* while the job runs; NULL: none */
    struct ctl_progress steps;          /* of --repeat */
    struct gad_error error;
};

/* The label of a job that got none: as much of the text as fits, on one line and printable. */
void run_set_label(struct run_options *o, const char *text);
/* 0 or EXIT_USAGE, after the message was printed. Whatever it returns, ctl_job_deinit(&o->job). */
int run_parse_words(struct run_options *o, int argc, char **argv);
/* Opens sources, and destinations that are written in place. */
int run_open_all(struct run_options *o, struct gad_client *client);
/* Connects, opens, runs (or explains) and prints; frees the job. Returns an exit code. */
int run_execute(struct run_options *o);
/* progress may be NULL. The result points into o. */
struct gad_job_options run_job_options(struct run_options *o, struct ctl_progress *progress);

/* repeated.c: run --repeat, whose arguments are open. */
int run_repeated(struct run_options *o, struct gad_client *client);

/* run_pipes.c: "-". */
/* 0 or EXIT_USAGE, after the message was printed. */
int run_check_pipes(const struct run_options *o);
/* Before the other sources; the result needs all of them. */
int run_open_input_pipe(struct run_options *o, struct gad_client *client);
int run_open_output_pipe(struct run_options *o, struct gad_client *client);
/* After the job has ended with a status; returns that of both. */
int run_join_output_pipe(struct run_options *o, int status);
void run_close_pipes(struct run_options *o);

/* explain.c: prints the plan, runs nothing. */
int run_explain(struct run_options *o, struct gad_client *client);
void run_print_plan(const struct gad_plan *plan, bool json);
