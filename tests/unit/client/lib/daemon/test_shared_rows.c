#include "client/lib/scans/shared_rows.h"
#include "client/gpuarrayd-dataset.h"
#include "tests/unit/client/lib/daemon/daemon_fixture.h"
#include "tests/unit/client/rows/rows_gather.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <hdf5.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS 1000
#define WIDTH  50

/* Deflated chunks, of which several lie side by side and the last ones reach over the end; rows
 * from 600 on were never written and are 7. */
static void make_h5(const char *path)
{
    static float rows[600][WIDTH];
    const hsize_t shape[] = {N_ROWS, WIDTH}, chunk[] = {64, 20}, written[] = {600, WIDTH};
    const hsize_t zero[] = {0, 0};
    const float fill = 7;
    for (int i = 0; i < 600; i++)
        for (int k = 0; k < WIDTH; k++)
            rows[i][k] = (float)(i * 1000 + k);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, shape, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t memory = H5Screate_simple(2, written, NULL);
    H5Pset_chunk(plist, 2, chunk);
    H5Pset_shuffle(plist);
    H5Pset_deflate(plist, 4);
    H5Pset_fill_value(plist, H5T_NATIVE_FLOAT, &fill);
    hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, written, NULL);
    cr_assert(le(int, 0, H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, rows)));
    H5Dclose(set);
    H5Pclose(plist);
    H5Sclose(memory);
    H5Sclose(space);
    H5Fclose(file);
}

static struct gad_array *open_x(const char *path)
{
    struct gad_error error;
    struct gad_array *array;
    char spec[256];
    snprintf(spec, sizeof(spec), "%s:/x", path);
    cr_assert(eq(int, (int)gad_array_open(client, spec, &array, &error), 0), "%s", error.message);
    return array;
}

static void check_rows(struct row_source *source, int64_t step)
{
    static float out[N_ROWS][WIDTH];
    static int64_t rows[N_ROWS];
    struct gad_error error;
    for (int64_t i = 0; i < N_ROWS; i++)
        rows[i] = (i * step + 11) % N_ROWS;
    memset(out, 0, sizeof(out));
    cr_assert(eq(int, rows_gather(source, N_ROWS, rows, out, sizeof(out[0]), 0, "x", &error), 0));
    for (int64_t i = 0; i < N_ROWS; i++)
        for (int k = 0; k < WIDTH; k++)
            cr_assert(eq(flt, out[i][k], rows[i] < 600 ? (float)(rows[i] * 1000 + k) : 7.0f));
}

/* Of the one scan there is; 0: there is none. */
static int scan_pid(void)
{
    struct gad_error error;
    char *info;
    cr_assert(eq(int, (int)gad_info_json(client, &info, &error), 0));
    struct json_object *whole = json_tokener_parse(info);
    struct json_object *scans = json_object_object_get(whole, "scans");
    int pid = 0;
    if (json_object_array_length(scans) > 0) {
        struct json_object *scan = json_object_array_get_idx(scans, 0);
        pid = json_object_get_int(json_object_object_get(scan, "pid"));
    }
    json_object_put(whole);
    free(info);
    return pid;
}

Test(shared_rows, rows_are_those_of_one_who_reads_alone, .init = set_up, .fini = tear_down)
{
    struct row_source source;
    struct gad_error error;
    make_h5(path_in("x.h5"));
    struct gad_array *array = open_x(path_in("x.h5"));
    cr_assert(eq(int, row_source_init(&source, array, "x", &error), 0));
    check_rows(&source, 7);
    struct shared_rows *shared = shared_rows_new(client, &source);
    cr_assert(ne(ptr, shared, NULL));
    cr_assert(ne(ptr, (void *)(uintptr_t)source.bring, NULL));
    check_rows(&source, 7);
    check_rows(&source, 333);
    int pid = scan_pid();
    cr_assert(ne(int, pid, 0));
    cr_assert(eq(int, kill(pid, SIGKILL), 0));
    for (unsigned i = 0; scan_pid() == pid || scan_pid() == 0; i++) {
        cr_assert(lt(uint, i, 1000u));
        check_rows(&source, 333); /* of what there is still, by itself, and by the next one */
    }
    shared_rows_free(shared);
    cr_assert(eq(ptr, (void *)(uintptr_t)source.bring, NULL));
    check_rows(&source, 7);
    row_source_deinit(&source);
    gad_array_release(array);
}

Test(shared_rows, what_is_not_packed_is_not_shared, .init = set_up, .fini = tear_down)
{
    struct row_source source;
    struct gad_error error;
    make_npy(path_in("x.npy"), 100);
    struct gad_array *array = open_npy(path_in("x.npy"));
    cr_assert(eq(int, row_source_init(&source, array, "x", &error), 0));
    cr_assert(eq(ptr, shared_rows_new(client, &source), NULL));
    row_source_deinit(&source);
    gad_array_release(array);
}
