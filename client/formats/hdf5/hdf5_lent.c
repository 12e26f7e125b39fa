/* Our codecs for what HDF5 reads itself: the sources of virtual datasets, numbers of odd widths.
 *
 * HDF5 gives a filter the stored bytes and takes a buffer of any size, and does not say how long a
 * chunk is. So the buffer begins with a few times of what is stored and doubles while it is too
 * small, up to what HDF5 allows a chunk. A filter has no state but its function: each codec has one
 * of its own.
 *
 * A filter that is registered by anybody is left alone, and whoever registers one later replaces
 * ours. H5close() forgets them, so they are looked for each time, which costs little.
 *
 * Called by hdf5.c.
 */
#include "client/formats/hdf5/hdf5_lent.h"
#include "client/codecs/codec.h"
#include "proto/util.h"

#include <errno.h>
#include <hdf5.h>
#include <string.h>

#define FIRST_ROOM (UINT64_C(64) << 10)
#define MAX_ROOM   (UINT64_C(4) << 30)

/* NULL: it cannot be decoded. */
static void *decode(const struct codec_step *step, const void *from, size_t n_from, size_t *ret_n,
                    size_t *ret_room)
{
    struct codec_scratch *scratch = codec_scratch_new();
    void *bytes = NULL;
    int r = scratch ? CODEC_FAULT_LONG : -ENOMEM;
    for (size_t room = max_u64(FIRST_ROOM, 4 * n_from); r == CODEC_FAULT_LONG && room <= MAX_ROOM;
         room *= 2) {
        H5free_memory(bytes);
        bytes = H5allocate_memory(room, false);
        r = bytes ? step->codec->decode(step, scratch, from, n_from, bytes, room, ret_n) : -ENOMEM;
        *ret_room = room;
    }
    codec_scratch_free(scratch);
    if (r == 0)
        return bytes;
    H5free_memory(bytes);
    return NULL;
}

static size_t filter(H5Z_filter_t id, unsigned flags, size_t n_values, const unsigned *values,
                     size_t n_from, size_t *room, void **buffer)
{
    struct codec_step step = {.codec = codec_of_hdf5((uint32_t)id), .n_values = (unsigned)n_values};
    size_t n = 0;
    if (!(flags & H5Z_FLAG_REVERSE) || n_values > CODEC_MAX_VALUES || n_from > MAX_ROOM)
        return 0;
    for (size_t i = 0; i < n_values; i++)
        step.values[i] = values[i];
    void *bytes = decode(&step, *buffer, n_from, &n, room);
    if (!bytes)
        return 0;
    H5free_memory(*buffer);
    *buffer = bytes;
    return n;
}

#define LENT(id)                                                                                   \
    static size_t filter_##id(unsigned flags, size_t n_values, const unsigned *values,             \
                              size_t n_from, size_t *room, void **buffer)                          \
    {                                                                                              \
        return filter(id, flags, n_values, values, n_from, room, buffer);                          \
    }
LENT(4)
LENT(307)
LENT(32000)
LENT(32001)
LENT(32004)
LENT(32008)
LENT(32015)
LENT(32026)
#undef LENT

/* What HDF5 may lack; deflate, shuffle, fletcher32 and scaleoffset are always in it. */
static const struct {
    H5Z_filter_t id;
    H5Z_func_t function;
} lent[] = {
    {4, filter_4},         {307, filter_307},     {32000, filter_32000}, {32001, filter_32001},
    {32004, filter_32004}, {32008, filter_32008}, {32015, filter_32015}, {32026, filter_32026},
};

static bool is_lent[ARRAY_LENGTH(lent)];

bool hdf5_is_lent(unsigned id)
{
    for (size_t i = 0; i < ARRAY_LENGTH(lent); i++)
        if (lent[i].id == (H5Z_filter_t)id)
            return is_lent[i];
    return false;
}

/* Asked whether there is a filter, HDF5 loads a plugin that has it. One of another program's
 * library, as hdf5plugin names them, may call that library's functions and fail: none is loaded for
 * us. */
void hdf5_lend_codecs(void)
{
    unsigned loading = 0;
    bool is_known = H5PLget_loading_state(&loading) >= 0;
    if (is_known)
        (void)H5PLset_loading_state(0);
    for (size_t i = 0; i < ARRAY_LENGTH(lent); i++) {
        const struct codec *codec = codec_of_hdf5((uint32_t)lent[i].id);
        if (!codec || !codec->decode || H5Zfilter_avail(lent[i].id) > 0)
            continue;
        const H5Z_class2_t class = {
            .version = H5Z_CLASS_T_VERS,
            .id = lent[i].id,
            .encoder_present = 1, /* else HDF5 refuses to make datasets whose chunks we pack */
            .decoder_present = 1,
            .name = codec->name,
            .filter = lent[i].function,
        };
        is_lent[i] = H5Zregister(&class) >= 0;
    }
    if (is_known)
        (void)H5PLset_loading_state(loading);
}
