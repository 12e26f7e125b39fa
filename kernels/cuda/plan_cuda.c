/* What the planner is told of a device (kernels/plan/plan_engine.h). Needs no toolkit.
 *
 * A tile is what passes the link in one piece: as many grains as fit a slot with all of their
 * operands. The more, the better the link is used; but copies there, kernels and copies back
 * overlap only where there are several tiles, so a pass is cut into MIN_TILES unless they would be
 * of less than MIN_TILE_BYTES, of which a link takes about as long as it takes to begin. A kernel
 * cannot be interrupted, and other users' stand behind it: where its arithmetic may take longer
 * than PLAN_LONG_TURN_NS the tile has fewer grains, down to one. The weakest device that is worth
 * having computes as fast as CORES of the cores for which costs are known: it has some 50 lanes for
 * float64 and 3000 for float32, each a few times slower than a core that computes element by
 * element, as those at their worst do, and was it measured, its rate of work is about CORES_WORK.
 * One that is faster has as many more lanes of both, or yet more for float64; its tiles must be as
 * much larger, to fill all of its processors. Of a loop one grain may be too much already:
 * MOST_LOOP_NS of an element are about two seconds of a grain, at their worst.
 *
 * Of a matrix product the device takes larger blocks than a thread: one multiplication has to fill
 * it.
 */
#include "kernels/cuda/tile.h"
#include "kernels/op_costs.h"
#include "kernels/plan/estimate.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#define MIN_TILES        8
#define MIN_TILE_BYTES   (1024u * 1024)
#define CORES            16u
#define CORES_WORK       6e11
#define MOST_LOOP_NS     1000000u
#define BUSY_TILES       16u
#define TURNS            4 /* LOADs of a step, STOREs of a tile */
#define MULTIPLIES_AHEAD 16
#define ENOUGH_BLOCKS    4
#define MAX_RUNS         64 /* it is given them one after the other */

/* Where nothing was measured: bytes, elements x instructions, and multiplications and additions of
 * float64, a second. */
#define LINK_RATE    6e9
#define MEMORY_RATE  1e11
#define WORK_RATE    1e11
#define PRODUCT_RATE 5e11
#define JOB_SECONDS  100e-6

static uint64_t looks_of(const struct program *program, const struct pass *pass)
{
    uint64_t n = 0;

    for (uint64_t left = pass->windows_used; left; left &= left - 1) {
        const struct program_window *w = &program->windows[__builtin_ctzll(left)];
        const struct pass *of = &program->passes[w->pass];
        n += op_window_elements(w, of->ndim) + looks_of(program, of);
    }
    return n;
}

/* More than the steps that a core takes: all that a window has is looked at. */
static uint64_t windows_worst_ns(const struct plan_tile_size *size)
{
    uint64_t n_looks = looks_of(size->program, &size->program->passes[size->pass]);

    return n_looks * OP_WINDOW_LOOK_WORST_NS * size->room->n_elements;
}

static double cores_of(const struct plan_limits *limits)
{
    return CORES * max_f64(limits->rates.work / CORES_WORK, 1);
}

static bool makes_operand(const struct program *program, const struct program_window *window)
{
    return !encode_window_operand(program, window);
}

static bool suits_tile(const struct plan_tile_size *size)
{
    uint64_t moved = size->room->input_bytes + size->room->output_bytes;
    double worst_ns = (double)(size->worst_ns + windows_worst_ns(size));

    return size->n_grains <= CUDA_TILE_MAX_GRAINS &&
           cuda_tile_need_bytes(size->program, size->pass, size->n_grains, size->room) <=
               size->limits->slot_bytes &&
           worst_ns / cores_of(size->limits) * (double)size->n_grains <= PLAN_LONG_TURN_NS &&
           (moved * (size->n_grains / 2) < MIN_TILE_BYTES || size->n_tiles >= MIN_TILES);
}

static int64_t most_continued_rows(const struct program *program, const struct pass *pass)
{
    return 0;
}

static unsigned n_computing(const struct plan_limits *limits)
{
    return 1;
}

static unsigned n_busy(const struct plan_limits *limits)
{
    return BUSY_TILES;
}

static void default_rates(const struct plan_limits *limits, struct plan_rates *ret)
{
    ret->to_device = ret->from_device = LINK_RATE;
    ret->device = MEMORY_RATE;
    ret->product_float32 = 2 * PRODUCT_RATE;
    ret->product_float64 = PRODUCT_RATE;
    ret->product_integer = PRODUCT_RATE / 8;
    ret->work = WORK_RATE;
    ret->job_seconds = JOB_SECONDS;
}

static double work(const struct op_cost *cost)
{
    return cost->device;
}

static double n_looks(unsigned n_places)
{
    return n_places;
}

/* What the host does before and after the device. */
struct host_seconds {
    double memory;
    struct file_seconds file;
    double sum;
    enum plan_bound bound; /* the largest part of it */
};

static struct host_seconds host_seconds(double memory, struct file_seconds file)
{
    struct host_seconds host = {.memory = memory, .file = file};

    host.sum = memory + file.cached + file.disk;
    host.bound = file.disk > max_f64(memory, file.cached) ? PLAN_BOUND_DISK
                 : memory > file.cached                   ? PLAN_BOUND_MEMORY
                                                          : PLAN_BOUND_FILE;
    return host;
}

/* A device drains between passes and rounds, so that each has the floor of a job. */
static void estimate_pass(const struct plan_estimate *e, unsigned index)
{
    const struct planned_traffic *traffic = &e->p->traffic[index];
    const struct plan_rates *m = &e->rates;
    const struct plan_pass *pass = &e->p->plan->passes[index];
    struct host_seconds host =
        host_seconds(2 * traffic->staged_memory / m->memory,
                     estimate_files(m, traffic->staged_file, traffic->staged_read));
    double there = traffic->to_device / m->to_device, back = traffic->from_device / m->from_device;
    double device = (traffic->to_device + traffic->from_device) / m->device;
    double arithmetic = estimate_work(e, index) / m->work;
    double link = max_f64(there, back), kernel = max_f64(device, arithmetic);
    enum plan_bound bound = device > arithmetic ? PLAN_BOUND_MEMORY : PLAN_BOUND_WORK;

    if (host.sum >= link && host.sum >= kernel)
        bound = host.bound;
    else if (link >= kernel)
        bound = PLAN_BOUND_LINK;
    e->spent[bound] += estimate_pipelined(max_f64(host.sum, max_f64(link, kernel)),
                                          host.sum + there + kernel + back, pass->n_tiles);
    e->spent[PLAN_BOUND_START] += m->job_seconds * (double)(pass->geometry.n_rounds - (index == 0));
}

/* While a step is multiplied, the host stages the next one's panels, and they are on their way, if
 * there are two buffers; what is left over at both ends is a step's. With one, host and link work
 * together, and the device waits for them. LOAD, MULTIPLY and STORE each wait for one another, once
 * at both ends together. */
static void estimate_product(const struct plan_estimate *e, const struct plan_product *product)
{
    const struct planner *p = e->p;
    const struct plan_rates *m = &e->rates;
    double memory = 0, there = 0, back = 0, device = 0, arithmetic = 0;
    struct file_seconds files = {0};

    for (unsigned k = 0; k < PRODUCT_N_PASSES; k++) {
        const struct plan_pass *pass = &product->passes[k];
        unsigned i = product->whole->first_pass + k;
        struct file_seconds file = estimate_files(m, p->traffic[i].file, p->traffic[i].read);
        memory += 2 * p->traffic[i].memory / m->memory; /* read, written to slots; or back */
        files.cached += file.cached;
        files.disk += file.disk;
        there += (double)pass->read_bytes / m->to_device;
        back += (double)pass->write_bytes / m->from_device;
        device += 2 * (double)(pass->read_bytes + pass->write_bytes) / m->device;
        if (p->program->passes[i].n_insns > 0)
            arithmetic += estimate_work(e, i) / m->work;
    }
    arithmetic += product->n_operations / planner_product_rate(m, product);
    struct host_seconds host = host_seconds(memory, files);
    double link = max_f64(there, back), kernel = device + arithmetic;
    double outside = max_f64(host.sum, link), slowest = max_f64(outside, kernel);
    enum plan_bound to_wait_for = link >= host.sum ? PLAN_BOUND_LINK : host.bound;
    enum plan_bound bound = outside >= kernel ? to_wait_for : PLAN_BOUND_WORK;
    double n_steps = (double)product->n_tiles * (double)product->n_depth_steps;

    e->spent[bound] += slowest + (host.sum + there + kernel + back - slowest) / max_f64(n_steps, 1);
    if (!product->has_two_buffers)
        e->spent[outside >= kernel ? PLAN_BOUND_WORK : to_wait_for] += outside + kernel - slowest;
    e->spent[PLAN_BOUND_START] += 2 * m->job_seconds;
}

/* Floats are multiplied by cuBLAS, which is not on every host with a device. */
static int check_product(const struct plan_limits *limits, enum dtype dtype,
                         struct gad_error *error)
{
    const char *why = limits->why_no_blas ? limits->why_no_blas : "";

    if (limits->has_blas || !dtype_is_float(dtype))
        return 0;
    error_set(error, GAD_NO_ENGINE, "engine",
              "the device multiplies no matrices of floats, since cuBLAS is not there%s%.200s: ask "
              "for \"cpu\" or \"auto\"",
              why[0] ? ": " : "", why);
    error_expected(error, "cpu or auto");
    error_found(error, "cuda");
    return GAD_NO_ENGINE;
}

static bool may_join(enum dtype dtype, int64_t n_rows, int64_t n_columns, int64_t depth)
{
    return false;
}

static bool may_join_beside(enum dtype dtype)
{
    return false;
}

/* As many as fit a slot, but a few turns for what passes the link at a time. */
static uint64_t turn_grains(const struct plan_limits *limits, uint64_t n_grains)
{
    return max_u64(min_u64(n_grains / TURNS, CUDA_TILE_MAX_GRAINS), 1);
}

static uint64_t n_multiplies_ahead(const struct plan_limits *limits)
{
    return MULTIPLIES_AHEAD;
}

static double enough_blocks(const struct plan_limits *limits)
{
    return ENOUGH_BLOCKS;
}

const struct plan_engine plan_cuda = {
    .fills_slots = true,
    .has_link = true,
    .chains_steps = true,
    .most_loop_ns = MOST_LOOP_NS,
    .slot_need_bytes = cuda_tile_need_bytes,
    .why_no_window = encode_no_window,
    .makes_operand = makes_operand,
    .why_no_repeats = cuda_tile_no_repeats,
    .suits_tile = suits_tile,
    .most_continued_rows = most_continued_rows,
    .n_computing = n_computing,
    .n_busy = n_busy,
    .default_rates = default_rates,
    .work = work,
    .n_looks = n_looks,
    .estimate_pass = estimate_pass,
    .estimate_product = estimate_product,
    .blocks = {.float32 = {2048, 2048, 1024},
               .float64 = {2048, 1024, 1024},
               .integer_8 = {1024, 1024, 512},
               .integer = {1024, 1024, 512},
               .enough_blocks = 4,
               .least_extent = 1024,
               .least_work = 1 << 28,
               .max_triple_bytes = 8 << 20,
               .max_whole_bytes = 8 << 20,
               .max_batch_bytes = 8 << 20,
               .max_runs = MAX_RUNS},
    .check_product = check_product,
    .may_join = may_join,
    .may_join_beside = may_join_beside,
    .turn_grains = turn_grains,
    .n_multiplies_ahead = n_multiplies_ahead,
    .enough_blocks = enough_blocks,
};
