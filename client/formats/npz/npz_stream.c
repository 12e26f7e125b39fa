/* Unpacking a deflated member for whoever asks for pieces of it.
 *
 *     unpacked   |----------[###window###]..............|
 *                           ^ may be read ^ decoded so far
 *
 * Deflated data can only be decoded from the beginning. The last WINDOW_BYTES are kept, so pieces
 * may be asked for a little out of order. Who goes further back has the decoder begin again; when
 * that has cost two whole passes, the third one goes into a temporary file, from which everything
 * is read afterwards. So a job that reads twice needs no space on a disk, one that walks across the
 * order of the file is never slower than three passes and a copy, and a full disk only makes it
 * slow.
 *
 * The size that the archive says bounds what is decoded. Data that end before, go on behind, or
 * have another CRC are a fault of the piece that shows it: the one with the last byte.
 *
 * Called by npz.c, and by the pump's threads through it. Threads that read the window take turns,
 * with whole blocks, since two that are far apart would otherwise send the decoder back and forth.
 */
#include "client/formats/npz/npz_stream.h"
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <fcntl.h>
#include <isa-l.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define WINDOW_BYTES (UINT64_C(16) << 20)
#define INPUT_BYTES  (256u * 1024)
#define FIRST_BYTES  UINT64_C(128)       /* NumPy's header: opening shows no damage behind it */
#define STEP_BYTES   (UINT64_C(1) << 20) /* at once: each call of the decoder copies 64 KiB */

struct npz_stream {
    int fd;
    struct npz_packed packed;
    uint64_t need_end;
    pthread_mutex_t turn;
    struct inflate_state *decoder;
    uint8_t *input, *window;
    uint64_t window_bytes;
    uint64_t n_taken;   /* of the packed bytes */
    uint64_t n_decoded; /* since the beginning */
    uint32_t crc;       /* of them */
    uint64_t n_decoded_ever;
    bool has_no_space;
    bool is_unchecked;   /* all of it is to be decoded before something is read; not once spilled */
    atomic_int spill_fd; /* all that is unpacked, once it is there; else -1 */
    _Atomic(const char *) fault;
    uint64_t fault_offset; /* once there is a fault */
};

static int fail(struct npz_stream *stream, const char *why)
{
    stream->fault_offset =
        stream->packed.offset_bytes + stream->n_taken - stream->decoder->avail_in;
    atomic_store(&stream->fault, why);
    return EBADMSG;
}

const char *npz_stream_fault(struct npz_stream *stream)
{
    return atomic_load(&stream->fault);
}

uint64_t npz_stream_fault_offset(const struct npz_stream *stream)
{
    return stream->fault_offset;
}

static void start_again(struct npz_stream *stream)
{
    isal_inflate_init(stream->decoder);
    stream->decoder->avail_in = 0;
    stream->n_taken = stream->n_decoded = 0;
    stream->crc = 0;
}

/* The kernel gives pages of the window when they are first written to. */
struct npz_stream *npz_stream_new(int fd_take, const struct npz_packed *packed)
{
    struct npz_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) {
        close_fd(&fd_take);
        return NULL;
    }
    stream->fd = fd_take;
    stream->packed = *packed;
    stream->need_end = packed->size_bytes;
    stream->window_bytes = min_u64(WINDOW_BYTES, max_u64(packed->size_bytes, 1));
    atomic_init(&stream->spill_fd, -1);
    atomic_init(&stream->fault, NULL);
    pthread_mutex_init(&stream->turn, NULL);
    stream->decoder = malloc(sizeof(*stream->decoder));
    stream->input = malloc(INPUT_BYTES);
    stream->window = malloc((size_t)stream->window_bytes);
    if (!stream->decoder || !stream->input || !stream->window)
        return npz_stream_free(stream);
    start_again(stream);
    return stream;
}

static void free_buffers(struct npz_stream *stream)
{
    free_ptr(&stream->decoder);
    free_ptr(&stream->input);
    free_ptr(&stream->window);
}

struct npz_stream *npz_stream_free(struct npz_stream *stream)
{
    if (!stream)
        return NULL;
    int spill_fd = atomic_load(&stream->spill_fd);
    free_buffers(stream);
    pthread_mutex_destroy(&stream->turn);
    close_fd(&spill_fd);
    close_fd(&stream->fd);
    free(stream);
    return NULL;
}

void npz_stream_need(struct npz_stream *stream, uint64_t end_bytes)
{
    stream->need_end = end_bytes;
}

void npz_stream_check_first(struct npz_stream *stream)
{
    stream->is_unchecked = true;
}

const struct npz_packed *npz_stream_packed(const struct npz_stream *stream, int *ret_fd)
{
    *ret_fd = stream->fd;
    return &stream->packed;
}

bool npz_stream_begin(struct npz_stream *stream)
{
    if (atomic_load(&stream->spill_fd) >= 0)
        return false;
    pthread_mutex_lock(&stream->turn);
    return true;
}

void npz_stream_end(struct npz_stream *stream)
{
    pthread_mutex_unlock(&stream->turn);
}

/* Decoding ------------------------------------------------------------------------------------- */

static int take_input(struct npz_stream *stream)
{
    struct inflate_state *decoder = stream->decoder;
    size_t n = (size_t)min_u64(INPUT_BYTES, stream->packed.packed_bytes - stream->n_taken), n_read;
    if (decoder->avail_in > 0 || n == 0)
        return 0;
    int r = file_read(stream->fd, stream->input, n, stream->packed.offset_bytes + stream->n_taken,
                      &n_read);
    if (r < 0)
        return -r;
    if (n_read < n)
        return fail(stream, "the file has become shorter meanwhile");
    decoder->next_in = stream->input;
    decoder->avail_in = (uint32_t)n;
    stream->n_taken += n;
    return 0;
}

/* Decodes until there are n_bytes or the data end. */
static int decode(struct npz_stream *stream, uint8_t *to, size_t n_bytes, size_t *ret_n_bytes)
{
    struct inflate_state *decoder = stream->decoder;
    decoder->next_out = to;
    decoder->avail_out = (uint32_t)n_bytes;
    while (decoder->avail_out > 0 && decoder->block_state != ISAL_BLOCK_FINISH) {
        int r = take_input(stream);
        if (r)
            return r;
        uint32_t in_before = decoder->avail_in, out_before = decoder->avail_out;
        /* It decodes ahead: damage behind what is wanted is a fault of the next call. */
        if (isal_inflate(decoder) < 0 && decoder->avail_out > 0)
            return fail(stream, "the deflated data are damaged");
        if (decoder->block_state != ISAL_BLOCK_FINISH && in_before == 0 &&
            out_before == decoder->avail_out)
            return fail(stream, "the deflated data end too early");
    }
    *ret_n_bytes = n_bytes - decoder->avail_out;
    return 0;
}

/* All that the archive says is decoded: that must be all there is. */
static int check_end(struct npz_stream *stream)
{
    uint8_t more;
    size_t n_more;
    int r = decode(stream, &more, 1, &n_more);
    if (r)
        return r;
    if (n_more > 0)
        return fail(stream, "the member unpacks to more than the archive says");
    if (stream->crc != stream->packed.crc)
        return fail(stream, "the CRC-32 is not the archive's: the member is damaged");
    return 0;
}

/* Decodes the next bytes into the window, which has room for them in one piece. */
static int step_on(struct npz_stream *stream)
{
    uint64_t at = stream->n_decoded % stream->window_bytes;
    uint64_t n =
        min_u64(stream->n_decoded == 0 ? FIRST_BYTES : STEP_BYTES, stream->window_bytes - at);
    size_t n_new;
    n = min_u64(n, stream->packed.size_bytes - stream->n_decoded);
    int r = decode(stream, stream->window + at, (size_t)n, &n_new);
    if (r)
        return r;
    if (n_new < n)
        return fail(stream, "the member unpacks to less than the archive says");
    stream->crc = crc32_gzip_refl(stream->crc, stream->window + at, n_new);
    stream->n_decoded += n_new;
    stream->n_decoded_ever += n_new;
    return stream->n_decoded == stream->packed.size_bytes ? check_end(stream) : 0;
}

/* After a failure the decoder is somewhere in the middle of a step. */
static int step(struct npz_stream *stream)
{
    int r = step_on(stream);
    if (r)
        start_again(stream);
    return r;
}

/* The temporary file -------------------------------------------------------------------------- */

static int open_temporary(const char *folder)
{
    return folder && *folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
}

static int open_spill(uint64_t n_bytes)
{
    const char *const folders[] = {secure_getenv("TMPDIR"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
        int fd = open_temporary(folders[i]);
        if (fd >= 0 && fallocate(fd, 0, 0, (off_t)n_bytes) == 0)
            return fd;
        close_fd(&fd);
    }
    return -1;
}

/* 0 also where there is no space: then the window goes on to be used. */
static int spill(struct npz_stream *stream)
{
    _cleanup_fd_ int fd = open_spill(stream->packed.size_bytes);
    stream->has_no_space = fd < 0;
    start_again(stream);
    while (!stream->has_no_space && stream->n_decoded < stream->packed.size_bytes) {
        uint64_t before = stream->n_decoded;
        int r = step(stream);
        if (r)
            return r;
        if (file_write(fd, stream->window + before % stream->window_bytes,
                       (size_t)(stream->n_decoded - before), before) < 0)
            stream->has_no_space = true;
    }
    if (stream->has_no_space) {
        start_again(stream);
        return 0;
    }
    free_buffers(stream);
    atomic_store(&stream->spill_fd, steal_fd(&fd));
    return 0;
}

/* Reading -------------------------------------------------------------------------------------- */

static int read_spill(int fd, void *buffer, size_t n_bytes, uint64_t offset_bytes)
{
    size_t n;
    int r = file_read(fd, buffer, n_bytes, offset_bytes, &n);
    return r < 0 ? -r : n == n_bytes ? 0 : EIO;
}

static int go_back(struct npz_stream *stream)
{
    if (!stream->has_no_space && stream->n_decoded_ever / 2 >= stream->packed.size_bytes)
        return spill(stream);
    start_again(stream);
    return 0;
}

static uint64_t oldest(const struct npz_stream *stream)
{
    return stream->n_decoded - min_u64(stream->n_decoded, stream->window_bytes);
}

/* What the window has of n_bytes from an offset in it. */
static size_t copy_out(const struct npz_stream *stream, void *buffer, size_t n_bytes,
                       uint64_t offset_bytes)
{
    uint64_t at = offset_bytes % stream->window_bytes;
    size_t n = (size_t)min_u64(n_bytes, stream->n_decoded - offset_bytes);
    n = (size_t)min_u64(n, stream->window_bytes - at);
    memcpy(buffer, stream->window + at, n);
    return n;
}

int npz_stream_read(void *state, void *buffer, size_t n_bytes, uint64_t offset_bytes)
{
    struct npz_stream *stream = state;
    uint64_t end = offset_bytes + n_bytes;
    int spill_fd = atomic_load(&stream->spill_fd);
    int r = end > stream->packed.size_bytes ? EINVAL : npz_stream_fault(stream) ? EBADMSG : 0;
    if (r)
        return r;
    if (spill_fd < 0 && stream->is_unchecked) {
        while (r == 0 && stream->n_decoded < stream->packed.size_bytes)
            r = step(stream);
        stream->is_unchecked = r != 0;
    }
    if (r)
        return r;
    if (spill_fd < 0 && n_bytes > 0 && offset_bytes < oldest(stream)) {
        r = go_back(stream);
        spill_fd = atomic_load(&stream->spill_fd);
    }
    if (r || spill_fd >= 0)
        return r ? r : read_spill(spill_fd, buffer, n_bytes, offset_bytes);
    for (size_t done = 0; done < n_bytes && r == 0;) {
        if (offset_bytes + done < stream->n_decoded)
            done += copy_out(stream, (char *)buffer + done, n_bytes - done, offset_bytes + done);
        else
            r = step(stream);
    }
    /* Behind the elements there may be more, which the CRC is of too. */
    while (r == 0 && end == stream->need_end && stream->n_decoded < stream->packed.size_bytes)
        r = step(stream);
    return r;
}
