/* Complex numbers: what is written with them becomes real arithmetic of their parts.
 *
 *     z*z + c     real: zr*zr - zi*zi + cr     imaginary: zr*zi + zi*zr + ci
 *
 * So engines, kernels and planner know nothing of them, and what two parts have in common is
 * computed once, as everything in the graph is. A real number next to a complex one stays real: its
 * product with a pair scales both parts, and adding it leaves the imaginary one. NumPy makes a
 * complex number of it first, which differs where a part is infinite or NaN, and in signs of zeros.
 *
 * The product is the textbook's, as NumPy's. The quotient is Smith's, as NumPy's: the larger part
 * of the divisor divides the smaller one, so that no square overflows. Neither is repaired where
 * parts are infinite.
 *
 * Parts need not have the same shape, only such that broadcast: complex(x, 0) has one array. Where
 * a part is looked at as an array of its own, it is spread over the shape of both.
 *
 * Called by types.c where an argument is complex.
 */
#include "kernels/expr/rules/complex.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

#include <math.h>

#define MAX_POWER 100

/* ---- steps ---- */

struct value calc_number(double number)
{
    return (struct value){.kind = VALUE_FLOAT, .number = number};
}

struct value calc_operator(struct calc *k, enum op op, struct value a, struct value b)
{
    struct value result = calc_number(0);
    if (k->r == 0)
        k->r = rules_lower_operator(k->c, k->n, op, &a, &b, &result);
    return result;
}

static struct value call(struct calc *k, enum op op, unsigned n_args, const struct value *args)
{
    struct value result = calc_number(0);
    if (k->r == 0)
        k->r = rules_lower(k->c, k->n, op, n_args, args, &result);
    return result;
}

struct value calc_call(struct calc *k, enum op op, struct value a)
{
    return call(k, op, 1, &a);
}

struct value calc_call2(struct calc *k, enum op op, struct value a, struct value b)
{
    return call(k, op, 2, (struct value[]){a, b});
}

struct value calc_where(struct calc *k, struct value condition, struct value a, struct value b)
{
    return call(k, OP_WHERE, 3, (struct value[]){condition, a, b});
}

int calc_finish(struct calc *k, struct pair z, struct value *ret)
{
    return k->r != 0 ? k->r : complex_make(k->c, k->n, (struct value[]){z.re, z.im}, ret);
}

int calc_finish_real(struct calc *k, struct value x, struct value *ret)
{
    if (k->r == 0)
        *ret = x;
    return k->r;
}

/* ---- values ---- */

struct value complex_part(const struct value *v, unsigned part)
{
    if (v->kind == VALUE_COMPLEX)
        return v->parts[part];
    return part == 0 ? *v : (struct value){.kind = VALUE_INTEGER};
}

struct pair pair_of(const struct value *v)
{
    return (struct pair){complex_part(v, 0), complex_part(v, 1)};
}

int complex_make(struct compiler *c, const struct ast_node *n, const struct value parts[2],
                 struct value *ret)
{
    struct value *made = arena_take(&c->arena, 2 * sizeof(*made));
    if (made == NULL)
        return compiler_no_memory(c);
    bool is_number = parts[0].kind != VALUE_NODE && parts[1].kind != VALUE_NODE;
    enum dtype dtype = types_common(c, &parts[0], &parts[1]);
    if (!dtype_is_float(dtype))
        dtype = DTYPE_FLOAT64;
    for (unsigned i = 0; i < 2; i++) {
        uint16_t node;
        if (is_number) {
            made[i] = calc_number(scalar_as_double(&parts[i]));
            continue;
        }
        int r = types_as(c, n->column, &parts[i], dtype, &node);
        if (r == 0)
            r = types_set_node(node, &made[i]);
        if (r)
            return r;
    }
    *ret = (struct value){.kind = VALUE_COMPLEX, .parts = made};
    return 0;
}

static bool has_all_of(const struct compiler *c, const struct graph_node *a,
                       const struct graph_node *like)
{
    const struct shape *x = &c->graph.shapes[a->shape], *y = &c->graph.shapes[like->shape];
    if (y->ndim > x->ndim || (like->is_free && !a->is_free))
        return false;
    for (int i = 1; i <= y->ndim; i++)
        if (y->dims[y->ndim - i] != 1 && y->dims[y->ndim - i] != x->dims[x->ndim - i])
            return false;
    return true;
}

/* A choice between twice the same, by a condition that has the other shape. */
static struct value spread(struct calc *k, struct value a, struct value like)
{
    struct value known;
    if (k->r != 0 || like.kind != VALUE_NODE ||
        (a.kind == VALUE_NODE &&
         has_all_of(k->c, &k->c->graph.nodes[a.node], &k->c->graph.nodes[like.node])))
        return a;
    k->r = rules_known(k->c, k->n, true, &like, &known);
    return calc_where(k, known, a, a);
}

int complex_whole(struct compiler *c, const struct ast_node *n, const struct value *v,
                  struct value parts[2])
{
    struct calc k = {c, n, 0};
    struct pair z = pair_of(v);
    parts[0] = spread(&k, z.re, z.im);
    parts[1] = spread(&k, z.im, z.re);
    return k.r;
}

/* ---- arithmetic ---- */

static bool is_number(struct pair z)
{
    return z.re.kind != VALUE_NODE && z.im.kind != VALUE_NODE;
}

static bool is_same(struct pair a, struct pair b)
{
    return a.re.kind == VALUE_NODE && b.re.kind == VALUE_NODE && a.im.kind == VALUE_NODE &&
           b.im.kind == VALUE_NODE && a.re.node == b.re.node && a.im.node == b.im.node;
}

struct pair pair_multiply(struct calc *k, struct pair a, struct pair b)
{
    struct value re = calc_operator(k, OP_SUBTRACT, calc_operator(k, OP_MULTIPLY, a.re, b.re),
                                    calc_operator(k, OP_MULTIPLY, a.im, b.im));
    struct value cross = calc_operator(k, OP_MULTIPLY, a.re, b.im);
    struct value other = is_same(a, b) ? cross : calc_operator(k, OP_MULTIPLY, a.im, b.re);
    return (struct pair){re, calc_operator(k, OP_ADD, cross, other)};
}

static struct pair divide_numbers(struct pair a, struct pair b)
{
    double x = scalar_as_double(&a.re), y = scalar_as_double(&a.im);
    double p = scalar_as_double(&b.re), q = scalar_as_double(&b.im);
    if (p == 0 && q == 0)
        return (struct pair){calc_number(x / fabs(p)), calc_number(y / fabs(p))};
    bool is_wide = fabs(p) >= fabs(q);
    double ratio = is_wide ? q / p : p / q;
    double scale = 1 / (is_wide ? p + q * ratio : q + p * ratio);
    return is_wide ? (struct pair){calc_number((x + y * ratio) * scale),
                                   calc_number((y - x * ratio) * scale)}
                   : (struct pair){calc_number((x * ratio + y) * scale),
                                   calc_number((y * ratio - x) * scale)};
}

/* Numbers as functions take them: of the dtype that they have next to the other. */
static struct pair typed_like(struct calc *k, struct pair z, struct pair like)
{
    struct value *parts[2] = {&z.re, &z.im}, other = like.re.kind == VALUE_NODE ? like.re : like.im;
    enum dtype dtype = types_common(k->c, &other, &z.re);
    for (unsigned i = 0; k->r == 0 && i < 2; i++) {
        uint16_t node = 0;
        k->r = types_as(k->c, k->n->column, parts[i], dtype_is_float(dtype) ? dtype : DTYPE_FLOAT64,
                        &node);
        (void)types_set_node(node, parts[i]);
    }
    return z;
}

struct pair pair_divide(struct calc *k, struct pair a, struct pair b)
{
    if (is_number(a) && is_number(b))
        return divide_numbers(a, b);
    if (is_number(b))
        b = typed_like(k, b, a);
    struct value p = calc_call(k, OP_ABSOLUTE, b.re), q = calc_call(k, OP_ABSOLUTE, b.im);
    struct value is_wide = calc_operator(k, OP_GREATER_EQUAL, p, q);
    struct value large = calc_where(k, is_wide, b.re, b.im);
    struct value small = calc_where(k, is_wide, b.im, b.re);
    struct value ratio = calc_operator(k, OP_DIVIDE, small, large);
    struct value sum = calc_operator(k, OP_ADD, large, calc_operator(k, OP_MULTIPLY, small, ratio));
    struct value scale = calc_operator(k, OP_DIVIDE, calc_number(1), sum);
    struct value x = calc_operator(k, OP_MULTIPLY, a.re, ratio);
    struct value y = calc_operator(k, OP_MULTIPLY, a.im, ratio);
    struct value re = calc_where(k, is_wide, calc_operator(k, OP_ADD, a.re, y),
                                 calc_operator(k, OP_ADD, x, a.im));
    struct value im = calc_where(k, is_wide, calc_operator(k, OP_SUBTRACT, a.im, x),
                                 calc_operator(k, OP_SUBTRACT, y, a.re));
    struct value zero = calc_operator(k, OP_ADD, p, q); /* of a NaN and 0 it is none */
    struct value is_zero = calc_operator(k, OP_EQUAL, zero, calc_number(0));
    re = calc_where(k, is_zero, calc_operator(k, OP_DIVIDE, a.re, zero),
                    calc_operator(k, OP_MULTIPLY, re, scale));
    im = calc_where(k, is_zero, calc_operator(k, OP_DIVIDE, a.im, zero),
                    calc_operator(k, OP_MULTIPLY, im, scale));
    return (struct pair){re, im};
}

static struct pair scale_parts(struct calc *k, enum op op, struct pair z, struct value x)
{
    return (struct pair){calc_operator(k, op, z.re, x), calc_operator(k, op, z.im, x)};
}

static int arithmetic(struct calc *k, const struct value *args, struct value *ret)
{
    enum op op = (enum op)k->n->op;
    bool are[2] = {args[0].kind == VALUE_COMPLEX, args[1].kind == VALUE_COMPLEX};
    struct pair a = pair_of(&args[0]), b = pair_of(&args[1]), z = a;
    switch (op) {
    case OP_MULTIPLY:
        z = !are[0]   ? scale_parts(k, op, b, a.re)
            : !are[1] ? scale_parts(k, op, a, b.re)
                      : pair_multiply(k, a, b);
        break;
    case OP_DIVIDE: z = are[1] ? pair_divide(k, a, b) : scale_parts(k, op, a, b.re); break;
    default:
        z.re = calc_operator(k, op, a.re, b.re);
        if (are[1])
            z.im = are[0] || op == OP_SUBTRACT ? calc_operator(k, op, a.im, b.im) : b.im;
        break;
    }
    return calc_finish(k, z, ret);
}

static int compare(struct calc *k, const struct value *args, struct value *ret)
{
    enum op op = (enum op)k->n->op;
    struct pair a = pair_of(&args[0]), b = pair_of(&args[1]);
    struct value re = calc_operator(k, op, a.re, b.re), im = calc_operator(k, op, a.im, b.im);
    enum op both = op == OP_EQUAL ? OP_BITWISE_AND : OP_BITWISE_OR;
    return calc_finish_real(k, calc_operator(k, both, re, im), ret);
}

/* ---- powers ---- */

static int bad_power(struct calc *k)
{
    return complex_refuse(k->c, k->n->column,
                          "a power of a complex number whose exponent is not an integer from -100 "
                          "to 100, or 0.5, that is known here",
                          "exp(w * log(z))");
}

/* By squares and products. */
static struct pair raise(struct calc *k, struct pair z, unsigned exponent)
{
    struct pair result = z;
    bool has_result = false;
    for (;; exponent /= 2) {
        if (exponent % 2 == 1) {
            result = has_result ? pair_multiply(k, result, z) : z;
            has_result = true;
        }
        if (exponent < 2)
            return result;
        z = pair_multiply(k, z, z);
    }
}

static int power(struct calc *k, const struct value *args, struct value *ret)
{
    const struct value *w = &args[1];
    struct pair z = pair_of(&args[0]), one = {calc_number(1), calc_number(0)};
    if (args[0].kind != VALUE_COMPLEX || w->kind == VALUE_NODE || w->kind == VALUE_COMPLEX)
        return bad_power(k);
    double exponent = scalar_as_double(w);
    if (exponent == 0.5) {
        struct ast_node root = *k->n;
        root.op = OP_SQRT;
        return complex_function(k->c, &root, args, ret);
    }
    if (!(fabs(exponent) <= MAX_POWER) || exponent != floor(exponent))
        return bad_power(k);
    if (exponent == 0) {
        one = is_number(z) ? one : typed_like(k, one, z);
        one.re = spread(k, spread(k, one.re, z.re), z.im);
        return calc_finish(k, one, ret);
    }
    z = raise(k, z, (unsigned)fabs(exponent));
    return calc_finish(k, exponent < 0 ? pair_divide(k, one, z) : z, ret);
}

/* ---- the rule ---- */

bool complex_is_in(const struct compiler *c, const struct ast_node *n)
{
    bool is_in = false;
    for (unsigned i = 0; i < n->n_children; i++) {
        const struct value *v = types_child(c, n, i);
        is_in |= v != NULL && v->kind == VALUE_COMPLEX;
    }
    return is_in;
}

int complex_refuse(struct compiler *c, uint32_t column, const char *what, const char *instead)
{
    int r = compiler_fail(c, GAD_BAD_DTYPE, column, "%s; write %s", what, instead);
    error_expected(c->error, "real numbers");
    error_found(c->error, "complex numbers");
    return r;
}

int complex_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                  struct value *ret)
{
    struct calc k = {c, n, 0};
    switch (n->op) {
    case OP_ADD:
    case OP_SUBTRACT:
    case OP_MULTIPLY:
    case OP_DIVIDE: return arithmetic(&k, args, ret);
    case OP_EQUAL:
    case OP_NOT_EQUAL: return compare(&k, args, ret);
    case OP_POWER: return power(&k, args, ret);
    default: return complex_function(c, n, args, ret);
    }
}
