/* What tiles of a matrix product with a journal do on the host with any engine: what a grain of C
 * gives goes from its slot to the journal, whatever the output is, packed as the output's port
 * packs it; and from there, when the whole tile is in it, to the output.
 *
 * Called by the engines' turns and reads.
 */
#include "daemon/worker/io/boxio.h"
#include "daemon/worker/walks/journal.h"
#include "daemon/worker/walks/walk_product.h"
#include "proto/box.h"

#include <string.h>

static uint64_t cell_of(const struct tile *t)
{
    return t->turn.first_cell + t->grain;
}

int walk_log_load(const struct tile *t, struct thread_context *th)
{
    int64_t n_bytes = port_box_bytes(t->ports->outputs[0].port, &th->output_boxes[0]);
    return journal_load(t->job, t->turn.tile, cell_of(t), th->output_memory[0], n_bytes, &th->io,
                        &th->error);
}

struct copy_call {
    const struct port *port;
    const struct port_box *box;
    void *memory;
    bool is_out; /* of the array, not into it */
};

/* Upwards byte by byte, as files are written: of a cell in whose middle the end comes the first
 * part is new and the rest old, which memcpy() does not promise. */
static void copy_upwards(char *to, const char *from, size_t n_bytes)
{
    typedef uint64_t word __attribute__((aligned(1), may_alias));
    size_t at = 0;
    for (; n_bytes - at >= sizeof(word); at += sizeof(word))
        *(volatile word *)(to + at) = *(const word *)(from + at);
    for (; at < n_bytes; at++)
        *(volatile char *)(to + at) = from[at];
}

static void copy_item(char *in_array, char *dense, size_t n_bytes, bool is_out)
{
    if (is_out)
        memcpy(dense, in_array, n_bytes);
    else
        copy_upwards(in_array, dense, n_bytes);
}

/* Between dense memory and where the array is; inside guard_call(). */
static int copy_box(void *argument)
{
    const struct copy_call *call = argument;
    const struct port *port = call->port;
    char *dense = call->memory;
    struct engine_view to;
    struct box box;
    struct box_place place = {.index = {0}};
    int64_t stride = port->item_bytes;
    port->ops->place(port, call->box, NULL, &to);
    box.n = 0;
    for (int i = port->array.ndim - 1; i >= 0; stride *= call->box->count[i--])
        box_add(&box, call->box->count[i], to.strides[i], stride);
    size_t run_bytes = (size_t)box_take_run(&box, port->item_bytes);
    do
        copy_item((char *)to.base + place.offset[0], dense + place.offset[1], run_bytes,
                  call->is_out);
    while (box_next(box.axes, box.n, &place));
    return 0;
}

int walk_log_read_output(const struct wjob *job, const struct port *port,
                         const struct port_box *box, void *memory, const struct port_io *io,
                         struct gad_error *error)
{
    struct copy_call call = {port, box, memory, true};
    const void *address = NULL;
    if (port->ops->fill)
        return port->ops->fill(port, box, memory, io, error);
    int r = guard_call(job->ranges, job->n_ranges, copy_box, &call, &address);
    return r ? tile_region_fault(job, address, error) : 0;
}

/* What the output has there now is read behind it, into the same memory: the cell is in the
 * journal.
 */
int walk_log_store(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const struct port *port = t->ports->outputs[0].port;
    int64_t n_bytes = port_box_bytes(port, &th->output_boxes[0]);
    void *memory = th->output_memory[0];
    int r = journal_store(job, t->turn.tile, cell_of(t), memory, n_bytes, &th->io, &th->error);
    if (r || !job->is_in_place)
        return r;
    struct port_io io = th->io;
    io.may_block = true;
    boxio_enter_blocking(&th->io);
    r = walk_log_read_output(job, port, &th->output_boxes[0], memory, &io, &th->error);
    boxio_leave_blocking(&th->io);
    if (r)
        return r;
    return journal_note_before(job, cell_of(t), memory, n_bytes, &th->io, &th->error);
}

int walk_log_apply(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const struct port *port = t->ports->outputs[0].port;
    struct copy_call call = {port, &th->output_boxes[0], th->output_memory[0], false};
    const void *address = NULL;
    if (port->ops->store)
        return port->ops->store(port, call.box, call.memory, &th->io, &th->error);
    int r = guard_call(job->ranges, job->n_ranges, copy_box, &call, &address);
    return r ? tile_engine_error(t, r, address, &th->error) : 0;
}

int walk_log_mark(struct tile *t, struct thread_context *th)
{
    return journal_mark(t->job, t->turn.tile, t->turn.is_applied, &th->io, &th->error);
}
