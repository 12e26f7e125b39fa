/* A program as text: what `--explain` shows and tests compare.
 *
 *     in0 = argument 0: float32 (3, 4)
 *     pass 0 over (3, 4): 2 registers
 *       r0 = multiply.float32 in0 in0
 *       r0 = sqrt.float32 r0
 *       out0 = r0 (float32)
 *
 * The instructions of a loop stand behind a line that says how many they are.
 *
 * Of a matrix product the third pass reads it as red0:
 *
 *     product red0 = out1 @ out2: 3 rows, 5 columns, depth 4 (float32)
 */
#include "kernels/program.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
    char *at;
    size_t n_left; /* with the NUL */
};

static void add(struct text *t, const char *format, ...) GAD_PRINTF(2, 3);

static void add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, t->n_left, format, args);
    va_end(args);
    size_t taken = n < 0 ? 0 : (size_t)n < t->n_left ? (size_t)n : t->n_left - 1;
    t->at += taken;
    t->n_left -= taken;
}

static void add_shape(struct text *t, int ndim, const int64_t *shape)
{
    char buffer[ARRAY_MAX_NDIM * 22 + 8];
    add(t, "%s", array_format_shape(ndim, shape, buffer, sizeof(buffer)));
}

static void add_const(struct text *t, const struct program_const *c)
{
    if (c->dtype == DTYPE_FLOAT32)
        add(t, "%.9g", (double)c->value.f32);
    else if (c->dtype == DTYPE_FLOAT64)
        add(t, "%.17g", c->value.f64);
    else if (c->dtype == DTYPE_BOOL)
        add(t, "%s", c->value.u64 != 0 ? "True" : "False");
    else if (dtype_is_signed(c->dtype))
        add(t, "%" PRId64, c->value.i64);
    else
        add(t, "%" PRIu64, c->value.u64);
}

static void add_operand(struct text *t, const struct program *p, const struct operand *o)
{
    switch (o->kind) {
    case OPERAND_REGISTER: add(t, "r%u", o->index); break;
    case OPERAND_INPUT: add(t, "in%u", o->index); break;
    case OPERAND_NEAR: add(t, "near%u", o->index); break;
    case OPERAND_REDUCED: add(t, "red%u", o->index); break;
    case OPERAND_WINDOW: add(t, "win%u", o->index); break;
    case OPERAND_TABLE: add(t, "table red%u", o->index); break;
    case OPERAND_CONST: add_const(t, &p->consts[o->index]); break;
    case OPERAND_INDEX:
        if (o->index == OPERAND_INDEX_FLAT)
            add(t, "index");
        else
            add(t, "index%u", o->index);
        break;
    default: add(t, "-"); break;
    }
}

static void add_insn(struct text *t, const struct program *p, const struct insn *insn)
{
    add(t, "  r%u = ", insn->dst.index);
    if (insn->op == OP_CAST)
        add(t, "%s.%s", dtype_name((enum dtype)insn->dst.dtype),
            dtype_name((enum dtype)insn->compute));
    else
        add(t, "%s.%s", op_info((enum op)insn->op)->name, dtype_name((enum dtype)insn->compute));
    for (unsigned i = 0; i < op_info((enum op)insn->op)->n_args; i++) {
        const struct operand *src = &insn->src[i];
        bool is_other = src->kind == OPERAND_CONST && src->dtype != insn->compute;
        add(t, " %s%s", is_other ? dtype_name((enum dtype)src->dtype) : "", is_other ? ":" : "");
        add_operand(t, p, src);
    }
    add(t, "\n");
}

/* Where some axes are kept: the reduction's axes and its result's shape. */
static void add_axes(struct text *t, const struct program *p, unsigned reduction)
{
    const struct reduction *r = &p->reductions[reduction];
    const struct pass *pass = &p->passes[r->pass];
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim = program_reduction_shape(p, reduction, shape);
    if (ndim == 0)
        return;
    const char *before = " over axes ";
    for (int i = 0; i < pass->ndim; i++)
        if (pass->reduced_axes >> i & 1) {
            add(t, "%s%d", before, i);
            before = ", ";
        }
    add(t, ": ");
    add_shape(t, ndim, shape);
}

/* Of the n keys that are no NaN's. */
static void add_place(struct text *t, const struct kth_rank *place)
{
    static const char *const roundings[] = {"floor", "ceil", "rint"};
    if (place->by == KTH_COUNT)
        add(t, ": n");
    if (place->by == KTH_AT)
        add(t, " at %u", place->at);
    if (place->by != KTH_RANK && place->by != KTH_BEHIND)
        return;
    add(t, place->by == KTH_RANK ? " at " : " behind ");
    add(t, "%s(%s * %g + %g)%s", roundings[place->rounding], place->is_inner ? "(n - 1)" : "n",
        place->q, place->shift, place->is_inner ? "" : " - 1");
}

static void add_details(struct text *t, const struct program *p, const struct reduction *r)
{
    if (r->op == OP_KTH)
        add_place(t, &r->kth);
    if (r->has_minus_zero)
        add(t, " from -0");
    if (r->n_bins == 0)
        return;
    add(t, r->op == OP_QR_R ? " of %u columns" : " in %u bins", r->n_bins);
    if (r->is_cumulative)
        add(t, ", running");
    if (r->weights.kind == OPERAND_NONE)
        return;
    add(t, r->op == OP_QR_R ? ", the last " : ", of weights ");
    add_operand(t, p, &r->weights);
}

/* Between the passes of its operands and the one that reads it. */
static void add_product(struct text *t, const struct program_product *m)
{
    add(t, "product red%u = out%u @ out%u: ", m->reduction, m->first_output + PRODUCT_LEFT,
        m->first_output + PRODUCT_RIGHT);
    if (m->n_batch_axes > 0) {
        add_shape(t, m->n_batch_axes, m->batch_shape);
        add(t, " times ");
    }
    add(t, "%" PRId64 " rows, %" PRId64 " columns, depth %" PRId64 "%s (%s)\n", m->n_rows,
        m->n_columns, m->depth, m->is_symmetric ? ", symmetric" : "", dtype_name(m->dtype));
}

static void add_value(struct text *t, const struct program_slab *slab, unsigned index)
{
    static const char *const names[] = {"x", "operand", "rows", "sum"};
    const struct slab_value *v = &slab->values[index];
    add(t, "%s%u", names[v->kind], index);
    if (v->has_reduction)
        add(t, " (red%u)", v->reduction);
}

static void add_slab(struct text *t, const struct program_slab *slab)
{
    static const char *const names[SLAB_N_STEP_KINDS] = {"project", "multiply", "gather",
                                                         "add up",  "pass",     "reduce"};
    add(t, "slabs of %" PRId64 " rows of %" PRId64 " columns (%s), read once\n", slab->n_rows,
        slab->n_columns, dtype_name((enum dtype)slab->values[0].dtype));
    for (unsigned i = 0; i < slab->n_steps; i++) {
        const struct slab_step *step = &slab->steps[i];
        add(t, "  %s ", names[step->kind]);
        if (step->kind == SLAB_ROWS) {
            add(t, "%u\n", slab->first_pass + step->pass);
            continue;
        }
        if (step->result != SLAB_NONE) {
            add_value(t, slab, step->result);
            add(t, " = ");
        }
        add_value(t, slab, step->src[0]);
        if (step->kind == SLAB_REDUCE)
            add(t, " by pass %u", slab->first_pass + step->pass);
        if (step->src[1] != SLAB_NONE) {
            add(t, step->kind == SLAB_GATHER ? ".T @ " : " @ ");
            add_value(t, slab, step->src[1]);
        }
        add(t, "%s%s%s\n", step->is_square ? " squared" : "", step->is_joined ? ", all" : "",
            step->is_single ? ", in float32" : "");
    }
    for (unsigned i = 0; i < slab->n_values; i++)
        if (slab->values[i].output != SLAB_NO_OUTPUT) {
            add(t, "  out%u = ", slab->values[i].output);
            add_value(t, slab, i);
            add(t, "\n");
        }
}

static void add_near(struct text *t, const struct program *p, unsigned index)
{
    static const char *const modes[] = {"edge", "constant", "reflect", "symmetric", "wrap"};
    const struct program_near *near = &p->nears[index];
    add(t, "  near%u = in%u at ", index, near->input);
    for (int i = 0; i < p->inputs[near->input].ndim; i++) {
        add(t, "%s%" PRId64, i == 0 ? "" : ", ", near->offsets[i]);
        if (near->offsets[i] != 0)
            add(t, " %s", modes[near->modes[i]]);
    }
    add(t, "\n");
}

/* Where a loop's steps begin, and where its condition is known. */
static void add_loops(struct text *t, const struct program *p, unsigned insn)
{
    for (unsigned i = 0; i < p->n_loops; i++) {
        const struct program_loop *loop = &p->loops[i];
        if (insn == loop->first_insn)
            add(t, "  at most %" PRIu32 " times, %u instructions:\n", loop->n_steps, loop->n_insns);
        if (insn != loop->first_insn + (unsigned)loop->n_until || loop->until.kind == OPERAND_NONE)
            continue;
        add(t, "  unless ");
        add_operand(t, p, &loop->until);
        add(t, ":\n");
    }
}

static void add_insns(struct text *t, const struct program *p, const struct pass *pass)
{
    add_shape(t, pass->ndim, pass->shape);
    add(t, ": %u register%s\n", pass->n_registers, pass->n_registers == 1 ? "" : "s");
    for (unsigned i = 0; i < pass->n_nears; i++)
        add_near(t, p, pass->first_near + i);
    for (unsigned i = 0; i < pass->n_insns; i++) {
        add_loops(t, p, pass->first_insn + i);
        add_insn(t, p, &p->insns[pass->first_insn + i]);
    }
}

static void add_stores(struct text *t, const struct program *p, const struct pass *pass)
{
    for (unsigned i = 0; i < pass->n_stores; i++) {
        const struct store *store = &p->stores[pass->first_store + i];
        add(t, "  out%u = ", store->output);
        if (pass->scanned_axis >= 0)
            add(t, "running red%u", store->scan);
        else
            add_operand(t, p, &store->src);
        add(t, " (%s)\n", dtype_name(p->outputs[store->output].dtype));
    }
}

/* What a pass has in place of an array that is read. */
static void add_repeat(struct text *t, const struct program *p, unsigned index)
{
    const struct program_repeat *r = &p->repeats[index];
    add(t, "repeat %u begins over ", index);
    add_insns(t, p, &p->inner[r->begin]);
    add_stores(t, p, &p->inner[r->begin]);
    add(t, "repeat %u, %u step%s over ", index, r->n_steps, r->n_steps == 1 ? "" : "s");
    add_insns(t, p, &p->inner[r->step]);
    add_stores(t, p, &p->inner[r->step]);
}

static void add_pass(struct text *t, const struct program *p, unsigned index)
{
    const struct pass *pass = &p->passes[index];
    for (uint32_t left = pass->repeats; left != 0; left &= left - 1)
        add_repeat(t, p, (unsigned)__builtin_ctz(left));
    add(t, "pass %u over ", index);
    add_insns(t, p, pass);
    for (unsigned i = 0; i < pass->n_reductions; i++) {
        unsigned r = pass->first_reduction + i;
        add(t, "  red%u = %s.%s ", r, op_info((enum op)p->reductions[r].op)->name,
            dtype_name((enum dtype)p->reductions[r].src.dtype));
        add_operand(t, p, &p->reductions[r].src);
        add_details(t, p, &p->reductions[r]);
        add_axes(t, p, r);
        add(t, " (%s)\n", dtype_name((enum dtype)p->reductions[r].result));
    }
    add_stores(t, p, pass);
    for (unsigned i = 0; i < p->n_checks; i++)
        if (p->reductions[p->checks[i].reduction].pass == index)
            add(t, "  red%u must be below %" PRIu64 ": %s\n", p->checks[i].reduction,
                p->checks[i].limit, p->checks[i].expected);
}

/* Its operand is printed as the pass that it is. */
static void add_window(struct text *t, const struct program *p, unsigned index)
{
    const struct program_window *w = &p->windows[index];
    const struct pass *pass = &p->passes[w->pass];
    add(t, "win%u = %s.%s out%u of size ", index, op_info((enum op)w->op)->name,
        dtype_name((enum dtype)w->dtype), p->stores[pass->first_store].output);
    add_shape(t, pass->ndim, w->size);
    add(t, " from ");
    for (int i = 0; i < pass->ndim; i++)
        add(t, "%s%" PRId64, i > 0 ? ", " : "", -w->before[i]);
    add(t, "\n");
    add_pass(t, p, w->pass);
}

void program_print(const struct program *program, char *buffer, size_t n_bytes)
{
    if (n_bytes == 0)
        return;
    struct text t = {buffer, n_bytes};
    buffer[0] = '\0';
    for (unsigned i = 0; i < program_all_inputs(program); i++) {
        const struct program_input *input = &program->inputs[i];
        add(&t, "in%u = %s%u%s: %s ", i, input->is_state ? "out" : "argument ", input->arg,
            input->is_transposed ? " transposed" : "", dtype_name(input->dtype));
        add_shape(&t, input->ndim, input->shape);
        for (int k = 0; k < input->ndim; k++)
            if (input->around[k] > 0)
                add(&t, " around %" PRId64 " along %d%s", input->around[k], k,
                    input->wraps_axes >> k & 1 ? " wrap" : "");
        add(&t, "\n");
    }
    for (unsigned i = 0; i < program->n_windows; i++)
        add_window(&t, program, i);
    for (unsigned i = 0; i < program->n_stages; i++) {
        const struct stage *stage = &program->stages[i];
        if (stage->kind == STAGE_SLAB)
            add_slab(&t, &program->slabs[stage->slab]);
        for (unsigned k = 0; k < stage->n_passes; k++) {
            if (stage->kind == STAGE_PRODUCT && k == PRODUCT_RESULT)
                add_product(&t, &program->products[stage->product]);
            add_pass(&t, program, stage->first_pass + k);
        }
    }
}
