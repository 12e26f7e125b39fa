/* The entry: all outputs of a request, through the steps of compiler.h, into one program.
 *
 * Runs twice for every job (in the broker, which must know what a job needs before it admits it,
 * and in the worker), so it is quick: the arena starts on the stack, where an ordinary expression
 * fits, and the program is the only allocation. It is pure, and bounded by the limits on text,
 * depth, nodes, instructions and registers, whatever the text.
 */
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"

#include <stdarg.h>
#include <stdio.h>

#define STACK_BYTES (48 * 1024)
#define CHUNK_BYTES (64 * 1024)

struct arena_chunk {
    struct arena_chunk *next;
    _Alignas(16) char bytes[];
};

void *arena_take(struct arena *arena, size_t n_bytes)
{
    n_bytes = (n_bytes + 15) & ~(size_t)15;
    if (n_bytes > (size_t)(arena->end - arena->at)) {
        size_t size = n_bytes > CHUNK_BYTES ? n_bytes : CHUNK_BYTES;
        struct arena_chunk *chunk = malloc(sizeof(*chunk) + size);
        if (chunk == NULL)
            return NULL;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->at = chunk->bytes;
        arena->end = chunk->bytes + size;
    }
    void *taken = arena->at;
    arena->at += n_bytes;
    return taken;
}

static void arena_deinit(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
}

static unsigned output_of(const struct compiler *c, uint32_t column)
{
    uint32_t kept = column >> COMPILER_COLUMN_BITS;
    return kept > 0 ? kept - 1 : c->output;
}

struct program_place compiler_place(const struct compiler *c, uint32_t column)
{
    const struct request_output *output = &c->request->outputs[output_of(c, column)];
    uint32_t line = 1, n_before = 0, at = column & ((1u << COMPILER_COLUMN_BITS) - 1);
    for (uint32_t i = 0; i < output->n_expr_chars && i + 1 < at; i++) {
        if (output->expr[i] != '\n')
            continue;
        line++;
        n_before = i + 1;
    }
    return (struct program_place){
        .output = (uint16_t)output_of(c, column), .line = line, .column = at - n_before};
}

int compiler_fail(struct compiler *c, enum gad_status status, uint32_t column, const char *format,
                  ...)
{
    char text[sizeof(c->error->message)], place_text[PROGRAM_PLACE_SIZE] = "";
    char unnamed[REQUEST_UNNAMED_SIZE];
    const char *argument = c->argument;
    if (column != 0) {
        struct program_place place = compiler_place(c, column);
        program_format_place(&place, place_text);
        argument = request_output_name(&c->request->outputs[place.output], place.output, unnamed);
    }
    int n = snprintf(text, sizeof(text), "%s", place_text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
    va_end(args);
    return error_set(c->error, status, argument, "%s", text);
}

int compiler_no_memory(struct compiler *c)
{
    return compiler_fail(c, GAD_NO_MEMORY, 0, "no memory to compile the expression");
}

int compiler_check_steps(struct compiler *c, uint32_t column)
{
    if (c->n_steps <= COMPILER_MAX_STEPS)
        return 0;
    int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, column,
                          "up to here it takes too long to find out what the program means");
    error_expected(c->error, "at most %u steps", COMPILER_MAX_STEPS);
    return r;
}

/* The output is what errors are about from here on. */
static void name_output(struct compiler *c, unsigned index)
{
    const struct request_output *output = &c->request->outputs[index];
    c->argument = request_output_name(output, index, c->unnamed);
}

static void set_output(struct compiler *c, unsigned index)
{
    const struct request_output *output = &c->request->outputs[index];
    name_output(c, index);
    c->output = index;
    c->text = output->expr;
    c->n_chars = (uint32_t)output->n_expr_chars;
}

/* Ensures the limits of request_decode() also for callers without it. Sizes the arena's parts. */
static int prepare(struct compiler *c)
{
    const struct job_request *request = c->request;
    size_t n_chars = 0, most_chars = 0;
    c->argument = "outputs";
    if (request->n_outputs == 0)
        return compiler_fail(c, GAD_BAD_REQUEST, 0, "there is no expression");
    if (request->n_outputs > REQUEST_MAX_OUTPUTS || request->n_args > REQUEST_MAX_ARGS)
        return compiler_fail(c, GAD_LIMIT_EXCEEDED, 0, "more than %d outputs or %d arguments",
                             REQUEST_MAX_OUTPUTS, REQUEST_MAX_ARGS);
    for (unsigned i = 0; i < request->n_outputs; i++) {
        size_t n = request->outputs[i].n_expr_chars;
        if (n > REQUEST_MAX_EXPR_CHARS) {
            name_output(c, i);
            int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, 0, "the expression is too long");
            error_expected(c->error, "at most %d characters", REQUEST_MAX_EXPR_CHARS);
            error_found(c->error, "%zu", n);
            return r;
        }
        n_chars += n;
        most_chars = n > most_chars ? n : most_chars;
    }
    c->ast.capacity = most_chars + 1;
    c->ast.nodes = arena_take(&c->arena, c->ast.capacity * sizeof(*c->ast.nodes));
    return c->ast.nodes == NULL ? compiler_no_memory(c) : graph_init(c, n_chars);
}

/* ret_is_again: the other way to reduce streams is wanted, and there is no program. */
static int compile(struct compiler *c, struct program **ret, bool *ret_is_again)
{
    struct schedule schedule;
    int r = prepare(c);
    for (unsigned i = 0; r == 0 && i < c->request->n_outputs; i++) {
        set_output(c, i);
        r = parser_run(c);
        if (r == 0)
            r = types_resolve(c, i);
        if (r == 0)
            r = product_passes_check(c, i);
    }
    if (r)
        return r;
    if (!c->is_first_axis_first && reduce_streams_apart(c)) {
        *ret_is_again = true;
        return 0;
    }
    name_output(c, 0); /* for limits that no single output exceeds */
    r = passes_assign(c, &schedule);
    return r ? r : assemble_program(c, &schedule, ret);
}

static int compile_as(const struct job_request *request, enum compiler_walks walks,
                      bool is_first_axis_first, struct program **ret_program, bool *ret_is_again,
                      bool *ret_has_walks, struct gad_error *error)
{
    _Alignas(16) char memory[STACK_BYTES];
    struct compiler c;
    c.request = request;
    c.error = error;
    c.output = 0;
    c.checks = NULL;
    c.n_checks = 0;
    c.needs_elements = -1;
    c.product_column = 0;
    c.transposed_columns = NULL;
    c.repeats = NULL;
    c.n_states = 0;
    c.n_steps = 0;
    c.mirrors = NULL;
    c.typed_column = 0;
    c.moved = NULL;
    c.n_read_chars = 0;
    c.is_first_axis_first = is_first_axis_first;
    c.walks = walks;
    c.has_walks = false;
    c.arena = (struct arena){.at = memory, .end = memory + sizeof(memory)};
    *ret_is_again = false;
    int r = compile(&c, ret_program, ret_is_again);
    *ret_has_walks = c.has_walks;
    arena_deinit(&c.arena);
    return r;
}

static int compile_with(const struct job_request *request, enum compiler_walks walks,
                        struct program **ret_program, bool *ret_has_walks, struct gad_error *error)
{
    bool is_again;
    int r = compile_as(request, walks, false, ret_program, &is_again, ret_has_walks, error);
    return r || !is_again
               ? r
               : compile_as(request, walks, true, ret_program, &is_again, ret_has_walks, error);
}

/* A program with walks by slabs may be too large where one with fewer of them, or none, is not.
 * What is refused for another reason without them is what only they compute. */
int program_compile(const struct job_request *request, struct program **ret_program,
                    struct gad_error *error)
{
    enum compiler_walks walks = request->has_no_slabs ? COMPILER_WALKS_NONE : COMPILER_WALKS_AGAIN;
    bool has_walks;
    int r = compile_with(request, walks, ret_program, &has_walks, error);
    while (r == GAD_LIMIT_EXCEEDED && has_walks) {
        struct gad_error other;
        int r_other = compile_with(request, ++walks, ret_program, &has_walks, &other);
        if (r_other == 0)
            return 0;
        if (r_other == GAD_LIMIT_EXCEEDED)
            *error = other;
        else
            has_walks = false;
    }
    return r;
}
