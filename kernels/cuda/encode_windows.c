/* Windows that a device makes (device/window.inc): which, and of what.
 *
 * Each element of a window is made by a thread of its own, which looks at all that the window has
 * there, in the order in which the CPU engine joins them: so the bits are the same. That is no
 * longer worth it where they are very many. What the window is of is an input, as it is or cast
 * where no bit is lost that the CPU's cast keeps; anything else is computed before, with what lies
 * around the grain (tile_phases.c), with the windows that it reads itself.
 *
 * Called by the planner, encode.c and tile_window.c.
 */
#include "kernels/cuda/encode.h"

#include "kernels/op_costs.h"

#include <string.h>

/* Of integers, to what sums and means are made in; of float32 to float64. */
static bool is_exact_cast(enum dtype from, enum dtype to)
{
    if (dtype_is_float(from))
        return from == to || to == DTYPE_FLOAT64;
    return to == DTYPE_FLOAT64 || to == DTYPE_INT64 || to == DTYPE_UINT64;
}

static bool is_of_shape(const struct program_input *input, const struct pass *pass)
{
    return input->ndim == pass->ndim &&
           memcmp(input->shape, pass->shape, (size_t)pass->ndim * sizeof(pass->shape[0])) == 0;
}

const struct operand *encode_window_operand(const struct program *program,
                                            const struct program_window *window)
{
    const struct pass *pass = &program->passes[window->pass];
    const struct operand *stored = &program->stores[pass->first_store].src;
    const struct insn *insn = &program->insns[pass->first_insn];
    bool is_cast = pass->n_insns == 1 && insn->op == OP_CAST && stored->kind == OPERAND_REGISTER &&
                   is_exact_cast((enum dtype)insn->src[0].dtype, (enum dtype)window->dtype) &&
                   stored->dtype == window->dtype;
    if (pass->n_insns > 0 && !is_cast)
        return NULL;
    const struct operand *operand = is_cast ? &insn->src[0] : stored;
    if (operand->kind != OPERAND_INPUT || (!is_cast && operand->dtype != window->dtype) ||
        !is_of_shape(&program->inputs[operand->index], pass))
        return NULL;
    return operand;
}

const char *encode_no_window(const struct program *program, const struct program_window *window)
{
    const struct pass *pass = &program->passes[window->pass];
    unsigned n_axes = 0;
    for (int i = 0; i < pass->ndim; i++)
        n_axes += window->size[i] > 1;
    for (uint64_t left = pass->windows_used; left; left &= left - 1) {
        const char *why = encode_no_window(program, &program->windows[__builtin_ctzll(left)]);
        if (why)
            return why;
    }
    if (n_axes > CODE_WINDOW_AXES)
        return "windows along so many axes are computed on the CPU";
    uint64_t n_most = window->op == OP_WINDOW_RANK ? CODE_RANKED_ELEMENTS : CODE_WINDOW_ELEMENTS;
    return op_window_elements(window, pass->ndim) > n_most
               ? "windows of so many elements are computed on the CPU"
               : NULL;
}

enum code_window_kind encode_window_kind(const struct program_window *window)
{
    switch (window->op) {
    case OP_WINDOW_SUM: return CODE_WINDOW_SUM;
    case OP_WINDOW_MEAN: return CODE_WINDOW_MEAN;
    case OP_WINDOW_MIN: return CODE_WINDOW_MIN;
    case OP_WINDOW_MAX: return CODE_WINDOW_MAX;
    case OP_WINDOW_STD: return CODE_WINDOW_STD;
    case OP_CORRELATE: return CODE_WINDOW_CORRELATE;
    default: return CODE_WINDOW_RANK;
    }
}

unsigned encode_weights(const struct program *program, const struct encode_places *places,
                        unsigned n_places, uint64_t *weights)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_places; i++) {
        if (places->places[i].what != ENCODE_WINDOW)
            continue;
        const struct program_window *w = &program->windows[places->places[i].index];
        if (weights && w->n_weights > 0)
            memcpy(weights + n, program->weights + w->first_weight,
                   w->n_weights * sizeof(*weights));
        n += w->n_weights;
    }
    return n;
}
