/* Loaders: each batch has the rows that seed, epoch and batch size give, whatever the plan, format,
 * memory and ranks; nothing hangs. */
#include "tests/unit/client/rows/loader_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(loader, .init = folder_make, .fini = folder_remove);

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
            cr_assert(eq(u64, gad_loader_epoch(loader), 9));
            cr_assert(eq(chr, again[strlen(again) + 1], '\0'));
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
    cr_assert(strstr(text, "25 windows of 8 batches") != NULL, "%s",
              text); /* a row costs 25 bytes */
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

/* Whether there was a batch; NULL: the call failed. */
static void *take_next(void *loader)
{
    static const bool answers[] = {false, true};
    struct gad_batch *batch;
    if (gad_loader_next(loader, 5000, &batch, NULL) != GAD_OK)
        return NULL;
    gad_batch_release(batch);
    return (void *)(uintptr_t)&answers[batch != NULL];
}

Test(loader, threads_that_wait_learn_that_another_took_the_last_batch)
{
    enum { N_THREADS = 6 };
    put_npy();
    const struct gad_loader_options options = {.batch_size = N, .shuffle = GAD_SHUFFLE_EXACT};
    struct gad_dataset *dataset = open_dataset("x.npy", "y.npy");
    for (int round = 0; round < 10; round++) {
        struct gad_loader *loader = make_loader(dataset, &options);
        pthread_t threads[N_THREADS];
        int n_batches = 0;
        for (int i = 0; i < N_THREADS; i++)
            cr_assert(eq(int, pthread_create(&threads[i], NULL, take_next, loader), 0));
        for (int i = 0; i < N_THREADS; i++) {
            void *said;
            pthread_join(threads[i], &said);
            cr_assert(said != NULL, "a thread waited for a batch that does not come");
            n_batches += *(const bool *)said;
        }
        cr_assert(eq(int, n_batches, 1));
        gad_loader_free(loader);
    }
    gad_dataset_free(dataset);
}
