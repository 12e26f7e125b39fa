/* index(axis): the element's index along an axis of the array that is computed; and where random
 * numbers may stand.
 *
 * An index has no shape. Where it meets arrays it takes theirs, as a number does; the axis is one
 * of the whole output, or of the array that is reduced, whatever the shape of the part that it
 * stands in: `f8 + row * index(0)` of shapes (3, 4) and (4,) counts 0, 1, 2 along the first axis of
 * the result. Negative axes count from the end. An output of indices and numbers alone has no shape
 * to count in; only one that is written into an array that is there takes that array's.
 *
 * A random number is made of the element's number in the same array. Without `size` it has no shape
 * either; with it the array that is computed must have as many elements.
 *
 * The check is made where the shape is known: for an output by types.c, for what is reduced by
 * reduce.c, with its mask. Then each pass that evaluates an index has its axis.
 */
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

int axes_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
               struct value *ret)
{
    uint16_t node;
    const struct value *axis = &args[0];
    if (axis->kind != VALUE_INTEGER) {
        int r =
            compiler_fail(c, GAD_BAD_EXPRESSION, n->column,
                          "index: the axis must be an integer that is known here, as in index(0)");
        error_expected(c->error, "an integer");
        error_found(c->error, "%s", axis->kind == VALUE_NODE ? "an array" : "another number");
        return r;
    }
    if (axis->integer < -ARRAY_MAX_NDIM || axis->integer >= ARRAY_MAX_NDIM) {
        int r = compiler_fail(c, GAD_BAD_SHAPE, n->column, "index: arrays have at most %d axes",
                              ARRAY_MAX_NDIM);
        error_expected(c->error, "%d to %d", -ARRAY_MAX_NDIM, ARRAY_MAX_NDIM - 1);
        char text[64];
        error_found(c->error, "%s", scalar_format(axis->integer, text));
        return r;
    }
    int r = graph_index(c, n->column, (int64_t)axis->integer, &node);
    return r ? r : types_set_node(node, ret);
}

static int no_shape(struct compiler *c, uint32_t column, int axis)
{
    int r = compiler_fail(
        c, GAD_BAD_SHAPE, column,
        "index(%d): there is no array that gives the shape; one must take part, or the "
        "output be there",
        axis);
    error_expected(c->error, "an array that gives the shape");
    error_found(c->error, "numbers alone");
    return r;
}

static int no_size(struct compiler *c)
{
    int r = compiler_fail(
        c, GAD_BAD_SHAPE, c->random_column,
        "random numbers of no shape: write size=(...), or let an array take part, or the "
        "output be there");
    error_expected(c->error, "size=(...), or an array that gives the shape");
    error_found(c->error, "numbers alone");
    return r;
}

static int other_size(struct compiler *c, uint16_t sized, const struct shape *shape)
{
    char text[96], own[96] = "different sizes";
    array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
    if (sized != SIZED_DIFFERENTLY)
        array_format_shape(c->graph.shapes[sized].ndim, c->graph.shapes[sized].dims, own,
                           sizeof(own));
    int r = compiler_fail(
        c, GAD_BAD_SHAPE, c->random_column,
        "random numbers of size %s would repeat in an array of shape %s; leave 'size' out "
        "for one of each element",
        own, text);
    error_expected(c->error, "size=%s", text);
    error_found(c->error, "%s", own);
    return r;
}

static int check_sizes(struct compiler *c, const struct graph_node *n, const struct shape *shape)
{
    if (n->is_free && n->axes == 0 && shape->ndim == 0 && n->reads == 0 && n->sized == NODE_NONE)
        return no_size(c);
    if (n->sized == NODE_NONE)
        return 0;
    if (n->sized != SIZED_DIFFERENTLY && c->graph.shapes[n->sized].n_elements == shape->n_elements)
        return 0;
    return other_size(c, n->sized, shape);
}

int axes_check(struct compiler *c, uint16_t node, const struct shape *shape)
{
    const struct graph_node *n = &c->graph.nodes[node];
    for (uint64_t rest = n->axes; rest != 0; rest &= rest - 1) {
        int at = __builtin_ctzll(rest), axis = at - ARRAY_MAX_NDIM;
        if (axis >= -shape->ndim && axis < shape->ndim)
            continue;
        if (shape->ndim == 0 && n->reads == 0)
            return no_shape(c, c->axis_columns[at], axis);
        char text[96];
        array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
        int r = compiler_fail(c, GAD_BAD_SHAPE, c->axis_columns[at],
                              "index(%d): the array that is computed has %d ax%s, shape %s", axis,
                              shape->ndim, shape->ndim == 1 ? "is" : "es", text);
        if (shape->ndim > 0)
            error_expected(c->error, "%d to %d", -shape->ndim, shape->ndim - 1);
        else
            error_expected(c->error, "an array with axes");
        error_found(c->error, "%d", axis);
        return r;
    }
    return check_sizes(c, n, shape);
}
