/* The table of codecs: one row each, in a file of its own. Who adds a codec names its row here; the
 * formats find it by HDF5's number or by the name in Zarr's metadata.
 *
 * Filters of HDF5's registry that we do not decode are known by name, so that an error can say what
 * would bring them: HDF5 itself may have a plugin, which is then used.
 */
#include "client/codecs/codec.h"
#include "client/codecs/scratch.h"
#include "proto/util.h"

#include <string.h>

static const struct codec *const codecs[] = {
    &codec_shuffle,
    &codec_bitshuffle,
    &codec_deflate,
    &codec_lzf,
    &codec_szip,
    &codec_zstd,
    &codec_lz4,
    &codec_blosc,
    &codec_blosc2,
    &codec_fletcher32,
    &codec_gzip,
    &codec_bz2,
    &codec_lzma,
    &codec_lz4_sized,
    &codec_crc32c,
    &codec_crc32,
    &codec_adler32,
    &codec_delta,
    &codec_fixedscaleoffset,
    &codec_scaleoffset,
};

const struct codec *codec_at(size_t i)
{
    return i < ARRAY_LENGTH(codecs) ? codecs[i] : NULL;
}

const struct codec *codec_of_hdf5(uint32_t id)
{
    for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++)
        if (codecs[i]->hdf5_id == id && id != 0)
            return codecs[i];
    return NULL;
}

const struct codec *codec_of_zarr(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++)
        if (codecs[i]->zarr_name && strcmp(codecs[i]->zarr_name, name) == 0)
            return codecs[i];
    return NULL;
}

const struct codec *codec_of_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++)
        if (strcmp(codecs[i]->name, name) == 0)
            return codecs[i];
    return NULL;
}

static const struct codec_elsewhere elsewhere[] = {
    {5, "nbit", "libhdf5-dev"},
    {305, "lzo", "python3-tables"},
    {32006, "jpeg", "hdf5plugin (PyPI)"},
    {32013, "zfp", "hdf5plugin (PyPI)"},
    {32014, "fpzip", "hdf5plugin (PyPI)"},
    {32017, "sz", "hdf5plugin (PyPI)"},
    {32018, "fcidecomp", "hdf5plugin (PyPI)"},
    {32024, "sz3", "hdf5plugin (PyPI)"},
    {32028, "sperr", "hdf5plugin (PyPI)"},
};

const struct codec_elsewhere *codec_elsewhere(uint32_t hdf5_id)
{
    for (size_t i = 0; i < ARRAY_LENGTH(elsewhere); i++)
        if (elsewhere[i].hdf5_id == hdf5_id)
            return &elsewhere[i];
    return NULL;
}

const struct codec_elsewhere *codec_elsewhere_at(size_t i)
{
    return i < ARRAY_LENGTH(elsewhere) ? &elsewhere[i] : NULL;
}
