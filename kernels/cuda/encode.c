/* Encoding a pass: where every value lies in a block's shared memory, and what is done in a strip.
 *
 * Cells of uniform values come first, then what a block prepares of each operand (16 bytes), then
 * the program's registers (as wide as the widest value that is ever in them), then the inputs'
 * planes, then the states of reductions. Inputs have planes of their own, filled strips ahead,
 * while that fits; else there are three temporary places, and an instruction that loads precedes
 * every use of an input that is in none of them. The number of threads and the depth are the first
 * of a list that fits into the shared memory that every device has; they are functions of the pass
 * alone, and so are the bits of its sums. The worst pass (PROGRAM_MAX_REGISTERS,
 * PROGRAM_MAX_CONSTS, PASS_MAX_REDUCTIONS) fits with the last of the list.
 *
 * Called by tile.c, and so by the planner for the number of bytes alone.
 */
#include "kernels/cuda/encode.h"

#include "kernels/cuda/encode_actions.h"
#include "proto/util.h"

#include <errno.h>
#include <string.h>

#define MAX_CELLS   (PROGRAM_MAX_CONSTS + PASS_MAX_RESULTS)
#define N_TEMPORARY 3u
#define WIDE_PLANES 2u
#define CELL_BYTES  16u
#define NOT_THERE   UINT16_MAX

_Static_assert((MAX_CELLS + ENCODE_MAX_PLACES) * CELL_BYTES +
                       CODE_MIN_THREADS * CELL_BYTES *
                           (PROGRAM_MAX_REGISTERS * WIDE_PLANES + N_TEMPORARY * WIDE_PLANES +
                            PASS_MAX_REDUCTIONS * 2 + 1) <=
                   CODE_MAX_SHARED_BYTES,
               "every pass fits");
_Static_assert(sizeof(struct code_task) == sizeof(struct code_insn), "one follows the other");

struct encoder {
    const struct program *program;
    const struct pass *pass;
    const struct encode_places *places;
    const struct engine_view *reduced;
    struct code_header h;
    char *code; /* NULL: only counted */
    uint16_t const_cell[PROGRAM_MAX_CONSTS], reduced_cell[PROGRAM_MAX_REDUCTIONS];
    uint8_t register_log2[PROGRAM_MAX_REGISTERS];
    uint16_t register_at[PROGRAM_MAX_REGISTERS], load_at[ENCODE_MAX_READ];
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

static int take_cell(struct encoder *e, uint16_t *cell)
{
    if (*cell == NOT_THERE)
        *cell = (uint16_t)e->h.n_cells++;
    return 0;
}

/* Checks an operand; gives it a cell. */
static int scan_operand(void *context, const struct operand *operand)
{
    struct encoder *e = context;
    unsigned index = operand->index;
    if (operand->kind != OPERAND_NONE && operand->dtype >= DTYPE_COUNT)
        return -EINVAL;
    switch (operand->kind) {
    case OPERAND_NONE:
    case OPERAND_INPUT:
    case OPERAND_NEAR:
    case OPERAND_TABLE:
    case OPERAND_INDEX: return 0; /* encode_places_of() has seen them */
    case OPERAND_WINDOW:
        return encode_no_window(e->program, &e->program->windows[index]) ? -EINVAL : 0;
    case OPERAND_REGISTER: return index < e->pass->n_registers ? 0 : -EINVAL;
    case OPERAND_CONST:
        return index < e->program->n_consts ? take_cell(e, &e->const_cell[index]) : -EINVAL;
    case OPERAND_REDUCED:
        return e->places->reduced[index] == ENCODE_NOT_THERE ? take_cell(e, &e->reduced_cell[index])
                                                             : 0;
    default: return -EINVAL;
    }
}

/* Items of 8 bytes in memory ask for groups of two. */
static void choose_groups(struct encoder *e)
{
    e->h.group_log2 = 2;
    for (unsigned i = 0; i < e->places->n_places; i++) {
        const struct encode_place *place = &e->places->places[i];
        if (place->what != ENCODE_INDEX && log2_of(place->dtype) == 3)
            e->h.group_log2 = 1;
    }
}

static const struct reduction *reduction_at(const struct encoder *e, unsigned i)
{
    return &e->program->reductions[e->pass->first_reduction + i];
}

/* Those of the interpreter before the i-th reduction: squared deviations have two. */
static unsigned count_states(const struct encoder *e, unsigned i, bool *ret_has_deviations)
{
    unsigned n = 0;
    *ret_has_deviations = false;
    for (unsigned j = 0; j < i; j++) {
        bool has_second = reduction_at(e, j)->op == OP_SQUARED_DEVIATIONS;
        if (encode_is_task(e->places, reduction_at(e, j)))
            continue;
        n += has_second ? 2 : 1;
        *ret_has_deviations |= has_second;
    }
    return n;
}

static int scan_pass(struct encoder *e)
{
    int r = encode_visit_reading(e->program, e->pass, scan_operand, e);
    bool has_deviations;
    unsigned n_states = count_states(e, e->pass->n_reductions, &has_deviations);
    /* How many elements a thread has taken in is counted where that is asked for. */
    e->h.has_counters = has_deviations;
    for (unsigned i = 0; r == 0 && i < e->pass->n_insns; i++) {
        const struct insn *insn = insn_at(e->program, e->pass, i);
        const struct operand *dst = &insn->dst;
        if (dst->kind != OPERAND_REGISTER || dst->index >= e->pass->n_registers ||
            dst->dtype >= DTYPE_COUNT)
            return -EINVAL;
        uint8_t *log2 = &e->register_log2[dst->index];
        *log2 = (uint8_t)max_u64(*log2, log2_of(dst->dtype));
        e->h.has_counters |= program_has_events(insn);
    }
    choose_groups(e);
    e->h.n_states = n_states + e->h.has_counters;
    e->h.n_places = e->places->n_places;
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
    for (unsigned i = 0; depth > 0 && i < e->places->n_loads; i++) {
        e->load_at[i] = (uint16_t)at;
        at += planes_of(log2_of(e->places->places[i].dtype)) * plane;
    }
    e->h.set_bytes = (at - first) * CELL_BYTES;
    at += depth * (at - first);
    for (unsigned i = 0; depth == 0 && e->places->n_loads > 0 && i < N_TEMPORARY; i++) {
        e->temporary_at[i] = (uint16_t)at;
        e->temporary_load[i] = NOT_THERE;
        at += WIDE_PLANES * plane;
    }
    e->h.states = at * CELL_BYTES;
    at += e->h.n_states * plane;
    e->h.n_threads = n_threads;
    e->h.depth = depth;
    e->h.n_loads = e->places->n_loads;
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
        unsigned depth = e->places->n_loads > 0 ? layouts[i].depth : 0;
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
    case OPERAND_REDUCED:
        if (e->reduced_cell[operand->index] != NOT_THERE)
            return (uint16_t)(e->reduced_cell[operand->index] | CODE_UNIFORM);
        break;
    case OPERAND_INPUT:
    case OPERAND_NEAR:
    case OPERAND_WINDOW:
    case OPERAND_INDEX: break;
    default: return 0;
    }
    unsigned load = encode_place_of(e->places, e->pass, operand);
    return e->h.depth > 0 ? e->load_at[load] | CODE_ROTATES : load_into_temporary(e, load, is_kept);
}

static bool looks_up(const struct insn *insn)
{
    return insn->op == OP_SEARCH_LEFT || insn->op == OP_SEARCH_RIGHT || insn->op == OP_TAKE;
}

/* Tables have values of one dtype, one behind the other. */
static int encode_table(const struct encoder *e, const struct insn *insn, uint16_t *ret_index)
{
    const struct operand *table = &insn->src[1];
    unsigned wanted = insn->op == OP_TAKE ? insn->dst.dtype : insn->compute;
    if (table->kind != OPERAND_TABLE || e->program->reductions[table->index].result != wanted)
        return -EINVAL;
    *ret_index = 0;
    while (e->places->tables[*ret_index] != table->index)
        ++*ret_index;
    return 0;
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
    if (looks_up(insn) && encode_table(e, insn, &code.index) != 0)
        return -EINVAL;
    for (unsigned j = 0; j < 3; j++)
        code.src[j] = encode_operand(e, &insn->src[is_exchanged && j < 2 ? 1 - j : j], &is_kept);
    if (insn->op == OP_RECIPROCAL)
        code.src[1] = code.src[0];
    code.dst = e->register_at[insn->dst.index];
    emit(e, &code);
    return 0;
}

/* Of all axes, by the interpreter. */
static int encode_reduction(struct encoder *e, unsigned i)
{
    static const struct operand position = {OPERAND_INDEX, DTYPE_INT64, OPERAND_INDEX_FLAT};
    const struct reduction *reduction = reduction_at(e, i);
    unsigned is_kept = 0;
    bool has_deviations;
    struct code_insn code = {.action = ACTION_REDUCE,
                             .dst = (uint16_t)count_states(e, i, &has_deviations),
                             .index = (uint16_t)i,
                             .type = (uint8_t)encode_type((enum dtype)reduction->src.dtype)};
    int r = encode_reduction_kind(reduction, &code.kind);
    if (r)
        return r;
    code.src[0] = encode_operand(e, &reduction->src, &is_kept);
    if (code.kind == CODE_ARGMIN || code.kind == CODE_ARGMAX)
        code.src[1] = encode_operand(e, &position, &is_kept);
    emit(e, &code);
    return 0;
}

static void encode_store(struct encoder *e, unsigned place, const struct operand *src)
{
    unsigned is_kept = 0;
    struct code_insn code = {.action = ACTION_STORE, .index = (uint16_t)place};
    code.src[0] = encode_operand(e, src, &is_kept);
    emit(e, &code);
}

static void encode_stores(struct encoder *e)
{
    for (unsigned i = e->places->n_places - e->places->n_stored; i < e->places->n_places; i++) {
        const struct encode_place *place = &e->places->places[i];
        encode_store(e, i,
                     place->what == ENCODE_STORE ? &e->program->stores[place->index].src
                                                 : encode_value(e->program, place));
    }
}

/* What the temporary places hold is not known where instructions come from two sides. */
static void forget_temporaries(struct encoder *e)
{
    for (unsigned i = 0; i < N_TEMPORARY; i++)
        e->temporary_load[i] = NOT_THERE;
}

/* In a loop whose instructions are those from *first on, *until: where the UNTIL is. */
static void end_loop(struct encoder *e, unsigned first, unsigned until)
{
    struct code_insn again = {.action = ACTION_AGAIN, .index = (uint16_t)(e->n_insns - first)};
    emit(e, &again);
    if (e->code && until > 0)
        ((struct code_insn *)(e->code + e->h.insns_offset))[until].index =
            (uint16_t)(e->n_insns - until);
    forget_temporaries(e);
}

static int encode_loop(struct encoder *e, const struct program_loop *loop)
{
    struct code_insn repeat = {.action = ACTION_REPEAT,
                               .src = {(uint16_t)loop->n_steps, (uint16_t)(loop->n_steps >> 16)}};
    unsigned until = 0, is_kept = 0;
    int r = 0;
    emit(e, &repeat);
    forget_temporaries(e);
    unsigned first = e->n_insns;
    for (unsigned i = 0; r == 0 && i <= loop->n_insns; i++) {
        if (i == loop->n_until && loop->until.kind != OPERAND_NONE) {
            struct code_insn code = {.action = ACTION_UNTIL};
            code.src[0] = encode_operand(e, &loop->until, &is_kept);
            until = e->n_insns;
            emit(e, &code);
        }
        if (i < loop->n_insns)
            r = encode_insn(e, &e->program->insns[loop->first_insn + i]);
    }
    end_loop(e, first, until);
    return r;
}

static int encode_insns(struct encoder *e)
{
    const struct program_loop *loop = &e->program->loops[e->pass->first_loop];
    unsigned n_loops = e->pass->n_loops;
    int r = 0;
    e->n_insns = 0;
    e->h.kernel = CODE_KERNEL_LIGHT;
    for (unsigned i = 0; r == 0 && i < e->pass->n_insns; i++) {
        if (n_loops == 0 || loop->first_insn != e->pass->first_insn + i) {
            r = encode_insn(e, insn_at(e->program, e->pass, i));
            continue;
        }
        r = encode_loop(e, loop);
        i += loop->n_insns - 1u;
        loop++;
        n_loops--;
    }
    unsigned first_end = e->n_insns;
    for (unsigned i = 0; r == 0 && i < e->pass->n_reductions; i++)
        if (!encode_is_task(e->places, reduction_at(e, i)))
            r = encode_reduction(e, i);
    if (r == 0)
        encode_stores(e);
    e->h.n_insns = e->n_insns;
    e->h.n_ends = (e->n_insns - first_end);
    return r;
}

/* The value over and over. */
static void fill_cell(const struct encoder *e, uint16_t cell, enum dtype dtype, const void *value)
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
                      e->reduced[i].base);
    }
}

static void write_operands(const struct encoder *e)
{
    struct code_operand *operands = (struct code_operand *)(e->code + e->h.operands_offset);
    for (unsigned i = 0; i < e->places->n_places; i++) {
        const struct encode_place *place = &e->places->places[i];
        bool is_loaded = i < e->places->n_loads && e->h.depth > 0;
        operands[i] = (struct code_operand){
            .dst = is_loaded ? e->load_at[i] | CODE_ROTATES : 0,
            .item_log2 = (uint8_t)log2_of(place->dtype),
            .is_bool = (place->what == ENCODE_INPUT || place->what == ENCODE_NEAR) &&
                       place->dtype == DTYPE_BOOL,
        };
    }
}

/* All of a pass's reductions are KTHs, or none is; all are tasks then, in their order. */
static bool has_kths(const struct encoder *e)
{
    return e->pass->n_reductions > 0 && reduction_at(e, 0)->op == OP_KTH;
}

static void write_kths(const struct encoder *e)
{
    struct kth_rank *places = (struct kth_rank *)(e->code + e->h.kths_offset);
    for (unsigned i = 0; has_kths(e) && i < e->pass->n_reductions; i++)
        places[i] = reduction_at(e, i)->kth;
}

/* Where everything behind the cells is; returns where it ends. */
static uint64_t place_parts(struct encoder *e)
{
    struct code_header *h = &e->h;
    uint32_t n_tasks = h->n_axes_tasks + h->n_count_tasks + h->n_scan_tasks;
    uint32_t n_kths = has_kths(e) ? e->pass->n_reductions : 0;
    h->insns_offset = h->n_cells * CELL_BYTES;
    h->kths_offset = h->insns_offset + (h->n_insns + n_tasks) * (uint32_t)sizeof(struct code_insn);
    h->operands_offset = h->kths_offset + n_kths * (uint32_t)sizeof(struct kth_rank);
    h->tables_offset = (uint32_t)round_up_u64(
        h->operands_offset + h->n_places * sizeof(struct code_operand), CELL_BYTES);
    h->weights_offset =
        h->tables_offset + e->places->n_tables * (uint32_t)sizeof(struct code_table);
    return h->weights_offset +
           encode_weights(e->program, e->places, h->n_places, NULL) * sizeof(uint64_t);
}

int encode_pass(const struct program *program, const struct pass *pass,
                const struct encode_places *places, const struct engine_view *reduced,
                const struct encode_nodes *nodes, char *code, struct code_header *ret_header,
                uint64_t *ret_n_bytes)
{
    struct encoder e = {.program = program, .pass = pass, .places = places, .reduced = reduced};
    memset(e.const_cell, 0xff, sizeof(e.const_cell));
    memset(e.reduced_cell, 0xff, sizeof(e.reduced_cell));
    int r = scan_pass(&e);
    if (r)
        return r;
    choose_layout(&e);
    r = encode_insns(&e); /* counts them */
    if (r)
        return r;
    r = encode_tasks(program, pass, places, NULL, NULL, &e.h);
    if (r)
        return r;
    *ret_n_bytes = place_parts(&e);
    e.code = code;
    if (code) {
        choose_layout(&e); /* the temporaries are empty again */
        r = encode_insns(&e);
        write_cells(&e);
        write_kths(&e);
        write_operands(&e);
        (void)encode_weights(program, places, e.h.n_places,
                             (uint64_t *)(code + e.h.weights_offset));
        if (r == 0)
            r = encode_tasks(program, pass, places, nodes,
                             (struct code_task *)(code + e.h.insns_offset) + e.h.n_insns, &e.h);
    }
    *ret_header = e.h;
    return r;
}
