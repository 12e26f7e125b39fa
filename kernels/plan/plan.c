/* The plan of a job. Pure code: the broker runs it at submission to admit or refuse, the worker
 * again to carry out; the same input gives the same plan.
 *
 * Per pass: the geometry (which alone decides the bits of the results), how many grains make a
 * tile (tiles.c), what is read and written, where the tree of its reductions lies in the carry. Of
 * the pool a job needs a slot (lent for a turn, or while a tile is with a device) when an operand
 * is a file or the engine has a device, and the carry (for its life). At last, how long it would
 * take (estimate.c).
 *
 * A tile is the unit of turns, of cancelling and of time measured.
 *
 * All numbers come from a client: counts of elements and bytes are multiplied with checks.
 */
#include "kernels/cuda/tile.h"
#include "kernels/plan/planner.h"
#include "kernels/reduce.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>

#define CARRY_ALIGN_BYTES 64
#define SMALL_MAX_BYTES   (256u * 1024)
#define SMALL_MAX_WORK    (UINT64_C(1) << 20)

static void add_input(struct planner *p, const struct program_input *input)
{
    const struct array *array = &p->request->args[input->arg].array;
    bool is_grid = array->at.kind == LOCATION_FILE && array->at.file.is_grid;

    assert(input->arg < p->request->n_args && array->ndim == input->ndim);
    p->operands[p->n_operands++] = (struct planned_operand){
        .shape = {.dtype = input->dtype,
                  .ndim = input->ndim,
                  .shape = input->shape,
                  .strides = array->strides,
                  .chunk_shape = is_grid ? array->at.file.chunk_shape : NULL},
        .kind = array->at.kind,
    };
}

static void add_output(struct planner *p, unsigned index)
{
    const struct program_output *output = &p->program->outputs[index];
    const struct request_output *wanted = &p->request->outputs[index];

    assert(!wanted->has_to || wanted->to.ndim == output->ndim);
    p->operands[p->n_operands++] = (struct planned_operand){
        .shape = {.dtype = output->dtype,
                  .ndim = output->ndim,
                  .shape = output->shape,
                  .strides = wanted->has_to ? wanted->to.strides : NULL,
                  .is_output = true},
        .kind = wanted->has_to ? wanted->to.at.kind : LOCATION_NONE,
    };
}

static void collect_operands(struct planner *p, const struct pass *pass)
{
    p->n_operands = 0;
    for (unsigned i = 0; i < p->program->n_inputs; i++) {
        if (pass->inputs_used >> i & 1)
            add_input(p, &p->program->inputs[i]);
    }
    for (unsigned i = 0; i < pass->n_stores; i++)
        add_output(p, p->program->stores[pass->first_store + i].output);
}

static int check_space(const struct planner *p, const struct pass *pass, int64_t *ret_n_elements)
{
    int64_t n_elements = 1;
    char text[256];

    for (int i = 0; i < pass->ndim; i++) {
        if (pass->shape[i] == 0) {
            *ret_n_elements = 0;
            return 0;
        }
    }
    for (int i = 0; i < pass->ndim; i++) {
        if (mul_overflows_i64(n_elements, pass->shape[i], &n_elements)) {
            array_format_shape(pass->ndim, pass->shape, text, sizeof(text));
            error_set(p->error, GAD_BAD_SHAPE, "shape",
                      "broadcasting makes the shape %.200s, more elements than 63 bits count",
                      text);
            error_expected(p->error, "at most %" PRId64 " elements", INT64_MAX);
            error_found(p->error, "shape %.100s", text);
            return GAD_BAD_SHAPE;
        }
    }
    *ret_n_elements = n_elements;
    return 0;
}

static bool is_in_memory(enum location_kind kind)
{
    return kind == LOCATION_NONE || kind == LOCATION_INLINE || kind == LOCATION_REGION;
}

/* The bytes of an operand's boxes over all grains, and of them what is read or written where it
 * lies; false when 63 bits do not count them. */
static bool moved_bytes(const struct geometry *g, const struct planned_operand *operand,
                        uint64_t *ret_boxes, uint64_t *ret_bytes)
{
    int64_t once = (int64_t)dtype_size(operand->shape.dtype), moved = once;

    for (int i = 0; i < g->ndim; i++) {
        int own = i - (g->ndim - operand->shape.ndim);
        int64_t length = own >= 0 ? operand->shape.shape[own] : 1;
        if (mul_overflows_i64(moved, length == 1 ? g->grid[i] : length, &moved) ||
            mul_overflows_i64(once, length, &once))
            return false;
    }
    bool is_kept = is_in_memory(operand->kind) && once <= GRAIN_MAX_OPERAND_BYTES;
    *ret_boxes = (uint64_t)moved;
    *ret_bytes = (uint64_t)(is_kept && g->n_grains > 0 ? once : moved);
    return true;
}

static bool add_checked(uint64_t *sum, uint64_t value)
{
    return !__builtin_add_overflow(*sum, value, sum) && *sum <= INT64_MAX;
}

static void add_traffic(struct planned_traffic *traffic, const struct planned_operand *operand,
                        uint64_t n_bytes, uint64_t n_box_bytes)
{
    bool is_file = !is_in_memory(operand->kind);
    *(is_file ? &traffic->file : &traffic->memory) += (double)n_bytes;
    *(is_file ? &traffic->staged_file : &traffic->staged_memory) += (double)n_box_bytes;
    *(operand->shape.is_output ? &traffic->from_device : &traffic->to_device) +=
        (double)n_box_bytes;
}

static int count_bytes(struct planner *p, unsigned index)
{
    struct plan_pass *pass = &p->plan->passes[index];
    for (unsigned i = 0; i < p->n_operands; i++) {
        const struct planned_operand *operand = &p->operands[i];
        bool is_output = operand->shape.is_output;
        uint64_t n_bytes, n_box_bytes;
        if (moved_bytes(&pass->geometry, operand, &n_box_bytes, &n_bytes) &&
            add_checked(is_output ? &pass->write_bytes : &pass->read_bytes, n_bytes) &&
            add_checked(is_output ? &p->plan->write_bytes : &p->plan->read_bytes, n_bytes)) {
            add_traffic(&p->traffic[index], operand, n_bytes, n_box_bytes);
            continue;
        }
        error_set(p->error, GAD_LIMIT_EXCEEDED, "shape",
                  "the job would move more bytes than 63 bits count");
        error_expected(p->error, "at most %" PRId64 " bytes", INT64_MAX);
        return GAD_LIMIT_EXCEEDED;
    }
    return 0;
}

static int plan_pass(struct planner *p, unsigned index)
{
    const struct pass *pass = &p->program->passes[index];
    struct plan_pass *planned = &p->plan->passes[index];
    struct geometry_operand operands[PLANNER_MAX_OPERANDS];
    int64_t n_elements;
    bool has_provider = false;

    collect_operands(p, pass);
    int r = check_space(p, pass, &n_elements);
    if (r != 0)
        return r;
    for (unsigned i = 0; i < p->n_operands; i++) {
        operands[i] = p->operands[i].shape;
        planned->needs_slot |= p->operands[i].kind == LOCATION_FILE;
        has_provider |= p->operands[i].kind == LOCATION_PROVIDER;
    }
    geometry_init(&planned->geometry, pass->ndim, pass->shape, p->n_operands, operands);
    planned->needs_slot |= p->limits->is_device;
    planned->needs_slot &= n_elements > 0;
    if (n_elements > 0) {
        r = count_bytes(p, index);
        if (r != 0)
            return r;
    }
    planner_choose_tiles(p, index, has_provider);
    if (add_checked(&p->plan->n_tiles, planned->n_tiles)) {
        p->work += (double)n_elements * (double)planner_work_per_element(pass);
        return 0;
    }
    return error_set(p->error, GAD_LIMIT_EXCEEDED, "shape", "the job would have too many tiles");
}

static void plan_carry(struct planner *p)
{
    uint64_t offset = 0;

    if (p->program->n_reductions == 0)
        return;
    for (unsigned i = 0; i < p->program->n_passes; i++) {
        unsigned n_reductions = p->program->passes[i].n_reductions;
        if (n_reductions == 0)
            continue;
        p->plan->passes[i].carry_offset_bytes = offset;
        offset += round_up_u64(reduce_tree_size_bytes(n_reductions), CARRY_ALIGN_BYTES);
    }
    p->plan->results_offset_bytes = offset;
    p->plan->carry_bytes =
        offset + round_up_u64(p->program->n_reductions * sizeof(struct partial), CARRY_ALIGN_BYTES);
}

static int refuse(struct gad_error *error, uint64_t needed, uint64_t there, const char *what)
{
    error_set(error, GAD_TOO_LARGE_FOR_POOL, "pool",
              "the job needs %" PRIu64 " bytes of the pool for %s, there are %" PRIu64, needed,
              what, there);
    error_expected(error, "%" PRIu64 " bytes", needed);
    error_found(error, "%" PRIu64 " bytes", there);
    return GAD_TOO_LARGE_FOR_POOL;
}

/* What the slot of a tile must hold: one grain, whatever it is made of; for a device, of this very
 * pass. */
static uint64_t least_slot_bytes(const struct planner *p, unsigned index)
{
    const struct plan_pass *pass = &p->plan->passes[index];
    if (!p->limits->is_device)
        return GRAIN_MAX_TOTAL_BYTES;
    return cuda_tile_need_bytes(p->program, index, 1, pass->grain_input_bytes,
                                pass->grain_output_bytes);
}

static int check_slots(const struct planner *p)
{
    const struct plan_limits *limits = p->limits;

    for (unsigned i = 0; i < p->plan->n_passes; i++) {
        if (!p->plan->passes[i].needs_slot)
            continue;
        uint64_t least_bytes = least_slot_bytes(p, i);
        uint64_t slot_bytes = max_u64(limits->slot_bytes, least_bytes);
        if (limits->is_device && least_bytes > limits->slot_bytes)
            return refuse(p->error, least_bytes, limits->slot_bytes, "one grain in a slot");
        if (limits->pool_bytes < slot_bytes)
            return refuse(p->error, slot_bytes, limits->pool_bytes, "one slot");
        /* The carry may lie where the only slot is. */
        if (p->plan->carry_bytes > 0 && limits->pool_bytes / 2 < slot_bytes)
            return refuse(p->error, 2 * slot_bytes, limits->pool_bytes,
                          "a slot beside partial results");
    }
    return 0;
}

static int check_pool(const struct planner *p)
{
    const struct plan_limits *limits = p->limits;
    int r = check_slots(p);
    if (r != 0)
        return r;
    if (p->plan->carry_bytes > limits->carry_limit_bytes)
        return refuse(p->error, p->plan->carry_bytes, limits->carry_limit_bytes, "partial results");
    return 0;
}

static bool is_small(const struct planner *p)
{
    const struct plan *plan = p->plan;

    for (unsigned i = 0; i < plan->n_passes; i++) {
        if (plan->passes[i].n_tiles > 1)
            return false;
    }
    for (unsigned i = 0; i < p->program->n_inputs; i++) {
        if (!is_in_memory(p->request->args[p->program->inputs[i].arg].array.at.kind))
            return false;
    }
    for (unsigned i = 0; i < p->program->n_outputs; i++) {
        const struct request_output *output = &p->request->outputs[i];
        if (output->has_to && !is_in_memory(output->to.at.kind))
            return false;
    }
    return plan->read_bytes <= SMALL_MAX_BYTES &&
           plan->write_bytes <= SMALL_MAX_BYTES - plan->read_bytes && p->work <= SMALL_MAX_WORK;
}

/* NumPy's order 'K' in its simple cases: the sources with as many axes as the result are in Fortran
 * order; those that are in both orders have no say. */
static bool is_fortran_order(const struct planner *p)
{
    int ndim = 0;
    bool has_fortran = false;

    for (unsigned i = 0; i < p->program->n_outputs; i++) {
        if (p->program->outputs[i].ndim > ndim)
            ndim = p->program->outputs[i].ndim;
    }
    if (ndim < 2)
        return false;
    for (unsigned i = 0; i < p->program->n_inputs; i++) {
        const struct array *array = &p->request->args[p->program->inputs[i].arg].array;
        bool is_c = array_is_c_contiguous(array), is_f = array_is_f_contiguous(array);
        if (array->ndim != ndim || (is_c && is_f))
            continue;
        if (!is_f || (array->at.kind == LOCATION_FILE && array->at.file.is_grid))
            return false;
        has_fortran = true;
    }
    return has_fortran;
}

int plan_make(const struct job_request *request, const struct program *program, bool in_place,
              const struct plan_limits *limits, struct plan *ret_plan, struct gad_error *error)
{
    struct plan plan = {.n_passes = program->n_passes, .is_restartable = !in_place};
    struct planner planner = {
        .request = request, .program = program, .limits = limits, .plan = &plan, .error = error};

    assert(program->n_passes <= PROGRAM_MAX_PASSES && program->n_outputs == request->n_outputs);
    for (unsigned i = 0; i < program->n_passes; i++) {
        int r = plan_pass(&planner, i);
        if (r != 0)
            return r;
    }
    plan_carry(&planner);
    int r = check_pool(&planner);
    if (r != 0)
        return r;
    planner_estimate(&planner);
    plan.is_small = is_small(&planner);
    plan.is_fortran_order = is_fortran_order(&planner);
    *ret_plan = plan;
    return 0;
}

void plan_tile_grains(const struct plan_pass *pass, uint64_t tile, uint64_t *ret_first,
                      uint64_t *ret_n)
{
    assert(tile < pass->n_tiles);
    *ret_first = tile << pass->tile_log2;
    *ret_n = min_u64(UINT64_C(1) << pass->tile_log2, pass->geometry.n_grains - *ret_first);
}
