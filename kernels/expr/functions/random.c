/* Random numbers: each element is a function of its number, the seed and the distribution.
 *
 *     normal(loc=a, scale=0.1, seed=3)
 *       RANDOM_U64(number, seed, stream), STANDARD_NORMAL, then * scale + loc
 *
 * An element's number is that in C order of the array that is computed. float32 is made of 32 bits,
 * float64 of 64. Parameters may be arrays, which the numbers take their shape from; those that are
 * numbers are checked here as NumPy checks them, of arrays each element gives what the formula
 * gives. `size` gives the numbers a shape of their own; then the array that is computed must have
 * it (axes.c).
 *
 * Where the request names rows, element (i, place) of what is drawn has the number rows[i] *
 * (elements of a row) + place: what a row gets does not depend on the rows that it is drawn with.
 * A draw of one element for each row is the function of the row alone, and broadcasts.
 *
 * Called by rules.c; integers.c has those of integers.
 */
#include "kernels/expr/functions/random.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/keywords.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"
#include "proto/seeds.h"

#include <math.h>
#include <string.h>

/* A parameter that is out of range. */
static int random_refuse(struct draw *d, uint32_t column, const char *name, const char *wanted,
                         double found)
{
    struct compiler *c = d->l.c;
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, column, "%s: '%s' must be %s, not %g",
                          op_info((enum op)d->l.n->op)->name, name, wanted, found);
    error_expected(c->error, "%s", wanted);
    error_found(c->error, "%g", found);
    return r;
}

static int read_seed(struct draw *d)
{
    struct compiler *c = d->l.c;
    __int128 seed;
    if (literals_find(c, d->l.n, "seed") == NULL) /* arguments_require() has seen this one */
        return graph_const(c, DTYPE_UINT64, (union scalar){.u64 = c->request->draws.seed}, 0,
                           &d->seed);
    int r = literals_integer(c, d->l.n, "seed", &seed);
    if (r)
        return r;
    if (seed < 0 || seed > UINT64_MAX) {
        char text[64];
        r = compiler_fail(c, GAD_BAD_EXPRESSION, literals_find(c, d->l.n, "seed")->column,
                          "%s: 'seed' must be an integer of 64 bits without a sign",
                          op_info((enum op)d->l.n->op)->name);
        error_expected(c->error, "0 to 18446744073709551615");
        error_found(c->error, "%s", scalar_format(seed, text));
        return r;
    }
    if (c->request->draws.has_seed)
        seed = seed_of_draw(c->request->draws.seed, (uint64_t)seed);
    return graph_const(c, DTYPE_UINT64, (union scalar){.u64 = (uint64_t)seed}, 0, &d->seed);
}

static int read_size(struct draw *d)
{
    struct compiler *c = d->l.c;
    __int128 given[ARRAY_MAX_NDIM];
    int64_t dims[ARRAY_MAX_NDIM];
    unsigned n;
    bool is_tuple;
    char text[64];
    enum op op = (enum op)d->l.n->op;
    const struct request_draws *draws = &c->request->draws;
    if (keywords_find(op, "size", 4) == keywords_count(op))
        return 0;
    if (literals_find(c, d->l.n, "size") == NULL) {
        d->is_sized = draws->has_size;
        return draws->has_size
                   ? graph_shape(c, d->l.n->column, draws->ndim, draws->size, false, &d->shape)
                   : 0;
    }
    uint32_t column = literals_find(c, d->l.n, "size")->column;
    int r = literals_integers(c, d->l.n, "size", given, &n, &is_tuple);
    if (r == 0 && n > 0 && given[0] == -1 && draws->has_rows)
        given[0] = c->request->args[draws->rows].array.shape[0];
    for (unsigned i = 0; r == 0 && i < n; i++) {
        if (given[i] < 0 || given[i] > INT64_MAX) {
            r = compiler_fail(c, GAD_BAD_SHAPE, column, "%s: 'size' has an axis of length %s",
                              op_info(op)->name, scalar_format(given[i], text));
            error_expected(c->error, "lengths of 0 and more");
            error_found(c->error, "%s", text);
            return r;
        }
        dims[i] = (int64_t)given[i];
    }
    d->is_sized = true;
    return r ? r : graph_shape(c, column, (int)n, dims, false, &d->shape);
}

int random_begin(struct draw *d, struct compiler *c, const struct ast_node *n)
{
    *d = (struct draw){.l = {c, n, 0}};
    c->random_column = n->column;
    int r = read_seed(d);
    return r ? r : read_size(d);
}

/* The argument that names the rows can name them for this draw. */
static int check_rows(struct draw *d, const struct request_arg *arg)
{
    struct compiler *c = d->l.c;
    const struct array *rows = &arg->array;
    const struct shape *shape = &c->graph.shapes[d->shape];
    char text[96], own[96];
    int r = 0;
    if (arg->is_scalar || rows->dtype != DTYPE_INT64 || rows->ndim == 0)
        r = compiler_fail(c, GAD_BAD_DTYPE, d->l.n->column,
                          "random numbers of rows: '%s' must be an array of int64", arg->name);
    for (int i = 1; r == 0 && i < rows->ndim; i++)
        if (rows->shape[i] != 1)
            r = compiler_fail(c, GAD_BAD_SHAPE, d->l.n->column,
                              "random numbers of rows: '%s' must have the shape (n, 1, ..., 1)",
                              arg->name);
    if (r == 0 && !d->is_sized)
        r = compiler_fail(c, GAD_BAD_SHAPE, d->l.n->column,
                          "random numbers of rows: write size=(-1, ...)");
    if (r == 0 && (shape->ndim != rows->ndim || shape->dims[0] != rows->shape[0])) {
        array_format_shape(shape->ndim, shape->dims, own, sizeof(own));
        array_format_shape(rows->ndim, rows->shape, text, sizeof(text));
        r = compiler_fail(c, GAD_BAD_SHAPE, d->l.n->column,
                          "random numbers of size %s for rows of shape %s", own, text);
        error_expected(c->error, "as many axes, and the same first length");
        error_found(c->error, "%s", own);
    }
    return r;
}

/* rows * (elements of a row) + place in the row, all modulo 2^64. */
static uint16_t number_by_rows(struct draw *d)
{
    struct compiler *c = d->l.c;
    unsigned at = c->request->draws.rows;
    uint16_t flat = 0, rows = 0, index = 0;
    d->l.r = check_rows(d, &c->request->args[at]);
    if (d->l.r == 0)
        d->l.r = graph_input(c, (uint16_t)at, false, &rows);
    if (d->l.r)
        return 0;
    const struct shape *shape = &c->graph.shapes[d->shape];
    int64_t n_rows = shape->dims[0], n_each = n_rows > 0 ? shape->n_elements / n_rows : 0;
    int ndim = shape->ndim;
    rows = lower_cast(&d->l, rows, DTYPE_UINT64);
    if (n_each == 1)
        return rows;
    if (d->l.r == 0)
        d->l.r = graph_flat_index(c, true, d->shape, &flat);
    if (d->l.r == 0)
        d->l.r = graph_index(c, d->l.n->column, -ndim, &index);
    rows = lower_binary(&d->l, OP_SUBTRACT, rows, lower_cast(&d->l, index, DTYPE_UINT64));
    rows = lower_binary(&d->l, OP_MULTIPLY, rows, random_u64(d, (uint64_t)n_each));
    return lower_binary(&d->l, OP_ADD, rows, flat);
}

uint16_t random_flat_index(struct draw *d)
{
    uint16_t node = 0;
    if (d->l.r == 0 && d->l.c->request->draws.has_rows)
        return number_by_rows(d);
    if (d->l.r == 0)
        d->l.r = graph_flat_index(d->l.c, d->is_sized, d->shape, &node);
    return node;
}

uint16_t random_u64(struct draw *d, uint64_t value)
{
    uint16_t node = 0;
    if (d->l.r == 0)
        d->l.r = graph_const(d->l.c, DTYPE_UINT64, (union scalar){.u64 = value}, 0, &node);
    return node;
}

uint16_t random_step(struct draw *d, enum op op, enum dtype compute, enum dtype dtype,
                     unsigned n_src, const uint16_t *src)
{
    uint16_t node = 0;
    if (d->l.r == 0)
        d->l.r = graph_op(d->l.c, d->l.n->column, op, compute, dtype, n_src, src, &node);
    return node;
}

uint16_t random_bits(struct draw *d, enum random_stream stream, bool is_wide)
{
    uint16_t src[3] = {random_flat_index(d), d->seed, random_u64(d, stream)};
    return random_step(d, is_wide ? OP_RANDOM_U64 : OP_RANDOM_U32, DTYPE_UINT64,
                       is_wide ? DTYPE_UINT64 : DTYPE_UINT32, 3, src);
}

/* ---- parameters ---- */

static const struct value zero = {.kind = VALUE_FLOAT, .number = 0};
static const struct value one = {.kind = VALUE_FLOAT, .number = 1};

/* A parameter by its keyword, or the value that it has otherwise. */
static const struct value *parameter(const struct draw *d, const char *name,
                                     const struct value *otherwise)
{
    const struct ast_node *given = literals_find(d->l.c, d->l.n, name);
    return given != NULL ? &given->value : otherwise;
}

static uint32_t column_of(const struct draw *d, const char *name)
{
    const struct ast_node *given = literals_find(d->l.c, d->l.n, name);
    return given != NULL ? given->column : d->l.n->column;
}

/* Of a number, not of an array: that it is not negative. */
static int check_not_negative(struct draw *d, const char *name, const struct value *v)
{
    double number = v->kind != VALUE_NODE ? scalar_as_double(v) : 0;
    if (number >= 0)
        return 0;
    return random_refuse(d, column_of(d, name), name, "0 or more", number);
}

static bool is_number(const struct value *v, double number)
{
    return v->kind != VALUE_NODE && scalar_as_double(v) == number;
}

/* offset + factor * x */
static uint16_t scaled(struct draw *d, enum dtype dtype, uint16_t x, const struct value *offset,
                       const struct value *factor)
{
    if (!is_number(factor, 1))
        x = lower_binary(&d->l, OP_MULTIPLY, lower_value(&d->l, factor, dtype), x);
    if (!is_number(offset, 0))
        x = lower_binary(&d->l, OP_ADD, lower_value(&d->l, offset, dtype), x);
    return x;
}

/* ---- distributions ---- */

static uint16_t standard(struct draw *d, enum op op, enum random_stream stream, enum dtype dtype)
{
    bool is_wide = dtype == DTYPE_FLOAT64;
    uint16_t bits = random_bits(d, stream, is_wide);
    return random_step(d, op, is_wide ? DTYPE_UINT64 : DTYPE_UINT32, dtype, 1, &bits);
}

static int make_uniform(struct draw *d, enum dtype dtype, struct value *ret)
{
    const struct value *low = parameter(d, "low", &zero), *high = parameter(d, "high", &one);
    uint16_t u = standard(d, OP_STANDARD_UNIFORM, RANDOM_STREAM_UNIFORM, dtype);
    if (low->kind != VALUE_NODE && high->kind != VALUE_NODE) {
        double range = scalar_as_double(high) - scalar_as_double(low);
        if (!isfinite(dtype == DTYPE_FLOAT32 ? (float)range : range))
            return random_refuse(d, column_of(d, "high"), "high", "finite, as high - low", range);
        if (range < 0)
            return random_refuse(d, column_of(d, "high"), "high", "low or more",
                                 scalar_as_double(high));
        struct value factor = {.kind = VALUE_FLOAT, .number = range};
        return lower_finish(&d->l, scaled(d, dtype, u, low, &factor), ret);
    }
    uint16_t first = lower_value(&d->l, low, dtype);
    struct value factor = {.kind = VALUE_NODE};
    factor.node = lower_binary(&d->l, OP_SUBTRACT, lower_value(&d->l, high, dtype), first);
    return lower_finish(&d->l, d->l.r == 0 ? scaled(d, dtype, u, low, &factor) : 0, ret);
}

static int make_normal(struct draw *d, enum dtype dtype, struct value *ret)
{
    bool is_log = d->l.n->op == OP_LOGNORMAL;
    const char *spread = is_log ? "sigma" : "scale";
    const struct value *scale = parameter(d, spread, &one);
    int r = check_not_negative(d, spread, scale);
    if (r)
        return r;
    uint16_t x = standard(d, OP_STANDARD_NORMAL, RANDOM_STREAM_NORMAL, dtype);
    x = scaled(d, dtype, x, parameter(d, is_log ? "mean" : "loc", &zero), scale);
    return lower_finish(&d->l, is_log ? lower_unary(&d->l, OP_EXP, x) : x, ret);
}

static int make_exponential(struct draw *d, enum dtype dtype, struct value *ret)
{
    const struct value *scale = parameter(d, "scale", &one);
    int r = check_not_negative(d, "scale", scale);
    if (r)
        return r;
    uint16_t x = standard(d, OP_STANDARD_EXPONENTIAL, RANDOM_STREAM_EXPONENTIAL, dtype);
    return lower_finish(&d->l, scaled(d, dtype, x, &zero, scale), ret);
}

/* True where a uniform number is below p. */
static int make_bernoulli(struct draw *d, const struct value *p, struct value *ret)
{
    double number = p->kind != VALUE_NODE ? scalar_as_double(p) : 0;
    if (!(number >= 0 && number <= 1))
        return random_refuse(d, types_child_column(d->l.c, d->l.n, 0), "p", "0 to 1", number);
    uint16_t u = standard(d, OP_STANDARD_UNIFORM, RANDOM_STREAM_BERNOULLI, DTYPE_FLOAT64);
    u = lower_binary(&d->l, OP_LESS, u, lower_value(&d->l, p, DTYPE_FLOAT64));
    return lower_finish(&d->l, u, ret);
}

/* NumPy's bound: results must fit int64. */
static int make_poisson(struct draw *d, struct value *ret)
{
    const struct value *lam = parameter(d, "lam", &one);
    double number = lam->kind != VALUE_NODE ? scalar_as_double(lam) : 0;
    if (!(number >= 0 && number <= 9.223372006484771e18))
        return random_refuse(d, column_of(d, "lam"), "lam", "0 to 9.22e18", number);
    uint16_t src[3] = {random_flat_index(d), d->seed, lower_value(&d->l, lam, DTYPE_FLOAT64)};
    uint16_t node = random_step(d, OP_RANDOM_POISSON, DTYPE_FLOAT64, DTYPE_INT64, 3, src);
    return lower_finish(&d->l, node, ret);
}

int random_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    struct draw d;
    int r = random_begin(&d, c, n);
    if (r)
        return r;
    if (n->op == OP_BERNOULLI)
        return make_bernoulli(&d, &args[0], ret);
    if (n->op == OP_POISSON)
        return make_poisson(&d, ret);
    enum dtype dtype = literals_dtype(c, n, DTYPE_FLOAT64);
    if (!dtype_is_float(dtype))
        return rules_bad_dtype(c, n, dtype, "float32 or float64", "gives floats");
    switch (n->op) {
    case OP_UNIFORM: return make_uniform(&d, dtype, ret);
    case OP_EXPONENTIAL: return make_exponential(&d, dtype, ret);
    default: return make_normal(&d, dtype, ret);
    }
}
