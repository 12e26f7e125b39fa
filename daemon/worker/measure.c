/* How fast the machine is, as far as a few milliseconds tell.
 *
 * Memory: the threads of the worker copy at the same time, each its own part. What is copied is put
 * out of the caches first (the processor's own instruction for it, where there is one), since jobs
 * that are large enough for the rate to matter come from memory.
 *
 * Work: an expression of a few instructions over arrays that stay in the cache, so that arithmetic
 * and not memory is what is measured, in all threads at once.
 *
 * Matrix products: a small one of each kind, of a size for which a library is nearly at its best.
 *
 * The best of a few rounds counts: whatever else runs on the machine only makes a round slower.
 * Threads are made and joined for each round; they begin together, which they wait for
 * awake: being woken one after the other would take longer than what is measured.
 *
 * Called as the worker starts, before it is ready.
 */
#include "daemon/worker/measure.h"
#include "daemon/worker/io/port.h"
#include "kernels/cpu/multiply/multiply.h"
#include "proto/util.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define MAX_THREADS      256u
#define STACK_BYTES      (256u * 1024u)
#define CACHE_LINE_BYTES 64u
#define COPY_MIN_BYTES   (2u * 1024 * 1024)
#define COPY_ROUNDS      4
#define WORK_ELEMENTS    4096
#define WORK_REPEATS     8
#define WORK_ROUNDS      16 /* of some 20 us: one that nothing else gets into */
#define SMALL_ELEMENTS   1000
#define PRODUCT_EXTENT   256
#define PRODUCT_ROUNDS   3

/* Threads that begin together ------------------------------------------------------------------ */

struct team {
    void (*work)(void *argument, unsigned thread);
    void *argument;
    unsigned n_threads;
    atomic_uint n_ready;
    atomic_bool is_given_up; /* not all could be started */
};

struct member {
    struct team *team;
    pthread_t thread;
    unsigned index;
    uint64_t begin_ns, end_ns;
};

static void *member_main(void *argument)
{
    struct member *m = argument;
    struct team *team = m->team;
    atomic_fetch_add(&team->n_ready, 1);
    while (atomic_load(&team->n_ready) < team->n_threads && !atomic_load(&team->is_given_up))
        sched_yield();
    if (atomic_load(&team->is_given_up))
        return NULL;
    m->begin_ns = clock_ns();
    team->work(team->argument, m->index);
    m->end_ns = clock_ns();
    return NULL;
}

static unsigned start_members(struct team *team, struct member *members)
{
    pthread_attr_t attributes;
    unsigned n = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (; n < team->n_threads; n++) {
        members[n] = (struct member){.team = team, .index = n};
        if (pthread_create(&members[n].thread, &attributes, member_main, &members[n]) != 0)
            break;
    }
    pthread_attr_destroy(&attributes);
    return n;
}

uint64_t measure_together(unsigned n_threads, void (*work)(void *argument, unsigned thread),
                          void *argument)
{
    struct team team = {.work = work, .argument = argument, .n_threads = n_threads};
    _cleanup_free_ struct member *members = calloc(n_threads, sizeof(*members));
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    if (!members || n_threads == 0)
        return 0;
    unsigned n_started = start_members(&team, members);
    if (n_started < n_threads)
        atomic_store(&team.is_given_up, true);
    for (unsigned i = 0; i < n_started; i++) {
        pthread_join(members[i].thread, NULL);
        begin_ns = min_u64(begin_ns, members[i].begin_ns);
        end_ns = max_u64(end_ns, members[i].end_ns);
    }
    return n_started == n_threads ? end_ns - begin_ns : 0;
}

/* Memory --------------------------------------------------------------------------------------- */

struct copying {
    char *from, *to;
    uint64_t part_bytes;
};

static void copy_part(void *argument, unsigned thread)
{
    const struct copying *c = argument;
    memcpy(c->to + thread * c->part_bytes, c->from + thread * c->part_bytes, c->part_bytes);
}

static void leave_caches(const struct copying *c, unsigned thread)
{
#if defined(__x86_64__)
    const char *from = c->from + thread * c->part_bytes;
    const char *to = c->to + thread * c->part_bytes;
    for (uint64_t at = 0; at < c->part_bytes; at += CACHE_LINE_BYTES) {
        _mm_clflush(from + at);
        _mm_clflush(to + at);
    }
    _mm_mfence();
#else
    (void)c;
    (void)thread;
#endif
}

static void touch_part(void *argument, unsigned thread)
{
    const struct copying *c = argument;
    memset(c->from + thread * c->part_bytes, 1, c->part_bytes);
    memset(c->to + thread * c->part_bytes, 2, c->part_bytes);
}

static void leave_caches_part(void *argument, unsigned thread)
{
    leave_caches(argument, thread);
}

static double rate(double amount, uint64_t elapsed_ns)
{
    return elapsed_ns > 0 ? amount / ((double)elapsed_ns / 1e9) : 0;
}

double measure_copy(char *memory, uint64_t n_bytes, unsigned n_threads)
{
    double best = 0;
    if (n_bytes < COPY_MIN_BYTES || n_threads == 0)
        return 0;
    uint64_t part_bytes = n_bytes / 2 / n_threads / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    struct copying c = {memory, memory + part_bytes * n_threads, part_bytes};
    if (measure_together(n_threads, touch_part, &c) == 0)
        return 0;
    for (unsigned i = 0; i < COPY_ROUNDS; i++) {
        if (measure_together(n_threads, leave_caches_part, &c) == 0)
            return 0;
        uint64_t elapsed = measure_together(n_threads, copy_part, &c);
        double found = rate(2.0 * (double)part_bytes * n_threads, elapsed);
        best = found > best ? found : best;
    }
    return best;
}

/* Work ----------------------------------------------------------------------------------------- */

static const char expression[] = "a*a + a*3 - a";

struct arrays { /* of one thread */
    float input[WORK_ELEMENTS], output[WORK_ELEMENTS];
    _Alignas(64) char scratch[CPU_SCRATCH_BYTES];
};

struct working {
    const struct cpu_engine *engine;
    const struct program *program;
    struct arrays *arrays;
};

int measure_compile(const char *text, int64_t n_elements, struct program **ret_program)
{
    struct request_arg arg = {
        .name = "a",
        .array = {.dtype = DTYPE_FLOAT32, .ndim = 1, .shape = {n_elements}, .strides = {4}}};
    struct request_output output = {.expr = text, .n_expr_chars = strlen(text)};
    struct job_request request = {
        .n_args = 1, .args = &arg, .n_outputs = 1, .outputs = &output, .engine_index = -1};
    return program_compile(&request, ret_program, NULL);
}

static void compute(const struct working *w, struct arrays *arrays, int64_t n)
{
    static const int order[] = {0};
    struct engine_box box = {.ndim = 1, .count = &n, .axis_order = order};
    struct engine_view input = {.base = arrays->input, .strides = {4}};
    struct engine_view output = {.base = arrays->output, .strides = {4}};
    struct engine_warnings warnings = {0};
    int r = cpu_engine_run(w->engine, w->program, 0, &box, &input, &output, NULL, NULL, NULL,
                           &warnings, arrays->scratch);
    (void)r; /* this expression cannot fail */
}

static void warm_part(void *argument, unsigned thread)
{
    const struct working *w = argument;
    memset(w->arrays[thread].input, 0, sizeof(w->arrays[thread].input));
    compute(w, &w->arrays[thread], WORK_ELEMENTS);
}

static void work_part(void *argument, unsigned thread)
{
    const struct working *w = argument;
    for (unsigned i = 0; i < WORK_REPEATS; i++)
        compute(w, &w->arrays[thread], WORK_ELEMENTS);
}

static double measure_rate_of_work(const struct working *w, unsigned n_threads)
{
    double amount = (double)WORK_ELEMENTS * WORK_REPEATS * w->program->n_insns * n_threads;
    double best = 0;
    struct working copy = *w;
    if (measure_together(n_threads, warm_part, &copy) == 0)
        return 0;
    for (unsigned i = 0; i < WORK_ROUNDS; i++) {
        double found = rate(amount, measure_together(n_threads, work_part, &copy));
        best = found > best ? found : best;
    }
    return best;
}

/* Compiling is the larger part of a job of nearly nothing. */
static int measure_small(const struct working *w, double *ret_seconds)
{
    uint64_t begin = clock_ns();
    struct working small = *w;
    struct program *program;
    int r = measure_compile(expression, SMALL_ELEMENTS, &program);
    if (r)
        return r;
    small.program = program;
    compute(&small, w->arrays, SMALL_ELEMENTS);
    program_free(program);
    *ret_seconds = (double)(clock_ns() - begin) / 1e9;
    return 0;
}

/* Elements times instructions a second of all threads, for an element-wise expression over arrays
 * in the caches, and the seconds that a job of nearly nothing takes. -ENOMEM. */
static int measure_work(const struct cpu_engine *engine, unsigned n_threads, double *ret_work,
                        double *ret_job_seconds)
{
    struct program *program = NULL;
    struct arrays *arrays = aligned_alloc(64, round_up_u64(sizeof(*arrays), 64) * n_threads);
    if (!arrays)
        return -ENOMEM;
    int r = measure_compile(expression, WORK_ELEMENTS, &program);
    if (!r) {
        struct working w = {engine, program, arrays};
        *ret_work = measure_rate_of_work(&w, n_threads);
        r = measure_small(&w, ret_job_seconds);
    }
    program_free(program);
    free(arrays);
    return r;
}

/* Products ------------------------------------------------------------------------------------- */

struct product {
    _Alignas(64) char matrices[3][PRODUCT_EXTENT * PRODUCT_EXTENT * sizeof(double)];
    _Alignas(64) char scratch[CPU_SCRATCH_BYTES];
};

/* Zeros, as fast as all else. */
static double measure_product(const struct cpu_engine *engine, struct product *p, enum dtype dtype)
{
    int64_t item_bytes = (int64_t)dtype_size(dtype), n = PRODUCT_EXTENT;
    const struct cpu_matrix left = {p->matrices[0], n * item_bytes, item_bytes};
    const struct cpu_matrix right = {p->matrices[1], n * item_bytes, item_bytes};
    double best = 0;
    for (unsigned i = 0; i < PRODUCT_ROUNDS; i++) {
        uint64_t begin = clock_ns();
        cpu_multiply(engine, dtype, n, n, n, &left, &right, p->matrices[2], n * item_bytes, i > 0,
                     p->scratch);
        double found = rate(2.0 * (double)(n * n * n), clock_ns() - begin);
        best = found > best ? found : best;
    }
    return best;
}

/* In one thread, times as many as there are: what each needs is in its own caches. */
static void measure_products(const struct cpu_engine *engine, unsigned n_threads,
                             struct plan_rates *ret_rates)
{
    struct product *p = aligned_alloc(64, sizeof(*p));
    if (!p)
        return;
    memset(p, 0, sizeof(*p));
    unsigned n_float_threads = cpu_multiply_is_serial() ? 1 : n_threads;
    ret_rates->product_float32 = n_float_threads * measure_product(engine, p, DTYPE_FLOAT32);
    ret_rates->product_float64 = n_float_threads * measure_product(engine, p, DTYPE_FLOAT64);
    ret_rates->product_integer = n_threads * measure_product(engine, p, DTYPE_INT32);
    free(p);
}

void measure_cpu(const struct cpu_engine *engine, char *pool, uint64_t pool_bytes,
                 unsigned n_threads, struct plan_rates *ret_rates)
{
    uint64_t wanted = max_u64(n_threads * (uint64_t)COPY_MIN_BYTES, 2 * COPY_MIN_BYTES);
    uint64_t n_bytes = min_u64(pool_bytes, min_u64(wanted, MEASURE_MAX_BYTES));
    *ret_rates = (struct plan_rates){.memory = measure_copy(pool, n_bytes, n_threads)};
    madvise(pool, n_bytes, MADV_DONTNEED);
    if (measure_work(engine, n_threads, &ret_rates->work, &ret_rates->job_seconds) != 0)
        ret_rates->work = ret_rates->job_seconds = 0;
    measure_products(engine, n_threads, ret_rates);
}
