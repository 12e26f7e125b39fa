/* sqrt(a) of float64 from ordinary memory into ordinary memory (a provider's rings) beside the same
 * job from region to region, in turns, in one run, and beside what the machine could do. Every
 * array was touched before; the median of the rounds counts.
 *
 * The limit of rings is measured with two threads of this program that copy in, compute with the
 * worker's own kernel and copy out, in slabs that stay in a core's cache: what the daemon does,
 * without another process, and so without a wait, a wake-up or another core's cache. What a second
 * process costs by itself is measured with pairs (pairs.h). On two cores of an EPYC (Zen 4) that
 * nobody else uses slabs reach 0.54 to 0.75 of region to region and pairs 0.51 to 0.70, or 0.58 to
 * 0.76 where both of a pair are kept on one processor; heap to heap 0.45 to 0.57.
 *
 * What keeps it below the pairs is neither waiting nor waking: of 206 processor-ms a GiB 190 are
 * work, 104 the library's and 86 the worker's, nearly all in the two copies and the kernel, against
 * 142 of slabs: blocks that one core fills and another computes come from the cache that the cores
 * share. Half as many signals (blocks told together after 500 us instead of 100) take 6 % less of
 * the processors and as long; larger and smaller rings, threads of both sides pinned to a processor
 * each, and threads that yield for 50 us before they wait are no faster or slower. Where others
 * keep the cores busy, at whatever priority, all that waits for another thread is several times
 * slower.
 *
 * What each part takes by itself, in ms a GiB on both processors, in two runs: the copy into a slab
 * 50 and 36, the kernel within slabs 60 and 47, the copy out past the cache 44 and 41; the kernel
 * from memory to memory 58 and 53, no longer than within slabs, since roots are computed while
 * memory is awaited. A ring has the three one after the other, and what is fetched during the copy
 * out saves an eighth to two fifths of their sum. That blocks stay in a processor's own cache gains
 * nothing by itself: two processes that take turns on one processor reach 0.45 to 0.58 with 64 to
 * 512 KiB each way, the more the larger, and 0.59 with batches of 1 MiB in the cache that the
 * processors share, there on one processor and on any. What large batches on one processor reach in
 * pairs, up to 0.76, the daemon's turns do not.
 *
 * Two copies past the cache and the job in regions, one after the other, are what whoever has no
 * rings would do. Then the private memory of this program (its arrays aside), the broker and its
 * workers, pool and rings included, while one more job runs.
 * Usage: heap SOCKET [MIB [ROUNDS]]
 */
#include "tests/bench/bulk.h"
#include "tests/bench/jobs/pairs.h"
#include "tests/bench/jobs/small.h"

#include "kernels/cpu/run/run.h"
#include "proto/box.h"
#include "proto/util.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 99
#define SLAB_ELEMS ((size_t)16 << 10) /* two slabs are in a core's cache */
#define PIECE      ((size_t)1 << 20)  /* elements that a thread takes at a time */

/* In slabs: the limit ------------------------------------------------------------------------- */

struct slabs {
    double *to;
    const double *from;
};

static kernel_fn *root;

static void compute_root(double *out, const double *in, size_t n)
{
    root(n, out, in, NULL, NULL, NULL);
}

static void slabs_run(void *data, size_t first, size_t count)
{
    const struct slabs *s = data;
    double in[SLAB_ELEMS] __attribute__((aligned(64))),
        out[SLAB_ELEMS] __attribute__((aligned(64)));
    for (size_t i = first, end = first + count, n, n_next; i < end; i += n) {
        n = min_u64(end - i, SLAB_ELEMS);
        n_next = min_u64(end - i - n, n);
        memcpy(in, s->from + i, n * sizeof(double));
        compute_root(out, in, n);
        box_copy_past_cache(s->to + i, out, n * sizeof(double), s->from + i + n,
                            n_next * sizeof(double));
    }
    box_fence();
}

static kernel_fn *find_root(void)
{
    struct insn insn = {.op = OP_SQRT, .compute = DTYPE_FLOAT64};
    bool is_exchanged;
    insn.dst.dtype = DTYPE_FLOAT64;
    return engine_find_kernel(cpu_engine_get(CPU_LEVEL_AVX512), &insn, &is_exchanged);
}

/* The daemon ---------------------------------------------------------------------------------- */

static void check(enum gad_status status, const struct gad_error *error)
{
    if (status == GAD_OK)
        return;
    fprintf(stderr, "%s: %s\n", gad_status_word(status), error->message);
    exit(1);
}

static double job_time(struct gad_client *client, struct gad_array *in, struct gad_array *out)
{
    const struct gad_argument args[] = {{.name = "a", .array = in}};
    const struct gad_output outputs[] = {{.expr = "sqrt(a)", .to = out}};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    return bulk_run_job(client, &options);
}

/* Private memory ----------------------------------------------------------------------------- */

#define MAX_WATCHED 8

struct watch {
    pthread_t thread;
    _Atomic bool is_over;
    int pids[MAX_WATCHED], n_pids;
    long most_kib;
};

/* Of one process; a ring is in two of them, so its pages count as halves. 0: it has ended. */
static long private_kib(int pid)
{
    char path[64], line[256];
    long total = 0, kib;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "Pss_Anon: %ld", &kib) == 1 || sscanf(line, "Pss_Shmem: %ld", &kib) == 1)
            total += kib;
    if (file)
        fclose(file);
    return total;
}

static long watched_kib(const struct watch *w)
{
    long total = 0;
    for (int i = 0; i < w->n_pids; i++)
        total += private_kib(w->pids[i]);
    return total;
}

static void *watch_run(void *argument)
{
    struct watch *w = argument;
    while (!w->is_over) {
        long kib = watched_kib(w);
        w->most_kib = kib > w->most_kib ? kib : w->most_kib;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return NULL;
}

/* This program, whoever listens at the socket, and its children. */
static void watch_find(struct watch *w, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof(peer);
    char children[64];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), pid;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
        perror(path);
        exit(1);
    }
    close(fd);
    w->pids[w->n_pids++] = getpid();
    w->pids[w->n_pids++] = peer.pid;
    snprintf(children, sizeof(children), "/proc/%d/task/%d/children", peer.pid, peer.pid);
    FILE *file = fopen(children, "re");
    while (file && w->n_pids < MAX_WATCHED && fscanf(file, "%d", &pid) == 1)
        w->pids[w->n_pids++] = pid;
    if (file)
        fclose(file);
}

static struct gad_client *connect_to(const char *path)
{
    struct gad_error error;
    struct gad_client *client;
    check(gad_connect(&(struct gad_connect_options){.socket = path}, &client, &error), &error);
    return client;
}

static struct gad_array *heap_array(struct gad_client *client, double *memory, int64_t n)
{
    struct gad_error error;
    struct gad_array *array;
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &n};
    check(gad_array_from_memory(client, &layout, memory, true, &array, &error), &error);
    return array;
}

/* With a client that has had no regions. */
static double private_mib(const char *path, double *const *memory, int64_t n)
{
    struct gad_client *client = connect_to(path);
    struct gad_array *in = heap_array(client, memory[0], n),
                     *out = heap_array(client, memory[1], n);
    struct watch w = {.n_pids = 0};
    watch_find(&w, path);
    long before, other = 0;
    do { /* until the worker has let go of the regions */
        before = other;
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        other = watched_kib(&w);
    } while (other != before);
    before = private_kib(getpid()); /* the arrays, and little beside them */
    if (pthread_create(&w.thread, NULL, watch_run, &w))
        exit(1);
    job_time(client, in, out);
    w.is_over = true;
    pthread_join(w.thread, NULL);
    gad_array_release(in);
    gad_array_release(out);
    gad_close(client);
    return (double)(w.most_kib - before) / 1024;
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
    root = find_root();
    pairs_start(compute_root);
    struct gad_client *client = connect_to(argv[1]);
    struct gad_array *regions[2], *heaps[2];
    double *memory[2] = {heap_new(n_bytes), heap_new(n_bytes)};
    struct gad_error error;
    for (int i = 0; i < 2; i++) {
        check(gad_array_new(client, GAD_FLOAT64, 1, &n, &regions[i], &error), &error);
        heaps[i] = heap_array(client, memory[i], n);
    }
    fill(gad_array_data(regions[0]), gad_array_data(regions[1]), n);
    fill(memory[0], memory[1], n);
    double first = job_time(client, regions[0], regions[1]); /* the worker's mapping has no pages */
    struct slabs slabs = {.to = memory[1], .from = memory[0]};
    double copies[MAX_ROUNDS], by_slab[MAX_ROUNDS], by_pair[MAX_ROUNDS], by_region[MAX_ROUNDS],
        by_still[MAX_ROUNDS], by_ring[MAX_ROUNDS];
    for (int i = 0; i < n_rounds; i++) {
        by_slab[i] = bulk_parallel(slabs_run, &slabs, (size_t)n, PIECE);
        if (i == 0)
            check_result(memory[1], n, "in slabs");
        by_pair[i] = pairs_run(memory[1], memory[0], (size_t)n, false);
        by_still[i] = pairs_run(memory[1], memory[0], (size_t)n, true);
        if (i == 0)
            check_result(memory[1], n, "in pairs");
        copies[i] = bulk_copy(memory[1], memory[0], n_bytes);
        by_region[i] = job_time(client, regions[0], regions[1]);
        by_ring[i] = job_time(client, heaps[0], heaps[1]);
    }
    check_result(gad_array_data(regions[1]), n, "region to region");
    check_result(memory[1], n, "heap to heap");
    double copy = bulk_median(copies, n_rounds), slab = bulk_median(by_slab, n_rounds),
           pair = bulk_median(by_pair, n_rounds), still = bulk_median(by_still, n_rounds),
           region = bulk_median(by_region, n_rounds), ring = bulk_median(by_ring, n_rounds),
           gb = 2e-9 * (double)n_bytes;
    printf("sqrt float64, %lld MiB, bytes in and out: copy by two threads %.1f GB/s; region to "
           "region %.1f GB/s (the first time %.1f)\n",
           (long long)mib, gb / copy, gb / region, gb / first);
    printf("heap to heap %.1f GB/s: %.2f of region to region (at least 0.60), %.2f of the copy\n",
           gb / ring, region / ring, copy / ring);
    printf("  the limit, two threads that copy in, compute and copy out in slabs: %.1f GB/s, %.2f "
           "of region to region; heap to heap is %.2f of that\n",
           gb / slab, region / slab, slab / ring);
    printf("  with a second process that computes for each: %.1f GB/s, %.2f of region to region; "
           "heap to heap is %.2f of that\n",
           gb / pair, region / pair, pair / ring);
    printf(
        "  the same, the two of a pair on one processor: %.1f GB/s, %.2f of region to region; heap "
        "to heap is %.2f of that\n",
        gb / still, region / still, still / ring);
    double apart = 2 * copy + region;
    printf("  a copy in, a copy out and the job in regions: %.1f GB/s, %.2f of region to region; "
           "heap to heap is %.2f of that\n",
           gb / apart, region / apart, apart / ring);
    for (int i = 0; i < 2; i++) {
        gad_array_release(heaps[i]);
        gad_array_release(regions[i]);
    }
    gad_close(client);
    printf("  private memory of program, broker and worker, without the arrays: %.0f MiB "
           "(below 96)\n",
           private_mib(argv[1], memory, n));
    for (int i = 0; i < 2; i++)
        munmap(memory[i], n_bytes);
    return 0;
}
