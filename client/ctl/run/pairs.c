/* Both results of a function that has two: 'q, r = divmod(a, b)'.
 *
 * The daemon's expressions have one value each, so the two names become two expressions of a job,
 * divmod(a, b)[0] and divmod(a, b)[1], for which whatever they share is computed once. Which
 * functions have two results is known from the catalogue; what stands behind the = must be one call
 * of one of them.
 *
 * Called by assign.c.
 */
#include "client/ctl/ctl.h"

#include "proto/error.h"
#include "proto/ops.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACES " \t\r\n"

static const char *behind_prefix(const char *text)
{
    if (strncmp(text, "np.", 3) == 0)
        return text + 3;
    return strncmp(text, "numpy.", 6) == 0 ? text + 6 : text;
}

/* Whether the parenthesis that opens at `text` closes at its end. */
static bool is_one_call(const char *text)
{
    int depth = 0;
    for (; *text != '\0'; text++) {
        depth += *text == '(';
        depth -= *text == ')';
        if (depth == 0)
            return text[0] == ')' && text[1 + strspn(text + 1, SPACES)] == '\0';
    }
    return false;
}

static bool has_two_results(const char *text)
{
    text = behind_prefix(text);
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    unsigned op = op_row_find(text, n);
    return op != OP_N_ROWS && op_row_info(op)->n_results == 2 &&
           is_one_call(text + n + strspn(text + n, SPACES));
}

int ctl_add_pair(struct ctl_job *job, const char *const names[2], const char *expr,
                 struct gad_error *error)
{
    if (!has_two_results(expr))
        return error_set(error, GAD_BAD_EXPRESSION, names[0],
                         "'%s, %s = %.60s': two names need one call of a function with two "
                         "results: divmod(a, b), frexp(x), modf(x) or histogram(x)",
                         names[0], names[1], expr);
    for (int i = 0; i < 2; i++) {
        if (job->n_outputs == CTL_MAX_OUTPUTS)
            return error_set(error, GAD_LIMIT_EXCEEDED, NULL, "at most %d expressions in a job",
                             CTL_MAX_OUTPUTS);
        char **text = &job->pair_texts[job->n_outputs];
        if (asprintf(text, "%s[%d]", expr, i) < 0) {
            *text = NULL;
            return error_set(error, GAD_NO_MEMORY, NULL, "no memory for the expression");
        }
        job->outputs[job->n_outputs++] = (struct gad_output){.name = names[i], .expr = *text};
    }
    return 0;
}
