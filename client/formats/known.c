/* What this library can read and write, for gad_format_at() and gad_codec_at(): the rows of the
 * tables of formats and codecs.
 */
#include "client/formats/format_impl.h"
#include "client/formats/hdf5/hdf5_version.h"

bool gad_format_at(size_t i, struct gad_known_format *ret_format)
{
    const struct format *format = format_at(i);
    if (!format)
        return false;
    *ret_format = (struct gad_known_format){
        .name = format->name,
        .extensions = format->extensions,
        .written = format->written,
        .has_chunks = format->has_chunks,
        .has_shards = format->has_shards,
    };
    return true;
}

bool gad_codec_at(size_t i, struct gad_known_codec *ret_codec)
{
    size_t n_here = 0;
    while (codec_at(n_here))
        n_here++;
    const struct codec *codec = codec_at(i);
    const struct codec_elsewhere *other = i < n_here ? NULL : codec_elsewhere_at(i - n_here);
    if (codec)
        *ret_codec = (struct gad_known_codec){
            .name = codec->name,
            .hdf5_id = codec->hdf5_id,
            .zarr_name = codec->zarr_name,
            .package = codec->package,
            .can_read = codec->decode != NULL,
            .can_write = codec->encode != NULL,
        };
    if (other)
        *ret_codec = (struct gad_known_codec){
            .name = other->name,
            .hdf5_id = other->hdf5_id,
            .package = other->package,
            .can_read = hdf5_has_filter(other->hdf5_id),
        };
    return codec || other;
}
