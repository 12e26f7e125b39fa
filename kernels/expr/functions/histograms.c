/* histogram and histogram_bin_edges, as NumPy computes them.
 *
 *     histogram(a, bins=n, range=(low, high))  edges low + i * ((high - low) / n), then high
 *     histogram(a, bins=n)                     the same from min(a) to max(a)
 *     histogram(a, bins=e)                     edges e, an array
 *
 * Bin i holds what is from edge i on and below edge i + 1; the last one also what equals its upper
 * edge. All ways to count are one: SEARCH_RIGHT in the edges, of which the last is replaced by the
 * next larger number, and BINCOUNT of what it gives less 1. What lies outside gets a number that is
 * no bin's, and so does NaN. NumPy's arithmetic for bins of equal width is an estimate which it
 * then corrects by the same edges, to the same bin.
 *
 * Edges are computed in NumPy's order, in float32 only where limits are found in a float32 array,
 * and have the dtype of the array, or float64 where that is an integer. They are a table of their
 * own pass; where limits are known too, the array is read once.
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

struct histogram {
    struct reduce k; /* of the array */
    uint32_t n_bins; /* may be 0 where the edges are an array */
    uint16_t given;  /* edges that are an array, or NODE_NONE */
    bool has_range;
    struct value range[2];
    uint16_t edge; /* of element index(-1), of the dtype that edges have */
};

static uint16_t index_node(struct lower *l)
{
    uint16_t node = 0;
    if (l->r == 0)
        l->r = graph_index(l->c, l->n->column, -1, &node);
    return node;
}

static uint16_t integer(struct lower *l, int64_t value)
{
    return lower_value(l, &(struct value){.kind = VALUE_INTEGER, .integer = value}, DTYPE_INT64);
}

/* ---- arguments ---- */

static int bad_bins(struct compiler *c, const struct ast_node *n, const struct ast_node *given)
{
    char text[64] = "another number";
    if (given->kind != AST_TUPLE && given->value.kind == VALUE_INTEGER)
        scalar_format(given->value.integer, text);
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, given->column,
                          "%s: 'bins' must be a number of bins, or an array of edges with one axis",
                          op_info((enum op)n->op)->name);
    error_expected(c->error, "an integer of 1 or more, or an array");
    error_found(c->error, "%s", given->kind == AST_TUPLE ? "a tuple" : text);
    return r;
}

static int read_edges(struct histogram *h, const struct ast_node *given)
{
    struct compiler *c = h->k.l.c;
    int64_t length;
    h->given = given->value.node;
    int r = lookups_length(c, h->k.l.n, h->given, "bins", &length);
    if (r)
        return r;
    if (length > UINT32_MAX)
        return bad_bins(c, h->k.l.n, given);
    h->n_bins = length > 0 ? (uint32_t)(length - 1) : 0;
    return 0;
}

static int read_bins(struct histogram *h)
{
    const struct ast_node *given = literals_find(h->k.l.c, h->k.l.n, "bins");
    h->given = NODE_NONE;
    h->n_bins = 10;
    if (given == NULL)
        return 0;
    if (given->kind != AST_TUPLE && given->value.kind == VALUE_NODE)
        return read_edges(h, given);
    if (given->kind == AST_TUPLE || given->value.kind != VALUE_INTEGER ||
        given->value.integer < 1 || given->value.integer >= UINT32_MAX)
        return bad_bins(h->k.l.c, h->k.l.n, given);
    h->n_bins = (uint32_t)given->value.integer;
    return 0;
}

static int bad_range(struct histogram *h, const struct ast_node *given, const char *wanted,
                     const char *found)
{
    struct compiler *c = h->k.l.c;
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, given->column, "%s: 'range' must be %s",
                          op_info((enum op)h->k.l.n->op)->name, wanted);
    error_expected(c->error, "%s", wanted);
    if (found != NULL) {
        error_found(c->error, "%s", found);
        return r;
    }
    error_found(c->error, "%g to %g", scalar_as_double(&h->range[0]),
                scalar_as_double(&h->range[1]));
    return r;
}

static bool is_reversed(const struct value *range)
{
    if (range[0].kind != VALUE_FLOAT && range[1].kind != VALUE_FLOAT)
        return range[0].integer > range[1].integer;
    return scalar_as_double(&range[0]) > scalar_as_double(&range[1]);
}

static int read_range(struct histogram *h)
{
    struct compiler *c = h->k.l.c;
    const struct ast_node *given = literals_find(c, h->k.l.n, "range");
    h->has_range = given != NULL;
    if (given == NULL)
        return 0;
    if (given->kind != AST_TUPLE || given->n_children != 2)
        return bad_range(h, given, "two numbers, range=(low, high)", "something else");
    for (unsigned i = 0; i < 2; i++) {
        const struct ast_node *limit = &c->ast.nodes[given->children[i]];
        if (limit->kind == AST_TUPLE || limit->value.kind == VALUE_NODE)
            return bad_range(h, given, "two numbers that are known here", "an array");
        h->range[i] = limit->value;
    }
    if (!isfinite(scalar_as_double(&h->range[0])) || !isfinite(scalar_as_double(&h->range[1])))
        return bad_range(h, given, "finite", NULL);
    if (is_reversed(h->range))
        return bad_range(h, given, "a lower limit, then one that is not below it", NULL);
    return 0;
}

/* ---- edges ---- */

static void widen_range(struct value *range)
{
    double low = scalar_as_double(&range[0]), high = scalar_as_double(&range[1]);
    if (low != high)
        return;
    range[0] = (struct value){.kind = VALUE_FLOAT, .number = low - 0.5};
    range[1] = (struct value){.kind = VALUE_FLOAT, .number = high + 0.5};
}

static int shape_of_edges(struct histogram *h, uint16_t *ret)
{
    return graph_shape(h->k.l.c, 0, 2, (int64_t[]){1, (int64_t)h->n_bins + 1}, false, ret);
}

/* Once for all elements: where the first edge is. */
static void check_finite(struct histogram *h, uint16_t low, uint16_t high)
{
    struct lower *l = &h->k.l;
    uint16_t over = 0, is_first = lower_binary(l, OP_EQUAL, index_node(l), integer(l, 0));
    uint16_t is_finite = lower_binary(l, OP_BITWISE_AND, lower_unary(l, OP_ISFINITE, low),
                                      lower_unary(l, OP_ISFINITE, high));
    uint16_t wrong =
        lower_binary(l, OP_BITWISE_AND, lower_unary(l, OP_INVERT, is_finite), is_first);
    if (l->r == 0)
        l->r = shape_of_edges(h, &over);
    if (l->r == 0)
        l->r = checks_add(l->c, l->n, wrong, over,
                          "the array has NaN or infinity, so no range; write range=(low, high)",
                          "finite numbers, or range=(low, high)", "range that is not finite");
}

/* The limits that are found, in the dtype that edges are computed in. */
static int find_limits(struct histogram *h, enum dtype d, uint16_t *ret_low, uint16_t *ret_high)
{
    struct reduce *k = &h->k;
    struct lower *l = &k->l;
    uint16_t low = reduce_by(k, OP_MIN, k->src), high = reduce_by(k, OP_MAX, k->src);
    if (l->r == 0 && dtype_is_float(types_of_node(l->c, k->src)))
        check_finite(h, low, high);
    uint16_t half = lower_float(l, d, 0.5), is_one = lower_binary(l, OP_EQUAL, low, high);
    low = lower_cast(l, low, d);
    high = lower_cast(l, high, d);
    *ret_low = lower_where(l, is_one, lower_binary(l, OP_SUBTRACT, low, half), low);
    *ret_high = lower_where(l, is_one, lower_binary(l, OP_ADD, high, half), high);
    return l->r;
}

/* linspace(low, high, n + 1)[i], as numpy.linspace computes it. */
static uint16_t edge_at(struct histogram *h, uint16_t i, uint16_t low, uint16_t high)
{
    struct lower *l = &h->k.l;
    enum dtype d = types_of_node(l->c, low);
    uint16_t n = lower_float(l, d, h->n_bins), x = lower_cast(l, i, d);
    uint16_t delta = lower_binary(l, OP_SUBTRACT, high, low);
    uint16_t step = lower_binary(l, OP_DIVIDE, delta, n);
    uint16_t is_tiny = lower_binary(l, OP_EQUAL, step, lower_float(l, d, 0));
    uint16_t y = lower_binary(l, OP_MULTIPLY, x, step);
    uint16_t tiny = lower_binary(l, OP_MULTIPLY, lower_binary(l, OP_DIVIDE, x, n), delta);
    if (l->r == 0 && l->c->graph.nodes[is_tiny].kind == NODE_CONST)
        y = l->c->graph.nodes[is_tiny].value.u64 != 0 ? tiny : y;
    else
        y = lower_where(l, is_tiny, tiny, y);
    y = lower_binary(l, OP_ADD, y, low);
    uint16_t is_last = lower_binary(l, OP_EQUAL, i, integer(l, h->n_bins));
    return lower_where(l, is_last, high, y);
}

/* That each edge is above the one before it. */
static int check_growth(struct histogram *h, uint16_t edge, uint16_t next)
{
    struct lower *l = &h->k.l;
    uint16_t over = 0, is_inner = lower_binary(l, OP_LESS, index_node(l), integer(l, h->n_bins));
    uint16_t wrong = lower_binary(l, OP_GREATER_EQUAL, edge, next);
    wrong = lower_binary(l, OP_BITWISE_AND, wrong, is_inner);
    if (l->r == 0)
        l->r = shape_of_edges(h, &over);
    if (l->r != 0)
        return l->r;
    return checks_add(l->c, l->n, wrong, over, "too many bins for the range of the data",
                      "edges that differ", "edges not above the one before");
}

/* Limits that are known so far from each other that rounding cannot make two edges equal, and no
 * edge is infinite. */
static bool is_far_apart(const struct histogram *h, uint16_t low, uint16_t high, enum dtype d)
{
    const struct graph_node *a = &h->k.l.c->graph.nodes[low], *b = &h->k.l.c->graph.nodes[high];
    if (a->kind != NODE_CONST || b->kind != NODE_CONST)
        return false;
    double least = a->value.f64, most = b->value.f64, unit = d == DTYPE_FLOAT32 ? 0x1p-23 : 0x1p-52;
    double size = fmax(fabs(least), fabs(most)), limit = d == DTYPE_FLOAT32 ? FLT_MAX : DBL_MAX;
    if (size > limit || most - least > DBL_MAX)
        return false;
    return (most / 4 - least / 4) / h->n_bins > size * unit && size * unit > 0x1p-100;
}

static int compute_edges(struct histogram *h)
{
    struct lower *l = &h->k.l;
    enum dtype own = types_of_node(l->c, h->k.src), d = DTYPE_FLOAT64;
    enum dtype result = dtype_is_float(own) ? own : DTYPE_FLOAT64;
    uint16_t low, high;
    if (!h->has_range && h->k.n_reduced > 0) {
        d = result;
        int r = find_limits(h, d, &low, &high);
        if (r)
            return r;
    } else {
        struct value range[2] = {{.kind = VALUE_INTEGER}, {.kind = VALUE_INTEGER, .integer = 1}};
        if (h->has_range) {
            range[0] = h->range[0];
            range[1] = h->range[1];
        }
        widen_range(range);
        low = lower_value(l, &range[0], d);
        high = lower_value(l, &range[1], d);
    }
    uint16_t index = index_node(l), next = lower_binary(l, OP_ADD, index, integer(l, 1));
    h->edge = lower_cast(l, edge_at(h, index, low, high), result);
    next = lower_cast(l, edge_at(h, next, low, high), result);
    if (l->r != 0 || is_far_apart(h, low, high, result))
        return l->r;
    return check_growth(h, h->edge, next);
}

/* An array's: that they do not fall. */
static int check_given(struct histogram *h)
{
    struct lower *l = &h->k.l;
    uint16_t over = 0, index = index_node(l);
    uint16_t first = lookups_take(l, h->given, index);
    uint16_t second = lookups_take(l, h->given, lower_binary(l, OP_ADD, index, integer(l, 1)));
    uint16_t wrong = lower_binary(l, OP_GREATER, first, second);
    if (l->r == 0)
        l->r = graph_shape(l->c, 0, 1, (int64_t[]){h->n_bins}, false, &over);
    if (l->r != 0)
        return l->r;
    return checks_add(l->c, l->n, wrong, over, "the edges must not fall",
                      "edges in ascending order", "edges below the one before");
}

/* ---- counting ---- */

/* Of 64 bits, that all values of the dtype are in. */
static enum dtype widest(enum dtype d)
{
    if (dtype_is_float(d))
        return DTYPE_FLOAT64;
    return d == DTYPE_UINT64 ? d : DTYPE_INT64;
}

/* The last edge becomes the least number that is not in the last bin, NaN behind infinity, which
 * only an array has. */
static uint16_t open_end(struct histogram *h, uint16_t edge)
{
    struct lower *l = &h->k.l;
    uint16_t infinity = lower_float(l, DTYPE_FLOAT64, INFINITY);
    uint16_t is_last = lower_binary(l, OP_EQUAL, index_node(l), integer(l, h->n_bins));
    uint16_t next = lower_binary(l, OP_NEXTAFTER, edge, infinity);
    if (h->given != NODE_NONE)
        next = lower_where(l, lower_binary(l, OP_EQUAL, edge, infinity),
                           lower_float(l, DTYPE_FLOAT64, NAN), next);
    return lower_where(l, is_last, next, edge);
}

/* The number of the bin of each element, in a table of floats. */
static uint16_t bins_of_floats(struct histogram *h, uint16_t edge)
{
    struct lower *l = &h->k.l;
    edge = lower_cast(l, edge, DTYPE_FLOAT64);
    uint16_t table = lower_table(l, open_end(h, edge), (int64_t)h->n_bins + 1);
    uint16_t x = lower_cast(l, h->k.src, DTYPE_FLOAT64);
    uint16_t found = lower_lookup(l, OP_SEARCH_RIGHT, x, table);
    return lower_binary(l, OP_SUBTRACT, found, integer(l, 1));
}

/* Of integers there need not be a next larger one: what equals the last edge is found by itself. */
static uint16_t bins_of_integers(struct histogram *h, enum dtype d)
{
    struct lower *l = &h->k.l;
    uint16_t edges = lower_cast(l, h->given, d), x = lower_cast(l, h->k.src, d), last = 0, over = 0;
    uint16_t table = lower_table(l, edges, (int64_t)h->n_bins + 1);
    if (l->r == 0)
        l->r = graph_shape(l->c, 0, 1, (int64_t[]){1}, false, &over);
    uint16_t end = lower_lookup(l, OP_TAKE, integer(l, h->n_bins), table);
    if (l->r == 0)
        l->r = graph_reduce_over(l->c, OP_MAX, d, end, over, 1, false, &last);
    uint16_t found = lower_lookup(l, OP_SEARCH_RIGHT, x, table);
    found = lower_binary(l, OP_SUBTRACT, found, integer(l, 1));
    return lower_where(l, lower_binary(l, OP_EQUAL, x, last), integer(l, h->n_bins - 1), found);
}

/* Integers of 64 bits are compared with the range as they are, before they become floats. */
static uint16_t keep_in_range(struct histogram *h, uint16_t bins)
{
    struct lower *l = &h->k.l;
    enum dtype own = types_of_node(l->c, h->k.src);
    struct value args[2] = {{.kind = VALUE_NODE, .node = h->k.src}}, is_in[2];
    if (!h->has_range || !dtype_is_integer(own) || dtype_size(own) < 8)
        return bins;
    for (unsigned i = 0; i < 2 && l->r == 0; i++) {
        args[1] = h->range[i];
        l->r =
            rules_lower(l->c, l->n, i == 0 ? OP_GREATER_EQUAL : OP_LESS_EQUAL, 2, args, &is_in[i]);
    }
    if (l->r != 0)
        return bins;
    uint16_t is_kept = lower_binary(l, OP_BITWISE_AND, is_in[0].node, is_in[1].node);
    return lower_where(l, is_kept, bins, integer(l, -1));
}

static uint16_t bins_of_elements(struct histogram *h)
{
    struct lower *l = &h->k.l;
    if (h->given == NODE_NONE)
        return keep_in_range(h, bins_of_floats(h, h->edge));
    enum dtype d =
        widest(dtype_promote(types_of_node(l->c, h->k.src), types_of_node(l->c, h->given)));
    return d == DTYPE_FLOAT64 ? bins_of_floats(h, h->given) : bins_of_integers(h, d);
}

/* Counts, or sums of weights in the weights' dtype. */
static uint16_t count(struct histogram *h)
{
    uint16_t weights, node;
    enum dtype d = DTYPE_INT64;
    if (h->k.l.r == 0)
        h->k.l.r = counts_weights(&h->k, &weights, &d);
    if (h->k.l.r != 0 || h->n_bins == 0)
        return counts_none(&h->k.l, d);
    node = reduce_bincount(&h->k, bins_of_elements(h), weights, h->n_bins, false);
    if (weights != NODE_NONE && dtype_is_integer(d)) /* wraps */
        node = lower_cast(&h->k.l, node, DTYPE_INT64);
    return lower_cast(&h->k.l, node, d);
}

/* ---- results ---- */

static uint16_t edges_table(struct histogram *h)
{
    return lower_table(&h->k.l, h->given != NODE_NONE ? h->given : h->edge, (int64_t)h->n_bins + 1);
}

/* counts / (widths of the bins) / sum(counts) */
static uint16_t density(struct histogram *h, uint16_t counts)
{
    struct lower *l = &h->k.l;
    struct value args[1] = {{.kind = VALUE_NODE, .node = counts}}, sum = {.kind = VALUE_NODE};
    if (l->r == 0)
        l->r = rules_lower(l->c, l->n, OP_SUM, 1, args, &sum);
    uint16_t edges = edges_table(h), index = index_node(l);
    uint16_t low = lower_lookup(l, OP_TAKE, index, edges);
    uint16_t high = lower_lookup(l, OP_TAKE, lower_binary(l, OP_ADD, index, integer(l, 1)), edges);
    uint16_t width = lower_cast(l, lower_binary(l, OP_SUBTRACT, high, low), DTYPE_FLOAT64);
    uint16_t node = lower_binary(l, OP_DIVIDE, lower_cast(l, counts, DTYPE_FLOAT64), width);
    return lower_binary(l, OP_DIVIDE, node, lower_cast(l, sum.node, DTYPE_FLOAT64));
}

static int give_counts(struct histogram *h, struct value *ret)
{
    struct reduce *k = &h->k;
    bool is_density = false;
    int r = literals_flag(k->l.c, k->l.n, "density", &is_density);
    if (r)
        return r;
    uint16_t counts = count(h);
    if (is_density && h->n_bins > 0)
        counts = density(h, counts);
    else if (is_density)
        counts = lower_cast(&k->l, counts, DTYPE_FLOAT64);
    return reduce_finish(k, counts, ret);
}

static int give_edges(struct histogram *h, struct value *ret)
{
    uint16_t weights;
    enum dtype unused;
    int r = counts_weights(&h->k, &weights, &unused); /* that their shape is right */
    if (r)
        return r;
    return reduce_finish(&h->k, h->given != NODE_NONE ? h->given : edges_table(h), ret);
}

int histograms_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    struct histogram h = {.n_bins = 10};
    int r = reduce_begin(&h.k, c, n, args);
    if (r == 0 && types_of_node(c, h.k.src) == DTYPE_BOOL)
        h.k.src = lower_cast(&h.k.l, h.k.src, DTYPE_UINT8);
    if (r == 0)
        r = read_bins(&h);
    if (r == 0)
        r = read_range(&h);
    if (r == 0 && h.given == NODE_NONE)
        r = compute_edges(&h);
    else if (r == 0 && h.n_bins > 0)
        r = check_given(&h);
    if (r)
        return r;
    bool are_edges = n->op == OP_HISTOGRAM_BIN_EDGES || n->result == 1;
    return are_edges ? give_edges(&h, ret) : give_counts(&h, ret);
}
