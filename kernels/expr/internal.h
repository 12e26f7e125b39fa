/* What the stages of the expression compiler share.
 *
 *     text -> tokens -> ast ------> graph ---> schedule -> program
 *           lexer.c  parser.c    types.c    passes.c   assemble.c
 *                    bindings.c  rules.c    product_passes.c  emit.c
 *                    names.c     powers.c floats.c
 *                    calls.c     bits.c choices.c
 *                    arguments.c closeness.c lower.c
 *                    keywords.c  axes.c scalar.c
 *                    literals.c  reductions.c reduce.c
 *                                moments.c norms.c quantiles.c selection.c places.c
 *                                random.c integers.c products.c
 *                                graph.c fold.c narrow.c
 *
 * All memory between text and program is one arena, given back at the end; the program is one
 * allocation. No stage but the parser recurses, and the parser counts how deep it is.
 */
#pragma once

#include "kernels/program.h"
#include "proto/util.h"

#define EXPR_MAX_DEPTH  200  /* of parentheses, calls, signs and powers inside each other */
#define EXPR_MAX_NODES  4096 /* of the graph, over all outputs */
#define EXPR_MAX_SHAPES 256  /* different ones of subexpressions */
#define EXPR_MAX_SELECT 64   /* conditions of one select() */

/* ---- arena (compile.c) ---- */

struct arena {
    char *at, *end;
    struct arena_chunk *chunks;
};

/* 16-byte aligned, not cleared; NULL when there is no memory. */
void *arena_take(struct arena *arena, size_t n_bytes);

/* ---- tokens (lexer.c) ---- */

/* A number as Python has it, or the node of a typed value. Integers hold -2^63 to 2^64 - 1. */
enum value_kind { VALUE_NODE, VALUE_BOOL, VALUE_INTEGER, VALUE_FLOAT };

struct value {
    uint8_t kind;
    uint16_t node; /* VALUE_NODE: index into the graph */
    union {
        __int128 integer; /* VALUE_BOOL (0, 1) and VALUE_INTEGER */
        double number;    /* VALUE_FLOAT */
    };
};

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

/* ---- ast (parser.c) ---- */

enum ast_kind {
    AST_VALUE, /* a number: `value` is set by the parser */
    AST_ARG,   /* request->args[arg] */
    AST_OP,    /* op of children; `dtype` is the target of OP_CAST */
    AST_PLUS,  /* +x */
    AST_BOUND, /* a name given in the text: its child's value */
    AST_TUPLE, /* of its children, as some arguments are */
    AST_DTYPE, /* `dtype`, as some arguments are */
    AST_WORD,  /* `word`, as some arguments are */
};

/* In place of a child: an optional argument that is not given, or is None. */
#define AST_ABSENT UINT32_MAX

struct ast_node {
    uint8_t kind;
    uint8_t n_children; /* select: conditions, as many choices, the default */
    uint8_t dtype;
    uint8_t result;     /* which one of an operation that has two */
    bool is_operator;   /* written with a symbol: on two Python numbers it is Python's */
    bool is_transposed; /* AST_ARG: its last two axes are exchanged */
    uint16_t op;
    uint16_t arg;
    uint32_t column;          /* from 1 */
    const uint32_t *children; /* arguments, then what the catalogue's keywords name */
    struct value value;       /* set by types_resolve() */
    struct {
        uint32_t start, n_chars; /* in the text, without quotes */
    } word;
};

/* Children come before their parents; the last node is the result. A node may have several parents
 * where a name is bound to it, and none where the name is not used: that is checked too. */
struct ast {
    struct ast_node *nodes;
    uint32_t n_nodes;
};

/* ---- graph (graph.c) ---- */

enum node_kind {
    NODE_INPUT,
    NODE_CONST,
    NODE_INSN,
    NODE_REDUCTION,
    NODE_INDEX,
    NODE_SCAN,
    NODE_PRODUCT,
};

#define NODE_NONE         UINT16_MAX
#define SIZED_DIFFERENTLY (UINT16_MAX - 1)
#define INDEX_FLAT        INT64_MAX

/* A typed value; equal ones are one node. Sources come before their users.
 *
 * The same holds for the element's number that a random number without `size` is made of; with
 * `size` it has that shape, and must be evaluated in a pass of as many elements: in another one its
 * numbers would repeat.
 *
 * A NODE_INDEX, index(axis), has no shape of its own: like a number it takes the shape of what it
 * meets, so its shape here is (). Its axis is one of the pass that evaluates it, which has the
 * shape of the output or of the array that is reduced: in `f8 + row * index(0)` it is an axis of
 * the sum, though `row` alone has fewer. axes.c checks that every such pass has the axis.
 *
 * A NODE_REDUCTION is evaluated in a pass of the shape `over`, to which its sources broadcast: what
 * is reduced, then BINCOUNT's weights. The second source of SEARCH_LEFT, SEARCH_RIGHT and TAKE is a
 * NODE_REDUCTION of one axis, a table. A NODE_SCAN is a running result along one axis, of the dtype
 * `compute`, stored as `dtype`; it is a whole output and no source of anything. A NODE_PRODUCT is
 * the matrix product of its two sources, which have its dtype. */
struct node {
    uint8_t kind;
    uint8_t dtype;
    uint8_t compute;
    uint8_t n_src;
    uint16_t op;
    uint16_t src[3];
    uint16_t shape;       /* index into graph->shapes */
    uint16_t level;       /* the first level of passes in which it can be used */
    uint16_t need;        /* registers that computing it takes, 0 for what is no NODE_INSN */
    uint16_t next;        /* in the same bucket */
    uint64_t reads;       /* bit i: request->args[i] is read, reductions not looked through */
    uint64_t axes;        /* bit 32 + i: index(i) is read, in the same way */
    bool is_free;         /* an index() or the number of an element is read that takes what shape it
                             meets, in the same way */
    uint16_t sized;       /* the shape of the number of an element that has one; NODE_NONE: there is
                             none, SIZED_DIFFERENTLY: they are of different sizes */
    uint16_t over;        /* NODE_REDUCTION and NODE_SCAN: index into graph->shapes; else 0 */
    uint32_t n_bins;      /* BINCOUNT; else 0 */
    struct kth_place kth; /* KTH; else 0 */
    union {
        union scalar value; /* NODE_CONST; unused bytes are 0 */
        struct {            /* NODE_INPUT */
            uint32_t arg;
            uint32_t is_transposed; /* 1: its last two axes are exchanged, in its shape too */
        };
        int64_t axis;               /* NODE_INDEX; below 0: from the end; INDEX_FLAT: its number */
        struct {                    /* NODE_REDUCTION and NODE_SCAN */
            uint32_t reduced_axes;  /* bit i: axis i of `over` */
            uint8_t keeps_dims;     /* 1: they stay, with length 1 */
            uint8_t has_minus_zero; /* 1: of SUM, -0 where all terms are */
            uint16_t is_cumulative; /* 1: of BINCOUNT, running sums along the bins */
        };
    };
    /* Of emit.c: */
    uint16_t n_uses; /* not yet made, in the pass at hand */
    uint16_t index;  /* of the constant, input or reduction in the program */
    uint8_t state;
    uint8_t register_index;
};

struct shape {
    int ndim;
    const int64_t *dims;
    int64_t n_elements;
};

struct graph {
    struct node *nodes;
    struct shape *shapes; /* [0] is () */
    uint16_t *buckets;
    uint32_t bucket_mask;
    uint16_t n_nodes, capacity, n_shapes;
};

/* ---- the compiler as a whole ---- */

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
    uint16_t product;             /* the outputs' NODE_PRODUCT, or NODE_NONE */
    uint32_t product_column;      /* where the last product is in the text; 0: there is none */
    uint32_t *transposed_columns; /* of arguments, where last `.T`; NULL: nowhere */
};

/* Fills the error; column 0: none is named. Returns status. */
int fail(struct compiler *c, enum gad_status status, uint32_t column, const char *format, ...)
    GAD_PRINTF(4, 5);
int fail_no_memory(struct compiler *c);
/* An enum gad_status or 0; what they fill is in c->error. */

/* lexer.c */
int lexer_next(struct compiler *c, uint32_t at, struct token *ret_token) GAD_MUST_CHECK;

/* parser.c: c->text to c->ast, whose array has room for a node per character. */
int parser_run(struct compiler *c) GAD_MUST_CHECK;

/* keywords.c: what the catalogue's text "decimals=0" says. */
#define KEYWORDS_MAX 8

enum keyword_kind {
    KEYWORD_EXPRESSION,
    KEYWORD_TUPLE,
    KEYWORD_DTYPE,
    KEYWORD_WORD, /* one of a few */
    KEYWORD_NONE,
};

struct keyword {
    const char *name; /* not terminated */
    unsigned n_chars;
    enum keyword_kind kind; /* KEYWORD_NONE: nothing but None */
    bool allows_none, is_required;
};
unsigned keywords_count(enum op op);
unsigned keywords_count_positional(enum op op); /* those that may come without their names */
/* i < keywords_count(op) */
struct keyword keywords_get(enum op op, unsigned i);
bool keywords_is(const struct keyword *k, const char *name);
/* Its number; keywords_count(op) where there is none. */
unsigned keywords_find(enum op op, const char *name, size_t n_chars);
/* The nearest known one, or n_chars 0. */
struct keyword keywords_suggest(enum op op, const char *name, size_t n_chars);

/* literals.c: arguments that must be known while the expression is compiled, by keyword. The
 * operation must have the keyword. */
const struct ast_node *literals_find(const struct compiler *c, const struct ast_node *n,
                                     const char *keyword); /* NULL: not given */
/* Of what is given: an integer or a tuple of them, at most ARRAY_MAX_NDIM; */
int literals_integers(struct compiler *c, const struct ast_node *n, const char *keyword,
                      __int128 *ret, unsigned *ret_n, bool *ret_is_tuple) GAD_MUST_CHECK;
int literals_integer(struct compiler *c, const struct ast_node *n, const char *keyword,
                     __int128 *ret) GAD_MUST_CHECK;
int literals_number(struct compiler *c, const struct ast_node *n, const char *keyword,
                    double *ret) GAD_MUST_CHECK;
/* *ret stays where it is not given. */
int literals_flag(struct compiler *c, const struct ast_node *n, const char *keyword,
                  bool *ret) GAD_MUST_CHECK;
enum dtype literals_dtype(const struct compiler *c, const struct ast_node *n, enum dtype otherwise);
/* One of these words; *ret, its number, stays where none is given. */
int literals_word(struct compiler *c, const struct ast_node *n, const char *keyword,
                  const char *const *words, unsigned n_words, unsigned *ret) GAD_MUST_CHECK;

/* scalar.c: Python's numbers. */
int scalar_fold(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret) GAD_MUST_CHECK;
double scalar_as_double(const struct value *v);
bool scalar_fits(const struct value *v, enum dtype dtype);
/* As NumPy converts when the other operand has `dtype`: an integer must fit. */
int scalar_convert(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
                   union scalar *ret) GAD_MUST_CHECK;
/* As the dtype's constructor does: fractions are cut off, bool is "not zero". */
int scalar_construct(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
                     union scalar *ret) GAD_MUST_CHECK;
/* "-128 to 127", and a number as decimal text; return the buffer. */
const char *scalar_format_range(enum dtype dtype, char buffer[static 64]);
const char *scalar_format(__int128 value, char buffer[static 64]);

/* types.c: from c->ast to a node of the graph, for output `index`; and what the rules share. */
int types_resolve(struct compiler *c, unsigned index) GAD_MUST_CHECK;
enum dtype types_of_node(const struct compiler *c, uint16_t node);
/* What a number becomes when nothing else decides; or the node's. */
enum dtype types_of(const struct compiler *c, const struct value *v);
/* numpy.result_type */
enum dtype types_common(const struct compiler *c, const struct value *a, const struct value *b);
int types_as(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
             uint16_t *ret) GAD_MUST_CHECK;
int types_as_node(struct compiler *c, uint32_t column, const struct value *v,
                  uint16_t *ret) GAD_MUST_CHECK;
/* 0, so that it can end a function. */
int types_set_node(uint16_t node, struct value *ret);
/* For what is wrong with one argument. */
/* numpy.result_type of any number of values. */
enum dtype types_common_of(const struct compiler *c, const struct value *const *values,
                           unsigned n_values);
/* The child's value; NULL where it is absent. */
const struct value *types_child(const struct compiler *c, const struct ast_node *n, unsigned child);
uint32_t types_child_column(const struct compiler *c, const struct ast_node *n, unsigned child);
/* Casts the arguments to `compute` and adds the operation. */
int types_apply(struct compiler *c, const struct ast_node *n, enum op op, enum dtype compute,
                enum dtype dtype, unsigned n_args, const struct value *args,
                struct value *ret) GAD_MUST_CHECK;

/* rules.c: an operation by its rule in the catalogue. `args` are the first three children. */
int rules_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret) GAD_MUST_CHECK;
/* As if `op` were written in n's place: what operations are lowered with. As an operator it is
 * Python's on two numbers. */
int rules_lower(struct compiler *c, const struct ast_node *n, enum op op, unsigned n_args,
                const struct value *args, struct value *ret) GAD_MUST_CHECK;
int rules_lower_operator(struct compiler *c, const struct ast_node *n, enum op op,
                         const struct value *a, const struct value *b,
                         struct value *ret) GAD_MUST_CHECK;
int rules_bad_dtype(struct compiler *c, const struct ast_node *n, enum dtype found,
                    const char *wanted, const char *why);
/* A bool that is the same for every element of `like`, of whose shape it is. */
int rules_known(struct compiler *c, const struct ast_node *n, bool value, const struct value *like,
                struct value *ret) GAD_MUST_CHECK;

/* One rule of the catalogue, or a few: */
typedef int rule_fn(struct compiler *c, const struct ast_node *n, const struct value *args,
                    struct value *ret) GAD_MUST_CHECK;
rule_fn powers_apply, powers_apply_float64;                                  /* powers.c */
rule_fn floats_apply, floats_floor, floats_round, floats_ldexp, floats_sinc; /* floats.c */
rule_fn floats_predicate;
rule_fn closeness_isclose, closeness_nan_to_num;            /* closeness.c */
rule_fn bits_apply, bits_count, bits_integer, bits_logical; /* bits.c */
rule_fn choices_where, choices_select, choices_clip;        /* choices.c */
rule_fn axes_apply;                                         /* axes.c */
rule_fn reductions_apply;                                   /* reductions.c */
rule_fn random_apply;                                       /* random.c */
rule_fn random_integers;                                    /* integers.c */
rule_fn scans_apply;                                        /* scans.c */
rule_fn counts_apply;                                       /* counts.c */
rule_fn lookups_apply;                                      /* lookups.c */
rule_fn histograms_apply;                                   /* histograms.c */
rule_fn products_apply;                                     /* products.c */

/* products.c: all of a product but its dtype and symmetry. */
int products_extents(struct compiler *c, uint32_t column, const struct shape *left,
                     const struct shape *right, struct program_product *ret) GAD_MUST_CHECK;

/* axes.c: that all of the node's index()s are axes of `shape`, in which it is evaluated, and its
 * random numbers as many as that has elements. */
int axes_check(struct compiler *c, uint16_t node, const struct shape *shape) GAD_MUST_CHECK;

/* graph.c, and with reductions and scans reducing.c */
struct node graph_key(enum node_kind kind, enum dtype dtype);
int graph_find_or_add(struct compiler *c, const struct node *key, uint16_t *ret) GAD_MUST_CHECK;
/* A scan that is no whole output. */
int graph_used_scan(struct compiler *c, uint32_t column, enum op op);
int graph_init(struct compiler *c, size_t n_chars) GAD_MUST_CHECK;
int graph_input(struct compiler *c, uint16_t arg, bool is_transposed, uint16_t *ret) GAD_MUST_CHECK;
int graph_index(struct compiler *c, int64_t axis, uint16_t *ret) GAD_MUST_CHECK;
/* The element's number, of a shape of its own or of none. */
int graph_flat_index(struct compiler *c, bool is_sized, uint16_t shape,
                     uint16_t *ret) GAD_MUST_CHECK;
int graph_const(struct compiler *c, enum dtype dtype, union scalar value, uint16_t shape,
                uint16_t *ret) GAD_MUST_CHECK;
/* Folds constants. The column is for shapes that do not fit together. */
int graph_op(struct compiler *c, uint32_t column, enum op op, enum dtype compute, enum dtype dtype,
             unsigned n_src, const uint16_t *src, uint16_t *ret) GAD_MUST_CHECK;
int graph_cast(struct compiler *c, uint16_t src, enum dtype dtype, uint16_t *ret) GAD_MUST_CHECK;
/* axes: bits of the source's; the result has the others, or all where keeps_dims. */
int graph_reduce(struct compiler *c, enum op op, enum dtype dtype, uint16_t src, uint32_t axes,
                 bool keeps_dims, uint16_t *ret) GAD_MUST_CHECK;
/* The same in a pass of the shape `over`, to which the source broadcasts. */
int graph_reduce_over(struct compiler *c, enum op op, enum dtype dtype, uint16_t src, uint16_t over,
                      uint32_t axes, bool keeps_dims, uint16_t *ret) GAD_MUST_CHECK;
/* SUM of floats that is -0 where all terms are. */
int graph_sum_from_minus_zero(struct compiler *c, uint16_t src, uint32_t axes, bool keeps_dims,
                              uint16_t *ret) GAD_MUST_CHECK;
/* KTH of the source, beside which the result is read. */
int graph_kth(struct compiler *c, uint16_t src, uint32_t axes, bool keeps_dims,
              const struct kth_place *place, uint16_t *ret) GAD_MUST_CHECK;
/* bins: int64; weights: float64 or NODE_NONE. */
int graph_bincount(struct compiler *c, uint16_t bins, uint16_t weights, uint16_t over,
                   uint32_t axes, bool keeps_dims, uint32_t n_bins, bool is_cumulative,
                   uint16_t *ret) GAD_MUST_CHECK;
/* CUMSUM or CUMPROD of the source, computed in `compute` and stored as `dtype`. */
int graph_scan(struct compiler *c, enum op op, enum dtype compute, enum dtype dtype, uint16_t src,
               int axis, uint16_t *ret) GAD_MUST_CHECK;
/* A table: the node as a reduction of one axis, of length n. It is evaluated in a pass of the shape
 * (1, n), to which it broadcasts: an index(-1) in it counts the table's elements. */
int graph_table(struct compiler *c, uint16_t src, int64_t n, uint16_t *ret) GAD_MUST_CHECK;
bool graph_is_lookup(enum op op); /* its second source is a table */
/* The axes of a shape that are left when `axes` are reduced. */
int graph_shape_reduced(struct compiler *c, uint16_t shape, uint32_t axes, bool keeps_dims,
                        uint16_t *ret) GAD_MUST_CHECK;
/* is_kept: dims outlive the compiler. */
int graph_shape(struct compiler *c, uint32_t column, int ndim, const int64_t *dims, bool is_kept,
                uint16_t *ret) GAD_MUST_CHECK;

/* lower.c: operations in a row. After a failure, which `r` keeps, the others do nothing. */
struct lower {
    struct compiler *c;
    const struct ast_node *n; /* that is lowered: errors name its column */
    int r;
};
uint16_t lower_value(struct lower *l, const struct value *v, enum dtype dtype);
uint16_t lower_float(struct lower *l, enum dtype dtype, double number);
uint16_t lower_cast(struct lower *l, uint16_t src, enum dtype dtype);
/* In the dtype of their (last) source; predicates and comparisons give a bool. */
uint16_t lower_unary(struct lower *l, enum op op, uint16_t a);
uint16_t lower_binary(struct lower *l, enum op op, uint16_t a, uint16_t b);
uint16_t lower_where(struct lower *l, uint16_t condition, uint16_t a, uint16_t b);
/* SEARCH_LEFT, SEARCH_RIGHT (of one dtype: float64, int64 or uint64) and TAKE (of int64) in a table
 * of graph_table(). */
uint16_t lower_lookup(struct lower *l, enum op op, uint16_t a, uint16_t table);
uint16_t lower_table(struct lower *l, uint16_t src, int64_t n);
/* A float to an unsigned integer of as many bits, and back. */
uint16_t lower_ordered_key(struct lower *l, uint16_t a);
uint16_t lower_from_ordered_key(struct lower *l, uint16_t a);
/* l->r; and the node as the value. */
int lower_finish(const struct lower *l, uint16_t node, struct value *ret) GAD_MUST_CHECK;

/* scans.c: the scan as an output of another dtype. */
int scans_fit(struct compiler *c, uint16_t scan, enum dtype to, uint16_t *ret) GAD_MUST_CHECK;
/* lookups.c: elements of an array of one axis; the index, int64, is in its bounds. */
uint16_t lookups_take(struct lower *l, uint16_t array, uint16_t index);
/* That a node has one axis; its length. `name`: the argument's, for errors. */
int lookups_length(struct compiler *c, const struct ast_node *n, uint16_t node, const char *name,
                   int64_t *ret) GAD_MUST_CHECK;

/* fold.c: false when it is left to the engine. */
bool fold_op(enum op op, enum dtype compute, const union scalar *src, union scalar *ret);
bool fold_cast(enum dtype from, union scalar value, enum dtype to, union scalar *ret);

/* narrow.c: the same operation before the casts of its sources instead of behind them. */
struct narrowed {
    enum op op;
    enum dtype compute;
    uint16_t src[3];
};
/* Whether there is one, which then gives the same to the bit. */
int narrow_op(struct compiler *c, enum op op, enum dtype compute, unsigned n_src,
              const uint16_t *src, bool *ret_is_narrower, struct narrowed *ret) GAD_MUST_CHECK;
/* Whether every value of `from` is one of `to`. */
bool narrow_is_lossless(enum dtype from, enum dtype to);
/* The node that may be cast to `dtype` in place of `src`, a cast itself perhaps. */
uint16_t narrow_cast_source(const struct graph *g, uint16_t src, enum dtype dtype);

/* checks.c: what a job ends with where `wrong`, a bool of each element of the shape `over` (to
 * which it broadcasts), is true anywhere. `found` stands behind the number of such elements. The
 * message begins with the operation's name. */
int checks_add(struct compiler *c, const struct ast_node *n, uint16_t wrong, uint16_t over,
               const char *message, const char *expected, const char *found) GAD_MUST_CHECK;
/* Likewise where one of the indices, uint64, is not below the length of what they are of;
 * is_signed: it has been added to those that were below 0. */
int checks_add_indices(struct compiler *c, const struct ast_node *n, uint16_t indices,
                       uint16_t over, bool is_signed, int64_t length) GAD_MUST_CHECK;

/* passes.c: what is computed in which pass. A root is an output or a reduction. */
struct root {
    uint16_t node;    /* that is stored, reduced or scanned */
    uint16_t weights; /* that goes with it, or NODE_NONE */
    uint16_t level, shape;
    uint16_t target; /* the output's index, or the reduction's node */
    uint16_t scan;   /* an output's NODE_SCAN, or NODE_NONE */
    uint16_t kth_of; /* KTH: one more than the node that it is of; else 0 */
    bool is_output;
    uint32_t reduced_axes; /* or the one that is scanned */
};

#define SCHEDULE_MAX_ROOTS (REQUEST_MAX_OUTPUTS + PROGRAM_MAX_REDUCTIONS)

struct schedule {
    struct root roots[SCHEDULE_MAX_ROOTS]; /* those of one pass are neighbours */
    uint16_t n_roots;
    uint16_t n_passes;
    uint16_t n_scans; /* roots that are */
    uint16_t first_root[PROGRAM_MAX_PASSES + 1];
};

/* passes.c; and product_passes.c where there is a product. Sets the state of all nodes that are
 * needed. */
int passes_assign(struct compiler *c, struct schedule *ret) GAD_MUST_CHECK;
/* The arguments, a bit for each, that storing the output could overwrite. */
uint64_t passes_overwritten(const struct job_request *request, unsigned output);
/* Are there any of them that `reads` names? */
bool passes_may_overwrite(const struct compiler *c, const struct root *output, uint64_t reads);

/* product_passes.c: whether an output has a product, or transposed arguments, where they may be. */
int product_passes_check(struct compiler *c, unsigned output) GAD_MUST_CHECK;
void product_passes_assign(const struct compiler *c, struct schedule *ret);
/* When the passes are there: what the draft says of the product. */
int product_passes_finish(struct compiler *c, struct program *draft) GAD_MUST_CHECK;

/* emit.c: one pass into the draft. */
struct emitter {
    struct compiler *c;
    struct program draft; /* arrays in the arena */
    uint32_t used_registers, most_registers;
    uint32_t max_insns;
    uint16_t *stack;
};

int emit_pass(struct emitter *e, struct pass *pass, const struct root *roots,
              unsigned n_roots) GAD_MUST_CHECK;

/* assemble.c */
int assemble_program(struct compiler *c, const struct schedule *schedule,
                     struct program **ret) GAD_MUST_CHECK;
