/* What the arguments that a function of the catalogue must have are called.
 *
 * NumPy's names, by which its own functions take them: people write quantile(a, q=0.5). Its ufuncs
 * take their operands by position only, and so do where, matmul and bincount. Functions that NumPy
 * has not got use the names of SciPy's, or of NumPy's generators.
 */
#include "proto/op_arguments.h"

const char *op_arguments(unsigned row)
{
    switch (row) {
    case OP_ROW_SELECT: return "condlist, choicelist";
    case OP_ROW_TENSORDOT:
    case OP_ROW_ISCLOSE: return "a, b";
    case OP_ROW_SEARCHSORTED: return "a, v";
    case OP_ROW_DIGITIZE: return "x, bins";
    case OP_ROW_TAKE: return "a, indices";
    case OP_ROW_INDEX: return "axis";
    case OP_ROW_BERNOULLI: return "p";
    case OP_ROW_INTEGERS: return "low";
    case OP_ROW_PERMUTATION:
    case OP_ROW_NORM:
    case OP_ROW_SINC:
    case OP_ROW_NAN_TO_NUM:
    case OP_ROW_ISPOSINF:
    case OP_ROW_ISNEGINF: return "x";
    case OP_ROW_CHOICE:
    case OP_ROW_CLIP:
    case OP_ROW_ROUND: return "a";
    default: break;
    }
    if (op_row_info(row)->rule == OP_RULE_QUANTILE && op_row_info(row)->n_args == 2)
        return "a, q";
    if (op_rule_reduces(op_row_info(row)->rule))
        return "a";
    switch (op_row_info(row)->rule) {
    case OP_RULE_QUANTILE:
    case OP_RULE_SCAN:
    case OP_RULE_HISTOGRAM: return "a";
    default: return NULL;
    }
}
