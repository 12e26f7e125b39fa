/* The repeats of a pass, for a box of it: steps of time in memory that stays in the cache.
 *
 *     states, twice:   B B B B B B B B     as the repeat begins: with all that its steps read
 * around . 1 1 1 1 1 1 .     a step: from one of the two to the other . . 2 2 2 2 . .     the next
 * one, back . . . + + . . .     the pass's own box: what it reads
 *
 * Both memories have a place for each element of the first box, so an element is at one place
 * through all steps. Where a box goes on beyond the end of an axis, so does the memory; the pass is
 * then run over each of the parts, since elements have to know where on the axis they are.
 *
 * Where nothing around the box lies beyond an end, a step may be taken as if all of the memory from
 * the box's first element to its last one were a single row: what is computed at places that are
 * not the box's is read by nobody. So there are no rows, and each strip reads its neighbours where
 * they lie. It is not done where more than a half would be computed for nobody.
 *
 * Warnings are counted of the pass's own box alone, since what lies around is others'.
 *
 * Called by cpu_engine_run().
 */
#include "kernels/cpu/run/bind.h"
#include "kernels/grains/geometry.h"
#include "kernels/made_box.h"
#include "kernels/neighbours.h"
#include "proto/util.h"

#include <string.h>

#define STATE_ALIGN 64
#define ALL_AXES    UINT32_MAX

/* What is the same for all repeats of a pass. */
struct repeating {
    const struct cpu_engine *engine;
    const struct program *program;
    const struct pass *pass;
    const struct engine_box *box;
    const struct engine_view *inputs, *reduced;
    struct engine_warnings *warnings;
    void *scratch;
};

/* One of them. */
struct states {
    const struct program_repeat *repeat;
    struct made_box box; /* of the memory */
    char *now[PROGRAM_MAX_STATES], *next[PROGRAM_MAX_STATES];
};

static size_t item_bytes(const struct program *program, const struct program_repeat *r, unsigned i)
{
    return dtype_size(program->outputs[r->first_output + i].dtype);
}

static uint64_t repeat_bytes(const struct program *program, const struct program_repeat *r,
                             const int64_t *count)
{
    uint64_t n_elements = 1, n_bytes = 0;
    for (int i = 0; i < r->ndim; i++)
        n_elements *= (uint64_t)count[i];
    for (unsigned i = 0; i < r->n_states; i++)
        n_bytes += 2 * round_up_u64(n_elements * item_bytes(program, r, i), STATE_ALIGN);
    return n_bytes;
}

uint64_t cpu_states_bytes(const struct program *program, const struct pass *pass,
                          const int64_t *start, const int64_t *count)
{
    int64_t own_start[ARRAY_MAX_NDIM], own_count[ARRAY_MAX_NDIM];
    uint64_t n_bytes = 0;
    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        const struct program_repeat *r = &program->repeats[__builtin_ctz(left)];
        neighbours_repeat_box(r, r->n_steps, pass->ndim, start, count, own_start, own_count);
        n_bytes += repeat_bytes(program, r, own_count);
    }
    return n_bytes;
}

static void states_init(struct states *s, const struct repeating *of,
                        const struct program_repeat *r, char *memory)
{
    *s = (struct states){.repeat = r};
    neighbours_repeat_box(r, r->n_steps, of->pass->ndim, of->box->start, of->box->count,
                          s->box.start, s->box.count);
    made_box_lay_out(&s->box, r->ndim, r->shape, of->box);
    for (unsigned i = 0; i < r->n_states; i++) {
        uint64_t n_bytes =
            round_up_u64(s->box.n_elements * item_bytes(of->program, r, i), STATE_ALIGN);
        s->now[i] = memory;
        s->next[i] = memory + n_bytes;
        memory += 2 * n_bytes;
    }
}

/* The states that a pass reads. */
static void read_states(const struct repeating *of, const struct states *s, uint64_t inputs,
                        const int64_t *at, int n_missing, struct engine_view *views)
{
    const struct program_repeat *r = s->repeat;
    for (; inputs; inputs &= inputs - 1) {
        unsigned i = (unsigned)__builtin_ctzll(inputs);
        unsigned output = of->program->inputs[i].arg, state = output - r->first_output;
        if (output >= r->first_output && state < r->n_states)
            made_box_view(&s->box, item_bytes(of->program, r, state), s->now[state], at, n_missing,
                          &views[i]);
    }
}

struct inner_box {
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
};

/* One of the repeat's passes over a box that ends where axes do. */
static int run_part(const struct repeating *of, struct states *s, const struct pass *pass,
                    const struct inner_box *part, bool is_flat, struct engine_warnings *warnings)
{
    const struct program_repeat *r = s->repeat;
    struct engine_view inputs[BIND_MAX_INPUTS], outputs[PROGRAM_MAX_OUTPUTS];
    int64_t count[ARRAY_MAX_NDIM], span = 1;
    struct engine_box box = {.ndim = r->ndim,
                             .count = part->count,
                             .axis_order = s->box.axis_order,
                             .start = part->start,
                             .pace = of->box->pace};
    for (uint64_t left = pass->inputs_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        made_box_move(&s->box, of->box, &of->inputs[i], part->start, &inputs[i]);
    }
    read_states(of, s, pass->states_used, part->start, 0, inputs);
    for (unsigned i = 0; i < r->n_states; i++)
        made_box_view(&s->box, item_bytes(of->program, r, i), s->next[i], part->start, 0,
                      &outputs[r->first_output + i]);
    if (is_flat) {
        for (int i = 0; i < r->ndim; i++) {
            count[i] = 1;
            span += (part->count[i] - 1) * s->box.strides[i];
        }
        int fastest = s->box.axis_order[r->ndim - 1]; /* of length 1 it would broadcast */
        count[fastest] = span;
        box.count = count;
        for (uint64_t left = pass->states_used; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctzll(left);
            inputs[i].goes_on_axes = ALL_AXES;
            inputs[i].strides[fastest] = (int64_t)dtype_size(of->program->inputs[i].dtype);
        }
        for (unsigned i = 0; i < r->n_states; i++)
            outputs[r->first_output + i].strides[fastest] = (int64_t)item_bytes(of->program, r, i);
    }
    return run_one(of->engine, of->program, pass, &box, inputs, outputs, of->reduced, NULL, NULL,
                   warnings, of->scratch);
}

/* Over a box that may go on beyond the ends of axes: part by part. */
static int run_box(const struct repeating *of, struct states *s, const struct pass *pass,
                   const struct inner_box *whole, struct engine_warnings *warnings)
{
    struct inner_box part;
    uint32_t next = 0;
    for (bool has_more = true; has_more;) {
        has_more = made_box_next_part(s->repeat->ndim, s->repeat->shape, whole->start, whole->count,
                                      &next, part.start, part.count);
        int status = run_part(of, s, pass, &part, false, warnings);
        if (status != 0)
            return status;
    }
    return 0;
}

/* Whether a step over the box may be one row. */
static bool is_row(const struct states *s, const struct inner_box *box)
{
    const struct program_repeat *r = s->repeat;
    int64_t span = 1, n_elements = 1;
    if (!r->is_flat || r->ndim == 0)
        return false;
    for (int i = 0; i < r->ndim; i++) {
        int64_t end = box->start[i] + box->count[i];
        bool is_inside = box->start[i] >= r->before[i] && end + r->behind[i] <= r->shape[i];
        if (!is_inside && !(s->box.goes_on_axes >> i & 1) && r->before[i] + r->behind[i] > 0)
            return false;
        span += (box->count[i] - 1) * s->box.strides[i];
        n_elements *= box->count[i];
    }
    return span < 2 * n_elements;
}

/* A pass, with so many steps left behind it. */
static int run_step(const struct repeating *of, struct states *s, const struct pass *pass,
                    uint32_t n_left, bool is_begin)
{
    const struct program_repeat *r = s->repeat;
    struct engine_warnings others = {0};
    struct inner_box box;
    neighbours_repeat_box(r, n_left, of->pass->ndim, of->box->start, of->box->count, box.start,
                          box.count);
    int status = !is_begin && is_row(s, &box) ? run_part(of, s, pass, &box, true, &others)
                                              : run_box(of, s, pass, &box, &others);
    if (status == 0 && (others.n_divide_by_zero != 0 || others.n_invalid_casts != 0)) {
        geometry_operand_box(of->pass->ndim, of->box->start, of->box->count, r->ndim, r->shape,
                             box.start, box.count);
        status = run_box(of, s, pass, &box, of->warnings);
    }
    for (unsigned i = 0; i < r->n_states; i++) {
        char *taken = s->now[i];
        s->now[i] = s->next[i];
        s->next[i] = taken;
    }
    return status;
}

static int run_repeat(const struct repeating *of, struct states *s)
{
    const struct program_repeat *r = s->repeat;
    int status = run_step(of, s, &of->program->inner[r->begin], r->n_steps, true);
    for (uint32_t left = r->n_steps; status == 0 && left-- > 0;)
        status = run_step(of, s, &of->program->inner[r->step], left, false);
    return status;
}

int run_repeats(const struct cpu_engine *engine, const struct program *program,
                const struct pass *pass, const struct engine_box *box,
                const struct engine_view *inputs, const struct engine_view *reduced,
                struct engine_warnings *warnings, void *scratch, struct engine_view *ret_inputs)
{
    const int64_t zeros[ARRAY_MAX_NDIM] = {0};
    struct engine_box own_box = *box;
    const struct repeating of = {.engine = engine,
                                 .program = program,
                                 .pass = pass,
                                 .box = &own_box,
                                 .inputs = inputs,
                                 .reduced = reduced,
                                 .warnings = warnings,
                                 .scratch = scratch};
    char *memory = box->states;
    own_box.start = box->start ? box->start : zeros;
    for (uint64_t left = pass->inputs_used; left; left &= left - 1)
        ret_inputs[__builtin_ctzll(left)] = inputs[__builtin_ctzll(left)];
    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        struct states s;
        states_init(&s, &of, &program->repeats[__builtin_ctz(left)], memory);
        memory += repeat_bytes(program, s.repeat, s.box.count);
        int status = run_repeat(&of, &s);
        if (status)
            return status;
        read_states(&of, &s, pass->states_used, own_box.start + s.box.n_missing, s.box.n_missing,
                    ret_inputs);
    }
    return 0;
}
