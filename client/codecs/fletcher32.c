/* Fletcher's checksum of 32 bits behind the bytes, as HDF5 computes it: over words of two bytes,
 * the first byte the higher one, an odd byte at the end as the higher one of a last word. Stored
 * little-endian; files of HDF5 before 1.6.3 have each half's bytes the other way, which counts too.
 */
#include "client/codecs/scratch.h"

#include <string.h>

#define SUM_BYTES 4
#define MAX_WORDS 360 /* whose sums stay below 2^32 between two foldings */

static uint32_t fold(uint32_t sum)
{
    return (sum & 0xffff) + (sum >> 16);
}

static uint32_t checksum(const uint8_t *bytes, size_t n_bytes)
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

static uint32_t swap_halves(uint32_t sum)
{
    return (sum & 0xff00ff) << 8 | (sum >> 8 & 0xff00ff);
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    if (n_from < SUM_BYTES)
        return CODEC_FAULT_SHORT;
    size_t n = n_from - SUM_BYTES;
    const uint8_t *tail = (const uint8_t *)from + n;
    if (n > room)
        return CODEC_FAULT_LONG;
    uint32_t stored = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 |
                      (uint32_t)tail[3] << 24;
    uint32_t sum = checksum(from, n);
    if (sum != stored && swap_halves(sum) != stored)
        return CODEC_FAULT_CHECKSUM;
    memcpy(ret_bytes, from, n);
    *ret_n_bytes = n;
    return 0;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    uint8_t *to = ret_bytes;
    uint32_t sum = checksum(from, n_from);
    if (room < n_from + SUM_BYTES)
        return CODEC_FAULT_LONG;
    memcpy(to, from, n_from);
    for (int i = 0; i < SUM_BYTES; i++)
        to[n_from + (size_t)i] = (uint8_t)(sum >> 8 * i);
    *ret_n_bytes = n_from + SUM_BYTES;
    return 0;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + SUM_BYTES;
}

const struct codec codec_fletcher32 = {
    .name = "fletcher32",
    .hdf5_id = 3,
    .zarr_name = "fletcher32",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
