/* Computing with constants that have a dtype, at compile time: `sqrt(2)`, `float32(1)/3`.
 *
 * Only what is certain to give what the engine would is folded. What the engine counts or refuses
 * while it runs (integer division, integer powers, casts of what does not fit) is left to it.
 * float32 is computed in double and rounded once, which is exact rounding for + - * / and sqrt.
 *
 * Called by graph.c when all sources of an operation are constants.
 */
#include "kernels/expr/schedule/build.h"

#include <math.h>

static double read_float(enum dtype dtype, union scalar s)
{
    return dtype == DTYPE_FLOAT32 ? (double)s.f32 : s.f64;
}

static union scalar make_float(enum dtype dtype, double value)
{
    union scalar s = {.u64 = 0};
    if (dtype == DTYPE_FLOAT32)
        s.f32 = (float)value;
    else
        s.f64 = value;
    return s;
}

static union scalar make_bool(bool value)
{
    return (union scalar){.u64 = value};
}

/* Keeps the width's bits, extended as union scalar wants them. */
static union scalar make_integer(enum dtype dtype, uint64_t value)
{
    unsigned unused = 64 - 8 * (unsigned)dtype_size(dtype);
    if (dtype == DTYPE_BOOL)
        return make_bool(value & 1);
    if (dtype_is_signed(dtype))
        return (union scalar){.i64 = (int64_t)(value << unused) >> unused};
    return (union scalar){.u64 = value << unused >> unused};
}

/* Which of two equal ones (0.0 and -0.0) or which NaN it is, is the engine's affair. */
static bool fold_extremum(enum op op, enum dtype dtype, double a, double b, union scalar *ret)
{
    bool wants_less = op == OP_MINIMUM || op == OP_FMIN;
    if (a == b ? signbit(a) != signbit(b) : !(a < b || a > b))
        return false;
    *ret = make_float(dtype, (a < b) == wants_less ? a : b);
    return true;
}

static bool fold_floats(enum op op, enum dtype dtype, double a, double b, union scalar *ret)
{
    double value;
    switch (op) {
    case OP_ADD: value = a + b; break;
    case OP_SUBTRACT: value = a - b; break;
    case OP_MULTIPLY: value = a * b; break;
    case OP_DIVIDE: value = a / b; break;
    case OP_POWER: value = pow(a, b); break;
    case OP_NEGATIVE: value = -a; break;
    case OP_ABSOLUTE: value = fabs(a); break;
    case OP_SQUARE: value = a * a; break;
    case OP_SQRT: value = sqrt(a); break;
    case OP_EXP: value = exp(a); break;
    case OP_LOG: value = log(a); break;
    case OP_SIN: value = sin(a); break;
    case OP_COS: value = cos(a); break;
    case OP_TANH: value = tanh(a); break;
    case OP_FLOOR: value = floor(a); break;
    case OP_CEIL: value = ceil(a); break;
    case OP_TRUNC: value = trunc(a); break;
    case OP_RINT: value = rint(a); break;
    case OP_SIGN: value = isnan(a) ? a : (double)((a > 0) - (a < 0)); break;
    case OP_COPYSIGN: value = copysign(a, b); break;
    case OP_MINIMUM:
    case OP_MAXIMUM:
    case OP_FMIN:
    case OP_FMAX: return fold_extremum(op, dtype, a, b, ret);
    case OP_EQUAL: *ret = make_bool(a == b); return true;
    case OP_NOT_EQUAL: *ret = make_bool(a != b); return true;
    case OP_LESS: *ret = make_bool(a < b); return true;
    case OP_LESS_EQUAL: *ret = make_bool(a <= b); return true;
    case OP_GREATER: *ret = make_bool(a > b); return true;
    case OP_GREATER_EQUAL: *ret = make_bool(a >= b); return true;
    case OP_ISNAN: *ret = make_bool(isnan(a)); return true;
    case OP_ISFINITE: *ret = make_bool(isfinite(a)); return true;
    case OP_ISINF: *ret = make_bool(isinf(a)); return true;
    case OP_ISPOSINF: *ret = make_bool(a == INFINITY); return true;
    case OP_ISNEGINF: *ret = make_bool(a == -INFINITY); return true;
    case OP_SIGNBIT: *ret = make_bool(signbit(a)); return true;
    default: return false;
    }
    *ret = make_float(dtype, value);
    return true;
}

static union scalar count_bits(enum dtype dtype, union scalar a)
{
    uint64_t magnitude = dtype_is_signed(dtype) && a.i64 < 0 ? 0 - a.u64 : a.u64;
    return (union scalar){.u64 = (uint64_t)__builtin_popcountll(magnitude)};
}

static bool fold_integers(enum op op, enum dtype dtype, union scalar a, union scalar b,
                          union scalar *ret)
{
    bool is_signed = dtype_is_signed(dtype);
    bool is_less = is_signed ? a.i64 < b.i64 : a.u64 < b.u64;
    uint64_t value;
    switch (op) {
    case OP_ADD: value = a.u64 + b.u64; break;
    case OP_SUBTRACT: value = a.u64 - b.u64; break;
    case OP_MULTIPLY: value = a.u64 * b.u64; break;
    case OP_NEGATIVE: value = 0 - a.u64; break;
    case OP_ABSOLUTE: value = is_signed && a.i64 < 0 ? 0 - a.u64 : a.u64; break;
    case OP_SQUARE: value = a.u64 * a.u64; break;
    case OP_BITWISE_AND: value = a.u64 & b.u64; break;
    case OP_BITWISE_OR: value = a.u64 | b.u64; break;
    case OP_BITWISE_XOR: value = a.u64 ^ b.u64; break;
    case OP_INVERT: value = ~a.u64; break;
    case OP_MINIMUM: value = is_less ? a.u64 : b.u64; break;
    case OP_MAXIMUM: value = is_less ? b.u64 : a.u64; break;
    case OP_SIGN: value = is_signed ? (uint64_t)((a.i64 > 0) - (a.i64 < 0)) : a.u64 > 0; break;
    case OP_BITWISE_COUNT: *ret = count_bits(dtype, a); return true;
    case OP_EQUAL: *ret = make_bool(a.u64 == b.u64); return true;
    case OP_NOT_EQUAL: *ret = make_bool(a.u64 != b.u64); return true;
    case OP_LESS: *ret = make_bool(is_less); return true;
    case OP_GREATER_EQUAL: *ret = make_bool(!is_less); return true;
    case OP_LESS_EQUAL: *ret = make_bool(is_less || a.u64 == b.u64); return true;
    case OP_GREATER: *ret = make_bool(!is_less && a.u64 != b.u64); return true;
    default: return false;
    }
    *ret = make_integer(dtype, value);
    return true;
}

bool fold_op(enum op op, enum dtype compute, const union scalar *src, union scalar *ret)
{
    if (op == OP_WHERE) {
        *ret = src[0].u64 != 0 ? src[1] : src[2];
        return true;
    }
    if (dtype_is_float(compute))
        return fold_floats(op, compute, read_float(compute, src[0]), read_float(compute, src[1]),
                           ret);
    return fold_integers(op, compute, src[0], src[1], ret);
}

bool fold_cast(enum dtype from, union scalar value, enum dtype to, union scalar *ret)
{
    if (!dtype_is_float(from)) {
        if (to == DTYPE_BOOL)
            *ret = make_bool(value.u64 != 0);
        else if (!dtype_is_float(to))
            *ret = make_integer(to, value.u64);
        else if (to == DTYPE_FLOAT32) /* not through double: that would round twice */
            *ret = make_float(to, dtype_is_signed(from) ? (float)value.i64 : (float)value.u64);
        else
            *ret = make_float(to, dtype_is_signed(from) ? (double)value.i64 : (double)value.u64);
        return true;
    }
    double number = read_float(from, value);
    if (dtype_is_float(to))
        *ret = make_float(to, number);
    else if (to == DTYPE_BOOL)
        *ret = make_bool(number != 0);
    else if (!(fabs(number) < 128)) /* fits every signed dtype */
        return false;
    else if (number < 0 && !dtype_is_signed(to))
        return false;
    else
        *ret = make_integer(to, (uint64_t)(int64_t)number);
    return true;
}
