/* Arguments that are masked and scaled, as parts of a request's expressions.
 *
 * The daemon knows nothing of packing. An argument t that was opened to be masked and scaled goes
 * to it under another name, and each expression that uses t begins with what t stands for:
 *
 *     t_packed                 the argument
 *     t = np.where((t_packed == -9999), np.nan, np.float32(t_packed) * 0.01 + 273.0); mean(t)
 *
 * So it is computed on the way, in one pass, by any engine, wherever an expression can stand.
 * `t.mT` and `t.T`, which can be said of arguments alone, are names of their own of the same
 * length:
 *
 *     a @ t.mT                 a @ t_mT, where t_mT is made of t_packed.mT
 *
 * What the daemon says is put back into the program's names, and the columns are counted without
 * the beginning. That is why what is replaced keeps its length.
 *
 * Called by build.c for requests, by job.c and plan.c for refusals.
 */
#include "client/lib/arguments/unpack.h"
#include "client/lib/arguments/words.h"
#include "client/lib/memory/scalar.h"
#include "client/meaning.h"
#include "proto/request.h"
#include "proto/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX "_packed"

/* ---- Words of an expression ---- */

/* How long `NAME.T` or `NAME.mT` is, blanks inside it too; 0: it is not there. */
static size_t transposed_chars(const char *at, const char *name, const char *attribute)
{
    size_t n = strlen(name), n_attribute = strlen(attribute);
    n += strspn(at + n, " \t\n");
    if (at[n] != '.')
        return 0;
    n++;
    n += strspn(at + n, " \t\n");
    return strncmp(at + n, attribute, n_attribute) == 0 && !words_is_char(at[n + n_attribute])
               ? n + n_attribute
               : 0;
}

/* ---- Names ---- */

static const struct meaning_packing *packing_of(const struct gad_argument *argument)
{
    return argument->array ? meaning_unpacking(argument->array) : NULL;
}

void unpack_name(const struct gad_job_options *options, unsigned i, char ret_name[ARRAY_NAME_SIZE])
{
    const char *name = options->args[i].name;
    int n_kept = ARRAY_NAME_SIZE - (int)sizeof(SUFFIX) - 8; /* and room for numbers */
    snprintf(ret_name, ARRAY_NAME_SIZE, "%s", name);
    if (!packing_of(&options->args[i]))
        return;
    snprintf(ret_name, ARRAY_NAME_SIZE, "%.*s" SUFFIX, n_kept, name);
    for (unsigned n = 2; words_are_taken(options, ret_name); n++)
        snprintf(ret_name, ARRAY_NAME_SIZE, "%.*s" SUFFIX "%u", n_kept, name, n);
    /* Of two long names that begin alike the rest is cut: the number of the argument tells. */
    if ((int)strlen(name) > n_kept)
        snprintf(ret_name, ARRAY_NAME_SIZE, "%.*s" SUFFIX "_%u", n_kept - 4, name, i);
}

/* ---- What an argument stands for ---- */

/* Between parentheses where it has a sign. */
static void put_number(FILE *out, const struct gad_scalar *number)
{
    char text[SCALAR_TEXT_SIZE];
    scalar_format(number, text);
    bool is_infinite = number->kind == GAD_SCALAR_FLOAT && strstr(text, "inf");
    bool is_negative = text[0] == '-';
    fprintf(out, "%s%s%s%s", is_negative ? "(-" : "", is_infinite ? "np." : "", text + is_negative,
            is_negative ? ")" : "");
}

static void put_condition(FILE *out, const char *stored, const char *operator,
                          const struct gad_scalar * number, bool *is_first)
{
    fprintf(out, "%s(%s %s ", *is_first ? "" : " | ", stored, operator);
    put_number(out, number);
    fputc(')', out);
    *is_first = false;
}

static void put_meaning(FILE *out, const struct gad_array *array,
                        const struct meaning_packing *packing, const char *packed)
{
    char stored[2 * ARRAY_NAME_SIZE];
    bool is_first = true;
    bool is_masked = packing->n_fills > 0 || packing->valid_min.kind != GAD_SCALAR_NONE ||
                     packing->valid_max.kind != GAD_SCALAR_NONE;
    if (packing->stored != array->info.dtype)
        snprintf(stored, sizeof(stored), "np.%s(%s)", gad_dtype_name(packing->stored), packed);
    else
        snprintf(stored, sizeof(stored), "%s", packed);
    if (is_masked)
        fputs("np.where(", out);
    for (size_t i = 0; i < packing->n_fills; i++)
        put_condition(out, stored, "==", &packing->fills[i], &is_first);
    if (packing->valid_min.kind != GAD_SCALAR_NONE)
        put_condition(out, stored, "<", &packing->valid_min, &is_first);
    if (packing->valid_max.kind != GAD_SCALAR_NONE)
        put_condition(out, stored, ">", &packing->valid_max, &is_first);
    if (is_masked)
        fputs(", np.nan, ", out);
    if (packing->meant != packing->stored)
        fprintf(out, "np.%s(%s)", gad_dtype_name(packing->meant), stored);
    else
        fputs(stored, out);
    if (packing->scale.kind != GAD_SCALAR_NONE) {
        fputs(" * ", out);
        put_number(out, &packing->scale);
    }
    if (packing->offset.kind != GAD_SCALAR_NONE) {
        fputs(" + ", out);
        put_number(out, &packing->offset);
    }
    if (is_masked)
        fputc(')', out);
}

/* ---- Texts ---- */

/* `t.mT` becomes `t_mT` in the text; what it stands for is written. False: the name is taken. */
static bool put_transposed(FILE *out, const struct gad_job_options *options, unsigned i,
                           const char *attribute, char *text)
{
    const struct gad_argument *argument = &options->args[i];
    char packed[ARRAY_NAME_SIZE], transposed[2 * ARRAY_NAME_SIZE], own[2 * ARRAY_NAME_SIZE] = "";
    unpack_name(options, i, packed);
    snprintf(transposed, sizeof(transposed), "%s.%s", packed, attribute);
    for (char *at = text; (at = (char *)words_find(at, argument->name)); at++) {
        size_t n = transposed_chars(at, argument->name, attribute);
        if (n == 0)
            continue;
        char made[2 * ARRAY_NAME_SIZE];
        for (size_t k = 0; k < n; k++)
            at[k] = words_is_char(at[k]) ? at[k] : '_';
        snprintf(made, sizeof(made), "%.*s", (int)(n < sizeof(made) ? n : sizeof(made) - 1), at);
        if (strlen(made) >= ARRAY_NAME_SIZE ||
            (strcmp(made, own) != 0 && words_are_taken(options, made)))
            return false;
        if (strcmp(made, own) != 0) {
            fprintf(out, "%s = ", made);
            put_meaning(out, argument->array, packing_of(argument), transposed);
            fputs("; ", out);
        }
        snprintf(own, sizeof(own), "%s", made);
    }
    return true;
}

static int refuse_name(const struct gad_argument *argument, struct gad_error *error)
{
    return error_set(error, GAD_BAD_EXPRESSION, argument->name,
                     "%s is masked and scaled, and '%s_mT' or '%s_T', by which its transpose would "
                     "be known, means something else here: give it another name",
                     argument->name, argument->name, argument->name);
}

/* The beginning; *text is changed where arguments are transposed. */
static int put_beginning(FILE *out, const struct gad_job_options *options, char *text,
                         struct gad_error *error)
{
    for (unsigned i = 0; i < options->n_args; i++) {
        const struct gad_argument *argument = &options->args[i];
        const struct meaning_packing *packing = packing_of(argument);
        char packed[ARRAY_NAME_SIZE];
        if (!packing || !words_find(text, argument->name))
            continue;
        if (!put_transposed(out, options, i, "mT", text) ||
            !put_transposed(out, options, i, "T", text))
            return refuse_name(argument, error);
        if (!words_find(text, argument->name))
            continue;
        unpack_name(options, i, packed);
        fprintf(out, "%s = ", argument->name);
        put_meaning(out, argument->array, packing, packed);
        fputs("; ", out);
    }
    return 0;
}

static bool has_unpacking(const struct gad_job_options *options)
{
    for (unsigned i = 0; i < options->n_args; i++)
        if (packing_of(&options->args[i]))
            return true;
    return false;
}

/* *ret_n_beginning: characters before the program's own. */
static int make_text(const struct gad_job_options *options, unsigned i, char **ret_text,
                     size_t *ret_n_beginning, struct gad_error *error)
{
    size_t n_bytes = 0;
    char *made = NULL;
    _cleanup_free_ char *own = strdup(options->outputs[i].expr);
    FILE *out = own ? open_memstream(&made, &n_bytes) : NULL;
    if (!out)
        return -ENOMEM;
    int r = put_beginning(out, options, own, error);
    long n_beginning = ftell(out);
    fputs(own, out);
    bool has_failed = ferror(out) != 0 || n_beginning < 0;
    if ((fclose(out) || has_failed) && r == 0)
        r = -ENOMEM;
    if (r) {
        free(made);
        return r;
    }
    *ret_text = made;
    *ret_n_beginning = (size_t)n_beginning;
    return 0;
}

int unpack_text(const struct gad_job_options *options, unsigned i, char **ret_text,
                struct gad_error *error)
{
    size_t n_beginning;
    *ret_text = NULL;
    if (!has_unpacking(options))
        return 0;
    int r = make_text(options, i, ret_text, &n_beginning, error);
    if (r || strlen(*ret_text) <= REQUEST_MAX_EXPR_CHARS)
        return r;
    error_set(error, GAD_LIMIT_EXCEEDED, options->outputs[i].name,
              "with what masks and scales its arguments the expression is too long");
    error_expected(error, "at most %u characters", REQUEST_MAX_EXPR_CHARS);
    error_found(error, "%zu and %zu", n_beginning, strlen(*ret_text) - n_beginning);
    free(steal_ptr(*ret_text));
    return GAD_LIMIT_EXCEEDED;
}

/* ---- Refusals ---- */

static bool is_about(const struct gad_job_options *options, unsigned i,
                     const struct gad_error *error)
{
    char unnamed[24];
    const char *name = options->outputs[i].name;
    snprintf(unnamed, sizeof(unnamed), "outputs[%u]", i);
    return strcmp(name && name[0] ? name : unnamed, error->argument) == 0;
}

/* "column 61: ..." as "column 4: ..."; what is in the beginning has no column of the program's. */
static void restore_column(const struct gad_job_options *options, struct gad_error *error)
{
    char *end, text[sizeof(error->message)];
    size_t n_beginning = 0;
    if (strncmp(error->message, "column ", 7) != 0)
        return;
    unsigned long column = strtoul(error->message + 7, &end, 10);
    for (unsigned i = 0; i < options->n_outputs; i++) {
        char *made;
        if (!is_about(options, i, error) || make_text(options, i, &made, &n_beginning, NULL))
            continue;
        free(made);
        break;
    }
    snprintf(text, sizeof(text), "%s", end + strspn(end, ": "));
    if (column > n_beginning)
        snprintf(error->message, sizeof(error->message), "column %lu: %.*s",
                 column - (unsigned long)n_beginning, (int)sizeof(text) - 32, text);
    else
        memcpy(error->message, text, sizeof(text));
}

void unpack_restore(const struct gad_job_options *options, struct gad_error *error)
{
    if (!has_unpacking(options))
        return;
    restore_column(options, error);
    for (unsigned i = 0; i < options->n_args; i++) {
        const char *name = options->args[i].name;
        char packed[ARRAY_NAME_SIZE], from[2 * ARRAY_NAME_SIZE], to[2 * ARRAY_NAME_SIZE];
        if (!packing_of(&options->args[i]))
            continue;
        unpack_name(options, i, packed);
        words_restore(error, packed, name);
        for (int k = 0; k < 2; k++) {
            snprintf(from, sizeof(from), "%s_%s", name, k ? "T" : "mT");
            snprintf(to, sizeof(to), "%s.%s", name, k ? "T" : "mT");
            if (!words_are_taken(options, from))
                words_restore(error, from, to);
        }
    }
}
