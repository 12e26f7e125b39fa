/* Moving windows: window_mean and its like, correlate and convolve.
 *
 *     window_mean(u, 5, axis=0)                      of the element, two before it and two behind
 *     window_max(u, (3, 5))                          3 along the first axis, 5 along the second
 *     correlate(u, [[0, 1, 0], [1, -4, 1], [0, 1, 0]], mode=constant)
 *
 * At each place a window has `size` elements along each of its axes, as
 * numpy.lib.stride_tricks.sliding_window_view has of the array padded by numpy.pad with the same
 * mode: size // 2 elements lie before the place itself, `origin` more where that is given (SciPy's
 * ndimage has the same). Beyond its ends an axis goes on as the mode says, however large the
 * window: with reflect, symmetric and wrap again and again.
 *
 * The result is of the dtype of NumPy's function of the window: sums of integers and bools are
 * 64-bit, their means, standard deviations and medians float64. Kernels of integers take integers
 * to such sums, kernels with other numbers take them to float64; arrays of floats keep their dtype.
 *
 * The operand is any expression; it is computed with what lies around each place (struct
 * program_window), so that each of its arguments is read so. What another pass makes is the same
 * everywhere along the window's axes, or is refused, as of near().
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include <inttypes.h>
#include <string.h>

struct moving {
    struct lower l;
    struct shape shape; /* of the operand */
    unsigned n_axes;
    int axes[ARRAY_MAX_NDIM]; /* in the order in which they are written */
    bool has_floats;          /* among the kernel's numbers */
    unsigned kernel_ndim;
    int64_t kernel_shape[ARRAY_MAX_NDIM];
    const struct ast_node **numbers; /* the kernel's, in C order */
    struct window window;
};

static const char *name_of(const struct moving *m)
{
    return op_info((enum op)m->l.n->op)->name;
}

static bool is_kernel(const struct ast_node *n)
{
    return n->op == OP_CORRELATE || n->op == OP_CONVOLVE;
}

/* ---- axes, sizes ---- */

static int bad_axis(const struct moving *m, uint32_t column, __int128 axis, bool is_twice)
{
    struct compiler *c = m->l.c;
    char text[96], number[64];
    array_format_shape(m->shape.ndim, m->shape.dims, text, sizeof(text));
    int r = is_twice ? compiler_fail(c, GAD_BAD_SHAPE, column, "%s: axis %s is given twice",
                                     name_of(m), scalar_format(axis, number))
                     : compiler_fail(c, GAD_BAD_SHAPE, column,
                                     "%s: axis %s is out of range for shape %s", name_of(m),
                                     scalar_format(axis, number), text);
    error_expected(c->error, "different axes from %d to %d", -m->shape.ndim, m->shape.ndim - 1);
    error_found(c->error, "%s", scalar_format(axis, number));
    return r;
}

static int read_axes(struct moving *m)
{
    const struct ast_node *given = literals_find(m->l.c, m->l.n, "axis");
    __int128 axes[ARRAY_MAX_NDIM];
    uint32_t seen = 0;
    bool is_tuple;
    m->n_axes = (unsigned)m->shape.ndim;
    for (int i = 0; i < m->shape.ndim; i++)
        m->axes[i] = i;
    if (given == NULL)
        return 0;
    int r = literals_integers(m->l.c, m->l.n, "axis", axes, &m->n_axes, &is_tuple);
    for (unsigned i = 0; r == 0 && i < m->n_axes; i++) {
        if (axes[i] < -m->shape.ndim || axes[i] >= m->shape.ndim)
            return bad_axis(m, given->column, axes[i], false);
        m->axes[i] = (int)axes[i] + (axes[i] < 0 ? m->shape.ndim : 0);
        if (seen >> m->axes[i] & 1)
            return bad_axis(m, given->column, axes[i], true);
        seen |= UINT32_C(1) << m->axes[i];
    }
    return r;
}

/* One integer for each axis, or one for all. */
static int read_for_axes(const struct moving *m, const char *keyword, __int128 *ret)
{
    struct compiler *c = m->l.c;
    bool is_tuple;
    unsigned n;
    int r = literals_integers(c, m->l.n, keyword, ret, &n, &is_tuple);
    if (r)
        return r;
    for (unsigned i = 1; !is_tuple && i < m->n_axes; i++)
        ret[i] = ret[0];
    if (!is_tuple || n == m->n_axes)
        return 0;
    r = compiler_fail(c, GAD_BAD_SHAPE, literals_find(c, m->l.n, keyword)->column,
                      "%s: '%s' has %u numbers, and the window %u ax%s", name_of(m), keyword, n,
                      m->n_axes, m->n_axes == 1 ? "is" : "es");
    error_expected(c->error, "one integer, or %u of them", m->n_axes);
    error_found(c->error, "%u", n);
    return r;
}

static int bad_size(const struct moving *m, uint32_t column, __int128 size)
{
    char number[64];
    int r = compiler_fail(m->l.c, size < 1 ? GAD_BAD_SHAPE : GAD_LIMIT_EXCEEDED, column,
                          size < 1 ? "%s: a window has at least one element along each axis"
                                   : "%s: so large a window is not computed",
                          name_of(m));
    error_expected(m->l.c->error, "a size from 1 to %d", WINDOW_MAX_SIZE);
    error_found(m->l.c->error, "%s", scalar_format(size, number));
    return r;
}

static int read_sizes(struct moving *m)
{
    const struct ast_node *given = literals_find(m->l.c, m->l.n, "size");
    __int128 sizes[ARRAY_MAX_NDIM];
    int r = read_for_axes(m, "size", sizes);
    for (unsigned i = 0; r == 0 && i < m->n_axes; i++) {
        if (sizes[i] < 1 || sizes[i] > WINDOW_MAX_SIZE)
            return bad_size(m, given->column, sizes[i]);
        m->window.program.size[m->axes[i]] = (int64_t)sizes[i];
    }
    return r;
}

/* Of a convolution the kernel is turned around, and with it what lies before the place. */
static int read_origins(struct moving *m)
{
    const struct ast_node *given = literals_find(m->l.c, m->l.n, "origin");
    struct program_window *w = &m->window.program;
    __int128 origins[ARRAY_MAX_NDIM] = {0};
    bool is_turned = m->l.n->op == OP_CONVOLVE;
    int r = given != NULL ? read_for_axes(m, "origin", origins) : 0;
    for (unsigned i = 0; r == 0 && i < m->n_axes; i++) {
        int64_t size = w->size[m->axes[i]];
        __int128 before = is_turned ? (size - 1) / 2 - origins[i] : size / 2 + origins[i];
        char number[64];
        if (before >= 0 && before < size) {
            w->before[m->axes[i]] = (int64_t)before;
            continue;
        }
        r = compiler_fail(m->l.c, GAD_BAD_EXPRESSION, given->column,
                          "%s: with this origin the window does not have the place itself",
                          name_of(m));
        error_expected(m->l.c->error, "an origin from %" PRId64 " to %" PRId64,
                       is_turned ? (size - 1) / 2 - size + 1 : -(size / 2),
                       is_turned ? (size - 1) / 2 : size - 1 - size / 2);
        error_found(m->l.c->error, "%s", scalar_format(origins[i], number));
    }
    return r;
}

/* ---- kernels ---- */

static int bad_kernel(const struct moving *m, const struct ast_node *at, const char *why,
                      const char *found)
{
    int r = compiler_fail(m->l.c, GAD_BAD_EXPRESSION, at->column, "%s: %s", name_of(m), why);
    error_expected(m->l.c->error, "lists of numbers that are known here, as in [1, 2, 1]");
    error_found(m->l.c->error, "%s", found);
    return r;
}

/* Lists of one depth are equally long. */
static int check_list(struct moving *m, const struct ast_node *list, unsigned depth)
{
    if (depth == ARRAY_MAX_NDIM)
        return bad_kernel(m, list, "lists are nested too deeply", "more lists than axes");
    if (list->n_children == 0)
        return bad_kernel(m, list, "a kernel has at least one number", "an empty list");
    if (depth == m->kernel_ndim)
        m->kernel_shape[m->kernel_ndim++] = list->n_children;
    return m->kernel_shape[depth] == list->n_children
               ? 0
               : bad_kernel(m, list, "the lists of a kernel are equally long", "a shorter one");
}

static int add_weight(struct moving *m, const struct ast_node *number, unsigned depth)
{
    struct program_window *w = &m->window.program;
    if (number->value.kind == VALUE_NODE)
        return bad_kernel(m, number, "a kernel has numbers that are known here", "an array");
    if (depth == 0 || depth != m->kernel_ndim)
        return bad_kernel(m, number, "a kernel is a list, or equally long lists of lists",
                          "a number");
    if (w->n_weights == PROGRAM_MAX_WEIGHTS) {
        int r = compiler_fail(m->l.c, GAD_LIMIT_EXCEEDED, number->column, "%s: too large a kernel",
                              name_of(m));
        error_expected(m->l.c->error, "at most %d numbers", PROGRAM_MAX_WEIGHTS);
        return r;
    }
    m->has_floats |= number->value.kind == VALUE_FLOAT;
    m->numbers[w->n_weights++] = number;
    return 0;
}

static int read_list(struct moving *m, const struct ast_node *n, unsigned depth)
{
    if (n->kind != AST_TUPLE)
        return add_weight(m, n, depth);
    int r = check_list(m, n, depth);
    for (unsigned i = 0; r == 0 && i < n->n_children; i++)
        r = read_list(m, &m->l.c->ast.nodes[n->children[i]], depth + 1);
    return r;
}

/* Once the dtype is known in which the products are summed. Integers wrap there: of uint64 there
 * may be negative ones. */
static int set_weights(struct moving *m, enum dtype dtype)
{
    struct compiler *c = m->l.c;
    unsigned n = m->window.program.n_weights;
    union scalar *weights = arena_take(&c->arena, n * sizeof(*weights));
    if (weights == NULL)
        return compiler_no_memory(c);
    for (unsigned i = 0; i < n; i++) {
        const struct ast_node *number = m->numbers[m->l.n->op == OP_CONVOLVE ? n - 1 - i : i];
        const struct value *v = &number->value;
        bool is_negative = v->kind != VALUE_FLOAT && v->integer < 0;
        enum dtype as = dtype_is_float(dtype) ? DTYPE_FLOAT64 : is_negative ? DTYPE_INT64 : dtype;
        int r = scalar_convert(c, number->column, v, as, &weights[i]);
        if (r)
            return r;
    }
    m->window.weights = weights;
    return 0;
}

static int read_kernel(struct moving *m)
{
    struct compiler *c = m->l.c;
    const struct ast_node *given = literals_find(c, m->l.n, "kernel");
    m->numbers = arena_take(&c->arena, PROGRAM_MAX_WEIGHTS * sizeof(*m->numbers));
    if (m->numbers == NULL)
        return compiler_no_memory(c);
    int r = read_list(m, given, 0);
    if (r)
        return r;
    if (m->kernel_ndim != m->n_axes) {
        r = compiler_fail(c, GAD_BAD_SHAPE, given->column,
                          "%s: the kernel has %u ax%s, and goes along %u", name_of(m),
                          m->kernel_ndim, m->kernel_ndim == 1 ? "is" : "es", m->n_axes);
        error_expected(c->error, "axis=... with as many axes as the kernel has");
        error_found(c->error, "%u", m->n_axes);
        return r;
    }
    for (unsigned i = 0; i < m->n_axes; i++) {
        if (i > 0 && m->axes[i] < m->axes[i - 1])
            return bad_kernel(m, literals_find(c, m->l.n, "axis"),
                              "the axes of a kernel are in ascending order", "another order");
        m->window.program.size[m->axes[i]] = m->kernel_shape[i];
    }
    return 0;
}

/* ---- what is sought by its place ---- */

static int read_ranks(struct moving *m)
{
    struct compiler *c = m->l.c;
    struct program_window *w = &m->window.program;
    const struct ast_node *given = literals_find(c, m->l.n, "rank");
    int64_t n = 1;
    __int128 rank;
    char number[64];
    for (unsigned i = 0; i < m->n_axes; i++)
        n = mul_saturating_i64(n, w->size[m->axes[i]]);
    if (n > WINDOW_MAX_RANKED) {
        int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, literals_find(c, m->l.n, "size")->column,
                              "%s: too large a window", name_of(m));
        error_expected(c->error, "at most %d elements", WINDOW_MAX_RANKED);
        error_found(c->error, "%" PRId64, n);
        return r;
    }
    w->ranks[0] = (n - 1) / 2;
    w->ranks[1] = n / 2;
    if (m->l.n->op == OP_WINDOW_MEDIAN)
        return 0;
    int r = literals_integer(c, m->l.n, "rank", &rank);
    if (r)
        return r;
    if (rank < -n || rank >= n) {
        r = compiler_fail(c, GAD_BAD_EXPRESSION, given->column,
                          "%s: the window has no element at this place", name_of(m));
        error_expected(c->error, "%" PRId64 " to %" PRId64, -n, n - 1);
        error_found(c->error, "%s", scalar_format(rank, number));
        return r;
    }
    w->ranks[0] = w->ranks[1] = (int64_t)rank + (rank < 0 ? n : 0);
    return 0;
}

/* ---- the window ---- */

static enum dtype operand_dtype(const struct moving *m, enum dtype d)
{
    enum dtype wide = dtype_is_unsigned(d) ? DTYPE_UINT64 : DTYPE_INT64;
    if (dtype_is_float(d))
        return d;
    switch (m->l.n->op) {
    case OP_WINDOW_SUM: return wide;
    case OP_CORRELATE:
    case OP_CONVOLVE: return m->has_floats ? DTYPE_FLOAT64 : wide;
    case OP_WINDOW_MEAN:
    case OP_WINDOW_STD:
    case OP_WINDOW_MEDIAN: return DTYPE_FLOAT64;
    default: return d;
    }
}

static int read_window(struct moving *m)
{
    const struct ast_node *n = m->l.n;
    struct program_window *w = &m->window.program;
    w->op = n->op == OP_CONVOLVE        ? OP_CORRELATE
            : n->op == OP_WINDOW_MEDIAN ? OP_WINDOW_RANK
                                        : n->op;
    for (int i = 0; i < ARRAY_MAX_NDIM; i++)
        w->size[i] = 1;
    int r = read_axes(m);
    if (r == 0)
        r = is_kernel(n) ? read_kernel(m) : read_sizes(m);
    if (r == 0)
        r = read_origins(m);
    if (r == 0 && w->op == OP_WINDOW_RANK)
        r = read_ranks(m);
    return r;
}

/* As far as the window reaches along each axis that has several elements. */
static struct near_shift around_of(const struct moving *m)
{
    struct near_shift shift;
    memset(&shift, 0, sizeof(shift));
    shift.column = m->window.column;
    for (int i = 0; i < m->shape.ndim; i++) {
        if (m->shape.dims[i] <= 1)
            continue;
        shift.around[i] = window_around(&m->window.program, i);
        if (shift.around[i] > 0 && m->window.program.modes[i] == NEAR_WRAP)
            shift.wraps_axes |= UINT64_C(1) << i;
    }
    return shift;
}

static int no_axes(const struct moving *m)
{
    int r = compiler_fail(m->l.c, GAD_BAD_SHAPE, m->l.n->column,
                          "%s: a single number has no neighbours", name_of(m));
    error_expected(m->l.c->error, "an array with axes");
    error_found(m->l.c->error, "shape ()");
    return r;
}

int windows_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                  struct value *ret)
{
    struct moving m;
    uint16_t node, result = 0;
    unsigned mode = NEAR_EDGE;
    memset(&m, 0, sizeof(m));
    m.l = (struct lower){c, n, 0};
    m.window.column = compiler_keep_column(c, n->column);
    int r = types_as_node(c, types_child_column(c, n, 0), &args[0], &node);
    if (r)
        return r;
    if (c->graph.nodes[node].kind == NODE_SCAN)
        return graph_used_scan(c, n->column, (enum op)c->graph.nodes[node].op);
    m.shape = c->graph.shapes[c->graph.nodes[node].shape];
    if (m.shape.ndim == 0)
        return no_axes(&m);
    r = axes_check(c, node, &m.shape);
    if (r == 0)
        r = read_window(&m);
    if (r)
        return r;
    node = lower_cast(&m.l, node, operand_dtype(&m, types_of_node(c, node)));
    r = m.l.r;
    if (r == 0 && is_kernel(n))
        r = set_weights(&m, types_of_node(c, node));
    if (r)
        return r;
    r = near_read_mode(c, n, types_of_node(c, node), &mode, &m.window.program.beyond);
    memset(m.window.program.modes, (int)mode, sizeof(m.window.program.modes));
    const struct near_shift around = around_of(&m);
    if (r == 0)
        r = near_spread(c, n, node, &around, &node);
    if (r == 0)
        r = graph_window(c, n->column, &m.window, node, &result);
    m.l.r = r;
    return lower_finish(&m.l, result, ret);
}
