/* Optional parameters, as the catalogue writes them: "rtol=1e-05, atol=1e-08, equal_nan=False".
 *
 * They stand behind the arguments that an operation must have, in this order where no name is
 * given; those behind a "*" always come by name. One whose default is None may be None; one that
 * has no default must be given. The defaults' values are known where the operation is lowered; the
 * text is what people read. What may be written for a parameter follows from its name: axes and
 * sizes are integers or tuples, a dtype is a name, a method one of a few words, all others are
 * expressions.
 *
 * Called by arguments.c while a call is parsed, and by literals.c for what was given.
 */
#include "kernels/expr/text/keywords.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

static const char *skip_marker(const char *text)
{
    return text != NULL && memcmp(text, "*, ", 3) == 0 ? text + 3 : text;
}

/* The parameter behind this one, or NULL. */
static const char *behind(const char *text)
{
    text = strchr(text, ',');
    return text != NULL ? text + 2 : NULL;
}

unsigned keywords_count(enum op op)
{
    unsigned n = 0;
    for (const char *at = skip_marker(op_info(op)->keywords); at != NULL; n++)
        at = skip_marker(behind(at));
    assert(n <= KEYWORDS_MAX);
    return n;
}

unsigned keywords_count_positional(enum op op)
{
    unsigned n = 0;
    for (const char *at = op_info(op)->keywords; at != NULL && *at != '*'; n++)
        at = behind(at);
    return n;
}

bool keywords_is(const struct keyword *k, const char *name)
{
    return strlen(name) == k->n_chars && memcmp(name, k->name, k->n_chars) == 0;
}

static enum keyword_kind kind_of(const struct keyword *k)
{
    static const struct {
        const char *name;
        enum keyword_kind kind;
    } kinds[] = {
        {"axis", KEYWORD_TUPLE},   {"size", KEYWORD_TUPLE},    {"dtype", KEYWORD_DTYPE},
        {"out", KEYWORD_NONE},     {"method", KEYWORD_WORD},   {"side", KEYWORD_WORD},
        {"mode", KEYWORD_WORD},    {"range", KEYWORD_TUPLE},   {"axes", KEYWORD_TUPLES},
        {"origin", KEYWORD_TUPLE}, {"kernel", KEYWORD_KERNEL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (keywords_is(k, kinds[i].name))
            return kinds[i].kind;
    return KEYWORD_EXPRESSION;
}

struct keyword keywords_get(enum op op, unsigned i)
{
    const char *text = skip_marker(op_info(op)->keywords);
    for (; i > 0; i--)
        text = skip_marker(behind(text));
    struct keyword k = {.name = text, .n_chars = (unsigned)strcspn(text, "=,")};
    k.is_required = text[k.n_chars] != '=';
    k.kind = kind_of(&k);
    const char *initial = text + k.n_chars + 1;
    k.allows_none = !k.is_required && strcspn(initial, ",") == 4 && memcmp(initial, "None", 4) == 0;
    return k;
}

unsigned keywords_find(enum op op, const char *name, size_t n_chars)
{
    unsigned n = keywords_count(op);
    for (unsigned i = 0; i < n; i++) {
        struct keyword k = keywords_get(op, i);
        if (k.n_chars == n_chars && memcmp(k.name, name, n_chars) == 0)
            return i;
    }
    return n;
}

struct keyword keywords_suggest(enum op op, const char *name, size_t n_chars)
{
    struct keyword best = {.n_chars = 0};
    if (n_chars > OP_NAME_MAX_CHARS)
        return best;
    unsigned n = keywords_count(op), best_distance = n_chars <= 3 ? 2 : 3;
    for (unsigned i = 0; i < n; i++) {
        struct keyword k = keywords_get(op, i);
        unsigned distance = op_name_distance(name, n_chars, k.name, k.n_chars);
        if (distance < best_distance) {
            best_distance = distance;
            best = k;
        }
    }
    return best;
}
