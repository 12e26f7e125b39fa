/* Helpers of the formats' tests; see support.h. */
#include "support.h"

#include "proto/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>

static char folder[64];
struct gad_error last_error;

void folder_make(void)
{
    snprintf(folder, sizeof(folder), "/tmp/gad-formats-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    cr_assert(chmod(folder, 0755) == 0);
    cr_assert(chdir(folder) == 0);
    umask(022);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void folder_remove(void)
{
    if (getuid() == 0 && (seteuid(0) < 0 || setegid(0) < 0)) /* after drop_root() */
        return;
    if (chdir("/") == 0)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void file_put(const char *path, const void *bytes, size_t n_bytes)
{
    FILE *f = fopen(path, "wb");
    cr_assert(f && fwrite(bytes, 1, n_bytes, f) == n_bytes && fclose(f) == 0);
}

static int count_entries(const char *path)
{
    int n = -2;
    DIR *dir = opendir(path);
    cr_assert(dir != NULL);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

int folder_count(void)
{
    return count_entries(".");
}

int descriptor_count(void)
{
    return count_entries("/proc/self/fd") - 1;
}

void npy_put(const char *path, int major, const char *text, size_t n_bytes)
{
    size_t n_text = strlen(text), n_preamble = major == 1 ? 10 : 12;
    uint8_t *bytes = calloc(1, n_preamble + n_text + n_bytes);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)major;
    for (size_t i = 0; i < n_preamble - 8; i++)
        bytes[8 + i] = (uint8_t)(n_text >> (8 * i));
    memcpy(bytes + n_preamble, text, n_text);
    for (size_t i = 0; i < n_bytes; i++)
        bytes[n_preamble + n_text + i] = (uint8_t)i;
    file_put(path, bytes, n_preamble + n_text + n_bytes);
    free(bytes);
}

void npy_put_counting(const char *path, bool is_big_endian, const char *shape, int n, int first)
{
    char text[128];
    unsigned char bytes[65536];
    FILE *f = fopen(path, "wb");
    int length =
        snprintf(text, sizeof(text), "{'descr': '%cu2', 'fortran_order': False, 'shape': %s}\n",
                 is_big_endian ? '>' : '<', shape);
    cr_assert(f && 2 * n <= (int)sizeof(bytes));
    fwrite("\x93NUMPY\1", 1, 8, f);
    fputc(length, f);
    fputc(0, f);
    fputs(text, f);
    for (int i = 0; i < n; i++) {
        bytes[2 * i + is_big_endian] = (unsigned char)(first + i);
        bytes[2 * i + !is_big_endian] = (unsigned char)((first + i) >> 8);
    }
    cr_assert(fwrite(bytes, 2, (size_t)n, f) == (size_t)n && fclose(f) == 0);
}

struct gad_array *open_ok(const char *spec)
{
    struct gad_array *array = NULL;
    int r = format_open(NULL, spec, false, &array, &last_error);
    cr_assert(r == 0, "%s: %s", error_word(r), last_error.message);
    return array;
}

struct gad_array *create_ok(const char *spec, enum dtype dtype, int ndim, const int64_t *shape)
{
    struct gad_array *array = NULL;
    int r = format_create(NULL, spec, false, dtype, ndim, shape, false, NULL, &array, &last_error);
    cr_assert(r == 0, "%s: %s", error_word(r), last_error.message);
    return array;
}

void commit_ok(struct gad_array *array)
{
    int r = array->commit(array, &last_error);
    cr_assert(r == 0, "%s", last_error.message);
    array->is_committed = true;
}

void expect_shape(const struct gad_array *array, const char *wanted)
{
    char found[96];
    array_format_shape(array->info.ndim, array->info.shape, found, sizeof(found));
    cr_assert(eq(str, found, (char *)wanted));
}

/* Every failure is also checked for leaks of descriptors and a filled error. */
static const char *outcome(int r, struct gad_array **array, int n_descriptors)
{
    if (r == 0)
        gad_array_release(*array);
    cr_assert(eq(int, descriptor_count(), n_descriptors));
    if (r == 0)
        return "ok";
    cr_assert(r > 0 && last_error.status == (enum gad_status)r);
    cr_assert(last_error.message[0] != '\0');
    return error_word(r);
}

const char *open_word(const char *spec)
{
    struct gad_array *array = NULL;
    int n = descriptor_count();
    return outcome(format_open(NULL, spec, false, &array, &last_error), &array, n);
}

const char *open_in_place_word(const char *spec)
{
    struct gad_array *array = NULL;
    int n = descriptor_count();
    return outcome(format_open(NULL, spec, true, &array, &last_error), &array, n);
}

const char *create_word(const char *spec, bool replace, enum dtype dtype, int ndim,
                        const int64_t *shape)
{
    struct gad_array *array = NULL;
    int n = descriptor_count();
    return outcome(
        format_create(NULL, spec, replace, dtype, ndim, shape, false, NULL, &array, &last_error),
        &array, n);
}

size_t n_elements(const struct gad_array *array)
{
    size_t n = 1;
    for (int i = 0; i < array->info.ndim; i++)
        n *= (size_t)array->info.shape[i];
    return n;
}

static void unravel(size_t index, int ndim, const int64_t *shape, int64_t *ret_at)
{
    for (int i = ndim - 1; i >= 0; i--) {
        ret_at[i] = (int64_t)(index % (size_t)shape[i]);
        index /= (size_t)shape[i];
    }
}

/* In the file, of an element; UINT64_MAX when its chunk is absent. */
static uint64_t address(const struct gad_array *array, const int64_t *at, size_t item)
{
    uint64_t offset = array->offset_bytes, chunk = 0, inside = 0;
    if (array->access == ACCESS_FILE) {
        for (int i = 0; i < array->info.ndim; i++)
            offset += (uint64_t)(at[i] * array->info.strides[i]);
        return offset;
    }
    for (int i = 0; i < array->info.ndim; i++) {
        int64_t c = array->chunk_shape[i];
        chunk = chunk * (uint64_t)((array->info.shape[i] + c - 1) / c) + (uint64_t)(at[i] / c);
        inside = inside * (uint64_t)c + (uint64_t)(at[i] % c);
    }
    struct chunk_entry entry;
    cr_assert(chunk < array->n_chunks);
    cr_assert(pread(array->table_fd, &entry, sizeof(entry), (off_t)(chunk * sizeof(entry))) ==
              (ssize_t)sizeof(entry));
    return entry.offset_bytes == CHUNK_ABSENT ? UINT64_MAX : entry.offset_bytes + inside * item;
}

void *elements(const struct gad_array *array)
{
    size_t item = dtype_size((enum dtype)array->info.dtype), n = n_elements(array);
    if (array->access == ACCESS_PROVIDER)
        return elements_by_blocks(array, INT64_MAX);
    char *bytes = calloc(n ? n : 1, item);
    for (size_t k = 0; k < n; k++) {
        int64_t at[ARRAY_MAX_NDIM];
        unravel(k, array->info.ndim, array->info.shape, at);
        uint64_t offset = address(array, at, item);
        if (offset != UINT64_MAX)
            cr_assert(pread(array->fd, bytes + k * item, item, (off_t)offset) == (ssize_t)item);
    }
    return bytes;
}

static void scatter(const struct gad_array *array, const int64_t *start, const int64_t *count,
                    const char *block, size_t item, char *bytes)
{
    size_t n = 1;
    for (int i = 0; i < array->info.ndim; i++)
        n *= (size_t)count[i];
    for (size_t k = 0; k < n; k++) {
        int64_t at[ARRAY_MAX_NDIM];
        size_t index = 0;
        unravel(k, array->info.ndim, count, at);
        for (int i = 0; i < array->info.ndim; i++)
            index = index * (size_t)array->info.shape[i] + (size_t)(start[i] + at[i]);
        memcpy(bytes + index * item, block + k * item, item);
    }
}

void *elements_by_blocks(const struct gad_array *array, int64_t step)
{
    size_t item = dtype_size((enum dtype)array->info.dtype), n = n_elements(array);
    char *bytes = calloc(n ? n : 1, item), *block = malloc(n ? n * item : 1);
    int64_t start[ARRAY_MAX_NDIM] = {0}, count[ARRAY_MAX_NDIM];
    for (bool is_done = n == 0; !is_done;) {
        for (int i = 0; i < array->info.ndim; i++)
            count[i] =
                array->info.shape[i] - start[i] < step ? array->info.shape[i] - start[i] : step;
        memset(block, 0xa5, n * item);
        int r = array->provider->fill(array->provider_state, start, count, block);
        cr_assert(r == 0, "fill: errno %d", r);
        scatter(array, start, count, block, item, bytes);
        int i = array->info.ndim - 1;
        for (; i >= 0; i--) {
            start[i] += count[i];
            if (start[i] < array->info.shape[i])
                break;
            start[i] = 0;
        }
        is_done = i < 0;
    }
    free(block);
    return bytes;
}

void write_elements(const struct gad_array *array, const void *bytes)
{
    size_t item = dtype_size((enum dtype)array->info.dtype), n = n_elements(array);
    for (size_t k = 0; k < n; k++) {
        int64_t at[ARRAY_MAX_NDIM];
        unravel(k, array->info.ndim, array->info.shape, at);
        cr_assert(pwrite(array->fd, (const char *)bytes + k * item, item,
                         (off_t)address(array, at, item)) == (ssize_t)item);
    }
}

void drop_root(void)
{
    if (geteuid() == 0)
        cr_assert(setegid(65534) == 0 && seteuid(65534) == 0);
}

void mount_small_tmpfs(const char *path)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mkdir(path, 0755) == 0 && mount("tmpfs", path, "tmpfs", 0, "size=1m") == 0)
        return;
    folder_remove();
    cr_skip_test("no mounting here");
}

void unmount(const char *path)
{
    cr_assert(umount(path) == 0);
}

hid_t h5_create(const char *path, hsize_t user_block)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
    if (user_block)
        cr_assert(H5Pset_userblock(fcpl, user_block) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);
    cr_assert(file > 0);
    H5Pclose(fcpl);
    return file;
}

void h5_put(hid_t file, const char *name, hid_t file_type, int ndim, const hsize_t *dims,
            const hsize_t *chunk, hid_t dcpl)
{
    hid_t space = ndim ? H5Screate_simple(ndim, dims, NULL) : H5Screate(H5S_SCALAR);
    hid_t plist = dcpl > 0 ? dcpl : H5Pcreate(H5P_DATASET_CREATE);
    if (chunk)
        cr_assert(H5Pset_chunk(plist, ndim, chunk) >= 0);
    hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(lcpl, 1);
    hid_t dataset = H5Dcreate2(file, name, file_type, space, lcpl, plist, H5P_DEFAULT);
    cr_assert(dataset > 0, "%s", name);
    size_t n = (size_t)H5Sget_simple_extent_npoints(space);
    double *values = malloc((n ? n : 1) * sizeof(double));
    for (size_t i = 0; i < n; i++)
        values[i] = (double)i;
    if (n)
        cr_assert(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Dclose(dataset);
    H5Pclose(lcpl);
    if (plist != dcpl)
        H5Pclose(plist);
    H5Sclose(space);
}
