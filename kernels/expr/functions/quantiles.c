/* quantile, percentile, median, and the nan* of them: elements at their places, interpolated.
 *
 * selection.c finds the elements, places.c says which ones and how they are mixed; here are the
 * call's arguments and the arithmetic, which is NumPy's, rounding for rounding:
 *
 *     discrete methods    the element, in its own dtype; with method linear for whole q too
 *     median              (a + b) / 2, or the middle element
 *     all others          a + (b - a) * t, or b - (b - a) * (1 - t) where t >= 0.5
 *
 * float32 stays float32 where q is one number; a list of q, or a float64 array, makes it float64.
 * Integers become float64; their differences are exact, also where NumPy's overflow. A NaN in a
 * slice is its result, but nan* leave them out. A list is one more axis, the first: results of the
 * same shape, chosen by the index along it.
 *
 * Called by reductions.c.
 */
#include "kernels/expr/functions/quantiles.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

#include <math.h>

struct quantiles {
    struct reduce *k; /* keeps_dims also where the axes are dropped at the end */
    bool keeps_dims;
    enum quantile_method method;
    bool is_list, is_integer, is_strong; /* q, as it is written */
    unsigned n;
    double q[QUANTILES_MAX], sorted[QUANTILES_MAX];
    unsigned place_of[QUANTILES_MAX]; /* of q[i] in sorted */
    enum dtype own, result;
    bool is_taken; /* results are elements */
};

static const char *name_of(const struct quantiles *s)
{
    return op_info((enum op)s->k->l.n->op)->name;
}

static const struct shape *source_shape(const struct reduce *k)
{
    return &k->l.c->graph.shapes[k->l.c->graph.nodes[k->src].shape];
}

static bool is_median(const struct quantiles *s)
{
    return s->k->l.n->op == OP_MEDIAN || s->k->l.n->op == OP_NANMEDIAN;
}

static bool is_nan_function(const struct quantiles *s)
{
    enum op op = (enum op)s->k->l.n->op;
    return op == OP_NANMEDIAN || op == OP_NANQUANTILE || op == OP_NANPERCENTILE;
}

static bool is_percentile(const struct quantiles *s)
{
    return s->k->l.n->op == OP_PERCENTILE || s->k->l.n->op == OP_NANPERCENTILE;
}

/* ---- q ---- */

static int unknown_q(struct quantiles *s, const struct ast_node *given, const char *found)
{
    static const char wanted[] = "a number, or a list of numbers,";
    int r = compiler_fail(s->k->l.c, GAD_BAD_EXPRESSION, given->column,
                          "%s: 'q' must be %s that is known here", name_of(s), wanted);
    error_expected(s->k->l.c->error, "%s", wanted);
    error_found(s->k->l.c->error, "%s", found);
    return r;
}

static int bad_q(struct quantiles *s, const struct ast_node *given, double found)
{
    int most = is_percentile(s) ? 100 : 1;
    int r = compiler_fail(s->k->l.c, GAD_BAD_EXPRESSION, given->column,
                          "%s: 'q' must be in the range 0 to %d, not %g", name_of(s), most, found);
    error_expected(s->k->l.c->error, "0 to %d", most);
    error_found(s->k->l.c->error, "%g", found);
    return r;
}

static int read_number(struct quantiles *s, const struct ast_node *given)
{
    const struct value *v = &given->value;
    double q;
    if (given->kind == AST_TUPLE)
        return unknown_q(s, given, "a list in a list");
    if (v->kind == VALUE_NODE) {
        const struct graph_node *n = &s->k->l.c->graph.nodes[v->node];
        if (n->kind != NODE_CONST || n->dtype != DTYPE_FLOAT64)
            return unknown_q(s, given, "an array");
        q = n->value.f64;
        s->is_strong = true;
    } else {
        q = scalar_as_double(v);
    }
    s->is_integer &= v->kind == VALUE_INTEGER || v->kind == VALUE_BOOL;
    double part = is_percentile(s) ? q / 100 : q;
    if (!(part >= 0 && part <= 1))
        return bad_q(s, given, q);
    s->q[s->n++] = part;
    return 0;
}

static int bad_count(struct quantiles *s, const struct ast_node *given)
{
    int r =
        compiler_fail(s->k->l.c, given->n_children == 0 ? GAD_BAD_EXPRESSION : GAD_LIMIT_EXCEEDED,
                      given->column, "%s: a list of %u quantiles; there can be 1 to %u in a call",
                      name_of(s), given->n_children, QUANTILES_MAX);
    error_expected(s->k->l.c->error, "1 to %u", QUANTILES_MAX);
    error_found(s->k->l.c->error, "%u", given->n_children);
    return r;
}

static int read_q(struct quantiles *s)
{
    const struct ast_node *n = s->k->l.n;
    s->n = 0;
    s->is_list = s->is_strong = false;
    s->is_integer = !is_percentile(s);
    if (is_median(s)) {
        s->q[s->n++] = 0.5;
        return 0;
    }
    const struct ast_node *given = &s->k->l.c->ast.nodes[n->children[1]];
    if (given->kind != AST_TUPLE)
        return read_number(s, given);
    s->is_list = true;
    if (given->n_children == 0 || given->n_children > QUANTILES_MAX)
        return bad_count(s, given);
    int r = 0;
    for (unsigned i = 0; r == 0 && i < given->n_children; i++)
        r = read_number(s, &s->k->l.c->ast.nodes[given->children[i]]);
    return r;
}

static void sort_q(struct quantiles *s)
{
    unsigned order[QUANTILES_MAX];
    for (unsigned i = 0; i < s->n; i++) {
        unsigned at = i;
        for (; at > 0 && s->q[order[at - 1]] > s->q[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (unsigned i = 0; i < s->n; i++) {
        s->sorted[i] = s->q[order[i]];
        s->place_of[order[i]] = i;
    }
}

/* ---- dtypes ---- */

/* Methods whose arithmetic with a list of whole numbers is NumPy's of integers. */
static bool keeps_integers(enum quantile_method method)
{
    return method == QUANTILE_AVERAGED_INVERTED_CDF ||
           method == QUANTILE_INTERPOLATED_INVERTED_CDF || method == QUANTILE_WEIBULL;
}

static int find_dtypes(struct quantiles *s)
{
    bool is_strong = s->is_list || s->is_strong;
    s->own = types_of_node(s->k->l.c, s->k->src);
    s->result = s->own == DTYPE_FLOAT32 && !is_strong ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    s->is_taken = false;
    if (is_median(s))
        return 0;
    if (places_is_discrete(s->method) || (s->method == QUANTILE_LINEAR && s->is_integer)) {
        s->is_taken = true;
        s->result = s->own;
    } else if (s->own == DTYPE_BOOL) {
        return rules_bad_dtype(s->k->l.c, s->k->l.n, DTYPE_BOOL, "numbers",
                               "of bools cannot be interpolated, write int8(x)");
    } else if (s->is_list && s->is_integer && keeps_integers(s->method)) {
        s->is_taken = !dtype_is_float(s->own);
        s->result = dtype_promote(s->own, DTYPE_INT64);
    }
    return 0;
}

/* ---- arithmetic ---- */

static uint16_t number(struct quantiles *s, double value)
{
    return lower_float(&s->k->l, s->result, value);
}

/* b - a in the result's dtype. Of integers in 64 bits: b is not less than a, so that the bits of
 * their difference are an unsigned number. */
static uint16_t difference(struct quantiles *s, uint16_t a, uint16_t b)
{
    struct lower *l = &s->k->l;
    if (!dtype_is_float(s->own)) {
        enum dtype wide = dtype_is_unsigned(s->own) ? DTYPE_UINT64 : DTYPE_INT64;
        a = lower_cast(l, a, wide);
        b = lower_cast(l, b, wide);
    }
    uint16_t gap = lower_binary(l, OP_SUBTRACT, b, a);
    if (!dtype_is_float(s->own))
        gap = lower_cast(l, gap, DTYPE_UINT64);
    return lower_cast(l, gap, s->result);
}

static uint16_t interpolate(struct quantiles *s, uint16_t a, uint16_t b, uint16_t t)
{
    struct lower *l = &s->k->l;
    uint16_t gap = difference(s, a, b), one = lower_float(l, DTYPE_FLOAT64, 1);
    uint16_t rest = lower_cast(l, lower_binary(l, OP_SUBTRACT, one, t), s->result);
    uint16_t is_upper = lower_binary(l, OP_GREATER_EQUAL, t, lower_float(l, DTYPE_FLOAT64, 0.5));
    if (l->r != 0)
        return a;
    const struct graph_node *known = &l->c->graph.nodes[is_upper];
    bool is_known = known->kind == NODE_CONST, is_true = known->value.u64 != 0;
    a = lower_cast(l, a, s->result);
    b = lower_cast(l, b, s->result);
    t = lower_cast(l, t, s->result);
    uint16_t lower = lower_binary(l, OP_ADD, a, lower_binary(l, OP_MULTIPLY, gap, t));
    if (is_known && !is_true)
        return lower;
    uint16_t upper = lower_binary(l, OP_SUBTRACT, b, lower_binary(l, OP_MULTIPLY, gap, rest));
    return is_known ? upper : lower_where(l, is_upper, upper, lower);
}

/* NumPy interpolates a single element too: of an infinity that is NaN. */
static uint16_t alone(struct quantiles *s, uint16_t a)
{
    struct lower *l = &s->k->l;
    uint16_t value = lower_cast(l, a, s->result);
    if (s->is_taken || is_median(s) || !dtype_is_float(s->own))
        return value;
    return lower_binary(l, OP_ADD, value, difference(s, a, a));
}

static uint16_t middle(struct quantiles *s, uint16_t a, uint16_t b, uint16_t has_next)
{
    struct lower *l = &s->k->l;
    a = lower_cast(l, a, s->result);
    b = lower_cast(l, b, s->result);
    uint16_t mean = lower_binary(l, OP_DIVIDE, lower_binary(l, OP_ADD, a, b), number(s, 2));
    return lower_where(l, has_next, mean, a);
}

/* Constant and false, so that the next elements need not be found. */
static bool is_never(const struct quantiles *s, uint16_t node)
{
    const struct graph_node *n = &s->k->l.c->graph.nodes[node];
    return n->kind == NODE_CONST && n->value.u64 == 0;
}

static uint16_t mix(struct quantiles *s, const struct selection *found, unsigned i)
{
    struct lower *l = &s->k->l;
    struct quantile_place place;
    places_find(l, s->method, found->n_elements, s->sorted[i], &place);
    if (l->r != 0 || s->is_taken || is_never(s, place.has_next))
        return alone(s, found->at[i]);
    uint16_t next = lower_where(l, place.has_next, found->next[i], found->at[i]);
    if (is_median(s))
        return middle(s, found->at[i], next, place.has_next);
    return interpolate(s, found->at[i], next, place.weight);
}

/* ---- results ---- */

/* Whether an element behind the one at the place is needed at all. Of integers it is not where its
 * weight is 0; of floats it is: infinity times 0 is NaN. */
static bool needs_next(struct quantiles *s, uint16_t n_elements)
{
    struct lower *l = &s->k->l;
    bool needs = false;
    for (unsigned i = 0; i < s->n && !s->is_taken; i++) {
        struct quantile_place place;
        places_find(l, s->method, n_elements, s->sorted[i], &place);
        if (l->r != 0)
            return false;
        needs |= !is_never(s, place.has_next);
    }
    return needs;
}

/* Beside the source. */
static void find_values(struct quantiles *s, uint16_t *ret)
{
    struct reduce *k = s->k;
    struct lower *l = &k->l;
    bool is_float = dtype_is_float(s->own), ignores_nan = is_float && is_nan_function(s);
    struct selection found = {.k = k,
                              .method = s->method,
                              .n = s->n,
                              .q = s->sorted,
                              .ignores_nan = ignores_nan,
                              .n_elements = lower_float(l, DTYPE_FLOAT64, (double)k->n_reduced)};
    found.needs_next = ignores_nan ? !s->is_taken : needs_next(s, found.n_elements);
    selection_run(&found);
    uint16_t is_sound = 0;
    if (ignores_nan)
        is_sound = lower_binary(l, OP_GREATER, found.n_elements, lower_float(l, DTYPE_FLOAT64, 0));
    else if (is_float) /* the largest element is NaN where there is one */
        is_sound = lower_binary(l, OP_EQUAL, found.largest, found.largest);
    for (unsigned i = 0; i < s->n; i++) {
        ret[i] = mix(s, &found, s->place_of[i]);
        if (is_float)
            ret[i] = lower_where(l, is_sound, ret[i], number(s, NAN));
    }
}

/* Each element by itself. */
static void find_same(struct quantiles *s, uint16_t *ret)
{
    for (unsigned i = 0; i < s->n; i++)
        ret[i] = alone(s, s->k->src);
}

/* The first axis has one of the values at each index. */
static uint16_t stack(struct quantiles *s, const uint16_t *values)
{
    struct lower *l = &s->k->l;
    struct compiler *c = l->c;
    if (l->r != 0 || !s->is_list)
        return values[0];
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[values[0]].shape];
    int64_t dims[ARRAY_MAX_NDIM + 1] = {s->n};
    int ndim = shape->ndim + 1;
    uint16_t index = 0, node = values[s->n - 1], all = 0, stacked = 0;
    for (int i = 1; i < ndim; i++)
        dims[i] = shape->dims[i - 1];
    if (ndim > ARRAY_MAX_NDIM) {
        l->r = compiler_fail(c, GAD_LIMIT_EXCEEDED, l->n->column,
                             "%s: more than %d axes with those of q", name_of(s), ARRAY_MAX_NDIM);
        error_expected(c->error, "at most %d", ARRAY_MAX_NDIM);
        return node;
    }
    l->r = graph_shape(c, l->n->column, ndim, dims, false, &stacked);
    if (l->r == 0)
        l->r = graph_const(c, DTYPE_BOOL, (union scalar){.u64 = 1}, stacked, &all);
    if (l->r == 0)
        l->r = graph_index(c, l->n->column, -ndim, &index);
    for (unsigned i = s->n - 1; i-- > 0;) {
        struct value number = {.kind = VALUE_INTEGER, .integer = i};
        uint16_t is_this = lower_binary(l, OP_EQUAL, index, lower_value(l, &number, DTYPE_INT64));
        node = lower_where(l, is_this, values[i], node);
    }
    return lower_where(l, all, node, node);
}

/* What was to be read beside the source without the axes that are reduced: of each the only one. */
static uint16_t drop_axes(struct quantiles *s, uint16_t node)
{
    struct reduce *k = s->k;
    struct compiler *c = k->l.c;
    if (k->l.r != 0 || s->keeps_dims || k->axes == 0)
        return node;
    int ndim = c->graph.shapes[c->graph.nodes[node].shape].ndim - s->is_list;
    if (ndim < source_shape(k)->ndim)
        return node;
    k->l.r = graph_reduce(c, OP_MIN, s->result, node, k->axes << s->is_list, false, &node);
    return node;
}

/* As NumPy: medians of nothing are NaN, and so is what leaves NaN out, for all of q together. */
static int of_nothing(struct quantiles *s, struct value *ret)
{
    struct reduce *k = s->k;
    if (is_median(s) || is_nan_function(s)) {
        s->result = s->own == DTYPE_FLOAT32 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
        return reduce_finish(k, reduce_repeat(k, number(s, NAN)), ret);
    }
    struct value zero = {.kind = VALUE_INTEGER};
    int r = reduce_check_not_empty(k);
    if (r)
        return r;
    uint16_t values[QUANTILES_MAX];
    for (unsigned i = 0; i < s->n; i++)
        values[i] = reduce_repeat(k, lower_value(&k->l, &zero, s->result));
    return reduce_finish(k, stack(s, values), ret);
}

/* Which place is looked for follows from the length. */
static int refuse_open(struct reduce *k)
{
    struct compiler *c = k->l.c;
    int r = compiler_fail(c, GAD_BAD_ARGUMENT, k->l.n->column,
                          "%s: how long the axis is must be known before it is read: put it into a "
                          "file first",
                          op_info((enum op)k->l.n->op)->name);
    error_expected(c->error, "an axis of known length");
    error_found(c->error, "the first axis of a stream that ends when its producer says so");
    return r;
}

int quantiles_apply(struct reduce *k, struct value *ret)
{
    struct quantiles s = {.k = k, .keeps_dims = k->keeps_dims, .method = QUANTILE_MEDIAN};
    uint16_t values[QUANTILES_MAX] = {0};
    int r = is_median(&s) ? 0 : places_method(k->l.c, k->l.n, &s.method);
    if (r == 0)
        r = read_q(&s);
    if (r == 0)
        r = find_dtypes(&s);
    if (r)
        return r;
    sort_q(&s);
    int64_t n_elements = source_shape(k)->n_elements;
    if (n_elements == 0)
        return of_nothing(&s, ret);
    k->keeps_dims |= k->n_reduced < n_elements;
    if (reduce_is_open(k))
        return refuse_open(k);
    if (k->axes == 0)
        find_same(&s, values);
    else
        find_values(&s, values);
    return reduce_finish(k, drop_axes(&s, stack(&s, values)), ret);
}
