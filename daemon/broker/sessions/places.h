/* Where a request's arrays are: may they be served there, and which of them are the same thing? */
#pragma once

#include "daemon/broker/broker.h"
#include "daemon/broker/jobs/output_overlap.h"

struct frame;
struct region;

struct places {
    struct overlap_identity args[REQUEST_MAX_ARGS], outputs[REQUEST_MAX_OUTPUTS];
    struct region *regions[JOB_MAX_REGIONS]; /* one for each array in a region, no references */
    unsigned n_regions;
    bool has_provider;
};

/* Inspects every descriptor and region that the request names, for this user. */
int places_check(const struct broker *broker, uid_t uid, const struct job_request *request,
                 const struct frame *frame, struct places *ret,
                 struct gad_error *error) GAD_MUST_CHECK;
