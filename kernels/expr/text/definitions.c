/* Functions that a text makes of its own, and their calls.
 *
 *     lap(u) = near(u, 1) + near(u, -1) - 2*u; a + 0.1 * lap(a) - lap(b)
 *
 * A definition is a statement as NAME = EXPRESSION; is. It is read once where it stands, with its
 * parameters as numbers, for the sake of its mistakes. A call reads the definition's text again, in
 * its place, with the parameters bound to the arguments: so a function means what its text would.
 * It knows the functions before it and not itself, so calls end; what they all read together is
 * bounded, however often one calls another.
 *
 * Called by bindings.c for statements, by names.c for names.
 */
#include "kernels/expr/text/parser.h"

#include <string.h>

#define MAX_PARAMETERS 16
#define MAX_READ_CHARS (64 * 1024) /* by all calls of a program */

struct definition {
    const struct definition *next;
    struct token name, body; /* body: the first of its tokens */
    uint32_t n_body_chars;
    unsigned n_parameters;
    struct token parameters[MAX_PARAMETERS];
};

struct inlined {
    const struct definition *definition;
    uint32_t nodes[MAX_PARAMETERS];
};

static bool is_same(const struct parser *p, const struct token *a, const struct token *b)
{
    return a->n_chars == b->n_chars &&
           memcmp(parser_text(p, a), parser_text(p, b), a->n_chars) == 0;
}

const struct definition *definitions_find(const struct parser *p, const struct token *name)
{
    const struct definition *d = p->definitions;
    for (; d != NULL && !is_same(p, &d->name, name); d = d->next)
        p->c->n_steps++;
    return d;
}

bool definitions_find_parameter(const struct parser *p, const struct token *name,
                                uint32_t *ret_node)
{
    for (unsigned i = 0; p->frame != NULL && i < p->frame->definition->n_parameters; i++)
        if (is_same(p, &p->frame->definition->parameters[i], name)) {
            *ret_node = p->frame->nodes[i];
            return true;
        }
    return false;
}

int definitions_look(struct parser *p, bool *ret_is_definition)
{
    struct token t = p->token;
    enum token_kind wanted = TOKEN_OPEN;
    *ret_is_definition = false;
    for (bool is_open = false; t.kind == TOKEN_NAME || is_open;) {
        int r = lexer_next(p->c, t.start + t.n_chars, &t);
        if (r)
            return r;
        if (is_open && t.kind == TOKEN_CLOSE) {
            r = lexer_next(p->c, t.start + t.n_chars, &t);
            *ret_is_definition = r == 0 && t.kind == TOKEN_ASSIGN;
            return r;
        }
        if (t.kind != wanted)
            return 0;
        is_open = true;
        wanted = t.kind == TOKEN_NAME ? TOKEN_COMMA : TOKEN_NAME;
    }
    return 0;
}

static int bad_parameter(struct parser *p, const char *why)
{
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p), "parameter '%.*s' %s",
                          parser_shown_chars(&p->token), parser_text(p, &p->token), why);
    parser_found(p);
    return r;
}

static int parse_parameters(struct parser *p, struct definition *d)
{
    int r = parser_advance(p); /* the name */
    while (r == 0 && p->token.kind != TOKEN_ASSIGN) {
        r = parser_advance(p); /* ( , ) */
        if (r != 0 || p->token.kind != TOKEN_NAME)
            continue;
        if (d->n_parameters == MAX_PARAMETERS)
            return bad_parameter(p, "is one too many: a function has at most 16");
        for (unsigned i = 0; i < d->n_parameters; i++)
            if (is_same(p, &d->parameters[i], &p->token))
                return bad_parameter(p, "is there twice");
        if (names_is_function(p, &p->token))
            return bad_parameter(p, "is a function's or a dtype's name");
        d->parameters[d->n_parameters++] = p->token;
        r = parser_advance(p);
    }
    return r ? r : parser_advance(p); /* = */
}

/* With numbers for parameters; what it comes to is forgotten. */
static int read_body(struct parser *p, const struct definition *d, struct token *ret_end)
{
    struct inlined frame = {.definition = d};
    uint32_t n_nodes = p->c->ast.n_nodes, node;
    for (unsigned i = 0; i < d->n_parameters; i++)
        frame.nodes[i] = UINT32_MAX;
    p->frame = &frame;
    int r = parser_binary(p, 0, &node);
    p->frame = NULL;
    p->c->ast.n_nodes = n_nodes;
    *ret_end = p->token;
    return r;
}

int definitions_parse(struct parser *p)
{
    struct definition *d = arena_take(&p->c->arena, sizeof(*d));
    struct token end;
    if (d == NULL)
        return compiler_no_memory(p->c);
    *d = (struct definition){.next = p->definitions, .name = p->token};
    int r = bindings_check_name(p, &d->name);
    if (r == 0)
        r = parse_parameters(p, d);
    d->body = p->token;
    p->defined = &d->name;
    if (r == 0)
        r = read_body(p, d, &end);
    p->defined = NULL;
    if (r == 0 && p->token.kind == TOKEN_END)
        return parser_unexpected(p, "';' and the result");
    if (r == 0 && p->token.kind != TOKEN_SEMICOLON)
        return parser_unexpected_behind(p);
    if (r)
        return r;
    d->n_body_chars = end.start - d->body.start;
    p->definitions = d;
    return parser_advance(p);
}

/* ---- calls ---- */

static int bad_count(struct parser *p, const struct token *name, const struct definition *d,
                     unsigned n)
{
    int r =
        compiler_fail(p->c, GAD_BAD_ARITY, name->start + 1, "%.*s takes %u argument%s, %u given",
                      parser_shown_chars(name), parser_text(p, name), d->n_parameters,
                      d->n_parameters == 1 ? "" : "s", n);
    error_expected(p->c->error, "%u argument%s", d->n_parameters, d->n_parameters == 1 ? "" : "s");
    error_found(p->c->error, "%u", n);
    return r;
}

/* Of a name that is being defined; 0: it is another. */
int definitions_check_recursion(struct parser *p, const struct token *name)
{
    if (p->defined == NULL || !is_same(p, p->defined, name))
        return 0;
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1, "'%.*s' calls itself",
                          parser_shown_chars(name), parser_text(p, name));
    error_expected(p->c->error, "functions that are defined before");
    error_found(p->c->error, "'%.*s'", parser_shown_chars(name), parser_text(p, name));
    return r;
}

/* Room in the AST for what the body may become. */
static int make_room(struct parser *p, const struct token *name, const struct definition *d)
{
    struct ast *ast = &p->c->ast;
    p->c->n_read_chars += d->n_body_chars + d->n_parameters + 1;
    if (p->c->n_read_chars > MAX_READ_CHARS) {
        int r = compiler_fail(p->c, GAD_LIMIT_EXCEEDED, name->start + 1,
                              "functions that call each other make the expression too long");
        error_expected(p->c->error, "at most %d characters of all calls", MAX_READ_CHARS);
        return r;
    }
    size_t wanted = (size_t)p->c->n_chars + 1 + p->c->n_read_chars;
    if (wanted <= ast->capacity)
        return 0;
    struct ast_node *nodes = arena_take(&p->c->arena, 2 * wanted * sizeof(*nodes));
    if (nodes == NULL)
        return compiler_no_memory(p->c);
    ast->capacity = 2 * wanted;
    ast->nodes = memcpy(nodes, ast->nodes, ast->n_nodes * sizeof(*nodes));
    return 0;
}

static int parse_arguments(struct parser *p, const struct token *name, const struct definition *d,
                           struct inlined *frame)
{
    uint32_t open_column = parser_column(p), node;
    unsigned n = 0;
    int r = parser_advance(p);
    while (r == 0 && p->token.kind != TOKEN_CLOSE) {
        r = parser_binary(p, 0, n < d->n_parameters ? &frame->nodes[n] : &node);
        n++;
        if (r != 0 || p->token.kind != TOKEN_COMMA)
            break;
        r = parser_advance(p);
    }
    if (r == 0)
        r = parser_expect_close(p, open_column);
    return r == 0 && n != d->n_parameters ? bad_count(p, name, d, n) : r;
}

int definitions_call(struct parser *p, const struct token *name, const struct definition *d,
                     uint32_t *ret)
{
    struct inlined frame = {.definition = d};
    const struct inlined *outer = p->frame;
    const struct iteration *iteration = p->iteration;
    int r = parse_arguments(p, name, d, &frame);
    if (r == 0 && p->defined != NULL) { /* it was read, and this is not kept */
        parser_append(p, AST_VALUE, name->start + 1, ret)->value =
            (struct value){.kind = VALUE_FLOAT};
        return 0;
    }
    if (r == 0)
        r = make_room(p, name, d);
    if (r)
        return r;
    struct token behind = p->token;
    p->frame = &frame;
    p->iteration = NULL;
    p->token = d->body;
    r = parser_binary(p, 0, ret);
    p->frame = outer;
    p->iteration = iteration;
    if (r)
        return r;
    p->token = behind;
    return 0;
}
