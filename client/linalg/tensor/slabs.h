/* One read of a tensor by slabs of one axis: what CP and Tucker are made of.
 *
 *     rows = tensordot(x, C) @ g      n x rank: over all other axes, where C[j, k, .., r] is the
 *                                     product of the other axes' factors
 *     rest = tensordot(x, rows)       j x k x .. x rank: over the slabs' axis
 *
 * Both in one read where the pool has room for C and rest, else in two, and where it has no room
 * for one of them in two for each part of their columns. The axis is the first where it is not much
 * shorter than the longest, which it is else.
 */
#pragma once

#include "client/linalg/passes.h"

#define SLABS_MAX_NDIM GAD_MAX_FACTORS
#define SLABS_MAX_RANK 512

/* What one sweep of coordinate descent over the rows' columns is made of, in shared memory, of a
 * normal matrix g: the rows as they were; these less themselves times SCALED; g with each column
 * divided by the diagonal's element, zeros where that is; the diagonal's inverse; ones on one. */
enum slabs_descent {
    SLABS_BEFORE,
    SLABS_REDUCED,
    SLABS_SCALED,
    SLABS_INVERSE,
    SLABS_ONES,
    SLABS_N_DESCENT
};

struct slabs {
    struct passes *p;
    int axis, n_others, others[SLABS_MAX_NDIM];
    int64_t rank;
    /* In shared memory: a factor for each axis, n x rank; rank x rank; the rest; a number. */
    struct gad_array *factors[SLABS_MAX_NDIM], *g, *rest, *squares;
    struct gad_array *views[SLABS_MAX_NDIM]; /* of the other axes' factors, broadcast to C */
    struct gad_array *columns; /* j x k x .. x rank: C as it is; NULL: it is made of the factors */
    bool is_split;             /* two reads, of `step` columns at a time */
    int64_t step;
    char one_needs[40], one_has[40];            /* of the pool, with one read; what it may have */
    struct gad_array *descent[SLABS_N_DESCENT]; /* NULL: see slabs_use_descent() */
    char product[200], rows_text[260];
};

/* bad-shape: axes that are too few or too many, or without elements. */
int slabs_check_shape(const struct passes *p, struct gad_error *error) GAD_MUST_CHECK;
/* Which slabs are of. */
int slabs_axis(const struct passes *p);

/* *s is valid for slabs_deinit() whatever the outcome, as long as p is. bad-shape, bad-rank,
 * too-large-for-pool. */
int slabs_init(struct slabs *s, struct passes *p, int64_t rank,
               struct gad_error *error) GAD_MUST_CHECK;
void slabs_deinit(struct slabs *s);

/* Both. With squares *squares becomes the sum of the elements' squares. */
int slabs_read(struct slabs *s, bool with_squares, struct gad_error *error) GAD_MUST_CHECK;
/* The same with rows as they are, without `@ g`. */
int slabs_read_plain(struct slabs *s, bool with_squares, struct gad_error *error) GAD_MUST_CHECK;
/* One after the other: rows without `@ g`; the rest, of factors[axis] as it is. */
int slabs_read_rows(struct slabs *s, bool with_squares, struct gad_error *error) GAD_MUST_CHECK;
int slabs_read_rest(struct slabs *s, bool with_squares, struct gad_error *error) GAD_MUST_CHECK;

/* Rows that must not be negative, of one read with the rest: whether it is possible, *ret_is. Then
 * slabs_read_descent() improves each row by a column after the other, as `descent` says. */
int slabs_use_descent(struct slabs *s, bool *ret_is, struct gad_error *error) GAD_MUST_CHECK;
int slabs_read_descent(struct slabs *s, bool with_squares, struct gad_error *error) GAD_MUST_CHECK;

/* Random factors, of one job that reads nothing: "uniform" or "normal". */
int slabs_draw(struct slabs *s, const char *function, uint64_t seed,
               struct gad_error *error) GAD_MUST_CHECK;
/* From now on C is what is written into `columns`. */
int slabs_use_columns(struct slabs *s, struct gad_error *error) GAD_MUST_CHECK;

/* "by slabs of axis 0, WHAT; one read needs 29459584 bytes of the pool" */
void slabs_describe(const struct slabs *s, const char *what, char *ret, size_t n_bytes);

/* The elements of a factor, of g, of the rest; and how many rest has without its columns. */
double *slabs_factor(const struct slabs *s, int axis);
int64_t slabs_n_rest(const struct slabs *s);

/* Once the squares are known: bad-argument, which names the first element that is not finite. */
int slabs_check_finite(struct slabs *s, struct gad_error *error) GAD_MUST_CHECK;
