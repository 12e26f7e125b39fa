/* Checkpoints: what was written comes back, and only for the same data and settings. */
#include "client/linalg/checkpoint.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/checkpoint-XXXXXX";
static char path[64];
static const int64_t shape[] = {4, 3};
static struct gad_array array = {
    .info = {.dtype = GAD_FLOAT32, .ndim = 2, .shape = {4, 3}, .format = "memory"}};
static const struct gad_operand operand = {.array = &array};

static void setup(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/f.npz", folder);
}

static void remove_all(void)
{
    unlink(path);
    rmdir(folder);
}

TestSuite(checkpoint, .init = setup, .fini = remove_all);

static struct gad_dense factor_of(double *data)
{
    return (struct gad_dense){.name = "factor_0", .ndim = 2, .shape = {4, 2}, .data = data};
}

static void write_one(double setting, double iteration)
{
    struct checkpoint c;
    double elements[8] = {1, 2, 3, 4, 5, 6, 7, iteration};
    struct gad_dense factor = factor_of(elements);
    checkpoint_init(&c, path, &operand, GAD_FLOAT32, 2, shape);
    checkpoint_mark(&c, setting);
    c.n_state = 2;
    c.state[0] = iteration;
    c.state[1] = 0.125;
    cr_assert(eq(int, checkpoint_write(&c, 1, &factor, NULL), 0));
}

static int read_one(double setting, const int64_t *of_shape, struct checkpoint *c, double *elements,
                    bool *is_there, struct gad_error *error)
{
    struct gad_dense factor = factor_of(elements);
    checkpoint_init(c, path, &operand, GAD_FLOAT32, 2, of_shape);
    checkpoint_mark(c, setting);
    c->n_state = 2;
    return checkpoint_read(c, 1, &factor, is_there, error);
}

Test(checkpoint, the_last_one_that_was_written_comes_back)
{
    struct checkpoint c;
    struct gad_error error;
    double elements[8] = {0};
    bool is_there = true;
    cr_assert(eq(int, read_one(7, shape, &c, elements, &is_there, &error), 0));
    cr_assert(not(is_there));
    write_one(7, 1);
    write_one(7, 2);
    cr_assert(eq(int, read_one(7, shape, &c, elements, &is_there, &error), 0), "%s", error.message);
    cr_assert(is_there);
    cr_assert(eq(dbl, elements[6], 7));
    cr_assert(eq(dbl, elements[7], 2));
    cr_assert(eq(dbl, c.state[0], 2));
    cr_assert(eq(dbl, c.state[1], 0.125));
}

Test(checkpoint, that_of_another_shape_or_setting_is_refused)
{
    struct checkpoint c;
    struct gad_error error;
    double elements[8] = {0};
    bool is_there;
    const int64_t other[] = {5, 3};
    write_one(7, 1);
    cr_assert(eq(int, read_one(8, shape, &c, elements, &is_there, &error), GAD_BAD_CHECKPOINT));
    cr_assert(eq(str, error.found, "other ones, of the same data"));
    cr_assert(eq(int, read_one(7, other, &c, elements, &is_there, &error), GAD_BAD_CHECKPOINT));
    cr_assert(eq(str, error.expected, "float32 (5, 3)"));
    cr_assert(eq(str, error.found, "float32 (4, 3)"));
    cr_assert(eq(dbl, elements[0], 0));
}

Test(checkpoint, an_archive_that_is_none_is_refused_and_stays)
{
    struct checkpoint c;
    struct gad_error error;
    double elements[8] = {3};
    bool is_there;
    struct gad_dense factor = factor_of(elements);
    cr_assert(eq(int, gad_dense_save(path, 1, &factor, NULL), 0));
    cr_assert(eq(int, read_one(7, shape, &c, elements, &is_there, &error), GAD_BAD_CHECKPOINT));
}

Test(checkpoint, small_arrays_are_saved_and_loaded)
{
    double elements[8] = {1, -2, 3.5, 0, 0, 0, 0, 9}, one = 4;
    struct gad_dense factor = factor_of(elements), weight = {.name = "w", .data = &one}, loaded;
    char spec[80];
    const struct gad_dense both[] = {factor, weight};
    cr_assert(eq(int, gad_dense_save(path, 1, &weight, NULL), 0));
    cr_assert(eq(int, gad_dense_save(path, 2, both, NULL), 0));
    snprintf(spec, sizeof(spec), "%s:factor_0", path);
    cr_assert(eq(int, gad_dense_load(spec, &loaded, NULL), 0));
    cr_assert(eq(int, loaded.ndim, 2));
    cr_assert(eq(i64, loaded.shape[1], 2));
    cr_assert(eq(int, memcmp(loaded.data, elements, sizeof(elements)), 0));
    gad_dense_deinit(&loaded);
    snprintf(spec, sizeof(spec), "%s:w", path);
    cr_assert(eq(int, gad_dense_load(spec, &loaded, NULL), 0));
    cr_assert(eq(int, loaded.ndim, 0));
    cr_assert(eq(dbl, loaded.data[0], 4));
    gad_dense_deinit(&loaded);
    cr_assert(eq(int, gad_dense_save(path, 1, &weight, NULL), 0)); /* in its place, alone */
    snprintf(spec, sizeof(spec), "%s:factor_0", path);
    cr_assert(eq(int, gad_dense_load(spec, &loaded, NULL), GAD_NOT_FOUND));
    cr_assert(eq(int, gad_dense_save("w.txt", 1, &weight, NULL), GAD_BAD_ARGUMENT));
}
