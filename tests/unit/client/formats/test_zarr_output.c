/* New arrays in Zarr stores: whole or not at all, beside what is there, and what is refused. That
 * zarr-python reads them is tested by tests/integration/python/files/test_zarr.py. */
#include "support.h"

#include "client/hidden.h"
#include "proto/util.h"

#include <fcntl.h>
#include <sys/wait.h>

TestSuite(zarr_output, .init = folder_make, .fini = folder_remove);

static const int64_t shape[2] = {5, 7};
static const int64_t origin[2] = {0, 0};

static void fill_values(int32_t *ret_values, int32_t first)
{
    for (int i = 0; i < 35; i++)
        ret_values[i] = first + i;
}

static void drain_all(const struct gad_array *array, int32_t first)
{
    int32_t values[35];
    fill_values(values, first);
    cr_assert(eq(int, array->provider->drain(array->provider_state, origin, shape, values), 0));
}

static struct gad_array *create_stored(const char *spec, const struct gad_storage *storage)
{
    struct gad_array *array = NULL;
    int r =
        format_create(NULL, spec, true, DTYPE_INT32, 2, shape, false, storage, &array, &last_error);
    cr_assert(r == 0, "%s: %s", error_word(r), last_error.message);
    return array;
}

static void write_stored(const char *spec, const struct gad_storage *storage, int32_t first)
{
    struct gad_array *array = create_stored(spec, storage);
    drain_all(array, first);
    commit_ok(array);
    gad_array_release(array);
}

static void check_stored(const char *spec, int32_t first)
{
    int32_t wanted[35];
    fill_values(wanted, first);
    struct gad_array *array = open_ok(spec);
    int32_t *got = elements(array);
    cr_assert(memcmp(got, wanted, sizeof(wanted)) == 0, "%s", spec);
    free(got);
    gad_array_release(array);
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void put_text(const char *path, const char *text)
{
    file_put(path, text, strlen(text));
}

Test(zarr_output, appear_with_the_commit_and_leave_nothing_without_it)
{
    int n = descriptor_count();
    struct gad_array *array = create_stored("a.zarr", NULL);
    drain_all(array, 1);
    cr_assert(eq(str, (char *)open_word("a.zarr"), "not-found"));
    cr_assert(eq(int, folder_count(), 1)); /* the hidden one */
    gad_array_release(array);
    cr_assert(eq(int, folder_count(), 0));
    write_stored("a.zarr", NULL, 1);
    cr_assert(eq(int, folder_count(), 1));
    check_stored("a.zarr", 1);
    check_stored("a.zarr/", 1);
    cr_assert(eq(int, descriptor_count(), n));
}

Test(zarr_output, replace_arrays_in_one_step)
{
    const int64_t chunks[2] = {2, 3};
    const struct gad_storage storage = {.n_chunk_axes = 2, .chunk_shape = chunks};
    write_stored("a.zarr", &storage, 1);
    struct gad_array *array = create_stored("a.zarr", NULL);
    struct gad_array *other = create_stored("a.zarr", NULL);
    drain_all(array, 100);
    check_stored("a.zarr", 1);
    commit_ok(array);
    check_stored("a.zarr", 100);
    drain_all(other, 200);
    commit_ok(other);
    gad_array_release(array);
    gad_array_release(other);
    check_stored("a.zarr", 200);
    cr_assert(is_there("a.zarr/c/2/2") == false);
    cr_assert(eq(int, folder_count(), 1));
}

Test(zarr_output, of_one_job_come_together_in_a_new_store)
{
    struct gad_array *a = create_stored("x.zarr:/g/a", NULL);
    struct gad_array *b = create_stored("x.zarr:/g/h/b", NULL);
    struct gad_array *again = create_stored("x.zarr:/g/a", NULL);
    struct gad_array *below = create_stored("x.zarr:/g/a/b", NULL);
    cr_assert(a->is_same_target(a, again) && a->is_same_target(below, a));
    cr_assert(a->is_same_target(a, b) == false);
    drain_all(a, 1);
    drain_all(b, 2);
    drain_all(below, 3);
    commit_ok(a);
    commit_ok(b);
    cr_assert(eq(int, below->commit(below, &last_error), GAD_BAD_ARGUMENT));
    gad_array_release(a);
    gad_array_release(b);
    gad_array_release(again);
    gad_array_release(below);
    check_stored("x.zarr:/g/a", 1);
    check_stored("x.zarr:/g/h/b", 2);
    cr_assert(is_there("x.zarr/zarr.json") && is_there("x.zarr/g/h/zarr.json"));
    cr_assert(eq(int, folder_count(), 1));
}

Test(zarr_output, go_into_shards_and_chunks_of_zeros_are_not_stored)
{
    const int64_t chunks[2] = {1, 2}, shards[2] = {4, 4};
    const struct gad_storage storage = {
        .n_chunk_axes = 2,
        .chunk_shape = chunks,
        .n_shard_axes = 2,
        .shard_shape = shards,
        .compress = "none",
    };
    struct gad_array *array = create_stored("a.zarr", &storage);
    int32_t values[35] = {0};
    values[0] = 5; /* one chunk of the first shard */
    /* Blocks that cut chunks and shards, some of them twice as a job that was begun again. */
    for (int64_t row = 0; row < 5; row++) {
        for (int64_t column = 0; column < 7; column += 3) {
            const int64_t start[2] = {row, column}, count[2] = {1, column == 6 ? 1 : 3};
            int r = array->provider->drain(array->provider_state, start, count,
                                           values + 7 * row + column);
            cr_assert(eq(int, r, 0));
        }
    }
    commit_ok(array);
    gad_array_release(array);
    struct stat st;
    cr_assert(stat("a.zarr/c/0/0", &st) == 0);
    cr_assert(eq(int, (int)st.st_size, 8 + 16 * 8 + 4));
    cr_assert(is_there("a.zarr/c/0/1") == false && is_there("a.zarr/c/1/0") == false);
    array = open_ok("a.zarr");
    int32_t *got = elements(array);
    cr_assert(memcmp(got, values, sizeof(values)) == 0);
    free(got);
    gad_array_release(array);
    write_stored("b.zarr", &storage, 1);
    check_stored("b.zarr", 1);
}

static void refuse_stored(const struct gad_storage *storage, const char *words)
{
    struct gad_array *array = NULL;
    int r = format_create(NULL, "r.zarr", true, DTYPE_INT32, 2, shape, false, storage, &array,
                          &last_error);
    cr_assert(eq(int, r, GAD_BAD_ARGUMENT));
    cr_assert(strstr(last_error.message, words) != NULL, "%s", last_error.message);
}

Test(zarr_output, go_into_shards_in_shards)
{
    const int64_t chunks[2] = {1, 2}, shards[3][2] = {{4, 8}, {2, 4}, {1, 4}};
    struct gad_storage storage = {
        .n_chunk_axes = 2,
        .chunk_shape = chunks,
        .n_shard_axes = 2,
        .n_shard_levels = 3,
        .shard_shape = shards[0],
        .compress = "none",
    };
    struct gad_array *array = NULL;
    struct stat st;
    write_stored("a.zarr", &storage, 1);
    check_stored("a.zarr", 1);
    cr_assert(stat("a.zarr/c/0/0", &st) == 0);
    /* 16 chunks in 8 shards of two, those in 4, these in the file's */
    cr_assert(eq(int, (int)st.st_size, 16 * 8 + 8 * (2 * 16 + 4) + 4 * (2 * 16 + 4) + 4 * 16 + 4));
    /* A shard of zeros is in none. */
    int32_t values[35] = {[16] = 7}; /* (2, 2) */
    array = create_stored("b.zarr", &storage);
    cr_assert(eq(int, array->provider->drain(array->provider_state, origin, shape, values), 0));
    commit_ok(array);
    gad_array_release(array);
    cr_assert(stat("b.zarr/c/0/0", &st) == 0 && is_there("b.zarr/c/1/0") == false);
    cr_assert(eq(int, (int)st.st_size, 8 + (2 * 16 + 4) + (2 * 16 + 4) + 4 * 16 + 4));
    array = open_ok("b.zarr");
    int32_t *got = elements(array);
    cr_assert(memcmp(got, values, sizeof(values)) == 0);
    free(got);
    gad_array_release(array);
    storage.n_shard_levels = 2;
    storage.shard_shape = shards[1];
    storage.chunk_shape = shards[2]; /* as the inner shards: one chunk in each */
    write_stored("c.zarr", &storage, 3);
    check_stored("c.zarr", 3);
    storage.n_shard_levels = 4;
    refuse_stored(&storage, "shards in shards in shards in shards");
    storage.n_shard_levels = 2;
    storage.shard_shape = (const int64_t[]){4, 6, 2, 4};
    storage.chunk_shape = chunks;
    refuse_stored(&storage, "not of whole shards along axis 1");
}

Test(zarr_output, take_the_chunks_of_a_job_that_was_begun_again)
{
    const int64_t chunks[2] = {1, 2}, shards[2] = {2, 8};
    const struct gad_storage storage = {
        .n_chunk_axes = 2,
        .chunk_shape = chunks,
        .n_shard_axes = 2,
        .shard_shape = shards,
    };
    struct gad_array *array = create_stored("a.zarr", &storage);
    const int64_t start[2] = {1, 0}, count[2] = {2, 7};
    int32_t values[35];
    fill_values(values, 9);
    cr_assert(eq(int, array->provider->drain(array->provider_state, start, count, values + 7), 0));
    drain_all(array, 9);
    drain_all(array, 9);
    commit_ok(array);
    gad_array_release(array);
    check_stored("a.zarr", 9);
}

Test(zarr_output, that_are_not_whole_are_not_committed)
{
    struct gad_array *array = create_stored("a.zarr", NULL);
    cr_assert(eq(int, array->commit(array, &last_error), GAD_INTERNAL));
    gad_array_release(array);
    cr_assert(eq(int, folder_count(), 0));
}

Test(zarr_output, of_a_process_that_was_killed_go_with_the_next_one)
{
    pid_t child = fork();
    if (child == 0) {
        drain_all(create_stored("a.zarr:/g/a", NULL), 1);
        _exit(0); /* nothing is released */
    }
    cr_assert(waitpid(child, NULL, 0) == child);
    cr_assert(eq(int, folder_count(), 1));
    write_stored("b.zarr", NULL, 1);
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(is_there("b.zarr/zarr.json"));
}

Test(zarr_output, are_refused_where_something_else_is)
{
    cr_assert(mkdir("g.zarr", 0755) == 0 && mkdir("d.zarr", 0755) == 0);
    cr_assert(mkdir("e.zarr", 0755) == 0);
    put_text("g.zarr/zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\"}");
    put_text("d.zarr/letter", "x");
    put_text("f.zarr", "x");
    write_stored("g.zarr:/a", NULL, 1);
    cr_assert(eq(str, (char *)create_word("g.zarr", true, DTYPE_INT32, 2, shape), "exists"));
    cr_assert(eq(str, (char *)create_word("d.zarr", true, DTYPE_INT32, 2, shape), "exists"));
    cr_assert(eq(str, (char *)create_word("f.zarr", true, DTYPE_INT32, 2, shape), "exists"));
    cr_assert(eq(str, (char *)create_word("g.zarr:/a", false, DTYPE_INT32, 2, shape), "exists"));
    cr_assert(
        eq(str, (char *)create_word("g.zarr:/a/b", true, DTYPE_INT32, 2, shape), "bad-argument"));
    cr_assert(
        eq(str, (char *)create_word("d.zarr:/b", true, DTYPE_INT32, 2, shape), "bad-argument"));
    cr_assert(
        eq(str, (char *)create_word("g.zarr:/.b", true, DTYPE_INT32, 2, shape), "bad-argument"));
    cr_assert(
        eq(str, (char *)create_word("g.zarr:/../b", true, DTYPE_INT32, 2, shape), "bad-argument"));
    cr_assert(eq(str, (char *)create_word("no/a.zarr", true, DTYPE_INT32, 2, shape), "not-found"));
    cr_assert(eq(str, (char *)create_word("g.zarr:/a", true, DTYPE_INT32, 2, shape), "ok"));
    check_stored("g.zarr:/a", 1);
    write_stored("e.zarr", NULL, 3); /* an empty folder takes nothing from anybody */
    check_stored("e.zarr", 3);
    cr_assert(eq(int, folder_count(), 4));
}

Test(zarr_output, have_codecs_that_zarr_knows)
{
    static char *const known[] = {"gzip:9", "zstd:-3", "lz4", "blosc:zlib:2",
                                  "transpose:1:0,lzma:0"};
    struct gad_array *array;
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
        const struct gad_storage storage = {.compress = known[i], .shuffle = i % 2};
        write_stored("a.zarr", &storage, (int32_t)i);
        check_stored("a.zarr", (int32_t)i);
    }
    static char *const unknown[] = {
        "lzf",           "szip",
        "bitshuffle",    "bz2:0",
        "transpose:0",   "transpose:1:1",
        "transpose:0:2", "transpose:0:1:0",
        "transpose:",    "transpose,transpose",
        "crc32c,zstd",   "zstd,crc32c,crc32c",
        "zstd,",         "delta,transpose",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(unknown); i++) {
        const struct gad_storage storage = {.compress = unknown[i]};
        int r = format_create(NULL, "b.zarr", false, DTYPE_INT32, 2, shape, false, &storage, &array,
                              &last_error);
        cr_assert(eq(int, r, GAD_BAD_ARGUMENT));
    }
    cr_assert(eq(int, folder_count(), 1));
}

Test(zarr_output, are_told_to_consolidated_metadata)
{
    char text[4096] = "";
    cr_assert(mkdir("x.zarr", 0755) == 0);
    put_text("x.zarr/zarr.json",
             "{\"zarr_format\": 3, \"node_type\": \"group\", \"consolidated_metadata\": "
             "{\"kind\": \"inline\", \"metadata\": {}}}");
    write_stored("x.zarr:/g/a", NULL, 1);
    int fd = open("x.zarr/zarr.json", O_RDONLY);
    cr_assert(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    cr_assert(strstr(text, "\"g/a\"") && strstr(text, "\"g\"") && strstr(text, "\"int32\""));
    cr_assert(eq(int, folder_count(), 1));
}

Test(zarr_output, without_axes_or_elements_are_whole_too)
{
    const int64_t none[2] = {0, 3};
    struct gad_array *array = create_ok("n.zarr", DTYPE_INT16, 2, none);
    commit_ok(array);
    gad_array_release(array);
    array = open_ok("n.zarr");
    cr_assert(eq(i64, array->info.shape[0], 0));
    gad_array_release(array);
    array = create_ok("o.zarr", DTYPE_FLOAT64, 0, NULL);
    cr_assert(eq(int, array->commit(array, &last_error), GAD_INTERNAL));
    double value = 2.5, *got;
    cr_assert(eq(int, array->provider->drain(array->provider_state, NULL, NULL, &value), 0));
    commit_ok(array);
    gad_array_release(array);
    array = open_ok("o.zarr");
    got = elements(array);
    cr_assert(eq(dbl, *got, 2.5));
    free(got);
    gad_array_release(array);
}
