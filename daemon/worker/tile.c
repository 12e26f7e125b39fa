/* What a thread does with a tile.
 *
 * Per grain: the box of every operand, its place (in a mapping, in the tile's slot, in a ring),
 * reading what is staged, arithmetic, writing what is staged, handing sink blocks to their clients.
 *
 *     slot:   | input 0 | input 1 | ... | output 0 | ... |      in the order of the pass's ports
 *
 * The operands of a grain together fit a slot, or a part of it that the grain's number names. They
 * are put at multiples of 64 bytes as long as there is room for the gaps; the engine takes any
 * alignment.
 *
 * A tile stops being in hand at the boundary of a grain, or before the arithmetic of one: because a
 * read would wait for a disk (an I/O thread then reads the whole grain and the tile comes back
 * staged, with its slot), or because a client has not filled or drained a block (the tile comes
 * back without a slot). Whatever the order of threads, places are the same, so a grain that was
 * staged by one thread can be computed by another.
 *
 * Partials of reductions go into the tile's stack grain by grain, in order.
 */
#include "daemon/worker/tile.h"
#include "daemon/worker/ring.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

#define PREFETCH_GRAINS 8
#define PART_MIN_BYTES  (64 * 1024)
#define LARGE_CACHES    2 /* a pass that moves more than so many last-level caches is large */

void tile_init(struct tile *t, struct wjob *job, uint64_t index)
{
    const struct plan_pass *plan = &job->plan.passes[job->pass];
    uint64_t n_grains;
    t->job = job;
    t->next = NULL;
    t->state = TILE_IN_HAND;
    t->index = index;
    plan_tile_grains(plan, index, &t->grain, &n_grains);
    t->end = t->grain + n_grains;
    t->slot = NULL;
    t->has_begun = t->has_blocks = t->is_staged = false;
    t->measure = (struct measure){.source_ns = 0};
    if (wjob_pass(job)->n_reductions > 0)
        reduce_stack_init(&t->stack, wjob_pass(job)->n_reductions);
}

void tile_result(struct tile *t, struct partial *ret_partials)
{
    const struct pass *pass = wjob_pass(t->job);
    if (pass->n_reductions > 0)
        reduce_stack_finish(&t->stack, &t->job->program->reductions[pass->first_reduction],
                            ret_partials);
}

/* Boxes and places --------------------------------------------------------------------------- */

static void operand_boxes(const struct tile *t, uint64_t grain, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const struct geometry *g = &job->plan.passes[job->pass].geometry;
    geometry_grain(g, grain, th->start, th->count);
    for (unsigned i = 0; i < job->n_inputs; i++) {
        const struct array *array = &job->inputs[i].port->array;
        geometry_operand_box(g->ndim, th->start, th->count, array->ndim, array->shape,
                             th->input_boxes[i].start, th->input_boxes[i].count);
    }
    for (unsigned i = 0; i < job->n_outputs; i++) {
        const struct array *array = &job->outputs[i].port->array;
        geometry_operand_box(g->ndim, th->start, th->count, array->ndim, array->shape,
                             th->output_boxes[i].start, th->output_boxes[i].count);
    }
}

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

/* From the array's own axes to those of the pass: aligned to the right, what is broadcast stands
 * still. */
static void view_broadcast(struct cpu_view *view, const struct array *array, int ndim)
{
    int shift = ndim - array->ndim;
    for (int i = ndim - 1; i >= 0; i--)
        view->strides[i] = i < shift || array->shape[i - shift] == 1 ? 0 : view->strides[i - shift];
}

/* What such a pass writes has left the cache before anybody reads it. */
static bool moves_more_than_the_cache(const struct wjob *job)
{
    const struct plan_pass *plan = &job->plan.passes[job->pass];
    return plan->read_bytes + plan->write_bytes > LARGE_CACHES * cpu_last_cache_bytes();
}

static void operand_views(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    bool is_large = moves_more_than_the_cache(job);
    int ndim = wjob_pass(job)->ndim;
    for (unsigned i = 0; i < job->n_inputs; i++) {
        const struct port *port = job->inputs[i].port;
        struct cpu_view *view = &th->inputs[job->inputs[i].index];
        port->ops->place(port, &th->input_boxes[i], th->input_memory[i], view);
        view->is_fetched_ahead = is_large && port->region;
        view_broadcast(view, &port->array, ndim);
    }
    for (unsigned i = 0; i < job->n_outputs; i++) {
        const struct port *port = job->outputs[i].port;
        struct cpu_view *view = &th->outputs[job->outputs[i].index];
        port->ops->place(port, &th->output_boxes[i], th->output_memory[i], view);
        view->bypasses_cache = is_large && port->region;
        view_broadcast(view, &port->array, ndim);
    }
}

/* The stages of a grain ---------------------------------------------------------------------- */

static int grain_fill(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
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

static int grain_store(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    for (unsigned i = 0; i < job->n_outputs; i++) {
        const struct port *port = job->outputs[i].port;
        if (!port->ops->store)
            continue;
        int r =
            port->ops->store(port, &th->output_boxes[i], th->output_memory[i], &th->io, &th->error);
        if (r)
            return r;
    }
    return 0;
}

struct engine_call {
    const struct tile *tile;
    struct thread_context *th;
    struct cpu_warnings *warnings;
};

static int engine_call(void *argument)
{
    const struct engine_call *call = argument;
    const struct wjob *job = call->tile->job;
    struct thread_context *th = call->th;
    const struct cpu_box box = {.ndim = wjob_pass(job)->ndim,
                                .count = th->count,
                                .start = th->start,
                                .axis_order = job->plan.passes[job->pass].geometry.axis_order};
    return cpu_engine_run(th->engine, job->program, job->pass, &box, th->inputs, th->outputs,
                          job->reduced, th->partials, call->warnings, th->scratch);
}

static int region_fault(const struct wjob *job, const char *address, struct gad_error *error)
{
    const char *name = NULL;
    for (unsigned i = 0; i < job->n_ports; i++) {
        struct guard_range range = {0};
        if (job->ports[i].region)
            range =
                (struct guard_range){job->ports[i].region->base, job->ports[i].region->size_bytes};
        else if (job->ports[i].ring)
            range = ring_range(job->ports[i].ring);
        if (address >= range.base && (size_t)(address - range.base) < range.size_bytes)
            name = job->ports[i].name;
    }
    return error_set(error, GAD_REGION_FAULT, name,
                     "memory of the client was taken away while the job ran");
}

static int grain_compute(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const void *address = NULL;
    struct engine_call call = {.tile = t, .th = th, .warnings = &t->measure.warnings};
    int r = job->n_ranges > 0 ? guard_call(job->ranges, job->n_ranges, engine_call, &call, &address)
                              : engine_call(&call);
    if (r == -EFAULT)
        return region_fault(job, address, &th->error);
    if (r == GAD_NEGATIVE_POWER)
        return error_set(&th->error, GAD_NEGATIVE_POWER,
                         job->n_outputs > 0 ? job->outputs[0].port->name : NULL,
                         "an integer to a negative integer power has no integer result");
    if (r)
        return error_set(&th->error, GAD_INTERNAL, NULL, "the engine answered %d", r);
    return 0;
}

/* Bytes as the plan counts them: small arrays in memory once, others box by box. */
static void count_port(const struct port *port, const struct port_box *box, bool is_first,
                       uint64_t *by_path)
{
    uint64_t *n_bytes = &by_path[traffic_path_of(&port->array.at)];
    if (!port_can(port, PORT_MAPPED) || array_n_bytes(&port->array) > GRAIN_MAX_OPERAND_BYTES)
        *n_bytes += (uint64_t)port_box_bytes(port, box);
    else if (is_first)
        *n_bytes += (uint64_t)array_n_bytes(&port->array);
}

static void grain_count(struct tile *t, const struct thread_context *th)
{
    const struct wjob *job = t->job;
    bool is_first = t->grain == 0;
    for (unsigned i = 0; i < job->n_inputs; i++)
        count_port(job->inputs[i].port, &th->input_boxes[i], is_first, t->measure.read_bytes);
    for (unsigned i = 0; i < job->n_outputs; i++)
        count_port(job->outputs[i].port, &th->output_boxes[i], is_first, t->measure.write_bytes);
}

/* Tiles -------------------------------------------------------------------------------------- */

static int grain_run(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const struct pass *pass = wjob_pass(job);
    int r = 0;
    operand_boxes(t, t->grain, th);
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
        r = grain_store(t, th);
        t->measure.sink_ns += clock_ns() - begin;
    }
    if (!r && job->has_rings)
        r = tile_give_blocks(t, th);
    if (r)
        return r;
    if (pass->n_reductions > 0)
        reduce_stack_add(&t->stack, &job->program->reductions[pass->first_reduction], th->partials);
    grain_count(t, th);
    t->is_staged = false;
    t->grain++;
    return 0;
}

static enum tile_outcome tile_run_grains(struct tile *t, struct thread_context *th)
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

enum tile_outcome tile_run(struct tile *t, struct thread_context *th)
{
    struct wjob *job = t->job;
    uint64_t begin = clock_ns();
    uint64_t staging = t->measure.source_ns + t->measure.sink_ns;
    th->status = 0;
    if (th->page)
        crashpage_enter(th->page, job->identity.id, t->index, begin, CRASHPAGE_COMPUTING);
    if (!t->has_begun) {
        t->has_begun = true;
        worker_fault_point(job->request->label, t->index, job->plan.passes[job->pass].n_tiles);
    }
    enum tile_outcome outcome = tile_run_grains(t, th);
    cpu_engine_fence();
    if (th->page)
        crashpage_leave(th->page);
    staging = t->measure.source_ns + t->measure.sink_ns - staging;
    t->measure.kernel_ns += clock_ns() - begin - staging;
    return outcome;
}

static void tile_prefetch(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    uint64_t n_grains = job->plan.passes[job->pass].geometry.n_grains;
    uint64_t end = min_u64(t->grain + 1 + PREFETCH_GRAINS, n_grains);
    for (uint64_t grain = t->grain + 1; grain < end; grain++) {
        operand_boxes(t, grain, th);
        for (unsigned i = 0; i < job->n_inputs; i++)
            if (job->inputs[i].port->ops->prefetch)
                job->inputs[i].port->ops->prefetch(job->inputs[i].port, &th->input_boxes[i]);
    }
}

int tile_read(struct tile *t, struct thread_context *th)
{
    uint64_t begin = clock_ns();
    if (th->page)
        crashpage_enter(th->page, t->job->identity.id, t->index, begin, CRASHPAGE_BLOCKING);
    tile_prefetch(t, th);
    operand_boxes(t, t->grain, th);
    operand_memory(t, th);
    int r = grain_fill(t, th);
    t->is_staged = r == 0;
    if (th->page)
        crashpage_leave(th->page);
    t->measure.source_ns += clock_ns() - begin;
    return r;
}
