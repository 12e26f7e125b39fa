/* Operations as the compiler and the engines know them: the catalogue's rows (proto/ops.def), with
 * the same numbers, and behind them what no expression names (ops_internal.def). */
#pragma once

#include "proto/ops.h"

enum op {
#define OP(id, name, symbol, alias, n_args, n_results, keywords, rule, doc) OP_##id,
#include "proto/ops.def"
#undef OP
#define INTERNAL(id, name, n_args, doc) OP_##id,
#include "kernels/ops_internal.def"
#undef INTERNAL
    OP_COUNT
};

/* Of one that is internal the rule is OP_RULE_NONE. */
const struct op_info *op_info(enum op op);

/* By name or alias, in the catalogue; OP_COUNT when there is none. */
enum op op_find(const char *name, size_t n_chars);

/* EQUAL to GREATER_EQUAL; and the operator that says the same with its sources exchanged, which for
 * all but the four of order is itself. */
int op_is_comparison(enum op op);
enum op op_mirrored(enum op op);
