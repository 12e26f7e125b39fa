/* What an instruction costs: typically, for the estimate of a job's time, and at its worst, for the
 * bound of a turn's. */
#pragma once

#include "kernels/program.h"

struct op_cost {
    uint8_t cpu, device; /* in cheap instructions, of 4 bytes; typically */
    /* Nanoseconds for an element on one core, whatever the arguments are; 0: it is never an
     * instruction, or reduces in the engine's own way. */
    uint16_t worst_float_ns, worst_integer_ns;
};

const struct op_cost *op_cost(enum op op);

/* Of an instruction that computes in this dtype; 0 as above. */
unsigned op_worst_ns(enum op op, enum dtype compute);

/* Of a window: of the running kinds for an element and an axis, and for each tap of a kernel and
 * place of a rank. */
#define OP_WINDOW_STEP_WORST_NS  16u
#define OP_WINDOW_TAP_WORST_NS   2u
#define OP_WINDOW_PLACE_WORST_NS 64u
#define OP_WINDOW_LOOK_WORST_NS  4u /* where each element of a window is looked at, of any kind */
/* Taps of a kernel, places of a rank; 0: it is of a running kind. */
uint64_t op_window_taps(const struct program_window *window, int ndim);

/* All that a window has at a place. */
uint64_t op_window_elements(const struct program_window *window, int ndim);

/* Of all that a pass does with an element; and of what is beside the instructions. */
uint64_t op_pass_worst_ns(const struct program *program, const struct pass *pass);
uint64_t op_pass_other_worst_ns(const struct program *program, const struct pass *pass);
