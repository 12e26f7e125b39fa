/* What is drawn: RANDOM_U32 and RANDOM_U64 of the elements' numbers, and the distribution
 * that the next instruction makes of the bits.
 *
 * Such an instruction has a second kernel, for strips whose numbers count up: from the first number
 * to what is made of the bits, past the cache straight to its place where nobody else reads it.
 * Where the bits are read by the next instruction alone and that has one too, it draws for itself
 * and the first has nothing to do. All this is beside the usual binding, which other strips go by:
 * registers and stores are the same for both. Called by bind.c when all instructions are bound, and
 * by run.c.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/run/bind.h"

#include "proto/util.h"

static bool reads(const struct operand *operand, uint8_t kind, unsigned index)
{
    return operand->kind == kind && operand->index == index;
}

static bool insn_reads(const struct insn *insn, uint8_t kind, unsigned index)
{
    return reads(&insn->src[0], kind, index) || reads(&insn->src[1], kind, index) ||
           reads(&insn->src[2], kind, index);
}

/* A reduction or a store of the pass. */
static bool end_reads(const struct run *run, uint8_t kind, unsigned index)
{
    const struct program *program = run->program;
    for (unsigned i = 0; i < run->pass->n_reductions; i++) {
        const struct reduction *reduction = bind_reduction_at(run, i);
        if (reads(&reduction->src, kind, index) || reads(&reduction->weights, kind, index))
            return true;
    }
    for (unsigned i = 0; i < run->n_stores; i++)
        if (reads(&program->stores[run->pass->first_store + i].src, kind, index))
            return true;
    return false;
}

static bool is_draw(const struct insn *insn)
{
    return (insn->op == OP_RANDOM_U32 || insn->op == OP_RANDOM_U64) &&
           reads(&insn->src[0], OPERAND_INDEX, OPERAND_INDEX_FLAT);
}

/* Whether insn i's result, a register, is read by insn i + 1 and by nothing else. */
static bool is_read_by_next_alone(const struct run *run, const struct insn *insns, unsigned i)
{
    unsigned reg = insns[i].dst.index;
    if (i + 1 >= run->n_insns || !insn_reads(&insns[i + 1], OPERAND_REGISTER, reg))
        return false;
    for (unsigned k = i + 1; k < run->n_insns; k++) {
        if (k > i + 1 && insn_reads(&insns[k], OPERAND_REGISTER, reg))
            return false;
        if (insns[k].dst.index == reg)
            return true;
    }
    return !end_reads(run, OPERAND_REGISTER, reg);
}

/* Insn i draws; `at` is the same one or the next. */
static bool bind_draw(struct run *run, unsigned i, unsigned at)
{
    const struct insn *insns = &run->program->insns[run->pass->first_insn];
    struct bound_insn *bound = &run->insns[at];
    bool is_whole = at == i;
    kernel_fn *kernel = engine_find_drawn(run->engine, &insns[at], is_whole, false);
    if (!kernel || run->n_draws == BIND_MAX_DRAWS)
        return false;
    bool is_read_again = bound->streamed != NO_STORE && run->stores[bound->streamed].is_read_again;
    bound->drawn = (uint16_t)run->n_draws;
    run->draws[run->n_draws++] = (struct bound_draw){
        .kernel = kernel,
        .past = is_read_again ? NULL : engine_find_drawn(run->engine, &insns[at], is_whole, true),
        .seed = run->insns[i].src[1],
        .stream = run->insns[i].src[2],
    };
    return true;
}

void bind_draws(struct binding *b)
{
    struct run *run = b->run;
    const struct insn *insns = &run->program->insns[run->pass->first_insn];
    bool has_others = end_reads(run, OPERAND_INDEX, OPERAND_INDEX_FLAT);
    for (unsigned i = 0; i < run->n_insns; i++) {
        if (!is_draw(&insns[i]) || !bind_draw(run, i, i)) {
            has_others |= insn_reads(&insns[i], OPERAND_INDEX, OPERAND_INDEX_FLAT);
            continue;
        }
        if (is_read_by_next_alone(run, insns, i) && bind_draw(run, i, i + 1))
            run->draws[run->insns[i].drawn].kernel = NULL;
    }
    for (unsigned i = 0; run->n_draws > 0 && i < run->n_indices; i++)
        if (run->indices[i].is_flat)
            run->numbers = &run->indices[i];
    run->is_numbered_for_draws = !has_others;
}

/* ---- running ---- */

bool run_counts(struct run *run, uint64_t first, size_t n)
{
    run->is_counting =
        run->numbers && index_stream_counts(run->numbers, first, n, &run->first_number);
    return run->is_counting && run->is_numbered_for_draws;
}

static void draw(struct run *run, const struct bound_draw *d, kernel_fn *kernel, size_t n,
                 void *dst)
{
    kernel(n, dst, &run->first_number, run->address[d->seed], run->address[d->stream],
           &run->events);
}

void run_drawn(struct run *run, const struct bound_insn *insn, size_t n)
{
    const struct bound_draw *d = &run->draws[insn->drawn];
    void *buffer = run->address[insn->dst];
    const struct bound_store *store =
        insn->streamed == NO_STORE ? NULL : &run->stores[insn->streamed];
    if (!d->kernel)
        return;
    if (!store || !store->place) {
        draw(run, d, d->kernel, n, buffer);
    } else if (d->past && ((uintptr_t)store->place & (LINE_BYTES - 1)) == 0) {
        draw(run, d, d->past, n, store->place);
    } else {
        draw(run, d, d->kernel, n, buffer);
        run->engine->move->stream(n << store->stream.item_log2, store->place, buffer);
    }
}
