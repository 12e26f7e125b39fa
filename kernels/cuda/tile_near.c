/* Places of a grain's record that are near.
 *
 * The slot has what is read near around the grain, so an element of the near is at the same
 * distance from each of the grain's:
 *
 *     slot:   . . . . . . . . .        u: | grain |, near(u, -1, 0): the same, a row above
 *             . . | grain | . .
 *             . . . . . . . . .
 *
 * Where all of them lie within the array, it is a place like any other. Else the device looks for
 * each: axes stay as the pass has them, with what their ends mean (kernels/common/near_place.h),
 * and what lies beyond all of it is in the place.
 *
 * Called by tile_grain.c.
 */
#include "kernels/cuda/tile_parts.h"
#include "kernels/neighbours.h"

#include <assert.h>
#include <string.h>

/* Fastest first. Axes of one element that is not moved are left out. */
static unsigned write_axes(const struct engine_box *box, const struct program_near *near,
                           const struct program_input *of, const struct engine_view *view,
                           struct code_near_axis *axes)
{
    unsigned n = 0;
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        struct near_axis a = neighbours_axis(near, of, view->goes_on_axes, box, axis);
        if (box->count[axis] == 1 && !a.is_moved)
            continue;
        axes[n++] = (struct code_near_axis){.count = (uint32_t)box->count[axis],
                                            .mode = a.mode,
                                            .stride = view->strides[axis],
                                            .first = a.first,
                                            .length = a.length};
    }
    return n;
}

void tile_write_near(const struct cuda_tile *t, const struct code_header *header,
                     const struct engine_box *box, const struct program_near *near,
                     const struct program_input *of, const struct engine_view *view,
                     struct code_place *place)
{
    struct code_near *to = (struct code_near *)place;
    struct engine_view moved = {.base = (char *)view->base +
                                        neighbours_distance(near, of, view, box->ndim),
                                .is_swapped = view->is_swapped};
    memcpy(moved.strides, view->strides, (size_t)box->ndim * sizeof(moved.strides[0]));
    if (!neighbours_are_beyond(near, of, view->goes_on_axes, box)) {
        tile_write_view(t, header, box, &moved, of->dtype, place);
        return;
    }
    unsigned n = write_axes(box, near, of, view, (struct code_near_axis *)(to + 1));
    assert(sizeof(*to) + n * sizeof(struct code_near_axis) <= header->place_bytes);
    *to =
        (struct code_near){.place = {.offset = (char *)moved.base - t->slot,
                                     .kind = CODE_PLACE_NEAR,
                                     .n_axes = (uint8_t)n,
                                     .is_swapped = view->is_swapped && dtype_size(of->dtype) > 1}};
    memcpy(&to->beyond, &near->beyond, dtype_size(of->dtype));
}
