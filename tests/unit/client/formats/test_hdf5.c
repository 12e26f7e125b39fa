/* HDF5 datasets as sources: how each kind of storage travels, with the right elements; and what is
 * refused. */
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/reading/hdf5_stored.h"
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

TestSuite(hdf5, .init = folder_make, .fini = folder_remove);

static const hsize_t dims[2] = {50, 30};

static void expect_counting(const struct gad_array *array)
{
    double *values = elements(array);
    for (size_t i = 0; i < n_elements(array); i++)
        cr_assert(values[i] == (double)i, "element %zu is %g", i, values[i]);
    free(values);
    values = elements_by_blocks(array, 7);
    for (size_t i = 0; i < n_elements(array); i++)
        cr_assert(values[i] == (double)i, "element %zu of a block is %g", i, values[i]);
    free(values);
}

static void expect(const char *spec, enum access access)
{
    int n = descriptor_count();
    struct gad_array *array = open_ok(spec);
    cr_assert(eq(int, (int)array->access, access), "%s", spec);
    cr_assert(eq(str, (char *)array->info.format, "hdf5"));
    expect_counting(array);
    gad_array_release(array);
    cr_assert(eq(int, descriptor_count(), n), "%s", spec);
}

Test(hdf5, contiguous_datasets_are_files)
{
    for (hsize_t block = 0; block <= 1024; block = block ? 2 * block : 512) {
        hid_t file = h5_create("a.h5", block);
        h5_put(file, "/g/h/d", H5T_IEEE_F64LE, 2, dims, NULL, 0);
        h5_put(file, "scalar", H5T_IEEE_F64LE, 0, NULL, NULL, 0);
        H5Fclose(file);
        expect("a.h5:/g/h/d", ACCESS_FILE);
        expect("a.h5:scalar", ACCESS_FILE);
    }
}

Test(hdf5, unfiltered_chunks_are_a_table)
{
    const hsize_t whole[2] = {10, 10}, cut[2] = {7, 13}, one[2] = {50, 30}, wide[2] = {1, 30};
    for (hsize_t block = 0; block <= 1024; block = block ? 2 * block : 512) {
        hid_t file = h5_create("a.h5", block);
        h5_put(file, "whole", H5T_IEEE_F64LE, 2, dims, whole, 0);
        h5_put(file, "cut", H5T_IEEE_F64LE, 2, dims, cut, 0);
        h5_put(file, "one", H5T_IEEE_F64LE, 2, dims, one, 0);
        h5_put(file, "wide", H5T_IEEE_F64LE, 2, dims, wide, 0);
        H5Fclose(file);
        expect("a.h5:whole", ACCESS_CHUNKS);
        expect("a.h5:cut", ACCESS_CHUNKS);
        expect("a.h5:one", ACCESS_CHUNKS);
        expect("a.h5:wide", ACCESS_CHUNKS);
    }
}

/* A counting dataset of 50 x 30 in chunks of 10 x 10 that may grow. */
static void put_growing(hid_t file, const char *name, hsize_t max_rows, hsize_t max_columns)
{
    const hsize_t chunk[2] = {10, 10}, max[2] = {max_rows, max_columns};
    double values[50 * 30];
    for (int i = 0; i < 50 * 30; i++)
        values[i] = i;
    hid_t space = H5Screate_simple(2, dims, max), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 2, chunk);
    hid_t dataset = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    cr_assert(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Sclose(space);
}

Test(hdf5, indexes_that_are_arrays_are_believed_where_only_rows_may_be_added)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    cr_assert(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    H5Pclose(fapl);
    put_growing(file, "fixed", 50, 30);
    put_growing(file, "rows", H5S_UNLIMITED, 30);
    put_growing(file, "some_rows", 70, 30);
    put_growing(file, "columns", 50, H5S_UNLIMITED);
    put_growing(file, "some_columns", 50, 60);
    put_growing(file, "rows_some_columns", H5S_UNLIMITED, 60);
    put_growing(file, "both", H5S_UNLIMITED, H5S_UNLIMITED);
    H5Fclose(file);
    expect("a.h5:fixed", ACCESS_CHUNKS);
    expect("a.h5:rows", ACCESS_CHUNKS);
    expect("a.h5:some_rows", ACCESS_CHUNKS);
    expect("a.h5:columns", ACCESS_PROVIDER);
    expect("a.h5:some_columns", ACCESS_PROVIDER);
    expect("a.h5:rows_some_columns", ACCESS_PROVIDER);
    expect("a.h5:both", ACCESS_CHUNKS);
}

Test(hdf5, chunk_tables_are_sealed)
{
    const hsize_t chunk[2] = {10, 10};
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, chunk, 0);
    H5Fclose(file);
    struct gad_array *array = open_ok("a.h5:d");
    int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    cr_assert(eq(int, fcntl(array->table_fd, F_GET_SEALS) & wanted, wanted));
    cr_assert(eq(u64, array->n_chunks, 15));
    cr_assert(eq(i64, array->chunk_shape[1], 10));
    struct stat st;
    cr_assert(fstat(array->table_fd, &st) == 0);
    cr_assert(eq(u64, (uint64_t)st.st_size, 15 * sizeof(struct chunk_entry)));
    gad_array_release(array);
}

Test(hdf5, everything_else_is_read_through_hdf5)
{
    const hsize_t chunk[2] = {9, 11}, line[1] = {10000}, small[1] = {2};
    hid_t file = h5_create("a.h5", 512);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    cr_assert(H5Pset_shuffle(dcpl) >= 0 && H5Pset_deflate(dcpl, 4) >= 0);
    h5_put(file, "packed", H5T_IEEE_F64LE, 2, dims, chunk, dcpl);
    H5Pclose(dcpl);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    cr_assert(H5Pset_external(dcpl, "outside.bin", 0, H5F_UNLIMITED) >= 0);
    h5_put(file, "outside", H5T_IEEE_F64LE, 2, dims, NULL, dcpl);
    H5Pclose(dcpl);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    cr_assert(H5Pset_layout(dcpl, H5D_COMPACT) >= 0);
    h5_put(file, "compact", H5T_IEEE_F64LE, 2, dims, NULL, dcpl);
    H5Pclose(dcpl);
    h5_put(file, "many", H5T_IEEE_F64LE, 1, line, small, 0);
    H5Fclose(file);
    expect("a.h5:packed", ACCESS_PROVIDER);
    expect("a.h5:outside", ACCESS_PROVIDER);
    expect("a.h5:compact", ACCESS_PROVIDER);
    expect("a.h5:many", ACCESS_PROVIDER);
}

Test(hdf5, external_links_lead_to_another_file)
{
    hid_t file = h5_create("b.h5", 0);
    h5_put(file, "first", H5T_IEEE_F64LE, 1, dims, NULL, 0);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    H5Fclose(file);
    file = h5_create("a.h5", 0);
    cr_assert(H5Lcreate_external("b.h5", "/d", file, "d", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    cr_assert(H5Lcreate_soft("/d", file, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    cr_assert(H5Lcreate_soft("/none", file, "broken", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    expect("a.h5:d", ACCESS_PROVIDER);
    expect("a.h5:soft", ACCESS_PROVIDER);
    cr_assert(eq(str, (char *)open_word("a.h5:broken"), "not-found"));
    cr_assert(eq(str, (char *)open_in_place_word("a.h5:d"), "read-only"));
}

/* A dataset without its chunks, with a fill value. */
static void put_unwritten(hid_t file, const char *name, double fill, const hsize_t *chunk,
                          H5D_fill_time_t when)
{
    hid_t space = H5Screate_simple(2, dims, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk)
        H5Pset_chunk(dcpl, 2, chunk);
    H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_INCR);
    if (!chunk)
        H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_LATE);
    H5Pset_fill_value(dcpl, H5T_NATIVE_DOUBLE, &fill);
    H5Pset_fill_time(dcpl, when);
    hid_t dataset = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    cr_assert(dataset > 0);
    if (chunk) { /* only the second chunk */
        double value = 5;
        hsize_t at[2] = {0, 10}, count[2] = {1, 1};
        hid_t memory = H5Screate_simple(2, count, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, count, NULL);
        cr_assert(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value) >= 0);
        H5Sclose(memory);
    }
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(dcpl);
}

static void expect_unwritten(const char *spec, enum access access, double fill, bool has_chunk)
{
    struct gad_array *array = open_ok(spec);
    cr_assert(eq(int, (int)array->access, access), "%s", spec);
    double *values = elements(array), *blocks = elements_by_blocks(array, 16);
    for (size_t i = 0; i < n_elements(array); i++) {
        double wanted = has_chunk && i == 10 ? 5 : fill;
        cr_assert(values[i] == wanted && blocks[i] == wanted, "%s: %zu is %g", spec, i, values[i]);
    }
    free(values);
    free(blocks);
    gad_array_release(array);
}

Test(hdf5, what_was_never_written_has_the_fill_value)
{
    const hsize_t chunk[2] = {10, 10};
    hid_t file = h5_create("a.h5", 0);
    put_unwritten(file, "zero", 0, chunk, H5D_FILL_TIME_IFSET);
    put_unwritten(file, "seven", 7, chunk, H5D_FILL_TIME_IFSET);
    put_unwritten(file, "minus", -0.0, chunk, H5D_FILL_TIME_IFSET);
    put_unwritten(file, "contiguous", 7, NULL, H5D_FILL_TIME_IFSET);
    put_unwritten(file, "never", 7, NULL, H5D_FILL_TIME_NEVER);
    H5Fclose(file);
    expect_unwritten("a.h5:zero", ACCESS_CHUNKS, 0, true);
    expect_unwritten("a.h5:seven", ACCESS_PROVIDER, 7, true);
    expect_unwritten("a.h5:minus", ACCESS_PROVIDER, 0, true);
    expect_unwritten("a.h5:contiguous", ACCESS_PROVIDER, 7, false);
    expect_unwritten("a.h5:never", ACCESS_PROVIDER, 0, false);
}

/* HDF5 adds the user block even to the address of what has none. */
Test(hdf5, what_was_never_written_is_nowhere_behind_a_user_block)
{
    const hsize_t chunk[2] = {10, 10};
    hid_t file = h5_create("a.h5", 2048);
    put_unwritten(file, "contiguous", 7, NULL, H5D_FILL_TIME_IFSET);
    put_unwritten(file, "zero", 0, chunk, H5D_FILL_TIME_IFSET);
    h5_put(file, "large", H5T_IEEE_F64LE, 2, dims, NULL, 0); /* long enough to be mistaken for it */
    H5Fclose(file);
    expect_unwritten("a.h5:contiguous", ACCESS_PROVIDER, 7, false);
    expect_unwritten("a.h5:zero", ACCESS_CHUNKS, 0, true);
}

/* As it was read before, and nothing else of the file is touched. */
static void expect_allocated(const char *name, double value)
{
    static double got[1500], other[1500];
    char spec[64];
    snprintf(spec, sizeof(spec), "a.h5:%s", name);
    cr_assert(eq(str, (char *)open_in_place_word(spec), "ok"));
    hid_t file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), large = H5Dopen2(file, "large", H5P_DEFAULT);
    hssize_t n = H5Sget_simple_extent_npoints(H5Dget_space(dataset));
    cr_assert(eq(i64, n, 1500));
    cr_assert(ge(int, H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, got), 0));
    cr_assert(ge(int, H5Dread(large, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, other), 0));
    for (hssize_t i = 0; i < n; i++)
        cr_assert(eq(dbl, got[i], value));
    for (hssize_t i = 0; i < H5Sget_simple_extent_npoints(H5Dget_space(large)); i++)
        cr_assert(eq(dbl, other[i], (double)i));
    H5Dclose(dataset);
    H5Dclose(large);
    H5Fclose(file);
}

Test(hdf5, what_was_never_written_gets_storage_when_it_is_to_be_written_in_place)
{
    for (hsize_t user_block = 0; user_block <= 2048; user_block += 2048) {
        double numbers[1500];
        for (int i = 0; i < 1500; i++)
            numbers[i] = i;
        hid_t file = h5_create("a.h5", user_block);
        put_unwritten(file, "contiguous", 7, NULL, H5D_FILL_TIME_IFSET);
        hid_t space = H5Screate_simple(2, dims, NULL);
        H5Dclose(H5Dcreate2(file, "plain", H5T_IEEE_F32BE, space, H5P_DEFAULT, H5P_DEFAULT,
                            H5P_DEFAULT));
        hid_t large =
            H5Dcreate2(file, "large", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(large, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
        H5Dclose(large);
        H5Sclose(space);
        H5Fclose(file);
        expect_allocated("contiguous", 7);
        expect_allocated("plain", 0);
        cr_assert(eq(str, (char *)open_in_place_word("a.h5:large"), "ok"));
    }
}

Test(hdf5, datasets_without_elements_are_empty_files)
{
    const hsize_t empty[2] = {0, 5}, chunk[2] = {2, 5}, limit[2] = {H5S_UNLIMITED, 5};
    hid_t file = h5_create("a.h5", 0), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    h5_put(file, "a", H5T_IEEE_F64LE, 2, empty, NULL, 0);
    H5Pset_chunk(dcpl, 2, chunk);
    hid_t space = H5Screate_simple(2, empty, limit);
    H5Dclose(H5Dcreate2(file, "b", H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "null", H5T_IEEE_F64LE, H5Screate(H5S_NULL), H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
    H5Fclose(file);
    expect("a.h5:a", ACCESS_FILE);
    expect("a.h5:b", ACCESS_FILE);
    cr_assert(eq(str, (char *)open_word("a.h5:null"), "bad-shape"));
}

Test(hdf5, misspelt_datasets_get_suggestions)
{
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "A", H5T_IEEE_F32LE, 1, dims, NULL, 0);
    h5_put(file, "UWND", H5T_IEEE_F32LE, 1, dims, NULL, 0);
    h5_put(file, "VWND", H5T_IEEE_F32LE, 1, dims, NULL, 0);
    h5_put(file, "g/inner", H5T_IEEE_F32LE, 1, dims, NULL, 0);
    H5Fclose(file);
    cr_assert(eq(str, (char *)open_word("a.h5:/UWNDD"), "not-found"));
    cr_assert(strstr(last_error.message, "no dataset '/UWNDD'; there are '/UWND', '/VWND', ") !=
                  NULL,
              "%s", last_error.message);
    cr_assert(eq(str, (char *)open_word("a.h5:/g"), "not-found"));
    cr_assert(strstr(last_error.message, "'/g' is a group; it has ") != NULL);
    cr_assert(strstr(last_error.message, "'/g/inner'") != NULL, "%s", last_error.message);
    file = h5_create("b.h5", 0);
    H5Fclose(file);
    cr_assert(eq(str, (char *)open_word("b.h5:/x"), "not-found"));
}

Test(hdf5, groups_in_a_circle_end_the_search)
{
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "g/inner", H5T_IEEE_F32LE, 1, dims, NULL, 0);
    cr_assert(H5Lcreate_hard(file, "/", file, "g/circle", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    cr_assert(H5Lcreate_hard(file, "/g", file, "again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    cr_assert(eq(str, (char *)open_word("a.h5:/none"), "not-found"));
    cr_assert(strstr(last_error.message, "'/g/inner'") != NULL, "%s", last_error.message);
}

Test(hdf5, files_that_are_none_are_refused)
{
    file_put("text.h5", "this is a text, and no HDF5 file\n", 33);
    file_put("empty.h5", "", 0);
    cr_assert(mkdir("d.h5", 0755) == 0);
    cr_assert(eq(str, (char *)open_word("text.h5:/x"), "bad-format"));
    cr_assert(eq(str, (char *)open_word("empty.h5:/x"), "bad-format"));
    cr_assert(eq(str, (char *)open_word("d.h5:/x"), "bad-descriptor"));
    cr_assert(eq(str, (char *)open_word("none.h5:/x"), "not-found"));
}

Test(hdf5, truncated_files_are_told_with_numbers)
{
    struct stat st;
    char text[64];
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    H5Fclose(file);
    cr_assert(stat("a.h5", &st) == 0 && truncate("a.h5", st.st_size - 100) == 0);
    cr_assert(eq(str, (char *)open_word("a.h5:d"), "short-read"));
    snprintf(text, sizeof(text), "%lld bytes", (long long)st.st_size);
    cr_assert(eq(str, last_error.expected, text));
    snprintf(text, sizeof(text), "%lld bytes", (long long)st.st_size - 100);
    cr_assert(eq(str, last_error.found, text));
}

Test(hdf5, nothing_stays_open)
{
    const hsize_t chunk[2] = {10, 10};
    hid_t file = h5_create("a.h5", 0), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_deflate(dcpl, 1);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, chunk, 0);
    h5_put(file, "c", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    h5_put(file, "p", H5T_IEEE_F64LE, 2, dims, chunk, dcpl);
    H5Pclose(dcpl);
    H5Fclose(file);
    expect("a.h5:d", ACCESS_CHUNKS);
    expect("a.h5:c", ACCESS_FILE);
    expect("a.h5:p", ACCESS_PROVIDER);
    cr_assert(eq(str, (char *)open_word("a.h5:x"), "not-found"));
    cr_assert(eq(int, (int)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0));
}

Test(hdf5, files_locked_by_a_writer_are_busy)
{
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    H5Fclose(file);
    int fd = open("a.h5", O_RDWR | O_CLOEXEC);
    cr_assert(flock(fd, LOCK_EX) == 0);
    cr_assert(eq(str, (char *)open_word("a.h5:d"), "busy"));
    cr_assert(flock(fd, LOCK_SH) == 0);
    cr_assert(eq(str, (char *)open_word("a.h5:d"), "ok"));
    close(fd);
}

Test(hdf5, contiguous_datasets_can_be_written_in_place)
{
    const hsize_t chunk[2] = {10, 10};
    hid_t file = h5_create("a.h5", 0);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    h5_put(file, "c", H5T_IEEE_F64LE, 2, dims, chunk, 0);
    H5Fclose(file);
    struct gad_array *array;
    cr_assert(eq(int, format_open(NULL, "a.h5:d", true, &array, &last_error), 0));
    cr_assert(array->is_writable);
    cr_assert(eq(int, fcntl(array->fd, F_GETFL) & O_ACCMODE, O_RDWR));
    gad_array_release(array);
    cr_assert(eq(str, (char *)open_in_place_word("a.h5:c"), "read-only"));
}

Test(hdf5, a_provider_notices_another_file_in_its_place)
{
    const hsize_t chunk[2] = {10, 10};
    const int64_t start[2] = {0, 0}, count[2] = {1, 1};
    double block[1];
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), file = h5_create("a.h5", 0);
    H5Pset_deflate(dcpl, 1);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, chunk, dcpl);
    H5Fclose(file);
    struct gad_array *array = open_ok("a.h5:d");
    cr_assert(unlink("a.h5") == 0);
    cr_assert(array->provider->fill(array->provider_state, start, count, block) != 0);
    file = h5_create("a.h5", 0);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, chunk, dcpl);
    H5Fclose(file);
    int r = array->provider->fill(array->provider_state, start, count, block);
    cr_assert(r == ESTALE || r == 0, "%d", r); /* 0: the inode was used again */
    const int64_t outside[2] = {50, 0}, negative[2] = {-1, 0};
    cr_assert(array->provider->fill(array->provider_state, outside, count, block) != 0);
    cr_assert(array->provider->fill(array->provider_state, negative, count, block) != 0);
    gad_array_release(array);
}

/* By HDF5, and beside it: the same bytes. Where they are. */
static struct hdf5_where read_both_ways(hid_t dataset, const hsize_t *offsets,
                                        const struct hdf5_beside *beside)
{
    struct chunk_bytes bytes[2] = {{.data = NULL}, {.data = NULL}};
    struct hdf5_where where[2];
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(
            int, hdf5_stored_fetch(dataset, offsets, i ? beside : NULL, &bytes[i], &where[i]), 0));
        cr_assert(hdf5_beside_read(beside, &where[i], &bytes[i]));
    }
    cr_assert(where[0].address == HADDR_UNDEF && where[1].address != HADDR_UNDEF);
    cr_assert(bytes[0].n_bytes > 0 && bytes[0].n_bytes == bytes[1].n_bytes);
    cr_assert(memcmp(bytes[0].data, bytes[1].data, bytes[0].n_bytes) == 0);
    free(bytes[0].data);
    free(bytes[1].data);
    return where[1];
}

Test(hdf5, stored_chunks_are_read_beside_the_library)
{
    const hsize_t chunk[2] = {7, 5};
    for (hsize_t block = 0; block <= 512; block += 512) {
        hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), created = h5_create("a.h5", block);
        H5Pset_deflate(dcpl, 1);
        h5_put(created, "d", H5T_IEEE_F64LE, 2, dims, chunk, dcpl);
        H5Pclose(dcpl);
        H5Fclose(created);
        HDF5_SCOPE(scope);
        struct hdf5_beside beside = {.fd = -1};
        struct hdf5_where where;
        struct stat st;
        _cleanup_hid_ hid_t fapl = hdf5_file_access(false);
        _cleanup_hid_ hid_t file = H5Fopen("a.h5", H5F_ACC_RDONLY, fapl);
        _cleanup_hid_ hid_t dataset = H5Dopen2(file, "d", H5P_DEFAULT);
        cr_assert(fstat(hdf5_file_fd(file), &st) == 0);
        hdf5_beside_open(&beside, hdf5_file_fd(file), &st);
        for (hsize_t i = 0; i < dims[0]; i += chunk[0])
            for (hsize_t k = 0; k < dims[1]; k += chunk[1])
                where = read_both_ways(dataset, (const hsize_t[]){i, k}, &beside);
        char room[16];
        struct chunk_bytes bytes = {.data = room, .n_bytes = sizeof(room), .room = sizeof(room)};
        cr_assert(hdf5_beside_read(&beside, &where, &bytes));
        cr_assert(truncate("a.h5", (off_t)where.address + 15) == 0);
        cr_assert(not(hdf5_beside_read(&beside, &where, &bytes)), "it has been cut");
        cr_assert(truncate("a.h5", st.st_size) == 0);
        cr_assert(hdf5_beside_read(&beside, &where, &bytes));
        hdf5_beside_close(&beside);
        cr_assert(not(hdf5_beside_read(&beside, &where, &bytes)), "others may have written");
        close(beside.fd);
    }
}

Test(hdf5, the_programs_own_error_printing_stays)
{
    H5E_auto2_t before, after;
    void *before_data, *after_data;
    H5Eget_auto2(H5E_DEFAULT, &before, &before_data);
    cr_assert(eq(str, (char *)open_word("none.h5:/x"), "not-found"));
    file_put("text.h5", "text", 4);
    cr_assert(eq(str, (char *)open_word("text.h5:/x"), "bad-format"));
    H5Eget_auto2(H5E_DEFAULT, &after, &after_data);
    cr_assert(before == after && before_data == after_data);
}
