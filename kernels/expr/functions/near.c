/* near: the element so far away, near(x, -1, 0) the one a row above.
 *
 * Near of an expression is the expression of what is near: near(f(a, b)) = f(near(a), near(b)). So
 * it ends at the arguments, each of which becomes an input with offsets of its own (program.h), and
 * a stencil is one pass. Along an axis of length 1, which broadcasts, an offset changes nothing.
 * With mode `constant` it is the expression that has the value beyond its ends, not the arguments:
 *
 *     near(f(a), 1, mode=constant, value=v) = where(index(-1) < n - 1, f(near(a, 1)), v)
 *
 * but of an argument itself the input has it, which is quicker.
 *
 * index() becomes the place of what is near, along the operand's axes; so do random numbers of a
 * size, which are made of their elements' numbers:
 *
 *     near(index(0), 1, 0) = minimum(index(-2) + 1, n - 1)
 *
 * What another pass makes is not there while this one runs, unless it is one number, or broadcasts
 * along the axes with offsets; how many random numbers without a size there are is not known. These
 * are refused, as are
 * offsets further than the mode says what is there, and near of near where both go beyond the same
 * ends: what the outer one finds there are the inner one's elements, which no single offset has.
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_OFFSET 3 /* among the children: behind x, mode and value */

struct near {
    struct lower l;
    int ndim;
    const int64_t *dims; /* of the operand */
    int64_t n_elements;
    struct near_shift shift;
    bool is_spread; /* of windows: nothing moves, but more is read around each element */
};

static int bad_offset(struct compiler *c, const struct ast_node *n, unsigned child)
{
    const struct value *v = types_child(c, n, child);
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, types_child_column(c, n, child),
                          "near: an offset must be an integer that is known here, as in "
                          "near(x, -1, 0)");
    error_expected(c->error, "an integer");
    error_found(c->error, "%s", v != NULL && v->kind == VALUE_NODE ? "an array" : "another number");
    return r;
}

static int bad_count(struct compiler *c, const struct ast_node *n, int ndim, unsigned found)
{
    int r = compiler_fail(c, GAD_BAD_ARITY, n->column,
                          "near takes an offset for each axis of its array, which has %d; %u given",
                          ndim, found);
    error_expected(c->error, "%d offset%s", ndim, ndim == 1 ? "" : "s");
    error_found(c->error, "%u", found);
    return r;
}

static int too_far(const struct near *k, unsigned child, int axis, __int128 offset, int64_t most)
{
    struct compiler *c = k->l.c;
    char text[64];
    int r = compiler_fail(c, GAD_BAD_SHAPE, types_child_column(c, k->l.n, child),
                          "near: axis %d has length %" PRId64 ", and mode '%s' says nothing of "
                          "what is so far beyond its ends",
                          axis, k->dims[axis], request_modes[k->shift.modes[axis]]);
    error_expected(c->error, "%" PRId64 " to %" PRId64, -most, most);
    error_found(c->error, "%s", scalar_format(offset, text));
    return r;
}

/* As struct program_input has it; *ret_is_beyond: nothing of the array is so near. */
static int set_offset(struct near *k, unsigned child, int axis, __int128 offset,
                      bool *ret_is_beyond)
{
    int64_t length = k->dims[axis], most = length;
    switch (k->shift.modes[axis]) {
    case NEAR_CONSTANT: *ret_is_beyond |= offset >= length || offset <= -length; break;
    case NEAR_EDGE: /* from there on there is one element */
        most = length - 1;
        offset = offset > most ? most : offset < -most ? -most : offset;
        break;
    case NEAR_WRAP:
        offset %= length;
        if (offset > length / 2 || offset < -(length / 2))
            offset += offset > 0 ? -length : length;
        break;
    default:
        most -= k->shift.modes[axis] == NEAR_REFLECT;
        if (length > 1 && (offset > most || offset < -most))
            return too_far(k, child, axis, offset, most);
    }
    if (*ret_is_beyond)
        return 0;
    k->shift.offsets[axis] = length == 1 ? 0 : (int64_t)offset;
    return 0;
}

static int read_offsets(struct near *k, bool *ret_is_beyond)
{
    struct compiler *c = k->l.c;
    const struct ast_node *n = k->l.n;
    unsigned n_given = n->n_children - FIRST_OFFSET;
    if (n_given != (unsigned)k->ndim)
        return bad_count(c, n, k->ndim, n_given);
    for (unsigned i = 0; i < n_given; i++) {
        const struct value *v = types_child(c, n, FIRST_OFFSET + i);
        if (v->kind != VALUE_INTEGER)
            return bad_offset(c, n, FIRST_OFFSET + i);
        if (k->dims[i] == 0 || v->integer == 0)
            continue;
        int r = set_offset(k, FIRST_OFFSET + i, (int)i, v->integer, ret_is_beyond);
        if (r)
            return r;
    }
    return 0;
}

int near_read_mode(struct compiler *c, const struct ast_node *n, enum dtype dtype,
                   unsigned *ret_mode, union scalar *ret_beyond)
{
    const struct ast_node *value = literals_find(c, n, "value");
    const char *name = op_info((enum op)n->op)->name;
    const struct request_beyond *of_job = &c->request->beyond;
    const bool is_own = value != NULL || literals_find(c, n, "mode") != NULL;
    const struct value otherwise = is_own ? (struct value){.kind = VALUE_INTEGER}
                                          : scalar_of_request(of_job->dtype, of_job->value);
    *ret_mode = of_job->mode;
    int r = literals_word(c, n, "mode", request_modes, NEAR_N_MODES, ret_mode);
    if (r != 0 || (value == NULL && *ret_mode != NEAR_CONSTANT))
        return r;
    if (*ret_mode != NEAR_CONSTANT) {
        r = compiler_fail(c, GAD_BAD_EXPRESSION, value->column,
                          "%s: 'value' is what lies beyond the ends with mode 'constant'", name);
        error_expected(c->error, "mode='constant'");
        error_found(c->error, "mode '%s'", request_modes[*ret_mode]);
        return r;
    }
    if (value != NULL && value->value.kind == VALUE_NODE) {
        r = compiler_fail(c, GAD_BAD_EXPRESSION, value->column,
                          "%s: 'value' must be a number that is known here", name);
        error_expected(c->error, "a number");
        error_found(c->error, "an array");
        return r;
    }
    const struct value *v = value != NULL ? &value->value : &otherwise;
    uint32_t column = value != NULL ? value->column : n->column;
    if (v->kind == VALUE_FLOAT && !dtype_is_float(dtype)) {
        r = compiler_fail(c, GAD_BAD_DTYPE, column, "%s: 'value' is no %s, which the elements are",
                          name, dtype_name(dtype));
        error_expected(c->error, "%s", dtype_name(dtype));
        error_found(c->error, "float64");
        return r;
    }
    return scalar_convert(c, column, v, dtype, ret_beyond);
}

/* ---- down to the arguments ---- */

static int refuse(const struct near *k, const char *of, const char *why, const char *expected)
{
    const char *name = op_info((enum op)k->l.n->op)->name;
    int r =
        compiler_fail(k->l.c, GAD_BAD_EXPRESSION, k->l.n->column, "%s of %s: %s", name, of, why);
    error_expected(k->l.c->error, "%s", expected);
    error_found(k->l.c->error, "%s of %s", name, of);
    return r;
}

/* Whether the node has other values along some axis that has an offset. */
static bool is_moved(const struct near *k, const struct shape *shape)
{
    for (int i = 0; i < shape->ndim; i++)
        if (shape->dims[i] > 1 && (k->shift.offsets[k->ndim - shape->ndim + i] != 0 ||
                                   k->shift.around[k->ndim - shape->ndim + i] != 0))
            return true;
    return false;
}

/* The offset along one axis of an input that is near already. */
static int join(const struct near *k, int64_t length, int64_t outer, uint8_t outer_mode,
                int64_t *offset, uint8_t *mode)
{
    if (outer == 0)
        return 0;
    if (*offset == 0) {
        *offset = outer;
        *mode = outer_mode;
        return 0;
    }
    int64_t sum = *offset + outer;
    bool is_edge = *mode == NEAR_EDGE && outer_mode == NEAR_EDGE && (*offset < 0) == (outer < 0);
    if (!is_edge && (*mode != NEAR_WRAP || outer_mode != NEAR_WRAP))
        return refuse(k, "near", "both go beyond the ends of one axis",
                      "near of what is stored, one near with the sum of the offsets, or "
                      "mode='wrap' of both");
    if (is_edge)
        sum = sum >= length ? length - 1 : sum <= -length ? 1 - length : sum;
    else if (sum > length / 2 || sum < -(length / 2))
        sum += sum > 0 ? -length : length;
    *offset = sum;
    *mode = sum == 0 ? NEAR_EDGE : *mode;
    return 0;
}

static int move_input(const struct near *k, uint16_t node, uint16_t *ret)
{
    const struct graph *g = &k->l.c->graph;
    const struct graph_node *n = &g->nodes[node];
    const struct shape *shape = &g->shapes[n->shape];
    struct near_shift shift = {.column = k->shift.column};
    bool is_constant = false, was_constant = false;
    if (k->is_spread && graph_is_state(n->arg))
        return refuse(k, "a repeat", "its steps are made for the elements themselves",
                      "it stored first, then the window of what is stored");
    if (n->is_transposed)
        return refuse(k, "a transposed argument", "it is read as it is", "it stored so");
    if (n->near != 0)
        shift = *g->shifts[n->near - 1];
    for (int i = 0; i < shape->ndim; i++) {
        int axis = k->ndim - shape->ndim + i;
        if (shape->dims[i] <= 1)
            continue;
        was_constant |= shift.offsets[i] != 0 && shift.modes[i] == NEAR_CONSTANT;
        int r = join(k, shape->dims[i], k->shift.offsets[axis], k->shift.modes[axis],
                     &shift.offsets[i], &shift.modes[i]);
        if (r)
            return r;
        is_constant |= k->shift.offsets[axis] != 0 && k->shift.modes[axis] == NEAR_CONSTANT;
        shift.around[i] += k->shift.around[axis]; /* each at most WINDOW_MAX_SIZE */
        shift.wraps_axes |= (k->shift.wraps_axes >> axis & 1) << i;
        shift.modes[i] = shift.offsets[i] == 0 ? 0 : shift.modes[i];
    }
    if (is_constant && was_constant && shift.beyond.u64 != k->shift.beyond.u64)
        return refuse(k, "near", "they have different values beyond the ends",
                      "near of what is stored, or one value");
    if (is_constant)
        shift.beyond = k->shift.beyond;
    return graph_near(k->l.c, node, &shift, ret);
}

/* ---- places ---- */

static uint16_t integer_node(struct lower *l, int64_t number)
{
    const struct value value = {.kind = VALUE_INTEGER, .integer = number};
    return lower_value(l, &value, DTYPE_INT64);
}

/* Where along an axis of the operand the element lies that is so near: index() of that place. */
static uint16_t place_along(struct lower *l, const struct near *k, int axis)
{
    int64_t offset = k->shift.offsets[axis], length = k->dims[axis];
    int64_t end = offset < 0 ? 0 : length - 1;
    enum op inwards = offset < 0 ? OP_MAXIMUM : OP_MINIMUM;
    uint16_t index = 0;
    if (l->r == 0)
        l->r = graph_index(l->c, l->n->column, axis - k->ndim, &index);
    if (offset == 0)
        return index;
    uint16_t at = lower_binary(l, OP_ADD, index, integer_node(l, offset));
    switch (k->shift.modes[axis]) {
    case NEAR_REFLECT:
        return lower_binary(l, inwards, at,
                            lower_binary(l, OP_SUBTRACT, integer_node(l, 2 * end), at));
    case NEAR_SYMMETRIC:
        end = offset < 0 ? -1 : 2 * length - 1;
        return lower_binary(l, inwards, at, lower_binary(l, OP_SUBTRACT, integer_node(l, end), at));
    case NEAR_WRAP: {
        uint16_t is_beyond = lower_binary(l, offset < 0 ? OP_LESS : OP_GREATER_EQUAL, at,
                                          integer_node(l, offset < 0 ? 0 : length));
        uint16_t other =
            lower_binary(l, OP_ADD, at, integer_node(l, offset < 0 ? length : -length));
        return lower_where(l, is_beyond, other, at);
    }
    default: return lower_binary(l, inwards, at, integer_node(l, end));
    }
}

/* The number of the element in C order, for a number of this shape. */
static uint16_t number_of_place(struct lower *l, const struct near *k, uint16_t shape)
{
    uint16_t number = 0;
    if (l->r == 0)
        l->r = graph_const(l->c, DTYPE_INT64, (union scalar){.i64 = 0}, shape, &number);
    for (int i = 0; i < k->ndim; i++)
        number = lower_binary(l, OP_ADD,
                              lower_binary(l, OP_MULTIPLY, number, integer_node(l, k->dims[i])),
                              place_along(l, k, i));
    return lower_cast(l, number, DTYPE_UINT64);
}

static int move_index(const struct near *k, uint16_t node, uint16_t *ret)
{
    const struct graph *g = &k->l.c->graph;
    const struct graph_node n = g->nodes[node];
    struct lower l = k->l;
    *ret = node;
    if (n.axis == INDEX_FLAT) {
        if (n.sized == NODE_NONE)
            return refuse(k, "random numbers", "how many there are follows from what they meet",
                          "size=(...) among the arguments of the random numbers");
        if (n.sized == SIZED_DIFFERENTLY || g->shapes[n.sized].n_elements != k->n_elements)
            return refuse(k, "random numbers", "they are fewer than the elements of the array",
                          "random numbers of the array's size");
        *ret = number_of_place(&l, k, n.shape);
        return l.r;
    }
    int64_t axis = n.axis < 0 ? n.axis + k->ndim : n.axis;
    if (axis >= 0 && axis < k->ndim)
        *ret = place_along(&l, k, (int)axis);
    return l.r;
}

static int move_node(const struct near *k, uint16_t node, const uint16_t *moved, uint16_t *ret)
{
    struct compiler *c = k->l.c;
    const struct graph_node n = c->graph.nodes[node];
    uint16_t src[3];
    *ret = node;
    switch (n.kind) {
    case NODE_INPUT: return move_input(k, node, ret);
    case NODE_CONST: return 0;
    case NODE_INSN:
        for (unsigned i = 0; i < n.n_src; i++)
            src[i] = i == 1 && graph_is_lookup((enum op)n.op) ? n.src[i] : moved[n.src[i]];
        return graph_remake(c, k->l.n->column, node, src, ret);
    case NODE_WINDOW:
        if (k->is_spread)
            return graph_window(c, k->l.n->column, c->graph.windows[n.window], moved[n.src[0]],
                                ret);
        return refuse(k, "a window", "it is made where the element itself is",
                      "the window with its origin, or it stored first");
    case NODE_INDEX: return k->is_spread ? 0 : move_index(k, node, ret);
    case NODE_SCAN: return graph_used_scan(c, k->l.n->column, (enum op)n.op);
    case NODE_STATE:
    case NODE_RESULT:
        return is_moved(k, &c->graph.shapes[n.shape])
                   ? refuse(k, "iterate", "each element has its own steps",
                            "it stored first, then near of what is stored")
                   : 0;
    default:
        if (!is_moved(k, &c->graph.shapes[n.shape]))
            return 0;
        return refuse(k, n.kind == NODE_PRODUCT ? "a matrix product" : "a reduction",
                      "that is made by another pass",
                      "it stored first, then near of what is stored");
    }
}

/* All that the operand is made of, sources first; what other passes make is not looked through. */
static int move_all(const struct near *k, uint16_t root, uint16_t *ret)
{
    struct compiler *c = k->l.c;
    if (c->moved == NULL)
        c->moved = arena_take(&c->arena, EXPR_MAX_NODES * sizeof(*c->moved));
    if (c->moved == NULL)
        return compiler_no_memory(c);
    uint16_t *moved = c->moved;
    memset(moved, 0xff, (root + 1u) * sizeof(*moved));
    c->n_steps += root / 4u;
    moved[root] = root;
    for (unsigned i = root + 1u; i-- > 0;) {
        const struct graph_node *n = &c->graph.nodes[i];
        bool has_sources = n->kind == NODE_INSN || n->kind == NODE_WINDOW;
        for (unsigned s = 0; moved[i] != NODE_NONE && has_sources && s < n->n_src; s++)
            if (s != 1 || n->kind != NODE_INSN ||
                !graph_is_lookup((enum op)n->op)) /* a table stays as it is */
                moved[n->src[s]] = n->src[s];
    }
    for (uint16_t i = 0; i <= root; i++) {
        int r = moved[i] == NODE_NONE ? 0 : move_node(k, i, moved, &moved[i]);
        if (r)
            return r;
    }
    *ret = moved[root];
    return 0;
}

int near_spread(struct compiler *c, const struct ast_node *n, uint16_t node,
                const struct near_shift *around, uint16_t *ret)
{
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[node].shape];
    const struct near k = {.l = {c, n, 0},
                           .ndim = shape->ndim,
                           .dims = shape->dims,
                           .shift = *around,
                           .is_spread = true};
    return move_all(&k, node, ret);
}

/* ---- constant ---- */

/* Where what is so near along the axis is inside. */
static uint16_t is_inside(struct lower *l, int axis_from_end, int64_t offset, int64_t length)
{
    uint16_t index = 0;
    if (l->r == 0)
        l->r = graph_index(l->c, l->n->column, -axis_from_end, &index);
    struct value limit = {.kind = VALUE_INTEGER, .integer = offset > 0 ? length - offset : -offset};
    return lower_binary(l, offset > 0 ? OP_LESS : OP_GREATER_EQUAL, index,
                        lower_value(l, &limit, DTYPE_INT64));
}

static uint16_t constant_beyond(struct near *k, uint16_t node)
{
    struct lower *l = &k->l;
    enum dtype dtype = types_of_node(l->c, node);
    struct near_shift wanted = k->shift;
    uint16_t inside = NODE_NONE, value = 0, moved = 0;
    memset(k->shift.modes, NEAR_EDGE, sizeof(k->shift.modes));
    if (l->r == 0)
        l->r = move_all(k, node, &moved);
    for (int i = 0; i < k->ndim; i++) {
        if (wanted.offsets[i] == 0)
            continue;
        uint16_t one = is_inside(l, k->ndim - i, wanted.offsets[i], k->dims[i]);
        inside = inside == NODE_NONE ? one : lower_binary(l, OP_BITWISE_AND, inside, one);
    }
    if (l->r != 0 || inside == NODE_NONE)
        return moved;
    l->r = graph_const(l->c, dtype, wanted.beyond, 0, &value);
    return lower_where(l, inside, moved, value);
}

int near_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
               struct value *ret)
{
    struct near k = {.l = {c, n, 0}, .shift = {.column = compiler_keep_column(c, n->column)}};
    bool is_beyond = false;
    uint16_t node, moved = 0;
    unsigned mode;
    int r = types_as_node(c, types_child_column(c, n, 0), &args[0], &node);
    if (r)
        return r;
    const struct graph_node operand = c->graph.nodes[node];
    const struct shape shape = c->graph.shapes[operand.shape];
    k.ndim = shape.ndim;
    k.dims = shape.dims;
    k.n_elements = shape.n_elements;
    if (operand.kind == NODE_SCAN)
        return graph_used_scan(c, n->column, (enum op)operand.op);
    r = near_read_mode(c, n, types_of_node(c, node), &mode, &k.shift.beyond);
    memset(k.shift.modes, (int)mode, (size_t)shape.ndim);
    if (r == 0)
        r = read_offsets(&k, &is_beyond);
    if (r)
        return r;
    if (is_beyond)
        k.l.r = graph_const(c, (enum dtype)operand.dtype, k.shift.beyond, operand.shape, &moved);
    else if (mode == NEAR_CONSTANT && operand.kind != NODE_INPUT)
        moved = constant_beyond(&k, node);
    else
        k.l.r = move_all(&k, node, &moved);
    return lower_finish(&k.l, moved, ret);
}
