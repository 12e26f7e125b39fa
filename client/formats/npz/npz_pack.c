/* Deflating in parallel.
 *
 *     elements   [piece 0][piece 1][piece 2][piece 3]...   each by the next free thread
 *     packed     [0   ][1     ][2  ][3 ]...                written in order, one stream
 *
 * A piece ends on a byte and refers to nothing before it, so the pieces behind each other are one
 * deflate stream, as every reader knows it. A thread that has packed its piece waits for its turn;
 * then it adds the piece to the CRC, which is of what is unpacked, and writes it.
 *
 * What does not become smaller by some percent is given up as soon as that is certain: stored, it
 * can be read where it lies.
 *
 * Called by npz_output.c at the commit.
 */
#include "client/formats/npz/npz_pack.h"
#include "client/formats/files/file_source.h"
#include "client/process.h"
#include "proto/util.h"

#include <isa-l.h>
#include <pthread.h>
#include <signal.h>

#define PIECE_BYTES  (1u << 20)
#define PACKED_BYTES (PIECE_BYTES + PIECE_BYTES / 8 + 4096) /* of a piece at most */
#define LEAST_GAIN   64                                     /* a part of what it was */
#define MAX_LEVEL    3
#define LEVEL_BYTES  ISAL_DEF_LVL3_DEFAULT /* the largest of the levels' buffers */
#define MAX_THREADS  16u

struct work {
    const struct npz_packing *packing;
    uint64_t n_pieces;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    /* Under the lock. */
    uint64_t next_piece, next_written;
    uint64_t n_packed;
    uint32_t crc;
    int failure; /* -errno */
    bool is_too_large;
};

/* Of one thread. */
struct packer {
    struct isal_zstream stream;
    uint8_t level_buffer[LEVEL_BYTES];
    uint8_t piece[PIECE_BYTES], packed[PACKED_BYTES];
};

static uint64_t most_bytes(const struct npz_packing *packing)
{
    return packing->n_bytes - packing->n_bytes / LEAST_GAIN;
}

static bool is_over(const struct work *work)
{
    return work->failure || work->is_too_large;
}

/* False: there is none left. */
static bool take_piece(struct work *work, uint64_t *ret_piece)
{
    pthread_mutex_lock(&work->lock);
    bool is_there = !is_over(work) && work->next_piece < work->n_pieces;
    if (is_there)
        *ret_piece = work->next_piece++;
    pthread_mutex_unlock(&work->lock);
    return is_there;
}

static int read_piece(const struct work *work, uint64_t piece, struct packer *packer,
                      size_t *ret_n_bytes)
{
    uint64_t at = piece * PIECE_BYTES;
    size_t n = (size_t)min_u64(PIECE_BYTES, work->packing->n_bytes - at), n_read = 0;
    int r = file_read(work->packing->from, packer->piece, n, at, &n_read);
    *ret_n_bytes = n;
    return r ? r : n_read < n ? -EIO : 0;
}

static int pack_piece(struct packer *packer, size_t n_bytes, int level, bool is_last,
                      size_t *ret_n_packed)
{
    struct isal_zstream *stream = &packer->stream;
    isal_deflate_init(stream);
    stream->level = (uint32_t)(level < MAX_LEVEL ? level : MAX_LEVEL);
    stream->level_buf = packer->level_buffer;
    stream->level_buf_size = LEVEL_BYTES;
    stream->end_of_stream = is_last;
    stream->flush = is_last ? NO_FLUSH : FULL_FLUSH;
    stream->next_in = packer->piece;
    stream->avail_in = (uint32_t)n_bytes;
    stream->next_out = packer->packed;
    stream->avail_out = PACKED_BYTES;
    if (isal_deflate(stream) != COMP_OK || stream->avail_in > 0 || stream->avail_out == 0)
        return -EIO;
    *ret_n_packed = PACKED_BYTES - stream->avail_out;
    return 0;
}

/* Under the lock but for the writing, which nobody else does meanwhile. */
static void write_piece(struct work *work, uint64_t piece, const struct packer *packer,
                        size_t n_bytes, size_t n_packed)
{
    pthread_mutex_lock(&work->lock);
    while (work->next_written < piece && !is_over(work))
        pthread_cond_wait(&work->turn, &work->lock);
    work->is_too_large |= work->n_packed + n_packed > most_bytes(work->packing);
    if (!is_over(work)) {
        uint64_t at = work->packing->to_offset + work->n_packed;
        pthread_mutex_unlock(&work->lock);
        uint32_t crc = crc32_gzip_refl(work->crc, packer->piece, n_bytes);
        int r = file_write(work->packing->to, packer->packed, n_packed, at);
        pthread_mutex_lock(&work->lock);
        work->crc = crc;
        work->n_packed += n_packed;
        work->next_written++;
        if (r && !work->failure)
            work->failure = r;
    }
    pthread_cond_broadcast(&work->turn);
    pthread_mutex_unlock(&work->lock);
}

static void fail(struct work *work, int r)
{
    pthread_mutex_lock(&work->lock);
    if (!work->failure)
        work->failure = r;
    pthread_cond_broadcast(&work->turn);
    pthread_mutex_unlock(&work->lock);
}

static void *run(void *userdata)
{
    struct work *work = userdata;
    uint64_t piece;
    struct packer *packer = malloc(sizeof(*packer));
    if (!packer)
        fail(work, -ENOMEM);
    while (packer && take_piece(work, &piece)) {
        size_t n_bytes, n_packed = 0;
        int r = read_piece(work, piece, packer, &n_bytes);
        if (r == 0)
            r = pack_piece(packer, n_bytes, work->packing->level, piece + 1 == work->n_pieces,
                           &n_packed);
        if (r)
            fail(work, r);
        else
            write_piece(work, piece, packer, n_bytes, n_packed);
    }
    free(packer);
    return NULL;
}

static unsigned count_threads(uint64_t n_pieces)
{
    return (unsigned)min_u64(min_u64(n_processors(), MAX_THREADS), n_pieces);
}

/* The caller's thread is one of them; it goes on alone where there can be no other. Signals are the
 * program's. */
static void run_all(struct work *work)
{
    pthread_t threads[MAX_THREADS];
    unsigned n = 0, most = count_threads(work->n_pieces) - 1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (n < most && pthread_create(&threads[n], NULL, run, work) == 0)
        n++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    run(work);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

int npz_pack(const struct npz_packing *packing, uint64_t *ret_packed_bytes, uint32_t *ret_crc)
{
    struct work work = {
        .packing = packing,
        .n_pieces = (packing->n_bytes + PIECE_BYTES - 1) / PIECE_BYTES,
    };
    pthread_mutex_init(&work.lock, NULL);
    pthread_cond_init(&work.turn, NULL);
    run_all(&work);
    pthread_cond_destroy(&work.turn);
    pthread_mutex_destroy(&work.lock);
    if (work.failure)
        return work.failure;
    *ret_packed_bytes = work.is_too_large ? 0 : work.n_packed;
    *ret_crc = work.crc;
    return 0;
}
