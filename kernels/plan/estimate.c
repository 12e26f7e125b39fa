/* How long a job would take by itself, from what a worker measured as it started, and since.
 *
 * A pass is a row of stages that its tiles go through. With many tiles the slowest stage alone
 * counts; the others add the time that one tile spends in them:
 *
 *     seconds = slowest + (sum of all - slowest) / tiles
 *
 *     CPU:     | file + the slower of memory and arithmetic |
 *     device:  | memory + file | link there | device's memory, arithmetic | link back |
 *
 * Between bars is a stage. In it + adds up, and of what a comma separates the slower counts. The
 * CPU's threads that compute read files, too. For a device the
 * host's threads copy each box into a slot and each result out of it, which reads and writes every
 * byte; both ways of the link work at once. Broadcast operands are copied for every grain.
 *
 * An instruction costs as many cheap ones as op_costs.def says: in the measured rate of work an
 * instruction is an addition or multiplication of float32. The CPU's column is what `checkkernels
 * --bench` shows, rounded to few classes; the device's is an estimate from the number of machine
 * instructions. Elements of 8 bytes cost twice as much.
 *
 * A matrix product's device multiplies one step while the host stages the next one's panels, if
 * they have a second buffer.
 *
 * What later passes read again is counted again, pass by pass. Files are taken to be in the page
 * cache, unless those that a job reads are together so large that most of them cannot be: more than
 * 1 / CACHE_SHARE of the machine's memory. Then they are read at the disk's rate, if that is known.
 * I/O threads wait for the disk, and the others go on meanwhile.
 *
 * Called by plan.c.
 */
#include "kernels/plan/estimate.h"
#include "kernels/op_costs.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

/* Where nothing was measured: bytes, and elements x instructions, a second. */
#define DEFAULT_MEMORY_RATE  4e9
#define DEFAULT_FILE_RATE    1e9
#define CACHE_SHARE          2
#define QR_COLUMNS_PER_WORK  4
#define WORK_PER_WINDOW_STEP 8 /* for an axis */
#define WORK_PER_TAP         1
#define WORK_PER_PLACE       30

static double or_default(double measured, double by_default)
{
    return measured > 0 ? measured : by_default;
}

static struct plan_rates complete(const struct plan_limits *limits, const struct plan_rates *m)
{
    struct plan_rates rates = {.memory = DEFAULT_MEMORY_RATE};

    limits->engine->default_rates(limits, &rates);
    return (struct plan_rates){
        .memory = or_default(m->memory, rates.memory),
        /* Reading a cached file is a copy: each byte is read and written. */
        .file = or_default(m->file, m->memory > 0 ? m->memory / 2 : DEFAULT_FILE_RATE),
        .to_device = or_default(m->to_device, rates.to_device),
        .from_device = or_default(m->from_device, rates.from_device),
        .device = or_default(m->device, rates.device),
        .product_float32 = or_default(m->product_float32, rates.product_float32),
        .product_float64 = or_default(m->product_float64, rates.product_float64),
        .product_integer = or_default(m->product_integer, rates.product_integer),
        .product_tf32 = or_default(m->product_tf32, m->product_float32),
        .work = or_default(m->work, rates.work),
        .job_seconds = or_default(m->job_seconds, rates.job_seconds)};
}

/* Whether what is read of files cannot be in the page cache, most of it. */
static bool is_beyond_cache(const struct planner *p)
{
    double n_bytes = 0;

    for (unsigned i = 0; i < p->request->n_args; i++) {
        const struct array *array = &p->request->args[i].array;
        double own = (double)dtype_size(array->dtype);
        for (int axis = 0; axis < array->ndim; axis++)
            own *= (double)array->shape[axis];
        n_bytes += array->at.kind == LOCATION_FILE ? own : 0;
    }
    return p->limits->memory_bytes > 0 && n_bytes > (double)(p->limits->memory_bytes / CACHE_SHARE);
}

struct plan_rates planner_rates(const struct planner *p)
{
    struct plan_rates rates = complete(p->limits, &p->limits->rates);

    if (is_beyond_cache(p)) /* what passes the cache is not faster than what is there */
        rates.disk = min_f64(p->limits->rates.disk, rates.file);
    return rates;
}

struct plan_rates planner_default_rates(const struct plan_limits *limits)
{
    return complete(limits, &(struct plan_rates){0});
}

double planner_product_rate(const struct plan_rates *rates, const struct plan_product *product)
{
    enum dtype dtype = product->whole->dtype;

    if (!dtype_is_float(dtype))
        return rates->product_integer;
    if (product->is_tf32 && rates->product_tf32 > 0)
        return rates->product_tf32;
    return dtype == DTYPE_FLOAT32 ? rates->product_float32 : rates->product_float64;
}

struct file_seconds estimate_files(const struct plan_rates *m, double all, double read)
{
    if (!(m->disk > 0))
        return (struct file_seconds){.cached = all / m->file};
    return (struct file_seconds){.cached = (all - read) / m->file, .disk = read / m->disk};
}

/* KTHs look at all elements for each bit of a key. */
static double kth_work(const struct planner *p, const struct pass *pass)
{
    const struct reduction *first = &p->program->reductions[pass->first_reduction];

    if (pass->n_reductions == 0 || first->op != OP_KTH)
        return 0;
    return p->limits->engine->n_looks(pass->n_reductions) *
           (double)(8 * dtype_size((enum dtype)first->src.dtype));
}

static double insns_work(const struct plan_estimate *e, const struct pass *pass)
{
    const struct program *program = e->p->program;
    double work = 0;

    for (unsigned i = 0; i < pass->n_insns; i++) {
        const struct insn *insn = &program->insns[pass->first_insn + i];
        double own = max_f64(e->p->limits->engine->work(op_cost((enum op)insn->op)), 1) *
                     (double)program_n_times(program, pass->first_insn + i);
        work += dtype_size((enum dtype)insn->compute) == 8 ? 2 * own : own;
    }
    return work;
}

/* Of a repeat's steps, for an element of the pass: with what grains compute around themselves, half
 * of that in the middle of all steps, but all of it with each step on a device. */
static double repeat_work(const struct plan_estimate *e, unsigned index,
                          const struct program_repeat *r)
{
    const struct geometry *g = &e->p->plan->passes[index].geometry;
    const struct pass *inner = e->p->program->inner;
    double work = 1 + insns_work(e, &inner[r->begin]);

    work += r->n_steps * (1 + insns_work(e, &inner[r->step]));
    for (int i = 0; i < r->ndim; i++) {
        double count = (double)g->grain_shape[g->ndim - r->ndim + i];
        double around = (double)r->n_steps * (double)(r->before[i] + r->behind[i]);
        around /= e->p->limits->engine->fills_slots ? 1 : 2;
        work *= min_f64(count + around, (double)g->shape[g->ndim - r->ndim + i]) / count;
    }
    return work;
}

/* Of windows and of what they read, for an element; what lies around grains is not counted. */
static double windows_work(const struct plan_estimate *e, const struct pass *pass)
{
    const struct program *program = e->p->program;
    double work = 0;

    for (uint64_t left = pass->windows_used; left; left &= left - 1) {
        const struct program_window *w = &program->windows[__builtin_ctzll(left)];
        const struct pass *of = &program->passes[w->pass];
        uint64_t n_taps = e->p->limits->engine->fills_slots ? op_window_elements(w, of->ndim)
                                                            : op_window_taps(w, of->ndim);
        work += 1 + insns_work(e, of) + windows_work(e, of);
        work += (double)n_taps * (w->op == OP_WINDOW_RANK ? WORK_PER_PLACE : WORK_PER_TAP);
        for (int i = 0; i < of->ndim && n_taps == 0; i++)
            work += w->size[i] > 1 ? WORK_PER_WINDOW_STEP : 0;
    }
    return work;
}

double estimate_work(const struct plan_estimate *e, unsigned index)
{
    const struct program *program = e->p->program;
    const struct pass *pass = &program->passes[index];
    double work = 1 + pass->n_reductions + kth_work(e->p, pass), n_elements = 1;
    work += (double)program_qr_columns(program, pass) / QR_COLUMNS_PER_WORK;
    work += insns_work(e, pass) + windows_work(e, pass);

    for (uint32_t left = pass->repeats; left; left &= left - 1)
        work += repeat_work(e, index, &program->repeats[__builtin_ctz(left)]);
    for (int i = 0; i < pass->ndim; i++)
        n_elements *= (double)pass->shape[i];
    return n_elements * work;
}

void planner_estimate(const struct planner *p)
{
    struct plan *plan = p->plan;
    double spent[PLAN_N_BOUNDS] = {0};
    const struct plan_estimate e = {.p = p, .rates = planner_rates(p), .spent = spent};

    spent[PLAN_BOUND_START] = e.rates.job_seconds;
    for (unsigned i = 0; i < p->program->n_stages; i++) {
        const struct stage *stage = &p->program->stages[i];
        if (stage->kind == STAGE_PRODUCT)
            p->limits->engine->estimate_product(&e, &plan->products[stage->product]);
        else if (stage->kind == STAGE_SLAB)
            p->limits->engine->estimate_slab(&e, &plan->slabs[stage->slab]);
        else if (plan->passes[stage->first_pass].n_tiles > 0)
            p->limits->engine->estimate_pass(&e, stage->first_pass);
    }
    plan->seconds = 0;
    for (unsigned i = 0; i < PLAN_N_BOUNDS; i++) {
        plan->seconds += spent[i];
        if (spent[i] > spent[plan->bound])
            plan->bound = (enum plan_bound)i;
    }
}

const char *plan_bound_name(enum plan_bound bound)
{
    static const char *const names[PLAN_N_BOUNDS] = {"start", "memory", "file",
                                                     "disk",  "link",   "work"};
    return names[bound];
}
