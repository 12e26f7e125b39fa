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

uint64_t neighbours_together(const struct program *program, const struct pass *pass, unsigned input)
{
    unsigned first = neighbours_first(program, input);
    uint64_t inputs = 0;
    for (unsigned i = first; i < program->n_inputs; i++)
        if ((pass->inputs_used >> i & 1) && neighbours_first(program, i) == first)
            inputs |= UINT64_C(1) << i;
    return inputs;
}

/* Offsets along an axis, of all of them. */
struct span {
    int64_t low, high; /* the least, the largest */
    bool is_mixed;     /* of different modes */
    bool is_wrap;
};

static struct span span_of(const struct program *program, uint64_t inputs, int axis)
{
    struct span s = {.low = INT64_MAX, .high = INT64_MIN};
    int mode = -1;
    for (; inputs; inputs &= inputs - 1) {
        const struct program_input *input = &program->inputs[__builtin_ctzll(inputs)];
        int64_t offset = input->is_near ? input->offsets[axis] : 0;
        s.low = offset < s.low ? offset : s.low;
        s.high = offset > s.high ? offset : s.high;
        if (offset == 0)
            continue;
        s.is_mixed |= mode >= 0 && mode != input->modes[axis];
        mode = input->modes[axis];
        s.is_wrap |= mode == NEAR_WRAP;
    }
    return s;
}

bool neighbours_reach(const struct program *program, uint64_t inputs, int64_t *ret_reach)
{
    const struct program_input *first = &program->inputs[__builtin_ctzll(inputs)];
    bool is_near = false;
    for (uint64_t left = inputs; left; left &= left - 1)
        is_near |= program->inputs[__builtin_ctzll(left)].is_near;
    for (int i = 0; is_near && i < first->ndim; i++) {
        struct span s = span_of(program, inputs, i);
        int64_t most = -s.low > s.high ? -s.low : s.high;
        ret_reach[i] = s.is_mixed ? 2 * most : s.high - s.low;
    }
    return is_near;
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

void neighbours_box(const struct program *program, uint64_t inputs, int ndim, const int64_t *start,
                    const int64_t *count, int64_t *ret_start, int64_t *ret_count)
{
    const struct program_input *first = &program->inputs[__builtin_ctzll(inputs)];
    for (int i = 0; i < first->ndim; i++) {
        int axis = ndim - first->ndim + i;
        int64_t length = first->shape[i], low = INT64_MAX, high = -1;
        ret_start[i] = length == 1 ? 0 : start[axis];
        ret_count[i] = length == 1 ? 1 : count[axis];
        struct span s = span_of(program, inputs, i);
        if (s.low == 0 && s.high == 0)
            continue;
        if (s.is_wrap) {
            wrapped(&s, length, &ret_start[i], &ret_count[i]);
            continue;
        }
        for (uint64_t left = inputs; left; left &= left - 1) {
            const struct program_input *input = &program->inputs[__builtin_ctzll(left)];
            int64_t at = ret_start[i] + (input->is_near ? input->offsets[i] : 0);
            add_places((enum near_mode)input->modes[i], at, at + ret_count[i], length, &low, &high);
        }
        if (high < 0) /* all of it is beyond */
            low = high = ret_start[i];
        ret_start[i] = low;
        ret_count[i] = high - low + 1;
    }
}
