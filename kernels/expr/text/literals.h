/* Arguments that must be known while the expression is compiled, by keyword. The operation must
 * have the keyword. */
#pragma once

#include "kernels/expr/compiler.h"

/* NULL: not given. */
const struct ast_node *literals_find(const struct compiler *c, const struct ast_node *n,
                                     const char *keyword);
/* Of what is given: an integer or a tuple of them, at most ARRAY_MAX_NDIM; */
int literals_integers(struct compiler *c, const struct ast_node *n, const char *keyword,
                      __int128 *ret, unsigned *ret_n, bool *ret_is_tuple) GAD_MUST_CHECK;
int literals_integer(struct compiler *c, const struct ast_node *n, const char *keyword,
                     __int128 *ret) GAD_MUST_CHECK;
int literals_number(struct compiler *c, const struct ast_node *n, const char *keyword,
                    double *ret) GAD_MUST_CHECK;
/* *ret stays where it is not given. */
int literals_flag(struct compiler *c, const struct ast_node *n, const char *keyword,
                  bool *ret) GAD_MUST_CHECK;
enum dtype literals_dtype(const struct compiler *c, const struct ast_node *n, enum dtype otherwise);
/* One of these words; *ret, its number, stays where none is given. */
int literals_word(struct compiler *c, const struct ast_node *n, const char *keyword,
                  const char *const *words, unsigned n_words, unsigned *ret) GAD_MUST_CHECK;
