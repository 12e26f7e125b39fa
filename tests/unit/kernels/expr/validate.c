/* Walks a program as an engine would and checks every promise that engines rely on: indices in
 * range, registers written before they are read, dtypes that agree, results of reductions used in
 * later passes only, every output stored once with its shape, the three passes of a product. Used
 * by the unit tests and by the fuzz target.
 */
#include "tests/unit/kernels/expr/validate.h"
#include "tests/unit/kernels/expr/validate_insn.h"

#include "kernels/cuda/encode.h"

#include <string.h>

struct walk {
    const struct program *program;
    const struct pass *pass;
    unsigned pass_index;
    bool is_written[PROGRAM_MAX_REGISTERS];
    uint8_t register_dtype[PROGRAM_MAX_REGISTERS];
    uint64_t inputs_used, states_used;
    uint64_t reduced_used, tables_used, windows_used;
    bool is_inner; /* of a repeat */
};

static void use_input(struct walk *w, unsigned input)
{
    *(w->program->inputs[input].is_state ? &w->states_used : &w->inputs_used) |= UINT64_C(1)
                                                                                 << input;
}

/* That it broadcasts to the pass's. */
static const char *check_shape(const struct walk *w, int ndim, const int64_t *dims)
{
    CHECK(ndim <= w->pass->ndim);
    const int64_t *shape = w->pass->shape + (w->pass->ndim - ndim);
    for (int i = 0; i < ndim; i++)
        CHECK(dims[i] == 1 || dims[i] == shape[i]);
    return NULL;
}

static const char *check_input(struct walk *w, const struct operand *o)
{
    CHECK(o->index < program_all_inputs(w->program));
    const struct program_input *input = &w->program->inputs[o->index];
    CHECK(o->dtype == input->dtype);
    use_input(w, o->index);
    return check_shape(w, input->ndim, input->shape);
}

static const char *check_near(struct walk *w, const struct operand *o)
{
    const struct pass *pass = w->pass;
    CHECK(o->index >= pass->first_near && o->index - pass->first_near < pass->n_nears);
    const struct program_near *near = &w->program->nears[o->index];
    CHECK(near->input < program_all_inputs(w->program));
    const struct program_input *input = &w->program->inputs[near->input];
    bool is_moved = false;
    CHECK(o->dtype == input->dtype && !input->is_transposed);
    for (int i = 0; i < ARRAY_MAX_NDIM; i++) {
        int64_t offset = near->offsets[i], length = i < input->ndim ? input->shape[i] : 0;
        is_moved |= offset != 0;
        CHECK(offset == 0 || (i < input->ndim && near->modes[i] < NEAR_N_MODES));
        CHECK(offset == 0 || near->modes[i] != NEAR_WRAP ||
              (offset <= length / 2 && -offset <= length / 2));
        CHECK(offset == 0 || (offset <= length && -offset <= length));
    }
    CHECK(is_moved);
    use_input(w, near->input);
    return check_shape(w, input->ndim, input->shape);
}

static const struct stage *stage_of(const struct program *p, unsigned pass)
{
    unsigned i = 0;
    while (pass >= p->stages[i].first_pass + p->stages[i].n_passes)
        i++;
    return &p->stages[i];
}

/* By an earlier stage, which keeps it; or it is the product that the pass is the last one of. */
static bool is_made_before(const struct walk *w, unsigned reduction)
{
    unsigned made_in = w->program->reductions[reduction].pass;
    if (w->is_inner) /* whoever has the repeat says that it reads the result */
        return program_is_uniform(w->program, reduction) || w->pass->tables_used >> reduction & 1;
    if (w->pass_index >= w->program->n_passes) /* a window's operand */
        return made_in < w->program->n_passes && program_is_kept(w->program, reduction);
    const struct stage *stage = stage_of(w->program, w->pass_index);
    if (made_in < stage->first_pass)
        return program_is_kept(w->program, reduction);
    const struct slab_value *value = program_slab_value(w->program, reduction);
    if (stage->kind == STAGE_SLAB)
        return value != NULL && made_in < (unsigned)stage->first_pass + stage->n_passes;
    return stage->kind == STAGE_PRODUCT && made_in == w->pass_index &&
           w->program->products[stage->product].reduction == reduction;
}

static const char *check_reduced(struct walk *w, const struct operand *o)
{
    int64_t shape[ARRAY_MAX_NDIM];
    CHECK(o->index < w->program->n_reductions);
    CHECK(o->dtype == w->program->reductions[o->index].result);
    CHECK(is_made_before(w, o->index));
    w->reduced_used |= UINT64_C(1) << o->index;
    return check_shape(w, program_reduction_shape(w->program, o->index, shape), shape);
}

/* One axis, all of an earlier pass's. */
static const char *check_table(struct walk *w, const struct operand *o)
{
    int64_t shape[ARRAY_MAX_NDIM];
    CHECK(o->kind == OPERAND_TABLE && o->index < w->program->n_reductions);
    CHECK(o->dtype == w->program->reductions[o->index].result);
    CHECK(is_made_before(w, o->index));
    CHECK(!(program_product_results(w->program) >> o->index & 1));
    CHECK(program_reduction_shape(w->program, o->index, shape) == 1);
    w->tables_used |= UINT64_C(1) << o->index;
    return NULL;
}

/* What its operand reads is read with the pass. */
static const char *check_window(struct walk *w, const struct operand *o)
{
    CHECK(o->index < w->program->n_windows);
    const struct program_window *window = &w->program->windows[o->index];
    CHECK(o->dtype == window->dtype && window->pass == w->program->n_passes + o->index);
    CHECK(window->pass > w->pass_index || w->pass_index >= w->program->n_passes);
    CHECK(w->pass_index < window->pass || w->pass_index > window->pass);
    const struct pass *pass = &w->program->passes[window->pass];
    uint64_t n = 1;
    CHECK(pass->states_used == 0 && window->place.column > 0);
    for (int i = 0; i < pass->ndim; i++) {
        CHECK(window->size[i] >= 1 && window->size[i] <= WINDOW_MAX_SIZE);
        CHECK(window->before[i] >= 0 && window->before[i] < window->size[i]);
        CHECK(window->modes[i] < NEAR_N_MODES);
        n *= (uint64_t)window->size[i];
    }
    CHECK(window->op == OP_CORRELATE ? window->n_weights == n : window->n_weights == 0);
    CHECK(window->first_weight + window->n_weights <= w->program->n_weights);
    CHECK(window->op != OP_WINDOW_RANK ||
          (n <= WINDOW_MAX_RANKED && window->ranks[0] <= window->ranks[1] &&
           window->ranks[0] >= 0 && (uint64_t)window->ranks[1] < n));
    w->windows_used |= UINT64_C(1) << o->index;
    w->inputs_used |= pass->inputs_used;
    w->reduced_used |= pass->reduced_used;
    w->tables_used |= pass->tables_used;
    return check_shape(w, pass->ndim, pass->shape);
}

static const char *check_operand(struct walk *w, const struct operand *o)
{
    CHECK(o->dtype < DTYPE_COUNT);
    switch (o->kind) {
    case OPERAND_INPUT: return check_input(w, o);
    case OPERAND_NEAR: return check_near(w, o);
    case OPERAND_CONST:
        CHECK(o->index < w->program->n_consts);
        CHECK(o->dtype == w->program->consts[o->index].dtype);
        return NULL;
    case OPERAND_REDUCED: return check_reduced(w, o);
    case OPERAND_WINDOW: return check_window(w, o);
    case OPERAND_REGISTER:
        CHECK(o->index < w->pass->n_registers);
        CHECK(w->is_written[o->index]);
        CHECK(o->dtype == w->register_dtype[o->index]);
        return NULL;
    case OPERAND_INDEX:
        if (o->index == OPERAND_INDEX_FLAT) {
            CHECK(o->dtype == DTYPE_UINT64);
            return NULL;
        }
        CHECK(o->dtype == DTYPE_INT64);
        CHECK(o->index < w->pass->ndim);
        return NULL;
    default: return "an operand of no kind";
    }
}

static bool is_reduction(enum op op)
{
    return op_rule_reduces(op_info(op)->rule) || op == OP_SQUARED_DEVIATIONS || op == OP_KTH;
}

static const char *check_insn(struct walk *w, const struct insn *insn)
{
    CHECK(insn->op < OP_COUNT && !is_reduction((enum op)insn->op));
    for (unsigned i = 0; i < op_info((enum op)insn->op)->n_args; i++) {
        const char *fault = i == 1 && insn_is_lookup(insn) ? check_table(w, &insn->src[i])
                                                           : check_operand(w, &insn->src[i]);
        if (fault != NULL)
            return fault;
    }
    for (unsigned i = op_info((enum op)insn->op)->n_args; i < 3; i++)
        CHECK(insn->src[i].kind == OPERAND_NONE);
    const char *fault = insn_check_dtypes(insn);
    if (fault != NULL)
        return fault;
    CHECK(insn->dst.kind == OPERAND_REGISTER && insn->dst.index < w->pass->n_registers);
    w->is_written[insn->dst.index] = true;
    w->register_dtype[insn->dst.index] = insn->dst.dtype;
    return NULL;
}

static enum dtype sum_dtype(enum dtype d)
{
    if (dtype_is_float(d))
        return DTYPE_FLOAT64;
    return dtype_is_unsigned(d) ? DTYPE_UINT64 : DTYPE_INT64;
}

static const char *check_counts(struct walk *w, const struct reduction *r)
{
    bool has_weights = r->weights.kind != OPERAND_NONE;
    CHECK(r->src.dtype == DTYPE_INT64);
    CHECK(r->result == (has_weights ? DTYPE_FLOAT64 : DTYPE_INT64));
    CHECK(!has_weights || r->weights.dtype == DTYPE_FLOAT64);
    const char *fault = has_weights ? check_operand(w, &r->weights) : NULL;
    return fault != NULL ? fault : check_operand(w, &r->src);
}

static const char *check_triangle(struct walk *w, const struct reduction *r)
{
    bool has_column = r->weights.kind != OPERAND_NONE;
    CHECK(w->pass->ndim == 2 && w->pass->reduced_axes == 3 && !r->keeps_dims);
    CHECK(r->n_bins == w->pass->shape[1] + has_column && r->n_bins <= PROGRAM_MAX_QR_COLUMNS);
    CHECK(r->src.dtype == DTYPE_FLOAT64 && r->result == DTYPE_FLOAT64);
    CHECK(!has_column || r->weights.dtype == DTYPE_FLOAT64);
    const char *fault = has_column ? check_operand(w, &r->weights) : NULL;
    return fault != NULL ? fault : check_operand(w, &r->src);
}

static const char *check_reduction(struct walk *w, const struct reduction *r)
{
    CHECK(r->pass == w->pass_index);
    CHECK(w->pass->reduced_axes != 0 && w->pass->reduced_axes >> (w->pass->ndim - 1) <= 1);
    bool is_scan = r->op == OP_CUMSUM || r->op == OP_CUMPROD;
    CHECK(is_scan == (w->pass->scanned_axis >= 0));
    CHECK((r->n_bins > 0) == (r->op == OP_BINCOUNT || r->op == OP_QR_R));
    CHECK(r->op == OP_KTH || memcmp(&r->kth, &(struct kth_rank){0}, sizeof(r->kth)) == 0);
    CHECK(w->program->reductions[w->pass->first_reduction].op != OP_KTH || r->op == OP_KTH);
    CHECK(!r->is_cumulative || (r->op == OP_BINCOUNT && r->weights.kind == OPERAND_NONE));
    CHECK(r->weights.kind == OPERAND_NONE || r->op == OP_BINCOUNT || r->op == OP_QR_R);
    switch (r->op) {
    case OP_CUMSUM:
    case OP_CUMPROD:
        CHECK(w->pass->reduced_axes == 1u << w->pass->scanned_axis && !r->keeps_dims);
        CHECK(r->result == sum_dtype((enum dtype)r->src.dtype));
        break;
    case OP_BINCOUNT: return check_counts(w, r);
    case OP_QR_R: return check_triangle(w, r);
    case OP_SUM:
    case OP_PROD: CHECK(r->result == sum_dtype((enum dtype)r->src.dtype)); break;
    case OP_MIN:
    case OP_MAX: CHECK(r->result == r->src.dtype); break;
    case OP_ARGMIN:
    case OP_ARGMAX:
    case OP_COUNT_NONZERO: CHECK(r->result == DTYPE_INT64); break;
    case OP_KTH: {
        const struct reduction *first = &w->program->reductions[w->pass->first_reduction];
        CHECK(r->result == r->src.dtype);
        CHECK(r->result == DTYPE_UINT32 || r->result == DTYPE_UINT64);
        CHECK(r->kth.by <= KTH_COUNT && r->kth.rounding <= KTH_RINT && r->kth.unused == 0);
        CHECK(r->kth.q >= 0 && r->kth.q <= 1 && r->kth.shift >= 0 && r->kth.shift <= 1);
        CHECK(first->op == OP_KTH && memcmp(&first->src, &r->src, sizeof(r->src)) == 0);
        CHECK(w->pass->n_stores == 0);
        break;
    }
    case OP_SQUARED_DEVIATIONS:
        CHECK(r->result == DTYPE_FLOAT64 && dtype_is_float((enum dtype)r->src.dtype));
        break;
    default: return "not a reduction that engines have";
    }
    return check_operand(w, &r->src);
}

static const char *check_store(struct walk *w, const struct store *store)
{
    CHECK(store->output < w->program->n_all_outputs);
    const struct program_output *output = &w->program->outputs[store->output];
    CHECK(w->is_inner || output->pass == w->pass_index);
    CHECK(output->ndim == w->pass->ndim);
    for (int i = 0; i < output->ndim; i++)
        CHECK(output->shape[i] == w->pass->shape[i]);
    if (w->pass->scanned_axis >= 0) {
        CHECK(store->src.kind == OPERAND_NONE);
        CHECK(store->scan >= w->pass->first_reduction);
        CHECK(store->scan < w->pass->first_reduction + w->pass->n_reductions);
        return NULL;
    }
    CHECK(output->dtype == store->src.dtype);
    return check_operand(w, &store->src);
}

/* The planner leaves room for the values that the device's encoder gives places to, which it has
 * for every pass but one of very many nears. */
static const char *check_values(const struct program *p, unsigned index)
{
    struct encode_places places;
    enum dtype dtypes[PASS_MAX_VALUES];
    int r = encode_places_of(p, &p->passes[index], &places);
    CHECK(r == 0 || p->passes[index].n_nears > ENCODE_MAX_READ - ENCODE_MAX_OTHERS);
    if (r)
        return NULL;
    CHECK(program_values(p, index, dtypes) == places.n_values);
    for (unsigned i = 0; i < places.n_values; i++)
        CHECK(places.places[places.n_places - places.n_values + i].dtype == dtypes[i]);
    return NULL;
}

/* One behind the other, with what their steps hand on changed at their end alone. */
static const char *check_loops(const struct program *p, const struct pass *pass)
{
    unsigned end = pass->first_insn;
    for (unsigned i = 0; i < pass->n_loops; i++) {
        const struct program_loop *loop = &p->loops[pass->first_loop + i];
        bool is_step[PROGRAM_MAX_REGISTERS] = {false}, is_read[PROGRAM_MAX_REGISTERS] = {false};
        CHECK(loop->first_insn >= end && loop->n_insns > 0 && loop->n_until <= loop->n_insns);
        CHECK(loop->n_steps >= 1 && loop->n_steps <= 1000000);
        CHECK(loop->until.kind == OPERAND_NONE ? loop->n_until == 0
                                               : loop->until.dtype == DTYPE_BOOL);
        end = loop->first_insn + (unsigned)loop->n_insns;
        CHECK(end <= pass->first_insn + (unsigned)pass->n_insns);
        bool has_changed = false;
        for (unsigned k = loop->first_insn; k < end; k++) {
            const struct insn *insn = &p->insns[k];
            for (unsigned j = 0; j < 3; j++)
                if (insn->src[j].kind == OPERAND_REGISTER && !is_step[insn->src[j].index])
                    is_read[insn->src[j].index] = true;
            bool is_change = is_read[insn->dst.index];
            CHECK(is_change || !has_changed || loop->until.kind == OPERAND_NONE);
            CHECK(!is_change || loop->until.kind == OPERAND_NONE ||
                  (insn->op == OP_WHERE && insn->src[0].kind == loop->until.kind &&
                   insn->src[0].index == loop->until.index &&
                   insn->src[1].kind == OPERAND_REGISTER && insn->src[1].index == insn->dst.index));
            has_changed |= is_change;
            is_step[insn->dst.index] = true;
        }
        CHECK(has_changed || loop->until.kind == OPERAND_NONE);
    }
    return NULL;
}

/* One of the two passes of a repeat: elementwise, it stores all states and nothing else. */
static const char *check_inner(struct walk *of, const struct program_repeat *r, unsigned index)
{
    const struct program *p = of->program;
    struct walk w = {.program = p, .pass = &p->inner[index], .is_inner = true};
    const char *fault = NULL;
    CHECK(index < p->n_inner && w.pass->n_reductions == 0 && w.pass->repeats == 0);
    CHECK(w.pass->n_stores == r->n_states && w.pass->ndim == r->ndim);
    for (unsigned i = 0; fault == NULL && i < w.pass->n_insns; i++)
        fault = check_insn(&w, &p->insns[w.pass->first_insn + i]);
    for (unsigned i = 0; fault == NULL && i < w.pass->n_stores; i++) {
        CHECK(p->stores[w.pass->first_store + i].output == r->first_output + i);
        fault = check_store(&w, &p->stores[w.pass->first_store + i]);
    }
    if (fault != NULL)
        return fault;
    CHECK(w.inputs_used == w.pass->inputs_used && w.states_used == w.pass->states_used);
    CHECK(w.reduced_used == w.pass->reduced_used && w.tables_used == w.pass->tables_used);
    of->inputs_used |= w.inputs_used;
    of->reduced_used |= w.reduced_used;
    of->tables_used |= w.tables_used;
    return NULL;
}

static const char *check_repeat(struct walk *w, const struct program_repeat *r)
{
    CHECK(r->n_steps >= 1 && r->n_steps <= REPEAT_MAX_STEPS && r->place.column > 0);
    CHECK(r->first_output >= w->program->n_outputs);
    CHECK(r->first_output + r->n_states <= w->program->n_all_outputs);
    for (int i = 0; i < r->ndim; i++)
        CHECK(r->before[i] >= 0 && r->behind[i] >= 0);
    const char *fault = check_shape(w, r->ndim, r->shape);
    if (fault == NULL)
        fault = check_inner(w, r, r->begin);
    CHECK(fault != NULL || w->program->inner[r->begin].states_used == 0);
    return fault != NULL ? fault : check_inner(w, r, r->step);
}

static const char *check_pass(const struct program *p, unsigned index)
{
    struct walk w = {.program = p, .pass = &p->passes[index], .pass_index = index};
    const struct pass *pass = w.pass;
    const char *fault = NULL;
    CHECK(pass->ndim >= 0 && pass->ndim <= ARRAY_MAX_NDIM);
    CHECK(pass->n_registers <= PROGRAM_MAX_REGISTERS);
    CHECK(pass->n_reductions + pass->n_stores > 0);
    for (unsigned i = 0; fault == NULL && i < pass->n_insns; i++)
        fault = check_insn(&w, &p->insns[pass->first_insn + i]);
    for (unsigned i = 0; fault == NULL && i < pass->n_reductions; i++)
        fault = check_reduction(&w, &p->reductions[pass->first_reduction + i]);
    for (unsigned i = 0; fault == NULL && i < pass->n_stores; i++)
        fault = check_store(&w, &p->stores[pass->first_store + i]);
    if (fault == NULL)
        fault = check_loops(p, pass);
    for (uint32_t left = pass->repeats; fault == NULL && left != 0; left &= left - 1)
        fault = check_repeat(&w, &p->repeats[__builtin_ctz(left)]);
    if (fault == NULL) {
        CHECK(w.states_used == pass->states_used);
        CHECK(w.inputs_used == pass->inputs_used && w.reduced_used == pass->reduced_used);
        CHECK(w.tables_used == pass->tables_used && w.windows_used == pass->windows_used);
        CHECK(__builtin_popcountll(w.reduced_used) + __builtin_popcountll(w.tables_used) <=
              PASS_MAX_RESULTS);
        CHECK(pass->n_reductions <= PASS_MAX_REDUCTIONS && pass->scanned_axis < pass->ndim);
        CHECK((pass->reduced_axes == 0) == (pass->n_reductions == 0));
        fault = pass->repeats || pass->windows_used ? NULL : check_values(p, index);
    }
    return fault;
}

static const char *check_input_shape(const struct program_input *input, const struct array *array)
{
    CHECK(input->ndim == array->ndim && input->dtype == array->dtype);
    CHECK(!input->is_transposed || input->ndim >= 2);
    for (int i = 0; i < input->ndim; i++) {
        bool is_exchanged = input->is_transposed && i >= input->ndim - 2;
        int from = is_exchanged ? 2 * input->ndim - 3 - i : i;
        CHECK(input->shape[i] == array->shape[from]);
    }
    return NULL;
}

/* No pass reads it but those of products' operands. */
static bool is_of_operands(const struct program *p, unsigned input)
{
    uint64_t others = 0;
    for (unsigned i = 0; i < p->n_stages; i++)
        for (unsigned k = 0; k < p->stages[i].n_passes; k++)
            if (p->stages[i].kind == STAGE_PASS ||
                (p->stages[i].kind == STAGE_PRODUCT && k == PRODUCT_RESULT))
                others |= p->passes[p->stages[i].first_pass + k].inputs_used;
    return !(others >> input & 1);
}

static bool is_wide(const struct program_input *input)
{
    for (int i = 0; i < input->ndim; i++)
        if (input->around[i] > 0)
            return true;
    return false;
}

static const char *check_tables(const struct job_request *request, const struct program *p)
{
    CHECK(p->n_passes >= 1 && p->n_passes <= PROGRAM_MAX_PASSES);
    CHECK(p->n_insns <= PROGRAM_MAX_INSNS && p->n_consts <= PROGRAM_MAX_CONSTS);
    CHECK(p->n_reductions <= PROGRAM_MAX_REDUCTIONS);
    unsigned n_states = 0;
    for (unsigned i = 0; i < p->n_repeats; i++)
        n_states += p->repeats[i].n_states;
    CHECK(p->n_outputs == request->n_outputs && p->n_stores == p->n_all_outputs + n_states);
    CHECK(n_states <= PROGRAM_MAX_STATES && p->n_inner == 2 * p->n_repeats);
    unsigned n_insns = 0, n_loops = 0, n_reductions = 0, n_stores = 0;
    unsigned __int128 outputs = 0;
    unsigned n_slab_results = 0;
    for (unsigned i = 0; i < p->n_reductions; i++)
        n_slab_results += p->reductions[i].op == OP_MATMUL && program_slab_value(p, i) != NULL;
    for (unsigned i = 0; i < p->n_passes; i++) {
        CHECK(p->passes[i].first_insn == n_insns);
        CHECK(p->passes[i].first_loop == n_loops);
        CHECK(p->passes[i].first_reduction == n_reductions);
        CHECK(p->passes[i].first_store == n_stores);
        n_insns += p->passes[i].n_insns;
        n_loops += p->passes[i].n_loops;
        n_reductions += p->passes[i].n_reductions;
        n_stores += p->passes[i].n_stores;
    }
    for (unsigned i = 0; i < p->n_inner; i++) {
        CHECK(p->inner[i].first_insn == n_insns && p->inner[i].first_store == n_stores);
        CHECK(p->inner[i].first_loop == n_loops);
        n_insns += p->inner[i].n_insns;
        n_stores += p->inner[i].n_stores;
        n_loops += p->inner[i].n_loops;
    }
    for (unsigned i = p->n_passes; i < (unsigned)p->n_passes + p->n_windows; i++) {
        CHECK(p->passes[i].first_insn == n_insns && p->passes[i].first_store == n_stores);
        CHECK(p->passes[i].n_reductions == 0 && p->passes[i].n_stores == 1);
        n_insns += p->passes[i].n_insns;
        n_stores += p->passes[i].n_stores;
        n_loops += p->passes[i].n_loops;
    }
    CHECK(n_loops == p->n_loops && n_loops <= PROGRAM_MAX_LOOPS);
    CHECK(n_insns == p->n_insns && n_stores == p->n_stores);
    for (unsigned i = 0; i < p->n_stores; i++)
        outputs |= (unsigned __int128)1 << p->stores[i].output;
    CHECK(n_reductions + p->n_products + n_slab_results == p->n_reductions);
    CHECK(outputs == ((unsigned __int128)1 << p->n_all_outputs) - 1);
    CHECK(p->n_checks <= PROGRAM_MAX_CHECKS);
    for (unsigned i = 0; i < p->n_checks; i++) {
        int64_t shape[ARRAY_MAX_NDIM];
        CHECK(p->checks[i].reduction < p->n_reductions);
        bool is_index = p->checks[i].status == GAD_BAD_INDEX;
        CHECK(is_index || (p->checks[i].status == GAD_BAD_ARGUMENT && p->checks[i].limit == 1));
        CHECK(p->reductions[p->checks[i].reduction].result ==
              (is_index ? DTYPE_UINT64 : DTYPE_INT64));
        CHECK(program_reduction_shape(p, p->checks[i].reduction, shape) == 0);
        CHECK(p->checks[i].message[0] != '\0' && p->checks[i].argument[0] != '\0');
    }
    uint64_t used = 0;
    for (unsigned i = 0; i < p->n_passes; i++)
        used |= p->passes[i].inputs_used;
    for (unsigned i = p->n_inputs; i < program_all_inputs(p); i++)
        CHECK(p->inputs[i].is_state && p->inputs[i].arg >= p->n_outputs);
    for (unsigned i = 0; i < p->n_inputs; i++) {
        CHECK(used >> i & 1 && !p->inputs[i].is_state);
        CHECK(p->inputs[i].arg < request->n_args && !request->args[p->inputs[i].arg].is_scalar);
        const struct program_input *input = &p->inputs[i];
        CHECK(
            i == 0 || input->arg > input[-1].arg ||
            (input->arg == input[-1].arg && (!input->has_own || is_wide(input) ||
                                             (input->is_transposed && !input[-1].is_transposed))));
        CHECK(!input->is_transposed || is_of_operands(p, i));
        const char *fault = check_input_shape(input, &request->args[input->arg].array);
        if (fault != NULL)
            return fault;
    }
    return NULL;
}

/* The stages are all passes, in their order; the products are those of the stages, in theirs. */
static const char *check_stages(const struct program *p)
{
    unsigned n_passes = 0, n_products = 0, n_slabs = 0;
    for (unsigned i = 0; i < p->n_stages; i++) {
        const struct stage *stage = &p->stages[i];
        bool is_product = stage->kind == STAGE_PRODUCT;
        CHECK(stage->first_pass == n_passes);
        bool is_slab = stage->kind == STAGE_SLAB;
        CHECK(!is_slab || (p->slabs[stage->slab].first_pass == n_passes &&
                           p->slabs[stage->slab].n_passes == stage->n_passes));
        CHECK(is_slab || stage->n_passes == (is_product ? PRODUCT_N_PASSES : 1));
        n_slabs += is_slab;
        CHECK(!is_product || stage->product == n_products);
        n_passes += stage->n_passes;
        n_products += is_product;
    }
    CHECK(n_passes == p->n_passes && n_products == p->n_products && n_slabs == p->n_slabs);
    return NULL;
}

const char *program_validate(const struct job_request *request, const struct program *program)
{
    const char *fault = check_stages(program);
    if (fault == NULL)
        fault = check_tables(request, program);
    for (unsigned i = 0; fault == NULL && i < program->n_products; i++)
        fault = product_check(program, &program->products[i]);
    for (unsigned i = 0; fault == NULL && i < program->n_passes + program->n_windows; i++)
        fault = check_pass(program, i);
    return fault;
}
