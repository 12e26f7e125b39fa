/* The compiled expression: what the compiler makes, the planner reads and the engines run.
 *
 * A program is a list of stages, done one after the other: a stage is a pass, or a matrix product
 * with its three passes (struct program_product), or a walk by slabs of rows with all products that
 * share the matrix (struct program_slab). What a stage gives, those behind it read.
 *
 * A pass walks one iteration space (its `shape`) once; in it every
 * instruction works on strips of elements: registers hold one strip each, inputs are read by
 * broadcasting, constants and results of earlier passes' reductions are uniform. Reductions end a
 * pass: their results are uniform operands of later passes. `sqrt(a*a)` is one pass;
 * `a - mean(a)` is two; the scalar arithmetic after a reduction is a pass of shape ().
 *
 * A pass reduces some of its axes, or all: its reductions have the same ones. A reduction gives an
 * array of the kept axes, in which the reduced ones are missing or of length 1; like an input it
 * is read by broadcasting, aligned to the right.
 *
 * index(axis) has no shape of its own; its axis is one of the pass that evaluates it, so of the
 * output, or of the array that is reduced, whatever the shape of the part that it stands in: in
 * `column + row * index(0)` it counts along the first axis of the sum.
 */
#pragma once

#include "kernels/common/kth_rank.h"
#include "kernels/common/near_place.h"
#include "proto/array.h"
#include "kernels/ops.h"
#include "proto/request.h"

#define PROGRAM_MAX_REGISTERS   32
#define PROGRAM_MAX_INSNS       1024 /* over all passes */
#define PROGRAM_MAX_CONSTS      256
#define PROGRAM_MAX_PASSES      40
#define PROGRAM_MAX_REDUCTIONS  64   /* over all passes */
#define PROGRAM_MAX_NEARS       2048 /* over all passes */
#define PROGRAM_MAX_CHECKS      8
#define PROGRAM_MAX_LOOPS       64 /* over all passes */
#define PROGRAM_MAX_PRODUCTS    (PROGRAM_MAX_PASSES / PRODUCT_N_PASSES)
#define PROGRAM_MAX_SLABS       4
#define SLAB_MAX_VALUES         60
#define SLAB_MAX_STEPS          60
#define SLAB_MAX_SINGLE_COLUMNS (32 * 1024) /* of X, for steps in float32 */
#define PROGRAM_MAX_REPEATS     8
#define PROGRAM_MAX_STATES      16 /* of all repeats */
#define REPEAT_MAX_STEPS        65535
/* Those of products, slabs and repeats, too; a state is stored by two passes. */
#define PROGRAM_MAX_OUTPUTS                                                                        \
    (REQUEST_MAX_OUTPUTS + PROGRAM_MAX_PASSES + PROGRAM_MAX_WINDOWS +                              \
     PROGRAM_MAX_SLABS * SLAB_MAX_VALUES + 2 * PROGRAM_MAX_STATES)
#define PROGRAM_MAX_WINDOWS      16
#define PROGRAM_MAX_MADE_WINDOWS 24   /* for one pass, each again for each window that reads it */
#define PROGRAM_MAX_WEIGHTS      4096 /* of the kernels of all windows */
#define WINDOW_MAX_SIZE          8192 /* along one axis */
#define WINDOW_MAX_RANKED        1024 /* elements of a window of which one is sought by its place */
#define PASS_MAX_REDUCTIONS      32
#define PASS_MAX_STORES          (REQUEST_MAX_OUTPUTS + 1) /* what a product keeps, too */
#define PASS_MAX_RESULTS         32                        /* that it reads, tables included */
#define PASS_MAX_TABLE_BYTES     (512u * 1024u)            /* of all tables that it reads */
#define PASS_MAX_NEARS           512

/* Of a cell in a pass with KTHs; 8 bytes in each input. */
#define PROGRAM_MAX_KTH_ELEMENTS 8192
#define PROGRAM_MAX_KTH_BYTES    (512u * 1024u)

/* Of one QR_R, and of all of a pass. For rows, as float64 and in an odd number of lines of eight
 * where these are more than two, and for groups of reflections there are PROGRAM_QR_BYTES. */
#define PROGRAM_MAX_QR_COLUMNS     1024
#define PROGRAM_MAX_ALL_QR_COLUMNS 2048
#define PROGRAM_QR_BYTES           (320u * 1024u)
#define PROGRAM_QR_LINE            8

enum operand_kind {
    OPERAND_NONE,
    OPERAND_REGISTER, /* index of a register of this pass */
    OPERAND_INPUT,    /* index into program->inputs, read at the pass's coordinates */
    OPERAND_CONST,    /* index into program->consts */
    OPERAND_REDUCED,  /* index into program->reductions: the result of an earlier pass, read at
                         the pass's coordinates; uniform where it has one element, but no product is
                       */
    OPERAND_INDEX,    /* index: an axis of the pass; the element's coordinate along it, int64; or
                         OPERAND_INDEX_FLAT */
    OPERAND_TABLE,    /* index into program->reductions: the whole result of an earlier pass, which
                         has one axis; SEARCH_LEFT, SEARCH_RIGHT and TAKE look things up in it */
    OPERAND_NEAR,     /* index into program->nears, of those of this pass */
    OPERAND_WINDOW,   /* index into program->windows: what it gives, read at the pass's coordinates
                         by broadcasting */
};
/* The element's number in C order of the pass's shape, uint64. */
#define OPERAND_INDEX_FLAT UINT16_MAX

/* Where something stands in a request's texts: for refusals of who plans. */
struct program_place {
    uint16_t output;
    uint32_t line, column; /* from 1, of characters; 0: nowhere */
};

struct operand {
    uint8_t kind;
    uint8_t dtype; /* enum dtype of the value */
    uint16_t index;
};

/* dst = op(src...). All sources have the dtype `compute` (the compiler inserts CASTs), except
 * - WHERE: src[0] is bool;
 * - CAST: src[0] has its own dtype, `compute` equals it, the result is dst.dtype;
 * - LDEXP: src[1] is int32 where compute is float32, int64 where it is float64 (any value);
 * - RANDOM_U32 and RANDOM_U64: three uint64 (the flat index, the seed, the stream, an enum
 *   random_stream; seed and stream uniform), result uint32 and uint64;
 * - STANDARD_UNIFORM, _NORMAL, _EXPONENTIAL: of uint32 float32, of uint64 float64;
 * - RANDOM_POISSON: compute is float64, src[0] and src[1] are uint64 (flat index, uniform seed),
 *   src[2] float64, result int64; RANDOM_PERMUTED: three uint64 (n uniform, not 0), result uint64;
 * - ORDERED_KEY: of float32 uint32, of float64 uint64, that are ordered as NumPy sorts: -0.0 is
 *   0.0, all NaNs are the largest number; FROM_ORDERED_KEY: the way back, dst is the float;
 * - SEARCH_LEFT, SEARCH_RIGHT: compute is float64, int64 or uint64, src[1] a table of the same, in
 *   ascending order (in another order the result is some number in its range), result int64 as
 *   numpy.searchsorted gives it, NaN being the largest;
 * - TAKE: compute is int64, src[0] the index (one outside of the table is taken as the nearest
 *   inside), src[1] a table of dst.dtype, any;
 * - comparisons of int64 with uint64: compute is DTYPE_INT64, src[1].dtype DTYPE_UINT64 or the
 *   other way round, exactly as given in the operands.
 * dst.dtype is the result's: compute, or bool (comparisons, predicates), uint8 (BITWISE_COUNT),
 * int32 (FREXP_EXPONENT). dst is always a register; it may equal a source's register.
 * Operations that the compiler writes with others never come here: POSITIVE, FABS, LOGICAL_*,
 * DIVMOD, FLOAT_POWER, DEG2RAD, RAD2DEG, SINC, SELECT, CLIP, ISCLOSE, NAN_TO_NUM, ROUND, INDEX;
 * RECIPROCAL of floats; FMIN and FMAX of integers; FLOOR, CEIL, TRUNC, predicates (but SIGNBIT of
 * signed integers, which is LESS) of integers and bool; all arithmetic of bools. FREXP and MODF
 * give their first results, FREXP_EXPONENT frexp's second; modf's second is TRUNC. */
struct insn {
    uint16_t op; /* enum op; never a reduction */
    uint8_t compute;
    struct operand dst;
    struct operand src[3];
};

/* Instructions of a pass that each element goes through again and again: `n_steps` times, or until
 * it is done. A step computes the condition, by the first n_until of the instructions, then, of
 * elements for which it does not hold, the rest. Registers that steps hand on, the states, change
 * at a step's end alone, by WHERE with the condition as its first source (by a copy where there is
 * none): so it makes no difference to the bits whether an element that is done takes part in more
 * steps. It must not be counted in warnings. Everything else that a step reads and does not compute
 * is the same in all steps. */
struct program_loop {
    uint16_t first_insn; /* in program->insns */
    uint16_t n_insns, n_until;
    struct operand until; /* bool; OPERAND_NONE: nothing ends an element's steps */
    uint32_t n_steps;     /* at least 1 */
};

/* Distributions draw from different streams of one seed. The numbers are part of the results. */
enum random_stream {
    RANDOM_STREAM_UNIFORM = 1,
    RANDOM_STREAM_NORMAL = 2, /* lognormal's too: exp(normal) is lognormal */
    RANDOM_STREAM_EXPONENTIAL = 3,
    RANDOM_STREAM_INTEGERS = 4, /* choice's too */
    RANDOM_STREAM_BERNOULLI = 5,
    RANDOM_STREAM_POISSON = 6,
    RANDOM_STREAM_PERMUTATION = 7,
};

/* op is one of
 * - SUM, PROD: result of bool and signed INT64, of unsigned UINT64, of floats FLOAT64 (accumulated
 *   in double; the compiler casts down afterwards);
 * - MIN, MAX: result is src.dtype;
 * - COUNT_NONZERO: INT64;
 * - ARGMIN, ARGMAX: INT64, the position among the reduced axes, in C order of these;
 * - SQUARED_DEVIATIONS: FLOAT64, the sum of squared deviations from the mean; src is a float;
 * - KTH: the element at a place of the ascending order; src is UINT32 or UINT64, the result the
 *   same. A pass with one has nothing but KTHs of one source, and each of its cells at most
 *   PROGRAM_MAX_KTH_ELEMENTS elements, all in one grain;
 * - BINCOUNT: src is INT64, the number of a bin; what is not in 0 to n_bins - 1 is not counted. The
 *   result has one axis more, of n_bins, behind all others: INT64, how many elements are in each
 *   bin, or FLOAT64, the sum of their weights;
 * - CUMSUM, CUMPROD: of a pass that scans, see struct store. Result dtypes as of SUM and PROD.
 * - QR_R: src is FLOAT64, of a pass of two axes, both reduced: the upper triangular R of a QR
 *   decomposition of its matrix. `weights`, FLOAT64 or OPERAND_NONE, is one column more behind the
 *   others, the same in the whole of a row. The result has two axes of n_bins columns: FLOAT64;
 * - MATMUL: a matrix product, see struct program_product, or a value of a slab, see struct
 *   program_slab. No pass counts it among its own.
 * All others are written with these. */
struct reduction {
    uint16_t op;
    uint8_t result;     /* enum dtype */
    bool keeps_dims;    /* the reduced axes are there with length 1; else they are missing */
    bool is_cumulative; /* BINCOUNT without weights: the result is the running sum along the bins */
    bool has_minus_zero; /* SUM of floats: it is -0 where all terms are; else 0 then, as NumPy's */
    uint16_t pass;       /* in which it is computed */
    struct operand src;
    struct operand weights; /* BINCOUNT: FLOAT64, or OPERAND_NONE; QR_R: a column, or that */
    uint32_t n_bins;        /* BINCOUNT, and QR_R's columns: at least 1; else 0 */
    struct kth_rank kth;    /* KTH; else 0 */
};

/* One array that a pass writes. In a pass that scans (scanned_axis) it is the running result of one
 * of the pass's reductions: of CUMSUM or CUMPROD over the elements up to and with its own along
 * that axis. It is kept in the reduction's dtype and cast to the output's when it is stored; floats
 * are added one after the other in float64. The reduction's own result is the state of the scan:
 * what all elements so far have given, for each place along the other axes. */
struct store {
    uint16_t output;    /* index into program->outputs, those behind the job's own, too */
    struct operand src; /* its dtype is the output's; where the pass scans, OPERAND_NONE */
    uint16_t scan;      /* where the pass scans: index into program->reductions */
};

/* Something about the data that the program takes for granted: the result of this reduction, one
 * number of 64 bits, is below the limit, both without a sign. Else the job ends with this error
 * when the reduction's pass is done. The number is
 * - of bad-argument how many elements are wrong, INT64, and the limit 1. In the error it stands in
 *   front of `found`;
 * - of bad-index the largest index, UINT64, and the limit the length of what is indexed, which was
 *   added to indices below 0 where is_signed. In the error it stands behind `found`, as it was
 *   given. */
struct program_check {
    enum gad_status status;
    uint16_t reduction;
    bool is_signed;
    uint64_t limit;
    char argument[ARRAY_NAME_SIZE], message[160], expected[112], found[64];
};

struct pass {
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM]; /* the iteration space; also the shape of its stores */
    uint16_t first_insn, n_insns;
    uint16_t first_loop, n_loops; /* in the order of their instructions, apart from each other */
    uint16_t first_reduction, n_reductions;
    uint16_t first_store, n_stores;
    uint16_t first_near, n_nears;
    uint16_t n_registers;
    uint64_t
        inputs_used; /* bit i: input i is read in this pass, as it is or near, or by its repeats */
    uint64_t states_used;  /* bit i: input i, a state */
    uint32_t repeats;      /* bit i: program->repeats[i], which are made of each of its boxes */
    uint64_t reduced_used; /* bit i: program->reductions[i] is read in this pass, by broadcasting */
    uint64_t tables_used;  /* bit i: in whole, as a table */
    uint64_t windows_used; /* bit i: program->windows[i] is read. What its operand reads is among
                              the pass's inputs and results */
    uint32_t reduced_axes; /* bit i: axis i is reduced by its reductions; 0 without any */
    int8_t scanned_axis;   /* -1: it does not scan. Else the one that its reductions reduce; they
                              all are CUMSUM and CUMPROD, and its stores are of these */
};

/* A moving window over an operand: at each place what `op` gives of the elements around it.
 *
 * The operand is an elementwise pass of its own, behind those of the stages, which is walked with
 * the pass that reads the window: over the box that this one computes and as much around it as the
 * window has (kernels/cpu/windows). Its inputs are read with as much around the box
 * (program_input.around), and are among those of the pass that reads the window, as are the results
 * of reductions that it reads. It may read windows itself, of smaller numbers.
 *
 * op is one of
 * - WINDOW_SUM: of float32, float64, int64, uint64, which wrap; floats are added in float64;
 * - WINDOW_MEAN, WINDOW_STD: of float32, float64, computed in float64;
 * - WINDOW_MIN, WINDOW_MAX: of any dtype, a NaN if there is one;
 * - WINDOW_RANK: the mean of the elements at the places ranks[0] and ranks[1] of the ascending
 *   order, of any dtype where these are the same, else of floats; a NaN if there is one;
 * - CORRELATE: the sum of products with n_weights numbers in C order, of the dtypes of WINDOW_SUM.
 *   The numbers are float64; of integers uint64, which wrap as the products do.
 * The result has the operand's dtype. */
struct program_window {
    uint16_t op;
    uint8_t dtype;
    uint16_t pass; /* the operand's; it has one store, to an output behind those of the job */
    int64_t size[ARRAY_MAX_NDIM];   /* along the pass's axes; 1: it is none along this one */
    int64_t before[ARRAY_MAX_NDIM]; /* elements before the place itself: 0 to size - 1 */
    uint8_t modes[ARRAY_MAX_NDIM];  /* enum near_mode: what lies beyond the ends */
    union scalar beyond;            /* NEAR_CONSTANT */
    int64_t ranks[2];
    uint16_t first_weight, n_weights; /* in program->weights */
    struct program_place place;
};

/* As many elements are needed in both directions. */
static inline int64_t window_around(const struct program_window *window, int axis)
{
    int64_t behind = window->size[axis] - 1 - window->before[axis];
    return behind > window->before[axis] ? behind : window->before[axis];
}

/* A matrix product, C = left @ right as numpy.matmul, with expressions of the operands as they are
 * read and of C as it is written. Its three passes, which follow each other in the program, are not
 * walked one after the other, but box by box between the steps of the product
 * (kernels/products/product.h):
 *
 *     PRODUCT_LEFT     shape (batch..., rows, depth), or (depth) of a vector: the left operand
 *     PRODUCT_RIGHT    shape (batch..., depth, columns), or (depth): the right one
 *     PRODUCT_RESULT   shape (batch..., rows, columns) without what a vector lacks: C
 *
 * All three are elementwise. Each of the first two has one store, of the product's dtype, to an
 * output of the product's own behind those of the job. PRODUCT_RESULT reads C as the result of a
 * reduction whose op is MATMUL, which has no operands. Its stores are to outputs of the job; where
 * the product is_kept, one more is to a third output of its own, of C's dtype: what that stores is
 * the reduction's result for all stages behind it, though no table. Batch axes of the operands
 * broadcast to C's, aligned to the right.
 *
 * Integers wrap in the product's dtype; of bools a sum is "or", a product "and". Floats are added
 * in their own dtype, as BLAS does, in a fixed order of blocks along the depth. */
enum product_pass { PRODUCT_LEFT, PRODUCT_RIGHT, PRODUCT_RESULT, PRODUCT_N_PASSES };

struct program_product {
    uint16_t first_pass;              /* PRODUCT_LEFT in program->passes */
    uint16_t first_output;            /* of its own in program->outputs, one for each pass */
    uint16_t reduction;               /* C in program->reductions */
    bool is_kept;                     /* stages behind it read what PRODUCT_RESULT stores */
    enum dtype dtype;                 /* of both operands as they are multiplied, and of C */
    int64_t n_rows, n_columns, depth; /* 1 row or column of a vector */
    bool has_rows, has_columns;       /* false: the left, the right operand is a vector */
    int n_batch_axes;                 /* C's first axes */
    int64_t batch_shape[ARRAY_MAX_NDIM];
    /* The right operand is the left one transposed, element for element: C is symmetric, and is
     * computed once. */
    bool is_symmetric;
};

/* A walk over a long matrix X by slabs, each some of its rows: X is read once, and while a slab is
 * there all skinny products of it are computed, whatever they need of each other.
 *
 *     t = x @ c           SLAB_PROJECT     t_s = x_s @ c
 *     a = t @ g           SLAB_MULTIPLY    a_s = t_s @ g
 *     v = maximum(a, 0)   SLAB_ROWS        a pass over the slab's rows of a, which gives v's
 *     p = x.T @ v         SLAB_GATHER      p += x_s.T @ v_s
 *     q = v.T @ a         SLAB_GATHER      q += v_s.T @ a_s
 *     s = sum(x, axis=0)  SLAB_COLUMNS     s += sum(x_s, axis=0); of squares; of all columns
 * together
 *     m = max(v)          SLAB_REDUCE      a pass over the slab's rows of v, whose node is combined
 *                                          with that of the rows before; or m_s = max(v_s, axis=1)
 *
 * X may have more axes: rows are one of them, and the others, in their order, are the columns.
 *
 * What steps take and give are values: X itself, operands (small, there as a whole before the first
 * slab), values of rows (as many as the slab has), and sums over all rows. Each has its dtype, to
 * which it is rounded when it is whole; multiplications and additions are in float64, or where a
 * step is_single in float32, of which some make a sum that is added in float64.
 *
 * Passes of the stage, which follow each other in the program: that of X, those of operands, those
 * of rows, those of results; each is elementwise. SLAB_PASS_X and _OPERAND store to an output of
 * the stage's own behind those of the job, as products' passes do, operands in float64, those of
 * steps in float32 in that. _ROWS and _RESULT store to outputs of the job, and what steps or stages
 * behind need to outputs of the stage's own. They read values as results of reductions whose op is
 * MATMUL. The pass of a SLAB_REDUCE reads one value, and has one reduction: it is a result for the
 * stages behind, or what the step gives as a value of rows.
 *
 * One more kind of step is a function among `steps` of the CPU's engine (daemon/worker/cpu/slab.c),
 * and a case in kernels/expr/schedule/slab_members.c and slabs.c, where a node of the graph becomes
 * a step. A step that gives a sum has memory for each lane, which FINISH makes one. */
enum slab_step_kind {
    SLAB_PROJECT,  /* of rows: X times an operand */
    SLAB_MULTIPLY, /* of rows: a value of rows times an operand */
    SLAB_GATHER,   /* a sum: X or a value of rows, transposed, times a value of rows or X */
    SLAB_COLUMNS,  /* a sum: of elements of X or of a value of rows, or of X's squares */
    SLAB_ROWS,     /* a pass */
    SLAB_REDUCE,   /* a pass of rows that reduces them: over all, over rows, or along each row */
    SLAB_N_STEP_KINDS,
};

enum slab_value_kind { SLAB_X, SLAB_OPERAND, SLAB_OF_ROWS, SLAB_SUM };
enum slab_pass_kind { SLAB_PASS_X, SLAB_PASS_OPERAND, SLAB_PASS_ROWS, SLAB_PASS_RESULT };

#define SLAB_NONE      UINT8_MAX
#define SLAB_NO_OUTPUT UINT16_MAX

struct slab_value {
    uint8_t kind, dtype;
    bool is_kept;       /* stages behind it read it */
    bool has_reduction; /* passes may read it */
    bool has_columns;   /* its last axis is the columns'; else there is one, and no axis */
    uint16_t reduction; /* it, in program->reductions */
    uint16_t output; /* of the stage's own, which a pass stores it to; UINT16_MAX: SLAB_NO_OUTPUT:
                        a step gives it */
    uint16_t kept_output; /* is_kept: to which it is stored for the stages behind */
    /* OPERAND: lines are the columns of X, or of a value of rows. SUM: those of its left. OF_ROWS
     * and X: the rows of X. */
    int64_t n_lines, n_columns;
    int ndim; /* as passes see it */
    int64_t shape[ARRAY_MAX_NDIM];
};

struct slab_step {
    uint8_t kind;
    uint8_t result;            /* value; SLAB_NONE of ROWS, and of REDUCE not along rows */
    uint8_t src[2];            /* values; SLAB_NONE: there is none */
    bool is_symmetric;         /* GATHER: both are the same value */
    bool is_single;            /* PROJECT, MULTIPLY, GATHER: of float32 and float32, in float32 */
    bool is_square, is_joined; /* COLUMNS: of squares; FINISH adds up the columns */
    uint16_t pass;             /* ROWS, REDUCE: of the stage's, from first_pass on */
};

struct program_slab {
    uint16_t first_pass, n_passes;
    int row_axis;
    int64_t n_rows, n_columns; /* of X */
    unsigned n_values, n_steps;
    struct slab_value values[SLAB_MAX_VALUES]; /* [0] is X */
    struct slab_step steps[SLAB_MAX_STEPS];
    uint8_t pass_kinds[PROGRAM_MAX_PASSES]; /* enum slab_pass_kind, from first_pass on */
};

/* Arrays that are made of the arguments for each box of a pass, with what lies around it, and are
 * gone behind it: states, that take n_steps of time.
 *
 *     begin:   u = of arguments            over the box and n_steps times what a step reads around
 *     step:    u = of near(u), arguments   n_steps times, each over a smaller box than before
 *     pass:    reads u, as it is or near, over the box itself
 *
 * So arguments are read once and results written once for all steps, and what lies around a box is
 * computed by each box that needs it. `begin` and `step` are passes that are in no stage. Both
 * store to states: outputs of their own in program->outputs, of which `step` and the pass read what
 * the last one has stored as inputs that are states (struct program_input). All states have one
 * shape, which broadcasts to that of the pass. With n_steps 0 `begin` alone is done: so what a pass
 * reads near may be any expression. */
struct program_repeat {
    uint32_t n_steps;
    struct program_place place;
    uint16_t begin, step; /* in program->inner */
    uint16_t first_output, n_states;
    bool is_flat; /* nothing can go wrong in a step, nor does it ask for places: it may be done of
                     elements that nobody needs */
    bool warns;   /* what arithmetic meets in a step is counted */
    int ndim;     /* of the states; axes are theirs */
    int64_t shape[ARRAY_MAX_NDIM];
    /* Elements before and behind each element that a step reads of states; likewise that passes
     * read of what has come out. */
    int64_t before[ARRAY_MAX_NDIM], behind[ARRAY_MAX_NDIM];
    int64_t last_before[ARRAY_MAX_NDIM], last_behind[ARRAY_MAX_NDIM];
    uint32_t wrapped_axes; /* bits: these are read with NEAR_WRAP, or not near */
};

enum stage_kind { STAGE_PASS, STAGE_PRODUCT, STAGE_SLAB };

struct stage {
    enum stage_kind kind;
    uint16_t first_pass, n_passes; /* in program->passes; of a pass 1 */
    uint16_t product;              /* STAGE_PRODUCT: index into program->products */
    uint16_t slab;                 /* STAGE_SLAB: index into program->slabs */
};

/* An array argument, of which a pass reads one box for a box of its own: as it is, or written
 * `a.T`. An argument may be several inputs: where what is read near is too far apart for one box.
 */
struct program_input {
    uint16_t arg; /* index into request->args; of a state into program->outputs */
    bool is_state;
    bool is_transposed; /* the last two axes are exchanged, here and in `shape` */
    bool has_own;       /* some pass reads its elements at their own places */
    enum dtype dtype;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    /* Of what windows read. In a pass with windows beside its box, and all that is near to it, as
     * many elements in both directions along each axis, as far as there are any; along those of
     * wraps_axes (bits) those of the other end follow. */
    int64_t around[ARRAY_MAX_NDIM];
    uint64_t wraps_axes;
    struct program_place place; /* of what reads it near, or in windows; nowhere: nothing does */
};

/* An input as a pass reads it that says near(a, ...): at each place the element so far away, out of
 * a box that has what all nears of the pass need that are of this input (kernels/neighbours.h). */
struct program_near {
    uint16_t input; /* not transposed */
    /* Not all 0; along the input's axes, 0 where it has length 1; at most half of its length with
     * NEAR_WRAP, else less than that (NEAR_SYMMETRIC: at most that). */
    int64_t offsets[ARRAY_MAX_NDIM];
    uint8_t modes[ARRAY_MAX_NDIM]; /* enum near_mode, where the offset is not 0 */
    union scalar beyond;           /* NEAR_CONSTANT: what lies beyond */
};

struct program_output {
    enum dtype dtype;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    uint16_t pass; /* that stores it */
};

struct program_const {
    enum dtype dtype;
    union scalar value;
};

struct program {
    unsigned n_refs;               /* changed by one thread alone */
    uint16_t n_stages, n_products; /* n_products: how many of the stages are products */
    uint16_t n_slabs;              /* of the stages, too */
    uint16_t n_passes, n_insns, n_loops, n_reductions, n_stores, n_inputs, n_outputs, n_consts;
    uint16_t n_checks, n_nears;
    uint16_t n_all_outputs; /* those of products, states and windows, too */
    uint16_t n_states;      /* inputs that are states, behind the n_inputs others */
    uint16_t n_repeats, n_inner;
    uint16_t n_windows, n_weights; /* the windows' passes are not among n_passes */
    /* Of an open array (struct job_request): an enum op that has nothing to say of an array without
     * elements, if it turns out to be one; -1: none has that trouble. */
    int16_t needs_elements;
    struct stage stages[PROGRAM_MAX_PASSES];
    struct pass passes[PROGRAM_MAX_PASSES + PROGRAM_MAX_WINDOWS];
    struct insn *insns;
    struct program_loop *loops;
    struct reduction reductions[PROGRAM_MAX_REDUCTIONS];
    struct store stores[PROGRAM_MAX_OUTPUTS];
    struct program_input *inputs;
    struct program_near *nears;
    struct program_output *outputs;
    struct program_const *consts;
    struct program_check *checks;
    struct program_product *products;
    struct program_slab *slabs;
    struct program_repeat *repeats;
    struct pass *inner; /* passes of repeats */
    struct program_window *windows;
    union scalar *weights;
};

static inline unsigned program_all_inputs(const struct program *program)
{
    return (unsigned)program->n_inputs + program->n_states;
}

/* Compiles all outputs of a request into one program (NumPy 2 semantics). Pure: no I/O, bounded by
 * the limits above. Where an output has `to`, its shape must be the result's and its dtype one that
 * numpy.can_cast(result, to.dtype, "same_kind") allows; the program then casts. Errors carry the
 * column (from 1) in the message: "column 8: unknown name 'sqr', did you mean 'sqrt'?", and the
 * output's name (or the offending argument's) as argument. */
int program_compile(const struct job_request *request, struct program **ret_program,
                    struct gad_error *error) GAD_MUST_CHECK;
struct program *program_ref(struct program *program);
struct program *program_free(struct program *program); /* NULL; the last reference frees it */

/* Sets the stages of a program that has its passes, and its products in the order of these: a
 * product's passes are one stage, every other pass is one of its own. */
void program_list_stages(struct program *program);

/* The shape of a reduction's result, with the axis of bins. Returns the number of axes. */
int program_reduction_shape(const struct program *program, unsigned reduction, int64_t *ret_shape);

/* Whether a reduction's result is one element, which is the same for all elements that read it. A
 * product's C never counts as such. */
bool program_is_uniform(const struct program *program, unsigned reduction);
/* The reductions that are products' C, or values of slabs; bits. */
uint64_t program_product_results(const struct program *program);
/* The value of a slab that this reduction is; NULL: it is none. */
const struct slab_value *program_slab_value(const struct program *program, unsigned reduction);
/* Whether the stage is computed by turns of its own, and not grain by grain. */
static inline bool stage_has_turns(const struct stage *stage)
{
    return stage->kind != STAGE_PASS;
}
/* Whether a reduction's result is a whole array, for stages behind the one that makes it: all are,
 * but for products whose is_kept is false. */
bool program_is_kept(const struct program *program, unsigned reduction);
/* Whether the program is one matrix product and nothing else. */
bool program_is_product(const struct program *program);
/* How often an instruction of the program is done for an element, at most. */
uint64_t program_n_times(const struct program *program, unsigned insn);
/* Whether the instruction counts warnings, or ends the job. */
bool program_has_events(const struct insn *insn);
/* Whether some axes of more than one element are kept by the pass's reductions. */
bool program_keeps_axes(const struct pass *pass);
bool program_is_scan(const struct reduction *reduction);
/* Columns of all its QR_Rs together. */
uint64_t program_qr_columns(const struct program *program, const struct pass *pass);
/* The dtypes of what these reductions read that is no operand as it is, but computed: grains have
 * room for it beside their operands, whatever the engine, since bits depend on grains. Returns how
 * many, at most PASS_MAX_VALUES. */
#define PASS_MAX_VALUES (2 * PASS_MAX_REDUCTIONS)
unsigned program_values(const struct program *program, unsigned pass,
                        enum dtype ret_dtypes[static PASS_MAX_VALUES]);

/* The program as text, one instruction a line, for --explain and tests. Truncates. */
void program_print(const struct program *program, char *buffer, size_t n_bytes);

/* As it stands before what is wrong there: "column 7: ", or behind the first line "line 3, column
 * 7:
 * ", or nothing where it is nowhere. Returns the buffer. */
#define PROGRAM_PLACE_SIZE 48
const char *program_format_place(const struct program_place *place,
                                 char buffer[static PROGRAM_PLACE_SIZE]);
