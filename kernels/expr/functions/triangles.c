/* qr_r: the R of a QR decomposition, a reduction of the rows of a matrix.
 *
 *     qr_r(x)          x (m, n): R (n, n), upper triangular, R.T @ R = x.T @ x
 *     qr_r(x, b=y)     y (m, 1): R of x with the column y behind its own, (n + 1, n + 1): its last
 *                      column has what Q.T @ y is, and the length of the rest
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/literals.h"

#include <inttypes.h>
#include <stdio.h>

static int bad_shape(struct compiler *c, uint32_t column, const char *what, const char *expected,
                     const struct shape *found)
{
    char text[96];
    array_format_shape(found->ndim, found->dims, text, sizeof(text));
    int r = compiler_fail(c, GAD_BAD_SHAPE, column, "qr_r: %s has shape %s", what, text);
    error_expected(c->error, "%s", expected);
    error_found(c->error, "%s", text);
    return r;
}

static int check_columns(struct compiler *c, const struct ast_node *n, int64_t n_columns)
{
    if (n_columns <= PROGRAM_MAX_QR_COLUMNS)
        return 0;
    int r =
        compiler_fail(c, GAD_LIMIT_EXCEEDED, n->column, "qr_r: the matrix has too many columns");
    error_expected(c->error, "at most %d, with b's", PROGRAM_MAX_QR_COLUMNS);
    error_found(c->error, "%" PRId64, n_columns);
    return r;
}

/* The column behind the others, as float64; NODE_NONE where none is given. */
static int read_column(struct lower *l, const struct shape *matrix, uint16_t *ret)
{
    struct compiler *c = l->c;
    const struct ast_node *given = literals_find(c, l->n, "b");
    uint16_t node;
    *ret = NODE_NONE;
    if (given == NULL)
        return 0;
    int r = types_as_node(c, given->column, &given->value, &node);
    if (r)
        return r;
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[node].shape];
    char expected[64];
    snprintf(expected, sizeof(expected), "(%" PRId64 ", 1)", matrix->dims[0]);
    if (shape->ndim != 2 || shape->dims[0] != matrix->dims[0] || shape->dims[1] != 1)
        return bad_shape(c, given->column, "'b'", expected, shape);
    return graph_cast(c, node, DTYPE_FLOAT64, ret);
}

int triangles_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                    struct value *ret)
{
    struct lower l = {c, n, 0};
    uint16_t src, column = NODE_NONE, node = 0;
    int r = types_as_node(c, n->column, &args[0], &src);
    if (r)
        return r;
    const struct shape shape = c->graph.shapes[c->graph.nodes[src].shape];
    enum dtype dtype = types_of_node(c, src);
    if (shape.ndim != 2 || shape.dims[1] == 0)
        return bad_shape(c, n->column, "the matrix", "two axes, and at least one column", &shape);
    r = axes_check(c, src, &shape);
    if (r == 0)
        r = read_column(&l, &shape, &column);
    int64_t n_columns = shape.dims[1] + (column != NODE_NONE);
    if (r == 0)
        r = check_columns(c, n, n_columns);
    if (r)
        return r;
    src = lower_cast(&l, src, DTYPE_FLOAT64);
    if (l.r == 0)
        l.r = graph_qr(c, src, column, (uint32_t)n_columns, &node);
    return lower_finish(&l, dtype == DTYPE_FLOAT32 ? lower_cast(&l, node, DTYPE_FLOAT32) : node,
                        ret);
}
