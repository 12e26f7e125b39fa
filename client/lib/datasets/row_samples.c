/* What the data of a dataset is told by: a sum of a few rows of each part.
 *
 * Names, dtypes and shapes are the same for any two files of one layout; a state that is of one of
 * them has no place in the other. The rows follow from their number alone, so that copies of the
 * data in any format have the same sums: SAMPLES places of a permutation, and of short rows some
 * that come behind each of them, which are in the same chunk for the most part.
 *
 * A part has no sum where a row of it cannot be read, or not without making or decoding more than
 * MOST_BYTES for it. No sum differs from no other one.
 *
 * Taken with the first state: who never asks for one reads nothing for it.
 */
#include "client/codecs/crc32c.h"
#include "client/lib/datasets/dataset.h"
#include "client/rows/permuted.h"
#include "proto/util.h"

#define RUN_BYTES    4096 /* of short rows behind each other, at most RUN_ROWS */
#define RUN_ROWS     64
#define MOST_BYTES   (UINT64_C(16) << 20)
#define READ_BYTES   512 /* what a piece of a row costs that is read by itself */
#define SAMPLE_SEED  0
#define SAMPLE_EPOCH 0

unsigned dataset_sampled_rows(int64_t n_rows, int64_t ret_rows[DATASET_SAMPLES])
{
    struct permuted order;
    uint64_t n = min_u64((uint64_t)n_rows, DATASET_SAMPLES);
    permuted_init(&order, (uint64_t)n_rows, SAMPLE_SEED, SAMPLE_EPOCH, true);
    permuted_rows(&order, 0, n, ret_rows);
    return (unsigned)n;
}

/* Bytes that are read or decoded for one of its rows, at most. */
static uint64_t row_cost(const struct row_source *source)
{
    const struct gad_array *array = source->array;
    if (array->may_hang || array->is_in_order)
        return UINT64_MAX;
    if (source->unit_rows == 1)
        return source->row_bytes;
    if (source->is_chunked)
        return (uint64_t)source->unit_rows * source->row_bytes;
    if (array->access == ACCESS_FILE)
        return source->row_bytes / source->item_bytes * READ_BYTES;
    return (uint64_t)source->n_rows * source->row_bytes;
}

static uint32_t sum_part(struct row_source *source)
{
    int64_t rows[DATASET_SAMPLES];
    unsigned n = dataset_sampled_rows(source->n_rows, rows);
    int64_t run = RUN_BYTES / (int64_t)max_u64(source->row_bytes, 1);
    run = max_i64(1, min_i64(run, RUN_ROWS));
    _cleanup_free_ char *bytes = NULL;
    uint32_t sum = 0;
    if (row_cost(source) > MOST_BYTES)
        return DATASET_NO_SUM;
    bytes = malloc((size_t)run * source->row_bytes + 1);
    for (unsigned i = 0; i < n; i++) {
        int64_t n_read = min_i64(run, source->n_rows - rows[i]);
        size_t n_bytes = (size_t)n_read * source->row_bytes;
        if (!bytes || row_source_read(source, rows[i], n_read, bytes))
            return DATASET_NO_SUM;
        row_source_order_bytes(source, bytes, n_bytes);
        sum = sum * 31 + crc32c(bytes, n_bytes);
    }
    return sum == DATASET_NO_SUM ? DATASET_NO_SUM + 1 : sum;
}

void dataset_sample(struct gad_dataset *dataset)
{
    if (dataset->is_sampled)
        return;
    unsigned n_cheap = 0;
    for (unsigned i = 0; i < dataset->n_parts; i++)
        n_cheap += row_cost(&dataset->parts[i].source) <= MOST_BYTES;
    if (n_cheap == 0) /* what a program makes may take for ever, under the lock */
        return;
    pthread_mutex_lock(&dataset->reading);
    for (unsigned i = 0; i < dataset->n_parts && !dataset->is_sampled; i++)
        dataset->parts[i].rows_sum = sum_part(&dataset->parts[i].source);
    dataset->is_sampled = true;
    pthread_mutex_unlock(&dataset->reading);
}
