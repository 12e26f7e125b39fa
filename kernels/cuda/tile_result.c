/* What came back from the device, of one grain: what arithmetic met, and the node of its
 * reductions.
 *
 * Where all axes are reduced, every block of the interpreter has left a state for each reduction;
 * they are combined here, in order. What tasks have found is in a node and is copied; that of scans
 * are their states, which the caller reads where they are. Called by the CUDA worker's threads.
 */
#include "kernels/cuda/tile_parts.h"

#include "kernels/cuda/device/reduce.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

static const struct code_state *states_of(const struct cuda_tile *t, unsigned grain, unsigned block)
{
    uint64_t index = (uint64_t)grain * t->header.blocks_of_grain + block;
    return (const struct code_state *)(t->slot + t->results_offset +
                                       index * t->header.result_bytes);
}

/* Of a block; 0 where they were not counted. */
static uint32_t counter_of(const struct cuda_tile *t, unsigned grain, unsigned block,
                           enum code_counter counter)
{
    const struct code_header *h = &t->header;
    if (!h->has_counters)
        return 0;
    const struct code_state *counters = &states_of(t, grain, block)[h->n_states - 1];
    return counter < 2 ? counters->value.counters[counter] : counters->more.counters[counter - 2];
}

static void combine_blocks(const struct cuda_tile *t, unsigned grain, const struct code_insn *insn,
                           const struct reduce_layout *layout, void *node)
{
    bool has_second = insn->kind == CODE_SQUARED_DEVIATIONS;
    uint32_t stride = sizeof(struct code_state), n = counter_of(t, grain, 0, CODE_COUNTER_ELEMENTS);
    struct code_state states[2];
    memcpy(states, &states_of(t, grain, 0)[insn->dst], (has_second ? 2 : 1) * sizeof(states[0]));
    for (unsigned i = 1; i < tile_grain_at(t, grain)->n_blocks; i++) {
        uint32_t n_other = counter_of(t, grain, i, CODE_COUNTER_ELEMENTS);
        state_combine(states, &states_of(t, grain, i)[insn->dst], stride, n, n_other, insn->kind,
                      insn->type);
        n += n_other;
    }
    const struct reduction *reduction = &layout->reductions[insn->index];
    for (unsigned plane = 0; plane < reduce_n_planes(reduction); plane++) {
        uint64_t bits = state_plane(states, stride, n, insn->kind, insn->type, plane);
        memcpy(reduce_plane(layout, node, insn->index, plane), &bits,
               dtype_size(reduce_plane_dtype(reduction, plane)));
    }
}

static const char *node_of(const struct cuda_tile *t, unsigned grain)
{
    return t->slot + t->header.nodes_offset + (uint64_t)grain * t->header.node_bytes;
}

static void copy_planes(const struct cuda_tile *t, unsigned grain,
                        const struct reduce_layout *layout, void *node)
{
    assert(!t->places.has_tasks || tile_grain_at(t, grain)->n_cells == layout->n_cells);
    for (unsigned i = 0; i < layout->n_reductions; i++) {
        const struct reduction *reduction = &layout->reductions[i];
        const char *from = node_of(t, grain) + t->nodes.planes[i];
        unsigned n_planes = encode_is_task(&t->places, reduction) ? reduce_n_planes(reduction) : 0;
        for (unsigned plane = 0; plane < n_planes; plane++, from += t->nodes.plane_bytes)
            memcpy(reduce_plane(layout, node, i, plane), from,
                   reduce_n_values(layout, i) * dtype_size(reduce_plane_dtype(reduction, plane)));
    }
}

const void *cuda_tile_states(const struct cuda_tile *t, unsigned grain, unsigned i)
{
    assert(t->places.scans && grain < t->n_grains);
    return node_of(t, grain) + t->nodes.planes[i];
}

const void *cuda_tile_chain(struct cuda_tile *t, unsigned i)
{
    t->is_chained = true;
    return cuda_tile_states(t, t->n_grains - 1, i);
}

static void write_node(const struct cuda_tile *t, unsigned grain,
                       const struct reduce_layout *layout, void *node)
{
    const struct code_header *h = &t->header;
    const struct code_insn *insns = (const struct code_insn *)(t->slot + h->insns_offset);
    struct reduce_header header = {tile_grain_at(t, grain)->n_elements / layout->n_cells};
    memset(node, 0, layout->n_bytes);
    memcpy(node, &header, sizeof(header));
    copy_planes(t, grain, layout, node);
    for (unsigned i = h->n_insns - h->n_ends; i < h->n_insns; i++) {
        if (insns[i].action == ACTION_REDUCE)
            combine_blocks(t, grain, &insns[i], layout, node);
    }
}

int cuda_tile_result(const struct cuda_tile *t, unsigned grain, const struct reduce_layout *layout,
                     void *ret_node, struct engine_warnings *warnings)
{
    uint64_t counts[CODE_COUNTER_ELEMENTS + 1] = {0};
    assert(grain < t->n_grains);
    for (unsigned block = 0; block < tile_grain_at(t, grain)->n_blocks; block++) {
        for (unsigned i = 0; i < ARRAY_LENGTH(counts); i++)
            counts[i] += counter_of(t, grain, block, (enum code_counter)i);
    }
    tile_add_counters(t, grain, counts);
    if (counts[CODE_COUNTER_POWERS] > 0)
        return GAD_NEGATIVE_POWER;
    if (t->program->passes[t->pass].n_reductions > 0 && !t->places.scans)
        write_node(t, grain, layout, ret_node);
    warnings->n_divide_by_zero += counts[CODE_COUNTER_DIVISIONS];
    warnings->n_invalid_casts += counts[CODE_COUNTER_CASTS];
    return 0;
}
