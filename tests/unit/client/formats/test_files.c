/* npy and raw files as sources: what is read, and every kind of thing that is no source. */
#include "support.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

TestSuite(files, .init = folder_make, .fini = folder_remove);

#define NPY_2X3_I2 "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n"

Test(files, opens_an_npy_file)
{
    for (int major = 1; major <= 3; major++) {
        npy_put("a.npy", major, NPY_2X3_I2, 12);
        struct gad_array *array = open_ok("a.npy");
        cr_assert(eq(int, (int)array->access, ACCESS_FILE));
        cr_assert(eq(str, (char *)array->info.format, "npy"));
        cr_assert(eq(str, (char *)array->info.path, "a.npy"));
        cr_assert(eq(int, (int)array->info.dtype, GAD_INT16));
        cr_assert(eq(int, array->info.ndim, 2));
        cr_assert(eq(i64, array->info.strides[0], 6));
        cr_assert(eq(i64, array->info.strides[1], 2));
        cr_assert(eq(u64, array->offset_bytes, strlen(NPY_2X3_I2) + (major == 1 ? 10 : 12)));
        cr_assert(
            eq(int, fcntl(array->fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_APPEND), O_RDONLY));
        cr_assert(eq(int, fcntl(array->fd, F_GETFD), FD_CLOEXEC));
        cr_assert(not(array->is_writable));
        uint8_t *bytes = elements(array);
        for (int i = 0; i < 12; i++)
            cr_assert(eq(int, bytes[i], i));
        free(bytes);
        gad_array_release(array);
    }
}

Test(files, knows_fortran_order_and_the_other_byte_order)
{
    npy_put("a.npy", 1, "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3), }\n", 48);
    struct gad_array *array = open_ok("a.npy");
    cr_assert(array->info.is_swapped);
    cr_assert(eq(i64, array->info.strides[0], 8));
    cr_assert(eq(i64, array->info.strides[1], 16));
    gad_array_release(array);
}

Test(files, opens_arrays_without_elements_and_without_dimensions)
{
    npy_put("a.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0), }\n", 0);
    npy_put("b.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", 8);
    gad_array_release(open_ok("a.npy"));
    gad_array_release(open_ok("b.npy"));
}

Test(files, reports_a_file_that_is_too_short_with_both_numbers)
{
    char text[64];
    npy_put("a.npy", 1, NPY_2X3_I2, 11);
    cr_assert(eq(str, (char *)open_word("a.npy"), "short-read"));
    snprintf(text, sizeof(text), "%zu bytes", 10 + strlen(NPY_2X3_I2) + 12);
    cr_assert(eq(str, last_error.expected, text));
    snprintf(text, sizeof(text), "%zu bytes", 10 + strlen(NPY_2X3_I2) + 11);
    cr_assert(eq(str, last_error.found, text));
    cr_assert(eq(str, last_error.argument, "a.npy"));
    cr_assert(truncate("a.npy", 20) == 0);
    cr_assert(eq(str, (char *)open_word("a.npy"), "short-read"));
    cr_assert(truncate("a.npy", 0) == 0);
    cr_assert(eq(str, (char *)open_word("a.npy"), "bad-format"));
    file_put("a.raw", "0123456789", 10);
    cr_assert(eq(str, (char *)open_word("a.raw:u1:11"), "short-read"));
    cr_assert(eq(str, (char *)open_word("a.raw:u1:10:1"), "short-read"));
    cr_assert(eq(str, (char *)open_word("a.raw:u1:0:11"), "short-read"));
    cr_assert(eq(str, (char *)open_word("a.raw:u1:10"), "ok"));
    cr_assert(eq(str, (char *)open_word("a.raw:u1:0:10"), "ok"));
}

Test(files, refuses_shapes_and_offsets_beyond_63_bits)
{
    npy_put("a.npy", 1, "{'descr':'<f8','fortran_order':True,'shape':(4611686018427387904,2)}", 9);
    cr_assert(eq(str, (char *)open_word("a.npy"), "bad-shape"));
    file_put("a.raw", "0123456789", 10);
    cr_assert(eq(str, (char *)open_word("a.raw:f8:4611686018427387904x2"), "bad-shape"));
    cr_assert(eq(str, (char *)open_word("a.raw:u1:9223372036854775807:1"), "bad-extent"));
    cr_assert(eq(str, (char *)open_word("a.raw:u1:1:9223372036854775807"), "bad-extent"));
    cr_assert(eq(str, (char *)open_word("a.raw:u1:1:9223372036854775806"), "short-read"));
}

Test(files, opens_a_raw_file_at_its_offset)
{
    file_put("a.raw", "xx\1\2\3\4\5\6", 8);
    struct gad_array *array = open_ok("a.raw:>i2:3:2");
    cr_assert(array->info.is_swapped);
    cr_assert(eq(u64, array->offset_bytes, 2));
    char *bytes = elements(array);
    cr_assert(memcmp(bytes, "\1\2\3\4\5\6", 6) == 0);
    free(bytes);
    gad_array_release(array);
}

Test(files, opens_in_place_for_reading_and_writing)
{
    struct gad_array *array;
    npy_put("a.npy", 1, NPY_2X3_I2, 12);
    cr_assert(eq(int, format_open(NULL, "a.npy", true, &array, &last_error), 0));
    cr_assert(array->is_writable);
    cr_assert(eq(int, fcntl(array->fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR));
    cr_assert(array->commit == NULL);
    gad_array_release(array);
}

Test(files, names_what_is_missing)
{
    cr_assert(eq(str, (char *)open_word("no/such.npy"), "not-found"));
    cr_assert(strstr(last_error.message, "no/such.npy") != NULL);
    cr_assert(eq(str, (char *)open_word("such.raw:f4:1"), "not-found"));
    file_put("a.npy", "", 0);
    cr_assert(eq(str, (char *)open_word("a.npy/b.npy"), "not-found"));
    cr_assert(symlink("loop.npy", "loop.npy") == 0);
    cr_assert(eq(str, (char *)open_word("loop.npy"), "bad-argument"));
}

Test(files, names_what_is_no_regular_file)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s.npy"};
    cr_assert(mkdir("d.npy", 0755) == 0);
    cr_assert(mkfifo("p.npy", 0644) == 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    cr_assert(symlink("/dev/zero", "c.npy") == 0);
    static const char *const cases[][2] = {{"d.npy", "a directory"},
                                           {"p.npy", "a pipe"},
                                           {"s.npy", "a socket"},
                                           {"c.npy", "a character device"}};
    for (size_t i = 0; i < 4; i++) {
        char spec[32];
        cr_assert(eq(str, (char *)open_word(cases[i][0]), "bad-descriptor"));
        cr_assert(eq(str, last_error.found, (char *)cases[i][1]));
        cr_assert(eq(str, (char *)open_in_place_word(cases[i][0]), "bad-descriptor"));
        snprintf(spec, sizeof(spec), "%c.raw", cases[i][0][0]);
        cr_assert(rename(cases[i][0], spec) == 0);
        strcat(spec, ":u1:1");
        cr_assert(eq(str, (char *)open_word(spec), "bad-descriptor"));
    }
    close(fd);
}

Test(files, refuses_files_of_the_kernel)
{
    cr_assert(symlink("/proc/self/status", "a.raw") == 0);
    cr_assert(eq(str, (char *)open_word("a.raw:u1:1"), "bad-descriptor"));
    cr_assert(eq(str, last_error.found, "a file of /proc"));
    cr_assert(symlink("/sys/kernel/mm/transparent_hugepage/enabled", "b.raw") == 0);
    if (access("b.raw", R_OK) == 0)
        cr_assert(eq(str, (char *)open_word("b.raw:u1:1"), "bad-descriptor"));
}

Test(files, reports_what_the_user_may_not_read)
{
    npy_put("a.npy", 1, NPY_2X3_I2, 12);
    npy_put("b.npy", 1, NPY_2X3_I2, 12);
    cr_assert(chmod("a.npy", 0000) == 0 && chmod("b.npy", 0444) == 0);
    drop_root();
    cr_assert(eq(str, (char *)open_word("a.npy"), "permission-denied"));
    cr_assert(eq(str, (char *)open_word("b.npy"), "ok"));
    cr_assert(eq(str, (char *)open_in_place_word("b.npy"), "permission-denied"));
}

Test(files, takes_a_zip_for_what_it_is_not)
{
    file_put("a.npy", "PK\3\4..........................", 30);
    cr_assert(eq(str, (char *)open_word("a.npy"), "bad-format"));
}
