/* Random programs and layouts: what the compiler could make, more of it at a time than anybody
 * writes. The operations come from the list that the kernel runner checks. What depends on the sign
 * of a NaN is left out: that is nowhere promised.
 */
#include "tests/unit/kernels/cuda/random_program.h"

#include "tests/unit/kernels/cuda/reference.h"

#include <string.h>

#define MAX_CASES 2048

static struct check_case cases[MAX_CASES];
static unsigned n_cases;

static void note_case(struct check *c, const struct check_case *k)
{
    (void)c;
    if (k->is_exact && k->op != OP_SIGNBIT && k->op != OP_COPYSIGN && n_cases < MAX_CASES)
        cases[n_cases++] = *k;
}

static enum dtype random_dtype(void)
{
    return (enum dtype)check_below(DTYPE_COUNT);
}

static struct operand random_const(struct built *b, enum dtype dtype)
{
    union scalar value = {.u64 = 0};
    char item[8];
    check_fill(item, dtype, 1, false);
    switch (dtype) {
    case DTYPE_BOOL: value.u64 = item[0] != 0; break;
    case DTYPE_INT8: value.i64 = *(int8_t *)item; break;
    case DTYPE_FLOAT32:
    case DTYPE_UINT32: memcpy(&value, item, 4); break;
    case DTYPE_UINT8: value.u64 = *(uint8_t *)item; break;
    case DTYPE_INT16:
    case DTYPE_UINT16: memcpy(&value, item, 2); break;
    case DTYPE_INT32: memcpy(&value, item, 4); break;
    default: memcpy(&value, item, 8); break;
    }
    return built_const(b, dtype, value);
}

struct maker {
    struct built *b;
    unsigned n_inputs;
    int ndim;
    struct operand registers[PROGRAM_MAX_REGISTERS];
};

static struct operand random_input(struct maker *m, enum dtype dtype)
{
    struct built *b = m->b;
    unsigned n = b->program.n_inputs, first = n ? (unsigned)check_below(n) : 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned index = (first + i) % n;
        if (b->inputs[index].dtype == dtype && (check_below(2) || n >= m->n_inputs))
            return (struct operand){OPERAND_INPUT, (uint8_t)dtype, (uint16_t)index};
    }
    return n < m->n_inputs ? built_input(b, dtype) : random_const(b, dtype);
}

static struct operand random_source(struct maker *m, enum dtype dtype)
{
    unsigned first = (unsigned)check_below(PROGRAM_MAX_REGISTERS);
    for (unsigned i = 0; check_below(4) && i < PROGRAM_MAX_REGISTERS; i++) {
        const struct operand *reg = &m->registers[(first + i) % PROGRAM_MAX_REGISTERS];
        if (reg->kind == OPERAND_REGISTER && reg->dtype == dtype)
            return *reg;
    }
    if (dtype == DTYPE_INT64 && m->ndim > 0 && check_below(3) == 0)
        return (struct operand){OPERAND_INDEX, DTYPE_INT64,
                                (uint16_t)check_below((uint64_t)m->ndim)};
    if (check_below(6) == 0 && m->b->program.n_consts < PROGRAM_MAX_CONSTS / 2)
        return random_const(m->b, dtype);
    return random_input(m, dtype);
}

static void random_reduction(struct maker *m)
{
    static const enum op ops[] = {OP_SUM,    OP_PROD,   OP_MIN,           OP_MAX,
                                  OP_ARGMIN, OP_ARGMAX, OP_COUNT_NONZERO, OP_SQUARED_DEVIATIONS};
    struct operand src = random_source(m, random_dtype());
    enum dtype dtype = (enum dtype)src.dtype;
    enum op op = ops[check_below(dtype_is_float(dtype) ? 8 : 7)];
    built_reduction(m->b, op, reference_result(op, dtype), src);
}

void random_program(struct built *b, unsigned n_registers, unsigned n_insns, unsigned n_inputs,
                    int ndim)
{
    struct maker m = {.b = b, .n_inputs = n_inputs, .ndim = ndim};
    struct check unused = {.n_trials = 0};
    if (n_cases == 0)
        check_each_case(&unused, note_case);
    built_init(b);
    for (unsigned i = 0; i < n_insns; i++) {
        const struct check_case *k = &cases[check_below(n_cases)];
        while (k->op == OP_POWER && check_below(20) != 0) /* mostly of a negative exponent */
            k = &cases[check_below(n_cases)];
        struct operand src[3] = {{0}};
        for (unsigned j = 0; j < k->n_src; j++)
            src[j] = random_source(&m, k->src[j]);
        unsigned reg = (unsigned)check_below(n_registers);
        m.registers[reg] = built_insn(b, k->op, k->compute, k->result, reg, src[0], src[1], src[2]);
    }
    for (unsigned n = (unsigned)check_below(4); n > 0; n--)
        random_reduction(&m);
    b->program.passes[0].reduced_axes =
        ndim > 0 && b->program.n_reductions > 0 ? 1 + (uint32_t)check_below((1u << ndim) - 1) : 0;
    for (unsigned n = 1 + (unsigned)check_below(4); n > 0; n--)
        built_store(b, random_source(&m, random_dtype()));
}

void random_box(struct random_box *r, int ndim, uint64_t max_elements)
{
    memset(r, 0, sizeof(*r));
    r->n_elements = 1;
    for (int i = 0; i < ndim; i++) {
        uint64_t left = max_elements / r->n_elements;
        r->count[i] = 1 + (int64_t)check_below(i == ndim - 1 ? left : left < 40 ? left : 40);
        r->start[i] = (int64_t)check_below(1000);
        r->axis_order[i] = i;
        r->n_elements *= (uint64_t)r->count[i];
    }
    for (int i = ndim - 1; i > 0 && check_below(2); i--) {
        int j = (int)check_below((uint64_t)i + 1), axis = r->axis_order[i];
        r->axis_order[i] = r->axis_order[j];
        r->axis_order[j] = axis;
    }
    r->box = (struct engine_box){.ndim = ndim,
                                 .count = r->count,
                                 .axis_order = r->axis_order,
                                 .start = check_below(2) ? r->start : NULL};
}

uint64_t random_view(const struct random_box *r, enum dtype dtype, bool is_output,
                     struct engine_view *ret_view, int64_t *ret_base)
{
    int64_t item_bytes = (int64_t)dtype_size(dtype), extent = item_bytes, base = 0;
    bool is_plain = check_below(2), is_backwards = !is_plain && check_below(4) == 0;
    *ret_view = (struct engine_view){.is_swapped = check_below(5) == 0};
    for (int i = r->box.ndim - 1; i >= 0; i--) {
        int axis = is_backwards ? i : r->axis_order[i];
        int64_t stride = extent, count = r->count[axis];
        if (!is_plain && !is_output && check_below(4) == 0) {
            ret_view->strides[axis] = 0;
            continue;
        }
        if (!is_plain && check_below(6) == 0)
            stride += item_bytes * (int64_t)check_below(3);
        ret_view->strides[axis] = stride;
        extent = stride * count;
        if (!is_plain && !is_output && check_below(8) == 0) {
            ret_view->strides[axis] = -stride;
            base += stride * (count - 1);
        }
    }
    int64_t skipped = is_plain || check_below(2) ? 0 : item_bytes * (int64_t)check_below(9);
    *ret_base = base + skipped;
    return (uint64_t)(extent + skipped);
}
