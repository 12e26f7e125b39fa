/* Binding a pass to a box: where every value of a strip is. Called by run.c once per box.
 *
 * Registers are bound in order of the instructions. Where an instruction overwrites a register that
 * it reads with items of another size, the result goes to the spare buffer, and the register's old
 * one becomes the spare. The last definition of a register that is stored gets a slot of its own,
 * so that it can be computed in the output's memory. Where that output goes past the cache instead,
 * a kernel that stores past the cache writes it, if there is one and nobody else reads the result;
 * or it is computed piece by piece in the strip's buffer, and each piece goes out while the next is
 * computed; a buffer that nobody else reads is used for one piece after the other.
 *
 * In place. An output may lie exactly on an input. Everything has a time: instruction k happens
 * at k, reductions at n_insns, store s at n_insns + 1 + s. An output is written directly only when
 * no input under it is read later than the instruction that defines it; an input that a store reads
 * after an earlier store has overwritten it is copied at the strip's beginning instead.
 */
#include "kernels/cpu/run/bind.h"

#include "kernels/cpu/run/qr_rows.h"

#include "kernels/op_costs.h"
#include "proto/util.h"

#include <errno.h>
#include <string.h>

static uint16_t take_slot(struct binding *b)
{
    return (uint16_t)b->run->n_slots++;
}

static uint16_t *index_slot_of(struct binding *b, unsigned index)
{
    if (index == OPERAND_INDEX_FLAT)
        return &b->index_slot[BIND_INDEX_FLAT];
    return index < (unsigned)b->run->box->ndim ? &b->index_slot[index] : NULL;
}

static uint16_t *near_slot_of(struct binding *b, unsigned index)
{
    const struct pass *pass = b->run->pass;
    return index - pass->first_near < pass->n_nears ? &b->near_slot[index - pass->first_near]
                                                    : NULL;
}

/* A slot for each value that is used; when it is last used. In a loop that is when its steps end.
 */
static void scan_operand(struct binding *b, const struct operand *operand, unsigned time)
{
    const struct program *program = b->run->program;
    unsigned index = operand->index;
    uint16_t *slot = NULL;
    switch (operand->kind) {
    case OPERAND_NONE: return;
    case OPERAND_REGISTER:
        b->is_valid &= index < b->run->pass->n_registers;
        if (b->is_valid && time <= b->run->n_insns)
            b->last_read[index] = (uint16_t)time;
        return;
    case OPERAND_INPUT:
        slot = index < program_all_inputs(program) ? &b->input_slot[index] : NULL;
        break;
    case OPERAND_NEAR: slot = near_slot_of(b, index); break;
    case OPERAND_CONST: slot = index < program->n_consts ? &b->const_slot[index] : NULL; break;
    case OPERAND_REDUCED:
        slot = index < program->n_reductions ? &b->reduced_slot[index] : NULL;
        break;
    case OPERAND_WINDOW: slot = index < program->n_windows ? &b->window_slot[index] : NULL; break;
    case OPERAND_TABLE: slot = index < program->n_reductions ? &b->table_slot[index] : NULL; break;
    case OPERAND_INDEX: slot = index_slot_of(b, index); break;
    }
    if (!slot) {
        b->is_valid = false;
        return;
    }
    if (*slot == NO_SLOT) {
        *slot = take_slot(b);
        if (operand->kind == OPERAND_TABLE)
            (void)take_slot(b); /* of its length */
        b->n_values++;
    }
    if (operand->kind == OPERAND_INPUT)
        b->input_last_use[index] = (uint16_t)time;
    if (operand->kind == OPERAND_NEAR)
        b->near_last_use[index - b->run->pass->first_near] = (uint16_t)time;
}

static const struct insn *insn_at(const struct run *run, unsigned i)
{
    return &run->program->insns[run->pass->first_insn + i];
}

static const struct store *store_at(const struct run *run, unsigned i)
{
    return &run->program->stores[run->pass->first_store + i];
}

static enum dtype stored_dtype(const struct run *run, const struct store *store)
{
    return run->n_scans ? run->program->outputs[store->output].dtype : (enum dtype)store->src.dtype;
}

static void scan_pass(struct binding *b)
{
    struct run *run = b->run;
    b->register_bytes = 1;
    for (unsigned i = 0; i < run->n_insns; i++) {
        const struct insn *insn = insn_at(run, i);
        unsigned end = loop_end(run, i);
        for (unsigned j = 0; j < 3; j++)
            scan_operand(b, &insn->src[j], end == NEVER ? i : end);
        b->is_valid &= insn->dst.kind == OPERAND_REGISTER;
        b->is_valid &= insn->dst.index < run->pass->n_registers;
        if (!b->is_valid)
            return;
        b->last_definition[insn->dst.index] = (uint16_t)i;
        b->register_bytes = max_u64(b->register_bytes, dtype_size(insn->dst.dtype));
    }
    for (unsigned i = 0; i < run->n_loops; i++) {
        const struct program_loop *loop = &run->program->loops[run->pass->first_loop + i];
        scan_operand(b, &loop->until, loop_end(run, run->loops[i].first_insn));
    }
    for (unsigned i = 0; i < run->pass->n_reductions; i++) {
        const struct reduction *reduction = bind_reduction_at(run, i);
        scan_operand(b, &reduction->src, run->n_insns);
        scan_operand(b, &reduction->weights, run->n_insns);
    }
    for (unsigned i = 0; i < run->n_stores; i++) {
        const struct store *store = store_at(run, i);
        scan_operand(b, &store->src, run->n_insns + 1 + i);
        b->register_bytes = max_u64(b->register_bytes, dtype_size(stored_dtype(run, store)));
    }
}

static bool is_within_limits(const struct program *program, const struct pass *pass)
{
    return pass->n_registers <= PROGRAM_MAX_REGISTERS && program->n_insns <= PROGRAM_MAX_INSNS &&
           program_all_inputs(program) <= BIND_MAX_INPUTS && pass->n_nears <= PASS_MAX_NEARS &&
           pass->first_near + pass->n_nears <= program->n_nears &&
           program->n_consts <= PROGRAM_MAX_CONSTS &&
           program->n_reductions <= PROGRAM_MAX_REDUCTIONS &&
           program->n_stores <= PROGRAM_MAX_OUTPUTS && pass->n_stores <= PASS_MAX_STORES &&
           pass->first_insn + pass->n_insns <= program->n_insns &&
           program->n_loops <= PROGRAM_MAX_LOOPS &&
           pass->first_loop + pass->n_loops <= program->n_loops &&
           pass->first_reduction + pass->n_reductions <= program->n_reductions &&
           pass->first_store + pass->n_stores <= program->n_stores;
}

static uint64_t period_limit(const struct binding *b)
{
    return b->n_values <= BIND_FEW_VALUES ? BIND_PERIOD_MANY : BIND_PERIOD_FEW;
}

static void add_stream(struct binding *b, uint16_t slot, const struct engine_view *view,
                       enum dtype dtype, uint16_t last_use)
{
    if (slot == NO_SLOT)
        return;
    struct stream *s = &b->run->inputs[b->run->n_inputs++];
    stream_init(s, b->run->box, view, dtype, period_limit(b));
    s->slot = slot;
    s->last_use = last_use;
}

/* Of one input. What is asked for ahead is what follows on the last of all in memory: the others
 * have been there before. */
static void add_nears(struct binding *b, unsigned input, const struct engine_view *view)
{
    struct run *run = b->run;
    struct stream *last = b->input_slot[input] == NO_SLOT ? NULL : &run->inputs[run->n_inputs - 1];
    for (unsigned i = 0; i < run->pass->n_nears; i++) {
        const struct program_near *near = &run->program->nears[run->pass->first_near + i];
        if (near->input != input || b->near_slot[i] == NO_SLOT)
            continue;
        struct stream *s = &run->inputs[run->n_inputs++];
        stream_init_near(s, run->box, view, run->program, near, period_limit(b));
        s->slot = b->near_slot[i];
        s->last_use = b->near_last_use[i];
        struct stream *other = s;
        if (!last || s->base > last->base)
            other = last, last = s;
        if (other)
            other->is_fetched_ahead = false;
    }
}

static void init_indices(struct binding *b)
{
    struct run *run = b->run;
    for (unsigned i = 0; i <= BIND_INDEX_FLAT; i++)
        run->n_indices += b->index_slot[i] != NO_SLOT;
    run->indices = layout_take(b, run->n_indices * sizeof(*run->indices));
    for (unsigned i = 0, axis = 0; i < run->n_indices; axis++) {
        if (b->index_slot[axis] == NO_SLOT)
            continue;
        if (axis == BIND_INDEX_FLAT)
            index_stream_init_flat(&run->indices[i], run->box, run->pass->shape, UINT32_MAX);
        else
            index_stream_init(&run->indices[i], run->box, axis);
        run->indices[i++].slot = b->index_slot[axis];
    }
}

static void init_streams(struct binding *b, const struct engine_view *inputs,
                         const struct engine_view *outputs, const struct engine_view *reduced)
{
    struct run *run = b->run;
    const struct program *program = run->program;
    run->inputs = layout_take(b, (program_all_inputs(program) + run->pass->n_nears +
                                  PASS_MAX_RESULTS + program->n_windows) *
                                     sizeof(*run->inputs));
    for (unsigned i = 0; i < program_all_inputs(program); i++) {
        add_stream(b, b->input_slot[i], &inputs[i], program->inputs[i].dtype, b->input_last_use[i]);
        add_nears(b, i, &inputs[i]);
    }
    for (unsigned i = 0; reduced && i < program->n_reductions; i++)
        add_stream(b, b->reduced_slot[i], &reduced[i], (enum dtype)program->reductions[i].result,
                   0);
    for (unsigned i = 0; run->box->windows && i < program->n_windows; i++)
        add_stream(b, b->window_slot[i], &run->box->windows[i],
                   (enum dtype)program->windows[i].dtype, 0);
    run->fetches = layout_take(b, run->n_inputs * sizeof(*run->fetches));
    init_indices(b);
    run->stores = layout_take(b, run->n_stores * sizeof(*run->stores));
    for (unsigned i = 0; i < run->n_stores; i++) {
        const struct store *store = store_at(run, i);
        stream_init(&run->stores[i].stream, run->box, &outputs[store->output],
                    stored_dtype(run, store), 0);
    }
}

static bool reads_table(const struct insn *insn)
{
    return insn->src[1].kind == OPERAND_TABLE;
}

/* Which stores may be written directly, which inputs must be copied (see the top). */
static void settle_in_place(struct binding *b)
{
    struct run *run = b->run;
    for (unsigned i = 0; i < run->n_stores; i++) {
        struct bound_store *store = &run->stores[i];
        const struct operand *src = &store_at(run, i)->src;
        unsigned defined = src->kind == OPERAND_REGISTER ? b->last_definition[src->index] : NEVER;
        store->is_direct =
            defined != NEVER && loop_end(run, defined) == NEVER &&
            (store->stream.kind == STREAM_LINEAR || store->stream.kind == STREAM_RUNS);
        if (store->is_direct && store->stream.bypasses_cache) /* pieces of a table are not it */
            store->is_direct = !reads_table(insn_at(run, defined));
        for (unsigned j = 0; j < run->n_inputs; j++) {
            struct stream *input = &run->inputs[j];
            if (!stream_overlaps(&store->stream, input))
                continue;
            if (input->last_use > defined)
                store->is_direct = false;
            if (input->last_use > run->n_insns + 1 + i && input->kind != STREAM_PERIODIC)
                input->kind = STREAM_COPIED;
        }
        if (store->is_direct) /* the first store of a register is the direct one */
            for (unsigned j = 0; j < i; j++)
                if (run->stores[j].is_direct && store_at(run, j)->src.index == src->index)
                    store->is_direct = false;
    }
}

uint16_t bind_slot_of(const struct binding *b, const struct operand *operand)
{
    switch (operand->kind) {
    case OPERAND_REGISTER: return b->register_slot[operand->index];
    case OPERAND_INPUT: return b->input_slot[operand->index];
    case OPERAND_NEAR: return b->near_slot[operand->index - b->run->pass->first_near];
    case OPERAND_CONST: return b->const_slot[operand->index];
    case OPERAND_REDUCED: return b->reduced_slot[operand->index];
    case OPERAND_WINDOW: return b->window_slot[operand->index];
    case OPERAND_TABLE: return b->table_slot[operand->index];
    case OPERAND_INDEX:
        return b
            ->index_slot[operand->index == OPERAND_INDEX_FLAT ? BIND_INDEX_FLAT : operand->index];
    default: return 0;
    }
}

bool bind_is_number(const struct binding *b, uint16_t slot)
{
    const struct run *run = b->run;
    for (unsigned i = 0; i < run->program->n_consts; i++)
        if (b->const_slot[i] == slot)
            return true;
    for (unsigned i = 0; i < run->n_inputs; i++)
        if (run->inputs[i].slot == slot)
            return run->inputs[i].kind == STREAM_PERIODIC && run->inputs[i].n_run == 1;
    return false;
}

/* The register's buffer for the result, which no source of another item size may share. */
static uint16_t settle_destination(struct binding *b, const struct insn *insn)
{
    uint16_t *slot = &b->register_slot[insn->dst.index];
    for (unsigned j = 0; j < 3; j++) {
        if (insn->src[j].kind == OPERAND_REGISTER && insn->src[j].index == insn->dst.index &&
            dtype_size((enum dtype)insn->src[j].dtype) != dtype_size((enum dtype)insn->dst.dtype)) {
            uint16_t taken = *slot;
            *slot = b->spare_slot;
            b->spare_slot = taken;
            break;
        }
    }
    return *slot;
}

static struct bound_store *direct_store_of(const struct binding *b, unsigned reg, unsigned time)
{
    const struct run *run = b->run;
    if (b->last_definition[reg] != time)
        return NULL;
    for (unsigned i = 0; i < run->n_stores; i++) {
        if (run->stores[i].is_direct && store_at(run, i)->src.index == reg)
            return &run->stores[i];
    }
    return NULL;
}

static bool is_read_behind(const struct binding *b, const struct bound_store *store, unsigned reg,
                           unsigned time)
{
    const struct run *run = b->run;
    if (b->last_read[reg] != NEVER && b->last_read[reg] > time)
        return true;
    for (unsigned i = 0; i < run->n_stores; i++) {
        const struct operand *src = &store_at(run, i)->src;
        if (&run->stores[i] != store && src->kind == OPERAND_REGISTER && src->index == reg)
            return true;
    }
    return false;
}

/* The definition of a stored register, insn i: into the output's memory or past the cache. */
static void bind_direct(struct binding *b, unsigned i, bool is_exchanged, struct bound_store *store)
{
    const struct insn *insn = insn_at(b->run, i);
    struct bound_insn *bound = &b->run->insns[i];
    store->stream.slot = take_slot(b);
    store->stream.buffer = b->run->address[bound->dst];
    b->register_slot[insn->dst.index] = bound->dst = store->stream.slot;
    if (!store->stream.bypasses_cache)
        return;
    bound->streamed = (uint16_t)(store - b->run->stores);
    store->is_read_again = is_read_behind(b, store, insn->dst.index, i);
    if (!store->is_read_again)
        bound->past = engine_find_past(b->run->engine, insn);
    for (unsigned j = 0; j < 3; j++) {
        const struct operand *src = &insn->src[is_exchanged && j < 2 ? 1 - j : j];
        store->src_log2[j] = (uint8_t)__builtin_ctzl(dtype_size((enum dtype)src->dtype));
    }
}

static int bind_insn(struct binding *b, unsigned i)
{
    struct run *run = b->run;
    const struct insn *insn = insn_at(run, i);
    struct bound_insn *bound = &run->insns[i];
    bool is_exchanged;
    bound->kernel = engine_find_kernel(run->engine, insn, &is_exchanged);
    if (!bound->kernel)
        return -EINVAL;
    for (unsigned j = 0; j < 3; j++)
        bound->src[j] = bind_slot_of(b, &insn->src[is_exchanged && j < 2 ? 1 - j : j]);
    if (reads_table(insn))
        bound->src[2] = (uint16_t)(bound->src[1] + 1);
    bound->dst = settle_destination(b, insn);
    bound->past = NULL;
    bound->streamed = NO_STORE;
    bound->drawn = NO_DRAW;
    bound->n_steps = 0;
    bound->worst_ns = (uint16_t)op_worst_ns((enum op)insn->op, (enum dtype)insn->compute);
    struct bound_store *store = direct_store_of(b, insn->dst.index, i);
    if (store)
        bind_direct(b, i, is_exchanged, store);
    return 0;
}

static int bind_scan_uses(struct binding *b)
{
    struct run *run = b->run;
    for (unsigned i = 0; i < run->n_scans; i++)
        run->scans[i].src = bind_slot_of(b, &run->scans[i].reduction->src);
    for (unsigned i = 0; i < run->n_stores; i++) {
        unsigned scan = store_at(run, i)->scan - run->pass->first_reduction;
        if (scan >= run->n_scans)
            return -EINVAL;
        enum dtype from = (enum dtype)run->scans[scan].reduction->result;
        enum dtype to = stored_dtype(run, store_at(run, i));
        run->stores[i].src = (uint16_t)scan;
        run->stores[i].cast = from == to ? NULL : (*run->engine->casts)[from][to];
    }
    return 0;
}

static int bind_uses(struct binding *b)
{
    struct run *run = b->run;
    struct bound_loop *loop = run->loops;
    for (unsigned i = 0; i < run->n_insns; i++) {
        unsigned reg = insn_at(run, i)->dst.index, end = loop_end(run, i);
        uint16_t slot = b->register_slot[reg];
        int r = bind_insn(b, i);
        if (r)
            return r;
        if (end != NEVER && b->register_slot[reg] != slot) /* steps to come would not know */
            return -EINVAL;
        if (end == i)
            loop_bind(b, loop, &run->program->loops[run->pass->first_loop + (loop - run->loops)]);
        loop += end == i;
    }
    bind_draws(b);
    bind_chains(b);
    run->spare = run->address[b->spare_slot];
    for (unsigned i = 0; i < run->n_reductions; i++) {
        struct reducing *d = &run->reductions[i];
        d->src = bind_slot_of(b, &d->reduction->src);
        if (d->qr && d->qr->has_column)
            d->qr->column = bind_slot_of(b, &d->reduction->weights);
        if (d->counting)
            d->counting->weights = bind_slot_of(b, &d->reduction->weights);
    }
    if (run->n_scans)
        return bind_scan_uses(b);
    for (unsigned i = 0; i < run->n_stores; i++)
        run->stores[i].src = bind_slot_of(b, &store_at(run, i)->src);
    return 0;
}

static void init_binding(struct binding *b)
{
    struct run *run = b->run;
    memset(b->input_slot, 0xff, sizeof(b->input_slot));
    memset(b->near_slot, 0xff, sizeof(b->near_slot));
    memset(b->const_slot, 0xff, sizeof(b->const_slot));
    memset(b->reduced_slot, 0xff, sizeof(b->reduced_slot));
    memset(b->window_slot, 0xff, sizeof(b->window_slot));
    memset(b->table_slot, 0xff, sizeof(b->table_slot));
    memset(b->index_slot, 0xff, sizeof(b->index_slot));
    memset(b->last_definition, 0xff, sizeof(b->last_definition));
    memset(b->last_read, 0xff, sizeof(b->last_read));
    for (unsigned i = 0; i < run->pass->n_registers; i++)
        b->register_slot[i] = take_slot(b);
    b->spare_slot = take_slot(b);
}

int run_bind(const struct cpu_engine *engine, const struct program *program,
             const struct pass *pass, const struct engine_box *box,
             const struct engine_view *inputs, const struct engine_view *outputs,
             const struct engine_view *reduced, const struct reduce_layout *layout, void *node,
             void *scratch, struct run **ret_run)
{
    if (!is_within_limits(program, pass))
        return -EINVAL;
    struct binding b = {.scratch = scratch};
    struct run *run = b.run = layout_take(&b, sizeof(*run));
    *run = (struct run){
        .engine = engine,
        .program = program,
        .pass = pass,
        .box = box,
        .n_elements = 1,
        .n_insns = pass->n_insns,
        .n_loops = pass->n_loops,
        .n_reductions = pass->scanned_axis < 0 ? pass->n_reductions : 0,
        .n_scans = pass->scanned_axis < 0 ? 0 : pass->n_reductions,
        .n_stores = pass->n_stores,
        .strip_worst_ns = box->pace ? op_pass_other_worst_ns(program, pass) : 0,
    };
    for (int i = 0; i < box->ndim; i++)
        run->n_elements *= (uint64_t)box->count[i];
    run->insns = layout_take(&b, run->n_insns * sizeof(*run->insns));
    run->draws = layout_take(&b, BIND_MAX_DRAWS * sizeof(*run->draws));
    run->steps = layout_take(&b, 2 * run->n_insns * sizeof(*run->steps));
    run->n_uses = layout_take(&b, run->n_insns * sizeof(*run->n_uses));
    init_binding(&b);
    b.is_valid = loop_init(&b);
    if (b.is_valid)
        scan_pass(&b);
    if (!b.is_valid)
        return -EINVAL;
    init_streams(&b, inputs, outputs, reduced);
    int r = run->n_scans ? bind_scans(&b, reduced) : bind_reductions(&b, layout, node);
    if (r)
        return r;
    settle_in_place(&b);
    run->address = layout_take(&b, (run->n_slots + run->n_stores) * sizeof(*run->address));
    bind_tables(&b, reduced);
    layout_choose_strip(&b);
    layout_fill(&b);
    loop_begin_binding(&b);
    r = bind_uses(&b);
    if (r)
        return r;
    *ret_run = run;
    return 0;
}
