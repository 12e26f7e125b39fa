/* What the worker reads of an array for a grain, which lies whole in memory for the plain level. */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include "kernels/neighbours.h"

#include <string.h>

void near_box_lay(const struct program *program, unsigned index, const struct whole_array *array,
                  struct grain *grain, struct near_box *ret_box)
{
    const struct program_input *input = &program->inputs[index];
    struct laid *l = &grain->inputs[index];
    int ndim = grain->shape.ndim;
    int64_t stride = (int64_t)dtype_size(input->dtype);
    neighbours_box(program, &program->passes[0], index, grain->start, grain->shape.count,
                   ret_box->start, ret_box->count);
    *l = (struct laid){.view = {.is_swapped = array->is_swapped}};
    for (int i = ndim - 1; i >= 0; i--) {
        int own = grain->shape.order[i] - (ndim - input->ndim);
        if (own < 0)
            continue;
        l->view.strides[grain->shape.order[i]] = input->shape[own] == 1 ? 0 : stride;
        stride *= ret_box->count[own];
    }
    l->n_bytes = (size_t)stride;
}

/* The box's view becomes that of the grain. */
static void aim(const struct program_input *input, struct grain *grain, struct engine_view *view,
                const struct near_box *box)
{
    for (int i = 0; i < input->ndim; i++) {
        int axis = grain->shape.ndim - input->ndim + i;
        bool goes_on = box->start[i] + box->count[i] > input->shape[i];
        int64_t at = grain->start[axis] - box->start[i];
        if (input->shape[i] == 1)
            continue;
        at += goes_on && at < 0 ? input->shape[i] : 0;
        view->goes_on_axes |= (uint32_t)goes_on << axis;
        view->goes_on_at[axis] = at;
        view->base = (char *)view->base + at * view->strides[axis];
    }
}

void near_box_fill(const struct program *program, unsigned index, const struct whole_array *array,
                   struct grain *grain, const struct near_box *box)
{
    const struct program_input *input = &program->inputs[index];
    struct laid *l = &grain->inputs[index];
    int first_axis = grain->shape.ndim - input->ndim;
    size_t item_bytes = dtype_size(input->dtype);
    for (uint64_t k = 0; k < l->n_bytes / item_bytes; k++) {
        const char *from = array->memory;
        char *to = l->view.base;
        uint64_t left = k;
        for (int i = input->ndim - 1; i >= 0; i--) {
            int64_t at = (int64_t)(left % (uint64_t)box->count[i]);
            left /= (uint64_t)box->count[i];
            from += (box->start[i] + at) % input->shape[i] * array->strides[i];
            to += at * l->view.strides[first_axis + i];
        }
        memcpy(to, from, item_bytes);
    }
    aim(input, grain, &l->view, box);
}

struct engine_view whole_view(const struct program *program, unsigned index,
                              const struct whole_array *array, const struct grain *grain)
{
    const struct program_input *input = &program->inputs[index];
    struct engine_view view = {.base = array->memory, .is_swapped = array->is_swapped};
    for (int i = 0; i < input->ndim; i++) {
        int axis = grain->shape.ndim - input->ndim + i;
        view.strides[axis] = input->shape[i] == 1 ? 0 : array->strides[i];
        view.base = (char *)view.base + grain->start[axis] * view.strides[axis];
    }
    return view;
}
