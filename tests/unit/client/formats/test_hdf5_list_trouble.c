/* What is in an HDF5 file that is in some trouble: links that lead nowhere or in circles, very many
 * of them, and damage. */
#include "listed.h"

#include <sys/stat.h>
#include <unistd.h>

TestSuite(hdf5_list_trouble, .init = folder_make, .fini = folder_remove);

static const hsize_t dims[2] = {4, 6}, chunk[2] = {2, 3};

/* ---- Links ---- */

static void link_soft(hid_t file, const char *target, const char *name)
{
    cr_assert(H5Lcreate_soft(target, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void link_hard(hid_t file, const char *target, const char *name)
{
    cr_assert(H5Lcreate_hard(file, target, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void link_external(hid_t file, const char *other, const char *target, const char *name)
{
    cr_assert(H5Lcreate_external(other, target, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

Test(hdf5_list_trouble, links_are_followed_or_said)
{
    hid_t other = h5_create("b.h5", 0);
    h5_put(other, "/g/d", H5T_STD_U8LE, 1, dims, NULL, 0);
    H5Fclose(other);
    cr_assert(mkfifo("pipe", 0600) == 0); /* opening it would wait for ever */
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "/g/d", H5T_IEEE_F64LE, 1, dims, NULL, 0);
    link_soft(file, "/g/d", "soft");
    link_soft(file, "/g", "soft_group");
    link_soft(file, "/nowhere", "broken");
    link_soft(file, "/self", "self");
    link_external(file, "b.h5", "/g/d", "there");
    link_external(file, "b.h5", "/g", "there_group");
    link_external(file, "no.h5", "/d", "no_file");
    link_external(file, "pipe", "/d", "pipe");
    link_external(file, ".", "/d", "folder");
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"),
                 "G /\n"
                 "O /broken a soft link to '/nowhere', which leads nowhere\n"
                 "O /folder a link to '/d' of '.', which leads nowhere\n"
                 "G /g\n"
                 "A /g/d float64 (4)\n"
                 "O /no_file a link to '/d' of 'no.h5', which leads nowhere\n"
                 "O /pipe a link to '/d' of 'pipe', which leads nowhere\n"
                 "O /self a soft link to '/self', which leads nowhere\n"
                 "A /soft float64 (4)\n"
                 "G /soft_group a soft link to '/g'\n"
                 "A /there uint8 (4)\n"
                 "G /there_group a link to '/g' of 'b.h5'\n"));
    cr_assert(eq(str, list("a.h5:/soft_group"), "G /soft_group\nA /soft_group/d float64 (4)\n"));
    cr_assert(eq(str, list("a.h5:/there_group"), "G /there_group\nA /there_group/d uint8 (4)\n"));
}

Test(hdf5_list_trouble, circles_and_groups_in_many_places_end)
{
    hid_t file = h5_create("a.h5", 0);
    make_group(file, "/a");
    make_group(file, "/a/b");
    link_hard(file, "/a", "/a/b/c");
    link_hard(file, "/", "/a/root");
    H5Fclose(file);
    cr_assert(eq(str, list("a.h5"),
                 "G /\nG /a\nG /a/b\nG /a/b/c the group '/a' again\n"
                 "G /a/root the group '/' again\n"));
    file = h5_create("b.h5", 0);
    char path[200] = "", one[204], two[204];
    for (int i = 0; i < 60; i++) { /* 2^60 paths */
        snprintf(one, sizeof(one), "%s/x", path);
        snprintf(two, sizeof(two), "%s/y", path);
        make_group(file, one);
        link_hard(file, one, two);
        snprintf(path, sizeof(path), "%.198s", one);
    }
    H5Fclose(file);
    list("b.h5");
    cr_assert(eq(u32, told.n, 1 + 2 * 60));
}

Test(hdf5_list_trouble, groups_lie_deep_and_then_too_deep)
{
    hid_t file = h5_create("a.h5", 0), group = H5Gopen2(file, "/", H5P_DEFAULT);
    for (int i = 0; i < 300; i++) {
        hid_t next = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        group = next;
    }
    H5Gclose(group);
    H5Fclose(file);
    char *text = list("a.h5"), *end = strstr(text, " a group that lies too deep");
    cr_assert(eq(u32, told.n, 257));
    cr_assert(end && strcmp(end, " a group that lies too deep to be looked into\n") == 0);
}

/* More than is read at a time. */
Test(hdf5_list_trouble, a_group_may_have_very_many_links)
{
    static char name[1024];
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    memset(name, 'n', 1000);
    told.attribute = "none";
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(name + 1000, 8, "%u", i);
        link_soft(file, "/x", name);
    }
    H5Fclose(file);
    list("a.h5");
    cr_assert(eq(u32, told.n, 10001));
}

/* ---- Damage ---- */

static char *read_file(const char *path, size_t *ret_n_bytes)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    cr_assert(f && fstat(fileno(f), &st) == 0);
    char *bytes = malloc((size_t)st.st_size);
    cr_assert(fread(bytes, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
    fclose(f);
    *ret_n_bytes = (size_t)st.st_size;
    return bytes;
}

static void make_damaged(const char *path, bool is_latest)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (is_latest)
        cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    const int one = 1;
    char name[16];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "/g%d/d", i % 10);
        if (i >= 10)
            snprintf(name, sizeof(name), "/d%d", i);
        h5_put(file, name, H5T_IEEE_F64LE, 2, dims, i % 2 ? chunk : NULL, 0);
    }
    hid_t dataset = H5Dopen2(file, "d20", H5P_DEFAULT);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        put_attribute(dataset, name, H5T_STD_I32LE, H5T_NATIVE_INT, 0, &one);
    }
    H5Dclose(dataset);
    H5Fclose(file);
    H5Pclose(fapl);
}

/* HDF5 looks at the marks of its structures; so each that it meets is a part that cannot be read.
 */
static unsigned spoil_marks(const char *path)
{
    static const char *const marks[] = {"SNOD", "TREE", "HEAP", "OHDR", "OCHK",
                                        "FRHP", "FHDB", "BTHD", "BTLF"};
    size_t n_bytes;
    unsigned n = 0, n_told = 0;
    char *bytes = read_file(path, &n_bytes);
    list(path);
    unsigned whole = told.n;
    for (size_t at = 0; at + 4 < n_bytes; at++) {
        bool is_mark = false;
        for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
            is_mark |= memcmp(bytes + at, marks[i], 4) == 0;
        if (!is_mark)
            continue;
        bytes[at] ^= 1;
        file_put("damaged.h5", bytes, n_bytes);
        bytes[at] ^= 1;
        const char *word = list_word("damaged.h5");
        cr_assert(strcmp(word, "ok") == 0 || strcmp(word, "bad-format") == 0, "at %zu: %s", at,
                  word);
        n++;
        n_told += strcmp(word, "ok") == 0 && told.n > whole / 2 && told.n <= whole + 1;
    }
    free(bytes);
    cr_assert(n > 20, "%u marks", n);
    return n_told;
}

Test(hdf5_list_trouble, what_is_sound_is_listed_whatever_is_damaged)
{
    make_damaged("old.h5", false);
    make_damaged("new.h5", true);
    cr_assert(spoil_marks("old.h5") > 20);
    cr_assert(spoil_marks("new.h5") > 20);
}

/* Texts of varying length and lists of scales lie in a heap, and so does a fill value. */
static void make_with_heap(const char *path)
{
    hid_t file = h5_create(path, 512), varying = text_type(H5T_VARIABLE, H5T_STR_NULLTERM);
    const char *texts[3] = {"a text", "", "another one, which is longer"}, *fill = "nothing";
    put_scale(file, "x", "x");
    h5_put(file, "d", H5T_IEEE_F32LE, 2, dims, NULL, 0);
    attach(file, "d", 2, (const char *[]){"x", "x"});
    hid_t dataset = H5Dopen2(file, "d", H5P_DEFAULT), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    put_attribute(dataset, "units", varying, varying, 0, texts);
    put_attribute(dataset, "texts", varying, varying, 3, texts);
    put_attribute(dataset, "DIMENSION_LABELS", varying, varying, 2, texts);
    H5Dclose(dataset);
    hid_t space = H5Screate(H5S_SCALAR);
    cr_assert(H5Pset_fill_value(dcpl, varying, &fill) >= 0);
    H5Dclose(H5Dcreate2(file, "words", varying, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Fclose(file);
}

static void list_changed(char *bytes, size_t n_bytes, size_t at, int mask)
{
    bytes[at] ^= (char)mask;
    file_put("b.h5", bytes, n_bytes);
    bytes[at] ^= (char)mask;
    list("b.h5");
    cr_assert(eq(u32, told.n, 4), "at %zu", at);
    cr_assert(eq(str, (char *)open_word("b.h5:/d"), "ok"), "at %zu", at);
    cr_assert(eq(str, (char *)open_word("b.h5:/words"), "bad-dtype"), "at %zu", at);
}

Test(hdf5_list_trouble, damaged_heaps_are_not_followed)
{
    static const int masks[] = {0x01, 0x80, 0xff};
    size_t n_bytes;
    make_with_heap("a.h5");
    cr_assert(eq(str, list("a.h5"),
                 "G /\nA /d float32 (4x6) x,x\nA /words a string of varying "
                 "length () unserved\nA /x float64 (4) x\n"));
    cr_assert(eq(str, value("a.h5:/d", "texts"), "'a text' '' 'another one, which is longer'"));
    char *bytes = read_file("a.h5", &n_bytes);
    char *heap = memmem(bytes, n_bytes, "GCOL", 4);
    cr_assert(heap != NULL);
    const uint64_t place = (uint64_t)(heap - bytes) - 512; /* behind the user block */
    unsigned n_places = 0;
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
        for (size_t i = 0; i < 256; i++)
            list_changed(bytes, n_bytes, (size_t)(heap - bytes) + i, masks[m]);
        for (size_t at = 4; at + 12 < n_bytes; at++) {
            if (memcmp(bytes + at, &place, sizeof(place)) != 0)
                continue;
            n_places++;
            for (size_t i = 0; i < 16; i++) /* its length, address and number */
                list_changed(bytes, n_bytes, at - 4 + i, masks[m]);
        }
    }
    free(bytes);
    cr_assert(n_places >= 3 * 6);
}

Test(hdf5_list_trouble, an_object_that_cannot_be_read_is_an_entry)
{
    size_t n_bytes;
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    h5_put(file, "/d", H5T_STD_U8LE, 1, dims, NULL, 0);
    h5_put(file, "/e", H5T_STD_U8LE, 1, dims, NULL, 0);
    H5Fclose(file);
    char *bytes = read_file("a.h5", &n_bytes);
    unsigned n = 0;
    for (size_t at = 100; at + 4 < n_bytes; at++) /* the root's header comes before */
        if (memcmp(bytes + at, "OHDR", 4) == 0 && n++ == 0)
            memcpy(bytes + at, "oops", 4);
    file_put("a.h5", bytes, n_bytes);
    free(bytes);
    cr_assert(n >= 2);
    char *text = list("a.h5");
    cr_assert(strstr(text, "O /d an object that HDF5 cannot read\n") ||
              strstr(text, "O /e an object that HDF5 cannot read\n"));
    cr_assert(eq(u32, told.n, 3));
}

Test(hdf5_list_trouble, files_that_end_early_or_are_none_are_refused)
{
    size_t n_bytes;
    make_damaged("a.h5", false);
    char *bytes = read_file("a.h5", &n_bytes);
    for (size_t n = 0; n < n_bytes; n += n_bytes / 20) {
        file_put("cut.h5", bytes, n);
        const char *word = list_word("cut.h5");
        cr_assert(strcmp(word, "short-read") == 0 || strcmp(word, "bad-format") == 0, "%zu: %s", n,
                  word);
    }
    free(bytes);
    file_put("text.h5", "hello", 5);
    cr_assert(eq(str, (char *)list_word("text.h5"), "bad-format"));
    cr_assert(mkdir("folder.h5", 0755) == 0 && mkfifo("pipe.h5", 0600) == 0);
    cr_assert(eq(str, (char *)list_word("folder.h5"), "bad-descriptor"));
    cr_assert(eq(str, (char *)list_word("pipe.h5"), "bad-descriptor"));
}
