/* Chunk sinks: blocks in any order and twice, from several threads, whole chunks out, in order
 * where they go into one file; memory for those that are begun is bounded. */
#include "client/codecs/codec.h"
#include "client/formats/chunked/chunk_assembly.h"
#include "client/formats/chunked/chunk_sink.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CHUNKS 512

/* An array whose element is its index in C order; what is stored is decoded and compared. */
struct kept {
    int64_t shape[2], chunk_shape[2];
    const struct codec_pipeline *pipeline;
    atomic_uint n_stored[MAX_CHUNKS];
    int fails_with;
    enum chunk_parts parts;
    int64_t part_shape[2], inner_shape[2]; /* of parts in parts; 0: there are none */
    /* The number of the next chunk in each part, and whether somebody stores one. */
    atomic_int next[MAX_CHUNKS], n_storing[MAX_CHUNKS];
};

/* Whether the chunk of one element is stored before that of another in their part. */
static bool comes_before(const struct kept *kept, const int64_t *place, const int64_t *other)
{
    for (int level = kept->inner_shape[0] > 0 ? 0 : 1; level < 2; level++) {
        const int64_t *size = level == 0 ? kept->inner_shape : kept->chunk_shape;
        for (int k = 0; k < 2; k++)
            if (place[k] / size[k] != other[k] / size[k])
                return place[k] < other[k];
    }
    return false;
}

/* Of parts that are cut by the array chunks beyond it have no number. */
static void check_turn(struct kept *kept, const int64_t *place)
{
    if (kept->parts == PARTS_OF_CHUNKS)
        return;
    bool is_all = kept->parts == PARTS_OF_ALL;
    int64_t turn = 0, part = 0, at[2], first[2], end[2];
    for (int k = 0; k < 2; k++) {
        int64_t size = is_all ? kept->shape[k] : kept->part_shape[k];
        first[k] = place[k] / size * size;
        end[k] = first[k] + size < kept->shape[k] ? first[k] + size : kept->shape[k];
        part = part * ((kept->shape[k] - 1) / size + 1) + place[k] / size;
    }
    for (at[0] = first[0]; at[0] < end[0]; at[0] += kept->chunk_shape[0])
        for (at[1] = first[1]; at[1] < end[1]; at[1] += kept->chunk_shape[1])
            turn += comes_before(kept, at, place);
    cr_assert(eq(int, kept->n_storing[part]++, 0));
    cr_assert(eq(int, kept->next[part]++, (int)turn));
    kept->n_storing[part]--;
}

static int store(void *state, uint64_t index, const int64_t *place, const void *bytes,
                 size_t n_bytes, uint32_t skipped, char *reason, size_t n_reason)
{
    struct kept *kept = state;
    size_t n = (size_t)(kept->chunk_shape[0] * kept->chunk_shape[1]);
    uint32_t *elements = malloc(n * 4);
    struct codec_scratch *scratch = codec_scratch_new();
    unsigned step;
    if (kept->fails_with) {
        snprintf(reason, n_reason, "as it was told");
        free(elements);
        codec_scratch_free(scratch);
        return kept->fails_with;
    }
    cr_assert(codec_decode(kept->pipeline, skipped, scratch, bytes, n_bytes, elements, n * 4,
                           &step) == 0);
    for (size_t e = 0; e < n; e++) {
        int64_t row = place[0] + (int64_t)e / kept->chunk_shape[1];
        int64_t column = place[1] + (int64_t)e % kept->chunk_shape[1];
        bool is_inside = row < kept->shape[0] && column < kept->shape[1];
        uint32_t wanted = is_inside ? (uint32_t)(row * kept->shape[1] + column) : 0;
        cr_assert(elements[e] == wanted, "chunk %d, element %zu: %u", (int)index, e, elements[e]);
    }
    kept->n_stored[index]++;
    check_turn(kept, place);
    free(elements);
    codec_scratch_free(scratch);
    return 0;
}

static struct codec_pipeline packed(void)
{
    struct codec_pipeline pipeline = {.n_steps = 2};
    pipeline.steps[0] =
        (struct codec_step){.codec = codec_of_name("shuffle"), .n_values = 1, .values = {4}};
    pipeline.steps[1] = (struct codec_step){.codec = codec_of_name("zstd"), .is_optional = true};
    return pipeline;
}

static struct chunk_sink *open_sink(struct kept *kept, struct chunk_grid *ret_grid)
{
    struct chunk_sink *sink = NULL;
    struct gad_error error;
    struct chunk_sink_layout layout = {
        .shape = kept->shape,
        .item_bytes = 4,
        .pipeline = kept->pipeline,
        .parts = kept->parts,
        .n_part_levels = kept->parts != PARTS_OF_SHAPE ? 0
                         : kept->inner_shape[0] > 0    ? 2
                                                       : 1,
        .part_shapes = (const int64_t *const[]){kept->part_shape, kept->inner_shape},
        .store = store,
        .state = kept,
        .path = "/tmp/x.h5",
        .dataset = "/d",
    };
    cr_assert(chunk_grid_init(&layout.grid, 2, kept->shape, kept->chunk_shape, 4));
    cr_assert(layout.grid.n_chunks <= MAX_CHUNKS);
    cr_assert(eq(int, chunk_sink_new(&layout, "x", &sink, &error), 0));
    *ret_grid = layout.grid;
    return sink;
}

static int drain(struct chunk_sink *sink, const struct kept *kept, int64_t row, int64_t column,
                 int64_t n_rows, int64_t n_columns)
{
    const int64_t start[2] = {row, column}, count[2] = {n_rows, n_columns};
    uint32_t *block = malloc((size_t)(n_rows * n_columns) * 4 + 4);
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t j = 0; j < n_columns; j++)
            block[i * n_columns + j] = (uint32_t)((row + i) * kept->shape[1] + column + j);
    int r = chunk_sink_provider.drain(sink, start, count, block);
    free(block);
    return r;
}

Test(chunk_sink, stores_whole_chunks_of_blocks_in_any_order)
{
    static const int64_t blocks[][2] = {{1, 70}, {50, 1}, {7, 9}, {20, 30}, {50, 70}, {10, 10}};
    struct codec_pipeline pipeline = packed(), none = {.n_steps = 0};
    for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++) {
        struct kept kept = {.shape = {50, 70}, .chunk_shape = {20, 30}};
        struct chunk_grid grid;
        struct gad_error error;
        int64_t n_across = (70 - 1) / blocks[b][1] + 1, n_down = (50 - 1) / blocks[b][0] + 1;
        kept.pipeline = b % 2 ? &none : &pipeline;
        struct chunk_sink *sink = open_sink(&kept, &grid);
        for (int64_t i = n_across * n_down; i-- > 0;) { /* backwards, every third one twice */
            int64_t row = i / n_across * blocks[b][0], column = i % n_across * blocks[b][1];
            int64_t n_rows = row + blocks[b][0] > 50 ? 50 - row : blocks[b][0];
            int64_t n_columns = column + blocks[b][1] > 70 ? 70 - column : blocks[b][1];
            if (i == 0)
                cr_assert(eq(int, chunk_sink_finish(sink, "x", &error), GAD_INTERNAL));
            for (int times = i % 3 ? 1 : 2; times > 0; times--)
                cr_assert(eq(int, drain(sink, &kept, row, column, n_rows, n_columns), 0));
        }
        for (uint64_t i = 0; i < grid.n_chunks; i++)
            cr_assert(ge(uint, kept.n_stored[i], 1));
        cr_assert(eq(int, chunk_sink_finish(sink, "x", &error), 0));
        chunk_sink_free(sink);
    }
}

struct rows {
    struct chunk_sink *sink;
    const struct kept *kept;
    atomic_int next;
};

static void *drain_rows(void *userdata)
{
    struct rows *rows = userdata;
    for (int64_t row; (row = atomic_fetch_add(&rows->next, 1)) < rows->kept->shape[0];)
        cr_assert(drain(rows->sink, rows->kept, row, 0, 1, rows->kept->shape[1]) == 0);
    return NULL;
}

Test(chunk_sink, takes_blocks_from_several_threads)
{
    struct codec_pipeline pipeline = packed();
    struct kept kept = {.shape = {300, 90}, .chunk_shape = {40, 17}, .pipeline = &pipeline};
    struct chunk_grid grid;
    struct gad_error error;
    pthread_t threads[4];
    struct rows rows = {.sink = open_sink(&kept, &grid), .kept = &kept};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, drain_rows, &rows);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cr_assert(eq(int, chunk_sink_finish(rows.sink, "x", &error), 0));
    for (uint64_t i = 0; i < grid.n_chunks; i++)
        cr_assert(eq(uint, kept.n_stored[i], 1));
    chunk_sink_free(rows.sink);
}

/* By four threads that go backwards, of 20 MiB that are not packed: a part of it waits in a file.
 */
static void *drain_backwards(void *userdata)
{
    struct rows *rows = userdata;
    const struct kept *kept = rows->kept;
    int64_t n = kept->shape[0] / kept->chunk_shape[0];
    for (int64_t row; (row = n - 1 - atomic_fetch_add(&rows->next, 1)) >= 0;)
        cr_assert(drain(rows->sink, kept, row * kept->chunk_shape[0], 0, kept->chunk_shape[0],
                        kept->shape[1]) == 0);
    return NULL;
}

Test(chunk_sink, stores_chunks_of_a_file_in_order)
{
    struct codec_pipeline none = {.n_steps = 0};
    struct chunk_grid grid;
    struct gad_error error;
    pthread_t threads[4];
    for (int round = 0; round < 4; round++) {
        struct kept kept = {.shape = {1024, 5000}, .chunk_shape = {256, 300}, .pipeline = &none};
        kept.chunk_shape[0] = round == 3 ? 64 : 256; /* 15 of 17 shards of 4 chunks are inside */
        kept.inner_shape[0] = round == 3 ? 128 : 0;
        kept.inner_shape[1] = 600;
        kept.parts = round ? PARTS_OF_SHAPE : PARTS_OF_ALL;
        kept.part_shape[0] = round == 1 ? 512 : round == 3 ? 640 : 256;
        kept.part_shape[1] = round == 1 ? 1200 : round == 3 ? 2400 : 600;
        struct rows rows = {.sink = open_sink(&kept, &grid), .kept = &kept};
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, round == 1 ? drain_rows : drain_backwards, &rows);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        cr_assert(eq(int, chunk_sink_finish(rows.sink, "x", &error), 0));
        for (uint64_t i = 0; i < grid.n_chunks; i++)
            cr_assert(eq(uint, kept.n_stored[i], 1));
        chunk_sink_free(rows.sink);
    }
}

Test(chunk_sink, says_why_a_chunk_cannot_be_written)
{
    struct codec_pipeline pipeline = packed();
    struct kept kept = {.shape = {4, 4}, .chunk_shape = {4, 4}, .pipeline = &pipeline};
    struct gad_error error = {.argument = "out"};
    struct chunk_grid grid;
    kept.fails_with = ENOSPC;
    struct chunk_sink *sink = open_sink(&kept, &grid);
    cr_assert(eq(int, drain(sink, &kept, 0, 0, 4, 4), ENOSPC));
    chunk_sink_provider.explain(sink, &error);
    cr_assert(eq(int, (int)error.status, GAD_NO_SPACE));
    cr_assert(eq(str, error.argument, "out"));
    cr_assert(strstr(error.message, "/tmp/x.h5:/d") && strstr(error.message, "as it was told"));
    chunk_sink_free(sink);
}

/* A job that is begun again: of each chunk a later part has come before an earlier one. */
Test(chunk_sink, takes_parts_that_come_again_when_their_chunk_is_stored)
{
    struct codec_pipeline pipeline = packed();
    struct kept kept = {.shape = {40, 30}, .chunk_shape = {20, 30}, .pipeline = &pipeline};
    struct chunk_grid grid;
    struct gad_error error;
    struct chunk_sink *sink = open_sink(&kept, &grid);
    for (int64_t row = 5; row < 40; row++)
        cr_assert(eq(int, drain(sink, &kept, row, 0, 1, 30), 0));
    for (int64_t row = 0; row < 40; row++)
        cr_assert(eq(int, drain(sink, &kept, row, 0, 1, 30), 0));
    cr_assert(eq(int, chunk_sink_finish(sink, "x", &error), 0));
    cr_assert(eq(uint, kept.n_stored[0], 1));
    cr_assert(eq(uint, kept.n_stored[1], 1));
    chunk_sink_free(sink);
}

/* Memory for two chunks, and rows that cut seventeen of them, the last of which is cut by the
 * array: twice, so that places in the file are used again. */
Test(chunk_assembly, keeps_chunks_in_a_file)
{
    const int64_t shape[2] = {128, 66}, chunk_shape[2] = {64, 4};
    struct chunk_grid grid;
    struct chunk_assembly assembly;
    unsigned n_whole = 0;
    cr_assert(chunk_grid_init(&grid, 2, shape, chunk_shape, 2));
    cr_assert(eq(int, chunk_assembly_init(&assembly, &grid, shape, 2, 2 * 64 * 4 * 2, "/tmp"), 0));
    for (int64_t row = 0; row < 128; row++) {
        for (uint64_t column = 0; column < 17; column++) {
            int64_t n = column < 16 ? 4 : 2;
            uint64_t index = (uint64_t)(row / 64) * 17 + column;
            uint16_t line[4];
            struct assembled_chunk *whole;
            struct box box;
            for (int i = 0; i < 4; i++)
                line[i] = (uint16_t)(row * 100 + (int64_t)column);
            box.n = 0;
            box_add(&box, n, 2, 2);
            cr_assert(
                eq(int, chunk_assembly_add(&assembly, index, &box, row % 64 * 8, line, &whole), 0));
            if (!whole)
                continue;
            const uint16_t *elements = (const uint16_t *)whole->elements;
            for (int e = 0; e < 64 * 4; e++) {
                int64_t wanted = (row / 64 * 64 + e / 4) * 100 + (int64_t)column;
                cr_assert(eq(u32, elements[e], e % 4 < n ? (uint16_t)wanted : 0));
            }
            chunk_assembly_end(&assembly, whole);
            n_whole++;
        }
    }
    cr_assert(eq(uint, n_whole, 34));
    cr_assert(eq(u64, assembly.n_begun, 0));
    cr_assert(eq(u64, assembly.n_places, 15)); /* those of the upper chunks were used again */
    chunk_assembly_deinit(&assembly);
}
