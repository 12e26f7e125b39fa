/* How long a job would take by itself, from what a worker measured as it started.
 *
 * A pass is a row of stages that its tiles go through. With many tiles the slowest stage alone
 * counts; the others add the time that one tile spends in them:
 *
 *     seconds = slowest + (sum of all - slowest) / tiles
 *
 *     CPU:     | file + the slower of memory and arithmetic |
 *     device:  | memory + file | link there | device's memory, arithmetic | link back |
 *
 * Threads that compute read files too, while arithmetic hides behind memory. For a device the
 * host's threads copy each box into a slot and each result out of it, which reads and writes every
 * byte; both ways of the link work at once. Broadcast operands are copied for every grain.
 *
 * An instruction costs as many cheap ones as `costs` says: in the measured rate of work an
 * instruction is an addition or multiplication of float32. The CPU's column is what `checkkernels
 * --bench` shows, rounded to few classes; the device's is an estimate from the number of machine
 * instructions. Elements of 8 bytes cost twice as much.
 *
 * A matrix product's device multiplies one step while the host stages the next one's panels.
 *
 * What later passes read again is counted again, pass by pass. Files are taken to be in the page
 * cache. Called by plan.c.
 */
#include "kernels/plan/planner.h"
#include "proto/util.h"

/* Where nothing was measured: bytes, and elements x instructions, a second. */
#define DEFAULT_MEMORY_RATE         4e9
#define DEFAULT_FILE_RATE           1e9
#define DEFAULT_WORK_RATE           5e8  /* of one thread */
#define DEFAULT_PRODUCT_RATE        1e10 /* of one thread, float64 */
#define DEFAULT_JOB_SECONDS         50e-6
#define DEFAULT_LINK_RATE           6e9
#define DEFAULT_DEVICE_RATE         1e11
#define DEFAULT_DEVICE_WORK_RATE    1e11
#define DEFAULT_DEVICE_PRODUCT_RATE 5e11 /* float64 */
#define DEFAULT_DEVICE_JOB_SECONDS  100e-6

#define N_BOUNDS (PLAN_BOUND_WORK + 1)

struct cost { /* in cheap instructions; 0: one */
    uint8_t cpu, device;
};

#define SOME                                                                                       \
    {                                                                                              \
        4, 3                                                                                       \
    }
#define MUCH                                                                                       \
    {                                                                                              \
        30, 8                                                                                      \
    }
static const struct cost costs[OP_COUNT] = {
    [OP_FLOOR_DIVIDE] = SOME, [OP_REMAINDER] = SOME, [OP_FMOD] = SOME,    [OP_CBRT] = SOME,
    [OP_HYPOT] = SOME,        [OP_LOG] = SOME,       [OP_SIN] = SOME,     [OP_COS] = SOME,
    [OP_TAN] = SOME,          [OP_ARCSIN] = SOME,    [OP_ARCCOS] = SOME,  [OP_ARCTAN] = SOME,
    [OP_ARCTAN2] = SOME,      [OP_TANH] = SOME,      [OP_ARCSINH] = SOME, [OP_ERF] = SOME,
    [OP_GCD] = MUCH,          [OP_LCM] = MUCH,       [OP_POWER] = MUCH,   [OP_EXP] = MUCH,
    [OP_EXP2] = MUCH,         [OP_EXPM1] = MUCH,     [OP_LOG2] = MUCH,    [OP_LOG10] = MUCH,
    [OP_LOG1P] = MUCH,        [OP_LOGADDEXP] = MUCH, [OP_SINH] = MUCH,    [OP_COSH] = MUCH,
    [OP_ARCCOSH] = MUCH,      [OP_ARCTANH] = MUCH,   [OP_ERFC] = MUCH,    [OP_GAMMA] = MUCH,
    [OP_LGAMMA] = MUCH,       [OP_EXPIT] = MUCH,     [OP_LOGIT] = MUCH,   [OP_LOGADDEXP2] = MUCH,
};

struct rates {
    struct plan_rates measured; /* or defaults: none is 0 */
    bool is_device;
    unsigned n_threads;
};

static double or_default(double measured, double by_default)
{
    return measured > 0 ? measured : by_default;
}

static struct rates complete_rates(const struct plan_limits *limits)
{
    const struct plan_rates *m = &limits->rates;
    unsigned n_threads = limits->n_threads > 0 ? limits->n_threads : 1;
    bool is_device = limits->is_device;
    return (struct rates){
        .is_device = is_device,
        .n_threads = n_threads,
        .measured = {.memory = or_default(m->memory, DEFAULT_MEMORY_RATE),
                     /* Reading a cached file is a copy: each byte is read and written. */
                     .file = or_default(m->file, m->memory > 0 ? m->memory / 2 : DEFAULT_FILE_RATE),
                     .to_device = or_default(m->to_device, DEFAULT_LINK_RATE),
                     .from_device = or_default(m->from_device, DEFAULT_LINK_RATE),
                     .device = or_default(m->device, DEFAULT_DEVICE_RATE),
                     .product_float32 = m->product_float32,
                     .product_float64 = m->product_float64,
                     .product_integer = m->product_integer,
                     .work = or_default(m->work, is_device ? DEFAULT_DEVICE_WORK_RATE
                                                           : DEFAULT_WORK_RATE * n_threads),
                     .job_seconds =
                         or_default(m->job_seconds,
                                    is_device ? DEFAULT_DEVICE_JOB_SECONDS : DEFAULT_JOB_SECONDS)}};
}

static double max_f64(double a, double b)
{
    return a > b ? a : b;
}

static double work_per_element(const struct program *program, const struct pass *pass,
                               bool is_device)
{
    double work = 1 + pass->n_reductions;
    for (unsigned i = 0; i < pass->n_insns; i++) {
        const struct insn *insn = &program->insns[pass->first_insn + i];
        const struct cost *cost = &costs[insn->op];
        double own = max_f64(is_device ? cost->device : cost->cpu, 1);
        work += dtype_size((enum dtype)insn->compute) == 8 ? 2 * own : own;
    }
    return work;
}

static double n_elements(const struct pass *pass)
{
    double n = 1;
    for (int i = 0; i < pass->ndim; i++)
        n *= (double)pass->shape[i];
    return n;
}

static double pass_work(const struct planner *p, unsigned index, const struct rates *rates)
{
    const struct pass *pass = &p->program->passes[index];
    uint64_t n_tiles = p->plan->passes[index].round_tiles;
    double rate = rates->measured.work;
    if (!rates->is_device && n_tiles < rates->n_threads) /* the other threads have nothing to do */
        rate *= (double)n_tiles / rates->n_threads;
    return n_elements(pass) * work_per_element(p->program, pass, rates->is_device) / rate;
}

static double pipelined(double slowest, double sum, uint64_t n_tiles)
{
    return slowest + (sum - slowest) / (double)n_tiles;
}

static double cpu_seconds(const struct planner *p, unsigned index, const struct rates *rates,
                          enum plan_bound *ret_bound)
{
    const struct planned_traffic *traffic = &p->traffic[index];
    double memory = traffic->memory / rates->measured.memory;
    double file = traffic->file / rates->measured.file;
    double work = pass_work(p, index, rates), slower = max_f64(memory, work);
    *ret_bound = file > slower   ? PLAN_BOUND_FILE
                 : memory > work ? PLAN_BOUND_MEMORY
                                 : PLAN_BOUND_WORK;
    return pipelined(file + slower, file + memory + work, p->plan->passes[index].n_tiles);
}

static double device_seconds(const struct planner *p, unsigned index, const struct rates *rates,
                             enum plan_bound *ret_bound)
{
    const struct planned_traffic *traffic = &p->traffic[index];
    const struct plan_rates *m = &rates->measured;
    double memory = 2 * traffic->staged_memory / m->memory, file = traffic->staged_file / m->file;
    double there = traffic->to_device / m->to_device, back = traffic->from_device / m->from_device;
    double device = (traffic->to_device + traffic->from_device) / m->device;
    double work = pass_work(p, index, rates);
    double host = memory + file, link = max_f64(there, back), kernel = max_f64(device, work);
    if (host >= link && host >= kernel)
        *ret_bound = memory > file ? PLAN_BOUND_MEMORY : PLAN_BOUND_FILE;
    else if (link >= kernel)
        *ret_bound = PLAN_BOUND_LINK;
    else
        *ret_bound = device > work ? PLAN_BOUND_MEMORY : PLAN_BOUND_WORK;
    return pipelined(max_f64(host, max_f64(link, kernel)), host + there + kernel + back,
                     p->plan->passes[index].n_tiles);
}

static double product_rate(const struct rates *rates, enum dtype dtype)
{
    const struct plan_rates *m = &rates->measured;
    double by_default =
        rates->is_device ? DEFAULT_DEVICE_PRODUCT_RATE : DEFAULT_PRODUCT_RATE * rates->n_threads;

    if (dtype == DTYPE_FLOAT32)
        return or_default(m->product_float32, 2 * by_default);
    if (dtype == DTYPE_FLOAT64)
        return or_default(m->product_float64, by_default);
    return or_default(m->product_integer, by_default / 8);
}

double planner_product_rate(const struct plan_limits *limits, enum dtype dtype)
{
    struct rates rates = complete_rates(limits);
    return product_rate(&rates, dtype);
}

/* The same threads read, multiply and write. What is loaded is written to a panel and read there
 * again; C is where it is, but for the expression on it. */
static void estimate_product(const struct planner *p, const struct rates *rates, double *spent)
{
    const struct program_product *product = &p->program->product;
    const struct plan_rates *m = &rates->measured;

    for (unsigned i = 0; i < p->plan->n_passes; i++) {
        const struct pass *pass = &p->program->passes[i];
        double moved = (double)(p->plan->passes[i].read_bytes + p->plan->passes[i].write_bytes);
        spent[PLAN_BOUND_FILE] += p->traffic[i].file / m->file;
        spent[PLAN_BOUND_MEMORY] += (p->traffic[i].memory + moved) / m->memory;
        if (pass->n_insns > 0)
            spent[PLAN_BOUND_WORK] +=
                n_elements(pass) * work_per_element(p->program, pass, false) / m->work;
    }
    spent[PLAN_BOUND_WORK] += p->plan->product.n_operations / product_rate(rates, product->dtype);
}

/* While a step is multiplied, the host stages the next one's panels, and they are on their way;
 * what is left over at both ends is a step's. LOAD, MULTIPLY and STORE each wait for one another,
 * once at both ends together. */
static void estimate_device_product(const struct planner *p, const struct rates *rates,
                                    double *spent)
{
    const struct plan *plan = p->plan;
    const struct plan_rates *m = &rates->measured;
    double memory = 0, file = 0, there = 0, back = 0, device = 0, work = 0;

    for (unsigned i = 0; i < plan->n_passes; i++) {
        const struct pass *pass = &p->program->passes[i];
        memory += 2 * p->traffic[i].memory / m->memory; /* read, written to slots; or back */
        file += p->traffic[i].file / m->file;
        there += (double)plan->passes[i].read_bytes / m->to_device;
        back += (double)plan->passes[i].write_bytes / m->from_device;
        device +=
            2 * (double)(plan->passes[i].read_bytes + plan->passes[i].write_bytes) / m->device;
        if (pass->n_insns > 0)
            work += n_elements(pass) * work_per_element(p->program, pass, true) / m->work;
    }
    work += plan->product.n_operations / product_rate(rates, p->program->product.dtype);
    double host = memory + file, link = max_f64(there, back), kernel = device + work;
    double slowest = max_f64(host, max_f64(link, kernel));
    enum plan_bound bound = slowest == link     ? PLAN_BOUND_LINK
                            : slowest == kernel ? PLAN_BOUND_WORK
                            : memory > file     ? PLAN_BOUND_MEMORY
                                                : PLAN_BOUND_FILE;
    double n_steps = (double)plan->product.n_tiles * (double)plan->product.n_depth_steps;
    spent[bound] += slowest + (host + there + kernel + back - slowest) / max_f64(n_steps, 1);
    spent[PLAN_BOUND_START] += 2 * m->job_seconds;
}

/* A device drains between passes and rounds, so that each has the floor of a job; threads go on at
 * once. */
void planner_estimate(const struct planner *p)
{
    struct plan *plan = p->plan;
    struct rates rates = complete_rates(p->limits);
    double spent[N_BOUNDS] = {[PLAN_BOUND_START] = rates.measured.job_seconds};

    if (p->program->product.is_there && rates.is_device)
        estimate_device_product(p, &rates, spent);
    else if (p->program->product.is_there)
        estimate_product(p, &rates, spent);
    for (unsigned i = 0; i < plan->n_passes; i++) {
        enum plan_bound bound;
        if (plan->passes[i].n_tiles == 0)
            continue;
        double seconds = rates.is_device ? device_seconds(p, i, &rates, &bound)
                                         : cpu_seconds(p, i, &rates, &bound);
        spent[bound] += seconds;
        if (rates.is_device)
            spent[PLAN_BOUND_START] +=
                rates.measured.job_seconds * (double)(plan->passes[i].geometry.n_rounds - (i == 0));
    }
    plan->seconds = 0;
    for (unsigned i = 0; i < N_BOUNDS; i++) {
        plan->seconds += spent[i];
        if (spent[i] > spent[plan->bound])
            plan->bound = (enum plan_bound)i;
    }
}

const char *plan_bound_name(enum plan_bound bound)
{
    static const char *const names[N_BOUNDS] = {"start", "memory", "file", "link", "work"};
    return names[bound];
}
