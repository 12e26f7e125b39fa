/* Which operands of a pass have a place in a grain's record, and in which order.
 *
 * Inputs, results of earlier passes that have more than one element, and coordinates are loaded;
 * stores are stored. Where all axes are reduced the interpreter's threads take in what they have
 * computed, and reductions need no place, but for ARGMIN and ARGMAX the flat index, which is then
 * the position. Where some axes are kept, another kernel reads what is reduced: from the operand's
 * own place, where it has one, else from a place of its own, to which the interpreter stores it
 * ("value"). An input that is only reduced is not loaded.
 *
 * Called by encode.c and tile.c, and by the planner for the number of values.
 */
#include "kernels/cuda/encode.h"

#include "proto/util.h"

#include <errno.h>
#include <string.h>

struct scan {
    const struct program *program;
    const struct pass *pass;
    struct encode_places *to;
};

static bool is_within_limits(const struct program *program, const struct pass *pass)
{
    return pass->n_registers <= PROGRAM_MAX_REGISTERS && program->n_insns <= PROGRAM_MAX_INSNS &&
           program->n_inputs <= REQUEST_MAX_ARGS && program->n_consts <= PROGRAM_MAX_CONSTS &&
           program->n_reductions <= PROGRAM_MAX_REDUCTIONS &&
           program->n_stores <= REQUEST_MAX_OUTPUTS &&
           pass->first_insn + pass->n_insns <= program->n_insns &&
           pass->first_reduction + pass->n_reductions <= program->n_reductions &&
           pass->first_store + pass->n_stores <= program->n_stores;
}

bool encode_is_uniform(const struct program *program, unsigned reduction)
{
    int64_t shape[ARRAY_MAX_NDIM], n = 1;
    int ndim = program_reduction_shape(program, reduction, shape);
    for (int i = 0; i < ndim; i++)
        n = shape[i] == 1 ? n : 0;
    return n == 1;
}

static bool keeps_axes(const struct pass *pass)
{
    for (int i = 0; i < pass->ndim; i++)
        if (!(pass->reduced_axes >> i & 1) && pass->shape[i] != 1)
            return pass->n_reductions > 0;
    return false;
}

static int visit_stored(const struct scan *s, encode_visit_fn *visit, void *context)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < s->pass->n_insns; i++) {
        for (unsigned j = 0; r == 0 && j < 3; j++)
            r = visit(context, &s->program->insns[s->pass->first_insn + i].src[j]);
    }
    for (unsigned i = 0; r == 0 && i < s->pass->n_stores; i++)
        r = visit(context, &s->program->stores[s->pass->first_store + i].src);
    return r;
}

static int visit_reduced(const struct scan *s, encode_visit_fn *visit, void *context)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < s->pass->n_reductions; i++)
        r = visit(context, &s->program->reductions[s->pass->first_reduction + i].src);
    return r;
}

int encode_visit_reading(const struct program *program, const struct pass *pass,
                         encode_visit_fn *visit, void *context)
{
    struct scan s = {.program = program, .pass = pass};
    int r = visit_stored(&s, visit, context);
    return r ? r : visit_reduced(&s, visit, context);
}

static void add(struct encode_places *to, enum encode_what what, unsigned index, unsigned dtype,
                uint8_t *ret_at)
{
    if (*ret_at != ENCODE_NOT_THERE)
        return;
    *ret_at = (uint8_t)to->n_places;
    to->places[to->n_places++] =
        (struct encode_place){(uint8_t)what, (uint8_t)dtype, (uint16_t)index};
}

/* Of an operand that is read from a place. */
static int note_read(void *context, const struct operand *operand)
{
    const struct scan *s = context;
    struct encode_places *to = s->to;
    unsigned index = operand->index;
    if (operand->kind != OPERAND_NONE && operand->dtype >= DTYPE_COUNT)
        return -EINVAL;
    switch (operand->kind) {
    case OPERAND_INPUT:
        if (index >= s->program->n_inputs)
            return -EINVAL;
        add(to, ENCODE_INPUT, index, operand->dtype, &to->input[index]);
        return 0;
    case OPERAND_REDUCED:
        if (index >= s->program->n_reductions)
            return -EINVAL;
        if (!encode_is_uniform(s->program, index))
            add(to, ENCODE_REDUCED, index, operand->dtype, &to->reduced[index]);
        return 0;
    case OPERAND_INDEX:
        if (index != OPERAND_INDEX_FLAT && index >= ARRAY_MAX_NDIM)
            return -EINVAL;
        add(to, ENCODE_INDEX, index, operand->dtype,
            index == OPERAND_INDEX_FLAT ? &to->flat : &to->axis[index]);
        return 0;
    default: return 0;
    }
}

/* Where the operand has a place of its own. */
static uint8_t place_of(const struct encode_places *to, const struct operand *operand)
{
    switch (operand->kind) {
    case OPERAND_INPUT: return to->input[operand->index];
    case OPERAND_REDUCED: return to->reduced[operand->index];
    case OPERAND_INDEX:
        return operand->index == OPERAND_INDEX_FLAT ? to->flat : to->axis[operand->index];
    default: return ENCODE_NOT_THERE;
    }
}

static bool is_same(const struct operand *a, const struct operand *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->index == b->index;
}

static void add_value(const struct scan *s, unsigned i)
{
    const struct reduction *reductions = &s->program->reductions[s->pass->first_reduction];
    struct encode_places *to = s->to;
    for (unsigned j = 0; j < i; j++)
        if (is_same(&reductions[j].src, &reductions[i].src))
            to->source[i] = to->source[j];
    if (to->source[i] != ENCODE_NOT_THERE)
        return;
    add(to, ENCODE_VALUE, s->pass->first_reduction + i, reductions[i].src.dtype, &to->source[i]);
    to->n_values++;
}

static int add_sources(const struct scan *s)
{
    for (unsigned i = 0; i < s->pass->n_reductions; i++) {
        const struct operand *src = &s->program->reductions[s->pass->first_reduction + i].src;
        s->to->source[i] = place_of(s->to, src);
        if (s->to->source[i] == ENCODE_NOT_THERE)
            add_value(s, i);
    }
    return 0;
}

/* All axes are reduced: the flat index is the position among them. */
static void add_position(const struct scan *s)
{
    for (unsigned i = 0; i < s->pass->n_reductions; i++) {
        unsigned op = s->program->reductions[s->pass->first_reduction + i].op;
        s->to->needs_position |= op == OP_ARGMIN || op == OP_ARGMAX;
    }
    if (s->to->needs_position)
        add(s->to, ENCODE_INDEX, OPERAND_INDEX_FLAT, DTYPE_INT64, &s->to->flat);
}

int encode_places_of(const struct program *program, unsigned pass, struct encode_places *ret_places)
{
    struct scan s = {program, &program->passes[pass], ret_places};
    memset(ret_places, 0xff, sizeof(*ret_places));
    ret_places->n_places = ret_places->n_values = 0;
    ret_places->needs_position = false;
    ret_places->reduces_axes = keeps_axes(s.pass);
    if (!is_within_limits(program, s.pass))
        return -EINVAL;
    int r = visit_stored(&s, note_read, &s);
    if (r == 0 && !ret_places->reduces_axes) {
        r = visit_reduced(&s, note_read, &s);
        add_position(&s);
    }
    ret_places->n_loads = ret_places->n_places;
    if (r == 0 && ret_places->reduces_axes)
        r = visit_reduced(&s, note_read, &s);
    if (r)
        return r;
    unsigned first = ret_places->n_places;
    for (unsigned i = 0; i < s.pass->n_stores; i++) {
        uint8_t at = ENCODE_NOT_THERE;
        unsigned store = s.pass->first_store + i;
        add(ret_places, ENCODE_STORE, store, program->stores[store].src.dtype, &at);
    }
    if (ret_places->reduces_axes)
        r = add_sources(&s);
    ret_places->n_stored = ret_places->n_places - first;
    return r;
}
