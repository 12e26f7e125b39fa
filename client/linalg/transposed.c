/* An expression that is element for element has the transposed result where every matrix in it is
 * transposed. Behind an argument's name `.T` does that; parts that have names get others, `_T`
 * behind theirs. Called by passes.c.
 */
#include "client/linalg/transposed.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

static size_t name_chars(const char *at)
{
    size_t n = 0;
    while (is_of_name(at[n]))
        n++;
    return n;
}

static bool is_matrix(const char *name, size_t n, unsigned n_args, const struct gad_argument *args)
{
    for (unsigned i = 0; i < n_args; i++)
        if (args[i].array && strlen(args[i].name) == n && strncmp(args[i].name, name, n) == 0)
            return gad_array_info(args[i].array)->ndim > 0;
    return false;
}

/* Whether a statement of the text begins with this name and "=". */
static bool is_bound(const char *name, size_t n, const char *text)
{
    for (const char *at = text; at; at = strchr(at, ';')) {
        at += strspn(at, "; \t\n");
        size_t n_here = name_chars(at);
        const char *after = at + n_here + strspn(at + n_here, " \t\n");
        if (n_here == n && strncmp(at, name, n) == 0 && after[0] == '=' && after[1] != '=')
            return true;
        if (n_here == 0 && *at == '\0')
            break;
    }
    return false;
}

char *transposed_text(const char *text, unsigned n_args, const struct gad_argument *args)
{
    char *made = NULL;
    size_t n_made;
    FILE *file = open_memstream(&made, &n_made);
    if (!file)
        return NULL;
    char before = ' ';
    for (const char *at = text; *at;) {
        size_t n = name_chars(at);
        bool is_name = n > 0 && !isdigit((unsigned char)*at) && before != '.';
        const char *ending = !is_name                         ? ""
                             : is_matrix(at, n, n_args, args) ? ".T"
                             : is_bound(at, n, text)          ? "_T"
                                                              : "";
        n = n > 0 ? n : 1;
        fprintf(file, "%.*s%s", (int)n, at, ending);
        before = at[n - 1];
        at += n;
    }
    return fclose(file) == 0 ? made : NULL;
}
