/* NumPy's names, promotion and casting, against tables made with NumPy 2. */
#include "proto/dtype.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* numpy.result_type(a, b) for a in rows, b in columns; in the order of enum dtype. */
static const char *const promoted[DTYPE_COUNT] = {
    /*        bool i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 */
    /* b1 */ "b1 i1 i2 i4 i8 u1 u2 u4 u8 f4 f8",
    /* i1 */ "i1 i1 i2 i4 i8 i2 i4 i8 f8 f4 f8",
    /* i2 */ "i2 i2 i2 i4 i8 i2 i4 i8 f8 f4 f8",
    /* i4 */ "i4 i4 i4 i4 i8 i4 i4 i8 f8 f8 f8",
    /* i8 */ "i8 i8 i8 i8 i8 i8 i8 i8 f8 f8 f8",
    /* u1 */ "u1 i2 i2 i4 i8 u1 u2 u4 u8 f4 f8",
    /* u2 */ "u2 i4 i4 i4 i8 u2 u2 u4 u8 f4 f8",
    /* u4 */ "u4 i8 i8 i8 i8 u4 u4 u4 u8 f8 f8",
    /* u8 */ "u8 f8 f8 f8 f8 u8 u8 u8 u8 f8 f8",
    /* f4 */ "f4 f4 f4 f8 f8 f4 f4 f8 f8 f4 f8",
    /* f8 */ "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8",
};

/* numpy.can_cast(from, to, 'same_kind'), from in rows. */
static const char *const castable[DTYPE_COUNT] = {
    /* b1 */ "11111111111", /* i1 */ "01111000011", /* i2 */ "01111000011",
    /* i4 */ "01111000011", /* i8 */ "01111000011", /* u1 */ "01111111111",
    /* u2 */ "01111111111", /* u4 */ "01111111111", /* u8 */ "01111111111",
    /* f4 */ "00000000011", /* f8 */ "00000000011",
};

Test(dtype, promotes_as_numpy_does)
{
    for (int a = 0; a < DTYPE_COUNT; a++)
        for (int b = 0; b < DTYPE_COUNT; b++) {
            enum dtype want;
            cr_assert(dtype_from_name(promoted[a] + 3 * b, 2, &want));
            cr_assert(eq(int, dtype_promote((enum dtype)a, (enum dtype)b), want), "%s with %s",
                      dtype_name((enum dtype)a), dtype_name((enum dtype)b));
        }
}

Test(dtype, casts_as_numpy_does_within_a_kind)
{
    for (int a = 0; a < DTYPE_COUNT; a++)
        for (int b = 0; b < DTYPE_COUNT; b++)
            cr_assert(eq(int, dtype_can_cast_same_kind((enum dtype)a, (enum dtype)b),
                         castable[a][b] == '1'),
                      "%s to %s", dtype_name((enum dtype)a), dtype_name((enum dtype)b));
}

Test(dtype, kinds_do_not_overlap)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        enum dtype d = (enum dtype)i;
        int n = dtype_is_float(d) + dtype_is_signed(d) + dtype_is_unsigned(d);
        cr_assert(eq(int, n, d != DTYPE_BOOL), "%s", dtype_name(d));
        cr_assert(eq(int, dtype_is_integer(d), dtype_is_signed(d) || dtype_is_unsigned(d)));
    }
}

Test(dtype, typestrs_lead_back)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        for (int swapped = 0; swapped < 2; swapped++) {
            const char *text = dtype_typestr((enum dtype)i, swapped);
            enum dtype dtype;
            bool is_swapped;
            cr_assert(eq(int, dtype_from_typestr(text, 3, &dtype, &is_swapped, NULL), 0));
            cr_assert(eq(int, dtype, i));
            cr_assert(eq(int, is_swapped, swapped &&dtype_size(dtype) > 1), "%s", text);
        }
}

Test(dtype, reads_the_other_ways_to_write_a_typestr)
{
    static const struct {
        const char *text;
        enum dtype dtype;
        bool is_swapped;
    } rows[] = {
        {"f4", DTYPE_FLOAT32, false}, {"=f4", DTYPE_FLOAT32, false}, {">f4", DTYPE_FLOAT32, true},
        {"<u1", DTYPE_UINT8, false},  {">u1", DTYPE_UINT8, false},   {"|b1", DTYPE_BOOL, false},
        {"b1", DTYPE_BOOL, false},    {">i2", DTYPE_INT16, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum dtype dtype;
        bool is_swapped;
        int r = dtype_from_typestr(rows[i].text, strlen(rows[i].text), &dtype, &is_swapped, NULL);
        cr_assert(eq(int, r, 0), "%s", rows[i].text);
        cr_assert(eq(int, dtype, rows[i].dtype), "%s", rows[i].text);
        cr_assert(eq(int, is_swapped, rows[i].is_swapped), "%s", rows[i].text);
    }
}

Test(dtype, refuses_what_it_does_not_have)
{
    static const char *const rows[] = {"",    "f",   "<f",  "f16", "<f2", "<f16", "<c8", "|O8",
                                       "<M8", "|S8", "|f8", "|i2", "!f8", "<F8",  "f8 ", "<b2"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum dtype dtype = DTYPE_COUNT;
        bool is_swapped;
        struct gad_error error;
        int r = dtype_from_typestr(rows[i], strlen(rows[i]), &dtype, &is_swapped, &error);
        cr_assert(eq(int, r, GAD_BAD_DTYPE), "'%s'", rows[i]);
        cr_assert(eq(str, error.found, (char *)rows[i]));
        cr_assert(eq(int, dtype, DTYPE_COUNT));
    }
}

Test(dtype, knows_numpys_names)
{
    static const struct {
        const char *name;
        enum dtype dtype;
    } rows[] = {
        {"float32", DTYPE_FLOAT32}, {"f4", DTYPE_FLOAT32},    {"single", DTYPE_FLOAT32},
        {"double", DTYPE_FLOAT64},  {"bool", DTYPE_BOOL},     {"bool_", DTYPE_BOOL},
        {"intc", DTYPE_INT32},      {"ubyte", DTYPE_UINT8},   {"int_", DTYPE_INT64},
        {"u8", DTYPE_UINT64},       {"uint16", DTYPE_UINT16},
    };
    enum dtype dtype;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert(dtype_from_name(rows[i].name, strlen(rows[i].name), &dtype), "%s", rows[i].name);
        cr_assert(eq(int, dtype, rows[i].dtype), "%s", rows[i].name);
    }
    cr_assert(not(dtype_from_name("float3", 6, &dtype)));
    cr_assert(not(dtype_from_name("float16", 7, &dtype)));
    cr_assert(not(dtype_from_name("", 0, &dtype)));
}
