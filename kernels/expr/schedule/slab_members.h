/* Which nodes of the graph one walk by slabs computes: see slab_members.c. */
#pragma once

#include "kernels/expr/schedule/schedule.h"

enum slab_flag {
    SLAB_IS_BEHIND = 1,  /* it is made of a member of the slab, or is one */
    SLAB_IS_OF_ROWS = 2, /* with this: row by row; a slab's rows of it follow from the slab */
    SLAB_IS_MEMBER = 4,  /* a product or a sum that is a step */
    SLAB_IS_OUTSIDE = 8, /* some stage behind the slab reads it */
    SLAB_FEEDS = 16,     /* a product, or what has a row for each of X, is made of it */
    SLAB_IS_USED = 32,   /* some node that is needed reads it, where it is a member's left operand
                            as it was before it was turned */
};

#define SLAB_MAX_MEMBERS 40
#define SLAB_MAX_COLUMNS 32768              /* of an operand, and of what is reduced */
#define SLAB_MAX_SQUARE  2048               /* columns of X, where it is the right operand */
#define SLAB_MAX_KEPT    (INT64_C(1) << 20) /* elements that a stage may leave for others */

struct slab_search {
    struct compiler *c;
    uint16_t x;    /* the node */
    uint16_t wide; /* float32 X as float64, which multiplying makes of it anyway; or x */
    int row_axis;
    int64_t n_rows, n_columns;
    uint16_t n_nodes;
    bool looks_later;
    uint8_t *flags;   /* of each node, enum slab_flag */
    uint16_t *levels; /* of nodes behind the slab: the first level at which all that it takes from
                         elsewhere is there */
    unsigned n_members;
    uint16_t members[SLAB_MAX_MEMBERS]; /* in ascending order */
    uint16_t level;                     /* of the slab's passes */
    uint32_t n_again;                   /* of products of X that give rows (n_bins) */
};

/* Whether the product `index` can be a step of a walk over its operand. Then what else can be.
 * looks_later: large operands of what can be no step of it are looked at as they were before they
 * were turned, for slab_again_make(). */
int slab_members_find(struct compiler *c, const struct schedule *s, uint16_t index,
                      bool looks_later, struct slab_search *ret, bool *ret_is_found) GAD_MUST_CHECK;

/* X, or what is X in float64. */
static inline bool slab_is_x(const struct slab_search *s, uint16_t node)
{
    return node == s->x || node == s->wide;
}
/* The left operand of a product as it was before it was turned, where that is known: the v of
 * v.T @ w. */
uint16_t slab_left(const struct graph *g, const struct graph_node *product);
/* The member's left operand is X itself, or X transposed. */
bool slab_is_of_x(const struct slab_search *s, const struct graph_node *member);
/* Whether a reduction is a sum of X over its rows, or over all, of elements or of squares. */
bool slab_is_sum_of_x(const struct slab_search *s, const struct graph_node *n, bool *ret_is_square);
/* Whether a reduction is a sum of a value of rows: over rows, over all, or along each row. */
bool slab_sums_rows(const struct slab_search *s, const struct graph_node *n);
/* Whether it is another one of a value of rows, combined from what some rows each give. */
bool slab_reduces_rows(const struct slab_search *s, uint16_t index);
/* slabs.c: the walk, where it is not too large. */
int slab_build(struct compiler *c, struct schedule *s,
               const struct slab_search *search) GAD_MUST_CHECK;
/* slab_again.c */
/* What the walk would have to keep for others, a large value of rows, is made again: copies of the
 * nodes that it is made of, and of those behind it. */
int slab_again_make(struct compiler *c, struct schedule *s, const struct slab_search *search,
                    bool *ret_is_made) GAD_MUST_CHECK;
/* Of a member whether its result is a value of rows, not a sum. */
static inline bool slab_gives_rows(const struct slab_search *s, uint16_t node)
{
    return s->flags[node] & SLAB_IS_OF_ROWS;
}
