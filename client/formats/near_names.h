/* Names of what there is in a file, for whoever asks for one that is not there: those that are
 * nearly the same come first, the others in the order in which they were added. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>

#define NEAR_NAME_BYTES 128
#define NEAR_TEXT_BYTES 112
#define NEAR_MAX_NAMES  64

/* Zeroed but for `wanted`, it has no names. */
struct near_names {
    const char *wanted;
    unsigned n;
    bool is_cut; /* there are more */
    struct near_name {
        char name[NEAR_NAME_BYTES];
        unsigned rank;
    } found[NEAR_MAX_NAMES];
};

/* Of paths the last parts are compared. */
void near_names_add(struct near_names *names, const char *name);

/* "'/u', '/v', ..." into the buffer, "" when there are none; returns it. */
const char *near_names_text(const struct near_names *names, char *buffer, size_t n_bytes);

/* not-found: "no dataset '/uu'; there are '/u', '/v'". kind: what it would be. */
int near_names_error(const struct near_names *names, const char *kind, const char *name,
                     struct gad_error *error);
