/* What parser.c, bindings.c, names.c and calls.c share: the parser's position, and reading on from
 * it. */
#pragma once

#include "kernels/expr/compiler.h"
#include "kernels/expr/text/keywords.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_NUMBER,   /* value */
    TOKEN_STRING,   /* with its quotes; only as a word */
    TOKEN_OPERATOR, /* op; "-" is OP_SUBTRACT, "+" OP_ADD also where they are signs */
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_LIST_OPEN,
    TOKEN_LIST_CLOSE,
    TOKEN_COMMA,
    TOKEN_DOT,
    TOKEN_ASSIGN,
    TOKEN_SEMICOLON,
};

struct token {
    uint8_t kind;
    uint16_t op;
    uint32_t start, n_chars; /* in the text; column = start + 1 */
    struct value value;
};

/* lexer.c */
int lexer_next(struct compiler *c, uint32_t at, struct token *ret_token) GAD_MUST_CHECK;

struct parser {
    struct compiler *c;
    struct token token; /* not yet consumed */
    unsigned depth;
    struct binding **bindings; /* NULL: there are none */
    /* definitions.c */
    const struct definition *definitions;
    const struct inlined *frame; /* of the function whose text is read; NULL: of none */
    const struct token *defined; /* the name of the one that is being defined; or NULL */
    /* iterations.c */
    const struct iteration *iteration; /* whose body is read, and no function's text; or NULL */
    bool is_iterating;                 /* in its body, or in that of a function called there */
    const struct states *states;       /* of the repeat whose steps are read; NULL: of none */
};

/* parser.c. All that return int: 0, or an enum gad_status whose error is filled. */
int parser_advance(struct parser *p) GAD_MUST_CHECK;
uint32_t parser_column(const struct parser *p); /* of the token */
const char *parser_text(const struct parser *p, const struct token *t);
bool parser_is_word(const struct parser *p, const struct token *t, const char *word);
/* For messages: names may be as long as the text. */
int parser_shown_chars(const struct token *t);
struct ast_node *parser_append(struct parser *p, enum ast_kind kind, uint32_t column,
                               uint32_t *ret);
/* Copies them. */
int parser_set_children(struct parser *p, uint32_t node, const uint32_t *children,
                        unsigned n) GAD_MUST_CHECK;
/* Sets `found` of the error: the token. */
void parser_found(struct parser *p);
/* What stands where an operand, an operator or the end should be. */
int parser_unexpected(struct parser *p, const char *wanted);
/* The same behind a whole expression. */
int parser_unexpected_behind(struct parser *p);
/* What comes behind the token, if that is a name; else TOKEN_END. */
int parser_peek_behind_name(struct parser *p, enum token_kind *ret) GAD_MUST_CHECK;
int parser_expect_close(struct parser *p, uint32_t open_column) GAD_MUST_CHECK;
/* Operators that bind at least as tightly as min_binding (0: any expression). */
int parser_binary(struct parser *p, int min_binding, uint32_t *ret) GAD_MUST_CHECK;

/* bindings.c: the whole text, from its first token on. */
int bindings_parse(struct parser *p) GAD_MUST_CHECK;
bool bindings_find(const struct parser *p, const struct token *name, uint32_t *ret_node);
void bindings_each(const struct parser *p, void (*visit)(void *data, const char *name), void *data);

int bindings_check_name(struct parser *p, const struct token *name) GAD_MUST_CHECK;

/* definitions.c: whether a definition begins with the token; then the statement. */
int definitions_look(struct parser *p, bool *ret_is_definition) GAD_MUST_CHECK;
int definitions_parse(struct parser *p) GAD_MUST_CHECK;
const struct definition *definitions_find(const struct parser *p, const struct token *name);
/* Of the function whose text is read: the argument's node, UINT32_MAX while it is defined. */
bool definitions_find_parameter(const struct parser *p, const struct token *name,
                                uint32_t *ret_node);
int definitions_check_recursion(struct parser *p, const struct token *name) GAD_MUST_CHECK;
/* The token is the "(" behind the name. */
int definitions_call(struct parser *p, const struct token *name, const struct definition *d,
                     uint32_t *ret) GAD_MUST_CHECK;

/* iterations.c: iterate(...), the token is the "("; a state's node, of a name in the body. */
int iterations_parse(struct parser *p, const struct token *name, uint32_t *ret) GAD_MUST_CHECK;
bool iterations_find_state(const struct parser *p, const struct token *name, uint32_t *ret_node);

/* names.c: the token is a name. */
int names_parse(struct parser *p, uint32_t *ret) GAD_MUST_CHECK;
/* `np.` or `numpy.`, also `np.linalg.`, if that is the name; it becomes the name behind it. */
int names_skip_prefix(struct parser *p, struct token *name, bool *ret_has_prefix) GAD_MUST_CHECK;
/* At the name behind a dot that is no transposition: that of a method of `of`, or of nothing. */
int names_refuse_method(struct parser *p, const char *of);
bool names_find_arg(const struct parser *p, const struct token *name, uint16_t *ret);
bool names_find_constant(const struct parser *p, const struct token *name, struct value *ret);
bool names_is_dtype(const struct parser *p, const struct token *name);
/* complex(), real() and such. */
bool names_find_part(const struct parser *p, const struct token *name, enum ast_part *ret);
bool names_is_function(const struct parser *p, const struct token *name); /* or a dtype */
int names_unknown(struct parser *p, const struct token *name, bool is_call);
int names_unknown_dtype(struct parser *p, const struct token *name);

/* literals.c: a tuple or one of its elements; a dtype's name; a word, bare or in quotes. */
int literals_parse_tuple(struct parser *p, uint32_t *ret) GAD_MUST_CHECK;
/* The same, and elements may be tuples. */
int literals_parse_tuples(struct parser *p, uint32_t *ret) GAD_MUST_CHECK;
/* Lists of numbers, or of such lists, as many as there are. */
int literals_parse_kernel(struct parser *p, uint32_t *ret) GAD_MUST_CHECK;
int literals_parse_dtype(struct parser *p, enum dtype *ret) GAD_MUST_CHECK;
int literals_parse_word(struct parser *p, uint32_t *ret) GAD_MUST_CHECK;

/* suggest.c: the nearest known name, or NULL. is_call: functions only, else arguments too. */
const char *suggest_name(const struct parser *p, const struct token *name, bool is_call);

/* calls.c: the token is the "(" behind the function's name. */
int calls_parse(struct parser *p, const struct token *name, uint32_t *ret) GAD_MUST_CHECK;

/* states.c: the names that are given a value in a call of repeat() or iterate(), behind its own
 * commas, the first of which is the token. Nothing is consumed. */
_Static_assert(PROGRAM_MAX_STATES == EXPR_MAX_STATES, "as many of both");
struct stated {
    const char *call; /* its name; of iterate() `until` is none of them */
    unsigned n;
    struct token names[EXPR_MAX_STATES];
};
int stated_find(struct parser *p, struct stated *stated) GAD_MUST_CHECK;
/* One more than all: it is none of them. */
unsigned stated_index(const struct parser *p, const struct stated *stated,
                      const struct token *name);
int stated_refuse(struct parser *p, const struct stated *stated, const struct token *name,
                  const char *why, const char *expected);

/* states.c: repeat(), whose "(" the token is; the node of a state of that whose steps are read. */
int states_parse(struct parser *p, const struct token *name, uint32_t *ret) GAD_MUST_CHECK;
bool states_find(const struct parser *p, const struct token *name, uint32_t *ret_node);

/* arguments.c: those of one call, as far as they are read. */
#define CALL_MAX_CHILDREN (3 + KEYWORDS_MAX)

struct call {
    const struct token *name;
    enum op op;
    uint32_t open_column;
    unsigned n_required, n_keywords;
    unsigned n_positional; /* given by position, may be too many */
    unsigned n_named_required;
    bool has_named;
    bool is_given[CALL_MAX_CHILDREN];
    uint32_t children[CALL_MAX_CHILDREN];
    /* Of an operation that takes any number of arguments behind those that it must have, by
     * position; more than there is room for are counted alone. */
    bool takes_more;
    unsigned n_more;
    uint32_t more[ARRAY_MAX_NDIM];
};

/* The token is the "(". */
void arguments_init(struct call *call, const struct parser *p, const struct token *name,
                    enum op op);
/* From behind the "(" to behind the ")". */
int arguments_parse(struct parser *p, struct call *call) GAD_MUST_CHECK;
/* That all keywords are given that must be. */
int arguments_require(struct parser *p, const struct call *call) GAD_MUST_CHECK;
/* OP_COUNT: an operation without keywords. */
int arguments_check(struct parser *p, const struct token *name, enum op op, unsigned wanted,
                    unsigned given) GAD_MUST_CHECK;
