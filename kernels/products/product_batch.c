/* Which matrices of a batch a tile has.
 *
 *     (outer ..., cut, inner ..., rows, columns)
 *
 * Of C's batch axes, a tile has a part of one, which is cut; all of those behind it, the inner
 * ones; and one place along those before it. A batch's last axis may be short, or 1 long, so inner
 * axes are taken while all their matrices together are no more than a turn's work. Matrices of a
 * tile are counted in C order, through the cut axis and the inner ones.
 *
 * A panel has the matrices that its operand has in the tile, in the same order: one for all places
 * along an axis along which the operand is broadcast.
 *
 * Called by product_sizes.c for the choice, and for every grain and every block by product_views.c.
 * Pure code.
 */
#include "kernels/plan/planner.h"
#include "proto/util.h"

/* The operand's own axis; -1: it has none, or is broadcast along it. */
static int own_axis(const struct planner *p, enum product_pass pass, int axis)
{
    const struct program_product *product = p->product->whole;
    const struct pass *space = planner_product_space(p, pass);
    int n_batch = product->n_batch_axes;
    bool is_matrix = pass == PRODUCT_LEFT    ? product->has_rows
                     : pass == PRODUCT_RIGHT ? product->has_columns
                                             : true;
    int n_own = pass == PRODUCT_RESULT ? n_batch : space->ndim - 1 - is_matrix;
    int own = axis - (n_batch - n_own);

    return own >= 0 && space->shape[own] > 1 ? own : -1;
}

bool product_is_even(const struct plan_product *p, enum product_pass pass)
{
    return p->n_inner_of[pass] == (p->has_matrices[pass] ? p->n_inner : 1);
}

/* All matrices of both operands, or those along the last axis. */
static int64_t run_of(const struct program_product *product, const struct plan_product *p)
{
    if (product_is_even(p, PRODUCT_LEFT) && product_is_even(p, PRODUCT_RIGHT))
        return INT64_MAX;
    for (int axis = product->n_batch_axes - 1; axis > p->cut_axis; axis--)
        if (product->batch_shape[axis] > 1)
            return product->batch_shape[axis];
    return INT64_MAX;
}

void planner_cut_batch(const struct planner *p, int64_t most_inner)
{
    struct plan_product *ret = p->product;
    const struct program_product *product = ret->whole;
    const int64_t *shape = product->batch_shape;
    int n_batch = product->n_batch_axes, cut = n_batch - 1;
    bool is_empty = false;

    ret->n_inner = ret->n_outer = 1;
    for (int i = 0; i < n_batch; i++)
        is_empty |= shape[i] == 0;
    while (cut > 0 && !is_empty && (shape[cut] == 1 || shape[cut] <= most_inner / ret->n_inner))
        ret->n_inner *= shape[cut--];
    ret->cut_axis = cut;
    ret->n_matrices = cut < 0 ? 1 : mul_saturating_i64(shape[cut], ret->n_inner);
    for (int i = 0; i < cut; i++)
        ret->n_outer = mul_saturating_i64(ret->n_outer, shape[i]);
    for (unsigned i = 0; i < PRODUCT_N_PASSES; i++) {
        enum product_pass pass = (enum product_pass)i;
        ret->has_matrices[i] = cut >= 0 && own_axis(p, pass, cut) >= 0;
        ret->n_inner_of[i] = 1;
        for (int axis = cut + 1; axis < n_batch; axis++)
            if (own_axis(p, pass, axis) >= 0)
                ret->n_inner_of[i] *= shape[axis];
    }
    ret->run_matrices = run_of(product, ret);
}

int64_t product_tile_extent(const struct plan_product *p, int axis)
{
    if (axis < p->cut_axis)
        return 1;
    return axis == p->cut_axis ? p->tile_matrices / p->n_inner : INT64_MAX;
}

int64_t product_panel_matrices(const struct plan_product *p, enum product_pass pass,
                               int64_t n_matrices)
{
    int64_t n_places = p->has_matrices[pass] ? n_matrices / p->n_inner : 1;

    return mul_saturating_i64(n_places, p->n_inner_of[pass]);
}
