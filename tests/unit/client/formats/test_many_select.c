/* Selections of many files together: each element is the one that NumPy would have selected of the
 * whole, whichever files it is in. */
#include "client/formats/selection.h"
#include "support.h"

TestSuite(many_select, .init = folder_make, .fini = folder_remove);

/* What NumPy would have of the whole, element by element, from 0, 1, 2, ... in C order. */
static void expect_selected(const char *spec, int ndim, const int64_t *shape)
{
    struct selection selection;
    int64_t at[ARRAY_MAX_NDIM] = {0};
    const char *bracket = strrchr(spec, '[');
    cr_assert(selection_read(spec, (size_t)(bracket - spec), ndim, shape, &selection, NULL) == 0);
    struct gad_array *array = open_ok(spec);
    cr_assert(eq(int, array->info.ndim, selection.ndim), "%s", spec);
    size_t n = n_elements(array);
    uint16_t *got = elements(array), *by_ones = elements_by_blocks(array, 1);
    cr_assert(memcmp(got, by_ones, 2 * n) == 0, "%s", spec);
    for (size_t k = 0; k < n; k++) {
        int64_t wanted = 0, places[ARRAY_MAX_NDIM];
        for (int i = 0; i < ndim; i++)
            places[i] = selection.axes[i].start;
        for (int i = 0; i < selection.ndim; i++)
            if (selection.axis_of[i] >= 0)
                places[selection.axis_of[i]] += at[i] * selection.axes[selection.axis_of[i]].step;
        for (int i = 0; i < ndim; i++)
            wanted = wanted * shape[i] + places[i];
        int found = array->info.is_swapped ? __builtin_bswap16(got[k]) : got[k];
        cr_assert(eq(int, found, (int)wanted), "%s, element %zu", spec, k);
        for (int i = selection.ndim - 1; i >= 0 && ++at[i] == array->info.shape[i]; i--)
            at[i] = 0;
    }
    free(got);
    free(by_ones);
    gad_array_release(array);
}

Test(many_select, selects_of_all_of_them_together)
{
    static const int64_t joined[] = {10, 4, 3}, stacked[] = {4, 5, 3};
    static const char *const of_joined[] = {"[...]",
                                            "[2:9]",
                                            "[::2]",
                                            "[::-1]",
                                            "[9:0:-4]",
                                            "[3]",
                                            "[-1]",
                                            "[1:2]",
                                            "[:, 1]",
                                            "[2:8, ::2]",
                                            "[..., 2]",
                                            "[::-3, ::-1, 1:]",
                                            "[newaxis]",
                                            "[:, newaxis]",
                                            "[4, 1:3]",
                                            "[0, 0, 0]",
                                            "[9, ...]",
                                            "[5:5]",
                                            "[2:8, 1, newaxis]",
                                            "[-2:, :, ::-2]",
                                            "[3:4, 2]",
                                            "[::5, 3, 0]",
                                            "[7:2:-2, newaxis, 1]"};
    static const char *const of_stacked[] = {"[...]",
                                             "[1:3]",
                                             "[::-1]",
                                             "[::-2, 1]",
                                             "[2]",
                                             "[2, 1]",
                                             "[:, 4]",
                                             "[..., -1]",
                                             "[newaxis]",
                                             "[1:, ::2]",
                                             "[3, ..., newaxis]",
                                             "[:, newaxis, 2]",
                                             "[1:2]",
                                             "[0, 0, 0]",
                                             "[:0]",
                                             "[::3, 1:4, ::-1]"};
    char spec[64];
    npy_put_counting("a1.npy", false, "(3, 4, 3)", 36, 0);
    npy_put_counting("a2.npy", false, "(0, 4, 3)", 0, 0);
    npy_put_counting("a3.npy", true, "(6, 4, 3)", 72, 36);
    npy_put_counting("a4.npy", false, "(1, 4, 3)", 12, 108);
    for (int i = 0; i < 4; i++) {
        snprintf(spec, sizeof(spec), "s%d.npy", i);
        npy_put_counting(spec, i == 2, "(5, 3)", 15, 15 * i);
    }
    for (size_t i = 0; i < sizeof(of_joined) / sizeof(*of_joined); i++) {
        snprintf(spec, sizeof(spec), "a*.npy%s", of_joined[i]);
        expect_selected(spec, 3, joined);
    }
    for (size_t i = 0; i < sizeof(of_stacked) / sizeof(*of_stacked); i++) {
        snprintf(spec, sizeof(spec), "s*.npy:stack%s", of_stacked[i]);
        expect_selected(spec, 3, stacked);
    }
}

Test(many_select, opens_one_file_where_one_is_selected)
{
    npy_put_counting("a1.npy", false, "(3, 2)", 6, 0);
    npy_put_counting("a2.npy", true, "(3, 2)", 6, 6);
    struct gad_array *array = open_ok("a*.npy[4:6, 1]");
    expect_shape(array, "(2,)");
    cr_assert(eq(str, (char *)array->info.access, "file"));
    cr_assert(array->info.is_swapped);
    uint16_t *got = elements(array);
    cr_assert(eq(int, __builtin_bswap16(got[1]), 11));
    free(got);
    gad_array_release(array);
}
