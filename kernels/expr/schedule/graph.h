/* The graph of typed values, which the rules build and the schedule cuts into passes. */
#pragma once

#include "kernels/common/kth_rank.h"
#include "kernels/program.h"

#define EXPR_MAX_NODES   4096 /* of the graph, over all outputs */
#define EXPR_MAX_SHAPES  256  /* different ones of subexpressions */
#define EXPR_MAX_SHIFTS  1024 /* different ones of near() */
#define EXPR_MAX_LOOPS   32   /* different ones of iterate() */
#define EXPR_MAX_STATES  16   /* of one of them */
#define EXPR_MAX_STEPS   1000000
#define EXPR_MAX_WINDOWS 64 /* different ones, whatever they are of */

enum node_kind {
    NODE_INPUT,
    NODE_CONST,
    NODE_INSN,
    NODE_REDUCTION,
    NODE_INDEX,
    NODE_SCAN,
    NODE_PRODUCT,
    NODE_WINDOW,
    NODE_STATE,
    NODE_STEP,
    NODE_LOOP,
    NODE_RESULT,
};

/* A state of a repeat: in place of an argument's number in a NODE_INPUT. Inside of a step it is
 * what the step before has made, outside what the last one has. */
#define GRAPH_FIRST_STATE            UINT32_C(0x10000)
#define GRAPH_STATE(index, is_final) (GRAPH_FIRST_STATE + 2u * (index) + (is_final))
static inline bool graph_is_state(uint32_t arg)
{
    return arg >= GRAPH_FIRST_STATE;
}
static inline bool graph_is_final(uint32_t arg)
{
    return graph_is_state(arg) && (arg & 1);
}

#define NODE_NONE         UINT16_MAX
#define SIZED_DIFFERENTLY (UINT16_MAX - 1)
#define INDEX_FLAT        INT64_MAX

/* A typed value; equal ones are one node. Sources come before their users.
 *
 * The same holds for the element's number that a random number without `size` is made of; with
 * `size` it has that shape, and must be evaluated in a pass of as many elements: in another one its
 * numbers would repeat.
 *
 * A NODE_INDEX, index(axis), has no shape of its own: like a number it takes the shape of what it
 * meets, so its shape here is (). Its axis is one of the pass that evaluates it, which has the
 * shape of the output or of the array that is reduced: in `f8 + row * index(0)` it is an axis of
 * the sum, though `row` alone has fewer. axes.c checks that every such pass has the axis.
 *
 * A NODE_REDUCTION is evaluated in a pass of the shape `over`, to which its sources broadcast: what
 * is reduced, then BINCOUNT's weights. The second source of SEARCH_LEFT, SEARCH_RIGHT and TAKE is a
 * NODE_REDUCTION of one axis, a table. A NODE_SCAN is a running result along one axis, of the dtype
 * `compute`, stored as `dtype`; it is a whole output and no source of anything. A NODE_PRODUCT is
 * the matrix product of its two sources, which have its dtype; with left_axes their tensordot:
 * along these of the left one and those of the right one, both in ascending order; n_bins counts
 * how often slab_again.c has made it again. A NODE_WINDOW has its source evaluated in a pass of the
 * source's own shape, with what lies around it.
 *
 * A loop of iterate() is a chain of nodes. A NODE_STATE is what a name means in the body, of the
 * dtype of its source, which it begins with; a NODE_STEP says what becomes of a state: the
 * NODE_STATE, its next value, the step of the state before it. A NODE_LOOP has the condition and
 * the last step; a NODE_RESULT is what a state has come to in the end. A node that reads a state is
 * of the loop alone: `is_varying`. */
struct graph_node {
    uint8_t kind;
    uint8_t dtype;
    uint8_t compute;
    uint8_t n_src;
    uint16_t op;
    uint16_t src[3];
    uint16_t shape;  /* index into graph->shapes */
    uint16_t level;  /* the first level of passes in which it can be used */
    uint16_t need;   /* registers that computing it takes, 0 for what is no NODE_INSN */
    uint16_t next;   /* in the same bucket */
    uint16_t mirror; /* a node of smaller number of which it is the matrix transposed; NODE_NONE:
                        none is known */
    uint64_t reads;  /* bit i: request->args[i] is read, reductions not looked through */
    uint64_t axes;   /* bit 32 + i: index(i) is read, in the same way */
    bool is_free;    /* an index() or the number of an element is read that takes what shape it
                        meets, in the same way */
    bool is_near;    /* an input that is near is read, in the same way */
    bool is_varying; /* a NODE_STATE is read, loops not looked through */
    uint16_t sized;  /* the shape of the number of an element that has one; NODE_NONE: there is
                        none, SIZED_DIFFERENTLY: they are of different sizes */
    uint16_t over;   /* NODE_REDUCTION and NODE_SCAN: index into graph->shapes; else 0 */
    uint32_t n_bins; /* BINCOUNT, and QR_R's columns; NODE_LOOP: steps at most; else 0 */
    struct kth_rank kth; /* KTH; else 0 */
    union {
        union scalar value; /* NODE_CONST; unused bytes are 0 */
        struct {            /* NODE_INPUT */
            uint32_t arg;
            uint16_t is_transposed; /* 1: its last two axes are exchanged, in its shape too */
            uint16_t near;          /* one more than the number of its offsets; 0: it has none */
        };
        int64_t axis;               /* NODE_INDEX; below 0: from the end; INDEX_FLAT: its number */
        struct {                    /* NODE_REDUCTION and NODE_SCAN */
            uint32_t reduced_axes;  /* bit i: axis i of `over` */
            uint8_t keeps_dims;     /* 1: they stay, with length 1 */
            uint8_t has_minus_zero; /* 1: of SUM, -0 where all terms are */
            uint16_t is_cumulative; /* 1: of BINCOUNT, running sums along the bins */
        };
        uint64_t window;                    /* NODE_WINDOW: index into graph->windows */
        struct {                            /* NODE_PRODUCT */
            uint32_t left_axes, right_axes; /* bits; 0: those of matmul */
        };
        uint32_t number; /* NODE_STATE and NODE_RESULT: which of the loop's states */
    };
    /* Of emit.c: */
    uint16_t n_uses; /* not yet made, in the pass at hand */
    uint16_t index;  /* of the constant, input, near or reduction in the program */
    uint8_t state;
    uint8_t register_index; /* of a NODE_INPUT that is near: the input in the program */
    uint8_t slab;    /* of slabs.c: the value of a slab that it is, one more than its number */
    uint8_t of_loop; /* of loops.c, while a loop is looked at: enum of_loop */
};

/* Of a NODE_INPUT that is near, as in struct program_near. */
struct near_shift {
    int64_t offsets[ARRAY_MAX_NDIM];
    uint8_t modes[ARRAY_MAX_NDIM];
    union scalar beyond;
    int64_t around[ARRAY_MAX_NDIM];
    uint64_t wraps_axes;
    uint32_t column; /* kept; of those that differ in nothing else it is the first one's */
};

/* Of a NODE_WINDOW, all but dtype, pass, its place and that of its weights. */
struct window {
    struct program_window program;
    const union scalar *weights;
    uint32_t column; /* kept, as of near_shift */
};

struct shape {
    int ndim;
    const int64_t *dims;
    int64_t n_elements;
};

struct graph {
    struct graph_node *nodes;
    struct shape *shapes; /* [0] is () */
    uint16_t *buckets;
    uint32_t bucket_mask;
    uint16_t n_nodes, capacity, n_shapes;
    struct near_shift **shifts; /* different ones; NULL: none yet */
    uint32_t *shift_hashes;
    uint16_t n_shifts;
    uint16_t n_loops;
    struct window **windows; /* different ones; NULL: none yet */
    uint16_t n_windows;
};

/* Whether the pass that reads the node computes it, from its sources. */
static inline bool graph_is_computed(const struct graph_node *n)
{
    return n->kind == NODE_INSN || n->kind >= NODE_STATE;
}
