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

/* Of all that a pass does with an element; and of what is beside the instructions. */
uint64_t op_pass_worst_ns(const struct program *program, const struct pass *pass);
uint64_t op_pass_other_worst_ns(const struct program *program, const struct pass *pass);
