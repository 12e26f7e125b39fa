/* What an instruction promises by itself, wherever it stands. */
#pragma once

#include "kernels/program.h"

/* In functions that give NULL, or what is wrong. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return #condition;                                                                     \
    } while (0)

/* Whether its second operand is a table. */
bool insn_is_lookup(const struct insn *insn);

/* That engines have it for its dtypes. NULL, or what is wrong. */
const char *insn_check_dtypes(const struct insn *insn);
