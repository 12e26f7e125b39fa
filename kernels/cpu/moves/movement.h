/* Passes that move an array into one of another order of axes. */
#pragma once

#include "kernels/cpu/engine.h"
#include "kernels/cpu/levels/kernels.h"

/* Moves the box and returns true where the pass does nothing else and the layouts are contrary. */
bool movement_run(const struct transpose_kernels *kernels, const struct program *program,
                  const struct pass *pass, const struct engine_box *box,
                  const struct engine_view *inputs, const struct engine_view *outputs);
