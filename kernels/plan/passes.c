/* One pass: its operands, its geometry, its tiles, the bytes that it moves.
 *
 * The geometry alone decides the bits of the results: it is made from the whole arrays' shapes,
 * dtypes and layouts. Beside the operands of the job a grain has room for two kinds of others,
 * whatever the engine, so that all engines have the same grains: results of earlier passes, which a
 * device copies to its slot (but those of products, which it has), and values that a device
 * computes there before it reduces them.
 *
 * Nodes are made smaller, by halves, until those of the pass fit what the carry has for them.
 *
 * All numbers come from a client: counts of elements and bytes are multiplied with checks. Called
 * by carry.c.
 */
#include "kernels/grains/cutter.h"
#include "kernels/neighbours.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define DECODED_BYTES (INT64_C(48) << 20) /* our library keeps up to 64 MiB */
#define CLOSE_SHARE   4                   /* nodes so many times too large may fit after one step */
#define MAX_RESULTS   (PASS_MAX_RESULTS + PASS_MAX_REDUCTIONS)
#define MAX_GEOMETRY_OPERANDS                                                                      \
    (PLANNER_MAX_OPERANDS + MAX_RESULTS + PROGRAM_MAX_REDUCTIONS + REACH_MAX_STATES +              \
     PLANNER_MAX_WINDOW_GRIDS)

_Static_assert(MAX_GEOMETRY_OPERANDS <= CUTTER_MAX_OPERANDS, "the cutter takes them all");
/* Of a column, for groups of reflections: the more, the fewer columns are in a group. */
#define QR_GROUP_BYTES   (2 * 16 * sizeof(double))
#define QR_GROUP_COLUMNS 512

_Static_assert(PROGRAM_MAX_KTH_BYTES <= GRAIN_MAX_TOTAL_BYTES &&
                   PROGRAM_MAX_KTH_ELEMENTS * sizeof(union scalar) <= ENGINE_MAX_KEY_BYTES,
               "a cell's elements fit a grain");

struct operand_list {
    unsigned n;
    struct geometry_operand operands[MAX_GEOMETRY_OPERANDS];
    unsigned n_shapes;
    int64_t shapes[MAX_RESULTS][ARRAY_MAX_NDIM]; /* of results */
    int64_t reach[PROGRAM_MAX_REPEATS][ARRAY_MAX_NDIM];
    struct planner_windows windows;
};

/* Whether the chunks that rows in C order go through, one after the other, are more than a client
 * keeps of what it has decoded: all that the first axis with several elements has at a time. */
static bool is_slab_large(const struct array *array, const int64_t *chunk_shape)
{
    int64_t n_bytes = (int64_t)dtype_size(array->dtype);
    bool has_walk = false;

    for (int i = 0; i < array->ndim; i++) {
        int64_t length = array->shape[i], chunk = chunk_shape[i] < length ? chunk_shape[i] : length;
        bool is_walk = !has_walk && length > 1;
        has_walk |= is_walk;
        n_bytes = mul_saturating_i64(n_bytes, is_walk ? chunk : length);
    }
    return n_bytes > DECODED_BYTES;
}

/* A provider's chunks are not the grain's business where every element is asked for once anyway,
 * and the client still has the chunk then. */
static const int64_t *chunk_shape_of(const struct array *array, const struct pass *pass)
{
    const int64_t *chunk_shape = array_chunk_shape(array);

    if (chunk_shape && array->at.kind == LOCATION_PROVIDER && !pass->reduced_axes &&
        !is_slab_large(array, chunk_shape))
        return NULL;
    return chunk_shape;
}

static void add_input(struct planner *p, const struct pass *pass, const struct program_input *input)
{
    const struct array *array = &p->request->args[input->arg].array;

    assert(input->arg < p->request->n_args && array->ndim == input->ndim);
    p->operands[p->n_operands++] = (struct planned_operand){
        .shape = {.dtype = input->dtype,
                  .ndim = input->ndim,
                  .shape = input->shape,
                  .strides = array->strides,
                  .chunk_shape = chunk_shape_of(array, pass),
                  .is_decoded = array->at.kind == LOCATION_PROVIDER},
        .kind = array->at.kind,
        .most_grains = planner_ring_grains(p, &array->at, false),
    };
}

static const int64_t *exchange_last(int ndim, const int64_t *of, int64_t *ret)
{
    if (!of)
        return NULL;
    memcpy(ret, of, (size_t)ndim * sizeof(*ret));
    ret[ndim - 2] = of[ndim - 1];
    ret[ndim - 1] = of[ndim - 2];
    return ret;
}

/* The shape is so already. */
static void transpose_last(struct planned_operand *operand)
{
    struct geometry_operand *shape = &operand->shape;

    assert(shape->ndim >= 2);
    shape->strides = exchange_last(shape->ndim, shape->strides, operand->strides);
    shape->chunk_shape = exchange_last(shape->ndim, shape->chunk_shape, operand->chunk_shape);
}

/* Where axes are reduced, extents follow from layouts alone, wherever the output lies. */
static void add_output(struct planner *p, const struct pass *pass, unsigned index)
{
    const struct program_output *output = &p->program->outputs[index];
    const struct request_output *wanted = &p->request->outputs[index];

    assert(!wanted->has_to || wanted->to.ndim == output->ndim);
    p->operands[p->n_operands++] = (struct planned_operand){
        .shape = {.dtype = output->dtype,
                  .ndim = output->ndim,
                  .shape = output->shape,
                  .strides = wanted->has_to ? wanted->to.strides : NULL,
                  .is_output = true,
                  .wants_runs = pass->reduced_axes != 0 ||
                                (wanted->has_to && wanted->to.at.kind == LOCATION_FILE)},
        .kind = wanted->has_to ? wanted->to.at.kind : LOCATION_NONE,
        .most_grains = wanted->has_to ? planner_ring_grains(p, &wanted->to.at, true) : UINT64_MAX,
    };
}

void planner_collect_operands(struct planner *p, const struct pass *pass)
{
    p->n_operands = 0;
    for (unsigned i = 0; i < p->program->n_inputs; i++) {
        if (!(pass->inputs_used >> i & 1))
            continue;
        add_input(p, pass, &p->program->inputs[i]);
        struct planned_operand *operand = &p->operands[p->n_operands - 1];
        if (neighbours_reach(p->program, pass, i, operand->reach))
            operand->shape.reach = operand->reach;
        if (pass->repeats)
            planner_add_reach(p, pass, i, operand);
        if (p->program->inputs[i].is_transposed)
            transpose_last(&p->operands[p->n_operands - 1]);
    }
    for (unsigned i = 0; i < pass->n_stores; i++) {
        unsigned output = p->program->stores[pass->first_store + i].output;
        if (output < p->program->n_outputs) /* else it is of a product */
            add_output(p, pass, output);
    }
}

unsigned planner_list_results(const struct planner *p, uint64_t results,
                              int64_t (*ret_shapes)[ARRAY_MAX_NDIM],
                              struct geometry_operand *ret_operands)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->program->n_reductions; i++) {
        if (!(results >> i & 1) || program_is_uniform(p->program, i))
            continue;
        ret_operands[n] = (struct geometry_operand){
            .dtype = (enum dtype)p->program->reductions[i].result,
            .ndim = program_reduction_shape(p->program, i, ret_shapes[n]),
            .shape = ret_shapes[n],
            .is_internal = true,
        };
        n++;
    }
    return n;
}

static void list_results(const struct planner *p, uint64_t results, struct operand_list *list)
{
    unsigned n =
        planner_list_results(p, results, list->shapes + list->n_shapes, list->operands + list->n);
    list->n += n;
    list->n_shapes += n;
}

/* The states of a scan are read and written beside what it scans. */
static void list_states(const struct planner *p, const struct pass *pass, struct operand_list *list)
{
    for (unsigned i = 0; pass->scanned_axis >= 0 && i < pass->n_reductions; i++) {
        int64_t *shape = list->shapes[list->n_shapes++];
        memcpy(shape, pass->shape, (size_t)pass->ndim * sizeof(*shape));
        shape[pass->scanned_axis] = 1;
        list->operands[list->n++] = (struct geometry_operand){
            .dtype = (enum dtype)p->program->reductions[pass->first_reduction + i].result,
            .ndim = pass->ndim,
            .shape = shape,
            .is_internal = true,
        };
    }
}

static void list_values(const struct planner *p, unsigned index, struct operand_list *list)
{
    const struct pass *pass = &p->program->passes[index];
    enum dtype dtypes[PASS_MAX_VALUES];
    unsigned n = program_values(p->program, index, dtypes);

    for (unsigned i = 0; i < n; i++)
        list->operands[list->n++] = (struct geometry_operand){
            .dtype = dtypes[i], .ndim = pass->ndim, .shape = pass->shape, .is_internal = true};
}

int planner_check_space(const struct planner *p, const struct pass *pass)
{
    int64_t n_elements = 1;
    char text[256];

    for (int i = 0; i < pass->ndim; i++) {
        if (pass->shape[i] == 0)
            return 0;
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
    return 0;
}

bool planner_is_in_memory(enum location_kind kind)
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
    bool is_kept = planner_is_in_memory(operand->kind) && once <= GRAIN_MAX_OPERAND_BYTES;
    *ret_boxes = (uint64_t)moved;
    *ret_bytes = (uint64_t)(is_kept && g->n_grains > 0 ? once : moved);
    return true;
}

bool planner_add_checked(uint64_t *sum, uint64_t value)
{
    return !__builtin_add_overflow(*sum, value, sum) && *sum <= INT64_MAX;
}

static void add_traffic(struct planned_traffic *traffic, const struct planned_operand *operand,
                        uint64_t n_bytes, uint64_t n_box_bytes)
{
    bool is_file = !planner_is_in_memory(operand->kind);
    *(is_file ? &traffic->file : &traffic->memory) += (double)n_bytes;
    *(is_file ? &traffic->staged_file : &traffic->staged_memory) += (double)n_box_bytes;
    if (operand->kind == LOCATION_FILE && !operand->shape.is_output) {
        traffic->read += (double)n_bytes;
        traffic->staged_read += (double)n_box_bytes;
    }
    *(operand->shape.is_output ? &traffic->from_device : &traffic->to_device) +=
        (double)n_box_bytes;
}

int planner_refuse_bytes(const struct planner *p)
{
    error_set(p->error, GAD_LIMIT_EXCEEDED, "shape",
              "the job would move more bytes than 63 bits count");
    error_expected(p->error, "at most %" PRId64 " bytes", INT64_MAX);
    return GAD_LIMIT_EXCEEDED;
}

int planner_count_bytes(struct planner *p, unsigned index, bool counts_boxes)
{
    struct plan_pass *planned = &p->plan->passes[index];

    p->traffic[index] = (struct planned_traffic){.memory = 0};
    for (unsigned i = 0; i < p->n_operands; i++) {
        const struct planned_operand *operand = &p->operands[i];
        uint64_t *sum = operand->shape.is_output ? &planned->write_bytes : &planned->read_bytes;
        uint64_t n_bytes, n_box_bytes;
        if (!moved_bytes(&planned->geometry, operand, &n_box_bytes, &n_bytes) ||
            !planner_add_checked(sum, counts_boxes ? n_box_bytes : n_bytes))
            return planner_refuse_bytes(p);
        n_bytes = counts_boxes ? n_box_bytes : n_bytes;
        add_traffic(&p->traffic[index], operand, n_bytes, n_box_bytes);
    }
    return 0;
}

uint64_t planner_box_bytes(const struct geometry *g, const struct geometry_operand *operand)
{
    uint64_t n_bytes = dtype_size(operand->dtype); /* a grain has at most 2^18 elements */
    for (int i = 0; i < operand->ndim; i++) {
        int64_t count = g->grain_shape[g->ndim - operand->ndim + i];
        count += operand->reach ? operand->reach[i] : 0;
        n_bytes *= (uint64_t)(operand->shape[i] < count ? operand->shape[i] : count);
    }
    return round_up_u64(n_bytes, ENGINE_SLOT_ALIGN);
}

/* In the list: what is copied, what repeats keep, others, what windows keep. */
static void measure_grain(struct plan_pass *planned, const struct operand_list *list,
                          unsigned n_copied, unsigned n_states, unsigned n_windows)
{
    const struct geometry *g = &planned->geometry;
    struct engine_room room = {.n_elements = 1, .n_cells = geometry_n_cells(g, g->grain_shape)};

    for (int i = 0; i < g->ndim; i++)
        room.n_elements *= (uint64_t)g->grain_shape[i];
    for (unsigned i = 0; i < n_copied; i++) {
        uint64_t n_bytes = planner_box_bytes(g, &list->operands[i]);
        *(list->operands[i].is_output ? &room.output_bytes : &room.input_bytes) += n_bytes;
    }
    for (unsigned i = 0; i < n_states; i++)
        room.made_bytes += planner_box_bytes(g, &list->operands[n_copied + i]);
    for (unsigned i = 0; i < n_windows; i++)
        room.made_bytes += planner_box_bytes(g, &list->operands[list->n - n_windows + i]);
    planned->room = room;
}

/* An engine that fills slots makes nodes there. What does not fit there with one cell, never does:
 * refused by plan.c. */
static bool nodes_fit_slot(const struct planner *p, unsigned index, uint64_t max_cells)
{
    const struct plan_pass *planned = &p->plan->passes[index];

    if (!p->limits->engine->fills_slots || !planner_has_nodes(&p->program->passes[index]) ||
        max_cells <= 1 || planned->geometry.n_grains == 0)
        return true;
    return p->limits->engine->slot_need_bytes(p->program, index, 1, &planned->room) <=
           p->limits->slot_bytes;
}

/* A provider's slots hold GRAIN_MAX_OPERAND_BYTES, and who fills slots wants many small grains. */
static uint64_t long_bytes_of(const struct planner *p)
{
    for (unsigned i = 0; i < p->n_operands; i++)
        if (p->operands[i].kind == LOCATION_PROVIDER)
            return 0;
    return p->limits->engine->fills_slots ? GRAIN_MAX_TOTAL_BYTES
                                          : max_u64(p->limits->slot_bytes, GRAIN_MAX_TOTAL_BYTES);
}

/* Whether what lies around a grain is read with it, and not where it lies. */
static bool copies_boxes(const struct planner *p)
{
    bool has_slots = p->limits->engine->fills_slots;

    for (unsigned i = 0; i < p->n_operands; i++)
        if (p->operands[i].shape.reach && (has_slots || !planner_is_in_memory(p->operands[i].kind)))
            return true;
    return false;
}

/* Of a pass with KTHs, whose keys the CPU's engine keeps beside the node. */
static int64_t whole_elements_of(const struct program *program, const struct pass *pass)
{
    const struct reduction *first = &program->reductions[pass->first_reduction];

    if (pass->n_reductions == 0 || first->op != OP_KTH)
        return 0;
    return ENGINE_MAX_KEY_BYTES / (int64_t)dtype_size((enum dtype)first->src.dtype);
}

/* Of a pass with QR_Rs. */
static int64_t most_rows_of(const struct program *program, const struct pass *pass)
{
    uint64_t n = program_qr_columns(program, pass), line_bytes = PROGRAM_QR_LINE * sizeof(double);
    uint64_t n_bytes = PROGRAM_QR_BYTES - QR_GROUP_BYTES * min_u64(n, QR_GROUP_COLUMNS);

    if (n == 0)
        return 0;
    uint64_t n_lines = max_u64(n_bytes / line_bytes / n, 1);
    return PROGRAM_QR_LINE * (int64_t)(n_lines - (n_lines > 2 && n_lines % 2 == 0));
}

static int check_qr(const struct planner *p, const struct pass *pass)
{
    uint64_t n = program_qr_columns(p->program, pass);

    if (n > 0 && !p->limits->engine->has_qr) {
        error_set(p->error, GAD_NO_ENGINE, "engine", "qr_r is computed on the CPU");
        error_expected(p->error, "engine \"cpu\" or \"auto\"");
        return GAD_NO_ENGINE;
    }
    if (n <= PROGRAM_MAX_ALL_QR_COLUMNS)
        return 0;
    error_set(p->error, GAD_LIMIT_EXCEEDED, "outputs", "qr_r of too many columns in one pass");
    error_expected(p->error, "at most %d, of all matrices together", PROGRAM_MAX_ALL_QR_COLUMNS);
    error_found(p->error, "%" PRIu64, n);
    return GAD_LIMIT_EXCEEDED;
}

/* Steps of a repeat, too, are computed one after the other, and a loop may be in what is computed
 * before the pass. */
static bool may_last(const struct program *program, const struct pass *pass)
{
    bool may = pass->n_loops > 0 || pass->repeats != 0;

    for (uint64_t left = pass->windows_used; left; left &= left - 1)
        may |= may_last(program, &program->passes[program->windows[__builtin_ctzll(left)].pass]);
    return may;
}

/* What cannot be interrupted must not last. */
static int check_loops(const struct planner *p, const struct pass *pass)
{
    uint64_t ns = may_last(p->program, pass) ? op_pass_worst_ns(p->program, pass) : 0;

    if (ns <= p->limits->engine->most_loop_ns)
        return 0;
    error_set(p->error, GAD_NO_ENGINE, "engine",
              "%s of so many steps is computed on the CPU, where it can be stopped",
              pass->repeats ? "repeat" : "iterate");
    error_expected(p->error, "engine \"cpu\" or \"auto\"");
    return GAD_NO_ENGINE;
}

int planner_open_axis(const struct planner *p, const struct pass *pass)
{
    for (int i = 0; i < pass->ndim && p->request->open_length > 0; i++)
        if (pass->shape[i] == p->request->open_length)
            return i;
    return -1;
}

/* Streams are cut along their first axes as if these had no end, whether that is known or not: it
 * makes no difference to the bits. */
static uint32_t stream_axes(const struct planner *p, const struct pass *pass)
{
    int open_axis = planner_open_axis(p, pass);
    uint32_t axes = open_axis >= 0 ? UINT32_C(1) << open_axis : 0;

    for (uint64_t left = pass->inputs_used; left; left &= left - 1) {
        const struct program_input *input = &p->program->inputs[__builtin_ctzll(left)];
        if (planner_is_stream(&p->request->args[input->arg].array) && input->ndim > 0)
            axes |= UINT32_C(1) << (pass->ndim - input->ndim);
    }
    return axes;
}

/* With nodes of at most so many cells; is_best: more where chunks are larger. */
static int cut(struct planner *p, unsigned index, uint64_t max_cells, bool is_best, bool *ret_fits)
{
    const struct pass *pass = &p->program->passes[index];
    struct plan_pass *planned = &p->plan->passes[index];
    struct geometry_rules rules = {
        .reduced_axes = pass->reduced_axes,
        .open_axes = stream_axes(p, pass),
        .max_cells = max_cells,
        .chunk_cells = is_best ? planner_chunk_cells(p->program, index) : 0,
        .round_axis = p->round_length > 0 ? p->round_axes[index] : -1,
        .round_length = p->round_length,
        .long_bytes = long_bytes_of(p),
        .whole_elements = whole_elements_of(p->program, pass),
        .most_rows = most_rows_of(p->program, pass),
        .is_scan = pass->scanned_axis >= 0,
        .gathers = copies_boxes(p),
        .takes_steps = pass->repeats != 0 || pass->windows_used != 0,
    };
    struct operand_list list; /* large, so only what is used of it is written */
    uint64_t most_grains = UINT64_MAX;
    bool has_swaths = planner_choose_swaths(p, index, &rules);

    if (!has_swaths)
        rules.swath_extents[0] = 0;
    *planned = (struct plan_pass){.tile_log2 = 0};
    planned->open_axis = planner_open_axis(p, pass);
    planned->has_open_axis = planned->open_axis >= 0;
    planned->has_stream = rules.open_axes != 0;
    planner_count_steps(p, (uint64_t)p->n_operands * (uint64_t)(pass->ndim + 1));
    list.n = p->n_operands;
    list.n_shapes = 0;
    for (unsigned i = 0; i < p->n_operands; i++) {
        list.operands[i] = p->operands[i].shape;
        planned->needs_slot |= p->operands[i].kind == LOCATION_FILE;
        most_grains = min_u64(most_grains, p->operands[i].most_grains);
    }
    uint64_t of_products = pass->reduced_used & program_product_results(p->program);
    list_results(p, pass->reduced_used & ~of_products, &list);
    list_states(p, pass, &list);
    unsigned n_copied = list.n;
    unsigned n_states = planner_list_states(p, pass, list.reach, list.operands + list.n);
    list.n += n_states;
    list_results(p, of_products, &list);
    list_values(p, index, &list);
    unsigned n_windows = planner_list_windows(p, pass, &list.windows, list.operands + list.n);
    list.n += n_windows;
    if (!planner_windows_fit(&list.windows))
        return planner_refuse_windows(p, pass);
    geometry_init(&planned->geometry, pass->ndim, pass->shape, list.n, list.operands, &rules);
    if (planned->geometry.is_too_large)
        return planner_refuse_element(p, pass);
    planned->needs_slot |= p->limits->engine->fills_slots || pass->repeats != 0;
    planned->needs_slot &= planned->geometry.n_grains > 0;
    if (planned->geometry.n_grains > 0) {
        int r = planner_count_bytes(p, index, false);
        if (r)
            return r;
        measure_grain(planned, &list, n_copied, n_states, n_windows);
    }
    planner_choose_tiles(p, index, most_grains);
    if (has_swaths)
        planner_set_swaths(p, index, &rules);
    *ret_fits = has_swaths || (planner_fit_nodes(p, index) && nodes_fit_slot(p, index, max_cells));
    return 0;
}

/* Half of them, or less where that is far from enough: nodes shrink about as their cells do. */
static uint64_t fewer_cells(const struct planner *p, unsigned index, uint64_t cells)
{
    uint64_t n_bytes = planner_tree_bytes(&p->plan->passes[index]) / CLOSE_SHARE;

    do {
        cells /= 2;
        n_bytes /= 2;
    } while (n_bytes > p->room.tree_bytes && cells > 1);
    return cells;
}

/* Cells of a node where sources have chunks, which would be read several times with fewer; else 0.
 */
static uint64_t most_of_chunk(const struct planner *p, unsigned index)
{
    for (unsigned i = 0; i < p->n_operands; i++)
        if (p->operands[i].shape.chunk_shape)
            return planner_chunk_cells(p->program, index);
    return 0;
}

static int refuse_steps(const struct planner *p)
{
    error_set(p->error, GAD_LIMIT_EXCEEDED, "outputs",
              "the job takes too long to plan: reduce along fewer different axes, or fewer arrays, "
              "at a time");
    error_expected(p->error, "at most %" PRIu64 " steps", PLAN_MAX_STEPS);
    error_found(p->error, "more");
    return GAD_LIMIT_EXCEEDED;
}

int planner_cut_pass(struct planner *p, unsigned index, bool *ret_fits)
{
    const struct pass *pass = &p->program->passes[index];
    int r = planner_is_out_of_steps(p) ? refuse_steps(p) : planner_check_space(p, pass);

    r = r ? r : check_qr(p, pass);
    r = r ? r : check_loops(p, pass);
    if (r)
        return r;
    planner_collect_operands(p, pass);
    r = planner_check_near(p, pass);
    if (r == 0 && pass->repeats)
        r = planner_check_repeats(p, pass, pass->reduced_axes ? 0 : long_bytes_of(p));
    r = r ? r : planner_check_places(p, index);
    if (r)
        return r;
    uint64_t most = planner_most_cells(p->program, index, long_bytes_of(p));
    uint64_t least = p->room.least_share > 0 ? most / p->room.least_share : 1;
    r = cut(p, index, most, true, ret_fits);
    for (uint64_t cells = most_of_chunk(p, index) / 2; !r && !*ret_fits && cells > most; cells /= 2)
        r = cut(p, index, cells, false, ret_fits);
    for (uint64_t cells = most; !r && !*ret_fits && cells > 0 && cells >= least;
         cells = fewer_cells(p, index, cells))
        r = cut(p, index, cells, false, ret_fits);
    return r;
}
