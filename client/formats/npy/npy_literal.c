/* A small parser of Python literals, for the headers of npy files.
 *
 * A header is text from a file that somebody else may have made: a dict of strings, booleans and
 * tuples of integers, and for structured dtypes lists of tuples. It is read by recursive descent
 * with a bounded depth, over a text with a known end; nothing is evaluated.
 *
 * Called by npy_header.c, and through it by the fuzz target.
 */
#include "client/formats/npy/npy_literal.h"

#include <string.h>

static void skip_blanks(struct literal *literal)
{
    while (literal->at < literal->end && strchr(" \t\r\n\f\v", *literal->at) && *literal->at)
        literal->at++;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool literal_take(struct literal *literal, char c)
{
    skip_blanks(literal);
    if (literal->at == literal->end || *literal->at != c)
        return false;
    literal->at++;
    return true;
}

bool literal_is_at_end(struct literal *literal)
{
    skip_blanks(literal);
    return literal->at == literal->end;
}

bool literal_string(struct literal *literal, const char **ret_text, size_t *ret_n_chars)
{
    skip_blanks(literal);
    const char *at = literal->at;
    if (literal->end - at >= 2 && (*at == 'u' || *at == 'U'))
        at++;
    if (at == literal->end || (*at != '\'' && *at != '"'))
        return false;
    char quote = *at++;
    const char *text = at;
    for (; at < literal->end; at++) {
        if (*at == quote) {
            *ret_text = text;
            *ret_n_chars = (size_t)(at - text);
            literal->at = at + 1;
            return true;
        }
        if (*at == '\n' || *at == '\0')
            return false;
        if (*at == '\\') {
            at++;
            if (at == literal->end || !strchr("\\'\"", *at) || !*at)
                return false;
        }
    }
    return false;
}

/* The word at the cursor: letters, digits, underscores. */
static size_t word_length(const struct literal *literal)
{
    const char *at = literal->at;
    while (at < literal->end && is_word_char(*at))
        at++;
    return (size_t)(at - literal->at);
}

bool literal_bool(struct literal *literal, bool *ret_value)
{
    skip_blanks(literal);
    size_t n = word_length(literal);
    if (n == 4 && memcmp(literal->at, "True", 4) == 0)
        *ret_value = true;
    else if (n == 5 && memcmp(literal->at, "False", 5) == 0)
        *ret_value = false;
    else
        return false;
    literal->at += n;
    return true;
}

bool literal_int(struct literal *literal, int64_t *ret_value, bool *ret_fits)
{
    skip_blanks(literal);
    const char *at = literal->at;
    bool is_negative = false;
    if (at < literal->end && (*at == '-' || *at == '+'))
        is_negative = *at++ == '-';
    const char *digits = at;
    int64_t value = 0;
    bool fits = true;
    for (; at < literal->end && *at >= '0' && *at <= '9'; at++) {
        int64_t digit = is_negative ? -(*at - '0') : *at - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            fits = false;
    }
    if (at == digits)
        return false;
    if (at < literal->end && *at == 'L')
        at++;
    if (at < literal->end && (is_word_char(*at) || *at == '.'))
        return false;
    literal->at = at;
    *ret_value = fits ? value : 0;
    *ret_fits = fits;
    return true;
}

static bool skip_nested(struct literal *literal, int depth);

/* After the opening bracket: items with commas (and colons, in a dict) between them. */
static bool skip_items(struct literal *literal, char close, int depth)
{
    while (!literal_take(literal, close)) {
        if (!skip_nested(literal, depth))
            return false;
        if (close == '}' && (!literal_take(literal, ':') || !skip_nested(literal, depth)))
            return false;
        if (!literal_take(literal, ',')) {
            return literal_take(literal, close);
        }
    }
    return true;
}

static bool skip_nested(struct literal *literal, int depth)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *text;
    size_t n_chars;
    int64_t value;
    bool fits;
    if (depth == 0)
        return false;
    for (int i = 0; opening[i]; i++)
        if (literal_take(literal, opening[i]))
            return skip_items(literal, closing[i], depth - 1);
    if (literal_string(literal, &text, &n_chars) || literal_int(literal, &value, &fits))
        return true;
    n_chars = word_length(literal);
    literal->at += n_chars;
    return n_chars > 0;
}

bool literal_skip(struct literal *literal)
{
    struct literal copy = *literal;
    if (!skip_nested(&copy, LITERAL_MAX_DEPTH))
        return false;
    *literal = copy;
    return true;
}
