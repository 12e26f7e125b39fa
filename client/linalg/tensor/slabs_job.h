/* Jobs of slabs, between their sources. */
#pragma once

#include "client/linalg/tensor/slabs.h"

struct slabs_job {
    struct gad_argument inputs[SLABS_MAX_NDIM + 1 + SLABS_N_DESCENT];
    struct gad_output outputs[3];
    char names[SLABS_MAX_NDIM][8], rest_text[320];
    struct pass pass;
};

/* Columns that a job of two reads has. */
struct slabs_part {
    int64_t first, n;
    bool only_tries;
};

void slabs_job_add_input(struct slabs_job *job, const char *name, struct gad_array *array);
void slabs_job_add_output(struct slabs_job *job, const char *expr, struct gad_array *to);
/* What the text `product` names. */
void slabs_job_add_factors(const struct slabs *s, struct slabs_job *job);
/* only_tries: passes_try(). */
int slabs_job_run(struct slabs *s, struct slabs_job *job, bool with_squares, bool only_tries,
                  struct gad_error *error) GAD_MUST_CHECK;
