/* Functions of complex numbers, by their parts.
 *
 * What is linear, or only picks elements, is the same function of each part by itself: near, where,
 * select, sum, mean, windows. The children in the AST are the parts meanwhile, one after the other,
 * so that the rule of the function reads its keywords as ever; a real choice next to complex ones
 * is 0 in the imaginary round.
 *
 * The root is 2 * sqrt(|x|/8 + hypot(x/8, y/8)), with the sign of the imaginary part, and what that
 * leaves: no sum of squares overflows.
 *
 * Called by complex.c; for real(), imag() and the like by types.c.
 */
#include "kernels/expr/rules/complex.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/keywords.h"

#include <stdio.h>
#include <string.h>

/* ---- the same of each part ---- */

struct linear {
    unsigned first, n; /* of the children that may be complex */
    int more;          /* another one, a value in place of elements; -1: none */
    bool is_elementwise;
};

static int find_keyword(const struct ast_node *n, const char *name)
{
    enum op op = (enum op)n->op;
    unsigned at = keywords_find(op, name, strlen(name));
    return at < keywords_count(op) ? (int)(op_info(op)->n_args + at) : -1;
}

static bool find_linear(const struct ast_node *n, struct linear *ret)
{
    *ret = (struct linear){.n = 1, .more = -1};
    switch (n->op) {
    case OP_WHERE:
    case OP_SELECT:
        ret->first = n->op == OP_WHERE ? 1 : n->n_children / 2u;
        ret->n = n->n_children - ret->first;
        ret->is_elementwise = true;
        return true;
    case OP_SUM:
    case OP_NANSUM: ret->more = find_keyword(n, "initial"); return true;
    case OP_NEAR:
    case OP_WINDOW_SUM:
    case OP_WINDOW_MEAN:
    case OP_CORRELATE:
    case OP_CONVOLVE: ret->more = find_keyword(n, "value"); return true;
    case OP_MEAN:
    case OP_CUMSUM:
    case OP_TAKE:
    case OP_VAR:
    case OP_STD: return true;
    default: return false;
    }
}

static bool may_be_complex(const struct linear *l, unsigned child)
{
    return (child >= l->first && child < l->first + l->n) || (int)child == l->more;
}

/* The node with its children's parts in place of them. */
static int apply_part(struct calc *k, const struct linear *l, enum op op, unsigned part,
                      const struct value *saved, struct value *ret)
{
    struct compiler *c = k->c;
    struct ast_node n = *k->n;
    struct value args[3];
    int r = 0;
    n.op = (uint16_t)op;
    for (unsigned i = 0; r == 0 && i < n.n_children; i++) {
        struct value parts[2];
        if (n.children[i] == AST_ABSENT || !may_be_complex(l, i))
            continue;
        parts[part] = complex_part(&saved[i], part);
        if (!l->is_elementwise)
            r = complex_whole(c, k->n, &saved[i], parts);
        c->ast.nodes[n.children[i]].value = parts[part];
    }
    for (unsigned i = 0; i < n.n_children && i < 3; i++)
        if (types_child(c, &n, i) != NULL)
            args[i] = *types_child(c, &n, i);
    return r ? r : rules_apply(c, &n, args, ret);
}

static int apply_linear(struct calc *k, const struct linear *l, struct value *ret)
{
    const struct ast_node *n = k->n;
    struct compiler *c = k->c;
    bool is_variance = n->op == OP_VAR || n->op == OP_STD;
    struct value saved[2 * EXPR_MAX_SELECT + 1], parts[2];
    for (unsigned i = 0; i < n->n_children; i++) {
        const struct value *v = types_child(c, n, i);
        if (v != NULL && v->kind == VALUE_COMPLEX && !may_be_complex(l, i))
            return complex_refuse(c, types_child_column(c, n, i),
                                  "a complex number has no place here", "z != 0, or a part of it");
        saved[i] = v != NULL ? *v : (struct value){.kind = VALUE_INTEGER};
    }
    for (unsigned part = 0; k->r == 0 && part < 2; part++)
        k->r = apply_part(k, l, is_variance ? OP_VAR : (enum op)n->op, part, saved, &parts[part]);
    for (unsigned i = 0; i < n->n_children; i++)
        if (n->children[i] != AST_ABSENT)
            c->ast.nodes[n->children[i]].value = saved[i];
    if (!is_variance)
        return calc_finish(k, (struct pair){parts[0], parts[1]}, ret);
    struct value sum = k->r == 0 ? calc_operator(k, OP_ADD, parts[0], parts[1]) : parts[0];
    return calc_finish_real(k, n->op == OP_STD ? calc_call(k, OP_SQRT, sum) : sum, ret);
}

/* ---- functions ---- */

static struct value modulus(struct calc *k, struct pair z)
{
    return calc_call2(k, OP_HYPOT, z.re, z.im);
}

static struct value negative(struct calc *k, struct value x)
{
    return x.kind == VALUE_FLOAT ? calc_number(-x.number) : calc_call(k, OP_NEGATIVE, x);
}

static struct pair root(struct calc *k, struct pair z)
{
    const struct value eighth = calc_number(0.125), zero = calc_number(0);
    struct pair small = {calc_operator(k, OP_MULTIPLY, z.re, eighth),
                         calc_operator(k, OP_MULTIPLY, z.im, eighth)};
    struct value sum =
        calc_operator(k, OP_ADD, calc_call(k, OP_ABSOLUTE, small.re), modulus(k, small));
    struct value t = calc_operator(k, OP_MULTIPLY, calc_number(2), calc_call(k, OP_SQRT, sum));
    struct value half =
        calc_operator(k, OP_MULTIPLY, calc_call(k, OP_ABSOLUTE, z.im), calc_number(0.5));
    struct value is_zero = calc_operator(k, OP_EQUAL, t, zero);
    struct value rest = calc_where(k, is_zero, zero, calc_operator(k, OP_DIVIDE, half, t));
    struct value is_right = calc_operator(k, OP_GREATER_EQUAL, z.re, zero);
    struct value im = calc_where(k, is_right, rest, t);
    return (struct pair){calc_where(k, is_right, t, rest), calc_call2(k, OP_COPYSIGN, im, z.im)};
}

static struct pair exponential(struct calc *k, struct pair z)
{
    struct value length = calc_call(k, OP_EXP, z.re);
    return (struct pair){calc_operator(k, OP_MULTIPLY, length, calc_call(k, OP_COS, z.im)),
                         calc_operator(k, OP_MULTIPLY, length, calc_call(k, OP_SIN, z.im))};
}

/* Of either part, or of both. */
static struct value predicate(struct calc *k, struct pair z)
{
    enum op op = (enum op)k->n->op;
    return calc_operator(k, op == OP_ISFINITE ? OP_BITWISE_AND : OP_BITWISE_OR,
                         calc_call(k, op, z.re), calc_call(k, op, z.im));
}

static struct value squared(struct calc *k, struct pair z)
{
    return calc_operator(k, OP_ADD, calc_operator(k, OP_MULTIPLY, z.re, z.re),
                         calc_operator(k, OP_MULTIPLY, z.im, z.im));
}

/* ---- what is not there ---- */

static int refuse(struct calc *k)
{
    static const struct {
        enum op op;
        const char *instead;
    } others[] = {
        {OP_MATMUL, "real(a) @ real(b) - imag(a) @ imag(b) for the real part, real(a) @ imag(b) + "
                    "imag(a) @ real(b) for the other"},
        {OP_TENSORDOT, "four of the real parts and the imaginary ones"},
        {OP_PROD, "exp(sum(log(z)))"},
        {OP_NORM, "norm(abs(z))"},
        {OP_ISCLOSE, "abs(a - b) <= atol + rtol * abs(b)"},
        {OP_ANY, "any(z != 0)"},
        {OP_ALL, "all(z != 0)"},
        {OP_COUNT_NONZERO, "count_nonzero(z != 0)"},
        {OP_LOGICAL_NOT, "z == 0"},
        {OP_LOG2, "log(z) / log(2)"},
        {OP_LOG10, "log(z) / log(10)"},
        {OP_CAST, "float64(real(z)), or complex(x, y) of other parts"},
    };
    enum op op = (enum op)k->n->op;
    const char *instead = "it of real(z), imag(z), abs(z) or angle(z)";
    char what[96];
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        if (others[i].op == op)
            instead = others[i].instead;
    bool is_order = op_is_comparison(op);
    if (is_order)
        snprintf(what, sizeof(what), "complex numbers have no order");
    else
        snprintf(what, sizeof(what), "%s of complex numbers is not computed", op_info(op)->name);
    return complex_refuse(k->c, k->n->column, what,
                          is_order ? "abs2(a) < abs2(b), or real(a) < real(b)" : instead);
}

/* ---- the rules ---- */

int complex_function(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    struct calc k = {c, n, 0};
    struct linear l;
    if (find_linear(n, &l))
        return apply_linear(&k, &l, ret);
    struct pair z = pair_of(&args[0]);
    switch (n->op) {
    case OP_NEGATIVE:
        z = (struct pair){negative(&k, z.re), negative(&k, z.im)};
        return calc_finish(&k, z, ret);
    case OP_POSITIVE: *ret = args[0]; return 0;
    case OP_ABSOLUTE: return calc_finish_real(&k, modulus(&k, z), ret);
    case OP_SQUARE: return calc_finish(&k, pair_multiply(&k, z, z), ret);
    case OP_RECIPROCAL:
        z = pair_divide(&k, (struct pair){calc_number(1), calc_number(0)}, z);
        return calc_finish(&k, z, ret);
    case OP_EXP: return calc_finish(&k, exponential(&k, z), ret);
    case OP_SQRT: return calc_finish(&k, root(&k, z), ret);
    case OP_LOG:
        z = (struct pair){calc_call(&k, OP_LOG, modulus(&k, z)),
                          calc_call2(&k, OP_ARCTAN2, z.im, z.re)};
        return calc_finish(&k, z, ret);
    case OP_ISNAN:
    case OP_ISINF:
    case OP_ISFINITE: return calc_finish_real(&k, predicate(&k, z), ret);
    default: return refuse(&k);
    }
}

/* Zeros of the dtype and the shape. */
static int zeros_like(struct calc *k, struct value x, struct value *ret)
{
    struct value zero = {.kind = VALUE_INTEGER}, known;
    uint16_t node;
    int r = rules_known(k->c, k->n, true, &x, &known);
    if (r == 0)
        r = types_as(k->c, k->n->column, &zero, types_of(k->c, &x), &node);
    if (r == 0)
        r = types_set_node(node, &zero);
    k->r = r;
    return calc_finish_real(k, calc_where(k, known, zero, zero), ret);
}

static int of_real(struct calc *k, const struct value *x, struct value *ret)
{
    switch (k->n->result) {
    case PART_ANGLE: return calc_finish_real(k, calc_call2(k, OP_ARCTAN2, calc_number(0), *x), ret);
    case PART_ABS2: return calc_finish_real(k, calc_call(k, OP_SQUARE, *x), ret);
    case PART_IMAG: return zeros_like(k, *x, ret);
    default: *ret = *x; return 0;
    }
}

int complex_part_of(struct compiler *c, const struct ast_node *n, const struct value *args,
                    struct value *ret)
{
    struct calc k = {c, n, 0};
    struct pair z = pair_of(&args[0]);
    struct value parts[2];
    bool is_complex = complex_is_in(c, n);
    if (n->result == PART_COMPLEX)
        return is_complex ? complex_refuse(c, n->column, "complex() of complex numbers",
                                           "x + 1j*y, which may be")
                          : complex_make(c, n, args, ret);
    if (!is_complex)
        return of_real(&k, &args[0], ret);
    switch (n->result) {
    case PART_CONJUGATE: z.im = negative(&k, z.im); return calc_finish(&k, z, ret);
    case PART_ANGLE: return calc_finish_real(&k, calc_call2(&k, OP_ARCTAN2, z.im, z.re), ret);
    case PART_ABS2: return calc_finish_real(&k, squared(&k, z), ret);
    default:
        k.r = complex_whole(c, n, &args[0], parts);
        return calc_finish_real(&k, parts[n->result == PART_IMAG], ret);
    }
}
