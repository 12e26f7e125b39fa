/* How fast chunks decode by themselves: the limit for what reads an HDF5 dataset with filters.
 *
 *     codecs FILE DATASET [THREADS]
 *
 * All stored chunks are read into memory first; then THREADS threads (as many as processors) decode
 * them into one buffer each, with the pipeline of the dataset; what is packed by Blosc alone by
 * that library itself, which we call for some of its frames only. Prints seconds and bytes of
 * elements a second, the best of five rounds, and the processors' time of the one that took least
 * of it.
 *
 * Then the same for threads that also read each chunk from the file and add up what they decoded,
 * as float32 in 32 sums: what a job does at least. With codecs of several GB/s that is as much work
 * as they are. Mapping the file is no way around it: two threads that read 374 MB of the page cache
 * take 29 ms, and 37 by a mapping, of which 14 are its end.
 */
#include "client/codecs/codec.h"
#include "client/formats/hdf5/hdf5_filters.h"

#include <blosc.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define N_ROUNDS    5
#define N_SUMS      32
#define BLOSC_ID    32001

struct stored {
    void *data;
    hsize_t n_bytes;
    haddr_t address;
    uint32_t skipped;
};

static struct codec_pipeline pipeline;
static struct stored *chunks;
static hsize_t n_chunks, chunk_bytes, most_bytes;
static int fd;
static bool is_whole;       /* reads and adds up, too */
static _Atomic float total; /* is used, so that it is computed */
static atomic_ullong next;
static atomic_bool is_damaged;

static double now_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float add_up(const float *elements, size_t n)
{
    float sums[N_SUMS] = {0}, sum = 0;
    for (size_t i = 0; i + N_SUMS <= n; i += N_SUMS)
        for (size_t k = 0; k < N_SUMS; k++)
            sums[k] += elements[i + k];
    for (size_t k = 0; k < N_SUMS; k++)
        sum += sums[k];
    return sum;
}

static const void *stored_bytes(const struct stored *chunk, void *buffer)
{
    if (!is_whole)
        return chunk->data;
    if (pread(fd, buffer, chunk->n_bytes, (off_t)chunk->address) != (ssize_t)chunk->n_bytes)
        is_damaged = true;
    return buffer;
}

static int decode_chunk(const struct stored *chunk, struct codec_scratch *scratch,
                        const void *bytes, void *elements)
{
    unsigned step;
    if (pipeline.n_steps > 1 || pipeline.steps[0].codec->hdf5_id != BLOSC_ID || chunk->skipped)
        return codec_decode(&pipeline, chunk->skipped, scratch, bytes, chunk->n_bytes, elements,
                            chunk_bytes, &step);
    return blosc_decompress_ctx(bytes, elements, chunk_bytes, 1) != (int)chunk_bytes;
}

static void *decode(void *userdata)
{
    struct codec_scratch *scratch = codec_scratch_new();
    void *elements = malloc(chunk_bytes), *buffer = malloc(most_bytes);
    float sum = 0;
    for (hsize_t i; scratch && elements && buffer && (i = atomic_fetch_add(&next, 1)) < n_chunks;) {
        const void *bytes = stored_bytes(&chunks[i], buffer);
        if (decode_chunk(&chunks[i], scratch, bytes, elements))
            is_damaged = true;
        if (is_whole)
            sum += add_up(elements, chunk_bytes / sizeof(float));
    }
    total = sum;
    free(buffer);
    free(elements);
    codec_scratch_free(scratch);
    return NULL;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Into both the least of this round and of those before. */
static void one_round(unsigned n_threads, double *wall_s, double *processors_s)
{
    pthread_t threads[MAX_THREADS];
    double began = now_s(CLOCK_MONOTONIC), used = now_s(CLOCK_PROCESS_CPUTIME_ID);
    next = 0;
    for (unsigned i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, decode, NULL);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    *wall_s = least(*wall_s, now_s(CLOCK_MONOTONIC) - began);
    *processors_s = least(*processors_s, now_s(CLOCK_PROCESS_CPUTIME_ID) - used);
}

/* Chunks side by side in C order, by their places in the grid. */
static int read_chunks(hid_t dataset, int ndim, const hsize_t *dims, const hsize_t *chunk)
{
    hsize_t at[H5S_MAX_RANK] = {0};
    chunks = calloc(n_chunks, sizeof(*chunks));
    for (hsize_t i = 0; chunks && i < n_chunks; i++) {
        unsigned mask;
        if (H5Dget_chunk_info_by_coord(dataset, at, &mask, &chunks[i].address, &chunks[i].n_bytes) <
                0 ||
            !(chunks[i].data = malloc(chunks[i].n_bytes)) ||
            H5Dread_chunk(dataset, H5P_DEFAULT, at, &chunks[i].skipped, chunks[i].data) < 0)
            return -1;
        most_bytes = chunks[i].n_bytes > most_bytes ? chunks[i].n_bytes : most_bytes;
        for (int k = ndim - 1; k >= 0 && (at[k] += chunk[k]) >= dims[k]; k--)
            at[k] = 0;
    }
    return chunks ? 0 : -1;
}

int main(int argc, char **argv)
{
    long n_online = sysconf(_SC_NPROCESSORS_ONLN);
    long n_threads = argc > 3 ? atol(argv[3]) : n_online;
    if (argc < 3 || n_threads < 1 || n_threads > MAX_THREADS) {
        fprintf(stderr, "usage: codecs FILE DATASET [THREADS]\n");
        return 2;
    }
    hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = file > 0 ? H5Dopen2(file, argv[2], H5P_DEFAULT) : -1;
    hid_t plist = dataset > 0 ? H5Dget_create_plist(dataset) : -1;
    int ndim = plist > 0 ? H5Pget_chunk(plist, H5S_MAX_RANK, chunk) : -1;
    if (ndim < 1 || !hdf5_filters_pipeline(plist, &pipeline) ||
        H5Sget_simple_extent_dims(H5Dget_space(dataset), dims, NULL) != ndim) {
        fprintf(stderr, "codecs: not chunked, or filters that are not ours\n");
        return 1;
    }
    n_chunks = 1;
    chunk_bytes = H5Tget_size(H5Dget_type(dataset));
    for (int k = 0; k < ndim; k++) {
        n_chunks *= (dims[k] - 1) / chunk[k] + 1;
        chunk_bytes *= chunk[k];
    }
    if (read_chunks(dataset, ndim, dims, chunk)) {
        fprintf(stderr, "codecs: the chunks cannot be read\n");
        return 1;
    }
    fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    for (int whole = 0; whole <= 1; whole++) {
        double best = 1e9, used = 1e9;
        is_whole = whole;
        for (int i = 0; i < N_ROUNDS; i++)
            one_round((unsigned)n_threads, &best, &used);
        printf("%.4f s %.3f GB/s %.4f s of processors%s\n", best,
               (double)(n_chunks * chunk_bytes) / best / 1e9, used, whole ? " with all" : "");
    }
    return is_damaged;
}
