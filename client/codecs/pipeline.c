/* Pipelines: a chunk through all its steps.
 *
 *     elements --step 0--> --step 1--> ... --step n-1--> stored bytes
 *
 * Decoding goes the other way, from buffer to buffer of the scratch, and the first step writes
 * where the elements are wanted. What a step may give is known beforehand: the chunk has so many
 * bytes of elements, and each step that encoded it can have made no more than its bound of that. So
 * a chunk that claims to be longer is refused before memory is taken for it.
 *
 * Called by chunk sources and sinks, in any thread.
 */
#include "client/codecs/codec.h"
#include "client/codecs/scratch.h"

#include <errno.h>
#include <string.h>

const char *codec_fault_text(int fault)
{
    switch (fault) {
    case -ENOMEM: return "there is no memory to decode it";
    case CODEC_FAULT_CORRUPT: return "its bytes are damaged";
    case CODEC_FAULT_CHECKSUM: return "its checksum is wrong";
    case CODEC_FAULT_SHORT: return "it ends too soon";
    case CODEC_FAULT_LONG: return "it holds more than a chunk";
    case CODEC_FAULT_VALUES: return "its parameters do not fit it";
    default: return "it cannot be decoded";
    }
}

static bool is_applied(uint32_t skipped, unsigned step)
{
    return !(skipped >> step & 1);
}

/* sizes[i]: the most that is there before step i encodes; sizes[n]: the most that is stored. */
static void bound_steps(const struct codec_pipeline *pipeline, uint32_t skipped, size_t n_bytes,
                        size_t sizes[CODEC_MAX_STEPS + 1])
{
    sizes[0] = n_bytes;
    for (unsigned i = 0; i < pipeline->n_steps; i++) {
        const struct codec_step *step = &pipeline->steps[i];
        sizes[i + 1] = is_applied(skipped, i) ? step->codec->bound(step, sizes[i]) : sizes[i];
    }
}

/* The one that does not hold what is read. */
static struct codec_buffer *other_buffer(struct codec_scratch *scratch, const void *from)
{
    return &scratch->buffers[from == scratch->buffers[0].data];
}

static int copy_whole(const void *from, size_t n_from, void *ret_bytes, size_t n_bytes)
{
    if (n_from < n_bytes)
        return CODEC_FAULT_SHORT;
    if (n_from > n_bytes)
        return CODEC_FAULT_LONG;
    memcpy(ret_bytes, from, n_bytes);
    return 0;
}

int codec_decode(const struct codec_pipeline *pipeline, uint32_t skipped,
                 struct codec_scratch *scratch, const void *from, size_t n_from, void *ret_bytes,
                 size_t n_bytes, unsigned *ret_step)
{
    size_t sizes[CODEC_MAX_STEPS + 1];
    unsigned first = 0; /* the first that was applied: it writes to ret_bytes */
    bound_steps(pipeline, skipped, n_bytes, sizes);
    while (first < pipeline->n_steps && !is_applied(skipped, first))
        first++;
    *ret_step = 0;
    if (first == pipeline->n_steps)
        return copy_whole(from, n_from, ret_bytes, n_bytes);
    for (unsigned i = pipeline->n_steps; i-- > first;) {
        const struct codec_step *step = &pipeline->steps[i];
        void *to = ret_bytes;
        if (!is_applied(skipped, i))
            continue;
        *ret_step = i;
        if (i > first) {
            struct codec_buffer *buffer = other_buffer(scratch, from);
            int r = codec_buffer_reserve(buffer, sizes[i]);
            if (r < 0)
                return r;
            to = buffer->data;
        }
        size_t n_to = 0;
        int r = step->codec->decode(step, scratch, from, n_from, to, sizes[i], &n_to);
        if (r)
            return r;
        from = to;
        n_from = n_to;
    }
    return n_from < n_bytes ? CODEC_FAULT_SHORT : 0;
}

int codec_encode(const struct codec_pipeline *pipeline, struct codec_scratch *scratch,
                 const void *from, size_t n_from, const void **ret_bytes, size_t *ret_n_bytes,
                 uint32_t *ret_skipped)
{
    uint32_t skipped = 0;
    for (unsigned i = 0; i < pipeline->n_steps; i++) {
        const struct codec_step *step = &pipeline->steps[i];
        struct codec_buffer *buffer = other_buffer(scratch, from);
        size_t room = step->codec->bound(step, n_from), n_to = 0;
        int r = codec_buffer_reserve(buffer, room);
        if (r == 0)
            r = step->codec->encode(step, scratch, from, n_from, buffer->data, room, &n_to);
        if (r && r != CODEC_FAULT_LONG)
            return r;
        if (step->is_optional && (r || n_to > n_from)) {
            skipped |= UINT32_C(1) << i;
            continue;
        }
        if (r)
            return r;
        from = buffer->data;
        n_from = n_to;
    }
    *ret_bytes = from;
    *ret_n_bytes = n_from;
    *ret_skipped = skipped;
    return 0;
}
