/* CRC-32C, and the codecs that put a checksum before or behind a chunk's bytes.
 *
 * values[0]: 1 where the checksum stands before the bytes, as numcodecs has it of crc32 and adler32
 * unless told otherwise; four bytes, little-endian. HDF5's fletcher32 is one of them.
 *
 * The processor's instruction where there is one, else a table of eight times 256 words: eight
 * bytes at a time.
 */
#include "client/codecs/crc32c.h"
#include "client/codecs/scratch.h"

#include <libdeflate.h>
#include <pthread.h>
#include <string.h>

#define SUM_BYTES  4
#define POLYNOMIAL UINT32_C(0x82f63b78)

static uint32_t table[8][256];
static pthread_once_t table_is_made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t sum = i;
        for (int k = 0; k < 8; k++)
            sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
        table[0][i] = sum;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

static uint32_t by_table(uint32_t sum, const uint8_t *bytes, size_t n_bytes)
{
    pthread_once(&table_is_made, make_table);
    for (; n_bytes >= 8; n_bytes -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        word ^= sum;
        sum = 0;
        for (int k = 0; k < 8; k++)
            sum ^= table[7 - k][word >> 8 * k & 255];
    }
    for (; n_bytes > 0; n_bytes--)
        sum = sum >> 8 ^ table[0][(sum ^ *bytes++) & 255];
    return sum;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t sum, const uint8_t *bytes,
                                                                 size_t n_bytes)
{
    uint64_t wide = sum;
    for (; n_bytes >= 8; n_bytes -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    sum = (uint32_t)wide;
    for (; n_bytes > 0; n_bytes--)
        sum = __builtin_ia32_crc32qi(sum, *bytes++);
    return sum;
}
#endif

uint32_t crc32c(const void *bytes, size_t n_bytes)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~by_instruction(UINT32_MAX, bytes, n_bytes);
#endif
    return ~by_table(UINT32_MAX, bytes, n_bytes);
}

static uint32_t checksum(const struct codec_step *step, const void *bytes, size_t n_bytes)
{
    if (step->codec == &codec_crc32)
        return libdeflate_crc32(0, bytes, n_bytes);
    if (step->codec == &codec_fletcher32)
        return fletcher32(bytes, n_bytes);
    return step->codec == &codec_adler32 ? libdeflate_adler32(1, bytes, n_bytes)
                                         : crc32c(bytes, n_bytes);
}

static bool is_first(const struct codec_step *step)
{
    return step->n_values > 0 && step->values[0] == 1;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    if (n_from < SUM_BYTES)
        return CODEC_FAULT_SHORT;
    size_t n = n_from - SUM_BYTES;
    const uint8_t *sum = from, *bytes = from;
    if (n > room)
        return CODEC_FAULT_LONG;
    if (is_first(step))
        bytes += SUM_BYTES;
    else
        sum += n;
    uint32_t stored = (uint32_t)codec_read_little(sum, SUM_BYTES);
    if (step->codec == &codec_fletcher32 ? !fletcher32_is(bytes, n, stored)
                                         : checksum(step, bytes, n) != stored)
        return CODEC_FAULT_CHECKSUM;
    memcpy(ret_bytes, bytes, n);
    *ret_n_bytes = n;
    return 0;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    uint32_t sum = checksum(step, from, n_from);
    uint8_t *bytes = ret_bytes, *to = ret_bytes;
    if (room < n_from + SUM_BYTES)
        return CODEC_FAULT_LONG;
    if (is_first(step))
        bytes += SUM_BYTES;
    else
        to += n_from;
    memcpy(bytes, from, n_from);
    codec_write_little(to, SUM_BYTES, sum);
    *ret_n_bytes = n_from + SUM_BYTES;
    return 0;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + SUM_BYTES;
}

const struct codec codec_crc32c = {
    .name = "crc32c",
    .zarr_name = "crc32c",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
const struct codec codec_fletcher32 = {
    .name = "fletcher32",
    .hdf5_id = 3,
    .zarr_name = "fletcher32",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
const struct codec codec_crc32 = {
    .name = "crc32",
    .zarr_name = "crc32",
    .package = "libdeflate-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
const struct codec codec_adler32 = {
    .name = "adler32",
    .zarr_name = "adler32",
    .package = "libdeflate-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
