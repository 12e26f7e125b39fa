/* searchsorted, digitize, take: elements of one array looked up in another, which has one axis.
 *
 *     searchsorted(a, v)   SEARCH_LEFT of v in the table a
 *     digitize(x, bins)    SEARCH_RIGHT of x in the table bins, or in the table of them reversed
 *     take(a, indices)     TAKE of indices in the table a
 *
 * An array becomes a table in a pass of its own (graph_table), cast to what is searched in: int64,
 * uint64 or float64. Whether bins grow or fall is found while the job runs; that they do one of the
 * two is checked then, as it is that indices are in their bounds.
 *
 * Called by rules.c, and for take by integers.c and histograms.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include <inttypes.h>
#include <stdio.h>

int lookups_length(struct compiler *c, const struct ast_node *n, uint16_t node, const char *name,
                   int64_t *ret)
{
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[node].shape];
    char text[96];
    if (c->graph.nodes[node].kind == NODE_SCAN)
        return graph_used_scan(c, n->column, (enum op)c->graph.nodes[node].op);
    if (shape->ndim == 1) {
        *ret = shape->dims[0];
        return 0;
    }
    array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
    int r =
        compiler_fail(c, GAD_BAD_SHAPE, n->column, "%s: '%s' must have one axis, not shape %s%s",
                      op_info((enum op)n->op)->name, name, text,
                      n->op == OP_TAKE ? "; arguments are picked from along any, as in "
                                         "take(x, i, axis=1), where both are arguments"
                                       : "");
    error_expected(c->error, "one axis");
    error_found(c->error, "%s", text);
    return r;
}

/* Of 64 bits, that all values of the dtype are in. */
static enum dtype widest(enum dtype d)
{
    if (dtype_is_float(d))
        return DTYPE_FLOAT64;
    return d == DTYPE_UINT64 ? d : DTYPE_INT64;
}

static uint16_t integer(struct lower *l, int64_t value)
{
    return lower_value(l, &(struct value){.kind = VALUE_INTEGER, .integer = value}, DTYPE_INT64);
}

/* As many zeros as x has elements. */
static uint16_t zeros(struct lower *l, uint16_t x, enum dtype dtype)
{
    const struct graph_node *n = &l->c->graph.nodes[x];
    uint16_t node = 0;
    if (l->r != 0)
        return node;
    if (n->is_free) {
        x = lower_cast(l, x, DTYPE_INT64);
        return lower_cast(l, lower_binary(l, OP_SUBTRACT, x, x), dtype);
    }
    l->r = graph_const(l->c, dtype, (union scalar){.u64 = 0}, n->shape, &node);
    return node;
}

static int not_supported(struct compiler *c, const struct ast_node *n, const char *keyword,
                         const char *instead)
{
    const struct ast_node *given = literals_find(c, n, keyword);
    if (given == NULL)
        return 0;
    int r =
        compiler_fail(c, GAD_BAD_EXPRESSION, given->column, "%s: '%s' can only be None here; %s",
                      op_info((enum op)n->op)->name, keyword, instead);
    error_expected(c->error, "None");
    return r;
}

/* ---- searchsorted ---- */

static int type_searchsorted(struct compiler *c, const struct ast_node *n, const struct value *args,
                             struct value *ret)
{
    static const char *const sides[] = {"left", "right"};
    struct lower l = {c, n, 0};
    unsigned side = 0;
    uint16_t a = 0, v = 0;
    int64_t length;
    int r = not_supported(c, n, "sorter", "write searchsorted(take(a, sorter), v)");
    if (r == 0)
        r = literals_word(c, n, "side", sides, ARRAY_LENGTH(sides), &side);
    if (r == 0)
        r = types_as_node(c, types_child_column(c, n, 0), &args[0], &a);
    if (r == 0)
        r = lookups_length(c, n, a, "a", &length);
    if (r == 0)
        r = types_as_node(c, types_child_column(c, n, 1), &args[1], &v);
    if (r)
        return r;
    if (length == 0)
        return lower_finish(&l, zeros(&l, v, DTYPE_INT64), ret);
    enum dtype d = widest(dtype_promote(types_of_node(c, a), types_of_node(c, v)));
    uint16_t table = lower_table(&l, lower_cast(&l, a, d), length);
    enum op op = side == 0 ? OP_SEARCH_LEFT : OP_SEARCH_RIGHT;
    return lower_finish(&l, lower_lookup(&l, op, lower_cast(&l, v, d), table), ret);
}

/* ---- digitize ---- */

/* How many neighbours of the table, of n pairs, compare so; one number. */
static uint16_t count_pairs(struct lower *l, enum op op, uint16_t table, int64_t n_pairs)
{
    uint16_t index = 0, over = 0, node = 0;
    if (l->r == 0)
        l->r = graph_index(l->c, l->n->column, -1, &index);
    if (l->r == 0)
        l->r = graph_shape(l->c, 0, 1, &n_pairs, false, &over);
    uint16_t first = lower_lookup(l, OP_TAKE, index, table);
    uint16_t second =
        lower_lookup(l, OP_TAKE, lower_binary(l, OP_ADD, index, integer(l, 1)), table);
    uint16_t is_so = lower_binary(l, op, first, second);
    if (l->r == 0)
        l->r = graph_reduce_over(l->c, OP_COUNT_NONZERO, DTYPE_INT64, is_so, over, 1, false, &node);
    return node;
}

/* Bins that fall are searched from their end. */
static uint16_t digitize_either(struct lower *l, enum op op, uint16_t x, uint16_t table,
                                int64_t length)
{
    uint16_t index = 0, n_falls = count_pairs(l, OP_GREATER, table, length - 1);
    uint16_t n_rises = count_pairs(l, OP_LESS, table, length - 1);
    uint16_t is_falling = lower_cast(l, n_falls, DTYPE_BOOL);
    uint16_t is_both =
        lower_binary(l, OP_BITWISE_AND, is_falling, lower_cast(l, n_rises, DTYPE_BOOL));
    if (l->r == 0)
        l->r = checks_add(l->c, l->n, is_both, 0, "the bins must grow, or fall, all the way",
                          "bins in ascending or descending order", "array of bins in no order");
    if (l->r == 0)
        l->r = graph_index(l->c, l->n->column, -1, &index);
    uint16_t reversed = lower_binary(l, OP_SUBTRACT, integer(l, length - 1), index);
    index = lower_where(l, is_falling, reversed, index);
    table = lower_table(l, lower_lookup(l, OP_TAKE, index, table), length);
    uint16_t found = lower_lookup(l, op, x, table);
    uint16_t rest = lower_binary(l, OP_SUBTRACT, integer(l, length), found);
    return lower_where(l, is_falling, rest, found);
}

static int type_digitize(struct compiler *c, const struct ast_node *n, const struct value *args,
                         struct value *ret)
{
    struct lower l = {c, n, 0};
    uint16_t x = 0, bins = 0;
    int64_t length;
    bool is_right = false;
    int r = literals_flag(c, n, "right", &is_right);
    if (r == 0)
        r = types_as_node(c, types_child_column(c, n, 0), &args[0], &x);
    if (r == 0)
        r = types_as_node(c, types_child_column(c, n, 1), &args[1], &bins);
    if (r == 0)
        r = lookups_length(c, n, bins, "bins", &length);
    if (r)
        return r;
    if (length == 0)
        return lower_finish(&l, zeros(&l, x, DTYPE_INT64), ret);
    enum dtype d = widest(dtype_promote(types_of_node(c, x), types_of_node(c, bins)));
    enum op op = is_right ? OP_SEARCH_LEFT : OP_SEARCH_RIGHT;
    uint16_t table = lower_table(&l, lower_cast(&l, bins, d), length);
    x = lower_cast(&l, x, d);
    uint16_t found =
        length == 1 ? lower_lookup(&l, op, x, table) : digitize_either(&l, op, x, table, length);
    return lower_finish(&l, found, ret);
}

/* ---- take ---- */

uint16_t lookups_take(struct lower *l, uint16_t array, uint16_t index)
{
    if (l->r != 0)
        return 0;
    const struct graph_node *n = &l->c->graph.nodes[array];
    return lower_lookup(l, OP_TAKE, index,
                        lower_table(l, array, l->c->graph.shapes[n->shape].dims[0]));
}

/* A comparison of the indices as they were given with a number. */
static uint16_t compare(struct lower *l, enum op op, uint16_t index, int64_t number)
{
    struct value args[2] = {{.kind = VALUE_NODE, .node = index},
                            {.kind = VALUE_INTEGER, .integer = number}};
    struct value result = {.kind = VALUE_NODE};
    if (l->r == 0)
        l->r = rules_lower(l->c, l->n, op, 2, args, &result);
    return result.node;
}

static bool may_be_negative(const struct lower *l, uint16_t index)
{
    return dtype_is_signed(types_of_node(l->c, index));
}

/* Whether no index of the dtype, an integer, can be outside. */
static bool has_all(enum dtype dtype, int64_t length)
{
    unsigned n_bits = 8 * (unsigned)dtype_size(dtype) - dtype_is_signed(dtype);
    return n_bits < 63 && INT64_C(1) << n_bits <= length;
}

/* Of index() alone the shape is not known here, so not which there are. */
static int free_indices(struct compiler *c, const struct ast_node *n)
{
    int r = compiler_fail(c, GAD_BAD_SHAPE, types_child_column(c, n, 1),
                          "take: how many indices there are follows from what they meet, so that "
                          "none can be told to be outside");
    error_expected(c->error, "mode=clip or mode=wrap, or indices that have a shape");
    error_found(c->error, "index() of any array");
    return r;
}

/* From -length on; those below 0 count from the end. What is still below 0 then is, without its
 * sign, beyond any length. */
static uint16_t raise_index(struct lower *l, uint16_t given, int64_t length)
{
    enum dtype dtype = types_of_node(l->c, given);
    uint16_t index = lower_cast(l, given, DTYPE_INT64);
    bool is_signed = may_be_negative(l, given);
    if (is_signed) {
        uint16_t from_end = lower_binary(l, OP_ADD, index, integer(l, length));
        index = lower_where(l, compare(l, OP_LESS, given, 0), from_end, index);
    }
    uint16_t place = lower_cast(l, is_signed ? index : given, DTYPE_UINT64);
    if (l->r == 0 && !has_all(dtype, length) && l->c->graph.nodes[given].is_free)
        l->r = free_indices(l->c, l->n);
    else if (l->r == 0 && !has_all(dtype, length))
        l->r = checks_add_indices(l->c, l->n, place, l->c->graph.nodes[given].shape, is_signed,
                                  length);
    return index;
}

/* Of uint64 more than int64 holds is beyond the end. */
static uint16_t clip_index(struct lower *l, uint16_t given, int64_t length)
{
    uint16_t index = lower_cast(l, given, DTYPE_INT64), last = integer(l, length - 1);
    index = lower_where(l, compare(l, OP_GREATER_EQUAL, given, length), last, index);
    if (!may_be_negative(l, given))
        return index;
    return lower_where(l, compare(l, OP_LESS, given, 0), integer(l, 0), index);
}

/* uint64 in its own dtype: all of its values have a remainder. */
static uint16_t wrap_index(struct lower *l, uint16_t given, int64_t length)
{
    enum dtype d = widest(types_of_node(l->c, given));
    struct value n = {.kind = VALUE_INTEGER, .integer = length};
    uint16_t index = lower_binary(l, OP_REMAINDER, lower_cast(l, given, d), lower_value(l, &n, d));
    return lower_cast(l, index, DTYPE_INT64);
}

static int no_axis(struct compiler *c, const struct ast_node *n)
{
    const struct ast_node *given = literals_find(c, n, "axis");
    char text[64];
    __int128 axis;
    int r = given != NULL ? literals_integer(c, n, "axis", &axis) : 0;
    if (r != 0 || given == NULL || axis == 0 || axis == -1)
        return r;
    r = compiler_fail(c, GAD_BAD_SHAPE, given->column, "take: axis %s of an array of one axis",
                      scalar_format(axis, text));
    error_expected(c->error, "0 or -1");
    error_found(c->error, "%s", text);
    return r;
}

static int take_of_none(struct lower *l, uint16_t a, uint16_t indices, struct value *ret)
{
    const struct graph_node *n = &l->c->graph.nodes[indices];
    if (l->c->graph.shapes[n->shape].n_elements == 0)
        return lower_finish(l, zeros(l, indices, types_of_node(l->c, a)), ret);
    int r = compiler_fail(l->c, GAD_BAD_INDEX, l->n->column, "take: there is nothing to take from");
    error_expected(l->c->error, "an array with elements, or no indices");
    error_found(l->c->error, "shape (0,)");
    return r;
}

static int type_take(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    static const char *const modes[] = {"raise", "wrap", "clip"};
    struct lower l = {c, n, 0};
    uint16_t a = 0, given = 0, index;
    unsigned mode = 0;
    int64_t length;
    int r = literals_word(c, n, "mode", modes, ARRAY_LENGTH(modes), &mode);
    if (r == 0)
        r = types_as_node(c, types_child_column(c, n, 0), &args[0], &a);
    if (r == 0)
        r = lookups_length(c, n, a, "a", &length);
    if (r == 0)
        r = no_axis(c, n);
    if (r == 0)
        r = types_as_node(c, types_child_column(c, n, 1), &args[1], &given);
    if (r)
        return r;
    if (dtype_is_float(types_of_node(c, given)))
        return rules_bad_dtype(c, n, types_of_node(c, given), "integers",
                               "needs integers as its indices");
    if (length == 0)
        return take_of_none(&l, a, given, ret);
    if (types_of_node(c, given) == DTYPE_BOOL)
        given = lower_cast(&l, given, DTYPE_INT64);
    if (mode == 0)
        index = raise_index(&l, given, length);
    else if (mode == 2)
        index = clip_index(&l, given, length);
    else
        index = wrap_index(&l, given, length);
    return lower_finish(&l, lookups_take(&l, a, index), ret);
}

int lookups_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                  struct value *ret)
{
    switch (n->op) {
    case OP_SEARCHSORTED: return type_searchsorted(c, n, args, ret);
    case OP_DIGITIZE: return type_digitize(c, n, args, ret);
    default: return type_take(c, n, args, ret);
    }
}
