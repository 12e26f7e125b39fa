/* A map's header is one byte (0x80 | n), or 0xde and two bytes, or 0xdf and four, big-endian; its
 * pairs follow. What the worker says can so be made part of a reply without a copy of its meaning.
 * Called by finish.c and info.c, for payloads that message_decode() has taken for maps.
 */
#include "daemon/broker/sessions/splice.h"

#include <assert.h>

void splice_map(const char *bytes, size_t n_bytes, uint32_t *ret_n_pairs, const char **ret_pairs,
                size_t *ret_n_pair_bytes)
{
    const uint8_t *at = (const uint8_t *)bytes;
    assert(n_bytes > 0);
    uint32_t n_pairs = at[0] & 0x0f;
    size_t n_count_bytes = at[0] == 0xde ? 2 : at[0] == 0xdf ? 4 : 0;
    assert(n_bytes > n_count_bytes);
    if (n_count_bytes > 0)
        n_pairs = 0;
    for (size_t i = 0; i < n_count_bytes; i++)
        n_pairs = n_pairs << 8 | at[1 + i];
    *ret_n_pairs = n_pairs;
    *ret_pairs = bytes + 1 + n_count_bytes;
    *ret_n_pair_bytes = n_bytes - 1 - n_count_bytes;
}
