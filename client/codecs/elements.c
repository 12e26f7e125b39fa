/* Codecs of elements: delta and fixedscaleoffset of numcodecs.
 *
 *     delta             the first element, then differences: summed up in the elements' dtype
 *     fixedscaleoffset  stored / scale + offset, in double, or in float where that is stored
 *
 * Scaled elements are rounded to integers, halves to even ones. What the stored dtype has not
 * becomes the end of its range; NaN is a fault of the chunk.
 *
 * step: dtype of the elements, `stored` of what is in the chunk, scale and offset. values[0]: bit
 * 0: the elements are of the other byte order, bit 1: what is stored is.
 */
#include "client/codecs/scratch.h"

#include <math.h>
#include <string.h>

enum { ELEMENTS_SWAPPED = 1, STORED_SWAPPED = 2 };

/* An element as a number: integers in i64 (64 bits of either sign), floats in f64. */
static union scalar load(const uint8_t *at, enum dtype dtype, bool is_swapped)
{
    union scalar raw = {.u64 = 0}, value = {.u64 = 0};
    size_t n_bytes = dtype_size(dtype);
    for (size_t i = 0; i < n_bytes; i++)
        ((uint8_t *)&raw)[i] = at[is_swapped ? n_bytes - 1 - i : i];
    switch (dtype) {
    case DTYPE_FLOAT32: value.f64 = (double)raw.f32; break;
    case DTYPE_INT8: value.i64 = (int8_t)raw.u64; break;
    case DTYPE_INT16: value.i64 = (int16_t)raw.u64; break;
    case DTYPE_INT32: value.i64 = (int32_t)raw.u64; break;
    default: value = raw;
    }
    return value;
}

/* value: as of load(). Of an integer the low bytes are stored. */
static void put(uint8_t *at, enum dtype dtype, bool is_swapped, union scalar value)
{
    size_t n_bytes = dtype_size(dtype);
    union scalar raw = value;
    if (dtype == DTYPE_FLOAT32) {
        raw.u64 = 0;
        raw.f32 = (float)value.f64;
    }
    for (size_t i = 0; i < n_bytes; i++)
        at[is_swapped ? n_bytes - 1 - i : i] = ((const uint8_t *)&raw)[i];
}

static double as_double(union scalar value, enum dtype dtype)
{
    if (dtype_is_float(dtype))
        return value.f64;
    return dtype_is_signed(dtype) ? (double)value.i64 : (double)value.u64;
}

/* What C leaves open, numbers that the dtype has not, is 0 or an end of its range. */
static union scalar from_double(double number, enum dtype dtype)
{
    union scalar value = {.f64 = number};
    if (dtype_is_float(dtype))
        return value;
    if (dtype_is_signed(dtype))
        value.i64 = isnan(number)       ? 0
                    : number >= 0x1p63  ? INT64_MAX
                    : number <= -0x1p63 ? INT64_MIN
                                        : (int64_t)number;
    else
        value.u64 = !(number > 0) ? 0 : number >= 0x1p64 ? UINT64_MAX : (uint64_t)number;
    return value;
}

/* The nearest element of an integer dtype. */
static double clamp(double number, enum dtype dtype)
{
    double span = ldexp(1, 8 * (int)dtype_size(dtype) - dtype_is_signed(dtype));
    double low = dtype_is_signed(dtype) ? -span : 0;
    return number < low ? low : number > span - 1 ? span - 1 : number;
}

struct lines {
    const uint8_t *from;
    uint8_t *to;
    size_t n, n_from_bytes, n_to_bytes;
    bool is_from_swapped, is_to_swapped;
};

static int lines_init(const struct codec_step *step, const void *from, size_t n_from, void *to,
                      size_t room, struct lines *ret)
{
    uint32_t swapped = step->n_values > 0 ? step->values[0] : 0;
    struct lines lines = {
        .from = from,
        .to = to,
        .n_from_bytes = dtype_size(step->stored),
        .n_to_bytes = dtype_size(step->dtype),
        .is_from_swapped = swapped & STORED_SWAPPED,
        .is_to_swapped = swapped & ELEMENTS_SWAPPED,
    };
    lines.n = n_from / lines.n_from_bytes;
    if (n_from % lines.n_from_bytes)
        return CODEC_FAULT_SHORT;
    if (lines.n > room / lines.n_to_bytes)
        return CODEC_FAULT_LONG;
    *ret = lines;
    return 0;
}

static int decode_delta(const struct codec_step *step, struct codec_scratch *scratch,
                        const void *from, size_t n_from, void *ret_bytes, size_t room,
                        size_t *ret_n_bytes)
{
    struct lines lines;
    union scalar sum = {.u64 = 0};
    int r = lines_init(step, from, n_from, ret_bytes, room, &lines);
    if (r)
        return r;
    bool is_float = dtype_is_float(step->dtype);
    for (size_t i = 0; i < lines.n; i++) {
        union scalar value =
            load(lines.from + i * lines.n_from_bytes, step->stored, lines.is_from_swapped);
        double number = as_double(value, step->stored);
        if (step->dtype == DTYPE_FLOAT32)
            sum.f64 = (double)((float)sum.f64 + (float)number);
        else if (is_float)
            sum.f64 += number;
        else
            sum.u64 +=
                dtype_is_float(step->stored) ? from_double(number, DTYPE_INT64).u64 : value.u64;
        put(lines.to + i * lines.n_to_bytes, step->dtype, lines.is_to_swapped, sum);
    }
    *ret_n_bytes = lines.n * lines.n_to_bytes;
    return 0;
}

static int decode_scaled(const struct codec_step *step, struct codec_scratch *scratch,
                         const void *from, size_t n_from, void *ret_bytes, size_t room,
                         size_t *ret_n_bytes)
{
    struct lines lines;
    int r = lines_init(step, from, n_from, ret_bytes, room, &lines);
    if (r)
        return r;
    for (size_t i = 0; i < lines.n; i++) {
        double number = as_double(
            load(lines.from + i * lines.n_from_bytes, step->stored, lines.is_from_swapped),
            step->stored);
        if (step->stored == DTYPE_FLOAT32)
            number = (double)((float)number / (float)step->scale + (float)step->offset);
        else
            number = number / step->scale + step->offset;
        put(lines.to + i * lines.n_to_bytes, step->dtype, lines.is_to_swapped,
            from_double(number, step->dtype));
    }
    *ret_n_bytes = lines.n * lines.n_to_bytes;
    return 0;
}

/* From elements to what is stored: in this machine's byte order, as all that we write. */
static int stored_init(const struct codec_step *step, const void *from, size_t n_from, void *to,
                       size_t room, struct lines *ret)
{
    const struct codec_step back = {.dtype = step->stored, .stored = step->dtype};
    return lines_init(&back, from, n_from, to, room, ret);
}

static int encode_delta(const struct codec_step *step, struct codec_scratch *scratch,
                        const void *from, size_t n_from, void *ret_bytes, size_t room,
                        size_t *ret_n_bytes)
{
    struct lines lines;
    union scalar last = {.u64 = 0}, change;
    int r = stored_init(step, from, n_from, ret_bytes, room, &lines);
    if (r)
        return r;
    for (size_t i = 0; i < lines.n; i++) {
        union scalar value = load(lines.from + i * lines.n_from_bytes, step->dtype, false);
        if (step->dtype == DTYPE_FLOAT32)
            change.f64 = (double)((float)value.f64 - (float)last.f64);
        else if (step->dtype == DTYPE_FLOAT64)
            change.f64 = value.f64 - last.f64;
        else
            change.u64 = value.u64 - last.u64;
        put(lines.to + i * lines.n_to_bytes, step->stored, false, change);
        last = value;
    }
    *ret_n_bytes = lines.n * lines.n_to_bytes;
    return 0;
}

static int encode_scaled(const struct codec_step *step, struct codec_scratch *scratch,
                         const void *from, size_t n_from, void *ret_bytes, size_t room,
                         size_t *ret_n_bytes)
{
    struct lines lines;
    bool is_integer = !dtype_is_float(step->stored);
    int r = stored_init(step, from, n_from, ret_bytes, room, &lines);
    for (size_t i = 0; i < lines.n && r == 0; i++) {
        union scalar value = load(lines.from + i * lines.n_from_bytes, step->dtype, false);
        double number = rint((as_double(value, step->dtype) - step->offset) * step->scale);
        if (is_integer && isnan(number))
            return CODEC_FAULT_VALUES;
        put(lines.to + i * lines.n_to_bytes, step->stored, false,
            from_double(is_integer ? clamp(number, step->stored) : number, step->stored));
    }
    *ret_n_bytes = r ? 0 : lines.n * lines.n_to_bytes;
    return r;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes / dtype_size(step->dtype) * dtype_size(step->stored);
}

const struct codec codec_delta = {
    .name = "delta",
    .zarr_name = "delta",
    .decode = decode_delta,
    .encode = encode_delta,
    .bound = bound,
};
const struct codec codec_fixedscaleoffset = {
    .name = "fixedscaleoffset",
    .zarr_name = "fixedscaleoffset",
    .decode = decode_scaled,
    .encode = encode_scaled,
    .bound = bound,
};
