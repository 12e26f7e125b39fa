/* Chunk sources: blocks of selections, whatever the chunks' order, by several threads; each chunk
 * once; what fails is said. */
#include "client/codecs/codec.h"
#include "client/formats/chunked/chunk_source.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define N_CHUNKS_MAX 256

/* A made array: element = its index in C order; chunks are made when they are fetched. */
struct made {
    int ndim;
    int64_t shape[3], chunk_shape[3];
    int order[3];
    const struct codec_pipeline *pipeline;
    atomic_uint n_fetched[N_CHUNKS_MAX];
    uint64_t absent, failing, damaged; /* of these chunks, UINT64_MAX: none */
};

static int fetch(void *state, uint64_t index, const int64_t *place, struct chunk_bytes *ret)
{
    struct made *made = state;
    uint32_t elements[4096];
    int64_t at[3] = {0};
    size_t n = 1;
    made->n_fetched[index]++;
    if (index == made->failing)
        return EIO;
    if (index == made->absent) {
        ret->is_absent = true;
        return 0;
    }
    for (int i = 0; i < made->ndim; i++)
        n *= (size_t)made->chunk_shape[i];
    for (size_t e = 0; e < n; e++) {
        int64_t value = 0;
        for (int i = 0; i < made->ndim; i++)
            value = value * made->shape[i] + place[i] + at[i];
        elements[e] = (uint32_t)value;
        for (int k = made->ndim - 1; k >= 0; k--) {
            int axis = made->order[k];
            if (++at[axis] < made->chunk_shape[axis])
                break;
            at[axis] = 0;
        }
    }
    struct codec_scratch *scratch = codec_scratch_new();
    const void *stored;
    size_t n_stored;
    cr_assert(codec_encode(made->pipeline, scratch, elements, n * 4, &stored, &n_stored,
                           &ret->skipped) == 0);
    cr_assert(chunk_bytes_reserve(ret, n_stored) == 0);
    memcpy(ret->data, stored, n_stored);
    if (index == made->damaged)
        ((uint8_t *)ret->data)[n_stored / 2] ^= 0xff;
    codec_scratch_free(scratch);
    return 0;
}

static struct codec_pipeline packed(void)
{
    struct codec_pipeline pipeline = {.n_steps = 3};
    pipeline.steps[0] =
        (struct codec_step){.codec = codec_of_name("shuffle"), .n_values = 1, .values = {4}};
    pipeline.steps[1] = (struct codec_step){.codec = codec_of_name("deflate"), .is_optional = true};
    pipeline.steps[2] = (struct codec_step){.codec = codec_of_name("fletcher32")};
    return pipeline;
}

static const uint32_t fill_value = 0xabcdef01;

static struct chunk_source *open_made(struct made *made, const struct selection *selection)
{
    struct chunk_source *source = NULL;
    struct gad_error error;
    struct chunk_layout layout = {
        .shape = made->shape,
        .item_bytes = 4,
        .order = made->order,
        .fill = &fill_value,
        .selection = selection,
        .pipeline = made->pipeline,
        .fetch = fetch,
        .state = made,
        .path = "x.h5",
        .dataset = "/d",
    };
    cr_assert(chunk_grid_init(&layout.grid, made->ndim, made->shape, made->chunk_shape, 4));
    cr_assert(layout.grid.n_chunks <= N_CHUNKS_MAX);
    cr_assert(eq(int, chunk_source_new(&layout, "x", &source, &error), 0));
    return source;
}

/* What a block should have. */
static void check_block(const struct made *made, const struct selection *selection,
                        const int64_t *start, const int64_t *count, const uint32_t *block)
{
    int64_t at[ARRAY_MAX_NDIM] = {0};
    size_t n = 1;
    for (int i = 0; i < selection->ndim; i++)
        n *= (size_t)count[i];
    for (size_t e = 0; e < n; e++) {
        int64_t index[3], value = 0;
        uint64_t chunk = 0;
        for (int k = 0; k < made->ndim; k++)
            index[k] = selection->axes[k].start;
        for (int i = 0; i < selection->ndim; i++)
            if (selection->axis_of[i] != SELECTION_NEW_AXIS)
                index[selection->axis_of[i]] +=
                    (start[i] + at[i]) * selection->axes[selection->axis_of[i]].step;
        for (int k = 0; k < made->ndim; k++) {
            value = value * made->shape[k] + index[k];
            chunk = chunk * (uint64_t)((made->shape[k] - 1) / made->chunk_shape[k] + 1) +
                    (uint64_t)(index[k] / made->chunk_shape[k]);
        }
        uint32_t wanted = chunk == made->absent ? fill_value : (uint32_t)value;
        cr_assert(block[e] == wanted, "element %zu: %u, not %u", e, block[e], wanted);
        for (int i = selection->ndim - 1; i >= 0 && ++at[i] == count[i]; i--)
            at[i] = 0;
    }
}

static struct made make(const struct codec_pipeline *pipeline)
{
    struct made made = {
        .ndim = 3,
        .shape = {13, 22, 31},
        .chunk_shape = {4, 5, 8},
        .order = {0, 1, 2},
        .pipeline = pipeline,
        .absent = UINT64_MAX,
        .failing = UINT64_MAX,
        .damaged = UINT64_MAX,
    };
    return made;
}

static void check_random_blocks(struct made *made, const struct selection *selection, int n_blocks)
{
    struct chunk_source *source = open_made(made, selection);
    static uint32_t block[13 * 22 * 31];
    for (int round = 0; round < n_blocks; round++) {
        int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
        for (int i = 0; i < selection->ndim; i++) {
            int64_t size = selection_size(selection, i);
            start[i] = rand() % size;
            count[i] = 1 + rand() % (size - start[i]);
        }
        cr_assert(eq(int, chunk_source_provider.fill(source, start, count, block), 0));
        check_block(made, selection, start, count, block);
    }
    chunk_source_free(source);
}

Test(chunk_source, gives_blocks_of_the_whole_array)
{
    struct codec_pipeline pipeline = packed(), none = {.n_steps = 0};
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    for (int i = 0; i < 3; i++) {
        struct made made = make(i == 1 ? &none : &pipeline);
        struct selection whole;
        memcpy(made.order, orders[i], sizeof(made.order));
        made.absent = 7;
        selection_whole(3, made.shape, &whole);
        check_random_blocks(&made, &whole, 60);
    }
}

Test(chunk_source, gives_blocks_of_selections)
{
    static const char *const texts[] = {"a[::-1, 3:20:4, ::2]", "a[5, ::-3, None, 30::-7]",
                                        "a[..., 11]",           "a[2:3, 4, 8:16]",
                                        "a[12:0:-5, 0:22:21]",  "a[0]"};
    struct codec_pipeline pipeline = packed();
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct made made = make(&pipeline);
        struct selection selection;
        struct gad_error error;
        made.absent = 30;
        cr_assert(eq(int, selection_read(texts[i], 1, 3, made.shape, &selection, &error), 0));
        check_random_blocks(&made, &selection, 40);
    }
}

struct walk { /* of one thread: every n-th of the blocks of two rows */
    struct chunk_source *source;
    const struct made *made;
    const struct selection *selection;
    atomic_int *next;
};

static void *walk(void *userdata)
{
    struct walk *w = userdata;
    uint32_t *block = malloc(2 * 22 * 31 * 4);
    for (int64_t row; (row = 2 * atomic_fetch_add(w->next, 1)) < w->made->shape[0];) {
        int64_t start[3] = {row, 0, 0};
        int64_t count[3] = {row + 2 <= w->made->shape[0] ? 2 : 1, 22, 31};
        cr_assert(chunk_source_provider.fill(w->source, start, count, block) == 0);
        check_block(w->made, w->selection, start, count, block);
    }
    free(block);
    return NULL;
}

Test(chunk_source, fetches_each_chunk_once_for_all_threads)
{
    struct codec_pipeline pipeline = packed();
    struct made made = make(&pipeline);
    struct selection whole;
    pthread_t threads[4];
    atomic_int next = 0;
    made.shape[0] = 26;
    selection_whole(3, made.shape, &whole);
    struct chunk_source *source = open_made(&made, &whole);
    struct walk w = {source, &made, &whole, &next};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, walk, &w);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 7 * 5 * 4; i++)
        cr_assert(eq(uint, made.n_fetched[i], 1), "chunk %d", i);
    chunk_source_free(source);
}

static const char *why(struct made *made, enum gad_status *ret_status)
{
    static struct gad_error error;
    struct selection whole;
    static uint32_t block[13 * 22 * 31];
    const int64_t start[3] = {0};
    selection_whole(3, made->shape, &whole);
    struct chunk_source *source = open_made(made, &whole);
    memset(&error, 0, sizeof(error));
    cr_assert(chunk_source_provider.fill(source, start, made->shape, block) > 0);
    chunk_source_provider.explain(source, &error);
    chunk_source_free(source);
    *ret_status = error.status;
    return error.message;
}

Test(chunk_source, says_which_chunk_cannot_be_had)
{
    struct codec_pipeline pipeline = packed();
    struct made made = make(&pipeline);
    enum gad_status status;
    made.damaged = 23;
    const char *text = why(&made, &status);
    cr_assert(eq(int, (int)status, GAD_PROVIDER_FAILED));
    cr_assert(strstr(text, "x.h5:/d: the chunk at (4, 0, 24): fletcher32") != NULL, "%s", text);
    made.damaged = UINT64_MAX;
    made.failing = 1;
    text = why(&made, &status);
    cr_assert(eq(int, (int)status, GAD_PROVIDER_FAILED));
    cr_assert(strstr(text, "(0, 0, 8): Input/output error") != NULL, "%s", text);
}
