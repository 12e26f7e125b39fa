/* UTF-8 text from a peer.
 *
 * Names, labels and pieces of an expression come from clients and go into error messages, lists
 * and logs. What is stored is checked (text_is_printable, text_is_identifier); what is only quoted
 * in a message is made printable, so that a reply is always valid UTF-8 and a terminal or a log
 * never sees control characters of somebody else. Cutting a message at the size of its field can
 * leave half a character at the end: text_make_printable() repairs that too.
 *
 * Overlong forms, surrogates and code points above U+10FFFF are not characters. C1 controls
 * (U+0080 to U+009F) count as control characters.
 */
#include "proto/text.h"

#include <stdint.h>
#include <string.h>

static bool is_continuation(const char *text)
{
    return ((uint8_t)*text & 0xc0) == 0x80;
}

static size_t announced_bytes(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first < 0xe0)
        return 2;
    if (first >= 0xe0 && first < 0xf0)
        return 3;
    if (first >= 0xf0 && first < 0xf5)
        return 4;
    return 0;
}

size_t text_character_bytes(const char *text, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    uint8_t first = (uint8_t)text[0];
    size_t n = announced_bytes(first);
    if (n == 0 || n > n_bytes)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!is_continuation(text + i))
            return 0;
    uint8_t second = n > 1 ? (uint8_t)text[1] : 0;
    bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    bool is_surrogate = first == 0xed && second >= 0xa0;
    bool is_too_large = first == 0xf4 && second >= 0x90;
    return is_overlong || is_surrogate || is_too_large ? 0 : n;
}

static bool is_control(const char *text)
{
    uint8_t first = (uint8_t)text[0];
    return first < 0x20 || first == 0x7f || (first == 0xc2 && (uint8_t)text[1] < 0xa0);
}

bool text_is_printable(const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        size_t n = text_character_bytes(text + i, n_bytes - i);
        if (n == 0 || is_control(text + i))
            return false;
        i += n;
    }
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool text_is_identifier(const char *text, size_t n_bytes)
{
    if (n_bytes == 0 || !is_letter(text[0]))
        return false;
    for (size_t i = 1; i < n_bytes; i++)
        if (!is_letter(text[i]) && !(text[i] >= '0' && text[i] <= '9'))
            return false;
    return true;
}

void text_make_printable(char *text)
{
    size_t n_bytes = strlen(text);
    for (size_t i = 0; i < n_bytes;) {
        size_t n = text_character_bytes(text + i, n_bytes - i);
        if (n == 0 || is_control(text + i)) {
            n = n == 0 ? 1 : n;
            memset(text + i, '?', n);
        }
        i += n;
    }
}
