/* What the arguments that a function of the catalogue must have are called.
 *
 * NumPy's names, by which its own functions take them: people write quantile(a, q=0.5). Its ufuncs
 * take their operands by position only, and so do where, matmul and bincount. Functions that NumPy
 * has not got use the names of SciPy's, or of NumPy's generators.
 */
#include "proto/op_arguments.h"

const char *op_arguments(enum op op)
{
    switch (op) {
    case OP_SELECT: return "condlist, choicelist";
    case OP_ISCLOSE: return "a, b";
    case OP_SEARCHSORTED: return "a, v";
    case OP_DIGITIZE: return "x, bins";
    case OP_TAKE: return "a, indices";
    case OP_INDEX: return "axis";
    case OP_BERNOULLI: return "p";
    case OP_INTEGERS: return "low";
    case OP_PERMUTATION:
    case OP_NORM:
    case OP_SINC:
    case OP_NAN_TO_NUM:
    case OP_ISPOSINF:
    case OP_ISNEGINF: return "x";
    case OP_CHOICE:
    case OP_CLIP:
    case OP_ROUND: return "a";
    default: break;
    }
    if (op_info(op)->rule == OP_RULE_QUANTILE && op_info(op)->n_args == 2)
        return "a, q";
    if (op_is_reduction(op) && op_info(op)->rule != OP_RULE_INTERNAL)
        return "a";
    switch (op_info(op)->rule) {
    case OP_RULE_QUANTILE:
    case OP_RULE_SCAN:
    case OP_RULE_HISTOGRAM: return "a";
    default: return NULL;
    }
}
