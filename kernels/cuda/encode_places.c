/* Which operands of a pass have a place in a grain's record, and in which order.
 *
 * Inputs, as they are and from each offset from which they are read near, windows, which a kernel
 * before the interpreter has made, results of earlier passes that have more than one element, and
 * coordinates are loaded; stores are stored. Where all axes
 * are reduced the interpreter's threads take in what they have computed, and reductions need no
 * place, but for ARGMIN and ARGMAX the flat index, which is then the position. Tasks are what other
 * kernels do: reductions where some axes are kept, counts, scans. They read from places: the
 * operand's own, where it has one, else one to which the interpreter stores it ("value"). An input
 * that only they read is not loaded. Scans write the outputs, and have a place for the states with
 * which a grain begins. Tables lie beside the grains.
 *
 * The passes of a matrix product are like any other: what an operand's stores is a panel, an output
 * of the product's own; C is an earlier result, which is never uniform, since the host does not
 * have it.
 *
 * Called by encode.c and tile.c. program_values() says for the planner, which knows no
 * engine, what values there are; tests compare both for every program that they compile.
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
           program_all_inputs(program) <= REQUEST_MAX_ARGS &&
           program->n_consts <= PROGRAM_MAX_CONSTS &&
           program->n_reductions <= PROGRAM_MAX_REDUCTIONS &&
           program->n_stores <= PROGRAM_MAX_OUTPUTS && pass->n_stores <= PASS_MAX_STORES &&
           pass->n_nears <= PASS_MAX_NEARS && program->n_windows <= PROGRAM_MAX_WINDOWS &&
           pass->first_near + pass->n_nears <= program->n_nears &&
           pass->n_reductions <= PASS_MAX_REDUCTIONS &&
           pass->first_insn + pass->n_insns <= program->n_insns &&
           pass->first_reduction + pass->n_reductions <= program->n_reductions &&
           pass->first_store + pass->n_stores <= program->n_stores;
}

bool encode_is_task(const struct encode_places *places, const struct reduction *reduction)
{
    return places->reduces_axes || program_is_scan(reduction) || reduction->op == OP_BINCOUNT ||
           reduction->op == OP_KTH;
}

static const struct reduction *reduction_at(const struct scan *s, unsigned i)
{
    return &s->program->reductions[s->pass->first_reduction + i];
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

/* Of those that are tasks, or of the others. */
static int visit_reduced(const struct scan *s, bool are_tasks, encode_visit_fn *visit,
                         void *context)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < s->pass->n_reductions; i++) {
        const struct reduction *reduction = reduction_at(s, i);
        if (encode_is_task(s->to, reduction) != are_tasks)
            continue;
        r = visit(context, &reduction->src);
        if (r == 0)
            r = visit(context, &reduction->weights);
    }
    return r;
}

int encode_visit_reading(const struct program *program, const struct pass *pass,
                         encode_visit_fn *visit, void *context)
{
    struct scan s = {.program = program, .pass = pass};
    int r = visit_stored(&s, visit, context);
    for (unsigned i = 0; r == 0 && i < pass->n_reductions; i++) {
        r = visit(context, &reduction_at(&s, i)->src);
        if (r == 0)
            r = visit(context, &reduction_at(&s, i)->weights);
    }
    return r;
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

static int add_table(struct encode_places *to, unsigned reduction)
{
    for (unsigned i = 0; i < to->n_tables; i++)
        if (to->tables[i] == reduction)
            return 0;
    if (to->n_tables == PASS_MAX_RESULTS)
        return -EINVAL;
    to->tables[to->n_tables++] = (uint16_t)reduction;
    return 0;
}

static int add_near(const struct scan *s, const struct operand *operand)
{
    unsigned own = (unsigned)operand->index - s->pass->first_near;
    if (own >= s->pass->n_nears ||
        s->program->nears[operand->index].input >= program_all_inputs(s->program))
        return -EINVAL;
    add(s->to, ENCODE_NEAR, operand->index, operand->dtype, &s->to->near[own]);
    return 0;
}

/* Of an operand that is read from a place. */
static int note(const struct scan *s, const struct operand *operand)
{
    struct encode_places *to = s->to;
    unsigned index = operand->index;
    if (operand->kind != OPERAND_NONE && operand->dtype >= DTYPE_COUNT)
        return -EINVAL;
    switch (operand->kind) {
    case OPERAND_INPUT:
        if (index >= program_all_inputs(s->program))
            return -EINVAL;
        add(to, ENCODE_INPUT, index, operand->dtype, &to->input[index]);
        return 0;
    case OPERAND_NEAR: return add_near(s, operand);
    case OPERAND_WINDOW:
        if (index >= s->program->n_windows)
            return -EINVAL;
        add(to, ENCODE_WINDOW, index, operand->dtype, &to->window[index]);
        return 0;
    case OPERAND_REDUCED:
        if (index >= s->program->n_reductions)
            return -EINVAL;
        if (!program_is_uniform(s->program, index))
            add(to, ENCODE_REDUCED, index, operand->dtype, &to->reduced[index]);
        return 0;
    case OPERAND_INDEX:
        if (index != OPERAND_INDEX_FLAT && index >= ARRAY_MAX_NDIM)
            return -EINVAL;
        add(to, ENCODE_INDEX, index, operand->dtype,
            index == OPERAND_INDEX_FLAT ? &to->flat : &to->axis[index]);
        return 0;
    case OPERAND_TABLE:
        if (index >= s->program->n_reductions || s->program->reductions[index].op == OP_MATMUL)
            return -EINVAL;
        return add_table(to, index);
    default: return 0;
    }
}

static int note_read(void *context, const struct operand *operand)
{
    const struct scan *s = context;
    int r = note(s, operand);
    return r == 0 && s->to->n_places > ENCODE_MAX_READ ? -EINVAL : r;
}

uint8_t encode_place_of(const struct encode_places *places, const struct pass *pass,
                        const struct operand *operand)
{
    switch (operand->kind) {
    case OPERAND_INPUT: return places->input[operand->index];
    case OPERAND_NEAR: return places->near[operand->index - pass->first_near];
    case OPERAND_WINDOW: return places->window[operand->index];
    case OPERAND_REDUCED: return places->reduced[operand->index];
    case OPERAND_INDEX:
        return operand->index == OPERAND_INDEX_FLAT ? places->flat : places->axis[operand->index];
    default: return ENCODE_NOT_THERE;
    }
}

static bool is_same(const struct operand *a, const struct operand *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->index == b->index;
}

const struct operand *encode_value(const struct program *program, const struct encode_place *place)
{
    const struct reduction *reduction = &program->reductions[place->index];
    return place->what == ENCODE_WEIGHT ? &reduction->weights : &reduction->src;
}

/* Where a task reads an operand: its own place, or that of a value, which may be there already. */
static uint8_t place_for_task(const struct scan *s, enum encode_what what, unsigned i,
                              const struct operand *operand)
{
    struct encode_places *to = s->to;
    uint8_t at = encode_place_of(to, s->pass, operand);
    for (unsigned k = to->n_places - to->n_values; at == ENCODE_NOT_THERE && k < to->n_places; k++)
        if (is_same(encode_value(s->program, &to->places[k]), operand))
            at = (uint8_t)k;
    if (at != ENCODE_NOT_THERE)
        return at;
    add(to, what, s->pass->first_reduction + i, operand->dtype, &at);
    to->n_values++;
    return at;
}

static void add_task_places(const struct scan *s)
{
    for (unsigned i = 0; i < s->pass->n_reductions; i++) {
        const struct reduction *reduction = reduction_at(s, i);
        if (!encode_is_task(s->to, reduction))
            continue;
        s->to->source[i] = place_for_task(s, ENCODE_VALUE, i, &reduction->src);
        if (reduction->weights.kind != OPERAND_NONE)
            s->to->other[i] = place_for_task(s, ENCODE_WEIGHT, i, &reduction->weights);
    }
}

static void add_states(const struct scan *s)
{
    for (unsigned i = 0; s->to->scans && i < s->pass->n_reductions; i++)
        add(s->to, ENCODE_STATE, s->pass->first_reduction + i, reduction_at(s, i)->result,
            &s->to->other[i]);
}

static int add_outputs(const struct scan *s)
{
    unsigned n_outputs = s->program->n_all_outputs;
    for (unsigned i = 0; i < s->pass->n_stores; i++) {
        unsigned store = s->pass->first_store + i, output = s->program->stores[store].output;
        if (output >= n_outputs || s->program->outputs[output].dtype >= DTYPE_COUNT)
            return -EINVAL;
        add(s->to, ENCODE_STORE, store, s->program->outputs[output].dtype, &s->to->output[i]);
    }
    return 0;
}

/* All axes are reduced: the flat index is the position among them. */
static void add_position(const struct scan *s)
{
    for (unsigned i = 0; i < s->pass->n_reductions; i++) {
        unsigned op = reduction_at(s, i)->op;
        s->to->needs_position |= !s->to->reduces_axes && (op == OP_ARGMIN || op == OP_ARGMAX);
    }
    if (s->to->needs_position)
        add(s->to, ENCODE_INDEX, OPERAND_INDEX_FLAT, DTYPE_INT64, &s->to->flat);
}

static void find_tasks(const struct scan *s)
{
    struct encode_places *to = s->to;
    to->scans = s->pass->n_reductions > 0 && program_is_scan(reduction_at(s, 0));
    to->reduces_axes = !to->scans && program_keeps_axes(s->pass);
    to->has_tasks = false;
    for (unsigned i = 0; i < s->pass->n_reductions; i++)
        to->has_tasks |= encode_is_task(to, reduction_at(s, i));
}

/* What only tasks read, where it is, and what is written. */
static int add_behind_loads(struct scan *s)
{
    struct encode_places *to = s->to;
    int r = visit_reduced(s, true, note_read, s);
    if (r)
        return r;
    add_states(s);
    unsigned first = to->n_places;
    r = add_outputs(s);
    if (to->scans)
        first = to->n_places;
    add_task_places(s);
    to->n_stored = to->n_places - first;
    return r;
}

int encode_places_of(const struct program *program, const struct pass *pass,
                     struct encode_places *ret_places)
{
    struct scan s = {program, pass, ret_places};
    memset(ret_places, 0xff, sizeof(*ret_places));
    ret_places->n_places = ret_places->n_values = ret_places->n_tables = 0;
    ret_places->needs_position = false;
    if (!is_within_limits(program, s.pass))
        return -EINVAL;
    find_tasks(&s);
    int r = visit_stored(&s, note_read, &s);
    if (r == 0)
        r = visit_reduced(&s, false, note_read, &s);
    if (r)
        return r;
    add_position(&s);
    ret_places->n_loads = ret_places->n_places;
    return ret_places->n_loads <= ENCODE_MAX_READ ? add_behind_loads(&s) : -EINVAL;
}
