/* Grids of chunks as arithmetic. */
#include "client/formats/chunk_grid.h"
#include "support.h"

Test(chunk_grid, counts_chunks_with_cut_edges)
{
    struct chunk_grid grid;
    const int64_t shape[3] = {132, 73, 145}, chunk[3] = {1, 73, 144};
    cr_assert(chunk_grid_init(&grid, 3, shape, chunk, 4));
    cr_assert(eq(u64, grid.n_chunks, 264));
    cr_assert(eq(u64, grid.chunk_bytes, 73 * 144 * 4));
    int64_t start[3];
    chunk_grid_start(&grid, 263, start);
    cr_assert(start[0] == 131 && start[1] == 0 && start[2] == 144);
    chunk_grid_start(&grid, 2, start);
    cr_assert(start[0] == 1 && start[1] == 0 && start[2] == 0);
}

Test(chunk_grid, allows_chunks_larger_than_the_array)
{
    struct chunk_grid grid;
    const int64_t shape[1] = {3}, chunk[1] = {1000};
    cr_assert(chunk_grid_init(&grid, 1, shape, chunk, 8));
    cr_assert(eq(u64, grid.n_chunks, 1));
}

Test(chunk_grid, refuses_what_does_not_fit)
{
    struct chunk_grid grid;
    const int64_t one[2] = {1, 1}, zero[2] = {1, 0}, negative[2] = {-1, 1};
    const int64_t huge[2] = {INT64_MAX, INT64_MAX};
    cr_assert(not(chunk_grid_init(&grid, 0, one, one, 1)));
    cr_assert(not(chunk_grid_init(&grid, 33, one, one, 1)));
    cr_assert(not(chunk_grid_init(&grid, 2, one, zero, 1)));
    cr_assert(not(chunk_grid_init(&grid, 2, one, negative, 1)));
    cr_assert(not(chunk_grid_init(&grid, 2, zero, one, 1)));
    cr_assert(not(chunk_grid_init(&grid, 2, huge, one, 1)));
    cr_assert(not(chunk_grid_init(&grid, 2, one, huge, 1)));
    cr_assert(chunk_grid_init(&grid, 1, huge, one, 1));
    cr_assert(eq(u64, grid.n_chunks, INT64_MAX));
    cr_assert(not(chunk_grid_init(&grid, 1, one, huge, 2)));
}

static const char *check(const struct chunk_entry *entries, uint64_t n, uint64_t file_bytes)
{
    struct chunk_grid grid;
    const int64_t shape[1] = {20}, chunk[1] = {10};
    uint64_t n_absent;
    cr_assert(chunk_grid_init(&grid, 1, shape, chunk, 8));
    return error_word(
        chunk_table_check(&grid, entries, n, file_bytes, "x", &n_absent, &last_error));
}

Test(chunk_grid, checks_tables)
{
    struct chunk_entry entries[2] = {{0, 80}, {80, 80}};
    cr_assert(eq(str, (char *)check(entries, 2, 160), "ok"));
    cr_assert(eq(str, (char *)check(entries, 1, 160), "bad-chunk-table"));
    cr_assert(eq(str, (char *)check(entries, 2, 159), "short-read"));
    cr_assert(eq(str, last_error.expected, "160 bytes"));
    entries[0].offset_bytes = CHUNK_ABSENT;
    cr_assert(eq(str, (char *)check(entries, 2, 160), "ok"));
    entries[1].size_bytes = 79;
    cr_assert(eq(str, (char *)check(entries, 2, 160), "bad-chunk-table"));
    entries[1] = (struct chunk_entry){UINT64_MAX - 40, 80};
    cr_assert(eq(str, (char *)check(entries, 2, UINT64_MAX), "bad-chunk-table"));
}
