/* From the graph to the program: which pass computes what, each pass as instructions, and the
 * program that is made of them. */
#pragma once

#include "kernels/expr/compiler.h"

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
    uint16_t target;  /* the output's index, or the reduction's node */
    uint16_t scan;    /* an output's NODE_SCAN, or NODE_NONE */
    uint16_t kth_of;  /* KTH: one more than the node that it is of; else 0 */
    uint16_t product; /* whose pass it is in: one more than its number; 0: no product's */
    uint8_t part;     /* enum product_pass; of a slab, which of its passes */
    uint8_t slab;     /* whose pass it is in: one more than its number; 0: no slab's */
    bool is_output;
    bool is_own;           /* an output of a product's or a slab's own */
    uint32_t products;     /* bits: those that its pass reads */
    uint32_t reduced_axes; /* or the one that is scanned */
};

#define SCHEDULE_MAX_ROOTS                                                                         \
    (REQUEST_MAX_OUTPUTS + PROGRAM_MAX_REDUCTIONS + PRODUCT_N_PASSES * PROGRAM_MAX_PRODUCTS +      \
     PROGRAM_MAX_SLABS * SLAB_MAX_VALUES)
/* Of a node's state: it is needed; slab_find.c: it is what something needed was before it was
 * turned; while what a root reads is looked at. */
#define SCHEDULE_IS_NEEDED 0x01
#define SCHEDULE_IS_MIRROR 0x02
#define SCHEDULE_IS_BELOW  0x80

struct scheduled_product {
    uint16_t node;
    uint16_t level; /* of its passes */
    bool is_kept;
    uint16_t first_output, first_pass;
};

struct scheduled_slab {
    struct program_slab slab;
    uint16_t level;
    uint16_t nodes[SLAB_MAX_VALUES]; /* of values that steps give; NODE_NONE */
};

struct schedule {
    struct root roots[SCHEDULE_MAX_ROOTS]; /* those of one pass are neighbours */
    uint16_t n_roots;
    uint16_t n_passes;
    uint16_t n_reductions; /* roots that are, or are scans */
    uint16_t first_root[PROGRAM_MAX_PASSES + 1];
    uint16_t n_products;
    struct scheduled_product products[PROGRAM_MAX_PRODUCTS]; /* as their passes follow each other */
    uint16_t n_slabs;
    struct scheduled_slab slabs[PROGRAM_MAX_SLABS];
    uint16_t n_all_outputs;
};

/* passes.c. Sets the state of all nodes that are needed. */
int passes_assign(struct compiler *c, struct schedule *ret) GAD_MUST_CHECK;
/* The arguments, a bit for each, that storing the output could overwrite. */
uint64_t passes_overwritten(const struct job_request *request, unsigned output);
/* Are there any of them that `reads` names? */
bool passes_may_overwrite(const struct compiler *c, const struct root *output, uint64_t reads);

/* product_passes.c: whether an output has transposed arguments where they may be. */
int product_passes_check(struct compiler *c, unsigned output) GAD_MUST_CHECK;
/* One more product; then, when all roots but those of products are there, theirs. */
int product_passes_add(struct compiler *c, struct schedule *s, uint16_t node) GAD_MUST_CHECK;
void product_passes_place(const struct compiler *c, struct schedule *s);
/* When their passes are known. */
void product_passes_order(struct schedule *s);
/* When the passes are there: what the draft says of the products, behind all reductions. */
int product_passes_finish(struct compiler *c, const struct schedule *s,
                          struct program *draft) GAD_MUST_CHECK;

/* product_passes.c: whether b is a transposed, element for element. */
int product_passes_mirror(struct compiler *c, uint16_t a, uint16_t b, bool *ret) GAD_MUST_CHECK;

/* passes.c: how many of PROGRAM_MAX_REDUCTIONS are taken, by so many of the walks by slabs, too. */
unsigned schedule_n_results(const struct schedule *s, unsigned n_slabs);

/* slab_find.c: which products are steps of slabs, when all outputs are roots and the state says
 * which nodes are needed. slab_results.c: what these store to; what the draft says of them, behind
 * all products. */
int slabs_find(struct compiler *c, struct schedule *s) GAD_MUST_CHECK;
void slabs_place(struct schedule *s);
void slabs_number(struct compiler *c, const struct schedule *s, uint16_t first_reduction);
void slabs_finish(struct compiler *c, const struct schedule *s, struct program *draft);

/* stepping.c: repeats. What is behind a node that is what a repeat gives: its state is set in the
 * nodes of the repeat's passes. */
void stepping_mark(struct compiler *c, const struct graph_node *n, uint8_t state);
/* emit.c: one pass into the draft. */
struct emitter {
    struct compiler *c;
    struct program draft; /* arrays in the arena */
    uint32_t used_registers, most_registers;
    uint32_t max_insns, max_nears;
    bool is_inner; /* what is emitted is a repeat's */
    uint16_t *stack;
    bool is_in_loop;                       /* in the steps of one */
    uint16_t windows[PROGRAM_MAX_WINDOWS]; /* their nodes */
    uint32_t near_column;                  /* of the first one of the pass at hand, kept */
};

/* Of the first of these windows, bits; kept. */
static inline uint32_t emit_window_column(const struct emitter *e, uint64_t windows)
{
    const struct graph *g = &e->c->graph;
    return g->windows[g->nodes[e->windows[__builtin_ctzll(windows)]].window]->column;
}

/* That what the pass reads of earlier ones is not too much. */
int emit_check_results(struct emitter *e, const struct pass *pass) GAD_MUST_CHECK;
int emit_pass(struct emitter *e, struct pass *pass, const struct root *roots,
              unsigned n_roots) GAD_MUST_CHECK;

/* emit.c, for loops.c. Of a node, and of what it needs; base: where the stack is free. */
int emit_tree(struct emitter *e, struct pass *pass, uint16_t root, unsigned base) GAD_MUST_CHECK;
int emit_operand(struct emitter *e, struct pass *pass, struct graph_node *n,
                 struct operand *ret) GAD_MUST_CHECK;
/* To a register, by an operation that leaves every value as it is. */
int emit_copy(struct emitter *e, struct operand *operand) GAD_MUST_CHECK;
enum op emit_copy_op(enum dtype dtype);         /* of twice the same */
struct insn *emit_next_insn(struct emitter *e); /* NULL: there are too many, the error says so */
bool emit_is_done(const struct graph_node *n);
void emit_set_done(struct graph_node *n, bool is_done);

/* loops.c: a loop of which a pass reads a result. What it needs has a use more each; what of that
 * is not there yet is pushed; then it is emitted. */
void loops_count_uses(struct emitter *e, uint16_t loop);
unsigned loops_push_sources(struct emitter *e, uint16_t loop, unsigned depth);
int loops_emit(struct emitter *e, struct pass *pass, uint16_t loop, unsigned base) GAD_MUST_CHECK;
/* stepping.c: numbers for the repeats that are needed and their states, before any pass is emitted;
 * their passes, behind all others. */
int stepping_number(struct emitter *e) GAD_MUST_CHECK;
/* The output that a state is stored to. */
uint16_t stepping_output(const struct compiler *c, uint32_t arg);
int stepping_emit(struct emitter *e) GAD_MUST_CHECK;

/* assemble.c */
int assemble_program(struct compiler *c, const struct schedule *schedule,
                     struct program **ret) GAD_MUST_CHECK;
