/* Names in the texts of expressions, as whole words.
 *
 * Called by unpack.c and indexed.c, which give arguments other names.
 */
#include "client/lib/arguments/words.h"
#include "client/gpuarrayd.h"

#include <string.h>

bool words_is_char(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
}

/* The next place of the name as a whole word outside quotes; NULL: there is none. */
const char *words_find(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = text; *at;) {
        if (*at == '\'' || *at == '"') {
            const char *end = strchr(at + 1, *at);
            at = end ? end + 1 : at + strlen(at);
        } else if (words_is_char(*at)) {
            size_t n_word = 0;
            while (words_is_char(at[n_word]))
                n_word++;
            if (n_word == n && memcmp(at, name, n) == 0)
                return at;
            at += n_word;
        } else {
            at++;
        }
    }
    return NULL;
}

/* Every whole word `from` in a text of so many bytes becomes `to`; what has no room is cut. */
static void replace(char *text, size_t n_bytes, const char *from, const char *to)
{
    size_t n_from = strlen(from), n_to = strlen(to);
    for (char *at = text; (at = strstr(at, from));) {
        bool is_word = (at == text || !words_is_char(at[-1])) && !words_is_char(at[n_from]);
        size_t n_before = (size_t)(at - text), n_after = strlen(at + n_from);
        size_t room = n_bytes - 1 - n_before;
        if (!is_word || n_to > room) {
            at += n_from;
            continue;
        }
        n_after = n_after < room - n_to ? n_after : room - n_to;
        memmove(at + n_to, at + n_from, n_after);
        memcpy(at, to, n_to);
        at[n_to + n_after] = '\0';
        at += n_to;
    }
}

void words_restore(struct gad_error *error, const char *from, const char *to)
{
    replace(error->argument, sizeof(error->argument), from, to);
    replace(error->message, sizeof(error->message), from, to);
    replace(error->expected, sizeof(error->expected), from, to);
    replace(error->found, sizeof(error->found), from, to);
}

bool words_are_taken(const struct gad_job_options *options, const char *name)
{
    for (unsigned i = 0; i < options->n_args; i++)
        if (strcmp(options->args[i].name, name) == 0)
            return true;
    for (unsigned i = 0; i < options->n_outputs; i++)
        if (words_find(options->outputs[i].expr, name))
            return true;
    return false;
}
