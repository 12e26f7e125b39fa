/* What functions of the catalogue offer to the rest of the compiler. */
#pragma once

#include "kernels/expr/rules/lower.h"

/* products.c: all of a product but its dtype and symmetry. */
int products_extents(struct compiler *c, uint32_t column, const struct shape *left,
                     const struct shape *right, struct program_product *ret) GAD_MUST_CHECK;

/* products.c: the product of two nodes whose shapes can be multiplied. */
int products_make(struct compiler *c, uint32_t column, const uint16_t *src,
                  uint16_t *ret) GAD_MUST_CHECK;
/* products.c: an operand as a node whose shape can be multiplied. */
int products_operand(struct compiler *c, const struct ast_node *n, const struct value *arg,
                     unsigned operand, uint16_t *ret) GAD_MUST_CHECK;
/* repeats.c: a state, where its steps are to be typed; and when all of them are: *ret_again is set
 * to the first of them where they are to be typed once more. */
int repeats_state(struct compiler *c, struct ast_node *n,
                  const struct value *initial) GAD_MUST_CHECK;
int repeats_apply(struct compiler *c, struct ast_node *n, uint32_t *ret_again) GAD_MUST_CHECK;
/* scans.c: the scan as an output of another dtype. */
int scans_fit(struct compiler *c, uint16_t scan, enum dtype to, uint16_t *ret) GAD_MUST_CHECK;
/* near.c: the same node, with inputs that are read with as much around each place as the shift
 * says; it has no offsets. */
int near_spread(struct compiler *c, const struct ast_node *n, uint16_t node,
                const struct near_shift *around, uint16_t *ret) GAD_MUST_CHECK;
/* near.c: what the argument `value` is for mode `constant`, as this dtype. */
int near_read_mode(struct compiler *c, const struct ast_node *n, enum dtype dtype,
                   unsigned *ret_mode, union scalar *ret_beyond) GAD_MUST_CHECK;
/* lookups.c: elements of an array of one axis; the index, int64, is in its bounds. */
uint16_t lookups_take(struct lower *l, uint16_t array, uint16_t index);
/* That a node has one axis; its length. `name`: the argument's, for errors. */
int lookups_length(struct compiler *c, const struct ast_node *n, uint16_t node, const char *name,
                   int64_t *ret) GAD_MUST_CHECK;
