/* Rows that a process copies are those that are read without it. What happens where it is killed is
 * tests/integration/python/files/test_copied_rows.py. */
#include "client/lib/scans/row_copier.h"
#include "client/lib/memory/region.h"
#include "client/rows/gather.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_ROWS    5000
#define WIDTH     100 /* of float: a row has 400 bytes, all of them 2 MB */
#define ROW_BYTES (WIDTH * sizeof(float))

static char folder[] = "/tmp/gpuarrayd-copier-XXXXXX", path[64];
static struct row_source source;
static struct region *region;
static struct row_copier *copier;

/* The library looks for the program beside itself, which is in this test. */
static void put_program(void)
{
    char own[256] = "", place[300];
    cr_assert(lt(i64, 0, readlink("/proc/self/exe", own, sizeof(own) - 1)));
    *strrchr(own, '/') = '\0';
    snprintf(place, sizeof(place), "%s/scan", own);
    mkdir(place, 0755);
    snprintf(place, sizeof(place), "%s/scan/gpuarrayd-scan", own);
    (void)!symlink(getenv("GPUARRAYD_SCAN"), place); /* which may be there */
    cr_assert(eq(int, access(place, X_OK), 0));
}

static void begin(void)
{
    static float rows[N_ROWS][WIDTH];
    struct gad_error error;
    struct gad_array *array;
    put_program();
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/x.raw", folder);
    for (int i = 0; i < N_ROWS; i++)
        for (int k = 0; k < WIDTH; k++)
            rows[i][k] = (float)(i * 1000 + k);
    FILE *file = fopen(path, "wb");
    fwrite(rows, 1, sizeof(rows), file);
    cr_assert(eq(int, fclose(file), 0));
    char spec[128];
    snprintf(spec, sizeof(spec), "%s:f4:%dx%d", path, N_ROWS, WIDTH);
    cr_assert(eq(int, (int)gad_array_open(NULL, spec, &array, &error), 0), "%s", error.message);
    cr_assert(eq(int, row_source_init(&source, array, "x", &error), 0));
    gad_array_release(array);
    cr_assert(eq(int, region_new(sizeof(rows), &region, &error), 0));
    const struct copied_memory memory = {region->fd, region->map, region->size_bytes};
    copier = row_copier_new(&memory);
    cr_assert(copier && row_copier_can_copy(&source) && row_copier_is_in_memory(&source));
    cr_assert(row_copier_add(copier, &source));
}

static void finish(void)
{
    row_copier_free(copier);
    row_source_deinit(&source);
    region_free(region);
    unlink(path);
    rmdir(folder);
}

TestSuite(row_copier, .init = begin, .fini = finish);

/* n rows out of order, from number `first` on, to memory; returns how many failed. */
static int check_rows(int64_t n, int64_t first, char *to, int64_t n_there)
{
    static int64_t rows[N_ROWS];
    static uint8_t failed[N_ROWS];
    const struct gather_options options = {.failed = failed, .mark = 1};
    const struct row_target target = {&to, (uint64_t)n + 1, ROW_BYTES};
    struct row_failure failure;
    struct row_order order;
    int n_failed = 0;
    for (int64_t i = 0; i < n; i++)
        rows[i] = first + i * 7 % n;
    memset(to, 0, (size_t)n * ROW_BYTES);
    memset(failed, 0, sizeof(failed));
    cr_assert(eq(int, row_order_init(&order, (uint64_t)n, rows), 0));
    cr_assert(eq(int, gather(&source, &order, &target, &options, &failure), 0));
    row_order_deinit(&order);
    for (int64_t i = 0; i < n; i++) {
        const float *row = (const float *)(to + (size_t)i * ROW_BYTES);
        cr_assert(eq(int, failed[i], rows[i] >= n_there));
        n_failed += failed[i];
        for (int k = 0; k < WIDTH && !failed[i]; k++)
            cr_assert(row[k] == (float)(rows[i] * 1000 + k), "row %ld", rows[i]);
    }
    return n_failed;
}

Test(row_copier, brings_what_is_read_without_it)
{
    static char elsewhere[N_ROWS * ROW_BYTES];
    cr_assert(eq(int, check_rows(N_ROWS - 1, 0, region->map, N_ROWS), 0));
    cr_assert(row_copier_is_in_use(copier));
    cr_assert(eq(int, check_rows(10, 4000, region->map, N_ROWS), 0)); /* few are read */
    cr_assert(row_copier_is_in_use(copier));
    cr_assert(eq(int, check_rows(1000, 500, elsewhere, N_ROWS), 0)); /* it has no other memory */
    cr_assert(not(row_copier_is_in_use(copier)));
    cr_assert(eq(int, check_rows(1000, 3000, region->map, N_ROWS), 0));
    cr_assert(row_copier_is_in_use(copier));
}

Test(row_copier, looks_for_rows_in_memory_before_it_asks)
{
    cr_assert(eq(int, check_rows(N_ROWS - 1, 0, region->map, N_ROWS), 0));
    cr_assert(eq(int, truncate(path, 4096 * 100), 0));
    /* Behind the end of a file that was cut there is nothing: the process would end by it. */
    cr_assert(eq(int, check_rows(N_ROWS - 1, 0, region->map, 1024), N_ROWS - 1 - 1024));
    cr_assert(not(row_copier_is_in_use(copier)));
    cr_assert(eq(int, check_rows(1000, 0, region->map, 1024), 0));
    cr_assert(row_copier_is_in_use(copier));
}

Test(row_copier, brings_more_rows_than_a_list_has)
{
    enum { N = N_ROWS * WIDTH };
    static int64_t rows[N];
    const struct copied_memory memory = {region->fd, region->map, region->size_bytes};
    const struct gather_options options = {0};
    const struct row_target target = {&region->map, N, sizeof(float)};
    struct row_copier *other = row_copier_new(&memory);
    struct gad_array *array;
    struct row_failure failure;
    struct row_source small;
    struct row_order order;
    struct gad_error error;
    char spec[128];
    snprintf(spec, sizeof(spec), "%s:f4:%d", path, N);
    cr_assert(eq(int, (int)gad_array_open(NULL, spec, &array, &error), 0), "%s", error.message);
    cr_assert(eq(int, row_source_init(&small, array, "x", &error), 0));
    gad_array_release(array);
    cr_assert(other && row_copier_add(other, &small));
    for (int64_t i = 0; i < N; i++)
        rows[i] = i * 7919 % N;
    cr_assert(eq(int, row_order_init(&order, N, rows), 0));
    cr_assert(eq(int, gather(&small, &order, &target, &options, &failure), 0));
    row_order_deinit(&order);
    cr_assert(row_copier_is_in_use(other));
    for (int64_t i = 0; i < N; i++)
        cr_assert(((float *)region->map)[i] == (float)(rows[i] / WIDTH * 1000 + rows[i] % WIDTH));
    row_copier_free(other);
    row_source_deinit(&small);
}
