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
    OP_RULE_COMPARE,    /* common dtype in, bool out; int64 with uint64 compares exactly */
    OP_RULE_BITWISE,    /* integers and bool */
    OP_RULE_SHIFT,      /* integers; bool becomes int8 */
    OP_RULE_SAME,       /* any dtype, unchanged */
    OP_RULE_FLOOR,      /* floats; integers and bool unchanged */
    OP_RULE_PREDICATE,  /* any dtype in, bool out */
    OP_RULE_WHERE,      /* condition (any dtype, as bool), then two of a common dtype */
    OP_RULE_CAST,       /* a dtype's name as a function: float32(x) */
    OP_RULE_SUM,        /* reduction; integers and bool accumulate in 64 bits */
    OP_RULE_EXTREMUM,   /* reduction; same dtype; an empty array is refused */
    OP_RULE_MEAN,       /* reduction; integers and bool become float64 */
    OP_RULE_COUNT,      /* reduction; int64 */
};

enum op {
#define OP(id, name, symbol, alias, n_args, rule, doc) OP_##id,
#include "proto/ops.def"
#undef OP
    OP_COUNT
};

struct op_info {
    const char *name;   /* NumPy's name, "floor_divide" */
    const char *symbol; /* how it is written as an operator, "//", or NULL */
    const char *alias;  /* another of NumPy's names for the same, "abs", or NULL */
    unsigned n_args;
    enum op_rule rule;
    const char *doc; /* one line */
};

const struct op_info *op_info(enum op op);

/* By name or alias; OP_COUNT when there is none. Casts are not here: see dtype_from_name(). */
enum op op_find(const char *name, size_t n_chars);

/* Whether it reduces its argument to one value. */
int op_is_reduction(enum op op);

/* The nearest known name for a misspelt one (edit distance at most 2), or NULL. */
const char *op_suggest(const char *name, size_t n_chars);

/* The distance behind it, for callers with names of their own to suggest. Both lengths are at most
 * OP_NAME_MAX_CHARS. */
unsigned op_name_distance(const char *a, size_t n_a, const char *b, size_t n_b);
