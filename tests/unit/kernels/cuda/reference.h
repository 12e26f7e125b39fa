/* What reductions of a box must give, by one loop over its elements with long double. */
#pragma once

#include "kernels/reductions/reduce.h"
#include "tests/unit/kernels/cpu/check/laid.h"

/* A box of the pass's space. */
struct reference_box {
    const struct pass *pass;
    const struct shape *shape;
    const int64_t *start; /* NULL: 0 */
};

struct reference_cell {
    uint64_t n, n_nonzero, sum, product; /* of integers, wrapped */
    long double float_sum, size, largest, float_product, exponents, deviations;
    bool has_special; /* NaN or an infinity; not in size */
    int64_t argmin, argmax;
    char smallest_item[8], largest_item[8];
};

/* Of one operand, its elements in C order. Cells in visiting order of the kept axes. */
void reference_reduce(const struct reference_box *box, enum dtype dtype, const char *values,
                      struct reference_cell *ret_cells);
uint64_t reference_n_cells(const struct reference_box *box);
/* Whether a node's planes say what the cell says: to the bit, but for sums, products and squared
 * deviations of floats, which are near. */
bool reference_is_right(const struct reference_cell *cell, const struct reduce_layout *layout,
                        const void *node, unsigned reduction, uint64_t cell_index);
enum dtype reference_result(enum op op, enum dtype dtype);
