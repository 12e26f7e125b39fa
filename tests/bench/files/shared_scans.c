/* Several trainers on one compressed file: what a shared scan costs them, beside the decode alone
 * and beside each decoding for itself.
 *
 *     shared_scans [MIB [TRAINERS [FOLDER]]]      (256, 4, /tmp; MIB is a power of two)
 *
 * The file has chunks of 1 MiB, shuffled and deflated at level 4, of rows of 4 KiB. A trainer has a
 * seed, and so an exact permutation of all rows; it fills a window of a quarter of them after the
 * other from all chunks, in its own order, as a loader's scan does: four circles. Every trainer is
 * a process. Their windows' sums must be the same in all ways of reading.
 */
#include "client/clock.h"
#include "client/lib/scans/scan_join.h"
#include "client/gpuarrayd.h"
#include "proto/util.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CHUNK_BYTES  (UINT64_C(1) << 20)
#define ROW_BYTES    4096u
#define ROWS         (CHUNK_BYTES / ROW_BYTES)
#define N_WINDOWS    4u
#define MAX_TRAINERS 16u
#define N_THREADS    2u

static struct scan_description description;
static struct codec_packing kind = {.pipeline.n_steps = 2};
static struct scan_file file;
static int file_fd;
static uint64_t n_rows;

static void fail(const char *what)
{
    fprintf(stderr, "shared_scans: %s\n", what);
    exit(1);
}

/* Something that packs to about a half: a walk with noise in its low bits. */
static void fill_chunk(float *elements, uint64_t chunk)
{
    uint64_t state = chunk * UINT64_C(0x9e3779b97f4a7c15) + 1;
    float value = 0;
    for (size_t i = 0; i < CHUNK_BYTES / sizeof(float); i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        value += (float)((int)(state >> 56) - 128);
        elements[i] = value;
    }
}

static void make_file(const char *folder, uint64_t n_chunks)
{
    static float elements[CHUNK_BYTES / sizeof(float)];
    struct scan_tools tools;
    uint64_t at = 0;
    file_fd = open(folder, O_TMPFILE | O_RDWR, 0600);
    struct scan_entry *entries = calloc(n_chunks, sizeof(*entries));
    if (file_fd < 0 || !entries || scan_tools_init(&tools))
        fail("no file");
    kind.pipeline.steps[0] =
        (struct codec_step){.codec = codec_of_name("shuffle"), .n_values = 1, .values = {4}};
    kind.pipeline.steps[1] =
        (struct codec_step){.codec = codec_of_name("deflate"), .n_values = 1, .values = {4}};
    description = (struct scan_description){.n_chunks = n_chunks,
                                            .chunk_bytes = CHUNK_BYTES,
                                            .n_files = 1,
                                            .n_kinds = 1,
                                            .files = &file,
                                            .kinds = &kind,
                                            .entries = entries};
    for (uint64_t i = 0; i < n_chunks; i++) {
        const void *bytes;
        size_t n;
        fill_chunk(elements, i);
        if (codec_encode(&kind.pipeline, tools.scratch, elements, CHUNK_BYTES, &bytes, &n,
                         &entries[i].skipped) ||
            pwrite(file_fd, bytes, n, (off_t)at) != (ssize_t)n)
            fail("the file cannot be written");
        entries[i].offset_bytes = at;
        entries[i].size_bytes = n;
        entries[i].n_bytes = CHUNK_BYTES;
        at += n;
    }
    scan_tools_deinit(&tools);
    struct stat st;
    if (fstat(file_fd, &st) < 0)
        fail("fstat");
    scan_file_of(&st, &file);
    printf("%llu MiB of float32, packed to %.0f%%\n", (unsigned long long)n_chunks,
           100.0 * (double)at / (double)(n_chunks * CHUNK_BYTES));
}

/* A trainer ------------------------------------------------------------------------------------ */

struct trainer {
    uint64_t seed, window; /* which one is filled */
    char *rows;            /* of the window */
    uint64_t sum, n_own;
    struct missed *missed; /* NULL: it reads alone */
};

/* Chunks that the scan did not bring. */
struct missed {
    struct scan_tools tools;
    char elements[CHUNK_BYTES];
};

static const void *decode_missed(struct missed *missed, uint64_t index)
{
    int fault;
    return scan_decode(&description, &file_fd, index, &missed->tools, NULL, missed->elements,
                       &fault) == SCAN_THERE
               ? missed->elements
               : NULL;
}

static int open_file(void *state, uint32_t number)
{
    (void)state, (void)number;
    return fcntl(file_fd, F_DUPFD_CLOEXEC, 3);
}

static int use(void *state, uint64_t index, const void *elements)
{
    struct trainer *trainer = state;
    uint64_t per_window = n_rows / N_WINDOWS;
    if (!elements && trainer->missed)
        elements = decode_missed(trainer->missed, index);
    if (!elements)
        return -EBADMSG;
    for (uint64_t i = 0; i < ROWS; i++) {
        uint64_t place = ((index * ROWS + i) * (trainer->seed * 8 + 5) + trainer->seed) % n_rows;
        if (place / per_window == trainer->window)
            memcpy(trainer->rows + place % per_window * ROW_BYTES,
                   (const char *)elements + i * ROW_BYTES, ROW_BYTES);
    }
    return 0;
}

static void add_window(struct trainer *trainer)
{
    uint64_t per_window = n_rows / N_WINDOWS;
    for (uint64_t i = 0; i < per_window; i++) {
        uint64_t first;
        memcpy(&first, trainer->rows + i * ROW_BYTES, sizeof(first));
        trainer->sum = trainer->sum * 31 + first;
    }
}

static void train_shared(struct trainer *trainer)
{
    struct gad_error error;
    struct gad_client *client;
    struct scan_reader *reader;
    struct scan_circle circle;
    const struct scan_access access = {.open = open_file};
    trainer->missed = malloc(sizeof(*trainer->missed));
    if (!trainer->missed || scan_tools_init(&trainer->missed->tools))
        fail("no memory");
    if (gad_connect(NULL, &client, &error) ||
        client_join_scan(client, &description, &access, &reader, &error))
        fail(error.message);
    for (; trainer->window < N_WINDOWS; trainer->window++) {
        if (scan_reader_circle(reader, use, trainer, NULL, &circle))
            fail("a circle");
        trainer->n_own += circle.n_own;
        add_window(trainer);
    }
    scan_reader_free(reader);
    scan_tools_deinit(&trainer->missed->tools);
    free(trainer->missed);
    gad_close(client);
}

static _Atomic uint64_t next_chunk;

static void *decode_some(void *argument)
{
    struct scan_tools tools;
    int fault;
    void *elements = malloc(CHUNK_BYTES);
    uint64_t i;
    if (!elements || scan_tools_init(&tools))
        fail("no memory");
    while ((i = atomic_fetch_add(&next_chunk, 1)) < description.n_chunks)
        if (scan_decode(&description, &file_fd, i, &tools, NULL, elements, &fault) != SCAN_THERE ||
            (argument && use(argument, i, elements)))
            fail("a chunk");
    scan_tools_deinit(&tools);
    free(elements);
    return NULL;
}

static void decode_all(struct trainer *trainer)
{
    pthread_t threads[N_THREADS];
    next_chunk = 0;
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, decode_some, trainer);
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void train_alone(struct trainer *trainer)
{
    for (; trainer->window < N_WINDOWS; trainer->window++) {
        decode_all(trainer);
        add_window(trainer);
    }
}

/* All of them ---------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double run(void (*train)(struct trainer *trainer), unsigned n, struct trainer *results)
{
    pid_t children[MAX_TRAINERS];
    double began = now_s();
    for (unsigned i = 0; i < n; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            results[i] =
                (struct trainer){.seed = i + 1, .rows = calloc(n_rows / N_WINDOWS, ROW_BYTES)};
            train(&results[i]);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        int status;
        if (waitpid(children[i], &status, 0) < 0 || status)
            fail("a trainer");
    }
    return now_s() - began;
}

int main(int n_args, char **args)
{
    uint64_t n_chunks = n_args > 1 ? strtoull(args[1], NULL, 10) : 256;
    unsigned n = n_args > 2 ? (unsigned)atoi(args[2]) : 4;
    struct trainer *results = mmap(NULL, 2 * MAX_TRAINERS * sizeof(*results),
                                   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n_chunks < 4 || (n_chunks & (n_chunks - 1)) || n < 1 || n > MAX_TRAINERS)
        fail("usage: shared_scans [MIB [TRAINERS [FOLDER]]]");
    n_rows = n_chunks * ROWS;
    make_file(n_args > 3 ? args[3] : "/tmp", n_chunks);
    double began = now_s();
    decode_all(NULL);
    double limit = (now_s() - began) * N_WINDOWS;
    double one = run(train_shared, 1, results), all = run(train_shared, n, results);
    double own = run(train_alone, n, results + MAX_TRAINERS);
    uint64_t n_own = 0;
    for (unsigned i = 0; i < n; i++) {
        n_own += results[i].n_own;
        if (results[i].sum != results[MAX_TRAINERS + i].sum)
            fail("a trainer got other bytes than alone");
    }
    printf("limit: the decodes alone, %u threads      %8.3f s\n", N_THREADS, limit);
    printf("one trainer, shared scan                 %8.3f s   %.2f of the limit\n", one,
           one / limit);
    printf(
        "%u trainers, one scan                     %8.3f s   %.2f of one; %llu of %llu chunks by "
        "themselves\n",
        n, all, all / one, (unsigned long long)n_own,
        (unsigned long long)(n * N_WINDOWS * n_chunks));
    printf("%u trainers, each decodes for itself      %8.3f s   %.2f of the scan's\n", n, own,
           own / all);
    return 0;
}
