/* Where a mask is true: an output of bool that keeps a bit for each element, and the positions of
 * those that are set as an array.
 *
 * Bits that were never set take no memory, but where neighbours of theirs were. Blocks of
 * positions are found by how many there are before each segment of bits, which is counted once. A
 * block that is written again, by a job that was begun again, sets its bits anew.
 *
 * Bits are written by one thread at a time, and read by any number after that.
 *
 * Called by programs, and by take.c.
 */
#include "client/array.h"
#include "client/gpuarrayd-take.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "proto/util.h"

#include <string.h>

#define SEGMENT_WORDS 1024 /* of 64 bits */

struct marks {
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    size_t n_words;
    uint64_t *words;
};

struct positions {
    struct gad_array *array; /* a reference: the marks */
    const struct marks *marks;
    size_t n_segments;
    int64_t *before; /* n_segments + 1: how many are set before each of them, and at all */
};

/* Writing -------------------------------------------------------------------------------------- */

/* n bools as bits from `at` on. */
static void set_bits(uint64_t *words, size_t at, const uint8_t *from, size_t n)
{
    while (n > 0) {
        size_t bit = at % 64, some = min_u64(64 - bit, n);
        uint64_t bits = 0, mask = (some == 64 ? 0 : UINT64_C(1) << some) - 1;
        for (size_t i = 0; i < some; i++)
            bits |= (uint64_t)(from[i] != 0) << i;
        uint64_t *word = &words[at / 64], now = (*word & ~(mask << bit)) | bits << bit;
        if (*word != now) /* else memory that has no page yet would get one */
            *word = now;
        at += some;
        from += some;
        n -= some;
    }
}

static int drain(void *state, const int64_t *start, const int64_t *count, const void *block)
{
    struct marks *marks = state;
    int64_t index[ARRAY_MAX_NDIM];
    int last = marks->ndim - 1, i;
    size_t n = last < 0 ? 1 : (size_t)count[last];
    const uint8_t *from = block;
    for (i = 0; i <= last; i++) {
        if (count[i] == 0)
            return 0;
        index[i] = start[i];
    }
    do {
        int64_t at = 0;
        for (i = 0; i <= last; i++)
            at = at * marks->shape[i] + index[i];
        set_bits(marks->words, (size_t)at, from, n);
        from += n;
        for (i = last - 1; i >= 0 && ++index[i] == start[i] + count[i]; i--)
            index[i] = start[i];
    } while (i >= 0);
    return 0;
}

static const struct provider marks_provider = {.is_quick = true, .drain = drain};

static void free_marks(struct gad_array *array)
{
    struct marks *marks = array->format_state;
    free(marks->words);
    free(marks);
}

static struct gad_array *new_array(struct gad_client *client, const struct array *described,
                                   const struct provider *provider, void *state,
                                   void (*maker_free)(struct gad_array *array))
{
    struct gad_array *array = array_new(client, "blocks", ACCESS_PROVIDER, NULL);
    if (!array)
        return NULL;
    memory_fill_info(array, described);
    array->provider = provider;
    array->provider_state = array->format_state = state;
    array->maker_free = maker_free;
    return array;
}

enum gad_status gad_array_new_marks(struct gad_client *client, int ndim, const int64_t *shape,
                                    struct gad_array **ret_marks, struct gad_error *error)
{
    struct array described;
    struct gad_layout layout = {.dtype = GAD_BOOL, .ndim = ndim, .shape = shape};
    if (!client || !ret_marks)
        return error_set(error, GAD_BAD_ARGUMENT, client ? "ret_marks" : "client", "is NULL");
    int r = memory_describe(&layout, &described, error);
    if (r)
        return client_status(r, error);
    struct marks *marks = calloc(1, sizeof(*marks));
    if (!marks)
        return client_status(-ENOMEM, error);
    marks->ndim = ndim;
    memcpy(marks->shape, described.shape, sizeof(marks->shape));
    marks->n_words = (size_t)divide_up_i64(array_n_elements(&described), 64);
    marks->words = calloc(marks->n_words + 1, sizeof(*marks->words));
    struct gad_array *array =
        marks->words ? new_array(client, &described, &marks_provider, marks, free_marks) : NULL;
    if (!array) {
        free(marks->words);
        free(marks);
        return client_status(-ENOMEM, error);
    }
    array->is_writable = array->is_write_only = true;
    *ret_marks = array;
    return GAD_OK;
}

/* Reading -------------------------------------------------------------------------------------- */

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    const struct positions *positions = state;
    int64_t *to = ret_block, n = count[0];
    if (n == 0)
        return 0;
    size_t low = 0, high = positions->n_segments; /* the first one is in [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (positions->before[middle] <= start[0])
            low = middle;
        else
            high = middle;
    }
    int64_t skipped = start[0] - positions->before[low];
    for (size_t i = low * SEGMENT_WORDS; n > 0 && i < positions->marks->n_words; i++) {
        uint64_t word = positions->marks->words[i];
        int64_t n_set = __builtin_popcountll(word);
        if (skipped >= n_set) {
            skipped -= n_set;
            continue;
        }
        for (; skipped > 0; skipped--)
            word &= word - 1;
        for (; word && n > 0; word &= word - 1, n--)
            *to++ = (int64_t)i * 64 + __builtin_ctzll(word);
    }
    return n > 0 ? EINVAL : 0; /* somebody has written the marks meanwhile */
}

static const struct provider positions_provider = {
    .is_concurrent = true, .is_quick = true, .fill = fill};

static void free_positions(struct gad_array *array)
{
    struct positions *positions = array->format_state;
    gad_array_release(positions->array);
    free(positions->before);
    free(positions);
}

static void count_segments(struct positions *positions)
{
    const struct marks *marks = positions->marks;
    int64_t n = 0;
    for (size_t i = 0; i < marks->n_words; i++) {
        if (i % SEGMENT_WORDS == 0)
            positions->before[i / SEGMENT_WORDS] = n;
        n += __builtin_popcountll(marks->words[i]);
    }
    positions->before[positions->n_segments] = n;
}

enum gad_status gad_array_positions(struct gad_array *marks, struct gad_array **ret_positions,
                                    struct gad_error *error)
{
    if (!marks || !ret_positions)
        return error_set(error, GAD_BAD_ARGUMENT, marks ? "ret_positions" : "marks", "is NULL");
    if (marks->provider != &marks_provider)
        return error_set(error, GAD_BAD_ARGUMENT, "marks", "the array is not one of marks");
    struct positions *positions = calloc(1, sizeof(*positions));
    if (!positions)
        return client_status(-ENOMEM, error);
    positions->marks = marks->provider_state;
    positions->n_segments =
        (size_t)divide_up_i64((int64_t)positions->marks->n_words, SEGMENT_WORDS);
    positions->before = malloc((positions->n_segments + 1) * sizeof(int64_t));
    struct array described = {
        .dtype = DTYPE_INT64, .ndim = 1, .strides = {(int64_t)sizeof(int64_t)}};
    struct gad_array *array = NULL;
    if (positions->before) {
        count_segments(positions);
        described.shape[0] = positions->before[positions->n_segments];
        array =
            new_array(marks->client, &described, &positions_provider, positions, free_positions);
    }
    if (!array) {
        free(positions->before);
        free(positions);
        return client_status(-ENOMEM, error);
    }
    positions->array = array_ref(marks);
    *ret_positions = array;
    return GAD_OK;
}
