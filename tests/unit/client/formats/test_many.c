/* Many files as one array: their order, what must agree, axes, and files
 * that are not what they were. */
#include "client/formats/many/many_impl.h"
#include "client/formats/many/natural.h"
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

TestSuite(many, .init = folder_make, .fini = folder_remove);

static const struct many *many_of(const struct gad_array *array)
{
    cr_assert(array->provider == &many_provider || array->provider == &many_provider_plain);
    return array->provider_state;
}

/* That its elements are first, first + 1, ... in blocks of every size. */
static void expect_counting(const struct gad_array *array, int first)
{
    static const int64_t steps[] = {1, 2, 3, 7, INT64_MAX};
    for (int s = 0; s < 5; s++) {
        uint16_t *got = elements_by_blocks(array, steps[s]);
        for (size_t i = 0; i < n_elements(array); i++)
            cr_assert(eq(int, got[i], (int)i + first), "element %zu, step %d", i, s);
        free(got);
    }
}

static int fill_whole(const struct gad_array *array, void *ret_block)
{
    const int64_t start[ARRAY_MAX_NDIM] = {0};
    return array->provider->fill(array->provider_state, start, array->info.shape, ret_block);
}

static struct gad_array *join_ok(size_t n, const char *const *specs, int axis, bool is_new_axis)
{
    struct gad_array *array = NULL;
    const struct gad_join_options options = {.axis = axis, .is_new_axis = is_new_axis};
    int r = format_open_many(NULL, n, specs, &options, &array, &last_error);
    cr_assert(r == 0, "%s: %s", error_word(r), last_error.message);
    return array;
}

static const char *join_word(size_t n, const char *const *specs, int axis, bool is_new_axis)
{
    struct gad_array *array = NULL;
    const struct gad_join_options options = {.axis = axis, .is_new_axis = is_new_axis};
    int r = format_open_many(NULL, n, specs, &options, &array, &last_error);
    if (r == 0)
        gad_array_release(array);
    return error_word(r);
}

/* Order ---------------------------------------------------------------------------------------- */

Test(many, has_an_order_in_which_numbers_count)
{
    static const char *const sorted[] = {"",
                                         "a",
                                         "a0",
                                         "a00",
                                         "a01",
                                         "a1",
                                         "a1b2",
                                         "a1b9",
                                         "a1b10",
                                         "a2",
                                         "a9",
                                         "a010",
                                         "a10",
                                         "a10.5",
                                         "a99999999999999999999999999998",
                                         "a99999999999999999999999999999",
                                         "b",
                                         "\xc3\xa4"};
    for (size_t i = 0; i < sizeof(sorted) / sizeof(*sorted); i++)
        for (size_t k = 0; k < sizeof(sorted) / sizeof(*sorted); k++) {
            int order = natural_compare(sorted[i], sorted[k]);
            cr_assert(order > 0   ? i > k
                      : order < 0 ? i < k
                                  : i == k,
                      "'%s' and '%s'", sorted[i], sorted[k]);
        }
}

Test(many, joins_files_in_natural_order)
{
    npy_put_counting("run10.npy", false, "(1, 3)", 3, 12);
    npy_put_counting("run2.npy", true, "(3, 3)", 9, 3);
    npy_put_counting("run1.npy", false, "(1, 3)", 3, 0);
    npy_put_counting("other1.npy", false, "(9, 9)", 81, 0);
    struct gad_array *array = open_ok("run*.npy");
    expect_shape(array, "(5, 3)");
    cr_assert(eq(u64, array->info.n_files, 3));
    cr_assert(not(array->info.is_swapped));
    cr_assert(eq(str, (char *)array->info.format, "npy"));
    expect_counting(array, 0);
    gad_array_release(array);
    array = open_ok("run[0-9]*.npy[1:, :]");
    expect_shape(array, "(4, 3)");
    expect_counting(array, 3);
    gad_array_release(array);
    array = open_ok("run?.npy");
    expect_shape(array, "(4, 3)");
    gad_array_release(array);
}

Test(many, keeps_the_byte_order_of_files_that_agree)
{
    npy_put_counting("a1.npy", true, "(2,)", 2, 0);
    npy_put_counting("a2.npy", true, "(2,)", 2, 2);
    struct gad_array *array = open_ok("a*.npy");
    cr_assert(array->info.is_swapped);
    uint16_t *got = elements(array);
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, __builtin_bswap16(got[i]), i));
    free(got);
    gad_array_release(array);
}

Test(many, stacks_along_a_new_axis)
{
    npy_put_counting("a1.npy", false, "(2, 3)", 6, 0);
    npy_put_counting("a2.npy", false, "(2, 3)", 6, 6);
    struct gad_array *array = open_ok("a*.npy:stack");
    expect_shape(array, "(2, 2, 3)");
    expect_counting(array, 0);
    gad_array_release(array);
    array = open_ok("a*.npy:stack [1]");
    expect_shape(array, "(2, 3)");
    cr_assert(eq(str, (char *)array->info.access, "file"));
    cr_assert(eq(u64, array->info.n_files, 1));
    uint16_t *got = elements(array);
    cr_assert(eq(int, got[0], 6));
    free(got);
    gad_array_release(array);
    npy_put_counting("n1.npy", false, "()", 1, 0);
    npy_put_counting("n2.npy", false, "()", 1, 1);
    array = open_ok("n*.npy:stack");
    expect_shape(array, "(2,)");
    expect_counting(array, 0);
    gad_array_release(array);
    array = open_ok("n*.npy:stack[1]");
    expect_shape(array, "()");
    gad_array_release(array);
}

Test(many, is_the_file_itself_where_one_matches)
{
    npy_put_counting("only.npy", false, "(2, 3)", 6, 0);
    struct gad_array *array = open_ok("on*.npy[1]");
    cr_assert(eq(str, (char *)array->info.access, "file"));
    expect_shape(array, "(3,)");
    gad_array_release(array);
    array = open_ok("on*.npy:stack");
    expect_shape(array, "(1, 2, 3)");
    expect_counting(array, 0);
    gad_array_release(array);
}

Test(many, passes_over_files_without_rows)
{
    npy_put_counting("a1.npy", false, "(0, 2)", 0, 0);
    npy_put_counting("a2.npy", false, "(2, 2)", 4, 0);
    npy_put_counting("a3.npy", false, "(0, 2)", 0, 0);
    npy_put_counting("a4.npy", false, "(1, 2)", 2, 4);
    npy_put_counting("a5.npy", false, "(0, 2)", 0, 0);
    struct gad_array *array = open_ok("a*.npy");
    expect_shape(array, "(3, 2)");
    expect_counting(array, 0);
    gad_array_release(array);
    array = open_ok("a[135].npy");
    expect_shape(array, "(0, 2)");
    gad_array_release(array);
    array = open_ok("a*.npy[3:]");
    expect_shape(array, "(0, 2)");
    gad_array_release(array);
}

Test(many, prefers_what_has_the_very_name)
{
    npy_put_counting("a[0-9].npy", false, "(2, 2)", 4, 7);
    npy_put_counting("a*.npy", false, "(1, 2)", 2, 9);
    npy_put_counting("a1.npy", false, "(3, 2)", 6, 0);
    struct gad_array *array = open_ok("a[0-9].npy[0]");
    expect_shape(array, "(2,)");
    gad_array_release(array);
    array = open_ok("a*.npy");
    expect_shape(array, "(1, 2)");
    gad_array_release(array);
    array = open_ok("a[[*]*.npy");
    expect_shape(array, "(3, 2)");
    cr_assert(eq(u64, array->info.n_files, 2));
    gad_array_release(array);
}

/* What does not go together -------------------------------------------------------------------- */

Test(many, names_the_first_file_that_differs)
{
    npy_put_counting("a1.npy", false, "(2, 3)", 6, 0);
    npy_put_counting("a2.npy", false, "(1, 3)", 3, 0);
    npy_put_counting("a10.npy", false, "(2, 4)", 8, 0);
    npy_put_counting("a11.npy", false, "(2, 5)", 10, 0);
    cr_assert(eq(str, (char *)open_word("a*.npy"), "bad-shape"));
    cr_assert(eq(str, last_error.argument, "a10.npy"));
    cr_assert(eq(str, last_error.expected, "(2, 3) but along axis 0"));
    cr_assert(eq(str, last_error.found, "(2, 4)"));
    cr_assert(eq(str, (char *)open_word("a[12].npy:stack"), "bad-shape"));
    cr_assert(eq(str, last_error.argument, "a2.npy"));
    cr_assert(eq(str, last_error.expected, "(2, 3)"));
    npy_put("b1.npy", 1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}\n", 12);
    static const char *const both[] = {"a1.npy", "b1.npy"};
    cr_assert(eq(str, (char *)join_word(2, both, 0, false), "bad-dtype"));
    cr_assert(eq(str, last_error.argument, "b1.npy"));
    cr_assert(eq(str, last_error.expected, "uint16"));
    cr_assert(eq(str, last_error.found, "int16"));
    npy_put_counting("c1.npy", false, "()", 1, 0);
    npy_put_counting("c2.npy", false, "()", 1, 0);
    cr_assert(eq(str, (char *)open_word("c*.npy"), "bad-shape"));
    cr_assert(strstr(last_error.message, ":stack") != NULL);
}

static void put_with_fill(const char *path, double fill)
{
    static const hsize_t dims[] = {2, 3};
    hid_t file = h5_create(path, 0), space = H5Screate(H5S_SCALAR);
    h5_put(file, "d", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    hid_t dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    hid_t attribute =
        H5Acreate2(dataset, "_FillValue", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &fill) >= 0);
    H5Aclose(attribute);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
}

Test(many, has_the_fill_value_of_all)
{
    put_with_fill("a1.h5", -999);
    put_with_fill("a2.h5", -999);
    struct gad_array *array = open_ok("a*.h5:/d");
    cr_assert(array->info.has_fill);
    cr_assert(array->info.fill < -998);
    gad_array_release(array);
    put_with_fill("a3.h5", 0);
    cr_assert(eq(str, (char *)open_word("a*.h5:/d"), "bad-format"));
    cr_assert(eq(str, last_error.argument, "a3.h5:/d"));
    cr_assert(eq(str, last_error.expected, "fill value -999"));
    cr_assert(eq(str, last_error.found, "0"));
}

Test(many, says_what_is_there_when_nothing_matches)
{
    cr_assert(eq(str, (char *)open_word("a*.npy"), "not-found"));
    cr_assert(eq(str, last_error.found, "nothing in the folder"));
    npy_put_counting("speed.npy", false, "(2,)", 2, 0);
    cr_assert(eq(str, (char *)open_word("a*.npy"), "not-found"));
    cr_assert(eq(str, last_error.found, "speed.npy"));
    for (int i = 0; i < 4; i++) {
        char path[16];
        snprintf(path, sizeof(path), "b%d.npy", i);
        npy_put_counting(path, false, "(2,)", 2, 0);
    }
    cr_assert(eq(str, (char *)open_word("./a*.npy"), "not-found"));
    cr_assert(strstr(last_error.found, " and 2 more") != NULL);
    cr_assert(eq(str, (char *)open_word("none/a*.npy"), "not-found"));
    cr_assert(eq(str, last_error.found, "no folder 'none/'"));
    cr_assert(eq(str, (char *)open_word("n*/a*.npy"), "not-found"));
    cr_assert(eq(str, (char *)open_word("b[0-9.npy"), "not-found"));
}

Test(many, refuses_what_it_cannot_do)
{
    npy_put_counting("a1.npy", false, "(2,)", 2, 0);
    npy_put_counting("a2.npy", false, "(2,)", 2, 0);
    cr_assert(eq(str, (char *)open_in_place_word("a*.npy"), "read-only"));
    cr_assert(eq(str, (char *)open_word("a*.npy[2:3:0]"), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("a*.npy[4]"), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("a*.npy:stuck"), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("a*.raw"), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("a.raw[1]:u2:7"), "not-found")); /* no pattern */
    cr_assert(strstr(last_error.message, "there is no") != NULL);
    static const char *const selected[] = {"a*.npy[1:]"}, *const stacked[] = {"a*.npy:stack"},
                             *const one[] = {"a1.npy"};
    cr_assert(eq(str, (char *)join_word(1, selected, 0, false), "bad-argument"));
    cr_assert(eq(str, (char *)join_word(1, stacked, 0, true), "bad-argument"));
    cr_assert(eq(str, (char *)join_word(1, one, 1, false), "bad-shape"));
    cr_assert(eq(str, (char *)join_word(1, one, -2, false), "bad-shape"));
    cr_assert(eq(str, (char *)join_word(1, one, -2, true), "ok"));
    cr_assert(mkdir("a3.npy", 0755) == 0);
    cr_assert(eq(str, (char *)open_word("a*.npy"), "bad-descriptor"));
    cr_assert(eq(str, last_error.argument, "a3.npy"));
}

Test(many, says_that_a_folder_cannot_be_read)
{
    cr_assert(mkdir("d1", 0755) == 0 && mkdir("d2", 0700) == 0);
    npy_put_counting("d1/a.npy", false, "(2,)", 2, 0);
    npy_put_counting("d2/a.npy", false, "(2,)", 2, 2);
    struct gad_array *array = open_ok("d*/*.npy");
    expect_counting(array, 0);
    gad_array_release(array);
    drop_root();
    if (access("d2", R_OK) == 0)
        cr_skip_test("this user reads everything");
    cr_assert(chmod("d2", 0) == 0 || geteuid() != 0);
    cr_assert(eq(str, (char *)open_word("d*/*.npy"), "permission-denied"));
    cr_assert(strstr(last_error.message, "d2") != NULL);
}

/* Axes and formats ----------------------------------------------------------------------------- */

Test(many, joins_along_any_axis)
{
    static const char *const specs[] = {"a.npy", "b.npy"};
    npy_put_counting("a.npy", false, "(2, 2, 2)", 8, 0);
    npy_put_counting("b.npy", true, "(2, 1, 2)", 4, 100);
    for (int axis = 1; axis >= -2; axis -= 3) {
        static const uint16_t wanted[] = {0, 1, 2, 3, 100, 101, 4, 5, 6, 7, 102, 103};
        struct gad_array *array = join_ok(2, specs, axis, false);
        expect_shape(array, "(2, 3, 2)");
        for (int64_t step = 1; step < 4; step++) {
            uint16_t *got = elements_by_blocks(array, step);
            cr_assert(memcmp(got, wanted, sizeof(wanted)) == 0);
            free(got);
        }
        gad_array_release(array);
    }
    npy_put_counting("b.npy", true, "(2, 2, 2)", 8, 100);
    static const uint16_t wanted[] = {0, 100, 1, 101, 2, 102, 3, 103,
                                      4, 104, 5, 105, 6, 106, 7, 107};
    struct gad_array *array = join_ok(2, specs, -1, true);
    expect_shape(array, "(2, 2, 2, 2)");
    uint16_t *got = elements(array);
    cr_assert(memcmp(got, wanted, sizeof(wanted)) == 0);
    free(got);
    gad_array_release(array);
}

Test(many, reads_members_of_every_format)
{
    static const char *const specs[] = {"a.npy[0:2]",         "b.raw:>u2:1x3:4", "c.h5:/plain",
                                        "c.h5:/packed[::-1]", "f.npy",           "d*.npy"};
    static const hsize_t dims[] = {2, 3}, chunk[] = {1, 2};
    static const char fortran[] = "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3)}\n";
    static const uint16_t wanted[][3] = {{0, 1, 2},
                                         {3, 4, 5},
                                         {0x0102, 0x0304, 0x0506},
                                         {0, 1, 2},
                                         {3, 4, 5},
                                         {3, 4, 5},
                                         {0, 1, 2},
                                         {0x0100, 0x0504, 0x0908},
                                         {0x0302, 0x0706, 0x0b0a},
                                         {50, 51, 52},
                                         {60, 61, 62}};
    npy_put_counting("a.npy", false, "(3, 3)", 9, 0);
    file_put("b.raw", "xxxx\1\2\3\4\5\6", 10);
    hid_t file = h5_create("c.h5", 0), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_deflate(dcpl, 1);
    h5_put(file, "plain", H5T_STD_U16LE, 2, dims, NULL, 0);
    h5_put(file, "packed", H5T_STD_U16LE, 2, dims, chunk, dcpl);
    H5Pclose(dcpl);
    H5Fclose(file);
    npy_put("f.npy", 1, fortran, 12);
    npy_put_counting("d9.npy", false, "(1, 3)", 3, 50);
    npy_put_counting("d10.npy", false, "(1, 3)", 3, 60);
    int before = descriptor_count();
    struct gad_array *array = join_ok(6, specs, 0, false);
    cr_assert(eq(int, descriptor_count(), before));
    expect_shape(array, "(11, 3)");
    cr_assert(eq(u64, array->info.n_files, 7));
    cr_assert(eq(str, (char *)array->info.format, "mixed"));
    for (int64_t step = 1; step < 12; step += 2) {
        uint16_t *got = elements_by_blocks(array, step);
        cr_assert(memcmp(got, wanted, sizeof(wanted)) == 0, "step %d", (int)step);
        free(got);
    }
    gad_array_release(array);
    cr_assert(eq(int, descriptor_count(), before));
}

Test(many, tells_the_chunks_that_members_have)
{
    static const hsize_t dims[] = {4, 6}, shorter[] = {3, 6}, chunk[] = {2, 3};
    for (int i = 0; i < 3; i++) {
        char path[8];
        snprintf(path, sizeof(path), "c%d.h5", i);
        hid_t file = h5_create(path, 0), dcpl = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_shuffle(dcpl);
        h5_put(file, "d", H5T_STD_U16LE, 2, i == 2 ? shorter : dims, chunk, dcpl);
        H5Pclose(dcpl);
        H5Fclose(file);
    }
    struct gad_array *array = open_ok("c*.h5:/d");
    expect_shape(array, "(11, 6)");
    cr_assert(eq(u64, array->n_chunks, 12));
    cr_assert(array->chunk_shape[0] == 2 && array->chunk_shape[1] == 3);
    gad_array_release(array);
    array = open_ok("c[01].h5:/d:stack");
    cr_assert(array->n_chunks == 8 && array->chunk_shape[0] == 1 && array->chunk_shape[2] == 3);
    gad_array_release(array);
    static const char *const shuffled[] = {"c0.h5:/d", "c2.h5:/d", "c1.h5:/d"};
    array = join_ok(3, shuffled, 0, false);
    cr_assert(eq(u64, array->n_chunks, 0)); /* the second one ends inside a chunk */
    gad_array_release(array);
}

Test(many, reads_columns_of_files_in_fortran_order)
{
    static const char text[] = "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 4)}\n";
    npy_put("f1.npy", 1, text, 12);
    npy_put("f2.npy", 1, text, 12);
    struct gad_array *array = open_ok("f*.npy");
    expect_shape(array, "(6, 4)");
    cr_assert(array->chunk_shape[0] == 3 && array->chunk_shape[1] == 4 && array->n_chunks == 2);
    for (int64_t step = 1; step < 7; step++) {
        uint8_t *got = elements_by_blocks(array, step);
        for (int i = 0; i < 24; i++)
            cr_assert(eq(int, got[i], i / 4 % 3 + 3 * (i % 4)), "step %d", (int)step);
        free(got);
    }
    gad_array_release(array);
    array = open_ok("f*.npy:stack[::-1, 1:, ::2]");
    uint8_t *got = elements(array);
    for (int i = 0; i < 8; i++)
        cr_assert(eq(int, got[i], i / 2 % 2 + 1 + 6 * (i % 2)));
    free(got);
    gad_array_release(array);
}

/* Files that change ---------------------------------------------------------------------------- */

static struct gad_array *open_three(void)
{
    npy_put_counting("a1.npy", false, "(2,)", 2, 0);
    npy_put_counting("a2.npy", false, "(2,)", 2, 2);
    npy_put_counting("a3.npy", false, "(2,)", 2, 4);
    return open_ok("a*.npy");
}

static void expect_failure(const struct gad_array *array, int wanted, const char *path)
{
    uint16_t block[64];
    cr_assert(eq(int, fill_whole(array, block), wanted));
    const struct gad_error *failure = &many_of(array)->failure;
    cr_assert(eq(str, (char *)failure->argument, (char *)path));
    cr_assert(strstr(failure->message, path) != NULL, "%s", failure->message);
}

Test(many, does_not_read_a_file_that_was_replaced)
{
    struct gad_array *array = open_three();
    npy_put_counting("new.npy", false, "(2,)", 2, 2);
    cr_assert(rename("new.npy", "a2.npy") == 0);
    expect_failure(array, ESTALE, "a2.npy");
    gad_array_release(array);
}

Test(many, does_not_read_a_file_that_was_written_to_or_cut_short)
{
    uint16_t block[6];
    struct gad_array *array = open_three();
    cr_assert(eq(int, fill_whole(array, block), 0)); /* it is kept open */
    FILE *f = fopen("a3.npy", "ab");
    fputc('x', f);
    fclose(f);
    expect_failure(array, ESTALE, "a3.npy");
    gad_array_release(array);
    array = open_three();
    cr_assert(truncate("a2.npy", 20) == 0);
    expect_failure(array, ENODATA, "a2.npy");
    gad_array_release(array);
}

Test(many, says_which_file_has_gone)
{
    struct gad_array *array = open_three();
    cr_assert(unlink("a1.npy") == 0);
    expect_failure(array, ENOENT, "a1.npy");
    gad_array_release(array);
}

Test(many, finds_files_from_another_directory)
{
    struct gad_array *array = open_three();
    cr_assert(mkdir("below", 0755) == 0 && chdir("below") == 0);
    expect_counting(array, 0);
    gad_array_release(array);
}

Test(many, looks_a_dataset_up_anew_when_its_file_was_written)
{
    static const hsize_t dims[] = {2, 3};
    uint16_t block[12];
    for (int i = 0; i < 2; i++) {
        hid_t file = h5_create(i ? "b.h5" : "a.h5", 0);
        h5_put(file, "d", H5T_STD_U16LE, 2, dims, NULL, 0);
        H5Fclose(file);
    }
    struct gad_array *array = open_ok("?.h5:/d");
    cr_assert(eq(int, fill_whole(array, block), 0));
    hid_t file = H5Fopen("b.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put(file, "more", H5T_STD_U16LE, 2, dims, NULL, 0);
    H5Fclose(file);
    memset(block, 0, sizeof(block));
    cr_assert(eq(int, fill_whole(array, block), 0));
    cr_assert(block[6] == 0 && block[11] == 5);
    file = H5Fopen("a.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, "d", H5P_DEFAULT);
    H5Fclose(file);
    cr_assert(eq(int, fill_whole(array, block), ENOENT));
    gad_array_release(array);
}

/* Many ----------------------------------------------------------------------------------------- */

#define N_FILES   2000
#define N_THREADS 4

struct reader {
    const struct gad_array *array;
    int first, most_open;
    bool is_good;
};

static void *read_some(void *userdata)
{
    struct reader *reader = userdata;
    reader->is_good = true;
    for (int64_t i = reader->first; i < N_FILES; i += N_THREADS) {
        uint16_t block[4] = {0};
        int64_t start = 2 * i, count = i < N_FILES - 1 ? 4 : 2;
        if (reader->array->provider->fill(reader->array->provider_state, &start, &count, block) ||
            block[0] != (uint16_t)start || block[count - 1] != (uint16_t)(start + count - 1))
            reader->is_good = false;
    }
    reader->most_open = descriptor_count();
    return NULL;
}

Test(many, reads_thousands_with_few_descriptors)
{
    struct rlimit few = {.rlim_cur = 48, .rlim_max = 48};
    char path[16];
    for (int i = 0; i < N_FILES; i++) {
        snprintf(path, sizeof(path), "x%d.npy", i);
        npy_put_counting(path, i % 3 == 0, "(2,)", 2, 2 * i);
    }
    cr_assert(setrlimit(RLIMIT_NOFILE, &few) == 0);
    int before = descriptor_count();
    struct gad_array *array = open_ok("x*.npy");
    expect_shape(array, "(4000,)");
    pthread_t threads[N_THREADS];
    struct reader readers[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        readers[i] = (struct reader){.array = array, .first = i};
        cr_assert(pthread_create(&threads[i], NULL, read_some, &readers[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(readers[i].is_good);
        cr_assert(readers[i].most_open <= before + 48 / 8 + 2 * N_THREADS);
    }
    gad_array_release(array);
    cr_assert(eq(int, descriptor_count(), before));
}
