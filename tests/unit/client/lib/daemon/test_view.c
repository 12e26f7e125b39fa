/* Views and movements of shared memory, and what of them is refused, with a real daemon. */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "client/gpuarrayd-move.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

TestSuite(view, .init = set_up, .fini = tear_down, .timeout = 60);

/* float64 in C order: 0, 1, 2, ... */
static struct gad_array *shared(int ndim, const int64_t *shape)
{
    struct gad_array *array;
    struct gad_error error = {0};
    int64_t n = 1;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, ndim, shape, &array, &error)), "%s",
              error.message);
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    for (int64_t i = 0; i < n; i++)
        ((double *)gad_array_data(array))[i] = (double)i;
    return array;
}

static int view(struct gad_array *array, const int64_t *start, int ndim,
                const struct gad_view_axis *axes, struct gad_array **ret)
{
    struct gad_error error = {0};
    int r = (int)gad_array_view(array, start, ndim, axes, ret, &error);
    if (r)
        cr_assert(ne(str, error.message, (char *)""));
    return r;
}

Test(view, goes_where_its_axes_say_and_outlives_its_array)
{
    static const int64_t shape[] = {3, 4}, start[] = {2, 1};
    static const struct gad_view_axis axes[] = {{1, 3, 1}, {0, 2, -2}, {-1, 5, 0}};
    struct gad_array *array = shared(2, shape), *of;
    cr_assert(eq(int, view(array, start, 3, axes, &of), 0));
    gad_array_release(array);
    cr_assert(eq(dbl, ask("sum(a)", of), 5.0 * (9 + 10 + 11 + 1 + 2 + 3)));
    cr_assert(eq(dbl, ask("max(a)", of), 11));
    gad_array_release(of);
}

Test(view, of_one_element_has_no_axes_to_be_given)
{
    static const int64_t shape[] = {3, 4}, start[] = {1, 2};
    struct gad_array *array = shared(2, shape), *of;
    cr_assert(eq(int, view(array, start, 0, NULL, &of), 0));
    cr_assert(eq(dbl, ask("a", of), 6));
    gad_array_release(of);
    gad_array_release(array);
}

Test(view, never_reaches_outside)
{
    static const int64_t shape[] = {3, 4}, behind[] = {3, 0}, before[] = {-1, 0};
    static const struct {
        struct gad_view_axis axis;
        int status;
    } cases[] = {
        {{0, 4, 1}, GAD_BAD_ARGUMENT},         {{0, 2, -1}, GAD_BAD_ARGUMENT},
        {{0, 2, 3}, GAD_BAD_ARGUMENT},         {{0, 3, INT64_MAX}, GAD_BAD_ARGUMENT},
        {{0, 3, INT64_MIN}, GAD_BAD_ARGUMENT}, {{2, 1, 1}, GAD_BAD_SHAPE},
        {{-2, 1, 1}, GAD_BAD_SHAPE},           {{0, -1, 1}, GAD_BAD_ARGUMENT},
    };
    static const struct gad_view_axis twice[] = {{0, 2, 1}, {0, 2, 2}}, one = {0, 1, 1};
    struct gad_array *array = shared(2, shape), *of = NULL;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_assert(eq(int, view(array, NULL, 1, &cases[i].axis, &of), cases[i].status), "case %zu",
                  i);
    cr_assert(eq(int, view(array, NULL, 2, twice, &of), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, view(array, behind, 1, &one, &of), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, view(array, before, 1, &one, &of), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, view(array, NULL, GAD_MAX_NDIM + 1, NULL, &of), GAD_BAD_ARGUMENT));
    cr_assert(zero(ptr, of));
    gad_array_release(array);
}

Test(view, steps_that_lead_nowhere_may_be_any)
{
    static const int64_t shape[] = {3, 4};
    static const struct gad_view_axis one[] = {{0, 1, INT64_MAX}, {1, 4, 1}},
                                      empty[] = {{0, 0, INT64_MIN}, {1, 9, INT64_MAX}};
    struct gad_array *array = shared(2, shape), *of;
    cr_assert(eq(int, view(array, NULL, 2, one, &of), 0));
    cr_assert(eq(dbl, ask("sum(a)", of), 6));
    gad_array_release(of);
    cr_assert(eq(int, view(array, NULL, 2, empty, &of), 0));
    cr_assert(eq(dbl, ask("sum(a)", of), 0));
    gad_array_release(of);
    gad_array_release(array);
}

Test(view, that_has_an_element_twice_is_not_written)
{
    static const int64_t shape[] = {4}, wanted[] = {2, 4};
    static const struct gad_view_axis twice[] = {{-1, 2, 0}, {0, 4, 1}};
    struct gad_array *array = shared(1, shape), *from = shared(2, wanted), *of;
    struct gad_error error = {0};
    cr_assert(eq(int, view(array, NULL, 2, twice, &of), 0));
    cr_assert(eq(int, (int)run("a", from, of, NULL, &error), GAD_READ_ONLY));
    gad_array_release(of);
    gad_array_release(from);
    gad_array_release(array);
}

Test(view, a_movement_is_apart_from_its_sources)
{
    static const int64_t shape[] = {6, 6}, odd[] = {1, 0};
    static const struct gad_view_axis rows[] = {{0, 3, 2}, {1, 6, 1}};
    struct gad_array *array = shared(2, shape), *even_rows, *odd_rows;
    struct gad_error error = {0};
    cr_assert(eq(int, view(array, NULL, 2, rows, &even_rows), 0));
    cr_assert(eq(int, view(array, odd, 2, rows, &odd_rows), 0));
    struct gad_move_options in_place = {.to = array}, apart = {.to = odd_rows};
    cr_assert(eq(int, (int)gad_transpose(client, array, NULL, &in_place, NULL, &error),
                 GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(int, (int)gad_flip(client, even_rows, 0, NULL, &apart, NULL, &error), 0), "%s",
              error.message);
    const double *data = gad_array_data(array);
    for (int i = 0; i < 36; i++) {
        int row = i / 6, column = i % 6;
        int want = row % 2 == 0 ? i : (5 - row) * 6 + 5 - column;
        cr_assert(eq(dbl, data[i], want), "%d", i);
    }
    gad_array_release(odd_rows);
    gad_array_release(even_rows);
    gad_array_release(array);
}

Test(view, a_refused_movement_leaves_no_file)
{
    static const int64_t shape[] = {3};
    const struct gad_pad border = {.before = 1, .before_value = 1e300};
    const struct gad_pad exact = {.after = 1,
                                  .after_exact = {GAD_SCALAR_FLOAT, {.float_value = 2.5}}};
    struct gad_array *array = shared(1, shape), *bytes;
    struct gad_error error = {0};
    int before = n_files();
    cr_assert(eq(int, (int)gad_array_new(client, GAD_INT8, 1, shape, &bytes, &error), 0));
    struct gad_move_options move = {.to_path = path_in("new.npy")}, both = move;
    both.to = array;
    cr_assert(eq(int, (int)gad_pad(client, bytes, &border, GAD_PAD_CONSTANT, &move, NULL, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_pad(client, bytes, &exact, GAD_PAD_CONSTANT, &move, NULL, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.argument, "value"));
    cr_assert(eq(str, error.expected, "a value of int8: a whole number, -128 to 127"));
    cr_assert(eq(str, error.found, "2.5"));
    cr_assert(
        eq(int, (int)gad_flip(client, array, 0, NULL, &both, NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, n_files(), before));
    gad_array_release(bytes);
    gad_array_release(array);
}

Test(view, by_other_sizes_is_a_view_where_the_elements_lie_so)
{
    static const int64_t shape[] = {2, 3, 4}, pairs[] = {6, 4}, flat[] = {24},
                         cut[] = {2, 2, 1, 3, 2}, start[] = {0, 0, 1}, few[] = {23},
                         ones[] = {1, 24, 1};
    static const struct gad_view_axis turned[] = {{2, 4, 1}, {1, 3, 1}, {0, 2, 1}},
                                      narrow[] = {{0, 2, 1}, {1, 3, 1}, {2, 2, 1}},
                                      every[] = {{0, 2, 1}, {1, 3, 1}, {2, 1, 1}};
    struct gad_array *array = shared(3, shape), *of, *part;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_array_reshape(array, 2, pairs, &of, &error)), "%s", error.message);
    cr_assert(eq(dbl, ask("sum(where(index(0) == 5, a, 0))", of), 20 + 21 + 22 + 23));
    gad_array_release(of);
    cr_assert(zero(int, (int)gad_array_reshape(array, 5, cut, &of, &error)));
    cr_assert(zero(int, (int)gad_array_reshape(of, 3, ones, &part, &error)));
    gad_array_release(of);
    cr_assert(eq(dbl, ask("argmax(a)", part), 23));
    cr_assert(eq(ptr, gad_array_data(part), gad_array_data(array)));
    gad_array_release(part);
    cr_assert(eq(int, (int)gad_array_reshape(array, 1, few, &of, &error), GAD_BAD_SHAPE));
    cr_assert(eq(int, view(array, NULL, 3, turned, &part), 0));
    cr_assert(eq(int, (int)gad_array_reshape(part, 1, flat, &of, &error), GAD_BAD_SHAPE));
    cr_assert(eq(str, error.found, "(4, 3, 2)"));
    gad_array_release(part);
    static const int64_t six[] = {6, 2}, column[] = {6}, twelve[] = {12};
    cr_assert(eq(int, view(array, start, 3, narrow, &part), 0));
    cr_assert(zero(int, (int)gad_array_reshape(part, 2, six, &of, &error)));
    cr_assert(eq(dbl, ask("sum(where(index(1) == 1, a, 0))", of), 2 + 6 + 10 + 14 + 18 + 22));
    gad_array_release(of);
    cr_assert(eq(int, (int)gad_array_reshape(part, 1, twelve, &of, &error), GAD_BAD_SHAPE));
    gad_array_release(part);
    cr_assert(eq(int, view(array, start, 3, every, &part), 0));
    cr_assert(zero(int, (int)gad_array_reshape(part, 1, column, &of, &error)));
    cr_assert(eq(dbl, ask("sum(a)", of), 1 + 5 + 9 + 13 + 17 + 21));
    gad_array_release(of);
    gad_array_release(part);
    gad_array_release(array);
}

/* Of shared memory nothing is carried; what does not fit is refused all the same. */
Test(view, pieces_are_views_of_their_output)
{
    static const int64_t shape[] = {3, 4}, start[] = {1, 0};
    static const struct gad_view_axis axes[] = {{0, 2, 1}, {1, 4, 1}};
    struct gad_array *from = shared(2, shape), *to = shared(2, shape), *part, *place;
    struct gad_error error;
    cr_assert(eq(int, view(from, NULL, 2, axes, &part), 0));
    cr_assert(eq(int, view(to, start, 2, axes, &place), 0));
    struct gad_array *const sources[] = {part, from}, *const places[] = {place, to};
    struct gad_array *const others[] = {from, part};
    cr_assert(eq(int, (int)gad_array_carry(to, 2, sources, places, &error), GAD_OK));
    cr_assert(eq(int, (int)gad_array_carry(to, 0, NULL, NULL, &error), GAD_OK));
    cr_assert(eq(int, (int)gad_array_carry(to, 2, others, places, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_array_carry(from, 2, sources, places, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_array_carry(NULL, 0, NULL, NULL, &error), GAD_BAD_ARGUMENT));
    struct gad_array *const none[] = {part, NULL};
    cr_assert(eq(int, (int)gad_array_carry(to, 2, none, places, &error), GAD_BAD_ARGUMENT));
    /* A place whose first axis is none of its array's is left without names. */
    static const struct gad_view_axis new_axis[] = {{-1, 1, 0}, {0, 3, 1}, {1, 4, 1}};
    struct gad_array *wide_part, *wide_place;
    cr_assert(eq(int, view(from, NULL, 3, new_axis, &wide_part), 0));
    cr_assert(eq(int, view(to, NULL, 3, new_axis, &wide_place), 0));
    struct gad_array *const wide[] = {wide_part}, *const wide_places[] = {wide_place};
    cr_assert(eq(int, (int)gad_array_carry(to, 1, wide, wide_places, &error), GAD_OK));
    gad_array_release(wide_place);
    gad_array_release(wide_part);
    gad_array_release(place);
    gad_array_release(part);
    gad_array_release(to);
    gad_array_release(from);
}
