/* The op catalogue: what can be written in an expression. One table feeds compiler, engines,
 * `server.ops`, help texts and the test generator. */
#pragma once

#include <stddef.h>

#define OP_NAME_MAX_CHARS 32 /* of names that are compared for a suggestion */

/* How result and computing dtypes follow from the arguments' (NumPy 2's rules). */
enum op_rule {
    OP_RULE_ARITHMETIC, /* common dtype; bool allowed where NumPy does (add: or, multiply: and) */
    OP_RULE_DIVIDE,     /* integers and bool become float64 */
    OP_RULE_POWER,      /* common dtype; bool becomes int8 */
    OP_RULE_FLOAT,      /* a floating function: integers become the float that holds them */
    OP_RULE_FLOAT64,    /* computed in float64 */
    OP_RULE_COMPARE,    /* common dtype in, bool out; int64 with uint64 compares exactly */
    OP_RULE_BITWISE,    /* integers and bool */
    OP_RULE_SHIFT,      /* integers; bool becomes int8 */
    OP_RULE_BITCOUNT,   /* integers in, uint8 out */
    OP_RULE_INTEGER,    /* integers of a common dtype */
    OP_RULE_LOGICAL,    /* any dtype, as bool; bool out */
    OP_RULE_SAME,       /* any dtype, unchanged */
    OP_RULE_FLOOR,      /* floats; integers and bool unchanged */
    OP_RULE_ROUND,      /* the same, to a number of decimals */
    OP_RULE_LDEXP,      /* a float and an integer */
    OP_RULE_PREDICATE,  /* any dtype in, bool out */
    OP_RULE_WHERE,      /* condition (any dtype, as bool), then two of a common dtype */
    OP_RULE_ITERATE,    /* a number of steps, names and their next values: the first name's dtype */
    OP_RULE_SELECT,     /* lists of bools and of choices, which have a common dtype */
    OP_RULE_CLIP,       /* common dtype of the array and the limits that are given */
    OP_RULE_ISCLOSE,    /* any dtype in, bool out */
    OP_RULE_NAN_TO_NUM, /* any dtype, unchanged */
    OP_RULE_SINC,       /* floats; integers become float64 */
    OP_RULE_INDEX,      /* an axis, written as a number; int64 out */
    OP_RULE_CAST,       /* a dtype's name as a function: float32(x) */
    OP_RULE_SUM,        /* reduction; integers and bool accumulate in 64 bits */
    OP_RULE_EXTREMUM,   /* reduction; same dtype; an empty array is refused */
    OP_RULE_MEAN,       /* reduction; integers and bool become float64 */
    OP_RULE_COUNT,      /* reduction; int64 */
    OP_RULE_ARGUMENT,   /* reduction; any dtype in, int64 out; an empty array is refused */
    OP_RULE_VARIANCE,   /* reduction; integers and bool become float64 */
    OP_RULE_TRUTH,      /* reduction; any dtype, as bool; bool out */
    OP_RULE_NORM,       /* reduction; integers and bool become float64 */
    OP_RULE_LOGSUMEXP,  /* reduction; a floating function */
    OP_RULE_RANDOM,     /* random numbers; parameters are cast to their dtype */
    OP_RULE_RANDOM_INTEGERS, /* random integers; parameters are integers */
    OP_RULE_SCAN,            /* running along an axis; dtypes as OP_RULE_SUM */
    OP_RULE_BINCOUNT,        /* integers in; int64 out, or with weights float64 */
    OP_RULE_HISTOGRAM,       /* numbers in; int64 or float64 out, edges float */
    OP_RULE_TABLE,           /* one argument is looked up in the other, which has one axis */
    OP_RULE_QUANTILE,        /* reduction; integers and bool become float64 */
    OP_RULE_MATMUL,          /* common dtype; of bools: or of ands */
    OP_RULE_TENSORDOT,       /* the same of floats */
    OP_RULE_QR,              /* a matrix; integers and bool become float64 */
    OP_RULE_NEAR,            /* any dtype, unchanged; then an integer for each axis */
    OP_RULE_WINDOW,          /* numbers; what windows of them give has dtypes as reductions have */
    OP_RULE_NONE,            /* of what is not in the catalogue */
};

/* Rows of the catalogue. Engines know more operations than these (kernels/ops.h). */
enum op_row {
#define OP(id, name, symbol, alias, n_args, n_results, keywords, rule, doc) OP_ROW_##id,
#include "proto/ops.def"
#undef OP
    OP_N_ROWS
};

struct op_info {
    const char *name;     /* NumPy's name, "floor_divide" */
    const char *symbol;   /* how it is written as an operator, "//", or NULL */
    const char *alias;    /* another of NumPy's names for the same, "abs", or NULL */
    unsigned n_args;      /* that must be given */
    unsigned n_results;   /* 2: written divmod(a, b)[0] and divmod(a, b)[1] */
    const char *keywords; /* "decimals=0": optional parameters and their defaults, or NULL; those
                             behind a "*" come by name only, one without a default must be given */
    enum op_rule rule;
    const char *doc; /* one line */
};

/* All take a row below OP_N_ROWS. */
const struct op_info *op_row_info(unsigned row);

/* By name or alias; OP_N_ROWS when there is none. Casts are not here, see dtype_from_name(). */
unsigned op_row_find(const char *name, size_t n_chars);

/* The dtypes that its arrays may have, by the rule: some of "bool int float", where int stands for
 * all signed and unsigned integers. "bool, bool int float" where the first argument differs from
 * the others; "but uint64" takes one out again. Static text. */
const char *op_dtypes(unsigned row);

/* What its arguments that it must have are called: NumPy's names, "a, q", where they may be given
 * by name; NULL where they come by position only, as a ufunc's do. Static text. */
const char *op_arguments(unsigned row);

/* Whether operations of this rule reduce axes of their argument. */
int op_rule_reduces(enum op_rule rule);

/* The nearest known name for a misspelt one (edit distance at most 2), or NULL. */
const char *op_suggest(const char *name, size_t n_chars);

/* The distance behind it, for callers with names of their own to suggest. Both lengths are at most
 * OP_NAME_MAX_CHARS. */
unsigned op_name_distance(const char *a, size_t n_a, const char *b, size_t n_b);
