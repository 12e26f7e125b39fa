/* Tokens to an AST: Python's expression grammar, as far as arrays need it.
 *
 *     comparison  none of `a < b < c`: written (a < b) & (b < c)
 *     |  ^  &  << >>  + -  * @ / // %    left to right, each binding tighter than the one before
 *     -x +x ~x
 *     x ** y                             right to left, tighter than a sign on its left
 *     f(x, y)  f(x)[0]  (x)  name  name.T  (x).T  number
 *
 * before which names may be given to parts of it: `t = x*x; sqrt(t + 1)` (bindings.c), and
 * functions be defined: `f(x) = x*x; f(a) + f(b)` (definitions.c).
 *
 * Nodes are appended children first, so that later stages are loops, not recursions. The parser
 * itself recurses once per parenthesis, call, sign and power, and refuses more than EXPR_MAX_DEPTH
 * of them inside each other. What begins with a name is left to names.c, calls to calls.c.
 */
#include "kernels/expr/text/parser.h"

#include <string.h>

static int parse_unary(struct parser *p, uint32_t *ret);

int parser_advance(struct parser *p)
{
    return lexer_next(p->c, p->token.start + p->token.n_chars, &p->token);
}

uint32_t parser_column(const struct parser *p)
{
    return p->token.start + 1;
}

const char *parser_text(const struct parser *p, const struct token *t)
{
    return p->c->text + t->start;
}

bool parser_is_word(const struct parser *p, const struct token *t, const char *word)
{
    return t->kind == TOKEN_NAME && t->n_chars == strlen(word) &&
           memcmp(parser_text(p, t), word, t->n_chars) == 0;
}

/* For messages: names may be as long as the text. */
int parser_shown_chars(const struct token *t)
{
    return t->n_chars < 48 ? (int)t->n_chars : 48;
}

struct ast_node *parser_append(struct parser *p, enum ast_kind kind, uint32_t at_column,
                               uint32_t *ret)
{
    struct ast *ast = &p->c->ast;
    struct ast_node *n = &ast->nodes[ast->n_nodes];
    *n = (struct ast_node){.kind = kind, .column = at_column};
    *ret = ast->n_nodes++;
    return n;
}

void parser_found(struct parser *p)
{
    const struct token *t = &p->token;
    if (t->kind == TOKEN_END)
        error_found(p->c->error, "the end");
    else
        error_found(p->c->error, "'%.*s'", parser_shown_chars(t), parser_text(p, t));
}

/* What stands where an operand, an operator or the end should be. */
int parser_unexpected(struct parser *p, const char *wanted)
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
        if (parser_is_word(p, t, keywords[i].word)) {
            r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                              "'%s' is not supported, write %s", keywords[i].word,
                              keywords[i].instead);
            error_expected(p->c->error, "%s", wanted);
            error_found(p->c->error, "'%s'", keywords[i].word);
            return r;
        }
    if (t->kind == TOKEN_END)
        r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "the expression ends where %s should be", wanted);
    else if (t->kind == TOKEN_ASSIGN)
        r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "'=' is not an operator, write == to compare");
    else if (t->kind == TOKEN_STRING)
        r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "unexpected %.*s; there are no strings", parser_shown_chars(t),
                          parser_text(p, t));
    else if (t->kind == TOKEN_DOT)
        r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "attributes are not supported, but for .T and .mT");
    else if (t->kind == TOKEN_LIST_OPEN)
        r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p), "unexpected '['; %s",
                          strcmp(wanted, "an operand") == 0
                              ? "lists are only for select, q, axis, size and range"
                              : "only an argument takes an index, which is an argument too: "
                                "a[i], a[:, i], a[mask]; of what is computed pick before, as in "
                                "a[i] + 1, or make it an argument of its own, and select all "
                                "else before, as in NAME=FILE[:, 0]");
    else
        r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p), "%s expected, not '%.*s'",
                          wanted, parser_shown_chars(t), parser_text(p, t));
    error_expected(p->c->error, "%s", wanted);
    parser_found(p);
    return r;
}

int parser_expect_close(struct parser *p, uint32_t open_column)
{
    if (p->token.kind == TOKEN_CLOSE)
        return parser_advance(p);
    if (p->token.kind != TOKEN_END && p->token.kind != TOKEN_SEMICOLON)
        return parser_unexpected(p, "')'");
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, open_column, "this parenthesis is not closed");
    error_expected(p->c->error, "')'");
    parser_found(p);
    return r;
}

static int parse_primary(struct parser *p, uint32_t *ret)
{
    uint32_t at_column = parser_column(p);
    int r;
    switch (p->token.kind) {
    case TOKEN_NAME: return names_parse(p, ret);
    case TOKEN_NUMBER:
        parser_append(p, AST_VALUE, at_column, ret)->value = p->token.value;
        return parser_advance(p);
    case TOKEN_OPEN:
        r = parser_advance(p);
        if (r == 0)
            r = parser_binary(p, 0, ret);
        return r ? r : parser_expect_close(p, at_column);
    default: return parser_unexpected(p, "an operand");
    }
}

int parser_set_children(struct parser *p, uint32_t node, const uint32_t *children, unsigned n)
{
    struct ast_node *parent = &p->c->ast.nodes[node];
    uint32_t *kept = arena_take(&p->c->arena, n * sizeof(*children));
    if (kept == NULL)
        return compiler_no_memory(p->c);
    parent->children = memcpy(kept, children, n * sizeof(*children));
    parent->n_children = (uint8_t)n;
    return 0;
}

static int append_op(struct parser *p, enum op op, uint32_t at_column, uint32_t left,
                     uint32_t right, uint32_t *ret)
{
    struct ast_node *n = parser_append(p, AST_OP, at_column, ret);
    n->op = (uint16_t)op;
    n->is_operator = true;
    return parser_set_children(p, *ret, (uint32_t[]){left, right}, op_info(op)->n_args);
}

/* A primary, and what of it is transposed. */
static int parse_turned(struct parser *p, uint32_t *ret)
{
    int r = parse_primary(p, ret);
    while (r == 0 && p->token.kind == TOKEN_DOT) {
        uint32_t child = *ret, at_column = parser_column(p);
        r = parser_advance(p);
        bool is_matrix = parser_is_word(p, &p->token, "mT");
        if (r == 0 && !is_matrix && !parser_is_word(p, &p->token, "T"))
            r = names_refuse_method(p, "x");
        if (r)
            return r;
        parser_append(p, AST_TURNED, at_column, ret)->is_transposed = is_matrix;
        r = parser_set_children(p, *ret, &child, 1);
        if (r == 0)
            r = parser_advance(p);
    }
    return r;
}

/* That and, if there is one, its exponent. */
static int parse_power(struct parser *p, uint32_t *ret)
{
    uint32_t base, exponent;
    int r = parse_turned(p, &base);
    if (r)
        return r;
    if (p->token.kind != TOKEN_OPERATOR || p->token.op != OP_POWER) {
        *ret = base;
        return 0;
    }
    uint32_t at_column = parser_column(p);
    r = parser_advance(p);
    if (r == 0)
        r = parse_unary(p, &exponent);
    return r ? r : append_op(p, OP_POWER, at_column, base, exponent, ret);
}

static int parse_sign(struct parser *p, uint32_t *ret)
{
    uint32_t at_column = parser_column(p), operand;
    uint16_t op = p->token.op;
    int r = parser_advance(p);
    if (r == 0)
        r = parse_unary(p, &operand);
    if (r)
        return r;
    if (op != OP_ADD)
        return append_op(p, op == OP_INVERT ? OP_INVERT : OP_NEGATIVE, at_column, operand, 0, ret);
    parser_append(p, AST_PLUS, at_column, ret);
    return parser_set_children(p, *ret, &operand, 1);
}

static int parse_unary(struct parser *p, uint32_t *ret)
{
    if (p->depth == EXPR_MAX_DEPTH) {
        int r = compiler_fail(p->c, GAD_LIMIT_EXCEEDED, parser_column(p),
                              "the expression is nested too deeply");
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
    case OP_MATMUL:
    case OP_DIVIDE:
    case OP_FLOOR_DIVIDE:
    case OP_REMAINDER: return 7;
    default: return 0;
    }
}

/* Operators that bind at least as tightly as min_binding. */
int parser_binary(struct parser *p, int min_binding, uint32_t *ret)
{
    uint32_t left, right;
    int r = parse_unary(p, &left), bound;
    bool is_compared = false;
    while (r == 0 && (bound = binding(&p->token)) != 0 && bound >= min_binding) {
        struct token symbol = p->token;
        if (bound == 1 && is_compared)
            return compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                                 "chained comparisons are not supported, write (a < b) & (b < c)");
        is_compared = bound == 1;
        r = parser_advance(p);
        if (r == 0)
            r = parser_binary(p, bound + 1, &right);
        if (r == 0)
            r = append_op(p, (enum op)symbol.op, symbol.start + 1, left, right, &left);
    }
    if (r == 0)
        *ret = left;
    return r;
}

int parser_unexpected_behind(struct parser *p)
{
    if (p->token.kind == TOKEN_CLOSE)
        return compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                             "this parenthesis was never opened");
    return parser_unexpected(p, "an operator");
}

int parser_peek_behind_name(struct parser *p, enum token_kind *ret)
{
    struct token next;
    *ret = TOKEN_END;
    if (p->token.kind != TOKEN_NAME)
        return 0;
    int r = lexer_next(p->c, p->token.start + p->token.n_chars, &next);
    if (r == 0)
        *ret = (enum token_kind)next.kind;
    return r;
}

int parser_run(struct compiler *c)
{
    struct parser p = {.c = c};
    c->ast.n_nodes = 0;
    int r = parser_advance(&p);
    if (r)
        return r;
    if (p.token.kind == TOKEN_END)
        return compiler_fail(c, GAD_BAD_EXPRESSION, 1, "the expression is empty");
    return bindings_parse(&p);
}
