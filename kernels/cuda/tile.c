/* Filling a slot for the device: where its parts begin, and what is copied and launched.
 *
 * cuda_tile_begin() encodes the pass and divides the slot, for as many grains as it is told;
 * operands are placed one behind the other in what is reserved for them. What a grain is, is
 * written by cuda_tile_add() (tile_grain.c), and read back by cuda_tile_result() (tile_result.c).
 * The slot's sizes are those of the largest grain; blocks' results and nodes lie at the same
 * distance for all grains. Tables are written once. Values, which are only read by tasks, and what
 * phases make (tile_phases.c) come last and are copied neither way.
 * Called by the CUDA worker's threads; the broker's planner asks cuda_tile_need_bytes().
 */
#include "kernels/cuda/encode.h"
#include "kernels/cuda/tile_parts.h"
#include "proto/util.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
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

/* All of the header but where results and nodes are, and grains' records: these begin at *ret_end.
 * n_cells: of the largest node. */
int tile_encode(const struct program *program, const struct pass *pass,
                const struct engine_view *reduced, uint64_t n_cells, char *slot, uint64_t at,
                struct code_header *h, struct encode_places *ret_places,
                struct encode_nodes *ret_nodes, uint64_t *ret_end)
{
    uint64_t n_bytes;
    int r = encode_places_of(program, pass, ret_places);
    if (r)
        return r;
    encode_nodes_init(ret_nodes, program, pass, ret_places, n_cells);
    r = encode_pass(program, pass, ret_places, reduced, ret_nodes, slot ? slot + at : NULL, h,
                    &n_bytes);
    if (r)
        return r;
    uint32_t *const offsets[] = {&h->cells_offset, &h->insns_offset,  &h->operands_offset,
                                 &h->kths_offset,  &h->tables_offset, &h->weights_offset};
    for (unsigned i = 0; i < ARRAY_LENGTH(offsets); i++)
        *offsets[i] += (uint32_t)at;
    h->place_bytes = tile_place_bytes(pass);
    h->window_bytes = tile_window_bytes(pass);
    h->n_windows = count_windows(ret_places);
    h->windows_at = (uint32_t)sizeof(struct code_grain) + h->n_places * h->place_bytes +
                    tile_runs_bytes(ret_places, (unsigned)pass->ndim);
    h->grain_bytes =
        (uint32_t)round_up_u64(h->windows_at + h->n_windows * h->window_bytes, RECORD_ALIGN);
    h->result_bytes = h->n_states * (uint32_t)sizeof(struct code_state);
    uint64_t n_blocks = (n_elements_of(pass) - 1) / tile_block_elements(h) + 1;
    h->blocks_of_grain = (uint32_t)min_u64(n_blocks, CODE_MAX_BLOCKS);
    *ret_end = round_up_u64(at + n_bytes, RECORD_ALIGN);
    return 0;
}

/* Of all values of a grain, each rounded up. The room has what phases make as if it were one box,
 * but it may be in parts. */
static uint64_t values_bytes(const struct cuda_tile *t, const struct engine_room *room)
{
    const struct encode_places *places = &t->places;
    uint64_t n_bytes = room->made_bytes;
    for (unsigned i = 0; i < t->n_phases; i++)
        n_bytes += (t->phases[i].header.n_windows + 1u) * t->phases[i].n_parts * TILE_VALUE_ALIGN;
    for (unsigned i = places->n_places - places->n_values; i < places->n_places; i++)
        n_bytes += round_up_u64(room->n_elements * dtype_size((enum dtype)places->places[i].dtype),
                                TILE_VALUE_ALIGN);
    return round_up_u64(n_bytes, ENGINE_SLOT_ALIGN);
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

static void note_tables(struct cuda_tile *t, const struct encode_places *places)
{
    for (unsigned i = 0; i < places->n_tables; i++)
        t->tables |= UINT64_C(1) << places->tables[i];
}

/* Encodes all passes, completes the header, divides the slot; where t->slot is NULL it counts. */
static int lay_out(struct cuda_tile *t, const struct engine_view *reduced,
                   const struct engine_room *room, struct parts *ret)
{
    struct code_header *h = &t->header;
    uint64_t n_grains = t->max_grains, at;
    int r = tile_encode(t->program, &t->program->passes[t->pass], reduced, room->n_cells, t->slot,
                        0, h, &t->places, &t->nodes, &at);
    r = r ? r : tile_encode_phases(t, reduced, &at);
    if (r)
        return r;
    h->grains_offset = (uint32_t)at;
    at += n_grains * h->grain_bytes;
    tile_place_records(t, n_grains, &at);
    if (at > UINT32_MAX)
        return -EINVAL;
    ret->tables = round_up_u64(at, ENGINE_SLOT_ALIGN);
    ret->inputs = ret->tables;
    note_tables(t, &t->places);
    for (unsigned i = 0; i < t->n_phases; i++)
        note_tables(t, &t->phases[i].places);
    for (uint64_t left = t->tables; left; left &= left - 1)
        ret->inputs += table_bytes(t->program, (unsigned)__builtin_ctzll(left));
    ret->results = round_up_u64(ret->inputs + n_grains * room->input_bytes, ENGINE_SLOT_ALIGN);
    at = ret->results + n_grains * h->blocks_of_grain * h->result_bytes;
    tile_place_counters(t, n_grains, &at);
    ret->nodes = round_up_u64(at, ENGINE_SLOT_ALIGN);
    ret->outputs = round_up_u64(ret->nodes + n_grains * t->nodes.n_bytes, ENGINE_SLOT_ALIGN);
    t->nowhere_offset = ret->outputs + n_grains * room->output_bytes;
    ret->values = t->nowhere_offset + (t->n_phases > 0 ? ENGINE_SLOT_ALIGN : 0);
    t->values_bytes = values_bytes(t, room);
    ret->end = ret->values + n_grains * t->values_bytes;
    h->node_bytes = (uint32_t)t->nodes.n_bytes;
    h->plane_bytes = t->nodes.plane_bytes;
    h->results_offset = ret->results;
    h->nodes_offset = ret->nodes;
    return 0;
}

static void tile_init(struct cuda_tile *t, const struct program *program, unsigned pass,
                      uint64_t n_grains, char *slot, uint64_t slot_bytes)
{
    memset(t, 0, offsetof(struct cuda_tile, phases));
    t->program = program;
    t->pass = pass;
    t->slot = slot;
    t->slot_bytes = slot_bytes;
    t->max_grains = (unsigned)n_grains;
}

uint64_t cuda_tile_need_bytes(const struct program *program, unsigned pass, uint64_t n_grains,
                              const struct engine_room *room)
{
    struct cuda_tile t;
    struct parts parts;
    tile_init(&t, program, pass, n_grains, NULL, 0);
    return lay_out(&t, NULL, room, &parts) == 0 ? parts.end : UINT64_MAX; /* fits nowhere */
}

/* One behind the other, in the order of their numbers. */
static void write_tables(const struct cuda_tile *t, const struct engine_view *reduced,
                         uint64_t offset)
{
    for (uint64_t left = t->tables; left; left &= left - 1) {
        unsigned reduction = (unsigned)__builtin_ctzll(left);
        memcpy(t->slot + offset, reduced[reduction].base,
               table_values(t->program, reduction) *
                   dtype_size((enum dtype)t->program->reductions[reduction].result));
        offset += table_bytes(t->program, reduction);
    }
}

static void point_to_tables(const struct cuda_tile *t, const struct code_header *header,
                            const struct encode_places *places, uint64_t offset)
{
    struct code_table *tables = (struct code_table *)(t->slot + header->tables_offset);
    for (uint64_t left = t->tables; left; left &= left - 1) {
        unsigned reduction = (unsigned)__builtin_ctzll(left);
        for (unsigned i = 0; i < places->n_tables; i++)
            if (places->tables[i] == reduction)
                tables[i] = (struct code_table){
                    .offset = offset, .n_values = (uint32_t)table_values(t->program, reduction)};
        offset += table_bytes(t->program, reduction);
    }
}

int cuda_tile_begin(struct cuda_tile *t, const struct program *program, unsigned pass,
                    const struct engine_view *reduced, unsigned max_grains,
                    const struct engine_room *room, char *slot, uint64_t slot_bytes)
{
    struct parts parts;
    assert((uintptr_t)slot % ENGINE_SLOT_ALIGN == 0 && max_grains <= CUDA_TILE_MAX_GRAINS);
    tile_init(t, program, pass, max_grains, NULL, 0);
    if (lay_out(t, reduced, room, &parts) != 0 || slot_bytes < parts.end)
        return -ENOSPC;
    tile_init(t, program, pass, max_grains, slot, slot_bytes);
    int r = lay_out(t, reduced, room, &parts);
    if (r)
        return r;
    write_tables(t, reduced, parts.tables);
    point_to_tables(t, &t->header, &t->places, parts.tables);
    for (unsigned i = 0; i < t->n_phases; i++)
        point_to_tables(t, &t->phases[i].header, &t->phases[i].places, parts.tables);
    t->grains_offset = t->header.grains_offset;
    t->grain_bytes = t->header.grain_bytes;
    t->inputs_end = parts.inputs;
    t->inputs_limit = t->results_offset = parts.results;
    t->outputs_end = parts.outputs;
    t->outputs_limit = t->nowhere_offset;
    t->values_offset = parts.values;
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
    tile_window_grids(t, &t->places, t->n_window_blocks, &launch);
    if (t->values_bytes > 0)
        launch.write_bytes = t->values_offset + t->n_grains * t->values_bytes - t->results_offset;
    if (t->n_phases > 0) /* it reads what they have written */
        launch.read_bytes = launch.write_offset + launch.write_bytes;
    return launch;
}
