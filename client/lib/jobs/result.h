/* What the daemon answers at the end of a job, and what it says of plans. */
#pragma once

#include "client/lib/connection/calls.h"
#include "client/gpuarrayd.h"

struct result_output {
    struct gad_plan_output what;
    void *data; /* owned; NULL: not inline */
};

struct result { /* zeroed: none */
    unsigned n_outputs;
    struct result_output *outputs;
    struct gad_job_stats stats;
};

/* protocol-error when it is not what the protocol says. The reply is not needed any more after. */
int result_init(struct result *result, const struct reply *reply, unsigned n_outputs,
                struct gad_error *error) GAD_MUST_CHECK;
void result_deinit(struct result *result);

/* {name, dtype, shape, order?} */
int result_read_output(const msgpack_object *map, struct gad_plan_output *ret,
                       struct gad_error *error) GAD_MUST_CHECK;
