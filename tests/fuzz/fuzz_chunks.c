/* Any numbers as a grid of chunks and its table.
 *
 * The input: ndim, then shape and chunk shape as 64-bit numbers, the size of the file, and entries
 * until the bytes end. Checked: an accepted grid covers the array, its chunks begin inside it and
 * in C order, and an accepted table points into the file.
 */
#include "client/formats/chunk_grid.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

struct input {
    const uint8_t *at;
    size_t n_bytes;
};

static uint64_t take(struct input *input)
{
    uint64_t value = 0;
    size_t n = input->n_bytes < sizeof(value) ? input->n_bytes : sizeof(value);
    memcpy(&value, input->at, n);
    input->at += n;
    input->n_bytes -= n;
    return value;
}

static void check_start(const struct chunk_grid *grid, const int64_t *shape, uint64_t index)
{
    int64_t start[ARRAY_MAX_NDIM];
    uint64_t back = 0;
    chunk_grid_start(grid, index, start);
    for (int i = 0; i < grid->ndim; i++) {
        assert(start[i] >= 0 && start[i] < shape[i]);
        assert(start[i] % grid->chunk_shape[i] == 0);
        back = back * (uint64_t)grid->n_chunks_of[i] + (uint64_t)(start[i] / grid->chunk_shape[i]);
    }
    assert(back == index);
}

static void check_table(const struct chunk_grid *grid, struct input *input)
{
    struct chunk_entry entries[64];
    uint64_t file_bytes = take(input), n_absent = 0;
    size_t n = 0;
    for (; n < 64 && input->n_bytes > 0; n++) {
        entries[n].offset_bytes = take(input);
        entries[n].size_bytes = take(input);
    }
    struct gad_error error = {0};
    int r = chunk_table_check(grid, entries, n, file_bytes, "x", &n_absent, &error);
    if (r) {
        assert(r == GAD_BAD_CHUNK_TABLE || r == GAD_SHORT_READ);
        return;
    }
    assert(n == grid->n_chunks && n_absent <= n);
    for (size_t i = 0; i < n; i++)
        assert(entries[i].offset_bytes == CHUNK_ABSENT ||
               (entries[i].offset_bytes <= file_bytes &&
                grid->chunk_bytes <= file_bytes - entries[i].offset_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct input input = {data, n_bytes};
    struct chunk_grid grid;
    int64_t shape[ARRAY_MAX_NDIM] = {0}, chunk_shape[ARRAY_MAX_NDIM] = {0};
    int ndim = (int)(take(&input) % 34);
    for (int i = 0; i < ndim && i < ARRAY_MAX_NDIM; i++) {
        shape[i] = (int64_t)take(&input);
        chunk_shape[i] = (int64_t)take(&input);
    }
    if (!chunk_grid_init(&grid, ndim, shape, chunk_shape, 8))
        return 0;
    assert(grid.n_chunks > 0 && grid.chunk_bytes >= 8);
    check_start(&grid, shape, 0);
    check_start(&grid, shape, grid.n_chunks / 2);
    check_start(&grid, shape, grid.n_chunks - 1);
    check_table(&grid, &input);
    return 0;
}
