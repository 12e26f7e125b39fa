/* repeat(): steps of time.
 *
 *     repeat(8, u = u + k*lap(u), v = v + u)[1]
 *
 * The number of steps, then names with what a step makes of them: each is an array of its own, a
 * state, which at first is what the name means outside. In the steps the names mean what the step
 * before has made, all at once: so they are known before the first of these is read. Behind it may
 * stand which of the arrays is meant, from 0; the first one, if nothing does.
 *
 * The states' nodes (AST_STEPPED) come before all steps, a use is a node of its own as that of any
 * name. A function that a step calls is a text of its own, in which the names are not known.
 *
 * The names of iterate()'s states are looked for here, too (iterations.c).
 *
 * Called by calls.c; by names.c for the names.
 */
#include "kernels/expr/text/parser.h"

#include <string.h>

struct states {
    const struct inlined *frame; /* of the text that the steps stand in */
    struct stated stated;
    uint32_t nodes[PROGRAM_MAX_STATES];
};

/* ---- names ---- */

unsigned stated_index(const struct parser *p, const struct stated *stated, const struct token *name)
{
    unsigned i = 0;
    while (i < stated->n &&
           (stated->names[i].n_chars != name->n_chars ||
            memcmp(parser_text(p, &stated->names[i]), parser_text(p, name), name->n_chars) != 0))
        i++;
    return i;
}

int stated_refuse(struct parser *p, const struct stated *stated, const struct token *name,
                  const char *why, const char *expected)
{
    int shown = parser_shown_chars(name);
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1, "%s: '%.*s' %s", stated->call,
                          shown, parser_text(p, name), why);
    error_expected(p->c->error, "%s", expected);
    error_found(p->c->error, "'%.*s'", shown, parser_text(p, name));
    return r;
}

static int add_name(struct parser *p, struct stated *stated, const struct token *name)
{
    if (strcmp(stated->call, "iterate") == 0 && parser_is_word(p, name, "until"))
        return 0;
    if (stated_index(p, stated, name) < stated->n)
        return stated_refuse(p, stated, name, "is there twice", "names that differ");
    if (stated->n == EXPR_MAX_STATES) {
        int r = compiler_fail(p->c, GAD_LIMIT_EXCEEDED, name->start + 1, "%s of more than %d names",
                              stated->call, EXPR_MAX_STATES);
        error_expected(p->c->error, "at most %d", EXPR_MAX_STATES);
        return r;
    }
    stated->names[stated->n++] = *name;
    return 0;
}

/* What stands in front of a "=" behind a comma. */
int stated_find(struct parser *p, struct stated *stated)
{
    struct token t = p->token, before = {.kind = TOKEN_END}, name = {.kind = TOKEN_END};
    unsigned depth = 0;
    int r = 0;
    while (r == 0 && t.kind != TOKEN_END && t.kind != TOKEN_SEMICOLON) {
        if (t.kind == TOKEN_ASSIGN && depth == 0 && name.kind == TOKEN_NAME)
            r = add_name(p, stated, &name);
        name.kind = before.kind == TOKEN_COMMA && depth == 0 ? t.kind : TOKEN_END;
        name.start = t.start;
        name.n_chars = t.n_chars;
        depth += t.kind == TOKEN_OPEN || t.kind == TOKEN_LIST_OPEN;
        if (t.kind == TOKEN_CLOSE || t.kind == TOKEN_LIST_CLOSE) {
            if (depth == 0)
                return r;
            depth--;
        }
        before = t;
        if (r == 0)
            r = lexer_next(p->c, t.start + t.n_chars, &t);
    }
    return r;
}

bool states_find(const struct parser *p, const struct token *name, uint32_t *ret_node)
{
    const struct states *s = p->states;
    if (s == NULL || s->frame != p->frame)
        return false;
    unsigned i = stated_index(p, &s->stated, name);
    if (i < s->stated.n)
        *ret_node = s->nodes[i];
    return i < s->stated.n;
}

/* ---- repeat ---- */

static int no_step(struct parser *p)
{
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "repeat takes how often, then what a step makes of each array, as in "
                          "repeat(8, u = u + v, v = v - u)");
    error_expected(p->c->error, "NAME = EXPRESSION");
    parser_found(p);
    return r;
}

/* What a name means outside of the repeat. */
static int parse_initial(struct parser *p, const struct stated *stated, const struct token *name,
                         uint32_t *ret)
{
    uint32_t bound = 0;
    uint16_t arg;
    bool is_parameter = definitions_find_parameter(p, name, &bound);
    if (is_parameter && bound == UINT32_MAX) { /* while the function is defined */
        parser_append(p, AST_VALUE, name->start + 1, ret)->value =
            (struct value){.kind = VALUE_FLOAT};
        return 0;
    }
    if (!is_parameter && names_find_arg(p, name, &arg)) {
        parser_append(p, AST_ARG, name->start + 1, ret)->arg = arg;
        return 0;
    }
    if (!is_parameter && !bindings_find(p, name, &bound))
        return stated_refuse(p, stated, name, "has no value to begin with",
                             "an argument, or a name that is bound before: u = 0.0; repeat(...)");
    parser_append(p, AST_BOUND, name->start + 1, ret);
    return parser_set_children(p, *ret, &bound, 1);
}

/* All of them, before the first step. */
static int append_states(struct parser *p, struct states *s, struct repeat *repeat)
{
    uint32_t initial[PROGRAM_MAX_STATES];
    for (unsigned i = 0; i < s->stated.n; i++) {
        int r = parse_initial(p, &s->stated, &s->stated.names[i], &initial[i]);
        if (r)
            return r;
    }
    repeat->first = p->c->ast.n_nodes;
    for (unsigned i = 0; i < s->stated.n; i++) {
        struct ast_node *n =
            parser_append(p, AST_STEPPED, s->stated.names[i].start + 1, &s->nodes[i]);
        n->repeat = repeat;
        n->result = (uint8_t)i;
        int r = parser_set_children(p, s->nodes[i], &initial[i], 1);
        if (r)
            return r;
    }
    return 0;
}

static int parse_steps(struct parser *p, struct states *s, uint32_t *ret_steps)
{
    for (unsigned i = 0; i < s->stated.n; i++) {
        if (p->token.kind != TOKEN_NAME || stated_index(p, &s->stated, &p->token) != i)
            return no_step(p);
        int r = parser_advance(p); /* the name */
        if (r == 0)
            r = parser_advance(p); /* = */
        if (r == 0)
            r = parser_binary(p, 0, &ret_steps[i]);
        if (r == 0 && i + 1 < s->stated.n && p->token.kind != TOKEN_COMMA)
            return parser_unexpected(p, "a comma");
        if (r == 0 && p->token.kind == TOKEN_COMMA)
            r = parser_advance(p);
        if (r)
            return r;
    }
    return s->stated.n == 0 || p->token.kind == TOKEN_NAME ? no_step(p) : 0;
}

static int bad_index(struct parser *p, unsigned n_states)
{
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "repeat has %u array%s: behind it may stand [0] to [%u]", n_states,
                          n_states == 1 ? "" : "s", n_states - 1);
    error_expected(p->c->error, "0 to %u", n_states - 1);
    parser_found(p);
    return r;
}

static int parse_index(struct parser *p, unsigned n_states, uint8_t *ret)
{
    *ret = 0;
    if (p->token.kind != TOKEN_LIST_OPEN)
        return 0;
    int r = parser_advance(p);
    if (r)
        return r;
    const struct value *v = &p->token.value;
    if (p->token.kind != TOKEN_NUMBER || v->kind != VALUE_INTEGER || v->integer >= n_states)
        return bad_index(p, n_states);
    *ret = (uint8_t)v->integer;
    r = parser_advance(p);
    if (r == 0 && p->token.kind != TOKEN_LIST_CLOSE)
        return bad_index(p, n_states);
    return r ? r : parser_advance(p);
}

/* From behind the "(". */
static int parse_all(struct parser *p, struct states *s, struct repeat *repeat, uint32_t *children)
{
    int r = parser_binary(p, 0, &children[0]);
    if (r == 0 && p->token.kind != TOKEN_COMMA)
        return no_step(p);
    if (r == 0)
        r = stated_find(p, &s->stated);
    if (r == 0)
        r = parser_advance(p);
    if (r == 0)
        r = append_states(p, s, repeat);
    if (r)
        return r;
    repeat->n_states = s->stated.n;
    memcpy(children + 1, s->nodes, s->stated.n * sizeof(*children));
    p->states = s;
    r = parse_steps(p, s, children + 1 + s->stated.n);
    p->states = NULL;
    return r;
}

int states_parse(struct parser *p, const struct token *name, uint32_t *ret)
{
    uint32_t open_column = parser_column(p), children[1 + 2 * PROGRAM_MAX_STATES];
    struct states s = {.frame = p->frame, .stated = {.call = "repeat"}};
    uint8_t result = 0;
    if (p->states != NULL)
        return stated_refuse(p, &s.stated, name, "stands in the steps of another",
                             "one in the other's place");
    if (p->is_iterating)
        return stated_refuse(p, &s.stated, name, "stands in the steps of iterate",
                             "iterate in the steps of repeat");
    struct repeat *repeat = arena_take(&p->c->arena, sizeof(*repeat));
    if (repeat == NULL)
        return compiler_no_memory(p->c);
    *repeat = (struct repeat){.column = compiler_keep_column(p->c, name->start + 1)};
    enum token_kind behind = TOKEN_END;
    int r = parser_advance(p);
    if (r == 0)
        r = parser_peek_behind_name(p, &behind);
    if (r == 0)
        r = p->token.kind == TOKEN_CLOSE || behind == TOKEN_ASSIGN
                ? no_step(p)
                : parse_all(p, &s, repeat, children);
    if (r == 0)
        r = parser_expect_close(p, open_column);
    if (r == 0)
        r = parse_index(p, s.stated.n, &result);
    if (r)
        return r;
    struct ast_node *n = parser_append(p, AST_REPEAT, name->start + 1, ret);
    n->repeat = repeat;
    n->result = result;
    return parser_set_children(p, *ret, children, 1 + 2 * s.stated.n);
}
