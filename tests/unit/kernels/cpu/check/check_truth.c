/* The truth for every op whose results are NumPy's to the bit.
 *
 * One element at a time, plain C and libm, no code shared with the kernels. Integers are computed
 * in 128 bits and wrapped; floats in the dtype itself where that matters, else in double, which
 * rounds to the same float32.
 */
#include "tests/unit/kernels/cpu/check/check.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef __int128 wide;
typedef unsigned __int128 uwide;

static wide load_integer(const void *p, enum dtype dtype, size_t i)
{
    size_t n_bytes = dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, (const char *)p + i * n_bytes, n_bytes);
    unsigned n_unused = 64 - 8 * (unsigned)n_bytes;
    if (dtype_is_signed(dtype))
        return (int64_t)(bits << n_unused) >> n_unused;
    return bits;
}

static double load_float(const void *p, enum dtype dtype, size_t i)
{
    return dtype == DTYPE_FLOAT32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

static void store_integer(void *p, enum dtype dtype, wide value)
{
    uint64_t bits = (uint64_t)value;
    memcpy(p, &bits, dtype_size(dtype));
}

static void store_float(void *p, enum dtype dtype, double value)
{
    float narrow = (float)value;
    if (dtype == DTYPE_FLOAT32)
        memcpy(p, &narrow, sizeof(narrow));
    else
        memcpy(p, &value, sizeof(value));
}

static wide lowest(enum dtype dtype)
{
    return dtype_is_signed(dtype) ? -((wide)1 << (8 * dtype_size(dtype) - 1)) : 0;
}

static wide highest(enum dtype dtype)
{
    return ((wide)1 << (8 * dtype_size(dtype) - dtype_is_signed(dtype))) - 1;
}

static wide magnitude(wide a)
{
    return a < 0 ? -a : a;
}

static wide divisor_of(wide a, wide b)
{
    return b == 0 ? magnitude(a) : divisor_of(b, a % b);
}

static wide power_of(uint64_t base, uint64_t exponent)
{
    if (exponent == 0)
        return 1;
    uint64_t root = (uint64_t)power_of(base, exponent / 2);
    return (uint64_t)(root * root * (exponent % 2 ? base : 1));
}

static wide shifted(wide a, wide count, enum dtype dtype, bool is_left)
{
    bool is_beyond = count < 0 || count >= 8 * (wide)dtype_size(dtype);
    if (is_beyond)
        return !is_left && a < 0 ? -1 : 0;
    return is_left ? (wide)((uwide)a << count) : a >> count;
}

static wide divided(enum op op, wide a, wide b, struct kernel_events *events)
{
    if (b == 0) {
        events->n_divide_by_zero++;
        return 0;
    }
    wide quotient = a / b, remainder = a % b;
    bool is_above = remainder != 0 && (remainder < 0) != (b < 0);
    if (op == OP_FLOOR_DIVIDE)
        return quotient - is_above;
    return op == OP_REMAINDER && is_above ? remainder + b : remainder;
}

static wide integer_truth(const struct check_case *k, wide a, wide b, struct kernel_events *events)
{
    wide n_bits = 0;
    switch (k->op) {
    case OP_ADD: return a + b;
    case OP_SUBTRACT: return a - b;
    case OP_MULTIPLY: return (wide)((uwide)a * (uwide)b);
    case OP_SQUARE: return (wide)((uwide)a * (uwide)a);
    case OP_NEGATIVE: return -a;
    case OP_ABSOLUTE: return magnitude(a);
    case OP_MINIMUM: return a < b ? a : b;
    case OP_MAXIMUM: return a > b ? a : b;
    case OP_FLOOR_DIVIDE:
    case OP_REMAINDER:
    case OP_FMOD: return divided(k->op, a, b, events);
    case OP_RECIPROCAL: return divided(OP_FMOD, 0, a, events) + (magnitude(a) == 1 ? a : 0);
    case OP_POWER: events->has_negative_power |= b < 0; return power_of((uint64_t)a, (uint64_t)b);
    case OP_SIGN: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case OP_BITWISE_AND: return a & b;
    case OP_BITWISE_OR: return a | b;
    case OP_BITWISE_XOR: return a ^ b;
    case OP_INVERT: return k->compute == DTYPE_BOOL ? !a : ~a;
    case OP_LEFT_SHIFT: return shifted(a, b, k->compute, true);
    case OP_RIGHT_SHIFT: return shifted(a, b, k->compute, false);
    case OP_BITWISE_COUNT:
        for (uwide bits = (uwide)magnitude(a); bits; bits >>= 1)
            n_bits += bits & 1;
        return n_bits;
    case OP_GCD: return divisor_of(a, b);
    case OP_LCM: {
        uwide product = (uwide)magnitude(a) * (uwide)magnitude(b);
        return product ? (wide)(product / (uwide)divisor_of(a, b)) : 0;
    }
    default: return 0;
    }
}

static bool compare_truth(enum op op, bool is_less, bool is_equal, bool is_ordered)
{
    switch (op) {
    case OP_EQUAL: return is_equal;
    case OP_NOT_EQUAL: return !is_equal;
    case OP_LESS: return is_less;
    case OP_LESS_EQUAL: return is_less || is_equal;
    case OP_GREATER: return is_ordered && !is_less && !is_equal;
    default: return is_ordered && !is_less;
    }
}

static bool predicate_truth(enum op op, double a)
{
    switch (op) {
    case OP_ISNAN: return isnan(a);
    case OP_ISFINITE: return isfinite(a);
    case OP_ISINF: return isinf(a);
    case OP_ISPOSINF: return a == INFINITY;
    case OP_ISNEGINF: return a == -INFINITY;
    default: return signbit(a);
    }
}

/* NumPy's npy_divmod. */
#define DIVMOD(T, f)                                                                               \
    static T divmod_##T(T a, T b, bool is_quotient)                                                \
    {                                                                                              \
        T rest = fmod##f(a, b), quotient = (a - rest) / b;                                         \
        if (b == 0)                                                                                \
            return is_quotient ? a / b : rest;                                                     \
        if (rest == 0) {                                                                           \
            rest = copysign##f(0, b);                                                              \
        } else if ((b < 0) != (rest < 0)) {                                                        \
            rest += b;                                                                             \
            quotient -= 1;                                                                         \
        }                                                                                          \
        if (!is_quotient)                                                                          \
            return rest;                                                                           \
        if (quotient == 0)                                                                         \
            return copysign##f(0, a / b);                                                          \
        T whole = floor##f(quotient);                                                              \
        return quotient - whole > (T)0.5 ? whole + 1 : whole;                                      \
    }
DIVMOD(float, f)
DIVMOD(double, )

static double divided_float(enum dtype dtype, double a, double b, bool is_quotient)
{
    return dtype == DTYPE_FLOAT32 ? (double)divmod_float((float)a, (float)b, is_quotient)
                                  : divmod_double(a, b, is_quotient);
}

static double next_float(enum dtype dtype, double a, double b)
{
    return dtype == DTYPE_FLOAT32 ? (double)nextafterf((float)a, (float)b) : nextafter(a, b);
}

static double spacing_truth(enum dtype dtype, double a)
{
    if (isinf(a))
        return NAN;
    double distance = next_float(dtype, fabs(a), INFINITY) - fabs(a);
    return a == 0 ? distance : copysign(distance, a);
}

static double unary_truth(const struct check_case *k, double a)
{
    int exponent;
    double whole;
    switch (k->op) {
    case OP_SQUARE: return a * a;
    case OP_SQRT: return sqrt(a);
    case OP_FLOOR: return floor(a);
    case OP_CEIL: return ceil(a);
    case OP_TRUNC: return trunc(a);
    case OP_RINT: return rint(a);
    case OP_SIGN: return isnan(a) ? a : (double)((a > 0) - (a < 0));
    case OP_SPACING: return spacing_truth(k->compute, a);
    case OP_MODF: return modf(a, &whole);
    case OP_FREXP: return frexp(a, &exponent);
    default: return 0;
    }
}

static double binary_truth(const struct check_case *k, double a, double b)
{
    switch (k->op) {
    case OP_ADD: return a + b;
    case OP_SUBTRACT: return a - b;
    case OP_MULTIPLY: return a * b;
    case OP_DIVIDE: return a / b;
    case OP_FLOOR_DIVIDE: return divided_float(k->compute, a, b, true);
    case OP_REMAINDER: return divided_float(k->compute, a, b, false);
    case OP_FMOD: return fmod(a, b);
    case OP_MINIMUM: return isnan(a) || a < b ? a : b;
    case OP_MAXIMUM: return isnan(a) || a > b ? a : b;
    case OP_FMIN: return isnan(b) || a < b ? a : b;
    case OP_FMAX: return isnan(b) || a > b ? a : b;
    case OP_HEAVISIDE: return isnan(a) ? a : a == 0 ? b : (double)(a > 0);
    case OP_NEXTAFTER: return next_float(k->compute, a, b);
    default: return unary_truth(k, a);
    }
}

static double scaled_truth(double a, wide power)
{
    int limited = power > INT_MAX ? INT_MAX : power < INT_MIN ? INT_MIN : (int)power;
    return ldexp(a, limited);
}

static int exponent_truth(double a)
{
    int exponent = 0;
    if (isfinite(a))
        (void)frexp(a, &exponent);
    return exponent;
}

static wide integer_of_float(double a, enum dtype to, struct kernel_events *events)
{
    double whole = trunc(a);
    bool is_valid = whole >= (double)lowest(to) && whole < (double)(highest(to) + 1);
    events->n_invalid_casts += !is_valid;
    if (to == DTYPE_UINT64 && whole >= 0x1p63 && whole < 0x1p64)
        return (wide)whole;
    return whole >= -0x1p63 && whole < 0x1p63 ? (wide)whole : INT64_MIN;
}

static void cast_truth(const struct check_case *k, const void *src, size_t i, void *ret_item,
                       struct kernel_events *events)
{
    enum dtype from = k->compute, to = k->result;
    if (dtype_is_float(from)) {
        double a = load_float(src, from, i);
        if (dtype_is_float(to))
            store_float(ret_item, to, a);
        else
            store_integer(ret_item, to,
                          to == DTYPE_BOOL ? a != 0 : integer_of_float(a, to, events));
        return;
    }
    wide a = load_integer(src, from, i);
    float narrow = (float)a;
    if (to == DTYPE_FLOAT32)
        memcpy(ret_item, &narrow, sizeof(narrow));
    else if (to == DTYPE_FLOAT64)
        store_float(ret_item, to, (double)a);
    else
        store_integer(ret_item, to, to == DTYPE_BOOL ? a != 0 : a);
}

/* What only moves bits or the sign, also of NaN. */
static bool bits_truth(const struct check_case *k, const void *const *src, size_t i, void *ret_item)
{
    size_t n_bytes = dtype_size(k->compute);
    uint64_t a = 0, b = 0, sign = (uint64_t)1 << (8 * n_bytes - 1);
    if (k->op == OP_WHERE) {
        unsigned chosen = load_integer(src[0], DTYPE_BOOL, i) != 0 ? 1 : 2;
        memcpy(ret_item, (const char *)src[chosen] + i * n_bytes, n_bytes);
        return true;
    }
    if (!dtype_is_float(k->compute))
        return false;
    memcpy(&a, (const char *)src[0] + i * n_bytes, n_bytes);
    if (k->n_src == 2)
        memcpy(&b, (const char *)src[1] + i * n_bytes, n_bytes);
    switch (k->op) {
    case OP_ABSOLUTE: a &= ~sign; break;
    case OP_NEGATIVE: a ^= sign; break;
    case OP_COPYSIGN: a = (a & ~sign) | (b & sign); break;
    default: return false;
    }
    memcpy(ret_item, &a, n_bytes);
    return true;
}

bool check_truth(const struct check_case *k, const void *const *src, size_t i, void *ret_item,
                 struct kernel_events *events)
{
    enum op_rule rule = op_info(k->op)->rule;
    if (bits_truth(k, src, i, ret_item))
        return true;
    if (rule == OP_RULE_CAST) {
        cast_truth(k, src[0], i, ret_item, events);
        return false;
    }
    if (!dtype_is_float(k->compute)) {
        wide a = load_integer(src[0], k->src[0], i);
        wide b = k->n_src > 1 ? load_integer(src[1], k->src[1], i) : 0;
        wide result = rule == OP_RULE_COMPARE ? compare_truth(k->op, a < b, a == b, true)
                                              : integer_truth(k, a, b, events);
        store_integer(ret_item, k->result, result);
        return false;
    }
    double a = load_float(src[0], k->compute, i);
    double b = k->n_src > 1 && k->src[1] == k->compute ? load_float(src[1], k->compute, i) : 0;
    if (rule == OP_RULE_COMPARE)
        store_integer(ret_item, DTYPE_BOOL,
                      compare_truth(k->op, a < b, a == b, !isnan(a) && !isnan(b)));
    else if (rule == OP_RULE_PREDICATE)
        store_integer(ret_item, DTYPE_BOOL, predicate_truth(k->op, a));
    else if (k->op == OP_FREXP_EXPONENT)
        store_integer(ret_item, DTYPE_INT32, exponent_truth(a));
    else if (k->op == OP_LDEXP)
        store_float(ret_item, k->result, scaled_truth(a, load_integer(src[1], k->src[1], i)));
    else
        store_float(ret_item, k->result, k->n_src == 1 ? unary_truth(k, a) : binary_truth(k, a, b));
    return false;
}
