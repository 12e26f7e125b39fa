/* What arrays are told by: others have another sum, and the same ones the same. */
#include "client/gpuarrayd-linalg.h"
#include "client/lib/arguments/identity.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/identity-XXXXXX";

static void set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL && chdir(folder) == 0);
}

static void tear_down(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert(zero(int, system(command)));
}

TestSuite(identity, .init = set_up, .fini = tear_down, .timeout = 30);

/* float64 of 2 x 3, all of one value. */
static void write_array(const char *spec, double value)
{
    static const int64_t shape[] = {2, 3};
    double elements[] = {value, value, value, value, value, value};
    const struct gad_dense dense = {.name = "x", .ndim = 2, .shape = {2, 3}, .data = elements};
    struct gad_array *array;
    struct gad_error error = {0};
    if (strstr(spec, ".npz")) {
        cr_assert(zero(int, (int)gad_dense_save(spec, 1, &dense, &error)), "%s", error.message);
        return;
    }
    cr_assert(zero(int, (int)gad_array_create(NULL, spec, true, GAD_FLOAT64, 2, shape, false, NULL,
                                              &array, &error)),
              "%s", error.message);
    cr_assert(zero(int, (int)gad_array_commit(array, &error)), "%s", error.message);
    gad_array_release(array);
}

static uint64_t sum_of(const char *spec)
{
    struct gad_array *array;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_array_open(NULL, spec, &array, &error)), "%s", error.message);
    uint64_t sum = identity_array(IDENTITY_BASIS, array);
    gad_array_release(array);
    return sum;
}

Test(identity, is_of_one_array_and_of_what_is_selected)
{
    static const char *const specs[] = {
        "a_1.npy",       "b_1.npy",       "a_1.npy[0]",      "a_1.npy[1]",
        "a_1.npy[:, 0]", "a_1.npy[:, 1]", "a_*.npy",         "b_*.npy",
        "a_*.npy:stack", "a_*.npy[0]",    "two.h5:/a",       "two.h5:/b",
        "two.h5:/a[1]",  "two.h5:/b[1]",  "two.h5:/b[::-1]", "one.npz:x"};
    uint64_t sums[ARRAY_LENGTH(specs)];
    write_array("a_1.npy", 1);
    write_array("a_2.npy", 1);
    write_array("b_1.npy", 1);
    write_array("b_2.npy", 1);
    write_array("two.h5:/a", 1);
    write_array("two.h5:/b", 1);
    write_array("one.npz", 1);
    for (unsigned i = 0; i < ARRAY_LENGTH(specs); i++) {
        sums[i] = sum_of(specs[i]);
        cr_assert(eq(u64, sum_of(specs[i]), sums[i]), "%s", specs[i]);
        for (unsigned j = 0; j < i; j++)
            cr_assert(ne(u64, sums[i], sums[j]), "%s and %s", specs[i], specs[j]);
    }
    write_array("a_2.npy", 2); /* written later: another file, in what has it */
    cr_assert(ne(u64, sum_of("a_*.npy"), sums[6]));
    cr_assert(eq(u64, sum_of("a_1.npy"), sums[0]));
}

static uint64_t sum_of_memory(double *elements, int64_t stride_0, int64_t stride_1)
{
    struct gad_array array = {.access = ACCESS_MEMORY,
                              .data = elements,
                              .info = {.dtype = GAD_FLOAT64,
                                       .ndim = 2,
                                       .shape = {2, 3},
                                       .strides = {stride_0, stride_1},
                                       .format = "memory"}};
    return identity_array(IDENTITY_BASIS, &array);
}

Test(identity, of_memory_is_that_of_its_elements)
{
    double c[] = {0, 1, 2, 3, 4, 5}, fortran[] = {0, 3, 1, 4, 2, 5};
    uint64_t sum = sum_of_memory(c, 24, 8);
    cr_assert(ne(u64, sum_of_memory(fortran, 24, 8), sum));
    for (unsigned i = 0; i < 6; i++) {
        c[i] = -c[i]; /* -0.0, too */
        cr_assert(ne(u64, sum_of_memory(c, 24, 8), sum), "%u", i);
        c[i] = -c[i];
    }
    cr_assert(eq(u64, sum_of_memory(c, 24, 8), sum));
    cr_assert(ne(u64, sum_of_memory(fortran, 8, 16), sum_of_memory(fortran, 24, 8)));
}

Test(identity, of_arguments)
{
    struct gad_argument k = {.name = "k", .scalar = GAD_SCALAR_FLOAT, .float_value = 0.1};
    struct gad_argument m = k;
    uint64_t sum = identity_argument(IDENTITY_BASIS, &k);
    cr_assert(eq(u64, identity_argument(IDENTITY_BASIS, &m), sum));
    m.float_value = 0.2;
    cr_assert(ne(u64, identity_argument(IDENTITY_BASIS, &m), sum));
    m = k;
    m.name = "m";
    cr_assert(ne(u64, identity_argument(IDENTITY_BASIS, &m), sum));
    cr_assert(ne(u64, identity_text(IDENTITY_BASIS, "ab"), identity_text(IDENTITY_BASIS, "a")));
    cr_assert(ne(u64, identity_text(identity_text(0, "a"), "b"),
                 identity_text(identity_text(0, ""), "ab")));
}
