/* Arrays that a function of the program makes of blocks of others, in threads of the library. */
#include "tests/unit/client/lib/daemon/spawned_daemon.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 61, COLUMNS = 47, DEPTH = 2 };

static struct gad_client *client;

static void set_up(void)
{
    client = spawn_daemon();
}

static void tear_down(void)
{
    end_daemon(client);
}

TestSuite(from_function, .init = set_up, .fini = tear_down, .timeout = 100);

/* What the function is, and what became of it. */
struct state {
    int64_t bad_row; /* blocks from there on fail; negative: none does */
    int (*fail)(const struct gad_function_call *call);
    pthread_mutex_t gate; /* calls wait for it */
    atomic_int n_calls, n_freed;
};

static double at(const struct gad_block *block, int64_t i, int64_t j)
{
    return *(const double *)((const char *)block->data + i * block->strides[0] +
                             j * block->strides[1]);
}

/* The sum of what is DEPTH away, and the row's number in the second input. */
static int cross(void *data, const struct gad_function_call *call)
{
    struct state *state = data;
    const struct gad_block *in = &call->inputs[0], *rows = &call->inputs[1], *out = call->output;
    state->n_calls++;
    pthread_mutex_lock(&state->gate);
    pthread_mutex_unlock(&state->gate);
    if (call->n_inputs != 2 || in->shape[0] != out->shape[0] + 2 * DEPTH ||
        in->shape[1] != out->shape[1] + 2 * DEPTH || in->start[0] != out->start[0] ||
        in->whole[1] != COLUMNS || in->halo[0] != DEPTH || rows->shape[1] != 1)
        return EBADMSG;
    if (state->bad_row >= 0 && out->start[0] >= state->bad_row)
        return state->fail(call);
    for (int64_t i = 0; i < out->shape[0]; i++)
        for (int64_t j = 0; j < out->shape[1]; j++)
            *(double *)((char *)out->data + i * out->strides[0] + j * out->strides[1]) =
                at(in, i, j + DEPTH) + at(in, i + 2 * DEPTH, j + DEPTH) + at(in, i + DEPTH, j) +
                at(in, i + DEPTH, j + 2 * DEPTH) + at(rows, i, 0);
    return 0;
}

static void free_state(void *data)
{
    ((struct state *)data)->n_freed++;
}

static int64_t place(enum gad_pad_mode mode, int64_t i, int64_t n)
{
    switch (mode) {
    case GAD_PAD_EDGE: return i < 0 ? 0 : i >= n ? n - 1 : i;
    case GAD_PAD_REFLECT: return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
    case GAD_PAD_SYMMETRIC: return i < 0 ? -i - 1 : i >= n ? 2 * n - 1 - i : i;
    case GAD_PAD_WRAP: return (i + n) % n;
    default: return i < 0 || i >= n ? -1 : i;
    }
}

static double cells[ROWS][COLUMNS], numbers[ROWS], made[ROWS][COLUMNS];

static double cell(enum gad_pad_mode mode, int64_t i, int64_t j)
{
    i = place(mode, i, ROWS);
    j = place(mode, j, COLUMNS);
    return i < 0 || j < 0 ? 0 : cells[i][j];
}

static struct gad_array *wrap(void *data, int64_t n_rows, int64_t n_columns)
{
    struct gad_array *array;
    const int64_t shape[] = {n_rows, n_columns};
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 2, .shape = shape};
    cr_assert(zero(int, (int)gad_array_from_memory(client, &layout, data, true, &array, NULL)));
    return array;
}

/* By three threads, in blocks that do not fit evenly. The inputs are the array's alone. */
static enum gad_status make(struct state *state, enum gad_pad_mode mode, int64_t n_columns,
                            struct gad_array **ret, struct gad_error *error)
{
    const int64_t shape[] = {ROWS, n_columns}, block[] = {7, 11}, depth[] = {DEPTH, DEPTH};
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 2, .shape = shape};
    for (int i = 0; i < ROWS; i++) {
        numbers[i] = i;
        for (int j = 0; j < COLUMNS; j++)
            cells[i][j] = (i * 31 + j * 17) % 101;
    }
    *state = (struct state){.bad_row = -1};
    pthread_mutex_init(&state->gate, NULL);
    const struct gad_function_input inputs[] = {
        {.array = wrap(cells, ROWS, COLUMNS), .depth = depth}, {.array = wrap(numbers, ROWS, 1)}};
    const struct gad_function function = {.call = cross,
                                          .free = free_state,
                                          .data = state,
                                          .n_inputs = 2,
                                          .inputs = inputs,
                                          .mode = mode,
                                          .block = block,
                                          .n_threads = 3};
    enum gad_status status = gad_array_from_function(client, &layout, &function, ret, error);
    gad_array_release(inputs[0].array);
    gad_array_release(inputs[1].array);
    return status;
}

static struct gad_array *make_well(struct state *state, enum gad_pad_mode mode)
{
    struct gad_array *array;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)make(state, mode, COLUMNS, &array, &error)), "%s", error.message);
    return array;
}

static enum gad_status run(const char *expr, struct gad_array *a, struct gad_error *error)
{
    struct gad_array *to = wrap(made, ROWS, COLUMNS);
    const struct gad_argument args[] = {{.name = "a", .array = a}};
    const struct gad_output outputs[] = {{.expr = expr, .to = to}};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    enum gad_status status = gad_run(client, &options, NULL, error);
    gad_array_release(to);
    return status;
}

static void finish(struct state *state, struct gad_array *array)
{
    cr_assert(zero(int, state->n_freed));
    gad_array_release(array);
    cr_assert(eq(int, state->n_freed, 1));
    pthread_mutex_destroy(&state->gate);
}

Test(from_function, sees_its_neighbours_and_what_lies_beyond_the_borders)
{
    static const enum gad_pad_mode modes[] = {GAD_PAD_CONSTANT, GAD_PAD_EDGE, GAD_PAD_REFLECT,
                                              GAD_PAD_SYMMETRIC, GAD_PAD_WRAP};
    for (size_t m = 0; m < ARRAY_LENGTH(modes); m++) {
        struct state state;
        struct gad_array *a = make_well(&state, modes[m]);
        struct gad_error error = {0};
        cr_assert(zero(int, (int)run("a * 2", a, &error)), "%s", error.message);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                double want = cell(modes[m], i - DEPTH, j) + cell(modes[m], i + DEPTH, j) +
                              cell(modes[m], i, j - DEPTH) + cell(modes[m], i, j + DEPTH) + i;
                cr_assert(eq(dbl, made[i][j], 2 * want), "mode %zu, %d, %d", m, i, j);
            }
        cr_assert(eq(int, state.n_calls, 9 * 5), "each block is made once");
        finish(&state, a);
    }
}

static int fail_by_errno(const struct gad_function_call *call)
{
    (void)call;
    return EDOM;
}

static int fail_by_words(const struct gad_function_call *call)
{
    call->error->status = GAD_BAD_BLOCK;
    snprintf(call->error->message, sizeof(call->error->message), "rows do not add up");
    return EINVAL;
}

/* Several blocks fail at once, while the job ends by the first of them. */
Test(from_function, that_fails_ends_its_job_in_its_own_words)
{
    struct state state;
    struct gad_array *a = make_well(&state, GAD_PAD_EDGE);
    for (int i = 0; i < 8; i++) {
        struct gad_error error = {0};
        bool has_words = i % 2 == 1;
        state.bad_row = 14;
        state.fail = has_words ? fail_by_words : fail_by_errno;
        enum gad_status status = run("a + 1", a, &error);
        cr_assert(eq(int, (int)status, has_words ? GAD_BAD_BLOCK : GAD_PROVIDER_FAILED));
        cr_assert(eq(str, error.argument, "a"));
        const char *words = has_words ? "rows do not add up, of the block from (" : strerror(EDOM);
        cr_assert(ne(ptr, strstr(error.message, words), NULL), "%s", error.message);
    }
    state.bad_row = -1;
    cr_assert(zero(int, (int)run("a + 1", a, NULL)), "and may be read again");
    finish(&state, a);
}

Test(from_function, that_does_not_return_holds_its_own_job_alone)
{
    static struct state state, others; /* a thread may outlive a test that fails */
    struct gad_array *a = make_well(&state, GAD_PAD_WRAP);
    const struct gad_argument args[] = {{.name = "a", .array = a}};
    const struct gad_output outputs[] = {{.expr = "sum(a)"}};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    struct gad_job *job;
    pthread_mutex_lock(&state.gate);
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, NULL)));
    for (int i = 0; i < 1000 && state.n_calls == 0; i++)
        (void)gad_job_wait(job, 10, NULL);
    struct gad_array *other = make_well(&others, GAD_PAD_EDGE);
    cr_assert(zero(int, (int)run("a + 1", other, NULL)), "another job goes on");
    cr_assert(zero(int, (int)gad_job_cancel(job, NULL)));
    cr_assert(eq(int, (int)gad_job_wait(job, -1, NULL), GAD_CANCELLED));
    gad_job_free(job);
    gad_array_release(a);
    pthread_mutex_unlock(&state.gate);
    for (int i = 0; i < 5000 && state.n_freed == 0; i++) {
        cr_assert(zero(int, (int)run("a + 1", other, NULL)));
        usleep(1000);
    }
    finish(&others, other);
    cr_assert(eq(int, state.n_freed, 1), "when the call has returned");
}

Test(from_function, whose_inputs_do_not_fit_is_not_there)
{
    struct state state;
    struct gad_array *array = NULL;
    struct gad_error error = {0};
    cr_assert(eq(int, (int)make(&state, GAD_PAD_EDGE, COLUMNS + 1, &array, &error), GAD_BAD_SHAPE));
    cr_assert(eq(str, error.argument, "inputs[0]"));
    cr_assert(zero(int, state.n_freed));
    cr_assert(eq(ptr, array, NULL));
}
