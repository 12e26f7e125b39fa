/* Estimates, and the tiles of a device: what is larger takes longer, and the engine that should be
 * faster is. */
#include "kernels/cuda/tile.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/plan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024 * 1024)

/* A processor with two threads, and a device behind a link that is slower than memory. */
static const struct plan_limits cpu = {
    .engine = &plan_cpu,
    .pool_bytes = 32 * MIB,
    .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
    .carry_limit_bytes = 16 * MIB,
    .n_threads = 2,
    .rates = {.memory = 20e9, .file = 5e9, .work = 4e9, .job_seconds = 20e-6},
};
static const struct plan_limits device = {
    .pool_bytes = 512 * MIB,
    .slot_bytes = 8 * MIB,
    .carry_limit_bytes = 256 * MIB,
    .n_threads = 2,
    .engine = &plan_cuda,
    .rates = {.memory = 20e9,
              .file = 5e9,
              .to_device = 12e9,
              .from_device = 12e9,
              .device = 600e9,
              .work = 1e12,
              .job_seconds = 100e-6},
};

struct job { /* expr over float32 vectors a and b, to a third */
    struct request_arg args[2];
    struct request_output output;
    struct job_request request;
    struct program *program;
};

static void set_array(struct array *array, int64_t n, enum location_kind kind)
{
    *array = (struct array){.dtype = DTYPE_FLOAT32, .ndim = 1, .at.kind = kind};
    array->shape[0] = n;
    array->strides[0] = 4;
}

static void job_init(struct job *job, const char *expr, int64_t n, enum location_kind kind)
{
    struct gad_error error;
    *job = (struct job){.args = {{.name = "a"}, {.name = "b"}},
                        .output = {.expr = expr, .n_expr_chars = strlen(expr)}};
    job->request = (struct job_request){.n_args = 2, .n_outputs = 1, .engine_index = -1};
    job->request.args = job->args;
    job->request.outputs = &job->output;
    for (int i = 0; i < 2; i++)
        set_array(&job->args[i].array, n, kind);
    cr_assert(eq(int, program_compile(&job->request, &job->program, &error), 0), "%s",
              error.message);
    job->output.has_to = job->program->outputs[0].ndim > 0;
    set_array(&job->output.to, n, kind);
}

static struct plan planned(const char *expr, int64_t n, enum location_kind kind,
                           const struct plan_limits *limits)
{
    struct job job;
    struct plan plan;
    struct gad_error error;
    job_init(&job, expr, n, kind);
    cr_assert(eq(int, plan_make(&job.request, job.program, false, limits, &plan, &error), 0), "%s",
              error.message);
    program_free(job.program);
    return plan;
}

static double ratio(const char *expr, int64_t n, enum location_kind kind,
                    const struct plan_limits *limits)
{
    struct plan one = planned(expr, n, kind, limits), two = planned(expr, 2 * n, kind, limits);
    cr_assert(eq(int, one.bound, two.bound));
    return two.seconds / one.seconds;
}

Test(estimate, twice_the_bytes_take_twice_the_time)
{
    static const enum location_kind kinds[] = {LOCATION_REGION, LOCATION_FILE};
    for (int i = 0; i < 2; i++) {
        double of_cpu = ratio("a+b", 256 * MIB, kinds[i], &cpu);
        double of_device = ratio("a+b", 256 * MIB, kinds[i], &device);
        cr_assert(of_cpu > 1.95 && of_cpu < 2.05, "%g", of_cpu);
        cr_assert(of_device > 1.95 && of_device < 2.05, "%g", of_device);
    }
}

Test(estimate, what_bounds_is_named)
{
    struct plan_limits slow_link = device, slow_device = device;
    slow_link.rates.from_device = 1e9;
    slow_device.rates.work = 1e9;
    cr_assert(eq(int, planned("a+b", 10, LOCATION_REGION, &cpu).bound, PLAN_BOUND_START));
    cr_assert(eq(int, planned("a+b", 64 * MIB, LOCATION_REGION, &cpu).bound, PLAN_BOUND_MEMORY));
    cr_assert(eq(int, planned("a+b", 64 * MIB, LOCATION_FILE, &cpu).bound, PLAN_BOUND_FILE));
    cr_assert(eq(int, planned("a**b", 64 * MIB, LOCATION_REGION, &cpu).bound, PLAN_BOUND_WORK));
    cr_assert(eq(int, planned("a+b", 10, LOCATION_REGION, &device).bound, PLAN_BOUND_START));
    cr_assert(eq(int, planned("a+b", 64 * MIB, LOCATION_REGION, &device).bound, PLAN_BOUND_MEMORY));
    cr_assert(eq(int, planned("a+b", 64 * MIB, LOCATION_FILE, &device).bound, PLAN_BOUND_FILE));
    cr_assert(
        eq(int, planned("a+b", 64 * MIB, LOCATION_REGION, &slow_link).bound, PLAN_BOUND_LINK));
    cr_assert(
        eq(int, planned("a+b", 64 * MIB, LOCATION_REGION, &slow_device).bound, PLAN_BOUND_WORK));
    cr_assert(eq(str, (char *)plan_bound_name(PLAN_BOUND_LINK), (char *)"link"));
}

/* Copying into the slot reads and writes what the processor would only have to read. */
Test(estimate, streaming_from_memory_is_the_processors)
{
    cr_assert(lt(dbl, planned("a+b", 64 * MIB, LOCATION_REGION, &cpu).seconds,
                 planned("a+b", 64 * MIB, LOCATION_REGION, &device).seconds));
}

Test(estimate, small_jobs_are_the_processors)
{
    cr_assert(lt(dbl, planned("sin(a)*b", 1000, LOCATION_INLINE, &cpu).seconds,
                 planned("sin(a)*b", 1000, LOCATION_INLINE, &device).seconds));
}

Test(estimate, heavy_arithmetic_is_the_devices)
{
    static const char expr[] = "(a**b + exp(a)*log1p(b)) ** gamma(a)";
    struct plan of_cpu = planned(expr, 16 * MIB, LOCATION_REGION, &cpu);
    struct plan of_device = planned(expr, 16 * MIB, LOCATION_REGION, &device);
    cr_assert(eq(int, of_cpu.bound, PLAN_BOUND_WORK));
    cr_assert(lt(dbl, of_device.seconds, of_cpu.seconds));
}

Test(estimate, passes_add_up)
{
    double one = planned("sum(a)", 64 * MIB, LOCATION_REGION, &device).seconds;
    double two = planned("sum((a - mean(a))**2)", 64 * MIB, LOCATION_REGION, &device).seconds;
    cr_assert(two > 1.9 * one && two < 2.5 * one, "%g %g", one, two);
}

Test(estimate, without_rates_there_is_one_too)
{
    struct plan_limits unknown[] = {cpu, device};
    for (int i = 0; i < 2; i++) {
        unknown[i].rates = (struct plan_rates){0};
        double seconds = planned("a+b", 64 * MIB, LOCATION_FILE, &unknown[i]).seconds;
        cr_assert(seconds > 0.01 && seconds < 10, "%g", seconds);
    }
}

Test(device_tiles, hold_what_fits_the_slot)
{
    struct job job;
    struct plan plan;
    struct gad_error error;
    job_init(&job, "a+b", 64 * MIB, LOCATION_REGION);
    cr_assert(eq(int, plan_make(&job.request, job.program, false, &device, &plan, &error), 0));
    const struct plan_pass *pass = &plan.passes[0];
    uint64_t n = UINT64_C(1) << pass->tile_log2;
    cr_assert(pass->needs_slot);
    cr_assert(eq(u64, pass->room.input_bytes, 2 * pass->room.output_bytes));
    cr_assert(le(u64, cuda_tile_need_bytes(job.program, 0, n, &pass->room), device.slot_bytes));
    cr_assert(lt(u64, device.slot_bytes, cuda_tile_need_bytes(job.program, 0, 2 * n, &pass->room)));
    cr_assert(eq(u64, plan.read_bytes, 512 * MIB));
    cr_assert(eq(u64, plan.write_bytes, 256 * MIB));
    program_free(job.program);
}

Test(device_tiles, overlap_where_there_is_enough)
{
    cr_assert(ge(u64, planned("a+b", 2 * MIB, LOCATION_REGION, &device).n_tiles, 8));
    cr_assert(eq(u64, planned("a+b", 1000, LOCATION_INLINE, &device).n_tiles, 1));
    cr_assert(eq(u64, planned("a+b", 64 * 1024, LOCATION_REGION, &device).n_tiles, 1));
}

/* work: the rate that was measured, 0: none was. */
static unsigned tile_log2_of(unsigned n_remainders, double work)
{
    char expr[1024] = "0";
    struct plan_limits with = device;
    with.rates.work = work;
    for (unsigned i = 0; i < n_remainders; i++)
        sprintf(expr + strlen(expr), "+fmod(a+%u,b)", i);
    return planned(expr, 64 * MIB, LOCATION_REGION, &with).passes[0].tile_log2;
}

/* Nobody interrupts a kernel. */
Test(device_tiles, are_of_fewer_grains_where_arithmetic_may_take_long)
{
    cr_assert(ge(uint, tile_log2_of(1, 0), 3));
    cr_assert(lt(uint, tile_log2_of(6, 0), tile_log2_of(1, 0)));
    cr_assert(zero(uint, tile_log2_of(40, 0)));
}

Test(device_tiles, of_long_arithmetic_are_as_much_larger_as_a_device_is_faster)
{
    unsigned slow = tile_log2_of(20, 0);
    cr_assert(eq(uint, tile_log2_of(20, 1e11), slow)); /* none is taken to be slower */
    cr_assert(eq(uint, tile_log2_of(20, 2.5e12), slow + 2));
    cr_assert(eq(uint, tile_log2_of(1, 1e15), tile_log2_of(1, 1e12))); /* the slot is full */
}

Test(device_tiles, the_grains_are_those_of_the_processor)
{
    struct plan of_cpu = planned("a+b", 5 * MIB + 7, LOCATION_FILE, &cpu);
    struct plan of_device = planned("a+b", 5 * MIB + 7, LOCATION_FILE, &device);
    cr_assert(zero(int, memcmp(&of_cpu.passes[0].geometry, &of_device.passes[0].geometry,
                               sizeof(struct geometry))));
    cr_assert(eq(u64, of_cpu.read_bytes, of_device.read_bytes));
    cr_assert(eq(u64, of_cpu.write_bytes, of_device.write_bytes));
}

Test(device_tiles, nothing_needs_nothing)
{
    struct plan plan = planned("a+b", 0, LOCATION_REGION, &device);
    cr_assert(not(plan.passes[0].needs_slot));
    cr_assert(eq(u64, plan.n_tiles, 0));
}

static int refusal(const struct plan_limits *limits, struct gad_error *error)
{
    struct job job;
    struct plan plan;
    job_init(&job, "a+b", 64 * MIB, LOCATION_REGION);
    int r = plan_make(&job.request, job.program, false, limits, &plan, error);
    program_free(job.program);
    return r;
}

Test(device_tiles, a_pool_that_is_too_small_is_refused_with_the_numbers)
{
    struct plan_limits small_slot = device, small_pool = device;
    struct gad_error error;
    char there[32];
    small_slot.slot_bytes = 64 * 1024;
    small_pool.pool_bytes = 4 * MIB;
    cr_assert(eq(int, refusal(&small_slot, &error), GAD_TOO_LARGE_FOR_POOL));
    snprintf(there, sizeof(there), "%d bytes", 64 * 1024);
    cr_assert(eq(str, error.found, there));
    cr_assert(eq(int, refusal(&small_pool, &error), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(str, error.expected, (char *)"8388608 bytes"));
    cr_assert(eq(str, error.found, (char *)"4194304 bytes"));
}

/* (n, k) @ (k, n) of float32. */
static struct plan planned_product(int64_t n, int64_t k, const struct plan_limits *limits)
{
    struct job job;
    struct gad_error error;
    struct plan plan;
    const int64_t shapes[2][2] = {{n, k}, {k, n}};
    job = (struct job){.args = {{.name = "a"}, {.name = "b"}},
                       .output = {.expr = "a @ b", .n_expr_chars = 5}};
    job.request = (struct job_request){.n_args = 2, .n_outputs = 1, .engine_index = -1};
    job.request.args = job.args;
    job.request.outputs = &job.output;
    for (int i = 0; i < 2; i++) {
        struct array *array = &job.args[i].array;
        *array = (struct array){.dtype = DTYPE_FLOAT32, .ndim = 2, .at.kind = LOCATION_REGION};
        memcpy(array->shape, shapes[i], sizeof(shapes[i]));
        array->strides[0] = 4 * shapes[i][1];
        array->strides[1] = 4;
    }
    cr_assert(eq(int, program_compile(&job.request, &job.program, &error), 0), "%s", error.message);
    int r = plan_make(&job.request, job.program, false, limits, &plan, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    program_free(job.program);
    return plan;
}

Test(estimate, large_products_are_the_devices_and_small_ones_the_processors)
{
    struct plan_limits on_cpu = cpu, on_device = device;
    on_cpu.pool_bytes = 512 * MIB;
    on_cpu.carry_limit_bytes = 256 * MIB;
    on_cpu.rates.product_float32 = 100e9;
    on_device.has_blas = true;
    on_device.rates.product_float32 = 10e12;
    cr_assert(lt(dbl, planned_product(4000, 4000, &on_device).seconds,
                 planned_product(4000, 4000, &on_cpu).seconds));
    cr_assert(lt(dbl, planned_product(50, 50, &on_cpu).seconds,
                 planned_product(50, 50, &on_device).seconds));
}

Test(estimate, what_bounds_a_product_on_a_device_is_named)
{
    struct plan_limits limits = device;
    limits.has_blas = true;
    limits.rates.product_float32 = 1e12;
    cr_assert(eq(int, planned_product(8000, 8000, &limits).bound, PLAN_BOUND_WORK));
    double fast = planned_product(8000, 8000, &limits).seconds;
    cr_assert(lt(dbl, 2.0 * 8000 * 8000 * 8000 / 1e12, fast)); /* the arithmetic alone */
    limits.rates.product_float32 = 1e15;
    cr_assert(lt(dbl, planned_product(8000, 8000, &limits).seconds, fast));
    limits.rates.to_device = 1e9;
    cr_assert(eq(int, planned_product(8000, 8000, &limits).bound, PLAN_BOUND_LINK));
}
