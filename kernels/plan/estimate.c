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
 * Threads that compute read files too, while arithmetic hides behind memory. For a device the
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
#include "kernels/op_costs.h"
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

#define CACHE_SHARE 2
#define N_BOUNDS    (PLAN_BOUND_WORK + 1)

struct rates {
    struct plan_rates measured; /* or defaults: none is 0, but perhaps the disk's */
    bool is_device;
    unsigned n_threads;
};

static double or_default(double measured, double by_default)
{
    return measured > 0 ? measured : by_default;
}

static unsigned n_threads_of(const struct plan_limits *limits)
{
    return limits->n_threads > 0 ? limits->n_threads : 1;
}

static struct plan_rates complete(const struct plan_limits *limits, const struct plan_rates *m)
{
    bool is_device = limits->is_device;
    unsigned n_threads = n_threads_of(limits);
    double product = is_device ? DEFAULT_DEVICE_PRODUCT_RATE : DEFAULT_PRODUCT_RATE * n_threads;

    return (struct plan_rates){
        .memory = or_default(m->memory, DEFAULT_MEMORY_RATE),
        /* Reading a cached file is a copy: each byte is read and written. */
        .file = or_default(m->file, m->memory > 0 ? m->memory / 2 : DEFAULT_FILE_RATE),
        .to_device = or_default(m->to_device, DEFAULT_LINK_RATE),
        .from_device = or_default(m->from_device, DEFAULT_LINK_RATE),
        .device = or_default(m->device, DEFAULT_DEVICE_RATE),
        .product_float32 = or_default(m->product_float32, 2 * product),
        .product_float64 = or_default(m->product_float64, product),
        .product_integer = or_default(m->product_integer, product / 8),
        .work = or_default(m->work,
                           is_device ? DEFAULT_DEVICE_WORK_RATE : DEFAULT_WORK_RATE * n_threads),
        .job_seconds = or_default(m->job_seconds,
                                  is_device ? DEFAULT_DEVICE_JOB_SECONDS : DEFAULT_JOB_SECONDS)};
}

static double min_f64(double a, double b)
{
    return a < b ? a : b;
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

double planner_product_rate(const struct plan_rates *rates, enum dtype dtype)
{
    if (!dtype_is_float(dtype))
        return rates->product_integer;
    return dtype == DTYPE_FLOAT32 ? rates->product_float32 : rates->product_float64;
}

static double max_f64(double a, double b)
{
    return a > b ? a : b;
}

/* Files: what passes the page cache, and what I/O threads wait for. */
struct file_seconds {
    double cached, disk;
};

static struct file_seconds seconds_of_files(const struct plan_rates *m, double all, double read)
{
    if (!(m->disk > 0))
        return (struct file_seconds){.cached = all / m->file};
    return (struct file_seconds){.cached = (all - read) / m->file, .disk = read / m->disk};
}

/* KTHs look at all elements for each bit of a key; on the CPU for every second place at most, since
 * the next one and the largest take one look. */
static double kth_work(const struct program *program, const struct pass *pass, bool is_device)
{
    const struct reduction *first = &program->reductions[pass->first_reduction];

    if (pass->n_reductions == 0 || first->op != OP_KTH)
        return 0;
    double n_looks = is_device ? pass->n_reductions : (pass->n_reductions + 1) / 2.0;
    return n_looks * (double)(8 * dtype_size((enum dtype)first->src.dtype));
}

static double work_per_element(const struct program *program, const struct pass *pass,
                               bool is_device)
{
    double work = 1 + pass->n_reductions + kth_work(program, pass, is_device);
    for (unsigned i = 0; i < pass->n_insns; i++) {
        const struct insn *insn = &program->insns[pass->first_insn + i];
        const struct op_cost *cost = op_cost((enum op)insn->op);
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
    const struct plan_rates *m = &rates->measured;
    struct file_seconds file = seconds_of_files(m, traffic->file, traffic->read);
    double memory = traffic->memory / m->memory;
    double work = pass_work(p, index, rates), slower = max_f64(memory, work);
    double threads = file.cached + slower;

    *ret_bound = file.disk > threads    ? PLAN_BOUND_DISK
                 : file.cached > slower ? PLAN_BOUND_FILE
                 : memory > work        ? PLAN_BOUND_MEMORY
                                        : PLAN_BOUND_WORK;
    return pipelined(max_f64(file.disk, threads), file.disk + file.cached + memory + work,
                     p->plan->passes[index].n_tiles);
}

/* What a device's host does before and after it. */
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

static double device_seconds(const struct planner *p, unsigned index, const struct rates *rates,
                             enum plan_bound *ret_bound)
{
    const struct planned_traffic *traffic = &p->traffic[index];
    const struct plan_rates *m = &rates->measured;
    struct host_seconds host =
        host_seconds(2 * traffic->staged_memory / m->memory,
                     seconds_of_files(m, traffic->staged_file, traffic->staged_read));
    double there = traffic->to_device / m->to_device, back = traffic->from_device / m->from_device;
    double device = (traffic->to_device + traffic->from_device) / m->device;
    double work = pass_work(p, index, rates);
    double link = max_f64(there, back), kernel = max_f64(device, work);
    if (host.sum >= link && host.sum >= kernel)
        *ret_bound = host.bound;
    else if (link >= kernel)
        *ret_bound = PLAN_BOUND_LINK;
    else
        *ret_bound = device > work ? PLAN_BOUND_MEMORY : PLAN_BOUND_WORK;
    return pipelined(max_f64(host.sum, max_f64(link, kernel)), host.sum + there + kernel + back,
                     p->plan->passes[index].n_tiles);
}

/* The same threads read, multiply and write. What is loaded is written to a panel and read there
 * again; C is where it is, but for the expression on it. With a second buffer, I/O threads wait for
 * the disk beside them. */
static void estimate_product(const struct planner *p, const struct rates *rates, double *spent)
{
    const struct plan_rates *m = &rates->measured;
    double threads[N_BOUNDS] = {0}, sum = 0, disk = 0;

    for (unsigned i = 0; i < p->plan->n_passes; i++) {
        const struct pass *pass = &p->program->passes[i];
        struct file_seconds file = seconds_of_files(m, p->traffic[i].file, p->traffic[i].read);
        double moved = (double)(p->plan->passes[i].read_bytes + p->plan->passes[i].write_bytes);
        disk += file.disk;
        threads[PLAN_BOUND_FILE] += file.cached;
        threads[PLAN_BOUND_MEMORY] += (p->traffic[i].memory + moved) / m->memory;
        if (pass->n_insns > 0)
            threads[PLAN_BOUND_WORK] +=
                n_elements(pass) * work_per_element(p->program, pass, false) / m->work;
    }
    threads[PLAN_BOUND_WORK] +=
        p->plan->product.n_operations / planner_product_rate(m, p->program->product.dtype);
    for (unsigned i = 0; i < N_BOUNDS; i++)
        sum += threads[i];
    if (!p->plan->product.has_two_buffers || disk <= sum)
        for (unsigned i = 0; i < N_BOUNDS; i++)
            spent[i] += threads[i];
    if (!p->plan->product.has_two_buffers || disk > sum)
        spent[PLAN_BOUND_DISK] += disk;
}

/* While a step is multiplied, the host stages the next one's panels, and they are on their way, if
 * there are two buffers; what is left over at both ends is a step's. With one, host and link work
 * together, and the device waits for them. LOAD, MULTIPLY and STORE each wait for one another, once
 * at both ends together. */
static void estimate_device_product(const struct planner *p, const struct rates *rates,
                                    double *spent)
{
    const struct plan *plan = p->plan;
    const struct plan_rates *m = &rates->measured;
    double memory = 0, there = 0, back = 0, device = 0, work = 0;
    struct file_seconds files = {0};

    for (unsigned i = 0; i < plan->n_passes; i++) {
        const struct pass *pass = &p->program->passes[i];
        struct file_seconds file = seconds_of_files(m, p->traffic[i].file, p->traffic[i].read);
        memory += 2 * p->traffic[i].memory / m->memory; /* read, written to slots; or back */
        files.cached += file.cached;
        files.disk += file.disk;
        there += (double)plan->passes[i].read_bytes / m->to_device;
        back += (double)plan->passes[i].write_bytes / m->from_device;
        device +=
            2 * (double)(plan->passes[i].read_bytes + plan->passes[i].write_bytes) / m->device;
        if (pass->n_insns > 0)
            work += n_elements(pass) * work_per_element(p->program, pass, true) / m->work;
    }
    work += plan->product.n_operations / planner_product_rate(m, p->program->product.dtype);
    struct host_seconds host = host_seconds(memory, files);
    double link = max_f64(there, back), kernel = device + work, outside = max_f64(host.sum, link);
    double slowest = max_f64(outside, kernel);
    enum plan_bound to_wait_for = link >= host.sum ? PLAN_BOUND_LINK : host.bound;
    enum plan_bound bound = outside >= kernel ? to_wait_for : PLAN_BOUND_WORK;
    double n_steps = (double)plan->product.n_tiles * (double)plan->product.n_depth_steps;
    spent[bound] += slowest + (host.sum + there + kernel + back - slowest) / max_f64(n_steps, 1);
    if (!plan->product.has_two_buffers)
        spent[outside >= kernel ? PLAN_BOUND_WORK : to_wait_for] += outside + kernel - slowest;
    spent[PLAN_BOUND_START] += 2 * m->job_seconds;
}

/* A device drains between passes and rounds, so that each has the floor of a job; threads go on at
 * once. */
void planner_estimate(const struct planner *p)
{
    struct plan *plan = p->plan;
    struct rates rates = {.measured = planner_rates(p),
                          .is_device = p->limits->is_device,
                          .n_threads = n_threads_of(p->limits)};
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
    static const char *const names[N_BOUNDS] = {"start", "memory", "file", "disk", "link", "work"};
    return names[bound];
}
