/* Dtypes as texts.
 *
 * Two notations meet here: the array interface's ("<f8": order, kind, bytes), in which the rest of
 * the package speaks, and the buffer protocol's (a letter whose size depends on the platform and on
 * the sign before it). A format's letter gives the kind and the buffer's itemsize the size, so 'l'
 * may have 4 or 8 bytes. What is exported is what NumPy exports, so that its arrays get the dtypes
 * that it calls int64 and float64, and not others of the same size.
 */
#include "core/typestr.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define NATIVE  '<'
#define SWAPPED '>'
#define OTHER   ">" /* SWAPPED as text */
#else
#define NATIVE  '>'
#define SWAPPED '<'
#define OTHER   "<"
#endif

static const struct {
    char kind;
    int size_bytes;
    const char *format, *swapped; /* of buffers */
} dtypes[] = {
    [GAD_BOOL] = {'b', 1, "?", "?"},          [GAD_INT8] = {'i', 1, "b", "b"},
    [GAD_INT16] = {'i', 2, "h", OTHER "h"},   [GAD_INT32] = {'i', 4, "i", OTHER "i"},
    [GAD_INT64] = {'i', 8, "l", OTHER "q"},   [GAD_UINT8] = {'u', 1, "B", "B"},
    [GAD_UINT16] = {'u', 2, "H", OTHER "H"},  [GAD_UINT32] = {'u', 4, "I", OTHER "I"},
    [GAD_UINT64] = {'u', 8, "L", OTHER "Q"},  [GAD_FLOAT32] = {'f', 4, "f", OTHER "f"},
    [GAD_FLOAT64] = {'f', 8, "d", OTHER "d"},
};

#define N_DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

_Static_assert(sizeof(long) == 8, "'l' is written for int64");

static bool find(char kind, int64_t size_bytes, enum gad_dtype *ret_dtype)
{
    for (size_t i = 0; i < N_DTYPES; i++)
        if (dtypes[i].kind == kind && dtypes[i].size_bytes == size_bytes) {
            *ret_dtype = (enum gad_dtype)i;
            return true;
        }
    return false;
}

bool typestr_parse(const char *text, enum gad_dtype *ret_dtype, bool *ret_is_swapped)
{
    bool has_order = text[0] && strchr("<>|=", text[0]);
    const char *rest = text + has_order;
    if (!rest[0] || rest[1] < '1' || rest[1] > '8' || rest[2] ||
        !find(rest[0], rest[1] - '0', ret_dtype))
        return false;
    *ret_is_swapped = text[0] == SWAPPED && rest[1] != '1';
    return true;
}

void typestr_write(enum gad_dtype dtype, bool is_swapped, char ret_text[TYPESTR_SIZE])
{
    int size_bytes = dtypes[dtype].size_bytes;
    ret_text[0] = size_bytes == 1 ? '|' : is_swapped ? SWAPPED : NATIVE;
    ret_text[1] = dtypes[dtype].kind;
    ret_text[2] = (char)('0' + size_bytes);
    ret_text[3] = 0;
}

static char kind_of_letter(char letter)
{
    if (letter == '?')
        return 'b';
    if (letter && strchr("bhilq", letter))
        return 'i';
    if (letter && strchr("BHILQ", letter))
        return 'u';
    return letter == 'f' || letter == 'd' ? 'f' : 0;
}

bool typestr_parse_format(const char *format, int64_t size_bytes, enum gad_dtype *ret_dtype,
                          bool *ret_is_swapped)
{
    const char *letter = format ? format : "B";
    char order = '@';
    if (letter[0] && strchr("@=<>!", letter[0]))
        order = *letter++;
    if (!letter[0] || letter[1] || !find(kind_of_letter(letter[0]), size_bytes, ret_dtype))
        return false;
    if (order == '!')
        order = '>';
    *ret_is_swapped = order == SWAPPED && size_bytes > 1;
    return true;
}

const char *typestr_format(enum gad_dtype dtype, bool is_swapped)
{
    return is_swapped ? dtypes[dtype].swapped : dtypes[dtype].format;
}
