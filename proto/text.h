/* UTF-8 text from a peer: what may be stored, shown and sent on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the valid UTF-8 character at `text` (1 to 4); 0 when there is none. */
size_t text_character_bytes(const char *text, size_t n_bytes);

/* Valid UTF-8 without control characters, or others that change how what stands beside is read. */
bool text_is_printable(const char *text, size_t n_bytes);

/* Letter or _, then letters, digits and _ (ASCII). */
bool text_is_identifier(const char *text, size_t n_bytes);

/* Puts '?' for every byte that is not part of printable UTF-8; in place, length unchanged. */
void text_make_printable(char *text);

/* A peer's text for a line of KEY=VALUE fields, which it cannot leave: between quotation marks; a
 * backslash is put before those in it, backslashes and equals signs, and '?' for each character
 * that is not printable. Cut between characters where it does not fit. The length; 0 where
 * n_bytes is less than 3, and nothing is written. */
size_t text_quote(const char *text, char *ret, size_t n_bytes);
