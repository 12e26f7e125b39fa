/* Overlap: what is in place, what is apart, what is refused. Where the answer is "apart" or
 * "refused" for small arrays, it is compared with the bytes themselves. */
#include "daemon/broker/jobs/output_overlap.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

struct case_arrays { /* an argument "a" and outputs "r" and "s" */
    struct request_arg args[1];
    struct request_output outputs[2];
    struct job_request request;
    struct overlap_identity arg_identities[1], output_identities[2];
};

static const struct overlap_identity here = {.has_identity = true, .device = 1, .inode = 7};

static void set_array(struct array *array, uint64_t offset, int ndim, const int64_t *shape,
                      const int64_t *strides)
{
    *array = (struct array){.dtype = DTYPE_FLOAT64, .ndim = ndim};
    array->at.kind = LOCATION_REGION;
    array->at.region.offset_bytes = offset;
    memcpy(array->shape, shape, (size_t)ndim * sizeof(*shape));
    if (strides)
        memcpy(array->strides, strides, (size_t)ndim * sizeof(*strides));
    else
        array_c_strides(ndim, shape, 8, array->strides);
}

static void case_init(struct case_arrays *c)
{
    *c = (struct case_arrays){.request.n_args = 1, .request.n_outputs = 1};
    c->request.args = c->args;
    c->request.outputs = c->outputs;
    strcpy(c->args[0].name, "a");
    strcpy(c->outputs[0].name, "r");
    strcpy(c->outputs[1].name, "s");
    c->outputs[0].has_to = c->outputs[1].has_to = true;
    c->arg_identities[0] = c->output_identities[0] = c->output_identities[1] = here;
}

static int check(const struct case_arrays *c, bool *ret_in_place, struct gad_error *error)
{
    return overlap_check(&c->request, c->arg_identities, c->output_identities, ret_in_place, error);
}

enum answer { APART, IN_PLACE, REFUSED, BAD_EXTENT };

static const struct {
    const char *what;
    uint64_t a_offset;
    int a_ndim;
    int64_t a_shape[3], a_strides[3];
    uint64_t r_offset;
    int r_ndim;
    int64_t r_shape[3], r_strides[3];
    enum answer answer;
} table[] = {
    {"the same", 64, 1, {10}, {8}, 64, 1, {10}, {8}, IN_PLACE},
    {"behind each other", 0, 1, {10}, {8}, 80, 1, {10}, {8}, APART},
    {"one byte over", 0, 1, {10}, {8}, 79, 1, {10}, {8}, REFUSED},
    {"shifted by one", 0, 1, {10}, {8}, 8, 1, {10}, {8}, REFUSED},
    {"reversed", 72, 1, {10}, {-8}, 0, 1, {10}, {8}, REFUSED},
    {"both reversed", 72, 1, {10}, {-8}, 72, 1, {10}, {-8}, IN_PLACE},
    {"transposed", 0, 2, {4, 4}, {8, 32}, 0, 2, {4, 4}, {32, 8}, REFUSED},
    {"reshaped", 0, 1, {16}, {8}, 0, 2, {4, 4}, {32, 8}, REFUSED},
    {"strides of axes of one", 0, 2, {1, 4}, {999, 8}, 0, 2, {1, 4}, {32, 8}, IN_PLACE},
    {"a row broadcast over it", 0, 1, {4}, {8}, 0, 2, {4, 4}, {32, 8}, REFUSED},
    {"a column of zero stride", 0, 2, {4, 4}, {8, 0}, 0, 2, {4, 4}, {32, 8}, REFUSED},
    {"even and odd", 0, 1, {5}, {16}, 8, 1, {5}, {16}, APART},
    {"even and odd, one reversed", 64, 1, {5}, {-16}, 8, 1, {5}, {16}, APART},
    {"even and odd columns", 0, 2, {4, 5}, {80, 16}, 8, 2, {4, 5}, {80, 16}, APART},
    {"interleaved, not told", 0, 2, {4, 5}, {72, 16}, 8, 2, {4, 4}, {72, 16}, REFUSED},
    {"left and right halves", 0, 2, {4, 5}, {80, 8}, 40, 2, {4, 5}, {80, 8}, APART},
    {"halves that share a column", 0, 2, {4, 6}, {80, 8}, 40, 2, {4, 5}, {80, 8}, REFUSED},
    {"upper and lower", 0, 2, {2, 10}, {80, 8}, 160, 2, {2, 10}, {80, 8}, APART},
    {"every second, all", 0, 1, {5}, {16}, 0, 1, {10}, {8}, REFUSED},
    {"no elements", 0, 2, {0, 9}, {72, 8}, 0, 2, {0, 9}, {72, 8}, APART},
    {"zero stride", 1000, 1, {1}, {8}, 0, 2, {2, 4}, {0, 8}, BAD_EXTENT},
    {"crossing strides", 1000, 1, {1}, {8}, 0, 2, {4, 4}, {16, 8}, BAD_EXTENT},
    {"elements over each other", 1000, 1, {1}, {8}, 0, 1, {4}, {4}, BAD_EXTENT},
    {"below the start", 1000, 1, {1}, {8}, 8, 1, {4}, {-8}, BAD_EXTENT},
    {"beyond any end", 1000, 1, {1}, {8}, UINT64_MAX - 8, 1, {1}, {8}, BAD_EXTENT},
    {"scalars", 8, 0, {0}, {0}, 8, 0, {0}, {0}, IN_PLACE},
};

Test(overlap, cases)
{
    static const int words[] = {0, 0, GAD_OVERLAPPING_OUTPUT, GAD_BAD_EXTENT};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct case_arrays c;
        struct gad_error error = {.status = GAD_OK};
        bool in_place = false;
        case_init(&c);
        set_array(&c.args[0].array, table[i].a_offset, table[i].a_ndim, table[i].a_shape,
                  table[i].a_strides);
        set_array(&c.outputs[0].to, table[i].r_offset, table[i].r_ndim, table[i].r_shape,
                  table[i].r_strides);
        cr_assert(eq(int, check(&c, &in_place, &error), words[table[i].answer]), "%s",
                  table[i].what);
        cr_assert(eq(int, in_place, table[i].answer == IN_PLACE), "%s", table[i].what);
        if (table[i].answer >= REFUSED)
            cr_assert(eq(str, error.argument, (char *)"r"), "%s", table[i].what);
    }
}

static const int64_t ten[] = {10};

Test(overlap, other_objects_and_things_without_identity_do_not_meet)
{
    struct case_arrays c;
    bool in_place = true;

    case_init(&c);
    set_array(&c.args[0].array, 8, 1, ten, NULL);
    set_array(&c.outputs[0].to, 0, 1, ten, NULL);
    c.arg_identities[0].inode++;
    cr_assert(eq(int, check(&c, &in_place, NULL), 0));
    cr_assert(not(in_place));
    c.arg_identities[0] = here;
    c.arg_identities[0].device++;
    cr_assert(eq(int, check(&c, &in_place, NULL), 0));
    c.arg_identities[0].has_identity = false;
    cr_assert(eq(int, check(&c, &in_place, NULL), 0));
    c.arg_identities[0] = here;
    c.args[0].is_scalar = true;
    cr_assert(eq(int, check(&c, &in_place, NULL), 0));
    c.args[0].is_scalar = false;
    cr_assert(eq(int, check(&c, &in_place, NULL), GAD_OVERLAPPING_OUTPUT));
}

Test(overlap, another_item_size_is_not_in_place)
{
    struct case_arrays c;
    struct gad_error error;
    bool in_place;

    case_init(&c);
    set_array(&c.args[0].array, 0, 1, ten, NULL);
    set_array(&c.outputs[0].to, 0, 1, ten, NULL);
    c.args[0].array.dtype = DTYPE_INT64;
    cr_assert(eq(int, check(&c, &in_place, &error), 0));
    cr_assert(in_place);
    c.args[0].array.dtype = DTYPE_FLOAT32;
    cr_assert(eq(int, check(&c, &in_place, &error), GAD_OVERLAPPING_OUTPUT));
    cr_assert(strstr(error.message, "'r'") && strstr(error.message, "'a'"));
}

Test(overlap, memory_attached_twice_is_not_in_place_through_both_regions)
{
    struct case_arrays c;
    struct gad_error error = {.status = GAD_OK};
    bool in_place = false;
    case_init(&c);
    set_array(&c.args[0].array, 64, 1, ten, NULL);
    set_array(&c.outputs[0].to, 64, 1, ten, NULL);
    c.args[0].array.at.region.id = c.outputs[0].to.at.region.id = 3;
    cr_assert(eq(int, check(&c, &in_place, &error), 0));
    cr_assert(in_place);
    c.outputs[0].to.at.region.id = 4;
    cr_assert(eq(int, check(&c, &in_place, &error), GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(str, error.expected, (char *)"the same region id for both"));
    set_array(&c.outputs[0].to, 144, 1, ten, NULL);
    c.outputs[0].to.at.region.id = 4;
    cr_assert(eq(int, check(&c, &in_place, &error), 0), "apart, whatever the region");
}

Test(overlap, two_outputs_may_never_meet)
{
    struct case_arrays c;
    struct gad_error error;
    bool in_place;

    case_init(&c);
    c.request.n_outputs = 2;
    set_array(&c.args[0].array, 1000, 1, ten, NULL);
    set_array(&c.outputs[0].to, 0, 1, ten, NULL);
    set_array(&c.outputs[1].to, 0, 1, ten, NULL);
    cr_assert(eq(int, check(&c, &in_place, &error), GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(str, error.argument, (char *)"s"));
    set_array(&c.outputs[1].to, 80, 1, ten, NULL);
    cr_assert(eq(int, check(&c, &in_place, &error), 0));
}

Test(overlap, chunks_are_not_compared)
{
    struct case_arrays c;
    struct gad_error error;
    bool in_place;

    case_init(&c);
    set_array(&c.args[0].array, 4096, 1, ten, NULL);
    set_array(&c.outputs[0].to, 4100, 1, ten, NULL);
    cr_assert(eq(int, check(&c, &in_place, &error), GAD_OVERLAPPING_OUTPUT));
    c.args[0].array.at = (struct location){.kind = LOCATION_FILE, .file.is_grid = true};
    cr_assert(eq(int, check(&c, &in_place, &error), 0));
}

Test(overlap, in_place_may_not_destroy_what_a_later_pass_reads)
{
    struct case_arrays c;
    struct gad_error error;
    struct program_input input = {.arg = 0};
    struct program_output output = {.pass = 0};
    struct program program = {
        .n_passes = 2, .n_inputs = 1, .n_outputs = 1, .inputs = &input, .outputs = &output};

    case_init(&c);
    set_array(&c.args[0].array, 0, 1, ten, NULL);
    set_array(&c.outputs[0].to, 0, 1, ten, NULL);
    program.passes[0].inputs_used = program.passes[1].inputs_used = 1;
    cr_assert(eq(
        int,
        overlap_check_passes(&c.request, &program, c.arg_identities, c.output_identities, &error),
        GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(str, error.argument, (char *)"r"));
    output.pass = 1;
    cr_assert(eq(
        int,
        overlap_check_passes(&c.request, &program, c.arg_identities, c.output_identities, &error),
        0));
    output.pass = 0;
    program.passes[1].inputs_used = 0;
    cr_assert(eq(
        int,
        overlap_check_passes(&c.request, &program, c.arg_identities, c.output_identities, &error),
        0));
}

Test(overlap, only_the_last_pass_of_a_product_may_read_what_it_overwrites)
{
    struct case_arrays c;
    struct gad_error error;
    struct program_input inputs[2] = {{.arg = 0}, {.arg = 0, .is_transposed = true}};
    struct program_output output = {.pass = PRODUCT_RESULT};
    struct program_product product = {.first_pass = 0};
    struct program program = {.n_passes = PRODUCT_N_PASSES,
                              .n_products = 1,
                              .n_inputs = 2,
                              .n_outputs = 1,
                              .inputs = inputs,
                              .outputs = &output,
                              .products = &product};

    case_init(&c);
    set_array(&c.args[0].array, 0, 1, ten, NULL);
    set_array(&c.outputs[0].to, 0, 1, ten, NULL);
    for (unsigned pass = 0; pass < PRODUCT_N_PASSES; pass++) {
        for (unsigned input = 0; input < 2; input++) {
            program.passes[pass].inputs_used = 1u << input;
            int r = overlap_check_passes(&c.request, &program, c.arg_identities,
                                         c.output_identities, &error);
            cr_assert(eq(int, r, pass == PRODUCT_RESULT ? 0 : GAD_OVERLAPPING_OUTPUT));
            program.passes[pass].inputs_used = 0;
        }
    }
    c.arg_identities[0].inode++;
    program.passes[PRODUCT_LEFT].inputs_used = 1;
    cr_assert(eq(
        int,
        overlap_check_passes(&c.request, &program, c.arg_identities, c.output_identities, &error),
        0));
}

#define SPACE 4096

static int64_t byte_of(const struct array *array, int64_t index, int64_t byte)
{
    int64_t at = (int64_t)array->at.region.offset_bytes + byte;

    for (int i = array->ndim - 1; i >= 0; index /= array->shape[i], i--)
        at += index % array->shape[i] * array->strides[i];
    return at;
}

/* How often the most used byte is used; counts into `used`. */
static int mark(const struct array *array, unsigned char *used)
{
    int most = 0;

    for (int64_t i = 0; i < array_n_elements(array); i++) {
        for (int64_t byte = 0; byte < 8; byte++) {
            int n = ++used[byte_of(array, i, byte)];
            most = n > most ? n : most;
        }
    }
    return most;
}

static void random_array(struct array *array)
{
    static const int64_t steps[] = {8, 16, 24, 32, 40, 64, 80, 96, 4, 0};
    int64_t shape[2] = {1 + rand() % 5, 1 + rand() % 5};
    int64_t strides[2] = {steps[rand() % 10] * (rand() % 3 ? 1 : -1),
                          steps[rand() % 10] * (rand() % 3 ? 1 : -1)};

    set_array(array, SPACE / 2 + (uint64_t)(rand() % 30) * 4, 1 + rand() % 2, shape, strides);
}

Test(overlap, what_is_let_through_shares_no_byte)
{
    unsigned n_interleaved = 0;

    srand(4);
    for (int round = 0; round < 200000; round++) {
        static unsigned char used[SPACE];
        struct case_arrays c;
        bool in_place;
        case_init(&c);
        random_array(&c.args[0].array);
        random_array(&c.outputs[0].to);
        int r = check(&c, &in_place, NULL);
        memset(used, 0, sizeof(used));
        int n_self = mark(&c.outputs[0].to, used);
        if (r) {
            continue;
        }
        cr_assert(eq(int, n_self, 1));
        if (in_place)
            continue;
        for (int64_t i = 0; i < array_n_elements(&c.args[0].array); i++) {
            for (int64_t byte = 0; byte < 8; byte++)
                cr_assert(eq(int, used[byte_of(&c.args[0].array, i, byte)], 0));
        }
        int64_t low, high, r_low, r_high;
        array_extent(&c.args[0].array, &low, &high);
        array_extent(&c.outputs[0].to, &r_low, &r_high);
        low += (int64_t)c.args[0].array.at.region.offset_bytes;
        high += (int64_t)c.args[0].array.at.region.offset_bytes;
        r_low += (int64_t)c.outputs[0].to.at.region.offset_bytes;
        r_high += (int64_t)c.outputs[0].to.at.region.offset_bytes;
        n_interleaved += low < r_high && r_low < high;
    }
    cr_assert(lt(uint, 100, n_interleaved));
}
