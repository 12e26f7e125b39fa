/* Reductions of a cached npy of float32 on BULK_THREADS threads, each beside the fastest way of
 * only reading the file and beside NumPy and Dask, in turns, in one run. Ways of reading: into a
 * small buffer of each thread with several sizes of it, and mapping, reading and unmapping. What is
 * read is added up as 64-bit words in the mapped case, since a mapping that nobody looks at is not
 * read; buffers are left alone. A job's time is that from opening the file to the result; the first
 * of a round pays for the daemon's caches, so each round begins with another one. Usage:
 * reductions FILE.NPY [PYTHON SCRIPT]
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

#define ROUNDS           5
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

/* What is computed of `a`, all in one job, and the least part of the speed of reading that it
 * should have. */
#define MAX_OUTPUTS 4
static const struct work {
    const char *name, *exprs[MAX_OUTPUTS];
    double least_ratio;
} works[] = {{"sum", {"sum(a)"}, 0.8},
             {"max", {"max(a)"}, 0.8},
             {"mean-std-min-max", {"mean(a)", "std(a)", "min(a)", "max(a)"}, 0.7},
             {"mean-axis-0", {"mean(a, axis=0)"}, 0.7},
             {"mean-axis-1", {"mean(a, axis=1)"}, 0.7}};
#define N_WORKS (sizeof(works) / sizeof(works[0]))

static const char *const peer_names[] = {"numpy", "dask"};
#define N_PEERS (sizeof(peer_names) / sizeof(peer_names[0]))

static void open_array(struct gad_client *client, const char *path, struct gad_array **ret)
{
    struct gad_error error;
    if (gad_array_open(client, path, ret, &error)) {
        fprintf(stderr, "%s: %s\n", path, error.message);
        exit(1);
    }
}

/* Results of axes go to shared memory that is there before. */
static struct gad_array *result_array(struct gad_client *client, const char *path,
                                      const struct work *work)
{
    int axis = !strcmp(work->name, "mean-axis-0") ? 0 : !strcmp(work->name, "mean-axis-1") ? 1 : -1;
    if (axis < 0)
        return NULL;
    struct gad_array *array;
    open_array(client, path, &array);
    int64_t n = gad_array_info(array)->shape[1 - axis];
    gad_array_release(array);
    return bulk_array(client, GAD_FLOAT32, n);
}

static double time_job(struct gad_client *client, const char *path, const struct work *work,
                       struct gad_array *result)
{
    struct gad_array *array;
    double began = bulk_now();
    open_array(client, path, &array);
    struct gad_argument args[] = {{.name = "a", .array = array}};
    struct gad_output outputs[MAX_OUTPUTS] = {{0}};
    struct gad_job_options job = {.n_args = 1, .args = args, .outputs = outputs};
    while (job.n_outputs < MAX_OUTPUTS && work->exprs[job.n_outputs]) {
        outputs[job.n_outputs] = (struct gad_output){.expr = work->exprs[job.n_outputs]};
        outputs[job.n_outputs++].to = result;
    }
    bulk_run_job(client, &job);
    gad_array_release(array);
    return bulk_now() - began;
}

/* The fastest way's median seconds. */
static double print_reading(size_t n_bytes, double (*reading)[ROUNDS])
{
    double gb = 1e-9 * (double)n_bytes, least = 0, medians[N_WAYS];
    size_t best = 0;
    for (size_t i = 0; i < N_WAYS; i++) {
        medians[i] = bulk_median(reading[i], ROUNDS);
        if (i == 0 || medians[i] < least) {
            least = medians[i];
            best = i;
        }
    }
    printf("reading an npy of %.2f GiB in page cache, the fastest way: %s: %.4f s (%.1f GB/s)\n",
           (double)n_bytes / (1 << 30), ways[best].name, least, gb / least);
    for (size_t i = 0; i < N_WAYS; i++)
        printf("  %s: %.4f s (%.1f GB/s)\n", ways[i].name, medians[i], gb / medians[i]);
    return least;
}

struct peers {
    struct bulk_peer all[N_WORKS][N_PEERS];
    double seconds[N_WORKS][N_PEERS][ROUNDS];
};

static void print_work(const struct work *work, size_t n_bytes, double ours, double reading,
                       struct bulk_peer *peers, double (*seconds)[ROUNDS])
{
    printf("%s float32: %.4f s (%.1f GB/s); of reading alone %.2f (at least %.2f)\n", work->name,
           ours, 1e-9 * (double)n_bytes / ours, reading / ours, work->least_ratio);
    for (size_t k = 0; k < N_PEERS; k++) {
        if (!peers[k].pid) {
            printf("  no %s here\n", peer_names[k]);
            continue;
        }
        double theirs = bulk_median(seconds[k], ROUNDS);
        printf("  %s on 2 threads, mapped: %.4f s; %.1f times\n", peer_names[k], theirs,
               theirs / ours);
    }
}

static void start_peers(struct peers *peers, char **argv)
{
    for (size_t i = 0; i < N_WORKS; i++)
        for (size_t k = 0; k < N_PEERS && argv[2]; k++)
            bulk_peer_start(&peers->all[i][k], (const char *[]){argv[2], argv[3], peer_names[k],
                                                                works[i].name, argv[1], NULL});
}

int main(int argc, char **argv)
{
    static double reading[N_WAYS][ROUNDS], ours[N_WORKS][ROUNDS];
    static struct peers peers;
    struct gad_array *results[N_WORKS];
    struct file file = {.fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1};
    struct stat st;
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: reductions FILE.NPY [PYTHON SCRIPT]\n");
        return 2;
    }
    if (file.fd < 0 || fstat(file.fd, &st))
        fail(argv[1]);
    file.size_bytes = (size_t)st.st_size;
    struct gad_client *client = bulk_connect();
    time_way(&file, &ways[0]); /* it is in the page cache now */
    start_peers(&peers, argv);
    for (size_t i = 0; i < N_WORKS; i++)
        results[i] = result_array(client, argv[1], &works[i]);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < N_WAYS; k++)
            reading[k][round] = time_way(&file, &ways[k]);
        for (size_t n = 0; n < N_WORKS; n++) {
            size_t i = (n + (size_t)round) % N_WORKS; /* each comes first, once */
            ours[i][round] = time_job(client, argv[1], &works[i], results[i]);
            for (size_t k = 0; k < N_PEERS; k++)
                if (peers.all[i][k].pid)
                    peers.seconds[i][k][round] = bulk_peer_round(&peers.all[i][k]);
        }
    }
    double least = print_reading(file.size_bytes, reading);
    for (size_t i = 0; i < N_WORKS; i++) {
        print_work(&works[i], file.size_bytes, bulk_median(ours[i], ROUNDS), least, peers.all[i],
                   peers.seconds[i]);
        for (size_t k = 0; k < N_PEERS; k++)
            bulk_peer_end(&peers.all[i][k]);
        if (results[i])
            gad_array_release(results[i]);
    }
    gad_close(client);
    close(file.fd);
    return 0;
}
