/* Passes with inputs that are near: what cannot be done with them, which is told before anything is
 * cut.
 *
 * A client gives its arrays box by box, and a stream's client row by row, once: neither can give
 * both ends of an axis together, or the same rows again. Where offsets are so far apart that what a
 * single element needs is no longer small, files and memory are read in several boxes
 * (expr/schedule/assemble.c), but a client is asked for one.
 *
 * Called by passes.c.
 */
#include "kernels/grains/geometry.h"
#include "kernels/neighbours.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <inttypes.h>

#define MOST_ELEMENT_BYTES (INT64_C(64) * 1024) /* of an operand, for one element of the pass */
#define MOST_ALL_BYTES     (INT64_C(256) * 1024)

static int refuse(const struct planner *p, const char *argument, const char *why)
{
    error_set(p->error, GAD_BAD_ARGUMENT, argument, "near of '%s': %s", argument, why);
    error_expected(p->error, "'%s' in a file or in memory: convert it first", argument);
    return GAD_BAD_ARGUMENT;
}

static int refuse_bytes(const struct planner *p, const char *argument, int64_t found, int64_t most)
{
    error_set(p->error, GAD_LIMIT_EXCEEDED, argument,
              "near of offsets so far apart that one element needs a large part of an array");
    error_expected(p->error, "at most %" PRId64 " bytes between the offsets", most);
    error_found(p->error, "%" PRId64, found);
    return GAD_LIMIT_EXCEEDED;
}

static bool has_wrap(const struct program_input *input)
{
    for (int i = 0; i < input->ndim; i++)
        if (input->offsets[i] != 0 && input->modes[i] == NEAR_WRAP)
            return true;
    return false;
}

static int check_input(const struct planner *p, const struct program_input *input)
{
    const struct request_arg *arg = &p->request->args[input->arg];

    if (!p->limits->engine->has_near) {
        error_set(p->error, GAD_NO_ENGINE, "engine", "near is computed on the CPU");
        error_expected(p->error, "engine \"cpu\" or \"auto\"");
        return GAD_NO_ENGINE;
    }
    if (planner_is_stream(&arg->array))
        return refuse(p, arg->name, "it is a stream, which is read once, row by row");
    if (arg->array.at.kind == LOCATION_PROVIDER && has_wrap(input))
        return refuse(p, arg->name,
                      "its blocks are asked of a client, which gives none of both "
                      "ends of an axis, as mode 'wrap' needs it");
    return 0;
}

/* What one element needs of the operand. */
static int64_t element_bytes(const struct geometry_operand *operand)
{
    int64_t n_bytes = (int64_t)dtype_size(operand->dtype);

    for (int i = 0; operand->reach && i < operand->ndim; i++)
        n_bytes = mul_saturating_i64(n_bytes, operand->reach[i] < operand->shape[i]
                                                  ? operand->reach[i] + 1
                                                  : operand->shape[i]);
    return n_bytes;
}

int planner_check_near(const struct planner *p, const struct pass *pass)
{
    int64_t n_all = 0;
    unsigned operand = 0;

    for (unsigned i = 0; i < p->program->n_inputs; i++) {
        const struct program_input *input = &p->program->inputs[i];
        if (!(pass->inputs_used >> i & 1))
            continue;
        int r = input->is_near ? check_input(p, input) : 0;
        if (r)
            return r;
        if (neighbours_together(p->program, pass, i) & ((UINT64_C(1) << i) - 1))
            continue; /* an operand with one before it */
        const struct geometry_operand *shape = &p->operands[operand++].shape;
        int64_t n_bytes = element_bytes(shape);
        if (shape->reach && n_bytes > MOST_ELEMENT_BYTES)
            return refuse_bytes(p, p->request->args[input->arg].name, n_bytes, MOST_ELEMENT_BYTES);
        n_all += n_bytes;
        if (shape->reach && n_all > MOST_ALL_BYTES)
            return refuse_bytes(p, p->request->args[input->arg].name, n_all, MOST_ALL_BYTES);
    }
    return 0;
}
