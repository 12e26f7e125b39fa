/* Which jobs can read or write a stream: once, in C order, within the ring. */
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static struct request_arg args[2];
static struct request_output output;
static struct job_request request;
static struct plan plan;
static struct gad_error error;

static const struct plan_limits limits = {.engine = &plan_cpu,
                                          .pool_bytes = 32u << 20,
                                          .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                          .carry_limit_bytes = 16u << 20,
                                          .n_threads = 2,
                                          .memory_bytes = UINT64_C(8) << 30};

static const struct plan_limits device = {.engine = &plan_cuda,
                                          .pool_bytes = 512u << 20,
                                          .slot_bytes = 16u << 20,
                                          .carry_limit_bytes = 16u << 20,
                                          .n_threads = 2,
                                          .memory_bytes = UINT64_C(8) << 30};
static const struct plan_limits *with = &limits;

static void set_array(struct array *array, int ndim, const int64_t *shape, bool is_stream)
{
    *array = (struct array){.dtype = DTYPE_FLOAT64, .ndim = ndim, .at.kind = LOCATION_REGION};
    memcpy(array->shape, shape, (size_t)ndim * sizeof(*shape));
    array_c_strides(ndim, shape, 8, array->strides);
    if (!is_stream)
        return;
    array->at.kind = LOCATION_PROVIDER;
    array->at.provider.is_stream = true;
    array->at.provider.n_slots = 16;
    array->at.provider.slot_bytes = 256 * 1024;
}

/* a is a stream, b is not. */
static void set_args(int ndim, const int64_t *a_shape, int b_ndim, const int64_t *b_shape)
{
    memset(args, 0, sizeof(args));
    snprintf(args[0].name, sizeof(args[0].name), "a");
    snprintf(args[1].name, sizeof(args[1].name), "b");
    set_array(&args[0].array, ndim, a_shape, true);
    set_array(&args[1].array, b_ndim, b_shape, false);
    output = (struct request_output){.name = "r"};
}

static void reverse_strides(struct array *array)
{
    int64_t step = 8;
    for (int i = 0; i < array->ndim; i++) {
        array->strides[i] = step;
        step *= array->shape[i];
    }
}

static int plan_of(const char *expr)
{
    struct program *program;
    output.expr = expr;
    output.n_expr_chars = strlen(expr);
    request = (struct job_request){.n_args = 2, .args = args, .n_outputs = 1, .outputs = &output};
    for (int i = 0; i < 2; i++)
        if (args[i].array.is_open)
            request.open_length = args[i].array.shape[0];
    cr_assert(zero(int, program_compile(&request, &program, &error)), "%s", error.message);
    int r = plan_make(&request, program, false, with, &plan, &error);
    program_free(program);
    return r;
}

static void expect_refusal(const char *expr, const char *name, const char *found)
{
    cr_assert(eq(int, plan_of(expr), GAD_BAD_ARGUMENT), "%s", expr);
    cr_assert(eq(str, error.argument, (char *)name), "%s", expr);
    cr_assert(eq(str, error.found, (char *)found), "%s", expr);
    cr_assert(eq(str, error.expected, (char *)"one pass in C order"));
}

Test(streams, are_read_once_in_order)
{
    static const char *const exprs[] = {"a + b",          "sum(a)",
                                        "sum(a, axis=1)", "sum(a, axis=0)",
                                        "std(a)",         "cumsum(a, axis=0)",
                                        "mean(a) + b",    "histogram(a, 10, range=(0, 1))[0]"};
    const int64_t shape[] = {100000, 300};
    for (size_t i = 0; i < ARRAY_LENGTH(exprs); i++) {
        set_args(2, shape, 2, shape);
        cr_assert(zero(int, plan_of(exprs[i])), "%s: %s", exprs[i], error.message);
    }
}

Test(streams, are_not_read_in_several_passes)
{
    const int64_t shape[] = {100000, 300};
    set_args(2, shape, 2, shape);
    expect_refusal("a - mean(a)", "a", "reads it in several passes");
    expect_refusal("median(a)", "a", "reads it in several passes");
    static const char *const apart[] = {"sum(a, axis=0) + sum(sum(a, axis=1))",
                                        "std(a) + max(a, axis=0)", "argmax(a) + sum(a, axis=0)"};
    for (size_t i = 0; i < ARRAY_LENGTH(apart); i++) {
        cr_assert(eq(int, plan_of(apart[i]), GAD_BAD_ARGUMENT), "%s", apart[i]);
        cr_assert(eq(str, error.found, (char *)"reduces it along different axes"), "%s", apart[i]);
    }
}

Test(streams, are_reduced_along_the_first_axis_and_others_in_one_pass)
{
    static const char *const exprs[] = {
        "sum(a, axis=0) + mean(a)", "max(a) - max(a, axis=0)",
        "sum(a, axis=0) + max(max(a, axis=0))",
        "nanmin(a) + nansum(a, axis=0) + count_nonzero(a) + any(a, axis=0)",
        "prod(a, keepdims=True) + ptp(a, axis=0) + norm(a)"};
    const int64_t shape[] = {100000, 300};
    set_args(2, shape, 2, shape);
    for (size_t i = 0; i < ARRAY_LENGTH(exprs); i++)
        cr_assert(zero(int, plan_of(exprs[i])), "%s: %s", exprs[i], error.message);
}

Test(streams, are_no_operands_and_results_of_products)
{
    const int64_t shape[] = {300, 300};
    const char *found = "is a matrix product, which has an order of its own";
    set_args(2, shape, 2, shape);
    expect_refusal("a @ b", "a", found);
    expect_refusal("b @ a.T", "a", found);
    output.has_to = true;
    set_array(&output.to, 2, shape, true);
    expect_refusal("b @ b", "r", found);
}

/* Kept axes are walked before reduced ones, so a row must be in one grain. */
Test(streams, of_wide_rows_are_not_reduced_along_the_first_axis)
{
    const int64_t shape[] = {1000, 1000000};
    set_args(2, shape, 2, shape);
    expect_refusal("sum(a, axis=0)", "a",
                   "works on parts of more rows at a time than its ring holds");
    cr_assert(zero(int, plan_of("sum(a, axis=1)")), "%s", error.message);
    cr_assert(zero(int, plan_of("-a")), "%s", error.message);
}

Test(streams, are_not_asked_for_the_same_again)
{
    const int64_t column[] = {1000, 1}, row[] = {1000000};
    set_args(2, column, 1, row);
    expect_refusal("a + b", "a", "needs the same elements again and again");
}

/* The grains are squares, and a row of squares is wider than the ring. */
Test(streams, share_rows_among_no_more_grains_than_the_ring_has_slots)
{
    const int64_t wide[] = {100000, 100000}, narrow[] = {100000, 1000};
    set_args(2, wide, 2, wide);
    reverse_strides(&args[1].array);
    expect_refusal("a + b", "a", "works on parts of more rows at a time than its ring holds");
    set_args(2, narrow, 2, narrow);
    reverse_strides(&args[1].array);
    cr_assert(zero(int, plan_of("a + b")), "%s", error.message);
}

Test(streams, are_written_in_order)
{
    const int64_t shape[] = {100000, 1000};
    set_args(2, shape, 2, shape);
    output.has_to = true;
    set_array(&output.to, 2, shape, true);
    cr_assert(zero(int, plan_of("a - b")), "%s", error.message);
    reverse_strides(&args[1].array);
    expect_refusal("-b", "r", "goes through its axes in another order");
}

/* How many grains of rings a tile takes ------------------------------------------------------- */

static uint64_t tile_grains(const char *expr)
{
    cr_assert(zero(int, plan_of(expr)), "%s: %s", expr, error.message);
    return UINT64_C(1) << plan.passes[0].tile_log2;
}

Test(streams, give_a_device_as_many_blocks_as_leave_others_to_the_client)
{
    const int64_t shape[] = {32768 * 64}, chunk[] = {4 * 32768};
    set_args(1, shape, 1, shape);
    cr_assert(eq(u64, tile_grains("a + b"), 1)); /* grain by grain */
    with = &device;
    cr_assert(eq(u64, tile_grains("a + b"), 8));
    output.has_to = true;
    set_array(&output.to, 1, shape, true);
    cr_assert(eq(u64, tile_grains("a + b"), 4));
    for (unsigned n = 1; n <= 3; n++) { /* a tile needs one of them, whatever there is */
        args[0].array.at.provider.n_slots = output.to.at.provider.n_slots = n;
        cr_assert(eq(u64, tile_grains("a + b"), 1));
    }
    output.has_to = false;
    struct location *at = &args[0].array.at;
    at->provider.n_slots = 4; /* each of several grains */
    at->provider.slot_bytes = 1 << 20;
    at->provider.has_chunks = true;
    memcpy(at->provider.chunk_shape, chunk, sizeof(chunk));
    cr_assert(eq(u64, tile_grains("a + b"), 8));
    with = &limits;
}

/* Open ones -------------------------------------------------------------------------------------
 */

#define OPEN_ROWS ((INT64_C(1) << 40) - 3)

static void set_open(int64_t n_columns)
{
    const int64_t shape[] = {OPEN_ROWS, n_columns}, row[] = {n_columns};
    set_args(2, shape, 1, row);
    args[0].array.is_open = true;
}

/* Of so many rows: the grains that have some, and the tiles that have some of these. */
static void check_end(const struct plan_pass *pass, int64_t n_rows)
{
    uint64_t n_grains = plan_open_grains(pass, n_rows), n_tiles = plan_open_tiles(pass, n_grains);
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    uint64_t first, n;
    for (uint64_t i = n_tiles > 2 ? n_tiles - 2 : 0; i < n_tiles + 2; i++) {
        plan_tile_grains(pass, i, &first, &n);
        cr_assert(eq(int, first < n_grains, i < n_tiles), "tile %llu", (unsigned long long)i);
    }
    for (uint64_t i = n_grains > 2 ? n_grains - 2 : 0; i < n_grains + 2; i++) {
        geometry_grain(&pass->geometry, i, start, count);
        cr_assert(eq(int, start[pass->open_axis] < n_rows, i < n_grains));
        plan_open_clip(pass, n_rows, start, count);
        cr_assert(le(i64, 0, count[pass->open_axis]));
        cr_assert(eq(int, count[pass->open_axis] > 0, i < n_grains));
        if (i < n_grains)
            cr_assert(le(i64, start[pass->open_axis] + count[pass->open_axis], n_rows));
    }
}

Test(streams, that_are_open_end_anywhere)
{
    static const char *const exprs[] = {"a + b",          "sum(a)", "sum(a, axis=1)",
                                        "sum(a, axis=0)", "-a",     "cumsum(a, axis=0)"};
    const int64_t columns[] = {1, 3, 300, 100000};
    for (size_t i = 0; i < ARRAY_LENGTH(exprs); i++)
        for (size_t k = 0; k < ARRAY_LENGTH(columns); k++) {
            set_open(columns[k]);
            if (k == 3 && (i == 3 || i == 5))
                continue; /* a row is wider than a grain */
            cr_assert(zero(int, plan_of(exprs[i])), "%s: %s", exprs[i], error.message);
            for (unsigned pass = 0; pass < plan.n_passes; pass++) {
                const struct plan_pass *planned = &plan.passes[pass];
                if (!planned->has_open_axis)
                    continue;
                int64_t n = planned->geometry.grain_shape[planned->open_axis];
                for (int64_t rows = 0; rows < 40 * n; rows += 1 + (rows % 3) * n / 2)
                    check_end(planned, rows);
            }
        }
}

/* Grains of known streams are those of open ones. */
Test(streams, are_cut_as_if_they_had_no_end)
{
    const int64_t shape[] = {100000, 30};
    set_open(30);
    cr_assert(zero(int, plan_of("sum(a)")), "%s", error.message);
    struct geometry open = plan.passes[0].geometry;
    unsigned leaf_log2 = plan.passes[0].leaf_log2;
    set_args(2, shape, 2, shape);
    cr_assert(zero(int, plan_of("sum(a)")), "%s", error.message);
    cr_assert(eq(i64, plan.passes[0].geometry.grain_shape[0], open.grain_shape[0]));
    cr_assert(eq(i64, plan.passes[0].geometry.grain_shape[1], open.grain_shape[1]));
    cr_assert(eq(uint, plan.passes[0].leaf_log2, leaf_log2));
}

Test(streams, that_are_open_are_refused_where_they_must_be_known)
{
    static const struct {
        const char *expr, *found;
    } cases[] = {
        {"a - mean(a, axis=0)", "reads it in several passes"},
        {"sum(max(a, axis=1))", "would keep something of each row for later"},
        {"sum(a) + sum(b)", "needs its length before it is read"},
        {"a @ ones", "multiplies matrices along it"},
    };
    const int64_t square[] = {3, 3}, long_row[] = {OPEN_ROWS, 7};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        set_open(3);
        if (i == 2)
            set_array(&args[1].array, 2, long_row, false); /* as long, and not open */
        if (i == 3) {
            snprintf(args[1].name, sizeof(args[1].name), "ones");
            set_array(&args[1].array, 2, square, false);
        }
        cr_assert(eq(int, plan_of(cases[i].expr), GAD_BAD_ARGUMENT), "%s", cases[i].expr);
        cr_assert(eq(str, error.argument, (char *)"a"));
        cr_assert(eq(str, error.found, (char *)cases[i].found), "%s: %s", cases[i].expr,
                  error.message);
    }
}
