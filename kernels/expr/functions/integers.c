/* Random integers, choices and permutations.
 *
 *     integers(low, high, seed=1)   low + MULTIPLY_HIGH(RANDOM_U64(number, seed, stream), range)
 *
 * The range is high - low in 64 bits without a sign, and a product's upper half is spread over it
 * without rejecting any bits: no result is more likely than another by more than range / 2^64.
 * Bounds that are numbers must be in order and fit the dtype; of arrays each element gives `low`
 * where there is nothing between its bounds. choice() is integers() below n; without replacement it
 * is the first of a permutation, which has as many elements as it takes numbers. Of an array both
 * take elements by such numbers (lookups.c).
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/functions/random.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include <stdio.h>

static bool is_integer(const struct compiler *c, const struct value *v)
{
    return v->kind == VALUE_INTEGER ||
           (v->kind == VALUE_NODE && dtype_is_integer(types_of_node(c, v->node)));
}

/* Its value modulo 2^64. */
static uint16_t as_u64(struct draw *d, const struct value *v)
{
    if (v->kind != VALUE_NODE)
        return random_u64(d, (uint64_t)v->integer);
    return lower_cast(&d->l, v->node, DTYPE_UINT64);
}

static void dtype_bounds(enum dtype dtype, __int128 *ret_least, __int128 *ret_most)
{
    unsigned bits = (unsigned)dtype_size(dtype) * 8 - dtype_is_signed(dtype);
    *ret_most = ((__int128)1 << bits) - 1;
    *ret_least = dtype_is_signed(dtype) ? -*ret_most - 1 : 0;
}

static int bad_bounds(struct draw *d, enum dtype dtype, __int128 low, __int128 high)
{
    char range[64], a[64], b[64];
    struct compiler *c = d->l.c;
    const char *name = op_info((enum op)d->l.n->op)->name;
    int r;
    scalar_format(low, a);
    scalar_format(high, b);
    if (low >= high) {
        r = compiler_fail(c, GAD_BAD_EXPRESSION, d->l.n->column,
                          "%s: there is nothing from %s to below %s", name, a, b);
        error_expected(c->error, "low below high");
    } else {
        r = compiler_fail(c, GAD_BAD_EXPRESSION, d->l.n->column,
                          "%s: %s to below %s does not fit %s", name, a, b, dtype_name(dtype));
        error_expected(c->error, "%s", scalar_format_range(dtype, range));
    }
    error_found(c->error, "%s to below %s", a, b);
    return r;
}

/* The range, uint64; 0 stands for 2^64 where all bits are taken. high is beyond the last one. */
static int known_range(struct draw *d, enum dtype dtype, __int128 low, __int128 high, uint64_t *ret)
{
    __int128 least, most;
    dtype_bounds(dtype, &least, &most);
    *ret = (uint64_t)(high - low);
    if (low >= high || low < least || high - 1 > most)
        return bad_bounds(d, dtype, low, high);
    return 0;
}

/* Each element's: high - low, or 0 where that is less. */
static uint16_t array_range(struct draw *d, const struct value *low, const struct value *high,
                            bool has_end)
{
    struct value args[2] = {*high, *low}, is_range = {.kind = VALUE_NODE};
    uint16_t range = lower_binary(&d->l, OP_SUBTRACT, as_u64(d, high), as_u64(d, low));
    if (has_end)
        range = lower_binary(&d->l, OP_ADD, range, random_u64(d, 1));
    if (d->l.r == 0)
        d->l.r = rules_lower(d->l.c, d->l.n, has_end ? OP_GREATER_EQUAL : OP_GREATER, 2, args,
                             &is_range);
    return lower_where(&d->l, is_range.node, range, random_u64(d, 0));
}

/* low NODE_NONE: 0. */
static uint16_t spread(struct draw *d, uint16_t range, uint16_t low, enum dtype dtype)
{
    uint16_t src[2] = {random_bits(d, RANDOM_STREAM_INTEGERS, true), range};
    uint16_t node = random_step(d, OP_MULTIPLY_HIGH, DTYPE_UINT64, DTYPE_UINT64, 2, src);
    if (low != NODE_NONE)
        node = lower_binary(&d->l, OP_ADD, low, node);
    return lower_cast(&d->l, node, dtype);
}

static int make_known(struct draw *d, enum dtype dtype, __int128 low, __int128 high,
                      struct value *ret)
{
    uint64_t range;
    int r = known_range(d, dtype, low, high, &range);
    if (r)
        return r;
    uint16_t first = random_u64(d, (uint64_t)low);
    if (range == 0) {
        uint16_t bits = random_bits(d, RANDOM_STREAM_INTEGERS, true);
        bits = lower_binary(&d->l, OP_ADD, first, bits);
        return lower_finish(&d->l, lower_cast(&d->l, bits, dtype), ret);
    }
    return lower_finish(&d->l, spread(d, random_u64(d, range), low != 0 ? first : NODE_NONE, dtype),
                        ret);
}

static int make_integers(struct draw *d, const struct value *first, struct value *ret)
{
    static const struct value zero = {.kind = VALUE_INTEGER, .integer = 0};
    struct compiler *c = d->l.c;
    const struct ast_node *given = literals_find(c, d->l.n, "high");
    const struct value *low = given != NULL ? first : &zero;
    const struct value *high = given != NULL ? &given->value : first;
    enum dtype dtype = literals_dtype(c, d->l.n, DTYPE_INT64);
    bool has_end = false;
    int r = literals_flag(c, d->l.n, "endpoint", &has_end);
    if (r)
        return r;
    if (!dtype_is_integer(dtype))
        return rules_bad_dtype(c, d->l.n, dtype, "an integer dtype", "gives integers");
    for (unsigned i = 0; i < 2; i++)
        if (!is_integer(c, i == 0 ? low : high))
            return rules_bad_dtype(c, d->l.n, types_of(c, i == 0 ? low : high), "integers",
                                   "needs integers as its bounds");
    if (low->kind != VALUE_NODE && high->kind != VALUE_NODE)
        return make_known(d, dtype, low->integer, high->integer + has_end, ret);
    uint16_t range = array_range(d, low, high, has_end);
    return lower_finish(&d->l, spread(d, range, as_u64(d, low), dtype), ret);
}

/* ---- choice, permutation ---- */

/* Where a permutation of 0 to n - 1 takes the element's number. */
static int make_permuted(struct draw *d, uint64_t n, struct value *ret)
{
    if (d->l.c->request->draws.has_rows)
        return compiler_fail(d->l.c, GAD_BAD_EXPRESSION, d->l.n->column,
                             "%s: an order of all elements has no rows",
                             op_info((enum op)d->l.n->op)->name);
    uint16_t src[3] = {random_flat_index(d), d->seed, random_u64(d, n > 0 ? n : 1)};
    uint16_t node = random_step(d, OP_RANDOM_PERMUTED, DTYPE_UINT64, DTYPE_UINT64, 3, src);
    return lower_finish(&d->l, lower_cast(&d->l, node, DTYPE_INT64), ret);
}

/* Of an array, one of its elements is taken by each number. */
static bool is_array(const struct draw *d, const struct value *v)
{
    return v->kind == VALUE_NODE &&
           d->l.c->graph.shapes[d->l.c->graph.nodes[v->node].shape].ndim > 0;
}

static int read_population(struct draw *d, const struct value *v, __int128 least, __int128 *ret)
{
    char text[64] = "an array";
    struct compiler *c = d->l.c;
    if (is_array(d, v)) {
        int64_t length = 0;
        int r = lookups_length(c, d->l.n, v->node, "a", &length);
        *ret = length;
        if (r != 0 || length >= least)
            return r;
        snprintf(text, sizeof(text), "an empty array");
    }
    if (v->kind == VALUE_INTEGER && v->integer >= least && v->integer <= INT64_MAX) {
        *ret = v->integer;
        return 0;
    }
    if (v->kind == VALUE_INTEGER)
        scalar_format(v->integer, text);
    int r =
        compiler_fail(c, GAD_BAD_EXPRESSION, types_child_column(c, d->l.n, 0),
                      "%s of n: n must be an integer of %d or more that is known here, or an array",
                      op_info((enum op)d->l.n->op)->name, (int)least);
    error_expected(c->error, "an integer of %d or more, or an array", (int)least);
    error_found(c->error, "%s",
                v->kind == VALUE_NODE || v->kind == VALUE_INTEGER ? text : "another number");
    return r;
}

static int make_permutation(struct draw *d, const struct value *population, struct value *ret)
{
    __int128 n;
    int r = read_population(d, population, 0, &n);
    int64_t length = r == 0 ? (int64_t)n : 0;
    d->is_sized = true;
    if (r == 0)
        r = graph_shape(d->l.c, d->l.n->column, 1, &length, false, &d->shape);
    return r ? r : make_permuted(d, (uint64_t)length, ret);
}

static int make_choice(struct draw *d, const struct value *population, struct value *ret)
{
    struct compiler *c = d->l.c;
    bool replaces = true;
    __int128 n;
    int r = literals_flag(c, d->l.n, "replace", &replaces);
    if (r == 0)
        r = read_population(d, population, 1, &n);
    if (r)
        return r;
    if (replaces)
        return make_known(d, DTYPE_INT64, 0, n, ret);
    int64_t n_taken = c->graph.shapes[d->shape].n_elements;
    if (d->is_sized && n_taken <= n)
        return make_permuted(d, (uint64_t)n, ret);
    char text[64];
    r = compiler_fail(c, GAD_BAD_EXPRESSION, d->l.n->column,
                      d->is_sized
                          ? "choice: more numbers are taken than there are, without replacement"
                          : "choice: without replacement, write size=... too");
    error_expected(c->error, "a size of at most %s", scalar_format(n, text));
    error_found(c->error, "%s", d->is_sized ? scalar_format(n_taken, text) : "no size");
    return r;
}

int random_integers(struct compiler *c, const struct ast_node *n, const struct value *args,
                    struct value *ret)
{
    struct draw d;
    int r = random_begin(&d, c, n);
    if (r)
        return r;
    if (n->op == OP_INTEGERS)
        return make_integers(&d, &args[0], ret);
    r = n->op == OP_CHOICE ? make_choice(&d, &args[0], ret) : make_permutation(&d, &args[0], ret);
    if (r != 0 || !is_array(&d, &args[0]))
        return r;
    enum dtype dtype = types_of_node(c, args[0].node);
    if (c->graph.shapes[c->graph.nodes[args[0].node].shape].n_elements == 0)
        return lower_finish(&d.l, lower_cast(&d.l, ret->node, dtype), ret);
    return lower_finish(&d.l, lookups_take(&d.l, args[0].node, ret->node), ret);
}
