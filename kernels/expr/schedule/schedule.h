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
