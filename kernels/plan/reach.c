/* Passes with inputs that are near: what cannot be done with them, which is told before anything is
 * cut.
 *
 * A stream's client gives its rows once. Other clients are asked for one box at a time, which has
 * all that is read of the array for a grain: with mode `wrap` it goes on beyond the end of an axis,
 * as far as the client knows such boxes, and then does so for all modes. Where offsets are so far
 * apart that what a single element needs is no longer small, files and memory are read in several
 * boxes (expr/schedule/assemble.c), but a client is asked for one.
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

/* Along any axis; and another mode along the same. */
static bool have_wrap(const struct program *program, const struct pass *pass, unsigned input,
                      bool *ret_is_mixed)
{
    bool have = false;

    *ret_is_mixed = false;
    for (int i = 0; i < program->inputs[input].ndim; i++) {
        unsigned modes = neighbours_modes(program, pass, input, i);
        have |= modes >> NEAR_WRAP & 1;
        *ret_is_mixed |= (modes >> NEAR_WRAP & 1) && modes != 1u << NEAR_WRAP;
    }
    return have;
}

static int check_input(const struct planner *p, const struct pass *pass, unsigned index)
{
    const struct request_arg *arg = &p->request->args[p->program->inputs[index].arg];
    bool is_mixed;

    if (!p->limits->engine->has_near) {
        error_set(p->error, GAD_NO_ENGINE, "engine", "near is computed on the CPU");
        error_expected(p->error, "engine \"cpu\" or \"auto\"");
        return GAD_NO_ENGINE;
    }
    if (planner_is_stream(&arg->array))
        return refuse(p, arg->name, "it is a stream, which is read once, row by row");
    if (arg->array.at.kind != LOCATION_PROVIDER || !have_wrap(p->program, pass, index, &is_mixed))
        return 0;
    if (!arg->array.at.provider.wraps)
        return refuse(p, arg->name,
                      "its client gives no blocks of both ends of an axis, which mode "
                      "'wrap' needs");
    if (is_mixed)
        return refuse(p, arg->name,
                      "its blocks are asked of a client, and go on beyond the end of an "
                      "axis in one way, not with 'wrap' and another mode");
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
        int r = neighbours_are(p->program, pass, i) ? check_input(p, pass, i) : 0;
        if (r)
            return r;
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
