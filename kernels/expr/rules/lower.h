/* Operations that are written with others: one step a line. */
#pragma once

#include "kernels/expr/compiler.h"

/* After a failure, which `r` keeps, the others do nothing. */
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
