/* Filling a slot for the device: where its parts begin, and what is copied and launched.
 *
 * cuda_tile_begin() encodes the pass and divides the slot, for as many grains as it is told;
 * operands are placed one behind the other in what is reserved for them. What a grain is, is
 * written by cuda_tile_add() (tile_grain.c), and read back by cuda_tile_result() (tile_result.c).
 * The slot's sizes are those of the largest grain; blocks' results and nodes lie at the same
 * distance for all grains. Tables are written once. Values that are only read by tasks come last
 * and are copied neither way.
 * Called by the CUDA worker's threads; the broker's planner asks cuda_tile_need_bytes().
 */
#include "kernels/cuda/encode.h"
#include "kernels/cuda/tile_parts.h"
#include "proto/util.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define RECORD_ALIGN 16u

struct parts { /* of a slot: offsets */
    uint64_t tables, inputs, results, nodes, outputs, values, end;
};

static uint64_t n_elements_of(const struct pass *pass)
{
    uint64_t n = 1;
    for (int i = 0; i < pass->ndim; i++) {
        if (__builtin_mul_overflow(n, (uint64_t)pass->shape[i], &n))
            return UINT64_MAX;
    }
    return n;
}

static unsigned count_windows(const struct encode_places *places)
{
    unsigned n = 0;
    for (unsigned i = 0; i < places->n_places; i++)
        n += places->places[i].what == ENCODE_WINDOW;
    return n;
}

/* What the header says of records and results; all offsets up to the grains'. n_cells: of the
 * largest node. */
static int encode(const struct program *program, unsigned pass, const struct engine_view *reduced,
                  uint64_t n_cells, char *code, struct code_header *h,
                  struct encode_places *ret_places, struct encode_nodes *ret_nodes)
{
    uint64_t n_bytes;
    int r = encode_places_of(program, pass, ret_places);
    if (r)
        return r;
    encode_nodes_init(ret_nodes, program, pass, ret_places, n_cells);
    r = encode_pass(program, pass, ret_places, reduced, ret_nodes, code, h, &n_bytes);
    if (r)
        return r;
    unsigned ndim = (unsigned)program->passes[pass].ndim;
    h->place_bytes = tile_place_bytes(&program->passes[pass]);
    h->window_bytes = tile_window_bytes(&program->passes[pass]);
    h->n_windows = count_windows(ret_places);
    h->windows_at = (uint32_t)sizeof(struct code_grain) + h->n_places * h->place_bytes +
                    tile_runs_bytes(ret_places, ndim);
    h->grain_bytes =
        (uint32_t)round_up_u64(h->windows_at + h->n_windows * h->window_bytes, RECORD_ALIGN);
    h->grains_offset = (uint32_t)round_up_u64(n_bytes, RECORD_ALIGN);
    h->result_bytes = h->n_states * (uint32_t)sizeof(struct code_state);
    uint64_t n_blocks = (n_elements_of(&program->passes[pass]) - 1) / CODE_BLOCK_ELEMENTS + 1;
    h->blocks_of_grain = (uint32_t)min_u64(n_blocks, CODE_MAX_BLOCKS);
    return 0;
}

/* Of all values and windows of a grain, each rounded up. */
static uint64_t values_bytes(const struct encode_places *places, uint64_t n_elements)
{
    uint64_t n_bytes = 0;
    for (unsigned i = 0; i < places->n_places; i++)
        if (places->places[i].what == ENCODE_WINDOW || i >= places->n_places - places->n_values)
            n_bytes += round_up_u64(n_elements * dtype_size((enum dtype)places->places[i].dtype),
                                    ENGINE_SLOT_ALIGN);
    return n_bytes;
}

static uint64_t table_values(const struct program *program, unsigned reduction)
{
    int64_t shape[ARRAY_MAX_NDIM];
    uint64_t n = 1;
    int ndim = program_reduction_shape(program, reduction, shape);
    for (int i = 0; i < ndim; i++)
        n *= (uint64_t)shape[i];
    return n;
}

/* What a table takes of a slot. */
static uint64_t table_bytes(const struct program *program, unsigned reduction)
{
    enum dtype dtype = (enum dtype)program->reductions[reduction].result;
    return round_up_u64(table_values(program, reduction) * dtype_size(dtype), ENGINE_SLOT_ALIGN);
}

/* Completes the header. */
static void divide_slot(const struct program *program, struct code_header *h,
                        const struct encode_places *places, const struct encode_nodes *nodes,
                        uint64_t n_grains, const struct engine_room *room, struct parts *ret)
{
    uint64_t results_bytes = n_grains * h->blocks_of_grain * h->result_bytes;
    ret->tables = round_up_u64(h->grains_offset + n_grains * h->grain_bytes, ENGINE_SLOT_ALIGN);
    ret->inputs = ret->tables;
    for (unsigned i = 0; i < places->n_tables; i++)
        ret->inputs += table_bytes(program, places->tables[i]);
    ret->results = round_up_u64(ret->inputs + n_grains * room->input_bytes, ENGINE_SLOT_ALIGN);
    ret->nodes = round_up_u64(ret->results + results_bytes, ENGINE_SLOT_ALIGN);
    ret->outputs = round_up_u64(ret->nodes + n_grains * nodes->n_bytes, ENGINE_SLOT_ALIGN);
    ret->values = ret->outputs + n_grains * room->output_bytes;
    ret->end = ret->values + n_grains * values_bytes(places, room->n_elements);
    h->node_bytes = (uint32_t)nodes->n_bytes;
    h->plane_bytes = nodes->plane_bytes;
    h->results_offset = ret->results;
    h->nodes_offset = ret->nodes;
}

uint64_t cuda_tile_need_bytes(const struct program *program, unsigned pass, uint64_t n_grains,
                              const struct engine_room *room)
{
    struct code_header h;
    struct encode_places places;
    struct encode_nodes nodes;
    struct parts parts;
    if (encode(program, pass, NULL, room->n_cells, NULL, &h, &places, &nodes) != 0)
        return UINT64_MAX; /* fits nowhere */
    divide_slot(program, &h, &places, &nodes, n_grains, room, &parts);
    return parts.end;
}

static void write_tables(const struct cuda_tile *t, const struct engine_view *reduced,
                         uint64_t offset)
{
    struct code_table *tables = (struct code_table *)(t->slot + t->header.tables_offset);
    for (unsigned i = 0; i < t->places.n_tables; i++) {
        unsigned reduction = t->places.tables[i];
        uint64_t n = table_values(t->program, reduction);
        tables[i] = (struct code_table){.offset = offset, .n_values = (uint32_t)n};
        memcpy(t->slot + offset, reduced[reduction].base,
               n * dtype_size((enum dtype)t->program->reductions[reduction].result));
        offset += table_bytes(t->program, reduction);
    }
}

int cuda_tile_begin(struct cuda_tile *t, const struct program *program, unsigned pass,
                    const struct engine_view *reduced, unsigned max_grains,
                    const struct engine_room *room, char *slot, uint64_t slot_bytes)
{
    struct parts parts;
    assert((uintptr_t)slot % ENGINE_SLOT_ALIGN == 0 && max_grains <= CUDA_TILE_MAX_GRAINS);
    *t = (struct cuda_tile){
        .program = program,
        .pass = pass,
        .slot = slot,
        .slot_bytes = slot_bytes,
        .max_grains = max_grains,
    };
    if (slot_bytes < cuda_tile_need_bytes(program, pass, max_grains, room))
        return -ENOSPC;
    int r = encode(program, pass, reduced, room->n_cells, slot, &t->header, &t->places, &t->nodes);
    if (r)
        return r;
    divide_slot(program, &t->header, &t->places, &t->nodes, max_grains, room, &parts);
    write_tables(t, reduced, parts.tables);
    t->grains_offset = t->header.grains_offset;
    t->grain_bytes = t->header.grain_bytes;
    t->inputs_end = parts.inputs;
    t->inputs_limit = t->results_offset = parts.results;
    t->outputs_end = parts.outputs;
    t->outputs_limit = t->values_offset = parts.values;
    t->values_bytes = values_bytes(&t->places, room->n_elements);
    return 0;
}

static void *place(struct cuda_tile *t, uint64_t *end, uint64_t limit, uint64_t n_bytes)
{
    void *memory = t->slot + *end;
    *end += round_up_u64(n_bytes, ENGINE_SLOT_ALIGN);
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
        .n_window_blocks = t->has_windows ? t->n_window_blocks : 0,
        .n_rank_blocks = t->has_ranks ? t->n_window_blocks : 0,
        .n_blocks = t->header.n_insns > 0 ? t->n_blocks : 0,
        .n_axes_blocks = t->header.n_axes_tasks > 0 ? t->n_task_blocks : 0,
        .n_count_blocks = t->n_count_blocks,
        .n_scan_blocks = t->header.n_scan_tasks > 0 ? t->n_task_blocks : 0,
        .read_bytes = cuda_tile_to_device_bytes(t),
        .write_offset = t->results_offset,
        .write_bytes = t->outputs_end - t->results_offset,
        .outside_read = t->outside_read,
        .outside_written = t->outside_written,
    };
    if (t->values_bytes > 0)
        launch.write_bytes = t->values_offset + t->n_grains * t->values_bytes - t->results_offset;
    return launch;
}
