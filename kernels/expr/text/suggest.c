/* The nearest known name for one that is not known.
 *
 * Candidates are the request's arguments, what the text has bound so far, the constants, and the
 * catalogue's names and dtypes, the nearest of which op_suggest() knows. Where two are equally
 * near, the argument is meant. Names of one character get no suggestion, since any two of them are
 * a single edit apart.
 *
 * Called by names.c, once, when a compilation fails.
 */
#include "kernels/expr/text/parser.h"

#include <string.h>

struct search {
    const char *name;
    size_t n_chars;
    unsigned best_distance; /* of what was found; or one more than is allowed */
    const char *best;
};

static void consider(struct search *s, const char *candidate)
{
    size_t n = candidate != NULL ? strlen(candidate) : 0;
    if (n == 0 || n > OP_NAME_MAX_CHARS)
        return;
    unsigned distance = op_name_distance(s->name, s->n_chars, candidate, n);
    if (distance < s->best_distance) {
        s->best_distance = distance;
        s->best = candidate;
    }
}

static void consider_bound(void *data, const char *candidate)
{
    consider(data, candidate);
}

const char *suggest_name(const struct parser *p, const struct token *token, bool is_call)
{
    static const char *const constants[] = {"pi", "inf", "nan", "True", "False"};
    const struct job_request *request = p->c->request;
    const char *name = parser_text(p, token);
    size_t n_chars = token->n_chars;
    if (n_chars < 2 || n_chars > OP_NAME_MAX_CHARS)
        return NULL;
    struct search s = {.name = name, .n_chars = n_chars, .best_distance = n_chars <= 3 ? 2 : 3};
    if (!is_call) {
        for (unsigned i = 0; i < request->n_args; i++)
            consider(&s, request->args[i].name);
        bindings_each(p, consider_bound, &s);
        for (size_t i = 0; i < ARRAY_LENGTH(constants); i++)
            consider(&s, constants[i]);
    }
    const char *known = op_suggest(name, n_chars);
    consider(&s, known);
    return s.best != NULL ? s.best : known; /* which may be another language's word for it */
}
