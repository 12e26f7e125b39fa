/* New arrays in npz archives: whole or not at all, together where they are of one job, and with
 * what was there before. */
#include "archives.h"

#include <unistd.h>

TestSuite(npz_output, .init = folder_make, .fini = folder_remove);

static const int64_t shape[2] = {30, 40};

static void fill(const struct gad_array *array, int first)
{
    int32_t values[1200];
    for (int i = 0; i < 1200; i++)
        values[i] = first + i;
    write_elements(array, values);
}

static struct gad_array *make(const char *spec, int first)
{
    struct gad_array *array = create_ok(spec, DTYPE_INT32, 2, shape);
    fill(array, first);
    return array;
}

static void put(const char *spec, int first)
{
    struct gad_array *array = make(spec, first);
    commit_ok(array);
    gad_array_release(array);
}

static void check(const char *spec, int first)
{
    struct gad_array *array = open_ok(spec);
    int32_t *values = elements(array);
    for (int i = 0; i < 1200; i++)
        cr_assert(eq(i32, values[i], first + i), "%s", spec);
    free(values);
    gad_array_release(array);
}

/* As another reader sees it, CRCs too. */
static void check_by_python(const char *path)
{
    char command[200];
    snprintf(command, sizeof(command), "test \"$(python3 -m zipfile -t %s)\" = 'Done testing'",
             path);
    cr_assert(eq(int, system(command), 0));
}

Test(npz_output, appears_with_the_commit)
{
    int n = descriptor_count();
    struct gad_array *array = make("a.npz:x", 5);
    cr_assert(eq(int, folder_count(), 0));
    cr_assert(eq(u64, array->offset_bytes % 4096, 0));
    commit_ok(array);
    gad_array_release(array);
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(eq(int, descriptor_count(), n));
    check("a.npz:x", 5);
    check_by_python("a.npz");
}

Test(npz_output, leaves_nothing_without_a_commit)
{
    int n = descriptor_count();
    gad_array_release(make("a.npz:x", 5));
    cr_assert(eq(int, folder_count(), 0));
    put("a.npz:x", 7);
    gad_array_release(make("a.npz:y", 5));
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(eq(str, (char *)open_word("a.npz:y"), "not-found"));
    check("a.npz:x", 7);
    cr_assert(eq(int, descriptor_count(), n));
}

Test(npz_output, others_stay)
{
    size_t n;
    void *bytes = npy_bytes("'<i2'", false, "(1000, 500)", 1000000, &n);
    const struct made_member members[] = {{"p.npy", bytes, n, true, 0},
                                          {"q.npy", bytes, n, true, ZIP_FLAG_DESCRIPTOR},
                                          {"r.npy", bytes, n, false, ZIP_FLAG_DESCRIPTOR},
                                          {"words/notes.txt", "words", 5, false, 0}};
    archive_put("a.npz", members, 4);
    cr_assert(chmod("a.npz", 0640) == 0);
    put("a.npz:x", 1);
    put("a.npz:y", 2);
    check("a.npz:x", 1);
    check("a.npz:y", 2);
    check_by_python("a.npz");
    for (int i = 0; i < 3; i++) {
        char spec[] = "a.npz:p";
        spec[6] = (char)('p' + i);
        struct gad_array *array = open_ok(spec);
        uint8_t *found = elements(array);
        cr_assert(memcmp(found, (uint8_t *)bytes + n - 1000000, 1000000) == 0, "%s", spec);
        free(found);
        gad_array_release(array);
    }
    struct stat st;
    cr_assert(stat("a.npz", &st) == 0 && (st.st_mode & 07777) == 0640);
    free(bytes);
}

/* Nothing is added up when the same array is written again and again. */
Test(npz_output, an_array_is_replaced)
{
    struct stat st, again;
    put("a.npz:x", 1);
    put("a.npz:y", 2);
    cr_assert(stat("a.npz", &st) == 0);
    for (int i = 0; i < 3; i++) {
        struct gad_array *array = NULL;
        cr_assert(eq(str, (char *)create_word("a.npz:x", false, DTYPE_INT32, 2, shape), "exists"));
        cr_assert(eq(int,
                     format_create(NULL, "a.npz:x.npy", true, DTYPE_INT32, 2, shape, false, NULL,
                                   &array, &last_error),
                     0));
        fill(array, 10 + i);
        commit_ok(array);
        gad_array_release(array);
        check("a.npz:x", 10 + i);
        check("a.npz:y", 2);
    }
    cr_assert(stat("a.npz", &again) == 0);
    cr_assert(eq(i64, again.st_size, st.st_size));
    check_by_python("a.npz");
}

/* Two jobs that know nothing of each other: neither's array is lost. */
Test(npz_output, two_that_are_made_at_the_same_time_are_both_there)
{
    for (int has_file = 0; has_file < 2; has_file++) {
        struct gad_array *x = make(has_file ? "a.npz:x2" : "a.npz:x", 1);
        struct gad_array *y = make(has_file ? "a.npz:y2" : "a.npz:y", 2);
        commit_ok(x);
        check(has_file ? "a.npz:x2" : "a.npz:x", 1);
        commit_ok(y);
        gad_array_release(x);
        gad_array_release(y);
    }
    check("a.npz:x", 1);
    check("a.npz:y", 2);
    check("a.npz:x2", 1);
    check("a.npz:y2", 2);
    check_by_python("a.npz");
}

Test(npz_output, those_of_one_job_appear_together)
{
    int n = descriptor_count();
    struct gad_array *x = create_ok("a.npz:x", DTYPE_INT32, 2, shape);
    struct gad_array *y = create_ok("a.npz:y", DTYPE_INT32, 2, shape);
    struct gad_array *z = create_ok("b.npz:z", DTYPE_INT32, 2, shape);
    cr_assert(not(x->is_same_target(y, x)));
    cr_assert(eq(int, y->join(y, x, &last_error), 0));
    cr_assert(eq(int, z->join(z, x, &last_error), 0)); /* another archive: nothing happens */
    struct stat st_x, st_y;
    cr_assert(fstat(x->fd, &st_x) == 0 && fstat(y->fd, &st_y) == 0);
    cr_assert(eq(u64, st_x.st_ino, st_y.st_ino));
    fill(x, 1);
    fill(y, 2);
    fill(z, 3);
    commit_ok(x);
    cr_assert(eq(int, folder_count(), 0));
    commit_ok(y);
    cr_assert(eq(int, folder_count(), 1));
    gad_array_release(x);
    gad_array_release(y);
    gad_array_release(z);
    check("a.npz:x", 1);
    check("a.npz:y", 2);
    check_by_python("a.npz");
    cr_assert(eq(int, descriptor_count(), n));
    x = create_ok("a.npz:w", DTYPE_INT32, 2, shape);
    y = create_ok("a.npz:w", DTYPE_INT32, 2, shape);
    cr_assert(x->is_same_target(y, x));
    gad_array_release(x);
    gad_array_release(y);
}

Test(npz_output, refuses_what_is_no_name_or_no_archive)
{
    static const char *const names[] = {"a.npz:/x",   "a.npz:x/",     "a.npz:x//y",     "a.npz:..",
                                        "a.npz:../x", "a.npz:x/../y", "a.npz:\xff\xfe", "a.npz:"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cr_assert(eq(str, (char *)create_word(names[i], true, DTYPE_INT8, 0, NULL), "bad-argument"),
                  "%s", names[i]);
    file_put("b.npz", "no archive", 10);
    cr_assert(eq(str, (char *)create_word("b.npz:x", true, DTYPE_INT8, 0, NULL), "bad-format"));
    put("a.npz:x..y", 1);
    put("a.npz:gr\xc3\xb6\xc3\x9f"
        "e",
        2);
    check("a.npz:gr\xc3\xb6\xc3\x9f"
          "e",
          2);
    check_by_python("a.npz");
    cr_assert(eq(str, (char *)create_word("none/a.npz:x", true, DTYPE_INT8, 0, NULL), "not-found"));
    cr_assert(eq(int, folder_count(), 2));
}

Test(npz_output, a_full_disk_is_seen_before_anything_is_written)
{
    cr_assert(mkdir("small", 0755) == 0);
    mount_small_tmpfs("small");
    put("small/a.npz:x", 1);
    const int64_t large[1] = {1 << 20};
    cr_assert(
        eq(str, (char *)create_word("small/a.npz:y", true, DTYPE_FLOAT64, 1, large), "no-space"));
    check("small/a.npz:x", 1);
    unmount("small");
}

Test(npz_output, a_file_that_cannot_be_replaced_keeps_what_it_has)
{
    put("a.npz:x", 1);
    struct gad_array *array = make("a.npz:y", 2);
    file_put("a.npz", "changed to something else", 25);
    cr_assert(eq(int, array->commit(array, &last_error), GAD_BAD_FORMAT));
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(unlink("a.npz") == 0);
    commit_ok(array); /* it may be tried again */
    gad_array_release(array);
    check("a.npz:y", 2);
    check_by_python("a.npz");
}

Test(npz_output, scalars_and_empty_arrays_are_written)
{
    const int64_t none[2] = {0, 3};
    struct gad_array *s = create_ok("a.npz:s", DTYPE_FLOAT64, 0, NULL);
    double value = 2.5;
    write_elements(s, &value);
    commit_ok(s);
    gad_array_release(s);
    struct gad_array *e = create_ok("a.npz:e", DTYPE_BOOL, 2, none);
    commit_ok(e);
    gad_array_release(e);
    s = open_ok("a.npz:s");
    double *found = elements(s);
    cr_assert(eq(dbl, *found, 2.5));
    free(found);
    gad_array_release(s);
    e = open_ok("a.npz:e");
    cr_assert(eq(i64, e->info.shape[1], 3));
    gad_array_release(e);
    check_by_python("a.npz");
}

/* Packed --------------------------------------------------------------------------------------- */

static struct gad_array *create_packed(const char *spec, enum dtype dtype, int ndim,
                                       const int64_t *sizes, const char *how)
{
    struct gad_array *array = NULL;
    const struct gad_storage storage = {.compress = how, .sync = true};
    int r =
        format_create(NULL, spec, false, dtype, ndim, sizes, false, &storage, &array, &last_error);
    cr_assert(r == 0, "%s", last_error.message);
    return array;
}

/* Some pieces, the last one not whole. */
#define N_LARGE (5 * 262144 + 77)

static uint32_t scrambled(uint32_t i)
{
    i = (i ^ i >> 16) * 0x45d9f3bu;
    i = (i ^ i >> 16) * 0x45d9f3bu;
    return i ^ i >> 16;
}

static void fill_large(const struct gad_array *array, uint32_t mask)
{
    uint32_t *values = malloc(N_LARGE * sizeof(uint32_t));
    for (uint32_t i = 0; i < N_LARGE; i++)
        values[i] = scrambled(i) & mask;
    cr_assert(pwrite(array->fd, values, N_LARGE * sizeof(uint32_t), (off_t)array->offset_bytes) ==
              N_LARGE * sizeof(uint32_t));
    free(values);
}

static void check_large(const char *spec, uint32_t mask, enum access access)
{
    struct gad_array *array = open_ok(spec);
    cr_assert(eq(int, array->access, access));
    uint32_t *values = elements_by_blocks(array, 100000);
    bool is_right = true;
    for (uint32_t i = 0; i < N_LARGE; i++)
        is_right = is_right && values[i] == (scrambled(i) & mask);
    cr_assert(is_right);
    free(values);
    gad_array_release(array);
}

Test(npz_output, is_packed_where_that_is_asked_for)
{
    static const char *const levels[] = {"gzip:0", "gzip:1", "gzip:2", "gzip", "gzip:9"};
    const int64_t sizes[] = {N_LARGE};
    int n = descriptor_count();
    for (size_t i = 0; i < 5; i++) {
        char spec[16];
        snprintf(spec, sizeof(spec), "a.npz:x%zu", i);
        struct gad_array *array = create_packed(spec, DTYPE_UINT32, 1, sizes, levels[i]);
        fill_large(array, 0xff);
        commit_ok(array);
        gad_array_release(array);
        check_large(spec, 0xff, ACCESS_PROVIDER);
    }
    struct stat st;
    cr_assert(stat("a.npz", &st) == 0);
    cr_assert(st.st_size < 5 * N_LARGE * 4 * 3 / 4);
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(eq(int, descriptor_count(), n));
    check_by_python("a.npz");
}

Test(npz_output, what_would_hardly_become_smaller_is_stored)
{
    const int64_t sizes[] = {N_LARGE};
    struct gad_array *array = create_packed("a.npz:x", DTYPE_UINT32, 1, sizes, "gzip");
    fill_large(array, UINT32_MAX);
    commit_ok(array);
    gad_array_release(array);
    check_large("a.npz:x", UINT32_MAX, ACCESS_FILE);
    check_by_python("a.npz");
}

Test(npz_output, stored_and_packed_ones_of_one_job_appear_together)
{
    const int64_t sizes[] = {N_LARGE};
    put("a.npz:old", 3);
    struct gad_array *p = create_packed("a.npz:p", DTYPE_UINT32, 1, sizes, "gzip:1");
    struct gad_array *s = create_ok("a.npz:s", DTYPE_INT32, 2, shape);
    struct gad_array *q = create_packed("a.npz:q", DTYPE_INT32, 2, shape, "gzip");
    cr_assert(eq(int, s->join(s, p, &last_error), 0));
    cr_assert(eq(int, q->join(q, p, &last_error), 0));
    fill_large(p, 0xffff);
    fill(s, 5);
    fill(q, 6);
    commit_ok(p);
    commit_ok(s);
    cr_assert(eq(str, (char *)open_word("a.npz:p"), "not-found"));
    commit_ok(q);
    gad_array_release(p);
    gad_array_release(s);
    gad_array_release(q);
    check("a.npz:s", 5);
    check("a.npz:q", 6);
    check("a.npz:old", 3);
    check_large("a.npz:p", 0xffff, ACCESS_PROVIDER);
    check_by_python("a.npz");
    cr_assert(eq(int, folder_count(), 1));
}

Test(npz_output, has_no_chunks_and_no_other_way_to_pack)
{
    const int64_t chunks[] = {10, 10};
    const struct gad_storage storages[] = {
        {.compress = "zstd"},
        {.compress = "gzip", .shuffle = true},
        {.compress = "gzip", .fletcher32 = true},
        {.compress = "gzip", .n_chunk_axes = 2, .chunk_shape = chunks},
        {.n_chunk_axes = 2, .chunk_shape = chunks},
    };
    int n = descriptor_count();
    for (size_t i = 0; i < 5; i++) {
        struct gad_array *array = NULL;
        int r = format_create(NULL, "a.npz:x", false, DTYPE_INT32, 2, shape, false, &storages[i],
                              &array, &last_error);
        cr_assert(eq(int, r, GAD_BAD_ARGUMENT));
    }
    cr_assert(eq(int, folder_count(), 0));
    cr_assert(eq(int, descriptor_count(), n));
}
