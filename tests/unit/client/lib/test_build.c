/* Requests: what is refused before they are sent, and that what is sent decodes to what was meant.
 */
#include "client/lib/jobs/build.h"
#include "client/lib/jobs/job.h"
#include "client/lib/jobs/job_options.h"
#include "client/lib/memory/memory.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <string.h>

static struct gad_array *memory(enum gad_dtype dtype, int ndim, const int64_t *shape,
                                const int64_t *strides, void *data, bool is_writable)
{
    struct gad_array *array;
    struct gad_error error = {0};
    struct gad_layout layout = {.dtype = dtype, .ndim = ndim, .shape = shape, .strides = strides};
    cr_assert(
        zero(int, (int)gad_array_from_memory(NULL, &layout, data, is_writable, &array, &error)),
        "%s", error.message);
    return array;
}

static int refused(struct gad_job_options options, struct gad_error *error)
{
    static const struct gad_output one = {.expr = "1"};
    if (!options.outputs) {
        options.outputs = &one;
        options.n_outputs = 1;
    }
    return build_check_options(&options, error);
}

Test(options, refuse_what_would_be_cut_or_crash)
{
    struct gad_error error;
    char long_name[70];
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    struct gad_argument unnamed = {.scalar = GAD_SCALAR_INT};
    struct gad_argument empty = {.name = "x"};
    struct gad_argument too_long = {.name = long_name, .scalar = GAD_SCALAR_INT};
    struct gad_argument twice[] = {{.name = "x", .scalar = GAD_SCALAR_INT},
                                   {.name = "x", .scalar = GAD_SCALAR_INT}};
    struct gad_argument strange = {.name = "x", .scalar = (enum gad_scalar_kind)9};
    cr_assert(eq(int, build_check_options(NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, refused((struct gad_job_options){.n_args = 1}, &error), GAD_BAD_ARGUMENT));
    const struct gad_argument *one[] = {&unnamed, &empty, &too_long, &strange};
    for (size_t i = 0; i < ARRAY_LENGTH(one); i++)
        cr_assert(eq(int, refused((struct gad_job_options){.n_args = 1, .args = one[i]}, &error),
                     GAD_BAD_ARGUMENT));
    cr_assert(eq(int, refused((struct gad_job_options){.n_args = 2, .args = twice}, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, refused((struct gad_job_options){.n_args = 65, .args = twice}, &error),
                 GAD_LIMIT_EXCEEDED));
    cr_assert(
        eq(int, refused((struct gad_job_options){.priority = 101}, &error), GAD_BAD_ARGUMENT));
    cr_assert(
        eq(int, refused((struct gad_job_options){.engine = "gpu"}, &error), GAD_BAD_ARGUMENT));
    static const char *const wrong[] = {"",        "cuda:",   "cuda:x", "cuda:16", "cuda:01",
                                        "cuda: 1", "cuda:-1", "cpu:0",  "CUDA",    "cuda:1 "};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        cr_assert(eq(int, refused((struct gad_job_options){.engine = wrong[i]}, &error),
                     GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.found, "cuda:1 "));
    static const struct gad_beyond strange_ones[] = {
        {.mode = (enum gad_pad_mode)5},
        {.mode = GAD_PAD_WRAP, .value = {.kind = GAD_SCALAR_INT}},
        {.mode = GAD_PAD_CONSTANT, .value = {.kind = (enum gad_scalar_kind)9}}};
    for (size_t i = 0; i < ARRAY_LENGTH(strange_ones); i++)
        cr_assert(eq(int, refused((struct gad_job_options){.beyond = &strange_ones[i]}, &error),
                     GAD_BAD_ARGUMENT));
    cr_assert(zero(int, refused((struct gad_job_options){.engine = "cuda"}, &error)));
    cr_assert(zero(int, refused((struct gad_job_options){.engine = "cuda:15"}, &error)));
}

static int refused_output(struct gad_output output, struct gad_error *error)
{
    return refused((struct gad_job_options){.n_outputs = 1, .outputs = &output}, error);
}

Test(options, refuse_outputs_that_cannot_be)
{
    struct gad_error error;
    double data[12];
    int64_t shape[] = {3, 4}, itself[] = {0, 8}, crossing[] = {8, 8}, swapped[] = {8, 24};
    struct gad_array *reading = memory(GAD_FLOAT64, 2, shape, NULL, data, false);
    struct gad_array *zeroed = memory(GAD_FLOAT64, 2, shape, itself, data, true);
    struct gad_array *crossed = memory(GAD_FLOAT64, 2, shape, crossing, data, true);
    struct gad_array *fortran = memory(GAD_FLOAT64, 2, shape, swapped, data, true);
    struct gad_output none = {.expr = NULL};
    char *expr = malloc(REQUEST_MAX_EXPR_CHARS + 2);
    memset(expr, '1', REQUEST_MAX_EXPR_CHARS + 1);
    expr[REQUEST_MAX_EXPR_CHARS + 1] = '\0';
    cr_assert(eq(int, refused_output(none, &error), GAD_BAD_ARGUMENT));
    cr_assert(
        eq(int, refused_output((struct gad_output){.expr = expr}, &error), GAD_LIMIT_EXCEEDED));
    cr_assert(eq(int, refused_output((struct gad_output){.expr = "1", .to = reading}, &error),
                 GAD_READ_ONLY));
    cr_assert(eq(str, error.argument, "outputs[0]"));
    cr_assert(
        eq(int, refused_output((struct gad_output){.expr = "1", .name = "r", .to = zeroed}, &error),
           GAD_BAD_EXTENT));
    cr_assert(eq(str, error.argument, "r"));
    cr_assert(eq(int, refused_output((struct gad_output){.expr = "1", .to = crossed}, &error),
                 GAD_BAD_EXTENT));
    cr_assert(zero(int, refused_output((struct gad_output){.expr = "1", .to = fortran}, &error)));
    cr_assert(eq(
        int,
        refused_output((struct gad_output){.expr = "1", .to = fortran, .to_path = "r.npy"}, &error),
        GAD_BAD_ARGUMENT));
    struct gad_output two[] = {{.expr = "1", .to = fortran}, {.expr = "2", .to = fortran}};
    cr_assert(eq(int, refused((struct gad_job_options){.n_outputs = 2, .outputs = two}, &error),
                 GAD_OVERLAPPING_OUTPUT));
    free(expr);
    gad_array_release(reading);
    gad_array_release(zeroed);
    gad_array_release(crossed);
    gad_array_release(fortran);
}

Test(memory, refuses_shapes_that_cannot_be)
{
    struct gad_array *array;
    struct gad_error error;
    double data;
    int64_t negative[] = {3, -1}, huge[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    int64_t shape[] = {3}, far[] = {INT64_MAX};
    int64_t many[GAD_MAX_NDIM + 1] = {0};
    struct {
        int dtype, ndim;
        const int64_t *shape, *strides;
        void *data;
        enum gad_status status;
    } cases[] = {
        {GAD_FLOAT64, 2, negative, NULL, &data, GAD_BAD_SHAPE},
        {GAD_FLOAT64, 2, huge, NULL, &data, GAD_BAD_SHAPE},
        {GAD_FLOAT64, -1, shape, NULL, &data, GAD_BAD_SHAPE},
        {GAD_FLOAT64, GAD_MAX_NDIM + 1, many, NULL, &data, GAD_BAD_SHAPE},
        {GAD_FLOAT64, 1, NULL, NULL, &data, GAD_BAD_ARGUMENT},
        {GAD_FLOAT64, 1, shape, NULL, NULL, GAD_BAD_ARGUMENT},
        {GAD_FLOAT64, 1, shape, far, &data, GAD_BAD_EXTENT},
        {11, 1, shape, NULL, &data, GAD_BAD_ARGUMENT},
        {-1, 1, shape, NULL, &data, GAD_BAD_ARGUMENT},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct gad_layout layout = {.dtype = (enum gad_dtype)cases[i].dtype,
                                    .ndim = cases[i].ndim,
                                    .shape = cases[i].shape,
                                    .strides = cases[i].strides};
        cr_assert(
            eq(int, (int)gad_array_from_memory(NULL, &layout, cases[i].data, false, &array, &error),
               (int)cases[i].status),
            "case %zu: %s", i, error.message);
    }
}

Test(memory, sees_how_arrays_meet)
{
    double data[100];
    int64_t shape[] = {10}, back[] = {-8}, wide[] = {16};
    struct gad_array *low = memory(GAD_FLOAT64, 1, shape, NULL, data, true);
    struct gad_array *again = memory(GAD_INT64, 1, shape, NULL, data, true);
    struct gad_array *next = memory(GAD_FLOAT64, 1, shape, NULL, data + 10, true);
    struct gad_array *across = memory(GAD_FLOAT64, 1, shape, NULL, data + 9, true);
    struct gad_array *backwards = memory(GAD_FLOAT64, 1, shape, back, data + 18, true);
    struct gad_array *even = memory(GAD_FLOAT64, 1, shape, wide, data, true);
    struct gad_array *odd = memory(GAD_FLOAT64, 1, shape, wide, data + 1, true);
    cr_assert(eq(int, memory_meet(low, next), MEMORY_APART));
    cr_assert(eq(int, memory_meet(low, across), MEMORY_OVERLAPS));
    cr_assert(eq(int, memory_meet(low, low), MEMORY_IS_SAME));
    cr_assert(eq(int, memory_meet(low, again), MEMORY_IS_SAME));
    cr_assert(eq(int, memory_meet(low, backwards), MEMORY_OVERLAPS));
    cr_assert(eq(int, memory_meet(low, even), MEMORY_OVERLAPS));
    cr_assert(eq(int, memory_meet(odd, even), MEMORY_APART));
    struct gad_array *all[] = {low, again, next, across, backwards, even, odd};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        gad_array_release(all[i]);
}

/* Encodes, decodes, and leaves the decoded request in *ret; body keeps what it points into. */
struct sent {
    struct gad_client client;
    struct build build;
    struct message message;
    struct job_request *request;
};

static void encode(struct sent *s, const struct gad_job_options *options,
                   struct gad_array *const *to)
{
    struct gad_error error = {0};
    struct build_source source = {.options = options, .to = to, .key = "k", .settle = true};
    bool has_id;
    *s = (struct sent){0};
    message_writer_init(&s->client.writer);
    cr_assert(zero(int, build_init(&s->build, &s->client, &source, &error)), "%s", error.message);
    message_begin_request(&s->client.writer, 1, "job.submit");
    request_encode(&s->client.writer.packer, &s->build.request);
    const msgpack_sbuffer *body = &s->client.writer.buffer;
    cr_assert(zero(int, frame_body_check(body->data, body->size)));
    cr_assert(zero(int, message_decode(body->data, body->size, &s->message, &has_id, &error)));
    cr_assert(
        zero(int, request_decode(&s->message.params, s->build.n_fds, false, &s->request, &error)),
        "%s", error.message);
}

static void sent_deinit(struct sent *s)
{
    request_free(s->request);
    message_deinit(&s->message);
    build_deinit(&s->build);
    message_writer_deinit(&s->client.writer);
}

Test(build, packs_small_strided_arrays_into_the_message)
{
    int32_t data[12];
    for (int i = 0; i < 12; i++)
        data[i] = i;
    int64_t shape[] = {4, 3}, fortran[] = {4, 16};
    struct gad_array *array = memory(GAD_INT32, 2, shape, fortran, data, false);
    struct gad_argument args[] = {
        {.name = "a", .array = array},
        {.name = "b", .scalar = GAD_SCALAR_BOOL, .int_value = 7},
        {.name = "i", .scalar = GAD_SCALAR_INT, .int_value = -5},
        {.name = "f", .scalar = GAD_SCALAR_FLOAT, .float_value = 2.5},
    };
    struct gad_output outputs[] = {{.expr = "a + i", .name = "sum"}};
    struct gad_job_options options = {.n_args = 4,
                                      .args = args,
                                      .n_outputs = 1,
                                      .outputs = outputs,
                                      .engine = "cpu",
                                      .priority = -3,
                                      .label = "hello",
                                      .tf32 = true};
    struct gad_array *to[] = {NULL};
    struct sent s;
    encode(&s, &options, to);
    cr_assert(s.request->tf32);
    cr_assert(eq(uint, s.request->n_args, 4));
    const struct array *a = &s.request->args[0].array;
    cr_assert(eq(int, (int)a->at.kind, LOCATION_INLINE));
    cr_assert(eq(u64, a->at.inlined.size_bytes, 48));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++) {
            int32_t value;
            memcpy(&value, (const char *)a->at.inlined.bytes + 4 * (i * 3 + j), 4);
            cr_assert(eq(i32, value, i + 4 * j));
        }
    cr_assert(s.request->args[1].is_scalar && s.request->args[1].scalar.u64 == 1);
    cr_assert(eq(i64, s.request->args[2].scalar.i64, -5));
    cr_assert(eq(dbl, s.request->args[3].scalar.f64, 2.5));
    cr_assert(eq(int, (int)s.request->engine, ENGINE_CPU));
    cr_assert(eq(int, s.request->priority, -3));
    cr_assert(eq(str, s.request->label, "hello"));
    cr_assert(eq(str, s.request->key, "k"));
    cr_assert(s.request->settle);
    cr_assert(not(s.request->outputs[0].has_to));
    cr_assert(zero(uint, s.build.n_fds));
    sent_deinit(&s);
    gad_array_release(array);
}

Test(build, says_what_is_beyond_the_ends)
{
    static const struct {
        struct gad_beyond beyond;
        enum near_mode mode;
        enum dtype dtype;
        union scalar value;
    } rows[] = {
        {{.mode = GAD_PAD_EDGE}, NEAR_EDGE, DTYPE_BOOL, {.u64 = 0}}, /* as if nothing were said */
        {{.mode = GAD_PAD_WRAP}, NEAR_WRAP, DTYPE_INT64, {.u64 = 0}},
        {{.mode = GAD_PAD_REFLECT}, NEAR_REFLECT, DTYPE_INT64, {.u64 = 0}},
        {{.mode = GAD_PAD_SYMMETRIC}, NEAR_SYMMETRIC, DTYPE_INT64, {.u64 = 0}},
        {{.mode = GAD_PAD_CONSTANT}, NEAR_CONSTANT, DTYPE_INT64, {.u64 = 0}},
        {{.mode = GAD_PAD_CONSTANT, .value = {.kind = GAD_SCALAR_FLOAT, .float_value = 2.5}},
         NEAR_CONSTANT,
         DTYPE_FLOAT64,
         {.f64 = 2.5}},
        {{.mode = GAD_PAD_CONSTANT, .value = {.kind = GAD_SCALAR_UINT, .uint_value = UINT64_MAX}},
         NEAR_CONSTANT,
         DTYPE_UINT64,
         {.u64 = UINT64_MAX}},
        {{.mode = GAD_PAD_CONSTANT, .value = {.kind = GAD_SCALAR_INT, .int_value = -3}},
         NEAR_CONSTANT,
         DTYPE_INT64,
         {.i64 = -3}},
    };
    struct gad_output outputs[] = {{.expr = "1"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct gad_job_options options = {
            .n_outputs = 1, .outputs = outputs, .beyond = &rows[i].beyond};
        struct gad_array *to[] = {NULL};
        struct sent s;
        encode(&s, &options, to);
        cr_expect(eq(int, (int)s.request->beyond.mode, (int)rows[i].mode), "row %zu", i);
        cr_expect(eq(int, (int)s.request->beyond.dtype, (int)rows[i].dtype), "row %zu", i);
        cr_expect(eq(u64, s.request->beyond.value.u64, rows[i].value.u64), "row %zu", i);
        sent_deinit(&s);
    }
}

Test(build, sends_large_memory_through_rings)
{
    enum { N = 100000 };
    double *data = calloc(N, sizeof(double));
    int64_t shape[] = {N};
    struct gad_array *array = memory(GAD_FLOAT64, 1, shape, NULL, data, true);
    struct gad_argument args[] = {{.name = "a", .array = array}, {.name = "b", .array = array}};
    struct gad_output outputs[] = {{.expr = "a", .to = array}};
    struct gad_job_options options = {
        .n_args = 2, .args = args, .n_outputs = 1, .outputs = outputs};
    struct gad_array *to[] = {array};
    struct sent s;
    encode(&s, &options, to);
    cr_assert(eq(uint, s.build.n_fds, 9));
    cr_assert(eq(int, (int)s.request->args[1].array.at.kind, LOCATION_PROVIDER));
    cr_assert(eq(int, (int)s.request->outputs[0].to.at.kind, LOCATION_PROVIDER));
    cr_assert(s.build.feeds->is_sink, "the last one made");
    for (unsigned i = 0; i < s.build.n_fds; i++)
        cr_assert(eq(int, fcntl(s.build.fds[i], F_GETFD), FD_CLOEXEC));
    sent_deinit(&s);
    gad_array_release(array);
    free(data);
}

Test(build, turns_to_rings_when_the_message_is_full)
{
    enum { N = 14, BYTES = ARRAY_MAX_INLINE_BYTES };
    char *data = calloc(1, BYTES), names[N][4];
    int64_t shape[] = {BYTES};
    struct gad_array *array = memory(GAD_UINT8, 1, shape, NULL, data, false);
    struct gad_argument args[N] = {{0}};
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "a%d", i);
        args[i] = (struct gad_argument){.name = names[i], .array = array};
    }
    struct gad_output outputs[] = {{.expr = "a0"}};
    struct gad_job_options options = {
        .n_args = N, .args = args, .n_outputs = 1, .outputs = outputs};
    struct gad_array *to[] = {NULL};
    struct sent s;
    encode(&s, &options, to);
    cr_assert(le(sz, s.client.writer.buffer.size, FRAME_MAX_BODY_BYTES));
    cr_assert(eq(int, (int)s.request->args[11].array.at.kind, LOCATION_INLINE));
    cr_assert(eq(int, (int)s.request->args[12].array.at.kind, LOCATION_PROVIDER));
    cr_assert(eq(int, (int)s.request->args[13].array.at.kind, LOCATION_PROVIDER));
    sent_deinit(&s);
    gad_array_release(array);
    free(data);
}

Test(build, has_room_for_the_rings_of_every_array)
{
    enum { N = REQUEST_MAX_ARGS, N_TO = REQUEST_MAX_OUTPUTS };
    char *data = calloc(1, 100000), names[N][4];
    struct gad_array *to[N_TO];
    int64_t shape[] = {100000};
    struct gad_array *array = memory(GAD_UINT8, 1, shape, NULL, data, false);
    struct gad_argument args[N] = {{0}};
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "a%d", i);
        args[i] = (struct gad_argument){.name = names[i], .array = array};
    }
    struct gad_output outputs[N_TO];
    for (int i = 0; i < N_TO; i++) {
        outputs[i] = (struct gad_output){.expr = "a0"};
        to[i] = memory(GAD_UINT8, 1, shape, NULL, data, true);
    }
    struct gad_job_options options = {
        .n_args = N, .args = args, .n_outputs = N_TO, .outputs = outputs};
    struct sent s;
    encode(&s, &options, to);
    cr_assert(eq(uint, s.build.n_fds, 3 * (N + N_TO)));
    cr_assert(
        eq(u32, s.request->outputs[N_TO - 1].to.at.provider.done_fd_index, 3 * (N + N_TO) - 1));
    sent_deinit(&s);
    for (int i = 0; i < N_TO; i++)
        gad_array_release(to[i]);
    gad_array_release(array);
    free(data);
}

Test(build, cuts_labels_between_characters)
{
    char label[100];
    memset(label, 'x', sizeof(label));
    memcpy(label + 62, "\xc3\xa4", 2); /* across the end of the field */
    label[99] = '\0';
    struct gad_output outputs[] = {{.expr = "1"}};
    struct gad_job_options options = {.n_outputs = 1, .outputs = outputs, .label = label};
    struct gad_array *to[] = {NULL};
    struct sent s;
    encode(&s, &options, to);
    cr_assert(eq(sz, strlen(s.request->label), 62));
    sent_deinit(&s);
}

Test(build, turns_the_named_array_to_its_provider)
{
    static const struct provider provider = {0};
    struct gad_array *a = array_new(NULL, "npy", ACCESS_FILE, "a.npy");
    struct gad_array *b = array_new(NULL, "npy", ACCESS_FILE, "b.npy");
    a->provider = b->provider = &provider;
    struct gad_argument args[] = {{.name = "a", .array = a}, {.name = "b", .array = b}};
    struct gad_output outputs[] = {{.expr = "a", .to = NULL}};
    struct gad_job_options options = {
        .n_args = 2, .args = args, .n_outputs = 1, .outputs = outputs};
    struct gad_array *to[] = {NULL};
    struct gad_error error = {.argument = "b"};
    cr_assert(job_turn_to_providers(&options, to, &error));
    cr_assert(eq(int, (int)a->access, ACCESS_FILE));
    cr_assert(eq(int, (int)b->access, ACCESS_PROVIDER));
    cr_assert(eq(str, (char *)gad_array_info(b)->access, (char *)"provider"));
    cr_assert(not(job_turn_to_providers(&options, to, &error)), "not twice");
    strcpy(error.argument, "something else");
    cr_assert(job_turn_to_providers(&options, to, &error));
    cr_assert(eq(int, (int)a->access, ACCESS_PROVIDER));
    gad_array_release(a);
    gad_array_release(b);
}

Test(build, copies_options_whole)
{
    double data[3] = {0};
    int64_t shape[] = {3};
    struct gad_array *array = memory(GAD_FLOAT64, 1, shape, NULL, data, true);
    char name[] = "a", expr[] = "a+1", label[] = "l";
    struct gad_beyond beyond = {.mode = GAD_PAD_WRAP};
    struct gad_argument args[] = {{.name = name, .array = array}};
    struct gad_output outputs[] = {{.expr = expr, .to = array}};
    struct gad_job_options options = {.n_args = 1,
                                      .args = args,
                                      .n_outputs = 1,
                                      .outputs = outputs,
                                      .beyond = &beyond,
                                      .label = label},
                           copy;
    cr_assert(zero(int, job_options_copy(&options, &copy)));
    memset(name, 'z', 1);
    memset(expr, 'z', 3);
    memset(label, 'z', 1);
    beyond.mode = GAD_PAD_EDGE;
    cr_assert(eq(str, (char *)copy.args[0].name, (char *)"a"));
    cr_assert(eq(str, (char *)copy.outputs[0].expr, (char *)"a+1"));
    cr_assert(eq(str, (char *)copy.label, (char *)"l"));
    cr_assert(eq(int, (int)copy.beyond->mode, GAD_PAD_WRAP));
    cr_assert(eq(uint, array->n_refs, 2));
    cr_assert(job_options_are_small(&copy));
    job_options_deinit(&copy);
    cr_assert(eq(uint, array->n_refs, 1));
    gad_array_release(array);
}

Test(build, calls_large_spaces_of_small_arrays_large)
{
    static char data[8192];
    int64_t row[] = {1, 8192}, column[] = {8192, 1};
    struct gad_array *a = memory(GAD_UINT8, 2, row, NULL, data, false);
    struct gad_array *b = memory(GAD_UINT8, 2, column, NULL, data, false);
    struct gad_argument args[] = {{.name = "a", .array = a}, {.name = "b", .array = b}};
    struct gad_output outputs[] = {{.expr = "sum(a*b)"}};
    struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    cr_assert(job_options_are_small(&options));
    options.n_args = 2;
    cr_assert(not(job_options_are_small(&options)));
    gad_array_release(a);
    gad_array_release(b);
}

Test(build, hands_a_journal_over)
{
    struct gad_argument args[] = {{.name = "i", .scalar = GAD_SCALAR_INT, .int_value = 1}};
    struct gad_output outputs[] = {{.expr = "i"}};
    struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs, .has_journal = true};
    struct gad_array *to[1] = {NULL};
    struct gad_error error = {0};
    char path[] = "/tmp/gad-build.XXXXXX";
    struct journal journal = {.path = path, .fd = mkstemp(path)};
    struct gad_client of = {0};
    struct build build;
    struct build_source source = {.options = &options, .to = to, .journal = &journal};
    cr_assert(ge(int, journal.fd, 0));
    cr_assert(zero(int, build_init(&build, &of, &source, &error)), "%s", error.message);
    cr_assert(build.request.has_journal);
    cr_assert(eq(u32, build.request.journal_fd_index, 0));
    cr_assert(eq(u32, build.n_fds, 1));
    cr_assert(ne(int, build.fds[0], journal.fd)); /* a message's descriptors are its own */
    build_deinit(&build);
    source.purpose = BUILD_PLAN; /* without a file as its output */
    cr_assert(zero(int, build_init(&build, &of, &source, &error)));
    cr_assert(not(build.request.has_journal));
    build_deinit(&build);
    close(journal.fd);
    unlink(path);
}

Test(build, of_a_jobs_times_what_is_left_is_sent)
{
    static const struct {
        uint32_t allowed_ms;
        uint64_t passed_ms;
        uint32_t left_ms;
    } rows[] = {{0, 700, 0}, {1000, 0, 1000}, {1000, 700, 300}, {1000, 1000, 1}, {1000, 9000, 1}};
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct gad_output output = {.expr = "1 + 1"};
        struct gad_job_options options = {.outputs = &output,
                                          .n_outputs = 1,
                                          .queue_timeout_ms = rows[i].allowed_ms,
                                          .deadline_ms = rows[i].allowed_ms};
        struct gad_array *to[1] = {NULL};
        struct gad_error error = {0};
        struct gad_client of = {0};
        struct build build;
        struct build_source source = {
            .options = &options, .to = to, .waited_ms = rows[i].passed_ms};
        cr_assert(zero(int, build_init(&build, &of, &source, &error)), "%s", error.message);
        cr_assert(eq(u32, build.request.queue_timeout_ms, rows[i].left_ms));
        cr_assert(eq(u32, build.request.deadline_ms, rows[i].allowed_ms));
        build_deinit(&build);
        source.waited_ms = 0;
        source.elapsed_ms = rows[i].passed_ms;
        cr_assert(zero(int, build_init(&build, &of, &source, &error)), "%s", error.message);
        cr_assert(eq(u32, build.request.queue_timeout_ms, rows[i].allowed_ms));
        cr_assert(eq(u32, build.request.deadline_ms, rows[i].left_ms));
        build_deinit(&build);
    }
}
