/* Elements of arguments by indices, as parts of expressions.
 *
 * The daemon looks up in tables of one axis. What is picked of an argument of any size and place is
 * an array that the client makes (client/lib/take), so that becomes an argument of its own:
 *
 *     a[i] * 2 + sum(a)        a_i_ * 2 + sum(a), where a_i_ has the elements of a at i
 *     a[:, i]  a[..., i]       a____i_  a______i_
 *     take(a, i, axis=1)       take_a__i__axis_1_
 *
 * take() of one axis stays the daemon's, where the array is short enough for it.
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
#include <stdlib.h>
#include <string.h>

#define TABLE_BYTES (512 * 1024) /* that the daemon looks up in */

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

/* What is picked: NAME and indices of it. */
struct picked {
    struct gad_array *array, *indices;
    struct gad_take_options how;
};

/* Reading a text: `at` moves on behind what was looked for, and the blanks behind that. */
static bool skip(const char **at, const char *wanted)
{
    size_t n = strlen(wanted);
    if (strncmp(*at, wanted, n) != 0)
        return false;
    *at += n + blanks(*at + n);
    return true;
}

static struct gad_array *skip_array(const struct gad_job_options *options, const char **at)
{
    size_t n = word_length(*at);
    struct gad_array *array = find_array(options, *at, n);
    if (array)
        *at += n + blanks(*at + n);
    return array;
}

/* `, :` and `, ...`, or the same before an index, where the comma is behind. */
static int skip_axes(const char **at, bool is_before, bool *ret_has_dots)
{
    int n = 0;
    for (const char *next = *at;; *at = next) {
        if (!is_before && !skip(&next, ","))
            break;
        bool is_dots = skip(&next, "...");
        if ((!is_dots && !skip(&next, ":")) || (is_before && !skip(&next, ",")) ||
            (is_dots && *ret_has_dots))
            break;
        *ret_has_dots |= is_dots;
        n += !is_dots;
    }
    return n;
}

/* Behind NAME, whose array is there already. */
static bool look_brackets(const struct gad_job_options *options, const char **at,
                          struct picked *picked)
{
    bool has_dots = false;
    if (!skip(at, "["))
        return false;
    int before = skip_axes(at, true, &has_dots);
    bool has_dots_before = has_dots;
    picked->indices = skip_array(options, at);
    if (!picked->indices)
        return false;
    int behind = skip_axes(at, false, &has_dots);
    int n_axes = picked->indices->info.dtype == GAD_BOOL ? picked->indices->info.ndim : 1;
    int most = picked->array->info.ndim - n_axes - behind;
    picked->how.axis = has_dots_before ? most : before;
    return **at == ']' && (before + behind == 0 || before <= most);
}

static bool look_mode(const char **at, enum gad_take_mode *ret)
{
    static const char *const modes[] = {"raise", "wrap", "clip"};
    char quote = **at == '\'' || **at == '"' ? **at : '\0';
    const char *word = *at + (quote != '\0');
    size_t n = word_length(word);
    for (unsigned i = 0; i < ARRAY_LENGTH(modes); i++)
        if (strlen(modes[i]) == n && memcmp(word, modes[i], n) == 0) {
            *ret = (enum gad_take_mode)i;
            *at = word + n + (quote != '\0');
            *at += blanks(*at);
            return quote == '\0' || word[n] == quote;
        }
    return false;
}

static bool look_axis(const char **at, struct gad_take_options *ret)
{
    char *end;
    if (skip(at, "None"))
        return true;
    long axis = strtol(*at, &end, 10);
    if (end == *at || axis < -ARRAY_MAX_NDIM || axis >= ARRAY_MAX_NDIM)
        return false;
    *ret = (struct gad_take_options){.axis = (int)axis, .mode = ret->mode};
    *at = end + blanks(end);
    return true;
}

static bool look_take(const struct gad_job_options *options, const char **at, struct picked *picked)
{
    const struct gad_array_info *info;
    picked->how.n_axes = -1;
    (void)(skip(at, "np.") || skip(at, "numpy."));
    if (!skip(at, "take") || !skip(at, "(") || !(picked->array = skip_array(options, at)) ||
        !skip(at, ",") || !(picked->indices = skip_array(options, at)))
        return false;
    if (picked->indices->info.dtype == GAD_BOOL) /* of which numpy.take() makes 0 and 1 */
        return false;
    while (skip(at, ",")) {
        bool is_mode = skip(at, "mode") && skip(at, "=");
        if (!is_mode && skip(at, "axis") && !skip(at, "="))
            return false;
        if (!(is_mode ? look_mode(at, &picked->how.mode) : look_axis(at, &picked->how)))
            return false;
    }
    info = &picked->array->info;
    return **at == ')' && (info->ndim > 1 ||
                           (info->ndim == 1 &&
                            info->shape[0] > TABLE_BYTES / (int64_t)gad_dtype_size(info->dtype)));
}

/* How many characters are there of what is picked; 0: it is something else. */
static size_t look(const struct gad_job_options *options, const char *begin, struct picked *ret)
{
    const char *at = begin;
    *ret = (struct picked){.how = {.axis = 0}};
    ret->array = skip_array(options, &at);
    bool is_picked = ret->array ? look_brackets(options, &at, ret) : look_take(options, &at, ret);
    return is_picked ? (size_t)(at + 1 - begin) : 0;
}

/* Those of the function that a statement defines, `f(x, y) = `; NULL: it defines none. */
static const char *parameters_of(const char *statement, size_t *ret_n)
{
    const char *at = statement + blanks(statement);
    size_t n = word_length(at);
    at += n + blanks(at + n);
    *ret_n = strcspn(at, ")");
    const char *behind = at + *ret_n;
    if (n == 0 || *at != '(' || !skip(&behind, ")"))
        return NULL;
    return behind[0] == '=' && behind[1] != '=' ? at : NULL;
}

static bool has_word(const char *text, size_t n, const char *word, size_t n_word)
{
    for (size_t i = 0; i < n; i += max_u64(word_length(text + i), 1))
        if (word_length(text + i) == n_word && memcmp(text + i, word, n_word) == 0)
            return true;
    return false;
}

/* Whether a word there is a parameter, which hides the argument of that name. */
static bool is_hidden(const char *at, size_t n, const char *parameters, size_t n_parameters)
{
    for (size_t i = 0; i < n && parameters; i += max_u64(word_length(at + i), 1)) {
        size_t n_word = word_length(at + i);
        if (n_word > 0 && has_word(parameters, n_parameters, at + i, n_word))
            return true;
    }
    return false;
}

/* The first one in a text, outside of quotes. */
static char *find(const struct gad_job_options *options, char *text, size_t *ret_n,
                  struct picked *ret)
{
    size_t n_parameters;
    const char *parameters = parameters_of(text, &n_parameters);
    for (char *at = text; *at; at++) {
        if (*at == ';') {
            parameters = parameters_of(at + 1, &n_parameters);
        } else if (*at == '\'' || *at == '"') {
            char *end = strchr(at + 1, *at);
            if (!end)
                return NULL;
            at = end;
        } else if (words_is_char(*at)) {
            *ret_n = look(options, at, ret);
            if (*ret_n > 0 && !is_hidden(at, *ret_n, parameters, n_parameters))
                return at;
            at += word_length(at) - 1;
        }
    }
    return NULL;
}

static int add_arg(struct indexed *indexed, struct gad_client *client, const char *name,
                   const char *written, const struct picked *picked, struct gad_error *error)
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
    int r = take_indexed(client, picked->array, picked->indices, &picked->how, &move, &arg->array,
                         error);
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
    struct picked picked;
    size_t n;
    char *at;
    int r = 0;
    while (r == 0 && (at = find(&indexed->options, text, &n, &picked))) {
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
            r = add_arg(indexed, client, name, written, &picked, error);
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
    bool may_pick = false;
    *indexed = (struct indexed){.options = *options};
    for (unsigned i = 0; i < options->n_outputs; i++)
        may_pick |=
            strchr(options->outputs[i].expr, '[') || strstr(options->outputs[i].expr, "take");
    int r = may_pick ? copy(indexed, options) : 0;
    for (unsigned i = 0; may_pick && i < options->n_outputs && r == 0; i++)
        r = rename_all(indexed, client, (char *)indexed->outputs[i].expr, error);
    if (may_pick && r == 0)
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
