/* Names given to parts of an expression, and the statements that give them.
 *
 *     d = x - mean(x); s = mean(d*d); d / sqrt(s)
 *
 * A text is any number of `NAME = EXPRESSION;` and one expression, the result, behind which a last
 * ";" may stand. A name is known from behind its ";" to the end of the text. What it stands for is
 * one node of the AST, however often it is used: a use is a node of its own (AST_BOUND), which has
 * the use's column and takes over the value. So every stage does work in proportion to the text.
 *
 * A name has one meaning in a text: it cannot be given twice, nor to what is known already. So a
 * text means the same wherever it stands, and a slip of the keyboard is told, not computed.
 *
 * Names are found in a table of lists, made with the first binding: texts without bindings pay
 * nothing for it. Called by parser.c for the statements, by names.c and suggest.c for the names.
 */
#include "kernels/expr/text/parser.h"

#include <string.h>

#define N_BUCKETS 256 /* a text has room for some 2000 bindings */

struct binding {
    struct binding *next; /* in the same bucket */
    uint32_t node;
    uint32_t n_chars;
    char name[ARRAY_NAME_SIZE];
};

static unsigned bucket_of(const char *name, size_t n_chars)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n_chars; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    return (h ^ h >> 15) % N_BUCKETS;
}

bool bindings_find(const struct parser *p, const struct token *name, uint32_t *ret_node)
{
    const char *text = parser_text(p, name);
    if (p->bindings == NULL)
        return false;
    for (const struct binding *b = p->bindings[bucket_of(text, name->n_chars)]; b != NULL;
         b = b->next, p->c->n_steps++)
        if (b->n_chars == name->n_chars && memcmp(b->name, text, b->n_chars) == 0) {
            *ret_node = b->node;
            return true;
        }
    return false;
}

void bindings_each(const struct parser *p, void (*visit)(void *data, const char *name), void *data)
{
    for (unsigned i = 0; p->bindings != NULL && i < N_BUCKETS; i++)
        for (const struct binding *b = p->bindings[i]; b != NULL; b = b->next)
            visit(data, b->name);
}

static int add(struct parser *p, const struct token *name, uint32_t node)
{
    const char *text = parser_text(p, name);
    if (p->bindings == NULL) {
        p->bindings = arena_take(&p->c->arena, N_BUCKETS * sizeof(*p->bindings));
        if (p->bindings == NULL)
            return compiler_no_memory(p->c);
        memset(p->bindings, 0, N_BUCKETS * sizeof(*p->bindings));
    }
    struct binding *b = arena_take(&p->c->arena, sizeof(*b));
    if (b == NULL)
        return compiler_no_memory(p->c);
    struct binding **bucket = &p->bindings[bucket_of(text, name->n_chars)];
    b->next = *bucket;
    b->node = node;
    b->n_chars = name->n_chars;
    memcpy(b->name, text, name->n_chars);
    b->name[name->n_chars] = '\0';
    *bucket = b;
    return 0;
}

/* ---- what may be bound ---- */

static bool is_python_word(const struct parser *p, const struct token *name)
{
    static const char *const words[] = {
        "None",  "and",    "as",   "assert", "async",    "await", "break", "class",  "continue",
        "def",   "del",    "elif", "else",   "except",   "for",   "from",  "global", "finally",
        "if",    "import", "in",   "is",     "nonlocal", "not",   "or",    "lambda", "pass",
        "raise", "return", "try",  "while",  "with",     "yield",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (parser_is_word(p, name, words[i]))
            return true;
    return false;
}

static int cannot_bind(struct parser *p, const struct token *name, const char *why)
{
    int shown = parser_shown_chars(name);
    const char *text = parser_text(p, name);
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                          "'%.*s' is %s and cannot be bound to another value", shown, text, why);
    error_expected(p->c->error, "a name that means nothing else");
    error_found(p->c->error, "'%.*s'", shown, text);
    return r;
}

int bindings_check_name(struct parser *p, const struct token *name)
{
    uint16_t arg;
    uint32_t node;
    struct value value;
    if (names_find_arg(p, name, &arg))
        return cannot_bind(p, name, "an argument (== compares)");
    if (bindings_find(p, name, &node))
        return cannot_bind(p, name, "bound already");
    if (definitions_find(p, name) != NULL)
        return cannot_bind(p, name, "a function of this text");
    if (names_find_constant(p, name, &value))
        return cannot_bind(p, name, "a constant");
    if (parser_is_word(p, name, "np") || parser_is_word(p, name, "numpy"))
        return cannot_bind(p, name, "NumPy's own name");
    if (names_is_dtype(p, name))
        return cannot_bind(p, name, "a dtype");
    if (names_is_function(p, name))
        return cannot_bind(p, name, "a function");
    if (is_python_word(p, name))
        return cannot_bind(p, name, "a word of Python");
    if (name->n_chars < ARRAY_NAME_SIZE)
        return 0;
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                          "a name of %u characters is too long", name->n_chars);
    error_expected(p->c->error, "at most %d characters", ARRAY_NAME_SIZE - 1);
    error_found(p->c->error, "%u", name->n_chars);
    return r;
}

/* ---- statements ---- */

/* The token is the name, "=" follows. */
static int parse_binding(struct parser *p)
{
    struct token name = p->token;
    uint32_t node;
    int r = bindings_check_name(p, &name);
    if (r == 0)
        r = parser_advance(p); /* the name */
    if (r == 0)
        r = parser_advance(p); /* = */
    if (r == 0)
        r = parser_binary(p, 0, &node);
    if (r == 0 && p->token.kind == TOKEN_END)
        return parser_unexpected(p, "';' and the result");
    if (r == 0 && p->token.kind != TOKEN_SEMICOLON)
        return parser_unexpected_behind(p);
    if (r == 0)
        r = parser_advance(p);
    return r ? r : add(p, &name, node);
}

/* `q, r = divmod(a, b)` */
static int two_names(struct parser *p)
{
    uint16_t arg;
    if (names_find_arg(p, &p->token, &arg))
        return 0;
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "one name at a time: q = divmod(a, b)[0]; r = divmod(a, b)[1]; ...");
    error_expected(p->c->error, "NAME = EXPRESSION;");
    return r;
}

/* The last one; the token is behind its ";". */
static int unnamed_value(struct parser *p, uint32_t column)
{
    if (p->token.kind == TOKEN_SEMICOLON)
        return parser_unexpected(p, "the end");
    int r =
        compiler_fail(p->c, GAD_BAD_EXPRESSION, column,
                      "only the last expression is the result; this one needs a name: NAME = ...;");
    error_expected(p->c->error, "NAME = EXPRESSION;");
    return r;
}

static int parse_result(struct parser *p)
{
    uint32_t column = parser_column(p), node;
    if (p->token.kind == TOKEN_END)
        return parser_unexpected(p, "the result");
    int r = parser_binary(p, 0, &node);
    if (r != 0 || p->token.kind == TOKEN_END)
        return r;
    if (p->token.kind != TOKEN_SEMICOLON)
        return parser_unexpected_behind(p);
    r = parser_advance(p);
    return r != 0 || p->token.kind == TOKEN_END ? r : unnamed_value(p, column);
}

int bindings_parse(struct parser *p)
{
    for (;;) {
        enum token_kind next;
        int r = parser_peek_behind_name(p, &next);
        if (r == 0 && next == TOKEN_COMMA)
            r = two_names(p);
        if (r)
            return r;
        bool is_definition = false;
        if (next == TOKEN_OPEN)
            r = definitions_look(p, &is_definition);
        if (r)
            return r;
        if (next != TOKEN_ASSIGN && !is_definition)
            return parse_result(p);
        r = is_definition ? definitions_parse(p) : parse_binding(p);
        if (r)
            return r;
    }
}
