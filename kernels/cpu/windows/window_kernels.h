/* Windows over lanes: WINDOW_LANES lines side by side, of which each row has one element. */
#pragma once

#include "kernels/ops.h"
#include "proto/dtype.h"

#include <stddef.h>
#include <stdint.h>

#define WINDOW_LANES 16

/* Output i is made of the rows i to i + size - 1. Rows of any distance and alignment. */
struct window_lanes {
    const char *src;
    int64_t src_row; /* bytes */
    size_t n, size;
    size_t phase;      /* of row 0: its place along the axis, modulo the size */
    double each;       /* WINDOW_STD: how many elements a row stands for */
    double n_elements; /* of the whole window */
    void *suffix;      /* room for `size` times WINDOW_SUFFIX_BYTES */
    char *dst;
    int64_t dst_row;
};
#define WINDOW_ROW_BYTES    (2 * WINDOW_LANES * sizeof(double)) /* of what is computed in */
#define WINDOW_SUFFIX_BYTES (WINDOW_ROW_BYTES + 64)
typedef void window_slide_fn(const struct window_lanes *w);

/* Which axes a kernel is for: the first one reads elements, the last one stores results; between
 * them are rows of what is computed in. */
enum window_step { WINDOW_FIRST, WINDOW_AGAIN, WINDOW_LAST, WINDOW_ONLY, WINDOW_STEP_COUNT };

/* Outputs x of a row, each of the elements src[x + offsets[k]]; what lies behind the last one's
 * may be read as far as WINDOW_LANES go. */
struct window_taps {
    const void *src;
    const int64_t *offsets;
    size_t n_taps, n;
    const union scalar *weights; /* CORRELATE: float64 or, of integers, uint64 */
    int64_t ranks[2];            /* WINDOW_RANK */
    void *room;                  /* WINDOW_RANK: n_taps x WINDOW_LANES elements */
    void *dst;
};
typedef void window_taps_fn(const struct window_taps *t);

struct window_kernels {
    window_slide_fn *steps[WINDOW_STEP_COUNT][OP_COUNT][DTYPE_COUNT]; /* NULL: it goes by taps */
    window_taps_fn *taps[OP_COUNT][DTYPE_COUNT];
};

extern const struct window_kernels windows_plain, windows_baseline, windows_avx2, windows_avx512;
