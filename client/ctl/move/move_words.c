/* Words of the movement verbs: lists of numbers, borders, modes. Pure. */
#include "client/ctl/move/verb_move.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool move_read_numbers(const char *text, int *ret_n, int64_t *ret_numbers)
{
    int n = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long long number = strtoll(at, &end, 10);
        if (end == at || errno != 0 || n == GAD_MAX_NDIM)
            return false;
        ret_numbers[n++] = number;
        at = end + strspn(end, " ");
        if (*at == '\0')
            break;
        if (*at != ',')
            return false;
    }
    *ret_n = n;
    return true;
}

bool move_read_axes(const char *text, int *ret_n, int *ret_axes)
{
    int64_t numbers[GAD_MAX_NDIM];
    if (!move_read_numbers(text, ret_n, numbers))
        return false;
    for (int i = 0; i < *ret_n; i++) {
        if (numbers[i] < INT_MIN || numbers[i] > INT_MAX)
            return false;
        ret_axes[i] = (int)numbers[i];
    }
    return true;
}

static bool read_one(const char **at, bool is_whole, struct gad_scalar *ret)
{
    char word[64];
    size_t n_chars = strcspn(*at, ":,");
    int n = snprintf(word, sizeof(word), "%.*s", (int)n_chars, *at);
    *at += n_chars;
    while (n > 0 && n < (int)sizeof(word) && word[n - 1] == ' ')
        word[--n] = '\0';
    if (n >= (int)sizeof(word) || !ctl_read_scalar(word, ret))
        return false;
    double value = ret->float_value;
    if (is_whole && ret->kind == GAD_SCALAR_FLOAT && value == trunc(value) && fabs(value) < 0x1p53)
        *ret = (struct gad_scalar){.kind = GAD_SCALAR_INT, .int_value = (int64_t)value};
    return !is_whole || ret->kind == GAD_SCALAR_INT;
}

bool move_read_pairs(const char *text, bool is_whole, int *ret_n, struct move_pair *ret_pairs)
{
    int n = 0;
    for (const char *at = text;; at++) {
        struct move_pair pair;
        if (n == GAD_MAX_NDIM || !read_one(&at, is_whole, &pair.before))
            return false;
        pair.after = pair.before;
        if (*at == ':') {
            at++;
            if (!read_one(&at, is_whole, &pair.after))
                return false;
        }
        ret_pairs[n++] = pair;
        if (*at == '\0')
            break;
        if (*at != ',')
            return false;
    }
    *ret_n = n;
    return true;
}

/* Where a word is in a table; -1: nowhere. */
static int find_word(const char *const *words, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(words[i], text) == 0)
            return (int)i;
    return -1;
}

bool move_read_mode(const char *text, enum gad_pad_mode *ret_mode)
{
    static const char *const modes[] = {
        [GAD_PAD_CONSTANT] = "constant",   [GAD_PAD_EDGE] = "edge", [GAD_PAD_REFLECT] = "reflect",
        [GAD_PAD_SYMMETRIC] = "symmetric", [GAD_PAD_WRAP] = "wrap",
    };
    int found = find_word(modes, sizeof(modes) / sizeof(modes[0]), text);
    *ret_mode = found < 0 ? *ret_mode : (enum gad_pad_mode)found;
    return found >= 0;
}

bool move_read_take_mode(const char *text, enum gad_take_mode *ret_mode)
{
    static const char *const modes[] = {
        [GAD_TAKE_RAISE] = "raise", [GAD_TAKE_WRAP] = "wrap", [GAD_TAKE_CLIP] = "clip"};
    int found = find_word(modes, sizeof(modes) / sizeof(modes[0]), text);
    *ret_mode = found < 0 ? *ret_mode : (enum gad_take_mode)found;
    return found >= 0;
}
