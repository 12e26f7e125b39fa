/* Complex numbers as pairs of real values: what complex.c and complex_functions.c share. */
#pragma once

#include "kernels/expr/rules/rules.h"

/* Steps of real arithmetic, each by its rule in the catalogue: numbers stay numbers of Python's
 * under operators. After a failure, which `r` keeps, the others do nothing. */
struct calc {
    struct compiler *c;
    const struct ast_node *n; /* that is lowered: errors name its column */
    int r;
};

struct pair {
    struct value re, im;
};

struct value calc_number(double number);
struct value calc_operator(struct calc *k, enum op op, struct value a, struct value b);
struct value calc_call(struct calc *k, enum op op, struct value a);
struct value calc_call2(struct calc *k, enum op op, struct value a, struct value b);
struct value calc_where(struct calc *k, struct value condition, struct value a, struct value b);
/* k->r; and the pair, or one real value, as the result. */
int calc_finish(struct calc *k, struct pair z, struct value *ret) GAD_MUST_CHECK;
int calc_finish_real(struct calc *k, struct value x, struct value *ret) GAD_MUST_CHECK;

/* Of a real value the imaginary part is the integer 0. */
struct pair pair_of(const struct value *v);

/* complex.c */
struct pair pair_multiply(struct calc *k, struct pair a, struct pair b);
struct pair pair_divide(struct calc *k, struct pair a, struct pair b);

/* complex_functions.c: all but the operators. */
rule_fn complex_function;
