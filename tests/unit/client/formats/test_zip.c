/* Archives that say what is not so. Each is a good one with some bytes changed, and refused with a
 * status; none is read past its end. */
#include "archives.h"

#include <fcntl.h>
#include <unistd.h>

TestSuite(zip, .init = folder_make, .fini = folder_remove);

enum from { IN_LOCAL, IN_SECOND_LOCAL, IN_CENTRAL, IN_SECOND_CENTRAL, IN_END };

static size_t base(const uint8_t *bytes, size_t n_bytes, enum from from)
{
    static const uint32_t signs[] = {SIGN_LOCAL, SIGN_LOCAL, SIGN_CENTRAL, SIGN_CENTRAL, SIGN_END};
    return archive_find(bytes, n_bytes, signs[from],
                        from == IN_SECOND_LOCAL || from == IN_SECOND_CENTRAL);
}

static uint8_t *two(bool is_deflated, size_t *ret_n_bytes)
{
    size_t n;
    void *data = npy_bytes("'<i2'", false, "(40, 50)", 4000, &n);
    const struct made_member members[] = {{"a.npy", data, n, is_deflated, 0},
                                          {"b.npy", data, n, is_deflated, 0}};
    uint8_t *bytes = archive_bytes(members, 2, ret_n_bytes);
    free(data);
    return bytes;
}

struct change {
    const char *what;
    bool is_deflated;
    enum from from;
    size_t at, n;
    const char *bytes;
    const char *word;  /* of opening a */
    const char *other; /* of opening b */
};

static const struct change changes[] = {
    {"nothing", false, IN_END, 0, 0, "", "ok", "ok"},
    {"nothing", true, IN_END, 0, 0, "", "ok", "ok"},
    {"no end record", false, IN_END, 0, 1, "Q", "bad-format", "bad-format"},
    {"a second volume", false, IN_END, 4, 1, "\1", "bad-format", "bad-format"},
    {"fewer members than there are", false, IN_END, 8, 3, "\1\0\1", "bad-format", "bad-format"},
    {"more members than there are", false, IN_END, 8, 3, "\3\0\3", "bad-format", "bad-format"},
    {"members without end", false, IN_END, 8, 4, "\xff\xff\xff\xff", "bad-format", "bad-format"},
    {"a directory beyond the file", false, IN_END, 12, 4, "\xff\xff\xff\x7f", "bad-format",
     "bad-format"},
    {"a directory behind itself", false, IN_END, 16, 4, "\xff\xff\xff\x7f", "bad-format",
     "bad-format"},
    {"Zip64 numbers that are missing", false, IN_END, 16, 4, "\xff\xff\xff\xff", "bad-format",
     "bad-format"},
    {"a comment beyond the file", false, IN_END, 20, 2, "\1\0", "bad-format", "bad-format"},
    {"a name beyond the directory", false, IN_CENTRAL, 28, 2, "\xff\xff", "bad-format",
     "bad-format"},
    {"no name", false, IN_CENTRAL, 28, 2, "\0\0", "bad-format", "bad-format"},
    {"a NUL in a name", false, IN_CENTRAL, 46, 1, "\0", "bad-format", "bad-format"},
    {"another disk", false, IN_CENTRAL, 34, 2, "\1\0", "bad-format", "bad-format"},
    {"a Zip64 size that is missing", false, IN_CENTRAL, 24, 4, "\xff\xff\xff\xff", "bad-format",
     "bad-format"},
    {"a member behind the directory", false, IN_CENTRAL, 42, 4, "\xff\xff\xff\x7f", "bad-format",
     "bad-format"},
    {"two members in one place", false, IN_SECOND_CENTRAL, 42, 4, "\0\0\0\0", "bad-format",
     "bad-format"},
    {"two members of one name", false, IN_SECOND_CENTRAL, 46, 1, "a", "bad-format", "not-found"},
    {"a size that reaches the next one", false, IN_CENTRAL, 20, 4, "\xff\xff\0\0", "bad-format",
     "bad-format"},
    {"no local header", false, IN_LOCAL, 0, 1, "Q", "bad-format", "ok"},
    {"another name", false, IN_LOCAL, 30, 1, "c", "bad-format", "ok"},
    {"another size", false, IN_LOCAL, 22, 1, "\0", "bad-format", "ok"},
    {"another CRC", false, IN_LOCAL, 14, 1, "\0", "bad-format", "ok"},
    {"an extra field over the data", false, IN_LOCAL, 28, 2, "\xff\x7f", "bad-format", "ok"},
    {"a larger size than is stored", false, IN_CENTRAL, 24, 3, "\xff\xff\xff", "bad-format", "ok"},
    {"a size that no deflated data have", true, IN_CENTRAL, 24, 4, "\xff\xff\xff\x7f", "bad-format",
     "ok"},
    {"encrypted", false, IN_CENTRAL, 8, 1, "\1", "bad-format", "ok"},
    {"masked", false, IN_CENTRAL, 9, 1, "\x20", "bad-format", "ok"},
    {"bzip2", false, IN_CENTRAL, 10, 1, "\x0c", "bad-format", "ok"},
    {"lzma", true, IN_CENTRAL, 10, 1, "\x0e", "bad-format", "ok"},
    {"stored, it says", true, IN_CENTRAL, 10, 1, "\0", "bad-format", "ok"},
    {"deflated, it says", false, IN_CENTRAL, 10, 1, "\x08", "bad-format", "ok"},
    {"other data than deflated", true, IN_LOCAL, 35, 4, "\xff\xff\xff\xff", "bad-format", "ok"},
};

Test(zip, refuses_what_is_not_so)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const struct change *change = &changes[i];
        size_t n;
        uint8_t *bytes = two(change->is_deflated, &n);
        memcpy(bytes + base(bytes, n, change->from) + change->at, change->bytes, change->n);
        file_put("x.npz", bytes, n);
        cr_assert(eq(str, (char *)open_word("x.npz:a"), (char *)change->word), "%s: %s",
                  change->what, last_error.message);
        cr_assert(eq(str, (char *)open_word("x.npz:b"), (char *)change->other), "%s: %s",
                  change->what, last_error.message);
        free(bytes);
    }
}

Test(zip, refuses_what_is_cut_anywhere)
{
    for (int is_deflated = 0; is_deflated < 2; is_deflated++) {
        size_t n;
        uint8_t *bytes = two(is_deflated, &n);
        file_put("x.npz", bytes, n);
        for (size_t end = n - 1; end > 0; end -= end < 200 || end + 300 > n ? 1 : 97) {
            cr_assert(truncate("x.npz", (off_t)end) == 0);
            cr_assert(ne(str, (char *)open_word("x.npz:a"), "ok"));
        }
        free(bytes);
    }
}

Test(zip, names_the_method_that_it_has_not)
{
    size_t n;
    uint8_t *bytes = two(true, &n);
    bytes[archive_find(bytes, n, SIGN_CENTRAL, 0) + 10] = 14;
    file_put("x.npz", bytes, n);
    cr_assert(eq(str, (char *)open_word("x.npz:a"), "bad-format"));
    cr_assert(strstr(last_error.message, "lzma") != NULL);
    free(bytes);
}

static void set_byte(int fd, size_t at, uint8_t value)
{
    cr_assert(pwrite(fd, &value, 1, (off_t)at) == 1);
}

/* Every byte of headers and directory set to some other values: refused or read, never more. */
Test(zip, survives_any_byte)
{
    size_t n;
    uint8_t *bytes = two(true, &n);
    size_t directory = archive_find(bytes, n, SIGN_CENTRAL, 0);
    file_put("x.npz", bytes, n);
    int fd = open("x.npz", O_WRONLY | O_CLOEXEC);
    for (size_t at = 0; at < n; at += at == 80 ? directory - 80 : 1) {
        static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
        for (size_t i = 0; i < sizeof(values); i++) {
            set_byte(fd, at, values[i]);
            (void)open_word("x.npz:a");
        }
        set_byte(fd, at, bytes[at]);
    }
    close(fd);
    cr_assert(eq(str, (char *)open_word("x.npz:a"), "ok"));
    free(bytes);
}

Test(zip, a_comment_is_no_part_of_the_archive)
{
    size_t n;
    uint8_t *bytes = two(false, &n);
    bytes[archive_find(bytes, n, SIGN_END, 0) + 20] = 5;
    bytes = realloc(bytes, n + 5);
    memcpy(bytes + n, "hello", 5);
    file_put("x.npz", bytes, n + 5);
    cr_assert(eq(str, (char *)open_word("x.npz:a"), "ok"));
    free(bytes);
}

/* Numbers beyond 32 and 16 bits: what is written is read again, by Python too. */
Test(zip, has_room_for_5_gib)
{
    const uint64_t n_data = UINT64_C(5) << 30;
    size_t n_header;
    uint8_t *header = npy_bytes("'|u1'", false, "(5368709120,)", 0, &n_header);
    struct zip_bytes local = {.bytes = NULL}, directory = {.bytes = NULL};
    uint64_t at = 0;
    int fd = open("x.npz", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < 2; i++) {
        struct zip_record record =
            zip_record_stored(i ? "y.npy" : "x.npy", 7, n_header + n_data, at);
        local.n_bytes = 0;
        zip_append_local(&local, &record, true);
        cr_assert(pwrite(fd, local.bytes, local.n_bytes, (off_t)at) == (ssize_t)local.n_bytes);
        at += local.n_bytes;
        cr_assert(eq(u64, at % ZIP_ALIGNMENT, 0));
        cr_assert(pwrite(fd, header, n_header, (off_t)at) == (ssize_t)n_header);
        at += n_header + n_data;
        zip_append_central(&directory, &record, NULL);
    }
    zip_append_end(&directory, 2, directory.n_bytes, at, (const uint8_t *)"hello", 5);
    cr_assert(pwrite(fd, directory.bytes, directory.n_bytes, (off_t)at) ==
              (ssize_t)directory.n_bytes);
    close(fd);
    struct gad_array *array = open_ok("x.npz:y[-3:]");
    cr_assert(eq(u64, array->offset_bytes, at - 3));
    gad_array_release(array);
    cr_assert(eq(int, system("python3 -m zipfile -l x.npz | grep -c 53687091 > n.txt"), 0));
    cr_assert(eq(int, system("test \"$(cat n.txt)\" = 2"), 0));
    zip_bytes_deinit(&local);
    zip_bytes_deinit(&directory);
    free(header);
}

Test(zip, has_room_for_66000_members)
{
    enum { N = 66000 };
    struct made_member *members = calloc(N, sizeof(*members));
    char(*names)[16] = calloc(N, sizeof(*names));
    size_t n;
    void *data = npy_bytes("'|i1'", false, "(3,)", 3, &n);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "m%d.npy", i);
        members[i] = (struct made_member){names[i], data, n, false, 0};
    }
    archive_put("x.npz", members, N);
    cr_assert(eq(str, (char *)open_word("x.npz:m65999"), "ok"));
    cr_assert(eq(str, (char *)open_word("x.npz:m66000"), "not-found"));
    cr_assert(eq(int, system("test $(python3 -m zipfile -l x.npz | wc -l) = 66001"), 0));
    free(members);
    free(names);
    free(data);
}
