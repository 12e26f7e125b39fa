/* Blosc2: a chunk is a contiguous frame, as PyTables and hdf5plugin write it: one chunk of bytes,
 * or, of datasets of several dimensions, an array of its own (b2nd) that has the chunk's shape.
 *
 * Only read, and only where the library was there when this was built (Debian 13).
 */
#include "client/codecs/scratch.h"

#ifdef HAVE_BLOSC2

#include <b2nd.h>
#include <blosc2.h>
#include <errno.h>
#include <pthread.h>

static pthread_once_t is_begun = PTHREAD_ONCE_INIT;

static void begin(void)
{
    blosc2_init();
}

/* An array: all of it, in C order. */
static int decode_array(blosc2_schunk *schunk, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    b2nd_array_t *array = NULL;
    int64_t start[B2ND_MAX_DIM] = {0}, n_bytes = schunk->typesize;
    if (b2nd_from_schunk(schunk, &array) < 0 || !array) {
        blosc2_schunk_free(schunk);
        return CODEC_FAULT_CORRUPT;
    }
    int r = array->ndim < 1 || array->ndim > B2ND_MAX_DIM ? CODEC_FAULT_CORRUPT : 0;
    for (int i = 0; r == 0 && i < array->ndim; i++)
        if (array->shape[i] < 1 || __builtin_mul_overflow(n_bytes, array->shape[i], &n_bytes))
            r = CODEC_FAULT_CORRUPT;
    if (r == 0 && (uint64_t)n_bytes > room)
        r = CODEC_FAULT_LONG;
    if (r == 0 &&
        b2nd_get_slice_cbuffer(array, start, array->shape, ret_bytes, array->shape, n_bytes) < 0)
        r = CODEC_FAULT_CORRUPT;
    if (r == 0)
        *ret_n_bytes = (size_t)n_bytes;
    b2nd_free(array); /* and the schunk */
    return r;
}

static int decode_chunk(blosc2_schunk *schunk, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    int r = schunk->nchunks != 1 || schunk->nbytes < 0 ? CODEC_FAULT_CORRUPT : 0;
    if (r == 0 && ((uint64_t)schunk->nbytes > room || schunk->nbytes > INT32_MAX))
        r = CODEC_FAULT_LONG;
    if (r == 0) {
        int n = blosc2_schunk_decompress_chunk(schunk, 0, ret_bytes, (int32_t)schunk->nbytes);
        if (n < 0)
            r = CODEC_FAULT_CORRUPT;
        else
            *ret_n_bytes = (size_t)n;
    }
    blosc2_schunk_free(schunk);
    return r;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    pthread_once(&is_begun, begin);
    blosc2_schunk *schunk = blosc2_schunk_from_buffer((uint8_t *)from, (int64_t)n_from, true);
    if (!schunk)
        return CODEC_FAULT_CORRUPT;
    if (schunk->typesize < 1) {
        blosc2_schunk_free(schunk);
        return CODEC_FAULT_CORRUPT;
    }
    return blosc2_meta_exists(schunk, "b2nd") >= 0 || blosc2_meta_exists(schunk, "caterva") >= 0
               ? decode_array(schunk, ret_bytes, room, ret_n_bytes)
               : decode_chunk(schunk, ret_bytes, room, ret_n_bytes);
}

#define DECODE decode
#else
#define DECODE NULL
#endif

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + n_bytes / 16 + 65536;
}

const struct codec codec_blosc2 = {
    .name = "blosc2",
    .hdf5_id = 32026,
    .package = "libblosc2-dev",
    .decode = DECODE,
    .bound = bound,
};
