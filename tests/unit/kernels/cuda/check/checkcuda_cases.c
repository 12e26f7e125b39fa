/* Every op with every dtype, in two tiles: lengths around everything that a kernel may count by,
 * contiguous; then boxes and layouts drawn at random.
 *
 * The sources are rows of one list of awkward values, taken from another row on in each grain.
 * Exact ops must give the plain level's bits. Functions must be near the plain level's result, and
 * a row's bits must be the same wherever it lies: in every grain, at every place, in every layout.
 * Warnings are counted grain by grain; a negative power of integers fails its grain alone.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS       2100
#define MAX_ELEMENTS 4100
#define MAX_GRAINS   64

static const size_t lengths[] = {1,   2,   3,    4,    5,    6,    7,           8,   9,   10,
                                 11,  12,  13,   14,   15,   16,   17,          31,  32,  33,
                                 63,  64,  65,   127,  128,  129,  191,         255, 256, 257,
                                 511, 513, 1000, 1023, 1025, 2049, MAX_ELEMENTS};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

struct wanted { /* of a grain, by the plain level */
    char *flat[3], *result;
    size_t first_row;
    bool has_rows; /* sources are rows of the list; else they are broadcast in some way */
    int status;
    struct engine_warnings warnings;
};

static struct grain grains[MAX_GRAINS];
static struct wanted wanted[MAX_GRAINS];
static char rows[3][N_ROWS * 8], row_results[N_ROWS * 8];
static bool has_result[N_ROWS];

static void draw_rows(const struct check_case *k)
{
    check_fill_sources(k, (void *const[]){rows[0], rows[1], rows[2]}, N_ROWS, false);
    memset(has_result, 0, sizeof(has_result));
    for (unsigned j = 0; j < k->n_src; j++)
        for (size_t i = 0; k->src[j] == DTYPE_BOOL && i < N_ROWS; i++)
            if (rows[j][i] && check_below(4) == 0)
                rows[j][i] = (char)(check_below(255) + 1);
    if (k->op == OP_POWER && dtype_is_signed(k->compute))
        for (size_t i = 0; i < N_ROWS; i++)
            rows[1][(i + 1) * dtype_size(k->compute) - 1] &= 0x7f;
}

static void store_sources(const struct check_case *k, unsigned g, bool has_negative_power)
{
    struct grain *grain = &grains[g];
    struct wanted *w = &wanted[g];
    w->first_row = check_below(N_ROWS);
    w->has_rows = !has_negative_power;
    for (unsigned j = 0; j < k->n_src; j++) {
        size_t item_bytes = dtype_size(k->src[j]);
        for (size_t i = 0; i < grain->shape.n; i++)
            memcpy(w->flat[j] + i * item_bytes, rows[j] + (w->first_row + i) % N_ROWS * item_bytes,
                   item_bytes);
        if (has_negative_power && j == 1)
            memset(w->flat[1] + grain->shape.n / 2 * item_bytes, 0xff, item_bytes);
        laid_store(&grain->inputs[j], &grain->shape, k->src[j], w->flat[j]);
        for (int axis = 0; axis < grain->shape.ndim; axis++)
            w->has_rows &= !grain->inputs[j].is_broadcast[axis];
    }
}

static void report(struct checkcuda *c, const struct check_case *k, unsigned g, const char *what)
{
    const struct grain *grain = &grains[g];
    c->check.n_failed++;
    printf("FAILED %s: %s\n    seed %llu, grain %u, ", k->name, what,
           (unsigned long long)c->check.seed, g);
    shape_print(&grain->shape);
    printf("\n");
    for (unsigned j = 0; j < k->n_src; j++)
        laid_print("input", &grain->inputs[j], &grain->shape);
    laid_print("output", &grain->outputs[0], &grain->shape);
}

static void report_element(struct checkcuda *c, const struct check_case *k, unsigned g, size_t i,
                           const char *what, const void *want, const void *got)
{
    report(c, k, g, what);
    printf("    element %zu\n", i);
    for (unsigned j = 0; j < k->n_src; j++)
        check_print("source", wanted[g].flat[j] + i * dtype_size(k->src[j]), k->src[j]);
    check_print("wanted", want, k->result);
    check_print("got   ", got, k->result);
}

static bool compare_element(struct checkcuda *c, const struct check_case *k, unsigned g, size_t i)
{
    const struct wanted *w = &wanted[g];
    const struct grain *grain = &grains[g];
    size_t item_bytes = dtype_size(k->result), row = (w->first_row + i) % N_ROWS;
    const char *want = w->result + i * item_bytes;
    char item[8];
    laid_copy_item(item, laid_item(&grain->outputs[0], &grain->shape, i), item_bytes,
                   grain->outputs[0].view.is_swapped);
    const void *x = w->flat[0] + i * dtype_size(k->src[0]);
    const void *y = k->n_src > 1 ? w->flat[1] + i * dtype_size(k->src[1]) : x;
    if (k->is_exact ? !check_same(item, want, k->result) : !check_is_close(k, x, y, item, want)) {
        report_element(c, k, g, i, "not the plain level's result", want, item);
        return false;
    }
    if (!w->has_rows)
        return true;
    char *first = row_results + row * item_bytes;
    if (has_result[row] && !check_same(item, first, k->result)) {
        report_element(c, k, g, i, "another result at another place", first, item);
        return false;
    }
    memcpy(first, item, item_bytes);
    has_result[row] = true;
    return true;
}

static bool compare_grain(struct checkcuda *c, const struct check_case *k,
                          const struct cuda_tile *tile, unsigned g)
{
    const struct wanted *w = &wanted[g];
    struct engine_warnings got = {0};
    int r = cuda_tile_result(tile, g, NULL, NULL, &got);
    c->check.n_run++;
    if (r != w->status) {
        report(c, k, g, "another status");
        return false;
    }
    if (r)
        return true;
    if (got.n_divide_by_zero != w->warnings.n_divide_by_zero ||
        got.n_invalid_casts != w->warnings.n_invalid_casts) {
        report(c, k, g, "another number of warnings");
        return false;
    }
    for (size_t i = 0; i < grains[g].shape.n; i++)
        if (!compare_element(c, k, g, i))
            return false;
    if (grain_is_margin_whole(&grains[g], 0, k->result))
        return true;
    report(c, k, g, "wrote beside its output");
    return false;
}

static bool run_tile(struct checkcuda *c, const struct check_case *k, unsigned n_grains,
                     bool has_negative_power)
{
    static struct built b;
    struct cuda_tile tile;
    check_build(&b, k);
    grain_space(&b);
    rig_begin(c->rig, &tile, &b.program, 0, NULL, grains, n_grains);
    for (unsigned g = 0; g < n_grains; g++) {
        struct wanted *w = &wanted[g];
        grain_place(&grains[g], &tile);
        store_sources(k, g, has_negative_power && g % 2);
        grain_add(&grains[g], &tile);
        w->status =
            run_flat(cpu_engine_get(CPU_LEVEL_PLAIN), &b, grains[g].shape.n,
                     (const void *const *)w->flat, (void *[]){w->result}, NULL, &w->warnings);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < n_grains; g++)
        if (!compare_grain(c, k, &tile, g))
            return false;
    if (rig_is_input_whole(c->rig, &tile))
        return true;
    report(c, k, 0, "wrote to its inputs or to the code");
    return false;
}

static void run_case(struct check *check, const struct check_case *k)
{
    struct checkcuda *c = (struct checkcuda *)check; /* its first member */
    check_restart(check, k->name, 0);
    draw_rows(k);
    for (unsigned g = 0; g < N_LENGTHS; g++) {
        shape_flat(&grains[g].shape, lengths[g]);
        for (unsigned j = 0; j < k->n_src; j++)
            laid_flat(&grains[g].inputs[j], &grains[g].shape, k->src[j]);
        laid_flat(&grains[g].outputs[0], &grains[g].shape, k->result);
    }
    bool is_signed_power = k->op == OP_POWER && dtype_is_signed(k->compute);
    if (!run_tile(c, k, N_LENGTHS, false) || (is_signed_power && !run_tile(c, k, 20, true)))
        return;
    for (unsigned done = 0; done < check->n_trials; done += MAX_GRAINS) {
        unsigned n = check->n_trials - done < MAX_GRAINS ? check->n_trials - done : MAX_GRAINS;
        for (unsigned g = 0; g < n; g++) {
            shape_draw(&grains[g].shape, done + g, N_ROWS);
            for (unsigned j = 0; j < k->n_src; j++)
                grain_draw(&grains[g].inputs[j], &grains[g].shape, k->src[j], false);
            grain_draw(&grains[g].outputs[0], &grains[g].shape, k->result, true);
        }
        if (!run_tile(c, k, n, false))
            return;
    }
}

void checkcuda_cases(struct checkcuda *c)
{
    char *memory = malloc((size_t)MAX_GRAINS * 4 * MAX_ELEMENTS * 8);
    if (!memory)
        exit(2);
    for (unsigned g = 0; g < MAX_GRAINS; g++) {
        for (unsigned j = 0; j < 4; j++) {
            char *place = memory + ((size_t)g * 4 + j) * MAX_ELEMENTS * 8;
            *(j < 3 ? &wanted[g].flat[j] : &wanted[g].result) = place;
        }
    }
    check_each_case(&c->check, run_case);
    free(memory);
}
