/* Names: arguments, constants, functions, casts; and the calls that begin with them.
 *
 * Names are resolved while parsing, since what a name means is part of the syntax. An argument wins
 * over everything of its name; `np.` and `numpy.` reach past it to the catalogue. Every call's
 * number of arguments is checked here, so that later stages can rely on it.
 *
 * Called by parser.c for every name that stands where an operand may.
 */
#include "kernels/expr/parser.h"

#include <math.h>
#include <string.h>

static int unknown_name(struct parser *p, const struct token *name, bool is_call)
{
    const char *text = parser_text(p, name);
    if (p->token.kind == TOKEN_ASSIGN)
        return fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                    "'%.*s=' is not supported: there are no named arguments, == compares",
                    parser_shown_chars(name), text);
    const char *near = suggest_name(p->c->request, text, name->n_chars, is_call);
    int r;
    if (near != NULL)
        r = fail(p->c, GAD_UNKNOWN_NAME, name->start + 1, "unknown name '%.*s', did you mean '%s'?",
                 parser_shown_chars(name), text, near);
    else
        r = fail(p->c, GAD_UNKNOWN_NAME, name->start + 1, "unknown %s '%.*s'",
                 is_call ? "function" : "name", parser_shown_chars(name), text);
    error_found(p->c->error, "'%.*s'", parser_shown_chars(name), text);
    if (near != NULL)
        error_expected(p->c->error, "'%s'", near);
    return r;
}

static bool find_arg(const struct parser *p, const struct token *name, uint16_t *ret)
{
    const struct job_request *request = p->c->request;
    const char *text = parser_text(p, name);
    if (name->n_chars >= ARRAY_NAME_SIZE)
        return false;
    for (unsigned i = 0; i < request->n_args; i++) {
        const char *candidate = request->args[i].name;
        if (candidate[0] == text[0] && memcmp(candidate, text, name->n_chars) == 0 &&
            candidate[name->n_chars] == '\0') {
            *ret = (uint16_t)i;
            return true;
        }
    }
    return false;
}

static bool find_constant(const struct parser *p, const struct token *name, struct value *ret)
{
    static const struct {
        const char *word;
        double number;
    } constants[] = {
        {"pi", M_PI}, {"e", M_E}, {"inf", INFINITY}, {"nan", NAN}, {"True", 1}, {"False", 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(constants); i++)
        if (parser_is_word(p, name, constants[i].word)) {
            bool is_bool = constants[i].word[0] == 'T' || constants[i].word[0] == 'F';
            *ret = (struct value){.kind = is_bool ? VALUE_BOOL : VALUE_FLOAT};
            if (is_bool)
                ret->integer = constants[i].number != 0;
            else
                ret->number = constants[i].number;
            return true;
        }
    return false;
}

/* `np.` or `numpy.`, if there is one; then the token is the name behind it. */
static int skip_prefix(struct parser *p, struct token *name, bool *ret_has_prefix)
{
    *ret_has_prefix = false;
    if (p->token.kind != TOKEN_DOT ||
        !(parser_is_word(p, name, "np") || parser_is_word(p, name, "numpy")))
        return 0;
    int r = parser_advance(p);
    if (r != 0)
        return r;
    if (p->token.kind != TOKEN_NAME)
        return parser_unexpected(p, "a name");
    *name = p->token;
    *ret_has_prefix = true;
    return parser_advance(p);
}

/* ---- calls ---- */

static int check_arity(struct parser *p, const struct token *name, unsigned wanted, unsigned given)
{
    if (wanted == given)
        return 0;
    int r =
        fail(p->c, GAD_BAD_ARITY, name->start + 1, "%.*s takes %u argument%s, %u given",
             parser_shown_chars(name), parser_text(p, name), wanted, wanted == 1 ? "" : "s", given);
    error_expected(p->c->error, "%u argument%s", wanted, wanted == 1 ? "" : "s");
    error_found(p->c->error, "%u", given);
    return r;
}

/* From behind the "(" to behind the ")". Only the first three arguments are kept. */
static int parse_arguments(struct parser *p, uint32_t open_column, uint32_t *children,
                           unsigned *ret_n)
{
    unsigned n = 0;
    int r = 0;
    while (r == 0 && p->token.kind != TOKEN_CLOSE) {
        uint32_t child;
        r = parser_binary(p, 0, &child);
        if (r != 0)
            return r;
        if (n < 3)
            children[n] = child;
        n++;
        if (p->token.kind != TOKEN_COMMA)
            break;
        r = parser_advance(p);
    }
    *ret_n = n;
    return r != 0 ? r : parser_expect_close(p, open_column);
}

/* astype(x, float32): the dtype's name is no expression. */
static int parse_astype(struct parser *p, const struct token *name, uint32_t *ret)
{
    uint32_t open_column = parser_column(p), child = 0;
    int r = parser_advance(p);
    if (r == 0 && p->token.kind == TOKEN_CLOSE)
        return check_arity(p, name, 2, 0);
    if (r == 0)
        r = parser_binary(p, 0, &child);
    if (r != 0)
        return r;
    if (p->token.kind == TOKEN_CLOSE)
        return check_arity(p, name, 2, 1);
    if (p->token.kind != TOKEN_COMMA)
        return parser_expect_close(p, open_column);
    r = parser_advance(p);
    if (r != 0)
        return r;
    struct token word = p->token;
    if (word.kind != TOKEN_NAME)
        return parser_unexpected(p, "a dtype's name");
    bool has_prefix;
    r = parser_advance(p);
    if (r == 0)
        r = skip_prefix(p, &word, &has_prefix);
    if (r != 0)
        return r;
    enum dtype dtype;
    if (!dtype_from_name(parser_text(p, &word), word.n_chars, &dtype))
        return unknown_name(p, &word, true);
    struct ast_node *n = parser_append(p, AST_OP, name->start + 1, ret);
    n->op = OP_CAST;
    n->dtype = (uint8_t)dtype;
    n->n_children = 1;
    n->children[0] = child;
    return parser_expect_close(p, open_column);
}

/* The token is the "(" behind a name. */
static int parse_call(struct parser *p, const struct token *name, uint32_t *ret)
{
    const char *text = parser_text(p, name);
    enum dtype dtype = DTYPE_BOOL;
    enum op op = op_find(text, name->n_chars);
    if (op == OP_COUNT && parser_is_word(p, name, "astype"))
        return parse_astype(p, name, ret);
    if (op == OP_COUNT && dtype_from_name(text, name->n_chars, &dtype))
        op = OP_CAST;
    if (op == OP_COUNT)
        return unknown_name(p, name, true);

    uint32_t children[3] = {0}, open_column = parser_column(p);
    unsigned n_children = 0;
    int r = parser_advance(p);
    if (r == 0)
        r = parse_arguments(p, open_column, children, &n_children);
    if (r == 0)
        r = check_arity(p, name, op_info(op)->n_args, n_children);
    if (r != 0)
        return r;
    struct ast_node *n = parser_append(p, AST_OP, name->start + 1, ret);
    n->op = (uint16_t)op;
    n->dtype = (uint8_t)dtype;
    n->n_children = (uint8_t)n_children;
    memcpy(n->children, children, sizeof(children));
    return 0;
}

static bool is_function(const struct parser *p, const struct token *name)
{
    enum dtype dtype;
    return op_find(parser_text(p, name), name->n_chars) != OP_COUNT ||
           dtype_from_name(parser_text(p, name), name->n_chars, &dtype);
}

static int called_argument(struct parser *p, const struct token *name)
{
    const char *text = parser_text(p, name);
    if (is_function(p, name))
        return fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                    "'%.*s' is an argument and cannot be called; np.%.*s is the function",
                    parser_shown_chars(name), text, parser_shown_chars(name), text);
    return fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                "'%.*s' is an argument and cannot be called", parser_shown_chars(name), text);
}

int names_parse(struct parser *p, uint32_t *ret)
{
    struct token name = p->token;
    bool has_prefix = false;
    uint16_t arg = 0;
    int r = parser_advance(p);
    if (r == 0)
        r = skip_prefix(p, &name, &has_prefix);
    if (r != 0)
        return r;
    bool is_arg = !has_prefix && find_arg(p, &name, &arg);
    const char *text = parser_text(p, &name);
    if (p->token.kind == TOKEN_OPEN) {
        if (is_arg)
            return called_argument(p, &name);
        if (!parser_is_word(p, &name, "not") && !parser_is_word(p, &name, "and") &&
            !parser_is_word(p, &name, "or"))
            return parse_call(p, &name, ret);
    }
    if (is_arg) {
        parser_append(p, AST_ARG, name.start + 1, ret)->arg = arg;
        return 0;
    }
    struct value value;
    if (find_constant(p, &name, &value)) {
        parser_append(p, AST_VALUE, name.start + 1, ret)->value = value;
        return 0;
    }
    if (is_function(p, &name))
        return fail(p->c, GAD_BAD_EXPRESSION, name.start + 1,
                    "'%.*s' is a function, write %.*s(...)", parser_shown_chars(&name), text,
                    parser_shown_chars(&name), text);
    if (parser_is_word(p, &name, "not") || parser_is_word(p, &name, "and") ||
        parser_is_word(p, &name, "or")) {
        p->token = name;
        return parser_unexpected(p, "an operand");
    }
    return unknown_name(p, &name, false);
}
