/* See made_box.h. What goes on beyond an end lies behind it in all operands alike, so from one
 * element to another it is as far in each of them as in the box. */
#include "kernels/made_box.h"

void made_box_lay_out(struct made_box *box, int ndim, const int64_t *shape,
                      const struct engine_box *of)
{
    int n = 0;
    box->ndim = ndim;
    box->n_missing = of->ndim - ndim;
    box->shape = shape;
    box->goes_on_axes = 0;
    for (int i = 0; i < of->ndim; i++)
        if (of->axis_order[i] >= box->n_missing)
            box->axis_order[n++] = of->axis_order[i] - box->n_missing;
    int64_t stride = 1;
    for (int i = n; i-- > 0;) {
        int axis = box->axis_order[i];
        box->strides[axis] = stride;
        stride *= box->count[axis];
        if (box->start[axis] + box->count[axis] > shape[axis])
            box->goes_on_axes |= UINT32_C(1) << axis;
    }
    box->n_elements = (uint64_t)stride;
    for (int i = 0; i < ndim; i++)
        box->first[i] = shape[i] == 1 || !of->start
                            ? 0
                            : -made_box_place(box, i, of->start[box->n_missing + i]);
}

bool made_box_next_part(int ndim, const int64_t *shape, const int64_t *start, const int64_t *count,
                        uint32_t *part, int64_t *ret_start, int64_t *ret_count)
{
    uint32_t axes = 0;
    for (int i = 0; i < ndim; i++) {
        int64_t n_before = shape[i] - start[i];
        bool goes_on = count[i] > n_before, is_behind = *part >> i & 1;
        axes |= (uint32_t)goes_on << i;
        ret_start[i] = is_behind ? 0 : start[i];
        ret_count[i] = is_behind ? count[i] - n_before : goes_on ? n_before : count[i];
    }
    *part = (*part - axes) & axes; /* all sets of these axes */
    return *part != 0;
}

void made_box_view(const struct made_box *box, size_t item_bytes, char *memory, const int64_t *at,
                   int n_missing, struct engine_view *ret_view)
{
    int64_t offset = 0;
    *ret_view = (struct engine_view){.goes_on_axes = box->goes_on_axes << n_missing};
    for (int i = 0; i < box->ndim; i++) {
        int64_t stride = box->strides[i] * (int64_t)item_bytes;
        int64_t place = made_box_place(box, i, box->shape[i] == 1 ? 0 : at[i]);
        ret_view->goes_on_at[n_missing + i] = place;
        ret_view->strides[n_missing + i] = box->shape[i] == 1 ? 0 : stride;
        offset += place * stride;
    }
    ret_view->base = memory + offset;
}

void made_box_move(const struct made_box *box, const struct engine_box *of,
                   const struct engine_view *view, const int64_t *at, struct engine_view *ret_view)
{
    char *base = view->base;
    *ret_view = (struct engine_view){.is_swapped = view->is_swapped,
                                     .goes_on_axes = view->goes_on_axes >> box->n_missing};
    for (int i = 0; i < box->ndim; i++) {
        int axis = i + box->n_missing;
        int64_t distance = at[i] - (of->start ? of->start[axis] : 0);
        ret_view->strides[i] = view->strides[axis];
        if (view->strides[axis] == 0 || box->shape[i] == 1)
            continue;
        if (view->goes_on_axes >> axis & 1) {
            distance = box->first[i] + made_box_place(box, i, at[i]);
            ret_view->goes_on_at[i] = view->goes_on_at[axis] + distance;
        }
        base += distance * view->strides[axis];
    }
    ret_view->base = base;
}
