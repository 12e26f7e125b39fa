/* Loaders: each batch has the rows that seed, epoch and batch size give, whatever the plan, format,
 * memory and ranks; what is wrong is said of the batch that has it; nothing hangs. */
#include "tests/unit/client/formats/support.h"

#include "client/gpuarrayd-dataset.h"
#include "client/rows/epoch_order.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(loader, .init = folder_make, .fini = folder_remove);

#define N     2000
#define WIDTH 5

/* Row i of x: i * WIDTH, ...; of y: its number, big-endian. */
static void put_npy(void)
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

/* The same in chunks of 64 rows. */
static void put_h5(void)
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

static struct gad_dataset *open_dataset(const char *x_spec, const char *y_spec)
{
    struct gad_dataset_part parts[] = {{"x", open_ok(x_spec)}, {"y", open_ok(y_spec)}};
    struct gad_dataset *dataset;
    enum gad_status status = gad_dataset_new(NULL, 2, parts, &dataset, &last_error);
    cr_assert(status == GAD_OK, "%s", last_error.message);
    gad_array_release(parts[0].array);
    gad_array_release(parts[1].array);
    return dataset;
}

static struct gad_loader *make_loader(struct gad_dataset *dataset,
                                      const struct gad_loader_options *options)
{
    struct gad_loader *loader = NULL;
    enum gad_status status = gad_loader_new(dataset, options, &loader, &last_error);
    cr_assert(status == GAD_OK, "%s: %s, %s", last_error.message, last_error.expected,
              last_error.found);
    return loader;
}

/* The rows of a batch of all ranks are those of the order, from `at` on in it. */
static void check_batch(struct gad_batch *batch, const struct gad_loader_options *options,
                        uint64_t k, uint64_t at)
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

static struct gad_batch *next_ok(struct gad_loader *loader)
{
    struct gad_batch *batch;
    enum gad_status status = gad_loader_next(loader, -1, &batch, &last_error);
    cr_assert(status == GAD_OK, "%s", last_error.message);
    return batch;
}

static void check_epoch(struct gad_loader *loader, const struct gad_loader_options *options)
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

static void check_options(const struct gad_loader_options *options)
{
    static const char *const specs[][2] = {
        {"x.npy", "y.npy"}, {"d.h5:/x", "d.h5:/y"}, {"x.npy", "d.h5:/y"}};
    for (int i = 0; i < 3; i++) {
        struct gad_dataset *dataset = open_dataset(specs[i][0], specs[i][1]);
        struct gad_loader *loader = make_loader(dataset, options);
        gad_dataset_free(dataset);
        check_epoch(loader, options);
        cr_assert(eq(int, gad_loader_set_epoch(loader, 3, NULL), GAD_OK));
        check_epoch(loader, options);
        gad_loader_free(loader);
    }
}

Test(loader, has_the_same_batches_by_every_plan_and_format)
{
    static const char *const plans[] = {NULL, "direct", "scan", "copy", "resident"};
    put_npy();
    put_h5();
    for (int p = 0; p < 5; p++)
        for (int s = 0; s < 3; s++)
            for (int64_t size = 1; size <= 3000; size = size * 13 + 8) {
                uint64_t memory = size >= 300 || p == 4 ? 0 : 20000;
                struct gad_loader_options options = {.batch_size = size,
                                                     .shuffle = (enum gad_shuffle)s,
                                                     .seed = 5,
                                                     .plan = plans[p],
                                                     .memory_bytes = memory,
                                                     .scratch = ".",
                                                     .drop_last = size == 21};
                check_options(&options);
            }
    cr_assert(eq(int, folder_count(), 3));
}

Test(loader, ranks_have_what_one_process_has)
{
    put_npy();
    put_h5();
    for (uint32_t world = 2; world <= 8; world += 3)
        for (uint32_t rank = 0; rank < world; rank++) {
            struct gad_loader_options options = {.batch_size = 301,
                                                 .shuffle = GAD_SHUFFLE_EXACT,
                                                 .rank = rank,
                                                 .world = world,
                                                 .memory_bytes = 30000};
            check_options(&options);
            options.batch_size = 3; /* fewer than ranks: some have nothing of it */
            options.plan = "scan";
            options.memory_bytes = 0;
            check_options(&options);
        }
}

/* The last batch of 2000 rows by 23 has 22: rank 2 of 5 gets one more of it than of the others. */
Test(loader, a_rank_may_have_more_of_the_last_batch_than_of_others)
{
    static const char *const plans[] = {"direct", "scan", "copy", "resident"};
    put_npy();
    put_h5();
    for (int p = 0; p < 4; p++)
        for (uint32_t rank = 0; rank < 5; rank++) {
            struct gad_loader_options options = {.batch_size = 23,
                                                 .shuffle = GAD_SHUFFLE_EXACT,
                                                 .rank = rank,
                                                 .world = 5,
                                                 .prefetch = 300,
                                                 .scratch = ".",
                                                 .plan = plans[p]};
            check_options(&options);
        }
}

Test(loader, epochs_and_seeds_differ_and_every_row_comes_once)
{
    static const enum gad_shuffle shuffles[] = {GAD_SHUFFLE_EXACT, GAD_SHUFFLE_BLOCKS};
    put_npy();
    struct gad_dataset *dataset = open_dataset("x.npy", "y.npy");
    for (int s = 0; s < 2; s++) {
        struct gad_loader_options options = {.batch_size = 7, .shuffle = shuffles[s], .seed = 1};
        struct gad_loader *loader = make_loader(dataset, &options);
        uint16_t first[3][7];
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            uint8_t seen[N] = {0};
            struct gad_batch *batch;
            gad_loader_set_epoch(loader, epoch, NULL);
            while ((batch = next_ok(loader))) {
                if (gad_batch_index(batch) == 0)
                    memcpy(first[epoch], gad_batch_data(batch, 1), sizeof(first[0]));
                for (int64_t i = 0; i < gad_batch_length(batch); i++)
                    cr_assert(eq(int, seen[((uint16_t *)gad_batch_data(batch, 1))[i]]++, 0));
                gad_batch_release(batch);
            }
            cr_assert(memchr(seen, 0, N) == NULL);
            cr_assert(epoch == 0 || memcmp(first[epoch], first[0], sizeof(first[0])) != 0);
        }
        gad_loader_free(loader);
    }
    gad_dataset_free(dataset);
}

Test(loader, has_any_batch_by_number)
{
    put_h5();
    struct gad_dataset *dataset = open_dataset("d.h5:/x", "d.h5:/y");
    struct gad_loader_options options = {
        .batch_size = 64, .shuffle = GAD_SHUFFLE_EXACT, .memory_bytes = 20000};
    struct gad_loader *loader = make_loader(dataset, &options);
    struct gad_batch *batch;
    static const uint64_t numbers[] = {31, 0, 7, 7};
    gad_batch_release(next_ok(loader));
    for (int i = 0; i < 4; i++) {
        cr_assert(eq(int, gad_loader_batch(loader, numbers[i], &batch, &last_error), GAD_OK));
        check_batch(batch, &options, numbers[i], 0);
        gad_batch_release(batch);
    }
    batch = next_ok(loader);
    check_batch(batch, &options, 1, 0); /* what comes next is what it was */
    gad_batch_release(batch);
    cr_assert(eq(int, gad_loader_batch(loader, 32, &batch, &last_error), GAD_BAD_INDEX));
    cr_assert(eq(str, last_error.found, "32"));
    gad_loader_free(loader);
    gad_dataset_free(dataset);
}

Test(loader, goes_on_from_a_state_with_other_ranks_and_formats)
{
    char state[GAD_STATE_BYTES], again[GAD_STATE_BYTES];
    put_npy();
    put_h5();
    struct gad_dataset *npy = open_dataset("x.npy", "y.npy"),
                       *h5 = open_dataset("d.h5:/x", "d.h5:/y");
    struct gad_loader_options options = {
        .batch_size = 30, .shuffle = GAD_SHUFFLE_EXACT, .seed = UINT64_MAX, .memory_bytes = 9000};
    struct gad_loader *loader = make_loader(npy, &options);
    gad_loader_set_epoch(loader, 9, NULL);
    for (int k = 0; k < 11; k++)
        gad_batch_release(next_ok(loader));
    cr_assert(eq(int, gad_loader_state(loader, state, &last_error), GAD_OK));
    gad_loader_free(loader);
    for (uint32_t world = 1; world <= 8; world *= 2)
        for (uint32_t rank = 0; rank < world; rank++) {
            options.rank = rank;
            options.world = world;
            options.seed = 0;
            loader = make_loader(world == 2 ? npy : h5, &options);
            options.seed = UINT64_MAX;
            cr_assert(eq(int, gad_loader_load_state(loader, state, &last_error), GAD_OK), "%s",
                      last_error.message);
            cr_assert(eq(int, gad_loader_state(loader, again, &last_error), GAD_OK));
            cr_assert(eq(str, strstr(again, "\"rows"), strstr(state, "\"rows")));
            struct gad_batch *batch = next_ok(loader);
            cr_assert(eq(u64, gad_batch_epoch(batch), 9));
            check_batch(batch, &options, 11, 30 * rank / world);
            gad_batch_release(batch);
            gad_loader_free(loader);
        }
    gad_dataset_free(npy);
    gad_dataset_free(h5);
}

Test(loader, refuses_states_that_are_not_its_own)
{
    char state[GAD_STATE_BYTES], bad[2 * GAD_STATE_BYTES];
    put_npy();
    struct gad_dataset *dataset = open_dataset("x.npy", "y.npy"),
                       *other = open_dataset("y.npy", "y.npy");
    struct gad_loader_options options = {.batch_size = 30, .seed = 3};
    struct gad_loader *loader = make_loader(dataset, &options),
                      *of_other = make_loader(other, &options);
    gad_loader_state(loader, state, NULL);
    cr_assert(eq(int, gad_loader_load_state(of_other, state, &last_error), GAD_BAD_ARGUMENT));
    cr_assert(strstr(last_error.message, "dataset") != NULL);
    static const char *const changes[][2] = {
        {"\"seed\":3", "\"seed\":-3"},
        {"\"seed\":3", "\"seed\":{}"},
        {"\"position\":0", "\"position\":31"},
        {"\"position\":0", "\"position\":2010"},
        {"\"batch_size\":30", "\"batch_size\":31"},
        {"\"epoch\":0,", ""},
        {"none", "exact"},
        {"false", "true"},
        {"{", "["},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const char *at = strstr(state, changes[i][0]);
        cr_assert(at != NULL);
        snprintf(bad, sizeof(bad), "%.*s%s%s", (int)(at - state), state, changes[i][1],
                 at + strlen(changes[i][0]));
        cr_assert(eq(int, gad_loader_load_state(loader, bad, &last_error), GAD_BAD_ARGUMENT), "%s",
                  bad);
    }
    memset(bad, ' ', sizeof(bad));
    bad[sizeof(bad) - 1] = '\0';
    cr_assert(eq(int, gad_loader_load_state(loader, bad, &last_error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, gad_loader_load_state(loader, "", &last_error), GAD_BAD_ARGUMENT));
    gad_loader_free(loader);
    gad_loader_free(of_other);
    gad_dataset_free(dataset);
    gad_dataset_free(other);
}

/* Damages the stored bytes of one chunk of x, which is found by its checksum's failure. */
static void damage_chunk(void)
{
    hid_t file = H5Fopen("d.h5", H5F_ACC_RDONLY, H5P_DEFAULT),
          set = H5Dopen(file, "x", H5P_DEFAULT);
    hsize_t place[2], size;
    unsigned mask;
    haddr_t at;
    hid_t space = H5Dget_space(set);
    cr_assert(H5Dget_chunk_info(set, space, 10, place, &mask, &at, &size) >= 0);
    cr_assert(eq(u64, place[0], 320));
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    int fd = open("d.h5", O_RDWR);
    char byte[8];
    cr_assert(pread(fd, byte, 8, (off_t)(at + size / 2)) == 8);
    for (int i = 0; i < 8; i++)
        byte[i] = (char)~byte[i];
    cr_assert(pwrite(fd, byte, 8, (off_t)(at + size / 2)) == 8);
    close(fd);
}

Test(loader, a_damaged_chunk_fails_the_batches_that_have_rows_of_it)
{
    static const char *const plans[] = {"direct", "scan", "copy", "resident"};
    put_h5();
    damage_chunk();
    for (int p = 0; p < 4; p++)
        for (int skips = 0; skips < 2; skips++) {
            struct gad_dataset *dataset = open_dataset("d.h5:/x", "d.h5:/y");
            struct gad_loader_options options = {.batch_size = 10,
                                                 .plan = plans[p],
                                                 .scratch = ".",
                                                 .shuffle = GAD_SHUFFLE_EXACT,
                                                 .skips_errors = skips};
            struct gad_loader *loader = make_loader(dataset, &options);
            struct epoch_order order;
            struct gad_batch *batch;
            uint64_t n_bad = 0;
            epoch_order_init(&order, ROW_SHUFFLE_EXACT, N, 10, 0, 0);
            for (uint64_t k = 0; k < 200; k++) {
                int64_t rows[10];
                bool is_bad = false;
                epoch_order_rows(&order, k * 10, 10, rows);
                for (int i = 0; i < 10; i++)
                    is_bad |= rows[i] / 64 == 5;
                n_bad += is_bad;
                if (is_bad && skips)
                    continue;
                enum gad_status status = gad_loader_next(loader, -1, &batch, &last_error);
                cr_assert(eq(int, status, is_bad ? GAD_PROVIDER_FAILED : GAD_OK),
                          "%s: batch %lu: %s", plans[p], k, last_error.message);
                if (!is_bad) {
                    check_batch(batch, &options, k, 0);
                    gad_batch_release(batch);
                    continue;
                }
                cr_assert(strstr(last_error.message, "d.h5") &&
                              strstr(last_error.message, "(320, 0)") &&
                              strstr(last_error.message, "rows 320 to 383 of x"),
                          "%s", last_error.message);
            }
            cr_assert(next_ok(loader) == NULL);
            cr_assert(eq(u64, gad_loader_skipped(loader), skips ? n_bad : 0));
            gad_loader_free(loader);
            gad_dataset_free(dataset);
        }
}

Test(loader, says_that_a_file_has_changed)
{
    for (int i = 0; i < 3; i++) {
        put_npy();
        struct gad_dataset *dataset = open_dataset("x.npy", "y.npy");
        struct gad_loader_options options = {.batch_size = 10, .memory_bytes = 1000};
        struct gad_loader *loader = make_loader(dataset, &options);
        struct gad_batch *batch;
        gad_batch_release(next_ok(loader));
        cr_assert(eq(int, rename("x.npy", "old.npy"), 0));
        if (i == 1)
            put_npy();
        if (i == 2)
            cr_assert(eq(int, truncate("old.npy", 500) + rename("old.npy", "x.npy"), 0));
        enum gad_status status = GAD_OK;
        for (int k = 0; k < 199 && status == GAD_OK; k++) {
            status = gad_loader_next(loader, -1, &batch, &last_error);
            if (status == GAD_OK)
                gad_batch_release(batch);
        }
        cr_assert(eq(int, status, GAD_DATASET_CHANGED));
        cr_assert(eq(str, last_error.argument, "x"));
        cr_assert(strstr(last_error.message, "x.npy") != NULL);
        gad_loader_free(loader);
        gad_dataset_free(dataset);
    }
}

Test(loader, says_that_all_batches_are_held)
{
    struct gad_batch *held[100], *batch;
    unsigned n = 0;
    put_npy();
    struct gad_dataset *dataset = open_dataset("x.npy", "y.npy");
    struct gad_loader_options options = {.batch_size = 10, .memory_bytes = 500, .prefetch = 3};
    struct gad_loader *loader = make_loader(dataset, &options);
    enum gad_status status;
    while ((status = gad_loader_next(loader, -1, &held[n], &last_error)) == GAD_OK && n < 99)
        n++;
    cr_assert(eq(int, status, GAD_LIMIT_EXCEEDED));
    cr_assert(ge(uint, n, 3));
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, gad_loader_batch(loader, 50, &batch, &last_error), GAD_OK));
        held[n++] = batch;
    }
    cr_assert(eq(int, gad_loader_batch(loader, 50, &batch, &last_error), GAD_LIMIT_EXCEEDED));
    for (unsigned i = 0; i < n; i++)
        gad_batch_release(held[i]);
    batch = next_ok(loader);
    check_batch(batch, &options, n - 2, 0);
    gad_loader_free(loader); /* a batch outlives it */
    gad_dataset_free(dataset);
    check_batch(batch, &options, n - 2, 0);
    gad_batch_release(batch);
}

static const char *refused(struct gad_dataset *dataset, const struct gad_loader_options *options)
{
    struct gad_loader *loader;
    enum gad_status status = gad_loader_new(dataset, options, &loader, &last_error);
    cr_assert(ne(int, status, GAD_OK));
    return last_error.argument;
}

Test(loader, refuses_what_it_cannot_do)
{
    put_npy();
    put_h5();
    struct gad_dataset *dataset = open_dataset("d.h5:/x", "y.npy"), *none;
    struct gad_loader_options options = {.batch_size = 0};
    cr_assert(eq(str, (char *)refused(dataset, &options), "batch_size"));
    options.batch_size = 100;
    options.rank = 1;
    cr_assert(eq(str, (char *)refused(dataset, &options), "rank"));
    options.rank = 0;
    options.memory_bytes = 2199; /* a batch has 100 rows of 20 and 2 bytes */
    cr_assert(eq(str, (char *)refused(dataset, &options), "memory_bytes"));
    cr_assert(eq(str, last_error.expected, "2200 bytes"));
    cr_assert(eq(str, last_error.found, "2199 bytes"));
    options.memory_bytes = 30000;
    options.plan = "resident";
    options.shuffle = GAD_SHUFFLE_EXACT;
    cr_assert(eq(str, (char *)refused(dataset, &options), "memory_bytes"));
    cr_assert(eq(str, last_error.expected, "44000 bytes"));
    options.plan = "copy";
    cr_assert(eq(str, (char *)refused(dataset, &options), "scratch"));
    options.scratch = "nowhere";
    cr_assert(eq(str, (char *)refused(dataset, &options), "scratch"));
    options.scratch = ".";
    options.scratch_bytes = 39999;
    cr_assert(eq(str, (char *)refused(dataset, &options), "scratch"));
    cr_assert(eq(int, last_error.status, GAD_NO_SPACE));
    options.plan = "fast";
    cr_assert(eq(str, (char *)refused(dataset, &options), "plan"));
    gad_dataset_free(dataset);
    struct gad_dataset_part parts[] = {{"x", open_ok("x.npy")}, {"y", open_ok("y.npy[1:]")}};
    cr_assert(eq(int, gad_dataset_new(NULL, 2, parts, &none, &last_error), GAD_BAD_SHAPE));
    cr_assert(eq(str, last_error.expected, "2000 rows"));
    cr_assert(eq(str, last_error.found, "1999 rows"));
    parts[1].name = "x";
    cr_assert(eq(int, gad_dataset_new(NULL, 2, parts, &none, &last_error), GAD_BAD_ARGUMENT));
    gad_array_release(parts[0].array);
    gad_array_release(parts[1].array);
}

Test(loader, rows_of_few_bytes_take_little_more_than_the_memory)
{
    put_npy();
    struct gad_dataset_part part = {"y", open_ok("y.npy")};
    struct gad_dataset *dataset;
    struct gad_loader_options options = {
        .batch_size = 10, .shuffle = GAD_SHUFFLE_EXACT, .plan = "scan", .memory_bytes = 1000};
    char *text;
    cr_assert(eq(int, gad_dataset_new(NULL, 1, &part, &dataset, &last_error), GAD_OK));
    struct gad_loader *loader = make_loader(dataset, &options);
    cr_assert(eq(int, gad_loader_explain(loader, &text, &last_error), GAD_OK));
    cr_assert(strstr(text, "50 windows of 4 batches") != NULL, "%s",
              text); /* a row costs 41 bytes */
    free(text);
    gad_loader_free(loader);
    gad_dataset_free(dataset);
    gad_array_release(part.array);
}

Test(loader, tells_what_it_does)
{
    char *text;
    put_h5();
    struct gad_dataset *dataset = open_dataset("d.h5:/x", "d.h5:/y");
    struct gad_loader_options options = {
        .batch_size = 100, .shuffle = GAD_SHUFFLE_EXACT, .memory_bytes = 10000};
    struct gad_loader *loader = make_loader(dataset, &options);
    cr_assert(eq(int, gad_loader_explain(loader, &text, &last_error), GAD_OK));
    cr_assert(strstr(text, "scan: 5 windows of 4 batches") != NULL, "%s", text);
    free(text);
    gad_loader_free(loader);
    options.scratch = ".";
    options.scratch_bytes = 1000; /* too little is found before, and said */
    loader = make_loader(dataset, &options);
    cr_assert(eq(int, gad_loader_explain(loader, &text, &last_error), GAD_OK));
    cr_assert(strstr(text, "scan") && strstr(text, "not copied") && strstr(text, "1000"), "%s",
              text);
    free(text);
    gad_loader_free(loader);
    options.scratch_bytes = 0;
    loader = make_loader(dataset, &options);
    cr_assert(eq(int, gad_loader_explain(loader, &text, &last_error), GAD_OK));
    cr_assert(strstr(text, "copy") && strstr(text, "copied"), "%s", text);
    free(text);
    signal(SIGXFSZ, SIG_IGN); /* the disk is full later on */
    cr_assert(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, RLIM_INFINITY}) == 0);
    gad_batch_release(next_ok(loader));
    cr_assert(eq(int, gad_loader_explain(loader, &text, &last_error), GAD_OK));
    cr_assert(strstr(text, "scan") && strstr(text, "not kept") && !strstr(text, ", copied"), "%s",
              text);
    free(text);
    gad_loader_free(loader);
    gad_dataset_free(dataset);
}

static void *release(void *batch)
{
    gad_batch_release(batch);
    return NULL;
}

Test(loader, jumps_and_ends_in_the_middle_and_other_threads_release)
{
    put_npy();
    struct gad_dataset *dataset = open_dataset("x.npy", "y.npy");
    struct gad_loader_options options = {
        .batch_size = 10, .shuffle = GAD_SHUFFLE_EXACT, .memory_bytes = 3000};
    for (int i = 0; i < 30; i++) {
        struct gad_loader *loader = make_loader(dataset, &options);
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            gad_loader_set_epoch(loader, epoch, NULL);
            for (uint64_t k = 0; k < (uint64_t)i % 5; k++) {
                pthread_t thread;
                struct gad_batch *batch = next_ok(loader);
                check_batch(batch, &options, k, 0);
                cr_assert(eq(int, pthread_create(&thread, NULL, release, batch), 0));
                pthread_join(thread, NULL);
            }
        }
        gad_loader_free(loader);
    }
    gad_dataset_free(dataset);
}

Test(loader, says_so_in_a_child_of_fork)
{
    put_npy();
    struct gad_dataset *dataset = open_dataset("x.npy", "y.npy");
    struct gad_loader_options options = {.batch_size = 10};
    struct gad_loader *loader = make_loader(dataset, &options);
    gad_batch_release(next_ok(loader));
    pid_t child = fork();
    if (child == 0) {
        struct gad_batch *batch;
        _exit(gad_loader_next(loader, -1, &batch, NULL) == GAD_BAD_ARGUMENT ? 0 : 1);
    }
    int status;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_assert(eq(int, status, 0));
    gad_loader_free(loader);
    gad_dataset_free(dataset);
}
