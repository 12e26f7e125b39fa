/* Specs: which format, which path, and every way to write one wrong. */
#include "support.h"

#include "client/formats/format_impl.h"

static const char *word(const char *text, bool is_output)
{
    struct spec spec;
    int r = spec_parse(text, is_output, &spec, &last_error);
    if (r == 0)
        spec_deinit(&spec);
    return error_word(r);
}

Test(spec, takes_the_format_from_the_extension)
{
    static const struct {
        const char *text;
        const struct format *format;
        const char *path;
    } cases[] = {
        {"a.npy", &format_npy, "a.npy"},         {"/x/y z/A.NPY", &format_npy, "/x/y z/A.NPY"},
        {"10:30.npy", &format_npy, "10:30.npy"}, {"a.raw:f4:2x3", &format_raw, "a.raw"},
        {"a.bin:f4:2", &format_raw, "a.bin"},    {"a.dat:u1:7:100", &format_raw, "a.dat"},
        {"a.h5:/d", &format_hdf5, "a.h5"},       {"a.b/c.Nc4:d", &format_hdf5, "a.b/c.Nc4"},
        {"a.cdf:/d.npy", &format_hdf5, "a.cdf"}, {"a.hdf5:/d", &format_hdf5, "a.hdf5"},
        {"a.he5:/d", &format_hdf5, "a.he5"},     {"a:b.nc:/d:e", &format_hdf5, "a:b.nc"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct spec spec;
        cr_assert(eq(int, spec_parse(cases[i].text, false, &spec, &last_error), 0), "%s",
                  cases[i].text);
        cr_assert(eq(ptr, (void *)spec.format, (void *)cases[i].format));
        cr_assert(eq(str, spec.path, (char *)cases[i].path));
        spec_deinit(&spec);
    }
}

Test(spec, normalises_the_path_of_a_dataset)
{
    static const char *const cases[][2] = {{"a.h5:d", "/d"},
                                           {"a.h5:/g//d/", "/g/d"},
                                           {"a.h5:/./g/./d", "/g/d"},
                                           {"a.h5:/d:e", "/d:e"}};
    for (size_t i = 0; i < 4; i++) {
        struct spec spec;
        cr_assert(eq(int, spec_parse(cases[i][0], true, &spec, &last_error), 0));
        cr_assert(eq(str, spec.dataset, (char *)cases[i][1]));
        spec_deinit(&spec);
    }
}

Test(spec, reads_dtype_shape_and_offset_of_a_raw_file)
{
    struct spec spec;
    cr_assert(eq(int, spec_parse("d/x.raw:>f8:3x0x5:4096", false, &spec, &last_error), 0));
    cr_assert(spec.has_type);
    cr_assert(eq(int, spec.dtype, DTYPE_FLOAT64));
    cr_assert(spec.is_swapped);
    cr_assert(eq(int, spec.ndim, 3));
    cr_assert(eq(i64, spec.shape[0], 3));
    cr_assert(eq(i64, spec.shape[1], 0));
    cr_assert(eq(i64, spec.shape[2], 5));
    cr_assert(eq(u64, spec.offset_bytes, 4096));
    spec_deinit(&spec);
    cr_assert(eq(int, spec_parse("x.raw:float32:7", false, &spec, &last_error), 0));
    cr_assert(eq(int, spec.dtype, DTYPE_FLOAT32));
    cr_assert(not(spec.is_fortran_order));
    spec_deinit(&spec);
}

Test(spec, reads_the_order_of_a_raw_file)
{
    static const struct {
        const char *text;
        bool is_fortran_order;
        uint64_t offset_bytes;
    } cases[] = {{"x.raw:f4:2x3:F", true, 0},
                 {"x.raw:f4:2x3:C", false, 0},
                 {"x.raw:f4:2x3:16:F", true, 16},
                 {"x.raw:f4:2x3:16:F[0]", true, 16}};
    static const char *const bad[] = {"x.raw:f4:2x3:F:16", "x.raw:f4:2x3:A", "x.raw:f4:2x3:1:F:2",
                                      "x.raw:f4:2x3:1:2", "x.raw:f4:2x3:FF"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct spec spec;
        cr_assert(eq(int, spec_parse(cases[i].text, false, &spec, &last_error), 0));
        cr_assert(eq(int, spec.is_fortran_order, cases[i].is_fortran_order), "%s", cases[i].text);
        cr_assert(eq(u64, spec.offset_bytes, cases[i].offset_bytes), "%s", cases[i].text);
        spec_deinit(&spec);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct spec spec;
        cr_assert(spec_parse(bad[i], false, &spec, &last_error) != 0, "%s", bad[i]);
        spec_deinit(&spec);
    }
}

Test(spec, tells_a_selection_from_the_name_before_it)
{
    static const struct {
        const char *text, *path, *dataset, *literal;
        size_t at;
    } cases[] = {
        {"a.npy[1:2, ...]", "a.npy", NULL, "a.npy[1:2, ...]", 5},
        {"a.npy [1] ", "a.npy", NULL, "a.npy [1] ", 6},
        {"a.npy[0][1]", "a.npy[0]", NULL, "a.npy[0][1]", 8},
        {"a[0].npy", "a[0].npy", NULL, NULL, 0},
        {"d[0]/a.npy[::2]", "d[0]/a.npy", NULL, "d[0]/a.npy[::2]", 10},
        {"10:30.npy[1:2]", "10:30.npy", NULL, "10:30.npy[1:2]", 9},
        {"a.raw:f4:2x3:8[0]", "a.raw", NULL, NULL, 14},
        {"a.raw[1]:f4:2x3", "a.raw[1]", NULL, NULL, 0},
        {"a.npz:x[0]", "a.npz", "x", "x[0]", 7},
        {"a.npz[0]", "a.npz", "", "", 5},
        {"a.npz:d/x.npy", "a.npz", "d/x.npy", NULL, 0},
        {"a.h5:g//d[0:1]", "a.h5", "/g/d", "/g/d[0:1]", 9},
        {"a.h5:/d[0]/e", "a.h5", "/d[0]/e", NULL, 0},
        {"a.h5:/d]", "a.h5", "/d]", NULL, 0},
        {"a.h5[1]:/d[0]", "a.h5[1]", "/d", "/d[0]", 10},
        {"a.h5:/[0]", "a.h5", "/[0]", NULL, 0},
        {"a.h5:[0]", "a.h5", "/[0]", NULL, 0},
        {"a.h5://[0][1]", "a.h5", "/[0]", "/[0][1]", 10},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct spec spec;
        cr_assert(eq(int, spec_parse(cases[i].text, false, &spec, &last_error), 0), "%s",
                  cases[i].text);
        cr_assert(eq(str, spec.path, (char *)cases[i].path));
        cr_assert(eq(sz, spec.selection_at, cases[i].at), "%s", cases[i].text);
        cr_assert(eq(int, spec.literal != NULL, cases[i].literal != NULL), "%s", cases[i].text);
        if (cases[i].dataset)
            cr_assert(eq(str, spec.dataset, (char *)cases[i].dataset));
        if (cases[i].literal)
            cr_assert(eq(str, spec.literal, (char *)cases[i].literal));
        spec_deinit(&spec);
    }
}

Test(spec, allows_a_raw_output_without_a_type)
{
    struct spec spec;
    cr_assert(eq(int, spec_parse("x.raw", true, &spec, &last_error), 0));
    cr_assert(not(spec.has_type));
    spec_deinit(&spec);
}

Test(spec, refuses_what_it_cannot_read)
{
    static const struct {
        const char *text;
        bool is_output;
        const char *word;
    } cases[] = {
        {"", false, "bad-argument"},
        {"a", false, "bad-argument"},
        {".npy", false, "bad-argument"},
        {"dir/.npy", false, "bad-argument"},
        {"a.txt", false, "bad-argument"},
        {"a.npz", true, "bad-argument"},
        {"a.npz:", true, "bad-argument"},
        {"a.npy:x", false, "bad-argument"},
        {"a.raw", false, "bad-argument"},
        {"a.raw:f4", false, "bad-argument"},
        {"a.raw:f4:2:0:0", false, "bad-argument"},
        {"a.raw:q4:2", false, "bad-dtype"},
        {"a.raw::2", false, "bad-dtype"},
        {"a.raw:f4:", false, "bad-shape"},
        {"a.raw:f4:2x", false, "bad-shape"},
        {"a.raw:f4:x2", false, "bad-shape"},
        {"a.raw:f4:-1", false, "bad-shape"},
        {"a.raw:f4:2X3", false, "bad-shape"},
        {"a.raw:f4: 2", false, "bad-shape"},
        {"a.raw:f4:9223372036854775808", false, "bad-shape"},
        {"a.raw:f4:99999999999999999999999", false, "bad-shape"},
        {"a.raw:f4:2:-8", false, "bad-extent"},
        {"a.raw:f4:2:", false, "bad-extent"},
        {"a.raw:f4:2:1e3", false, "bad-extent"},
        {"a.raw:f4:2:8", true, "bad-argument"},
        {"a.npy[1", false, "bad-argument"},
        {"a.npy]", false, "bad-argument"},
        {"a.npy[1]]", false, "bad-argument"},
        {"[1]", false, "bad-argument"},
        {"a[1]", false, "bad-argument"},
        {"a.raw[1]", false, "bad-argument"},
        {"a.raw:f4:2[1", false, "bad-argument"},
        {"a.raw:f4:2]", false, "bad-argument"},
        {"a.raw:f4[1]", false, "bad-argument"},
        {"a.h5[0]", false, "bad-argument"},
        {"a.h5", false, "bad-argument"},
        {"a.h5:", false, "bad-argument"},
        {"a.h5:/", true, "bad-argument"},
        {"a.h5:/./", true, "bad-argument"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_assert(eq(str, (char *)word(cases[i].text, cases[i].is_output), (char *)cases[i].word),
                  "%s", cases[i].text);
}

Test(spec, refuses_more_than_32_dimensions)
{
    char text[128] = "a.raw:f4:1";
    for (int i = 1; i < 32; i++)
        strcat(text, "x1");
    cr_assert(eq(str, (char *)word(text, false), "ok"));
    strcat(text, "x1");
    cr_assert(eq(str, (char *)word(text, false), "bad-shape"));
}

Test(spec, refuses_texts_without_end)
{
    char *text = malloc(100001);
    memset(text, 'a', 100000);
    text[100000] = '\0';
    cr_assert(eq(str, (char *)word(text, false), "bad-argument"));
    memcpy(text + 99996, ".npy", 4);
    cr_assert(eq(str, (char *)word(text, false), "bad-argument"));
    memcpy(text, "a.h5:/", 6);
    cr_assert(eq(str, (char *)word(text, false), "bad-argument"));
    memcpy(text, "a.raw:", 6);
    cr_assert(eq(str, (char *)word(text, false), "bad-argument"));
    free(text);
}
