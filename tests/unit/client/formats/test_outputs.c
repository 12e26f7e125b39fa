/* New npy and raw files: whole or not at all, and what the file system says against it. */
#include "support.h"

#include "client/formats/files/file_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

TestSuite(outputs, .init = folder_make, .fini = folder_remove);

static const int64_t shape[2] = {3, 4};

static void make_and_commit(const char *spec)
{
    struct gad_array *array = create_ok(spec, DTYPE_INT32, 2, shape);
    int32_t values[12];
    for (int i = 0; i < 12; i++)
        values[i] = i * i;
    write_elements(array, values);
    commit_ok(array);
    gad_array_release(array);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    cr_assert(lstat(path, &st) == 0);
    return st.st_mode & 07777;
}

Test(outputs, appear_with_the_commit)
{
    int n = descriptor_count();
    struct gad_array *array = create_ok("a.npy", DTYPE_FLOAT64, 2, shape);
    cr_assert(eq(int, folder_count(), 0));
    cr_assert(eq(u64, array->offset_bytes, 4096));
    cr_assert(array->is_writable);
    cr_assert(eq(int, fcntl(array->fd, F_GETFL) & (O_ACCMODE | O_APPEND), O_RDWR));
    commit_ok(array);
    cr_assert(eq(int, folder_count(), 1));
    gad_array_release(array);
    cr_assert(eq(int, descriptor_count(), n));
    array = open_ok("a.npy");
    cr_assert(eq(int, (int)array->info.dtype, GAD_FLOAT64));
    cr_assert(eq(u64, array->offset_bytes, 4096));
    gad_array_release(array);
}

Test(outputs, leave_nothing_without_a_commit)
{
    int n = descriptor_count();
    gad_array_release(create_ok("a.npy", DTYPE_FLOAT64, 2, shape));
    gad_array_release(create_ok("a.raw", DTYPE_FLOAT64, 2, shape));
    cr_assert(eq(int, folder_count(), 0));
    cr_assert(eq(int, descriptor_count(), n));
}

Test(outputs, hold_what_was_written)
{
    make_and_commit("a.npy");
    struct gad_array *array = open_ok("a.npy");
    int32_t *values = elements(array);
    for (int i = 0; i < 12; i++)
        cr_assert(eq(i32, values[i], i * i));
    free(values);
    gad_array_release(array);
}

Test(outputs, are_made_in_fortran_order_too)
{
    struct gad_array *array;
    cr_assert(eq(
        int, format_create(NULL, "a.npy", false, DTYPE_INT16, 2, shape, true, NULL, &array, NULL),
        0));
    cr_assert(eq(i64, array->info.strides[0], 2));
    cr_assert(eq(i64, array->info.strides[1], 6));
    commit_ok(array);
    gad_array_release(array);
    array = open_ok("a.npy");
    cr_assert(eq(i64, array->info.strides[1], 6));
    gad_array_release(array);
    cr_assert(eq(
        int, format_create(NULL, "a.raw", false, DTYPE_INT16, 2, shape, true, NULL, &array, NULL),
        0));
    cr_assert(eq(i64, array->info.strides[0], 8));
    gad_array_release(array);
}

Test(outputs, without_elements_or_dimensions_are_whole_files)
{
    const int64_t empty[2] = {0, 5};
    struct gad_array *array = create_ok("a.npy", DTYPE_BOOL, 2, empty);
    commit_ok(array);
    gad_array_release(array);
    array = create_ok("b.npy", DTYPE_BOOL, 0, NULL);
    commit_ok(array);
    gad_array_release(array);
    array = create_ok("c.raw", DTYPE_BOOL, 2, empty);
    commit_ok(array);
    gad_array_release(array);
    gad_array_release(open_ok("a.npy"));
    gad_array_release(open_ok("b.npy"));
    gad_array_release(open_ok("c.raw:b1:0x5"));
}

Test(outputs, get_the_mode_that_the_umask_leaves)
{
    umask(027);
    make_and_commit("a.npy");
    cr_assert(eq(int, (int)mode_of("a.npy"), 0640));
}

Test(outputs, keep_mode_owner_and_acl_of_what_they_replace)
{
    /* version 2; user::rw-, user:12345:r--, group::---, mask::r--, other::--- */
    static const uint8_t acl[] = {2,    0,    0,    0,    1,    0,    6,    0,    0xff, 0xff, 0xff,
                                  0xff, 2,    0,    4,    0,    0x39, 0x30, 0,    0,    4,    0,
                                  0,    0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,    4,    0,    0xff,
                                  0xff, 0xff, 0xff, 0x20, 0,    0,    0,    0xff, 0xff, 0xff, 0xff};
    uint8_t kept[64];
    struct stat st;
    file_put("a.npy", "old", 3);
    cr_assert(chmod("a.npy", 0604) == 0);
    if (geteuid() == 0)
        cr_assert(chown("a.npy", 1234, 5678) == 0);
    make_and_commit("a.npy");
    cr_assert(stat("a.npy", &st) == 0);
    cr_assert(eq(int, (int)(st.st_mode & 07777), 0604));
    if (geteuid() == 0)
        cr_assert(st.st_uid == 1234 && st.st_gid == 5678);
    if (setxattr("a.npy", "system.posix_acl_access", acl, sizeof(acl), 0) < 0)
        return;
    make_and_commit("a.npy");
    cr_assert(eq(int, (int)getxattr("a.npy", "system.posix_acl_access", kept, sizeof(kept)),
                 (int)sizeof(acl)));
    cr_assert(memcmp(acl, kept, sizeof(acl)) == 0);
    cr_assert(eq(int, folder_count(), 1));
}

Test(outputs, leave_links_in_their_place)
{
    cr_assert(mkdir("d", 0755) == 0);
    cr_assert(symlink("d/real.npy", "one.npy") == 0);
    cr_assert(symlink("one.npy", "two.npy") == 0);
    make_and_commit("two.npy"); /* to nothing */
    struct stat st;
    cr_assert(lstat("two.npy", &st) == 0);
    cr_assert(eq(int, (int)(st.st_mode & S_IFMT), S_IFLNK));
    gad_array_release(open_ok("d/real.npy"));
    file_put("d/real.npy", "old", 3);
    make_and_commit("two.npy"); /* to a file */
    gad_array_release(open_ok("d/real.npy"));
    cr_assert(eq(int, folder_count(), 3));
}

Test(outputs, replace_even_what_is_open)
{
    make_and_commit("a.npy");
    struct gad_array *source = open_ok("a.npy");
    make_and_commit("a.npy");
    int32_t *values = elements(source);
    cr_assert(eq(i32, values[3], 9));
    free(values);
    gad_array_release(source);
}

Test(outputs, that_appeared_meanwhile_are_replaced)
{
    struct gad_array *array = create_ok("a.npy", DTYPE_INT32, 2, shape);
    file_put("a.npy", "other", 5);
    commit_ok(array);
    gad_array_release(array);
    gad_array_release(open_ok("a.npy"));
    cr_assert(eq(int, folder_count(), 1));
}

Test(outputs, cannot_be_directories_devices_or_pipes)
{
    cr_assert(mkdir("d.npy", 0755) == 0 && mkfifo("p.npy", 0644) == 0);
    cr_assert(symlink("/dev/null", "n.npy") == 0);
    cr_assert(eq(str, (char *)create_word("d.npy", true, DTYPE_BOOL, 2, shape), "bad-descriptor"));
    cr_assert(eq(str, (char *)create_word("p.npy", true, DTYPE_BOOL, 2, shape), "bad-descriptor"));
    cr_assert(eq(str, (char *)create_word("n.npy", true, DTYPE_BOOL, 2, shape), "bad-descriptor"));
    struct gad_array *array = create_ok("late.npy", DTYPE_BOOL, 2, shape);
    cr_assert(mkdir("late.npy", 0755) == 0);
    cr_assert(eq(int, array->commit(array, &last_error), GAD_BAD_DESCRIPTOR));
    gad_array_release(array);
    cr_assert(eq(int, folder_count(), 4));
}

Test(outputs, need_a_folder_that_is_there)
{
    cr_assert(eq(str, (char *)create_word("no/a.npy", true, DTYPE_BOOL, 2, shape), "not-found"));
    file_put("f", "", 0);
    cr_assert(eq(str, (char *)create_word("f/a.npy", true, DTYPE_BOOL, 2, shape), "not-found"));
    cr_assert(symlink("b.npy", "a.npy") == 0 && symlink("a.npy", "b.npy") == 0);
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_BOOL, 2, shape), "bad-argument"));
}

Test(outputs, respect_what_may_not_be_written)
{
    file_put("a.npy", "old", 3);
    cr_assert(mkdir("sticky", 0755) == 0 && chmod("sticky", 01777) == 0);
    file_put("sticky/a.npy", "old", 3);
    cr_assert(chmod("a.npy", 0444) == 0 && chmod("sticky/a.npy", 0666) == 0);
    bool was_root = geteuid() == 0;
    drop_root();
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_BOOL, 2, shape), "read-only"));
    if (was_root) {
        cr_assert(
            eq(str, (char *)create_word("n.npy", true, DTYPE_BOOL, 2, shape), "permission-denied"));
        cr_assert(eq(str, (char *)create_word("sticky/a.npy", true, DTYPE_BOOL, 2, shape),
                     "permission-denied"));
    }
}

Test(outputs, refuse_shapes_beyond_63_bits)
{
    const int64_t big[2] = {INT64_MAX, 2}, negative[1] = {-2}, edge[1] = {INT64_MAX};
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_BOOL, 2, big), "bad-shape"));
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_BOOL, 1, negative), "bad-shape"));
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_BOOL, 33, big), "bad-shape"));
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_BOOL, 1, edge), "bad-extent"));
    cr_assert(eq(str, (char *)create_word("a.raw", true, DTYPE_BOOL, 1, edge), "no-space"));
}

Test(outputs, tell_when_the_disk_cannot_hold_them)
{
    const int64_t huge[1] = {INT64_C(1) << 50};
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_FLOAT64, 1, huge), "no-space"));
    cr_assert(eq(str, last_error.expected, "9007199254745088 bytes"));
    cr_assert(last_error.found[0] != '\0');
    cr_assert(eq(int, folder_count(), 0));
}

static unsigned n_fallocate; /* calls so far */

/* Instead of libc's. */
int fallocate(int fd, int mode, off_t offset, off_t n_bytes)
{
    n_fallocate++;
    return (int)syscall(SYS_fallocate, fd, mode, offset, n_bytes);
}

static int reserve(int fd, uint64_t n_bytes)
{
    bool is_reserved;
    return file_reserve(fd, 0, n_bytes, "a.npy", "a", &is_reserved, &last_error);
}

Test(outputs, take_nothing_of_a_disk_that_is_too_small)
{
    int fd = open("f", O_RDWR | O_CREAT, 0600);
    struct statvfs fs;
    cr_assert(fstatvfs(fd, &fs) == 0);
    uint64_t n_bytes = (uint64_t)fs.f_bfree * fs.f_frsize + (UINT64_C(1) << 30);
    cr_assert(eq(int, reserve(fd, n_bytes), GAD_NO_SPACE));
    cr_assert(eq(u32, n_fallocate, 0));
    cr_assert(eq(int, reserve(fd, 10000), 0));
    cr_assert(eq(u32, n_fallocate, 1));
    close(fd);
}

Test(outputs, have_what_was_reserved_before_on_a_full_disk)
{
    mount_small_tmpfs("t");
    int fd = open("t/f", O_RDWR | O_CREAT, 0600);
    cr_assert(eq(int, reserve(fd, 900000), 0));
    cr_assert(eq(int, reserve(fd, 900000), 0));
    cr_assert(eq(int, reserve(fd, 1040000), 0));
    cr_assert(eq(int, reserve(fd, 1100000), GAD_NO_SPACE));
    close(fd);
    unmount("t");
}

Test(outputs, respect_the_limit_on_file_sizes)
{
    struct rlimit limit = {10000, 10000};
    const int64_t n[1] = {10000};
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    cr_assert(eq(str, (char *)create_word("a.npy", true, DTYPE_INT8, 1, n), "no-space"));
    cr_assert(eq(str, (char *)create_word("a.raw", true, DTYPE_INT8, 1, n), "ok"));
}

Test(outputs, fit_a_small_tmpfs_or_not)
{
    const int64_t fits[1] = {500000}, does_not[1] = {2000000};
    mount_small_tmpfs("t");
    cr_assert(eq(str, (char *)create_word("t/a.npy", true, DTYPE_INT8, 1, does_not), "no-space"));
    cr_assert(eq(str, last_error.expected, "2004096 bytes"));
    cr_assert(strstr(last_error.found, " bytes free") != NULL, "%s", last_error.found);
    cr_assert(eq(str, (char *)create_word("t/a.npy", true, DTYPE_INT8, 1, fits), "ok"));
    make_and_commit("t/a.npy");
    gad_array_release(open_ok("t/a.npy"));
    unmount("t");
}

Test(outputs, may_promise_dtype_and_shape_of_a_raw_file)
{
    cr_assert(eq(str, (char *)create_word("a.raw:f4:3x4", true, DTYPE_FLOAT32, 2, shape), "ok"));
    cr_assert(
        eq(str, (char *)create_word("a.raw:f4:3x4", true, DTYPE_FLOAT64, 2, shape), "bad-dtype"));
    cr_assert(
        eq(str, (char *)create_word("a.raw:>f4:3x4", true, DTYPE_FLOAT32, 2, shape), "bad-dtype"));
    cr_assert(
        eq(str, (char *)create_word("a.raw:f4:4x3", true, DTYPE_FLOAT32, 2, shape), "bad-shape"));
    cr_assert(eq(str, last_error.expected, "(4, 3)"));
    cr_assert(eq(str, last_error.found, "(3, 4)"));
}

/* The library's calls come here: a file system without files that have no name. */
static bool has_names_alone;

int openat(int dir_fd, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (has_names_alone && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, dir_fd, path, flags, mode);
}

Test(outputs, with_a_temporary_name_leave_none)
{
    struct file_output *output;
    has_names_alone = true;
    cr_assert(eq(int, file_output_new("a.h5", "x", &output, &last_error), 0));
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(access(file_output_path(output), R_OK) == 0);
    file_output_free(output);
    cr_assert(eq(int, folder_count(), 0));

    cr_assert(eq(int, file_output_new("a.h5", "x", &output, &last_error), 0));
    cr_assert(eq(int, file_output_commit(output, true, "x", &last_error), 0));
    cr_assert(access("a.h5", R_OK) == 0 && access(file_output_path(output), R_OK) == 0);
    file_output_free(output);
    cr_assert(eq(int, folder_count(), 1));

    cr_assert(eq(int, file_output_new("a.h5", "x", &output, &last_error), 0));
    cr_assert(eq(int, file_output_commit(output, true, "x", &last_error), GAD_EXISTS));
    cr_assert(eq(int, file_output_commit(output, false, "x", &last_error), 0));
    file_output_free(output);
    cr_assert(eq(int, folder_count(), 1));
}

Test(outputs, take_names_as_long_as_there_are)
{
    char name[256];
    memset(name, 'a', 255);
    memcpy(name + 251, ".npy", 5);
    make_and_commit(name);
    make_and_commit(name);
    cr_assert(eq(int, folder_count(), 1));
}
