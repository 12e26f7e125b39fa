/* The tiles of matrix products follow the rates that were measured, and never decide a bit of C:
 * which operand is read how often, what is moved beside the least that a pool allows, when there
 * are two buffers. */
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

struct product {
    int64_t rows, depth, columns;
    enum dtype dtype;
    enum location_kind left, right;
    bool has_journal, is_left_fortran, is_right_fortran, is_tf32;
};

/* What two threads of some processor gave. */
static const struct plan_rates cpu_rates = {.memory = 12e9,
                                            .work = 3e9,
                                            .product_float32 = 160e9,
                                            .product_float64 = 80e9,
                                            .product_integer = 4e9,
                                            .job_seconds = 20e-6};
static const struct plan_rates device_rates = {.memory = 20e9,
                                               .file = 5e9,
                                               .to_device = 12e9,
                                               .from_device = 12e9,
                                               .device = 600e9,
                                               .work = 1e12,
                                               .product_float32 = 15e12,
                                               .product_float64 = 7e12,
                                               .product_integer = 1e12,
                                               .job_seconds = 100e-6};

/* What of a pool a product may have, and of a device's. */
static struct plan_limits cpu_limits(uint64_t pool_bytes)
{
    return (struct plan_limits){.engine = &plan_cpu,
                                .pool_bytes = pool_bytes,
                                .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                .carry_limit_bytes = pool_bytes / 8 * 3,
                                .product_carry_bytes =
                                    pool_bytes / 16 * (pool_bytes < 128 * MIB ? 13 : 14),
                                .memory_bytes = UINT64_C(16) << 30,
                                .n_threads = 2,
                                .rates = cpu_rates};
}

static struct plan_limits device_limits(uint64_t pool_bytes)
{
    struct plan_limits limits = cpu_limits(pool_bytes);

    limits.slot_bytes = 8 * MIB;
    limits.product_carry_bytes = limits.carry_limit_bytes;
    limits.engine = &plan_cuda;
    limits.has_blas = true;
    limits.rates = device_rates;
    return limits;
}

static void set_array(struct array *array, const struct product *p, enum location_kind kind,
                      int64_t n, int64_t m, bool is_fortran)
{
    int64_t item_bytes = (int64_t)dtype_size(p->dtype);

    *array = (struct array){.dtype = p->dtype, .ndim = 2, .shape = {n, m}, .at.kind = kind};
    array->strides[0] = is_fortran ? item_bytes : m * item_bytes;
    array->strides[1] = is_fortran ? n * item_bytes : item_bytes;
}

/* The status; the caller frees the plan. */
static int try_plan(const struct product *p, const struct plan_limits *limits,
                    struct plan **ret_plan)
{
    struct request_arg args[2] = {{.name = "a"}, {.name = "b"}};
    struct request_output output = {.expr = "a @ b", .n_expr_chars = 5, .has_to = true};
    struct job_request request = {.n_args = 2,
                                  .n_outputs = 1,
                                  .engine_index = -1,
                                  .args = args,
                                  .outputs = &output,
                                  .has_journal = p->has_journal,
                                  .tf32 = p->is_tf32};
    struct gad_error error;
    struct program *program;

    set_array(&args[0].array, p, p->left, p->rows, p->depth, p->is_left_fortran);
    set_array(&args[1].array, p, p->right, p->depth, p->columns, p->is_right_fortran);
    set_array(&output.to, p, LOCATION_FILE, p->rows, p->columns, false);
    int r = program_compile(&request, &program, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    *ret_plan = malloc(sizeof(**ret_plan));
    r = plan_make(&request, program, false, limits, *ret_plan, &error);
    program_free(program);
    return r;
}

static struct plan *plan_of(const struct product *p, const struct plan_limits *limits)
{
    struct plan *plan;

    cr_assert(eq(int, try_plan(p, limits, &plan), 0));
    return plan;
}

/* How often an operand is read. */
static double times_read(const struct product *p, const struct plan *plan, int side)
{
    double n = (double)p->depth * (double)(side == 0 ? p->rows : p->columns);

    return (double)plan->passes[side].read_bytes / n / (double)dtype_size(p->dtype);
}

static bool has_same_tiles(const struct plan *a, const struct plan *b)
{
    const struct plan_product *p = &a->products[0], *q = &b->products[0];

    return p->tile_rows == q->tile_rows && p->tile_columns == q->tile_columns &&
           p->panel_depth == q->panel_depth && p->n_kept == q->n_kept &&
           p->has_two_buffers == q->has_two_buffers && a->carry_bytes == b->carry_bytes &&
           a->device_carry_bytes == b->device_carry_bytes;
}

static const struct product large = {.rows = 8192,
                                     .depth = 8192,
                                     .columns = 8192,
                                     .dtype = DTYPE_FLOAT64,
                                     .left = LOCATION_REGION,
                                     .right = LOCATION_REGION};

Test(product_tiles, an_operand_on_a_slow_source_is_read_less_often)
{
    struct plan_limits limits = cpu_limits(64 * MIB);

    for (int side = 0; side < 2; side++) {
        struct product p = large;
        limits.rates = cpu_rates;
        *(side == 0 ? &p.left : &p.right) = LOCATION_FILE;
        struct plan *equal = plan_of(&p, &limits);
        limits.rates.file = 2e8;
        struct plan *slow = plan_of(&p, &limits);
        cr_assert(lt(dbl, 1.3 * times_read(&p, slow, side), times_read(&p, equal, side)));
        cr_assert(lt(dbl, 1.3 * times_read(&p, slow, side), times_read(&p, slow, !side)));
        free(equal);
        free(slow);
    }
}

/* All tiles of whole blocks, as a journal could have them. */
static double least_read(const struct product *p, const struct plan_limits *limits)
{
    struct plan *plan = plan_of(p, limits);
    struct plan_limits given = *limits;
    const struct plan_product blocks = plan->products[0];
    double least = INFINITY;

    free(plan);
    given.product_tile[0] = 1;
    for (int64_t rows = blocks.block_rows; rows <= p->rows; rows += blocks.block_rows) {
        for (int64_t columns = blocks.block_columns; columns <= p->columns;
             columns += blocks.block_columns) {
            given.product_tile[1] = rows;
            given.product_tile[2] = columns;
            if (try_plan(p, &given, &plan) == 0 && (double)plan->read_bytes < least)
                least = (double)plan->read_bytes;
            free(plan);
        }
    }
    return least;
}

Test(product_tiles, a_slow_link_is_passed_by_least_bytes)
{
    struct product p = large;
    struct plan_limits limits = device_limits(768 * MIB);

    p.dtype = DTYPE_FLOAT32;
    p.rows = 5 * 2048;
    p.columns = 7 * 2048;
    limits.rates.to_device = 5e8;
    struct plan *plan = plan_of(&p, &limits);
    double least = least_read(&p, &limits);
    cr_assert(eq(int, plan->bound, PLAN_BOUND_LINK));
    cr_assert(lt(dbl, 1e8, least));
    cr_assert(le(dbl, (double)plan->read_bytes, 1.001 * least));
    free(plan);
}

/* Where the link is slow or the arithmetic fast, more is given for larger tiles. */
Test(product_tiles, a_device_gives_up_the_second_buffer_where_that_ends_sooner)
{
    struct plan_limits limits = device_limits(256 * MIB);

    limits.rates.product_float64 = 5e11;
    struct plan *slow = plan_of(&large, &limits);
    limits.rates.product_float64 = 1e15;
    struct plan *fast = plan_of(&large, &limits);
    cr_assert(eq(int, slow->products[0].has_two_buffers, true));
    cr_assert(eq(int, fast->products[0].has_two_buffers, false));
    cr_assert(lt(u64, fast->read_bytes, slow->read_bytes));
    free(slow);
    free(fast);
}

/* Threads load what they multiply: the second buffer may cost them some moving, but not much. */
Test(product_tiles, the_processor_gives_it_up_where_it_would_read_much_more)
{
    struct product p = large;
    struct plan_limits small = cpu_limits(64 * MIB), whole = cpu_limits(256 * MIB);

    p.dtype = DTYPE_FLOAT32;
    struct plan *of_small = plan_of(&p, &small), *of_whole = plan_of(&p, &whole);
    cr_assert(eq(int, of_small->products[0].has_two_buffers, false));
    cr_assert(eq(int, of_whole->products[0].has_two_buffers, true));
    free(of_small);
    free(of_whole);
}

Test(product_tiles, without_rates_are_those_of_the_defaults)
{
    static const uint64_t pools[] = {32, 64, 200, 256};

    for (int i = 0; i < 4; i++) {
        struct plan_limits limits = cpu_limits(pools[i] * MIB);
        limits.rates = (struct plan_rates){0};
        struct plan *unknown = plan_of(&large, &limits);
        limits.rates = (struct plan_rates){
            .memory = 4e9, .file = 1e9, .product_float64 = 2e10}; /* of two threads */
        struct plan *known = plan_of(&large, &limits);
        cr_assert(eq(int, has_same_tiles(unknown, known), true));
        cr_assert(epsilon_eq(dbl, unknown->seconds, known->seconds, 1e-9 * known->seconds));
        free(unknown);
        free(known);
    }
}

/* 2 m n k / sqrt(P) elements pass any memory of P, and C leaves it; all operands once do. */
static double moved_to_least(const struct product *p, const struct plan_limits *limits)
{
    struct plan *plan = plan_of(p, limits);
    double m = (double)p->rows, k = (double)p->depth, n = (double)p->columns;
    double item_bytes = (double)dtype_size(p->dtype);
    double moved = (double)plan->read_bytes + (double)plan->write_bytes;
    double through = 2 * m * n * k / sqrt((double)limits->pool_bytes / item_bytes) + m * n;
    double once = m * k + k * n + m * n;

    free(plan);
    return moved / item_bytes / (through > once ? through : once);
}

Test(product_tiles, move_at_most_a_third_more_than_the_least)
{
    static const int64_t shapes[][3] = {
        {8192, 8192, 8192}, {16384, 1024, 16384}, {1024, 65536, 1024}};
    const struct plan_limits limits = cpu_limits(256 * MIB), small = cpu_limits(64 * MIB);

    for (int i = 0; i < 12; i++) {
        enum location_kind kind = i % 2 ? LOCATION_FILE : LOCATION_REGION;
        const struct product p = {.rows = shapes[i / 4][0],
                                  .depth = shapes[i / 4][1],
                                  .columns = shapes[i / 4][2],
                                  .dtype = i / 2 % 2 ? DTYPE_FLOAT32 : DTYPE_FLOAT64,
                                  .left = kind,
                                  .right = kind};
        cr_assert(le(dbl, moved_to_least(&p, &limits), 1.3));
        if (i / 4 == 0 && p.dtype == DTYPE_FLOAT32)
            cr_assert(le(dbl, moved_to_least(&p, &small), 1.4));
    }
}

/* Bytes as grains have them, turn by turn. */
static uint64_t bytes_of_grains(const struct product *p, const struct plan *plan, unsigned pass)
{
    uint64_t n_bytes = 0;

    for (uint64_t i = 0; i < plan->products[0].n_turns; i++) {
        struct product_turn turn;
        int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
        product_turn(&plan->products[0], i, &turn);
        bool is_own = turn.step == PRODUCT_LOAD || turn.step == PRODUCT_STORE;
        if (turn.is_empty || !is_own || turn.pass != (enum product_pass)pass)
            continue;
        for (uint64_t k = 0; k < turn.n_grains; k++) {
            geometry_grain(&plan->passes[pass].geometry,
                           product_grain(&plan->products[0], &turn, k), start, count);
            n_bytes += (uint64_t)(count[0] * count[1]) * dtype_size(p->dtype);
        }
    }
    return n_bytes;
}

Test(product_tiles, move_what_the_plan_says_at_any_rates)
{
    const struct product p = {.rows = 3000,
                              .depth = 2500,
                              .columns = 4000,
                              .dtype = DTYPE_FLOAT64,
                              .left = LOCATION_FILE,
                              .right = LOCATION_REGION,
                              .is_right_fortran = true};

    for (int i = 0; i < 8; i++) {
        struct plan_limits limits =
            i % 2 ? device_limits(128 * MIB) : cpu_limits(i < 4 ? 16 * MIB : 48 * MIB);
        limits.rates.file = i / 2 % 2 ? 1e8 : 0;
        struct plan *plan = plan_of(&p, &limits);
        cr_assert(lt(u64, 1, plan->products[0].n_tiles));
        cr_assert(eq(u64, bytes_of_grains(&p, plan, PRODUCT_LEFT), plan->products[0].left_bytes));
        cr_assert(eq(u64, bytes_of_grains(&p, plan, PRODUCT_RIGHT), plan->products[0].right_bytes));
        cr_assert(eq(u64, bytes_of_grains(&p, plan, PRODUCT_RESULT), plan->write_bytes));
        cr_assert(eq(u64, plan->read_bytes,
                     plan->products[0].left_bytes + plan->products[0].right_bytes));
        free(plan);
    }
}

Test(product_tiles, of_other_rates_have_the_same_blocks)
{
    for (int i = 0; i < 2; i++) {
        struct product p = large;
        struct plan_limits limits = i ? device_limits(512 * MIB) : cpu_limits(64 * MIB);
        p.left = LOCATION_FILE;
        struct plan *plain = plan_of(&p, &limits);
        limits.rates.file = limits.rates.to_device = 1e8;
        limits.rates.product_float64 *= 8;
        struct plan *other = plan_of(&p, &limits);
        cr_assert(eq(int, has_same_tiles(plain, other), false));
        cr_assert(eq(i64, plain->products[0].block_rows, other->products[0].block_rows));
        cr_assert(eq(i64, plain->products[0].block_columns, other->products[0].block_columns));
        cr_assert(eq(i64, plain->products[0].block_matrices, other->products[0].block_matrices));
        cr_assert(eq(i64, plain->products[0].step_depth, other->products[0].step_depth));
        cr_assert(eq(int, plain->products[0].is_depth_fastest[0],
                     other->products[0].is_depth_fastest[0]));
        for (unsigned k = 0; i == 1 && k < 2; k++) /* a library sees how lines are aligned */
            cr_assert(eq(i64, plain->products[0].panel_line_bytes[k] % 64,
                         other->products[0].panel_line_bytes[k] % 64));
        free(plain);
        free(other);
    }
}

/* Whoever goes on with it has measured something else, and needs as much of the pool. */
Test(product_tiles, with_a_journal_do_not_depend_on_rates)
{
    struct product p = large;
    struct plan_limits limits = cpu_limits(64 * MIB);

    p.left = LOCATION_FILE;
    for (int i = 0; i < 2; i++) {
        p.has_journal = i;
        limits.rates = cpu_rates;
        struct plan *plain = plan_of(&p, &limits);
        limits.rates.file = 1e8;
        struct plan *other = plan_of(&p, &limits);
        cr_assert(eq(int, has_same_tiles(plain, other), p.has_journal));
        cr_assert(lt(dbl, plain->seconds, other->seconds));
        free(plain);
        free(other);
    }
}

/* Rates of a disk are of what cannot be in the page cache: more than half of the memory. */
Test(product_tiles, of_files_that_are_beyond_the_page_cache_follow_the_disk)
{
    struct product p = large;
    struct plan_limits limits = cpu_limits(64 * MIB);

    p.left = LOCATION_FILE; /* 512 MiB */
    struct plan *cached = plan_of(&p, &limits);
    limits.rates.disk = 2e7;
    struct plan *same = plan_of(&p, &limits);
    limits.memory_bytes = 1023 * MIB;
    struct plan *beyond = plan_of(&p, &limits);
    limits.rates.disk = 0;
    struct plan *unknown = plan_of(&p, &limits);
    cr_assert(eq(int, has_same_tiles(cached, same), true));
    cr_assert(eq(int, has_same_tiles(cached, unknown), true));
    cr_assert(lt(dbl, 1.3 * times_read(&p, beyond, 0), times_read(&p, cached, 0)));
    cr_assert(eq(int, beyond->bound, PLAN_BOUND_DISK));
    cr_assert(eq(int, cached->bound, PLAN_BOUND_WORK));
    cr_assert(lt(dbl, (double)beyond->products[0].left_bytes / 2.01e7, beyond->seconds));
    free(cached);
    free(same);
    free(beyond);
    free(unknown);
}

/* What an H100's sheet says: its link, its memory, its arithmetic; and a host that keeps up. */
static const struct plan_rates sheet_rates = {.memory = 1e12,
                                              .file = 1e12,
                                              .to_device = 55e9,
                                              .from_device = 55e9,
                                              .device = 3.35e12,
                                              .work = 3e13,
                                              .product_float32 = 67e12,
                                              .product_float64 = 67e12,
                                              .product_tf32 = 495e12,
                                              .job_seconds = 50e-6};

/* The share of the library's rate that the planner predicts for 16384 x 16384 x 16384. */
static double predicted_share(enum dtype dtype, bool is_tf32, uint64_t carry_bytes)
{
    const struct product square = {.rows = 16384,
                                   .depth = 16384,
                                   .columns = 16384,
                                   .dtype = dtype,
                                   .left = LOCATION_REGION,
                                   .right = LOCATION_REGION,
                                   .is_tf32 = is_tf32};
    struct plan_limits limits = device_limits(496 * MIB);
    limits.product_carry_bytes = limits.device_carry_bytes = carry_bytes;
    limits.memory_bytes = 0;
    limits.has_tf32 = true;
    limits.rates = sheet_rates;
    struct plan *plan = plan_of(&square, &limits);
    double rate = is_tf32 ? sheet_rates.product_tf32 : sheet_rates.product_float64;
    double share = plan->products[0].n_operations / rate / plan->seconds;
    cr_assert(le(u64, plan->device_carry_bytes, carry_bytes));
    cr_assert(ge(u64, plan->device_carry_bytes, carry_bytes / 4 * 3), "what there is is used");
    free(plan);
    return share;
}

/* 464 MiB is what a product may have by default; 96 MiB was what a pool left it. */
Test(product_tiles, the_devices_own_memory_lets_its_library_work)
{
    cr_assert(lt(dbl, 0.95, predicted_share(DTYPE_FLOAT32, false, 464 * MIB)));
    cr_assert(lt(dbl, predicted_share(DTYPE_FLOAT32, false, 96 * MIB), 0.6));
    cr_assert(lt(dbl, 0.54, predicted_share(DTYPE_FLOAT64, false, 464 * MIB)));
    cr_assert(lt(dbl, predicted_share(DTYPE_FLOAT64, false, 96 * MIB), 0.2));
    /* Of a device's slab of 1.6 GiB. */
    cr_assert(lt(dbl, 0.85, predicted_share(DTYPE_FLOAT64, false, 1024 * MIB)));
    /* The link is what there is to wait for, by the rate of TF32 itself. */
    double tf32 = predicted_share(DTYPE_FLOAT32, true, 464 * MIB);
    cr_assert(lt(dbl, 0.2, tf32));
    cr_assert(lt(dbl, tf32, 0.3));
}
