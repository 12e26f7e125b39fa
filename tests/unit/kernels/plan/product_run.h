/* A matrix product's plan carried out on integers, turn by turn, in the order in which turns may
 * begin and with random ends, on memory that is filled with rubbish first. */
#pragma once

#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB     (UINT64_C(1) << 20)
#define MAX_RAN 16

struct side { /* an argument, or C */
    struct array array;
    int64_t *values;
    uint64_t n;
};

struct job {
    struct request_arg args[2];
    struct request_output output;
    struct job_request request;
    struct program_input inputs[2];
    struct program_output outputs[3];
    struct program program;
    struct program_product product;
    struct side sides[3]; /* left, right, C */
    bool is_fortran[2];
};

static inline void set_array(struct array *array, int ndim, const int64_t *shape, bool is_fortran)
{
    *array = (struct array){.dtype = DTYPE_INT64, .ndim = ndim, .at.kind = LOCATION_FILE};
    memcpy(array->shape, shape, (size_t)ndim * sizeof(*shape));
    array_c_strides(ndim, shape, 8, array->strides);
    for (int i = 0, stride = 8; is_fortran && i < ndim; i++) {
        array->strides[i] = stride;
        stride *= (int)shape[i];
    }
}

static inline void set_side(struct job *job, int index, int ndim, const int64_t *shape,
                            bool is_fortran)
{
    struct side *side = &job->sides[index];
    struct pass *pass = &job->program.passes[index];

    set_array(&side->array, ndim, shape, is_fortran);
    side->n = 1;
    pass->ndim = ndim;
    pass->scanned_axis = -1;
    for (int i = 0; i < ndim; i++) {
        side->n *= (uint64_t)shape[i];
        pass->shape[i] = shape[i];
    }
    side->values = calloc(side->n + 1, sizeof(int64_t));
    pass->first_store = (uint16_t)index;
    pass->n_stores = 1;
    pass->inputs_used = index < 2 ? UINT64_C(1) << index : 0;
    job->program.stores[index].output = (uint16_t)(index < 2 ? index + 1 : 0);
    job->program.stores[index].src = (struct operand){index < 2 ? OPERAND_INPUT : OPERAND_REDUCED,
                                                      DTYPE_INT64, (uint16_t)(index % 2)};
    struct program_output *output = &job->outputs[index < 2 ? index + 1 : 0];
    output->dtype = DTYPE_INT64;
    output->ndim = ndim;
    memcpy(output->shape, shape, (size_t)ndim * sizeof(*shape));
}

static inline void set_input(struct job *job, int index)
{
    const struct array *array = &job->sides[index].array;

    job->args[index] = (struct request_arg){.array = *array};
    job->inputs[index] =
        (struct program_input){.arg = (uint16_t)index, .dtype = DTYPE_INT64, .ndim = array->ndim};
    memcpy(job->inputs[index].shape, array->shape, sizeof(array->shape));
    for (uint64_t i = 0; i < job->sides[index].n; i++)
        job->sides[index].values[i] = rand() % 7 - 3;
}

/* batches: C's, and which of them each operand has (bits; others are 1 long). */
struct shape {
    int64_t rows, columns, depth; /* rows, columns 0: a vector */
    int n_batch;
    int64_t batch[3];
    unsigned left_has, right_has;
    bool is_fortran[2];
    bool is_result_fortran; /* C is */
    bool is_symmetric;      /* right: left, transposed */
    bool is_float;          /* planned as float64: what moves are words of 8 bytes in any case */
};

static inline void job_init(struct job *job, const struct shape *s)
{
    int64_t left[5], right[5], result[5];
    int n = s->n_batch, n_left = n, n_right = n, n_result = n;

    memset(job, 0, sizeof(*job));
    for (int i = 0; i < n; i++) {
        result[i] = s->batch[i];
        left[i] = s->left_has >> i & 1 ? s->batch[i] : 1;
        right[i] = s->right_has >> i & 1 ? s->batch[i] : 1;
    }
    if (s->rows > 0)
        left[n_left++] = result[n_result++] = s->rows;
    left[n_left++] = right[n_right++] = s->depth;
    if (s->columns > 0)
        right[n_right++] = result[n_result++] = s->columns;
    set_side(job, 0, n_left, left, s->is_fortran[0]);
    set_side(job, 1, n_right, right, s->is_fortran[1]);
    set_side(job, 2, n_result, result, s->is_result_fortran);
    set_input(job, 0);
    set_input(job, 1);
    for (int64_t i = 0; s->is_symmetric && i < s->rows; i++)
        for (int64_t k = 0; k < s->depth; k++)
            job->sides[1].values[k * s->rows + i] = job->sides[0].values[i * s->depth + k];
    job->output = (struct request_output){.has_to = true, .to = job->sides[2].array};
    job->request = (struct job_request){
        .n_args = 2, .n_outputs = 1, .args = job->args, .outputs = &job->output};
    job->program.n_passes = PRODUCT_N_PASSES;
    job->program.n_inputs = 2;
    job->program.n_outputs = 1;
    job->program.n_all_outputs = 3;
    job->program.n_stores = 3;
    job->program.n_products = 1;
    job->program.products = &job->product;
    job->program.n_reductions = 1;
    job->program.reductions[0] =
        (struct reduction){.op = OP_MATMUL, .result = DTYPE_INT64, .pass = PRODUCT_RESULT};
    job->program.inputs = job->inputs;
    job->program.outputs = job->outputs;
    job->product = (struct program_product){.first_output = 1,
                                            .dtype = s->is_float ? DTYPE_FLOAT64 : DTYPE_INT64,
                                            .n_rows = s->rows > 0 ? s->rows : 1,
                                            .n_columns = s->columns > 0 ? s->columns : 1,
                                            .depth = s->depth,
                                            .has_rows = s->rows > 0,
                                            .has_columns = s->columns > 0,
                                            .n_batch_axes = n,
                                            .is_symmetric = s->is_symmetric};
    memcpy(job->product.batch_shape, s->batch, sizeof(s->batch));
    program_list_stages(&job->program);
}

static inline void job_deinit(struct job *job)
{
    for (int i = 0; i < 3; i++)
        free(job->sides[i].values);
}

/* Carrying it out ---------------------------------------------------------------------------- */

struct run {
    struct job *job;
    struct plan plan;
    char *carry;
    int64_t *journal; /* of a tile: as many values as C has, at C's places */
    uint64_t moved[PRODUCT_N_PASSES];
    uint64_t n_marks;
    unsigned *n_stored; /* of each element of C */
};

static inline uint64_t flat_index(const struct side *side, const int64_t *at)
{
    uint64_t flat = 0;

    for (int i = 0; i < side->array.ndim; i++)
        flat = flat * (uint64_t)side->array.shape[i] + (uint64_t)at[i];
    return flat;
}

static inline void do_box(struct run *run, const struct product_turn *turn, const int64_t *start,
                          const int64_t *count)
{
    struct side *side = &run->job->sides[turn->pass];
    int ndim = side->array.ndim;
    struct engine_view view;
    int64_t at[ARRAY_MAX_NDIM] = {0}, place[ARRAY_MAX_NDIM];
    uint64_t n = 1;

    if (turn->pass == PRODUCT_RESULT)
        product_result_view(&run->plan.products[0], start, run->carry, &view);
    else
        product_panel_view(&run->plan.products[0], turn, start, run->carry, &view);
    for (int i = 0; i < ndim; i++)
        n *= (uint64_t)count[i];
    run->moved[turn->pass] += turn->step == PRODUCT_APPLY ? 0 : n * 8;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t rest = k;
        char *p = view.base;
        for (int i = ndim - 1; i >= 0; i--) {
            at[i] = (int64_t)(rest % (uint64_t)count[i]);
            rest /= (uint64_t)count[i];
            place[i] = start[i] + at[i];
            p += at[i] * view.strides[i];
        }
        uint64_t flat = flat_index(side, place);
        if (turn->step == PRODUCT_LOAD)
            memcpy(p, &side->values[flat], 8);
        else if (turn->step == PRODUCT_STORE) {
            memcpy(run->plan.products[0].has_journal ? &run->journal[flat] : &side->values[flat], p,
                   8);
            run->n_stored[flat]++;
        } else
            side->values[flat] = run->journal[flat];
    }
}

static inline void do_grains(struct run *run, const struct product_turn *turn)
{
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];

    for (uint64_t i = 0; i < turn->n_grains; i++) {
        geometry_grain(&run->plan.passes[turn->pass].geometry,
                       product_grain(&run->plan.products[0], turn, i), start, count);
        do_box(run, turn, start, count);
    }
}

/* What lies between the ends of two rows of values. Unlike the ends it is not checked one by one by
 * sanitizers, which took most of these programs' time. */
__attribute__((no_sanitize("address", "undefined"), noinline, unused)) static int64_t
sum_between(const char *l, int64_t l_bytes, const char *r, int64_t r_bytes, int64_t n)
{
    int64_t sum = 0;

    for (int64_t k = 1; k < n - 1; k++)
        sum += *(const int64_t *)(l + k * l_bytes) * *(const int64_t *)(r + k * r_bytes);
    return sum;
}

static inline int64_t sum_of_products(const void *left, int64_t l_bytes, const void *right,
                                      int64_t r_bytes, int64_t n)
{
    const char *l = left, *r = right;
    int64_t sum = n > 0 ? *(const int64_t *)l * *(const int64_t *)r : 0;

    if (n > 1)
        sum +=
            *(const int64_t *)(l + (n - 1) * l_bytes) * *(const int64_t *)(r + (n - 1) * r_bytes);
    return sum + sum_between(l, l_bytes, r, r_bytes, n);
}

/* The values between the ends of a row of the result, of which each gets one product more. The same
 * sums in the order of memory, where the right operand's rows are rows there. */
__attribute__((no_sanitize("address", "undefined"), noinline, unused)) static void
add_between(char *c, int64_t c_bytes, int64_t value, const char *r, int64_t r_bytes, int64_t n)
{
    for (int64_t j = 1; j < n - 1; j++)
        *(int64_t *)(c + j * c_bytes) += value * *(const int64_t *)(r + j * r_bytes);
}

static inline void add_products(char *c, int64_t c_bytes, int64_t value, const char *r,
                                int64_t r_bytes, int64_t n)
{
    if (n > 0)
        *(int64_t *)c += value * *(const int64_t *)r;
    if (n > 1)
        *(int64_t *)(c + (n - 1) * c_bytes) += value * *(const int64_t *)(r + (n - 1) * r_bytes);
    add_between(c, c_bytes, value, r, r_bytes, n);
}

/* One row of a block. */
static inline void do_multiply_row(const struct product_turn *turn, char *c, int64_t c_bytes,
                                   const char *l, int64_t l_bytes, const struct product_matrix *r)
{
    bool is_by_rows = llabs(r->column_bytes) < llabs(r->row_bytes);

    for (int64_t j = 0; j < turn->n_columns; j++) {
        int64_t *to = (int64_t *)(c + j * c_bytes);
        *to = turn->is_first ? 0 : *to;
        if (!is_by_rows)
            *to += sum_of_products(l, l_bytes, r->base + j * r->column_bytes, r->row_bytes,
                                   turn->n_depth);
    }
    for (int64_t k = 0; is_by_rows && k < turn->n_depth; k++)
        add_products(c, c_bytes, *(const int64_t *)(l + k * l_bytes), r->base + k * r->row_bytes,
                     r->column_bytes, turn->n_columns);
}

static inline void do_multiply(struct run *run, const struct product_turn *turn)
{
    for (int64_t m = 0; m < turn->n_matrices; m++) {
        struct product_matrix l, r, c;
        product_block(&run->plan.products[0], turn, m, run->carry, &l, &r, &c);
        for (int64_t i = 0; i < turn->n_rows; i++) {
            char *row = c.base + i * c.row_bytes;
            do_multiply_row(turn, row, c.column_bytes, l.base + i * l.row_bytes, l.column_bytes,
                            &r);
            for (int64_t j = i + 1; turn->is_mirrored && j < turn->n_columns; j++)
                *(int64_t *)(row + j * c.column_bytes) = -1;
        }
    }
    if (turn->is_mirrored)
        product_mirror(&run->plan.products[0], turn, run->carry);
}

static inline void do_turn(struct run *run, uint64_t index)
{
    struct product_turn turn;

    product_turn(&run->plan.products[0], index, &turn);
    if (turn.is_empty)
        return;
    if (turn.step == PRODUCT_MULTIPLY)
        do_multiply(run, &turn);
    else if (turn.step == PRODUCT_MARK)
        run->n_marks++;
    else
        do_grains(run, &turn);
}

/* Turns begin in order, each as soon as it may or later, and take effect as they end. */
static inline void do_all(struct run *run)
{
    uint64_t begun = 0, ran[MAX_RAN], low = 0; /* all below `low` are done */
    unsigned n_ran = 0;

    while (begun < run->plan.products[0].n_turns || n_ran > 0) {
        bool may = begun < run->plan.products[0].n_turns && n_ran < MAX_RAN;
        low = begun;
        for (unsigned i = 0; i < n_ran; i++)
            low = min_u64(low, ran[i]);
        uint64_t needs = may ? product_needs(&run->plan.products[0], begun) : 0;
        cr_assert(le(u64, needs, begun));
        cr_assert(le(u64, begun - needs, may ? 192 : begun));
        if (may && needs <= low && (n_ran == 0 || rand() % 4 > 0)) {
            ran[n_ran++] = begun++;
            continue;
        }
        cr_assert(lt(u32, 0, n_ran), "turn %llu waits for itself", (unsigned long long)begun);
        unsigned which = (unsigned)rand() % n_ran;
        do_turn(run, ran[which]);
        ran[which] = ran[--n_ran];
    }
}

/* An operand's values from one place on along the depth; *at has C's batch axes. */
static const int64_t *operand_at(const struct side *side, const int64_t *batch, int n_batch,
                                 int outer_axis, int64_t outer)
{
    int64_t at[ARRAY_MAX_NDIM] = {0};

    for (int i = 0; i < n_batch; i++)
        at[i] = side->array.shape[i] == 1 ? 0 : batch[i];
    if (outer_axis >= 0)
        at[outer_axis] = outer;
    return &side->values[flat_index(side, at)];
}

/* Columns of the right operand's matrix one after the other, as they are read. */
static inline void turn_columns(const int64_t *right, int64_t depth, int64_t n_columns, int64_t *to)
{
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < n_columns; j++)
            to[j * depth + k] = right[k * n_columns + j];
}

static inline void check_result(const struct run *run, const struct shape *s)
{
    const struct side *c = &run->job->sides[2];
    const int64_t n_columns = s->columns > 0 ? s->columns : 1;
    int64_t *columns = malloc(sizeof(*columns) * (size_t)(s->depth * n_columns + 1));

    for (uint64_t flat = 0; flat < c->n; flat++) {
        int64_t at[ARRAY_MAX_NDIM] = {0};
        uint64_t rest = flat;
        for (int i = c->array.ndim - 1; i >= 0; i--) {
            at[i] = (int64_t)(rest % (uint64_t)c->array.shape[i]);
            rest /= (uint64_t)c->array.shape[i];
        }
        int64_t row = s->rows > 0 ? at[s->n_batch] : 0;
        int64_t column = s->columns > 0 ? at[s->n_batch + (s->rows > 0)] : 0;
        const struct side *sides = run->job->sides;
        const int64_t *l =
            operand_at(&sides[0], at, s->n_batch, s->rows > 0 ? s->n_batch : -1, row);
        if (row == 0 && column == 0)
            turn_columns(operand_at(&sides[1], at, s->n_batch, -1, 0), s->depth, n_columns,
                         columns);
        int64_t wanted = sum_of_products(l, 8, columns + column * s->depth, 8, s->depth);
        bool is_right = c->values[flat] == wanted && run->n_stored[flat] == 1;
        cr_assert(is_right, "element %llu", (unsigned long long)flat);
    }
    free(columns);
}

static inline struct plan_limits limits_of(uint64_t carry_bytes)
{
    return (struct plan_limits){.engine = &plan_cpu,
                                .pool_bytes = 64 * MIB,
                                .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                .carry_limit_bytes = carry_bytes,
                                .n_threads = 2};
}

static inline void run_init(struct run *run, struct job *job, const struct plan_limits *limits)
{
    struct gad_error error = {.message = ""};

    memset(run, 0, sizeof(*run));
    run->job = job;
    int r = plan_make(&job->request, &job->program, false, limits, &run->plan, &error);
    cr_assert(eq(i32, r, 0), "%s", error.message);
    cr_assert(le(u64, run->plan.carry_bytes, limits->carry_limit_bytes));
    uint64_t n_bytes = run->plan.carry_bytes;
    if (limits->engine->has_link) {
        cr_assert(eq(u64, n_bytes, 0)); /* all of it is the device's */
        n_bytes = run->plan.device_carry_bytes;
        cr_assert(
            le(u64, n_bytes, max_u64(limits->carry_limit_bytes, limits->product_carry_bytes)));
    }
    run->carry = malloc(n_bytes + 1);
    memset(run->carry, 0x5a, n_bytes);
    run->journal = calloc(job->sides[2].n + 1, sizeof(int64_t));
    run->n_stored = calloc(job->sides[2].n + 1, sizeof(unsigned));
}

static inline void run_deinit(struct run *run)
{
    free(run->carry);
    free(run->journal);
    free(run->n_stored);
}

static inline void check_limits(const struct shape *s, const struct plan_limits *limits,
                                bool has_journal)
{
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));

    job_init(job, s);
    job->request.has_journal = has_journal;
    run_init(run, job, limits);
    do_all(run);
    check_result(run, s);
    cr_assert(eq(u64, run->moved[0], run->plan.products[0].left_bytes));
    cr_assert(eq(u64, run->moved[1], run->plan.products[0].right_bytes));
    cr_assert(eq(u64, run->moved[0] + run->moved[1], run->plan.read_bytes));
    cr_assert(eq(u64, run->moved[2], run->plan.write_bytes));
    cr_assert(eq(u64, run->n_marks, has_journal ? 2 * run->plan.products[0].n_tiles : 0));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
}

static inline void check_shape(const struct shape *s, uint64_t carry_bytes, bool has_journal)
{
    const struct plan_limits limits = limits_of(carry_bytes);

    check_limits(s, &limits, has_journal);
}

/* Everything below a tile was done before, in another run. */
static inline void check_resumed(const struct shape *s, uint64_t carry_bytes, uint64_t first_tile,
                                 bool is_redone)
{
    struct job *job = malloc(sizeof(*job));
    struct run *first = malloc(sizeof(*first)), *run = malloc(sizeof(*run));
    const struct plan_limits limits = limits_of(carry_bytes);

    job_init(job, s);
    job->request.has_journal = true;
    run_init(first, job, &limits);
    uint64_t n_of_tile = 0, n_marks = 0;
    struct product_turn turn;
    for (; n_marks < 2 * first_tile - is_redone; n_of_tile++) {
        product_turn(&first->plan.products[0], n_of_tile, &turn);
        n_marks += turn.step == PRODUCT_MARK;
    }
    for (uint64_t i = 0; i < n_of_tile; i++) /* in order: as far as that */
        do_turn(first, i);
    run_init(run, job, &limits);
    product_resume(&run->plan.products[0], first_tile, is_redone);
    memcpy(run->journal, first->journal, job->sides[2].n * sizeof(int64_t));
    memcpy(run->n_stored, first->n_stored, job->sides[2].n * sizeof(unsigned));
    do_all(run);
    check_result(run, s);
    cr_assert(eq(u64, run->n_marks, 2 * run->plan.products[0].n_tiles - n_marks));
    run_deinit(run);
    run_deinit(first);
    job_deinit(job);
    free(run);
    free(first);
    free(job);
}
