/* The kernels: contiguous arrays in, one contiguous array out, in tables per dispatch level.
 *
 * Every kernel source is compiled once per level; each compilation gives one constant table a file
 * (arith_plain, arith_avx2, ...), indexed by op and computing dtype. A hole in a level's table
 * means that the plain kernel is as good. There is no mutable state.
 *
 * Contract of a kernel: `n` elements count, and every buffer has room for n rounded up to
 * KERNEL_GRANULE, all of which are read and written: a tail goes through the same vector code as
 * the rest, and its bits are the same as elsewhere. Buffers are aligned to their element. `dst` may
 * be exactly a source when the element sizes are equal; otherwise buffers do not overlap. Events
 * are counted over n elements exactly. Sources may be memory that another process writes to:
 * whatever they read can make a result wrong, but must never trap.
 */
#pragma once

#include "kernels/common/kth_rank.h"
#include "proto/dtype.h"
#include "kernels/ops.h"

#define KERNEL_GRANULE 64

struct kernel_events {
    uint64_t n_divide_by_zero;
    uint64_t n_invalid_casts;
    bool has_negative_power;
};

typedef void kernel_fn(size_t n, void *dst, const void *a, const void *b, const void *c,
                       struct kernel_events *events);

/* The tables `past_*` hold second kernels of functions that are faster than memory, with the same
 * results: `n` is a multiple of KERNEL_GRANULE, and `dst`, which begins a line of the cache, is
 * written past it (see move_kernels.stream). Only the table's ops and dtypes have one.
 *
 * The tables `drawn_*` and `past_drawn_*` hold kernels of random bits, and of the distributions by
 * their bits' dtype, for elements whose numbers count up by one: `a` is the number of the first
 * element alone, `b` the seed and `c` the stream; `dst` overlaps none of them.
 *
 * By op and computing dtype; GREATER and GREATER_EQUAL are LESS and LESS_EQUAL with the sources
 * exchanged, CAST has tables of its own. */
typedef kernel_fn *kernel_table[OP_COUNT][DTYPE_COUNT];
typedef kernel_fn *kernel_casts[DTYPE_COUNT][DTYPE_COUNT]; /* from, to */
typedef kernel_fn *kernel_row[OP_COUNT];                   /* int64 compared with uint64 */

/* A chain works on n elements, from element `first` of every source on: source s is at address[s].
 * A step takes the value and gives the next one; the first step gives one. Each is rounded. Of a
 * number KERNEL_GRANULE elements are at its address, whatever `first` and n are. `dst` may be
 * exactly a source; it is as the kernels' above, past the cache as those of the tables `past_*`.
 */
enum chain_op {
    CHAIN_LOAD,    /* a */
    CHAIN_PRODUCT, /* a * b */
    CHAIN_ADD,
    CHAIN_SUBTRACT,
    CHAIN_SUBTRACT_IT, /* a - value */
    CHAIN_MULTIPLY,
    CHAIN_ADD_PRODUCT, /* value + a * b, both rounded */
    CHAIN_SUBTRACT_PRODUCT,
    CHAIN_SUBTRACT_IT_OF_PRODUCT, /* a * b - value */
    CHAIN_OF_NUMBER = 16,         /* a bit: the last source is the same for all elements */
};
struct chain_step {
    uint16_t op, a, b; /* b: a where there is one source */
};
typedef void chain_fn(size_t n, void *dst, size_t first, void *const *address,
                      const struct chain_step *steps, unsigned n_steps);
struct chain_kernels { /* by dtype; NULL: the kernels go one by one */
    chain_fn *kernel[DTYPE_COUNT], *past[DTYPE_COUNT];
};

/* A reduction's running state over one row of elements, which may come in several pieces: all but
 * the last have a multiple of KERNEL_GRANULE elements. Nothing beyond a piece's n elements is
 * read. */
#define REDUCE_LEVELS 40
/* Floats that are added up, see reduce_sums.c: lanes of a block, and its elements, a multiple of
 * KERNEL_GRANULE. */
#define REDUCE_SUM_LANES 16
#define REDUCE_SUM_BLOCK 256
struct reduce_state {
    uint64_t n_blocks;
    bool has_value;
    double shift;                      /* SQUARED_DEVIATIONS: what elements are counted from */
    double stack[2][REDUCE_LEVELS];    /* SUM, PROD of floats: [0][i] holds 2^i blocks;
                                          SQUARED_DEVIATIONS: differences and their squares */
    double lanes[2][REDUCE_SUM_LANES]; /* sums of floats: of the n_taken elements of the block that
                                          is not full yet; nothing where there are none */
    unsigned n_taken;
    union { /* all others */
        double f64;
        float f32;
        int64_t i64;
        uint64_t u64;
    };
    int64_t index;
};
typedef void reduce_fn(size_t n, const void *src, struct reduce_state *state);

/* ARGMIN and ARGMAX: element i is at position first + i * step. extremum: the level's kernel for
 * MIN or MAX of the dtype. */
typedef void argument_fn(size_t n, const void *src, int64_t first, int64_t step,
                         reduce_fn *extremum, struct reduce_state *state);
typedef argument_fn *argument_table[OP_COUNT][DTYPE_COUNT];

/* The same of one row for several reductions at once, each with its state, which are left as by
 * their own kernels. By `op` of the table, of floats: SUM or SQUARED_DEVIATIONS (`added`) with MIN
 * and MAX, either of which may be NULL. Where a level has none, each is to be taken by itself. */
typedef void reduce_fused_fn(size_t n, const void *src, struct reduce_state *added,
                             struct reduce_state *min, struct reduce_state *max);
typedef reduce_fused_fn *reduce_fused_table[OP_COUNT][DTYPE_COUNT];

/* Rows of REDUCE_SUM_LANES to REDUCE_SUM_BLOCK elements, one behind the other: values[i], of the
 * plane's dtype, of row i, as the row's own kernels make it. By op and dtype; NULL: there is none,
 * and each row is taken by itself. */
typedef void short_rows_fn(size_t n_rows, size_t n, const void *src, void *values);
typedef short_rows_fn *short_rows_table[OP_COUNT][DTYPE_COUNT];

/* Rows whose elements belong to cells: element i of every row goes into value[i] (and second[i]),
 * one row after the other. is_first: the first row's elements begin the values. Strides in bytes;
 * elements of a row are neighbours. Nothing else is read. */
struct reduce_rows {
    size_t n_rows, n_cells;
    const char *src;
    int64_t row_bytes;
    const int64_t *indices; /* ARGMIN and ARGMAX: positions, n_cells to a row */
    void *value, *second;
    const double *shift; /* SQUARED_DEVIATIONS: of each cell */
    bool is_first;
};
typedef void rows_fn(const struct reduce_rows *rows);

typedef reduce_fn *reduce_table[OP_COUNT][DTYPE_COUNT];
typedef rows_fn *rows_table[OP_COUNT][DTYPE_COUNT];

/* Running results, 8 bytes each: of a row of n elements and one state; of n_rows rows whose element
 * i belongs to state i, of n. By dtype. */
typedef void scan_fn(size_t n, void *dst, const void *src, void *state);
typedef void scan_rows_fn(size_t n_rows, size_t n, void *dst, const void *src, void *states);
struct scan_kernels {
    scan_fn *along[DTYPE_COUNT];
    scan_rows_fn *across[DTYPE_COUNT];
};

/* Byte order and bool bytes, for loading and storing; `dst` may be `src`. stream: n bytes, any
 * alignment, no overlap, nothing beyond them is touched; whole lines of `dst` go past the cache
 * where the processor can, and are in order for other threads after cpu_engine_fence(). */
typedef void move_fn(size_t n, void *dst, const void *src);
struct move_kernels {
    move_fn *swap[4];   /* by log2 of the item size; [0] is NULL */
    move_fn *normalise; /* any byte other than 0 becomes 1 */
    move_fn *stream;
};

/* The elements at some places of the sorted order of n keys: of each of n_columns columns, whose
 * keys lie `step` apart, or of a row of neighbours. results[k]: those at places[k], one for each
 * column. RANKS_BLOCK_BYTES of each row of columns are read, however few columns there are. By
 * dtype: uint32, uint64. */
#define RANKS_BLOCK_BYTES 128
struct ranked_place {
    struct kth_rank kth;
    bool is_near; /* the element of the place before it, or the next one */
};
struct ranked {
    size_t n, step; /* in keys */
    size_t n_columns;
    unsigned n_places;
    bool has_counts; /* some places follow from how many elements are no NaN */
    const struct ranked_place *places;
    void *const *results;
};
typedef void ranks_fn(const struct ranked *r, const void *src);
struct rank_kernels {
    move_fn *keep[2]; /* n keys, as the others want them */
    ranks_fn *columns[2], *row[2];
};

/* Blocks whose rows become columns: column k of row i of `src` becomes element i of row k of `dst`.
 * Elements of a row are neighbours on both sides; rows lie so many bytes apart, any number. The
 * sides do not overlap; any alignment. By log2 of the item size. */
struct transposing {
    size_t n_rows, n_columns; /* of src */
    const char *src;
    int64_t src_row;
    char *dst;
    int64_t dst_row;
};
typedef void transpose_fn(const struct transposing *t);
struct transpose_kernels {
    transpose_fn *by_item[4];
};

#define KERNELS_DECLARE(level)                                                                     \
    extern const kernel_table arith_##level, integer_##level, compare_##level, math_##level,       \
        special_##level, bits_##level, modulo_##level, random_##level, past_##level,               \
        table_##level, key_##level, drawn_##level, past_drawn_##level;                             \
    extern const kernel_casts casts_##level;                                                       \
    extern const kernel_row mixed_##level;                                                         \
    extern const struct chain_kernels chains_##level;                                              \
    extern const reduce_table reduce_##level, sums_##level, extrema_##level;                       \
    extern const reduce_fused_table fused_##level;                                                 \
    extern const rows_table rows_##level;                                                          \
    extern const short_rows_table short_rows_##level;                                              \
    extern const struct scan_kernels scan_sum_##level, scan_prod_##level;                          \
    extern const struct move_kernels move_##level;                                                 \
    extern const struct transpose_kernels transpose_##level;                                       \
    extern const struct rank_kernels ranks_##level;

KERNELS_DECLARE(plain)
KERNELS_DECLARE(baseline)
KERNELS_DECLARE(avx2)
KERNELS_DECLARE(avx512)

/* Kernels that no vector unit helps; part of the plain level. */
extern const kernel_table scalar_kernels;
/* ARGMIN and ARGMAX, the same at all levels. */
extern const argument_table argument_kernels;
extern const rows_table argument_rows;
