/* Loaders: what is wrong is said of the batch that has it, and what cannot be done before. */
#include "tests/unit/client/rows/loader_fixture.h"

#include <fcntl.h>
#include <unistd.h>

TestSuite(loader_refusals, .init = folder_make, .fini = folder_remove);

Test(loader_refusals, refuses_states_that_are_not_its_own)
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

Test(loader_refusals, a_damaged_chunk_fails_the_batches_that_have_rows_of_it)
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

Test(loader_refusals, says_that_a_file_has_changed)
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

Test(loader_refusals, says_that_all_batches_are_held)
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

Test(loader_refusals, refuses_what_it_cannot_do)
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
