/* What turns of a matrix product do on the host with any engine: panels and C in the carry are seen
 * as one more output, one more result of the pass; and the journal.
 *
 * With a journal, what a grain of C gives goes from its slot to the journal, whatever the output
 * is, packed as the output's port packs it; and from there, when the whole tile is in it, to the
 * output.
 *
 * Called by the engines' turns and reads.
 */
#include "daemon/worker/engine.h"
#include "daemon/worker/journal.h"
#include "daemon/worker/product.h"

#include <string.h>

void product_views(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    if (t->turn.step == PRODUCT_LOAD)
        product_panel_view(&job->plan, job->program, &t->turn, th->start, job->carry,
                           &th->outputs[job->program->n_outputs + t->pass]);
    else if (t->turn.step == PRODUCT_STORE)
        product_result_view(&job->plan, job->program, &t->turn, th->start, job->carry,
                            &th->results[0]);
}

/* The journal -------------------------------------------------------------------------------- */

static uint64_t cell_of(const struct tile *t)
{
    return t->turn.first_cell + t->grain;
}

int product_log(const struct tile *t, struct thread_context *th)
{
    int64_t n_bytes = port_box_bytes(t->ports->outputs[0].port, &th->output_boxes[0]);
    return journal_store(t->job, t->turn.tile, cell_of(t), th->output_memory[0], n_bytes, &th->io,
                         &th->error);
}

int product_read_log(const struct tile *t, struct thread_context *th)
{
    int64_t n_bytes = port_box_bytes(t->ports->outputs[0].port, &th->output_boxes[0]);
    return journal_load(t->job, t->turn.tile, cell_of(t), th->output_memory[0], n_bytes, &th->io,
                        &th->error);
}

struct copy_call {
    const struct port *port;
    const struct port_box *box;
    void *memory;
};

/* Dense to where the array is; inside guard_call(). */
static int copy_box(void *argument)
{
    const struct copy_call *call = argument;
    const struct port *port = call->port;
    const char *from = call->memory;
    struct cpu_view to;
    int64_t at[ARRAY_MAX_NDIM] = {0};
    int ndim = port->array.ndim, last = ndim - 1;
    port->ops->place(port, call->box, NULL, &to);
    size_t item = (size_t)port->item_bytes;
    bool is_run = ndim > 0 && to.strides[last] == port->item_bytes;
    int64_t n_items = ndim > 0 ? call->box->count[last] : 1;
    for (int axis = 0; axis >= 0;) {
        char *line = to.base;
        for (int i = 0; i < last; i++)
            line += at[i] * to.strides[i];
        if (is_run)
            memcpy(line, from, item * (size_t)n_items);
        for (int64_t i = 0; i < n_items && !is_run; i++)
            memcpy(line + i * (ndim > 0 ? to.strides[last] : 0), from + (size_t)i * item, item);
        from += (size_t)n_items * item;
        for (axis = last - 1; axis >= 0 && ++at[axis] == call->box->count[axis]; axis--)
            at[axis] = 0;
    }
    return 0;
}

int product_apply(const struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const struct port *port = t->ports->outputs[0].port;
    struct copy_call call = {port, &th->output_boxes[0], th->output_memory[0]};
    const void *address = NULL;
    if (port->ops->store)
        return port->ops->store(port, call.box, call.memory, &th->io, &th->error);
    int r = guard_call(job->ranges, job->n_ranges, copy_box, &call, &address);
    return r ? tile_engine_error(t, r, address, &th->error) : 0;
}
