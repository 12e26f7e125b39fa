/* The CPU engine's turns.
 *
 * Per grain: the box of every operand, its place (in a mapping, in the tile's slot, in a ring),
 * reading what is staged, arithmetic, writing what is staged, handing sink blocks to their clients.
 *
 *     slot:   | input 0 | input 1 | ... | output 0 | ... |      in the order of the pass's ports
 *
 * The operands of a grain together fit a slot, or a part of it that the grain's number names. They
 * are put at multiples of 64 bytes as long as there is room for the gaps; the engine takes any
 * alignment. Where they are follows from the grain alone, so no thread tells another.
 *
 * Called by compute and I/O threads, and by the main thread for small jobs.
 */
#include "daemon/worker/cpu/engine.h"
#include "daemon/worker/nodes.h"
#include "daemon/worker/ring.h"
#include "daemon/worker/strips.h"
#include "proto/util.h"

#include <assert.h>

#define PART_MIN_BYTES (64 * 1024)

/* Places ------------------------------------------------------------------------------------- */

static int64_t staged_bytes(const struct port *port, const struct port_box *box)
{
    return port_can(port, PORT_STAGED) ? port_box_bytes(port, box) : 0;
}

/* One operand's place behind *offset. spare: what the slot has beyond the dense operands. */
static void *slot_place(const struct tile *t, int64_t n_bytes, int64_t *offset, int64_t *spare)
{
    int64_t padding = -*offset & 63;
    if (padding > *spare)
        padding = 0;
    *spare -= padding;
    *offset += padding + n_bytes;
    assert(*offset <= (int64_t)GRAIN_MAX_TOTAL_BYTES);
    return (char *)t->slot + *offset - n_bytes;
}

/* Where the grain's operands begin in the slot, and what is left there beside them. Grains that
 * need but a part of the slot take its parts in turn: the kernel copies into memory that has left
 * the first caches for some time a quarter faster than into what was just read. */
static void slot_part(const struct tile *t, const struct thread_context *th, int64_t *ret_offset,
                      int64_t *ret_spare)
{
    const struct wjob *job = t->job;
    int64_t n_bytes = 0;
    for (unsigned i = 0; i < job->n_inputs; i++)
        n_bytes += staged_bytes(job->inputs[i].port, &th->input_boxes[i]);
    for (unsigned i = 0; i < job->n_outputs; i++)
        n_bytes += staged_bytes(job->outputs[i].port, &th->output_boxes[i]);
    uint64_t n_parts = 1;
    if (n_bytes >= PART_MIN_BYTES)
        n_parts = GRAIN_MAX_TOTAL_BYTES / round_up_u64((uint64_t)n_bytes, 64);
    int64_t part_bytes = (int64_t)(GRAIN_MAX_TOTAL_BYTES / n_parts / 64 * 64);
    *ret_offset = (int64_t)(t->grain % n_parts) * part_bytes;
    *ret_spare = part_bytes - n_bytes;
}

static void operand_memory(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    int64_t offset, spare;
    slot_part(t, th, &offset, &spare);
    for (unsigned i = 0; i < job->n_inputs; i++) {
        const struct port *port = job->inputs[i].port;
        int64_t n_bytes = staged_bytes(port, &th->input_boxes[i]);
        if (port_can(port, PORT_STAGED))
            th->input_memory[i] = slot_place(t, n_bytes, &offset, &spare);
        else if (port->ring && t->has_blocks)
            th->input_memory[i] = ring_slot_memory(port->ring, t->ring_slots[i]);
    }
    for (unsigned i = 0; i < job->n_outputs; i++) {
        const struct port *port = job->outputs[i].port;
        int64_t n_bytes = staged_bytes(port, &th->output_boxes[i]);
        if (port_can(port, PORT_STAGED))
            th->output_memory[i] = slot_place(t, n_bytes, &offset, &spare);
        else if (port->ring && t->has_blocks)
            th->output_memory[i] =
                ring_slot_memory(port->ring, t->ring_slots[REQUEST_MAX_ARGS + i]);
    }
}

static void operand_views(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    bool is_large = tile_is_of_large_pass(t);
    int ndim = wjob_pass(job)->ndim;
    for (unsigned i = 0; i < job->n_inputs; i++) {
        const struct port *port = job->inputs[i].port;
        struct cpu_view *view = &th->inputs[job->inputs[i].index];
        if (!strips_input(t, th, view))
            port->ops->place(port, &th->input_boxes[i], th->input_memory[i], view);
        view->is_fetched_ahead = is_large && port->region;
        tile_broadcast_view(view, &port->array, ndim);
    }
    for (unsigned i = 0; i < job->n_outputs; i++) {
        const struct port *port = job->outputs[i].port;
        struct cpu_view *view = &th->outputs[job->outputs[i].index];
        if (!strips_output(t, th, view))
            port->ops->place(port, &th->output_boxes[i], th->output_memory[i], view);
        view->bypasses_cache = is_large && port->region;
        tile_broadcast_view(view, &port->array, ndim);
    }
}

/* The stages of a grain ---------------------------------------------------------------------- */

static int grain_fill(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    if (t->block)
        return strips_fill(t, th);
    for (unsigned i = 0; i < job->n_inputs; i++) {
        const struct port *port = job->inputs[i].port;
        if (!port->ops->fill)
            continue;
        int r =
            port->ops->fill(port, &th->input_boxes[i], th->input_memory[i], &th->io, &th->error);
        if (r)
            return r;
    }
    return 0;
}

struct engine_call {
    const struct tile *tile;
    struct thread_context *th;
    void *node; /* of this grain; NULL: no reductions */
    struct cpu_warnings *warnings;
};

static int engine_call(void *argument)
{
    const struct engine_call *call = argument;
    const struct wjob *job = call->tile->job;
    struct thread_context *th = call->th;
    const struct cpu_box box = tile_box(call->tile, th);
    return cpu_engine_run(th->cpu, job->program, job->pass, &box, th->inputs, th->outputs,
                          th->results, tile_node_layout(call->tile), call->node, call->warnings,
                          th->scratch);
}

static int grain_compute(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const void *address = NULL;
    struct engine_call call = {
        .tile = t, .th = th, .node = tile_node(t, th->count), .warnings = &t->measure.warnings};
    tile_result_views(t, th->start, th->results);
    int r = job->n_ranges > 0 ? guard_call(job->ranges, job->n_ranges, engine_call, &call, &address)
                              : engine_call(&call);
    return r ? tile_engine_error(t, r, address, &th->error) : 0;
}

/* Tiles -------------------------------------------------------------------------------------- */

static int grain_run(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    int r = 0;
    tile_boxes(t, t->grain, th);
    operand_memory(t, th);
    operand_views(t, th);
    if (job->pass_needs_slot && !t->is_staged) {
        uint64_t begin = clock_ns();
        r = grain_fill(t, th);
        t->measure.source_ns += clock_ns() - begin;
    }
    if (!r)
        r = grain_compute(t, th);
    if (!r && job->pass_needs_slot) {
        uint64_t begin = clock_ns();
        r = t->block ? strips_store(t, th) : tile_store(t, th);
        t->measure.sink_ns += clock_ns() - begin;
    }
    if (!r && job->has_rings)
        r = tile_give_blocks(t, th);
    if (!r)
        tile_grain_done(t, th);
    return r;
}

static enum tile_outcome run_grains(struct tile *t, struct thread_context *th)
{
    while (t->grain < t->end) {
        if (atomic_load_explicit(&t->job->is_stopped, memory_order_relaxed))
            return TILE_FAILED;
        if (t->job->has_rings && !t->has_blocks && !tile_take_blocks(t))
            return TILE_NEEDS_CLIENT;
        int r = grain_run(t, th);
        if (r == -EAGAIN)
            return TILE_NEEDS_READ;
        if (r) {
            th->status = r;
            return TILE_FAILED;
        }
    }
    return TILE_DONE;
}

enum tile_outcome engine_cpu_run(struct engine *e, struct tile *t, struct thread_context *th)
{
    (void)e;
    uint64_t begin = clock_ns();
    uint64_t staging = t->measure.source_ns + t->measure.sink_ns;
    enum tile_outcome outcome = run_grains(t, th);
    cpu_engine_fence();
    staging = t->measure.source_ns + t->measure.sink_ns - staging;
    t->measure.kernel_ns += clock_ns() - begin - staging;
    return outcome;
}

int engine_cpu_read(struct engine *e, struct tile *t, struct thread_context *th)
{
    (void)e;
    tile_boxes(t, t->grain, th);
    operand_memory(t, th);
    return grain_fill(t, th);
}
