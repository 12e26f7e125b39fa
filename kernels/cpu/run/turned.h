/* Reductions along short rows, many of them at once. */
#pragma once

#include "kernels/cpu/run/reducer.h"

#define TURNED_MAX_ROWS 64

/* Of whole rows, at most TURNED_MAX_ROWS of them: values and second values, and those of the MIN
 * and MAX that go with a sum. Of the plane's dtype, densely. */
struct gathered {
    uint64_t values[TURNED_MAX_ROWS], seconds[TURNED_MAX_ROWS];
    uint64_t extrema[2][TURNED_MAX_ROWS];
};

/* Whether n_rows rows of n elements are better taken together; always, where they are shorter than
 * REDUCER_SHORT_ROW. */
bool turned_suits(const struct reducing *d, size_t n, size_t n_rows);

/* n_rows rows of n elements one behind the other, of cells that follow on each other from `cell`
 * on. positions: of the elements; NULL, or where rows are shorter than REDUCER_SHORT_ROW. */
void turned_take(const struct reducing *d, uint64_t cell, size_t n, size_t n_rows, const char *src,
                 const int64_t *positions, struct gathered *g);
