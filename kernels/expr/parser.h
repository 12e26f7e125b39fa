/* What parser.c and names.c share: the parser's position, and reading on from it. */
#pragma once

#include "kernels/expr/internal.h"

struct parser {
    struct compiler *c;
    struct token token; /* not yet consumed */
    unsigned depth;
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
/* What stands where an operand, an operator or the end should be. */
int parser_unexpected(struct parser *p, const char *wanted);
int parser_expect_close(struct parser *p, uint32_t open_column) GAD_MUST_CHECK;
/* Operators that bind at least as tightly as min_binding (0: any expression). */
int parser_binary(struct parser *p, int min_binding, uint32_t *ret) GAD_MUST_CHECK;

/* names.c: the token is a name. */
int names_parse(struct parser *p, uint32_t *ret) GAD_MUST_CHECK;
