/* Adding to the graph (graph.c; reductions and scans: reducing.c), and what it is made smaller by:
 * constants are folded (fold.c), types widened late (narrow.c). */
#pragma once

#include "kernels/expr/compiler.h"

struct graph_node graph_key(enum node_kind kind, enum dtype dtype);
int graph_find_or_add(struct compiler *c, const struct graph_node *key,
                      uint16_t *ret) GAD_MUST_CHECK;
/* A scan that is no whole output. */
int graph_used_scan(struct compiler *c, uint32_t column, enum op op);
int graph_init(struct compiler *c, size_t n_chars) GAD_MUST_CHECK;
int graph_input(struct compiler *c, uint16_t arg, bool is_transposed, uint16_t *ret) GAD_MUST_CHECK;
/* Of a repeat, as graph.h says; `like`: shape, level and reads. */
int graph_stepped(struct compiler *c, uint32_t arg, enum dtype dtype, const struct graph_node *like,
                  uint16_t *ret) GAD_MUST_CHECK;
/* Whether the input is read elsewhere than at its own places. */
static inline bool graph_is_moved(const struct graph *g, const struct graph_node *input)
{
    for (int i = 0; input->near != 0 && i < g->shapes[input->shape].ndim; i++)
        if (g->shifts[input->near - 1]->offsets[i] != 0)
            return true;
    return false;
}
/* The argument of such an input with these offsets in place of its own. */
int graph_near(struct compiler *c, uint16_t input, const struct near_shift *shift,
               uint16_t *ret) GAD_MUST_CHECK;
/* What the window gives of a source. */
int graph_window(struct compiler *c, uint32_t column, const struct window *window, uint16_t src,
                 uint16_t *ret) GAD_MUST_CHECK;
/* The same instruction of other sources. */
int graph_remake(struct compiler *c, uint32_t column, uint16_t node, const uint16_t *src,
                 uint16_t *ret) GAD_MUST_CHECK;
/* column: of what says so, for axes_check(). */
int graph_index(struct compiler *c, uint32_t column, int64_t axis, uint16_t *ret) GAD_MUST_CHECK;
/* The element's number, of a shape of its own or of none. */
int graph_flat_index(struct compiler *c, bool is_sized, uint16_t shape,
                     uint16_t *ret) GAD_MUST_CHECK;
int graph_const(struct compiler *c, enum dtype dtype, union scalar value, uint16_t shape,
                uint16_t *ret) GAD_MUST_CHECK;
/* Folds constants. The column is for shapes that do not fit together. */
int graph_op(struct compiler *c, uint32_t column, enum op op, enum dtype compute, enum dtype dtype,
             unsigned n_src, const uint16_t *src, uint16_t *ret) GAD_MUST_CHECK;
int graph_cast(struct compiler *c, uint16_t src, enum dtype dtype, uint16_t *ret) GAD_MUST_CHECK;
/* A loop: its states, their steps (before: of the state before it, or NODE_NONE), which change
 * while the condition, a bool, does not hold; what the state of this number is at its end. */
int graph_state(struct compiler *c, uint32_t column, uint16_t first, unsigned number,
                uint16_t *ret) GAD_MUST_CHECK;
int graph_step(struct compiler *c, uint32_t column, uint16_t state, uint16_t next, uint16_t before,
               uint16_t *ret) GAD_MUST_CHECK;
int graph_loop(struct compiler *c, uint32_t column, uint16_t until, uint16_t last_step,
               uint32_t n_steps, uint16_t *ret) GAD_MUST_CHECK;
int graph_result(struct compiler *c, uint16_t loop, unsigned number, enum dtype dtype,
                 uint16_t *ret) GAD_MUST_CHECK;
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
              const struct kth_rank *place, uint16_t *ret) GAD_MUST_CHECK;
/* bins: int64; weights: float64 or NODE_NONE. */
int graph_bincount(struct compiler *c, uint16_t bins, uint16_t weights, uint16_t over,
                   uint32_t axes, bool keeps_dims, uint32_t n_bins, bool is_cumulative,
                   uint16_t *ret) GAD_MUST_CHECK;
/* CUMSUM or CUMPROD of the source, computed in `compute` and stored as `dtype`. */
int graph_scan(struct compiler *c, enum op op, enum dtype compute, enum dtype dtype, uint16_t src,
               int axis, uint16_t *ret) GAD_MUST_CHECK;
/* QR_R of a matrix of float64, with a column behind it (of float64, that broadcasts to it) or
 * NODE_NONE; n_columns: of both together. */
int graph_qr(struct compiler *c, uint16_t src, uint16_t column, uint32_t n_columns,
             uint16_t *ret) GAD_MUST_CHECK;
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
