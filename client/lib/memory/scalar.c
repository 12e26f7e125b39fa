/* Numbers as they are.
 *
 * A double has not all integers beyond 2^53, so what a program gives exactly is compared and stored
 * here without ever becoming one: an integer is its sign and its magnitude.
 *
 * Called by job_matmul.c and move_pad.c.
 */
#include "client/lib/memory/scalar.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct whole {
    bool is_negative;
    uint64_t magnitude;
};

/* False: it has a fraction, or more than 64 bits. */
static bool to_whole(const struct gad_scalar *scalar, struct whole *ret)
{
    double value = scalar->float_value;
    switch (scalar->kind) {
    case GAD_SCALAR_UINT: *ret = (struct whole){false, scalar->uint_value}; return true;
    case GAD_SCALAR_FLOAT:
        if (!(fabs(value) < 0x1p64) || value != trunc(value))
            return false;
        *ret = (struct whole){value < 0, (uint64_t)fabs(value)};
        return true;
    default:
        *ret = (struct whole){scalar->int_value < 0, scalar->int_value < 0
                                                         ? 0 - (uint64_t)scalar->int_value
                                                         : (uint64_t)scalar->int_value};
        return true;
    }
}

static bool is_unsigned(enum gad_dtype dtype)
{
    return dtype >= GAD_UINT8 && dtype <= GAD_UINT64;
}

static uint64_t greatest(enum gad_dtype dtype)
{
    size_t n_bits = 8 * gad_dtype_size(dtype);
    return UINT64_MAX >> (64 - n_bits + !is_unsigned(dtype));
}

static double to_double(const struct gad_scalar *scalar)
{
    switch (scalar->kind) {
    case GAD_SCALAR_UINT: return (double)scalar->uint_value;
    case GAD_SCALAR_FLOAT: return scalar->float_value;
    default: return (double)scalar->int_value;
    }
}

/* Of an integer directly: by way of a double it would be rounded twice. */
static float to_float(const struct gad_scalar *scalar)
{
    switch (scalar->kind) {
    case GAD_SCALAR_UINT: return (float)scalar->uint_value;
    case GAD_SCALAR_FLOAT: return (float)scalar->float_value;
    default: return (float)scalar->int_value;
    }
}

static bool put_float(enum gad_dtype dtype, const struct gad_scalar *scalar, void *ret)
{
    float narrow = to_float(scalar);
    double wide = to_double(scalar);
    if (dtype == GAD_FLOAT32)
        memcpy(ret, &narrow, sizeof(narrow));
    else
        memcpy(ret, &wide, sizeof(wide));
    return true;
}

bool scalar_put(enum gad_dtype dtype, const struct gad_scalar *scalar, void *ret)
{
    if (dtype == GAD_FLOAT32 || dtype == GAD_FLOAT64)
        return put_float(dtype, scalar, ret);
    struct whole whole;
    bool is_true = dtype == GAD_BOOL && to_double(scalar) != 0;
    if (dtype == GAD_BOOL)
        whole = (struct whole){.magnitude = is_true};
    else if (!to_whole(scalar, &whole))
        return false;
    uint64_t below_zero = is_unsigned(dtype) ? 0 : greatest(dtype) + 1;
    if (whole.magnitude > (whole.is_negative ? below_zero : greatest(dtype)))
        return false;
    uint64_t bits = whole.is_negative ? 0 - whole.magnitude : whole.magnitude;
    uint32_t bits32 = (uint32_t)bits; /* little-endian or not: the element's own type */
    uint16_t bits16 = (uint16_t)bits;
    uint8_t bits8 = (uint8_t)bits;
    switch (gad_dtype_size(dtype)) {
    case 1: memcpy(ret, &bits8, 1); break;
    case 2: memcpy(ret, &bits16, 2); break;
    case 4: memcpy(ret, &bits32, 4); break;
    default: memcpy(ret, &bits, 8); break;
    }
    return true;
}

char *scalar_format(const struct gad_scalar *scalar, char buffer[SCALAR_TEXT_SIZE])
{
    if (scalar->kind == GAD_SCALAR_UINT) {
        snprintf(buffer, SCALAR_TEXT_SIZE, "%" PRIu64, scalar->uint_value);
        return buffer;
    }
    if (scalar->kind != GAD_SCALAR_FLOAT) {
        snprintf(buffer, SCALAR_TEXT_SIZE, "%" PRId64, scalar->int_value);
        return buffer;
    }
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    int n = snprintf(buffer, SCALAR_TEXT_SIZE, "%.17g", scalar->float_value);
    if (strspn(buffer, "-0123456789") == (size_t)n)
        snprintf(buffer + n, SCALAR_TEXT_SIZE - (size_t)n, ".0");
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return buffer;
}

char *scalar_format_bounds(enum gad_dtype dtype, char buffer[2 * SCALAR_TEXT_SIZE])
{
    snprintf(buffer, 2 * SCALAR_TEXT_SIZE, "%s%" PRIu64 " to %" PRIu64,
             is_unsigned(dtype) ? "" : "-", is_unsigned(dtype) ? 0 : greatest(dtype) + 1,
             greatest(dtype));
    return buffer;
}

bool scalar_is(const struct gad_scalar *scalar, int number)
{
    return to_double(scalar) == number;
}
