/* From the AST to nodes whose dtypes agree: what the rules share, and the table of them. */
#pragma once

#include "kernels/expr/compiler.h"

/* types.c: from c->ast to a node of the graph, for output `index`; and what the rules share. */
int types_resolve(struct compiler *c, unsigned index) GAD_MUST_CHECK;
enum dtype types_of_node(const struct compiler *c, uint16_t node);
/* What a number becomes when nothing else decides; or the node's. */
enum dtype types_of(const struct compiler *c, const struct value *v);
/* numpy.result_type */
enum dtype types_common(const struct compiler *c, const struct value *a, const struct value *b);
int types_as(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
             uint16_t *ret) GAD_MUST_CHECK;
int types_as_node(struct compiler *c, uint32_t column, const struct value *v,
                  uint16_t *ret) GAD_MUST_CHECK;
/* 0, so that it can end a function. */
int types_set_node(uint16_t node, struct value *ret);
/* For what is wrong with one argument. */
/* numpy.result_type of any number of values. */
enum dtype types_common_of(const struct compiler *c, const struct value *const *values,
                           unsigned n_values);
/* The child's value; NULL where it is absent. */
const struct value *types_child(const struct compiler *c, const struct ast_node *n, unsigned child);
uint32_t types_child_column(const struct compiler *c, const struct ast_node *n, unsigned child);
/* Casts the arguments to `compute` and adds the operation. */
int types_apply(struct compiler *c, const struct ast_node *n, enum op op, enum dtype compute,
                enum dtype dtype, unsigned n_args, const struct value *args,
                struct value *ret) GAD_MUST_CHECK;

/* rules.c: an operation by its rule in the catalogue. `args` are the first three children. */
int rules_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret) GAD_MUST_CHECK;
/* As if `op` were written in n's place: what operations are lowered with. As an operator it is
 * Python's on two numbers. */
int rules_lower(struct compiler *c, const struct ast_node *n, enum op op, unsigned n_args,
                const struct value *args, struct value *ret) GAD_MUST_CHECK;
int rules_lower_operator(struct compiler *c, const struct ast_node *n, enum op op,
                         const struct value *a, const struct value *b,
                         struct value *ret) GAD_MUST_CHECK;
int rules_bad_dtype(struct compiler *c, const struct ast_node *n, enum dtype found,
                    const char *wanted, const char *why);
/* A bool that is the same for every element of `like`, of whose shape it is. */
int rules_known(struct compiler *c, const struct ast_node *n, bool value, const struct value *like,
                struct value *ret) GAD_MUST_CHECK;

/* One rule of the catalogue, or a few: */
typedef int rule_fn(struct compiler *c, const struct ast_node *n, const struct value *args,
                    struct value *ret) GAD_MUST_CHECK;
rule_fn powers_apply, powers_apply_float64;                                  /* powers.c */
rule_fn floats_apply, floats_floor, floats_round, floats_ldexp, floats_sinc; /* floats.c */
rule_fn floats_predicate;
rule_fn closeness_isclose, closeness_nan_to_num;            /* closeness.c */
rule_fn bits_apply, bits_count, bits_integer, bits_logical; /* bits.c */
rule_fn choices_where, choices_select, choices_clip;        /* choices.c */
rule_fn axes_apply;                                         /* axes.c */
rule_fn reductions_apply;                                   /* reductions.c */
rule_fn random_apply;                                       /* random.c */
rule_fn random_integers;                                    /* integers.c */
rule_fn scans_apply;                                        /* scans.c */
rule_fn counts_apply;                                       /* counts.c */
rule_fn lookups_apply;                                      /* lookups.c */
rule_fn histograms_apply;                                   /* histograms.c */
rule_fn products_apply;                                     /* products.c */
rule_fn tensordot_apply;                                    /* tensordot.c */
rule_fn triangles_apply;                                    /* triangles.c */
rule_fn near_apply;                                         /* near.c */
rule_fn windows_apply;                                      /* windows.c */

/* complex.c: pairs of real numbers. Whether an operation has a complex argument; then its rule is
 * complex_apply(). That of an AST_PART, whose arguments may be complex. */
bool complex_is_in(const struct compiler *c, const struct ast_node *n);
rule_fn complex_apply, complex_part_of;
/* Of two parts, or one of a value: of what is real the imaginary one is 0. */
int complex_make(struct compiler *c, const struct ast_node *n, const struct value parts[2],
                 struct value *ret) GAD_MUST_CHECK;
struct value complex_part(const struct value *v, unsigned part);
/* The same where both parts have all elements. */
int complex_whole(struct compiler *c, const struct ast_node *n, const struct value *v,
                  struct value parts[2]) GAD_MUST_CHECK;
int complex_refuse(struct compiler *c, uint32_t column, const char *what, const char *instead);

/* iterate.c: a state's first node; an AST_ITERATE, whose body is to be typed again from a node on
 * (AST_ABSENT: it is done); and that an operation of other elements has none that changes. */
int iterate_begin(struct compiler *c, struct ast_node *state) GAD_MUST_CHECK;
int iterate_end(struct compiler *c, struct ast_node *n, uint32_t *ret_again) GAD_MUST_CHECK;
int iterate_check(struct compiler *c, const struct ast_node *n) GAD_MUST_CHECK;

/* transposed.c: x.T or x.mT of what is computed. */
int turned_apply(struct compiler *c, const struct ast_node *n, const struct value *arg,
                 struct value *ret) GAD_MUST_CHECK;

/* axes.c: that all of the node's index()s are axes of `shape`, in which it is evaluated, and its
 * random numbers as many as that has elements. */
int axes_check(struct compiler *c, uint16_t node, const struct shape *shape) GAD_MUST_CHECK;
