/* npz archives as sources: both kinds of members, however they are asked for, and what is refused.
 */
#include "archives.h"

#include "client/formats/npz/npz_stream.h"

#include <pthread.h>
#include <unistd.h>

TestSuite(npz, .init = folder_make, .fini = folder_remove);

static void *a_bytes, *f_bytes, *s_bytes;
static size_t n_a, n_f, n_s;

/* a: int16 (40, 50); f: big-endian, Fortran order, (6, 4); s: a scalar. */
static void put(const char *path, bool is_deflated, uint16_t flags)
{
    a_bytes = npy_bytes("'<i2'", false, "(40, 50)", 4000, &n_a);
    f_bytes = npy_bytes("'>i4'", true, "(6, 4)", 96, &n_f);
    s_bytes = npy_bytes("'<f8'", false, "()", 8, &n_s);
    const struct made_member members[] = {{"a.npy", a_bytes, n_a, is_deflated, flags},
                                          {"f.npy", f_bytes, n_f, is_deflated, flags},
                                          {"d/s.npy", s_bytes, n_s, is_deflated, flags},
                                          {"notes.txt", "words", 5, is_deflated, flags}};
    archive_put(path, members, 4);
}

static void free_bytes(void)
{
    free(a_bytes);
    free(f_bytes);
    free(s_bytes);
}

static void check_a(const char *spec, int64_t step)
{
    struct gad_array *array = open_ok(spec);
    cr_assert(eq(int, array->info.ndim, 2));
    int16_t *values = step ? elements_by_blocks(array, step) : elements(array);
    for (size_t i = 0; i < 2000; i++)
        cr_assert(eq(int, (uint16_t)values[i], (int)(2 * i % 256 + (2 * i + 1) % 256 * 256)));
    free(values);
    gad_array_release(array);
}

static void check_archive(const char *path)
{
    char spec[64];
    snprintf(spec, sizeof(spec), "%s:a", path);
    check_a(spec, 0);
    check_a(spec, 7);
    snprintf(spec, sizeof(spec), "%s:a.npy", path);
    check_a(spec, 0);
    snprintf(spec, sizeof(spec), "%s:f[::-2, 1]", path);
    struct gad_array *array = open_ok(spec);
    cr_assert(array->info.is_swapped);
    uint8_t *bytes = elements(array);
    for (int i = 0; i < 3; i++) /* rows 5, 3, 1 of column 1, the elements 11, 9, 7 */
        cr_assert(eq(int, bytes[4 * i], 4 * (11 - 2 * i)));
    free(bytes);
    gad_array_release(array);
    snprintf(spec, sizeof(spec), "%s:d/s", path);
    array = open_ok(spec);
    bytes = elements(array);
    cr_assert(eq(int, bytes[7], 7));
    free(bytes);
    gad_array_release(array);
}

Test(npz, a_stored_member_lies_in_its_file)
{
    put("s.npz", false, 0);
    struct gad_array *array = open_ok("s.npz:a");
    cr_assert(eq(int, array->access, ACCESS_FILE));
    cr_assert(eq(str, (char *)array->info.format, "npz"));
    gad_array_release(array);
    check_archive("s.npz");
    free_bytes();
}

Test(npz, a_deflated_member_is_provided)
{
    put("z.npz", true, 0);
    int n = descriptor_count();
    struct gad_array *array = open_ok("z.npz:a");
    cr_assert(eq(int, array->access, ACCESS_PROVIDER));
    cr_assert(eq(str, (char *)array->info.access, "provider"));
    gad_array_release(array);
    cr_assert(eq(int, descriptor_count(), n));
    check_archive("z.npz");
    free_bytes();
}

Test(npz, sizes_may_stand_behind_the_data)
{
    put("s.npz", false, ZIP_FLAG_DESCRIPTOR);
    check_archive("s.npz");
    free_bytes();
    put("z.npz", true, ZIP_FLAG_DESCRIPTOR);
    check_archive("z.npz");
    free_bytes();
}

Test(npz, offsets_do_not_count_what_stands_before_the_archive)
{
    put("s.npz", false, 0);
    check_a("s.npz:a", 0);
    cr_assert(eq(int, system("(echo prefix; cat s.npz) > p.npz"), 0));
    check_archive("p.npz");
    cr_assert(eq(str, (char *)create_word("p.npz:b", true, DTYPE_INT8, 0, NULL), "bad-format"));
    free_bytes();
}

Test(npz, a_name_may_be_left_out_where_there_is_one_array)
{
    void *bytes = npy_bytes("'<i2'", false, "(40, 50)", 4000, &n_a);
    const struct made_member members[] = {{"notes.txt", "words", 5, false, 0},
                                          {"a.npy", bytes, n_a, false, 0}};
    archive_put("one.npz", members, 2);
    check_a("one.npz", 0);
    struct gad_array *array = open_ok("one.npz[3, ::2]");
    cr_assert(eq(i64, array->info.shape[0], 25));
    gad_array_release(array);
    free(bytes);
}

Test(npz, names_win_as_in_numpy)
{
    size_t n[3];
    void *bytes[] = {npy_bytes("'<i2'", false, "(1,)", 2, &n[0]),
                     npy_bytes("'<i2'", false, "(2,)", 4, &n[1]),
                     npy_bytes("'<i2'", false, "(3,)", 6, &n[2])};
    const struct made_member members[] = {{"x.npy", bytes[0], n[0], false, 0},
                                          {"x", bytes[1], n[1], false, 0},
                                          {"x[0].npy", bytes[2], n[2], false, 0}};
    archive_put("a.npz", members, 3);
    static const struct {
        const char *spec;
        int64_t size;
    } cases[] = {{"a.npz:x", 2}, {"a.npz:x.npy", 1}, {"a.npz:x[0]", 3}, {"a.npz:x.npy[:0]", 0}};
    for (size_t i = 0; i < 4; i++) {
        struct gad_array *array = open_ok(cases[i].spec);
        cr_assert(eq(i64, array->info.shape[0], cases[i].size), "%s", cases[i].spec);
        gad_array_release(array);
        free(i < 3 ? bytes[i] : NULL);
    }
}

Test(npz, whoever_asks_for_what_is_not_there_is_told_what_is)
{
    put("s.npz", false, 0);
    cr_assert(eq(str, (char *)open_word("s.npz:ff"), "not-found"));
    cr_assert(eq(str, last_error.expected, "'f', 'a', 'd/s'"));
    cr_assert(eq(str, (char *)open_word("s.npz"), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("none.npz:a"), "not-found"));
    cr_assert(eq(str, (char *)open_word("s.npz:notes.txt"), "bad-format"));
    free_bytes();
}

/* Far more than the window. */
#define ROWS    4096
#define COLUMNS 2048

static int32_t large_value(int64_t row, int64_t column)
{
    return (int32_t)((uint64_t)(row * COLUMNS + column) * 2654435761u >> 7);
}

static struct gad_array *open_large(void)
{
    size_t n_bytes, n_data = (size_t)ROWS * COLUMNS * sizeof(int32_t);
    uint8_t *bytes = npy_bytes("'<i4'", false, "(4096, 2048)", n_data, &n_bytes);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
        int32_t value = large_value(0, i);
        memcpy(bytes + n_bytes - n_data + i * 4, &value, 4);
    }
    const struct made_member member = {"x.npy", bytes, n_bytes, true, 0};
    archive_put("x.npz", &member, 1);
    free(bytes);
    return open_ok("x.npz:x");
}

/* Two rows of eight columns. */
static bool is_right(const struct gad_array *array, int64_t row, int64_t column)
{
    int32_t block[16];
    const int64_t start[] = {row, column}, count[] = {2, 8};
    bool is = array->provider->fill(array->provider_state, start, count, block) == 0;
    for (int i = 0; i < 16; i++)
        is = is && block[i] == large_value(row + i / 8, column + i % 8);
    return is;
}

Test(npz, a_large_member_is_read_in_any_order)
{
    struct gad_array *array = open_large();
    for (int pass = 0; pass < 4; pass++)
        for (int64_t column = COLUMNS - 8; column >= 0; column -= COLUMNS / 4 - 1)
            for (int64_t row = 1; row < ROWS; row += ROWS - 3)
                cr_assert(is_right(array, row, column));
    gad_array_release(array);
}

static void *read_some(void *userdata)
{
    static const int64_t rows[] = {0, 4000, 2000, 3000, 1000, 4094};
    const struct gad_array *array = userdata;
    for (int i = 0; i < 12; i++)
        if (!is_right(array, rows[i % 6], 8 * i))
            return userdata;
    return NULL;
}

/* Where the decoder begins again, and where all is unpacked, others may be reading. */
Test(npz, a_member_is_read_by_several_threads)
{
    struct gad_array *array = open_large();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, read_some, array), 0));
    for (int i = 0; i < 4; i++) {
        void *failed;
        cr_assert(eq(int, pthread_join(threads[i], &failed), 0));
        cr_assert(failed == NULL);
    }
    gad_array_release(array);
}

Test(npz, a_damaged_member_is_found_out_by_its_crc)
{
    size_t n;
    a_bytes = npy_bytes("'<i2'", false, "(40, 50)", 4000, &n_a);
    const struct made_member member = {"a.npy", a_bytes, n_a, true, 0};
    uint8_t *bytes = archive_bytes(&member, 1, &n);
    bytes[14] ^= 1; /* the local header's, then the directory's */
    bytes[archive_find(bytes, n, SIGN_CENTRAL, 0) + 16] ^= 1;
    file_put("a.npz", bytes, n);
    cr_assert(eq(str, (char *)open_word("a.npz:a"), "ok")); /* the header is another step */
    free(bytes);
    free(a_bytes);

    /* More than the second step: the last block says so. */
    a_bytes = npy_bytes("'<i2'", false, "(400, 5000)", 4000000, &n_a);
    const struct made_member large = {"a.npy", a_bytes, n_a, true, 0};
    bytes = archive_bytes(&large, 1, &n);
    bytes[14] ^= 1;
    bytes[archive_find(bytes, n, SIGN_CENTRAL, 0) + 16] ^= 1;
    file_put("b.npz", bytes, n);
    struct gad_array *array = open_ok("b.npz:a");
    const int64_t start[] = {0, 0}, some[] = {3, 5000}, last[] = {1, 5000}, at_last[] = {399, 0};
    int16_t block[15000];
    cr_assert(eq(int, array->provider->fill(array->provider_state, start, some, block), 0));
    struct gad_error error = {.message = "as it was"};
    array->provider->explain(array->provider_state, &error);
    cr_assert(eq(str, error.message, "as it was"));
    cr_assert(ne(int, array->provider->fill(array->provider_state, at_last, last, block), 0));
    array->provider->explain(array->provider_state, &error);
    unsigned long long at = 0;
    cr_assert(sscanf(error.message,
                     "b.npz: the CRC-32 is not the archive's: the member is damaged, before byte "
                     "%llu",
                     &at) == 1 &&
                  at == archive_find(bytes, n, SIGN_CENTRAL, 0),
              "%s", error.message);
    cr_assert(ne(int, array->provider->fill(array->provider_state, start, some, block), 0));
    gad_array_release(array);
    free(bytes);
    free(a_bytes);
}

Test(npz, in_place_only_stored_members_are_opened)
{
    put("s.npz", false, 0);
    cr_assert(eq(str, (char *)open_in_place_word("s.npz:a"), "ok"));
    free_bytes();
    put("d.npz", false, ZIP_FLAG_DESCRIPTOR);
    cr_assert(eq(str, (char *)open_in_place_word("d.npz:a"), "read-only"));
    free_bytes();
    put("z.npz", true, 0);
    cr_assert(eq(str, (char *)open_in_place_word("z.npz:a"), "read-only"));
    free_bytes();
}

Test(npz, what_is_written_in_place_gets_its_crc)
{
    put("s.npz", false, 0);
    struct gad_array *array = NULL;
    cr_assert(eq(int, format_open(NULL, "s.npz:f[1]", true, &array, &last_error), 0));
    cr_assert(pwrite(array->fd, "changed!", 8, (off_t)array->offset_bytes) == 8);
    cr_assert(eq(int, array->written(array, &last_error), 0));
    gad_array_release(array);
    cr_assert(eq(int, system("python3 -m zipfile -t s.npz > test.txt"), 0));
    cr_assert(eq(int, system("test \"$(cat test.txt)\" = 'Done testing'"), 0));
    free_bytes();
}

/* Lists ---------------------------------------------------------------------------------------- */

static char listed[1000];

static int note(void *userdata, const struct gad_listed *entry)
{
    size_t n = strlen(listed);
    (void)userdata;
    snprintf(listed + n, sizeof(listed) - n, "%d %s %s %d %d %s;", (int)entry->kind, entry->name,
             entry->type ? entry->type : "-", entry->is_served, entry->ndim,
             entry->filters ? entry->filters : "-");
    return strstr(listed, "stop") != NULL;
}

static const char *list_word(const char *spec)
{
    listed[0] = '\0';
    int n = descriptor_count(), r = format_list(spec, note, NULL, &last_error);
    cr_assert(eq(int, descriptor_count(), n));
    return error_word(r);
}

Test(npz, lists_what_is_in_it)
{
    size_t n;
    void *objects = npy_bytes("'|O'", false, "(3, 4)", 0, &n);
    put("z.npz", true, 0);
    const struct made_member members[] = {{"a.npy", a_bytes, n_a, true, 0},
                                          {"o.npy", objects, n, false, 0},
                                          {"d/", "", 0, false, 0},
                                          {"d/s.npy", s_bytes, n_s, false, 0},
                                          {"notes.txt", "words", 5, false, 0}};
    archive_put("l.npz", members, 5);
    cr_assert(eq(str, (char *)list_word("l.npz"), "ok"));
    cr_assert(
        eq(str, listed,
           "0 a int16 1 2 deflate;0 o |O: Python objects (pickles), which only Python can read 0 "
           "2 ;0 d/s float64 1 0 ;2 notes.txt no array 0 0 ;"));
    cr_assert(eq(str, (char *)list_word("l.npz:d"), "ok"));
    cr_assert(eq(str, listed, "0 d/s float64 1 0 ;"));
    cr_assert(eq(str, (char *)list_word("l.npz:a"), "ok"));
    cr_assert(eq(str, listed, "0 a int16 1 2 deflate;"));
    cr_assert(eq(str, (char *)list_word("l.npz:q"), "not-found"));
    file_put("empty.npz", "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    cr_assert(eq(str, (char *)list_word("empty.npz"), "ok"));
    cr_assert(eq(str, listed, ""));
    free(objects);
    free_bytes();
}
