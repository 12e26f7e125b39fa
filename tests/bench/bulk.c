/* Shared by the benchmarks of large arrays. */
#include "tests/bench/bulk.h"
#include "tests/bench/jobs/small.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPY_PIECE_BYTES ((size_t)1 << 20)

unsigned bulk_n_threads = BULK_THREADS;

double bulk_now(void)
{
    return now_us() * 1e-6;
}

double bulk_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare_doubles);
    return values[n / 2];
}

static void end(const char *what, const struct gad_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->message);
    exit(1);
}

struct gad_client *bulk_connect(void)
{
    struct gad_client *client;
    struct gad_error error;
    struct gad_connect_options options = {.no_private_daemon = true};
    if (gad_connect(&options, &client, &error))
        end("connecting", &error);
    return client;
}

struct gad_array *bulk_array(struct gad_client *client, enum gad_dtype dtype, int64_t n)
{
    struct gad_array *array;
    struct gad_error error;
    if (gad_array_new(client, dtype, 1, &n, &array, &error))
        end("an array in shared memory", &error);
    return array;
}

double bulk_run_job(struct gad_client *client, const struct gad_job_options *options)
{
    struct gad_error error;
    double began = bulk_now();
    if (gad_run(client, options, NULL, &error))
        end("the job", &error);
    return bulk_now() - began;
}

/* Threads ------------------------------------------------------------------------------------ */

struct parallel {
    bulk_work *work;
    void *data;
    size_t n, piece;
    _Atomic size_t next;
};

static void *parallel_main(void *argument)
{
    struct parallel *p = argument;
    size_t first;
    while ((first = atomic_fetch_add(&p->next, p->piece)) < p->n)
        p->work(p->data, first, p->n - first < p->piece ? p->n - first : p->piece);
    return NULL;
}

double bulk_parallel(bulk_work *work, void *data, size_t n, size_t piece)
{
    struct parallel p = {.work = work, .data = data, .n = n, .piece = piece};
    pthread_t threads[BULK_MAX_THREADS];
    double began = bulk_now();
    for (unsigned i = 0; i < bulk_n_threads; i++) {
        if (pthread_create(&threads[i], NULL, parallel_main, &p)) {
            fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    for (unsigned i = 0; i < bulk_n_threads; i++)
        pthread_join(threads[i], NULL);
    return bulk_now() - began;
}

/* The streaming copy ------------------------------------------------------------------------- */

struct copy {
    char *dst;
    const char *src;
};

#if defined(__x86_64__)
#include <immintrin.h>

#define COPY(level, features, V, load, stream)                                                     \
    __attribute__((target(features))) static void copy_##level(void *data, size_t first, size_t n) \
    {                                                                                              \
        const struct copy *c = data;                                                               \
        V *d = (V *)(c->dst + first);                                                              \
        const V *s = (const V *)(c->src + first);                                                  \
        for (size_t i = 0; i < n / sizeof(V); i += 4) {                                            \
            V v0 = load(s + i), v1 = load(s + i + 1), v2 = load(s + i + 2), v3 = load(s + i + 3);  \
            stream(d + i, v0);                                                                     \
            stream(d + i + 1, v1);                                                                 \
            stream(d + i + 2, v2);                                                                 \
            stream(d + i + 3, v3);                                                                 \
        }                                                                                          \
        _mm_sfence();                                                                              \
    }
COPY(avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_stream_si512)
COPY(avx, "avx", __m256i, _mm256_load_si256, _mm256_stream_si256)
COPY(sse2, "sse2", __m128i, _mm_load_si128, _mm_stream_si128)

static bulk_work *best_copy(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return copy_avx512;
    return __builtin_cpu_supports("avx") ? copy_avx : copy_sse2;
}
#else
static void copy_plain(void *data, size_t first, size_t n)
{
    const struct copy *c = data;
    memcpy(c->dst + first, c->src + first, n);
}

static bulk_work *best_copy(void)
{
    return copy_plain;
}
#endif

double bulk_copy(void *dst, const void *src, size_t n_bytes)
{
    struct copy copy = {.dst = dst, .src = src};
    return bulk_parallel(best_copy(), &copy, n_bytes, COPY_PIECE_BYTES);
}

/* The peer ----------------------------------------------------------------------------------- */

/* Pipes are closed in whatever is started: a peer ends when its requests do, and another that was
 * started later would hold their other end. */
void bulk_peer_start(struct bulk_peer *peer, const char *const *arguments)
{
    int requests[2], replies[2];
    char line[64];
    *peer = (struct bulk_peer){.pid = 0};
    if (!arguments[0] || !*arguments[0] || pipe2(requests, O_CLOEXEC) || pipe2(replies, O_CLOEXEC))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(requests[0], STDIN_FILENO);
        dup2(replies[1], STDOUT_FILENO);
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(requests[0]);
    close(replies[1]);
    peer->requests = fdopen(requests[1], "w");
    peer->replies = fdopen(replies[0], "r");
    peer->pid = pid > 0 ? (int)pid : 0;
    if (peer->pid && !fgets(line, sizeof(line), peer->replies))
        bulk_peer_end(peer);
}

double bulk_peer_round(struct bulk_peer *peer)
{
    char line[64];
    if (fputs("round\n", peer->requests) < 0 || fflush(peer->requests) ||
        !fgets(line, sizeof(line), peer->replies)) {
        fprintf(stderr, "the peer has gone\n");
        exit(1);
    }
    return atof(line);
}

void bulk_peer_end(struct bulk_peer *peer)
{
    if (!peer->pid)
        return;
    fclose(peer->requests);
    fclose(peer->replies);
    waitpid(peer->pid, NULL, 0);
    peer->pid = 0;
}
