/* The nearest known name for one that is not known.
 *
 * Candidates are the request's arguments, the constants, the catalogue's names and aliases and the
 * dtypes. Distance counts inserted, lost, replaced and swapped characters; short names allow fewer
 * of them, since any two names of one character are a single edit apart.
 *
 * Called by the parser, once, when a compilation fails.
 */
#include "kernels/expr/internal.h"

#include <string.h>

#define MAX_CHARS ARRAY_NAME_SIZE

struct search {
    const char *name;
    size_t n_chars;
    unsigned best_distance; /* of what was found; or one more than is allowed */
    const char *best;
};

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Optimal string alignment, three rows of the table at a time. */
static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    unsigned rows[3][MAX_CHARS + 1];
    for (size_t j = 0; j <= n_b; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n_a; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n_b; j++) {
            unsigned replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, replaced);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[n_a % 3][n_b];
}

static void consider(struct search *s, const char *candidate)
{
    size_t n = candidate != NULL ? strlen(candidate) : 0;
    if (n == 0 || n > MAX_CHARS)
        return;
    unsigned d = distance(s->name, s->n_chars, candidate, n);
    if (d < s->best_distance) {
        s->best_distance = d;
        s->best = candidate;
    }
}

const char *suggest_name(const struct job_request *request, const char *name, size_t n_chars,
                         bool is_call)
{
    static const char *const constants[] = {"pi", "inf", "nan", "True", "False"};
    if (n_chars < 2 || n_chars > MAX_CHARS)
        return NULL;
    struct search s = {.name = name, .n_chars = n_chars, .best_distance = n_chars < 4 ? 2 : 3};
    if (!is_call) {
        for (unsigned i = 0; i < request->n_args; i++)
            consider(&s, request->args[i].name);
        for (size_t i = 0; i < ARRAY_LENGTH(constants); i++)
            consider(&s, constants[i]);
    }
    for (int op = 0; op < OP_COUNT; op++) {
        consider(&s, op_info((enum op)op)->name);
        consider(&s, op_info((enum op)op)->alias);
    }
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        consider(&s, dtype_name((enum dtype)dtype));
    return s.best;
}
