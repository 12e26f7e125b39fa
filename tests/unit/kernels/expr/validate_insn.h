/* What an instruction and a product promise, wherever they stand. */
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

/* That a product fits its passes: validate_product.c. NULL, or what is wrong. */
const char *product_check(const struct program *program, const struct program_product *product);
