/* What the parts of the planner share: the job in hand, and the pass in hand. */
#pragma once

#include "kernels/plan.h"

#define PLANNER_MAX_OPERANDS (REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS)

struct planned_operand {
    struct geometry_operand shape;
    enum location_kind kind;
};

/* What a pass moves, for the estimate: bytes. */
struct planned_traffic {
    double memory, file; /* that the kernel reads and writes there */
    /* Of all boxes, as they are copied for a device: from and to memory, from and to files. */
    double staged_memory, staged_file;
    double to_device, from_device;
};

struct planner {
    const struct job_request *request;
    const struct program *program;
    const struct plan_limits *limits;
    struct plan *plan;
    struct gad_error *error;
    double work; /* elements x instructions, over all passes */
    struct planned_traffic traffic[PROGRAM_MAX_PASSES];
    unsigned n_operands; /* of the pass in hand: inputs, then outputs */
    struct planned_operand operands[PLANNER_MAX_OPERANDS];
};

/* tiles.c: how many grains make a tile, and of a device's what a grain's boxes take. */
void planner_choose_tiles(const struct planner *p, unsigned pass, bool has_provider);

/* estimate.c: fills plan->seconds and plan->bound. */
void planner_estimate(const struct planner *p);

/* Instructions per element, with one more for reading and writing it. */
static inline uint64_t planner_work_per_element(const struct pass *pass)
{
    return 1u + pass->n_insns + pass->n_reductions;
}
