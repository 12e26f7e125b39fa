/* Numbers as they are: what an element of each dtype holds of them, and how they are written. */
#include "client/lib/memory/scalar.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <locale.h>
#include <math.h>
#include <string.h>

static struct gad_scalar of_int(int64_t value)
{
    return (struct gad_scalar){.kind = GAD_SCALAR_INT, .int_value = value};
}

static struct gad_scalar of_uint(uint64_t value)
{
    return (struct gad_scalar){.kind = GAD_SCALAR_UINT, .uint_value = value};
}

static struct gad_scalar of_float(double value)
{
    return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = value};
}

/* The element's bits; UINT64_MAX - 1, which no case has, where it is refused. */
static uint64_t put(enum gad_dtype dtype, struct gad_scalar scalar)
{
    uint64_t element = 0;
    uint32_t element32;
    uint16_t element16;
    uint8_t element8;
    if (!scalar_put(dtype, &scalar, &element))
        return UINT64_MAX - 1;
    memcpy(&element32, &element, sizeof(element32));
    memcpy(&element16, &element, sizeof(element16));
    memcpy(&element8, &element, sizeof(element8));
    switch (gad_dtype_size(dtype)) {
    case 1: return element8;
    case 2: return element16;
    case 4: return element32;
    default: return element;
    }
}

Test(scalar, integers_are_stored_to_the_last_bit)
{
    cr_assert(eq(u64, put(GAD_INT64, of_int((1LL << 53) + 1)), (1ULL << 53) + 1));
    cr_assert(eq(u64, put(GAD_INT64, of_int(INT64_MIN)), 1ULL << 63));
    cr_assert(eq(u64, put(GAD_INT64, of_uint(INT64_MAX)), INT64_MAX));
    cr_assert(eq(u64, put(GAD_UINT64, of_uint(UINT64_MAX)), UINT64_MAX));
    cr_assert(eq(u64, put(GAD_UINT64, of_float(0x1p63)), 1ULL << 63));
    cr_assert(eq(u64, put(GAD_INT8, of_int(-128)), 0x80));
    cr_assert(eq(u64, put(GAD_UINT16, of_float(65535)), 65535));
    cr_assert(eq(u64, put(GAD_INT32, of_float(-0.0)), 0));
    cr_assert(eq(u64, put(GAD_INT32, (struct gad_scalar){GAD_SCALAR_BOOL, {1}}), 1));
}

Test(scalar, what_an_integer_dtype_has_not_is_refused)
{
    static const struct {
        enum gad_dtype dtype;
        int64_t low, high;
    } cases[] = {{GAD_INT8, INT8_MIN, INT8_MAX},    {GAD_INT16, INT16_MIN, INT16_MAX},
                 {GAD_INT32, INT32_MIN, INT32_MAX}, {GAD_UINT8, 0, UINT8_MAX},
                 {GAD_UINT16, 0, UINT16_MAX},       {GAD_UINT32, 0, UINT32_MAX}};
    uint64_t element;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        int64_t low = cases[i].low, high = cases[i].high;
        struct gad_scalar in[] = {of_int(low), of_int(high), of_float((double)low)};
        struct gad_scalar out[] = {of_int(low - 1), of_int(high + 1), of_float((double)high + 0.5)};
        for (size_t j = 0; j < 3; j++) {
            cr_assert(scalar_put(cases[i].dtype, &in[j], &element), "%zu, %zu", i, j);
            cr_assert(not(scalar_put(cases[i].dtype, &out[j], &element)), "%zu, %zu", i, j);
        }
    }
    struct gad_scalar wide[] = {of_uint(1ULL << 63), of_float(0x1p63),
                                of_float(-0x1.0000000000001p63), of_float(NAN), of_float(INFINITY)};
    for (size_t i = 0; i < ARRAY_LENGTH(wide); i++)
        cr_assert(not(scalar_put(GAD_INT64, &wide[i], &element)), "%zu", i);
    struct gad_scalar other[] = {of_int(-1), of_float(0x1p64), of_float(-1), of_float(0.5)};
    for (size_t i = 0; i < ARRAY_LENGTH(other); i++)
        cr_assert(not(scalar_put(GAD_UINT64, &other[i], &element)), "%zu", i);
}

Test(scalar, floats_are_rounded_once)
{
    /* By way of a double this is half way between two floats, and rounds down. */
    struct gad_scalar number = of_int((1LL << 60) + (1LL << 36) + 1);
    float once, twice = (float)(double)number.int_value;
    double wide;
    cr_assert(scalar_put(GAD_FLOAT32, &number, &once));
    cr_assert(eq(flt, once, 0x1.000002p60f));
    cr_assert(ne(flt, once, twice));
    number = of_uint(UINT64_MAX);
    cr_assert(scalar_put(GAD_FLOAT64, &number, &wide));
    cr_assert(eq(dbl, wide, 0x1p64));
    cr_assert(eq(u64, put(GAD_BOOL, of_float(0.5)), 1));
    cr_assert(eq(u64, put(GAD_BOOL, of_int(0)), 0));
}

Test(scalar, is_written_as_expressions_have_it)
{
    char text[SCALAR_TEXT_SIZE], bounds[2 * SCALAR_TEXT_SIZE];
    struct gad_scalar numbers[] = {of_int(INT64_MIN), of_uint(UINT64_MAX), of_float(2),
                                   of_float(0.1),     of_float(-1e300),    of_int(7)};
    static const char *const texts[] = {"-9223372036854775808", "18446744073709551615",     "2.0",
                                        "0.10000000000000001",  "-1.0000000000000001e+300", "7"};
    setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* where it is installed it has commas */
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        cr_assert(eq(str, scalar_format(&numbers[i], text), (char *)texts[i]));
    cr_assert(eq(str, scalar_format_bounds(GAD_INT8, bounds), "-128 to 127"));
    cr_assert(eq(str, scalar_format_bounds(GAD_UINT64, bounds), "0 to 18446744073709551615"));
    cr_assert(eq(str, scalar_format_bounds(GAD_INT64, bounds),
                 "-9223372036854775808 to 9223372036854775807"));
    cr_assert(scalar_is(&numbers[2], 2) && !scalar_is(&numbers[5], 2));
}
