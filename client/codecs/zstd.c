/* Zstandard frames. values[0]: the level, signed.
 *
 * A chunk is one frame or several behind each other, with or without its size in it.
 */
#include "client/codecs/scratch.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    if (!scratch->zstd_reader)
        scratch->zstd_reader = ZSTD_createDCtx();
    if (!scratch->zstd_reader)
        return -ENOMEM;
    size_t n = ZSTD_decompressDCtx(scratch->zstd_reader, ret_bytes, room, from, n_from);
    if (!ZSTD_isError(n)) {
        *ret_n_bytes = n;
        return 0;
    }
    switch (ZSTD_getErrorCode(n)) {
    case ZSTD_error_dstSize_tooSmall: return CODEC_FAULT_LONG;
    case ZSTD_error_checksum_wrong: return CODEC_FAULT_CHECKSUM;
    case ZSTD_error_srcSize_wrong: return CODEC_FAULT_SHORT;
    case ZSTD_error_memory_allocation: return -ENOMEM;
    default: return CODEC_FAULT_CORRUPT;
    }
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    int level = step->n_values > 0 ? (int)step->values[0] : 3;
    if (!scratch->zstd_writer)
        scratch->zstd_writer = ZSTD_createCCtx();
    if (!scratch->zstd_writer)
        return -ENOMEM;
    size_t n = ZSTD_compressCCtx(scratch->zstd_writer, ret_bytes, room, from, n_from, level);
    if (ZSTD_isError(n))
        return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? -ENOMEM : CODEC_FAULT_LONG;
    *ret_n_bytes = n;
    return 0;
}

/* Of the library's compressor; frames of others may waste a little more. */
static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return ZSTD_compressBound(n_bytes) + n_bytes / 64 + 1024;
}

const struct codec codec_zstd = {
    .name = "zstd",
    .hdf5_id = 32015,
    .zarr_name = "zstd",
    .package = "libzstd-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
