/* Passes that only move one array into another whose fastest axis differs: from where the source
 * lies to where the output goes, without strips between.
 *
 * Two axes are transposed as blocks (transpose.c), all others are counted through. Bytes are moved
 * as they are, so both sides have one dtype and byte order, and no bool, whose bytes have to become
 * 0 and 1. Everything else goes through strips. Called by run.c for each box.
 */
#include "kernels/cpu/moves/movement.h"

#include "proto/box.h"
#include "proto/util.h"

/* The source of a pass that does nothing but store it; -1: it does more. */
static int moved_input(const struct program *program, const struct pass *pass)
{
    const struct store *store = &program->stores[pass->first_store];
    if (pass->n_insns || pass->n_reductions || pass->n_stores != 1 ||
        store->src.kind != OPERAND_INPUT || store->src.index >= program_all_inputs(program))
        return -1;
    const struct program_input *input = &program->inputs[store->src.index];
    bool is_same = input->dtype == program->outputs[store->output].dtype;
    return is_same && input->dtype != DTYPE_BOOL ? store->src.index : -1;
}

/* The axis along which elements are neighbours; -1: there is none of some length. */
static int dense_axis(const struct engine_box *box, const struct engine_view *view,
                      int64_t item_bytes)
{
    for (int i = 0; i < box->ndim; i++)
        if (box->count[i] > 1 && view->strides[i] == item_bytes)
            return i;
    return -1;
}

bool movement_run(const struct transpose_kernels *kernels, const struct program *program,
                  const struct pass *pass, const struct engine_box *box,
                  const struct engine_view *inputs, const struct engine_view *outputs)
{
    int input = moved_input(program, pass);
    if (input < 0)
        return false;
    const struct engine_view *from = &inputs[input];
    unsigned output = program->stores[pass->first_store].output;
    const struct engine_view *to = &outputs[output];
    int64_t item_bytes = (int64_t)dtype_size(program->outputs[output].dtype);
    int column = dense_axis(box, from, item_bytes), row = dense_axis(box, to, item_bytes);
    if (from->is_swapped != to->is_swapped || column < 0 || row < 0 || column == row)
        return false;
    struct transposing t = {.n_rows = (size_t)box->count[row],
                            .n_columns = (size_t)box->count[column],
                            .src_row = from->strides[row],
                            .dst_row = to->strides[column]};
    struct box outer; /* without the axes of a block */
    struct box_place place = {.index = {0}};
    outer.n = 0;
    for (int i = box->ndim - 1; i >= 0; i--)
        if (i != row && i != column)
            box_add(&outer, box->count[i], from->strides[i], to->strides[i]);
    do {
        t.src = (const char *)from->base + place.offset[0];
        t.dst = (char *)to->base + place.offset[1];
        kernels->by_item[__builtin_ctzll((uint64_t)item_bytes)](&t);
    } while (box_next(outer.axes, outer.n, &place));
    return true;
}
