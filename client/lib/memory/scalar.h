/* Numbers as they are: what an element of a dtype can hold of them, and how they are written. */
#pragma once

#include "client/gpuarrayd.h"
#include "proto/error.h"

#define SCALAR_TEXT_SIZE 32

/* ret: an element. False: the dtype is of integers and has no such number. Floats are rounded to
 * the nearest, and of bool is what is not zero True. */
bool scalar_put(enum gad_dtype dtype, const struct gad_scalar *scalar, void *ret) GAD_MUST_CHECK;
/* As an expression has it, whatever the program's language: 2 is an integer, 2.0 a float. Returns
 * the buffer. */
char *scalar_format(const struct gad_scalar *scalar, char buffer[SCALAR_TEXT_SIZE]);
/* "-128 to 127", of integers; returns the buffer. */
char *scalar_format_bounds(enum gad_dtype dtype, char buffer[2 * SCALAR_TEXT_SIZE]);
/* Whether it is this number, which is a small integer. */
bool scalar_is(const struct gad_scalar *scalar, int number);
