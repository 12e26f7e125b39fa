/* What the planner is told of the CPU's engine (kernels/plan/plan_engine.h).
 *
 * Threads compute, and the same threads read files and write: a tile is about TILE_BYTES of
 * traffic, and every thread gets some. Of a matrix product each has a block to itself.
 */
#include "kernels/cpu/engine.h"
#include "kernels/cpu/multiply/multiply.h"
#include "kernels/plan/estimate.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#define TILE_BYTES           (2u * 1024 * 1024)
#define MIN_TILES_PER_THREAD 4
#define LEAST_BUSY           8u
#define BUSY_PER_THREAD      4u
#define LOADS_PER_THREAD     4
#define MAX_LOAD_GRAINS      8
#define BLOCKS_PER_THREAD    4

/* Where nothing was measured, of one thread: elements x instructions, and multiplications and
 * additions of float64, a second. */
#define WORK_RATE    5e8
#define PRODUCT_RATE 1e10
#define JOB_SECONDS  50e-6

static unsigned n_threads_of(const struct plan_limits *limits)
{
    return limits->n_threads > 0 ? limits->n_threads : 1;
}

/* One grain passes it at a time, whatever it is made of. */
static uint64_t slot_need_bytes(const struct program *program, unsigned pass, uint64_t n_grains,
                                const struct engine_room *room)
{
    return GRAIN_MAX_TOTAL_BYTES;
}

static bool suits_tile(const struct plan_tile_size *size)
{
    uint64_t n_wanted = (uint64_t)MIN_TILES_PER_THREAD * n_threads_of(size->limits);

    return size->bytes * size->n_grains <= TILE_BYTES &&
           size->worst_ns * size->n_grains <= PLAN_LONG_TURN_NS && size->n_tiles >= n_wanted;
}

/* What a node holds of these is all that they need to go on. QR_Rs do without the others. */
bool cpu_engine_can_continue(const struct program *program, const struct pass *pass)
{
    unsigned n_qrs = 0;

    for (unsigned i = 0; i < pass->n_reductions; i++) {
        unsigned op = program->reductions[pass->first_reduction + i].op;
        n_qrs += op == OP_QR_R;
        if (op != OP_SUM && op != OP_PROD && op != OP_MIN && op != OP_MAX &&
            op != OP_COUNT_NONZERO && op != OP_QR_R)
            return false;
    }
    return n_qrs == 0 || n_qrs == pass->n_reductions;
}

static int64_t most_continued_rows(const struct program *program, const struct pass *pass)
{
    if (!cpu_engine_can_continue(program, pass))
        return 0;
    return program_qr_columns(program, pass) > 0 ? INT64_MAX >> 16 : CPU_MAX_CONTINUED_ROWS;
}

static unsigned n_busy(const struct plan_limits *limits)
{
    return (unsigned)max_u64(LEAST_BUSY, (uint64_t)BUSY_PER_THREAD * limits->n_threads);
}

static void default_rates(const struct plan_limits *limits, struct plan_rates *ret)
{
    double product = PRODUCT_RATE * n_threads_of(limits);

    ret->product_float32 = 2 * product;
    ret->product_float64 = product;
    ret->product_integer = product / 8;
    ret->work = WORK_RATE * n_threads_of(limits);
    ret->job_seconds = JOB_SECONDS;
}

static double work(const struct op_cost *cost)
{
    return cost->cpu;
}

/* One for every second place at most: the next one and the largest take one look. */
static double n_looks(unsigned n_places)
{
    return (n_places + 1) / 2.0;
}

/* Threads that compute read files too, while arithmetic hides behind memory; without a tile they
 * have nothing to do. */
static void estimate_pass(const struct plan_estimate *e, unsigned index)
{
    const struct planned_traffic *traffic = &e->p->traffic[index];
    const struct plan_pass *pass = &e->p->plan->passes[index];
    unsigned n_threads = n_threads_of(e->p->limits);
    double rate = e->rates.work;
    struct file_seconds file = estimate_files(&e->rates, traffic->file, traffic->read);
    double memory = traffic->memory / e->rates.memory;

    if (pass->round_tiles < n_threads)
        rate *= (double)pass->round_tiles / n_threads;
    double arithmetic = estimate_work(e, index) / rate;
    double slower = max_f64(memory, arithmetic), threads = file.cached + slower;
    enum plan_bound bound = file.disk > threads    ? PLAN_BOUND_DISK
                            : file.cached > slower ? PLAN_BOUND_FILE
                            : memory > arithmetic  ? PLAN_BOUND_MEMORY
                                                   : PLAN_BOUND_WORK;
    e->spent[bound] += estimate_pipelined(
        max_f64(file.disk, threads), file.disk + file.cached + memory + arithmetic, pass->n_tiles);
}

/* The same threads read, multiply and write. What is loaded is written to a panel and read there
 * again; C is where it is, but for the expression on it. With a second buffer, I/O threads wait for
 * the disk beside them. */
static void estimate_product(const struct plan_estimate *e, const struct plan_product *product)
{
    const struct plan_rates *m = &e->rates;
    const struct planner *p = e->p;
    double threads[PLAN_N_BOUNDS] = {0}, sum = 0, disk = 0;

    for (unsigned k = 0; k < PRODUCT_N_PASSES; k++) {
        const struct plan_pass *pass = &product->passes[k];
        unsigned i = product->whole->first_pass + k;
        struct file_seconds file = estimate_files(m, p->traffic[i].file, p->traffic[i].read);
        double moved = (double)(pass->read_bytes + pass->write_bytes);
        disk += file.disk;
        threads[PLAN_BOUND_FILE] += file.cached;
        threads[PLAN_BOUND_MEMORY] += (p->traffic[i].memory + moved) / m->memory;
        if (p->program->passes[i].n_insns > 0)
            threads[PLAN_BOUND_WORK] += estimate_work(e, i) / m->work;
    }
    threads[PLAN_BOUND_WORK] += product->n_operations / planner_product_rate(m, product);
    for (unsigned i = 0; i < PLAN_N_BOUNDS; i++)
        sum += threads[i];
    if (!product->has_two_buffers || disk <= sum)
        for (unsigned i = 0; i < PLAN_N_BOUNDS; i++)
            e->spent[i] += threads[i];
    if (!product->has_two_buffers || disk > sum)
        e->spent[PLAN_BOUND_DISK] += disk;
}

/* As of a product of float64, in which operations are counted. */
static void estimate_slab(const struct plan_estimate *e, const struct plan_slab *slab)
{
    const struct plan_rates *m = &e->rates;
    for (unsigned i = 0; i < slab->whole->n_passes; i++) {
        unsigned pass = slab->whole->first_pass + i;
        const struct planned_traffic *traffic = &e->p->traffic[pass];
        struct file_seconds file = estimate_files(m, traffic->file, traffic->read);
        e->spent[PLAN_BOUND_DISK] += file.disk;
        e->spent[PLAN_BOUND_FILE] += file.cached;
        e->spent[PLAN_BOUND_MEMORY] += traffic->memory / m->memory;
        if (e->p->program->passes[pass].n_insns > 0)
            e->spent[PLAN_BOUND_WORK] += estimate_work(e, pass) / m->work;
    }
    e->spent[PLAN_BOUND_WORK] += slab->n_operations / m->product_float64;
}

static int check_product(const struct plan_limits *limits, enum dtype dtype,
                         struct gad_error *error)
{
    return 0;
}

static uint64_t turn_grains(const struct plan_limits *limits, uint64_t n_grains)
{
    uint64_t n_wanted = (uint64_t)LOADS_PER_THREAD * n_threads_of(limits);

    return max_u64(min_u64(n_grains / n_wanted, MAX_LOAD_GRAINS), 1);
}

static uint64_t n_multiplies_ahead(const struct plan_limits *limits)
{
    return 2 * (uint64_t)n_threads_of(limits);
}

static double enough_blocks(const struct plan_limits *limits)
{
    return BLOCKS_PER_THREAD * (double)n_threads_of(limits);
}

const struct plan_engine plan_cpu = {
    .can_pause = true,
    .has_swaths = true,
    .has_qr = true,
    .most_loop_ns = UINT64_MAX,
    .adds_alike = true,
    .walks_slabs = true,
    .slot_need_bytes = slot_need_bytes,
    .suits_tile = suits_tile,
    .most_continued_rows = most_continued_rows,
    .n_computing = n_threads_of,
    .n_busy = n_busy,
    .default_rates = default_rates,
    .work = work,
    .n_looks = n_looks,
    .estimate_pass = estimate_pass,
    .estimate_product = estimate_product,
    .estimate_slab = estimate_slab,
    /* So large that a library's own copying of operands costs little beside the arithmetic, and so
     * small that a turn is some milliseconds. */
    .blocks = {.float32 = {384, 768, 384},
               .float64 = {256, 768, 192},
               .integer_8 = {256, 256, 256},
               .integer = {256, 256, 512},
               .enough_blocks = 16,
               .least_extent = 128,
               .least_work = 1 << 22,
               .max_triple_bytes = 3 << 20,
               .max_whole_bytes = 5 << 18,
               .max_batch_bytes = 512 << 10,
               .max_runs = INT64_MAX},
    .check_product = check_product,
    .may_join = cpu_multiply_may_join,
    .may_join_beside = cpu_multiply_may_join_beside,
    .turn_grains = turn_grains,
    .n_multiplies_ahead = n_multiplies_ahead,
    .enough_blocks = enough_blocks,
};
