/* What is made before a pass, on the device, against the plain level: repeats of one array and two,
 * windows of arrays and of expressions, what is near of expressions. Arrays of one to three axes in
 * both byte orders, of every mode; each program over several grains in one tile, most of them at
 * ends of axes. As in checkcuda_near.c the slot has what the worker would read, and the plain level
 * reads the arrays where they lie.
 */
#include "kernels/program.h"
#include "proto/request.h"
#include "proto/util.h"
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_GRAINS     5
#define N_ARGS       2
#define MAX_ELEMENTS 3000
#define MADE_BYTES   (24u * MAX_ELEMENTS * 8) /* of a grain, at most */

struct made_trial {
    char expr[1024];
    unsigned n_chars;
    enum dtype dtype;
    int ndim;
    int64_t shape[3];
    bool wraps[3], has_nears; /* wraps: near() along the axis does, everywhere */
    uint64_t n_bytes;
    struct whole_array arrays[N_ARGS];
    struct program *program;
    struct grain grains[N_GRAINS];
    int64_t starts[N_GRAINS][3];
};

static char memory[N_ARGS][MAX_ELEMENTS * 8], expected[MAX_ELEMENTS * 8];
static char states[MADE_BYTES] __attribute__((aligned(64)));

static const char *const mode_names[] = {[NEAR_EDGE] = "edge",
                                         [NEAR_CONSTANT] = "constant",
                                         [NEAR_REFLECT] = "reflect",
                                         [NEAR_SYMMETRIC] = "symmetric",
                                         [NEAR_WRAP] = "wrap"};

static void GAD_PRINTF(2, 3) say(struct made_trial *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->n_chars +=
        (unsigned)vsnprintf(t->expr + t->n_chars, sizeof(t->expr) - t->n_chars, format, args);
    va_end(args);
}

static void draw_shape(struct made_trial *t, unsigned trial)
{
    uint64_t n = 1;
    t->ndim = 1 + (int)(trial % 3);
    for (int i = t->ndim - 1; i >= 0; i--) {
        uint64_t most = t->ndim == 1 ? MAX_ELEMENTS : t->ndim == 2 ? 54 : 14;
        t->shape[i] = 1 + (int64_t)check_below(check_below(4) ? most : 4);
        t->wraps[i] = check_below(2);
        for (unsigned k = 0; k < N_ARGS; k++)
            t->arrays[k].strides[i] = (int64_t)(n * dtype_size(t->dtype));
        n *= (uint64_t)t->shape[i];
    }
    t->n_bytes = n * dtype_size(t->dtype);
}

/* Along one axis; the name alone where that is too short. */
static void say_near(struct made_trial *t, const char *name)
{
    int axis = (int)check_below((uint64_t)t->ndim);
    enum near_mode mode = t->wraps[axis] ? NEAR_WRAP : (enum near_mode)check_below(NEAR_WRAP);
    int64_t length = t->shape[axis];
    int64_t most =
        min_i64(mode == NEAR_WRAP ? length / 2 : length - 1, 1 + (int64_t)check_below(3));
    int64_t offset = most > 0 ? 1 + (int64_t)check_below((uint64_t)most) : 0;
    if (offset == 0) {
        say(t, "%s", name);
        return;
    }
    say(t, "near(%s", name);
    for (int i = 0; i < t->ndim; i++)
        say(t, ", %d", i == axis ? (int)(check_below(2) ? offset : -offset) : 0);
    say(t, ", mode=%s)", mode_names[mode]);
    t->has_nears = true;
}

/* Of as many parts: floats differ in their last bits where the order does. */
static void say_sum(struct made_trial *t, const char *name, const char *other)
{
    say_near(t, name);
    say(t, " - ");
    say_near(t, check_below(2) ? name : other);
    if (check_below(2))
        say(t, " + %s", other);
    if (check_below(4) == 0)
        say(t, " + astype(index(%d) %% 7, %s)", (int)check_below((uint64_t)t->ndim),
            dtype_name(t->dtype));
}

static void say_repeat(struct made_trial *t)
{
    unsigned n = 1 + (unsigned)check_below(5);
    bool counts = !dtype_is_float(t->dtype) && check_below(3) == 0;
    say(t, "repeat(%u, u = ", n);
    say_sum(t, "u", "v");
    if (counts)
        say(t, " + u // (v %% 3)");
    if (check_below(3) == 0) {
        say(t, ", v = ");
        say_sum(t, "v", "u");
        say(t, ")[%d]", (int)check_below(2));
        return;
    }
    say(t, ")");
}

/* depth: of windows that it may read. */
static void say_window(struct made_trial *t, unsigned depth)
{
    static const char *const kinds[] = {"sum", "mean", "min", "max", "std", "median"};
    enum near_mode mode = (enum near_mode)check_below(NEAR_N_MODES);
    say(t, "window_%s(", kinds[check_below(ARRAY_LENGTH(kinds))]);
    if (depth > 0 && check_below(3) == 0) {
        say_window(t, depth - 1);
        say(t, check_below(2) ? " - v" : "");
    } else if (check_below(4) == 0) {
        say(t, "u");
    } else {
        say_sum(t, "u", "v");
    }
    if (!dtype_is_float(t->dtype) && check_below(4) == 0)
        say(t, " + u // (v %% 3)");
    say(t, ", [");
    for (int i = 0; i < t->ndim; i++)
        say(t, "%s%d", i > 0 ? ", " : "", 1 + (int)check_below(t->ndim == 1 ? 20 : 5));
    say(t, "], mode=%s)", mode_names[mode]);
}

static void draw_text(struct made_trial *t)
{
    t->n_chars = 0;
    t->has_nears = false;
    switch (check_below(4)) {
    case 0: say_window(t, 2); break;
    case 1:
        say_window(t, 2);
        say(t, " - ");
        say_sum(t, "v", "u");
        break;
    case 2: say_repeat(t); break;
    default:
        say_repeat(t);
        say(t, " + u");
        break;
    }
}

/* False: the language refuses it. (Windows that wrap in many ways are refused by the device.) */
static bool compile(struct made_trial *t)
{
    struct request_arg args[N_ARGS] = {{.name = "u"}, {.name = "v"}};
    struct request_output output = {.expr = t->expr, .n_expr_chars = t->n_chars};
    struct job_request request = {
        .n_args = N_ARGS, .n_outputs = 1, .engine_index = -1, .args = args, .outputs = &output};
    struct gad_error error;
    for (unsigned k = 0; k < N_ARGS; k++) {
        struct array *array = &args[k].array;
        *array = (struct array){.dtype = t->dtype, .ndim = t->ndim};
        for (int i = 0; i < t->ndim; i++) {
            array->shape[i] = t->shape[i];
            array->strides[i] = t->arrays[k].strides[i];
        }
    }
    return program_compile(&request, &t->program, &error) == 0;
}

static void draw_grain(struct made_trial *t, unsigned g)
{
    struct grain *grain = &t->grains[g];
    struct shape *s = &grain->shape;
    *s = (struct shape){.ndim = t->ndim, .n = 1};
    for (int i = 0; i < t->ndim; i++) {
        uint64_t length = (uint64_t)t->shape[i];
        s->count[i] = check_below(4) ? 1 + (int64_t)check_below((length + 1) / 2) : t->shape[i];
        t->starts[g][i] = (int64_t)check_below(length - (uint64_t)s->count[i] + 1);
        if (check_below(3) == 0)
            t->starts[g][i] = check_below(2) ? 0 : t->shape[i] - s->count[i];
        s->order[i] = i;
        s->n *= (size_t)s->count[i];
    }
    if (t->ndim > 1 && check_below(3) == 0) {
        s->order[0] = t->ndim - 1;
        s->order[t->ndim - 1] = 0;
    }
    grain->start = t->starts[g];
    grain_draw(&grain->outputs[0], s, t->program->outputs[0].dtype, true);
}

static void report(struct checkcuda *c, const struct made_trial *t, unsigned g, const char *what)
{
    c->check.n_failed++;
    printf("FAILED made %s: %s\n    seed %llu, %s, shape", dtype_name(t->dtype), what,
           (unsigned long long)c->check.seed, t->expr);
    for (int i = 0; i < t->ndim; i++)
        printf(" %lld", (long long)t->shape[i]);
    printf(", grain %u from", g);
    for (int i = 0; i < t->ndim; i++)
        printf(" %lld", (long long)t->starts[g][i]);
    printf(", ");
    shape_print(&t->grains[g].shape);
    printf("\n");
}

/* What the program's input is of. */
static unsigned arg_of(const struct made_trial *t, unsigned input)
{
    return t->program->inputs[input].arg;
}

static struct engine_warnings run_plain(const struct made_trial *t, unsigned g)
{
    const struct program *p = t->program;
    const struct grain *grain = &t->grains[g];
    struct engine_view in[REQUEST_MAX_ARGS], out = {.base = expected};
    struct engine_warnings warnings = {0};
    struct engine_box box = {.ndim = t->ndim,
                             .count = grain->shape.count,
                             .axis_order = grain->shape.order,
                             .start = grain->start,
                             .states = states,
                             .window_memory = (char *)test_scratch() + CPU_SCRATCH_BYTES};
    int64_t step = (int64_t)dtype_size(p->outputs[0].dtype);
    for (unsigned i = 0; i < p->n_inputs; i++)
        in[i] = whole_view(p, i, &t->arrays[arg_of(t, i)], grain);
    for (int i = t->ndim - 1; i >= 0; step *= grain->shape.count[i--])
        out.strides[i] = step;
    if (cpu_states_bytes(p, &p->passes[0], grain->start, grain->shape.count) > sizeof(states) ||
        cpu_engine_run(cpu_engine_get(CPU_LEVEL_PLAIN), p, 0, &box, in, &out, NULL, NULL, NULL,
                       &warnings, test_scratch()))
        exit(2);
    return warnings;
}

static bool compare_grain(struct checkcuda *c, const struct made_trial *t,
                          const struct cuda_tile *tile, unsigned g)
{
    const struct laid *l = &t->grains[g].outputs[0];
    enum dtype dtype = t->program->outputs[0].dtype;
    struct engine_warnings got = {0}, wanted = run_plain(t, g);
    c->check.n_run++;
    if (cuda_tile_result(tile, g, NULL, NULL, &got) ||
        got.n_divide_by_zero != wanted.n_divide_by_zero) {
        report(c, t, g, "another status, or other warnings");
        return false;
    }
    for (size_t i = 0; i < t->grains[g].shape.n; i++) {
        char item[8];
        const char *want = expected + i * dtype_size(dtype);
        laid_copy_item(item, laid_item(l, &t->grains[g].shape, i), dtype_size(dtype),
                       l->view.is_swapped);
        if (check_same(item, want, dtype))
            continue;
        report(c, t, g, "not the plain level's result");
        printf("    element %zu\n", i);
        check_print("wanted", want, dtype);
        check_print("got   ", item, dtype);
        return false;
    }
    return true;
}

static bool run_tile(struct checkcuda *c, struct made_trial *t)
{
    static struct cuda_tile tile;
    struct near_box boxes[N_GRAINS][REQUEST_MAX_ARGS];
    struct engine_room room = {.n_cells = 1, .made_bytes = MADE_BYTES};
    const struct program *p = t->program;
    for (unsigned g = 0; g < N_GRAINS; g++) {
        draw_grain(t, g);
        for (unsigned i = 0; i < p->n_inputs; i++)
            near_box_lay(p, i, &t->arrays[arg_of(t, i)], &t->grains[g], &boxes[g][i]);
        struct engine_room one = grain_room(&t->grains[g], p, 0);
        room.input_bytes = max_u64(room.input_bytes, one.input_bytes);
        room.output_bytes = max_u64(room.output_bytes, one.output_bytes);
        room.n_elements = max_u64(room.n_elements, one.n_elements);
    }
    if (cuda_tile_begin(&tile, p, 0, NULL, N_GRAINS, &room, c->rig->slot, RIG_SLOT_BYTES)) {
        report(c, t, 0, "no room in the slot");
        return false;
    }
    for (unsigned g = 0; g < N_GRAINS; g++) {
        grain_place(&t->grains[g], &tile);
        for (unsigned i = 0; i < p->n_inputs; i++)
            near_box_fill(p, i, &t->arrays[arg_of(t, i)], &t->grains[g], &boxes[g][i]);
        grain_add(&t->grains[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < N_GRAINS; g++)
        if (!compare_grain(c, t, &tile, g))
            return false;
    if (rig_is_input_whole(c->rig, &tile))
        return true;
    report(c, t, 0, "wrote to its inputs or to the code");
    return false;
}

static bool run_trial(struct checkcuda *c, struct made_trial *t, unsigned trial)
{
    static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_INT32, DTYPE_FLOAT64, DTYPE_UINT8,
                                        DTYPE_INT64};
    memset(t, 0, sizeof(*t));
    t->dtype = dtypes[trial % ARRAY_LENGTH(dtypes)];
    draw_shape(t, trial);
    for (unsigned k = 0; k < N_ARGS; k++) {
        t->arrays[k].memory = memory[k];
        t->arrays[k].is_swapped = check_below(4) == 0;
        check_fill(memory[k], t->dtype, t->n_bytes / dtype_size(t->dtype), true);
    }
    draw_text(t);
    if (!compile(t))
        return true;
    const struct engine_room room = {.n_elements = 1, .n_cells = 1};
    bool is_right = t->program->n_passes != 1 ||
                    cuda_tile_need_bytes(t->program, 0, 1, &room) == UINT64_MAX || run_tile(c, t);
    program_free(t->program);
    return is_right;
}

void checkcuda_made(struct checkcuda *c)
{
    static struct made_trial t;
    unsigned n_trials = 40 * c->check.n_trials;
    uint64_t n_run = c->check.n_run;
    if (c->check.filter && !strstr("made", c->check.filter))
        return;
    check_restart(&c->check, "made", 0);
    for (unsigned trial = 0; trial < n_trials; trial++)
        if (!run_trial(c, &t, trial))
            return;
    if (c->check.n_run - n_run < (uint64_t)n_trials / 2 * N_GRAINS) {
        c->check.n_failed++;
        printf("FAILED made: most of what was drawn is no single pass of the device\n");
    }
}
