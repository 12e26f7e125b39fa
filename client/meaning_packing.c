/* How stored elements become what is meant, read from attributes by netCDF's conventions.
 *
 *     _Unsigned      "true": signed integers are unsigned ones, "false": the other way round
 *     _FillValue, missing_value   one or several values that stand for nothing measured
 *     valid_range, or valid_min and valid_max     what is beyond them is nothing measured either
 *     scale_factor, add_offset    meant = stored * scale_factor + add_offset
 *
 * All but the last two are of the stored elements. What cannot be one (a text, a fraction where
 * integers are stored, a number beyond their range) is equal to no element, and is left out; so do
 * xarray and netCDF4. A scale or offset that is no single finite number would make every element
 * meaningless and is refused when it is asked for.
 *
 * The dtype of what is meant is xarray's choice:
 *
 *     scale and offset, both float32 or both float64   that, but float64 for stored 32-bit integers
 *     any other offset                                 float64
 *     a scale alone                                    its own float dtype
 *     neither, but fill values or limits               float32 for integers of at most 16 bits and
 *                                                      float32, else float64
 *
 * Called by meaning.c.
 */
#include "client/meaning.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_float(enum gad_dtype dtype)
{
    return dtype == GAD_FLOAT32 || dtype == GAD_FLOAT64;
}

static bool is_signed(enum gad_dtype dtype)
{
    return dtype >= GAD_INT8 && dtype <= GAD_INT64;
}

static bool is_unsigned(enum gad_dtype dtype)
{
    return dtype >= GAD_UINT8 && dtype <= GAD_UINT64;
}

/* What the integers are meant as. */
static enum gad_dtype stored_dtype(const struct meaning *meaning, enum gad_dtype dtype)
{
    const char *text = meaning_text(meaning, "_Unsigned");
    if (text && strcasecmp(text, "true") == 0 && is_signed(dtype))
        return dtype - GAD_INT8 + GAD_UINT8;
    if (text && strcasecmp(text, "false") == 0 && is_unsigned(dtype))
        return dtype - GAD_UINT8 + GAD_INT8;
    return dtype;
}

/* ---- Numbers as elements ---- */

/* A whole number, as sign and size; of a float with a fraction, or out of 64 bits: false. */
static bool as_integer(const struct gad_scalar *number, bool *ret_is_negative, uint64_t *ret_size)
{
    if (number->kind == GAD_SCALAR_FLOAT) {
        double value = number->float_value;
        if (!(fabs(value) < 0x1p64) || value != trunc(value))
            return false;
        *ret_is_negative = value < 0;
        *ret_size = (uint64_t)fabs(value);
        return true;
    }
    *ret_is_negative = number->kind != GAD_SCALAR_UINT && number->int_value < 0;
    *ret_size = *ret_is_negative ? 0 - number->uint_value : number->uint_value;
    return true;
}

static bool integer_fits(bool is_negative, uint64_t size, enum gad_dtype dtype)
{
    unsigned n_bits = 8 * (unsigned)gad_dtype_size(dtype);
    if (is_unsigned(dtype))
        return (!is_negative || size == 0) && size <= UINT64_MAX >> (64 - n_bits);
    uint64_t most = (UINT64_C(1) << (n_bits - 1)) - !is_negative;
    return size <= most;
}

static struct gad_scalar integer_of(bool is_negative, uint64_t size)
{
    if (is_negative)
        return (struct gad_scalar){.kind = GAD_SCALAR_INT, .int_value = (int64_t)(0 - size)};
    return (struct gad_scalar){.kind = GAD_SCALAR_UINT, .uint_value = size};
}

/* The same bits as an integer of the other sign. */
static struct gad_scalar reinterpreted(bool is_negative, uint64_t size, enum gad_dtype dtype)
{
    unsigned n_bits = 8 * (unsigned)gad_dtype_size(dtype);
    uint64_t bits = (is_negative ? 0 - size : size) << (64 - n_bits);
    if (is_unsigned(dtype))
        return integer_of(false, bits >> (64 - n_bits));
    int64_t value = (int64_t)bits >> (64 - n_bits);
    return integer_of(value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* The number as an element of `stored`; false: no element is equal to it. file_dtype: of the file,
 * whose sign the attribute may have. */
static bool as_element(const struct gad_scalar *number, enum gad_dtype file_dtype,
                       enum gad_dtype stored, struct gad_scalar *ret)
{
    bool is_negative;
    uint64_t size;
    if (is_float(stored)) {
        double value = number->kind == GAD_SCALAR_FLOAT  ? number->float_value
                       : number->kind == GAD_SCALAR_UINT ? (double)number->uint_value
                                                         : (double)number->int_value;
        double kept = stored == GAD_FLOAT32 ? (double)(float)value : value;
        *ret = (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = kept};
        return !isnan(value) && isinf(kept) == isinf(value);
    }
    if (!as_integer(number, &is_negative, &size))
        return false;
    *ret = integer_of(is_negative, size);
    if (integer_fits(is_negative, size, stored))
        return true;
    if (stored == file_dtype || !integer_fits(is_negative, size, file_dtype))
        return false;
    *ret = reinterpreted(is_negative, size, stored);
    return true;
}

/* ---- Attributes ---- */

static void add_name(struct meaning_packing *packing, const char *name)
{
    size_t used = strlen(packing->names);
    snprintf(packing->names + used, sizeof(packing->names) - used, "%s%s", used > 0 ? ", " : "",
             name);
    packing->is_packed = true;
}

static bool has_fill(const struct meaning_packing *packing, const struct gad_scalar *fill)
{
    for (size_t i = 0; i < packing->n_fills; i++) {
        const struct gad_scalar *own = &packing->fills[i];
        if (own->kind == fill->kind &&
            (own->kind == GAD_SCALAR_FLOAT ? own->float_value == fill->float_value
                                           : own->uint_value == fill->uint_value))
            return true;
    }
    return false;
}

static int read_fills(const struct meaning *meaning, enum gad_dtype dtype, const char *name,
                      struct meaning_packing *packing)
{
    const struct meaning_attribute *found = meaning_find(meaning, name);
    bool is_used = false;
    if (!found || found->n_values == 0)
        return 0;
    struct gad_scalar *fills =
        realloc(packing->fills, (packing->n_fills + found->n_values) * sizeof(*fills));
    if (!fills)
        return -ENOMEM;
    packing->fills = fills;
    for (size_t i = 0; i < found->n_values; i++) {
        struct gad_scalar fill;
        if (!as_element(&found->values[i], dtype, packing->stored, &fill))
            continue;
        is_used = true;
        if (!has_fill(packing, &fill))
            packing->fills[packing->n_fills++] = fill;
    }
    if (is_used)
        add_name(packing, name);
    return 0;
}

static bool read_limit(const struct meaning_attribute *found, size_t i, size_t n,
                       enum gad_dtype dtype, const struct meaning_packing *packing,
                       struct gad_scalar *ret)
{
    struct gad_scalar limit;
    if (!found || found->n_values != n ||
        !as_element(&found->values[i], dtype, packing->stored, &limit))
        return false;
    *ret = limit;
    return true;
}

static void read_limits(const struct meaning *meaning, enum gad_dtype dtype,
                        struct meaning_packing *packing)
{
    const struct meaning_attribute *range = meaning_find(meaning, "valid_range");
    bool has_low = read_limit(range, 0, 2, dtype, packing, &packing->valid_min);
    bool has_high = read_limit(range, 1, 2, dtype, packing, &packing->valid_max);
    if (has_low || has_high) {
        add_name(packing, "valid_range");
        return;
    }
    if (read_limit(meaning_find(meaning, "valid_min"), 0, 1, dtype, packing, &packing->valid_min))
        add_name(packing, "valid_min");
    if (read_limit(meaning_find(meaning, "valid_max"), 0, 1, dtype, packing, &packing->valid_max))
        add_name(packing, "valid_max");
}

/* NULL: there is none. */
static const struct meaning_attribute *read_factor(const struct meaning *meaning, const char *name,
                                                   struct meaning_packing *packing,
                                                   struct gad_scalar *ret)
{
    const struct meaning_attribute *found = meaning_find(meaning, name);
    if (!found)
        return NULL;
    add_name(packing, name);
    if (found->n_values != 1 ||
        (found->values[0].kind == GAD_SCALAR_FLOAT && !isfinite(found->values[0].float_value)))
        packing->bad = name;
    else
        *ret = found->values[0];
    return found;
}

/* Of a scale or offset: integers, whose range says nothing of their meaning, count as float64. */
static enum gad_dtype factor_dtype(const struct meaning_attribute *factor)
{
    return factor->is_dtype_known && factor->dtype == GAD_FLOAT32 ? GAD_FLOAT32 : GAD_FLOAT64;
}

static enum gad_dtype chosen_dtype(const struct meaning_packing *packing,
                                   const struct meaning_attribute *scale,
                                   const struct meaning_attribute *offset)
{
    enum gad_dtype stored = packing->stored;
    size_t n_bytes = gad_dtype_size(stored);
    if (scale && offset)
        return factor_dtype(scale) == GAD_FLOAT32 && factor_dtype(offset) == GAD_FLOAT32 &&
                       (n_bytes != 4 || is_float(stored))
                   ? GAD_FLOAT32
                   : GAD_FLOAT64;
    if (scale)
        return factor_dtype(scale);
    if (offset)
        return GAD_FLOAT64;
    bool is_masked = packing->n_fills > 0 || packing->valid_min.kind != GAD_SCALAR_NONE ||
                     packing->valid_max.kind != GAD_SCALAR_NONE;
    if (!is_masked || is_float(stored))
        return stored;
    return n_bytes <= 2 ? GAD_FLOAT32 : GAD_FLOAT64;
}

int meaning_read_packing(const struct meaning *meaning, enum gad_dtype dtype,
                         struct meaning_packing *ret)
{
    struct meaning_packing packing = {.stored = stored_dtype(meaning, dtype)};
    if (dtype == GAD_BOOL) { /* no number stands for anything else */
        packing.meant = dtype;
        *ret = packing;
        return 0;
    }
    if (packing.stored != dtype)
        add_name(&packing, "_Unsigned");
    int r = read_fills(meaning, dtype, "_FillValue", &packing);
    if (r == 0)
        r = read_fills(meaning, dtype, "missing_value", &packing);
    if (r) {
        free(packing.fills);
        return r;
    }
    read_limits(meaning, dtype, &packing);
    const struct meaning_attribute *scale =
        read_factor(meaning, "scale_factor", &packing, &packing.scale);
    const struct meaning_attribute *offset =
        read_factor(meaning, "add_offset", &packing, &packing.offset);
    packing.meant = chosen_dtype(&packing, scale, offset);
    *ret = packing;
    return 0;
}
