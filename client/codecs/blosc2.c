/* Blosc2: a chunk is a contiguous frame, as PyTables and hdf5plugin write it: one chunk of bytes,
 * or, of datasets of several dimensions, an array of its own (b2nd) that has the chunk's shape.
 *
 *     | header, metalayers | chunk | index of chunks | trailer |
 *
 * The library is given the chunk alone: it frees what it has not made where a frame is damaged. So
 * the frame is read here, msgpack in fixed places, numbers the highest byte first. Of an array the
 * chunk is its blocks one after the other, each in C order and whole, also where the shape cuts it.
 *
 * Only read, and only where the library was there when this was built (Debian 13).
 */
#include "client/codecs/scratch.h"

#ifdef HAVE_BLOSC2

#include "proto/box.h"

#include <blosc2.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Where the numbers of a header are, and what is behind the last. */
enum { HEADER_BYTES = 11, FRAME_TYPE = 26, N_FRAME_BYTES = 30, FRAME_CBYTES = 39, TYPE_SIZE = 48 };
enum { LAYERS = 92 };
enum { CHUNK_HEADER = 32, N_BYTES = 4, C_BYTES = 12, MAX_DIM = 16, MAX_LAYERS = 16 };
enum { SPECIAL_ZERO = 1, SPECIAL_NAN = 2, SPECIAL_UNINIT = 4 };

static pthread_once_t is_begun = PTHREAD_ONCE_INIT;

static void begin(void)
{
    blosc2_init();
}

struct frame {
    const uint8_t *bytes;
    size_t n_bytes, n_header;
    uint64_t n_packed; /* of the chunk; 0: all its elements are alike */
    uint64_t item_bytes;
    int ndim; /* 0: no array */
    int64_t shape[MAX_DIM], block[MAX_DIM];
};

/* ---- The frame ---- */

static uint64_t number_at(const struct frame *frame, size_t at, int n)
{
    return codec_read_big(frame->bytes + at, n);
}

/* n sizes of `width` bytes behind their types. Returns where they end; 0: they are not there. */
static size_t read_sizes(const struct frame *frame, size_t at, int n, int width, int64_t *ret)
{
    if (at >= frame->n_header || frame->bytes[at++] != (0x90 | n) ||
        (size_t)n * (size_t)(width + 1) > frame->n_header - at)
        return 0;
    for (int i = 0; i < n; i++, at += (size_t)width + 1) {
        ret[i] = (int64_t)number_at(frame, at + 1, width);
        if (ret[i] < 1 || ret[i] > INT32_MAX)
            return 0;
    }
    return at;
}

/* A list of version, ndim, shape, shape of chunks, shape of blocks. */
static bool read_array(struct frame *frame, size_t at)
{
    int64_t chunk[MAX_DIM];
    if (at > frame->n_header || frame->n_header - at < 8)
        return false;
    int ndim = frame->bytes[at + 7];
    if (ndim < 1 || ndim >= MAX_DIM)
        return false;
    at = read_sizes(frame, at + 8, ndim, 8, frame->shape);
    at = at ? read_sizes(frame, at, ndim, 4, chunk) : 0;
    at = at ? read_sizes(frame, at, ndim, 4, frame->block) : 0;
    frame->ndim = ndim;
    return at && memcmp(chunk, frame->shape, (size_t)ndim * sizeof(*chunk)) == 0;
}

static bool is_array(const uint8_t *name, size_t n)
{
    return (n == 4 && memcmp(name, "b2nd", 4) == 0) || (n == 7 && memcmp(name, "caterva", 7) == 0);
}

/* A map of names to where their layers are. */
static bool read_layers(struct frame *frame)
{
    uint64_t n = number_at(frame, LAYERS, 2);
    size_t at = LAYERS + 2;
    for (uint64_t i = 0; i < n && i < MAX_LAYERS; i++) {
        size_t n_name = at < frame->n_header ? frame->bytes[at++] & 0x1f : SIZE_MAX - 5;
        if (n_name + 5 > frame->n_header - at)
            return false;
        if (is_array(frame->bytes + at, n_name))
            return read_array(frame, number_at(frame, at + n_name + 1, 4));
        at += n_name + 5;
    }
    return n <= MAX_LAYERS;
}

static bool read_frame(const void *from, size_t n_from, struct frame *ret)
{
    struct frame frame = {.bytes = from, .n_bytes = n_from};
    if (n_from < LAYERS + 2 || memcmp(frame.bytes + 2, "b2frame", 8) != 0)
        return false;
    frame.n_header = number_at(&frame, HEADER_BYTES, 4);
    frame.n_packed = number_at(&frame, FRAME_CBYTES, 8);
    frame.item_bytes = number_at(&frame, TYPE_SIZE, 4);
    if (frame.n_header < LAYERS + 2 || frame.n_header > n_from || frame.bytes[FRAME_TYPE] & 0xf ||
        frame.n_packed > n_from - frame.n_header || frame.item_bytes < 1 ||
        frame.item_bytes > INT32_MAX || !read_layers(&frame))
        return false;
    *ret = frame;
    return true;
}

/* ---- Its chunk ---- */

static int32_t little_at(const uint8_t *bytes)
{
    uint32_t value = 0;
    for (int i = 4; i-- > 0;)
        value = value << 8 | bytes[i];
    return (int32_t)value;
}

/* Bytes that the library wrote at `from`, of at most n_from, into exactly n_bytes. */
static int unpack(const uint8_t *from, size_t n_from, void *ret_bytes, size_t n_bytes)
{
    blosc2_dparams parameters = BLOSC2_DPARAMS_DEFAULTS;
    if (n_from < CHUNK_HEADER || little_at(from + C_BYTES) < CHUNK_HEADER ||
        (size_t)little_at(from + C_BYTES) > n_from || little_at(from + N_BYTES) < 0)
        return CODEC_FAULT_CORRUPT;
    if ((size_t)little_at(from + N_BYTES) != n_bytes)
        return (size_t)little_at(from + N_BYTES) > n_bytes ? CODEC_FAULT_LONG : CODEC_FAULT_SHORT;
    parameters.nthreads = 1;
    blosc2_context *context = blosc2_create_dctx(parameters);
    if (!context)
        return -ENOMEM;
    int n = blosc2_decompress_ctx(context, from, little_at(from + C_BYTES), ret_bytes,
                                  (int32_t)n_bytes);
    blosc2_free_ctx(context);
    return n >= 0 && (size_t)n == n_bytes ? 0 : CODEC_FAULT_CORRUPT;
}

/* All alike: what they are is in the index. */
static int fill(const struct frame *frame, void *ret_bytes, size_t n_bytes)
{
    static const uint8_t nan32[4] = {0, 0, 0xc0, 0x7f}, nan64[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    uint8_t index[8], *to = ret_bytes;
    int r = unpack(frame->bytes + frame->n_header, frame->n_bytes - frame->n_header, index, 8);
    bool is_double = frame->item_bytes == sizeof(nan64);
    if (r || index[7] == (0x80 | SPECIAL_ZERO) || index[7] == (0x80 | SPECIAL_UNINIT)) {
        memset(to, 0, n_bytes);
        return r;
    }
    if (index[7] != (0x80 | SPECIAL_NAN) || (!is_double && frame->item_bytes != sizeof(nan32)) ||
        n_bytes % frame->item_bytes)
        return CODEC_FAULT_CORRUPT;
    for (size_t i = 0; i < n_bytes; i += frame->item_bytes)
        memcpy(to + i, is_double ? nan64 : nan32, frame->item_bytes);
    return 0;
}

static int decode_bytes(const struct frame *frame, void *ret_bytes, size_t n_bytes)
{
    return frame->n_packed > 0
               ? unpack(frame->bytes + frame->n_header, frame->n_packed, ret_bytes, n_bytes)
               : fill(frame, ret_bytes, n_bytes);
}

/* ---- Arrays ---- */

/* The block at `place`: what of it is inside the shape. */
static void copy_block(const struct frame *frame, const int64_t *place, const uint8_t *block,
                       uint8_t *to)
{
    struct box box;
    int64_t stride = (int64_t)frame->item_bytes, block_stride = stride;
    box.n = 0;
    for (int k = frame->ndim - 1; k >= 0; k--) {
        int64_t left = frame->shape[k] - place[k];
        to += place[k] * stride;
        box_add(&box, left < frame->block[k] ? left : frame->block[k], stride, block_stride);
        stride *= frame->shape[k];
        block_stride *= frame->block[k];
    }
    box_copy(&box, to, block, frame->item_bytes, false);
}

/* n_stored: with what its blocks have beyond the shape. */
static int decode_blocks(const struct frame *frame, struct codec_scratch *scratch, size_t n_stored,
                         size_t n_block, void *ret_bytes)
{
    int64_t place[MAX_DIM] = {0};
    int k, r = codec_buffer_reserve(&scratch->inner, n_stored);
    if (r == 0)
        r = decode_bytes(frame, scratch->inner.data, n_stored);
    if (r)
        return r;
    const uint8_t *block = scratch->inner.data;
    do {
        copy_block(frame, place, block, ret_bytes);
        block += n_block;
        for (k = frame->ndim - 1; k >= 0; place[k--] = 0)
            if ((place[k] += frame->block[k]) < frame->shape[k])
                break;
    } while (k >= 0);
    return 0;
}

/* n: of elements, at most room. */
static int decode_array(const struct frame *frame, struct codec_scratch *scratch, void *ret_bytes,
                        size_t room, size_t *ret_n_bytes)
{
    size_t n = frame->item_bytes, n_block = n, n_stored = n;
    for (int i = 0; i < frame->ndim; i++) {
        size_t size = (size_t)frame->shape[i], block = (size_t)frame->block[i];
        if (__builtin_mul_overflow(n, size, &n) ||
            __builtin_mul_overflow(n_block, block, &n_block) ||
            __builtin_mul_overflow(n_stored, (size + block - 1) / block * block, &n_stored))
            return CODEC_FAULT_CORRUPT;
    }
    if (n > room)
        return CODEC_FAULT_LONG;
    /* Blocks are no larger than what they cut: twice along each axis bounds what is reserved. */
    if (n_stored > INT32_MAX || n_stored >> frame->ndim > n)
        return CODEC_FAULT_CORRUPT;
    *ret_n_bytes = n;
    return decode_blocks(frame, scratch, n_stored, n_block, ret_bytes);
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    struct frame frame;
    pthread_once(&is_begun, begin);
    if (!read_frame(from, n_from, &frame))
        return CODEC_FAULT_CORRUPT;
    if (frame.ndim > 0)
        return decode_array(&frame, scratch, ret_bytes, room, ret_n_bytes);
    /* The only chunk has all that the frame has. */
    uint64_t n = number_at(&frame, N_FRAME_BYTES, 8);
    if (n > room || n > INT32_MAX)
        return CODEC_FAULT_LONG;
    *ret_n_bytes = (size_t)n;
    return decode_bytes(&frame, ret_bytes, (size_t)n);
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
