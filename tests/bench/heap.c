/* sqrt(a) of float64 from ordinary memory into ordinary memory (a provider's rings) beside the same
 * job from region to region and a copy by two threads with stores that bypass the cache, in turns,
 * in one run. Every array was touched before; the median of the rounds counts.
 * Usage: heap SOCKET [MIB [ROUNDS]]
 */
#include "client/gpuarrayd.h"
#include "tests/bench/small.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MAX_ROUNDS 99

struct half {
    char *to;
    const char *from;
    size_t n_bytes;
};

static void *copy_half(void *argument)
{
    const struct half *half = argument;
#ifdef __SSE2__
    for (size_t i = 0; i < half->n_bytes; i += 64)
        for (size_t j = i; j < i + 64; j += 16)
            _mm_stream_si128((__m128i *)(half->to + j),
                             _mm_load_si128((const __m128i *)(half->from + j)));
    _mm_sfence();
#else
    memcpy(half->to, half->from, half->n_bytes);
#endif
    return NULL;
}

static double copy_time(double *to, const double *from, size_t n_bytes)
{
    size_t first = n_bytes / 2 & ~(size_t)63;
    struct half a = {(char *)to, (const char *)from, first};
    struct half b = {(char *)to + first, (const char *)from + first, n_bytes - first};
    pthread_t other;
    double began = now_us();
    if (pthread_create(&other, NULL, copy_half, &b))
        exit(1);
    copy_half(&a);
    pthread_join(other, NULL);
    return now_us() - began;
}

static void check(enum gad_status status, const struct gad_error *error)
{
    if (status == GAD_OK)
        return;
    fprintf(stderr, "%s: %s\n", gad_status_word(status), error->message);
    exit(1);
}

static double job_time(struct gad_client *client, struct gad_array *in, struct gad_array *out)
{
    struct gad_error error;
    const struct gad_argument args[] = {{.name = "a", .array = in}};
    const struct gad_output outputs[] = {{.expr = "sqrt(a)", .to = out}};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    double began = now_us();
    check(gad_run(client, &options, NULL, &error), &error);
    return now_us() - began;
}

static void fill(double *in, double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        in[i] = (double)(i % 1000);
        out[i] = -1;
    }
}

static void check_result(const double *out, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        if (out[i] != sqrt((double)(i % 1000))) {
            fprintf(stderr, "%s: a wrong result\n", what);
            exit(1);
        }
}

static double *heap_new(size_t n_bytes)
{
    void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

static double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof(*times), compare_doubles);
    return times[n / 2];
}

int main(int argc, char **argv)
{
    int64_t mib = argc > 2 ? atoll(argv[2]) : 1024;
    int n_rounds = argc > 3 ? atoi(argv[3]) : 7;
    if (argc < 2 || mib < 1 || mib > 65536 || n_rounds < 1 || n_rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: heap SOCKET [MIB [ROUNDS]]\n");
        return 2;
    }
    size_t n_bytes = (size_t)mib << 20;
    const int64_t n = (int64_t)(n_bytes / sizeof(double));
    struct gad_client *client;
    struct gad_array *regions[2], *heaps[2];
    double *memory[2] = {heap_new(n_bytes), heap_new(n_bytes)};
    struct gad_error error;
    check(gad_connect(&(struct gad_connect_options){.socket = argv[1]}, &client, &error), &error);
    for (int i = 0; i < 2; i++) {
        check(gad_array_new(client, GAD_FLOAT64, 1, &n, &regions[i], &error), &error);
        struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &n};
        check(gad_array_from_memory(client, &layout, memory[i], true, &heaps[i], &error), &error);
    }
    fill(gad_array_data(regions[0]), gad_array_data(regions[1]), n);
    fill(memory[0], memory[1], n);
    double first = job_time(client, regions[0], regions[1]); /* the worker's mapping has no pages */
    double copies[MAX_ROUNDS], by_region[MAX_ROUNDS], by_ring[MAX_ROUNDS];
    for (int i = 0; i < n_rounds; i++) {
        copies[i] = copy_time(memory[1], memory[0], n_bytes);
        by_region[i] = job_time(client, regions[0], regions[1]);
        by_ring[i] = job_time(client, heaps[0], heaps[1]);
    }
    check_result(gad_array_data(regions[1]), n, "region to region");
    check_result(memory[1], n, "heap to heap");
    double copy = median(copies, n_rounds), region = median(by_region, n_rounds),
           ring = median(by_ring, n_rounds), bytes = 2 * (double)n_bytes;
    printf("sqrt float64, %lld MiB, bytes in and out: copy by two threads %.1f GB/s; region to "
           "region %.1f GB/s (the first time %.1f)\n",
           (long long)mib, bytes / copy * 1e-3, bytes / region * 1e-3, bytes / first * 1e-3);
    printf("heap to heap %.1f GB/s: %.2f of region to region (at least 0.50), %.2f of the copy\n",
           bytes / ring * 1e-3, region / ring, copy / ring);
    for (int i = 0; i < 2; i++) {
        gad_array_release(heaps[i]);
        gad_array_release(regions[i]);
        munmap(memory[i], n_bytes);
    }
    gad_close(client);
    return 0;
}
