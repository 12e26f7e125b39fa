/* Python's numbers: folding them, and giving them a dtype.
 *
 * Numbers in the text and scalar arguments are Python's, so `2*3`, `1/2` and `7//-2` are computed
 * as Python does, before any dtype is known. Integers are exact between -2^63 and 2^64 - 1 (what
 * some dtype can hold) and refused beyond. Floats divide by zero as NumPy's do (inf, nan);
 * integers refuse to, as both do. Only when a number meets an array, or becomes a result, does it
 * get a dtype; an integer that the dtype cannot hold is then an error, never wrapped.
 *
 * Products go through unsigned 128-bit numbers, which cannot overflow here.
 */
#include "kernels/expr/text/scalar.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define INTEGER_MIN ((__int128)INT64_MIN)
#define INTEGER_MAX ((__int128)UINT64_MAX)

struct value scalar_of_request(enum dtype dtype, union scalar scalar)
{
    switch (dtype) {
    case DTYPE_BOOL: return (struct value){.kind = VALUE_BOOL, .integer = scalar.u64 != 0};
    case DTYPE_UINT64: return (struct value){.kind = VALUE_INTEGER, .integer = scalar.u64};
    case DTYPE_FLOAT64: return (struct value){.kind = VALUE_FLOAT, .number = scalar.f64};
    default: return (struct value){.kind = VALUE_INTEGER, .integer = scalar.i64};
    }
}

double scalar_as_double(const struct value *v)
{
    return v->kind == VALUE_FLOAT ? v->number : (double)v->integer;
}

const char *scalar_format(__int128 value, char buffer[static 64])
{
    if (value < 0)
        snprintf(buffer, 64, "%" PRId64, (int64_t)value);
    else
        snprintf(buffer, 64, "%" PRIu64, (uint64_t)value);
    return buffer;
}

static void dtype_range(enum dtype dtype, __int128 *ret_min, __int128 *ret_max)
{
    unsigned bits = (unsigned)dtype_size(dtype) * 8;
    *ret_min = dtype_is_signed(dtype) ? -((__int128)1 << (bits - 1)) : 0;
    *ret_max = ((__int128)1 << (dtype_is_signed(dtype) ? bits - 1 : bits)) - 1;
}

const char *scalar_format_range(enum dtype dtype, char buffer[static 64])
{
    __int128 min, max;
    char low[64], high[64];
    dtype_range(dtype, &min, &max);
    snprintf(buffer, 64, "%.24s to %.24s", scalar_format(min, low), scalar_format(max, high));
    return buffer;
}

bool scalar_fits(const struct value *v, enum dtype dtype)
{
    __int128 min, max;
    if (v->kind == VALUE_BOOL || dtype_is_float(dtype))
        return true;
    assert(v->kind == VALUE_INTEGER && dtype_is_integer(dtype));
    dtype_range(dtype, &min, &max);
    return v->integer >= min && v->integer <= max;
}

/* ---- folding ---- */

static int too_large(struct compiler *c, const struct ast_node *n)
{
    return compiler_fail(
        c, GAD_BAD_EXPRESSION, n->column,
        "the result does not fit 64 bits; write a float (2.0) to compute in float64");
}

static int set_integer(struct compiler *c, const struct ast_node *n, __int128 integer,
                       struct value *ret)
{
    if (integer < INTEGER_MIN || integer > INTEGER_MAX)
        return too_large(c, n);
    *ret = (struct value){.kind = VALUE_INTEGER, .integer = integer};
    return 0;
}

static int set_float(double number, struct value *ret)
{
    *ret = (struct value){.kind = VALUE_FLOAT, .number = number};
    return 0;
}

static int set_bool(bool value, struct value *ret)
{
    *ret = (struct value){.kind = VALUE_BOOL, .integer = value};
    return 0;
}

static uint64_t magnitude(__int128 a)
{
    return (uint64_t)(a < 0 ? -a : a);
}

/* Both within the range. False when the product is not. */
static bool multiply(__int128 a, __int128 b, __int128 *ret)
{
    unsigned __int128 product = (unsigned __int128)magnitude(a) * magnitude(b);
    bool is_negative = (a < 0) != (b < 0);
    if (product > (unsigned __int128)(is_negative ? -INTEGER_MIN : INTEGER_MAX))
        return false;
    *ret = is_negative ? -(__int128)product : (__int128)product;
    return true;
}

static int power_of_integers(struct compiler *c, const struct ast_node *n, __int128 a, __int128 b,
                             struct value *ret)
{
    if (b < 0)
        return a == 0 ? compiler_fail(c, GAD_BAD_EXPRESSION, n->column, "0 to a negative power")
                      : set_float(pow((double)a, (double)b), ret);
    if (a == 0 || a == 1)
        return set_integer(c, n, b == 0 ? 1 : a, ret);
    if (a == -1)
        return set_integer(c, n, b % 2 == 0 ? 1 : -1, ret);
    if (b > 64)
        return too_large(c, n);
    __int128 result = 1;
    for (int i = 0; i < (int)b; i++)
        if (!multiply(result, a, &result))
            return too_large(c, n);
    return set_integer(c, n, result, ret);
}

static int divide_integers(struct compiler *c, const struct ast_node *n, __int128 a, __int128 b,
                           struct value *ret)
{
    if (b == 0)
        return compiler_fail(c, GAD_BAD_EXPRESSION, n->column, "integer division by zero");
    if (n->op == OP_DIVIDE)
        return set_float((double)((long double)a / (long double)b), ret);
    __int128 quotient = a / b, remainder = a % b;
    if (remainder != 0 && (remainder < 0) != (b < 0)) {
        quotient--;
        remainder += b;
    }
    return set_integer(c, n, n->op == OP_REMAINDER ? remainder : quotient, ret);
}

static int shift_integer(struct compiler *c, const struct ast_node *n, __int128 a, __int128 b,
                         struct value *ret)
{
    __int128 shifted;
    if (b < 0)
        return compiler_fail(c, GAD_BAD_EXPRESSION, n->column, "a shift by a negative number");
    if (n->op == OP_RIGHT_SHIFT)
        return set_integer(c, n, b > 64 ? (a < 0 ? -1 : 0) : a >> (int)b, ret);
    if (a == 0)
        return set_integer(c, n, 0, ret);
    if (b > 63 || !multiply(a, (__int128)1 << (int)b, &shifted))
        return too_large(c, n);
    return set_integer(c, n, shifted, ret);
}

static int fold_integers(struct compiler *c, const struct ast_node *n, __int128 a, __int128 b,
                         struct value *ret)
{
    __int128 product;
    switch (n->op) {
    case OP_ADD: return set_integer(c, n, a + b, ret);
    case OP_SUBTRACT: return set_integer(c, n, a - b, ret);
    case OP_MULTIPLY:
        return multiply(a, b, &product) ? set_integer(c, n, product, ret) : too_large(c, n);
    case OP_DIVIDE:
    case OP_FLOOR_DIVIDE:
    case OP_REMAINDER: return divide_integers(c, n, a, b, ret);
    case OP_POWER: return power_of_integers(c, n, a, b, ret);
    case OP_NEGATIVE: return set_integer(c, n, -a, ret);
    case OP_INVERT: return set_integer(c, n, -a - 1, ret);
    case OP_BITWISE_AND: return set_integer(c, n, a & b, ret);
    case OP_BITWISE_OR: return set_integer(c, n, a | b, ret);
    case OP_BITWISE_XOR: return set_integer(c, n, a ^ b, ret);
    default: return shift_integer(c, n, a, b, ret);
    }
}

static double floor_divide(double a, double b)
{
    if (b == 0)
        return a / b;
    double mod = fmod(a, b);
    double quotient = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign(0.0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static double remainder_of(double a, double b)
{
    double mod = fmod(a, b);
    if (mod == 0)
        return copysign(0.0, b);
    return (b < 0) != (mod < 0) ? mod + b : mod;
}

static int fold_floats(struct compiler *c, const struct ast_node *n, double a, double b,
                       struct value *ret)
{
    switch (n->op) {
    case OP_ADD: return set_float(a + b, ret);
    case OP_SUBTRACT: return set_float(a - b, ret);
    case OP_MULTIPLY: return set_float(a * b, ret);
    case OP_DIVIDE: return set_float(a / b, ret);
    case OP_FLOOR_DIVIDE: return set_float(floor_divide(a, b), ret);
    case OP_REMAINDER: return set_float(remainder_of(a, b), ret);
    case OP_NEGATIVE: return set_float(-a, ret);
    case OP_POWER:
        if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
            return compiler_fail(c, GAD_BAD_EXPRESSION, n->column,
                                 "a negative number to a fractional power is complex");
        return set_float(pow(a, b), ret);
    default:
        return compiler_fail(c, GAD_BAD_DTYPE, n->column,
                             "'%s' needs integers or bools, not floats",
                             n->op == OP_INVERT ? "~" : op_info((enum op)n->op)->symbol);
    }
}

/* Exact also between integers and floats: a long double holds both. */
static bool compare(enum op op, const struct value *a, const struct value *b)
{
    long double x = a->kind == VALUE_FLOAT ? (long double)a->number : (long double)a->integer;
    long double y = b->kind == VALUE_FLOAT ? (long double)b->number : (long double)b->integer;
    switch (op) {
    case OP_EQUAL: return x == y;
    case OP_NOT_EQUAL: return x != y;
    case OP_LESS: return x < y;
    case OP_LESS_EQUAL: return x <= y;
    case OP_GREATER: return x > y;
    default: return x >= y;
    }
}

int scalar_fold(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret)
{
    const struct value *a = &args[0], *b = &args[n->n_children - 1];
    if (op_info((enum op)n->op)->rule == OP_RULE_COMPARE)
        return set_bool(compare((enum op)n->op, a, b), ret);
    if (a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT)
        return fold_floats(c, n, scalar_as_double(a), scalar_as_double(b), ret);
    int r = fold_integers(c, n, a->integer, b->integer, ret);
    bool is_logical = n->op == OP_BITWISE_AND || n->op == OP_BITWISE_OR || n->op == OP_BITWISE_XOR;
    if (r == 0 && is_logical && a->kind == VALUE_BOOL && b->kind == VALUE_BOOL)
        ret->kind = VALUE_BOOL;
    return r;
}

/* ---- giving a dtype ---- */

static int out_of_bounds(struct compiler *c, uint32_t column, const char *found, enum dtype dtype)
{
    char range[64];
    int r =
        compiler_fail(c, GAD_BAD_EXPRESSION, column, "the number %s is out of bounds for %s (%s)",
                      found, dtype_name(dtype), scalar_format_range(dtype, range));
    error_expected(c->error, "%s", range);
    error_found(c->error, "%s", found);
    return r;
}

int scalar_convert(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
                   union scalar *ret)
{
    char text[64];
    memset(ret, 0, sizeof(*ret));
    if (dtype == DTYPE_FLOAT32)
        ret->f32 = (float)scalar_as_double(v);
    else if (dtype == DTYPE_FLOAT64)
        ret->f64 = scalar_as_double(v);
    else if (dtype == DTYPE_BOOL)
        ret->u64 = v->kind == VALUE_FLOAT ? v->number != 0 : v->integer != 0;
    else if (!scalar_fits(v, dtype))
        return out_of_bounds(c, column, scalar_format(v->integer, text), dtype);
    else
        ret->u64 = (uint64_t)v->integer;
    return 0;
}

int scalar_construct(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
                     union scalar *ret)
{
    char text[64];
    if (v->kind != VALUE_FLOAT || !dtype_is_integer(dtype))
        return scalar_convert(c, column, v, dtype, ret);
    if (!(v->number > -9.3e18 && v->number < 1.9e19)) {
        snprintf(text, sizeof(text), "%g", v->number);
        return out_of_bounds(c, column, text, dtype);
    }
    struct value whole = {.kind = VALUE_INTEGER, .integer = (__int128)v->number};
    if (whole.integer < INTEGER_MIN || whole.integer > INTEGER_MAX) {
        snprintf(text, sizeof(text), "%g", v->number);
        return out_of_bounds(c, column, text, dtype);
    }
    return scalar_convert(c, column, &whole, dtype, ret);
}
