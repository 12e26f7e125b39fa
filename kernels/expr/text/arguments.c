/* The arguments of a call: by position, then by name.
 *
 *     round(x, 2)   round(x, decimals=2)   clip(x, None, 5)   clip(x, max=5)   quantile(x, q=0.5)
 *
 * What an operation must have comes by position, or by name where NumPy has one for it, each once.
 * What the catalogue's keywords name (keywords.c) may stand behind it or come by name, each once,
 * and is AST_ABSENT where it is not given, or is None where that is allowed. Too many or too few
 * are counted here and refused by arguments_check() and arguments_require(), when the whole call is
 * read and its parentheses are known to be right.
 *
 * Called by calls.c.
 */
#include "kernels/expr/text/keywords.h"
#include "kernels/expr/text/parser.h"

#include "proto/ops.h"

#include <stdio.h>
#include <string.h>

int arguments_check(struct parser *p, const struct token *name, enum op op, unsigned wanted,
                    unsigned given)
{
    unsigned n_keywords = op != OP_COUNT ? keywords_count_positional(op) : 0;
    const char *keywords =
        op != OP_COUNT && op_info(op)->keywords != NULL ? op_info(op)->keywords : "";
    const char *plural = wanted == 1 ? "" : "s", *then = keywords[0] != '\0' ? ", then " : "";
    if (wanted <= given && given <= wanted + n_keywords)
        return 0;
    int r = compiler_fail(p->c, GAD_BAD_ARITY, name->start + 1,
                          "%.*s takes %u argument%s%s%s; %u given", parser_shown_chars(name),
                          parser_text(p, name), wanted, plural, then, keywords, given);
    if (keywords[0] == '\0')
        r = compiler_fail(p->c, GAD_BAD_ARITY, name->start + 1,
                          "%.*s takes %u argument%s, %u given", parser_shown_chars(name),
                          parser_text(p, name), wanted, plural, given);
    error_expected(p->c->error, "%u argument%s%s%s", wanted, plural, then, keywords);
    error_found(p->c->error, "%u", given);
    return r;
}

int arguments_require(struct parser *p, const struct call *call)
{
    for (unsigned i = 0; i < call->n_keywords; i++) {
        struct keyword k = keywords_get(call->op, i);
        if (!k.is_required || call->is_given[call->n_required + i])
            continue;
        if (p->c->request->draws.has_seed && keywords_is(&k, "seed"))
            continue;
        int r =
            compiler_fail(p->c, GAD_BAD_ARITY, call->name->start + 1, "%s: '%.*s' must be given",
                          op_info(call->op)->name, (int)k.n_chars, k.name);
        error_expected(p->c->error, "%.*s=...", (int)k.n_chars, k.name);
        return r;
    }
    return 0;
}

/* ---- named arguments ---- */

static int unknown_keyword(struct parser *p, const struct call *call, const struct token *name)
{
    const char *text = parser_text(p, name), *function = op_info(call->op)->name;
    const char *keywords = op_info(call->op)->keywords;
    const char *arguments = op_arguments(call->op);
    int shown = parser_shown_chars(name), r;
    char known[160];
    if (keywords == NULL && arguments == NULL)
        return compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                             "'%.*s=' is not supported: %s has no named arguments, == compares",
                             shown, text, call->op == OP_CAST ? "a cast" : function);
    snprintf(known, sizeof(known), "%s%s%s", arguments != NULL ? arguments : "",
             keywords != NULL && arguments != NULL ? ", " : "", keywords != NULL ? keywords : "");
    struct keyword near = keywords_suggest(call->op, text, name->n_chars);
    if (near.n_chars > 0)
        r = compiler_fail(p->c, GAD_UNKNOWN_NAME, name->start + 1,
                          "%s has no argument '%.*s', did you mean '%.*s'?", function, shown, text,
                          (int)near.n_chars, near.name);
    else
        r = compiler_fail(p->c, GAD_UNKNOWN_NAME, name->start + 1,
                          "%s has no argument '%.*s'; there are %s", function, shown, text, known);
    error_expected(p->c->error, "%s", known);
    error_found(p->c->error, "'%.*s'", shown, text);
    return r;
}

static int given_twice(struct parser *p, const struct call *call, const char *name,
                       unsigned n_chars, uint32_t column)
{
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, column, "%s: '%.*s' is given twice",
                          op_info(call->op)->name, (int)n_chars, name);
    error_found(p->c->error, "'%.*s'", (int)n_chars, name);
    return r;
}

static int not_none(struct parser *p, const struct call *call, const struct keyword *k)
{
    int r =
        compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                      "%s: '%.*s' can only be None here; where results go is said with the outputs",
                      op_info(call->op)->name, (int)k->n_chars, k->name);
    error_expected(p->c->error, "None");
    parser_found(p);
    return r;
}

/* Axes have no names here, as they have where arrays carry labels: axis=time, axis='time'. */
static int no_axis(struct parser *p, const struct call *call, uint32_t column)
{
    char found[64] = "a name";
    if (p->token.kind == TOKEN_STRING)
        snprintf(found, sizeof(found), "%.*s", parser_shown_chars(&p->token),
                 parser_text(p, &p->token));
    else if (p->c->error != NULL)
        snprintf(found, sizeof(found), "%.63s", p->c->error->found);
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, column,
                          "%s: an axis is a number from 0 on, or from -1 at the end, not %s",
                          op_info(call->op)->name, found);
    error_expected(p->c->error, "an integer, or a tuple of integers");
    error_found(p->c->error, "%s", found);
    return r;
}

static int parse_numbers(struct parser *p, const struct call *call, const struct keyword *k,
                         uint32_t *ret)
{
    uint32_t column = parser_column(p);
    int r = literals_parse_tuple(p, ret);
    bool is_string = r == GAD_BAD_EXPRESSION && p->token.kind == TOKEN_STRING;
    bool is_word = r == GAD_UNKNOWN_NAME || is_string;
    return is_word && keywords_is(k, "axis") ? no_axis(p, call, column) : r;
}

static int parse_value(struct parser *p, const struct call *call, const struct keyword *k,
                       uint32_t *ret)
{
    uint32_t column = parser_column(p);
    enum dtype dtype;
    int r;
    switch (k->kind) {
    case KEYWORD_NONE: return not_none(p, call, k);
    case KEYWORD_TUPLE: return parse_numbers(p, call, k, ret);
    case KEYWORD_TUPLES: return literals_parse_tuples(p, ret);
    case KEYWORD_KERNEL: return literals_parse_kernel(p, ret);
    case KEYWORD_WORD: return literals_parse_word(p, ret);
    case KEYWORD_DTYPE:
        r = literals_parse_dtype(p, &dtype);
        if (r == 0)
            parser_append(p, AST_DTYPE, column, ret)->dtype = (uint8_t)dtype;
        return r;
    default: return parser_binary(p, 0, ret);
    }
}

/* The value of an optional argument; None is as if it were not there. */
static int parse_optional(struct parser *p, struct call *call, unsigned keyword, uint32_t *ret)
{
    struct token word = p->token;
    struct keyword k = keywords_get(call->op, keyword);
    uint16_t arg;
    if (!parser_is_word(p, &word, "None") || names_find_arg(p, &word, &arg))
        return parse_value(p, call, &k, ret);
    if (!k.allows_none) {
        int r =
            compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p), "%s: '%.*s' cannot be None",
                          op_info(call->op)->name, (int)k.n_chars, k.name);
        error_found(p->c->error, "None");
        return r;
    }
    *ret = AST_ABSENT;
    return parser_advance(p);
}

static int set_keyword(struct parser *p, struct call *call, unsigned keyword, uint32_t column)
{
    unsigned at = call->n_required + keyword;
    struct keyword k = keywords_get(call->op, keyword);
    if (call->is_given[at])
        return given_twice(p, call, k.name, k.n_chars, column);
    call->is_given[at] = true;
    return parse_optional(p, call, keyword, &call->children[at]);
}

/* ---- arguments ---- */

/* Its number among those that must be given; n_required where that is no name of one. */
static unsigned find_required(const struct parser *p, const struct call *call,
                              const struct token *name)
{
    const char *at = op_arguments(call->op), *text = parser_text(p, name);
    for (unsigned i = 0; at != NULL && i < call->n_required; i++) {
        size_t n_chars = strcspn(at, ",");
        if (n_chars == name->n_chars && memcmp(at, text, n_chars) == 0)
            return i;
        if (at[n_chars] == '\0')
            break;
        at += n_chars + strlen(", ");
    }
    return call->n_required;
}

/* An argument that must be given. Only q may be a list. */
static int set_required(struct parser *p, struct call *call, unsigned at)
{
    bool is_list =
        op_info(call->op)->rule == OP_RULE_QUANTILE && at == 1 && p->token.kind == TOKEN_LIST_OPEN;
    call->is_given[at] = true;
    return is_list ? literals_parse_tuple(p, &call->children[at])
                   : parser_binary(p, 0, &call->children[at]);
}

static int parse_named(struct parser *p, struct call *call)
{
    struct token name = p->token;
    unsigned keyword = keywords_find(call->op, parser_text(p, &name), name.n_chars);
    unsigned at = find_required(p, call, &name);
    if (keyword == call->n_keywords && at == call->n_required)
        return unknown_keyword(p, call, &name);
    call->has_named = true;
    int r = parser_advance(p); /* the name */
    if (r == 0)
        r = parser_advance(p); /* = */
    if (r != 0 || at == call->n_required)
        return r ? r : set_keyword(p, call, keyword, name.start + 1);
    if (call->is_given[at])
        return given_twice(p, call, parser_text(p, &name), name.n_chars, name.start + 1);
    call->n_named_required++;
    return set_required(p, call, at);
}

static int parse_positional(struct parser *p, struct call *call)
{
    uint32_t column = parser_column(p), child;
    unsigned at = call->n_positional++;
    if (call->has_named)
        return compiler_fail(p->c, GAD_BAD_EXPRESSION, column,
                             "an argument without a name behind one that has a name");
    if (at >= call->n_required && at < call->n_required + keywords_count_positional(call->op))
        return set_keyword(p, call, at - call->n_required, column);
    if (at < call->n_required)
        return set_required(p, call, at);
    int r = parser_binary(p, 0, &child);
    if (r == 0 && call->takes_more && call->n_more < ARRAY_MAX_NDIM)
        call->more[call->n_more] = child;
    call->n_more += call->takes_more;
    return r;
}

int arguments_parse(struct parser *p, struct call *call)
{
    int r = 0;
    while (r == 0 && p->token.kind != TOKEN_CLOSE) {
        enum token_kind next;
        r = parser_peek_behind_name(p, &next);
        if (r == 0)
            r = next == TOKEN_ASSIGN ? parse_named(p, call) : parse_positional(p, call);
        if (r != 0 || p->token.kind != TOKEN_COMMA)
            break;
        r = parser_advance(p);
    }
    return r ? r : parser_expect_close(p, call->open_column);
}

void arguments_init(struct call *call, const struct parser *p, const struct token *name, enum op op)
{
    *call = (struct call){.name = name, .op = op, .open_column = parser_column(p)};
    call->n_required = op_info(op)->n_args;
    call->n_keywords = keywords_count(op);
    call->takes_more = op == OP_NEAR;
    for (unsigned i = 0; i < CALL_MAX_CHILDREN; i++)
        call->children[i] = AST_ABSENT;
}
