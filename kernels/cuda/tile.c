/* Filling a slot for the device, and reading what came back.
 *
 * cuda_tile_begin() encodes the pass and divides the slot, for as many grains as it is told;
 * operands are placed one behind the other in what is reserved for them. A grain's record is
 * written when the grain is added: axes are merged here, once a grain, so that the device sees most
 * operands as one run, and the others with as few axes as they have. How a grain is divided among
 * blocks depends on its number of elements alone. Called by the CUDA worker's threads; the broker's
 * planner asks cuda_tile_need_bytes().
 */
#include "kernels/cuda/tile.h"

#include "kernels/cuda/device/reduce.h"
#include "kernels/cuda/encode.h"
#include "proto/util.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define RECORD_ALIGN   16u
#define LINEAR_ALIGN   16u
#define STRIP_ELEMENTS (CODE_MAX_THREADS * CODE_THREAD_ELEMENTS)

static uint64_t n_elements_of(const struct pass *pass)
{
    uint64_t n = 1;
    for (int i = 0; i < pass->ndim; i++) {
        if (__builtin_mul_overflow(n, (uint64_t)pass->shape[i], &n))
            return UINT64_MAX;
    }
    return n;
}

/* What the header says of records and results; all offsets up to the grains'. */
static int encode(const struct program *program, unsigned pass, const union scalar *reduced,
                  char *code, struct code_header *h, struct encode_places *ret_places)
{
    uint64_t n_bytes;
    int r = encode_places_of(program, pass, ret_places);
    if (r == 0)
        r = encode_pass(program, pass, reduced, code, h, &n_bytes);
    if (r)
        return r;
    unsigned ndim = (unsigned)program->passes[pass].ndim;
    h->place_bytes = (uint32_t)(sizeof(struct code_place) + (ndim + 1) * sizeof(struct code_axis));
    h->grain_bytes = (uint32_t)sizeof(struct code_grain) + h->n_places * h->place_bytes;
    h->grains_offset = (uint32_t)round_up_u64(n_bytes, RECORD_ALIGN);
    h->result_bytes = h->n_states * (uint32_t)sizeof(struct code_state);
    uint64_t n_blocks = (n_elements_of(&program->passes[pass]) - 1) / CODE_BLOCK_ELEMENTS + 1;
    h->blocks_of_grain = (uint32_t)min_u64(n_blocks, CODE_MAX_BLOCKS);
    return 0;
}

/* Where the parts of a slot begin; returns its end. */
static uint64_t divide_slot(const struct code_header *h, uint64_t n_grains, uint64_t input_bytes,
                            uint64_t output_bytes, uint64_t *ret_inputs, uint64_t *ret_results,
                            uint64_t *ret_outputs)
{
    uint64_t results_bytes = n_grains * h->blocks_of_grain * h->result_bytes;
    *ret_inputs = round_up_u64(h->grains_offset + n_grains * h->grain_bytes, CUDA_TILE_ALIGN);
    *ret_results = round_up_u64(*ret_inputs + n_grains * input_bytes, CUDA_TILE_ALIGN);
    *ret_outputs = round_up_u64(*ret_results + results_bytes, CUDA_TILE_ALIGN);
    return *ret_outputs + n_grains * output_bytes;
}

uint64_t cuda_tile_need_bytes(const struct program *program, unsigned pass, uint64_t n_grains,
                              uint64_t input_bytes, uint64_t output_bytes)
{
    struct code_header h;
    struct encode_places places;
    uint64_t inputs, results, outputs;
    if (encode(program, pass, NULL, NULL, &h, &places) != 0)
        return UINT64_MAX; /* fits nowhere */
    return divide_slot(&h, n_grains, input_bytes, output_bytes, &inputs, &results, &outputs);
}

int cuda_tile_begin(struct cuda_tile *t, const struct program *program, unsigned pass,
                    const union scalar *reduced, unsigned max_grains, uint64_t input_bytes,
                    uint64_t output_bytes, char *slot, uint64_t slot_bytes)
{
    assert((uintptr_t)slot % CUDA_TILE_ALIGN == 0 && max_grains <= CUDA_TILE_MAX_GRAINS);
    *t = (struct cuda_tile){
        .program = program,
        .pass = pass,
        .slot = slot,
        .slot_bytes = slot_bytes,
        .max_grains = max_grains,
    };
    if (slot_bytes < cuda_tile_need_bytes(program, pass, max_grains, input_bytes, output_bytes))
        return -ENOSPC;
    int r = encode(program, pass, reduced, slot, &t->header, &t->places);
    if (r)
        return r;
    uint64_t outputs;
    t->outputs_limit = divide_slot(&t->header, max_grains, input_bytes, output_bytes,
                                   &t->inputs_end, &t->results_offset, &outputs);
    t->inputs_limit = t->results_offset;
    t->outputs_end = outputs;
    t->grains_offset = t->header.grains_offset;
    t->grain_bytes = t->header.grain_bytes;
    t->header.results_offset = t->results_offset;
    return 0;
}

static void *place(struct cuda_tile *t, uint64_t *end, uint64_t limit, uint64_t n_bytes)
{
    void *memory = t->slot + *end;
    *end += round_up_u64(n_bytes, CUDA_TILE_ALIGN);
    assert(*end <= limit);
    (void)limit;
    return memory;
}

void *cuda_tile_place_input(struct cuda_tile *t, uint64_t n_bytes)
{
    return place(t, &t->inputs_end, t->inputs_limit, n_bytes);
}

void *cuda_tile_place_output(struct cuda_tile *t, uint64_t n_bytes)
{
    return place(t, &t->outputs_end, t->outputs_limit, n_bytes);
}

static struct code_grain *grain_at(const struct cuda_tile *t, unsigned grain)
{
    return (struct code_grain *)(t->slot + t->grains_offset + grain * t->grain_bytes);
}

static struct code_place *place_in(const struct cuda_tile *t, struct code_grain *grain,
                                   unsigned index)
{
    return (struct code_place *)((char *)(grain + 1) + (uint64_t)index * t->header.place_bytes);
}

/* Fastest axis first; axes that go on where the last one ends are one with it. */
static unsigned merge_axes(const struct cpu_box *box, const int64_t *strides,
                           struct code_axis *ret_axes)
{
    unsigned n = 0;
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        int64_t count = box->count[axis], stride = strides[axis];
        if (count == 1)
            continue;
        struct code_axis *last = n > 0 ? &ret_axes[n - 1] : NULL;
        if (last && last->stride * last->count == stride)
            last->count *= (uint32_t)count;
        else
            ret_axes[n++] = (struct code_axis){.count = (uint32_t)count, .stride = stride};
    }
    return n;
}

static bool are_aligned(const struct code_axis *axes, unsigned n, int64_t offset,
                        int64_t item_bytes)
{
    bool are = offset % item_bytes == 0;
    for (unsigned i = 0; i < n; i++)
        are &= axes[i].stride % item_bytes == 0;
    return are;
}

static void write_view(const struct cuda_tile *t, const struct cpu_box *box,
                       const struct cpu_view *view, enum dtype dtype, struct code_place *place)
{
    struct code_axis *axes = (struct code_axis *)(place + 1);
    int64_t item_bytes = (int64_t)dtype_size(dtype), offset = (char *)view->base - t->slot;
    unsigned n = merge_axes(box, view->strides, axes);
    assert(sizeof(*place) + n * sizeof(*axes) <= t->header.place_bytes);
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

static void write_index(const struct cpu_box *box, int axis, struct code_place *place)
{
    int64_t n_inner = 1;
    for (int i = box->ndim - 1; i >= 0 && box->axis_order[i] != axis; i--)
        n_inner *= box->count[box->axis_order[i]];
    *place = (struct code_place){
        .offset = box->start ? box->start[axis] : 0, .kind = CODE_PLACE_INDEX, .n_axes = 1};
    *(struct code_axis *)(place + 1) =
        (struct code_axis){.count = (uint32_t)box->count[axis], .stride = n_inner};
}

static struct code_grain divide_grain(const struct cuda_tile *t, uint64_t n_elements)
{
    uint64_t n_block = CODE_BLOCK_ELEMENTS;
    if (n_elements > n_block * t->header.blocks_of_grain)
        n_block = round_up_u64((n_elements - 1) / t->header.blocks_of_grain + 1, STRIP_ELEMENTS);
    return (struct code_grain){
        .n_elements = (uint32_t)n_elements,
        .n_blocks = (uint32_t)((n_elements - 1) / n_block + 1),
        .block_elements = (uint32_t)n_block,
    };
}

void cuda_tile_add(struct cuda_tile *t, const struct cpu_box *box, const struct cpu_view *inputs,
                   const struct cpu_view *outputs)
{
    assert(t->n_grains < t->max_grains);
    const struct pass *pass = &t->program->passes[t->pass];
    struct code_grain *grain = grain_at(t, t->n_grains);
    uint64_t n_elements = 1;
    unsigned n = 0;
    for (int i = 0; i < box->ndim; i++)
        n_elements *= (uint64_t)box->count[i];
    assert(n_elements > 0 && n_elements <= INT32_MAX);
    *grain = divide_grain(t, n_elements);
    for (uint64_t rest = t->places.inputs; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        write_view(t, box, &inputs[i], t->program->inputs[i].dtype, place_in(t, grain, n++));
    }
    for (uint32_t rest = t->places.axes; rest != 0; rest &= rest - 1)
        write_index(box, __builtin_ctz(rest), place_in(t, grain, n++));
    for (unsigned i = 0; i < pass->n_stores; i++) {
        const struct store *store = &t->program->stores[pass->first_store + i];
        write_view(t, box, &outputs[store->output], (enum dtype)store->src.dtype,
                   place_in(t, grain, n++));
    }
    t->n_blocks = (unsigned)max_u64(t->n_blocks, grain->n_blocks);
    t->n_grains++;
}

uint64_t cuda_tile_to_device_bytes(const struct cuda_tile *t)
{
    return t->inputs_end;
}

void cuda_tile_from_device(const struct cuda_tile *t, uint64_t *ret_offset, uint64_t *ret_n_bytes)
{
    *ret_offset = t->results_offset;
    *ret_n_bytes = t->outputs_end - t->results_offset;
}

struct interpreter_launch cuda_tile_describe(const struct cuda_tile *t)
{
    struct interpreter_launch launch = {
        .header = t->header,
        .n_grains = t->n_grains,
        .n_blocks = t->n_blocks,
        .read_bytes = cuda_tile_to_device_bytes(t),
    };
    cuda_tile_from_device(t, &launch.write_offset, &launch.write_bytes);
    return launch;
}

static const struct code_state *states_of(const struct cuda_tile *t, unsigned grain, unsigned block)
{
    uint64_t index = (uint64_t)grain * t->header.blocks_of_grain + block;
    return (const struct code_state *)(t->slot + t->results_offset +
                                       index * t->header.result_bytes);
}

static void finish(const struct reduction *reduction, uint32_t kind, const struct code_state *state,
                   struct partial *ret)
{
    *ret = (struct partial){.value.u64 = state->value.u64};
    if (kind == CODE_SUM_FLOAT && isfinite(state->value.f64) && state->more.lost != 0)
        ret->value.f64 = state->value.f64 + state->more.lost;
    if (kind >= CODE_MIN && reduction->src.dtype == DTYPE_FLOAT32)
        ret->value = (union scalar){.f32 = (float)state->value.f64};
}

static void combine_blocks(const struct cuda_tile *t, unsigned grain, const struct code_insn *insn,
                           const struct reduction *reduction, struct partial *ret_partial)
{
    unsigned n_blocks = grain_at(t, grain)->n_blocks;
    struct code_state state = states_of(t, grain, 0)[insn->index];
    for (unsigned i = 1; i < n_blocks; i++)
        state_combine(&state, &states_of(t, grain, i)[insn->index], insn->kind, insn->type);
    finish(reduction, insn->kind, &state, ret_partial);
}

int cuda_tile_result(const struct cuda_tile *t, unsigned grain, struct partial *ret_partials,
                     struct cpu_warnings *warnings)
{
    const struct pass *pass = &t->program->passes[t->pass];
    const struct code_header *h = &t->header;
    const struct code_insn *insns = (const struct code_insn *)(t->slot + h->insns_offset);
    uint64_t n_divisions = 0, n_casts = 0, n_powers = 0;
    assert(grain < t->n_grains);
    for (unsigned i = 0; h->has_events && i < grain_at(t, grain)->n_blocks; i++) {
        const struct code_state *events = &states_of(t, grain, i)[h->n_states - 1];
        n_divisions += events->value.events[CODE_EVENT_DIVISIONS];
        n_casts += events->value.events[CODE_EVENT_CASTS];
        n_powers += events->more.events[CODE_EVENT_POWERS - 2];
    }
    if (n_powers > 0)
        return GAD_NEGATIVE_POWER;
    for (unsigned i = (unsigned)h->n_insns - h->n_ends; i < h->n_insns; i++) {
        if (insns[i].action == ACTION_REDUCE)
            combine_blocks(t, grain, &insns[i],
                           &t->program->reductions[pass->first_reduction + insns[i].index],
                           &ret_partials[insns[i].index]);
    }
    warnings->n_divide_by_zero += n_divisions;
    warnings->n_invalid_casts += n_casts;
    return 0;
}
