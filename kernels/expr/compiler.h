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

/* Of finding out what a program means: limits of its parts are not enough where one is looked at
 * again, as loops are whose dtypes rise, or looked for among many, as names are that fall into one
 * bucket. A step is some 10 ns; to type a node of the AST is COMPILER_NODE_STEPS. */
#define COMPILER_MAX_STEPS  (1u << 21)
#define COMPILER_NODE_STEPS 4

#define COMPILER_COLUMN_BITS 20
_Static_assert(REQUEST_MAX_EXPR_CHARS + 1 < 1 << COMPILER_COLUMN_BITS &&
                   REQUEST_MAX_OUTPUTS < 1 << (32 - COMPILER_COLUMN_BITS),
               "columns have room for the output");

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

/* A repeat(): one for each time that it is read in the text. */
struct repeat {
    struct repeat *next;    /* of those whose types are known */
    uint32_t column, first; /* column: kept; first: of the AST_STEPPEDs in the AST */
    unsigned n_states;
    uint32_t n_steps;
    uint16_t first_state;      /* its number among all states */
    const struct repeat *like; /* one with the same states as far as is known; NULL: none */
    bool has_begun, is_known;
    uint16_t shape;
    bool is_number[PROGRAM_MAX_STATES]; /* its dtype is not known yet, as that of a number */
    uint8_t dtypes[PROGRAM_MAX_STATES];
    uint16_t begin[PROGRAM_MAX_STATES]; /* nodes: at first, after a step, after all steps */
    uint16_t step[PROGRAM_MAX_STATES];
    uint16_t final[PROGRAM_MAX_STATES];
    /* Of emit.c and assemble.c */
    uint16_t number, first_output;
};

/* What walks by slabs (schedule/slab_find.c) compute: large values that several of them need, each
 * of them again; one walk after the other, whose large values are kept; nothing. */
enum compiler_walks { COMPILER_WALKS_AGAIN, COMPILER_WALKS_ONCE, COMPILER_WALKS_NONE };

struct compiler {
    const struct job_request *request;
    struct gad_error *error;
    const char *argument; /* that errors name: the output's name, or "outputs[i]" */
    char unnamed[REQUEST_UNNAMED_SIZE];
    unsigned output;  /* at hand */
    const char *text; /* its */
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
    uint32_t product_column;      /* where the last product is, kept; 0: there is none */
    uint32_t *transposed_columns; /* of arguments, where last `.T`, kept; NULL: nowhere */
    struct repeat *repeats;       /* the last one whose types are known */
    uint16_t n_states;            /* of all of them, numbers */
    uint64_t n_steps;
    uint16_t *mirrors;     /* product_passes_mirror()'s, of each node; NULL before the first one */
    uint32_t typed_column; /* of what is typed at the moment; 0: of nothing */
    uint16_t *moved;       /* of near.c, a node for each of the graph; NULL: nothing was moved */
    size_t n_read_chars;   /* by calls of the text's functions */
    /* What streams are reduced to along several axes goes by way of the first one alone, as far as
     * it can: results along different ones then come from one pass over them. */
    bool is_first_axis_first;
    enum compiler_walks walks;
    bool has_walks; /* there are some */
};

/* Columns count from 1, among all characters of the text of the output at hand. What may be refused
 * when another one is, or none, keeps its column so: then it says which output's it is. */
static inline uint32_t compiler_keep_column(const struct compiler *c, uint32_t column)
{
    return column | (c->output + 1) << COMPILER_COLUMN_BITS;
}
/* names.c: an argument is transposed there, which errors may say. */
int compiler_note_transposed(struct compiler *c, uint16_t arg, uint32_t column) GAD_MUST_CHECK;
/* Of a column, kept or not. */
struct program_place compiler_place(const struct compiler *c, uint32_t column);

/* Fills the error; column 0: none is named. Returns status. */
int compiler_fail(struct compiler *c, enum gad_status status, uint32_t column, const char *format,
                  ...) GAD_PRINTF(4, 5);
int compiler_no_memory(struct compiler *c);
/* Refuses what has taken too many steps. */
int compiler_check_steps(struct compiler *c, uint32_t column);

/* parser.c: c->text to c->ast, whose array has room for a node per character. */
int parser_run(struct compiler *c) GAD_MUST_CHECK;
