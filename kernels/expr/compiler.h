/* The compiler in hand: what all its rooms work on.
 *
 *     text/ -------> rules/, functions/ -----> schedule/ ----------------------> program
 *     characters     an operation by its       the graph of typed values, cut
 *     to tokens      rule in the catalogue,    into passes, each of these as
 *     to the AST     as typed values           instructions
 *
 * All memory between text and program is one arena, given back at the end; the program is one
 * allocation. Nothing but the parser recurses, and the parser counts how deep it is.
 */
#pragma once

#include "kernels/expr/schedule/graph.h"
#include "kernels/expr/text/ast.h"
#include "kernels/program.h"
#include "proto/util.h"

#define EXPR_MAX_DEPTH  200 /* of parentheses, calls, signs and powers inside each other */
#define EXPR_MAX_SELECT 64  /* conditions of one select() */

struct arena {
    char *at, *end;
    struct arena_chunk *chunks;
};

/* 16-byte aligned, not cleared; NULL when there is no memory. */
void *arena_take(struct arena *arena, size_t n_bytes);

/* A struct program_check before its reduction has a number. */
struct check {
    uint16_t node; /* NODE_REDUCTION, one int64 that must be 0 */
    struct program_check check;
};

struct compiler {
    const struct job_request *request;
    struct gad_error *error;
    const char *argument; /* that errors name: the output's name, or "outputs[i]" */
    char unnamed[REQUEST_UNNAMED_SIZE];
    const char *text; /* of the output at hand */
    uint32_t n_chars;
    struct arena arena;
    struct ast ast;
    struct graph graph;
    uint16_t outputs[REQUEST_MAX_OUTPUTS];       /* nodes */
    uint16_t output_shapes[REQUEST_MAX_OUTPUTS]; /* theirs, but for index()s alone */
    uint32_t axis_columns[2 * ARRAY_MAX_NDIM];   /* where index(i - 32) is in the text */
    uint32_t random_column;                      /* where the last random number is */
    struct check *checks;                        /* checks.c; NULL: none yet */
    unsigned n_checks;
    int16_t needs_elements;       /* as in struct program */
    uint32_t product_column;      /* where the last product is in the text; 0: there is none */
    uint32_t *transposed_columns; /* of arguments, where last `.T`; NULL: nowhere */
};

/* Fills the error; column 0: none is named. Returns status. */
int compiler_fail(struct compiler *c, enum gad_status status, uint32_t column, const char *format,
                  ...) GAD_PRINTF(4, 5);
int compiler_no_memory(struct compiler *c);

/* parser.c: c->text to c->ast, whose array has room for a node per character. */
int parser_run(struct compiler *c) GAD_MUST_CHECK;
