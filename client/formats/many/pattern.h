/* Patterns of file names, as a shell has them: `*`, `?`, `[0-9]`. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether a path has wildcards and there is no file of just that name. */
bool pattern_is(const char *path);

struct pattern_match {
    size_t n;
    char **paths; /* in natural order */
};

/* The paths that match, at least one. `name` is the error's argument. not-found,
 * permission-denied: a folder that cannot be read. */
int pattern_expand(const char *path, const char *name, struct pattern_match *ret_match,
                   struct gad_error *error) GAD_MUST_CHECK;
void pattern_match_deinit(struct pattern_match *match); /* zeroed is allowed */
