/* Scratch of codecs. Called by pipeline.c and by the codecs. */
#include "client/codecs/scratch.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

struct codec_scratch *codec_scratch_new(void)
{
    return calloc(1, sizeof(struct codec_scratch));
}

struct codec_scratch *codec_scratch_free(struct codec_scratch *scratch)
{
    if (!scratch)
        return NULL;
    for (int i = 0; i < 2; i++)
        free(scratch->buffers[i].data);
    free(scratch->inner.data);
    libdeflate_free_decompressor(scratch->inflater);
    libdeflate_free_compressor(scratch->deflater);
    ZSTD_freeDCtx(scratch->zstd_reader);
    ZSTD_freeCCtx(scratch->zstd_writer);
    free(scratch);
    return NULL;
}

int codec_buffer_reserve(struct codec_buffer *buffer, size_t n_bytes)
{
    if (n_bytes <= buffer->room)
        return 0;
    free(buffer->data);
    buffer->data = malloc(n_bytes);
    buffer->room = buffer->data ? n_bytes : 0;
    return buffer->data ? 0 : -ENOMEM;
}

bool codec_inflater(struct codec_scratch *scratch)
{
    if (!scratch->inflater)
        scratch->inflater = libdeflate_alloc_decompressor();
    return scratch->inflater;
}

int codec_use_deflater(const struct codec_step *step, struct codec_scratch *scratch,
                       int usual_level)
{
    bool is_said = step->n_values > 0 && step->values[0] <= 9;
    int level = is_said ? (int)step->values[0] : usual_level;
    if (scratch->deflater && scratch->deflater_level == level)
        return 0;
    libdeflate_free_compressor(scratch->deflater);
    scratch->deflater = libdeflate_alloc_compressor(level);
    scratch->deflater_level = level;
    return scratch->deflater ? 0 : -ENOMEM;
}
