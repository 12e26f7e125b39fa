#include "tests/unit/client/rows/loader_fixture.h"

void put_npy(void)
{
    float x[N][WIDTH];
    uint8_t y[N][2];
    char text[128];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < WIDTH; k++)
            x[i][k] = (float)(i * WIDTH + k);
        y[i][0] = (uint8_t)(i >> 8);
        y[i][1] = (uint8_t)i;
    }
    const struct {
        const char *path, *descr, *shape;
        const void *bytes;
        size_t n_bytes;
    } files[] = {{"x.npy", "<f4", "(2000, 5)", x, sizeof(x)},
                 {"y.npy", ">u2", "(2000,)", y, sizeof(y)}};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(files[i].path, "wb");
        int n =
            snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n",
                     files[i].descr, files[i].shape);
        fwrite("\x93NUMPY\1", 1, 8, f);
        fputc(n, f);
        fputc(0, f);
        fputs(text, f);
        fwrite(files[i].bytes, 1, files[i].n_bytes, f);
        cr_assert(fclose(f) == 0);
    }
}

void put_h5(void)
{
    float x[N][WIDTH];
    uint16_t y[N];
    for (int i = 0; i < N; i++) {
        y[i] = (uint16_t)i;
        for (int k = 0; k < WIDTH; k++)
            x[i][k] = (float)(i * WIDTH + k);
    }
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), file = h5_create("d.h5", 0);
    H5Pset_chunk(dcpl, 2, (hsize_t[]){64, 3});
    H5Pset_fletcher32(dcpl);
    H5Pset_deflate(dcpl, 1);
    hid_t space = H5Screate_simple(2, (hsize_t[]){N, WIDTH}, NULL);
    hid_t set = H5Dcreate(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5Dclose(set);
    H5Sclose(space);
    space = H5Screate_simple(1, (hsize_t[]){N}, NULL);
    set = H5Dcreate(file, "y", H5T_STD_U16LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
    H5Dclose(set);
    H5Fclose(file);
}

struct gad_dataset *open_dataset(const char *x_spec, const char *y_spec)
{
    struct gad_dataset_part parts[] = {{"x", open_ok(x_spec)}, {"y", open_ok(y_spec)}};
    struct gad_dataset *dataset;
    enum gad_status status = gad_dataset_new(NULL, 2, parts, &dataset, &last_error);
    cr_assert(status == GAD_OK, "%s", last_error.message);
    gad_array_release(parts[0].array);
    gad_array_release(parts[1].array);
    return dataset;
}

struct gad_loader *make_loader(struct gad_dataset *dataset,
                               const struct gad_loader_options *options)
{
    struct gad_loader *loader = NULL;
    enum gad_status status = gad_loader_new(dataset, options, &loader, &last_error);
    cr_assert(status == GAD_OK, "%s: %s, %s", last_error.message, last_error.expected,
              last_error.found);
    return loader;
}

void check_batch(struct gad_batch *batch, const struct gad_loader_options *options, uint64_t k,
                 uint64_t at)
{
    struct epoch_order order;
    int64_t rows[N];
    uint64_t n = (uint64_t)gad_batch_length(batch);
    struct gad_layout layout;
    epoch_order_init(&order, (enum row_shuffle)options->shuffle, N, (uint64_t)options->batch_size,
                     options->seed, gad_batch_epoch(batch));
    epoch_order_rows(&order, k * (uint64_t)options->batch_size + at, n, rows);
    cr_assert(eq(u64, gad_batch_index(batch), k));
    cr_assert(eq(int, gad_batch_layout(batch, 0, &layout), GAD_OK));
    cr_assert(eq(i64, layout.shape[0], (int64_t)n));
    cr_assert(eq(i64, layout.shape[1], WIDTH));
    cr_assert(eq(int, layout.dtype, GAD_FLOAT32));
    cr_assert(eq(int, gad_batch_layout(batch, 2, &layout), GAD_BAD_ARGUMENT));
    const float *x = gad_batch_data(batch, 0);
    const uint16_t *y = gad_batch_data(batch, 1);
    cr_assert(eq(u64, (uintptr_t)x % 64, 0));
    cr_assert(eq(u64, (uintptr_t)y % 64, 0));
    cr_assert(memcmp(gad_batch_rows(batch), rows, n * sizeof(*rows)) == 0);
    for (uint64_t i = 0; i < n; i++) {
        cr_assert(y[i] == rows[i], "batch %lu, place %lu: %d is not %ld", k, i, y[i], rows[i]);
        for (int c = 0; c < WIDTH; c++)
            cr_assert(x[i * WIDTH + (uint64_t)c] == (float)(rows[i] * WIDTH + c));
    }
}

struct gad_batch *next_ok(struct gad_loader *loader)
{
    struct gad_batch *batch;
    enum gad_status status = gad_loader_next(loader, -1, &batch, &last_error);
    cr_assert(status == GAD_OK, "%s", last_error.message);
    return batch;
}

void check_epoch(struct gad_loader *loader, const struct gad_loader_options *options)
{
    struct gad_batch *batch;
    uint64_t k = 0, at = 0, n_rows = 0;
    while ((batch = next_ok(loader))) {
        uint64_t size = (uint64_t)options->batch_size;
        uint64_t n = N - k * size < size ? N - k * size : size;
        at = options->world > 1 ? n * options->rank / options->world : 0;
        check_batch(batch, options, k++, at);
        n_rows += (uint64_t)gad_batch_length(batch);
        gad_batch_release(batch);
    }
    cr_assert(eq(u64, k, gad_loader_length(loader)));
    cr_assert(options->world > 1 || options->drop_last || n_rows == N);
}
