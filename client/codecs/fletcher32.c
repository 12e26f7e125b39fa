/* Fletcher's checksum of 32 bits behind the bytes, as HDF5 computes it: over words of two bytes,
 * the first byte the higher one, an odd byte at the end as the higher one of a last word. Files of
 * HDF5 before 1.6.3 have each half's bytes the other way, which counts too.
 *
 * Called by checksums (crc32c.c).
 */
#include "client/codecs/scratch.h"

#define MAX_WORDS 360 /* whose sums stay below 2^32 between two foldings */

static uint32_t fold(uint32_t sum)
{
    return (sum & 0xffff) + (sum >> 16);
}

uint32_t fletcher32(const uint8_t *bytes, size_t n_bytes)
{
    uint32_t low = 0, high = 0;
    for (size_t n_words = n_bytes / 2; n_words > 0;) {
        size_t n = n_words < MAX_WORDS ? n_words : MAX_WORDS;
        n_words -= n;
        for (; n > 0; n--, bytes += 2) {
            low += (uint32_t)bytes[0] << 8 | bytes[1];
            high += low;
        }
        low = fold(low);
        high = fold(high);
    }
    if (n_bytes % 2) {
        low = fold(low + ((uint32_t)*bytes << 8));
        high = fold(high + low);
    }
    return fold(high) << 16 | fold(low);
}

bool fletcher32_is(const uint8_t *bytes, size_t n_bytes, uint32_t sum)
{
    uint32_t own = fletcher32(bytes, n_bytes);
    return own == sum || ((own & 0xff00ff) << 8 | (own >> 8 & 0xff00ff)) == sum;
}
