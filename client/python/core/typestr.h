/* Dtypes as texts: NumPy's array-interface strings, and the buffer protocol's formats. */
#pragma once

#include "gpuarrayd.h"

#define TYPESTR_SIZE 4 /* "<f8" */

/* Reads "<f8", "|b1", "=i4" (also "f8"). Returns whether it is one of the library's dtypes. */
bool typestr_parse(const char *text, enum gad_dtype *ret_dtype, bool *ret_is_swapped);
void typestr_write(enum gad_dtype dtype, bool is_swapped, char ret_text[TYPESTR_SIZE]);

/* Reads a buffer's format; NULL is bytes. `size_bytes` is of an element. */
bool typestr_parse_format(const char *format, int64_t size_bytes, enum gad_dtype *ret_dtype,
                          bool *ret_is_swapped);
/* Static text: what NumPy itself exports for the dtype. */
const char *typestr_format(enum gad_dtype dtype, bool is_swapped);
