/* Elements of arguments by indices, as parts of expressions.
 *
 * The daemon looks up in tables of one axis. What is picked of an argument of any size and place is
 * an array that the client makes (client/lib/take), so that becomes an argument of its own:
 *
 *     a[i] * 2 + sum(a)        a_i_ * 2 + sum(a), where a_i_ has the elements of a at i
 *
 * Names keep their length, so that columns stay what they are. Where the indices are a mask, a job
 * finds out before where it is true. Called by job.c and plan.c.
 */
#include "client/lib/arguments/indexed.h"
#include "client/lib/arguments/words.h"
#include "client/lib/take/take.h"
#include "proto/request.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (words_is_char(at[n]))
        n++;
    return n;
}

static size_t blanks(const char *at)
{
    return strspn(at, " \t\n");
}

/* An array; NULL: no argument of that name is one. */
static struct gad_array *find_array(const struct gad_job_options *options, const char *name,
                                    size_t n_chars)
{
    for (unsigned i = 0; i < options->n_args; i++)
        if (strlen(options->args[i].name) == n_chars &&
            memcmp(options->args[i].name, name, n_chars) == 0)
            return options->args[i].array;
    return NULL;
}

/* How many characters `NAME[NAME]` has there; 0: it is something else. */
static size_t look(const struct gad_job_options *options, const char *at,
                   struct gad_array **ret_array, struct gad_array **ret_indices)
{
    size_t n = word_length(at), inner;
    *ret_array = find_array(options, at, n);
    n += blanks(at + n);
    if (!*ret_array || at[n] != '[')
        return 0;
    n += 1 + blanks(at + n + 1);
    inner = word_length(at + n);
    *ret_indices = find_array(options, at + n, inner);
    n += inner + blanks(at + n + inner);
    return *ret_indices && at[n] == ']' ? n + 1 : 0;
}

/* The first one in a text, outside of quotes. */
static char *find(const struct gad_job_options *options, char *text, size_t *ret_n,
                  struct gad_array **ret_array, struct gad_array **ret_indices)
{
    for (char *at = text; *at; at++) {
        if (*at == '\'' || *at == '"') {
            char *end = strchr(at + 1, *at);
            if (!end)
                return NULL;
            at = end;
        } else if (words_is_char(*at)) {
            if ((*ret_n = look(options, at, ret_array, ret_indices)) > 0)
                return at;
            at += word_length(at) - 1;
        }
    }
    return NULL;
}

static int add_arg(struct indexed *indexed, struct gad_client *client, const char *name,
                   const char *written, struct gad_array *array, struct gad_array *indices,
                   struct gad_error *error)
{
    struct gad_job_options *options = &indexed->options;
    const struct gad_move_options move = {
        .engine = options->engine, .priority = options->priority, .label = options->label};
    struct gad_argument *arg = &indexed->args[options->n_args];
    if (strlen(name) >= ARRAY_NAME_SIZE || words_are_taken(options, name))
        return error_set(
            error, GAD_BAD_EXPRESSION, written,
            "%.60s is known as '%.60s' on its way, which %s: give an argument a shorter "
            "or another name",
            written, name,
            strlen(name) >= ARRAY_NAME_SIZE ? "is too long" : "means something else");
    if (options->n_args == REQUEST_MAX_ARGS)
        return error_set(error, GAD_LIMIT_EXCEEDED, written,
                         "more than %d arguments, with what is picked of them", REQUEST_MAX_ARGS);
    *arg = (struct gad_argument){.name = strdup(name)};
    if (!arg->name)
        return -ENOMEM;
    int r = take_indexed(client, array, indices, &move, &arg->array, error);
    if (r == 0)
        arg->array->picked_as = strdup(written);
    if (r == 0 && !arg->array->picked_as)
        r = -ENOMEM;
    options->n_args++; /* deinit frees it */
    return r;
}

/* One text, whose own memory is changed. */
static int rename_all(struct indexed *indexed, struct gad_client *client, char *text,
                      struct gad_error *error)
{
    struct gad_array *array, *indices;
    size_t n;
    char *at;
    int r = 0;
    while (r == 0 && (at = find(&indexed->options, text, &n, &array, &indices))) {
        _cleanup_free_ char *written = strndup(at, n);
        if (!written)
            return -ENOMEM;
        for (size_t i = 0; i < n; i++)
            at[i] = words_is_char(at[i]) ? at[i] : '_';
        _cleanup_free_ char *name = strndup(at, n);
        if (!name)
            return -ENOMEM;
        const struct gad_array *made = find_array(&indexed->options, name, n);
        if (!made || !made->picked_as || strcmp(made->picked_as, written) != 0)
            r = add_arg(indexed, client, name, written, array, indices, error);
    }
    return r;
}

static int copy(struct indexed *indexed, const struct gad_job_options *options)
{
    indexed->args = calloc(REQUEST_MAX_ARGS + 1, sizeof(*indexed->args));
    indexed->outputs = calloc(options->n_outputs + 1, sizeof(*indexed->outputs));
    indexed->n_given = options->n_args;
    if (!indexed->args || !indexed->outputs)
        return -ENOMEM;
    for (unsigned i = 0; i < options->n_args; i++)
        indexed->args[i] = options->args[i];
    for (unsigned i = 0; i < options->n_outputs; i++) {
        indexed->outputs[i] = options->outputs[i];
        indexed->outputs[i].expr = strdup(options->outputs[i].expr);
        if (!indexed->outputs[i].expr)
            return -ENOMEM;
    }
    indexed->options.args = indexed->args;
    return 0;
}

int indexed_init(struct indexed *indexed, struct gad_client *client,
                 const struct gad_job_options *options, struct gad_error *error)
{
    bool has_brackets = false;
    *indexed = (struct indexed){.options = *options};
    for (unsigned i = 0; i < options->n_outputs; i++)
        has_brackets |= strchr(options->outputs[i].expr, '[') != NULL;
    int r = has_brackets ? copy(indexed, options) : 0;
    for (unsigned i = 0; has_brackets && i < options->n_outputs && r == 0; i++)
        r = rename_all(indexed, client, (char *)indexed->outputs[i].expr, error);
    if (has_brackets && r == 0)
        indexed->options.outputs = indexed->outputs;
    return r;
}

void indexed_deinit(struct indexed *indexed)
{
    for (unsigned i = indexed->n_given; indexed->args && i < indexed->options.n_args; i++) {
        free((char *)indexed->args[i].name);
        gad_array_release(indexed->args[i].array);
    }
    for (unsigned i = 0; indexed->outputs && i < indexed->options.n_outputs; i++)
        free((char *)indexed->outputs[i].expr);
    free_ptr(&indexed->args);
    free_ptr(&indexed->outputs);
}

void indexed_restore_text(const struct gad_job_options *options, char *text)
{
    for (unsigned i = options->n_args; i-- > 0;) {
        const struct gad_array *array = options->args[i].array;
        const char *name = options->args[i].name;
        for (char *at = text; array && array->picked_as;) {
            at = (char *)words_find(at, name);
            if (!at)
                break;
            memcpy(at, array->picked_as, strlen(name)); /* which is as long */
        }
    }
}

void indexed_restore(const struct gad_job_options *options, struct gad_error *error)
{
    for (unsigned i = options->n_args; error && i-- > 0;) { /* those of others come behind them */
        const struct gad_array *array = options->args[i].array;
        if (array && array->picked_as)
            words_restore(error, options->args[i].name, array->picked_as);
    }
}
