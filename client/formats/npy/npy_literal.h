/* Python literals, as far as the header of an npy file can hold them: a cursor over a text that is
 * not NUL-terminated. Every function skips blanks first and moves the cursor past what it took only
 * when it returns true. Nothing is evaluated or allocated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct literal {
    const char *at, *end;
};

#define LITERAL_MAX_DEPTH 32

/* The one character c, which is punctuation. */
bool literal_take(struct literal *literal, char c);
/* Whether only blanks are left. */
bool literal_is_at_end(struct literal *literal);
/* '...' or "...", with an optional u before it. Escapes of quotes and backslashes only. The text
 * between the quotes, as written. */
bool literal_string(struct literal *literal, const char **ret_text, size_t *ret_n_chars);
/* True or False. */
bool literal_bool(struct literal *literal, bool *ret_value);
/* A decimal integer, with an optional sign and Python 2's L after it. ret_fits is false when it is
 * beyond 64 bits. */
bool literal_int(struct literal *literal, int64_t *ret_value, bool *ret_fits);
/* Any literal: string, number, name, or bracketed list of such, at most LITERAL_MAX_DEPTH deep. */
bool literal_skip(struct literal *literal);
