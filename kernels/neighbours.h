/* What is near: the element so far away at each place of a pass.
 *
 * Where such an element is, and which box of the array a box of the pass needs for all nears of an
 * input. Pure; planner, worker and engines all take it from here. */
#pragma once

#include "kernels/engine.h"

/* Where along an axis of this length the element at `at` is, which may lie beyond the ends by as
 * much as a near's offsets allow; -1: nowhere, it is the near's `beyond`. */
int64_t neighbours_place(enum near_mode mode, int64_t at, int64_t length);

/* Whether the pass reads some of the input near. */
bool neighbours_are(const struct program *program, const struct pass *pass, unsigned input);

/* How many elements more than a box of the pass the input's box has at most along each of its own
 * axes. False: none, it is not read near. */
bool neighbours_reach(const struct program *program, const struct pass *pass, unsigned input,
                      int64_t *ret_reach);

/* The modes, bits, of the input's nears with an offset along this axis of its own. */
unsigned neighbours_modes(const struct program *program, const struct pass *pass, unsigned input,
                          int axis);

/* The input's box for a box of the pass, in its own axes, and never empty. With NEAR_WRAP it may go
 * on beyond the end of an axis: with the elements from its beginning. */
void neighbours_box(const struct program *program, const struct pass *pass, unsigned input,
                    const int64_t *start, const int64_t *count, int64_t *ret_start,
                    int64_t *ret_count);

/* How far in memory an element of the near is from the one at whose place it is, along an axis of
 * the pass which is the near's `own`, in steps. */
int64_t neighbours_step(const struct program *program, const struct program_near *near,
                        const struct engine_view *view, int axis, int own);
