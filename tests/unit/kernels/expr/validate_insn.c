/* The dtypes and operands of single instructions (see validate.c). */
#include "tests/unit/kernels/expr/validate_insn.h"

bool insn_is_lookup(const struct insn *insn)
{
    return insn->op == OP_SEARCH_LEFT || insn->op == OP_SEARCH_RIGHT || insn->op == OP_TAKE;
}

/* What engines have for no dtype, or not for this one. */
static const char *check_insn_is_engines(const struct insn *insn)
{
    enum dtype d = (enum dtype)insn->compute;
    switch (op_info((enum op)insn->op)->rule) {
    case OP_RULE_LOGICAL:
    case OP_RULE_FLOAT64:
    case OP_RULE_ROUND:
    case OP_RULE_ITERATE:
    case OP_RULE_SELECT:
    case OP_RULE_CLIP:
    case OP_RULE_ISCLOSE:
    case OP_RULE_NAN_TO_NUM:
    case OP_RULE_SINC:
    case OP_RULE_RANDOM:
    case OP_RULE_RANDOM_INTEGERS:
    case OP_RULE_SCAN:
    case OP_RULE_BINCOUNT:
    case OP_RULE_HISTOGRAM:
    case OP_RULE_QUANTILE:
    case OP_RULE_MATMUL:
    case OP_RULE_TENSORDOT:
    case OP_RULE_QR:
    case OP_RULE_NEAR:
    case OP_RULE_WINDOW:
    case OP_RULE_INDEX: return "an operation that is written with others";
    case OP_RULE_TABLE: CHECK(insn->op == OP_TAKE); break;
    case OP_RULE_ARITHMETIC: CHECK(d != DTYPE_BOOL); break;
    case OP_RULE_INTEGER:
    case OP_RULE_BITCOUNT: CHECK(dtype_is_integer(d)); break;
    case OP_RULE_FLOAT:
    case OP_RULE_FLOOR:
    case OP_RULE_PREDICATE:
    case OP_RULE_LDEXP: CHECK(dtype_is_float(d)); break;
    default: break;
    }
    switch (insn->op) {
    case OP_POSITIVE:
    case OP_DIVMOD:
    case OP_FABS:
    case OP_DEG2RAD:
    case OP_RAD2DEG: return "an operation that is written with others";
    case OP_RECIPROCAL: CHECK(dtype_is_integer(d)); break;
    case OP_FMIN:
    case OP_FMAX:
    case OP_FREXP_EXPONENT: CHECK(dtype_is_float(d)); break;
    default: break;
    }
    return NULL;
}

static bool is_standard(const struct insn *insn)
{
    return insn->op == OP_STANDARD_UNIFORM || insn->op == OP_STANDARD_NORMAL ||
           insn->op == OP_STANDARD_EXPONENTIAL;
}

/* Seeds, streams and sizes are constants, bits are of 32 or 64. */
static const char *check_random(const struct insn *insn)
{
    switch (insn->op) {
    case OP_RANDOM_U32:
    case OP_RANDOM_U64:
    case OP_RANDOM_PERMUTED:
        CHECK(insn->compute == DTYPE_UINT64);
        CHECK(insn->src[1].kind == OPERAND_CONST && insn->src[2].kind == OPERAND_CONST);
        return NULL;
    case OP_RANDOM_POISSON:
        CHECK(insn->compute == DTYPE_FLOAT64 && insn->src[1].kind == OPERAND_CONST);
        return NULL;
    case OP_MULTIPLY_HIGH: CHECK(insn->compute == DTYPE_UINT64); return NULL;
    default:
        if (is_standard(insn))
            CHECK(insn->compute == DTYPE_UINT32 || insn->compute == DTYPE_UINT64);
        return NULL;
    }
}

static enum dtype result_dtype(const struct insn *insn)
{
    enum op_rule rule = op_info((enum op)insn->op)->rule;
    if (rule == OP_RULE_COMPARE || rule == OP_RULE_PREDICATE)
        return DTYPE_BOOL;
    if (insn->op == OP_BITWISE_COUNT)
        return DTYPE_UINT8;
    if (is_standard(insn))
        return insn->compute == DTYPE_UINT32 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    if (insn->op == OP_RANDOM_U32)
        return DTYPE_UINT32;
    if (insn->op == OP_RANDOM_POISSON)
        return DTYPE_INT64;
    if (insn->op == OP_ORDERED_KEY)
        return insn->compute == DTYPE_FLOAT32 ? DTYPE_UINT32 : DTYPE_UINT64;
    if (insn->op == OP_FROM_ORDERED_KEY)
        return insn->compute == DTYPE_UINT32 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    if (insn->op == OP_SEARCH_LEFT || insn->op == OP_SEARCH_RIGHT)
        return DTYPE_INT64;
    if (insn->op == OP_TAKE)
        return (enum dtype)insn->src[1].dtype;
    return insn->op == OP_FREXP_EXPONENT ? DTYPE_INT32 : (enum dtype)insn->compute;
}

/* Keys are of floats, and of unsigned integers of 32 or 64 bits; what is searched has 64 bits. */
static const char *check_wide(const struct insn *insn)
{
    enum dtype d = (enum dtype)insn->compute;
    if (insn->op == OP_ORDERED_KEY)
        CHECK(dtype_is_float(d));
    if (insn->op == OP_FROM_ORDERED_KEY)
        CHECK(d == DTYPE_UINT32 || d == DTYPE_UINT64);
    if (insn->op == OP_TAKE)
        CHECK(d == DTYPE_INT64);
    else if (insn_is_lookup(insn))
        CHECK(dtype_size(d) == 8);
    return NULL;
}

const char *insn_check_dtypes(const struct insn *insn)
{
    const struct op_info *info = op_info((enum op)insn->op);
    unsigned first = insn->op == OP_WHERE ? 1 : 0;
    if (insn->op == OP_WHERE)
        CHECK(insn->src[0].dtype == DTYPE_BOOL);
    if (info->rule == OP_RULE_COMPARE && insn->src[0].dtype != insn->src[1].dtype) {
        CHECK(insn->compute == insn->src[0].dtype);
        CHECK((insn->src[0].dtype == DTYPE_INT64 && insn->src[1].dtype == DTYPE_UINT64) ||
              (insn->src[0].dtype == DTYPE_UINT64 && insn->src[1].dtype == DTYPE_INT64));
    } else if (insn->op == OP_LDEXP) {
        CHECK(insn->src[0].dtype == insn->compute);
        CHECK(insn->src[1].dtype == (insn->compute == DTYPE_FLOAT32 ? DTYPE_INT32 : DTYPE_INT64));
    } else if (insn->op == OP_RANDOM_POISSON) {
        CHECK(insn->src[0].dtype == DTYPE_UINT64 && insn->src[1].dtype == DTYPE_UINT64);
        CHECK(insn->src[2].dtype == DTYPE_FLOAT64);
    } else if (insn->op == OP_TAKE) {
        CHECK(insn->src[0].dtype == insn->compute);
    } else {
        for (unsigned i = first; i < info->n_args; i++)
            CHECK(insn->src[i].dtype == insn->compute);
    }
    if (insn->op == OP_CAST)
        CHECK(insn->dst.dtype != insn->compute);
    else
        CHECK(insn->dst.dtype == result_dtype(insn));
    const char *fault = check_random(insn);
    if (fault == NULL)
        fault = check_wide(insn);
    return fault != NULL ? fault : check_insn_is_engines(insn);
}
