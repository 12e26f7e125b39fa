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
/* Elements more than a box of the pass, along its axes: what its repeats read of arguments, if they
 * take at most so many steps (UINT32_MAX: all of them). Returns the axes, bits, that are wrapped.
 */
uint32_t neighbours_repeats_reach(const struct program *program, const struct pass *pass,
                                  uint32_t most_steps, int64_t *ret_before, int64_t *ret_behind);

/* How far in memory an element of the near is from the one at whose place it is, along an axis of
 * the pass which is the near's `own`, in steps. */
int64_t neighbours_step(const struct program *program, const struct program_near *near,
                        const struct engine_view *view, int axis, int own);
