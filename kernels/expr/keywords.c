/* Optional parameters, as the catalogue writes them: "rtol=1e-05, atol=1e-08, equal_nan=False".
 *
 * They stand behind the arguments that an operation must have, in this order where no name is
 * given. One whose default is None may be None. The defaults' values are known where the operation
 * is lowered; the text is what people read.
 *
 * Called by calls.c while it parses a call.
 */
#include "kernels/expr/internal.h"

#include <assert.h>
#include <string.h>

unsigned keywords_count(enum op op)
{
    const char *text = op_info(op)->keywords;
    unsigned n = 0;
    for (; text != NULL; n++)
        text = (text = strchr(text, ',')) != NULL ? text + 1 : NULL;
    assert(n <= KEYWORDS_MAX);
    return n;
}

struct keyword keywords_get(enum op op, unsigned i)
{
    const char *text = op_info(op)->keywords;
    for (; i > 0; i--)
        text = strchr(text, ',') + 2;
    struct keyword k = {.name = text, .n_chars = (unsigned)strcspn(text, "=")};
    const char *initial = text + k.n_chars + 1;
    k.allows_none = strcspn(initial, ",") == 4 && memcmp(initial, "None", 4) == 0;
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
