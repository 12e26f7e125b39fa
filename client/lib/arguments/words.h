/* Names in the texts of expressions, as whole words. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>

struct gad_job_options;

bool words_is_char(char ch);
/* The next place of the name as a whole word outside quotes; NULL: there is none. */
const char *words_find(const char *text, const char *name);
/* Every whole word `from` of an error becomes `to`. */
void words_restore(struct gad_error *error, const char *from, const char *to);
/* Whether a job has an argument of this name, or says it in an expression. */
bool words_are_taken(const struct gad_job_options *options, const char *name);
