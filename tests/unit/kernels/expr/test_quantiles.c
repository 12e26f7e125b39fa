/* Quantiles: shapes, dtypes, words and lists, how many passes they take and what is refused. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* Of an array `x`, beside the standard ones. */
static struct program *compile(struct fixture *f, enum dtype dtype, int ndim, const int64_t *shape,
                               const char *exprs)
{
    fixture_add_array(f, "x", dtype, ndim, shape);
    cr_assert(eq(int, fixture_compile(f, exprs), 0), "%s: %s", exprs, f->error.message);
    return f->program;
}

/* Passes whose elements are the array's. */
static unsigned count_reads(const struct program *p, int64_t n_elements)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->n_passes; i++) {
        int64_t n_pass = 1;
        for (int k = 0; k < p->passes[i].ndim; k++)
            n_pass *= p->passes[i].shape[k];
        n += n_pass == n_elements;
    }
    return n;
}

static void check_reads(enum dtype dtype, int ndim, const int64_t *shape, const char *exprs,
                        unsigned n_reads)
{
    struct fixture *f = fixture_new();
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    struct program *p = compile(f, dtype, ndim, shape, exprs);
    cr_expect(eq(u32, count_reads(p, n), n_reads), "%s:\n%s", exprs, f->text);
    fixture_free(f);
}

Test(expr_quantiles, have_numpys_shapes_and_dtypes)
{
    static const struct expected cases[] = {
        {"median(f4)", "float32 ()"},
        {"median(i1)", "float64 ()"},
        {"median(b)", "float64 ()"},
        {"median(f8, axis=0)", "float64 (4,)"},
        {"median(f8, axis=1)", "float64 (3,)"},
        {"median(f8, axis=1, keepdims=True)", "float64 (3, 1)"},
        {"median(f8, axis=())", "float64 (3, 4)"},
        {"nanmedian(f4, axis=-1)", "float32 (3,)"},
        {"median(point)", "float32 ()"},
        {"median(empty)", "float64 ()"},
        {"quantile(f4, 0.5)", "float32 ()"},
        {"quantile(f4, float64(0.5))", "float64 ()"},
        {"quantile(f4, [0.5])", "float64 (1,)"},
        {"quantile(f4, [0.5, 0.1, 1], axis=1)", "float64 (3, 3)"},
        {"quantile(f4, [0.5, 0.1], axis=0, keepdims=True)", "float64 (2, 1, 4)"},
        {"quantile(f4, [0.5, 0.1], keepdims=True)", "float64 (2, 1, 1)"},
        {"percentile(i4, 30, axis=0)", "float64 (4,)"},
        {"percentile(i4, [30], 0, None, False, 'lower', True)", "int32 (1, 1, 4)"},
        {"quantile(i4, 1)", "int32 ()"},
        {"quantile(i4, [0, 1])", "int32 (2,)"},
        {"quantile(i4, [0, 1], method=weibull)", "int64 (2,)"},
        {"quantile(u8, [0, 1], method=weibull)", "float64 (2,)"},
        {"quantile(i4, [0, 1], method=hazen)", "float64 (2,)"},
        {"quantile(b, 0.5, method=\"nearest\")", "bool ()"},
        {"quantile(b, 1)", "bool ()"},
        {"nanquantile(f4, 0.5, axis=1) + column", "float64 (3, 3)"},
        {"f8 - quantile(f8, [0.1, 0.5, 0.9], axis=1, keepdims=True)", "float64 (3, 3, 4)"},
        {"mean(quantile(f8, [0.1, 0.5], axis=1), axis=0)", "float64 (3,)"},
        {"nanmedian(empty)", "float64 ()"},
        {"nanquantile(empty, [0.1, 0.2])", "float64 ()"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_quantiles, refuse_what_is_no_quantile)
{
    static const struct expected cases[] = {
        {"quantile(f8, 1.5)",
         "bad-expression: column 14: quantile: 'q' must be in the range 0 to 1, not 1.5"},
        {"quantile(f8, [0.5, -0.5])",
         "bad-expression: column 20: quantile: 'q' must be in the range 0 to 1, not -0.5"},
        {"percentile(f8, 101)",
         "bad-expression: column 16: percentile: 'q' must be in the range 0 to 100, not 101"},
        {"quantile(f8, nan)",
         "bad-expression: column 14: quantile: 'q' must be in the range 0 to 1, not nan"},
        {"quantile(f8, f8)", "bad-expression: column 14: quantile: 'q' must be a number, or a list "
                             "of numbers, that is known here"},
        {"quantile(f8, [])",
         "bad-expression: column 14: quantile: a list of 0 quantiles; there can be 1 to 8 in a "
         "call"},
        {"quantile(f8, [0, 0, 0, 0, 0, 0, 0, 0, 0])",
         "limit-exceeded: column 14: quantile: a list of 9 quantiles; there can be 1 to 8 in a "
         "call"},
        {"quantile(f8, 0.5, method=linaer)",
         "bad-expression: column 26: quantile: unknown method 'linaer', did you mean 'linear'?"},
        {"quantile(f8, 0.5, method='x')",
         "bad-expression: column 26: quantile: unknown method 'x'; there are linear lower higher "
         "nearest midpoint inverted_cdf averaged_inverted_cdf closest_observation ..."},
        {"quantile(f8, 0.5, method=3)", "bad-expression: column 26: a word expected, not '3'"},
        {"quantile(f8, 0.5, method='linear)",
         "bad-expression: column 26: this quote is not closed"},
        {"quantile(b, 0.5)", "bad-dtype: column 1: quantile of bools cannot be interpolated, "
                             "write int8(x)"},
        {"quantile(empty, 0.5)", "bad-shape: column 1: zero-size array to reduction operation "
                                 "quantile which has no identity"},
        {"quantile(f8)", "bad-arity: column 1: quantile takes 2 arguments, then axis=None, "
                         "out=None, overwrite_input=False, method=linear, keepdims=False; 1 given"},
        {"median(f8, axis=2)", "bad-shape: column 17: median: axis 2 is out of range for shape "
                               "(3, 4)"},
        {"f8 + 'linear'", "bad-expression: column 6: unexpected 'linear'; there are no strings"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_quantiles, read_the_data_once_a_digit)
{
    const int64_t even[] = {1000000}, odd[] = {1000001}, wide[] = {10000, 100};
    check_reads(DTYPE_FLOAT32, 1, odd, "median(x)", 3);
    check_reads(DTYPE_FLOAT32, 1, even, "median(x)", 4);
    check_reads(DTYPE_FLOAT64, 1, odd, "median(x)", 6);
    check_reads(DTYPE_FLOAT64, 1, even, "median(x)", 7);
    check_reads(DTYPE_UINT8, 1, odd, "median(x)", 1);
    check_reads(DTYPE_BOOL, 1, odd, "median(x)", 1);
    check_reads(DTYPE_INT16, 1, odd, "median(x)", 2);
    check_reads(DTYPE_FLOAT32, 2, wide, "quantile(x, 0.3, axis=0)", 5);
    check_reads(DTYPE_FLOAT32, 1, even, "quantile(x, [0.25, 0.5, 0.75])", 4);
    check_reads(DTYPE_FLOAT32, 1, even, "quantile(x, 0.25); quantile(x, 0.75)", 4);
    check_reads(DTYPE_FLOAT32, 1, even, "quantile(x, 0.3, method=lower)", 3);
    check_reads(DTYPE_FLOAT32, 1, even, "median(abs(x - median(x)))", 8);
}

Test(expr_quantiles, of_eight_are_within_the_limits)
{
    static const char *const exprs[] = {
        "quantile(x, [0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99])",
        "nanquantile(x, [0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99])",
        "quantile(x, [0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99], axis=1)",
        "nanquantile(x, [0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99], axis=1)",
        "nanquantile(x, [0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99], axis=1, method=hazen)",
        "nanquantile(x, [0.01, 0.1, 0.2, 0.4, 0.6], axis=1)",
    };
    static const enum dtype dtypes[] = {DTYPE_INT8, DTYPE_FLOAT32, DTYPE_UINT64, DTYPE_FLOAT64};
    static const int64_t shapes[][2] = {{1000, 10}, {1000, 100}, {3, 1000}};
    for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++)
        for (size_t k = 0; k < 12; k++) {
            struct fixture *f = fixture_new();
            struct program *p = compile(f, dtypes[k % 4], 2, shapes[k / 4], exprs[i]);
            cr_expect(le(u32, p->n_passes, PROGRAM_MAX_PASSES));
            fixture_free(f);
        }
}

Test(expr_quantiles, read_short_slices_once)
{
    const int64_t longest[] = {3, PROGRAM_MAX_KTH_ELEMENTS}, longer[] = {3, longest[1] + 1};
    check_reads(DTYPE_FLOAT32, 2, longest, "median(x, axis=1)", 1);
    check_reads(DTYPE_FLOAT32, 2, longer, "median(x, axis=1)", 3);
    check_reads(DTYPE_FLOAT64, 2, longest, "quantile(x, [0.1, 0.2, 0.3, 0.4, 0.9], axis=1)", 1);
    check_reads(DTYPE_INT16, 2, longest, "median(x, axis=0); quantile(x, 0.3, axis=0)", 1);
    check_reads(DTYPE_BOOL, 2, longest, "median(x, axis=1)", 1);
    check_reads(DTYPE_FLOAT32, 2, longest, "median(x, axis=0); median(x, axis=1)", 2);
    check_reads(DTYPE_FLOAT32, 2, longest, "median(x, axis=0); median(-x, axis=0)", 2);
    check_reads(DTYPE_FLOAT32, 2, longest, "median(x, axis=0); mean(x, axis=0)", 2);
    /* Beside results of another pass there is less room. */
    check_reads(DTYPE_FLOAT32, 2, (int64_t[]){3, PROGRAM_MAX_KTH_ELEMENTS / 4},
                "median(abs(x - median(x, axis=1, keepdims=True)), axis=1)", 2);
    check_reads(DTYPE_FLOAT32, 2, longest,
                "median(abs(x - median(x, axis=1, keepdims=True)), axis=1)", 5);
    check_reads(DTYPE_FLOAT32, 1, (int64_t[]){5000}, "x - median(x)", 2);
}

/* Where NaNs are left out, too: places follow from how many elements each slice has. */
Test(expr_quantiles, read_short_slices_with_nan_once)
{
    const int64_t longest[] = {3, PROGRAM_MAX_KTH_ELEMENTS}, longer[] = {3, longest[1] + 1};
    check_reads(DTYPE_FLOAT32, 2, longest, "nanmedian(x, axis=1)", 1);
    check_reads(DTYPE_FLOAT64, 2, longest, "nanmedian(x, axis=0)", 1);
    check_reads(DTYPE_FLOAT32, 2, longer, "nanmedian(x, axis=1)", 4);
    check_reads(DTYPE_FLOAT64, 2, longest, "nanquantile(x, [0.1, 0.2, 0.3, 0.4, 0.9], axis=1)", 1);
    check_reads(DTYPE_FLOAT32, 2, longest, "nanpercentile(x, 30, axis=1, method=higher)", 1);
    check_reads(DTYPE_INT16, 2, longest, "nanmedian(x, axis=0)", 1);
    check_reads(DTYPE_FLOAT32, 2, longest, "median(x, axis=0); nanquantile(x, 0.2, axis=0)", 1);
}

/* A cell's elements are not in one chunk, so that chunks would be read again and again. */
Test(expr_quantiles, of_chunks_read_digits)
{
    for (int is_provider = 0; is_provider < 2; is_provider++) {
        struct fixture *f = fixture_new();
        struct array *x = fixture_add_array(f, "x", DTYPE_FLOAT32, 2, (int64_t[]){1000, 500});
        x->at.kind = is_provider ? LOCATION_PROVIDER : LOCATION_FILE;
        *(is_provider ? &x->at.provider.has_chunks : &x->at.file.is_grid) = true;
        cr_assert(eq(int, fixture_compile(f, "median(x, axis=0)"), 0), "%s", f->error.message);
        cr_expect(lt(u32, 4, count_reads(f->program, 500000)), "%s", f->text);
        fixture_free(f);
    }
}

/* Arrays that are read together: all of a cell's elements in all of them fit a grain. */
Test(expr_quantiles, of_many_arrays_have_less_room)
{
    char expr[REQUEST_MAX_ARGS * 8] = "median(x0", name[8];
    struct fixture *f = fixture_new();
    f->request.n_args = 0;
    for (int i = 0; i < REQUEST_MAX_ARGS; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        fixture_add_array(f, name, DTYPE_UINT8, 2, (int64_t[]){3, 1024});
        if (i > 0)
            snprintf(expr + strlen(expr), sizeof(expr) - strlen(expr), "+%s", name);
    }
    snprintf(expr + strlen(expr), sizeof(expr) - strlen(expr), ", axis=1)");
    cr_assert(eq(int, fixture_compile(f, expr), 0), "%s", f->error.message);
    cr_expect(eq(u32, count_reads(f->program, 3 * 1024), 1), "%s", f->text);
    fixture_free(f);
}

/* One for each element, and one more that mixes them: of chunks, where NaNs are left out, so that
 * places depend on how many there are. */
Test(expr_quantiles, of_few_elements_take_few_passes)
{
    static const char *const exprs[] = {"nanmedian(x, axis=1)",
                                        "nanquantile(x, [0.1, 0.3, 0.5, 0.9], axis=1)"};
    for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++)
        for (int64_t n = 2; n <= 9; n++) {
            struct fixture *f = fixture_new();
            struct array *x = fixture_add_array(f, "x", DTYPE_FLOAT64, 2, (int64_t[]){50000, n});
            x->at.kind = LOCATION_FILE;
            x->at.file.is_grid = true;
            cr_assert(eq(int, fixture_compile(f, exprs[i]), 0), "%s", f->error.message);
            struct program *p = f->program;
            bool is_few = n <= 8;
            cr_expect(eq(int, p->n_passes <= (unsigned)n + 3, is_few), "%s of %d: %u", exprs[i],
                      (int)n, p->n_passes);
            fixture_free(f);
        }
}
