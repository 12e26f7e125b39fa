/* The abstract syntax tree of one output's text: what the parser makes and types.c reads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A number as Python has it, or the node of a typed value. Integers hold -2^63 to 2^64 - 1. What is
 * complex is two of these, which complex.c computes with: both are a VALUE_FLOAT, or nodes of one
 * float dtype, and their shapes broadcast together. */
enum value_kind { VALUE_NODE, VALUE_BOOL, VALUE_INTEGER, VALUE_FLOAT, VALUE_COMPLEX };

struct value {
    uint8_t kind;
    uint16_t node; /* VALUE_NODE: index into the graph */
    union {
        __int128 integer;          /* VALUE_BOOL (0, 1) and VALUE_INTEGER */
        double number;             /* VALUE_FLOAT */
        const struct value *parts; /* VALUE_COMPLEX: the real one, the imaginary one */
    };
    bool is_turned; /* VALUE_NODE: the transposed is meant, by the product that it is left in */
};

enum ast_kind {
    AST_VALUE,   /* a number: `value` is set by the parser */
    AST_ARG,     /* request->args[arg] */
    AST_OP,      /* op of children; `dtype` is the target of OP_CAST */
    AST_PART,    /* of complex numbers: `result` is an enum ast_part, of its children */
    AST_PLUS,    /* +x */
    AST_TURNED,  /* x.T, or where is_transposed x.mT */
    AST_BOUND,   /* a name given in the text: its child's value */
    AST_TUPLE,   /* of its children, as some arguments are */
    AST_DTYPE,   /* `dtype`, as some arguments are */
    AST_WORD,    /* `word`, as some arguments are */
    AST_STATE,   /* a state of an iterate() in its body: it begins as the child, a name's value; it
                    is number `result`; `dtype` is what it has come to */
    AST_ITERATE, /* see iterations.c; gives the state `result` */
    AST_STEPPED, /* of a repeat, in its steps: its child is what it is at first */
    AST_REPEAT,  /* children: how often, AST_STEPPEDs, what a step makes of each */
};

/* Functions that make complex numbers and take them apart: names.c has their names. */
enum ast_part { PART_COMPLEX, PART_REAL, PART_IMAG, PART_CONJUGATE, PART_ANGLE, PART_ABS2 };

/* In place of a child: an optional argument that is not given, or is None. */
#define AST_ABSENT UINT32_MAX

struct ast_node {
    uint8_t kind;
    uint8_t n_children; /* select: conditions, as many choices, the default */
    uint8_t dtype;
    uint8_t result;     /* which one of an operation that has two */
    bool is_operator;   /* written with a symbol: on two Python numbers it is Python's */
    bool is_transposed; /* AST_ARG: its last two axes are exchanged */
    uint16_t op;
    uint16_t arg;
    uint32_t column;          /* from 1 */
    const uint32_t *children; /* arguments, then what the catalogue's keywords name */
    struct value value;       /* set by types_resolve() */
    struct repeat *repeat;    /* AST_STEPPED, whose number `result` is, and AST_REPEAT */
    struct {
        uint32_t start, n_chars; /* in the text, without quotes */
    } word;
};

/* Children come before their parents; the last node is the result. A node may have several parents
 * where a name is bound to it, and none where the name is not used: that is checked too. */
struct ast {
    struct ast_node *nodes;
    uint32_t n_nodes;
    size_t capacity; /* at least a node for each character of the longest text, and of what is read
                        again for its calls */
};
