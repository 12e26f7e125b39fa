/* How fast chunks decode by themselves: the limit for what reads an HDF5 dataset with filters.
 *
 *     codecs FILE DATASET [THREADS]
 *
 * All stored chunks are read into memory first; then THREADS threads (as many as processors) decode
 * them into one buffer each, with the pipeline of the dataset. Prints seconds and bytes of elements
 * a second, the best of five rounds.
 */
#include "client/codecs/codec.h"
#include "client/formats/hdf5/hdf5_filters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define N_ROUNDS    5

struct stored {
    void *data;
    hsize_t n_bytes;
    uint32_t skipped;
};

static struct codec_pipeline pipeline;
static struct stored *chunks;
static hsize_t n_chunks, chunk_bytes;
static atomic_ullong next;
static atomic_bool is_damaged;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *decode(void *userdata)
{
    struct codec_scratch *scratch = codec_scratch_new();
    void *elements = malloc(chunk_bytes);
    unsigned step;
    for (hsize_t i; scratch && elements && (i = atomic_fetch_add(&next, 1)) < n_chunks;)
        if (codec_decode(&pipeline, chunks[i].skipped, scratch, chunks[i].data, chunks[i].n_bytes,
                         elements, chunk_bytes, &step))
            is_damaged = true;
    free(elements);
    codec_scratch_free(scratch);
    return NULL;
}

static double round_s(unsigned n_threads)
{
    pthread_t threads[MAX_THREADS];
    double began = now_s();
    next = 0;
    for (unsigned i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, decode, NULL);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return now_s() - began;
}

/* Chunks side by side in C order, by their places in the grid. */
static int read_chunks(hid_t dataset, int ndim, const hsize_t *dims, const hsize_t *chunk)
{
    hsize_t at[H5S_MAX_RANK] = {0};
    chunks = calloc(n_chunks, sizeof(*chunks));
    for (hsize_t i = 0; chunks && i < n_chunks; i++) {
        if (H5Dget_chunk_storage_size(dataset, at, &chunks[i].n_bytes) < 0 ||
            !(chunks[i].data = malloc(chunks[i].n_bytes)) ||
            H5Dread_chunk(dataset, H5P_DEFAULT, at, &chunks[i].skipped, chunks[i].data) < 0)
            return -1;
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
    double best = round_s((unsigned)n_threads);
    for (int i = 1; i < N_ROUNDS; i++) {
        double s = round_s((unsigned)n_threads);
        best = s < best ? s : best;
    }
    printf("%.4f s %.3f GB/s\n", best, (double)(n_chunks * chunk_bytes) / best / 1e9);
    return is_damaged;
}
