/* Encoding a pass: where every value lies in a block's shared memory, and what is done in a strip.
 *
 * Cells of uniform values come first, then what a block prepares of each operand (16 bytes), then
 * the program's registers (as wide as the widest value that is ever in them), then the inputs'
 * planes, then the states of reductions. Inputs have planes of their own, filled strips ahead,
 * while that fits; else there are three temporary places, and an instruction that loads precedes
 * every use of an input that is in none of them. The number of threads and the depth are the first
 * of a list that fits into the shared memory that every device has; they are functions of the pass
 * alone, and so are the bits of its sums. The worst pass (PROGRAM_MAX_REGISTERS,
 * PROGRAM_MAX_CONSTS, PROGRAM_MAX_REDUCTIONS) fits with the last of the list.
 *
 * Called by tile.c, and so by the planner for the number of bytes alone.
 */
#include "kernels/cuda/encode.h"

#include "kernels/cuda/encode_actions.h"
#include "proto/util.h"

#include <errno.h>
#include <string.h>

#define MAX_LOADS   (REQUEST_MAX_ARGS + ARRAY_MAX_NDIM)
#define MAX_CELLS   (PROGRAM_MAX_CONSTS + PROGRAM_MAX_REDUCTIONS)
#define N_TEMPORARY 3u
#define WIDE_PLANES 2u
#define CELL_BYTES  16u
#define NOT_THERE   UINT16_MAX

_Static_assert((MAX_CELLS + MAX_LOADS + REQUEST_MAX_OUTPUTS) * CELL_BYTES +
                       CODE_MIN_THREADS * CELL_BYTES *
                           (PROGRAM_MAX_REGISTERS * WIDE_PLANES + N_TEMPORARY * WIDE_PLANES +
                            PROGRAM_MAX_REDUCTIONS + 1) <=
                   CODE_MAX_SHARED_BYTES,
               "every pass fits");

struct encoder {
    const struct program *program;
    const struct pass *pass;
    const union scalar *reduced;
    struct encode_places places;
    struct code_header h;
    char *code; /* NULL: only counted */
    uint16_t const_cell[PROGRAM_MAX_CONSTS], reduced_cell[PROGRAM_MAX_REDUCTIONS];
    uint8_t register_log2[PROGRAM_MAX_REGISTERS], load_log2[MAX_LOADS];
    uint16_t register_at[PROGRAM_MAX_REGISTERS], load_at[MAX_LOADS];
    uint16_t temporary_at[N_TEMPORARY], temporary_load[N_TEMPORARY];
    unsigned next_temporary;
    unsigned n_insns;
};

static unsigned log2_of(unsigned dtype)
{
    return (unsigned)__builtin_ctzl(dtype_size((enum dtype)dtype));
}

static unsigned planes_of(unsigned item_log2)
{
    return item_log2 == 3 ? WIDE_PLANES : 1;
}

static const struct insn *insn_at(const struct program *program, const struct pass *pass,
                                  unsigned i)
{
    return &program->insns[pass->first_insn + i];
}

/* Calls visit() for all operands that are read. */
typedef int visit_fn(void *context, const struct operand *operand);
static int visit_operands(const struct program *program, const struct pass *pass, visit_fn *visit,
                          void *context)
{
    int r = 0;
    for (unsigned i = 0; i < pass->n_insns; i++) {
        for (unsigned j = 0; r == 0 && j < 3; j++)
            r = visit(context, &insn_at(program, pass, i)->src[j]);
    }
    for (unsigned i = 0; r == 0 && i < pass->n_reductions; i++)
        r = visit(context, &program->reductions[pass->first_reduction + i].src);
    for (unsigned i = 0; r == 0 && i < pass->n_stores; i++)
        r = visit(context, &program->stores[pass->first_store + i].src);
    return r;
}

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

static int note_place(void *context, const struct operand *operand)
{
    struct encode_places *places = context;
    if (operand->kind == OPERAND_INPUT && operand->index < REQUEST_MAX_ARGS)
        places->inputs |= (uint64_t)1 << operand->index;
    if (operand->kind == OPERAND_INDEX && operand->index < ARRAY_MAX_NDIM)
        places->axes |= (uint32_t)1 << operand->index;
    return 0;
}

int encode_places_of(const struct program *program, unsigned pass_index,
                     struct encode_places *ret_places)
{
    const struct pass *pass = &program->passes[pass_index];
    struct encode_places places = {.n_stores = pass->n_stores};
    if (!is_within_limits(program, pass))
        return -EINVAL;
    int r = visit_operands(program, pass, note_place, &places);
    if (r)
        return r;
    places.n_loads =
        (unsigned)__builtin_popcountll(places.inputs) + (unsigned)__builtin_popcount(places.axes);
    *ret_places = places;
    return 0;
}

/* Of an input or a coordinate: its load, which is also its place. */
static unsigned load_of(const struct encoder *e, const struct operand *operand)
{
    if (operand->kind == OPERAND_INPUT)
        return (unsigned)__builtin_popcountll(e->places.inputs &
                                              (((uint64_t)1 << operand->index) - 1));
    return (unsigned)__builtin_popcountll(e->places.inputs) +
           (unsigned)__builtin_popcount(e->places.axes & (((uint32_t)1 << operand->index) - 1));
}

static int take_cell(struct encoder *e, uint16_t *cell)
{
    if (*cell == NOT_THERE)
        *cell = (uint16_t)e->h.n_cells++;
    return 0;
}

/* Checks an operand; gives it a cell, or its load the item's size. */
static int scan_operand(void *context, const struct operand *operand)
{
    struct encoder *e = context;
    unsigned index = operand->index;
    if (operand->kind != OPERAND_NONE && operand->dtype >= DTYPE_COUNT)
        return -EINVAL;
    switch (operand->kind) {
    case OPERAND_NONE: return 0;
    case OPERAND_REGISTER: return index < e->pass->n_registers ? 0 : -EINVAL;
    case OPERAND_CONST:
        return index < e->program->n_consts ? take_cell(e, &e->const_cell[index]) : -EINVAL;
    case OPERAND_REDUCED:
        return index < e->program->n_reductions ? take_cell(e, &e->reduced_cell[index]) : -EINVAL;
    case OPERAND_INPUT:
    case OPERAND_INDEX:
        if (index >= (operand->kind == OPERAND_INPUT ? e->program->n_inputs : ARRAY_MAX_NDIM))
            return -EINVAL;
        e->load_log2[load_of(e, operand)] = (uint8_t)log2_of(operand->dtype);
        if (operand->kind == OPERAND_INPUT && log2_of(operand->dtype) == 3)
            e->h.group_log2 = 1;
        return 0;
    default: return -EINVAL;
    }
}

static int scan_pass(struct encoder *e)
{
    e->h.group_log2 = 2;
    int r = visit_operands(e->program, e->pass, scan_operand, e);
    for (unsigned i = 0; r == 0 && i < e->pass->n_insns; i++) {
        const struct insn *insn = insn_at(e->program, e->pass, i);
        const struct operand *dst = &insn->dst;
        if (dst->kind != OPERAND_REGISTER || dst->index >= e->pass->n_registers ||
            dst->dtype >= DTYPE_COUNT)
            return -EINVAL;
        uint8_t *log2 = &e->register_log2[dst->index];
        *log2 = (uint8_t)max_u64(*log2, log2_of(dst->dtype));
        e->h.has_events |= encode_has_events(insn);
    }
    for (unsigned i = 0; i < e->pass->n_stores; i++) {
        if (log2_of(e->program->stores[e->pass->first_store + i].src.dtype) == 3)
            e->h.group_log2 = 1;
    }
    e->h.n_states = (e->pass->n_reductions + e->h.has_events);
    e->h.n_places = (e->places.n_loads + e->places.n_stores);
    return r;
}

/* Gives everything its place in shared memory; returns the bytes. */
static uint32_t lay_out(struct encoder *e, unsigned n_threads, unsigned depth)
{
    uint32_t at = e->h.n_cells + e->h.n_places, plane = n_threads;
    for (unsigned i = 0; i < e->pass->n_registers; i++) {
        e->register_at[i] = (uint16_t)at;
        at += planes_of(e->register_log2[i]) * plane;
    }
    uint32_t first = at;
    for (unsigned i = 0; depth > 0 && i < e->places.n_loads; i++) {
        e->load_at[i] = (uint16_t)at;
        at += planes_of(e->load_log2[i]) * plane;
    }
    e->h.set_bytes = (at - first) * CELL_BYTES;
    at += depth * (at - first);
    for (unsigned i = 0; depth == 0 && e->places.n_loads > 0 && i < N_TEMPORARY; i++) {
        e->temporary_at[i] = (uint16_t)at;
        e->temporary_load[i] = NOT_THERE;
        at += WIDE_PLANES * plane;
    }
    e->h.states = at * CELL_BYTES;
    at += e->h.n_states * plane;
    e->h.n_threads = n_threads;
    e->h.depth = depth;
    e->h.n_loads = e->places.n_loads;
    e->h.shared_bytes = at * CELL_BYTES;
    return at * CELL_BYTES;
}

/* What is left of a multiprocessor's memory decides how many blocks hide each other's waiting. */
static void choose_layout(struct encoder *e)
{
    static const struct {
        unsigned n_threads, depth;
        uint32_t limit_bytes;
    } layouts[] = {
        {256, 2, 36 * 1024},
        {256, 1, CODE_MAX_SHARED_BYTES},
        {128, 1, CODE_MAX_SHARED_BYTES},
        {256, 0, CODE_MAX_SHARED_BYTES},
        {128, 0, CODE_MAX_SHARED_BYTES},
        {64, 0, CODE_MAX_SHARED_BYTES},
        {32, 0, CODE_MAX_SHARED_BYTES},
    };
    for (unsigned i = 0; i < ARRAY_LENGTH(layouts); i++) {
        unsigned depth = e->places.n_loads > 0 ? layouts[i].depth : 0;
        if (lay_out(e, layouts[i].n_threads, depth) <= layouts[i].limit_bytes)
            return;
    }
    lay_out(e, CODE_MIN_THREADS, 0);
}

static void emit(struct encoder *e, const struct code_insn *insn)
{
    if (e->code)
        ((struct code_insn *)(e->code + e->h.insns_offset))[e->n_insns] = *insn;
    e->n_insns++;
}

/* is_kept: bit i: temporary i holds what this instruction has asked for. */
static uint16_t load_into_temporary(struct encoder *e, unsigned load, unsigned *is_kept)
{
    for (unsigned i = 0; i < N_TEMPORARY; i++) {
        if (e->temporary_load[i] == load) {
            *is_kept |= 1u << i;
            return e->temporary_at[i];
        }
    }
    unsigned i = e->next_temporary;
    while (*is_kept >> i & 1)
        i = (i + 1) % N_TEMPORARY;
    e->next_temporary = (i + 1) % N_TEMPORARY;
    *is_kept |= 1u << i;
    e->temporary_load[i] = (uint16_t)load;
    struct code_insn insn = {
        .action = ACTION_LOAD, .dst = e->temporary_at[i], .index = (uint16_t)load};
    emit(e, &insn);
    return e->temporary_at[i];
}

static uint16_t encode_operand(struct encoder *e, const struct operand *operand, unsigned *is_kept)
{
    switch (operand->kind) {
    case OPERAND_REGISTER: return e->register_at[operand->index];
    case OPERAND_CONST: return (uint16_t)(e->const_cell[operand->index] | CODE_UNIFORM);
    case OPERAND_REDUCED: return (uint16_t)(e->reduced_cell[operand->index] | CODE_UNIFORM);
    case OPERAND_INPUT:
    case OPERAND_INDEX: {
        unsigned load = load_of(e, operand);
        return e->h.depth > 0 ? e->load_at[load] | CODE_ROTATES
                              : load_into_temporary(e, load, is_kept);
    }
    default: return 0;
    }
}

static int encode_insn(struct encoder *e, const struct insn *insn)
{
    bool is_exchanged;
    unsigned is_kept = 0;
    enum code_action action = encode_action(insn, &is_exchanged);
    if (action == ACTION_NONE)
        return -EINVAL;
    if (action > ACTION_LIGHT_END)
        e->h.kernel = CODE_KERNEL_FULL;
    struct code_insn code = {.action = (uint16_t)action};
    for (unsigned j = 0; j < 3; j++)
        code.src[j] = encode_operand(e, &insn->src[is_exchanged && j < 2 ? 1 - j : j], &is_kept);
    if (insn->op == OP_RECIPROCAL)
        code.src[1] = code.src[0];
    code.dst = e->register_at[insn->dst.index];
    emit(e, &code);
    return 0;
}

static int encode_reduction(struct encoder *e, unsigned i)
{
    const struct reduction *reduction = &e->program->reductions[e->pass->first_reduction + i];
    enum dtype dtype = (enum dtype)reduction->src.dtype;
    unsigned is_kept = 0;
    struct code_insn code = {
        .action = ACTION_REDUCE, .index = (uint16_t)i, .type = (uint8_t)encode_type(dtype)};
    switch (reduction->op) {
    case OP_SUM: code.kind = dtype_is_float(dtype) ? CODE_SUM_FLOAT : CODE_SUM; break;
    case OP_COUNT_NONZERO: code.kind = CODE_COUNT_NONZERO; break;
    case OP_MIN: code.kind = CODE_MIN; break;
    case OP_MAX: code.kind = CODE_MAX; break;
    default: return -EINVAL;
    }
    code.src[0] = encode_operand(e, &reduction->src, &is_kept);
    emit(e, &code);
    return 0;
}

static void encode_store(struct encoder *e, unsigned i)
{
    const struct store *store = &e->program->stores[e->pass->first_store + i];
    unsigned is_kept = 0;
    struct code_insn code = {.action = ACTION_STORE, .index = (uint16_t)(e->places.n_loads + i)};
    code.src[0] = encode_operand(e, &store->src, &is_kept);
    emit(e, &code);
}

static int encode_insns(struct encoder *e)
{
    int r = 0;
    e->n_insns = 0;
    e->h.kernel = CODE_KERNEL_LIGHT;
    for (unsigned i = 0; r == 0 && i < e->pass->n_insns; i++)
        r = encode_insn(e, insn_at(e->program, e->pass, i));
    unsigned first_end = e->n_insns;
    for (unsigned i = 0; r == 0 && i < e->pass->n_reductions; i++)
        r = encode_reduction(e, i);
    for (unsigned i = 0; r == 0 && i < e->pass->n_stores; i++)
        encode_store(e, i);
    e->h.n_insns = e->n_insns;
    e->h.n_ends = (e->n_insns - first_end);
    return r;
}

/* The value over and over. */
static void fill_cell(const struct encoder *e, uint16_t cell, enum dtype dtype,
                      const union scalar *value)
{
    if (cell == NOT_THERE)
        return;
    size_t item_bytes = dtype_size(dtype);
    char *at = e->code + e->h.cells_offset + cell * CELL_BYTES;
    for (size_t i = 0; i < CELL_BYTES; i += item_bytes)
        memcpy(at + i, value, item_bytes); /* little-endian: the low bytes come first */
}

static void write_cells(const struct encoder *e)
{
    for (unsigned i = 0; i < e->program->n_consts; i++)
        fill_cell(e, e->const_cell[i], e->program->consts[i].dtype, &e->program->consts[i].value);
    for (unsigned i = 0; i < e->program->n_reductions; i++) {
        if (e->reduced_cell[i] != NOT_THERE)
            fill_cell(e, e->reduced_cell[i], (enum dtype)e->program->reductions[i].result,
                      &e->reduced[i]);
    }
}

static bool is_bool_input(const struct encoder *e, unsigned load)
{
    uint64_t rest = e->places.inputs;
    for (unsigned i = 0; rest != 0; rest &= rest - 1, i++) {
        if (i == load)
            return e->program->inputs[__builtin_ctzll(rest)].dtype == DTYPE_BOOL;
    }
    return false;
}

static void write_operands(const struct encoder *e)
{
    struct code_operand *operands = (struct code_operand *)(e->code + e->h.operands_offset);
    for (unsigned i = 0; i < e->places.n_loads; i++)
        operands[i] = (struct code_operand){
            .dst = e->h.depth > 0 ? e->load_at[i] | CODE_ROTATES : 0,
            .item_log2 = e->load_log2[i],
            .is_bool = is_bool_input(e, i),
        };
    for (unsigned i = 0; i < e->places.n_stores; i++) {
        const struct operand *src = &e->program->stores[e->pass->first_store + i].src;
        operands[e->places.n_loads + i] =
            (struct code_operand){.item_log2 = (uint8_t)log2_of(src->dtype)};
    }
}

int encode_pass(const struct program *program, unsigned pass, const union scalar *reduced,
                char *code, struct code_header *ret_header, uint64_t *ret_n_bytes)
{
    struct encoder e = {.program = program, .pass = &program->passes[pass], .reduced = reduced};
    memset(e.const_cell, 0xff, sizeof(e.const_cell));
    memset(e.reduced_cell, 0xff, sizeof(e.reduced_cell));
    int r = encode_places_of(program, pass, &e.places);
    if (r == 0)
        r = scan_pass(&e);
    if (r)
        return r;
    choose_layout(&e);
    r = encode_insns(&e); /* counts them */
    if (r)
        return r;
    e.h.insns_offset = e.h.n_cells * CELL_BYTES;
    e.h.operands_offset = e.h.insns_offset + e.h.n_insns * (uint32_t)sizeof(struct code_insn);
    *ret_n_bytes = e.h.operands_offset + e.h.n_places * sizeof(struct code_operand);
    e.code = code;
    if (code) {
        choose_layout(&e); /* the temporaries are empty again */
        r = encode_insns(&e);
        write_cells(&e);
        write_operands(&e);
    }
    *ret_header = e.h;
    return r;
}
