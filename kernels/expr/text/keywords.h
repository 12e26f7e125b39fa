/* Optional parameters of a function, as the catalogue's text "decimals=0" says. */
#pragma once

#include "kernels/ops.h"

#include <stdbool.h>

#define KEYWORDS_MAX 8

enum keyword_kind {
    KEYWORD_EXPRESSION,
    KEYWORD_TUPLE,
    KEYWORD_TUPLES, /* of which elements may be tuples themselves */
    KEYWORD_DTYPE,
    KEYWORD_KERNEL, /* lists of numbers, nested as numpy.array() takes them */
    KEYWORD_WORD,   /* one of a few */
    KEYWORD_NONE,
};

struct keyword {
    const char *name; /* not terminated */
    unsigned n_chars;
    enum keyword_kind kind; /* KEYWORD_NONE: nothing but None */
    bool allows_none, is_required;
};
unsigned keywords_count(enum op op);
unsigned keywords_count_positional(enum op op); /* those that may come without their names */
/* i < keywords_count(op) */
struct keyword keywords_get(enum op op, unsigned i);
bool keywords_is(const struct keyword *k, const char *name);
/* Its number; keywords_count(op) where there is none. */
unsigned keywords_find(enum op op, const char *name, size_t n_chars);
/* The nearest known one, or n_chars 0. */
struct keyword keywords_suggest(enum op op, const char *name, size_t n_chars);
