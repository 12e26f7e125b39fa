/* Which instructions become a chain (levels/chain.c): neighbours of which each takes what the one
 * before gave, and nobody else does. A product that is made in between for the next step belongs to
 * that:
 *
 *     r0 = add near0 near1               v  = near0, v += near1
 *     r1 = multiply 4 in0                v -= 4 * in0
 *     r0 = subtract r0 r1
 *
 * What is computed in between is nowhere then; the bits are the same. Passes with loops, which find
 * their instructions by number and go over them again, have none. Called by bind.c when every
 * instruction knows its places.
 */
#include "kernels/cpu/run/bind.h"

#include "proto/util.h"

#include <string.h>

struct chaining {
    const struct binding *b;
    struct run *run;
    const struct insn *insns;
    uint16_t *n_uses; /* of what each instruction gives */
    struct chain_step *steps;
};

static void count_use(struct chaining *c, const uint16_t *definitions,
                      const struct operand *operand)
{
    if (operand->kind == OPERAND_REGISTER && definitions[operand->index] != NEVER)
        c->n_uses[definitions[operand->index]]++;
}

static void count_uses(struct chaining *c)
{
    const struct run *run = c->run;
    const struct program *program = run->program;
    uint16_t definitions[PROGRAM_MAX_REGISTERS];
    memset(definitions, 0xff, sizeof(definitions));
    memset(c->n_uses, 0, run->n_insns * sizeof(*c->n_uses));
    for (unsigned i = 0; i < run->n_insns; i++) {
        for (unsigned j = 0; j < 3; j++)
            count_use(c, definitions, &c->insns[i].src[j]);
        definitions[c->insns[i].dst.index] = (uint16_t)i;
    }
    for (unsigned i = 0; i < run->pass->n_reductions; i++) {
        count_use(c, definitions, &bind_reduction_at(run, i)->src);
        count_use(c, definitions, &bind_reduction_at(run, i)->weights);
    }
    for (unsigned i = 0; i < run->n_stores; i++)
        count_use(c, definitions, &program->stores[run->pass->first_store + i].src);
}

static bool has_link(const struct run *run, const struct insn *insn)
{
    return run->engine->chains->kernel[insn->compute] != NULL &&
           (insn->op == OP_ADD || insn->op == OP_SUBTRACT || insn->op == OP_MULTIPLY);
}

/* An instruction of chains of this dtype, or (DTYPE_COUNT) of any. */
static bool is_link(const struct chaining *c, unsigned i, unsigned dtype)
{
    return i < c->run->n_insns && (dtype == DTYPE_COUNT || c->insns[i].compute == dtype) &&
           has_link(c->run, &c->insns[i]);
}

bool chains_are_all(const struct run *run)
{
    for (unsigned i = 0; i < run->n_insns; i++)
        if (!has_link(run, &run->program->insns[run->pass->first_insn + i]))
            return false;
    return true;
}

static bool is_result(const struct chaining *c, const struct operand *operand, unsigned of)
{
    return operand->kind == OPERAND_REGISTER && operand->index == c->insns[of].dst.index;
}

/* Which source of instruction i is what `of` gives: one of two, or -1. */
static int taken_by(const struct chaining *c, unsigned i, unsigned of)
{
    const struct insn *insn = &c->insns[i];
    bool is_first = is_result(c, &insn->src[0], of), is_second = is_result(c, &insn->src[1], of);
    return is_first == is_second ? -1 : is_second;
}

static void add_step(struct chaining *c, enum chain_op op, uint16_t a)
{
    unsigned of_number = bind_is_number(c->b, a) ? CHAIN_OF_NUMBER : 0;
    *c->steps++ = (struct chain_step){(uint16_t)(op | of_number), a, a};
}

/* A number is the second of the two. */
static void add_product(struct chaining *c, enum chain_op op, uint16_t a, uint16_t b)
{
    bool is_first = bind_is_number(c->b, a), is_second = bind_is_number(c->b, b);
    unsigned of_number = is_first != is_second ? CHAIN_OF_NUMBER : 0;
    *c->steps++ =
        (struct chain_step){(uint16_t)(op | of_number), is_first ? b : a, is_first ? a : b};
}

static void begin(struct chaining *c, unsigned i)
{
    const uint16_t *src = c->run->insns[i].src;
    if (c->insns[i].op == OP_MULTIPLY) {
        add_product(c, CHAIN_PRODUCT, src[0], src[1]);
        return;
    }
    add_step(c, CHAIN_LOAD, src[0]);
    add_step(c, c->insns[i].op == OP_ADD ? CHAIN_ADD : CHAIN_SUBTRACT, src[1]);
}

/* Behind instruction i, whose result only the next one may take: how many instructions the next
 * step is; 0: the chain ends. */
static unsigned extend(struct chaining *c, unsigned i)
{
    const struct bound_insn *bound = c->run->insns;
    unsigned dtype = c->insns[i].compute;
    if (c->n_uses[i] != 1 || !is_link(c, i + 1, dtype))
        return 0;
    int taken = taken_by(c, i + 1, i);
    if (taken >= 0) {
        uint16_t other = bound[i + 1].src[1 - taken];
        unsigned op = c->insns[i + 1].op;
        add_step(c,
                 op == OP_ADD        ? CHAIN_ADD
                 : op == OP_MULTIPLY ? CHAIN_MULTIPLY
                 : taken == 0        ? CHAIN_SUBTRACT
                                     : CHAIN_SUBTRACT_IT,
                 other);
        return 1;
    }
    if (c->insns[i + 1].op != OP_MULTIPLY || c->n_uses[i + 1] != 1 || !is_link(c, i + 2, dtype) ||
        c->insns[i + 2].op == OP_MULTIPLY || c->insns[i + 1].dst.index == c->insns[i].dst.index)
        return 0;
    taken = taken_by(c, i + 2, i);
    if (taken < 0 || taken_by(c, i + 2, i + 1) != 1 - taken)
        return 0;
    add_product(c,
                c->insns[i + 2].op == OP_ADD ? CHAIN_ADD_PRODUCT
                : taken == 0                 ? CHAIN_SUBTRACT_PRODUCT
                                             : CHAIN_SUBTRACT_IT_OF_PRODUCT,
                bound[i + 1].src[0], bound[i + 1].src[1]);
    return 2;
}

/* Whether the pass is one chain of arrays that lie densely and are not to be fetched. */
static bool is_straight(const struct binding *b)
{
    const struct run *run = b->run;
    const struct bound_insn *chain = run->insns;
    const struct bound_store *store = run->stores;
    if (run->n_insns != 1 || chain->n_steps == 0 || run->n_reductions + run->n_scans > 0 ||
        run->n_stores != 1 || !store->is_direct || store->stream.kind != STREAM_LINEAR ||
        store->stream.bypasses_cache || store->stream.slot != chain->dst)
        return false;
    for (unsigned i = 0; i < run->n_inputs; i++) {
        const struct stream *s = &run->inputs[i];
        if (!bind_is_number(b, s->slot) && (s->kind != STREAM_LINEAR || s->is_fetched_ahead))
            return false;
    }
    for (const struct chain_step *s = chain->steps; s < chain->steps + chain->n_steps; s++)
        if ((s->a != s->b || !(s->op & CHAIN_OF_NUMBER)) && bind_is_number(b, s->a))
            return false; /* there is but a strip of it */
    return true;
}

void bind_chains(struct binding *b)
{
    struct run *run = b->run;
    struct chaining c = {.b = b,
                         .run = run,
                         .insns = &run->program->insns[run->pass->first_insn],
                         .n_uses = run->n_uses,
                         .steps = run->steps};
    unsigned n_kept = 0, more;
    if (run->n_insns < 2 || run->n_loops > 0)
        return;
    count_uses(&c);
    for (unsigned i = 0; i < run->n_insns; i++) {
        const struct chain_step *first = c.steps;
        struct bound_insn whole;
        unsigned end = i, worst_ns = run->insns[i].worst_ns;
        if (is_link(&c, i, DTYPE_COUNT)) {
            begin(&c, i);
            for (; (more = extend(&c, end)) > 0; end += more)
                for (unsigned k = 1; k <= more; k++)
                    worst_ns += run->insns[end + k].worst_ns;
        }
        whole = run->insns[end];
        if (end > i) {
            whole.worst_ns = (uint16_t)min_u64(worst_ns, UINT16_MAX);
            whole.steps = first;
            whole.n_steps = (uint16_t)(c.steps - first);
            whole.dtype = c.insns[end].compute;
        }
        run->insns[n_kept++] = whole;
        i = end;
    }
    run->n_insns = n_kept;
    run->is_straight = run->n_indices == 0 && is_straight(b);
}
