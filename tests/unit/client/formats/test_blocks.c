/* The file provider: any block of any array in a file gives the bytes that are there, and writes
 * only the bytes that are its own. */
#include "support.h"

#include "client/formats/files/file_array.h"
#include "client/formats/files/file_provider.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

TestSuite(blocks, .init = folder_make, .fini = folder_remove);

static const struct {
    int ndim;
    int64_t shape[4];
} shapes[] = {
    {0, {0}},       {1, {7}},        {1, {100000}},     {2, {3, 5}},       {2, {1, 9}},
    {2, {9, 1}},    {2, {300, 200}}, {2, {2, 70000}},   {2, {70000, 2}},   {3, {4, 5, 6}},
    {3, {1, 1, 3}}, {3, {3, 1, 70}}, {3, {2, 3, 9999}}, {4, {5, 4, 3, 2}}, {3, {2, 0, 3}},
};

static struct gad_array *make(const char *path, enum dtype dtype, int i, bool fortran, int flags)
{
    struct gad_array *array = array_new(NULL, "npy", ACCESS_FILE, path);
    struct file_layout layout = {
        .dtype = dtype,
        .fortran_order = fortran,
        .ndim = shapes[i].ndim,
        .shape = shapes[i].shape,
        .offset_bytes = 13,
    };
    cr_assert(eq(int, file_array_describe(array, &layout, "x", &last_error), 0));
    array->fd = open(path, flags | O_CREAT | O_CLOEXEC, 0644);
    cr_assert(array->fd >= 0);
    return array;
}

/* Random bytes of n bytes behind 13 others. */
static char *fill_file(const char *path, size_t n)
{
    char *bytes = malloc(n + 13);
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < n + 13; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        bytes[i] = (char)x;
    }
    file_put(path, bytes, n + 13);
    return bytes;
}

Test(blocks, reads_every_block_of_every_layout)
{
    static const enum dtype dtypes[] = {DTYPE_UINT8, DTYPE_INT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    static const int64_t steps[] = {1, 2, 3, 64, 4096, INT64_MAX};
    for (int i = 0; i < 15; i++) {
        for (int k = 0; k < 8; k++) {
            struct gad_array *array = make("a.npy", dtypes[k / 2], i, k % 2, O_RDONLY);
            char *file = fill_file("a.npy", file_array_n_bytes(array));
            char *wanted = elements(array);
            for (int s = n_elements(array) > 5000 ? 3 : 0; s < 6; s++) {
                char *got = elements_by_blocks(array, steps[s]);
                cr_assert(memcmp(got, wanted, file_array_n_bytes(array)) == 0,
                          "shape %d, kind %d, step %d", i, k, s);
                free(got);
            }
            free(wanted);
            free(file);
            gad_array_release(array);
        }
    }
}

/* A window somewhere inside, so that there are gaps on every side. */
static void window(const struct gad_array *array, int64_t *start, int64_t *count, size_t *ret_n)
{
    *ret_n = 1;
    for (int d = 0; d < array->info.ndim; d++) {
        int64_t n = array->info.shape[d];
        start[d] = n > 2 ? 1 : 0;
        count[d] = n > 4 ? n - 3 : n > 0 ? 1 : 0;
        *ret_n *= (size_t)count[d];
    }
}

Test(blocks, writes_a_block_and_nothing_else)
{
    for (int i = 0; i < 14; i++) {
        for (int fortran = 0; fortran < 2; fortran++) {
            int64_t start[4], count[4];
            size_t n;
            struct gad_array *array = make("a.npy", DTYPE_INT32, i, fortran, O_RDWR);
            char *before = fill_file("a.npy", file_array_n_bytes(array));
            window(array, start, count, &n);
            int32_t *block = malloc(n * 4), *back = malloc(n * 4);
            for (size_t k = 0; k < n; k++)
                block[k] = (int32_t)(k * 2654435761u);
            cr_assert(eq(int, array->provider->drain(array, start, count, block), 0));
            cr_assert(eq(int, array->provider->fill(array, start, count, back), 0));
            cr_assert(memcmp(block, back, n * 4) == 0, "shape %d", i);

            size_t n_bytes = file_array_n_bytes(array) + 13, n_changed = 0;
            char *after = malloc(n_bytes);
            cr_assert(eq(int, (int)pread(array->fd, after, n_bytes, 0), (int)n_bytes));
            for (size_t k = 0; k < n_bytes; k++)
                n_changed += before[k] != after[k];
            cr_assert(le(sz, n_changed, n * 4));
            cr_assert(memcmp(before, after, 13) == 0);
            free(before), free(after), free(block), free(back);
            gad_array_release(array);
        }
    }
}

Test(blocks, says_when_the_file_has_become_shorter)
{
    struct gad_array *array = make("a.npy", DTYPE_FLOAT64, 3, false, O_RDONLY);
    const int64_t start[2] = {2, 0}, count[2] = {1, 5};
    double block[5];
    free(fill_file("a.npy", file_array_n_bytes(array)));
    cr_assert(eq(int, array->provider->fill(array, start, count, block), 0));
    cr_assert(truncate("a.npy", 100) == 0);
    cr_assert(eq(int, array->provider->fill(array, start, count, block), ENODATA));
    cr_assert(eq(int, array->provider->drain(array, start, count, block), EBADF));
    gad_array_release(array);
}
