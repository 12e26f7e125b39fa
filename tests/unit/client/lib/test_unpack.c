/* Arguments that are masked and scaled: the texts and names that go to the daemon, and what it says
 * in the program's own. */
#include "client/formats/attributes.h"
#include "client/lib/arguments/unpack.h"
#include "client/meaning.h"
#include "proto/request.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static struct gad_array *packed_array(void)
{
    struct gad_array *array = array_new(NULL, "hdf5", ACCESS_MEMORY, NULL);
    const struct gad_scalar fill = {.kind = GAD_SCALAR_INT, .int_value = -9};
    const struct gad_scalar scale = {.kind = GAD_SCALAR_FLOAT, .float_value = 0.5};
    const struct gad_scalar offset = {.kind = GAD_SCALAR_INT, .int_value = -3};
    const struct gad_scalar range[] = {{.kind = GAD_SCALAR_UINT, .uint_value = 0},
                                       {.kind = GAD_SCALAR_INT, .int_value = -6}};
    const struct gad_attribute attributes[] = {
        {.name = "_FillValue", .n_values = 1, .values = &fill},
        {.name = "scale_factor", .n_values = 1, .values = &scale},
        {.name = "add_offset", .n_values = 1, .values = &offset},
        {.name = "valid_range", .n_values = 2, .values = range},
        {.name = "_Unsigned", .text = "true"},
    };
    array->info.dtype = GAD_INT8;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
        attribute_take(array, &attributes[i]);
    cr_assert(eq(int, attributes_apply(array, GAD_MASK_AND_SCALE, "x", NULL), 0));
    return array;
}

static struct gad_array *plain_array(void)
{
    return array_new(NULL, "npy", ACCESS_MEMORY, NULL);
}

/* What a text of t, which is packed, and x, which is not, is sent as; to be freed. NULL: as it is.
 */
static char *sent(const char *text, const char *name)
{
    struct gad_array *arrays[] = {packed_array(), plain_array()};
    const struct gad_argument args[] = {{.name = name, .array = arrays[0]},
                                        {.name = "x", .array = arrays[1]},
                                        {.name = "k", .scalar = GAD_SCALAR_INT}};
    const struct gad_output output = {.expr = text};
    const struct gad_job_options options = {
        .n_args = 3, .args = args, .n_outputs = 1, .outputs = &output};
    struct gad_error error;
    char *made;
    cr_assert(eq(int, unpack_text(&options, 0, &made, &error), 0));
    gad_array_release(arrays[0]);
    gad_array_release(arrays[1]);
    return made;
}

static void is_sent(const char *text, const char *want)
{
    char *made = sent(text, "t");
    cr_assert(eq(str, made, (char *)want));
    free(made);
}

#define MEANT(p)                                                                                   \
    "np.where((np.uint8(" p ") == 247) | (np.uint8(" p ") < 0) | (np.uint8(" p ") > 250), "        \
    "np.nan, np.float64(np.uint8(" p ")) * 0.5 + (-3)); "

Test(unpack, writes_what_an_argument_stands_for)
{
    is_sent("mean(t)", "t = " MEANT("t_packed") "mean(t)");
    is_sent("x + k", "x + k");
    is_sent("t1 + tt + x", "t1 + tt + x"); /* others' names */
    is_sent("quantile(x, 0.5, method='t')", "quantile(x, 0.5, method='t')");
    is_sent("t_packed2 + t", "t = " MEANT("t_packed") "t_packed2 + t");
    is_sent("t_packed = 1; t", "t = " MEANT("t_packed2") "t_packed = 1; t");
}

Test(unpack, writes_what_a_transposed_argument_stands_for)
{
    is_sent("x @ t.mT", "t_mT = " MEANT("t_packed.mT") "x @ t_mT");
    is_sent("t @ t.T", "t_T = " MEANT("t_packed.T") "t = " MEANT("t_packed") "t @ t_T");
    is_sent("t . mT @ x", "t___mT = " MEANT("t_packed.mT") "t___mT @ x");
    is_sent("t.mT @ t.mT", "t_mT = " MEANT("t_packed.mT") "t_mT @ t_mT");
}

Test(unpack, leaves_other_requests_alone)
{
    struct gad_array *array = plain_array();
    const struct gad_argument args[] = {{.name = "x", .array = array}};
    const struct gad_output output = {.expr = "x.mT @ x"};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = &output};
    struct gad_error error = {.status = GAD_BAD_SHAPE, .message = "column 3: x_packed"};
    char name[ARRAY_NAME_SIZE], *made;
    unpack_name(&options, 0, name);
    cr_assert(eq(str, name, "x"));
    cr_assert(eq(int, unpack_text(&options, 0, &made, &error), 0));
    cr_assert(eq(ptr, made, NULL));
    unpack_restore(&options, &error);
    cr_assert(eq(str, error.message, "column 3: x_packed"));
    gad_array_release(array);
}

Test(unpack, refuses_texts_that_become_too_long_and_names_that_are_taken)
{
    struct gad_array *array = packed_array();
    const struct gad_argument args[] = {{.name = "t", .array = array}};
    char text[REQUEST_MAX_EXPR_CHARS - 20], *made;
    memset(text, ' ', sizeof(text));
    text[0] = 't';
    text[sizeof(text) - 1] = '\0';
    struct gad_output output = {.expr = text, .name = "r"};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = &output};
    struct gad_error error;
    cr_assert(eq(int, unpack_text(&options, 0, &made, &error), GAD_LIMIT_EXCEEDED));
    cr_assert(eq(str, error.argument, "r"));
    output.expr = "t_mT = 1; t.mT @ t";
    cr_assert(eq(int, unpack_text(&options, 0, &made, &error), GAD_BAD_EXPRESSION));
    cr_assert(eq(str, error.argument, "t"));
    gad_array_release(array);
}

Test(unpack, gives_long_names_another_that_fits)
{
    char names[2][ARRAY_NAME_SIZE], sent_names[2][ARRAY_NAME_SIZE];
    struct gad_array *array = packed_array();
    struct gad_argument args[2];
    for (int i = 0; i < 2; i++) {
        memset(names[i], 'a', sizeof(names[i]) - 1);
        names[i][sizeof(names[i]) - 2] = (char)('0' + i);
        names[i][sizeof(names[i]) - 1] = '\0';
        args[i] = (struct gad_argument){.name = names[i], .array = array};
    }
    const struct gad_output output = {.expr = "1"};
    const struct gad_job_options options = {
        .n_args = 2, .args = args, .n_outputs = 1, .outputs = &output};
    for (unsigned i = 0; i < 2; i++)
        unpack_name(&options, i, sent_names[i]);
    cr_assert(ne(str, sent_names[0], sent_names[1]));
    cr_assert(strstr(sent_names[0], "_packed") != NULL);
    gad_array_release(array);
}

Test(unpack, puts_refusals_back_into_the_programs_words)
{
    struct gad_array *array = packed_array();
    const struct gad_argument args[] = {{.name = "t", .array = array}};
    const struct gad_output outputs[] = {{.expr = "t @ t.mT", .name = "r"}, {.expr = "x"}};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 2, .outputs = outputs};
    struct gad_error error = {.status = GAD_BAD_SHAPE, .argument = "r"};
    char *made;
    cr_assert(eq(int, unpack_text(&options, 0, &made, &error), 0));
    size_t n_beginning = strlen(made) - strlen("t @ t.mT");
    free(made);
    snprintf(error.message, sizeof(error.message), "column %zu: 't_packed' and t_packed1 and t_mT",
             n_beginning + 5);
    unpack_restore(&options, &error);
    cr_assert(eq(str, error.message, "column 5: 't' and t_packed1 and t.mT"));

    error = (struct gad_error){.status = GAD_BAD_EXPRESSION, .argument = "r"};
    snprintf(error.message, sizeof(error.message), "column 1: 't' is a constant");
    unpack_restore(&options, &error);
    cr_assert(eq(str, error.message, "'t' is a constant"));

    error = (struct gad_error){.status = GAD_UNKNOWN_NAME, .argument = "outputs[1]"};
    snprintf(error.message, sizeof(error.message), "column 1: unknown name 'x'");
    unpack_restore(&options, &error);
    cr_assert(eq(str, error.message, "column 1: unknown name 'x'"));

    error = (struct gad_error){.status = GAD_SHORT_READ, .argument = "t_packed"};
    unpack_restore(&options, &error);
    cr_assert(eq(str, error.argument, "t"));
    gad_array_release(array);
}
