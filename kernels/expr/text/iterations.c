/* iterate(n, NAME = EXPRESSION, ..., until = CONDITION): steps that each element takes by itself.
 *
 *     iterate(256, k = k + 1, zr = zr*zr - zi*zi + cr, zi = 2*zr*zi + ci, until = zr*zr + zi*zi >
 * 4)
 *
 * A name that is given a value in the call is a state: it begins as what the name means outside,
 * and in the body it means the state before the step, on all right sides. So the names are looked
 * for first, then the right sides are read. States are numbered in the order of their names: calls
 * that differ in their order alone are one loop, of which each gives another state.
 *
 * The children of the AST_ITERATE are n, the condition (or AST_ABSENT), the states (AST_STATE,
 * whose child is what they begin with), and their next values. The nodes of the body lie between
 * the last state and the AST_ITERATE.
 *
 * Called by calls.c, and by names.c for the names in the body.
 */
#include "kernels/expr/text/parser.h"

#include <string.h>

#define FIRST_STATE 2 /* among the children */

struct iteration {
    struct stated stated; /* in the order of their names */
    unsigned first;       /* which state is named first */
    uint32_t states[EXPR_MAX_STATES], nexts[EXPR_MAX_STATES];
    uint32_t until;
};

static int compare(const struct parser *p, const struct token *a, const struct token *b)
{
    size_t n = a->n_chars < b->n_chars ? a->n_chars : b->n_chars;
    int order = memcmp(parser_text(p, a), parser_text(p, b), n);
    return order != 0 ? order : (a->n_chars > b->n_chars) - (a->n_chars < b->n_chars);
}

bool iterations_find_state(const struct parser *p, const struct token *name, uint32_t *ret_node)
{
    if (p->iteration == NULL)
        return false;
    unsigned i = stated_index(p, &p->iteration->stated, name);
    if (i < p->iteration->stated.n)
        *ret_node = p->iteration->states[i];
    return i < p->iteration->stated.n;
}

static int bad_state(struct parser *p, const struct stated *stated, const struct token *name,
                     const char *why)
{
    return stated_refuse(p, stated, name, why, "names that have values, each once");
}

/* Calls that differ in the order of their names alone are one loop. */
static void sort_names(const struct parser *p, struct iteration *it)
{
    struct token *names = it->stated.names;
    for (unsigned i = 1; i < it->stated.n; i++) {
        struct token name = names[i];
        unsigned at = i;
        for (; at > 0 && compare(p, &names[at - 1], &name) > 0; at--)
            names[at] = names[at - 1];
        names[at] = name;
        it->first += at <= it->first;
    }
}

static int check_known(struct parser *p, const struct stated *stated, const struct token *name)
{
    uint16_t arg;
    uint32_t node;
    struct value value;
    if (names_find_arg(p, name, &arg) || bindings_find(p, name, &node) ||
        definitions_find_parameter(p, name, &node) || states_find(p, name, &node))
        return 0;
    if (names_find_constant(p, name, &value))
        return bad_state(p, stated, name, "is a constant");
    if (names_is_function(p, name) || definitions_find(p, name) != NULL)
        return bad_state(p, stated, name, "is a function's or a dtype's name");
    return bad_state(p, stated, name,
                     "has no value to begin with: NAME = ...; before it gives one");
}

/* What the name means outside is the state's first value. */
static int append_state(struct parser *p, struct iteration *it, unsigned i)
{
    struct token behind = p->token;
    uint32_t first = 0;
    int r = check_known(p, &it->stated, &it->stated.names[i]);
    p->token = it->stated.names[i];
    if (r == 0)
        r = names_parse(p, &first);
    p->token = behind;
    if (r)
        return r;
    parser_append(p, AST_STATE, it->stated.names[i].start + 1, &it->states[i])->result = (uint8_t)i;
    it->nexts[i] = AST_ABSENT;
    return parser_set_children(p, it->states[i], &first, 1);
}

/* NAME = EXPRESSION; the token is the name. */
static int parse_next(struct parser *p, struct iteration *it)
{
    struct token name = p->token;
    enum token_kind behind;
    int r = parser_peek_behind_name(p, &behind);
    if (r)
        return r;
    if (behind != TOKEN_ASSIGN)
        return parser_unexpected(p, "NAME = EXPRESSION");
    bool is_until = parser_is_word(p, &name, "until");
    unsigned i = is_until ? 0 : stated_index(p, &it->stated, &name);
    if (!is_until && i == it->stated.n)
        return parser_unexpected(p, "NAME = EXPRESSION");
    uint32_t *to = is_until ? &it->until : &it->nexts[i];
    if (*to != AST_ABSENT)
        return bad_state(p, &it->stated, &name, "is there twice");
    r = parser_advance(p);
    if (r == 0)
        r = parser_advance(p);
    return r ? r : parser_binary(p, 0, to);
}

static int parse_body(struct parser *p, struct iteration *it)
{
    int r = 0;
    p->iteration = it;
    p->is_iterating = true;
    while (r == 0 && p->token.kind == TOKEN_COMMA) {
        r = parser_advance(p);
        if (r == 0 && p->token.kind == TOKEN_CLOSE)
            break;
        if (r == 0)
            r = parse_next(p, it);
    }
    p->iteration = NULL;
    p->is_iterating = false;
    return r;
}

static int no_states(struct parser *p, const struct token *name)
{
    int r = compiler_fail(p->c, GAD_BAD_ARITY, name->start + 1,
                          "iterate takes a number of steps and what changes in each: "
                          "iterate(100, z = z*z + c, until = abs(z) > 2)");
    error_expected(p->c->error, "NAME = EXPRESSION");
    error_found(p->c->error, "none");
    return r;
}

static int append_iterate(struct parser *p, const struct token *name, const struct iteration *it,
                          uint32_t n_steps, uint32_t *ret)
{
    uint32_t children[FIRST_STATE + 2 * EXPR_MAX_STATES] = {n_steps, it->until};
    memcpy(children + FIRST_STATE, it->states, it->stated.n * sizeof(*children));
    memcpy(children + FIRST_STATE + it->stated.n, it->nexts, it->stated.n * sizeof(*children));
    struct ast_node *n = parser_append(p, AST_ITERATE, name->start + 1, ret);
    n->op = OP_ITERATE;
    n->result = (uint8_t)it->first;
    return parser_set_children(p, *ret, children, FIRST_STATE + 2 * it->stated.n);
}

int iterations_parse(struct parser *p, const struct token *name, uint32_t *ret)
{
    struct iteration it = {.stated = {.call = "iterate"}, .until = AST_ABSENT};
    uint32_t open_column = parser_column(p), n_steps = 0;
    if (p->is_iterating) {
        int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                              "iterate inside of iterate is not supported; what does not change "
                              "from step to step can be given a name before");
        error_expected(p->c->error, "one iterate at a time");
        error_found(p->c->error, "iterate");
        return r;
    }
    enum token_kind behind = TOKEN_END;
    int r = parser_advance(p);
    if (r == 0)
        r = parser_peek_behind_name(p, &behind);
    if (r == 0 && (p->token.kind == TOKEN_CLOSE || behind == TOKEN_ASSIGN))
        return no_states(p, name);
    if (r == 0)
        r = parser_binary(p, 0, &n_steps);
    if (r == 0)
        r = stated_find(p, &it.stated);
    if (r == 0)
        sort_names(p, &it);
    for (unsigned i = 0; r == 0 && i < it.stated.n; i++)
        r = append_state(p, &it, i);
    if (r == 0 && it.stated.n == 0 && p->token.kind == TOKEN_CLOSE)
        return no_states(p, name);
    if (r == 0)
        r = parse_body(p, &it);
    if (r == 0)
        r = parser_expect_close(p, open_column);
    if (r == 0 && it.stated.n == 0)
        return no_states(p, name);
    return r ? r : append_iterate(p, name, &it, n_steps, ret);
}
