/* The CPU engine's turns.
 *
 * Per grain: the box of every operand, its place (in a mapping, in the tile's slot, in a ring),
 * reading what is staged, arithmetic, writing what is staged, handing sink blocks to their clients;
 * reading and writing of several grains at once where there is room for them.
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
#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/swaths.h"
#include "daemon/worker/turns/scheduler.h"
#include "daemon/worker/walks/walk_product.h"
#include "proto/util.h"

#include <assert.h>
#include <errno.h>

#define PART_MIN_BYTES (64 * 1024)
#define STATES_ALIGN   64

/* Places ------------------------------------------------------------------------------------- */

static int64_t staged_bytes(const struct tile *t, const struct thread_context *th, unsigned input)
{
    const struct port *port = t->ports->inputs[input].port;
    return port_can(port, PORT_STAGED) ? together_input_bytes(t, th, input) : 0;
}

/* On its way to or from a journal every output passes the slot. */
static bool is_output_staged(const struct tile *t, const struct port *port)
{
    return port_can(port, PORT_STAGED) || t->step == WALK_LOG || t->step == WALK_APPLY;
}

static int64_t output_bytes(const struct tile *t, const struct port *port,
                            const struct port_box *box)
{
    return is_output_staged(t, port) ? together_bytes(t, port, box) : 0;
}

/* One operand's place behind *offset. spare: what the slot has beyond the dense operands. */
static void *slot_place(const struct tile *t, int64_t n_bytes, int64_t *offset, int64_t *spare)
{
    int64_t padding = -*offset & 63;
    if (padding > *spare)
        padding = 0;
    *spare -= padding;
    *offset += padding + n_bytes;
    return (char *)t->slot + *offset - n_bytes;
}

/* Of what the pass's repeats keep, behind all operands. */
static uint64_t states_bytes(const struct tile *t, const struct thread_context *th)
{
    return cpu_states_bytes(t->job->program, tile_pass(t), th->start, th->count);
}

/* Where the grain's operands begin in the slot, and what is left there beside them; of grains that
 * are read together, all of theirs. Those that need but a part of the slot take its parts in turn:
 * the kernel copies into memory that has left the first caches for some time a quarter faster than
 * into what was just read. */
static void slot_part(const struct tile *t, const struct thread_context *th, int64_t *ret_offset,
                      int64_t *ret_spare)
{
    const struct pass_ports *ports = t->ports;
    int64_t n_bytes = 0;
    for (unsigned i = 0; i < ports->n_inputs; i++)
        n_bytes += staged_bytes(t, th, i);
    for (unsigned i = 0; i < ports->n_outputs; i++)
        n_bytes += output_bytes(t, ports->outputs[i].port, &th->output_boxes[i]);
    if (tile_pass(t)->repeats)
        n_bytes = (int64_t)(round_up_u64((uint64_t)n_bytes, STATES_ALIGN) + states_bytes(t, th));
    assert(n_bytes <= (int64_t)th->slot_bytes);
    uint64_t n_parts = 1;
    if (n_bytes >= PART_MIN_BYTES)
        n_parts = max_u64(th->slot_bytes / round_up_u64((uint64_t)n_bytes, 64), 1);
    int64_t part_bytes = (int64_t)(th->slot_bytes / n_parts / 64 * 64);
    uint64_t n_together = t->together.end - t->together.first;
    *ret_offset = (int64_t)(t->together.first / n_together % n_parts) * part_bytes;
    *ret_spare = part_bytes - n_bytes;
}

static void operand_memory(const struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    int64_t offset, spare;
    slot_part(t, th, &offset, &spare);
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        const struct port *port = ports->inputs[i].port;
        if (port_can(port, PORT_STAGED))
            th->input_memory[i] = slot_place(t, staged_bytes(t, th, i), &offset, &spare);
        else if (port->ring && tile_has_blocks(t))
            th->input_memory[i] = ring_slot_memory(port->ring, tile_ring_slot(t, t->grain, i));
    }
    for (unsigned i = 0; i < ports->n_outputs; i++) {
        const struct port *port = ports->outputs[i].port;
        int64_t n_bytes = output_bytes(t, port, &th->output_boxes[i]);
        if (is_output_staged(t, port))
            th->output_memory[i] = slot_place(t, n_bytes, &offset, &spare);
        else if (port->ring && tile_has_blocks(t))
            th->output_memory[i] =
                ring_slot_memory(port->ring, tile_ring_slot(t, t->grain, REQUEST_MAX_ARGS + i));
    }
    th->states = tile_pass(t)->repeats
                     ? (char *)t->slot + round_up_u64((uint64_t)offset, STATES_ALIGN)
                     : NULL;
}

/* Of the grain in hand. */
static void grain_places(struct tile *t, struct thread_context *th)
{
    tile_boxes(t, t->grain, th);
    if (t->grain >= t->together.end)
        together_begin(t, th);
    operand_memory(t, th);
}

static void operand_views(const struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    bool is_large = tile_is_of_large_pass(t);
    int ndim = tile_pass(t)->ndim;
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        const struct port *port = ports->inputs[i].port;
        struct engine_view *view = &th->inputs[ports->inputs[i].index];
        view->is_fetched_ahead = is_large && port->region;
        if (swaths_input(t, th, view))
            port_pass_view(port, ndim, view);
        else
            together_input_views(t, th, i);
    }
    for (unsigned i = 0; i < ports->n_outputs; i++) {
        const struct port *port = ports->outputs[i].port;
        struct engine_view *view = &th->outputs[ports->outputs[i].index];
        if (t->step == WALK_LOG && port_can(port, PORT_MAPPED))
            port_place_dense(port, &th->output_boxes[i], th->output_memory[i], view);
        else if (!swaths_output(t, th, view))
            together_place(t, port, &th->output_boxes[i], th->output_memory[i], view);
        view->bypasses_cache = is_large && port->region && t->step != WALK_LOG;
        port_pass_view(port, ndim, view);
    }
}

/* The stages of a grain ---------------------------------------------------------------------- */

static int grain_fill(struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    if (t->block)
        return swaths_fill(t, th);
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        int r = ports->inputs[i].port->ops->fill ? together_fill(t, th, i) : 0;
        if (r)
            return r;
    }
    return 0;
}

struct engine_call {
    struct tile *tile;
    struct thread_context *th;
    void *node; /* of this grain; NULL: no reductions */
    struct engine_warnings *warnings;
};

static bool may_go_on(void *argument)
{
    const struct engine_call *call = argument;
    return sched_may_go_on(call->tile, call->th);
}

static int engine_call(void *argument)
{
    const struct engine_call *call = argument;
    const struct wjob *job = call->tile->job;
    struct thread_context *th = call->th;
    const struct engine_pace pace = {may_go_on, argument};
    struct engine_box box = tile_box(call->tile, th);
    box.pace = &pace;
    box.states = th->states;
    box.window_memory = (char *)th->scratch + CPU_SCRATCH_BYTES;
    return cpu_engine_run(th->cpu, job->program, call->tile->pass, &box, th->inputs, th->outputs,
                          th->results, tile_node_layout(call->tile), call->node, call->warnings,
                          th->scratch);
}

static int grain_compute(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const void *address = NULL;
    struct engine_call call = {
        .tile = t, .th = th, .node = tile_node(t, th->count), .warnings = &t->measure.warnings};
    job->walk.ops->views(t, th->start, th->outputs, th->results);
    int r = job->n_ranges > 0 ? guard_call(job->ranges, job->n_ranges, engine_call, &call, &address)
                              : engine_call(&call);
    return r && r != -ECANCELED ? tile_engine_error(t, r, address, &th->error) : r;
}

static int grain_store(struct tile *t, struct thread_context *th)
{
    if (t->step == WALK_LOG)
        return walk_log_store(t, th);
    return t->block ? swaths_store(t, th) : together_store(t, th);
}

static void count_source(struct tile *t, struct thread_context *th, uint64_t begin_ns)
{
    uint64_t end_ns = clock_ns();
    t->measure.source_ns += end_ns - begin_ns;
    tile_trace(t, th, TRACE_READ, begin_ns, end_ns);
}

static void count_sink(struct tile *t, struct thread_context *th, uint64_t begin_ns)
{
    uint64_t end_ns = clock_ns();
    t->measure.sink_ns += end_ns - begin_ns;
    tile_trace(t, th, TRACE_WRITE, begin_ns, end_ns);
}

/* Steps -------------------------------------------------------------------------------------- */

static int grain_run(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const struct pass_ports *ports = t->ports;
    int r = 0;
    grain_places(t, th);
    operand_views(t, th);
    if (ports->needs_slot && !t->is_staged && t->grain == t->together.first) {
        uint64_t begin = clock_ns();
        r = grain_fill(t, th);
        count_source(t, th, begin);
    }
    if (!r)
        r = grain_compute(t, th);
    if (!r && ports->needs_slot && ports->n_outputs > 0) {
        uint64_t begin = clock_ns();
        r = grain_store(t, th);
        count_sink(t, th, begin);
    }
    if (!r && job->has_rings)
        r = tile_give_blocks(t, TILE_SOURCES | TILE_SINKS, th);
    return r;
}

static int grain_read(struct tile *t, struct thread_context *th)
{
    grain_places(t, th);
    return grain_fill(t, th);
}

static int panel_fill(const struct tile *t, struct thread_context *th)
{
    return t->slab ? cpu_slab_fill(t, th) : cpu_product_fill(t, th);
}

static int panel_read(struct tile *t, struct thread_context *th)
{
    tile_boxes(t, t->grain, th);
    return panel_fill(t, th);
}

/* There is nothing to compute. */
static int panel_run(struct tile *t, struct thread_context *th)
{
    uint64_t begin = clock_ns();
    tile_boxes(t, t->grain, th);
    int r = t->is_staged ? 0 : panel_fill(t, th);
    count_source(t, th, begin);
    return r;
}

static int apply_read(struct tile *t, struct thread_context *th)
{
    grain_places(t, th);
    return walk_log_load(t, th);
}

/* From the journal to the output. */
static int apply_run(struct tile *t, struct thread_context *th)
{
    uint64_t begin = clock_ns();
    grain_places(t, th);
    int r = t->is_staged ? 0 : walk_log_load(t, th);
    if (!r)
        r = walk_log_apply(t, th);
    count_sink(t, th, begin);
    return r;
}

/* What is done with a tile: the whole of it, or each of its grains; and the read of a grain that
 * would have made run wait for a disk. */
static const struct {
    int (*run)(struct tile *t, struct thread_context *th);
    int (*run_grain)(struct tile *t, struct thread_context *th);
    int (*read_grain)(struct tile *t, struct thread_context *th);
} steps[WALK_N_STEPS] = {
    [WALK_COMPUTE] = {.run_grain = grain_run, .read_grain = grain_read},
    [WALK_LOG] = {.run_grain = grain_run, .read_grain = grain_read},
    [WALK_FILL] = {.run_grain = panel_run, .read_grain = panel_read},
    [WALK_APPLY] = {.run_grain = apply_run, .read_grain = apply_read},
    [WALK_MULTIPLY] = {.run = cpu_product_multiply},
    [WALK_STEPS] = {.run = cpu_slab_steps},
    [WALK_MARK] = {.run = walk_log_mark},
};

/* Tiles -------------------------------------------------------------------------------------- */

/* -EAGAIN is of grains that would have waited for a disk, and an error where nothing is read. */
static enum tile_outcome outcome_of(const struct tile *t, int r, struct thread_context *th)
{
    if (r == -EAGAIN && steps[t->step].read_grain)
        return TILE_NEEDS_READ;
    th->status = r == -ECANCELED ? 0 : r;
    return r ? TILE_FAILED : TILE_DONE;
}

static enum tile_outcome run_step(struct tile *t, struct thread_context *th)
{
    if (steps[t->step].run)
        return outcome_of(t, steps[t->step].run(t, th), th);
    while (t->grain < t->end) {
        if (!sched_may_go_on(t, th))
            return TILE_FAILED;
        if (t->job->has_rings && !tile_has_blocks(t) && !tile_take_blocks(t, 1))
            return t->grain < t->end ? TILE_NEEDS_CLIENT : TILE_DONE;
        int r = steps[t->step].run_grain(t, th);
        if (r)
            return outcome_of(t, r, th);
        tile_grain_done(t, th);
    }
    int r = t->slab ? cpu_slab_steps(t, th) : 0;
    th->status = r == -ECANCELED ? 0 : r;
    return r ? TILE_FAILED : TILE_DONE;
}

enum tile_outcome cpu_turn_run(struct engine *e, struct tile *t, struct thread_context *th)
{
    th->slot_bytes = e->limits.slot_bytes;
    uint64_t begin = clock_ns();
    uint64_t aside = th->aside_ns;
    uint64_t staging = t->measure.source_ns + t->measure.sink_ns;
    th->traced_ns = begin;
    enum tile_outcome outcome = run_step(t, th);
    cpu_engine_fence();
    uint64_t end = clock_ns();
    tile_trace_kernel(t, th, end);
    staging = t->measure.source_ns + t->measure.sink_ns - staging;
    t->measure.kernel_ns += end - begin - staging - (th->aside_ns - aside);
    return outcome;
}

int cpu_turn_read(struct engine *e, struct tile *t, struct thread_context *th)
{
    th->slot_bytes = e->limits.slot_bytes;
    return steps[t->step].read_grain(t, th);
}
