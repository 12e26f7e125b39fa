/* Which action of the interpreter an instruction is. Pure code. */
#pragma once

#include "kernels/cuda/code.h"
#include "kernels/program.h"

enum code_type encode_type(enum dtype dtype);

/* ACTION_NONE for what the compiler cannot have made. *ret_is_exchanged: the action takes the first
 * two sources in the other order. */
enum code_action encode_action(const struct insn *insn, bool *ret_is_exchanged);
