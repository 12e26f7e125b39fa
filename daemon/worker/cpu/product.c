/* What the CPU does with panels of a matrix product, beside what passes do with grains: blocks are
 * multiplied; and an operand that is an argument as it is, in a file, in the order of its panel, is
 * read straight into the panel: no slot is needed, and no copy is made.
 *
 * Called by the CPU engine's turns and reads (turn.c).
 */
#include "daemon/worker/cpu/engine.h"
#include "daemon/worker/turns/scheduler.h"
#include "kernels/cpu/multiply/multiply.h"

#include <errno.h>

/* The panel's view is in the axes of the pass, of which the argument has all. */
int cpu_product_fill(const struct tile *t, struct thread_context *th)
{
    const struct port *port = t->ports->inputs[0].port;
    int ndim = port->array.ndim;
    struct engine_view view;
    product_panel_view(t->product, &t->turn, th->start, t->job->product_carry, &view);
    if (port->is_transposed) {
        int64_t last = view.strides[ndim - 1];
        view.strides[ndim - 1] = view.strides[ndim - 2];
        view.strides[ndim - 2] = last;
    }
    return port->ops->fill_view(port, &th->input_boxes[0], &view, &th->io, &th->error);
}

int cpu_product_multiply(struct tile *t, struct thread_context *th)
{
    const struct wjob *job = t->job;
    const struct product_turn *turn = &t->turn;
    for (int64_t i = 0; i < turn->n_matrices; i++) {
        struct product_matrix left, right, result;
        if (!sched_may_go_on(t, th))
            return -ECANCELED;
        product_block(t->product, turn, i, job->product_carry, &left, &right, &result);
        const struct cpu_matrix a = {left.base, left.row_bytes, left.column_bytes};
        const struct cpu_matrix b = {right.base, right.row_bytes, right.column_bytes};
        cpu_multiply(th->cpu, t->product->whole->dtype, turn->n_rows, turn->n_columns,
                     turn->n_depth, &a, &b, result.base, result.row_bytes, !turn->is_first,
                     th->scratch);
    }
    if (turn->is_mirrored)
        product_mirror(t->product, turn, job->product_carry);
    return 0;
}
