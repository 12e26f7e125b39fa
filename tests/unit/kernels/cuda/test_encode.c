/* Encoding passes: what fits where, and what is refused. */
#include "kernels/cuda/encode.h"

#include "kernels/cuda/encode_actions.h"
#include "tests/unit/kernels/cpu/check/check.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

static struct built built;

static struct code_header header_of(const struct built *b)
{
    struct encode_places places;
    struct code_header h;
    uint64_t n_bytes;
    cr_assert(eq(i32, encode_places_of(&b->program, b->program.passes, &places), 0));
    cr_assert(eq(
        i32, encode_pass(&b->program, b->program.passes, &places, NULL, NULL, NULL, &h, &n_bytes),
        0));
    return h;
}

static void expect_action(struct check *c, const struct check_case *k)
{
    bool is_exchanged;
    struct insn insn = {.op = (uint16_t)k->op,
                        .compute = (uint8_t)k->compute,
                        .dst = {OPERAND_REGISTER, (uint8_t)k->result, 0}};
    for (unsigned i = 0; i < k->n_src; i++)
        insn.src[i] = (struct operand){OPERAND_REGISTER, (uint8_t)k->src[i], 0};
    cr_assert(encode_action(&insn, &is_exchanged) != ACTION_NONE, "%s", k->name);
    c->n_run++;
}

Test(encode, has_an_action_for_every_instruction)
{
    struct check c = {.n_trials = 0};
    check_each_case(&c, expect_action);
    cr_assert(lt(u64, 500, c.n_run));
}

static struct operand add(unsigned reg, struct operand a, struct operand b)
{
    return built_insn(&built, OP_ADD, DTYPE_FLOAT32, DTYPE_FLOAT32, reg, a, b, (struct operand){0});
}

Test(encode, loads_ahead_and_lightly_where_little_is_computed)
{
    built_init(&built);
    struct operand a = built_input(&built, DTYPE_FLOAT32), b = built_input(&built, DTYPE_FLOAT32);
    built_store(&built, add(0, a, b));
    struct code_header h = header_of(&built);
    cr_assert(eq(u32, h.kernel, CODE_KERNEL_LIGHT));
    cr_assert(eq(u32, h.n_threads, CODE_MAX_THREADS));
    cr_assert(eq(u32, h.depth, CODE_MAX_DEPTH));
    cr_assert(eq(u32, h.n_insns, 2));
    cr_assert(eq(u32, h.shared_bytes, ((3 * 2 + 1) * CODE_MAX_THREADS + 3) * 16));
}

Test(encode, moves_sixteen_bytes_of_any_item_of_four_or_eight)
{
    built_init(&built);
    built_store(&built, built_input(&built, DTYPE_FLOAT32));
    cr_assert(eq(u32, header_of(&built).group_log2, 2));
    built_init(&built);
    built_store(&built, built_input(&built, DTYPE_FLOAT64));
    cr_assert(eq(u32, header_of(&built).group_log2, 1));
}

Test(encode, fits_the_largest_pass_into_the_memory_of_every_device)
{
    built_init(&built);
    struct operand sum = built_input(&built, DTYPE_FLOAT64);
    for (unsigned i = 1; i < REQUEST_MAX_ARGS; i++)
        (void)built_input(&built, DTYPE_FLOAT64);
    for (unsigned i = 0; i < PROGRAM_MAX_CONSTS; i++) {
        struct operand one = built_const(&built, DTYPE_FLOAT64, (union scalar){.f64 = i});
        struct operand in = {OPERAND_INPUT, DTYPE_FLOAT64, (uint16_t)(i % REQUEST_MAX_ARGS)};
        unsigned reg = i % PROGRAM_MAX_REGISTERS;
        struct operand t = built_insn(&built, OP_ADD, DTYPE_FLOAT64, DTYPE_FLOAT64, reg, one, in,
                                      (struct operand){0});
        sum = built_insn(&built, OP_ADD, DTYPE_FLOAT64, DTYPE_FLOAT64, reg, t, sum,
                         (struct operand){0});
    }
    for (unsigned i = 0; i < PASS_MAX_REDUCTIONS; i++)
        built_reduction(&built, OP_SUM, DTYPE_FLOAT64, sum);
    struct code_header h = header_of(&built);
    cr_assert(le(u32, h.shared_bytes, CODE_MAX_SHARED_BYTES));
    cr_assert(eq(u32, h.depth, 0));
    cr_assert(ge(u32, h.n_threads, CODE_MIN_THREADS));
}

static int encoded(const struct built *b)
{
    struct encode_places places;
    struct code_header h;
    uint64_t n_bytes;
    int r = encode_places_of(&b->program, b->program.passes, &places);
    return r ? r
             : encode_pass(&b->program, b->program.passes, &places, NULL, NULL, NULL, &h, &n_bytes);
}

Test(encode, refuses_what_the_compiler_cannot_have_made)
{
    built_init(&built);
    struct operand a = built_input(&built, DTYPE_FLOAT32);
    built_store(&built, add(0, a, (struct operand){OPERAND_REGISTER, DTYPE_FLOAT32, 9}));
    cr_assert(eq(i32, encoded(&built), -EINVAL));
    built_init(&built);
    a = built_input(&built, DTYPE_FLOAT32);
    built_store(&built, built_insn(&built, OP_GCD, DTYPE_FLOAT32, DTYPE_FLOAT32, 0, a, a,
                                   (struct operand){0}));
    cr_assert(eq(i32, encoded(&built), -EINVAL));
    built_init(&built);
    built_store(&built, (struct operand){OPERAND_INPUT, DTYPE_FLOAT32, 1});
    cr_assert(eq(i32, encoded(&built), -EINVAL));
}

static void keep_an_axis(void)
{
    struct pass *pass = &built.program.passes[0];
    pass->ndim = 2;
    pass->shape[0] = pass->shape[1] = 100;
    pass->reduced_axes = 1;
}

Test(encode, stores_what_is_computed_and_reduced_along_axes_once)
{
    built_init(&built);
    struct operand a = built_input(&built, DTYPE_FLOAT32), b = built_input(&built, DTYPE_FLOAT32);
    struct operand sum = add(0, a, b);
    built_reduction(&built, OP_SUM, DTYPE_FLOAT64, sum);
    built_reduction(&built, OP_MAX, DTYPE_FLOAT32, sum);
    built_reduction(&built, OP_MIN, DTYPE_FLOAT32, b);
    keep_an_axis();
    struct code_header h = header_of(&built);
    cr_assert(eq(u32, h.n_insns, 2));
    cr_assert(eq(u32, h.n_axes_tasks, 3));
    cr_assert(eq(u32, h.n_places, 3));
    cr_assert(eq(u32, h.n_states, 0));
}

Test(encode, leaves_an_input_that_is_only_reduced_where_it_is)
{
    built_init(&built);
    built_reduction(&built, OP_SUM, DTYPE_FLOAT64, built_input(&built, DTYPE_FLOAT32));
    keep_an_axis();
    struct code_header h = header_of(&built);
    cr_assert(eq(u32, h.n_insns, 0));
    cr_assert(eq(u32, h.n_loads, 0));
    cr_assert(eq(u32, h.n_places, 1));
}

static void add_counts(struct operand bins, struct operand weights)
{
    built_reduction(&built, OP_BINCOUNT, weights.kind ? DTYPE_FLOAT64 : DTYPE_INT64, bins);
    struct reduction *r = &built.program.reductions[built.program.n_reductions - 1];
    r->weights = weights;
    r->n_bins = 100;
}

Test(encode, bins_and_weights_have_one_place_each_and_sums_beside_them_none)
{
    struct operand none = {0};
    built_init(&built);
    struct operand a = built_input(&built, DTYPE_FLOAT64);
    struct operand bins = built_insn(&built, OP_CAST, DTYPE_FLOAT64, DTYPE_INT64, 0, a, none, none);
    add_counts(bins, none);
    built_reduction(&built, OP_SUM, DTYPE_FLOAT64, a);
    add_counts(bins, a);
    struct encode_places places;
    cr_assert(eq(i32, encode_places_of(&built.program, built.program.passes, &places), 0));
    cr_assert(eq(u32, places.n_places, 2));
    cr_assert(eq(u32, places.n_values, 1));
    cr_assert(eq(u32, places.source[0], places.source[2]));
    cr_assert(eq(u32, places.other[0], ENCODE_NOT_THERE));
    cr_assert(eq(u32, places.other[2], places.input[0]));
    struct code_header h = header_of(&built);
    cr_assert(eq(u32, h.n_count_tasks, 2));
    cr_assert(eq(u32, h.n_axes_tasks + h.n_scan_tasks, 0));
    cr_assert(eq(u32, h.n_states, 2)); /* the sum's and the counters of casts */
}

static int encoded_kth(enum dtype dtype)
{
    built_init(&built);
    built_reduction(&built, OP_KTH, dtype, built_input(&built, dtype));
    built.program.reductions[0].kth.at = 7;
    return encoded(&built);
}

Test(encode, the_kth_smallest_is_a_task_where_all_axes_are_reduced_too)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        cr_assert(eq(i32, encoded_kth(DTYPE_UINT64), 0));
        if (keeps)
            keep_an_axis();
        struct code_header h = header_of(&built);
        cr_assert(eq(u32, h.n_axes_tasks, 1));
        cr_assert(eq(u32, h.n_count_tasks + h.n_scan_tasks, 0));
        cr_assert(eq(u32, h.n_insns + h.n_loads + h.n_states, 0));
    }
}

Test(encode, refuses_the_kth_smallest_of_what_is_no_key)
{
    for (unsigned dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        bool is_key = dtype == DTYPE_UINT32 || dtype == DTYPE_UINT64;
        cr_assert(eq(i32, encoded_kth((enum dtype)dtype), is_key ? 0 : -EINVAL), "%s",
                  dtype_name((enum dtype)dtype));
    }
}

static void scan(enum dtype dtype, enum dtype result, enum dtype output)
{
    built_init(&built);
    built_reduction(&built, OP_CUMSUM, result, built_input(&built, dtype));
    built_store(&built, (struct operand){.dtype = (uint8_t)output});
    built.program.passes[0].scanned_axis = 0;
}

Test(encode, an_input_that_is_scanned_needs_no_interpreter)
{
    scan(DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT32);
    struct encode_places places;
    cr_assert(eq(i32, encode_places_of(&built.program, built.program.passes, &places), 0));
    cr_assert(eq(u32, places.n_loads, 0));
    cr_assert(eq(u32, places.n_stored, 0));
    cr_assert(eq(u32, places.n_places, 3)); /* the source, the states, the output */
    struct code_header h = header_of(&built);
    cr_assert(eq(u32, h.n_insns, 0));
    cr_assert(eq(u32, h.n_scan_tasks, 1));
}

Test(encode, refuses_scans_and_tables_that_the_compiler_cannot_have_made)
{
    scan(DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT32);
    cr_assert(eq(i32, encoded(&built), -EINVAL));
    scan(DTYPE_INT32, DTYPE_INT32, DTYPE_INT32);
    cr_assert(eq(i32, encoded(&built), -EINVAL));
    scan(DTYPE_INT32, DTYPE_INT64, DTYPE_INT32);
    cr_assert(eq(i32, encoded(&built), 0));
    built.program.stores[0].scan = 1;
    cr_assert(eq(i32, encoded(&built), -EINVAL));

    struct operand none = {0}, table = {OPERAND_TABLE, DTYPE_FLOAT64, 0};
    built_init(&built);
    struct operand x = built_input(&built, DTYPE_FLOAT64);
    built_insn(&built, OP_SEARCH_LEFT, DTYPE_FLOAT64, DTYPE_INT64, 0, x, table, none);
    cr_assert(eq(i32, encoded(&built), -EINVAL)); /* there is no such result */
    built.program.n_reductions = 1;
    built.program.reductions[0].result = DTYPE_INT64;
    cr_assert(eq(i32, encoded(&built), -EINVAL)); /* it is of another dtype */
    built.program.reductions[0].result = DTYPE_FLOAT64;
    cr_assert(eq(i32, encoded(&built), 0));
    built.insns[0].src[1] = x;
    cr_assert(eq(i32, encoded(&built), -EINVAL));
}
