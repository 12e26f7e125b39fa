/* The CUDA engine's turns: what is done on the host with a tile before and after the device.
 *
 * Staging: every operand of every grain gets a place in the tile's slot (kernels/cuda/tile.h),
 * wherever its array lives: all grains' boxes of an input behind each other, then those of the next
 * one, so that what lies so in registered memory is one piece. They are filled grain by grain.
 * Elements in clients' memory and in blocks of rings are copied there densely in visiting order, so
 * that the device reads long runs; files are read there in the order of the file. A grain that
 * needs the same part of an input as the one before shares its copy. A read that would wait for a
 * disk puts the tile aside until an I/O thread has read the inputs of that grain. What lies in
 * registered memory as it would in the slot is not copied at all: the device does that itself
 * (direct.h). Of an input that is read near the slot has what lies around the grain, too (reads.h),
 * wherever that comes from. Results of earlier passes' reductions lie in the carry; those with more
 * than one element are copied as inputs are.
 *
 * Finishing: outputs go from the slot to where they belong, nodes of reductions, states of scans
 * and warnings are added grain by grain, in order. Outputs of a tile are written after all of its
 * inputs were read, and those of other tiles are other elements, so an output may lie on an input
 * as on the CPU.
 *
 * Turns of a matrix product that load a panel or store a part of C are such tiles, too: panels and
 * C are outside of the slot, and on the device alone (kernels/cuda/tile.h). What goes to a journal
 * first is packed as the journal has it.
 *
 * Where clients answer block by block a tile goes to the device in rounds: each has the grains
 * whose blocks are there, and room for what they give, when it begins (blocks.c). A source's block
 * goes back as soon as it was copied, a sink's keeps its place until it is filled. Between rounds a
 * tile has no slot: nobody's memory waits for a client.
 *
 * Called by compute and I/O threads, and by the main thread for small jobs.
 */
#include "daemon/worker/cuda/engine.h"
#include "daemon/worker/cuda/results.h"
#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/reads.h"
#include "daemon/worker/turns/scheduler.h"
#include "daemon/worker/walks/walk_product.h"
#include "proto/box.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

/* Layouts ------------------------------------------------------------------------------------ */

/* The box as it lies in the slot when it is copied there: dense in visiting order. Axes along which
 * the array stands still are copied once. */
static void place_in_slot(const struct tile *t, const struct port *port, const struct port_box *box,
                          char *memory, struct engine_view *ret_view)
{
    const struct geometry *g = tile_geometry(t);
    int64_t stride = port->item_bytes;
    ret_view->base = memory;
    ret_view->is_swapped = port->array.is_swapped;
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i] - (g->ndim - port->array.ndim);
        if (axis < 0)
            continue;
        bool stands = port_can(port, PORT_MAPPED) && port->array.strides[axis] == 0;
        ret_view->strides[axis] = stands ? 0 : stride;
        if (!stands)
            stride *= box->count[axis];
    }
}

static void place(const struct tile *t, const struct port *port, const struct port_box *box,
                  char *memory, struct engine_view *ret_view)
{
    if (port_can(port, PORT_STAGED))
        port->ops->place(port, box, memory, ret_view);
    else
        place_in_slot(t, port, box, memory, ret_view);
}

/* Where the elements of a port that is not staged are themselves. */
static void place_at_home(const struct tile *t, const struct port *port, const struct port_box *box,
                          unsigned ring_index, struct engine_view *ret_view)
{
    void *memory = NULL;
    if (port->ring)
        memory = ring_slot_memory(port->ring, tile_ring_slot(t, t->grain, ring_index));
    port->ops->place(port, box, memory, ret_view);
}

/* What is copied to the slot is read next by the device, from memory. */
static void copy_box(const struct tile *t, const struct port *port, const struct port_box *box,
                     const struct engine_view *from, const struct engine_view *to,
                     bool is_past_cache)
{
    const struct geometry *g = tile_geometry(t);
    struct box axes;
    axes.n = 0;
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i] - (g->ndim - port->array.ndim);
        bool stands = axis >= 0 && from->strides[axis] == 0 && to->strides[axis] == 0;
        if (axis >= 0 && !stands)
            box_add(&axes, box->count[axis], to->strides[axis], from->strides[axis]);
    }
    box_copy(&axes, to->base, from->base, (size_t)port->item_bytes, is_past_cache);
}

/* Staging ------------------------------------------------------------------------------------ */

static bool boxes_are_equal(const struct port_box *a, const struct port_box *b, int ndim)
{
    size_t n_bytes = (size_t)ndim * sizeof(a->start[0]);
    return memcmp(a->start, b->start, n_bytes) == 0 && memcmp(a->count, b->count, n_bytes) == 0;
}

/* How many bytes each box of a grain has, where its offset will be. */
static void measure_grain(struct cuda_work *work, const struct tile *t, unsigned grain,
                          const struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        const struct port *port = ports->inputs[i].port;
        const struct port_box *box = &th->input_boxes[i];
        size_t n_bytes = (size_t)port->array.ndim * sizeof(int64_t);
        bool is_shared = grain > 0 && boxes_are_equal(box, &work->boxes[i], port->array.ndim);
        work->input_offsets[grain][i] =
            is_shared
                ? CUDA_SHARED
                : (uint32_t)round_up_u64((uint64_t)port_box_bytes(port, box), ENGINE_SLOT_ALIGN);
        memcpy(work->boxes[i].start, box->start, n_bytes);
        memcpy(work->boxes[i].count, box->count, n_bytes);
    }
    for (unsigned i = 0; i < ports->n_outputs; i++)
        work->output_offsets[grain][i] =
            (uint32_t)port_box_bytes(ports->outputs[i].port, &th->output_boxes[i]);
}

static uint32_t offset_of(const struct cuda_work *work, const void *memory)
{
    return (uint32_t)((const char *)memory - work->code.slot);
}

static void take_places(struct cuda_work *work, const struct tile *t, unsigned n_grains,
                        struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    for (unsigned grain = 0; grain < n_grains; grain++) {
        tile_boxes(t, t->grain + grain, th);
        measure_grain(work, t, grain, th);
    }
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        for (unsigned grain = 0; grain < n_grains; grain++) {
            uint32_t *at = &work->input_offsets[grain][i];
            *at = *at == CUDA_SHARED ? work->input_offsets[grain - 1][i] | CUDA_SHARED
                                     : offset_of(work, cuda_tile_place_input(&work->code, *at));
        }
    }
    for (unsigned i = 0; i < ports->n_outputs; i++) {
        for (unsigned grain = 0; grain < n_grains; grain++) {
            uint32_t *at = &work->output_offsets[grain][i];
            *at = offset_of(work, cuda_tile_place_output(&work->code, *at));
        }
    }
}

/* Behind the last grain that goes to the device with the one in hand. */
static uint64_t round_end(const struct tile *t)
{
    return t->job->has_rings ? t->blocks_end : t->end;
}

static int begin(struct cuda_work *work, struct tile *t, struct thread_context *th, char *slot,
                 uint64_t slot_bytes)
{
    const struct wjob *job = t->job;
    uint64_t n_grains = round_end(t) - t->grain;
    assert(n_grains <= CUDA_TILE_MAX_GRAINS);
    const struct engine_room *room = &tile_plan(t)->room;
    cuda_results_begin(&work->results, t, th);
    work->in.n = work->out.n = 0;
    int r = cuda_tile_begin(&work->code, job->program, t->pass, th->results, (unsigned)n_grains,
                            room, slot, slot_bytes);
    if (r)
        return error_set(&th->error, GAD_INTERNAL, NULL,
                         "%llu grains of %llu bytes do not fit a slot of %llu bytes",
                         (unsigned long long)n_grains,
                         (unsigned long long)(room->input_bytes + room->output_bytes),
                         (unsigned long long)slot_bytes);
    take_places(work, t, (unsigned)n_grains, th);
    return 0;
}

/* Of the grain in hand. */
static void find_places(struct cuda_work *work, const struct tile *t)
{
    const uint32_t *offsets = work->input_offsets[work->code.n_grains];
    for (unsigned i = 0; i < t->ports->n_inputs; i++) {
        work->is_shared[i] = offsets[i] & CUDA_SHARED;
        work->memory[i] = work->code.slot + (offsets[i] & ~CUDA_SHARED);
    }
}

static void output_views(struct cuda_work *work, unsigned grain, const struct tile *t,
                         struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    for (unsigned i = 0; i < ports->n_outputs; i++) {
        const struct port *port = ports->outputs[i].port;
        struct engine_view *view = &th->outputs[ports->outputs[i].index];
        th->output_memory[i] = work->code.slot + work->output_offsets[grain][i];
        if (t->step == WALK_LOG && port_can(port, PORT_MAPPED))
            port_place_dense(port, &th->output_boxes[i], th->output_memory[i], view);
        else
            place(t, port, &th->output_boxes[i], th->output_memory[i], view);
    }
}

/* Where the box is rows that lie in the order of the slot, evenly: these rows. */
static bool find_rows(const struct tile *t, const struct port *port, const struct port_box *box,
                      const struct engine_view *home, struct direct_rows *ret)
{
    const struct geometry *g = tile_geometry(t);
    *ret = (struct direct_rows){
        .client = home->base, .n_rows = 1, .row_bytes = (uint64_t)port->item_bytes};
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i] - (g->ndim - port->array.ndim);
        if (axis < 0 || box->count[axis] == 1)
            continue;
        uint64_t stride = (uint64_t)home->strides[axis], n = (uint64_t)box->count[axis];
        if (home->strides[axis] < (int64_t)ret->row_bytes)
            return false;
        if (ret->n_rows == 1 && stride == ret->row_bytes)
            ret->row_bytes *= n;
        else if (ret->n_rows > 1 && stride != ret->n_rows * ret->stride_bytes)
            return false;
        else if (ret->n_rows > 1)
            ret->n_rows *= n;
        else {
            ret->n_rows = n;
            ret->stride_bytes = stride;
        }
    }
    return true;
}

/* Registered memory that lies as it would in the slot, but for gaps, need not be copied there. */
static bool is_direct(const struct cuda_work *work, struct direct *d, const struct tile *t,
                      const struct pass_port *of, const struct port_box *box,
                      const struct engine_view *in_slot)
{
    const struct port *port = of->port;
    struct engine_view home;
    struct direct_rows rows;
    if (!work->registered || !port->region || reads_goes_on(of, box))
        return false;
    place_at_home(t, port, box, 0, &home);
    return find_rows(t, port, box, &home, &rows) &&
           direct_take(d, work->registered, &rows,
                       (uint64_t)((char *)in_slot->base - work->code.slot), t->job->serial);
}

static void take_direct(struct cuda_work *work, const struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    for (unsigned i = 0; i < ports->n_inputs; i++)
        work->is_direct[i] = !work->is_shared[i] &&
                             is_direct(work, &work->in, t, &ports->inputs[i], &th->input_boxes[i],
                                       &th->inputs[ports->inputs[i].index]);
    for (unsigned i = 0; i < ports->n_outputs && t->step != WALK_LOG; i++)
        (void)is_direct(work, &work->out, t, &ports->outputs[i], &th->output_boxes[i],
                        &th->outputs[ports->outputs[i].index]);
}

static int fill_from_files(struct cuda_work *work, const struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        const struct port *port = ports->inputs[i].port;
        if (!port->ops->fill || work->is_shared[i])
            continue;
        int r = reads_fill(&ports->inputs[i], &th->input_boxes[i], work->memory[i], &th->io,
                           &th->error);
        if (r)
            return r;
    }
    return 0;
}

struct copy_call {
    const struct cuda_work *work;
    const struct tile *t;
    struct thread_context *th;
};

/* From memory, of which a box that goes on beyond an end is several. */
static void copy_parts(const struct copy_call *call, unsigned input, const struct engine_view *to)
{
    const struct pass_port *of = &call->t->ports->inputs[input];
    struct engine_view home, part_to;
    struct port_box box;
    uint32_t part = 0;
    for (bool has_more = true; has_more;) {
        has_more = reads_next_part(of, &call->th->input_boxes[input], to, &part, &box, &part_to);
        place_at_home(call->t, of->port, &box, input, &home);
        copy_box(call->t, of->port, &box, &home, &part_to, !call->t->job->plan.is_small);
    }
}

/* Inside guard_call(). */
static int copy_inputs(void *argument)
{
    const struct copy_call *call = argument;
    const struct wjob *job = call->t->job;
    const struct pass_ports *ports = call->t->ports;
    struct thread_context *th = call->th;
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        const struct port *port = ports->inputs[i].port;
        const struct port_box *box = &th->input_boxes[i];
        const struct engine_view *to = &th->inputs[ports->inputs[i].index];
        struct engine_view home;
        if (port_can(port, PORT_STAGED) || call->work->is_shared[i] || call->work->is_direct[i])
            continue;
        if (port_can(port, PORT_MAPPED) && reads_goes_on(&ports->inputs[i], box)) {
            copy_parts(call, i, to);
            continue;
        }
        place_at_home(call->t, port, box, i, &home);
        copy_box(call->t, port, box, &home, to, !job->plan.is_small);
    }
    return 0;
}

static int copy_outputs(void *argument)
{
    const struct copy_call *call = argument;
    const struct pass_ports *ports = call->t->ports;
    struct thread_context *th = call->th;
    bool is_large = tile_is_of_large_pass(call->t);
    for (unsigned i = 0; i < ports->n_outputs; i++) {
        const struct port *port = ports->outputs[i].port;
        struct engine_view home;
        uint64_t offset = (uint64_t)((char *)th->output_memory[i] - call->work->code.slot);
        if (port_can(port, PORT_STAGED) || direct_has(&call->work->out, offset))
            continue;
        place_at_home(call->t, port, &th->output_boxes[i], REQUEST_MAX_ARGS + i, &home);
        copy_box(call->t, port, &th->output_boxes[i], &th->outputs[ports->outputs[i].index], &home,
                 is_large);
    }
    return 0;
}

static int copy_guarded(const struct cuda_work *work, const struct tile *t,
                        struct thread_context *th, int (*copy)(void *argument))
{
    const struct wjob *job = t->job;
    struct copy_call call = {.work = work, .t = t, .th = th};
    const void *address = NULL;
    int r = job->n_ranges > 0 ? guard_call(job->ranges, job->n_ranges, copy, &call, &address)
                              : copy(&call);
    return r ? tile_engine_error(t, r, address, &th->error) : 0;
}

/* The views are those of the ports' own axes until all is copied. */
static void add_grain(struct cuda_work *work, const struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    const struct engine_box box = tile_box(t, th);
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        struct engine_view *view = &th->inputs[ports->inputs[i].index];
        view->goes_on_axes = 0;
        port_pass_view(ports->inputs[i].port, box.ndim, view);
        if (ports->inputs[i].is_near)
            reads_view(&ports->inputs[i], box.ndim, th->start, &th->input_boxes[i], view);
    }
    for (unsigned i = 0; i < ports->n_outputs; i++)
        port_pass_view(ports->outputs[i].port, box.ndim, &th->outputs[ports->outputs[i].index]);
    cuda_results_stage(&work->results, &work->code, t, th);
    cuda_tile_add(&work->code, &box, th->inputs, th->outputs, th->results);
}

static int stage_grain(struct cuda_work *work, struct tile *t, struct thread_context *th)
{
    tile_boxes(t, t->grain, th);
    find_places(work, t);
    int r = t->is_staged ? 0 : fill_from_files(work, t, th);
    if (r)
        return r;
    for (unsigned i = 0; i < t->ports->n_inputs; i++)
        place(t, t->ports->inputs[i].port, &th->input_boxes[i], work->memory[i],
              &th->inputs[t->ports->inputs[i].index]);
    output_views(work, work->code.n_grains, t, th);
    take_direct(work, t, th);
    r = copy_guarded(work, t, th, copy_inputs);
    if (!r && t->job->has_rings)
        r = tile_give_blocks(t, TILE_SOURCES, th);
    if (r)
        return r;
    add_grain(work, t, th);
    t->is_staged = false;
    t->grain++;
    return 0;
}

static bool is_stopped(const struct tile *t)
{
    return atomic_load_explicit(&t->job->is_stopped, memory_order_relaxed);
}

static enum tile_outcome failed(struct thread_context *th, int r)
{
    th->status = r;
    return TILE_FAILED;
}

static enum tile_outcome stage(struct cuda_work *work, struct tile *t, struct thread_context *th,
                               char *slot, uint64_t slot_bytes)
{
    if (!t->is_in_slot) {
        if (t->job->has_rings && !tile_take_blocks(t, CUDA_TILE_MAX_GRAINS))
            return is_stopped(t) ? TILE_FAILED : t->grain < t->end ? TILE_NEEDS_CLIENT : TILE_DONE;
        int r = begin(work, t, th, slot, slot_bytes);
        if (r)
            return failed(th, r);
        t->is_in_slot = true;
    }
    while (t->grain < round_end(t)) {
        if (is_stopped(t))
            return TILE_FAILED;
        int r = stage_grain(work, t, th);
        if (r)
            return r == -EAGAIN ? TILE_NEEDS_READ : failed(th, r);
    }
    box_fence();
    return TILE_DONE;
}

enum tile_outcome cuda_tile_stage(struct cuda_work *work, struct tile *t, struct thread_context *th,
                                  char *slot, uint64_t slot_bytes)
{
    uint64_t begin_ns = clock_ns();
    enum tile_outcome outcome = stage(work, t, th, slot, slot_bytes);
    uint64_t end_ns = clock_ns();
    t->measure.source_ns += end_ns - begin_ns;
    tile_span(t, th, TRACE_READ, begin_ns, end_ns);
    return outcome;
}

void cuda_engine_drop(struct engine *base, struct tile *t)
{
    const struct cuda_engine *e = (const struct cuda_engine *)base;
    if (!t->is_in_slot)
        return;
    struct cuda_work *work = cuda_work_of(e, t);
    direct_release(&work->in, work->registered);
    direct_release(&work->out, work->registered);
}

/* Finishing ---------------------------------------------------------------------------------- */

static int finish_grain(struct cuda_work *work, unsigned grain, struct tile *t,
                        struct thread_context *th)
{
    tile_boxes(t, t->grain, th);
    void *node = tile_node(t, th->count);
    int r = cuda_tile_result(&work->code, grain, tile_node_layout(t), node, &t->measure.warnings);
    if (r)
        return tile_engine_error(t, r, NULL, &th->error);
    output_views(work, grain, t, th);
    bool is_logged = t->step == WALK_LOG;
    r = is_logged ? walk_log_store(t, th) : copy_guarded(work, t, th, copy_outputs);
    if (!r && !is_logged)
        r = tile_store(t, th);
    if (!r && t->job->has_rings) {
        box_fence();
        r = tile_give_blocks(t, TILE_SINKS, th);
    }
    if (!r) {
        cuda_results_keep_states(&work->code, grain, t, th);
        tile_grain_done(t, th);
    }
    return r;
}

static enum tile_outcome finish(struct cuda_work *work, struct tile *t, struct thread_context *th)
{
    const uint64_t end = round_end(t);
    t->grain = end - work->code.n_grains;
    for (unsigned grain = 0; t->grain < end; grain++) {
        if (!sched_may_call_on(t, th))
            return TILE_FAILED;
        int r = finish_grain(work, grain, t, th);
        if (r)
            return failed(th, r);
    }
    t->is_in_slot = t->is_computed = false;
    return t->grain < t->end ? TILE_NEEDS_CLIENT : TILE_DONE;
}

/* Not one that loses the context: those end the process. */
static int device_error(int r, struct gad_error *error)
{
    error_set(error, GAD_DEVICE_FAULT, NULL, "the device answered %s: %s", cuda_error_name(r),
              cuda_error_text(r));
    error_found(error, "%s", cuda_error_name(r));
    return GAD_DEVICE_FAULT;
}

enum tile_outcome cuda_tile_failed(const struct tile *t, struct thread_context *th)
{
    return failed(th, device_error(t->device_error, &th->error));
}

enum tile_outcome cuda_tile_finish(struct cuda_work *work, struct tile *t,
                                   struct thread_context *th)
{
    uint64_t begin_ns = clock_ns(), aside_ns = th->aside_ns;
    direct_release(&work->in, work->registered);
    direct_release(&work->out, work->registered);
    if (t->device_error)
        return cuda_tile_failed(t, th);
    enum tile_outcome outcome = finish(work, t, th);
    box_fence();
    uint64_t end_ns = clock_ns();
    t->measure.sink_ns += end_ns - begin_ns - (th->aside_ns - aside_ns);
    tile_span(t, th, TRACE_WRITE, begin_ns, end_ns);
    return outcome;
}

/* Steps -------------------------------------------------------------------------------------- */

static enum tile_outcome run_in_slot(struct cuda_engine *e, struct tile *t,
                                     struct thread_context *th)
{
    struct cuda_work *work = cuda_work_of(e, t);
    if (t->is_computed)
        return cuda_tile_finish(work, t, th);
    enum tile_outcome outcome = cuda_tile_stage(work, t, th, t->slot, e->base.limits.slot_bytes);
    if (outcome != TILE_DONE || !t->is_in_slot) /* it may have ended before the round */
        return outcome;
    cuda_pipeline_submit(e, t);
    return TILE_ON_DEVICE;
}

/* The inputs of the grain in hand that are files; the others are copied by the thread that goes on
 * with the tile. */
static int read_to_slot(struct cuda_engine *e, struct tile *t, struct thread_context *th)
{
    tile_boxes(t, t->grain, th);
    return fill_from_files(cuda_work_of(e, t), t, th);
}

/* Operands of products are never read straight into a panel: it is on the device. */
static const struct {
    enum tile_outcome (*run)(struct cuda_engine *e, struct tile *t, struct thread_context *th);
    int (*read)(struct cuda_engine *e, struct tile *t, struct thread_context *th);
} steps[WALK_N_STEPS] = {
    [WALK_COMPUTE] = {run_in_slot, read_to_slot},
    [WALK_LOG] = {run_in_slot, read_to_slot},
    [WALK_APPLY] = {cuda_product_apply, cuda_product_read_log},
    [WALK_MULTIPLY] = {cuda_product_run_multiply, NULL},
    [WALK_MARK] = {cuda_product_mark, NULL},
};

enum tile_outcome cuda_engine_run(struct engine *base, struct tile *t, struct thread_context *th)
{
    return steps[t->step].run((struct cuda_engine *)base, t, th);
}

int cuda_engine_read(struct engine *base, struct tile *t, struct thread_context *th)
{
    return steps[t->step].read((struct cuda_engine *)base, t, th);
}
