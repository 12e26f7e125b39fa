/* Counts, tables, checks and scans: the programs that they become, and what is refused. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static void check_counts(const char *exprs, int n_passes, int n_reductions, int n_checks)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, exprs), 0), "%s: %s", exprs, f->error.message);
    cr_expect(eq(int, f->program->n_passes, n_passes), "%s\n%s", exprs, f->text);
    cr_expect(eq(int, f->program->n_reductions, n_reductions), "%s\n%s", exprs, f->text);
    cr_expect(eq(int, f->program->n_checks, n_checks), "%s\n%s", exprs, f->text);
    fixture_free(f);
}

/* ---- counts ---- */

Test(expr_counts, bincount_reads_its_array_once_with_the_check)
{
    check_text("bincount(small, length=5)",
               "in0 = argument 13: int32 (5,)\n"
               "pass 0 over (5,): 2 registers\n"
               "  r0 = greater_equal.int32 in0 5\n"
               "  r1 = less.int32 in0 0\n"
               "  r0 = bitwise_or.bool r0 r1\n"
               "  r1 = int64.int32 in0\n"
               "  red0 = bincount.int64 r1 in 5 bins over axes 0: (5,) (int64)\n"
               "  red1 = count_nonzero.bool r0 (int64)\n"
               "  red1 must be below 1: 0 to 4\n"
               "pass 1 over (5,): 0 registers\n"
               "  out0 = red0 (int64)\n");
}

Test(expr_counts, bincount_checks_what_its_dtype_may_hold)
{
    struct fixture *f = fixture_new();
    fixture_add_array(f, "bytes", DTYPE_UINT8, 1, (int64_t[]){7});
    cr_assert(eq(int, fixture_compile(f, "bincount(bytes, length=256)"), 0));
    cr_expect(eq(int, f->program->n_checks, 0));
    cr_assert(eq(int, fixture_compile(f, "bincount(bytes, length=255)"), 0));
    cr_expect(eq(int, f->program->n_checks, 1));
    const struct program_check *check = &f->program->checks[0];
    cr_expect(eq(str, (char *)check->argument, (char *)"outputs[0]"));
    cr_expect(eq(str, (char *)check->expected, (char *)"0 to 254"));
    cr_expect(eq(str, (char *)check->found, (char *)"values outside"));
    cr_expect(eq(int, strncmp(check->message, "column 1: bincount: ", 20), 0));
    fixture_free(f);
}

Test(expr_counts, bincount_adds_weights_of_the_same_pass)
{
    check_text("bincount(small, weights=small*2, length=3)",
               "in0 = argument 13: int32 (5,)\n"
               "pass 0 over (5,): 4 registers\n"
               "  r0 = greater_equal.int32 in0 3\n"
               "  r1 = less.int32 in0 0\n"
               "  r0 = bitwise_or.bool r0 r1\n"
               "  r1 = int64.int32 in0\n"
               "  r2 = multiply.int32 in0 2\n"
               "  r3 = float64.int32 r2\n"
               "  red0 = bincount.int64 r1 in 3 bins, of weights r3 over axes 0: (3,) (float64)\n"
               "  red1 = count_nonzero.bool r0 (int64)\n"
               "  red1 must be below 1: 0 to 2\n"
               "pass 1 over (3,): 0 registers\n"
               "  out0 = red0 (float64)\n");
}

Test(expr_counts, histogram_of_a_known_range_reads_its_array_once)
{
    check_text("histogram(f8, bins=4, range=(0, 1))[0]",
               "in0 = argument 10: float64 (3, 4)\n"
               "pass 0 over (1, 5): 3 registers\n"
               "  r0 = equal.int64 index1 4\n"
               "  r1 = float64.int64 index1\n"
               "  r1 = multiply.float64 r1 0.25\n"
               "  r1 = add.float64 r1 0\n"
               "  r1 = where.float64 r0 1 r1\n"
               "  r2 = nextafter.float64 r1 inf\n"
               "  r1 = where.float64 r0 r2 r1\n"
               "  red0 = max.float64 r1 over axes 0: (5,) (float64)\n"
               "pass 1 over (3, 4): 1 register\n"
               "  r0 = search right.float64 in0 table red0\n"
               "  r0 = subtract.int64 r0 1\n"
               "  red1 = bincount.int64 r0 in 4 bins over axes 0, 1: (4,) (int64)\n"
               "pass 2 over (4,): 0 registers\n"
               "  out0 = red1 (int64)\n");
}

Test(expr_counts, histogram_checks_only_what_can_be_wrong)
{
    /* limits, edges, counts, result */
    check_counts("histogram(f8, bins=4)[0]", 5, 6, 2);
    check_counts("histogram(i4, bins=4)[0]", 5, 5, 1);
    check_counts("histogram(f8, bins=4, range=(0, 1))[0]", 3, 2, 0);
    check_counts("histogram(f4, bins=4, range=(1, 1.0000001))[0]", 4, 3, 1);
    check_counts("histogram(f8, bins=row)[0]", 4, 4, 1);
    check_counts("histogram(empty)[0]", 3, 2, 0);
    check_counts("histogram(f8)[0];histogram(f8)[1]", 6, 7, 2);
}

Test(expr_counts, results_have_numpys_dtypes_and_shapes)
{
    static const struct expected cases[] = {
        {"bincount(small, length=0)", "int64 (0,)"},
        {"bincount(b > 0, length=3)",
         "bad-shape: column 1: bincount counts an array of one axis, not of shape (3, 4)"},
        {"bincount(small, small, length=3)", "float64 (3,)"},
        {"bincount(empty, empty, length=3)", "int64 (3,)"},
        {"bincount(row, length=3)",
         "bad-dtype: column 1: bincount counts integers; write int64(x)"},
        {"bincount(small, row, length=3)",
         "bad-shape: column 17: bincount: 'weights' has shape (4,), the array (5,)"},
        {"bincount(small, length=4294967296)",
         "bad-expression: column 24: bincount: 'length' must be from 0 to 4294967295"},
        {"bincount(small, length=2.0)", "bad-expression: column 24: bincount: 'length' must be an "
                                        "integer that is known here"},
        {"histogram(f4)[0]", "int64 (10,)"},
        {"histogram(f4)[1]", "float32 (11,)"},
        {"histogram(i4, 3)[1]", "float64 (4,)"},
        {"histogram(b, 3, (0, 1))[1]", "float64 (4,)"},
        {"histogram(f4, 3, (0, 1))[1]", "float32 (4,)"},
        {"histogram(f4, small)[0]", "int64 (4,)"},
        {"histogram(f4, small)[1]", "int32 (5,)"},
        {"histogram(f4, empty)[0]", "int64 (0,)"},
        {"histogram(f4, weights=f8)[0]", "float64 (10,)"},
        {"histogram(f4, weights=i1)[0]", "int8 (10,)"},
        {"histogram(f4, density=True)[0]", "float64 (10,)"},
        {"histogram(f4, density=False)[0]", "int64 (10,)"},
        {"histogram(point, 2)[0]", "int64 (2,)"},
        {"histogram_bin_edges(f4)", "float32 (11,)"},
        {"histogram(f4)", "bad-expression: column 1: histogram gives two arrays, write "
                          "histogram(x)[0] or histogram(x)[1]"},
        {"histogram(f4, 0)[0]", "bad-expression: column 15: histogram: 'bins' must be a number of "
                                "bins, or an array of edges with one axis"},
        {"histogram(f4, f8)[0]",
         "bad-shape: column 1: histogram: 'bins' must have one axis, not shape (3, 4)"},
        {"histogram(f4, range=(1, 0))[0]", "bad-expression: column 21: histogram: 'range' must be "
                                           "a lower limit, then one that is not below it"},
        {"histogram(f4, range=(0, inf))[0]",
         "bad-expression: column 21: histogram: 'range' must be finite"},
        {"histogram(f4, range=4)[0]", "bad-expression: column 21: histogram: 'range' must be two "
                                      "numbers, range=(low, high)"},
        {"histogram(f4, range=(0, f4))[0]", "bad-expression: column 21: histogram: 'range' must "
                                            "be two numbers that are known here"},
        {"histogram(f4, weights=row)[0]",
         "bad-shape: column 23: histogram: 'weights' has shape (4,), the array (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}

/* ---- lookups ---- */

Test(expr_counts, an_array_becomes_a_table_in_a_pass_of_its_own)
{
    check_text("searchsorted(row, f4, side=right)",
               "in0 = argument 9: float32 (3, 4)\n"
               "in1 = argument 11: float64 (4,)\n"
               "pass 0 over (1, 4): 0 registers\n"
               "  red0 = max.float64 in1 over axes 0: (4,) (float64)\n"
               "pass 1 over (3, 4): 1 register\n"
               "  r0 = float64.float32 in0\n"
               "  r0 = search right.float64 r0 table red0\n"
               "  out0 = r0 (int64)\n");
}

Test(expr_counts, a_result_of_one_axis_is_its_own_table)
{
    check_text("take(max(f8, axis=0), small, mode=clip)",
               "in0 = argument 10: float64 (3, 4)\n"
               "in1 = argument 13: int32 (5,)\n"
               "pass 0 over (3, 4): 0 registers\n"
               "  red0 = max.float64 in0 over axes 0: (4,) (float64)\n"
               "pass 1 over (5,): 3 registers\n"
               "  r0 = less.int32 in1 0\n"
               "  r1 = greater_equal.int32 in1 4\n"
               "  r2 = where.int32 r1 3 in1\n"
               "  r1 = where.int32 r0 0 r2\n"
               "  r0 = int64.int32 r1\n"
               "  r0 = take.int64 r0 table red0\n"
               "  out0 = r0 (float64)\n");
}

Test(expr_counts, indices_are_checked_by_the_largest_of_them)
{
    check_text("take(row, i8)", "in0 = argument 4: int64 (3, 4)\n"
                                "in1 = argument 11: float64 (4,)\n"
                                "pass 0 over (3, 4): 2 registers\n"
                                "  r0 = less.int64 in0 0\n"
                                "  r1 = add.int64 in0 4\n"
                                "  r1 = where.int64 r0 r1 in0\n"
                                "  r0 = uint64.int64 r1\n"
                                "  red0 = max.uint64 r0 (uint64)\n"
                                "  red0 must be below 4: -4 to 3 along axis 0 of length 4\n"
                                "pass 1 over (1, 4): 0 registers\n"
                                "  red1 = max.float64 in1 over axes 0: (4,) (float64)\n"
                                "pass 2 over (3, 4): 2 registers\n"
                                "  r0 = less.int64 in0 0\n"
                                "  r1 = add.int64 in0 4\n"
                                "  r1 = where.int64 r0 r1 in0\n"
                                "  r0 = take.int64 r1 table red1\n"
                                "  out0 = r0 (float64)\n");
}

static struct program_check check_of_take(enum dtype dtype, int64_t length)
{
    struct fixture *f = fixture_new();
    struct program_check check = {.status = GAD_OK};
    fixture_add_array(f, "table", DTYPE_FLOAT32, 1, &length);
    fixture_add_array(f, "i", dtype, 2, (int64_t[]){2, 3});
    cr_assert(eq(int, fixture_compile(f, "take(table, i)"), 0), "%s", f->error.message);
    cr_assert(f->program->n_checks <= 1);
    if (f->program->n_checks == 1)
        check = f->program->checks[0];
    fixture_free(f);
    return check;
}

Test(expr_counts, an_index_that_is_outside_has_a_status_of_its_own)
{
    struct program_check check = check_of_take(DTYPE_INT64, 5);
    cr_expect(eq(int, check.status, GAD_BAD_INDEX));
    cr_expect(check.is_signed);
    cr_expect(eq(u64, check.limit, 5));
    cr_expect(eq(str, check.argument, (char *)"outputs[0]"));
    cr_expect(eq(str, check.expected, (char *)"-5 to 4 along axis 0 of length 5"));
    cr_expect(eq(str, check.found, (char *)"index"));
    cr_expect(eq(int, strncmp(check.message, "column 1: take: an index is outside", 35), 0));
    check = check_of_take(DTYPE_UINT64, 5);
    cr_expect(eq(int, check.status, GAD_BAD_INDEX));
    cr_expect(not(check.is_signed));
}

Test(expr_counts, indices_whose_dtype_is_too_small_to_be_outside_are_not_checked)
{
    cr_expect(eq(int, check_of_take(DTYPE_UINT8, 256).status, GAD_OK));
    cr_expect(eq(int, check_of_take(DTYPE_UINT8, 255).status, GAD_BAD_INDEX));
    cr_expect(eq(int, check_of_take(DTYPE_INT8, 128).status, GAD_OK));
    cr_expect(eq(int, check_of_take(DTYPE_INT8, 127).status, GAD_BAD_INDEX));
}

Test(expr_counts, arrays_of_other_lengths_have_checks_of_their_own)
{
    check_counts("take(row, u1); take(row, u1) + 1", 3, 2, 1);
    check_counts("take(row, u1); take(small, u1)", 4, 3, 2);
}

Test(expr_counts, equal_tables_are_one)
{
    check_counts("searchsorted(row, f8);searchsorted(row, f4, 'right');take(row, i4, mode=wrap)", 2,
                 1, 0);
}

Test(expr_counts, lookups_have_numpys_dtypes_and_shapes)
{
    static const struct expected cases[] = {
        {"searchsorted(row, f4)", "int64 (3, 4)"},
        {"searchsorted(row, 3)", "int64 ()"},
        {"searchsorted(empty, f4)", "int64 (3, 4)"},
        {"searchsorted(f4, row)",
         "bad-shape: column 1: searchsorted: 'a' must have one axis, not shape (3, 4)"},
        {"searchsorted(row, f4, sorter=small)", "bad-expression: column 30: searchsorted: 'sorter' "
                                                "can only be None here; write "
                                                "searchsorted(take(a, sorter), v)"},
        {"searchsorted(row, f4, side=rigth)", "bad-expression: column 28: searchsorted: unknown "
                                              "side 'rigth', did you mean 'right'?"},
        {"digitize(f4, row)", "int64 (3, 4)"},
        {"digitize(f4, row, right=True)", "int64 (3, 4)"},
        {"digitize(f4, f8)",
         "bad-shape: column 1: digitize: 'bins' must have one axis, not shape (3, 4)"},
        {"take(small, i1)", "int32 (3, 4)"},
        {"take(small, -1)", "int32 ()"},
        {"take(small, b)", "int32 (3, 4)"},
        {"take(small, f4)", "bad-dtype: column 1: take needs integers as its indices"},
        {"take(empty, empty)", "int32 (0,)"},
        {"f8 * take(row, index(0), mode=clip)", "float64 (3, 4)"},
        {"f8 * take(row, index(0))",
         "bad-shape: column 16: take: how many indices there are follows from what they meet, so "
         "that none can be told to be outside"},
        {"take(empty, small)", "bad-index: column 1: take: there is nothing to take from"},
        {"take(small, i1, axis=1)", "bad-shape: column 22: take: axis 1 of an array of one axis"},
        {"take(f8, i1, axis=1)",
         "bad-shape: column 1: take: 'a' must have one axis, not shape (3, 4); arguments are "
         "picked "
         "from along any, as in take(x, i, axis=1), where both are arguments"},
        {"choice(small, (2, 3), seed=1)", "int32 (2, 3)"},
        {"choice(small, 6, False, seed=1)", "bad-expression: column 1: choice: more numbers are "
                                            "taken than there are, without replacement"},
        {"permutation(row, seed=1)", "float64 (4,)"},
        {"permutation(empty, seed=1)", "int32 (0,)"},
    };
    EXPECT_RESULTS(cases);
}

/* ---- scans ---- */

Test(expr_counts, a_scan_is_stored_while_it_runs)
{
    check_text("cumsum(f4 * 2, axis=-1)", "in0 = argument 9: float32 (3, 4)\n"
                                          "pass 0 over (3, 4): 1 register\n"
                                          "  r0 = multiply.float32 in0 2\n"
                                          "  red0 = cumsum.float32 r0 over axes 1: (3,) (float64)\n"
                                          "  out0 = running red0 (float32)\n");
}

Test(expr_counts, scans_along_one_axis_share_a_pass_and_nothing_else_does)
{
    check_text("cumsum(f4,axis=0);cumsum(f8,axis=0);cumprod(f4,axis=1);f4+1;sum(f4)",
               "in0 = argument 9: float32 (3, 4)\n"
               "in1 = argument 10: float64 (3, 4)\n"
               "pass 0 over (3, 4): 0 registers\n"
               "  red0 = cumsum.float32 in0 over axes 0: (4,) (float64)\n"
               "  red1 = cumsum.float64 in1 over axes 0: (4,) (float64)\n"
               "  out0 = running red0 (float32)\n"
               "  out1 = running red1 (float64)\n"
               "pass 1 over (3, 4): 0 registers\n"
               "  red2 = cumprod.float32 in0 over axes 1: (3,) (float64)\n"
               "  out2 = running red2 (float32)\n"
               "pass 2 over (3, 4): 1 register\n"
               "  r0 = add.float32 in0 1\n"
               "  red3 = sum.float32 in0 (float64)\n"
               "  out3 = r0 (float32)\n"
               "pass 3 over (): 1 register\n"
               "  r0 = float32.float64 red3\n"
               "  out4 = r0 (float32)\n");
}

Test(expr_counts, a_scan_may_come_behind_a_reduction)
{
    check_counts("cumsum(f8 - mean(f8), axis=0)", 2, 2, 0);
}

Test(expr_counts, nothing_to_add_up_is_no_scan)
{
    check_counts("cumsum(empty)", 1, 0, 0);
    check_counts("cumsum(point)", 1, 0, 0);
    check_counts("cumprod(column, axis=1)", 1, 0, 0);
}

Test(expr_counts, scans_have_numpys_dtypes_and_shapes)
{
    static const struct expected cases[] = {
        {"cumsum(small)", "int64 (5,)"},
        {"cumsum(b, axis=1)", "int64 (3, 4)"},
        {"cumsum(u1, axis=1)", "uint64 (3, 4)"},
        {"cumprod(f4, axis=1)", "float32 (3, 4)"},
        {"cumprod(f4, axis=1, dtype=int16)", "int16 (3, 4)"},
        {"cumsum(point)", "float32 (1,)"},
        {"cumsum(3)", "int64 (1,)"},
        {"cumsum(f4)", "bad-expression: column 1: cumsum: an array of shape (3, 4) has no one "
                       "axis; write axis=..."},
        {"cumsum(f4, axis=2)", "bad-shape: column 17: cumsum: axis 2 is out of range for shape "
                               "(3, 4)"},
        {"cumsum(f4, axis=(0,))", "bad-expression: column 17: cumsum: 'axis' must be one integer"},
        {"cumsum(small) + 1", "bad-expression: column 15: cumsum can only be a whole output: store "
                              "it, then compute with what is stored"},
        {"searchsorted(cumsum(small), f4)", "bad-expression: column 1: cumsum can only be a whole "
                                            "output: store it, then compute with what is stored"},
        {"sum(cumsum(small))", "bad-expression: cumsum can only be a whole output: store it, then "
                               "compute with what is stored"},
    };
    EXPECT_RESULTS(cases);
}

static int compile_into(struct fixture *f, const char *expr, enum dtype dtype)
{
    f->request.n_outputs = 1;
    f->outputs[0] =
        (struct request_output){.expr = expr, .n_expr_chars = strlen(expr), .has_to = true};
    f->outputs[0].to = f->args[13].array; /* (5,) */
    f->outputs[0].to.dtype = dtype;
    return fixture_compile_request(f);
}

Test(expr_counts, a_scan_is_stored_in_the_dtype_of_what_is_there)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, compile_into(f, "cumsum(small)", DTYPE_INT16), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->outputs[0].dtype, DTYPE_INT16));
    cr_expect(eq(int, f->program->n_insns, 0));
    cr_expect(eq(int, compile_into(f, "cumsum(small)", DTYPE_FLOAT32), 0));
    cr_expect(eq(int, compile_into(f, "cumsum(float32(small))", DTYPE_FLOAT64), 0));
    cr_expect(eq(int, compile_into(f, "cumsum(small, dtype=int8)", DTYPE_INT32), GAD_BAD_DTYPE));
    cr_expect(eq(int, compile_into(f, "cumsum(small * 0.5)", DTYPE_INT64), GAD_BAD_DTYPE));
    fixture_free(f);
}

/* ---- in place ---- */

static struct array at_region(struct array array, uint64_t region)
{
    array.at.kind = LOCATION_REGION;
    array.at.region.id = region;
    return array;
}

/* Outputs over the arguments x and y. */
static int compile_over(struct fixture *f, const char *first, const char *second)
{
    static const int64_t shape[] = {6};
    f->request.n_args = 0;
    struct array *x = fixture_add_array(f, "x", DTYPE_FLOAT64, 1, shape);
    struct array *y = fixture_add_array(f, "y", DTYPE_FLOAT64, 1, shape);
    *x = at_region(*x, 1);
    *y = at_region(*y, 2);
    f->request.n_outputs = 2;
    f->outputs[0] = (struct request_output){
        .expr = first, .n_expr_chars = strlen(first), .has_to = true, .to = *x};
    f->outputs[1] = (struct request_output){
        .expr = second, .n_expr_chars = strlen(second), .has_to = true, .to = *y};
    return fixture_compile_request(f);
}

Test(expr_counts, a_scan_is_stored_over_an_array_when_others_have_read_it)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, compile_over(f, "cumsum(y)", "cumsum(x)"), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->n_passes, 1));
    cr_expect(eq(int, f->program->n_insns, 2)); /* both are read before one is stored */
    cr_assert(eq(int, compile_over(f, "cumsum(x)", "float64(index(0))"), 0), "%s",
              f->error.message);
    cr_assert(eq(int, compile_over(f, "cumsum(x)", "x + y"), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->outputs[0].pass, 1)); /* the sum is read before */
    cr_expect(eq(int, f->program->outputs[1].pass, 0));
    cr_expect(eq(int, compile_over(f, "cumsum(x + y)", "x - y"), GAD_BAD_EXPRESSION));
    cr_expect(eq(str, f->error.found, (char *)"outputs over each other's arguments"));
    fixture_free(f);
}

Test(expr_counts, outputs_that_are_other_memory_are_in_any_order)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, compile_over(f, "cumsum(x + y)", "x - y"), GAD_BAD_EXPRESSION));
    f->outputs[0].to.at.region.offset_bytes = f->outputs[1].to.at.region.offset_bytes = 48;
    cr_assert(eq(int, fixture_compile_request(f), 0), "%s", f->error.message);
    f->outputs[0].to.at.region.offset_bytes = 0;
    cr_assert(eq(int, fixture_compile_request(f), 0), "%s", f->error.message);
    f->outputs[1].to.at.region.offset_bytes = 0;
    cr_expect(eq(int, fixture_compile_request(f), GAD_BAD_EXPRESSION));
    f->request.is_apart = true;
    cr_expect(eq(int, fixture_compile_request(f), 0), "%s", f->error.message);
    fixture_free(f);
}

Test(expr_counts, descriptors_may_be_of_one_file_unless_it_is_known_better)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, compile_over(f, "cumsum(x + y)", "x - y"), GAD_BAD_EXPRESSION));
    for (unsigned i = 0; i < 2; i++) {
        f->outputs[i].to.at.kind = f->request.args[i].array.at.kind = LOCATION_FILE;
        f->outputs[i].to.at.file.offset_bytes = 1 << 20;
    }
    cr_expect(eq(int, fixture_compile_request(f), GAD_BAD_EXPRESSION));
    f->request.is_apart = true;
    cr_expect(eq(int, fixture_compile_request(f), 0), "%s", f->error.message);
    fixture_free(f);
}
