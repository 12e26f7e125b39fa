/* See ops.h. */
#include "kernels/ops.h"

static const struct op_info internals[OP_COUNT - OP_N_ROWS] = {
#define INTERNAL(id, name, n_args, doc)                                                            \
    [OP_##id - OP_N_ROWS] = {name, NULL, NULL, n_args, 1, NULL, OP_RULE_NONE, doc},
#include "kernels/ops_internal.def"
#undef INTERNAL
};

#define INTERNAL(id, name, n_args, doc)                                                            \
    _Static_assert(sizeof(name) > 1 && sizeof(doc) > 1 && (n_args) >= 1 && (n_args) <= 3, #id);
#include "kernels/ops_internal.def"
#undef INTERNAL

const struct op_info *op_info(enum op op)
{
    return (unsigned)op < OP_N_ROWS ? op_row_info(op) : &internals[op - OP_N_ROWS];
}

enum op op_find(const char *name, size_t n_chars)
{
    unsigned row = op_row_find(name, n_chars);
    return row < OP_N_ROWS ? (enum op)row : OP_COUNT;
}

int op_is_comparison(enum op op)
{
    return op >= OP_EQUAL && op <= OP_GREATER_EQUAL;
}

enum op op_mirrored(enum op op)
{
    switch (op) {
    case OP_LESS: return OP_GREATER;
    case OP_LESS_EQUAL: return OP_GREATER_EQUAL;
    case OP_GREATER: return OP_LESS;
    case OP_GREATER_EQUAL: return OP_LESS_EQUAL;
    default: return op;
    }
}
