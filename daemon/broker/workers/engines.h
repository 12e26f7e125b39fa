/* Which worker computes a job. A pure choice over what the workers said of themselves (their limits
 * and rates) and over what they have in hand. */
#pragma once

#include "kernels/plan/plan.h"
#include "proto/request.h"

#define ENGINES_MAX      17u /* the CPU's and one a device */
#define ENGINE_NAME_SIZE 16  /* "cpu", "cuda:0" */
#define ENGINE_WHY_SIZE  256 /* "auto: cpu 0.8 ms (memory), cuda:0 2.1 ms (link)" */

struct engine_offer { /* a worker, as the choice sees it */
    char name[ENGINE_NAME_SIZE];
    bool is_device;
    int index;              /* of the device; -1: the CPU engine */
    bool is_ready;          /* takes jobs now */
    bool is_coming;         /* starts, restarts or sleeps: jobs that name it may wait for it */
    const char *absent_why; /* neither: why ("no NVIDIA driver"); NULL else */
    struct plan_limits limits;
    uint32_t limits_serial; /* another number where they are others */
    double busy_seconds;    /* what it has in hand and in its queue would take, as planned */
};

struct engine_estimate { /* of one job on one offer */
    unsigned offer;
    bool is_possible; /* else error says why (too-large-for-pool) */
    struct gad_error error;
    struct plan plan;
    double seconds; /* plan.seconds and the wait behind others */
};

struct engine_decision {
    unsigned offer; /* the chosen one */
    char why[ENGINE_WHY_SIZE];
    unsigned n_estimates;
    struct engine_estimate estimates[ENGINES_MAX];
};

/* Plans the job for every offer that the request allows and takes the one that ends soonest; of
 * those that are ready where any is, else of those that are coming. no-engine: none was allowed
 * (with what there is, and why the named one is not there); else the error of the only one or of
 * the best one. `decision` is large: the caller keeps one. */
int engines_decide(const struct job_request *request, const struct program *program, bool in_place,
                   const struct engine_offer *offers, unsigned n_offers,
                   struct engine_decision *ret, struct gad_error *error) GAD_MUST_CHECK;

/* NULL: the job was not planned for it. */
const struct engine_estimate *engines_estimate_of(const struct engine_decision *decision,
                                                  unsigned offer);

/* Why an offer was not chosen, for people; "" for the one that was. */
void engines_why_not(const struct job_request *request, const struct engine_offer *offers,
                     const struct engine_decision *decision, unsigned offer,
                     char ret[static ENGINE_WHY_SIZE]);
