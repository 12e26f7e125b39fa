/* The table of op_costs.def, and what a pass's instructions come to together.
 *
 * The estimate of a job's time takes the typical costs (kernels/plan/estimate.c). What a turn may
 * take at most is found from the worst ones: how many grains make a tile, whether a job is small
 * enough for the worker's main thread, how often a running pass asks whether it is to go on
 * (kernels/cpu/run/run.c).
 *
 * Called by the planner and the CPU engine.
 */
#include "kernels/op_costs.h"
#include "proto/util.h"

/* What is not an instruction but happens to every element of a strip, at its worst. */
#define MOVE_NS       4u  /* reading it strided and swapped, or writing it so */
#define REDUCE_NS     12u /* adding it to a sum, an extremum or its place */
#define BIN_NS        16u
#define LOOK_NS       1u /* of a KTH, at one bit of one key */
#define ROTATE_PER_NS 4u /* of a QR_R, columns for which an element is worked with */

static const struct op_cost costs[OP_COUNT] = {
#define COST(id, cpu, device, worst_float_ns, worst_integer_ns)                                    \
    [OP_##id] = {cpu, device, worst_float_ns, worst_integer_ns},
#include "kernels/op_costs.def"
#undef COST
};

const struct op_cost *op_cost(enum op op)
{
    return &costs[op];
}

unsigned op_worst_ns(enum op op, enum dtype compute)
{
    return dtype_is_float(compute) ? costs[op].worst_float_ns : costs[op].worst_integer_ns;
}

/* As many looks as bits, for every second place (kernels/cpu/run/kth.c). */
static uint64_t reductions_worst_ns(const struct program *program, const struct pass *pass)
{
    const struct reduction *first = &program->reductions[pass->first_reduction];
    uint64_t ns = 0;
    if (pass->n_reductions > 0 && first->op == OP_KTH)
        return LOOK_NS * ((pass->n_reductions + 1u) / 2) * 8 *
               dtype_size((enum dtype)first->src.dtype);
    for (unsigned i = 0; i < pass->n_reductions; i++)
        ns += first[i].op == OP_BINCOUNT ? BIN_NS
              : first[i].op == OP_QR_R   ? REDUCE_NS + first[i].n_bins / ROTATE_PER_NS
                                         : REDUCE_NS;
    return ns;
}

uint64_t op_pass_other_worst_ns(const struct program *program, const struct pass *pass)
{
    uint64_t n_moved = (uint64_t)__builtin_popcountll(pass->inputs_used) +
                       (uint64_t)__builtin_popcountll(pass->reduced_used) + pass->n_stores;
    return MOVE_NS * n_moved + reductions_worst_ns(program, pass);
}

static uint64_t own_worst_ns(const struct program *program, const struct pass *pass)
{
    uint64_t ns = op_pass_other_worst_ns(program, pass);
    for (unsigned i = 0; i < pass->n_insns; i++) {
        const struct insn *insn = &program->insns[pass->first_insn + i];
        ns += op_worst_ns((enum op)insn->op, (enum dtype)insn->compute) *
              program_n_times(program, pass->first_insn + i);
    }
    return ns;
}

uint64_t op_window_elements(const struct program_window *window, int ndim)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n = mul_saturating_i64(n, window->size[i]);
    return (uint64_t)n;
}

uint64_t op_window_taps(const struct program_window *window, int ndim)
{
    if (window->n_weights > 0)
        return window->n_weights;
    return window->op == OP_WINDOW_RANK ? op_window_elements(window, ndim) : 0;
}

/* For an element, and what its operand takes; what lies around a grain is not counted. */
static uint64_t window_worst_ns(const struct program *program, const struct program_window *window)
{
    const struct pass *pass = &program->passes[window->pass];
    uint64_t n_taps = op_window_taps(window, pass->ndim), ns = 0;
    for (int i = 0; i < pass->ndim && n_taps == 0; i++)
        ns += window->size[i] > 1 ? OP_WINDOW_STEP_WORST_NS : 0;
    ns += n_taps * (window->n_weights > 0 ? OP_WINDOW_TAP_WORST_NS : OP_WINDOW_PLACE_WORST_NS);
    return ns + op_pass_worst_ns(program, pass);
}

uint64_t op_pass_worst_ns(const struct program *program, const struct pass *pass)
{
    uint64_t ns = own_worst_ns(program, pass);
    for (uint64_t left = pass->windows_used; left; left &= left - 1)
        ns += window_worst_ns(program, &program->windows[__builtin_ctzll(left)]);
    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        const struct program_repeat *r = &program->repeats[__builtin_ctz(left)];
        ns += own_worst_ns(program, &program->inner[r->begin]) +
              r->n_steps * own_worst_ns(program, &program->inner[r->step]);
    }
    return ns;
}
