/* Deflated streams of a shared scan: members of zip archives.
 *
 * Such data can only be decoded from the beginning, so the parts of a stream are decoded one after
 * the other, each going on with the state that the one before has left; who numbers them sees to
 * the order. A part that fails breaks the stream: nothing behind it can be decoded.
 *
 * Called by scan_description.c.
 */
#include "client/scan/scan_stream.h"
#include "client/codecs/codec.h"
#include "proto/util.h"

#include <isa-l.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES  4096u
#define INPUT_BYTES (256u * 1024)

int scan_read_pages(int fd, void *to, size_t n_bytes, uint64_t offset, size_t n_needed)
{
    for (size_t done = 0; done < n_needed;) {
        ssize_t n = pread(fd, (char *)to + done, n_bytes - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -ENODATA;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

bool scan_stream_is_same(const struct scan_entry *a, const struct scan_entry *b)
{
    return a->offset_bytes == b->offset_bytes && a->file == b->file && a->kind == b->kind;
}

void scan_stream_begin(struct scan_stream *stream, uint64_t index)
{
    if (!stream->decoder)
        stream->decoder = malloc(sizeof(*stream->decoder));
    if (!stream->input)
        stream->input = aligned_alloc(PAGE_BYTES, INPUT_BYTES);
    stream->next = stream->decoder && stream->input ? index : UINT64_MAX;
    stream->n_taken = 0;
    stream->crc = 0;
    if (stream->next == UINT64_MAX)
        return;
    isal_inflate_init(stream->decoder);
    stream->decoder->avail_in = 0;
}

void scan_stream_deinit(struct scan_stream *stream)
{
    free(steal_ptr(stream->decoder));
    free(steal_ptr(stream->input));
}

static int take_input(struct scan_stream *stream, int fd, const struct scan_entry *entry)
{
    uint64_t at = entry->offset_bytes + stream->n_taken, first = at & ~(uint64_t)(PAGE_BYTES - 1);
    size_t before = (size_t)(at - first);
    size_t n = (size_t)min_u64(INPUT_BYTES - before, entry->size_bytes - stream->n_taken);
    if (stream->decoder->avail_in > 0 || n == 0)
        return 0;
    int r =
        scan_read_pages(fd, stream->input, round_up_u64(before + n, PAGE_BYTES), first, before + n);
    stream->decoder->next_in = stream->input + before;
    stream->decoder->avail_in = (uint32_t)n;
    stream->n_taken += n;
    return r;
}

/* Until there are n_bytes or the data end. */
static int decode(struct scan_stream *stream, int fd, const struct scan_entry *entry, uint8_t *to,
                  uint32_t n_bytes, uint32_t *ret_n_bytes)
{
    struct inflate_state *decoder = stream->decoder;
    decoder->next_out = to;
    decoder->avail_out = n_bytes;
    while (decoder->avail_out > 0 && decoder->block_state != ISAL_BLOCK_FINISH) {
        int r = take_input(stream, fd, entry);
        if (r)
            return r;
        uint32_t in_before = decoder->avail_in, out_before = decoder->avail_out;
        if (isal_inflate(decoder) < 0)
            return CODEC_FAULT_CORRUPT;
        if (decoder->block_state != ISAL_BLOCK_FINISH && in_before == 0 &&
            out_before == decoder->avail_out)
            return CODEC_FAULT_SHORT;
    }
    *ret_n_bytes = n_bytes - decoder->avail_out;
    return 0;
}

static int check_end(struct scan_stream *stream, int fd, const struct scan_entry *entry)
{
    uint8_t more;
    uint32_t n_more = 0;
    int r = decode(stream, fd, entry, &more, 1, &n_more);
    if (r || n_more > 0)
        return r ? r : CODEC_FAULT_LONG;
    return stream->crc == entry->skipped ? 0 : CODEC_FAULT_CHECKSUM;
}

int scan_stream_step(struct scan_stream *stream, uint64_t index, int file_fd,
                     const struct scan_entry *entry, bool is_last, void *ret_bytes)
{
    uint32_t n = 0;
    int r = !stream->decoder || stream->next != index ? CODEC_FAULT_CORRUPT : 0;
    if (r == 0 && (entry->offset_bytes > INT64_MAX / 2 || entry->size_bytes > INT64_MAX / 2))
        r = -ENODATA;
    if (r == 0)
        r = decode(stream, file_fd, entry, ret_bytes, entry->n_bytes, &n);
    if (r == 0 && n < entry->n_bytes)
        r = CODEC_FAULT_SHORT;
    if (r == 0)
        stream->crc = crc32_gzip_refl(stream->crc, ret_bytes, n);
    if (r == 0 && is_last)
        r = check_end(stream, file_fd, entry);
    stream->next = r ? UINT64_MAX : index + 1;
    return r;
}
