/* Rows that are wanted, sorted by where they lie, or as they came. */
#pragma once

#include "proto/error.h"

#include <stdint.h>

struct wanted_row {
    int64_t row;
    uint64_t place; /* which of the wanted ones it is */
};

struct row_order {
    uint64_t n;
    struct wanted_row *wanted; /* by row; of one row by place. As they came: by place */
};

/* rows: n of them, in any order, with repeats; none is negative. -ENOMEM. */
int row_order_init(struct row_order *ret_order, uint64_t n, const int64_t *rows) GAD_MUST_CHECK;
/* As they came, for who brings rows in any order (row_source.h). */
int row_order_of_places(struct row_order *ret_order, uint64_t n,
                        const int64_t *rows) GAD_MUST_CHECK;
/* The rows of one that is as they came, sorted. */
int row_order_sorted(const struct row_order *order, struct row_order *ret_order) GAD_MUST_CHECK;
void row_order_deinit(struct row_order *order); /* zeroed is allowed */
/* The first one at or behind `from` whose row is not below `row`. */
uint64_t row_order_find(const struct row_order *order, uint64_t from, int64_t row);
