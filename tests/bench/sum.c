/* sum(a) of a cached npy of float32 on BULK_THREADS threads, beside the fastest way of only reading
 * the file and beside NumPy, in turns, in one run: reading into a small buffer of each thread with
 * several sizes of it, and mapping, reading and unmapping. What is read is added up as 64-bit words
 * in the mapped case, since a mapping that nobody looks at is not read; buffers are left alone.
 * The job's time is that from opening the file to the result.
 * Usage: sum FILE.NPY [PYTHON SCRIPT]
 */
#include "tests/bench/bulk.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BUFFER_BYTES ((size_t)1 << 20)
#define MAP_PIECE_BYTES  ((size_t)16 << 20)

struct file {
    int fd;
    size_t size_bytes;
    const char *mapping; /* of all of it */
    bool maps_pieces;
};

static _Atomic uint64_t sum_of_words;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void read_piece(void *data, size_t first, size_t n)
{
    static char buffers[BULK_THREADS][MAX_BUFFER_BYTES] __attribute__((aligned(4096)));
    static _Atomic unsigned n_threads;
    static _Thread_local char *buffer;
    const struct file *file = data;
    if (!buffer)
        buffer = buffers[n_threads++ % BULK_THREADS];
    if (pread(file->fd, buffer, n, (off_t)first) != (ssize_t)n)
        fail("reading");
}

static void add_words(const char *bytes, size_t n)
{
    typedef uint64_t words __attribute__((vector_size(64), aligned(1)));
    words sums[4] = {{0}};
    for (size_t i = 0; i + sizeof(sums) <= n; i += sizeof(sums))
        for (unsigned k = 0; k < 4; k++)
            sums[k] += *(const words *)(bytes + i + k * sizeof(words));
    sums[0] += sums[1] + sums[2] + sums[3];
    atomic_fetch_add(&sum_of_words, sums[0][0] ^ sums[0][7]);
}

static void map_piece(void *data, size_t first, size_t n)
{
    const struct file *file = data;
    if (!file->maps_pieces) {
        add_words(file->mapping + first, n);
        return;
    }
    void *bytes = mmap(NULL, n, PROT_READ, MAP_SHARED | MAP_POPULATE, file->fd, (off_t)first);
    if (bytes == MAP_FAILED)
        fail("mapping");
    add_words(bytes, n);
    munmap(bytes, n);
}

static double time_mapping(struct file *file, bool maps_pieces)
{
    double began = bulk_now();
    file->maps_pieces = maps_pieces;
    void *all = NULL;
    if (!maps_pieces) {
        all = mmap(NULL, file->size_bytes, PROT_READ, MAP_SHARED, file->fd, 0);
        if (all == MAP_FAILED)
            fail("mapping");
        file->mapping = all;
    }
    bulk_parallel(map_piece, file, file->size_bytes, MAP_PIECE_BYTES);
    if (all)
        munmap(all, file->size_bytes);
    return bulk_now() - began;
}

/* The ways of reading. */
static const struct way {
    const char *name;
    size_t buffer_bytes; /* 0: mapped */
    bool maps_pieces;
} ways[] = {{"pread into 128 KiB", 128 << 10, false},
            {"pread into 256 KiB", 256 << 10, false},
            {"pread into 512 KiB", 512 << 10, false},
            {"pread into 1 MiB", 1 << 20, false},
            {"mapping all", 0, false},
            {"mapping in pieces", 0, true}};
#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

static double time_way(struct file *file, const struct way *way)
{
    return way->buffer_bytes ? bulk_parallel(read_piece, file, file->size_bytes, way->buffer_bytes)
                             : time_mapping(file, way->maps_pieces);
}

static double time_job(struct gad_client *client, const char *path)
{
    struct gad_error error;
    struct gad_array *array;
    double began = bulk_now();
    if (gad_array_open(client, path, &array, &error)) {
        fprintf(stderr, "%s: %s\n", path, error.message);
        exit(1);
    }
    struct gad_argument args[] = {{.name = "a", .array = array}};
    struct gad_output outputs[] = {{.expr = "sum(a)"}};
    struct gad_job_options job = {.n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    bulk_run_job(client, &job);
    gad_array_release(array);
    return bulk_now() - began;
}

static void print_results(size_t n_bytes, double ours, double (*reading)[BULK_ROUNDS])
{
    double gb = 1e-9 * (double)n_bytes, least = 0, medians[N_WAYS];
    size_t best = 0;
    for (size_t i = 0; i < N_WAYS; i++) {
        medians[i] = bulk_median(reading[i], BULK_ROUNDS);
        if (i == 0 || medians[i] < least) {
            least = medians[i];
            best = i;
        }
    }
    printf("sum float32, npy of %.2f GiB in page cache: %.4f s (%.1f GB/s); reading alone, %s: "
           "%.4f s (%.1f GB/s); ratio %.2f (at least 0.80)\n",
           (double)n_bytes / (1 << 30), ours, gb / ours, ways[best].name, least, gb / least,
           least / ours);
    for (size_t i = 0; i < N_WAYS; i++)
        printf("  %s: %.4f s (%.1f GB/s)\n", ways[i].name, medians[i], gb / medians[i]);
}

int main(int argc, char **argv)
{
    static double reading[N_WAYS][BULK_ROUNDS], ours[BULK_ROUNDS], theirs[BULK_ROUNDS];
    struct file file = {.fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1};
    struct stat st;
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: sum FILE.NPY [PYTHON SCRIPT]\n");
        return 2;
    }
    if (file.fd < 0 || fstat(file.fd, &st))
        fail(argv[1]);
    file.size_bytes = (size_t)st.st_size;
    struct gad_client *client = bulk_connect();
    struct bulk_peer peer;
    bulk_peer_start(&peer, argc > 2 ? (const char *[]){argv[2], argv[3], "sum", argv[1], NULL}
                                    : (const char *[]){NULL});
    time_way(&file, &ways[0]); /* it is in the page cache now */
    for (int i = 0; i < BULK_ROUNDS; i++) {
        for (size_t k = 0; k < N_WAYS; k++)
            reading[k][i] = time_way(&file, &ways[k]);
        ours[i] = time_job(client, argv[1]);
        theirs[i] = peer.pid ? bulk_peer_round(&peer) : 0;
    }
    double us = bulk_median(ours, BULK_ROUNDS);
    print_results(file.size_bytes, us, reading);
    if (peer.pid) {
        double numpy = bulk_median(theirs, BULK_ROUNDS);
        printf("  NumPy on 2 threads, mapped: %.4f s; %.1f times\n", numpy, numpy / us);
    } else {
        printf("  no NumPy here: no peer\n");
    }
    bulk_peer_end(&peer);
    gad_close(client);
    close(file.fd);
    return 0;
}
