/* Rows of a source by number, in any order, with repeats: each place on the way is visited once. */
#pragma once

#include "client/rows/row_order.h"
#include "client/rows/row_source.h"

#include <stdatomic.h>

/* Where rows go: wanted row i to base i / rows_per_base, as its row i % rows_per_base. */
struct row_target {
    char *const *bases;
    uint64_t rows_per_base;
    size_t stride_bytes;
};

static inline char *row_target_place(const struct row_target *target, uint64_t place)
{
    return target->bases[place / target->rows_per_base] +
           place % target->rows_per_base * target->stride_bytes;
}

/* Rows that could not be read. */
struct row_failure {
    int64_t first, n;
    int error_number;
};

struct gather_options {
    unsigned n_threads; /* 0: as many as help */
    /* Not NULL: a failure does not end the gather; where a wanted row was not read its byte is set.
     * Zeroed by the caller. */
    uint8_t *failed;
    uint8_t mark; /* that byte; not 0 */
    /* Becomes true when nobody wants the rows any more; may be NULL. */
    const atomic_bool *is_cancelled;
    /* Called while another process brings the rows, at most once; may be NULL. */
    void (*meanwhile)(void *state);
    void *meanwhile_state;
};

/* Fills the target with the rows of an order. ret_failure (n 0: none) is the first one. 0, a
 * positive errno; ECANCELED. */
int gather(struct row_source *source, const struct row_order *order,
           const struct row_target *target, const struct gather_options *options,
           struct row_failure *ret_failure) GAD_MUST_CHECK;
