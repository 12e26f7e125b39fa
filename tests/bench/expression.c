/* sqrt(a*a+b*b)+sin(c)*exp(-a), region to region, beside a loop written by hand for it and NumPy in
 * blocks, each on two threads; in turns, medians.
 *
 * The loop uses our vector sin and exp on blocks that stay in the first-level cache; all the rest
 * is one fused loop of intrinsics that reads the inputs and writes past the cache.
 * Usage: expression [PYTHON SCRIPT [MI_ELEMENTS]], with a daemon at $GPUARRAYD_SOCKET.
 */
#include "tests/bench/bulk.h"

#include "kernels/cpu/run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPRESSION  "sqrt(a*a+b*b)+sin(c)*exp(-a)"
#define BLOCK_BYTES 4096
#define PIECE       65536 /* elements that a thread of the loop takes at a time */

typedef void fused_fn(size_t n, void *r, const void *a, const void *b, const void *s,
                      const void *e);

struct loop {
    const char *a, *b, *c;
    char *r;
    size_t item_bytes;
    kernel_fn *negative, *sin, *exp;
    fused_fn *fused;
};

#if defined(__x86_64__)
#include <immintrin.h>

#define FUSED(level, features, T, V, p, x)                                                         \
    __attribute__((target(features))) static void fused_##level##_##T(                             \
        size_t n, void *to, const void *pa, const void *pb, const void *ps, const void *pe)        \
    {                                                                                              \
        T *r = to;                                                                                 \
        const T *as = pa, *bs = pb, *ss = ps, *es = pe;                                            \
        for (size_t i = 0; i < n; i += sizeof(V) / sizeof(T)) {                                    \
            V a = p##_loadu_##x(as + i), b = p##_loadu_##x(bs + i);                                \
            V root = p##_sqrt_##x(p##_add_##x(p##_mul_##x(a, a), p##_mul_##x(b, b)));              \
            V wave = p##_mul_##x(p##_loadu_##x(ss + i), p##_loadu_##x(es + i));                    \
            p##_stream_##x(r + i, p##_add_##x(root, wave));                                        \
        }                                                                                          \
    }
FUSED(avx512, "avx512f", float, __m512, _mm512, ps)
FUSED(avx512, "avx512f", double, __m512d, _mm512, pd)
FUSED(avx2, "avx2", float, __m256, _mm256, ps)
FUSED(avx2, "avx2", double, __m256d, _mm256, pd)
FUSED(baseline, "sse2", float, __m128, _mm, ps)
FUSED(baseline, "sse2", double, __m128d, _mm, pd)

static fused_fn *best_fused(enum cpu_level level, bool is_double)
{
    if (level == CPU_LEVEL_AVX512)
        return is_double ? fused_avx512_double : fused_avx512_float;
    if (level == CPU_LEVEL_AVX2)
        return is_double ? fused_avx2_double : fused_avx2_float;
    return is_double ? fused_baseline_double : fused_baseline_float;
}

static void fence(void)
{
    _mm_sfence();
}
#else
#define FUSED(T, root_of)                                                                          \
    static void fused_##T(size_t n, void *to, const void *pa, const void *pb, const void *ps,      \
                          const void *pe)                                                          \
    {                                                                                              \
        T *r = to;                                                                                 \
        const T *a = pa, *b = pb, *s = ps, *e = pe;                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            r[i] = root_of(a[i] * a[i] + b[i] * b[i]) + s[i] * e[i];                               \
    }
FUSED(float, sqrtf)
FUSED(double, sqrt)

static fused_fn *best_fused(enum cpu_level level, bool is_double)
{
    (void)level;
    return is_double ? fused_double : fused_float;
}

static void fence(void) {}
#endif

static kernel_fn *kernel_of(enum op op, enum dtype dtype)
{
    struct insn insn = {.op = (uint16_t)op, .compute = (uint8_t)dtype};
    bool is_exchanged;
    insn.dst.dtype = (uint8_t)dtype;
    return engine_find_kernel(cpu_engine_get(CPU_LEVEL_AVX512), &insn, &is_exchanged);
}

static void loop_piece(void *data, size_t first, size_t count)
{
    const struct loop *l = data;
    char s[BLOCK_BYTES] __attribute__((aligned(64))), e[BLOCK_BYTES] __attribute__((aligned(64)));
    size_t n = BLOCK_BYTES / l->item_bytes;
    for (size_t i = first; i < first + count; i += n) {
        size_t at = i * l->item_bytes;
        l->sin(n, s, l->c + at, NULL, NULL, NULL);
        l->negative(n, e, l->a + at, NULL, NULL, NULL);
        l->exp(n, e, e, NULL, NULL, NULL);
        l->fused(n, l->r + at, l->a + at, l->b + at, s, e);
    }
    fence();
}

#define VALUES(T)                                                                                  \
    static void values_##T(T *a, T *b, T *c, size_t n)                                             \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            a[i] = (T)(4.0 * (double)i / (double)n);                                               \
            b[i] = (T)(6.0 * (double)i / (double)n - 3);                                           \
            c[i] = (T)(20.0 * (double)i / (double)n - 10);                                         \
        }                                                                                          \
    }
VALUES(float)
VALUES(double)

static void bench(struct gad_client *client, enum gad_dtype dtype, size_t n, char **argv)
{
    bool is_double = dtype == GAD_FLOAT64;
    enum dtype own = is_double ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    double ours[BULK_ROUNDS], limit[BULK_ROUNDS], theirs[BULK_ROUNDS];
    struct gad_array *arrays[4];
    void *data[4];
    char count[32];
    for (int i = 0; i < 4; i++) {
        arrays[i] = bulk_array(client, dtype, (int64_t)n);
        data[i] = gad_array_data(arrays[i]);
    }
    if (is_double)
        values_double(data[0], data[1], data[2], n);
    else
        values_float(data[0], data[1], data[2], n);
    struct loop loop = {
        .a = data[0],
        .b = data[1],
        .c = data[2],
        .r = data[3],
        .item_bytes = gad_dtype_size(dtype),
        .negative = kernel_of(OP_NEGATIVE, own),
        .sin = kernel_of(OP_SIN, own),
        .exp = kernel_of(OP_EXP, own),
        .fused = best_fused(cpu_engine_level(cpu_engine_get(CPU_LEVEL_AVX512)), is_double),
    };
    struct gad_argument args[] = {{.name = "a", .array = arrays[0]},
                                  {.name = "b", .array = arrays[1]},
                                  {.name = "c", .array = arrays[2]}};
    struct gad_output outputs[] = {{.expr = EXPRESSION, .to = arrays[3]}};
    struct gad_job_options job = {.n_args = 3, .args = args, .n_outputs = 1, .outputs = outputs};

    /* Both give the same bits. */
    double first = bulk_run_job(client, &job);
    void *copy = malloc(n * loop.item_bytes);
    if (!copy)
        exit(1);
    memcpy(copy, data[3], n * loop.item_bytes);
    bulk_parallel(loop_piece, &loop, n, PIECE);
    if (memcmp(copy, data[3], n * loop.item_bytes) != 0) {
        fprintf(stderr, "the loop's results differ from ours\n");
        exit(1);
    }
    free(copy);
    snprintf(count, sizeof(count), "%zu", n);
    struct bulk_peer peer;
    bulk_peer_start(&peer, argv ? (const char *[]){argv[1], argv[2], "expression",
                                                   gad_dtype_name(dtype), count, NULL}
                                : (const char *[]){NULL});
    for (int i = 0; i < BULK_ROUNDS; i++) {
        limit[i] = bulk_parallel(loop_piece, &loop, n, PIECE);
        ours[i] = bulk_run_job(client, &job);
        theirs[i] = peer.pid ? bulk_peer_round(&peer) : 0;
    }
    double us = bulk_median(ours, BULK_ROUNDS), loops = bulk_median(limit, BULK_ROUNDS);
    printf("region to region, " EXPRESSION ", %s, %zu Mi elements: %.4f s; the loop by hand "
           "%.4f s; ratio %.2f (at least 0.80)\n",
           gad_dtype_name(dtype), n >> 20, us, loops, loops / us);
    if (peer.pid) {
        double numpy = bulk_median(theirs, BULK_ROUNDS);
        printf("  NumPy in blocks on 2 threads: %.4f s; %.1f times (at least 2.0)\n", numpy,
               numpy / us);
    } else {
        printf("  no NumPy here: no peer\n");
    }
    printf("  first run after attaching: %.4f s\n", first);
    bulk_peer_end(&peer);
    for (int i = 0; i < 4; i++)
        gad_array_release(arrays[i]);
}

int main(int argc, char **argv)
{
    size_t mi = argc > 3 ? strtoul(argv[3], NULL, 10) : 64;
    if (argc == 2 || argc > 4 || mi == 0) {
        fprintf(stderr, "usage: expression [PYTHON SCRIPT [MI_ELEMENTS]]\n");
        return 2;
    }
    struct gad_client *client = bulk_connect();
    bench(client, GAD_FLOAT32, mi << 20, argc > 2 ? argv : NULL);
    bench(client, GAD_FLOAT64, mi << 20, argc > 2 ? argv : NULL);
    gad_close(client);
    return 0;
}
