/* Inputs that are near: the element so far away at each place of a pass.
 *
 * Where such an element is, and which box of the array a grain needs for all inputs that are read
 * together. Pure; planner, worker and engines all take it from here. */
#pragma once

#include "kernels/program.h"

/* Where along an axis of this length the element at `at` is, which may lie beyond the ends by as
 * much as an input's offsets allow; -1: nowhere, it is the input's `beyond`. */
int64_t neighbours_place(enum near_mode mode, int64_t at, int64_t length);

/* The first of the inputs that are read together with this one. */
static inline unsigned neighbours_first(const struct program *program, unsigned input)
{
    return input - program->inputs[input].back;
}

/* Of a pass's inputs those that are read together with this one, and it: bits. */
uint64_t neighbours_together(const struct program *program, const struct pass *pass,
                             unsigned input);

/* Of inputs (bits) that are read together: how many elements more than a box of the pass has their
 * box has at most along each of their own axes. False: none, they are not near. */
bool neighbours_reach(const struct program *program, uint64_t inputs, int64_t *ret_reach);

/* Their box for a box of the pass, in their own axes, and never empty. With NEAR_WRAP it may go on
 * beyond the end of an axis (neighbours_goes_on()): with the elements from its beginning. */
void neighbours_box(const struct program *program, uint64_t inputs, int ndim, const int64_t *start,
                    const int64_t *count, int64_t *ret_start, int64_t *ret_count);
static inline bool neighbours_goes_on(const struct program_input *input, int axis, int64_t start,
                                      int64_t count)
{
    return start + count > input->shape[axis];
}
