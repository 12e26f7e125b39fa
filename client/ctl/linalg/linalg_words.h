/* What verbs of decompositions share: the data's words, progress by iterations, plans and outcomes.
 *
 *     t.npy                                     the data
 *     t=t.npy --of 'where(t < -900, 0, t)'      or what is computed of it on the way in
 */
#pragma once

#include "client/ctl/ctl.h"

struct linalg_words {
    struct ctl_job job; /* its arguments alone */
    const char *of;     /* NULL: the one source as it is */
    const char *destination;
    bool json, quiet, explain, has_drawn;
    struct ctl_progress progress; /* of the job that runs, before the first iteration */
    char label[64];
    struct gad_linalg_run run;
    struct gad_operand operand; /* once the sources are open */
};

enum {
    LINALG_OPTION_OF = 0x500,
    LINALG_OPTION_EXPLAIN,
    LINALG_OPTION_ENGINE,
    LINALG_OPTION_PRIORITY,
    LINALG_OPTION_JSON,
};
#define LINALG_OPTIONS                                                                               \
    {"output", 'o', "FILE", 0, "where the result goes: f.npz", 0},                                   \
        {"of",                                                                                       \
         LINALG_OPTION_OF,                                                                           \
         "EXPR",                                                                                     \
         0,                                                                                          \
         "what is decomposed, computed in each read: 'where(t < -900, 0, t)' of t=SOURCE",           \
         0},                                                                                         \
        CTL_MASKING_OPTIONS,                                                                         \
        {"explain",                                                                                  \
         LINALG_OPTION_EXPLAIN,                                                                      \
         NULL,                                                                                       \
         0,                                                                                          \
         "print how often the data will be read, bytes, time; run nothing",                          \
         0},                                                                                         \
        {"engine", LINALG_OPTION_ENGINE, "NAME", 0, "auto, cpu, cuda, or cuda:N for one device", 0}, \
        {"priority", LINALG_OPTION_PRIORITY, "N", 0, "-100 to 100 among your own jobs", 0},          \
        CTL_TIME_OPTIONS, {"label", 'l', "TEXT", 0, "shown in lists of jobs", 0},                    \
        {"json", LINALG_OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},                       \
    {                                                                                                \
        "quiet", 'q', NULL, 0, "no line of progress", 0                                              \
    }
/* Options of LINALG_OPTIONS and the sources; ARGP_ERR_UNKNOWN: none of them. */
error_t linalg_parse(int key, char *arg, struct linalg_words *words, struct argp_state *state);
/* At ARGP_KEY_END: there is a source, and a destination. */
error_t linalg_check(const struct linalg_words *words, const struct argp_state *state);
/* Numbers of options. 0, or as ctl_usage_error(). */
error_t linalg_read_count(const char *name, const char *text, int64_t *ret,
                          const struct argp_state *state);
error_t linalg_read_number(const char *name, const char *text, double *ret,
                           const struct argp_state *state);

/* Connects and opens; fills words->operand and words->run. */
int linalg_open(struct linalg_words *words, const char *verb, struct gad_client **ret_client,
                struct gad_error *error);
void linalg_close(struct linalg_words *words, struct gad_client *client);
/* The line of progress ends. */
void linalg_end_progress(struct linalg_words *words);

void linalg_print_plan(const struct linalg_words *words, const struct gad_linalg_plan *plan);
/* n_reads, read_bytes ... into an outcome. */
void linalg_add_reads(struct json_object *object, const struct gad_reads *reads);
