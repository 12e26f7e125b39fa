/* The npy header as bytes: what NumPy writes, what it could write, and garbage. */
#include "client/formats/npy/npy_header.h"
#include "client/formats/npy/npy_literal.h"
#include "support.h"

static struct npy_header header;

static int parse(int major, const char *text)
{
    uint8_t bytes[8192] = "\x93NUMPY";
    size_t n = strlen(text), preamble = major == 1 ? 10 : 12;
    bytes[6] = (uint8_t)major;
    bytes[8] = (uint8_t)n;
    bytes[9] = (uint8_t)(n >> 8);
    memcpy(bytes + preamble, text, n);
    return npy_header_parse(bytes, preamble + n, "x", &header, &last_error);
}

#define WORD(text) ((char *)error_word(parse(1, text)))
#define DICT(descr, order, shape)                                                                  \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

Test(npy_header, reads_what_numpy_writes)
{
    cr_assert(eq(int, parse(1, DICT("'<f8'", "False", "(3, 4)")), 0));
    cr_assert(eq(int, header.dtype, DTYPE_FLOAT64));
    cr_assert(not(header.is_swapped));
    cr_assert(not(header.fortran_order));
    cr_assert(eq(int, header.ndim, 2));
    cr_assert(eq(i64, header.shape[0], 3));
    cr_assert(eq(i64, header.shape[1], 4));
    cr_assert(eq(u64, header.data_offset_bytes, 10 + strlen(DICT("'<f8'", "False", "(3, 4)"))));
}

Test(npy_header, reads_versions_2_and_3_and_the_other_order)
{
    for (int major = 2; major <= 3; major++) {
        cr_assert(eq(int, parse(major, DICT("'>i2'", "True", "(5,)")), 0));
        cr_assert(eq(int, header.dtype, DTYPE_INT16));
        cr_assert(header.is_swapped);
        cr_assert(header.fortran_order);
        cr_assert(eq(int, header.ndim, 1));
        cr_assert(eq(u64, header.data_offset_bytes, 12 + strlen(DICT("'>i2'", "True", "(5,)"))));
    }
}

Test(npy_header, reads_any_spelling_that_python_reads)
{
    static const char *const texts[] = {
        "{'shape':(2,),'descr':'|b1','fortran_order':False}",
        " { \"descr\" : u'|b1' , 'shape' : ( 2L , ) , 'fortran_order' : False , } ",
        "{'fortran_order': False,\n 'shape': (+2,),\t'descr': '|b1'}\n",
    };
    for (size_t i = 0; i < 3; i++) {
        cr_assert(eq(int, parse(1, texts[i]), 0), "%s: %s", texts[i], last_error.message);
        cr_assert(eq(int, header.dtype, DTYPE_BOOL));
        cr_assert(eq(int, header.ndim, 1));
        cr_assert(eq(i64, header.shape[0], 2));
    }
}

Test(npy_header, reads_no_dimensions_and_dimensions_of_zero)
{
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "()")), "ok"));
    cr_assert(eq(int, header.ndim, 0));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(0,)")), "ok"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(3, 0, 5,)")), "ok"));
    cr_assert(eq(i64, header.shape[1], 0));
}

Test(npy_header, refuses_dtypes_by_name)
{
    static const struct {
        const char *text, *in_message;
    } cases[] = {
        {DICT("'|O'", "False", "(2,)"), "Python objects"},
        {DICT("'<c16'", "False", "(2,)"), "complex"},
        {DICT("'<f2'", "False", "(2,)"), "<f2"},
        {DICT("'<U5'", "False", "(2,)"), "text"},
        {DICT("'<M8[ns]'", "False", "(2,)"), "dates"},
        {DICT("'|V12'", "False", "(2,)"), "bytes"},
        {DICT("'<q'", "False", "(2,)"), "<q"},
        {DICT("''", "False", "(2,)"), "not known"},
        {DICT("[('x', '<f4'), ('y', '<f4', (2, 3))]", "False", "(2,)"), "structured"},
        {DICT("('<f4', (2,))", "False", "(2,)"), "structured"},
        {DICT("None", "False", "(2,)"), "None"},
        {DICT("3", "False", "(2,)"), "3"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert(eq(str, WORD(cases[i].text), "bad-dtype"), "%s", cases[i].text);
        cr_assert(strstr(last_error.message, cases[i].in_message) != NULL, "%s",
                  last_error.message);
        cr_assert(eq(str, last_error.argument, "x"));
        cr_assert(last_error.found[0] || i == 7);
    }
}

Test(npy_header, refuses_shapes_that_are_none)
{
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(-1,)")), "bad-shape"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(9223372036854775808,)")), "bad-shape"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(-99999999999999999999,)")), "bad-shape"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(9223372036854775807,)")), "bad-shape"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(4294967296, 4294967296)")), "bad-shape"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(3)")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "3")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "[3]")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(3 4)")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(3,,4)")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(,)")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(3.0,)")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "(True,)")), "bad-format"));
    cr_assert(eq(str, WORD(DICT("'<f8'", "False", "('3',)")), "bad-format"));
}

Test(npy_header, refuses_more_than_32_dimensions)
{
    char shape[128] = "(1", text[256];
    for (int i = 1; i < 32; i++)
        strcat(shape, ",1");
    snprintf(text, sizeof(text), "{'descr':'<f8','fortran_order':False,'shape':%s)}", shape);
    cr_assert(eq(str, WORD(text), "ok"));
    cr_assert(eq(int, header.ndim, 32));
    snprintf(text, sizeof(text), "{'descr':'<f8','fortran_order':False,'shape':%s,1)}", shape);
    cr_assert(eq(str, WORD(text), "bad-shape"));
}

Test(npy_header, wants_each_key_once_and_no_other)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{",
        "[]",
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'shape': ()}",
        "{'fortran_order': False, 'shape': ()}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (), 'extra': 1}",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': Falsehood, 'shape': ()}",
        "{'descr': '<f8' 'fortran_order': False, 'shape': ()}",
        "{'descr', '<f8', 'fortran_order': False, 'shape': ()}",
        "{descr: '<f8', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ()} x",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ()",
        "{'descr': '<f8, 'fortran_order': False, 'shape': ()}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        cr_assert(not(eq(str, WORD(texts[i]), "ok")), "%s", texts[i]);
}

Test(npy_header, stands_nesting_without_end)
{
    char text[8000];
    size_t n = (size_t)snprintf(text, sizeof(text), "{'descr': ");
    memset(text + n, '[', sizeof(text) - n);
    text[sizeof(text) - 1] = '\0';
    cr_assert(eq(str, WORD(text), "bad-format"));
}

Test(npy_header, knows_a_file_that_is_none)
{
    size_t n;
    cr_assert(eq(int, npy_header_size("PK\3\4", 4, "x", &n, &last_error), GAD_BAD_FORMAT));
    cr_assert(eq(int, npy_header_size("", 0, "x", &n, &last_error), GAD_BAD_FORMAT));
    cr_assert(eq(int, npy_header_size("\x93NUMPY\4\0\1\0\0\0", 12, "x", &n, &last_error),
                 GAD_BAD_FORMAT));
    cr_assert(eq(int, npy_header_size("\x93NUMPY\0\0\1\0\0\0", 12, "x", &n, &last_error),
                 GAD_BAD_FORMAT));
    cr_assert(eq(int, npy_header_size("\x93NUMPY\1\1\1\0\0\0", 12, "x", &n, &last_error),
                 GAD_BAD_FORMAT));
}

Test(npy_header, reports_every_cut_as_short)
{
    char bytes[NPY_DATA_OFFSET];
    const int64_t shape[2] = {3, 4};
    npy_header_format(DTYPE_FLOAT64, 2, shape, false, bytes);
    for (size_t n = 1; n < sizeof(bytes); n++)
        cr_assert(eq(int, npy_header_parse(bytes, n, "x", &header, &last_error), GAD_SHORT_READ),
                  "%zu", n);
}

Test(npy_header, bounds_the_length)
{
    size_t n;
    cr_assert(eq(int, npy_header_size("\x93NUMPY\2\0\0\0\1\0", 12, "x", &n, &last_error), 0));
    cr_assert(eq(sz, n, 12 + 65536));
    cr_assert(eq(int, npy_header_size("\x93NUMPY\2\0\1\0\1\0", 12, "x", &n, &last_error),
                 GAD_BAD_FORMAT));
    cr_assert(eq(int, npy_header_size("\x93NUMPY\3\0\xff\xff\xff\xff", 12, "x", &n, &last_error),
                 GAD_BAD_FORMAT));
}

Test(npy_header, reads_back_what_it_writes)
{
    int64_t shape[ARRAY_MAX_NDIM];
    for (int i = 0; i < ARRAY_MAX_NDIM; i++)
        shape[i] = i == 31 ? 1000000007 : 1 + i % 2;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        for (int ndim = 0; ndim <= ARRAY_MAX_NDIM; ndim++) {
            char bytes[NPY_DATA_OFFSET];
            npy_header_format((enum dtype)dtype, ndim, shape, ndim % 2, bytes);
            cr_assert(
                eq(int, npy_header_parse(bytes, sizeof(bytes), "x", &header, &last_error), 0));
            cr_assert(eq(int, header.dtype, dtype));
            cr_assert(eq(int, header.ndim, ndim));
            cr_assert(eq(int, header.fortran_order, ndim % 2));
            cr_assert(eq(u64, header.data_offset_bytes, 4096));
            cr_assert(memcmp(header.shape, shape, (size_t)ndim * 8) == 0);
        }
    }
}
