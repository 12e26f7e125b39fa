/* What is near: the element so far away at each place of a pass.
 *
 * Where such an element is, and which box of the array a box of the pass needs for all nears of an
 * input. Pure; planner, worker and engines all take it from here. */
#pragma once

#include "kernels/engine.h"

/* Whether the pass reads some of the input near. */
bool neighbours_are(const struct program *program, const struct pass *pass, unsigned input);

/* How many elements more than a box of the pass the input's box has at most along each of its own
 * axes. False: none, it is not read near. */
bool neighbours_reach(const struct program *program, const struct pass *pass, unsigned input,
                      int64_t *ret_reach);

/* The modes, bits, of the input's nears with an offset along this axis of its own. */
unsigned neighbours_modes(const struct program *program, const struct pass *pass, unsigned input,
                          int axis);

/* The input's box for a box of the pass, in its own axes, and never empty: with what the pass's
 * repeats read of it. With NEAR_WRAP it may go
 * on beyond the end of an axis: with the elements from its beginning. */
void neighbours_box(const struct program *program, const struct pass *pass, unsigned input,
                    const int64_t *start, const int64_t *count, int64_t *ret_start,
                    int64_t *ret_count);

/* What repeats make for a box of the pass; axes along which one is wrapped may go on as above. Of
 * the states of one, in their axes, with so many steps still to be taken. */
void neighbours_repeat_box(const struct program_repeat *repeat, uint32_t n_left, int ndim,
                           const int64_t *start, const int64_t *count, int64_t *ret_start,
                           int64_t *ret_count);
/* What of a window's operand a box of the pass needs, in the operand's axes, in the same way. */
void neighbours_window_box(const struct program_window *window, const struct pass *operand,
                           int ndim, const int64_t *start, const int64_t *count, int64_t *ret_start,
                           int64_t *ret_count);
/* Elements more than a box of the pass, along its axes: what its repeats read of arguments, if they
 * take at most so many steps (UINT32_MAX: all of them). Returns the axes, bits, that are wrapped.
 */
uint32_t neighbours_repeats_reach(const struct program *program, const struct pass *pass,
                                  uint32_t most_steps, int64_t *ret_before, int64_t *ret_behind);

/* How far in memory an element of the near is from the one at whose place it is, both within the
 * array. The view is that of the near's input, `of`, in the axes of a pass that has ndim. */
int64_t neighbours_distance(const struct program_near *near, const struct program_input *of,
                            const struct engine_view *view, int ndim);

/* An axis of the pass, as a near has it for a box. Its element i is at near_place(mode, first + i,
 * length); where it is not moved, elements follow each other as in the box. */
struct near_axis {
    bool is_moved;
    uint32_t mode; /* enum near_mode */
    int64_t first, length;
};

static inline struct near_axis neighbours_axis(const struct program_near *near,
                                               const struct program_input *of,
                                               uint32_t goes_on_axes, const struct engine_box *box,
                                               int axis)
{
    int own = axis - (box->ndim - of->ndim);
    struct near_axis a = {.is_moved = false};
    if (own < 0 || near->offsets[own] == 0 || goes_on_axes >> axis & 1)
        return a;
    a.is_moved = true;
    a.mode = near->modes[own];
    a.first = (box->start ? box->start[axis] : 0) + near->offsets[own];
    a.length = of->shape[own];
    return a;
}

/* Whether elements of the box have one that is near which lies beyond an end of an axis. */
bool neighbours_are_beyond(const struct program_near *near, const struct program_input *of,
                           uint32_t goes_on_axes, const struct engine_box *box);
