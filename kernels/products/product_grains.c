/* The grains of a matrix product: boxes of an operand as it goes into a panel, and of C as it is
 * written. They begin where tiles and panels begin, so that each lies in one of them; within that
 * they are as the arrays' layouts like it: long along what is fastest in them.
 *
 * A LOAD comes again for every tile that needs the same panel, so an operand's bytes are those of
 * its grains, times the tiles of the other operand's direction (but for panels that are kept), and
 * times the batch axes along which it is broadcast. What is counted is what grains move: the boxes
 * of all arrays, whatever they lie in.
 *
 * Called by product_tiles.c. Pure code.
 */
#include "kernels/grains/cutter.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <assert.h>

#define MAX_DIVISOR_SEARCH 4096
#define EVEN_STEP          16
#define BLOCK_RUN          256 /* elements of either axis, where layouts contradict each other */

/* Extents of which grains are parts: INT64_MAX where all there is may be one grain. */
static void set_fences(const struct planner *p, enum product_pass pass, int64_t *ret_fences)
{
    const struct plan_product *product = p->product;
    const struct product_axes *axes = &product->axes[pass];
    const struct pass *space = planner_product_space(p, pass);
    int first = p->product->whole->n_batch_axes - axes->n_batch;

    for (int i = 0; i < axes->n_batch; i++)
        ret_fences[i] = product_tile_extent(product, first + i);
    /* A block above the diagonal is read from below it. */
    bool is_mirrored = product->is_symmetric && pass == PRODUCT_RESULT;
    if (axes->row >= 0)
        ret_fences[axes->row] = is_mirrored ? product->block_rows : product->tile_rows;
    if (axes->column >= 0)
        ret_fences[axes->column] = is_mirrored ? product->block_columns : product->tile_columns;
    if (axes->depth >= 0)
        ret_fences[axes->depth] = product->panel_depth;
    for (int i = 0; i < space->ndim; i++)
        if (ret_fences[i] >= space->shape[i])
            ret_fences[i] = INT64_MAX;
}

/* What a grain reads and writes: arrays of the job, as in p->operands; results of reductions; what
 * it stores for the product itself, and what it reads of products. */
struct operand_list {
    unsigned n, n_staged; /* n_staged: that a device's slot has room for */
    struct geometry_operand operands[PLANNER_MAX_OPERANDS + SLAB_MAX_VALUES + PASS_MAX_RESULTS];
    int64_t shapes[PASS_MAX_RESULTS][ARRAY_MAX_NDIM];
};

static void list_operands(struct planner *p, const struct pass *space, struct operand_list *ret)
{
    planner_collect_operands(p, space);
    uint64_t of_products = space->reduced_used & program_product_results(p->program);
    ret->n = p->n_operands;
    for (unsigned i = 0; i < p->n_operands; i++)
        ret->operands[i] = p->operands[i].shape;
    ret->n += planner_list_results(p, space->reduced_used & ~of_products, ret->shapes,
                                   ret->operands + ret->n);
    unsigned n_results = ret->n - p->n_operands;
    ret->n_staged = ret->n;
    for (unsigned i = 0; i < space->n_stores; i++) {
        unsigned output = p->program->stores[space->first_store + i].output;
        if (output >= p->program->n_outputs)
            ret->operands[ret->n++] =
                (struct geometry_operand){.dtype = p->program->outputs[output].dtype,
                                          .ndim = space->ndim,
                                          .shape = space->shape,
                                          .is_output = true,
                                          .is_internal = true};
    }
    ret->n += planner_list_results(p, of_products, ret->shapes + n_results, ret->operands + ret->n);
}

static void start_geometry(const struct pass *space, struct geometry *g)
{
    *g = (struct geometry){
        .ndim = space->ndim, .round_axis = -1, .n_rounds = 1, .chain_grains = 1, .n_grains = 1};
    for (int i = 0; i < space->ndim; i++) {
        g->shape[i] = space->shape[i];
        g->grain_shape[i] = 1;
        g->axis_order[i] = i;
        if (space->shape[i] == 0)
            g->n_grains = 0;
    }
}

/* The largest part of a fence, at most `limit`, that it is a multiple of; whole chunks if that
 * can be. */
static int64_t part_of_fence(int64_t fence, int64_t limit, int64_t chunk)
{
    if (chunk > 1 && chunk <= limit && fence % chunk == 0)
        return chunk * part_of_fence(fence / chunk, limit / chunk, 1);
    int64_t n_parts = divide_up_i64(fence, limit);
    for (int64_t n = n_parts; n <= n_parts + MAX_DIVISOR_SEARCH && n <= fence; n++)
        if (fence % n == 0)
            return fence / n;
    return common_divisor_i64(fence, INT64_C(1) << (63 - __builtin_clzll((uint64_t)limit)));
}

static int64_t chunk_along(const struct cutter *c, int axis)
{
    for (unsigned i = 0; i < c->n_operands; i++) {
        const struct geometry_operand *operand = &c->operands[i];
        if (operand->chunk_shape && cutter_has_axis(c->g, operand, axis))
            return operand->chunk_shape[axis - (c->g->ndim - operand->ndim)];
    }
    return 1;
}

static void grow_axis(struct cutter *c, int axis, int64_t fence, int64_t wanted)
{
    struct geometry *g = c->g;
    int64_t length = g->shape[axis] < fence ? g->shape[axis] : fence;
    int64_t chunk = chunk_along(c, axis);

    wanted = wanted < length ? wanted : length;
    if (wanted <= g->grain_shape[axis])
        return;
    int64_t extent = cutter_largest_extent(c, axis, wanted);
    if (extent == length)
        g->grain_shape[axis] = extent;
    else if (fence != INT64_MAX)
        g->grain_shape[axis] = part_of_fence(fence, extent, chunk);
    else if (extent > chunk && chunk > 1)
        g->grain_shape[axis] = extent - extent % chunk;
    else
        g->grain_shape[axis] = extent > EVEN_STEP ? extent - extent % EVEN_STEP : extent;
}

static void choose_extents(struct cutter *c, const int64_t *fences)
{
    struct geometry *g = c->g;

    if (cutter_has_contrary_layout(c))
        for (int i = g->ndim - 1; i >= 0 && i >= g->ndim - 2; i--)
            grow_axis(c, g->axis_order[i], fences[g->axis_order[i]], BLOCK_RUN);
    for (int i = g->ndim - 1; i >= 0; i--)
        grow_axis(c, g->axis_order[i], fences[g->axis_order[i]], INT64_MAX);
}

static void set_grid(struct geometry *g)
{
    for (int i = 0; i < g->ndim; i++) {
        g->grid_order[i] = g->axis_order[i];
        g->grid[i] = divide_up_i64(g->shape[i], g->grain_shape[i]);
        g->n_grains *= (uint64_t)g->grid[i]; /* no more than elements */
    }
    g->round_grains = g->n_grains;
}

static int fastest_axis(const struct array *array)
{
    int fastest = -1;

    for (int i = 0; i < array->ndim; i++) {
        if (array->strides[i] == 0)
            return -1;
        if (array->strides[i] == (int64_t)dtype_size(array->dtype))
            fastest = i;
    }
    return fastest;
}

/* The argument that a pass stores as it is, in a file; NULL: it is none. */
static const struct program_input *direct_input(const struct planner *p, const struct pass *space)
{
    const struct operand *src = &p->program->stores[space->first_store].src;
    int ndim = space->ndim;

    if (p->limits->engine->fills_slots || space->n_insns > 0 || src->kind != OPERAND_INPUT)
        return NULL;
    const struct program_input *input = &p->program->inputs[src->index];
    const struct array *array = &p->request->args[input->arg].array;
    if (array->at.kind != LOCATION_FILE || array->is_swapped || input->ndim != ndim)
        return NULL;
    for (int i = 0; i < ndim; i++)
        if (input->shape[i] != space->shape[i])
            return NULL;
    return input;
}

const struct array *planner_direct_array(const struct planner *p, const struct pass *space,
                                         int slow_axis)
{
    const struct program_input *input = direct_input(p, space);
    int fastest = space->ndim - 1 - (slow_axis == space->ndim - 1);

    if (input == NULL || input->is_transposed)
        return NULL;
    const struct array *array = &p->request->args[input->arg].array;
    return fastest_axis(array) == fastest ? array : NULL;
}

bool planner_is_direct(const struct planner *p, const struct pass *space, int slow_axis)
{
    return planner_direct_array(p, space, slow_axis) != NULL;
}

/* Whether an operand is one argument as it is, in a file where its fastest axis is the panel's. */
static bool is_direct(const struct planner *p, enum product_pass pass)
{
    const struct pass *space = planner_product_space(p, pass);
    const struct program_input *input = direct_input(p, space);
    int ndim = space->ndim;

    if (pass == PRODUCT_RESULT || input == NULL)
        return false;
    const struct array *array = &p->request->args[input->arg].array;
    bool is_last = p->product->is_depth_fastest[pass] == (pass == PRODUCT_LEFT) || ndim == 1;
    return fastest_axis(array) == (is_last != input->is_transposed ? ndim - 1 : ndim - 2);
}

/* What a device's slot holds of one: the arguments and outputs, and results of reductions, but not
 * panels and C, which stay on the device. */
static void measure_grain(const struct operand_list *list, struct plan_pass *planned)
{
    const struct geometry *g = &planned->geometry;
    struct engine_room *room = &planned->room;

    *room = (struct engine_room){.n_elements = 1, .n_cells = 1};
    for (int i = 0; i < g->ndim; i++)
        room->n_elements *= (uint64_t)g->grain_shape[i];
    for (unsigned i = 0; i < list->n_staged; i++) {
        const struct geometry_operand *operand = &list->operands[i];
        *(operand->is_output ? &room->output_bytes : &room->input_bytes) +=
            planner_box_bytes(g, operand);
    }
}

int planner_cut_fenced(struct planner *p, unsigned index, const int64_t *fences)
{
    const struct pass *space = &p->program->passes[index];
    struct plan_pass *planned = &p->plan->passes[index];
    struct operand_list list; /* large, so only what is used of it is written */
    struct geometry_rules rules = {.round_axis = -1};
    struct cutter c = {.g = &planned->geometry, .rules = &rules, .operands = list.operands};

    int r = planner_check_space(p, space);
    if (r)
        return r;
    *planned = (struct plan_pass){.tile_log2 = 0};
    list_operands(p, space, &list);
    c.n_operands = list.n;
    start_geometry(space, c.g);
    if (c.g->n_grains > 0) {
        for (int i = 0; i < space->ndim; i++)
            c.unit[i] = 1;
        cutter_choose_order(&c);
        choose_extents(&c, fences);
        for (unsigned i = 0; i < p->n_operands; i++)
            planned->needs_slot |= p->operands[i].kind == LOCATION_FILE;
        planned->needs_slot |= p->limits->engine->fills_slots;
        measure_grain(&list, planned);
    }
    set_grid(c.g);
    return 0;
}

int planner_cut_product_pass(struct planner *p, enum product_pass pass)
{
    struct plan_pass *planned = &p->product->passes[pass];
    int64_t fences[ARRAY_MAX_NDIM];

    set_fences(p, pass, fences);
    int r = planner_cut_fenced(p, p->product->whole->first_pass + pass, fences);
    if (r)
        return r;
    if (planned->geometry.n_grains > 0)
        planned->needs_slot |= pass == PRODUCT_RESULT && p->request->has_journal;
    if (pass < PRODUCT_RESULT && !p->limits->engine->fills_slots) {
        p->product->is_direct[pass] = is_direct(p, pass);
        planned->needs_slot &= !p->product->is_direct[pass];
    }
    return 0;
}

/* Of two axes; -1: there is none. */
static bool is_faster(struct planner *p, enum product_pass pass, int axis, int other)
{
    const struct pass *space = planner_product_space(p, pass);
    struct operand_list list;
    struct geometry g;
    struct cutter c = {.g = &g, .operands = list.operands};

    list_operands(p, space, &list);
    c.n_operands = list.n;
    start_geometry(space, &g);
    cutter_choose_order(&c);
    for (int i = space->ndim - 1; i >= 0; i--)
        if (g.axis_order[i] == axis || g.axis_order[i] == other)
            return g.axis_order[i] == axis;
    return true;
}

bool planner_product_depth_is_fastest(struct planner *p, enum product_pass pass)
{
    const struct product_axes *axes = &p->product->axes[pass];

    return is_faster(p, pass, axes->depth, pass == PRODUCT_LEFT ? axes->row : axes->column);
}

bool planner_product_rows_are_fastest(struct planner *p)
{
    const struct product_axes *axes = &p->product->axes[PRODUCT_RESULT];

    return axes->row >= 0 && axes->column >= 0 &&
           is_faster(p, PRODUCT_RESULT, axes->row, axes->column);
}

/* Bytes ------------------------------------------------------------------------------------- */

/* How often each of a pass's grains is loaded or stored, but for how often the kept operand's are
 * for the tiles that share it; for a symmetric C, along its rows and
 * columns once only. */
static uint64_t n_visits(const struct plan_product *product, enum product_pass pass)
{
    const struct product_axes *axes = &product->axes[pass];
    const int64_t *shape = product->passes[PRODUCT_RESULT].geometry.shape;
    const int n_batch = product->axes[PRODUCT_RESULT].n_batch;
    uint64_t n = 1;

    if (pass == PRODUCT_RESULT)
        return 1;
    if (!product->is_symmetric && pass != product->kept_pass)
        n = pass == PRODUCT_LEFT ? product->n_column_tiles : product->n_row_tiles;
    for (int i = 0; i < n_batch; i++) {
        int own = i - (n_batch - axes->n_batch);
        bool is_broadcast = own < 0 || product->passes[pass].geometry.shape[own] < shape[i];
        if (is_broadcast && i <= product->cut_axis)
            n *= i == product->cut_axis ? product->n_matrix_tiles : (uint64_t)shape[i];
    }
    return n;
}

/* What is loaded of the left operand's rows (the right one's columns) for all tiles of a symmetric
 * C together: n of them, in tiles of `extent`. Row i of tiles has i + 1, column j has those behind.
 */
static uint64_t triangle_sum(const struct plan_product *product, enum product_pass pass, uint64_t n,
                             uint64_t extent)
{
    uint64_t n_tiles = product->n_row_tiles, last = n - (n_tiles - 1) * extent;

    if (pass == PRODUCT_LEFT)
        return n_tiles * (n_tiles - 1) / 2 * extent + n_tiles * last;
    return (n_tiles * (n_tiles + 1) / 2 - 1) * extent + last;
}

/* Of n elements (or grains of `extent`) along the kept operand's depth, how many are loaded for the
 * tiles that share it. */
static uint64_t loaded_for_all(const struct plan_product *product, uint64_t n, uint64_t extent)
{
    uint64_t kept = product->n_kept * (uint64_t)product->panel_depth / extent;

    if (product->n_kept == product->n_panels)
        return n;
    return kept + (n - kept) * product->n_sharing;
}

/* How many elements of an operand all boxes along this axis have. */
static uint64_t length_of_boxes(const struct plan_product *product, enum product_pass pass,
                                int axis, bool is_broadcast)
{
    const struct product_axes *axes = &product->axes[pass];
    const struct geometry *g = &product->passes[pass].geometry;
    uint64_t n = (uint64_t)(is_broadcast ? g->grid[axis] : g->shape[axis]);
    bool is_outer = axis == (pass == PRODUCT_LEFT ? axes->row : axes->column);

    if (!product->is_symmetric && pass == product->kept_pass && axis == axes->depth)
        return loaded_for_all(product, n, is_broadcast ? (uint64_t)g->grain_shape[axis] : 1);
    if (!product->is_symmetric || pass == PRODUCT_RESULT || !is_outer || product->n_row_tiles == 1)
        return n;
    uint64_t extent = (uint64_t)product->tile_rows;
    return triangle_sum(product, pass, n,
                        is_broadcast ? extent / (uint64_t)g->grain_shape[axis] : extent);
}

static bool add_boxes(const struct plan_product *p, enum product_pass pass,
                      const struct geometry_operand *operand, uint64_t n_times, uint64_t *sum)
{
    const struct geometry *g = &p->passes[pass].geometry;
    uint64_t n_bytes = dtype_size(operand->dtype);
    bool overflows = __builtin_mul_overflow(n_bytes, n_times, &n_bytes);

    for (int i = 0; i < g->ndim && !overflows; i++) {
        int own = i - (g->ndim - operand->ndim);
        bool is_broadcast = own < 0 || operand->shape[own] == 1;
        overflows =
            __builtin_mul_overflow(n_bytes, length_of_boxes(p, pass, i, is_broadcast), &n_bytes);
    }
    return !overflows && planner_add_checked(sum, n_bytes);
}

int planner_count_product_bytes(struct planner *p)
{
    struct plan_product *product = p->product;

    for (unsigned i = 0; i < PRODUCT_N_PASSES; i++) {
        enum product_pass pass = (enum product_pass)i;
        struct plan_pass *planned = &product->passes[i];
        struct planned_traffic *traffic = &p->traffic[product->whole->first_pass + i];
        uint64_t n_times = product->n_tiles > 0 ? n_visits(product, pass) : 0;
        *traffic = (struct planned_traffic){.memory = 0};
        if (planned->geometry.n_grains == 0 || n_times == 0)
            continue;
        planner_collect_operands(p, planner_product_space(p, pass));
        for (unsigned k = 0; k < p->n_operands; k++) {
            const struct geometry_operand *operand = &p->operands[k].shape;
            uint64_t *sum = operand->is_output ? &planned->write_bytes : &planned->read_bytes;
            uint64_t before = *sum;
            if (!add_boxes(product, pass, operand, n_times, sum))
                return planner_refuse_bytes(p);
            bool is_file = !planner_is_in_memory(p->operands[k].kind);
            *(is_file ? &traffic->file : &traffic->memory) += (double)(*sum - before);
            if (p->operands[k].kind == LOCATION_FILE && !operand->is_output)
                traffic->read += (double)(*sum - before);
        }
    }
    product->left_bytes = product->passes[PRODUCT_LEFT].read_bytes;
    product->right_bytes = product->passes[PRODUCT_RIGHT].read_bytes;
    return 0;
}
