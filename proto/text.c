/* UTF-8 text from a peer.
 *
 * Names, labels and pieces of an expression come from clients and go into error messages, lists
 * and logs. What is stored is checked (text_is_printable, text_is_identifier); what is only quoted
 * in a message is made printable, so that a reply is always valid UTF-8 and a terminal or a log
 * never sees control characters of somebody else. Cutting a message at the size of its field can
 * leave half a character at the end: text_make_printable() repairs that too.
 *
 * Overlong forms, surrogates and code points above U+10FFFF are not characters. C1 controls
 * (U+0080 to U+009F) count as control characters. So do those that a terminal obeys and nobody
 * sees: marks of direction, which let a text be read in another order than it stands, separators of
 * lines and paragraphs, and tags.
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

/* Of a valid character of so many bytes. */
static uint32_t code_point(const char *text, size_t n)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (uint8_t)text[0] & masks[n];
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((uint8_t)text[i] & 0x3f);
    return code;
}

static bool is_control(const char *text, size_t n)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},     /* of the Arabic direction */
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x206f},   /* separators, directions */
        {0xfff9, 0xfffb}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}, /* annotations, order, tags */
    };
    uint32_t code = code_point(text, n);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

bool text_is_printable(const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        size_t n = text_character_bytes(text + i, n_bytes - i);
        if (n == 0 || is_control(text + i, n))
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
        if (n == 0 || is_control(text + i, n)) {
            n = n == 0 ? 1 : n;
            memset(text + i, '?', n);
        }
        i += n;
    }
}

size_t text_quote(const char *text, char *ret, size_t n_bytes)
{
    size_t n = 0, n_text = strlen(text);
    if (n_bytes < 3)
        return 0;
    ret[n++] = '"';
    for (size_t i = 0; i < n_text;) {
        size_t n_of = text_character_bytes(text + i, n_text - i);
        bool is_shown = n_of > 0 && !is_control(text + i, n_of);
        bool is_escaped = strchr("\"\\=", text[i]) != NULL;
        size_t n_out = is_shown ? n_of + is_escaped : 1;
        if (n + n_out + 2 > n_bytes)
            break;
        if (is_escaped)
            ret[n++] = '\\';
        if (is_shown)
            memcpy(ret + n, text + i, n_of);
        else
            ret[n] = '?';
        n += is_shown ? n_of : 1;
        i += n_of > 0 ? n_of : 1;
    }
    ret[n++] = '"';
    ret[n] = '\0';
    return n;
}
