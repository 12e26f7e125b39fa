/* See neighbours.h. Beyond its ends an axis goes on as kernels/common/near_place.h says. In all
 * modes but `wrap` what is there is never further from an element than the offset says, so what a
 * grain needs is a box not much larger than its own. With `wrap` a grain at an end needs the other
 * end, too: the box then goes on beyond the end, and is read in parts.
 */
#include "kernels/neighbours.h"

#include "proto/util.h"

/* Of the operands of windows, and of those that they read; NULL: there are not so many. */
static const struct pass *window_pass_at(const struct program *program, uint64_t windows,
                                         unsigned at)
{
    for (unsigned i = program->n_windows; windows != 0 && i-- > 0;) {
        const struct pass *pass = &program->passes[program->windows[i].pass];
        if (!(windows >> i & 1))
            continue;
        windows |= pass->windows_used; /* of smaller numbers */
        if (at-- == 0)
            return pass;
    }
    return NULL;
}

/* One after the other, from 0 on: the pass, and those of its repeats. NULL: there are no more. */
static const struct pass *pass_at(const struct program *program, const struct pass *pass,
                                  unsigned at)
{
    uint32_t repeats = pass->repeats;
    if (at == 0)
        return pass;
    for (at--; repeats != 0 && at >= 2; at -= 2)
        repeats &= repeats - 1;
    if (repeats == 0)
        return window_pass_at(program, pass->windows_used, at);
    const struct program_repeat *r = &program->repeats[__builtin_ctz(repeats)];
    return &program->inner[at == 0 ? r->begin : r->step];
}

/* Offsets along an axis, of all nears of an input. */
struct span {
    int64_t low, high; /* the least, the largest; low is above high: there are none */
    unsigned modes;
};

static void add_span(const struct program *program, const struct pass *pass, unsigned input,
                     int axis, struct span *s)
{
    for (unsigned i = 0; i < pass->n_nears; i++) {
        const struct program_near *near = &program->nears[pass->first_near + i];
        int64_t offset = near->offsets[axis];
        if (near->input != input)
            continue;
        s->low = offset < s->low ? offset : s->low;
        s->high = offset > s->high ? offset : s->high;
        s->modes |= offset != 0 ? 1u << near->modes[axis] : 0;
    }
}

static struct span span_of(const struct program *program, const struct pass *pass, unsigned input,
                           int axis)
{
    const struct pass *of;
    struct span s = {.low = INT64_MAX, .high = INT64_MIN};
    for (unsigned at = 0; (of = pass_at(program, pass, at)) != NULL; at++)
        add_span(program, of, input, axis, &s);
    if (s.low <= s.high && program->inputs[input].has_own) {
        s.low = s.low > 0 ? 0 : s.low;
        s.high = s.high < 0 ? 0 : s.high;
    }
    return s;
}

/* With what windows have around all of it. Where an axis goes on in several ways, all of it. */
static struct span wide_span_of(const struct program *program, const struct pass *pass,
                                unsigned input, int axis)
{
    const struct program_input *of = &program->inputs[input];
    struct span s = span_of(program, pass, input, axis);
    int64_t around = pass->windows_used ? of->around[axis] : 0;
    if (s.low > s.high) /* nothing is near: the elements' own places, that windows are around of */
        s.low = s.high = 0;
    if (around == 0)
        return s;
    s.modes |= 1u << (of->wraps_axes >> axis & 1 ? NEAR_WRAP : NEAR_EDGE);
    if ((s.modes >> NEAR_WRAP & 1) && s.modes != 1u << NEAR_WRAP)
        around = of->shape[axis];
    s.low -= around;
    s.high += around;
    return s;
}

bool neighbours_are(const struct program *program, const struct pass *pass, unsigned input)
{
    const struct pass *of;
    for (unsigned at = 0; (of = pass_at(program, pass, at)) != NULL; at++)
        for (unsigned i = 0; i < of->n_nears; i++)
            if (program->nears[of->first_near + i].input == input)
                return true;
    for (int i = 0; pass->windows_used && i < program->inputs[input].ndim; i++)
        if (program->inputs[input].around[i] > 0)
            return true;
    return false;
}

unsigned neighbours_modes(const struct program *program, const struct pass *pass, unsigned input,
                          int axis)
{
    return wide_span_of(program, pass, input, axis).modes;
}

bool neighbours_reach(const struct program *program, const struct pass *pass, unsigned input,
                      int64_t *ret_reach)
{
    if (!neighbours_are(program, pass, input))
        return false;
    for (int i = 0; i < program->inputs[input].ndim; i++) {
        struct span s = wide_span_of(program, pass, input, i);
        int64_t most = -s.low > s.high ? -s.low : s.high;
        ret_reach[i] = s.modes & (s.modes - 1) ? 2 * most : s.high - s.low;
    }
    return true;
}

/* The elements of [first, end) as far as they are anywhere: added to [*low, *high]. The places
 * between an end of the axis and the next rise or fall. */
static void add_places(enum near_mode mode, int64_t first, int64_t end, int64_t length,
                       int64_t *low, int64_t *high)
{
    const int64_t turns[] = {first, end - 1, -1, 0, length - 1, length};
    for (unsigned i = 0; i < ARRAY_LENGTH(turns); i++) {
        if (turns[i] < first || turns[i] >= end)
            continue;
        int64_t place = near_place(mode, turns[i], length);
        if (place < 0)
            continue;
        *low = place < *low ? place : *low;
        *high = place > *high ? place : *high;
    }
}

static void wrapped(const struct span *s, int64_t length, int64_t *start, int64_t *count)
{
    *start += s->low;
    *count += s->high - s->low;
    if (*count >= length) {
        *start = 0;
        *count = length;
    }
    *start = *start < 0 ? *start + length : *start >= length ? *start - length : *start;
}

/* More elements along an axis: as far as it goes, or beyond its end. */
static void widen(int64_t before, int64_t behind, bool is_wrap, int64_t length, int64_t *start,
                  int64_t *count)
{
    if (is_wrap) {
        const struct span s = {.low = -before, .high = behind};
        if (before < length && behind < length) {
            wrapped(&s, length, start, count);
            return;
        }
        *start = 0;
        *count = length;
        return;
    }
    int64_t end = *count < length - *start ? *start + *count : length;
    end = behind < length - end ? end + behind : length;
    *start = before < *start ? *start - before : 0;
    *count = end - *start;
}

static int64_t steps_reach(uint32_t n_steps, int64_t of_one, int64_t last)
{
    return add_saturating_i64(mul_saturating_i64(n_steps, of_one), last);
}

void neighbours_repeat_box(const struct program_repeat *repeat, uint32_t n_left, int ndim,
                           const int64_t *start, const int64_t *count, int64_t *ret_start,
                           int64_t *ret_count)
{
    for (int i = 0; i < repeat->ndim; i++) {
        int axis = ndim - repeat->ndim + i;
        int64_t length = repeat->shape[i];
        ret_start[i] = length == 1 || !start ? 0 : start[axis];
        ret_count[i] = length == 1 ? 1 : count[axis];
        int64_t before = steps_reach(n_left, repeat->before[i], repeat->last_before[i]);
        int64_t behind = steps_reach(n_left, repeat->behind[i], repeat->last_behind[i]);
        if (before > 0 || behind > 0)
            widen(before, behind, repeat->wrapped_axes >> i & 1, length, &ret_start[i],
                  &ret_count[i]);
    }
}

void neighbours_window_box(const struct program_window *window, const struct pass *operand,
                           int ndim, const int64_t *start, const int64_t *count, int64_t *ret_start,
                           int64_t *ret_count)
{
    for (int i = 0; i < operand->ndim; i++) {
        int axis = ndim - operand->ndim + i;
        int64_t length = operand->shape[i], around = window_around(window, i);
        ret_start[i] = length == 1 || !start ? 0 : start[axis];
        ret_count[i] = length == 1 ? 1 : count[axis];
        if (around > 0)
            widen(around, around, window->modes[i] == NEAR_WRAP, length, &ret_start[i],
                  &ret_count[i]);
    }
}

uint32_t neighbours_repeats_reach(const struct program *program, const struct pass *pass,
                                  uint32_t most_steps, int64_t *ret_before, int64_t *ret_behind)
{
    uint32_t wrapped_axes = 0;
    for (int i = 0; i < pass->ndim; i++)
        ret_before[i] = ret_behind[i] = 0;
    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        const struct program_repeat *r = &program->repeats[__builtin_ctz(left)];
        for (int i = 0; i < r->ndim; i++) {
            int axis = pass->ndim - r->ndim + i;
            uint32_t n = r->n_steps < most_steps ? r->n_steps : most_steps;
            int64_t before = steps_reach(n, r->before[i], r->last_before[i]);
            int64_t behind = steps_reach(n, r->behind[i], r->last_behind[i]);
            ret_before[axis] = before > ret_before[axis] ? before : ret_before[axis];
            ret_behind[axis] = behind > ret_behind[axis] ? behind : ret_behind[axis];
            wrapped_axes |= (r->wrapped_axes >> i & 1) << axis;
        }
    }
    return wrapped_axes;
}

/* Of the nears that have an offset along the axis, and of what lies at its own places. */
static void cover(const struct program *program, const struct pass *pass, unsigned input, int axis,
                  int64_t *start, int64_t *count)
{
    const struct program_input *input_of = &program->inputs[input];
    int64_t length = input_of->shape[axis], low = INT64_MAX, high = -1;
    int64_t around = pass->windows_used ? input_of->around[axis] : 0;
    int64_t from = max_i64(*start - around, 0), end = min_i64(*start + *count + around, length);
    const struct pass *of;
    for (unsigned at = 0; (of = pass_at(program, pass, at)) != NULL; at++)
        for (unsigned i = 0; i < of->n_nears; i++) {
            const struct program_near *near = &program->nears[of->first_near + i];
            int64_t offset = near->offsets[axis];
            if (near->input == input)
                add_places((enum near_mode)near->modes[axis], from + offset, end + offset, length,
                           &low, &high);
        }
    if (input_of->has_own)
        add_places(NEAR_EDGE, from, end, length, &low, &high);
    if (high < 0) /* all of it is beyond */
        low = high = *start;
    *start = low;
    *count = high - low + 1;
}

/* Along one axis: what nears need for [*start, *start + *count), which may go on beyond its end. */
static void reach_axis(const struct program *program, const struct pass *pass, unsigned input,
                       int axis, int64_t *start, int64_t *count)
{
    int64_t length = program->inputs[input].shape[axis];
    struct span s = wide_span_of(program, pass, input, axis);
    if (s.low == 0 && s.high == 0)
        return;
    if (s.modes >> NEAR_WRAP & 1) {
        wrapped(&s, length, start, count);
    } else if (*start + *count > length) { /* they have both ends of it */
        *start = 0;
        *count = length;
    } else {
        cover(program, pass, input, axis, start, count);
    }
}

void neighbours_box(const struct program *program, const struct pass *pass, unsigned input,
                    const int64_t *start, const int64_t *count, int64_t *ret_start,
                    int64_t *ret_count)
{
    const struct program_input *of = &program->inputs[input];
    int64_t before[ARRAY_MAX_NDIM], behind[ARRAY_MAX_NDIM];
    uint32_t wrapped_axes = 0;
    if (pass->repeats)
        wrapped_axes = neighbours_repeats_reach(program, pass, UINT32_MAX, before, behind);
    for (int i = 0; i < of->ndim; i++) {
        int axis = pass->ndim - of->ndim + i;
        bool is_one = of->shape[i] == 1;
        ret_start[i] = is_one ? 0 : start[axis];
        ret_count[i] = is_one ? 1 : count[axis];
        if (pass->repeats && !is_one && (before[axis] > 0 || behind[axis] > 0))
            widen(before[axis], behind[axis], wrapped_axes >> axis & 1, of->shape[i], &ret_start[i],
                  &ret_count[i]);
        reach_axis(program, pass, input, i, &ret_start[i], &ret_count[i]);
    }
}

/* In steps along an axis of the pass, which is the input's `own`. */
static int64_t step_along(const struct program_near *near, const struct program_input *of,
                          const struct engine_view *view, int axis, int own)
{
    int64_t offset = near->offsets[own], length = of->shape[own];
    if (!(view->goes_on_axes >> axis & 1))
        return offset;
    int64_t at = view->goes_on_at[axis] + offset;
    return at < 0 ? offset + length : at >= length ? offset - length : offset;
}

int64_t neighbours_distance(const struct program_near *near, const struct program_input *of,
                            const struct engine_view *view, int ndim)
{
    int64_t distance = 0;
    for (int own = 0, axis = ndim - of->ndim; own < of->ndim; own++, axis++)
        distance += step_along(near, of, view, axis, own) * view->strides[axis];
    return distance;
}

bool neighbours_are_beyond(const struct program_near *near, const struct program_input *of,
                           uint32_t goes_on_axes, const struct engine_box *box)
{
    for (int axis = 0; axis < box->ndim; axis++) {
        struct near_axis a = neighbours_axis(near, of, goes_on_axes, box, axis);
        if (a.is_moved && (a.first < 0 || a.first + box->count[axis] > a.length))
            return true;
    }
    return false;
}
