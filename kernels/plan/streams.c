/* Streams: arrays whose elements come, or are taken, once and in C order, through a ring with a few
 * slots. A job is refused before it begins where its walk does not suit that:
 *
 *     a - mean(a)          reads a in two passes
 *     sum(a, axis=0), sum(a, axis=1)    likewise: a pass for each choice of axes; max(a) comes from
 *                                       max(a, axis=0) where that makes it one (reduce.c)
 *     a @ b                a product reads its panels in an order of its own
 *     sum(a, axis=0)       of rows larger than a grain: kept axes are walked before reduced ones
 *     a + b, b in F order  blocks with parts of many rows, more of them side by side than slots
 *     a[:, None] * b       a grain of a for many of b: each would be asked for again
 *
 * An open stream's length is known when its last row was read: what must be known before, or would
 * be read once more afterwards, is refused as well. Passes with the open axis have it as the
 * slowest one, so that what lies beyond the end are the last grains, and the one that reads the
 * streams comes first.
 *
 * A grain need not be a run of neighbours in C order: then those that share rows are open together,
 * and the ring must have a slot for each. Called by plan_make(), when the geometry is there.
 */
#include "kernels/plan/planner.h"

#include <stdio.h>

struct stream {
    const char *name;
    bool is_output;
    int ndim;
    const int64_t *shape;
    uint32_t n_slots;
};

static int refuse(const struct planner *p, const struct stream *stream, const char *why)
{
    error_set(p->error, GAD_BAD_ARGUMENT, stream->name,
              "a stream is %s once and in order, and the job %s: put it into a file first",
              stream->is_output ? "written" : "read", why);
    error_expected(p->error, "one pass in C order");
    error_found(p->error, "%s", why);
    return GAD_BAD_ARGUMENT;
}

/* A second pass that could do without the first: the user can. The daemon does not make jobs of
 * its own of them, which would wait for each other where the pool has room for one. */
static int refuse_axes(const struct planner *p, const struct stream *stream)
{
    error_set(p->error, GAD_BAD_ARGUMENT, stream->name,
              "a stream is read once, and these results along different axes of %s take a pass "
              "each: jobs of their own share it, by tee in a shell, in Python by gd.compute() or "
              "gd.save() of several results",
              stream->name);
    error_expected(p->error, "max(%s), mean(%s) and the like beside sum(%s, axis=0)", stream->name,
                   stream->name, stream->name);
    error_found(p->error, "reduces it along different axes");
    return GAD_BAD_ARGUMENT;
}

static bool has_axis(const struct stream *stream, int own)
{
    return own >= 0 && stream->shape[own] > 1;
}

/* Whether a grain has more than one element along an axis that is slower than this one. */
static bool spans_slower_axis(const struct geometry *g, const struct stream *stream, int own)
{
    int n_missing = g->ndim - stream->ndim;

    for (int i = 0; i < own; i++)
        if (has_axis(stream, i) && g->grain_shape[n_missing + i] > 1)
            return true;
    return false;
}

static int check_order(const struct planner *p, const struct stream *stream,
                       const struct geometry *g)
{
    uint64_t n_open = 1; /* grains that share rows */
    int slowest = -1;

    for (int i = 0; i < g->ndim && g->n_grains > 0; i++) {
        int axis = g->grid_order[i], own = axis - (g->ndim - stream->ndim);
        if (g->grid[axis] == 1)
            continue;
        if (!has_axis(stream, own))
            return refuse(p, stream, "needs the same elements again and again");
        if (own < slowest)
            return refuse(p, stream, "goes through its axes in another order");
        slowest = own;
        if (spans_slower_axis(g, stream, own) &&
            (__builtin_mul_overflow(n_open, (uint64_t)g->grid[axis], &n_open) ||
             n_open > stream->n_slots))
            return refuse(p, stream, "works on parts of more rows at a time than its ring holds");
    }
    return 0;
}

static bool is_of_product(const struct planner *p, unsigned pass)
{
    for (unsigned i = 0; i < p->program->n_stages; i++) {
        const struct stage *stage = &p->program->stages[i];
        if (stage_has_turns(stage) && pass >= stage->first_pass &&
            pass < (unsigned)stage->first_pass + stage->n_passes)
            return true;
    }
    return false;
}

static int check_pass(const struct planner *p, const struct stream *stream, unsigned pass)
{
    if (is_of_product(p, pass))
        return refuse(p, stream, "is a matrix product, which has an order of its own");
    return check_order(p, stream, &p->plan->passes[pass].geometry);
}

static int check_source(const struct planner *p, unsigned arg)
{
    const struct request_arg *source = &p->request->args[arg];
    const struct stream stream = {.name = source->name,
                                  .ndim = source->array.ndim,
                                  .shape = source->array.shape,
                                  .n_slots = source->array.at.provider.n_slots};
    const struct pass *first = NULL;
    int r = 0;

    for (unsigned i = 0; i < p->program->n_inputs && !r; i++) {
        const struct program_input *input = &p->program->inputs[i];
        if (input->arg != arg)
            continue;
        for (unsigned pass = 0; pass < p->program->n_passes && !r; pass++) {
            if (!(p->program->passes[pass].inputs_used >> i & 1))
                continue;
            const struct pass *again = &p->program->passes[pass];
            bool is_apart = first && again->reduced_used == 0 && again->reduced_axes != 0 &&
                            again->reduced_axes != first->reduced_axes;
            r = !first     ? check_pass(p, &stream, pass)
                : is_apart ? refuse_axes(p, &stream)
                           : refuse(p, &stream, "reads it in several passes");
            first = again;
        }
    }
    return r;
}

static int check_output(const struct planner *p, unsigned index)
{
    const struct request_output *output = &p->request->outputs[index];
    char name[REQUEST_UNNAMED_SIZE];
    const struct stream stream = {.name = request_output_name(output, index, name),
                                  .is_output = true,
                                  .ndim = output->to.ndim,
                                  .shape = output->to.shape,
                                  .n_slots = output->to.at.provider.n_slots};

    return check_pass(p, &stream, p->program->outputs[index].pass);
}

/* Open ones ------------------------------------------------------------------------------------ */

static const struct request_arg *first_open(const struct planner *p)
{
    const struct request_arg *arg = p->request->args;

    while (arg->is_scalar || !arg->array.is_open)
        arg++;
    return arg;
}

int planner_refuse_open(const struct planner *p, const char *what)
{
    const char *name = first_open(p)->name;

    error_set(p->error, GAD_BAD_ARGUMENT, name,
              "how long %s is will be known at its end, and the job %s: put it into a file first",
              name, what);
    error_expected(p->error, "one pass from its beginning to its end");
    error_found(p->error, "%s", what);
    return GAD_BAD_ARGUMENT;
}

static bool is_slowest(const struct geometry *g, int axis)
{
    if (g->round_axis >= 0 && g->round_axis != axis)
        return false;
    for (int i = 0; i < g->ndim && g->grid_order[i] != axis; i++)
        if (g->grid[g->grid_order[i]] > 1)
            return false;
    return true;
}

static int n_open_axes(const struct planner *p, const struct pass *pass)
{
    int n = 0;

    for (int i = 0; i < pass->ndim; i++)
        n += pass->shape[i] == p->request->open_length;
    return n;
}

/* The open inputs that a pass reads. */
static uint64_t open_inputs(const struct planner *p, uint64_t inputs_used)
{
    uint64_t open = 0;

    for (uint64_t left = inputs_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (p->request->args[p->program->inputs[i].arg].array.is_open)
            open |= UINT64_C(1) << i;
    }
    return open;
}

static int check_open_pass(const struct planner *p, unsigned index, uint64_t open)
{
    const struct pass *pass = &p->program->passes[index];
    int axis = planner_open_axis(p, pass);

    if (axis < 0)
        return 0;
    if (open == 0)
        return planner_refuse_open(p, "needs its length before it is read");
    if (p->plan->passes[index].geometry.n_grains == 0)
        return planner_refuse_open(p, "computes nothing of it");
    if (n_open_axes(p, pass) > 1)
        return planner_refuse_open(p, "has it along two axes");
    if (!is_slowest(&p->plan->passes[index].geometry, axis))
        return planner_refuse_open(p, "goes through it in another order");
    return 0;
}

/* All that are open come in one pass, which sees that they are equally long. */
static int check_open(const struct planner *p)
{
    uint64_t open = 0, all = open_inputs(p, p->program->n_inputs < 64
                                                ? (UINT64_C(1) << p->program->n_inputs) - 1
                                                : UINT64_MAX);

    for (unsigned i = 0; i < p->program->n_passes; i++) {
        uint64_t own = open_inputs(p, p->program->passes[i].inputs_used);
        if (own != 0 && own != all)
            return planner_refuse_open(p, "reads streams of unknown length one after the other");
        open |= own;
        int r = check_open_pass(p, i, open);
        if (r)
            return r;
    }
    return 0;
}

int planner_check_streams(const struct planner *p)
{
    int r = 0;

    for (unsigned i = 0; i < p->request->n_args && !r; i++)
        if (!p->request->args[i].is_scalar && planner_is_stream(&p->request->args[i].array))
            r = check_source(p, i);
    if (!r && p->request->open_length > 0)
        r = check_open(p);
    for (unsigned i = 0; i < p->program->n_outputs && !r; i++)
        if (p->request->outputs[i].has_to && planner_is_stream(&p->request->outputs[i].to))
            r = check_output(p, i);
    return r;
}
