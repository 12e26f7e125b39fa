/* What a thread does with a tile, as far as it is the same for all engines: the boxes of a grain's
 * operands, bytes as they are counted, nodes in order, errors, the crash page.
 *
 * A tile goes to other threads at the boundary of a grain, or before the arithmetic of one: because
 * a read would wait for a disk (an I/O thread then reads the inputs of the grain in hand and the
 * tile comes back staged, with its slot), or because a client has not filled or drained a block
 * (the tile comes back without a slot). Whatever the order of threads, places are the same, so a
 * grain that was staged by one thread can be computed by another.
 *
 * Nodes of reductions are pushed grain by grain, in order, and combined at the tile's end
 * (walks/walk_passes.c).
 */
#include "daemon/worker/engine.h"
#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/reads.h"
#include "daemon/worker/trace.h"
#include "kernels/cpu/engine.h"
#include "proto/util.h"

#define PREFETCH_GRAINS 8
#define TRACE_LEAST_NS  200 /* what is between two steps of a turn is no step of its own */
#define LARGE_CACHES    2   /* a pass that moves more than so many last-level caches is large */

void tile_init(struct tile *t, struct wjob *job)
{
    *t = (struct tile){.job = job, .state = TILE_IN_HAND};
    walk_take(job, t);
    t->together.end = t->grain;
}

uint64_t tile_position(const struct tile *t)
{
    return t->first_position + t->grain;
}

/* Grains ------------------------------------------------------------------------------------- */

void tile_boxes(const struct tile *t, uint64_t grain, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    const struct geometry *g = &tile_plan(t)->geometry;
    const struct walk_ops *ops = t->job->walk.ops;
    geometry_grain(g, ops->has_runs ? grain : ops->grain_number(t, grain), th->start, th->count);
    plan_open_clip(tile_plan(t), t->open_length, th->start, th->count);
    for (unsigned i = 0; i < ports->n_inputs; i++)
        reads_box(t->job->program, tile_pass(t), &ports->inputs[i], th->start, th->count,
                  &th->input_boxes[i]);
    for (unsigned i = 0; i < ports->n_outputs; i++)
        port_pass_box(ports->outputs[i].port, g->ndim, th->start, th->count, &th->output_boxes[i]);
}

struct engine_box tile_box(const struct tile *t, const struct thread_context *th)
{
    return (struct engine_box){.ndim = tile_pass(t)->ndim,
                               .count = th->count,
                               .start = th->start,
                               .axis_order = tile_plan(t)->geometry.axis_order,
                               .is_continued = t->n_in_leaf > 0};
}

/* Bytes as the plan counts them: small arrays in memory once where the pass is walked through once,
 * others box by box. */
static uint64_t bytes_to_count(const struct tile *t, const struct port *port,
                               const struct port_box *box)
{
    bool is_small = array_n_bytes(&port->array) <= GRAIN_MAX_OPERAND_BYTES;
    if (!t->job->walk.ops->has_runs || !port_can(port, PORT_MAPPED) || !is_small)
        return (uint64_t)port_box_bytes(port, box);
    return t->grain == 0 ? (uint64_t)array_n_bytes(&port->array) : 0;
}

static void grain_count(struct tile *t, const struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    struct measure *m = &t->measure;
    for (unsigned i = 0; i < ports->n_inputs; i++) {
        const struct port *port = ports->inputs[i].port;
        struct port_box box = th->input_boxes[i];
        if (ports->inputs[i].is_near) /* what lies around it is others' */
            port_pass_box(port, tile_pass(t)->ndim, th->start, th->count, &box);
        m->read_bytes[traffic_path_of(&port->array.at)] += bytes_to_count(t, port, &box);
    }
    if (t->step == WALK_LOG) /* counted when it is in the output */
        return;
    for (unsigned i = 0; i < ports->n_outputs; i++) {
        const struct port *port = ports->outputs[i].port;
        m->write_bytes[traffic_path_of(&port->array.at)] +=
            bytes_to_count(t, port, &th->output_boxes[i]);
    }
}

bool tile_is_of_large_pass(const struct tile *t)
{
    const struct plan_pass *plan = tile_plan(t);
    return plan->read_bytes + plan->write_bytes > LARGE_CACHES * cpu_last_cache_bytes();
}

int tile_store(const struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    for (unsigned i = 0; i < ports->n_outputs; i++) {
        const struct port *port = ports->outputs[i].port;
        if (!port->ops->store)
            continue;
        int r =
            port->ops->store(port, &th->output_boxes[i], th->output_memory[i], &th->io, &th->error);
        if (r)
            return r;
    }
    return 0;
}

void tile_grain_done(struct tile *t, struct thread_context *th)
{
    if (t->job->walk.ops->grain_done)
        t->job->walk.ops->grain_done(t, th);
    grain_count(t, th);
    t->is_staged = false;
    t->grain++;
}

int tile_region_fault(const struct wjob *job, const char *address, struct gad_error *error)
{
    const char *name = NULL;
    for (unsigned i = 0; i < job->n_ports; i++) {
        struct guard_range range = {0};
        const struct port_file *file = &job->ports[i].file;
        if (file->mapping && address >= file->mapping &&
            address - file->mapping < file->mapping_bytes)
            return port_file_fault(&job->ports[i], address, error);
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

int tile_engine_error(const struct tile *t, int r, const void *address, struct gad_error *error)
{
    const struct wjob *job = t->job;
    const struct pass_ports *ports = t->ports;
    if (r == -EFAULT)
        return tile_region_fault(job, address, error);
    if (r == GAD_NEGATIVE_POWER)
        return error_set(error, GAD_NEGATIVE_POWER,
                         ports->n_outputs > 0 ? ports->outputs[0].port->name : NULL,
                         "an integer to a negative integer power has no integer result");
    return error_set(error, GAD_INTERNAL, NULL, "the engine answered %d", r);
}

/* Turns -------------------------------------------------------------------------------------- */

void tile_tell(const struct tile *t, struct thread_context *th, uint64_t now_ns)
{
    if (th->page)
        crashpage_enter(th->page, t->job->identity.id, t->index, now_ns, CRASHPAGE_COMPUTING);
}

void tile_span(const struct tile *t, const struct thread_context *th, enum trace_kind kind,
               uint64_t begin_ns, uint64_t end_ns)
{
    const struct trace_record record = {.begin_ns = begin_ns,
                                        .duration_ns = end_ns - begin_ns,
                                        .tile = (uint32_t)min_u64(t->index, UINT32_MAX),
                                        .lane = (uint16_t)th->index,
                                        .kind = (uint8_t)kind,
                                        .pass = (uint8_t)t->pass};
    trace_add(th->trace, t->job->identity.id, &record);
}

void tile_trace_kernel(const struct tile *t, struct thread_context *th, uint64_t now_ns)
{
    if (now_ns > th->traced_ns + TRACE_LEAST_NS)
        tile_span(t, th, TRACE_KERNEL, th->traced_ns, now_ns);
    th->traced_ns = now_ns;
}

void tile_trace(const struct tile *t, struct thread_context *th, enum trace_kind kind,
                uint64_t begin_ns, uint64_t end_ns)
{
    tile_trace_kernel(t, th, begin_ns);
    tile_span(t, th, kind, begin_ns, end_ns);
    th->traced_ns = end_ns;
}

static enum tile_outcome run(struct engine *e, struct tile *t, struct thread_context *th,
                             enum tile_outcome (*call)(struct engine *e, struct tile *t,
                                                       struct thread_context *th))
{
    struct wjob *job = t->job;
    th->status = 0;
    tile_tell(t, th, clock_ns());
    if (!t->has_begun) {
        t->has_begun = true;
        worker_fault_point(job->request->label, t->index, job->walk.n_tiles);
    }
    enum tile_outcome outcome = t->step == WALK_NOTHING ? TILE_DONE : call(e, t, th);
    if (outcome == TILE_DONE && job->walk.ops->combine)
        job->walk.ops->combine(t);
    if (th->page)
        crashpage_leave(th->page);
    return outcome;
}

enum tile_outcome tile_run(struct engine *e, struct tile *t, struct thread_context *th)
{
    return run(e, t, th, e->ops->run);
}

enum tile_outcome tile_run_small(struct engine *e, struct tile *t, struct thread_context *th)
{
    return run(e, t, th, e->ops->run_small);
}

static void tile_prefetch(struct tile *t, struct thread_context *th)
{
    const struct pass_ports *ports = t->ports;
    uint64_t end = min_u64(t->grain + 1 + PREFETCH_GRAINS, t->prefetch_end);
    for (uint64_t grain = t->grain + 1; grain < end; grain++) {
        tile_boxes(t, grain, th);
        for (unsigned i = 0; i < ports->n_inputs; i++)
            reads_prefetch(&ports->inputs[i], &th->input_boxes[i]);
    }
}

int tile_read(struct engine *e, struct tile *t, struct thread_context *th)
{
    uint64_t begin = clock_ns();
    if (th->page)
        crashpage_enter(th->page, t->job->identity.id, t->index, begin, CRASHPAGE_BLOCKING);
    tile_prefetch(t, th);
    int r = e->ops->read(e, t, th);
    t->is_staged = r == 0;
    if (th->page)
        crashpage_leave(th->page);
    uint64_t end = clock_ns();
    t->measure.source_ns += end - begin;
    tile_span(t, th, TRACE_READ, begin, end);
    return r;
}
