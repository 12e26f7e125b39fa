/* Tokens to an AST: Python's expression grammar, as far as arrays need it.
 *
 *     comparison  none of `a < b < c`: written (a < b) & (b < c)
 *     |  ^  &  << >>  + -  * / // %      left to right, each binding tighter than the one before
 *     -x +x ~x
 *     x ** y                             right to left, tighter than a sign on its left
 *     f(x, y)  (x)  name  number
 *
 * Nodes are appended children first, so that later stages are loops, not recursions. The parser
 * itself recurses once per parenthesis, call, sign and power, and refuses more than EXPR_MAX_DEPTH
 * of them inside each other. Names are resolved here, since what a name means (an argument wins
 * over a function or a constant) is part of the syntax.
 */
#include "kernels/expr/internal.h"

#include <math.h>
#include <string.h>

struct parser {
    struct compiler *c;
    struct token token; /* not yet consumed */
    unsigned depth;
};

static int parse_binary(struct parser *p, int min_binding, uint32_t *ret);
static int parse_unary(struct parser *p, uint32_t *ret);

static int advance(struct parser *p)
{
    return lexer_next(p->c, p->token.start + p->token.n_chars, &p->token);
}

static uint32_t column(const struct parser *p)
{
    return p->token.start + 1;
}

static const char *token_text(const struct parser *p, const struct token *t)
{
    return p->c->text + t->start;
}

static bool is_word(const struct parser *p, const struct token *t, const char *word)
{
    return t->kind == TOKEN_NAME && t->n_chars == strlen(word) &&
           memcmp(token_text(p, t), word, t->n_chars) == 0;
}

/* For messages: names may be as long as the text. */
static int shown_chars(const struct token *t)
{
    return t->n_chars < 48 ? (int)t->n_chars : 48;
}

static struct ast_node *append(struct parser *p, enum ast_kind kind, uint32_t at_column,
                               uint32_t *ret)
{
    struct ast *ast = &p->c->ast;
    struct ast_node *n = &ast->nodes[ast->n_nodes];
    *n = (struct ast_node){.kind = kind, .column = at_column};
    *ret = ast->n_nodes++;
    return n;
}

/* What stands where an operand, an operator or the end should be. */
static int unexpected(struct parser *p, const char *wanted)
{
    static const struct {
        const char *word, *instead;
    } keywords[] = {
        {"and", "(a) & (b)"},
        {"or", "(a) | (b)"},
        {"not", "~(a)"},
        {"in", "=="},
        {"if", "where(cond, a, b)"},
        {"is", "=="},
        {"else", "where(cond, a, b)"},
    };
    const struct token *t = &p->token;
    int r;
    for (size_t i = 0; i < ARRAY_LENGTH(keywords); i++)
        if (is_word(p, t, keywords[i].word)) {
            r = fail(p->c, GAD_BAD_EXPRESSION, column(p), "'%s' is not supported, write %s",
                     keywords[i].word, keywords[i].instead);
            error_expected(p->c->error, "%s", wanted);
            error_found(p->c->error, "'%s'", keywords[i].word);
            return r;
        }
    if (t->kind == TOKEN_END)
        r = fail(p->c, GAD_BAD_EXPRESSION, column(p), "the expression ends where %s should be",
                 wanted);
    else if (t->kind == TOKEN_ASSIGN)
        r = fail(p->c, GAD_BAD_EXPRESSION, column(p),
                 "'=' is not an operator, write == to compare");
    else if (t->kind == TOKEN_DOT)
        r = fail(p->c, GAD_BAD_EXPRESSION, column(p), "attributes are not supported");
    else
        r = fail(p->c, GAD_BAD_EXPRESSION, column(p), "%s expected, not '%.*s'", wanted,
                 shown_chars(t), token_text(p, t));
    error_expected(p->c->error, "%s", wanted);
    if (t->kind == TOKEN_END)
        error_found(p->c->error, "the end");
    else
        error_found(p->c->error, "'%.*s'", shown_chars(t), token_text(p, t));
    return r;
}

static int unknown_name(struct parser *p, const struct token *name, bool is_call)
{
    const char *text = token_text(p, name);
    if (p->token.kind == TOKEN_ASSIGN)
        return fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                    "'%.*s=' is not supported: there are no named arguments, == compares",
                    shown_chars(name), text);
    const char *near = suggest_name(p->c->request, text, name->n_chars, is_call);
    int r;
    if (near != NULL)
        r = fail(p->c, GAD_UNKNOWN_NAME, name->start + 1, "unknown name '%.*s', did you mean '%s'?",
                 shown_chars(name), text, near);
    else
        r = fail(p->c, GAD_UNKNOWN_NAME, name->start + 1, "unknown %s '%.*s'",
                 is_call ? "function" : "name", shown_chars(name), text);
    error_found(p->c->error, "'%.*s'", shown_chars(name), text);
    if (near != NULL)
        error_expected(p->c->error, "'%s'", near);
    return r;
}

/* ---- names ---- */

static bool find_arg(const struct parser *p, const struct token *name, uint16_t *ret)
{
    const struct job_request *request = p->c->request;
    if (name->n_chars >= ARRAY_NAME_SIZE)
        return false;
    for (unsigned i = 0; i < request->n_args; i++)
        if (memcmp(request->args[i].name, token_text(p, name), name->n_chars) == 0 &&
            request->args[i].name[name->n_chars] == '\0') {
            *ret = (uint16_t)i;
            return true;
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
        if (is_word(p, name, constants[i].word)) {
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
    if (p->token.kind != TOKEN_DOT || !(is_word(p, name, "np") || is_word(p, name, "numpy")))
        return 0;
    int r = advance(p);
    if (r != 0)
        return r;
    if (p->token.kind != TOKEN_NAME)
        return unexpected(p, "a name");
    *name = p->token;
    *ret_has_prefix = true;
    return advance(p);
}

/* ---- calls ---- */

static int expect_close(struct parser *p, uint32_t open_column)
{
    if (p->token.kind == TOKEN_CLOSE)
        return advance(p);
    if (p->token.kind != TOKEN_END)
        return unexpected(p, "')'");
    int r = fail(p->c, GAD_BAD_EXPRESSION, open_column, "this parenthesis is not closed");
    error_expected(p->c->error, "')'");
    error_found(p->c->error, "the end");
    return r;
}

static int check_arity(struct parser *p, const struct token *name, unsigned wanted, unsigned given)
{
    if (wanted == given)
        return 0;
    int r = fail(p->c, GAD_BAD_ARITY, name->start + 1, "%.*s takes %u argument%s, %u given",
                 shown_chars(name), token_text(p, name), wanted, wanted == 1 ? "" : "s", given);
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
        r = parse_binary(p, 0, &child);
        if (r != 0)
            return r;
        if (n < 3)
            children[n] = child;
        n++;
        if (p->token.kind != TOKEN_COMMA)
            break;
        r = advance(p);
    }
    *ret_n = n;
    return r != 0 ? r : expect_close(p, open_column);
}

/* astype(x, float32): the dtype's name is no expression. */
static int parse_astype(struct parser *p, const struct token *name, uint32_t *ret)
{
    uint32_t open_column = column(p), child = 0;
    int r = advance(p);
    if (r == 0 && p->token.kind == TOKEN_CLOSE)
        return check_arity(p, name, 2, 0);
    if (r == 0)
        r = parse_binary(p, 0, &child);
    if (r != 0)
        return r;
    if (p->token.kind == TOKEN_CLOSE)
        return check_arity(p, name, 2, 1);
    if (p->token.kind != TOKEN_COMMA)
        return expect_close(p, open_column);
    r = advance(p);
    if (r != 0)
        return r;
    struct token word = p->token;
    if (word.kind != TOKEN_NAME)
        return unexpected(p, "a dtype's name");
    bool has_prefix;
    r = advance(p);
    if (r == 0)
        r = skip_prefix(p, &word, &has_prefix);
    if (r != 0)
        return r;
    enum dtype dtype;
    if (!dtype_from_name(token_text(p, &word), word.n_chars, &dtype))
        return unknown_name(p, &word, true);
    struct ast_node *n = append(p, AST_OP, name->start + 1, ret);
    n->op = OP_CAST;
    n->dtype = (uint8_t)dtype;
    n->n_children = 1;
    n->children[0] = child;
    return expect_close(p, open_column);
}

/* The token is the "(" behind a name. */
static int parse_call(struct parser *p, const struct token *name, uint32_t *ret)
{
    const char *text = token_text(p, name);
    enum dtype dtype = DTYPE_BOOL;
    enum op op = op_find(text, name->n_chars);
    if (op == OP_COUNT && is_word(p, name, "astype"))
        return parse_astype(p, name, ret);
    if (op == OP_COUNT && dtype_from_name(text, name->n_chars, &dtype))
        op = OP_CAST;
    if (op == OP_COUNT)
        return unknown_name(p, name, true);

    uint32_t children[3] = {0}, open_column = column(p);
    unsigned n_children = 0;
    int r = advance(p);
    if (r == 0)
        r = parse_arguments(p, open_column, children, &n_children);
    if (r == 0)
        r = check_arity(p, name, op_info(op)->n_args, n_children);
    if (r != 0)
        return r;
    struct ast_node *n = append(p, AST_OP, name->start + 1, ret);
    n->op = (uint16_t)op;
    n->dtype = (uint8_t)dtype;
    n->n_children = (uint8_t)n_children;
    memcpy(n->children, children, sizeof(children));
    return 0;
}

static int parse_name(struct parser *p, uint32_t *ret)
{
    struct token name = p->token;
    bool has_prefix = false;
    uint16_t arg = 0;
    int r = advance(p);
    if (r == 0)
        r = skip_prefix(p, &name, &has_prefix);
    if (r != 0)
        return r;
    bool is_arg = !has_prefix && find_arg(p, &name, &arg);
    const char *text = token_text(p, &name);
    if (p->token.kind == TOKEN_OPEN) {
        if (is_arg)
            return fail(p->c, GAD_BAD_EXPRESSION, name.start + 1,
                        "'%.*s' is an argument and cannot be called; np.%.*s is the function",
                        shown_chars(&name), text, shown_chars(&name), text);
        if (!is_word(p, &name, "not") && !is_word(p, &name, "and") && !is_word(p, &name, "or"))
            return parse_call(p, &name, ret);
    }
    if (is_arg) {
        append(p, AST_ARG, name.start + 1, ret)->arg = arg;
        return 0;
    }
    struct value value;
    if (find_constant(p, &name, &value)) {
        append(p, AST_VALUE, name.start + 1, ret)->value = value;
        return 0;
    }
    enum dtype dtype;
    if (op_find(text, name.n_chars) != OP_COUNT || dtype_from_name(text, name.n_chars, &dtype))
        return fail(p->c, GAD_BAD_EXPRESSION, name.start + 1,
                    "'%.*s' is a function, write %.*s(...)", shown_chars(&name), text,
                    shown_chars(&name), text);
    if (is_word(p, &name, "not") || is_word(p, &name, "and") || is_word(p, &name, "or")) {
        p->token = name;
        return unexpected(p, "an operand");
    }
    return unknown_name(p, &name, false);
}

/* ---- operators ---- */

static int parse_primary(struct parser *p, uint32_t *ret)
{
    uint32_t at_column = column(p);
    int r;
    switch (p->token.kind) {
    case TOKEN_NAME: return parse_name(p, ret);
    case TOKEN_NUMBER:
        append(p, AST_VALUE, at_column, ret)->value = p->token.value;
        return advance(p);
    case TOKEN_OPEN:
        r = advance(p);
        if (r == 0)
            r = parse_binary(p, 0, ret);
        return r != 0 ? r : expect_close(p, at_column);
    default: return unexpected(p, "an operand");
    }
}

static int append_op(struct parser *p, enum op op, uint32_t at_column, uint32_t left,
                     uint32_t right, uint32_t *ret)
{
    struct ast_node *n = append(p, AST_OP, at_column, ret);
    n->op = (uint16_t)op;
    n->is_operator = true;
    n->n_children = (uint8_t)op_info(op)->n_args;
    n->children[0] = left;
    n->children[1] = right;
    return 0;
}

/* A primary and, if there is one, its exponent. */
static int parse_power(struct parser *p, uint32_t *ret)
{
    uint32_t base, exponent;
    int r = parse_primary(p, &base);
    if (r != 0)
        return r;
    if (p->token.kind != TOKEN_OPERATOR || p->token.op != OP_POWER) {
        *ret = base;
        return 0;
    }
    uint32_t at_column = column(p);
    r = advance(p);
    if (r == 0)
        r = parse_unary(p, &exponent);
    return r != 0 ? r : append_op(p, OP_POWER, at_column, base, exponent, ret);
}

static int parse_sign(struct parser *p, uint32_t *ret)
{
    uint32_t at_column = column(p), operand;
    uint16_t op = p->token.op;
    int r = advance(p);
    if (r == 0)
        r = parse_unary(p, &operand);
    if (r != 0)
        return r;
    if (op != OP_ADD)
        return append_op(p, op == OP_INVERT ? OP_INVERT : OP_NEGATIVE, at_column, operand, 0, ret);
    struct ast_node *n = append(p, AST_PLUS, at_column, ret);
    n->n_children = 1;
    n->children[0] = operand;
    return 0;
}

static int parse_unary(struct parser *p, uint32_t *ret)
{
    if (p->depth == EXPR_MAX_DEPTH) {
        int r = fail(p->c, GAD_LIMIT_EXCEEDED, column(p), "the expression is nested too deeply");
        error_expected(p->c->error, "at most %d levels", EXPR_MAX_DEPTH);
        return r;
    }
    p->depth++;
    bool is_sign =
        p->token.kind == TOKEN_OPERATOR &&
        (p->token.op == OP_SUBTRACT || p->token.op == OP_ADD || p->token.op == OP_INVERT);
    int r = is_sign ? parse_sign(p, ret) : parse_power(p, ret);
    p->depth--;
    return r;
}

/* 0 for what is no binary operator. */
static int binding(const struct token *t)
{
    if (t->kind != TOKEN_OPERATOR)
        return 0;
    switch (t->op) {
    case OP_EQUAL:
    case OP_NOT_EQUAL:
    case OP_LESS:
    case OP_LESS_EQUAL:
    case OP_GREATER:
    case OP_GREATER_EQUAL: return 1;
    case OP_BITWISE_OR: return 2;
    case OP_BITWISE_XOR: return 3;
    case OP_BITWISE_AND: return 4;
    case OP_LEFT_SHIFT:
    case OP_RIGHT_SHIFT: return 5;
    case OP_ADD:
    case OP_SUBTRACT: return 6;
    case OP_MULTIPLY:
    case OP_DIVIDE:
    case OP_FLOOR_DIVIDE:
    case OP_REMAINDER: return 7;
    default: return 0;
    }
}

/* Operators that bind at least as tightly as min_binding. */
static int parse_binary(struct parser *p, int min_binding, uint32_t *ret)
{
    uint32_t left, right;
    int r = parse_unary(p, &left), bound;
    bool is_compared = false;
    while (r == 0 && (bound = binding(&p->token)) != 0 && bound >= min_binding) {
        struct token symbol = p->token;
        if (bound == 1 && is_compared)
            return fail(p->c, GAD_BAD_EXPRESSION, column(p),
                        "chained comparisons are not supported, write (a < b) & (b < c)");
        is_compared = bound == 1;
        r = advance(p);
        if (r == 0)
            r = parse_binary(p, bound + 1, &right);
        if (r == 0)
            r = append_op(p, (enum op)symbol.op, symbol.start + 1, left, right, &left);
    }
    if (r == 0)
        *ret = left;
    return r;
}

int parser_run(struct compiler *c)
{
    struct parser p = {.c = c};
    uint32_t root;
    c->ast.n_nodes = 0;
    int r = advance(&p);
    if (r != 0)
        return r;
    if (p.token.kind == TOKEN_END)
        return fail(c, GAD_BAD_EXPRESSION, 1, "the expression is empty");
    r = parse_binary(&p, 0, &root);
    if (r != 0)
        return r;
    if (p.token.kind == TOKEN_END)
        return 0;
    if (p.token.kind == TOKEN_CLOSE)
        return fail(c, GAD_BAD_EXPRESSION, column(&p), "this parenthesis was never opened");
    return unexpected(&p, "an operator");
}
