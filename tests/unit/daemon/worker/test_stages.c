#include "tests/unit/daemon/worker/harness.h"
#include "kernels/expr/programs.h"
#include "kernels/plan/plan.h"
#include "proto/util.h"
#include "tests/unit/kernels/expr/validate.h"

#include <string.h>
#include <sys/mman.h>

/* A program of passes and matrix products in turn, each reading what those before it gave. The
 * compiler makes none like it, so it is made by hand and put in the place of what the worker
 * compiles (meson.build wraps programs_compile()):
 *
 *     pass        most = max(a, axis=1, keepdims=True)
 *     product     kept = (a - most) @ b + 1
 *     pass        sums = sum(kept, axis=0)
 *     product     first = 2 * ((kept - sums) @ c)
 *     pass        second = kept - most
 */

#define MIB          (UINT64_C(1) << 20)
#define SEALS        (F_SEAL_SHRINK | F_SEAL_GROW)
#define ROWS         INT64_C(620)
#define DEPTH        INT64_C(33)
#define INNER        INT64_C(67)
#define WIDTH        INT64_C(2200)
#define CHECKED_STEP 9 /* of the rows of `first`, since that is much work */

/* Products go in several tiles. A device's blocks are larger, and that of what is kept is all of
 * it. They have 1024 columns at least, so that it is rows' and columns' numbers that have to be
 * large; along the depth a few make the same program.
 */
#define SMALL_POOL_BYTES ((HARNESS_IS_CUDA ? 4 : 2) * MIB)

enum { A, B, C, N_INPUTS };
enum { FIRST, SECOND, KEPT_LEFT, KEPT_RIGHT, KEPT, FIRST_LEFT, FIRST_RIGHT, N_OUTPUTS };
enum { MOST, SUMS, KEPT_C, FIRST_C, N_REDUCTIONS };
enum {
    MOST_PASS,
    KEPT_PASSES,
    SUMS_PASS = KEPT_PASSES + 3,
    FIRST_PASSES,
    SECOND_PASS = FIRST_PASSES + 3,
    N_PASSES
};

static struct {
    struct program program;
    struct insn insns[8];
    struct program_input inputs[N_INPUTS];
    struct program_output outputs[N_OUTPUTS];
    struct program_const consts[2];
    struct program_product products[2];
} made;

int __wrap_programs_compile(struct programs *programs, uint32_t owner,
                            const struct job_request *request, struct program **ret_program,
                            struct gad_error *error);
int __wrap_programs_compile(struct programs *programs, uint32_t owner,
                            const struct job_request *request, struct program **ret_program,
                            struct gad_error *error)
{
    *ret_program = program_ref(&made.program);
    return 0;
}

static struct operand operand(enum operand_kind kind, unsigned index)
{
    return (struct operand){(uint8_t)kind, DTYPE_INT64, (uint16_t)index};
}

/* The next pass: over n_rows x n_columns. */
static struct pass *add_pass(int64_t n_rows, int64_t n_columns)
{
    struct program *p = &made.program;
    struct pass *pass = &p->passes[p->n_passes++];
    *pass = (struct pass){.ndim = 2,
                          .shape = {n_rows, n_columns},
                          .first_insn = p->n_insns,
                          .first_store = p->n_stores,
                          .scanned_axis = -1};
    for (unsigned i = 0; i + 1 < p->n_passes; i++)
        pass->first_reduction = (uint16_t)(pass->first_reduction + p->passes[i].n_reductions);
    return pass;
}

static void note_operand(struct pass *pass, struct operand o)
{
    if (o.kind == OPERAND_INPUT)
        pass->inputs_used |= UINT64_C(1) << o.index;
    if (o.kind == OPERAND_REDUCED)
        pass->reduced_used |= UINT64_C(1) << o.index;
}

/* r0 = x op y */
static struct operand add_insn(struct pass *pass, enum op op, struct operand x, struct operand y)
{
    struct operand dst = operand(OPERAND_REGISTER, 0);
    made.insns[made.program.n_insns++] =
        (struct insn){.op = (uint16_t)op, .compute = DTYPE_INT64, .dst = dst, .src = {x, y}};
    note_operand(pass, x);
    note_operand(pass, y);
    pass->n_insns++;
    pass->n_registers = 1;
    return dst;
}

static void add_store(struct pass *pass, unsigned output, struct operand src)
{
    struct program *p = &made.program;
    p->stores[p->n_stores++] = (struct store){.output = (uint16_t)output, .src = src};
    pass->n_stores++;
    note_operand(pass, src);
    made.outputs[output] = (struct program_output){
        .dtype = DTYPE_INT64, .ndim = 2, .pass = (uint16_t)(pass - p->passes)};
    memcpy(made.outputs[output].shape, pass->shape, sizeof(pass->shape));
}

static void set_reduction(unsigned index, enum op op, unsigned pass, struct operand src)
{
    made.program.reductions[index] = (struct reduction){.op = (uint16_t)op,
                                                        .result = DTYPE_INT64,
                                                        .keeps_dims = true,
                                                        .pass = (uint16_t)pass,
                                                        .src = src};
}

static void add_reduction(struct pass *pass, unsigned index, enum op op, int axis,
                          struct operand src)
{
    set_reduction(index, op, (unsigned)(pass - made.program.passes), src);
    note_operand(pass, src);
    pass->n_reductions++;
    pass->reduced_axes = UINT32_C(1) << axis;
}

static void set_input(unsigned index, int64_t n_rows, int64_t n_columns)
{
    made.inputs[index] = (struct program_input){
        .arg = (uint16_t)index, .dtype = DTYPE_INT64, .ndim = 2, .shape = {n_rows, n_columns}};
}

static struct program_product product_of(unsigned first_pass, unsigned first_output,
                                         unsigned reduction, int64_t n_rows, int64_t n_columns,
                                         int64_t depth)
{
    set_reduction(reduction, OP_MATMUL, first_pass + PRODUCT_RESULT, (struct operand){0});
    return (struct program_product){.first_pass = (uint16_t)first_pass,
                                    .first_output = (uint16_t)first_output,
                                    .reduction = (uint16_t)reduction,
                                    .dtype = DTYPE_INT64,
                                    .n_rows = n_rows,
                                    .n_columns = n_columns,
                                    .depth = depth,
                                    .has_rows = true,
                                    .has_columns = true};
}

static struct operand constant(unsigned index, int64_t value)
{
    made.consts[index] = (struct program_const){DTYPE_INT64, {.i64 = value}};
    return operand(OPERAND_CONST, index);
}

static void add_kept(const struct operand *most)
{
    struct operand kept = operand(OPERAND_REDUCED, KEPT_C);
    struct pass *left = add_pass(ROWS, DEPTH);
    add_store(left, KEPT_LEFT, add_insn(left, OP_SUBTRACT, operand(OPERAND_INPUT, A), *most));
    add_store(add_pass(DEPTH, INNER), KEPT_RIGHT, operand(OPERAND_INPUT, B));
    struct pass *result = add_pass(ROWS, INNER);
    add_store(result, KEPT, add_insn(result, OP_ADD, kept, constant(0, 1)));
    made.products[0] = product_of(KEPT_PASSES, KEPT_LEFT, KEPT_C, ROWS, INNER, DEPTH);
    made.products[0].is_kept = true;
}

static void add_first(const struct operand *kept, const struct operand *sums)
{
    struct pass *left = add_pass(ROWS, INNER);
    add_store(left, FIRST_LEFT, add_insn(left, OP_SUBTRACT, *kept, *sums));
    add_store(add_pass(INNER, WIDTH), FIRST_RIGHT, operand(OPERAND_INPUT, C));
    struct pass *result = add_pass(ROWS, WIDTH);
    add_store(result, FIRST,
              add_insn(result, OP_MULTIPLY, operand(OPERAND_REDUCED, FIRST_C), constant(1, 2)));
    made.products[1] = product_of(FIRST_PASSES, FIRST_LEFT, FIRST_C, ROWS, WIDTH, INNER);
}

static void make_program(void)
{
    struct operand most = operand(OPERAND_REDUCED, MOST), kept = operand(OPERAND_REDUCED, KEPT_C);
    struct operand sums = operand(OPERAND_REDUCED, SUMS);
    memset(&made, 0, sizeof(made));
    made.program = (struct program){.n_refs = 1,
                                    .n_products = 2,
                                    .n_reductions = N_REDUCTIONS,
                                    .n_inputs = N_INPUTS,
                                    .n_outputs = 2,
                                    .n_all_outputs = N_OUTPUTS,
                                    .n_consts = 2,
                                    .insns = made.insns,
                                    .inputs = made.inputs,
                                    .outputs = made.outputs,
                                    .consts = made.consts,
                                    .products = made.products};
    set_input(A, ROWS, DEPTH);
    set_input(B, DEPTH, INNER);
    set_input(C, INNER, WIDTH);
    add_reduction(add_pass(ROWS, DEPTH), MOST, OP_MAX, 1, operand(OPERAND_INPUT, A));
    add_kept(&most);
    add_reduction(add_pass(ROWS, INNER), SUMS, OP_SUM, 0, kept);
    add_first(&kept, &sums);
    struct pass *last = add_pass(ROWS, INNER);
    add_store(last, SECOND, add_insn(last, OP_SUBTRACT, kept, most));
    program_list_stages(&made.program);
}

/* The arrays, one behind the other in a region. ----------------------------------------------- */

static const int64_t shapes[][2] = {
    {ROWS, DEPTH}, {DEPTH, INNER}, {INNER, WIDTH}, {ROWS, WIDTH}, {ROWS, INNER}};
enum { AT_FIRST = N_INPUTS, AT_SECOND, N_ARRAYS };

static uint64_t place_of(unsigned array)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < array; i++)
        at += round_up_u64((uint64_t)(shapes[i][0] * shapes[i][1]) * 8, 4096);
    return at;
}

static void make_job(struct test_job *j)
{
    static const char *const names[] = {"a", "b", "c", "first", "second"};
    job_init(j, 1);
    for (unsigned i = 0; i < N_ARRAYS; i++)
        at_region(i < N_INPUTS ? job_arg(j, names[i], DTYPE_INT64, 2, shapes[i])
                               : job_output_to(j, "a", names[i], DTYPE_INT64, 2, shapes[i]),
                  1, place_of(i));
}

/* c = x @ y, wrapping, of every step-th row. */
static void multiply(const uint64_t *x, const uint64_t *y, int64_t n_rows, int64_t step,
                     int64_t depth, int64_t n_columns, uint64_t *c)
{
    memset(c, 0, (size_t)(n_rows * n_columns) * sizeof(*c));
    for (int64_t i = 0; i < n_rows; i += step)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t j = 0; j < n_columns; j++)
                c[i * n_columns + j] += x[i * depth + k] * y[k * n_columns + j];
}

static uint64_t largest(const uint64_t *values, int64_t n)
{
    int64_t most = INT64_MIN;
    for (int64_t i = 0; i < n; i++)
        most = max_i64(most, (int64_t)values[i]);
    return (uint64_t)most;
}

/* What the outputs have to be, for the arguments in the region. */
static void compute(char *base, uint64_t *ret_first, uint64_t *ret_second)
{
    const uint64_t *args[N_INPUTS];
    for (unsigned i = 0; i < N_INPUTS; i++)
        args[i] = (const uint64_t *)(void *)(base + place_of(i));
    uint64_t *left = calloc(ROWS * INNER, 8), *kept = calloc(ROWS * INNER, 8);
    uint64_t *most = calloc(ROWS, 8), *sums = calloc(INNER, 8);
    for (int64_t i = 0; i < ROWS; i++)
        most[i] = largest(args[A] + i * DEPTH, DEPTH);
    for (int64_t i = 0; i < ROWS * DEPTH; i++)
        left[i] = args[A][i] - most[i / DEPTH];
    multiply(left, args[B], ROWS, 1, DEPTH, INNER, kept);
    for (int64_t i = 0; i < ROWS * INNER; i++)
        sums[i % INNER] += ++kept[i];
    for (int64_t i = 0; i < ROWS * INNER; i++) {
        left[i] = kept[i] - sums[i % INNER];
        ret_second[i] = kept[i] - most[i / INNER];
    }
    multiply(left, args[C], ROWS, CHECKED_STEP, INNER, WIDTH, ret_first);
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        ret_first[i] *= 2;
    free(left);
    free(kept);
    free(most);
    free(sums);
}

struct fixture {
    int fd;
    size_t n_bytes;
    char *base;
    uint64_t *first, *second;
};

static void set_up(struct fixture *f)
{
    uint64_t state = 1;
    f->n_bytes = place_of(N_ARRAYS);
    f->fd = make_memfd(f->n_bytes, SEALS);
    f->base = mmap(NULL, f->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    f->first = calloc(ROWS * WIDTH, 8);
    f->second = calloc(ROWS * INNER, 8);
    for (size_t i = 0; i < place_of(N_INPUTS) / 8; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ((uint64_t *)(void *)f->base)[i] = state >> 3;
    }
    make_program();
    compute(f->base, f->first, f->second);
}

static void tear_down(struct fixture *f)
{
    munmap(f->base, f->n_bytes);
    close(f->fd);
    free(f->first);
    free(f->second);
}

static void run_with(const struct fixture *f, uint64_t pool_bytes, unsigned n_threads,
                     bool ret_is_tiled[static 2])
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct gad_error error;
    struct plan *plan = malloc(sizeof(*plan));

    memset(f->base + place_of(AT_FIRST), 0, f->n_bytes - place_of(AT_FIRST));
    harness_start(&h, pool_bytes, n_threads);
    cr_assert(eq(int, harness_attach(&h, 1, f->fd, f->n_bytes, true), 0));
    make_job(&j);
    const char *fault = program_validate(&j.request, &made.program);
    cr_assert(fault == NULL, "%s", fault ? fault : "");
    int r = plan_make(&j.request, &made.program, false, &h.worker->engine->limits, plan, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    for (unsigned i = 0; i < 2; i++)
        ret_is_tiled[i] |= plan->products[i].n_tiles > 1;
    j.needs_carry = true;
    j.carry_bytes = round_up_u64(plan->carry_bytes, 4096);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    outcome_free(&o);
    const uint64_t *first = (const uint64_t *)(void *)(f->base + place_of(AT_FIRST));
    for (int64_t i = 0; i < ROWS * WIDTH; i += CHECKED_STEP * WIDTH)
        cr_assert(eq(int, memcmp(first + i, f->first + i, WIDTH * 8), 0));
    cr_assert(eq(int, memcmp(f->base + place_of(AT_SECOND), f->second, ROWS * INNER * 8), 0));
    cr_assert(eq(u64, harness_stat(&h, "carries"), 0));
    harness_stop(&h);
    free(plan);
}

Test(stages, give_what_those_behind_them_read)
{
    static const struct {
        uint64_t pool_bytes;
        unsigned n_threads;
    } rows[] = {{32 * MIB, 1}, {32 * MIB, 4}, {SMALL_POOL_BYTES, 3}};
    bool is_tiled[2] = {false, false};
    struct fixture f;
    set_up(&f);
    for (unsigned i = HARNESS_IS_CUDA; i < ARRAY_LENGTH(rows); i++)
        run_with(&f, rows[i].pool_bytes, rows[i].n_threads, is_tiled);
    cr_assert(is_tiled[1] && (is_tiled[0] || HARNESS_IS_CUDA));
    tear_down(&f);
}

/* One after the other, so that they share the memory; what is kept takes more than one of them. */
Test(stages, need_no_more_than_the_largest_beside_what_is_kept)
{
    struct gad_error error;
    struct test_job j;
    struct plan *plan = malloc(sizeof(*plan));
    struct engine *engine = harness_engine(32 * MIB, 2);
    const struct plan_limits *limits = &engine->limits;
    make_program();
    make_job(&j);
    cr_assert(eq(int, plan_make(&j.request, &made.program, false, limits, plan, &error), 0));
    uint64_t scratch = max_u64(plan->products[0].scratch_bytes, plan->products[1].scratch_bytes);
    uint64_t kept = ROWS * INNER * 8, small = 64 * 1024;
    uint64_t there = plan->carry_bytes + plan->device_carry_bytes;
    cr_assert(le(u64, scratch + kept, there));
    cr_assert(le(u64, there, scratch + kept + small));
    if (HARNESS_IS_CUDA)
        cr_assert(lt(u64, plan->carry_bytes, small), "products are on the device alone");
    (void)engine->ops->free(engine);
    free(plan);
}

/* What is kept alone is more than there is. With what the error asks for it can be done. */
Test(stages, that_do_not_fit_say_what_they_need)
{
    struct gad_error error;
    struct test_job j;
    struct plan *plan = malloc(sizeof(*plan));
    struct engine *engine = harness_engine(32 * MIB, 2);
    struct plan_limits limits = engine->limits;
    make_program();
    make_job(&j);
    limits.carry_limit_bytes = ROWS * INNER * 8 / 2;
    limits.product_carry_bytes = 0;
    int r = plan_make(&j.request, &made.program, false, &limits, plan, &error);
    cr_assert(eq(int, r, GAD_TOO_LARGE_FOR_POOL));
    uint64_t needed = strtoull(error.expected, NULL, 10);
    cr_assert(lt(u64, ROWS * INNER * 8, needed));
    cr_assert(strstr(error.message, "rounds") == NULL);
    limits.carry_limit_bytes = needed;
    r = plan_make(&j.request, &made.program, false, &limits, plan, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    (void)engine->ops->free(engine);
    free(plan);
}
