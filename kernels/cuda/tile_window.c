/* Records of the windows that a grain reads (device/window.inc).
 *
 * The slot has what lies around the grain's elements, as of what is near (tile_near.c), or has got
 * it before (tile_phases.c). A record
 * has the operand's elements as a place of their own, and, for each axis along which the window has
 * several, where along it the grain begins: what of a window lies beyond an end, and where its
 * blocks begin, follows from there. An axis that the operand has not, or of which it has one
 * element, is the same for all of the grain.
 *
 * Called by tile_grain.c.
 */
#include "kernels/cuda/tile_parts.h"

#include "kernels/cuda/encode_actions.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

uint32_t tile_window_bytes(const struct pass *pass)
{
    return (uint32_t)offsetof(struct code_window, place) + tile_place_bytes(pass);
}

/* In visiting order. */
static uint32_t n_before(const struct engine_box *box, int axis)
{
    uint32_t n = 1;
    for (int i = box->ndim - 1; box->axis_order[i] != axis; i--)
        n *= (uint32_t)box->count[box->axis_order[i]];
    return n;
}

static void write_axes(const struct engine_box *box, const struct program_window *window,
                       const struct pass *of, const struct engine_view *view,
                       struct code_window_axis *axes)
{
    unsigned n = 0;
    for (int i = 0; i < of->ndim; i++) {
        int axis = box->ndim - of->ndim + i;
        bool is_long = of->shape[i] > 1;
        bool goes_on = (view->goes_on_axes >> axis & 1) && window->modes[i] == NEAR_WRAP;
        if (window->size[i] == 1)
            continue;
        assert(n < CODE_WINDOW_AXES);
        axes[n++] = (struct code_window_axis){
            .count = is_long ? (uint32_t)box->count[axis] : 1,
            .divisor = n_before(box, axis),
            .size = (uint32_t)window->size[i],
            .mode = window->modes[i],
            .before = window->before[i],
            .start = is_long && box->start ? box->start[axis] : 0,
            .length = goes_on ? 0 : of->shape[i],
            .stride = is_long ? view->strides[axis] : 0,
        };
    }
    for (; n < CODE_WINDOW_AXES; n++)
        axes[n] = (struct code_window_axis){.count = 1, .divisor = 1, .size = 1};
}

/* Of the i-th of the places; what the window is of has the view and the dtype. */
static void write_window(const struct cuda_tile *t, const struct tile_code *code,
                         const struct engine_box *box, unsigned i, const struct engine_view *view,
                         enum dtype dtype, const struct code_grain *grain, struct code_window *ret)
{
    const struct program_window *window = &t->program->windows[code->places->places[i].index];
    enum dtype as = (enum dtype)window->dtype;
    *ret = (struct code_window){
        .target = tile_place_in(code->header, grain, i)->offset,
        .weights = encode_weights(t->program, code->places, i, NULL),
        .ranks = {(uint16_t)window->ranks[0], (uint16_t)window->ranks[1]},
        .kind = (uint8_t)encode_window_kind(window),
        .from = (uint8_t)encode_type(dtype),
        .as = (uint8_t)encode_type(as),
        .from_log2 = (uint8_t)__builtin_ctzl(dtype_size(dtype)),
        .as_log2 = (uint8_t)__builtin_ctzl(dtype_size(as)),
    };
    memcpy(&ret->beyond, &window->beyond, dtype_size(as));
    write_axes(box, window, &t->program->passes[window->pass], view, ret->axes);
    tile_write_view(t, code->header, box, view, dtype, &ret->place);
}

void tile_write_windows(const struct cuda_tile *t, const struct tile_code *code,
                        const struct engine_box *box, const struct engine_view *inputs,
                        const struct engine_view *made, struct code_grain *grain)
{
    char *windows = (char *)grain + code->header->windows_at;
    for (unsigned i = 0, n = 0; n < code->header->n_windows; i++) {
        const struct encode_place *place = &code->places->places[i];
        if (place->what != ENCODE_WINDOW)
            continue;
        const struct program_window *window = &t->program->windows[place->index];
        const struct operand *operand = encode_window_operand(t->program, window);
        write_window(t, code, box, i, operand ? &inputs[operand->index] : &made[place->index],
                     (enum dtype)(operand ? operand->dtype : window->dtype), grain,
                     (struct code_window *)(windows + (uint64_t)n++ * code->header->window_bytes));
    }
}

void tile_window_grids(const struct cuda_tile *t, const struct encode_places *places,
                       uint32_t n_blocks, struct interpreter_launch *launch)
{
    for (unsigned i = 0; i < places->n_places; i++)
        if (places->places[i].what == ENCODE_WINDOW)
            *(t->program->windows[places->places[i].index].op == OP_WINDOW_RANK
                  ? &launch->n_rank_blocks
                  : &launch->n_window_blocks) = n_blocks;
}
