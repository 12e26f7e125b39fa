/* Single numbers: read from the command line and printed, without a digit lost.
 *
 * What reads as an integer stays one, of 64 bits, signed or unsigned; an integer beyond them is
 * told from a float, so that nobody gets a rounded one unasked. A float is printed with as few
 * digits as tell it from all others of its dtype.
 */
#include "client/ctl/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* False: it is no integer. */
static bool read_integer(const char *text, struct gad_scalar *ret)
{
    size_t n_signs = text[0] == '-' || text[0] == '+';
    bool is_hexadecimal = strncasecmp(text + n_signs, "0x", 2) == 0; /* 010 is ten */
    char *end;
    errno = 0;
    long long integer = strtoll(text, &end, is_hexadecimal ? 16 : 10);
    if (end == text || *end != '\0')
        return false;
    *ret = (struct gad_scalar){.kind = GAD_SCALAR_INT, .int_value = integer};
    if (errno == 0)
        return true;
    errno = 0;
    unsigned long long number = strtoull(text, &end, is_hexadecimal ? 16 : 10);
    *ret = (struct gad_scalar){.kind = GAD_SCALAR_UINT, .uint_value = number};
    if (errno != 0 || integer < 0)
        ret->kind = GAD_SCALAR_NONE;
    return true;
}

bool ctl_read_scalar(const char *text, struct gad_scalar *ret)
{
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0) {
        *ret = (struct gad_scalar){.kind = GAD_SCALAR_BOOL, .int_value = text[0] == 'T'};
        return true;
    }
    if (read_integer(text, ret))
        return true;
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0')
        return false;
    *ret = (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = number};
    return true;
}

struct gad_scalar ctl_element(enum gad_dtype dtype, const void *data, size_t index)
{
    if (dtype == GAD_FLOAT32 || dtype == GAD_FLOAT64)
        return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT,
                                   .float_value = ctl_element_f64(dtype, data, index)};
    if (dtype == GAD_UINT64)
        return (struct gad_scalar){.kind = GAD_SCALAR_UINT,
                                   .uint_value = ((const uint64_t *)data)[index]};
    return (struct gad_scalar){.kind = GAD_SCALAR_INT,
                               .int_value = ctl_element_i64(dtype, data, index)};
}

char *ctl_format_scalar(enum gad_dtype dtype, const struct gad_scalar *scalar,
                        char buffer[CTL_SCALAR_SIZE])
{
    double value = scalar->float_value;
    bool is_single = dtype == GAD_FLOAT32 && fabs(value - (double)(float)value) <= 0;
    if (scalar->kind == GAD_SCALAR_UINT)
        snprintf(buffer, CTL_SCALAR_SIZE, "%" PRIu64, scalar->uint_value);
    else if (scalar->kind != GAD_SCALAR_FLOAT)
        snprintf(buffer, CTL_SCALAR_SIZE, "%" PRId64, scalar->int_value);
    else if (!isfinite(value)) /* without the sign that printf gives to some NaN */
        snprintf(buffer, CTL_SCALAR_SIZE, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    for (int n_digits = 6; scalar->kind == GAD_SCALAR_FLOAT && isfinite(value); n_digits++) {
        snprintf(buffer, CTL_SCALAR_SIZE, "%.*g", n_digits, value);
        if (n_digits == 17 || (is_single && strtof(buffer, NULL) == (float)value) ||
            strtod(buffer, NULL) == value)
            break;
    }
    return buffer;
}

struct json_object *ctl_scalar_json(const struct gad_scalar *scalar)
{
    char text[CTL_SCALAR_SIZE];
    switch (scalar->kind) {
    case GAD_SCALAR_UINT: return json_object_new_uint64(scalar->uint_value);
    case GAD_SCALAR_BOOL: return json_object_new_boolean(scalar->int_value != 0);
    case GAD_SCALAR_INT: return json_object_new_int64(scalar->int_value);
    default: break;
    }
    if (!isfinite(scalar->float_value)) /* which JSON has not: the names that float() reads */
        return json_object_new_string(ctl_format_scalar(GAD_FLOAT64, scalar, text));
    return json_object_new_double_s(scalar->float_value,
                                    ctl_format_scalar(GAD_FLOAT64, scalar, text));
}
