/* Calls: f(x, y), the lists of select(), casts, and [0] or [1] behind two results.
 *
 *     round(x, decimals=2)                     see arguments.c
 *     select([x < 0, x > 9], [-x, 9], default=x)
 *     divmod(a, b)[0]
 *     float32(x)   astype(x, float32)
 *
 * A call's node has as many children as the operation has arguments and keywords. Their numbers are
 * checked here, so that later stages can rely on them. select()'s children are its conditions, its
 * choices, and the default; near()'s offsets stand behind its keywords.
 *
 * Called by names.c.
 */
#include "kernels/expr/text/parser.h"

#include <string.h>

/* ---- select ---- */

static int no_list(struct parser *p)
{
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "select takes two lists, as in select([a < 0, a > 9], [-a, 9])");
    error_expected(p->c->error, "a list");
    parser_found(p);
    return r;
}

/* `condlist=` in front of a list, if that is its name. */
static int skip_list_name(struct parser *p, const char *name)
{
    enum token_kind next;
    int r = parser_peek_behind_name(p, &next);
    if (r != 0 || next != TOKEN_ASSIGN)
        return r;
    if (!parser_is_word(p, &p->token, name))
        return no_list(p);
    r = parser_advance(p);
    return r ? r : parser_advance(p);
}

/* From the "[", or the list's name, to behind the "]". */
static int parse_list(struct parser *p, const char *name, uint32_t *children, unsigned *ret_n)
{
    unsigned n = 0;
    *ret_n = 0;
    int r = skip_list_name(p, name);
    if (r)
        return r;
    uint32_t open_column = parser_column(p);
    if (p->token.kind != TOKEN_LIST_OPEN)
        return no_list(p);
    r = parser_advance(p);
    while (r == 0 && p->token.kind != TOKEN_LIST_CLOSE) {
        uint32_t column = parser_column(p), child;
        r = parser_binary(p, 0, &child);
        if (r)
            return r;
        if (n == EXPR_MAX_SELECT) {
            r = compiler_fail(p->c, GAD_LIMIT_EXCEEDED, column,
                              "select with more than %d conditions", EXPR_MAX_SELECT);
            error_expected(p->c->error, "at most %d", EXPR_MAX_SELECT);
            return r;
        }
        children[n++] = child;
        if (p->token.kind != TOKEN_COMMA)
            break;
        r = parser_advance(p);
    }
    *ret_n = n;
    if (r == 0 && (p->token.kind == TOKEN_END || p->token.kind == TOKEN_SEMICOLON))
        return compiler_fail(p->c, GAD_BAD_EXPRESSION, open_column, "this bracket is not closed");
    if (r == 0 && p->token.kind != TOKEN_LIST_CLOSE)
        return parser_unexpected(p, "']'");
    return r == 0 ? parser_advance(p) : r;
}

static int check_lists(struct parser *p, const struct call *call, unsigned n_conditions,
                       unsigned n_choices)
{
    if (n_conditions == n_choices && n_conditions > 0)
        return 0;
    int r = compiler_fail(
        p->c, GAD_BAD_ARITY, call->name->start + 1,
        "select has %u condition%s and %u choice%s; there must be one or more of each, as "
        "many of both",
        n_conditions, n_conditions == 1 ? "" : "s", n_choices, n_choices == 1 ? "" : "s");
    error_expected(p->c->error, "as many choices as conditions");
    error_found(p->c->error, "%u and %u", n_conditions, n_choices);
    return r;
}

/* All that may follow the lists. */
static int parse_default(struct parser *p, struct call *call)
{
    call->n_positional = call->n_required;
    call->is_given[0] = call->is_given[1] = true;
    if (p->token.kind != TOKEN_COMMA)
        return parser_expect_close(p, call->open_column);
    int r = parser_advance(p);
    if (r == 0)
        r = arguments_parse(p, call);
    return r ? r : arguments_check(p, call->name, OP_SELECT, 2, call->n_positional);
}

static int parse_select(struct parser *p, const struct token *name, uint32_t *ret)
{
    struct call call;
    unsigned n_conditions, n_choices;
    uint32_t *children = arena_take(&p->c->arena, (2 * EXPR_MAX_SELECT + 1) * sizeof(*children));
    if (children == NULL)
        return compiler_no_memory(p->c);
    arguments_init(&call, p, name, OP_SELECT);
    int r = parser_advance(p);
    if (r == 0 && p->token.kind == TOKEN_CLOSE)
        return arguments_check(p, name, OP_SELECT, 2, 0);
    if (r == 0)
        r = parse_list(p, "condlist", children, &n_conditions);
    if (r == 0 && p->token.kind == TOKEN_CLOSE)
        return arguments_check(p, name, OP_SELECT, 2, 1);
    if (r == 0)
        r = p->token.kind == TOKEN_COMMA ? parser_advance(p)
                                         : parser_unexpected(p, "a comma, then the choices,");
    if (r == 0)
        r = parse_list(p, "choicelist", children + n_conditions, &n_choices);
    if (r == 0)
        r = parse_default(p, &call);
    if (r == 0)
        r = check_lists(p, &call, n_conditions, n_choices);
    if (r)
        return r;
    struct ast_node *n = parser_append(p, AST_OP, name->start + 1, ret);
    children[2 * n_conditions] = call.children[2];
    n->op = OP_SELECT;
    n->children = children;
    n->n_children = (uint8_t)(2 * n_conditions + 1);
    return 0;
}

/* ---- astype ---- */

/* astype(x, float32): the dtype's name is no expression. */
static int parse_astype(struct parser *p, const struct token *name, uint32_t *ret)
{
    uint32_t open_column = parser_column(p), child = 0;
    int r = parser_advance(p);
    if (r == 0 && p->token.kind == TOKEN_CLOSE)
        return arguments_check(p, name, OP_COUNT, 2, 0);
    if (r == 0)
        r = parser_binary(p, 0, &child);
    if (r)
        return r;
    if (p->token.kind == TOKEN_CLOSE)
        return arguments_check(p, name, OP_COUNT, 2, 1);
    if (p->token.kind != TOKEN_COMMA)
        return parser_expect_close(p, open_column);
    r = parser_advance(p);
    if (r)
        return r;
    enum dtype dtype;
    r = literals_parse_dtype(p, &dtype);
    if (r)
        return r;
    struct ast_node *n = parser_append(p, AST_OP, name->start + 1, ret);
    n->op = OP_CAST;
    n->dtype = (uint8_t)dtype;
    r = parser_set_children(p, *ret, &child, 1);
    return r ? r : parser_expect_close(p, open_column);
}

/* ---- complex numbers ---- */

static int parse_part(struct parser *p, const struct token *name, enum ast_part part, uint32_t *ret)
{
    uint32_t open_column = parser_column(p), children[2];
    unsigned wanted = part == PART_COMPLEX ? 2 : 1, given = 0;
    int r = parser_advance(p);
    while (r == 0 && p->token.kind != TOKEN_CLOSE) {
        r = parser_binary(p, 0, &children[given < wanted ? given : wanted - 1]);
        given++;
        if (r != 0 || p->token.kind != TOKEN_COMMA)
            break;
        r = parser_advance(p);
    }
    if (r == 0)
        r = parser_expect_close(p, open_column);
    if (r == 0)
        r = arguments_check(p, name, OP_COUNT, wanted, given);
    if (r)
        return r;
    parser_append(p, AST_PART, name->start + 1, ret)->result = (uint8_t)part;
    return parser_set_children(p, *ret, children, wanted);
}

/* ---- two results ---- */

static int bad_result(struct parser *p, const struct token *name, enum op op, uint32_t column)
{
    int shown = parser_shown_chars(name);
    const char *text = parser_text(p, name), *args = op_info(op)->n_args == 1 ? "x" : "a, b";
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, column,
                          "%.*s gives two arrays, write %.*s(%s)[0] or %.*s(%s)[1]", shown, text,
                          shown, text, args, shown, text, args);
    error_expected(p->c->error, "[0] or [1]");
    if (column == name->start + 1)
        error_found(p->c->error, "no index");
    else
        parser_found(p);
    return r;
}

/* [0] or [1], behind the call of an operation that has two results. */
static int parse_result(struct parser *p, const struct token *name, enum op op, uint8_t *ret)
{
    if (p->token.kind != TOKEN_LIST_OPEN)
        return bad_result(p, name, op, name->start + 1);
    int r = parser_advance(p);
    if (r)
        return r;
    const struct value *v = &p->token.value;
    if (p->token.kind != TOKEN_NUMBER || v->kind != VALUE_INTEGER || v->integer >= 2)
        return bad_result(p, name, op, parser_column(p));
    *ret = (uint8_t)v->integer;
    r = parser_advance(p);
    if (r == 0 && p->token.kind != TOKEN_LIST_CLOSE)
        return bad_result(p, name, op, parser_column(p));
    return r ? r : parser_advance(p);
}

static int too_many_offsets(struct parser *p, const struct call *call)
{
    int r = compiler_fail(p->c, GAD_BAD_ARITY, call->name->start + 1,
                          "near takes an offset for each axis, and arrays have at most %d",
                          ARRAY_MAX_NDIM);
    error_expected(p->c->error, "at most %d offsets", ARRAY_MAX_NDIM);
    error_found(p->c->error, "%u", call->n_more);
    return r;
}

static bool is_random(enum op op)
{
    enum op_rule rule = op_info(op)->rule;
    return rule == OP_RULE_RANDOM || rule == OP_RULE_RANDOM_INTEGERS;
}

/* The same at every step: that is hardly meant. */
static int random_in_body(struct parser *p, const struct token *name)
{
    int shown = parser_shown_chars(name);
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                          "%.*s inside of iterate would give the same numbers at every step; give "
                          "them a name before it",
                          shown, parser_text(p, name));
    error_expected(p->c->error, "random numbers outside of iterate");
    error_found(p->c->error, "%.*s", shown, parser_text(p, name));
    return r;
}

int calls_parse(struct parser *p, const struct token *name, uint32_t *ret)
{
    const char *text = parser_text(p, name);
    enum dtype dtype = DTYPE_BOOL;
    enum ast_part part;
    enum op op = op_find(text, name->n_chars);
    if (op == OP_COUNT && names_find_part(p, name, &part))
        return parse_part(p, name, part, ret);
    if (op == OP_COUNT && parser_is_word(p, name, "astype"))
        return parse_astype(p, name, ret);
    if (op == OP_COUNT && parser_is_word(p, name, "repeat"))
        return states_parse(p, name, ret);
    if (op == OP_COUNT && dtype_from_name(text, name->n_chars, &dtype))
        op = OP_CAST;
    if (op == OP_COUNT)
        return names_unknown(p, name, true);
    if (op == OP_SELECT)
        return parse_select(p, name, ret);
    if (op == OP_ITERATE)
        return iterations_parse(p, name, ret);
    if (p->is_iterating && is_random(op))
        return random_in_body(p, name);

    struct call call;
    uint8_t result = 0;
    arguments_init(&call, p, name, op);
    int r = parser_advance(p);
    if (r == 0)
        r = arguments_parse(p, &call);
    if (r == 0)
        r = arguments_check(p, name, op, call.n_required,
                            call.n_positional + call.n_named_required - call.n_more);
    if (r == 0 && call.n_more > ARRAY_MAX_NDIM)
        r = too_many_offsets(p, &call);
    if (r == 0)
        r = arguments_require(p, &call);
    if (r == 0 && op_info(op)->n_results == 2)
        r = parse_result(p, name, op, &result);
    if (r)
        return r;
    struct ast_node *n = parser_append(p, AST_OP, name->start + 1, ret);
    n->op = (uint16_t)op;
    n->dtype = (uint8_t)dtype;
    n->result = result;
    uint32_t children[CALL_MAX_CHILDREN + ARRAY_MAX_NDIM];
    unsigned n_children = call.n_required + call.n_keywords;
    memcpy(children, call.children, n_children * sizeof(children[0]));
    memcpy(children + n_children, call.more, call.n_more * sizeof(children[0]));
    return parser_set_children(p, *ret, children, n_children + call.n_more);
}
