/* See neighbours.h. Beyond its ends an axis goes on as numpy.pad has it:
 *
 *     edge        a a a | a b c d | d d d        symmetric   c b a | a b c d | d c b
 *     constant    v v v | a b c d | v v v        reflect     d c b | a b c d | c b a
 *                                                wrap        b c d | a b c d | a b c
 *
 * All but the last are never further from an element than the offset says, so what a grain needs is
 * a box not much larger than its own. With `wrap` a grain at an end needs the other end, too: the
 * box then goes on beyond the end, and is read in parts.
 */
#include "kernels/neighbours.h"

#include "proto/util.h"

static int64_t limit_i64(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

int64_t neighbours_place(enum near_mode mode, int64_t at, int64_t length)
{
    if (at >= 0 && at < length)
        return at;
    switch (mode) {
    case NEAR_CONSTANT: return -1;
    case NEAR_REFLECT: return at < 0 ? -at : 2 * length - 2 - at;
    case NEAR_SYMMETRIC: return at < 0 ? -at - 1 : 2 * length - 1 - at;
    case NEAR_WRAP: return at < 0 ? at + length : at - length;
    default: return limit_i64(at, 0, length - 1);
    }
}

/* Offsets along an axis, of all nears of an input. */
struct span {
    int64_t low, high; /* the least, the largest; low is above high: there are none */
    unsigned modes;
};

static struct span span_of(const struct program *program, const struct pass *pass, unsigned input,
                           int axis)
{
    struct span s = {.low = INT64_MAX, .high = INT64_MIN};
    for (unsigned i = 0; i < pass->n_nears; i++) {
        const struct program_near *near = &program->nears[pass->first_near + i];
        int64_t offset = near->offsets[axis];
        if (near->input != input)
            continue;
        s.low = offset < s.low ? offset : s.low;
        s.high = offset > s.high ? offset : s.high;
        s.modes |= offset != 0 ? 1u << near->modes[axis] : 0;
    }
    if (s.low <= s.high && program->inputs[input].has_own) {
        s.low = s.low > 0 ? 0 : s.low;
        s.high = s.high < 0 ? 0 : s.high;
    }
    return s;
}

bool neighbours_are(const struct program *program, const struct pass *pass, unsigned input)
{
    for (unsigned i = 0; i < pass->n_nears; i++)
        if (program->nears[pass->first_near + i].input == input)
            return true;
    return false;
}

unsigned neighbours_modes(const struct program *program, const struct pass *pass, unsigned input,
                          int axis)
{
    return span_of(program, pass, input, axis).modes;
}

bool neighbours_reach(const struct program *program, const struct pass *pass, unsigned input,
                      int64_t *ret_reach)
{
    if (!neighbours_are(program, pass, input))
        return false;
    for (int i = 0; i < program->inputs[input].ndim; i++) {
        struct span s = span_of(program, pass, input, i);
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
        int64_t place = neighbours_place(mode, turns[i], length);
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

/* Of the nears that have an offset along the axis, and of what lies at its own places. */
static void cover(const struct program *program, const struct pass *pass, unsigned input, int axis,
                  int64_t *start, int64_t *count)
{
    int64_t length = program->inputs[input].shape[axis], low = INT64_MAX, high = -1;
    for (unsigned i = 0; i < pass->n_nears; i++) {
        const struct program_near *near = &program->nears[pass->first_near + i];
        if (near->input != input)
            continue;
        int64_t at = *start + near->offsets[axis];
        add_places((enum near_mode)near->modes[axis], at, at + *count, length, &low, &high);
    }
    if (program->inputs[input].has_own)
        add_places(NEAR_EDGE, *start, *start + *count, length, &low, &high);
    if (high < 0) /* all of it is beyond */
        low = high = *start;
    *start = low;
    *count = high - low + 1;
}

void neighbours_box(const struct program *program, const struct pass *pass, unsigned input,
                    const int64_t *start, const int64_t *count, int64_t *ret_start,
                    int64_t *ret_count)
{
    const struct program_input *of = &program->inputs[input];
    for (int i = 0; i < of->ndim; i++) {
        int axis = pass->ndim - of->ndim + i;
        ret_start[i] = of->shape[i] == 1 ? 0 : start[axis];
        ret_count[i] = of->shape[i] == 1 ? 1 : count[axis];
        struct span s = span_of(program, pass, input, i);
        if (s.low > s.high || (s.low == 0 && s.high == 0))
            continue;
        if (s.modes >> NEAR_WRAP & 1)
            wrapped(&s, of->shape[i], &ret_start[i], &ret_count[i]);
        else
            cover(program, pass, input, i, &ret_start[i], &ret_count[i]);
    }
}

int64_t neighbours_step(const struct program *program, const struct program_near *near,
                        const struct engine_view *view, int axis, int own)
{
    int64_t offset = near->offsets[own], length = program->inputs[near->input].shape[own];
    if (!(view->goes_on_axes >> axis & 1))
        return offset;
    int64_t at = view->goes_on_at[axis] + offset;
    return at < 0 ? offset + length : at >= length ? offset - length : offset;
}
