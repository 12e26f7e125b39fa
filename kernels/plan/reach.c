/* Passes with inputs that are near, or with repeats: what cannot be done with them, which is told
 * before anything is cut.
 *
 * A stream's client gives its rows once. Other clients are asked for one box at a time, which has
 * all that is read of the array for a grain: with mode `wrap` it goes on beyond the end of an axis,
 * as far as the client knows such boxes, and then does so for all modes. Where offsets are so far
 * apart that what a single element needs is no longer small, files and memory are read in several
 * boxes (expr/schedule/assemble.c), but a client is asked for one.
 *
 * Of a repeat a grain computes what lies around it, too. It may be as much as the grain itself
 * along each axis: where not even a grain that is as long as what its steps read fits a slot, there
 * are too many steps.
 *
 * Called by passes.c.
 */
#include "kernels/grains/geometry.h"
#include "kernels/neighbours.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define MOST_ELEMENT_BYTES (INT64_C(64) * 1024) /* of an operand, for one element of the pass */
#define MOST_ALL_BYTES     (INT64_C(256) * 1024)

int planner_refuse_at(const struct planner *p, enum gad_status status,
                      const struct program_place *place, const char *format, ...)
{
    char text[sizeof(p->error->message)], at[PROGRAM_PLACE_SIZE], unnamed[REQUEST_UNNAMED_SIZE];
    const char *name =
        request_output_name(&p->request->outputs[place->output], place->output, unnamed);
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return error_set(p->error, status, place->column > 0 ? name : "outputs", "%s%s",
                     program_format_place(place, at), text);
}

static int refuse(const struct planner *p, const struct program_place *place, const char *argument,
                  const char *why)
{
    char at[PROGRAM_PLACE_SIZE];

    error_set(p->error, GAD_BAD_ARGUMENT, argument, "%snear, or a window, of '%s': %s",
              program_format_place(place, at), argument, why);
    error_expected(p->error, "'%s' in a file or in memory: convert it first", argument);
    return GAD_BAD_ARGUMENT;
}

static int refuse_bytes(const struct planner *p, const struct program_input *input, int64_t found,
                        int64_t most)
{
    char at[PROGRAM_PLACE_SIZE];

    error_set(p->error, GAD_LIMIT_EXCEEDED, p->request->args[input->arg].name,
              "%sone element needs too much of an array: offsets of near() are so far apart, or "
              "windows so large",
              program_format_place(&input->place, at));
    error_expected(p->error, "at most %" PRId64 " bytes for one element", most);
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

/* Whether repeats are wrapped along an axis of the argument. */
static bool repeats_wrap(const struct planner *p, const struct pass *pass, int ndim)
{
    int64_t before[ARRAY_MAX_NDIM], behind[ARRAY_MAX_NDIM];
    uint32_t axes = neighbours_repeats_reach(p->program, pass, UINT32_MAX, before, behind);
    return ndim > 0 && axes >> (pass->ndim - ndim) != 0;
}

static int check_input(const struct planner *p, const struct pass *pass, unsigned index)
{
    const struct program_input *input = &p->program->inputs[index];
    const struct request_arg *arg = &p->request->args[input->arg];
    const struct program_place *place =
        input->place.column == 0 && pass->repeats != 0
            ? &p->program->repeats[__builtin_ctz(pass->repeats)].place
            : &input->place;
    bool is_mixed;

    if (planner_is_stream(&arg->array))
        return refuse(p, place, arg->name, "it is a stream, which is read once, row by row");
    if (arg->array.at.kind != LOCATION_PROVIDER)
        return 0;
    bool has_wrap = have_wrap(p->program, pass, index, &is_mixed);
    if (!has_wrap && !repeats_wrap(p, pass, arg->array.ndim))
        return 0;
    if (!arg->array.at.provider.wraps)
        return refuse(p, place, arg->name,
                      "its client gives no blocks of both ends of an axis, which mode "
                      "'wrap' needs");
    if (is_mixed)
        return refuse(p, place, arg->name,
                      "its blocks are asked of a client, and go on beyond the end of an "
                      "axis in one way, not with 'wrap' and another mode");
    return 0;
}

static int check_windows(const struct planner *p, const struct pass *pass)
{
    const struct plan_engine *engine = p->limits->engine;
    char at[PROGRAM_PLACE_SIZE];

    for (uint64_t left = pass->windows_used; left && engine->why_no_window; left &= left - 1) {
        const struct program_window *w = &p->program->windows[__builtin_ctzll(left)];
        const char *why = engine->why_no_window(p->program, w);
        if (!why)
            continue;
        error_set(p->error, GAD_NO_ENGINE, "engine", "%s%s", program_format_place(&w->place, at),
                  why);
        error_expected(p->error, "engine \"cpu\" or \"auto\"");
        return GAD_NO_ENGINE;
    }
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
    int r = check_windows(p, pass);

    for (unsigned i = 0; r == 0 && i < p->program->n_inputs; i++) {
        const struct program_input *input = &p->program->inputs[i];
        if (!(pass->inputs_used >> i & 1))
            continue;
        bool is_around = pass->repeats != 0 || neighbours_are(p->program, pass, i);
        r = is_around ? check_input(p, pass, i) : 0;
        if (r)
            return r;
        const struct geometry_operand *shape = &p->operands[operand++].shape;
        int64_t n_bytes = element_bytes(shape);
        if (pass->repeats) /* planner_check_repeats() */
            continue;
        if (shape->reach && n_bytes > MOST_ELEMENT_BYTES)
            return refuse_bytes(p, input, n_bytes, MOST_ELEMENT_BYTES);
        n_all += n_bytes;
        if (shape->reach && n_all > MOST_ALL_BYTES)
            return refuse_bytes(p, input, n_all, MOST_ALL_BYTES);
    }
    return r;
}

static bool reads_around(const struct pass *pass)
{
    return pass->n_nears > 0 || pass->repeats != 0 || pass->windows_used != 0;
}

int planner_check_places(const struct planner *p, unsigned pass)
{
    const struct engine_room one = {.n_elements = 1, .n_cells = 1};

    if (!reads_around(&p->program->passes[pass]) ||
        p->limits->engine->slot_need_bytes(p->program, pass, 1, &one) < UINT64_MAX)
        return 0;
    error_set(
        p->error, GAD_NO_ENGINE, "engine",
        "so many offsets of near() in one pass, or windows with 'wrap' along so many axes, are "
        "computed on the CPU");
    error_expected(p->error, "engine \"cpu\" or \"auto\"");
    return GAD_NO_ENGINE;
}

/* Of a repeat of the pass, of a window, or of what else it reads near; nowhere, if nothing is. */
static struct program_place place_of(const struct program *program, const struct pass *pass)
{
    struct program_place place = {.column = 0};

    if (pass->repeats)
        return program->repeats[__builtin_ctz(pass->repeats)].place;
    if (pass->windows_used)
        return program->windows[__builtin_ctzll(pass->windows_used)].place;
    for (uint64_t left = pass->inputs_used; left && place.column == 0; left &= left - 1)
        place = program->inputs[__builtin_ctzll(left)].place;
    return place;
}

int planner_refuse_element(const struct planner *p, const struct pass *pass)
{
    const struct program_place place = place_of(p->program, pass);
    int r = planner_refuse_at(
        p, GAD_LIMIT_EXCEEDED, &place,
        "one element needs more than a tile has room for, with all that is near to it");
    error_expected(p->error, "nearer elements, smaller windows, or fewer of them");
    error_found(p->error, "more");
    return r;
}

/* ---- repeats ---- */

unsigned planner_list_states(const struct planner *p, const struct pass *pass,
                             int64_t (*ret_reach)[ARRAY_MAX_NDIM],
                             struct geometry_operand *ret_operands)
{
    unsigned n = 0, n_repeats = 0;

    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        const struct program_repeat *r = &p->program->repeats[__builtin_ctz(left)];
        int64_t *reach = ret_reach[n_repeats++];
        for (int i = 0; i < r->ndim; i++) {
            int64_t of_steps = mul_saturating_i64(r->n_steps, r->before[i] + r->behind[i]);
            reach[i] = add_saturating_i64(of_steps, r->last_before[i] + r->last_behind[i]);
        }
        for (unsigned i = 0; i < 2u * r->n_states; i++)
            ret_operands[n++] = (struct geometry_operand){
                .dtype = p->program->outputs[r->first_output + i / 2].dtype,
                .ndim = r->ndim,
                .shape = r->shape,
                .reach = reach,
                .is_internal = true,
                .is_in_slot = true,
            };
    }
    return n;
}

/* Where steps go on beyond an end with the other one, and something is near that does not, the box
 * has the whole axis (kernels/neighbours.c). */
void planner_add_reach(const struct planner *p, const struct pass *pass, unsigned input,
                       struct planned_operand *operand)
{
    int64_t before[ARRAY_MAX_NDIM], behind[ARRAY_MAX_NDIM];
    int n_missing = pass->ndim - operand->shape.ndim;
    uint32_t wrapped_axes =
        neighbours_repeats_reach(p->program, pass, UINT32_MAX, before, behind) >> n_missing;

    for (int i = 0; i < operand->shape.ndim; i++) {
        int64_t around = add_saturating_i64(before[n_missing + i], behind[n_missing + i]);
        unsigned modes = neighbours_modes(p->program, pass, input, i);
        bool has_whole = (wrapped_axes >> i & 1) && (modes & ~(1u << NEAR_WRAP)) != 0;
        operand->reach[i] =
            has_whole ? operand->shape.shape[i]
                      : add_saturating_i64(operand->shape.reach ? operand->reach[i] : 0, around);
    }
    operand->shape.reach = operand->reach;
}

/* Along each axis of an operand or state as long as `around`, and that much more. `more`: along the
 * operand's axes, what is read of it beside that; NULL: nothing. */
static int64_t grain_bytes(const struct pass *pass, const int64_t *around,
                           const struct geometry_operand *operand, const int64_t *more)
{
    int64_t n_bytes = (int64_t)dtype_size(operand->dtype);

    for (int i = 0; i < operand->ndim; i++) {
        int64_t of = around[pass->ndim - operand->ndim + i], count = of > 1 ? of : 1;
        count = operand->is_output ? count : add_saturating_i64(count, of);
        count = more ? add_saturating_i64(count, more[i]) : count;
        n_bytes = mul_saturating_i64(n_bytes, min_i64(operand->shape[i], count));
    }
    return n_bytes;
}

/* Elements around a grain along each of the pass's axes, where repeats take at most so many steps.
 */
static void around_grain(const struct planner *p, const struct pass *pass, uint32_t most_steps,
                         int64_t *ret_around)
{
    int64_t behind[ARRAY_MAX_NDIM];

    (void)neighbours_repeats_reach(p->program, pass, most_steps, ret_around, behind);
    for (int i = 0; i < pass->ndim; i++)
        ret_around[i] = add_saturating_i64(ret_around[i], behind[i]);
}

/* What the smallest grain needs that is good for anything, if repeats take at most so many steps.
 */
static int64_t least_bytes(const struct planner *p, const struct pass *pass, uint32_t most_steps)
{
    int64_t around[ARRAY_MAX_NDIM], around_all[ARRAY_MAX_NDIM], n_bytes = 0;

    around_grain(p, pass, most_steps, around);
    around_grain(p, pass, UINT32_MAX, around_all);
    for (unsigned i = 0; i < p->n_operands; i++) {
        const struct geometry_operand *o = &p->operands[i].shape;
        int64_t more[ARRAY_MAX_NDIM];
        for (int k = 0; o->reach && k < o->ndim; k++)
            more[k] = max_i64(o->reach[k] - around_all[pass->ndim - o->ndim + k], 0);
        n_bytes = add_saturating_i64(n_bytes, grain_bytes(pass, around, o, o->reach ? more : NULL));
    }
    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        const struct program_repeat *r = &p->program->repeats[__builtin_ctz(left)];
        for (unsigned i = 0; i < r->n_states; i++) {
            const struct geometry_operand state = {
                .dtype = p->program->outputs[r->first_output + i].dtype,
                .ndim = r->ndim,
                .shape = r->shape};
            n_bytes = add_saturating_i64(
                n_bytes, mul_saturating_i64(2, grain_bytes(pass, around, &state, NULL)));
        }
    }
    return n_bytes;
}

/* Not even one step beside what is near. */
static int refuse_beside(const struct planner *p, const struct program_repeat *first, int64_t room)
{
    int r = planner_refuse_at(
        p, GAD_LIMIT_EXCEEDED, &first->place,
        "repeat: what is near beside it is so far away that one element does not fit a tile, or an "
        "axis goes on with its other end here and otherwise there");
    error_expected(p->error,
                   "one mode along an axis, or nearer elements: at most %" PRId64 " bytes", room);
    error_found(p->error, "more");
    return r;
}

/* Whether no operand alone needs more for one element than there is where no runs are long. */
static bool fit_alone(const struct planner *p)
{
    for (unsigned i = 0; i < p->n_operands; i++)
        if (element_bytes(&p->operands[i].shape) > (int64_t)GRAIN_MAX_OPERAND_BYTES)
            return false;
    return true;
}

int planner_check_repeats(const struct planner *p, const struct pass *pass, uint64_t long_bytes)
{
    const struct program_repeat *first = &p->program->repeats[__builtin_ctz(pass->repeats)];
    int64_t room = (int64_t)(long_bytes > 0 ? long_bytes : GRAIN_MAX_TOTAL_BYTES) / 16 * 15;
    uint32_t good = 0, bad = 0;
    const struct plan_engine *engine = p->limits->engine;
    const char *why = engine->why_no_repeats ? engine->why_no_repeats(p->program, pass) : NULL;
    char at[PROGRAM_PLACE_SIZE];

    if (why) {
        error_set(p->error, GAD_NO_ENGINE, "engine", "%s%s",
                  program_format_place(&first->place, at), why);
        error_expected(p->error, "engine \"cpu\" or \"auto\"");
        return GAD_NO_ENGINE;
    }
    for (uint32_t left = pass->repeats; left; left &= left - 1)
        bad = (uint32_t)max_u64(bad, p->program->repeats[__builtin_ctz(left)].n_steps);
    uint32_t n_steps = bad;
    if (least_bytes(p, pass, bad) <= room)
        return long_bytes > 0 || fit_alone(p) ? 0
                                              : refuse_beside(p, first, GRAIN_MAX_OPERAND_BYTES);
    while (bad - good > 1) {
        uint32_t middle = good + (bad - good) / 2;
        if (least_bytes(p, pass, middle) <= room)
            good = middle;
        else
            bad = middle;
    }
    if (good == 0)
        return refuse_beside(p, first, room);
    int r = planner_refuse_at(p, GAD_LIMIT_EXCEEDED, &first->place,
                              "repeat: what %" PRIu32 " steps read around a part of the arrays "
                              "does not fit a tile: take fewer at a time",
                              n_steps);
    error_expected(p->error, "at most %" PRIu32 " step%s", good, good == 1 ? "" : "s");
    error_found(p->error, "%" PRIu32, n_steps);
    return r;
}
