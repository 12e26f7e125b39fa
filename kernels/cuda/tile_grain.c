/* A grain's record in the slot: how many elements it has, where its operands are, what is reduced.
 *
 * Axes are merged here, once a grain, so that the device sees most operands as one run, and the
 * others with as few axes as they have. Coordinates are places too: an axis that is one further
 * adds to the value what it would add to an address. How a grain is divided among blocks depends on
 * its number of elements alone, how a cell of a reduction along axes is divided among threads on
 * the number of elements that it takes in.
 */
#include "kernels/cuda/tile_parts.h"

#include "kernels/cuda/device/counters.h"
#include "proto/util.h"

#include <assert.h>

#define LINEAR_ALIGN   16u
#define STRIP_ELEMENTS (CODE_MAX_THREADS * CODE_THREAD_ELEMENTS)

/* Of a value there is one axis, however many the pass has. */
uint32_t tile_place_bytes(const struct pass *pass)
{
    uint64_t n_axes = max_u64((uint64_t)pass->ndim, 1);
    return (uint32_t)(pass->n_nears > 0
                          ? sizeof(struct code_near) + n_axes * sizeof(struct code_near_axis)
                          : sizeof(struct code_place) + n_axes * sizeof(struct code_axis));
}

uint32_t tile_runs_bytes(const struct encode_places *places, unsigned ndim)
{
    return places->has_tasks ? ndim * (uint32_t)sizeof(struct code_run) : 0;
}

/* Fastest axis first. */
static unsigned merge_axes(const struct engine_box *box, const int64_t *strides,
                           struct code_axis *ret_axes)
{
    struct box merged;
    engine_box_merge(box, strides, &merged);
    for (int i = 0; i < merged.n; i++)
        ret_axes[i] = (struct code_axis){.count = (uint32_t)merged.axes[i].count,
                                         .stride = merged.axes[i].strides[0]};
    return (unsigned)merged.n;
}

static bool are_aligned(const struct code_axis *axes, unsigned n, int64_t offset,
                        int64_t item_bytes)
{
    bool are = offset % item_bytes == 0;
    for (unsigned i = 0; i < n; i++)
        are &= axes[i].stride % item_bytes == 0;
    return are;
}

void tile_write_view(const struct cuda_tile *t, const struct code_header *header,
                     const struct engine_box *box, const struct engine_view *view, enum dtype dtype,
                     struct code_place *place)
{
    struct code_axis *axes = (struct code_axis *)(place + 1);
    int64_t item_bytes = (int64_t)dtype_size(dtype), offset = (char *)view->base - t->slot;
    unsigned n = merge_axes(box, view->strides, axes);
    assert(sizeof(*place) + n * sizeof(*axes) <= header->place_bytes);
    (void)header;
    bool is_aligned = are_aligned(axes, n, offset, item_bytes);
    assert(is_aligned);
    (void)is_aligned;
    bool is_dense = n == 0 || (n == 1 && axes[0].stride == item_bytes);
    bool is_linear = is_dense && offset % LINEAR_ALIGN == 0;
    *place = (struct code_place){
        .offset = offset,
        .kind = is_linear ? CODE_PLACE_LINEAR : CODE_PLACE_STRIDED,
        .n_axes = (uint8_t)n,
        .is_swapped = view->is_swapped && item_bytes > 1,
    };
}

/* What of a view is not in the slot. */
static void note_outside(const struct cuda_tile *t, const struct engine_box *box,
                         const struct engine_view *view, enum dtype dtype,
                         struct interpreter_range *range)
{
    int64_t begin = (char *)view->base - t->slot, end = begin + (int64_t)dtype_size(dtype);
    for (int i = 0; i < box->ndim; i++) {
        int64_t bytes = (box->count[i] - 1) * view->strides[i];
        *(bytes < 0 ? &begin : &end) += bytes;
    }
    if (begin >= 0 && end <= (int64_t)t->slot_bytes)
        return;
    bool is_first = range->begin == range->end;
    range->begin = is_first || begin < range->begin ? begin : range->begin;
    range->end = is_first || end > range->end ? end : range->end;
}

/* The numbers of elements in C order of the pass, along the axes of a mask. */
static void number_axes(const struct pass *pass, uint32_t axes, int64_t *ret_steps)
{
    int64_t n = 1;
    for (int i = pass->ndim - 1; i >= 0; i--) {
        bool is_there = axes >> i & 1;
        ret_steps[i] = is_there ? n : 0;
        n *= is_there ? pass->shape[i] : 1;
    }
}

static int64_t start_number(const struct engine_box *box, const int64_t *steps)
{
    int64_t number = 0;
    for (int i = 0; box->start && i < box->ndim; i++)
        number += box->start[i] * steps[i];
    return number;
}

static void write_index(const struct pass *pass, const struct engine_box *box, unsigned index,
                        struct code_place *place)
{
    int64_t steps[ARRAY_MAX_NDIM] = {0};
    if (index == OPERAND_INDEX_FLAT)
        number_axes(pass, UINT32_MAX, steps);
    else
        steps[index] = 1;
    unsigned n = merge_axes(box, steps, (struct code_axis *)(place + 1));
    *place = (struct code_place){
        .offset = start_number(box, steps), .kind = CODE_PLACE_INDEX, .n_axes = (uint8_t)n};
}

void *tile_take_value(struct cuda_tile *t, uint64_t n_bytes)
{
    char *value = t->slot + t->values_end;
    t->values_end += round_up_u64(n_bytes, TILE_VALUE_ALIGN);
    assert(t->values_end <= t->values_offset + (t->n_grains + 1) * t->values_bytes);
    return value;
}

static void write_value(struct cuda_tile *t, const struct code_header *header, uint32_t n_elements,
                        enum dtype dtype, struct code_place *place)
{
    const char *value = tile_take_value(t, n_elements * dtype_size(dtype));
    assert(sizeof(*place) + sizeof(struct code_axis) <= header->place_bytes);
    (void)header;
    *place = (struct code_place){.offset = value - t->slot, .kind = CODE_PLACE_LINEAR, .n_axes = 1};
    *(struct code_axis *)(place + 1) =
        (struct code_axis){.count = n_elements, .stride = (int64_t)dtype_size(dtype)};
}

static void write_near(const struct cuda_tile *t, const struct tile_code *code,
                       const struct engine_box *box, unsigned index, const struct tile_views *views,
                       struct code_place *place)
{
    const struct program_near *near = &t->program->nears[index];
    const struct program_input *of = &t->program->inputs[near->input];
    const struct made_box *made = views->step_of;
    struct engine_view view = views->inputs[near->input];
    struct engine_box in_made = *box;
    struct program_input as_made;
    int64_t start[ARRAY_MAX_NDIM];
    if (made && of->is_state) {
        as_made = *of;
        for (int i = 0; i < made->ndim; i++) {
            start[i] = made_box_place(made, i, box->start[i]);
            as_made.shape[i] = made->count[i];
        }
        view.goes_on_axes = 0;
        in_made.start = start;
        of = &as_made;
        box = &in_made;
    }
    tile_write_near(t, code->header, box, near, of, &view, place);
}

static void write_places(struct cuda_tile *t, const struct tile_code *code,
                         const struct engine_box *box, const struct tile_views *views,
                         struct code_grain *grain)
{
    const struct code_header *header = code->header;
    for (unsigned i = 0; i < code->places->n_places; i++) {
        const struct encode_place *place = &code->places->places[i];
        enum dtype dtype = (enum dtype)place->dtype;
        struct code_place *to = tile_place_in(header, grain, i);
        const struct engine_view *view;
        switch (place->what) {
        case ENCODE_INPUT:
            tile_write_view(t, header, box, &views->inputs[place->index], dtype, to);
            break;
        case ENCODE_NEAR: write_near(t, code, box, place->index, views, to); break;
        case ENCODE_STATE:
            tile_write_view(t, header, box, &views->reduced[place->index], dtype, to);
            break;
        case ENCODE_REDUCED:
            view = &views->reduced[place->index];
            tile_write_view(t, header, box, view, dtype, to);
            note_outside(t, box, view, dtype, &t->outside_read);
            break;
        case ENCODE_INDEX: write_index(code->pass, box, place->index, to); break;
        case ENCODE_STORE:
            view = &views->outputs[t->program->stores[place->index].output - views->first_output];
            tile_write_view(t, header, box, view, dtype, to);
            note_outside(t, box, view, dtype, &t->outside_written);
            break;
        default: write_value(t, header, grain->n_elements, dtype, to); break;
        }
    }
}

static struct code_grain divide_grain(const struct code_header *header, uint64_t n_elements)
{
    uint64_t n_block = tile_block_elements(header);
    if (n_elements > n_block * header->blocks_of_grain)
        n_block = round_up_u64((n_elements - 1) / header->blocks_of_grain + 1, STRIP_ELEMENTS);
    return (struct code_grain){
        .n_elements = (uint32_t)n_elements,
        .n_blocks = (uint32_t)((n_elements - 1) / n_block + 1),
        .block_elements = (uint32_t)n_block,
    };
}

/* The next axis of a box, slower than those before. Positions go on where addresses do, or it is a
 * run of its own. */
static void add_run(struct code_run *runs, uint8_t *n_runs, const struct code_run *run)
{
    struct code_run *last = *n_runs > 0 ? &runs[*n_runs - 1] : NULL;
    if (last && last->stride * last->count == run->stride &&
        last->position * last->count == run->position)
        last->count *= run->count;
    else
        runs[(*n_runs)++] = *run;
}

static uint32_t choose_parts(uint64_t n_reduced)
{
    uint32_t n = 1;
    while (n < CODE_TASK_THREADS && (uint64_t)n * CODE_PART_ELEMENTS < n_reduced)
        n *= 2;
    return n;
}

static void write_runs(struct cuda_tile *t, const struct engine_box *box, struct code_grain *grain)
{
    const struct pass *pass = &t->program->passes[t->pass];
    struct code_run reduced[ARRAY_MAX_NDIM],
        *kept = (struct code_run *)tile_place_in(&t->header, grain, t->header.n_places);
    int64_t steps[ARRAY_MAX_NDIM];
    uint64_t n = 1, n_cells = 1;
    number_axes(pass, pass->reduced_axes, steps);
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        struct code_run run = {(uint32_t)box->count[axis], (uint32_t)n, steps[axis]};
        bool is_reduced = pass->reduced_axes >> axis & 1;
        if (run.count == 1)
            continue;
        if (n == 1)
            grain->is_kept_fast = !is_reduced;
        add_run(is_reduced ? reduced : kept,
                is_reduced ? &grain->n_reduced_runs : &grain->n_kept_runs, &run);
        n *= run.count;
        n_cells *= is_reduced ? 1 : run.count;
    }
    memcpy(kept + grain->n_kept_runs, reduced, grain->n_reduced_runs * sizeof(*reduced));
    grain->n_cells = (uint32_t)n_cells;
    grain->n_reduced = (uint32_t)(n / n_cells);
    grain->n_parts = choose_parts(grain->n_reduced);
    grain->position = start_number(box, steps);
}

static bool is_at_beginning(const struct pass *pass, const struct engine_box *box)
{
    return pass->scanned_axis < 0 || !box->start || box->start[pass->scanned_axis] == 0;
}

static void write_tasks(struct cuda_tile *t, const struct engine_box *box, struct code_grain *grain)
{
    const struct code_task *counts = (const struct code_task *)(t->slot + t->header.insns_offset) +
                                     t->header.n_insns + t->header.n_axes_tasks;
    write_runs(t, box, grain);
    assert(grain->n_cells * sizeof(uint64_t) <= t->header.plane_bytes);
    grain->is_first = is_at_beginning(&t->program->passes[t->pass], box);
    uint64_t n_threads = (uint64_t)grain->n_cells * grain->n_parts;
    t->n_task_blocks = (unsigned)max_u64(t->n_task_blocks, (n_threads - 1) / CODE_TASK_THREADS + 1);
    for (unsigned i = 0; i < t->header.n_count_tasks; i++)
        t->n_count_blocks = (unsigned)max_u64(t->n_count_blocks, count_blocks(&counts[i], grain));
}

void tile_write_grain(struct cuda_tile *t, const struct tile_code *code,
                      const struct engine_box *box, const struct tile_views *views,
                      struct code_grain *ret_grain)
{
    uint64_t n_elements = 1;
    for (int i = 0; i < box->ndim; i++)
        n_elements *= (uint64_t)box->count[i];
    assert(n_elements > 0 && n_elements <= INT32_MAX);
    *ret_grain = divide_grain(code->header, n_elements);
    write_places(t, code, box, views, ret_grain);
    tile_write_windows(t, code, box, views->inputs, views->made, ret_grain);
}

void cuda_tile_add(struct cuda_tile *t, const struct engine_box *box,
                   const struct engine_view *inputs, const struct engine_view *outputs,
                   const struct engine_view *reduced)
{
    assert(t->n_grains < t->max_grains);
    const struct pass *pass = &t->program->passes[t->pass];
    const struct tile_code code = {pass, &t->header, &t->places};
    struct engine_view all[REQUEST_MAX_ARGS], made[PROGRAM_MAX_WINDOWS]; /* only some is written */
    struct tile_views views = {
        .inputs = inputs, .outputs = outputs, .reduced = reduced, .made = made};
    struct code_grain *grain = tile_grain_at(t, t->n_grains);
    const int64_t zeros[ARRAY_MAX_NDIM] = {0};
    struct engine_box own = *box;
    own.start = box->start ? box->start : zeros;
    t->values_end = t->values_offset + t->n_grains * t->values_bytes;
    t->next_phase = 0;
    if (pass->repeats) {
        for (uint64_t left = pass->inputs_used; left; left &= left - 1)
            all[__builtin_ctzll(left)] = inputs[__builtin_ctzll(left)];
        tile_add_repeats(t, &own, reduced, all);
        views.inputs = all;
    }
    tile_add_operands(t, &own, inputs, reduced, made);
    tile_write_grain(t, &code, box, &views, grain);
    if (t->places.has_tasks)
        write_tasks(t, box, grain);
    t->n_blocks = (unsigned)max_u64(t->n_blocks, grain->n_blocks);
    t->n_window_blocks =
        (unsigned)max_u64(t->n_window_blocks, (grain->n_elements - 1) / CODE_TASK_THREADS + 1);
    t->n_grains++;
}
