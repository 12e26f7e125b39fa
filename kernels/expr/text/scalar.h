/* Python's numbers: folding them, and giving them a dtype. */
#pragma once

#include "kernels/expr/compiler.h"

int scalar_fold(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret) GAD_MUST_CHECK;
/* One of a request. */
struct value scalar_of_request(enum dtype dtype, union scalar scalar);
double scalar_as_double(const struct value *v);
bool scalar_fits(const struct value *v, enum dtype dtype);
/* As NumPy converts when the other operand has `dtype`: an integer must fit. */
int scalar_convert(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
                   union scalar *ret) GAD_MUST_CHECK;
/* As the dtype's constructor does: fractions are cut off, bool is "not zero". */
int scalar_construct(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
                     union scalar *ret) GAD_MUST_CHECK;
/* "-128 to 127", and a number as decimal text; return the buffer. */
const char *scalar_format_range(enum dtype dtype, char buffer[static 64]);
const char *scalar_format(__int128 value, char buffer[static 64]);
