/* By what a loop that goes on later tells the arrays that it began with from others. */
#pragma once

#include "client/array.h"

/* To begin with; numbers are added one after the other. */
#define IDENTITY_BASIS UINT64_C(0xcbf29ce484222325)

uint64_t identity_bytes(uint64_t sum, const void *bytes, size_t n_bytes);
/* NULL: as "". */
uint64_t identity_text(uint64_t sum, const char *text);

/* Of files where they are, how long and how old, and what is selected of them; of memory all
 * elements; of what a function of the program's own makes dtype and shape alone. Before a job reads
 * it: files of many are watched from now on (struct provider). */
uint64_t identity_array(uint64_t sum, const struct gad_array *array);
/* Its name, and its array or number. */
uint64_t identity_argument(uint64_t sum, const struct gad_argument *arg);
