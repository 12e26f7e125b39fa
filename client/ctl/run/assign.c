/* The words of a command line: expressions, arguments, destinations.
 *
 *     'mag = sqrt(u*u + v*v); m = mean(u)'    outputs, by name
 *     'q, r = divmod(u, v)'                   two outputs, see pairs.c
 *     'f(x) = x*x; p = f(u); q = f(v)'        a function, for the outputs behind it
 *     u=winds.h5:/UWND  k=2.5                 arguments: a source, or a Python-like scalar
 *     -o mag=speed.npy                        where an output goes
 *
 * A word that reads as a number is a scalar; a file with such a name is written ./2.5.
 */
#include "client/ctl/ctl.h"

#include "proto/error.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static size_t identifier_chars(const char *text)
{
    size_t n = 0;
    if (isalpha((unsigned char)text[0]) || text[0] == '_')
        for (n = 1; isalnum((unsigned char)text[n]) || text[n] == '_'; n++)
            ;
    return n;
}

/* Cuts "name = expr" or "name, name = expr" in place; names stay NULL where there are none. */
static void split_names(char *text, const char *ret_names[2], const char **ret_expr)
{
    char *ends[2] = {NULL, NULL}, *at = text + strspn(text, " \t\n");
    *ret_expr = at;
    ret_names[0] = ret_names[1] = NULL;
    for (int i = 0; i < 2; i++) {
        size_t n = identifier_chars(at);
        char *after = at + n + strspn(at + n, " \t\n");
        ends[i] = at + n;
        ret_names[i] = at;
        if (n > 0 && after[0] == '=' && after[1] != '=') {
            *ret_expr = after + 1 + strspn(after + 1, " \t\n");
            for (int k = 0; k <= i; k++)
                *ends[k] = '\0';
            return;
        }
        if (n == 0 || after[0] != ',')
            break;
        at = after + 1 + strspn(after + 1, " \t\n");
    }
    ret_names[0] = ret_names[1] = NULL;
}

/* "f(x, y) = expr": a function, for all expressions behind it. */
static bool is_definition(const char *text)
{
    const char *at = text + strspn(text, " \t\n");
    size_t n = identifier_chars(at);
    at += n + strspn(at + n, " \t\n");
    if (n == 0 || *at != '(')
        return false;
    at += strcspn(at, ")");
    at += *at == ')';
    at += strspn(at, " \t\n");
    return at[0] == '=' && at[1] != '=';
}

static int no_memory(struct gad_error *error)
{
    return error_set(error, GAD_NO_MEMORY, NULL, "no memory for the expression");
}

/* Behind the functions so far. */
static int add_definition(struct ctl_job *job, const char *text, struct gad_error *error)
{
    char *definitions;
    if (asprintf(&definitions, "%s%s; ", job->definitions ? job->definitions : "", text) < 0)
        return no_memory(error);
    free(job->definitions);
    job->definitions = definitions;
    return 0;
}

static int add_expression(struct ctl_job *job, char *text, struct gad_error *error)
{
    const char *names[2], *expr;
    if (is_definition(text))
        return add_definition(job, text, error);
    split_names(text, names, &expr);
    if (job->definitions && !names[1]) {
        char **whole = &job->with_definitions[job->n_with_definitions];
        if (job->n_with_definitions == CTL_MAX_OUTPUTS ||
            asprintf(whole, "%s%s", job->definitions, expr) < 0)
            return no_memory(error);
        job->n_with_definitions++;
        expr = *whole;
    }
    if (names[1])
        return ctl_add_pair(job, names, expr, error);
    if (job->n_outputs == CTL_MAX_OUTPUTS)
        return error_set(error, GAD_LIMIT_EXCEEDED, NULL, "at most %d expressions in a job",
                         CTL_MAX_OUTPUTS);
    job->outputs[job->n_outputs++] = (struct gad_output){.name = names[0], .expr = expr};
    return 0;
}

static struct gad_output *output_named(struct ctl_job *job, const char *name)
{
    for (unsigned i = 0; i < job->n_outputs; i++)
        if (job->outputs[i].name && strcmp(job->outputs[i].name, name) == 0)
            return &job->outputs[i];
    return NULL;
}

int ctl_parse_expressions(struct ctl_job *job, const char *text, struct gad_error *error)
{
    job->text = strdup(text);
    if (!job->text)
        return no_memory(error);
    char *rest = job->text;
    while (rest) {
        char *part = strsep(&rest, ";");
        if (part[strspn(part, " \t\n")] == '\0' && (job->n_outputs > 0 || rest))
            continue;
        int r = add_expression(job, part, error);
        if (r)
            return r;
    }
    if (job->n_outputs == 0)
        return error_set(error, GAD_BAD_EXPRESSION, NULL,
                         "functions, and no expression behind them");
    for (unsigned i = 0; job->n_outputs > 1 && i < job->n_outputs; i++) {
        const char *name = job->outputs[i].name;
        if (!name)
            return error_set(error, GAD_BAD_EXPRESSION, NULL,
                             "several expressions need names: 'name = %s'", job->outputs[i].expr);
        if (output_named(job, name) != &job->outputs[i])
            return error_set(error, GAD_BAD_EXPRESSION, name,
                             "the name '%s' is given to two results", name);
    }
    return 0;
}

static int too_large(const char *name, const char *text, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, name,
              "%s: an integer that does not fit 64 bits; write it as a float, as in 1e30", name);
    error_expected(error, "-9223372036854775808 to 18446744073709551615");
    error_found(error, "%s", text);
    return GAD_BAD_ARGUMENT;
}

static void set_scalar(struct gad_argument *argument, const struct gad_scalar *scalar)
{
    argument->scalar = scalar->kind;
    if (scalar->kind == GAD_SCALAR_FLOAT)
        argument->float_value = scalar->float_value;
    else if (scalar->kind == GAD_SCALAR_UINT)
        argument->uint_value = scalar->uint_value;
    else
        argument->int_value = scalar->int_value;
}

int ctl_parse_argument(struct ctl_job *job, char *word, struct gad_error *error)
{
    size_t n = identifier_chars(word);
    if (n == 0 || word[n] != '=' || word[n + 1] == '\0')
        return error_set(error, GAD_BAD_ARGUMENT, word,
                         "'%s' is no argument; arguments are NAME=SOURCE, as in u=winds.h5:/UWND",
                         word);
    if (job->n_args == CTL_MAX_ARGS)
        return error_set(error, GAD_LIMIT_EXCEEDED, word, "at most %d arguments", CTL_MAX_ARGS);
    word[n] = '\0';
    for (unsigned i = 0; i < job->n_args; i++)
        if (strcmp(job->args[i].name, word) == 0)
            return error_set(error, GAD_BAD_ARGUMENT, word, "argument '%s' is given twice", word);
    struct gad_argument *argument = &job->args[job->n_args];
    argument->name = word;
    struct gad_scalar scalar;
    if (!ctl_read_scalar(word + n + 1, &scalar))
        job->sources[job->n_args] = word + n + 1;
    else if (scalar.kind == GAD_SCALAR_NONE)
        return too_large(word, word + n + 1, error);
    else
        set_scalar(argument, &scalar);
    job->n_args++;
    return 0;
}

/* Whether the text names it; else *ret_near is the nearest of what it names, with room for 64. */
static bool is_named(const char *text, const char *name, char *ret_near)
{
    struct ctl_nearest nearest = {.word = name, .best = ret_near[0] ? ret_near : NULL};
    char word[64];
    for (size_t n; *text != '\0'; text += n) {
        n = identifier_chars(text);
        if (n == strlen(name) && memcmp(text, name, n) == 0)
            return true;
        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        ctl_nearest_consider(&nearest, word);
        if (nearest.best == word)
            strcpy(ret_near, word);
        nearest.best = ret_near[0] ? ret_near : NULL;
        n = n > 0 ? n : isdigit((unsigned char)text[0]) ? strspn(text, "0123456789.eEx") : 1;
    }
    return false;
}

int ctl_check_used(const struct ctl_job *job, struct gad_error *error)
{
    for (unsigned i = 0; i < job->n_args; i++) {
        const char *name = job->args[i].name;
        char near[64] = "";
        bool is_used = job->definitions && is_named(job->definitions, name, near);
        for (unsigned k = 0; k < job->n_outputs && !is_used; k++)
            is_used = is_named(job->outputs[k].expr, name, near) ||
                      (job->outputs[k].name && strcmp(job->outputs[k].name, name) == 0);
        if (is_used)
            continue;
        error_set(error, GAD_BAD_ARGUMENT, name, "%s is given, and no expression uses it%s%s%s",
                  name, near[0] ? "; did you mean '" : "", near, near[0] ? "'?" : "");
        error_expected(error, "%s", near[0] ? near : "a name that an expression uses");
        error_found(error, "%s=", name);
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

static int no_such_output(const struct ctl_job *job, const char *name, struct gad_error *error)
{
    char names[sizeof(error->expected)] = "";
    for (unsigned i = 0; i < job->n_outputs; i++) {
        size_t used = strlen(names);
        if (job->outputs[i].name)
            snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "",
                     job->outputs[i].name);
    }
    error_set(error, GAD_UNKNOWN_NAME, name,
              "-o %s=...: no expression has this name; write '%s = EXPRESSION'", name, name);
    error_expected(error, "%s", names[0] ? names : "an expression with a name");
    error_found(error, "'%s'", name);
    return GAD_UNKNOWN_NAME;
}

int ctl_parse_destination(struct ctl_job *job, char *word, struct gad_error *error)
{
    size_t n = identifier_chars(word);
    struct gad_output *output = NULL;
    if (n > 0 && word[n] == '=') {
        word[n] = '\0';
        output = output_named(job, word);
        if (!output)
            return no_such_output(job, word, error);
        word += n + 1;
    } else if (job->n_outputs == 1) {
        output = &job->outputs[0];
    } else {
        return error_set(error, GAD_BAD_ARGUMENT, word,
                         "there are %u expressions: say which one goes to '%s' with -o NAME=%s",
                         job->n_outputs, word, word);
    }
    if (output->to_path)
        return error_set(error, GAD_BAD_ARGUMENT, word, "an expression has two destinations");
    output->to_path = word;
    output->storage = &job->storage.asked;
    return 0;
}

int ctl_open_sources(struct ctl_job *job, struct gad_client *client, struct gad_error *error)
{
    for (unsigned i = 0; i < job->n_args; i++) {
        if (!job->sources[i] || job->args[i].array)
            continue;
        int r = ctl_open_source(client, job->sources[i], job->masking, &job->args[i].array, error);
        if (r)
            return r;
    }
    return 0;
}

void ctl_warn_packed_job(const struct ctl_job *job)
{
    struct gad_array *arrays[CTL_MAX_ARGS];
    for (unsigned i = 0; i < job->n_args; i++)
        arrays[i] = job->args[i].array;
    ctl_warn_packed_sources(job->n_args, job->sources, arrays);
}

void ctl_job_deinit(struct ctl_job *job)
{
    for (unsigned i = 0; i < job->n_args; i++)
        gad_array_release(job->args[i].array);
    for (unsigned i = 0; i < job->n_outputs; i++)
        gad_array_release(job->outputs[i].to);
    for (unsigned i = 0; i < CTL_MAX_OUTPUTS; i++)
        free(job->pair_texts[i]);
    free(job->text);
    free(job->definitions);
    for (unsigned i = 0; i < job->n_with_definitions; i++)
        free(job->with_definitions[i]);
    memset(job, 0, sizeof(*job));
}
