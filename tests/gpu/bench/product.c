/* Matrix products through a device, of matrices in shared memory that are three times as large as
 * the daemon's pool, beside cuBLAS in the same run: in the device's memory, with nothing to copy,
 * which is the limit; and cublasXt on the same host memory, which is what else a user would call.
 * In turns, medians. Some elements of each result are checked against sums in float64.
 *
 * Usage: product POOL_MIB, with a daemon of that pool at $GPUARRAYD_SOCKET, whose jobs a device
 * computes. Ends with 77 where there is no device or no cuBLAS.
 */
#include "tests/bench/bulk.h"
#include "tests/gpu/bench/blas_peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS   3
#define SLOW_SECONDS 3.0 /* a job that takes longer is run once */
#define N_CHECKED    64
#define POOLS        3 /* that a matrix is as large as */
#define EVEN         64

struct bench {
    struct gad_client *client;
    struct blas_peer blas;
    cuda_stream stream;
    cuda_event begin, end;
    enum blas_kind kind;
    bool is_double;
    int64_t n; /* extent of the matrices */
    struct gad_array *left, *right, *result;
    struct gad_job_stats stats; /* of the last job */
};

static void must(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s (%s)\n", what, cuda_error_name(error), cuda_error_text(error));
    exit(cuda_error_is_absent(error) ? 77 : 1);
}

static void must_gad(enum gad_status status, const struct gad_error *error, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s\n", what, error->message);
    exit(status == GAD_NO_ENGINE ? 77 : 1);
}

/* Ours -------------------------------------------------------------------------------------- */

static double item(const struct bench *b, struct gad_array *array, int64_t i)
{
    const void *data = gad_array_data(array);
    return b->is_double ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* Numbers of few bits would be exact in TF32, too. */
static void fill(void *data, size_t first, size_t count)
{
    const struct bench *b = ((void **)data)[0];
    void *items = gad_array_data(((struct gad_array **)data)[1]);
    uint64_t state = first * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = first; i < first + count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double value = (double)(state >> 11) * 0x1p-53 - 0.5;
        if (b->is_double)
            ((double *)items)[i] = value;
        else
            ((float *)items)[i] = (float)value;
    }
}

static struct gad_array *new_matrix(struct bench *b, bool is_filled)
{
    struct gad_array *array;
    struct gad_error error;
    int64_t shape[] = {b->n, b->n};
    must_gad(gad_array_new(b->client, b->is_double ? GAD_FLOAT64 : GAD_FLOAT32, 2, shape, &array,
                           &error),
             &error, "a matrix in shared memory");
    void *data[] = {b, array};
    if (is_filled)
        (void)bulk_parallel(fill, data, (size_t)(b->n * b->n), 1 << 20);
    return array;
}

static double run_ours(struct bench *b)
{
    struct gad_error error = {0};
    struct gad_product product = {
        .left = b->left, .right = b->right, .alpha = 1, .tf32 = b->kind == BLAS_TF32};
    struct gad_move_options options = {.to = b->result, .engine = "cuda"};
    double began = bulk_now();
    must_gad(gad_matmul(b->client, &product, &options, &b->stats, &error), &error, "a product");
    return bulk_now() - began;
}

static void check(const struct bench *b, const char *who)
{
    double unit = b->is_double ? 0x1p-52 : b->kind == BLAS_TF32 ? 0x1p-9 : 0x1p-23;
    for (int64_t c = 0; c < N_CHECKED; c++) {
        int64_t i = (c * 7919 + 1) % b->n, j = (c * 104729 + 3) % b->n;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < b->n; k++) {
            double part = item(b, b->left, i * b->n + k) * item(b, b->right, k * b->n + j);
            sum += part;
            size += fabs(part);
        }
        double found = item(b, b->result, i * b->n + j);
        double steps = b->kind == BLAS_TF32 ? 2 : 2 * sqrt((double)b->n);
        if (!(fabs(found - sum) <= unit * steps * size)) {
            fprintf(stderr, "%s: element (%lld, %lld) is %g, not %g\n", who, (long long)i,
                    (long long)j, found, sum);
            exit(1);
        }
    }
    memset(gad_array_data(b->result), 0, (size_t)(b->n * b->n) * (b->is_double ? 8 : 4));
}

/* The limit and the peer -------------------------------------------------------------------- */

struct in_device {
    void *left, *right, *result;
    int64_t n; /* the job's, or less where that does not fit */
};

static bool allocate(struct in_device *d, size_t n_bytes)
{
    void **all[] = {&d->left, &d->right, &d->result};
    for (int i = 0; i < 3; i++) {
        if (cuda_malloc(n_bytes, all[i]) == 0)
            continue;
        while (i-- > 0)
            cuda_free(*all[i]);
        return false;
    }
    return true;
}

/* What is multiplied does not matter to the time, as long as it is not all zeros. */
static void copy_in(const struct bench *b, const struct in_device *d, size_t n_bytes)
{
    must(cuda_copy_to_device(d->left, gad_array_data(b->left), n_bytes, b->stream), "copying");
    must(cuda_copy_to_device(d->right, gad_array_data(b->right), n_bytes, b->stream), "copying");
    must(cuda_event_record(b->end, b->stream), "an event");
    must(cuda_event_wait(b->end), "copying");
}

static bool open_device(const struct bench *b, struct in_device *d)
{
    size_t item_bytes = b->is_double ? 8 : 4;
    for (d->n = b->n; d->n >= 1024; d->n /= 2) {
        size_t n_bytes = (size_t)(d->n * d->n) * item_bytes;
        if (!allocate(d, n_bytes))
            continue;
        copy_in(b, d, n_bytes);
        return true;
    }
    return false;
}

static void close_device(const struct in_device *d)
{
    cuda_free(d->left);
    cuda_free(d->right);
    cuda_free(d->result);
}

/* Of the whole job's operations. */
static double run_limit(const struct bench *b, const struct in_device *d)
{
    uint64_t ns;
    double factor = pow((double)b->n / (double)d->n, 3);
    must(cuda_event_record(b->begin, b->stream), "an event");
    if (blas_peer_multiply(&b->blas, b->kind, (int)d->n, d->left, d->right, d->result)) {
        fprintf(stderr, "cuBLAS does not multiply\n");
        exit(1);
    }
    must(cuda_event_record(b->end, b->stream), "an event");
    must(cuda_event_wait(b->end), "cuBLAS");
    must(cuda_event_elapsed_ns(b->begin, b->end, &ns), "cuBLAS");
    return (double)ns * 1e-9 * factor;
}

/* 0: there is none. */
static double run_peer(struct bench *b)
{
    double began = bulk_now();
    if (blas_peer_multiply_host(&b->blas, b->is_double, b->n, gad_array_data(b->left),
                                gad_array_data(b->right), gad_array_data(b->result)))
        return 0;
    return bulk_now() - began;
}

/* ------------------------------------------------------------------------------------------- */

static void report(const struct bench *b, const struct in_device *d, double first, double us,
                   double limit, double peer)
{
    double operations = 2 * pow((double)b->n, 3);
    printf("RESULT\tproduct of two %lld x %lld, %s, %s, from regions (first run %.3f s)\t%.4f s, "
           "%.2f TFLOP/s\tcuBLAS on the device%s %.4f s, %.2f TFLOP/s\t%.2f\t\n",
           (long long)b->n, (long long)b->n, b->stats.product_precision, b->stats.product_library,
           first, us, operations / us * 1e-12, d->n < b->n ? " (of smaller matrices)" : "", limit,
           operations / limit * 1e-12, limit / us);
    printf("RESULT\t  operands read %.2f and %.2f times\t%.2f GB\t\t\t\n",
           (double)b->stats.left_bytes / (double)(b->n * b->n * (b->is_double ? 8 : 4)),
           (double)b->stats.right_bytes / (double)(b->n * b->n * (b->is_double ? 8 : 4)),
           (double)(b->stats.left_bytes + b->stats.right_bytes) * 1e-9);
    if (peer > 0)
        printf("RESULT\t  the same with cublasXt%s\t%.4f s\t-\t%.2f times ours\t\n",
               b->kind == BLAS_TF32 ? ", in float32" : "", peer, peer / us);
    fflush(stdout);
}

static void measure(struct bench *b)
{
    double ours[MAX_ROUNDS], limits[MAX_ROUNDS], peers[MAX_ROUNDS];
    struct in_device d;
    double first = run_ours(b);
    check(b, "ours");
    if (!open_device(b, &d)) {
        fprintf(stderr, "no device memory is left for cuBLAS\n");
        exit(77);
    }
    (void)run_limit(b, &d);
    bool has_peer = run_peer(b) > 0;
    if (has_peer)
        check(b, "cublasXt");
    int n_rounds = first > SLOW_SECONDS ? 1 : MAX_ROUNDS;
    for (int i = 0; i < n_rounds; i++) {
        limits[i] = run_limit(b, &d);
        peers[i] = has_peer ? run_peer(b) : 0;
        ours[i] = run_ours(b);
    }
    check(b, "ours");
    close_device(&d);
    report(b, &d, first, bulk_median(ours, n_rounds), bulk_median(limits, n_rounds),
           bulk_median(peers, n_rounds));
}

static void open_all(struct bench *b)
{
    struct cuda_device device;
    must(cuda_device_open(0, &device), "the device");
    must(cuda_stream_new(CUDA_USUAL, &b->stream), "a stream");
    must(cuda_event_new(true, &b->begin), "an event");
    must(cuda_event_new(true, &b->end), "an event");
    const char *why = blas_peer_open(&b->blas, b->stream);
    if (!why)
        return;
    fprintf(stderr, "%s\n", why);
    exit(77);
}

static void close_all(struct bench *b)
{
    gad_close(b->client);
    blas_peer_close(&b->blas);
    cuda_event_free(b->begin);
    cuda_event_free(b->end);
    cuda_stream_free(b->stream);
}

int main(int argc, char **argv)
{
    static struct bench b;
    static const enum blas_kind kinds[] = {BLAS_FLOAT32, BLAS_TF32, BLAS_FLOAT64};
    double pool_bytes = argc == 2 ? strtod(argv[1], NULL) * 0x1p20 : 0;
    if (!(pool_bytes >= 0x1p20)) {
        fprintf(stderr, "usage: product POOL_MIB\n");
        return 2;
    }
    open_all(&b);
    b.client = bulk_connect();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        b.kind = kinds[i];
        b.is_double = b.kind == BLAS_FLOAT64;
        b.n = (int64_t)sqrt(POOLS * pool_bytes / (b.is_double ? 8 : 4)) / EVEN * EVEN;
        b.left = new_matrix(&b, true);
        b.right = new_matrix(&b, true);
        b.result = new_matrix(&b, false);
        measure(&b);
        gad_array_release(b.left);
        gad_array_release(b.right);
        gad_array_release(b.result);
    }
    close_all(&b);
    return 0;
}
