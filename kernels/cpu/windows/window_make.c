/* The windows that a pass reads of a box: each is made of its operand before the pass is walked.
 *
 *     window_mean(a + b, 3), of a box:      | a + b, one element more at both sides |
 *                                             | the means                         |
 *                                             | the pass reads them here          |
 *
 * The operand's pass runs over the box and what lies around it, into memory of the thread, each
 * element once; parts beyond the ends of the array are copied from where the mode has them
 * (window_pad.c); where an axis goes on with its other end the pass runs over each part. Then the
 * window's kernels go over it, one axis after the other (window_axis.c). An array whose lines the
 * windows go along is read where it lies instead. The operand may read windows itself: these are
 * made then, of the larger box.
 *
 * How much memory that takes the planner knows (kernels/plan/window_grids.c). Called by run.c.
 */
#include "kernels/cpu/windows/window_make.h"
#include "kernels/cpu/run/run.h"
#include "kernels/grains/geometry.h"
#include "proto/util.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Memory ------------------------------------------------------------------------------------- */

void window_room_init(struct window_room *room, const struct engine_box *box)
{
    *room = (struct window_room){.boxes = box->window_memory,
                                 .lines = (char *)box->window_memory + WINDOW_BOX_BYTES,
                                 .pace = box->pace};
}

/* NULL: there is no room for it, which no plan lets happen. */
static void *window_room_take(struct window_room *room, size_t n_bytes)
{
    void *taken = room->boxes + room->used_bytes;
    n_bytes = round_up_u64(n_bytes, 64);
    if (n_bytes > WINDOW_BOX_BYTES - room->used_bytes)
        return NULL;
    room->used_bytes += n_bytes;
    return taken;
}

int window_room_pace(struct window_room *room, uint64_t worst_ns)
{
    room->since_asked_ns += worst_ns;
    if (!room->pace || room->since_asked_ns < ENGINE_PACE_NS)
        return 0;
    room->since_asked_ns = 0;
    return room->pace->may_go_on(room->pace->argument) ? 0 : -ECANCELED;
}

/* Rows end with WINDOW_PAD_BYTES at most that are not used: those of a column would else lie in few
 * sets of a cache. */
bool window_grid_take(struct window_room *room, int ndim, const int64_t *count, size_t item_bytes,
                      struct window_grid *ret)
{
    int64_t stride = (int64_t)item_bytes;
    ret->ndim = ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        ret->count[i] = count[i];
        ret->strides[i] = stride;
        stride *= count[i];
        if (i == ndim - 1 && ndim > 1)
            stride = (int64_t)round_up_u64((uint64_t)stride, WINDOW_PAD_BYTES / 2) +
                     WINDOW_PAD_BYTES / 2;
    }
    ret->base = window_room_take(room, (size_t)stride);
    return ret->base != NULL;
}

/* Operands ----------------------------------------------------------------------------------- */

struct making {
    const struct run_call *call;
    const struct engine_box *box; /* of the pass that reads the window */
    const struct program_window *window;
    const struct pass *pass; /* the operand's */
    int n_missing;           /* of the box's axes, which the operand has not */
    int axis_order[ARRAY_MAX_NDIM];
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM]; /* of the box, in the operand's axes */
    struct window_span spans[ARRAY_MAX_NDIM];
    struct window_grid grid; /* the operand's elements */
    struct engine_view *inputs, *outputs, *reduced;
};

static void find_box(struct making *m)
{
    const struct engine_box *box = m->box;
    m->n_missing = box->ndim - m->pass->ndim;
    for (int i = 0; i < m->pass->ndim; i++) {
        bool is_long = m->pass->shape[i] > 1;
        m->start[i] = is_long && box->start ? box->start[m->n_missing + i] : 0;
        m->count[i] = is_long ? box->count[m->n_missing + i] : 1;
    }
    for (int i = 0, n = 0; i < box->ndim; i++)
        if (box->axis_order[i] >= m->n_missing)
            m->axis_order[n++] = box->axis_order[i] - m->n_missing;
}

static bool take_grid(struct making *m)
{
    int64_t count[ARRAY_MAX_NDIM];
    for (int i = 0; i < m->pass->ndim; i++) {
        int64_t around = window_around(m->window, i);
        count[i] = m->count[i] + 2 * around;
        m->spans[i] = window_span((enum near_mode)m->window->modes[i], m->pass->shape[i],
                                  m->start[i] - around, count[i]);
    }
    const struct program *program = m->call->program;
    m->inputs = window_room_take(m->call->room, program->n_inputs * sizeof(*m->inputs));
    m->outputs = window_room_take(m->call->room, program->n_all_outputs * sizeof(*m->outputs));
    m->reduced = window_room_take(m->call->room, program->n_reductions * sizeof(*m->reduced));
    return m->inputs && m->outputs && m->reduced &&
           window_grid_take(m->call->room, m->pass->ndim, count,
                            dtype_size((enum dtype)m->window->dtype), &m->grid);
}

/* A part of the grid: `at` counts on beyond the ends of axes, `start` are places of the array. */
struct part {
    int64_t at[ARRAY_MAX_NDIM], start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
};

static struct engine_view move_view(const struct making *m, const struct engine_view *of,
                                    const struct part *part)
{
    struct engine_view view = *of;
    view.is_fetched_ahead = false;
    view.goes_on_axes >>= m->n_missing;
    for (int i = 0; i < m->pass->ndim; i++) {
        bool goes_on = view.goes_on_axes >> i & 1;
        int64_t distance = (goes_on ? part->at[i] : part->start[i]) - m->start[i];
        view.strides[i] = of->strides[m->n_missing + i];
        view.goes_on_at[i] = of->goes_on_at[m->n_missing + i] + (goes_on ? distance : 0);
        if (m->pass->shape[i] > 1)
            view.base = (char *)view.base + distance * view.strides[i];
    }
    return view;
}

static int run_box(struct making *m, const struct part *part, struct engine_warnings *warnings)
{
    const struct program *program = m->call->program;
    struct run_call call = *m->call;
    struct engine_box box = {.ndim = m->pass->ndim,
                             .count = part->count,
                             .start = part->start,
                             .axis_order = m->axis_order,
                             .pace = m->box->pace};
    for (uint64_t left = m->pass->inputs_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        m->inputs[i] = move_view(m, &m->call->inputs[i], part);
    }
    for (uint64_t left = m->pass->reduced_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        m->reduced[i] = move_view(m, &m->call->reduced[i], part);
    }
    for (uint64_t left = m->pass->tables_used; left; left &= left - 1)
        m->reduced[__builtin_ctzll(left)] = m->call->reduced[__builtin_ctzll(left)];
    unsigned output = program->stores[m->pass->first_store].output;
    struct engine_view *to = &m->outputs[output];
    memset(to, 0, sizeof(*to));
    to->base = m->grid.base;
    for (int i = 0; i < m->pass->ndim; i++) {
        to->strides[i] = m->grid.strides[i];
        to->base = (char *)to->base + (part->at[i] - m->spans[i].first) * to->strides[i];
    }
    call.pass = m->pass;
    call.inputs = m->inputs;
    call.outputs = m->outputs;
    call.reduced = m->reduced;
    call.layout = NULL;
    call.node = NULL;
    call.warnings = warnings;
    call.grain = &box;
    if (m->pass->windows_used)
        return run_with_windows(&call, &box);
    return run_one(call.engine, program, m->pass, &box, m->inputs, m->outputs, m->reduced, NULL,
                   NULL, call.warnings, call.scratch);
}

/* What of a part is the grain's own; false: nothing. No place of the array is in two parts. */
static bool cut_to_grain(const struct making *m, const struct part *part, struct part *ret)
{
    const struct engine_box *grain = m->call->grain;
    for (int i = 0; i < m->pass->ndim; i++) {
        int axis = grain->ndim - m->pass->ndim + i;
        bool is_long = m->pass->shape[i] > 1;
        int64_t own = is_long && grain->start ? grain->start[axis] : 0;
        int64_t own_end = own + (is_long ? grain->count[axis] : 1);
        int64_t first = max_i64(part->start[i], own);
        int64_t end = min_i64(part->start[i] + part->count[i], own_end);
        if (first >= end)
            return false;
        ret->at[i] = part->at[i] + first - part->start[i];
        ret->start[i] = first;
        ret->count[i] = end - first;
    }
    return true;
}

/* What arithmetic meets is counted of the grain alone: what lies around it is others'. For the
 * windows that the operand reads, its own box is that. */
static int run_part(struct making *m, const struct part *part)
{
    struct engine_warnings met = {0};
    struct part own;
    int r = run_box(m, part, &met);
    if (r || (met.n_divide_by_zero == 0 && met.n_invalid_casts == 0) ||
        !cut_to_grain(m, part, &own))
        return r;
    return run_box(m, &own, m->call->warnings);
}

/* Of an axis that goes on with its other end, the parts between the ends. */
static int run_parts(struct making *m, struct part *part, int axis)
{
    if (axis == m->pass->ndim)
        return run_part(m, part);
    const struct window_span *s = &m->spans[axis];
    int r = 0;
    for (int64_t at = s->made_first; r == 0 && at < s->made_end; at += part->count[axis]) {
        int64_t place = at % s->length < 0 ? at % s->length + s->length : at % s->length;
        part->at[axis] = at;
        part->start[axis] = place;
        part->count[axis] = min_i64(s->made_end - at, s->length - place);
        r = run_parts(m, part, axis + 1);
    }
    return r;
}

/* Where the operand is nothing but an array, and windows go along its last axis, of many lines,
 * they are read where it lies. */
static bool find_in_place(struct making *m, const struct window_grid *result)
{
    const struct program *program = m->call->program;
    const struct program_window *w = m->window;
    const struct operand *src = &program->stores[m->pass->first_store].src;
    int last = m->pass->ndim - 1;
    bool is_along_last = last >= 0 && w->size[last] > 1 && w->modes[last] != NEAR_WRAP &&
                         m->call->engine->windows->steps[WINDOW_ONLY][w->op][w->dtype] &&
                         window_lane_axis(result, last) >= 0;
    for (int i = 0; i < last; i++)
        is_along_last = is_along_last && w->size[i] == 1;
    if (!is_along_last || src->kind != OPERAND_INPUT || src->dtype == DTYPE_BOOL)
        return false;
    const struct engine_view *input = &m->call->inputs[src->index];
    int64_t item_bytes = (int64_t)dtype_size((enum dtype)w->dtype);
    if (input->is_swapped || input->goes_on_axes || input->strides[m->box->ndim - 1] != item_bytes)
        return false;
    m->grid = (struct window_grid){.ndim = m->pass->ndim};
    m->grid.base = (char *)input->base - window_around(w, last) * item_bytes;
    for (int i = 0; i <= last; i++)
        m->grid.strides[i] = input->strides[m->n_missing + i];
    return true;
}

/* Windows ------------------------------------------------------------------------------------ */

static int make_window(const struct run_call *call, const struct engine_box *box, unsigned index,
                       struct engine_view *ret_view)
{
    const struct program_window *window = &call->program->windows[index];
    struct making m = {
        .call = call, .box = box, .window = window, .pass = &call->program->passes[window->pass]};
    size_t item_bytes = dtype_size((enum dtype)window->dtype);
    struct window_grid result;
    struct part part;
    find_box(&m);
    if (!window_grid_take(call->room, m.pass->ndim, m.count, item_bytes, &result))
        return -EINVAL;
    size_t used = call->room->used_bytes;
    bool is_in_place = find_in_place(&m, &result);
    int r = 0;
    if (!is_in_place) {
        r = take_grid(&m) ? run_parts(&m, &part, 0) : -EINVAL;
        if (r)
            return r;
        window_pad(&m.grid, m.spans, item_bytes, &window->beyond);
    }
    r = window_filter(call->engine, call->program, window, &m.grid, m.start,
                      is_in_place ? m.pass->shape[m.pass->ndim - 1] : 0, &result, call->room);
    call->room->used_bytes = used;
    memset(ret_view, 0, sizeof(*ret_view));
    ret_view->base = result.base;
    for (int i = 0; i < m.pass->ndim; i++)
        ret_view->strides[m.n_missing + i] = m.pass->shape[i] > 1 ? result.strides[i] : 0;
    return r;
}

int windows_make(const struct run_call *call, const struct engine_box *box,
                 struct engine_view *ret_views)
{
    int r = 0;
    for (uint64_t left = call->pass->windows_used; left && r == 0; left &= left - 1)
        r = make_window(call, box, (unsigned)__builtin_ctzll(left),
                        &ret_views[__builtin_ctzll(left)]);
    return r;
}
