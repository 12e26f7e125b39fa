/* Arguments that are no expressions: tuples of numbers, dtypes, words, True and False.
 *
 *     sum(a, axis=(0, -1), keepdims=True, dtype=float32)     normal(size=[3, 4], seed=1)
 *     quantile(a, [0.1, 0.9], method=nearest)
 *
 * The parser's part reads them to nodes of their own: AST_TUPLE, whose children are expressions
 * that must be numbers when they are known, AST_DTYPE and AST_WORD. A single integer may stand for
 * a tuple of one. The rules' part gives their values, and refuses what is no such value with what
 * it is.
 *
 * Called by arguments.c and calls.c while parsing, and by the rules of operations that have them.
 */
#include "kernels/expr/text/keywords.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/parser.h"
#include "kernels/expr/text/scalar.h"

#include <stdio.h>
#include <string.h>

#define MOST_ELEMENTS 255 /* of a list in a kernel */

/* ---- parsing ---- */

int literals_parse_dtype(struct parser *p, enum dtype *ret)
{
    struct token word = p->token;
    bool has_prefix;
    if (word.kind != TOKEN_NAME)
        return parser_unexpected(p, "a dtype's name");
    int r = parser_advance(p);
    if (r == 0)
        r = names_skip_prefix(p, &word, &has_prefix);
    if (r)
        return r;
    return dtype_from_name(parser_text(p, &word), word.n_chars, ret)
               ? 0
               : names_unknown_dtype(p, &word);
}

int literals_parse_word(struct parser *p, uint32_t *ret)
{
    struct token t = p->token;
    uint32_t n_quotes = t.kind == TOKEN_STRING;
    if (t.kind != TOKEN_NAME && t.kind != TOKEN_STRING)
        return parser_unexpected(p, "a word");
    struct ast_node *n = parser_append(p, AST_WORD, t.start + 1, ret);
    n->word.start = t.start + n_quotes;
    n->word.n_chars = t.n_chars - 2 * n_quotes;
    return parser_advance(p);
}

static int too_many_elements(struct parser *p, unsigned most)
{
    int r = compiler_fail(p->c, GAD_LIMIT_EXCEEDED, parser_column(p), "more than %u numbers", most);
    error_expected(p->c->error, "at most %u", most);
    return r;
}

static int not_closed(struct parser *p, uint32_t open_column, enum token_kind end)
{
    bool is_bracket = end == TOKEN_LIST_CLOSE;
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, open_column, "this %s is not closed",
                          is_bracket ? "bracket" : "parenthesis");
    error_expected(p->c->error, "%s", is_bracket ? "']'" : "')'");
    parser_found(p);
    return r;
}

/* From behind the "(" or "[" to behind its end. has_comma: it is a tuple in any case. */
typedef int parse_fn(struct parser *p, uint32_t *ret);

static int parse_number(struct parser *p, uint32_t *ret)
{
    return parser_binary(p, 0, ret);
}

static int parse_elements(struct parser *p, uint32_t open_column, enum token_kind end,
                          parse_fn *parse, unsigned most, uint32_t *children, unsigned *ret_n,
                          bool *ret_has_comma)
{
    int r = 0;
    *ret_n = 0;
    *ret_has_comma = false;
    while (r == 0 && p->token.kind != end) {
        if (*ret_n == most)
            return too_many_elements(p, most);
        r = parse(p, &children[(*ret_n)++]);
        if (r != 0 || p->token.kind != TOKEN_COMMA)
            break;
        *ret_has_comma = true;
        r = parser_advance(p);
    }
    if (r == 0 && (p->token.kind == TOKEN_END || p->token.kind == TOKEN_SEMICOLON))
        return not_closed(p, open_column, end);
    if (r == 0 && p->token.kind != end)
        return parser_unexpected(p, end == TOKEN_CLOSE ? "')'" : "']'");
    return r == 0 ? parser_advance(p) : r;
}

static int parse_tuple(struct parser *p, parse_fn *parse, unsigned most, uint32_t *ret)
{
    uint32_t column = parser_column(p), children[MOST_ELEMENTS];
    enum token_kind start = (enum token_kind)p->token.kind;
    unsigned n;
    bool has_comma;
    if (start != TOKEN_OPEN && start != TOKEN_LIST_OPEN)
        return parser_binary(p, 0, ret);
    int r = parser_advance(p);
    if (r == 0)
        r = parse_elements(p, column, start == TOKEN_OPEN ? TOKEN_CLOSE : TOKEN_LIST_CLOSE, parse,
                           most, children, &n, &has_comma);
    if (r)
        return r;
    if (start == TOKEN_OPEN && n == 1 && !has_comma) {
        *ret = children[0];
        return 0;
    }
    parser_append(p, AST_TUPLE, column, ret);
    return parser_set_children(p, *ret, children, n);
}

int literals_parse_tuple(struct parser *p, uint32_t *ret)
{
    return parse_tuple(p, parse_number, ARRAY_MAX_NDIM, ret);
}

int literals_parse_tuples(struct parser *p, uint32_t *ret)
{
    return parse_tuple(p, literals_parse_tuple, ARRAY_MAX_NDIM, ret);
}

int literals_parse_kernel(struct parser *p, uint32_t *ret)
{
    if (p->depth == EXPR_MAX_DEPTH) {
        int r = compiler_fail(p->c, GAD_LIMIT_EXCEEDED, parser_column(p),
                              "the expression is nested too deeply");
        error_expected(p->c->error, "at most %d levels", EXPR_MAX_DEPTH);
        return r;
    }
    p->depth++;
    int r = parse_tuple(p, literals_parse_kernel, MOST_ELEMENTS, ret);
    p->depth--;
    return r;
}

/* ---- what was given ---- */

const struct ast_node *literals_find(const struct compiler *c, const struct ast_node *n,
                                     const char *keyword)
{
    unsigned at = keywords_find((enum op)n->op, keyword, strlen(keyword));
    at += op_info((enum op)n->op)->n_args;
    if (at >= n->n_children || n->children[at] == AST_ABSENT)
        return NULL;
    return &c->ast.nodes[n->children[at]];
}

static const char *kind_name(const struct ast_node *n)
{
    if (n->kind == AST_TUPLE)
        return "a tuple";
    return n->value.kind == VALUE_NODE ? "an array" : "another number";
}

static int no_integer(struct compiler *c, const struct ast_node *n, const char *keyword,
                      const char *wanted, const struct ast_node *found)
{
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, found->column,
                          "%s: '%s' must be %s that is known here", op_info((enum op)n->op)->name,
                          keyword, wanted);
    error_expected(c->error, "%s", wanted);
    error_found(c->error, "%s", kind_name(found));
    return r;
}

int literals_integers(struct compiler *c, const struct ast_node *n, const char *keyword,
                      __int128 *ret, unsigned *ret_n, bool *ret_is_tuple)
{
    static const char wanted[] = "an integer, or a tuple of integers,";
    const struct ast_node *given = literals_find(c, n, keyword), *element = given;
    *ret_is_tuple = given->kind == AST_TUPLE;
    *ret_n = *ret_is_tuple ? given->n_children : 1;
    for (unsigned i = 0; i < *ret_n; i++) {
        if (*ret_is_tuple)
            element = &c->ast.nodes[given->children[i]];
        if (element->kind == AST_TUPLE || element->value.kind != VALUE_INTEGER)
            return no_integer(c, n, keyword, wanted, element);
        ret[i] = element->value.integer;
    }
    return 0;
}

int literals_integer(struct compiler *c, const struct ast_node *n, const char *keyword,
                     __int128 *ret)
{
    const struct ast_node *given = literals_find(c, n, keyword);
    if (given->kind == AST_TUPLE || given->value.kind != VALUE_INTEGER)
        return no_integer(c, n, keyword, "an integer", given);
    *ret = given->value.integer;
    return 0;
}

int literals_number(struct compiler *c, const struct ast_node *n, const char *keyword, double *ret)
{
    const struct ast_node *given = literals_find(c, n, keyword);
    if (given->value.kind == VALUE_NODE)
        return no_integer(c, n, keyword, "a number", given);
    *ret = scalar_as_double(&given->value);
    return 0;
}

int literals_flag(struct compiler *c, const struct ast_node *n, const char *keyword, bool *ret)
{
    const struct ast_node *given = literals_find(c, n, keyword);
    if (given == NULL)
        return 0;
    if (given->value.kind != VALUE_BOOL && given->value.kind != VALUE_INTEGER)
        return no_integer(c, n, keyword, "True or False", given);
    *ret = given->value.integer != 0;
    return 0;
}

enum dtype literals_dtype(const struct compiler *c, const struct ast_node *n, enum dtype otherwise)
{
    const struct ast_node *given = literals_find(c, n, "dtype");
    return given != NULL ? (enum dtype)given->dtype : otherwise;
}

/* The nearest of them, or NULL. */
static const char *nearest_word(const char *text, size_t n_chars, const char *const *words,
                                unsigned n_words)
{
    const char *best = NULL;
    unsigned best_distance = 4;
    for (unsigned i = 0; i < n_words && n_chars <= OP_NAME_MAX_CHARS; i++) {
        unsigned distance = op_name_distance(text, n_chars, words[i], strlen(words[i]));
        if (distance < best_distance) {
            best_distance = distance;
            best = words[i];
        }
    }
    return best;
}

/* As many as there is room for in an error. */
static const char *list_words(const char *const *words, unsigned n_words, char ret[static 96])
{
    size_t at = 0;
    ret[0] = '\0';
    for (unsigned i = 0; i < n_words; i++) {
        bool has_room = at + strlen(words[i]) + sizeof(" ...") < 96;
        const char *space = i > 0 ? " " : "";
        at += (size_t)snprintf(ret + at, 96 - at, "%s%s", space, has_room ? words[i] : "...");
        if (!has_room)
            break;
    }
    return ret;
}

int literals_word(struct compiler *c, const struct ast_node *n, const char *keyword,
                  const char *const *words, unsigned n_words, unsigned *ret)
{
    const struct ast_node *given = literals_find(c, n, keyword);
    char list[96];
    if (given == NULL)
        return 0;
    const char *text = c->text + given->word.start;
    size_t n_chars = given->word.n_chars;
    for (unsigned i = 0; i < n_words; i++)
        if (strlen(words[i]) == n_chars && memcmp(words[i], text, n_chars) == 0) {
            *ret = i;
            return 0;
        }
    const char *near = nearest_word(text, n_chars, words, n_words);
    int shown = n_chars < 48 ? (int)n_chars : 48;
    int r = near != NULL ? compiler_fail(c, GAD_BAD_EXPRESSION, given->column,
                                         "%s: unknown %s '%.*s', did you mean '%s'?",
                                         op_info((enum op)n->op)->name, keyword, shown, text, near)
                         : compiler_fail(c, GAD_BAD_EXPRESSION, given->column,
                                         "%s: unknown %s '%.*s'; there are %s",
                                         op_info((enum op)n->op)->name, keyword, shown, text,
                                         list_words(words, n_words, list));
    error_expected(c->error, "%s", list_words(words, n_words, list));
    error_found(c->error, "'%.*s'", shown, text);
    return r;
}
