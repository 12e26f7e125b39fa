/* Arrays over descriptors that the caller has open, read and written by the daemon itself, and by
 * the library where the daemon does not read the file system.
 */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include <byteswap.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>

TestSuite(from_file, .init = set_up, .fini = tear_down, .timeout = 60);

enum { N = 100000, HEAD = 24 };

/* HEAD bytes, then N float64: 0, 1, 2, ... Open for both. */
static int make_file(const char *path)
{
    double *data = malloc(N * sizeof(double));
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(ge(int, fd, 0));
    for (int i = 0; i < N; i++)
        data[i] = i;
    cr_assert(eq(int, (int)pwrite(fd, data, N * sizeof(double), HEAD), (int)(N * sizeof(double))));
    free(data);
    return fd;
}

static double element(int fd, int i)
{
    double value = -1;
    cr_assert(eq(int, (int)pread(fd, &value, sizeof(value), HEAD + i * (off_t)sizeof(value)), 8));
    return value;
}

static struct gad_array *over(int fd, int64_t first, int64_t n, int64_t step, bool is_writable)
{
    struct gad_array *array;
    struct gad_error error = {0};
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &n, .strides = &step};
    cr_assert(zero(int, (int)gad_array_from_file(client, fd, &layout, (uint64_t)(HEAD + 8 * first),
                                                 is_writable, &array, &error)),
              "%s", error.message);
    return array;
}

static void read_and_write(int fd)
{
    struct gad_array *back = over(fd, N - 1, N / 2, -16, false);
    double *r = malloc(N / 2 * sizeof(double));
    int64_t half = N / 2, rows[] = {100, N / 2}, repeat[] = {0, 8}, windows[] = {8, 8},
            zeros[2] = {0};
    struct gad_array *heap = wrap(r, 1, &half, NULL);
    run_well("a + 0.25", back, heap, NULL);
    for (int i = 0; i < N / 2; i++)
        cr_assert(eq(dbl, r[i], N - 1 - 2 * i + 0.25));
    const int64_t *strides[] = {repeat, windows, zeros};
    double sums[] = {100.0 * (N / 2) * (N / 2 - 1) / 2,
                     100.0 * (N / 2) * (N / 2 - 1) / 2 + N / 2 * 4950.0, 100.0 * (N / 2) * 3};
    for (size_t i = 0; i < ARRAY_LENGTH(strides); i++) {
        struct gad_layout layout = {
            .dtype = GAD_FLOAT64, .ndim = 2, .shape = rows, .strides = strides[i]};
        struct gad_array *a;
        uint64_t offset = i == 2 ? HEAD + 3 * sizeof(double) : HEAD;
        cr_assert(
            zero(int, (int)gad_array_from_file(client, fd, &layout, offset, false, &a, NULL)));
        cr_assert(eq(dbl, ask("sum(a)", a), sums[i]), "case %zu", i);
        gad_array_release(a);
    }
    struct gad_array *odd = over(fd, N - 1, N / 2, -16, true);
    run_well("a * 2", heap, odd, NULL);
    cr_assert(eq(dbl, element(fd, N - 1), 2 * (N - 1 + 0.25)));
    cr_assert(eq(dbl, element(fd, 1), 2 * 1.25));
    cr_assert(eq(dbl, element(fd, N - 2), N - 2), "what lies between stays");
    gad_array_release(back);
    gad_array_release(heap);
    gad_array_release(odd);
    free(r);
}

Test(from_file, reads_and_writes_any_strides_in_place)
{
    int fd = make_file(path_in("a.bin"));
    struct gad_array *a = over(fd, 0, N, 8, true);
    const struct gad_array_info *info = gad_array_info(a);
    cr_assert(eq(str, (char *)info->format, (char *)"file"));
    cr_assert(eq(str, (char *)info->access, (char *)"file"));
    cr_assert(zero(ptr, (void *)info->path));
    cr_assert(zero(ptr, gad_array_data(a)));
    read_and_write(fd);
    run_well("a - mean(a)", a, a, NULL);
    cr_assert(lt(dbl, element(fd, 0), 0), "in place");
    gad_array_release(a);
    close(fd);
}

Test(from_file, takes_memory_files)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    double data[1000];
    for (int i = 0; i < 1000; i++)
        data[i] = i;
    cr_assert(eq(int, (int)pwrite(fd, data, sizeof(data), HEAD), (int)sizeof(data)));
    struct gad_array *a = over(fd, 0, 1000, 8, true);
    run_well("a * 2", a, a, NULL);
    cr_assert(eq(dbl, element(fd, 999), 1998));
    gad_array_release(a);
    close(fd);
}

Test(from_file, keeps_a_descriptor_of_its_own)
{
    int fd = make_file(path_in("a.bin"));
    struct gad_array *a = over(fd, 0, N, 8, false);
    close(fd);
    cr_assert(eq(dbl, ask("max(a)", a), N - 1));
    gad_array_release(a);
}

Test(from_file, sees_what_a_mapping_of_the_file_holds)
{
    int fd = make_file(path_in("a.bin"));
    char *map = mmap(NULL, HEAD + 8 * N, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(ne(ptr, map, MAP_FAILED));
    struct gad_array *a = over(fd, 0, N, 8, true);
    double value = 1e9;
    memcpy(map + HEAD + 8 * 17, &value, sizeof(value));
    cr_assert(eq(dbl, ask("max(a)", a), 1e9));
    run_well("a * 0 + 4", a, a, NULL);
    memcpy(&value, map + HEAD + 8 * 17, sizeof(value));
    cr_assert(eq(dbl, value, 4));
    munmap(map, HEAD + 8 * N);
    gad_array_release(a);
    close(fd);
}

Test(from_file, honours_the_other_byte_order)
{
    int fd = make_file(path_in("a.bin"));
    struct gad_array *a = over(fd, 0, N, 8, false), *r;
    int64_t n = N;
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .is_swapped = true, .ndim = 1, .shape = &n};
    int out = open(path_in("r.bin"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(zero(int, ftruncate(out, 8 * N)));
    cr_assert(zero(int, (int)gad_array_from_file(client, out, &layout, 0, true, &r, NULL)));
    run_well("a + 1", a, r, NULL);
    uint64_t bits;
    double value;
    cr_assert(eq(int, (int)pread(out, &bits, 8, 8 * 41), 8));
    bits = bswap_64(bits);
    memcpy(&value, &bits, sizeof(value));
    cr_assert(eq(dbl, value, 42));
    cr_assert(eq(dbl, ask("max(a)", r), N), "and as a source");
    gad_array_release(a);
    gad_array_release(r);
    close(fd);
    close(out);
}

static enum gad_status refused(int fd, const struct gad_layout *layout, uint64_t offset,
                               bool is_writable)
{
    struct gad_array *array = NULL;
    struct gad_error error = {0};
    enum gad_status status =
        gad_array_from_file(client, fd, layout, offset, is_writable, &array, &error);
    cr_assert(zero(ptr, array));
    cr_assert(eq(int, (int)error.status, (int)status));
    return status;
}

Test(from_file, refuses_descriptors_that_will_not_do)
{
    int64_t n = 10, back = -8, none = 0, far = INT64_MAX;
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &n};
    int fd = make_file(path_in("a.bin")), pipes[2];
    int read_only = open(path_in("a.bin"), O_RDONLY | O_CLOEXEC);
    int write_only = open(path_in("a.bin"), O_WRONLY | O_CLOEXEC);
    int append = open(path_in("a.bin"), O_RDWR | O_APPEND | O_CLOEXEC);
    int direct = open(path_in("a.bin"), O_RDONLY | O_DIRECT | O_CLOEXEC);
    int path_only = open(path_in("a.bin"), O_PATH | O_CLOEXEC);
    int directory = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    cr_assert(zero(int, pipe(pipes)));
    cr_assert(eq(int, (int)refused(-1, &layout, 0, false), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(pipes[0], &layout, 0, false), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(directory, &layout, 0, false), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(proc, &layout, 0, false), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(path_only, &layout, 0, false), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(write_only, &layout, 0, false), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(read_only, &layout, 0, true), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(append, &layout, 0, true), GAD_BAD_DESCRIPTOR));
    if (direct >= 0) /* not every file system has it */
        cr_assert(eq(int, (int)refused(direct, &layout, 0, false), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, (int)refused(fd, &layout, HEAD + 8 * N - 79, false), GAD_SHORT_READ));
    cr_assert(eq(int, (int)refused(fd, &layout, HEAD + 8 * N - 79, true), GAD_SHORT_READ));
    cr_assert(eq(int, (int)refused(fd, &layout, INT64_MAX, false), GAD_BAD_EXTENT));
    cr_assert(eq(int, (int)refused(fd, &layout, UINT64_MAX, false), GAD_BAD_EXTENT));
    cr_assert(eq(int, (int)refused(fd, NULL, 0, false), GAD_BAD_ARGUMENT));
    layout.strides = &back;
    cr_assert(eq(int, (int)refused(fd, &layout, 71, false), GAD_BAD_EXTENT));
    struct gad_array *array;
    cr_assert(zero(int, (int)gad_array_from_file(client, fd, &layout, 72, false, &array, NULL)));
    gad_array_release(array);
    layout.strides = &far;
    cr_assert(eq(int, (int)refused(fd, &layout, 0, false), GAD_BAD_EXTENT));
    layout.strides = NULL;
    layout.shape = &none;
    cr_assert(zero(int, (int)gad_array_from_file(client, fd, &layout, 0, false, &array, NULL)));
    cr_assert(zero(dbl, ask("sum(a)", array)), "without elements");
    gad_array_release(array);
    int fds[] = {fd,        read_only, write_only, append,   direct,
                 path_only, directory, proc,       pipes[0], pipes[1]};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        close(fds[i]);
}

Test(from_file, refuses_overlap_with_other_arrays_of_the_file)
{
    int fd = make_file(path_in("a.bin")), again = open(path_in("a.bin"), O_RDWR | O_CLOEXEC);
    struct gad_array *low = over(fd, 0, N / 2, 8, true), *next = over(again, 1, N / 2, 8, true);
    struct gad_array *even = over(fd, 0, N / 2, 16, true), *odd = over(again, 1, N / 2, 16, true);
    struct gad_array *zeros = over(fd, 0, N / 2, 0, true), *same = over(again, 0, N / 2, 8, true);
    struct gad_error error;
    cr_assert(eq(int, (int)run("a", low, next, NULL, &error), GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(int, (int)run("a", low, zeros, NULL, &error), GAD_BAD_EXTENT));
    run_well("a * 2", even, odd, NULL);
    cr_assert(eq(dbl, element(fd, 7), 12));
    run_well("a + 1", low, same, NULL);
    cr_assert(eq(dbl, element(fd, 6), 7));
    struct gad_array *all[] = {low, next, even, odd, zeros, same};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        gad_array_release(all[i]);
    close(fd);
    close(again);
}

/* Its own mount namespace, with a file system that the daemon does not read itself. */
Test(from_file_provided, moves_the_blocks_itself, .timeout = 60)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS))
        cr_skip("only root can mount");
    char mounted[64] = "/tmp/gad-ramfs.XXXXXX", path[96];
    cr_assert(zero(int, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)));
    cr_assert(ne(ptr, mkdtemp(mounted), NULL));
    if (mount("gad", mounted, "ramfs", 0, NULL)) {
        rmdir(mounted);
        cr_skip("there is no ramfs");
    }
    set_up();
    snprintf(path, sizeof(path), "%s/a.bin", mounted);
    int fd = make_file(path);
    read_and_write(fd);
    struct gad_array *low = over(fd, 0, N / 2, 8, true), *next = over(fd, 1, N / 2, 8, true);
    struct gad_array *even = over(fd, 0, N / 2, 16, true), *odd = over(fd, 1, N / 2, 16, true);
    struct gad_error error;
    cr_assert(eq(int, (int)run("a", low, next, NULL, &error), GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(int, (int)run("a", low, low, NULL, &error), GAD_OVERLAPPING_OUTPUT));
    run_well("a * 2", even, odd, NULL);
    cr_assert(eq(str, (char *)gad_array_info(odd)->access, (char *)"provider"));
    cr_assert(eq(dbl, element(fd, 7), 12), "interleaved");
    struct gad_array *all[] = {low, next, even, odd};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        gad_array_release(all[i]);
    close(fd);
    tear_down();
    umount2(mounted, MNT_DETACH);
    rmdir(mounted);
}
