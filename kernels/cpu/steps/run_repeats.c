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
 * Where nothing around a box lies beyond an end, a step may be taken as if all of the memory from
 * the box's first element to its last one were a single row: what is computed at places that are
 * not the box's is read by nobody. So there are no rows, and each strip reads its neighbours where
 * they lie. The row begins at a line of the cache, a little before the box. It is not done where
 * more than a half would be computed for nobody. At an end of the array that is the box without its
 * rim, whose elements are computed behind it:
 *
 *     end |r r r r r r        a row, whose last and first elements are nobody's, then the rim
 *         |r + + + + +
 *         |r + + + + +
 *
 * A repeat that begins with an array as it is, which lies as the memory does, reads it there.
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

#define STATE_ALIGN      64
#define ALL_AXES         UINT32_MAX
#define MIN_ROW_BYTES    512
#define MOST_ASKED_BYTES 8192

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
    char *free[PROGRAM_MAX_STATES]; /* instead of `now`, which is an input's; NULL: it is ours */
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

/* An input that is one element for all of the states. */
static bool is_one(const struct repeating *of, const struct states *s, unsigned input)
{
    const struct program_input *in = &of->program->inputs[input];
    bool is = !(of->pass->states_used >> input & 1);
    for (int i = 0; i < in->ndim; i++)
        is &= in->shape[i] == 1;
    return is;
}

/* The memory's first element in an array that lies as the memory does, or NULL. */
static char *find_alike(const struct repeating *of, const struct states *s, unsigned input)
{
    const struct engine_view *view = &of->inputs[input];
    enum dtype dtype = of->program->inputs[input].dtype;
    int64_t item = (int64_t)dtype_size(dtype), offset = 0;
    if (view->is_swapped || dtype == DTYPE_BOOL || (view->goes_on_axes | s->box.goes_on_axes) ||
        ((uintptr_t)view->base & (uintptr_t)(item - 1)))
        return NULL;
    for (int i = 0; i < s->box.ndim; i++) {
        int64_t stride = s->box.strides[i] * item;
        if (s->box.count[i] > 1 && view->strides[s->box.n_missing + i] != stride)
            return NULL;
        offset += s->box.first[i] * stride;
    }
    return (char *)view->base + offset;
}

/* What one of the repeat's passes reads and writes, from the element `at` on. */
static void step_views(const struct repeating *of, const struct states *s, const struct pass *pass,
                       const int64_t *at, struct engine_view *inputs, struct engine_view *outputs)
{
    const struct program_repeat *r = s->repeat;
    for (uint64_t left = pass->inputs_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        made_box_move(&s->box, of->box, &of->inputs[i], at, &inputs[i]);
    }
    read_states(of, s, pass->states_used, at, 0, inputs);
    for (unsigned i = 0; i < r->n_states; i++)
        made_box_view(&s->box, item_bytes(of->program, r, i), s->next[i], at, 0,
                      &outputs[r->first_output + i]);
}

static int run_pass(const struct repeating *of, const struct states *s, const struct pass *pass,
                    const int64_t *start, const int64_t *count, const struct engine_view *inputs,
                    const struct engine_view *outputs, struct engine_warnings *warnings)
{
    const struct engine_box box = {.ndim = s->repeat->ndim,
                                   .count = count,
                                   .axis_order = s->box.axis_order,
                                   .start = start,
                                   .pace = of->box->pace};
    return run_one(of->engine, of->program, pass, &box, inputs, outputs, of->reduced, NULL, NULL,
                   warnings, of->scratch);
}

/* One of the repeat's passes over a box that ends where axes do. */
static int run_part(const struct repeating *of, struct states *s, const struct pass *pass,
                    const struct inner_box *part, struct engine_warnings *warnings)
{
    struct engine_view inputs[BIND_MAX_INPUTS], outputs[PROGRAM_MAX_OUTPUTS];
    step_views(of, s, pass, part->start, inputs, outputs);
    return run_pass(of, s, pass, part->start, part->count, inputs, outputs, warnings);
}

/* How many elements before the box's first one, at a multiple of a line of the cache, the row may
 * begin: what its elements read is in the memory, too. */
static int64_t row_lead(const struct repeating *of, const struct states *s,
                        const struct inner_box *box)
{
    const struct program_repeat *r = s->repeat;
    int64_t at = 0, reach = 0, n_line = 1;
    for (int i = 0; i < r->ndim; i++) {
        at += made_box_place(&s->box, i, box->start[i]) * s->box.strides[i];
        reach += r->before[i] * s->box.strides[i];
    }
    for (unsigned i = 0; i < r->n_states; i++)
        n_line = max_i64(n_line, STATE_ALIGN / (int64_t)item_bytes(of->program, r, i));
    return at - at % n_line >= reach ? at % n_line : 0;
}

static void make_row(struct engine_view *view, int64_t lead, int fastest, size_t item)
{
    view->goes_on_axes = ALL_AXES;
    view->strides[fastest] = (int64_t)item; /* of an axis of length 1 it is 0 */
    view->base = (char *)view->base - lead * (int64_t)item;
}

/* A step over a box as one row. */
static int run_row(const struct repeating *of, struct states *s, const struct pass *pass,
                   const struct inner_box *box, struct engine_warnings *warnings)
{
    const struct program_repeat *r = s->repeat;
    const struct program *program = of->program;
    struct engine_view inputs[BIND_MAX_INPUTS], outputs[PROGRAM_MAX_OUTPUTS];
    int64_t count[ARRAY_MAX_NDIM], lead = row_lead(of, s, box), span = 1 + lead;
    int fastest = s->box.axis_order[r->ndim - 1];
    step_views(of, s, pass, box->start, inputs, outputs);
    for (int i = 0; i < r->ndim; i++) {
        count[i] = 1;
        span += (box->count[i] - 1) * s->box.strides[i];
    }
    count[fastest] = span;
    for (uint64_t left = pass->states_used | pass->inputs_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (!is_one(of, s, i))
            make_row(&inputs[i], lead, fastest, dtype_size(program->inputs[i].dtype));
    }
    for (unsigned i = 0; i < r->n_states; i++)
        make_row(&outputs[r->first_output + i], lead, fastest, item_bytes(program, r, i));
    return run_pass(of, s, pass, box->start, count, inputs, outputs, warnings);
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
        int status = run_part(of, s, pass, &part, warnings);
        if (status != 0)
            return status;
    }
    return 0;
}

/* Whether all that the step reads lies as the states do, or is one element. */
static bool may_be_row(const struct repeating *of, const struct states *s, const struct pass *step)
{
    if (!s->repeat->is_flat || s->repeat->ndim == 0)
        return false;
    for (uint64_t left = step->inputs_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (!is_one(of, s, i) && !find_alike(of, s, i))
            return false;
    }
    for (unsigned i = 0; i < step->n_nears; i++)
        if (step->inputs_used >> of->program->nears[step->first_near + i].input & 1)
            return false;
    return true;
}

/* The box without the elements that read beyond an end; whether a step over it may be one row. */
static bool find_row(const struct states *s, const struct inner_box *box, struct inner_box *ret)
{
    const struct program_repeat *r = s->repeat;
    int64_t span = 1, n_elements = 1;
    *ret = *box;
    for (int i = 0; i < r->ndim; i++) {
        if (!(s->box.goes_on_axes >> i & 1) && r->before[i] + r->behind[i] > 0) {
            int64_t end = min_i64(box->start[i] + box->count[i], r->shape[i] - r->behind[i]);
            ret->start[i] = max_i64(box->start[i], r->before[i]);
            ret->count[i] = end - ret->start[i];
        }
        if (ret->count[i] <= 0)
            return false;
        span += (ret->count[i] - 1) * s->box.strides[i];
        n_elements *= ret->count[i];
    }
    return span < 2 * n_elements;
}

/* What of the box is not in the row: along each axis what is before it and behind it. */
static int run_rim(const struct repeating *of, struct states *s, const struct pass *pass,
                   const struct inner_box *box, const struct inner_box *row,
                   struct engine_warnings *warnings)
{
    struct inner_box left = *box;
    int status = 0;
    for (int i = 0; i < s->repeat->ndim; i++) {
        int64_t row_end = row->start[i] + row->count[i], end = box->start[i] + box->count[i];
        struct inner_box before = left, behind = left;
        before.count[i] = row->start[i] - box->start[i];
        behind.start[i] = row_end;
        behind.count[i] = end - row_end;
        if (before.count[i] > 0 && status == 0)
            status = run_box(of, s, pass, &before, warnings);
        if (behind.count[i] > 0 && status == 0)
            status = run_box(of, s, pass, &behind, warnings);
        left.start[i] = row->start[i];
        left.count[i] = row->count[i];
    }
    return status;
}

static int run_over(const struct repeating *of, struct states *s, const struct pass *pass,
                    const struct inner_box *box, bool is_begin, struct engine_warnings *warnings)
{
    struct inner_box row;
    if (is_begin || !may_be_row(of, s, pass) || !find_row(s, box, &row))
        return run_box(of, s, pass, box, warnings);
    int status = run_row(of, s, pass, &row, warnings);
    return status ? status : run_rim(of, s, pass, box, &row, warnings);
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
    int status = run_over(of, s, pass, &box, is_begin, &others);
    if (status == 0 && (others.n_divide_by_zero != 0 || others.n_invalid_casts != 0)) {
        geometry_operand_box(of->pass->ndim, of->box->start, of->box->count, r->ndim, r->shape,
                             box.start, box.count);
        status = run_box(of, s, pass, &box, of->warnings);
    }
    for (unsigned i = 0; i < r->n_states; i++) {
        char *taken = s->free[i] ? s->free[i] : s->now[i];
        s->now[i] = s->next[i];
        s->next[i] = taken;
        s->free[i] = NULL;
    }
    return status;
}

/* The input that a state is at first, or -1: it is computed. */
static int begun_input(const struct repeating *of, const struct states *s, unsigned state)
{
    unsigned output = s->repeat->first_output + state;
    const struct pass *begin = &of->program->inner[s->repeat->begin];
    const struct operand *src = NULL;
    for (unsigned i = 0; i < begin->n_stores; i++)
        if (of->program->stores[begin->first_store + i].output == output)
            src = &of->program->stores[begin->first_store + i].src;
    bool is_input = src && src->kind == OPERAND_INPUT &&
                    of->program->inputs[src->index].dtype == of->program->outputs[output].dtype;
    return is_input ? (int)src->index : -1;
}

/* The rows of an array that is read in runs: each is asked for while the one before is copied,
 * since the processor does not see where the next one is. False: it has no such rows. */
static bool copy_rows(const struct repeating *of, const struct states *s, unsigned input, char *to)
{
    const struct engine_view *view = &of->inputs[input];
    const struct made_box *box = &s->box;
    enum dtype dtype = of->program->inputs[input].dtype;
    size_t item = dtype_size(dtype);
    int64_t index[ARRAY_MAX_NDIM] = {0};
    if (box->ndim == 0 || view->is_swapped || dtype == DTYPE_BOOL ||
        (view->goes_on_axes | box->goes_on_axes) != 0)
        return false;
    int fastest = box->axis_order[box->ndim - 1];
    const int64_t *strides = view->strides + box->n_missing;
    size_t n_bytes = (size_t)box->count[fastest] * item;
    size_t n_asked = min_u64(n_bytes, MOST_ASKED_BYTES);
    if (strides[fastest] != (int64_t)item || n_bytes < MIN_ROW_BYTES)
        return false;
    const char *row = view->base;
    for (int i = 0; i < box->ndim; i++)
        row += box->first[i] * strides[i];
    for (uint64_t left = box->n_elements / (uint64_t)box->count[fastest]; left-- > 0;) {
        const char *next = row;
        for (int k = box->ndim - 2; k >= 0; k--) {
            int axis = box->axis_order[k];
            next += strides[axis];
            if (++index[axis] < box->count[axis])
                break;
            next -= index[axis] * strides[axis];
            index[axis] = 0;
        }
        for (size_t i = 0; left > 0 && i < n_asked; i += STATE_ALIGN)
            __builtin_prefetch(next + i, 0, 2);
        memcpy(to, row, n_bytes);
        to += n_bytes;
        row = next;
    }
    return true;
}

/* States that are inputs as they are: where these lie, or copied. False: all are to be computed. */
static bool are_begun(const struct repeating *of, struct states *s)
{
    for (unsigned i = 0; i < s->repeat->n_states; i++)
        if (begun_input(of, s, i) < 0)
            return false;
    for (unsigned i = 0; i < s->repeat->n_states; i++) {
        unsigned input = (unsigned)begun_input(of, s, i);
        char *alike = find_alike(of, s, input);
        if (!alike && !copy_rows(of, s, input, s->now[i]))
            return false;
        s->free[i] = alike ? s->now[i] : NULL;
        s->now[i] = alike ? alike : s->now[i];
    }
    return true;
}

static int run_repeat(const struct repeating *of, struct states *s)
{
    const struct program_repeat *r = s->repeat;
    int status =
        are_begun(of, s) ? 0 : run_step(of, s, &of->program->inner[r->begin], r->n_steps, true);
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
