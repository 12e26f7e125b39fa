/* Scans of a box along one axis, strip by strip in visiting order. */
#pragma once

#include "kernels/cpu/engine.h"
#include "kernels/cpu/levels/kernels.h"

/* A box in visiting order: n_outer times n_length rows of n_inner elements; the rows follow on each
 * other along the scanned axis. */
struct scanner {
    uint64_t n_length, n_inner;
    bool is_beginning; /* the box begins where the axis does */
};
void scanner_init(struct scanner *s, const struct engine_box *box, unsigned scanned_axis);

/* One scan of a pass. */
struct scanning {
    const struct reduction *reduction;
    scan_fn *along;
    scan_rows_fn *across;
    unsigned item_log2;
    uint16_t src;
    uint64_t identity; /* the bits of a state that has taken in nothing */
    /* Its states: merged axes of the box without the scanned one, from the fastest on. */
    char *states;
    int n;
    int64_t count[ARRAY_MAX_NDIM + 1], stride[ARRAY_MAX_NDIM + 1];
    void *buffer; /* a strip of running results */
};
void scanning_init(struct scanning *d, const struct reduction *reduction,
                   const struct engine_box *box, unsigned scanned_axis,
                   const struct engine_view *states);

/* Elements [first, first + n) of the box, to the buffer; states go on. */
void scanning_take(const struct scanner *s, struct scanning *d, uint64_t first, size_t n,
                   const void *src);
