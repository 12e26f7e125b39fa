/* Streaming expressions through a device, from regions and from files in the page cache, beside
 * what bounds them: a plain pinned copy of the same bytes over the link, both ways at once, and the
 * host's copy of the same bytes on as many threads as the daemon has; and beside CuPy and
 * PyTorch. In turns, medians of ROUNDS.
 *
 * The limit of a job from regions is the slower of the link's copy and the host's. Of one from
 * files the host's part is reading the files into buffers, and copying the result.
 * Usage: stream THREADS MIB FOLDER [PYTHON SCRIPT], with a daemon at $GPUARRAYD_SOCKET; MIB of each
 * array. Ends with 77 where there is no device.
 */
#include "kernels/cuda/runtime.h"
#include "tests/bench/bulk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS      7
#define LINK_BYTES  ((size_t)128 << 20) /* of a pinned buffer each way */
#define PIECE_BYTES ((size_t)1 << 20)
#define MAX_INPUTS  3
#define TARGET      0.90

struct link {
    cuda_stream to, from;
    cuda_event to_end, from_end;
    void *host[2], *device[2];
};

struct bench {
    struct gad_client *client;
    struct link link;
    struct gad_array *arrays[MAX_INPUTS], *files[MAX_INPUTS], *result;
    int fds[MAX_INPUTS];
    void *copy_from, *copy_to; /* ordinary memory, as large as an array */
    size_t n_bytes;            /* of an array */
    const char *python, *script;
};

struct expression {
    const char *text, *name;
    unsigned n_inputs;
};

static const struct {
    const char *way, *name; /* of the script; in the table */
} peer_ways[] = {{"whole", "CuPy, the whole array at once"},
                 {"chunked", "CuPy, in chunks as a user would write it"},
                 {"torch", "PyTorch, the whole array at once"}};

#define N_PEERS (int)(sizeof(peer_ways) / sizeof(peer_ways[0]))

static const struct expression expressions[] = {{"sqrt(a)", "sqrt", 1},
                                                {"a * b + c", "multiply-add", 3}};

static void must(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s (%s)\n", what, cuda_error_name(error), cuda_error_text(error));
    exit(cuda_error_is_absent(error) ? 77 : 1);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void link_open(struct link *l)
{
    struct cuda_device device;
    must(cuda_device_open(0, &device), "the device");
    must(cuda_stream_new(CUDA_USUAL, &l->to), "a stream");
    must(cuda_stream_new(CUDA_USUAL, &l->from), "a stream");
    must(cuda_event_new(true, &l->to_end), "an event");
    must(cuda_event_new(true, &l->from_end), "an event");
    for (int i = 0; i < 2; i++) {
        must(cuda_host_alloc(LINK_BYTES, &l->host[i]), "pinned memory");
        must(cuda_malloc(LINK_BYTES, &l->device[i]), "device memory");
        memset(l->host[i], i, LINK_BYTES);
    }
}

static void link_close(struct link *l)
{
    for (int i = 0; i < 2; i++) {
        cuda_host_free(l->host[i]);
        cuda_free(l->device[i]);
    }
    cuda_event_free(l->to_end);
    cuda_event_free(l->from_end);
    cuda_stream_free(l->to);
    cuda_stream_free(l->from);
}

static double link_seconds(struct link *l, size_t to_bytes, size_t from_bytes)
{
    double began = bulk_now();
    for (size_t done = 0; done < to_bytes || done < from_bytes; done += LINK_BYTES) {
        size_t to = done < to_bytes ? to_bytes - done : 0;
        size_t from = done < from_bytes ? from_bytes - done : 0;
        if (to)
            must(cuda_copy_to_device(l->device[0], l->host[0], to < LINK_BYTES ? to : LINK_BYTES,
                                     l->to),
                 "copying");
        if (from)
            must(cuda_copy_from_device(l->host[1], l->device[1],
                                       from < LINK_BYTES ? from : LINK_BYTES, l->from),
                 "copying");
    }
    must(cuda_event_record(l->to_end, l->to), "an event");
    must(cuda_event_record(l->from_end, l->from), "an event");
    must(cuda_event_wait(l->to_end), "copying");
    must(cuda_event_wait(l->from_end), "copying");
    return bulk_now() - began;
}

static void read_piece(void *data, size_t first, size_t n)
{
    static _Thread_local char buffer[PIECE_BYTES];
    if (pread(*(const int *)data, buffer, n, (off_t)first) != (ssize_t)n)
        fail("reading");
}

/* What the host must do for the bytes at least. */
static double host_seconds(struct bench *b, unsigned n_inputs, bool is_files)
{
    double seconds = bulk_copy(b->copy_to, b->copy_from, b->n_bytes); /* of the result */
    for (unsigned i = 0; i < n_inputs; i++)
        seconds += is_files ? bulk_parallel(read_piece, &b->fds[i], b->n_bytes, PIECE_BYTES)
                            : bulk_copy(b->copy_to, b->copy_from, b->n_bytes);
    return seconds;
}

static void check_result(const struct bench *b, const struct expression *e)
{
    const float *r = gad_array_data(b->result), *a = gad_array_data(b->arrays[0]);
    const float *x = gad_array_data(b->arrays[1]), *y = gad_array_data(b->arrays[2]);
    for (size_t i = 0; i < b->n_bytes / sizeof(float); i += 997) {
        float want = e->n_inputs == 1 ? __builtin_sqrtf(a[i]) : a[i] * x[i] + y[i];
        if (r[i] != want) {
            fprintf(stderr, "%s: element %zu is wrong\n", e->text, i);
            exit(1);
        }
    }
    memset(gad_array_data(b->result), 0, b->n_bytes);
}

static void start_peer(const struct bench *b, const struct expression *e, const char *how,
                       struct bulk_peer *peer)
{
    char count[32];
    snprintf(count, sizeof(count), "%zu", b->n_bytes / sizeof(float));
    const char *const words[] = {b->python, b->script, how, e->name, count, NULL};
    bulk_peer_start(peer, b->python ? words : (const char *[]){NULL});
}

static void print_peer(const char *what, const struct bulk_peer *peer, double *seconds, double us)
{
    if (!peer->pid)
        return;
    double theirs = bulk_median(seconds, ROUNDS);
    printf("RESULT\t  the same with %s\t%.4f s\t-\t%.2f times ours\t-\n", what, theirs,
           theirs / us);
}

static void bench_job(struct bench *b, const struct expression *e, bool is_files)
{
    static const char *const names[] = {"a", "b", "c"};
    double ours[ROUNDS], link[ROUNDS], host[ROUNDS], theirs[N_PEERS][ROUNDS] = {{0}};
    struct gad_argument args[MAX_INPUTS] = {{.name = NULL}};
    struct bulk_peer peers[N_PEERS] = {{0}};
    for (unsigned i = 0; i < e->n_inputs; i++)
        args[i] =
            (struct gad_argument){.name = names[i], .array = is_files ? b->files[i] : b->arrays[i]};
    struct gad_output output = {.expr = e->text, .to = b->result};
    struct gad_job_options job = {
        .n_args = e->n_inputs, .args = args, .n_outputs = 1, .outputs = &output, .engine = "cuda"};
    double first = bulk_run_job(b->client, &job);
    check_result(b, e);
    for (int p = 0; p < N_PEERS && !is_files; p++)
        start_peer(b, e, peer_ways[p].way, &peers[p]);
    for (int i = 0; i < ROUNDS; i++) {
        link[i] = link_seconds(&b->link, e->n_inputs * b->n_bytes, b->n_bytes);
        host[i] = host_seconds(b, e->n_inputs, is_files);
        ours[i] = bulk_run_job(b->client, &job);
        for (int p = 0; p < N_PEERS; p++)
            theirs[p][i] = peers[p].pid ? bulk_peer_round(&peers[p]) : 0;
    }
    check_result(b, e);
    double us = bulk_median(ours, ROUNDS), l = bulk_median(link, ROUNDS);
    double h = bulk_median(host, ROUNDS), limit = l > h ? l : h;
    printf("RESULT\t%s float32 from %s, %zu MiB an array (first run %.4f s)\t%.4f s\tlink %.4f s, "
           "host's copy on %u threads %.4f s\t%.2f\tat least %.2f\n",
           e->text, is_files ? "files in the page cache" : "regions", b->n_bytes >> 20, first, us,
           l, bulk_n_threads, h, limit / us, TARGET);
    for (int p = 0; p < N_PEERS; p++) {
        print_peer(peer_ways[p].name, &peers[p], theirs[p], us);
        bulk_peer_end(&peers[p]);
    }
    fflush(stdout);
}

static void open_arrays(struct bench *b, const char *folder)
{
    int64_t n = (int64_t)(b->n_bytes / sizeof(float));
    struct gad_error error;
    for (unsigned k = 0; k < MAX_INPUTS; k++) {
        char path[512];
        b->arrays[k] = bulk_array(b->client, GAD_FLOAT32, n);
        float *items = gad_array_data(b->arrays[k]);
        for (int64_t i = 0; i < n; i++)
            items[i] = (float)((i * (k + 3)) % 8191) * 0.25f;
        snprintf(path, sizeof(path), "%s/array%u.raw", folder, k);
        b->fds[k] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (b->fds[k] < 0)
            fail(path);
        for (size_t done = 0; done < b->n_bytes; done += PIECE_BYTES)
            if (pwrite(b->fds[k], (char *)items + done, PIECE_BYTES, (off_t)done) !=
                (ssize_t)PIECE_BYTES)
                fail(path);
        unlink(path);
        struct gad_layout layout = {.dtype = GAD_FLOAT32, .ndim = 1, .shape = &n};
        if (gad_array_from_file(b->client, b->fds[k], &layout, 0, false, &b->files[k], &error)) {
            fprintf(stderr, "%s: %s\n", path, error.message);
            exit(1);
        }
    }
    b->result = bulk_array(b->client, GAD_FLOAT32, n);
    b->copy_from = aligned_alloc(4096, b->n_bytes);
    b->copy_to = aligned_alloc(4096, b->n_bytes);
    if (!b->copy_from || !b->copy_to)
        fail("memory");
    memset(b->copy_from, 1, b->n_bytes);
    memset(b->copy_to, 2, b->n_bytes);
}

static void close_arrays(struct bench *b)
{
    for (unsigned k = 0; k < MAX_INPUTS; k++) {
        gad_array_release(b->files[k]);
        gad_array_release(b->arrays[k]);
        close(b->fds[k]);
    }
    gad_array_release(b->result);
    free(b->copy_from);
    free(b->copy_to);
}

int main(int argc, char **argv)
{
    static struct bench b;
    unsigned n_threads = argc > 3 ? (unsigned)atoi(argv[1]) : 0;
    b.n_bytes = argc > 3 ? strtoul(argv[2], NULL, 10) << 20 : 0;
    if ((argc != 4 && argc != 6) || n_threads < 1 || n_threads > BULK_MAX_THREADS || !b.n_bytes) {
        fprintf(stderr, "usage: stream THREADS MIB FOLDER [PYTHON SCRIPT]\n");
        return 2;
    }
    bulk_n_threads = n_threads;
    b.python = argc == 6 ? argv[4] : NULL;
    b.script = argc == 6 ? argv[5] : NULL;
    link_open(&b.link);
    b.client = bulk_connect();
    open_arrays(&b, argv[3]);
    for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
        bench_job(&b, &expressions[i], false);
        bench_job(&b, &expressions[i], true);
    }
    close_arrays(&b);
    gad_close(b.client);
    link_close(&b.link);
    return 0;
}
