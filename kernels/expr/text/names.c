/* Names: arguments, what the text binds, constants, functions, casts.
 *
 * Names are resolved while parsing, since what a name means is part of the syntax. An argument wins
 * over everything of its name; `np.` and `numpy.`, with `linalg.` behind them where NumPy has it
 * there, reach past it to the catalogue. What the text binds (bindings.c) has no other meaning.
 * `.T` and `.mT` behind an argument exchange its last two axes; where that may be is seen when the
 * whole text is known (product_passes.c).
 *
 * Called by parser.c for every name that stands where an operand may.
 */
#include "kernels/expr/text/parser.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What could have been written: for a value the arguments, as many as there is room for. */
static void expect_names(struct parser *p, bool is_call)
{
    const struct job_request *request = p->c->request;
    char text[sizeof(p->c->error->expected) - sizeof("an argument: ")];
    size_t n_chars = 0;
    if (is_call || request->n_args == 0) {
        error_expected(p->c->error, is_call ? "a function of the catalogue"
                                            : "an argument, of which there are none");
        return;
    }
    for (unsigned i = 0; i < request->n_args && n_chars < sizeof(text); i++) {
        int n = snprintf(text + n_chars, sizeof(text) - n_chars, "%s%s", i > 0 ? ", " : "",
                         request->args[i].name);
        n_chars += (size_t)n;
    }
    error_expected(p->c->error, "an argument: %s", text);
}

int names_unknown(struct parser *p, const struct token *name, bool is_call)
{
    const char *text = parser_text(p, name);
    if (p->token.kind == TOKEN_ASSIGN)
        return compiler_fail(
            p->c, GAD_BAD_EXPRESSION, name->start + 1,
            "'%.*s=' has no place here: == compares, named arguments stand in calls",
            parser_shown_chars(name), text);
    const char *near = suggest_name(p, name, is_call);
    int r;
    if (near != NULL)
        r = compiler_fail(p->c, GAD_UNKNOWN_NAME, name->start + 1,
                          "unknown name '%.*s', did you mean '%s'?", parser_shown_chars(name), text,
                          near);
    else
        r = compiler_fail(p->c, GAD_UNKNOWN_NAME, name->start + 1, "unknown %s '%.*s'",
                          is_call ? "function" : "name", parser_shown_chars(name), text);
    error_found(p->c->error, "'%.*s'", parser_shown_chars(name), text);
    if (near != NULL)
        error_expected(p->c->error, "'%s'", near);
    else
        expect_names(p, is_call);
    return r;
}

int names_unknown_dtype(struct parser *p, const struct token *name)
{
    const char *text = parser_text(p, name), *near = suggest_name(p, name, true);
    int shown = parser_shown_chars(name);
    enum dtype dtype;
    if (near != NULL && dtype_from_name(near, strlen(near), &dtype))
        return names_unknown(p, name, true);
    int r =
        compiler_fail(p->c, GAD_UNKNOWN_NAME, name->start + 1, "unknown dtype '%.*s'", shown, text);
    error_expected(p->c->error, "bool, int8 to int64, uint8 to uint64, float32 or float64");
    error_found(p->c->error, "'%.*s'", shown, text);
    return r;
}

bool names_find_arg(const struct parser *p, const struct token *name, uint16_t *ret)
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

bool names_find_constant(const struct parser *p, const struct token *name, struct value *ret)
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

/* `np.linalg.`; the token is the dot behind it. */
static int skip_linalg(struct parser *p, struct token *name)
{
    int r = parser_advance(p);
    if (r)
        return r;
    *name = p->token;
    if (parser_is_word(p, name, "norm") || parser_is_word(p, name, "matmul"))
        return parser_advance(p);
    if (name->kind != TOKEN_NAME)
        return parser_unexpected(p, "a name");
    r = compiler_fail(p->c, GAD_UNKNOWN_NAME, name->start + 1, "unknown function 'linalg.%.*s'",
                      parser_shown_chars(name), parser_text(p, name));
    error_expected(p->c->error, "linalg.norm or linalg.matmul");
    error_found(p->c->error, "'linalg.%.*s'", parser_shown_chars(name), parser_text(p, name));
    return r;
}

int names_skip_prefix(struct parser *p, struct token *name, bool *ret_has_prefix)
{
    *ret_has_prefix = false;
    if (p->token.kind != TOKEN_DOT ||
        !(parser_is_word(p, name, "np") || parser_is_word(p, name, "numpy")))
        return 0;
    int r = parser_advance(p);
    if (r)
        return r;
    if (p->token.kind != TOKEN_NAME)
        return parser_unexpected(p, "a name");
    *name = p->token;
    *ret_has_prefix = true;
    r = parser_advance(p);
    return r == 0 && p->token.kind == TOKEN_DOT && parser_is_word(p, name, "linalg")
               ? skip_linalg(p, name)
               : r;
}

bool names_is_dtype(const struct parser *p, const struct token *name)
{
    enum dtype dtype;
    return dtype_from_name(parser_text(p, name), name->n_chars, &dtype);
}

bool names_find_part(const struct parser *p, const struct token *name, enum ast_part *ret)
{
    static const struct {
        const char *word;
        enum ast_part part;
    } parts[] = {
        {"complex", PART_COMPLEX},     {"real", PART_REAL},      {"imag", PART_IMAG},
        {"conjugate", PART_CONJUGATE}, {"conj", PART_CONJUGATE}, {"angle", PART_ANGLE},
        {"abs2", PART_ABS2},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (parser_is_word(p, name, parts[i].word)) {
            *ret = parts[i].part;
            return true;
        }
    return false;
}

bool names_is_function(const struct parser *p, const struct token *name)
{
    return op_find(parser_text(p, name), name->n_chars) != OP_COUNT ||
           parser_is_word(p, name, "astype") || parser_is_word(p, name, "repeat") ||
           names_is_dtype(p, name);
}

static int called_value(struct parser *p, const struct token *name, const char *what)
{
    const char *text = parser_text(p, name);
    if (names_is_function(p, name))
        return compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                             "'%.*s' is %s and cannot be called; np.%.*s is the function",
                             parser_shown_chars(name), text, what, parser_shown_chars(name), text);
    return compiler_fail(p->c, GAD_BAD_EXPRESSION, name->start + 1,
                         "'%.*s' is %s and cannot be called", parser_shown_chars(name), text, what);
}

static int bad_transposition(struct parser *p, const struct token *name, const char *attribute,
                             const struct request_arg *arg, const char *instead)
{
    char text[96] = "a number";
    if (!arg->is_scalar)
        array_format_shape(arg->array.ndim, arg->array.shape, text, sizeof(text));
    int r =
        compiler_fail(p->c, GAD_BAD_SHAPE, name->start + 1, "'%s.%s': '%s' is %s%s; %s", arg->name,
                      attribute, arg->name, arg->is_scalar ? "" : "of shape ", text, instead);
    error_expected(p->c->error, "an array of two axes%s", attribute[0] == 'm' ? " or more" : "");
    error_found(p->c->error, "%s", text);
    return r;
}

int compiler_note_transposed(struct compiler *c, uint16_t arg, uint32_t column)
{
    size_t n_bytes = c->request->n_args * sizeof(*c->transposed_columns);
    if (c->transposed_columns == NULL)
        c->transposed_columns = arena_take(&c->arena, n_bytes);
    if (c->transposed_columns == NULL)
        return compiler_no_memory(c);
    c->transposed_columns[arg] = compiler_keep_column(c, column);
    return 0;
}

int names_refuse_method(struct parser *p, const char *of)
{
    const struct token *t = &p->token;
    enum ast_part part;
    if (t->kind != TOKEN_NAME ||
        (op_find(parser_text(p, t), t->n_chars) == OP_COUNT && !names_find_part(p, t, &part)))
        return parser_unexpected(p, "T or mT");
    int r = compiler_fail(p->c, GAD_BAD_EXPRESSION, parser_column(p),
                          "there are no methods, write %.*s(%s)", parser_shown_chars(t),
                          parser_text(p, t), of);
    error_expected(p->c->error, "T or mT");
    parser_found(p);
    return r;
}

/* .T as NumPy's of one or two axes, .mT of two or more. */
static int parse_transposition(struct parser *p, const struct token *name, struct ast_node *n)
{
    const struct request_arg *arg = &p->c->request->args[n->arg];
    int r = parser_advance(p);
    if (r)
        return r;
    bool is_matrix = parser_is_word(p, &p->token, "mT");
    if (!is_matrix && !parser_is_word(p, &p->token, "T")) {
        char of[96];
        snprintf(of, sizeof(of), "%.*s", parser_shown_chars(name), parser_text(p, name));
        return names_refuse_method(p, of);
    }
    if (arg->is_scalar || arg->array.ndim < (is_matrix ? 2 : 1))
        return bad_transposition(p, name, is_matrix ? "mT" : "T", arg,
                                 "there are no two axes to exchange");
    if (!is_matrix && arg->array.ndim > 2)
        return bad_transposition(p, name, "T", arg, "write .mT, which exchanges the last two axes");
    n->is_transposed = arg->array.ndim > 1;
    if (n->is_transposed)
        r = compiler_note_transposed(p->c, n->arg, name->start + 1);
    return r ? r : parser_advance(p);
}

int names_parse(struct parser *p, uint32_t *ret)
{
    struct token name = p->token;
    bool has_prefix = false;
    uint16_t arg = 0;
    uint32_t bound = 0;
    int r = parser_advance(p);
    if (r == 0)
        r = names_skip_prefix(p, &name, &has_prefix);
    if (r == 0)
        r = compiler_check_steps(p->c, name.start + 1);
    if (r)
        return r;
    bool is_parameter =
        !has_prefix && (iterations_find_state(p, &name, &bound) || states_find(p, &name, &bound) ||
                        definitions_find_parameter(p, &name, &bound));
    bool is_arg = !has_prefix && !is_parameter && names_find_arg(p, &name, &arg);
    bool is_bound = is_parameter || (!has_prefix && !is_arg && bindings_find(p, &name, &bound));
    const char *text = parser_text(p, &name);
    if (p->token.kind == TOKEN_OPEN) {
        const struct definition *own = has_prefix ? NULL : definitions_find(p, &name);
        r = is_arg || is_bound ? 0 : definitions_check_recursion(p, &name);
        if (r)
            return r;
        if (own != NULL && !is_arg && !is_bound)
            return definitions_call(p, &name, own, ret);
        if (is_arg || is_bound)
            return called_value(p, &name, is_arg ? "an argument" : "a name bound here");
        if (!parser_is_word(p, &name, "not") && !parser_is_word(p, &name, "and") &&
            !parser_is_word(p, &name, "or"))
            return calls_parse(p, &name, ret);
    }
    if (is_arg) {
        struct ast_node *n = parser_append(p, AST_ARG, name.start + 1, ret);
        n->arg = arg;
        return p->token.kind == TOKEN_DOT ? parse_transposition(p, &name, n) : 0;
    }
    if (is_bound && bound == UINT32_MAX) { /* while the function is defined */
        parser_append(p, AST_VALUE, name.start + 1, ret)->value =
            (struct value){.kind = VALUE_FLOAT};
        return 0;
    }
    if (is_bound) {
        parser_append(p, AST_BOUND, name.start + 1, ret);
        return parser_set_children(p, *ret, &bound, 1);
    }
    struct value value;
    if (names_find_constant(p, &name, &value)) {
        parser_append(p, AST_VALUE, name.start + 1, ret)->value = value;
        return 0;
    }
    if (parser_is_word(p, &name, "None"))
        return compiler_fail(
            p->c, GAD_BAD_EXPRESSION, name.start + 1,
            "None is no value: it only stands for an optional argument that is left out");
    if (names_is_function(p, &name))
        return compiler_fail(p->c, GAD_BAD_EXPRESSION, name.start + 1,
                             "'%.*s' is a function, write %.*s(...)", parser_shown_chars(&name),
                             text, parser_shown_chars(&name), text);
    if (parser_is_word(p, &name, "not") || parser_is_word(p, &name, "and") ||
        parser_is_word(p, &name, "or")) {
        p->token = name;
        return parser_unexpected(p, "an operand");
    }
    return names_unknown(p, &name, false);
}
